"""Segments shuffled by flow to any number of tasks give the rows of one reader of all of them."""

from __future__ import annotations

import io
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import Any
from unittest import mock

import hypothesis.strategies as st
import pyarrow as pa
from hypothesis import given

import msmqwire
from msmqwire.analysis.dissection import Tracker
from msmqwire.capture import Datagram, IpDecoder, open_records
from msmqwire.tables.arrow.batch import BatchMaker
from msmqwire.tables.arrow.rows import batches as row_batches
from msmqwire.tables.columns import BY_NAME, TUNNEL, UNJUDGED
from msmqwire.tables.filters import Filter
from msmqwire.tables.scanning import row_buffer
from spark_udfs.reassembly import flow_decoder
from spark_udfs.reassembly.boundary_search import (
    check_chunks,
    find_boundaries,
    segment_headers,
    without_failed,
)
from spark_udfs.reassembly.chunks import (
    SEGMENT_COLUMNS,
    ChunkBoundaries,
    ChunkBoundary,
    Segments,
    chunks,
)
from spark_udfs.reassembly.flow_decoder import FlowDecoder
from spark_udfs.reassembly.packet_columns import packet_schema
from spark_udfs.reassembly.packets import packet_batches
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.capture import srmp_captures as s
from tests.support.capture import tunnelled_frames as t
from tests.support.capture.flow_items import flow_items
from tests.support.capture.netware_captures import NcpTalk, reply_unit, request_unit

EC, CP, ACK = h.establish_connection(), h.connection_parameters(), h.session_ack()
PACKETS = [
    EC,
    CP,
    ACK,
    h.user_message(properties=h.properties_header(label="label", body=b"b" * 3000)),
    h.user_message(session=h.session_header(), properties=h.properties_header(body=b"small")),
    h.user_message(properties=h.properties_header(body=ACK + CP + ACK)),
    h.order_ack(),
    h.final_ack(),
    h.user_message(trailing=h.extension_header(0, 0)),
    h.user_message(size=len(h.user_message()) + len(ACK)),
    h.user_message(size=len(h.user_message()) + len(ACK) + 4),
    s.published("4.1"),
    s.RESPONSE + s.GET + s.published("4.3-3"),
    *(unit for asked, answer in NcpTalk(7).pairs for unit in (request_unit(asked), reply_unit(answer))),
]
MS = 1_000_000
waits = st.sampled_from([0, 0, 0, MS, 200 * MS, 260 * MS, 900 * MS, 1100 * MS, 29_000 * MS, 31_000 * MS])
long_waits = st.sampled_from([500_000 * MS, 590_000 * MS, 601_000 * MS, 700_000 * MS])


