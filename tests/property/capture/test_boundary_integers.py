"""Every integer of a capture at the edges of its range: both readers give equal rows, and raise nothing."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator

import hypothesis.strategies as st
import pytest
from hypothesis import example, given

import msmqwire
from msmqwire.capture.record import NO_TIME
from tests.property.tables.test_columnar import PING
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.capture.both_readers import assert_same, columnar
from tests.support.capture_files import PcapNg, pcap_bytes

EDGES = (0, 1, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
MESSAGE = h.user_message(properties=h.properties_header(label="label", body=b"body" * 60))


def talk() -> list[c.Frame]:
    """A conversation over IPv4 and one over IPv6, with pings and a fragmented one."""
    first = c.TcpConversation().handshake().send(h.session_ack() + MESSAGE).send(h.session_ack()).close()
    second = c.TcpConversation(("2001:db8::1", 50_000), ("2001:db8::2", 1801), mss=200).handshake()
    second.send(MESSAGE)
    ping = c.udp_packet(PING, ident=7)
    pings = [c.ethernet(ping), *map(c.ethernet, c.fragments_4(ping, 16))]
    last = first.frames[-1].time_ns
    return [
        *c.merged(first.frames, second.frames),
        *(c.Frame(last + number, data) for number, data in enumerate(pings, 1)),
    ]


def pcap_fields(data: bytes, order: str, header_size: int) -> Iterator[tuple[int, int, str]]:
    """Yield offset, size and byte order of the integers of a pcap file."""
    yield from ((at, 2, order) for at in (4, 6))
    yield from ((at, 4, order) for at in (8, 12, 16, 20))
    at = 24
    while at < len(data):
        yield from ((at + word, 4, order) for word in range(0, header_size, 4))
        size = struct.unpack_from(order + "I", data, at + 8)[0]
        yield from frame_fields(at + header_size)
        at += header_size + size


def pcapng_fields(data: bytes, order: str) -> Iterator[tuple[int, int, str]]:
    """Yield the same of a pcapng file: those of every block, and each of its frames."""
    at = 0
    while at < len(data):
        kind, size = struct.unpack_from(order + "II", data, at)
        yield from ((at + word, 4, order) for word in range(0, min(size - 4, 48), 4))
        yield from ((at + word, 8, order) for word in (8, 16, 24) if word + 8 < size)
        yield at + size - 4, 4, order
        if kind == 6:
            yield from frame_fields(at + 28)
        at += size


def frame_fields(at: int) -> Iterator[tuple[int, int, str]]:
    """Yield the integers of an Ethernet frame as if IPv4, TCP and a packet of a session were in it."""
    ip, tcp, packet = at + 14, at + 34, at + 54
    yield at + 12, 2, ">"
    yield from ((ip + where, size, ">") for where, size in ((0, 1), (2, 2), (4, 2), (6, 2), (9, 1), (12, 4)))
    yield from ((tcp + where, 2, ">") for where in (0, 2, 14, 18))
    yield from ((tcp + where, 4, ">") for where in (4, 8))
    yield from ((tcp + where, 1, ">") for where in (12, 13))
    yield from ((packet + word, 4, "<") for word in range(0, 160, 4))


def pcapng(order: str, tsresol: int, tsoffset: int) -> bytes:
    file = PcapNg(order).section().interface(tsresol=9)
    for frame in talk():
        file.packet(frame)
    # The same ticks, with another meaning.
    described = PcapNg(order).section().interface(tsresol=9).data
    other = PcapNg(order).section().interface(tsresol=tsresol, tsoffset=tsoffset).data
    return file.data.replace(described, other, 1)


FILES = {
    "pcap": (pcap_bytes(talk()), "<", 16),
    "pcap, nanoseconds": (pcap_bytes(talk(), byteorder=">", nanoseconds=True), ">", 16),
    "pcap, modified": (pcap_bytes(talk(), modified=True), "<", 24),
    "pcapng": (pcapng("<", 9, 0), "<", 0),
    "pcapng, an offset": (pcapng(">", 9, -1_000), ">", 0),
    "pcapng, binary units": (pcapng("<", 0x80 | 30, 7), "<", 0),
}


def mutated(name: str, changes: list[tuple[int, int]]) -> bytes:
    """A file in which some integers, by number, have other values."""
    data, order, header_size = FILES[name]
    fields = list(pcap_fields(data, order, header_size) if header_size else pcapng_fields(data, order))
    changed = bytearray(data)
    for number, value in changes:
        at, size, byteorder = fields[number % len(fields)]
        if at + size <= len(data):
            way = "big" if byteorder == ">" else "little"
            changed[at : at + size] = (value & ((1 << 8 * size) - 1)).to_bytes(size, way)
    return bytes(changed)


changes = st.lists(st.tuples(st.integers(0, 1 << 16), st.sampled_from(EDGES)), min_size=1, max_size=4)


@given(st.sampled_from(list(FILES)), changes)
@example("pcapng", [(8, (1 << 64) - 1)])
def test_both_readers_agree_whatever_an_integer_is(name, changes):
    assert_same([mutated(name, changes)])


@given(st.sampled_from(list(FILES)), changes, st.integers(1, 5))
def test_small_buffers_change_nothing(name, changes, rows):
    assert_same([mutated(name, changes)], CHUNK=4000, ARENA=5000, ROWS=rows)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("tsoffset", [0, 1, -1, 1 << 33, -(1 << 33), (1 << 63) - 1, -(1 << 63)])
@pytest.mark.parametrize("tsresol", [0, 1, 9, 18, 19, 20, 127, 0x80, 0x80 | 30, 0x80 | 63, 0x80 | 64, 0xFF])
def test_any_resolution_and_offset_of_time(order, tsoffset, tsresol):
    assert_same([pcapng(order, tsresol, tsoffset)])


@pytest.mark.parametrize("number", [1 << 31, 1 << 32, (1 << 63) - 1, 1 << 63, 1 << 64, 1 << 80])
def test_limits_of_any_size(number):
    """Of a file that declares no limit itself, too."""
    without = pcap_bytes(talk())
    for data in (without[:16] + bytes(4) + without[20:], FILES["pcapng"][0]):
        expected = msmqwire.read_capture(io.BytesIO(data))
        for limits in ({"record_size_max": number}, {"body_limit": number}):
            assert msmqwire.read_capture(io.BytesIO(data), **limits).equals(expected)


@pytest.mark.parametrize(
    "limits", [{"record_size_max": 0}, {"record_size_max": -(1 << 70)}, {"body_limit": -1}]
)
def test_limits_that_nothing_meets(limits):
    with pytest.raises(msmqwire.MsmqError):
        msmqwire.read_capture(io.BytesIO(FILES["pcap"][0]), **limits)


# What pcapng has for a time beyond those of 64 bits: ticks of 2^64 - 1 nanoseconds.
WITHOUT = st.lists(st.booleans(), min_size=1, max_size=12)


@given(WITHOUT)
def test_frames_without_a_time_change_no_row_but_its_time(without):
    frames = talk()
    file = PcapNg().section().interface(tsresol=9)
    numbers = [number for number in range(len(frames)) if without[number % len(without)]]
    for number, frame in enumerate(frames):
        file.packet(c.Frame((1 << 64) - 1, frame.data) if number in numbers else frame)
    assert_same([file.data])
    _, table = columnar([file.data])
    _, expected = columnar([pcapng("<", 9, 0)])
    others = [name for name in table.column_names if name != "time"]
    assert table.select(others).equals(expected.select(others))
    times = zip(expected["frame"].to_pylist(), expected["time"].to_pylist(), strict=True)
    wanted = [None if frame - 1 in numbers else time for frame, time in times]
    assert table["time"].to_pylist() == wanted
    assert NO_TIME not in table["time"].cast("int64").to_pylist()
