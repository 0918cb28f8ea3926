"""Any bytes of RPC in captures: nothing raises, no byte is lost, and both readers agree."""

from __future__ import annotations

import io
import json
import random
from functools import cache

import hypothesis.strategies as st
import pyarrow as pa
from hypothesis import example, given, settings

from msmqwire.analysis.dissection import Item, dissect
from msmqwire.analysis.dissection.rpc_finder import RpcFinder
from msmqwire.rpc.pdu import PduFramer
from msmqwire.tables import arrow_schema, read_capture
from msmqwire.tables.arrow.rows import batches
from msmqwire.tables.columns import UNJUDGED
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.capture import rpc_captures as r
from tests.support.capture.damaged_talks import conversation, damaged, edits

NAMES = [column.name for column in UNJUDGED]
PORTS = (2103, 4444, 18_010)


@cache
def talks() -> list[list[tuple[bool, bytes]]]:
    """Sessions in both syntaxes, as PDUs with their sender."""
    large = h.user_message(properties=h.properties_header(label="large", body=bytes(12_000)))
    found = []
    for syntax in r.SYNTAXES.values():
        talk = r.Talk(syntax)
        talk.open()
        talk.receive()
        talk.receive(most=3, dwRequestId=2)
        talk.receive(large, dwRequestId=3)
        talk.close_queue()
        found.append(talk.pdus)
    return found


def dissected(frames: list[c.Frame], **options: object) -> list[Item]:
    return list(dissect(io.BytesIO(c.pcap_bytes(frames)), ports=[18_010], **options))


changes = edits(30, 200, [b"\xff\xff\xff\xff", b"\5\0\0\3\x10\0\0\0"])
said_things = st.builds(
    lambda which, edits, head: damaged(talks()[which], edits, head),
    st.integers(0, 1), changes, st.sampled_from([b"", b"\5", b"\5\0\x0b", b"abc", b"\x10"]),
)  # fmt: skip
ports = st.sampled_from(PORTS)
segment_sizes = st.sampled_from([7, 300, 1460])


@settings(max_examples=40)
@given(ports, segment_sizes, said_things)
def test_no_byte_of_a_connection_of_rpc_is_lost(port, mss, said):
    talk = conversation(said, port, mss).close()
    items = dissected(talk.frames)
    shown = {True: 0, False: 0}
    for item in items:
        json.dumps(item.to_json())
        assert len(item.raw) == (0 if item.kind == "Skipped" else item.size)
        assert all(0 <= finding.offset <= item.size for finding in item.findings)
        assert item.error is None or item.error.offset is None or item.error.offset <= item.size
        shown[item.src == c.CLIENT] += item.size
    for by_client, data in talk.sent.items():
        assert shown[by_client] in (0, len(data))


@settings(max_examples=40)
@given(st.binary(max_size=3000).map(lambda data: b"".join(p for _, p in talks()[0][:2]) + data))
@example(b"".join(b"\5\0\0\3\x10\0\0\0\xff\xff\0\0" + bytes(4) for _ in range(50)))
def test_any_bytes_are_ranges_that_cover_them(data):
    finder = RpcFinder()
    found = [*finder.feed(data, 1, 1), *finder.end()]
    assert sum(item.size for item in found) == len(data)
    assert finder.held <= 200  # the record of a segment at most


@settings(max_examples=20)
@given(st.lists(st.integers(1, 900), max_size=12), st.integers(0, 1))
def test_whole_pdus_are_found_however_they_are_cut(cuts, which):
    pdus = [data for by_client, data in talks()[which] if not by_client]
    stream, finder, found = b"".join(pdus), RpcFinder(), []
    for number, size in enumerate([*cuts, len(stream)]):
        part, stream = stream[:size], stream[size:]
        if part:
            found += finder.feed(part, number, number)
    assert [item.data for item in found] == pdus
    assert [item.data for item in found] == [frame.data for frame in PduFramer().feed(b"".join(pdus))]


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
    made = batches(dissect(io.BytesIO(data), lint=False, ports=[18_010]), UNJUDGED, batch_rows=100_000)
    expected = pa.Table.from_batches(list(made), arrow_schema(UNJUDGED))
    assert read_capture(io.BytesIO(data), columns=NAMES, ports=[18_010]).equals(expected)