@st.composite
def conversations(draw: st.DrawFn) -> list[c.Frame]:
    """A connection between few hosts and ports, so that they are reused, with pauses, loss and disorder."""
    client = (draw(st.sampled_from(["10.0.0.1", "fd00::1"])), draw(st.sampled_from([50_000, 50_001, 1801])))
    server = (
        "10.0.0.2" if "." in client[0] else "fd00::2",
        draw(st.sampled_from([1801, 1801, 8000, 80, 524])),
    )
    isn = draw(st.sampled_from([1000, 2**32 - 700, 5]))
    talk = c.TcpConversation(
        client, server, client_isn=isn, mss=draw(st.sampled_from([1460, 500])),
        start_ns=c.START_NS + draw(st.integers(0, 3)) * 100 * MS + draw(st.integers(0, 999)),
    )  # fmt: skip
    if draw(st.booleans()):
        talk.handshake()
    for _ in range(draw(st.integers(0, 6))):
        match draw(st.sampled_from(["send", "send", "send", "noise", "alive", "wait", "long", "lone"])):
            case "send":
                talk.send(draw(st.sampled_from(PACKETS)), by_client=draw(st.booleans()))
            case "noise":
                talk.send(draw(st.binary(min_size=1, max_size=60)), by_client=draw(st.booleans()))
            case "alive":
                talk.keep_alive(draw(st.booleans()))
            case "wait":
                talk.wait(draw(waits))
            case "long":
                talk.wait(draw(long_waits))
            case "lone":
                talk.segment(draw(st.booleans()))
    end = draw(st.sampled_from(["close", "reset", "open"]))
    if end == "close":
        talk.close(draw(st.booleans()))
    elif end == "reset":
        talk.reset(draw(st.booleans()))
    rng = random.Random(draw(st.integers(0, 1 << 16)))
    share = st.sampled_from([0.0, 0.0, 0.1, 0.3])
    frames = talk.frames
    if draw(st.booleans()):
        times = sorted(frame.time_ns for frame in frames)
        frames = c.disorder(
            frames, rng, reorder=draw(share), duplicate=draw(share), resegment=draw(share),
            overlap=draw(share), drop=draw(share), keep_control=draw(st.booleans()),
        )  # fmt: skip
        # The pauses stay about where they were, instead of being spread out.
        places = [times[min(number, len(times) - 1)] for number in range(len(frames))]
        frames = [c.Frame(at, frame.data, frame.segment) for at, frame in zip(places, frames, strict=True)]
    makes = draw(st.lists(st.sampled_from(t.WITHIN), max_size=3))
    return t.within(frames, makes)


pings = st.builds(
    lambda ping, port, at: [c.Frame(c.START_NS + at, c.ethernet(c.udp_packet(ping, "10.0.0.7", port)))],
    st.sampled_from([h.ping(), h.ping()[:-1], b"other"]),
    st.sampled_from([3527, 4000]),
    st.integers(0, 10**9),
)
hostile = st.builds(
    lambda at, seq, ack, flags, payload, client: [
        c.Frame(
            c.START_NS + at,
            c.ethernet(
                c.ipv4(c.tcp(payload, dst="10.0.0.2", src_port=client, seq=seq, ack=ack, flags=flags))
            ),
        )
    ],
    st.integers(0, 10**9),
    st.one_of(st.integers(900, 5000), st.integers(0, 2**32 - 1)),
    st.integers(0, 2**32 - 1),
    st.integers(0, 63),
    st.one_of(st.sampled_from(PACKETS), st.binary(max_size=30)),
    st.sampled_from([50_000, 50_001]),
)


@st.composite
def captures(draw: st.DrawFn) -> list[bytes]:
    """The files of a rotating capture, its frames in the order of their times."""
    parts = draw(st.lists(st.one_of(conversations(), conversations(), pings, hostile), max_size=6))
    frames = c.merged(*parts)
    cuts = sorted(draw(st.lists(st.integers(0, len(frames)), max_size=2)))
    snaplen = draw(st.sampled_from([0, 0, 0, 300]))
    return [
        c.pcapng_bytes(frames[start:stop], snaplen=snaplen)
        for start, stop in zip([0, *cuts], [*cuts, len(frames)], strict=True)
    ]


def segments(files: Iterable[bytes]) -> Iterator[tuple[int, Datagram]]:
    """The datagrams of files, with the index of their file."""
    decoder = IpDecoder()
    for index, data in enumerate(files):
        for record in open_records(named(index, data)):
            for datagram in decoder.feed(record):
                yield index, datagram


def named(index: int, data: bytes) -> io.BytesIO:
    stream = io.BytesIO(data)
    stream.name = f"part-{index}"  # type: ignore[misc]
    return stream


def flow_of(datagram: Datagram, flows: int) -> int:
    """A number for both directions; few of them, so that connections share one."""
    ends = sorted([(datagram.src, datagram.src_port), (datagram.dst, datagram.dst_port)])
    return sum(map(ord, repr(ends))) % flows


