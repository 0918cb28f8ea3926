"""Any bytes of NCP in captures: nothing raises, no byte is lost, and both readers agree."""

from __future__ import annotations

import io
import json
import random
from functools import cache

import hypothesis.strategies as st
import pyarrow as pa
from hypothesis import example, given, settings

from msmqwire.analysis.dissection import Item, dissect
from msmqwire.analysis.dissection.ncp_finder import NcpFinder
from msmqwire.ncp.headers import NCP_PORT, WATCHDOG
from msmqwire.tables import arrow_schema, read_capture
from msmqwire.tables.arrow.rows import batches
from msmqwire.tables.columns import UNJUDGED
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.capture.damaged_talks import conversation, damaged, edits
from tests.support.capture.netware_captures import reply_unit, request_unit
from tools.generate.netware_example import talks

NAMES = [column.name for column in UNJUDGED]
OTHER_PORT, GIVEN_PORT = 4444, 18_010
UNITS = [b"DmdT\0\0\0\x17", b"tNcP\0\0\0\x10", b"DmdT\x80\0\0\x1f", b"\xff\xff\xff\xff", b"\x22\x22"]


@cache
def said_in(number: int) -> list[tuple[bool, bytes]]:
    """What is said in a connection of the example, as units with their sender."""
    return [
        (by_client, data)
        for request, reply in talks()[number].pairs
        for by_client, data in ((True, request_unit(request)), (False, reply_unit(reply)))
    ]


def dissected(frames: list[c.Frame], **options: object) -> list[Item]:
    return list(dissect(io.BytesIO(c.pcap_bytes(frames)), ports=[GIVEN_PORT], **options))


changes = edits(40, 120, UNITS)


said_things = st.builds(
    lambda which, edits, head: damaged(said_in(which), edits, head),
    st.integers(0, 3), changes, st.sampled_from([b"", b"D", b"tNc", b"\5", b"abc", b"\x10", b"P"]),
)  # fmt: skip
ports = st.sampled_from([NCP_PORT, OTHER_PORT, GIVEN_PORT])
segment_sizes = st.sampled_from([7, 300, 1460])


@settings(max_examples=40)
@given(ports, segment_sizes, said_things)
def test_no_byte_of_a_connection_of_ncp_is_lost(port, mss, said):
    talk = conversation(said, port, mss).close()
    items = dissected(talk.frames)
    shown = {True: 0, False: 0}
    for item in items:
        json.dumps(item.to_json())
        assert len(item.raw) == (0 if item.kind == "Skipped" else item.size)
        assert all(0 <= finding.offset <= item.size for finding in item.findings)
        assert item.error is None or item.error.offset is None or 0 <= item.error.offset <= item.size
        shown[item.src == c.CLIENT] += item.size
    for by_client, data in talk.sent.items():
        assert shown[by_client] in ({len(data)} if port == NCP_PORT else {0, len(data)})


@settings(max_examples=30)
@given(st.integers(0, 3), st.sampled_from([1, 5, 64, 997]))
def test_the_items_are_the_same_however_the_segments_are_cut(which, mss):
    whole, cut = (
        dissected(conversation(said_in(which), NCP_PORT, size).close().frames) for size in (65_000, mss)
    )
    assert [(item.kind, item.exchange, item.raw, item.findings) for item in cut] == [
        (item.kind, item.exchange, item.raw, item.findings) for item in whole
    ]


@settings(max_examples=40)
@given(st.binary(max_size=3000).map(lambda data: b"".join(p for _, p in said_in(1)[:2]) + data))
@example(b"".join(b"DmdT\0\1\0\0" for _ in range(50)))
@example(b"DmdT\0\0\0\x17" + bytes(20) + b"DmdT" * 100)
def test_any_bytes_are_ranges_that_cover_them(data):
    finder = NcpFinder()
    found = [*finder.feed(data, 1, 1), *finder.end()]
    assert sum(item.size for item in found) == len(data)
    assert finder.held <= 200  # the record of a segment at most


datagrams = st.lists(
    st.tuples(
        st.booleans(),
        st.one_of(
            st.binary(max_size=40),
            st.builds(
                lambda which, number, cut: said_in(which)[number % len(said_in(which))][1][16:][:cut],
                st.integers(0, 3), st.integers(0, 40), st.integers(0, 400),
            ),
            st.builds(lambda data: WATCHDOG.to_bytes(2, "big") + data, st.binary(max_size=10)),
        ),
    ),
    max_size=20,
)  # fmt: skip


TYPES = {bytes.fromhex(2 * kind) for kind in ("11", "22", "33", "3e", "55", "77", "99", "bb")}


@settings(max_examples=40)
@given(datagrams, st.sampled_from([NCP_PORT, GIVEN_PORT]), st.sampled_from([0, 5]))
def test_any_datagram_with_a_type_is_an_item(sent, port, missing):
    frames, ncp = [], []
    for number, (by_client, payload) in enumerate(sent):
        ends = (c.CLIENT, 50_001), (c.SERVER, port)
        source, target = ends if by_client else ends[::-1]
        packet = c.ethernet(c.udp_packet(payload, *source, *target), padded=False)
        cut = missing if len(payload) > missing and number % 2 else 0  # headers stay
        frames.append(c.Frame(c.START_NS + number, packet[: len(packet) - cut]))
        if payload[: len(payload) - cut][:2] in TYPES and len(payload) >= 6:
            ncp.append(number + 1)
    data = c.pcap_bytes(frames)
    items = list(dissect(io.BytesIO(data), ports=[GIVEN_PORT], lint=False))
    assert [item.frames[0] for item in items if "ping" not in item.reason] == ncp
    for item in items:
        json.dumps(item.to_json())
    expected = pa.Table.from_batches(list(batches(items, UNJUDGED, batch_rows=1000)), arrow_schema(UNJUDGED))
    assert read_capture(io.BytesIO(data), columns=NAMES, ports=[GIVEN_PORT]).equals(expected)


@settings(max_examples=30)
@given(ports, segment_sizes, said_things, st.integers(0, 2**32), st.booleans())
def test_both_readers_give_the_same_rows(port, mss, said, seed, disordered):
    frames = conversation(said, port, mss).frames
    if disordered:
        frames = c.disorder(
            frames,
            random.Random(seed),
            reorder=0.1,
            duplicate=0.1,
            drop=0.05,
            resegment=0.1,
            behind_acks=True,
        )
    frames = frames[seed % 5 :]
    binary = c.TcpConversation((c.CLIENT, 40_000)).handshake().send(h.user_message() * 2)
    data = c.pcap_bytes(c.merged(frames, binary.frames))
    made = batches(dissect(io.BytesIO(data), lint=False, ports=[GIVEN_PORT]), UNJUDGED, batch_rows=100_000)
    expected = pa.Table.from_batches(list(made), arrow_schema(UNJUDGED))
    assert read_capture(io.BytesIO(data), columns=NAMES, ports=[GIVEN_PORT]).equals(expected)
