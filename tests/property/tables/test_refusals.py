"""Refusals of compiled code say what the generic reader says, each of them."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import example, given

from fuzz.whole_packets import packet_bytes
from msmqwire.analysis.dissection.skip_reasons import Why
from msmqwire.errors import MalformedPacket
from msmqwire.packets import Protocol, parse
from msmqwire.tables.arrow.errors import ErrorCells
from msmqwire.tables.arrow.refusals import IN_WORDS, TIMES
from msmqwire.tables.compiled.generated import REFUSALS, SLOTS
from msmqwire.tables.compiled.packet import BAD, GAP_REASONS, KINDS, NOT_CAPTURED, SKIPPED_FOR
from msmqwire.tables.compiled.refusal import NUMBER
from msmqwire.tables.compiled.scan_arrays import RowBlock
from msmqwire.tables.compiled.state import R_EXTRA, R_KIND, REFUSAL_IN_OFFSETS, ROW
from msmqwire.tables.compiled.whole_packets import PING, SESSION, identify
from tests.support import handmade as h
from tests.support.capture import malformed


def judged(packets: list[bytes], protocol: Protocol = "session") -> RowBlock:
    """The rows that the compiled code makes of packets."""
    memory = np.frombuffer(b"".join(packets), np.uint8).copy()
    offsets = np.cumsum([0, *map(len, packets)])
    count = len(packets)
    block = RowBlock(np.zeros((count, ROW), np.int64), np.zeros((count, SLOTS), np.int32), memory)
    protocols = np.full(count, SESSION if protocol == "session" else PING)
    assert identify(block, offsets, np.ones(count, np.bool_), protocols, 0, 1 << 62) == count
    return block


def in_words(refusals: Any) -> list[tuple[str, str | None, int | None]]:
    """Reason, path and offset of refusals."""
    cells = ErrorCells()
    cells.add_refusals(np.arange(len(refusals)), refusals)
    columns = cells.arrays(len(refusals))
    for column in columns.values():
        column.validate(full=True)
    return list(zip(*(column.to_pylist() for column in columns.values()), strict=True))


def told(packet: bytes, protocol: Protocol = "session") -> tuple[str, str, int | None] | str:
    """What the generic reader says: the kind of a packet, or why it is malformed."""
    try:
        return parse(packet, protocol=protocol).schema.name
    except MalformedPacket as exc:
        return exc.why, exc.path, exc.offset


def assert_judged_alike(packets: Iterable[bytes], protocol: Protocol = "session") -> set[int]:
    """Return the numbers of the refusals."""
    packets = list(packets)
    block = judged(packets, protocol)
    refused = np.flatnonzero(block.rows[:, R_KIND] == BAD)
    words = in_words(block.field_offsets[refused])
    numbers = set()
    for packet, row, offsets in zip(packets, block.rows, block.field_offsets, strict=True):
        expected: Any = told(packet, protocol)
        if row[R_KIND] == BAD:
            assert row[R_EXTRA] == REFUSAL_IN_OFFSETS
            assert words.pop(0) == expected, packet.hex()
            numbers.add(int(offsets[NUMBER]))
        else:
            assert KINDS[row[R_KIND]] == expected, packet.hex()
    return numbers


def test_every_refusal_occurs_and_has_one_text_in_both_readers() -> None:
    sound = assert_judged_alike(malformed.with_sound_frames())
    any_frame = assert_judged_alike(malformed.with_any_frame())
    pings = [h.ping()[:size] for size in range(24)] + [h.ping(signature=0), h.ping() + b"x"]
    of_pings = assert_judged_alike(pings, "ping")
    assert sound | any_frame | of_pings == set(range(SKIPPED_FOR))
    of_gaps = range(NOT_CAPTURED, NOT_CAPTURED + len(GAP_REASONS))
    assert set(IN_WORDS) == {*range(SKIPPED_FOR), *(SKIPPED_FOR + why for why in Why), *of_gaps}


@given(packet=packet_bytes(), data=st.data())
def test_damaged_packets_are_refused_for_the_same_reason(packet: bytes, data: st.DataObject) -> None:
    changed = bytearray(packet)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, min(len(packet), 600) - 1))
        changed[at] = data.draw(st.one_of(st.sampled_from([0, 1, 0x10, 0xFF]), st.integers(0, 255)))
    if data.draw(st.booleans()) and len(changed) > 12:
        changed[8:12] = len(changed).to_bytes(4, "little")
    cuts = data.draw(st.lists(st.integers(0, min(len(packet), 600)), max_size=5))
    assert_judged_alike([bytes(changed), *(bytes(changed[:cut]) for cut in cuts)])


@given(packet=packet_bytes(), claimed=st.integers(0, 700))
def test_truncated_packets_are_refused_for_the_same_reason(packet: bytes, claimed: int) -> None:
    size = int.from_bytes(packet[8:12], "little") + claimed
    packet = packet[:8] + size.to_bytes(4, "little") + packet[12:]
    assert_judged_alike(packet[:cut] for cut in {*range(min(len(packet), 700)), len(packet) - claimed})


values = st.one_of(st.integers(0, 300), st.integers(0, 0xFFFF_FFFF), st.sampled_from([1 << 31, 0xFFFF_FFFF]))


@given(st.lists(st.tuples(st.sampled_from(sorted(IN_WORDS)), st.integers(0, 700), values, values, values)))
def test_templates_say_what_each_refusal_says_of_any_values(refusals: list[tuple[int, ...]]) -> None:
    expected, rows = list[Any](), list[tuple[int, ...]]()
    for number, offset, first, second, third in refusals:
        try:
            why, path = IN_WORDS[number](first, second, third)
        except (AssertionError, KeyError, struct.error):
            continue  # such values can't be
        if TIMES[number] and (first * int(TIMES[number]) - second) & 0xFFFF_FFFF == 0:
            continue  # see below
        rows.append((number, offset, first, second, third))
        expected.append((why, path, None if path is None else offset))
    array = np.zeros((len(rows), SLOTS), np.int32)
    array[:, :5] = np.array(rows, np.int64).reshape(-1, 5).astype(np.uint32).view(np.int32)
    assert in_words(array) == expected


@given(values)
def test_a_size_of_more_than_32_bits_is_shown_whole(count: int) -> None:
    number = int(np.argmax(TIMES == 2))
    row = np.zeros((1, SLOTS), np.int32)
    row[0, :5] = np.array([number, 9, count, count * 2 & 0xFFFF_FFFF, 7], np.uint32).view(np.int32)
    ((why, path, offset),) = in_words(row)
    _, field, part, _ = REFUSALS[number]
    assert (why, path, offset) == (f"{count}: {part} would take {count * 2:,} bytes and 7 are left", field, 9)


def test_texts_of_the_generic_reader_are_shown_as_they_are() -> None:
    cells = ErrorCells()
    cells.add(1, ("\0000\0 ä \0001#010x\0", "path", 7))
    cells.add(2, (None, None, None))
    cells.add(3, ("why", None, 5))
    columns = cells.arrays(5)
    assert columns["error"].to_pylist() == [None, "\0000\0 ä \0001#010x\0", None, "why", None]
    assert columns["error_path"].to_pylist() == [None, "path", None, None, None]
    assert columns["error_offset"].to_pylist() == [None, 7, None, 5, None]


@given(packet=packet_bytes("ping"), rest=st.binary(max_size=3))
@example(packet=b"", rest=b"")
def test_pings_are_refused_for_the_same_reason(packet: bytes, rest: bytes) -> None:
    assert_judged_alike([packet[: len(packet) - len(rest)], packet + rest], "ping")


@pytest.mark.parametrize("size", [15, 16, 19, 20])
def test_a_size_within_the_internal_header_names_the_cut_field(size: int) -> None:
    assert_judged_alike([malformed.resized(h.session_ack(), size)])