def rows_of(batches: Iterable[Any]) -> list[tuple[object, ...]]:
    """All rows in a fixed order: all columns but stream, and frame only if there is no frame_offset."""
    rows = []
    for batch in batches:
        names = [name for name in batch.schema.names if name not in ("stream", "frame", "frame_offset")]
        names.append("frame_offset" if "frame_offset" in batch.schema.names else "frame")
        columns = [batch.column(name) for name in names]
        columns[names.index("time")] = columns[names.index("time")].cast(pa.int64())
        rows += zip(*(column.to_pylist() for column in columns), strict=True)
    return sorted(rows, key=repr)


def single(files: Iterable[bytes]) -> list[tuple[object, ...]]:
    """The rows of one reader of all files."""
    return rows_of(
        msmqwire.read_capture([named(index, data) for index, data in enumerate(files)]).to_batches()
    )


def batch_of(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=SEGMENTS)


SEGMENTS = pa.schema(
    {
        **dict.fromkeys(SEGMENT_COLUMNS, pa.int64()),
        **dict.fromkeys(["file", "transport", "src", "dst", *TUNNEL[:3]], pa.string()),
        "payload": pa.binary(),
    }
)


def shuffled_shares(
    files: Iterable[bytes], *, flows: int, tasks: int, rng: random.Random
) -> tuple[list[Any], int]:
    """The batches of each task, flows in any order, each in the order of the capture; and when it ended.

    The number of a frame is used as its offset.
    """
    by_flow: dict[int, list[dict[str, Any]]] = defaultdict(list)
    end = 0
    for index, segment in segments(files):
        flow = flow_of(segment, flows)
        end = max(end, segment.time_ns if segment.transport == "tcp" else 0)
        values = segment._asdict() | dict(zip(TUNNEL, segment.encapsulation, strict=True))
        values |= {"flow": flow, "file_index": index, "offset": int(segment.frames[-1])}
        by_flow[flow].append(values)
    shuffled = list(by_flow.values())
    rng.shuffle(shuffled)
    shares: list[list[dict[str, Any]]] = [[] for _ in range(tasks)]
    for rows in shuffled:
        rng.choice(shares).extend(rows)
    size = rng.randint(1, 50)
    return [[batch_of(share[at : at + size]) for at in range(0, len(share), size)] for share in shares], end


NAMES = [column.name for column in UNJUDGED] + ["frame_offset"]
SIZES = st.sampled_from(
    [{}, {}, {"CHUNK": 256, "ARENA": 64, "ROWS": 3}, {"CHUNK": 5000, "ARENA": 3000, "ROWS": 1}, {"ROWS": 7}]
)


def packet_by_packet(share: list[Any], end: int, boundaries: ChunkBoundaries | None = None) -> pa.Table:
    """All columns of the rows of a tracker for each flow."""
    streams: list[int | None] = []

    def tracked_items() -> Iterator[msmqwire.Item]:
        for flow, item in flow_items(share, end_ns=end, boundaries=boundaries):
            streams.append(flow if item.transport == "tcp" else None)
            yield item

    batches = list(row_batches(tracked_items(), [BY_NAME[name] for name in NAMES[:-1]], batch_rows=1000))
    schema = packet_schema(NAMES)
    table = pa.Table.from_batches(batches, None if batches else schema.remove(len(NAMES) - 1))
    columns = dict(zip(table.column_names, table.columns, strict=True))
    columns["frame_offset"], columns["frame"] = columns["frame"], pa.nulls(table.num_rows, pa.int64())
    columns["stream"] = pa.array(streams, pa.int64())
    return pa.Table.from_arrays([columns[name] for name in NAMES], schema=schema)


def assert_same(share: list[Any], end: int, boundaries: ChunkBoundaries | None = None, **sizes: int) -> None:
    """The compiled scan returns the rows of a tracker for each flow, in order, in every column."""
    with ExitStack() as stack:
        for name, size in sizes.items():
            stack.enter_context(mock.patch.object(row_buffer, name, size))
            stack.enter_context(mock.patch.object(flow_decoder, "FILES_MAX", 1))
        batches = list(packet_batches(share, columns=NAMES, end_ns=end, boundaries=boundaries))
    for batch in batches:
        batch.validate(full=True)
    decoded = pa.Table.from_batches(batches, packet_schema(NAMES))
    expected = packet_by_packet(share, end, boundaries)
    for name in NAMES:
        times = pa.types.is_timestamp(decoded.schema.field(name).type)
        column, expected_column = (
            table[name].cast(pa.int64()) if times else table[name] for table in (decoded, expected)
        )
        assert column.to_pylist() == expected_column.to_pylist(), name


@given(captures(), st.sampled_from([1, 2, 7, 1 << 30]), SIZES, st.randoms())
def test_every_column_is_that_of_a_tracker_for_each_flow(files, flows, sizes, rng):
    (share,), end = shuffled_shares(files, flows=flows, tasks=1, rng=rng)
    assert_same(share, end, **sizes)


times = st.one_of(
    st.integers(0, 10**12),
    st.sampled_from([None, 0, -1, -(2**62), 2**62 - 1, 2**62, 2**63 - 1]),
    st.integers(-(2**63) + 1, 2**63 - 1),
)
numbers = st.one_of(st.integers(0, 4000), st.integers(2**32 - 2000, 2**32 - 1))


@st.composite
def any_segments(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Segments of few flows, with any headers, in any order of time."""
    ends = [("10.0.0.1", 50_000, "10.0.0.2", 1801), ("fd00::1", 4000, "fd00::2", 8000)]
    rows: list[dict[str, Any]] = []
    stream = b"".join(PACKETS)
    for flow in draw(st.lists(st.integers(0, 3), max_size=4, unique=True)):
        at, time_ns = draw(st.integers(0, 2**32 - 1)), draw(st.integers(0, 10**12))
        for number in range(draw(st.integers(0, 12))):
            src, src_port, dst, dst_port = ends[flow % 2]
            if draw(st.booleans()):
                src, src_port, dst, dst_port = dst, dst_port, src, src_port
            wild = draw(st.sampled_from([False, False, False, True]))
            offset = draw(st.integers(0, 3000))
            payload = stream[offset : offset + draw(st.sampled_from([0, 0, 1, 40, 1460]))]
            udp = draw(st.sampled_from([False] * 9 + [True]))
            time_ns += draw(st.integers(0, 90 * 10**9))
            rows.append(
                {
                    "flow": flow, "file_index": number // 5, "offset": 24 + number, "file": f"f{number // 5}",
                    "time_ns": draw(times) if wild else time_ns, "transport": "udp" if udp else "tcp",
                    "src": src, "src_port": src_port, "dst": dst, "dst_port": dst_port,
                    "payload": h.ping() if udp and draw(st.booleans()) else payload,
                    "missing": draw(st.sampled_from([0] * 9 + [1, 700])),
                    "seq": draw(numbers) if wild else (at + offset) & 0xFFFF_FFFF,
                    "ack": draw(st.one_of(numbers, st.just((at + offset) & 0xFFFF_FFFF))),
                    "flags": draw(st.sampled_from([2, 18, 16, 16, 16, 16, 24, 17, 4, 255])),
                }
            )  # fmt: skip
    return rows


@given(any_segments(), st.integers(1, 20), st.integers(0, 2**63 - 1), SIZES)
def test_any_segments_give_every_column_of_the_tracker(rows, size, end, sizes):
    share = [batch_of(rows[at : at + size]) for at in range(0, len(rows), size)]
    assert_same(share, end, **sizes)


@given(captures(), st.integers(1, 4), st.sampled_from([2, 7, 1 << 30]), st.randoms())
def test_any_partitioning_gives_the_rows_of_one_reader(files, tasks, flows, rng):
    shares, end = shuffled_shares(files, flows=flows, tasks=tasks, rng=rng)
    decoded = [batch for share in shares for batch in packet_batches(share, end_ns=end)]
    assert rows_of(decoded) == single(files)


@st.composite
def long_flows(draw: st.DrawFn) -> list[bytes]:
    """The files of one long connection whose packets often begin a segment, in bad order here and there."""
    talk = c.TcpConversation(client_isn=2**32 - 3000, mss=draw(st.sampled_from([1460, 700])))
    if draw(st.booleans()):
        talk.handshake()
    for _ in range(draw(st.integers(10, 40))):
        by_client = draw(st.sampled_from([True, True, False]))
        if draw(st.sampled_from([False] * 9 + [True])):
            talk.send(draw(st.binary(min_size=1, max_size=30)), by_client=by_client)
        talk.send(draw(st.sampled_from(PACKETS)), by_client=by_client)
        if draw(st.sampled_from([False] * 9 + [True])):
            # A packet whose body begins with other packets: no boundary belongs there.
            body = (ACK + CP + EC) * 3 + PACKETS[3]
            outer = h.user_message(properties=h.properties_header(body=body))
            at = outer.index(ACK)
            talk.send(outer[:at]).send(outer[at:])
    share = st.sampled_from([0.0, 0.0, 0.02, 0.1])
    frames = c.disorder(
        talk.close().frames, random.Random(draw(st.integers(0, 1 << 16))), reorder=draw(share),
        duplicate=draw(share), resegment=draw(share), overlap=draw(share), drop=draw(share),
    )  # fmt: skip
    cut = draw(st.integers(0, len(frames)))
    return [c.pcapng_bytes(frames[:cut]), c.pcapng_bytes(frames[cut:])]


def candidates(share: list[Any], chunk_size: int) -> dict[int, list[ChunkBoundary]]:
    """The boundaries of a task's flows before they are checked."""
    boundaries: dict[int, list[ChunkBoundary]] = defaultdict(list)
    for flow, boundary in find_boundaries(segment_headers(share), chunk_size):
        boundaries[flow].append(boundary)
    return boundaries


def planned(share: list[Any], chunk_size: int) -> dict[int, list[ChunkBoundary]]:
    """The boundaries of a task's flows that all checks confirm."""
    boundaries = candidates(share, chunk_size)
    while True:
        failed = defaultdict(set)
        for flow, number, matches in check_chunks(share, boundaries):
            if not matches:
                failed[flow].add(number)
        if not failed:
            return boundaries
        boundaries = without_failed(boundaries, failed)


def chunk_batches(
    share: list[Any], boundaries: dict[int, list[ChunkBoundary]], rng: random.Random
) -> list[Any]:
    """The batches of the chunks, in any order."""
    rows = iter([row for batch in share for row in batch.to_pylist()])
    rows_of_chunks = [[next(rows) for _ in chunk.segments] for chunk in chunks(Segments(share), boundaries)]
    assert not list(rows)
    rng.shuffle(rows_of_chunks)
    return [batch_of(chunk_rows) for chunk_rows in rows_of_chunks]


def checked_by_trackers(share: list[Any], boundaries: ChunkBoundaries) -> list[tuple[int, int, bool]]:
    """The results of trackers at the ends of chunks."""
    segments, checks = Segments(share), []
    for chunk in chunks(segments, boundaries):
        tracker = Tracker(ports=(), lint=False, locate=segments.locate)
        if chunk.checkpoint is not None:
            tracker.resume(chunk.checkpoint)
        for segment in chunk.segments:
            list(tracker.feed(segment))
        if not chunk.is_last:
            matches = tracker.save() == boundaries[chunk.flow][chunk.number].checkpoint
            checks.append((chunk.flow, chunk.number, matches))
    return checks


@given(st.lists(long_flows(), min_size=1, max_size=2), st.sampled_from([1, 2000]), SIZES, st.randoms())
def test_chunks_are_checked_as_by_trackers_and_give_every_column(captured, chunk_size, sizes, rng):
    share, end = [], 0
    for flow, files in enumerate(captured):
        (batches,), ended = shuffled_shares(files, flows=1, tasks=1, rng=rng)
        column = batches[0].schema.get_field_index("flow") if batches else 0
        numbered = (b.set_column(column, "flow", pa.array([flow] * b.num_rows, pa.int64())) for b in batches)
        share += numbered
        end = max(end, ended)
    boundaries = candidates(share, chunk_size)
    with ExitStack() as stack:
        for name, size in sizes.items():
            stack.enter_context(mock.patch.object(row_buffer, name, size))
        checks = list(check_chunks(share, boundaries))
    assert checks == checked_by_trackers(share, boundaries)
    assert_same(share, end, boundaries, **sizes)


@given(long_flows(), st.sampled_from([1, 2000, 8000]), st.sampled_from([1, 1 << 30]), st.randoms())
def test_chunks_of_a_flow_give_the_rows_of_the_whole(files, chunk_size, flows, rng):
    (share,), end = shuffled_shares(files, flows=flows, tasks=1, rng=rng)
    boundaries = planned(share, chunk_size)
    shares = chunk_batches(share, boundaries, rng)
    assert len(shares) == 1 + sum(map(len, boundaries.values()))
    decoded = [
        batch for chunk in shares for batch in packet_batches([chunk], end_ns=end, boundaries=boundaries)
    ]
    assert rows_of(decoded) == single(files)


def test_a_flow_in_order_is_divided_about_every_so_many_bytes():
    talk = c.TcpConversation().handshake().send(EC).send(EC, by_client=False)
    for _ in range(100):
        talk.send(PACKETS[3]).send(ACK, by_client=False)
    files = [c.pcapng_bytes(talk.close().frames)]
    (share,), _ = shuffled_shares(files, flows=1, tasks=1, rng=random.Random(1))
    boundaries = planned(share, 20_000)
    assert len(boundaries[0]) == sum(map(len, talk.sent.values())) // 20_000 - 1


def test_connections_after_a_wild_time_begin_in_the_tracker():
    head = {
        "flow": 1, "file_index": 0, "file": "f", "transport": "tcp", "src": "10.0.0.1", "src_port": 50_000,
        "dst": "10.0.0.2", "dst_port": 1801, "missing": 0, "ack": 39,
    }  # fmt: skip
    syn, other = {"payload": b"", "seq": 39, "flags": 2}, {"payload": b"", "seq": 0, "flags": 2}
    half = {"payload": PACKETS[3][:40], "seq": 0, "flags": 16}
    rows = [
        {**head, **fields, "offset": 24 + number, "time_ns": time_ns}
        for number, (fields, time_ns) in enumerate(
            [(syn, 0), (other, -(2**62)), *[(syn, 0)] * 5, (other, 0), ({**syn, "flags": 16}, 0), (half, 0)]
        )
    ]
    assert_same([batch_of(rows)], 0)


def test_flows_in_order_go_to_no_tracker():
    talks = [c.TcpConversation(("10.0.0.1", 40_000 + number), start_ns=c.START_NS) for number in range(30)]
    for talk in talks:
        talk.handshake().send(EC).send(PACKETS[3]).send(ACK, by_client=False).wait(10**9).send(ACK).close()
    files = [c.pcapng_bytes(c.merged(*(talk.frames for talk in talks)))]
    (share,), end = shuffled_shares(files, flows=1 << 30, tasks=1, rng=random.Random(1))
    decoder = FlowDecoder(BatchMaker([BY_NAME["kind"]], Filter(()), 100, None), end_ns=end)
    assert sum(batch.num_rows for batch in decoder.batches(share)) == 30 * 4
    assert decoder.handed == 0
    assert_same(share, end)
