"""All partitions of a load together have the rows of one reader of the captures."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmqwire.analysis.dissection import dissect
from msmqwire.capture import IpDecoder, open_records
from msmqwire.errors import CaptureError
from msmqwire.tables.arrow.rows import batches
from msmqwire.tables.columns import UNJUDGED
from msmqwire.tables.parts import Part, plan_parts, plan_windows
from spark_udfs.source.options import Options
from spark_udfs.source.packet_reader import PacketReader
from spark_udfs.source.schema import arrow_fields, packet_schema, spark_schema
from spark_udfs.source.segment_reader import segment_batches
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.capture import srmp_captures as s

NAMES = tuple(packet_schema(on_request=True).names)
SCHEMA = arrow_fields(spark_schema(packet_schema(on_request=True)))
UNKNOWN = ("frame", "stream", "exchange", "one_sided")  # of a capture read in several partitions
ALL = 1 << 40
SEGMENT = ["file_index", "time_ns", "src", "src_port", "dst", "dst_port", "seq", "ack", "flags", "payload"]


def traffic(rng: random.Random, connections: int, messages: int) -> list[c.Frame]:
    """Concurrent sessions with a fragmented ping, SRMP and PGM among them."""
    talks = []
    for number in range(connections):
        start = c.START_NS + rng.randrange(40) * c.STEP_NS
        talk = c.TcpConversation((c.CLIENT, 50_000 + number), mss=rng.choice([300, 1460]), start_ns=start)
        talk.handshake().send(h.establish_connection())
        talk.send(h.establish_connection(), by_client=False)
        for _ in range(rng.randrange(messages)):
            if rng.random() < 0.7:
                talk.send(
                    h.user_message(properties=h.properties_header(body=rng.randbytes(rng.randrange(900))))
                )
            else:
                talk.send(h.session_ack(), by_client=False)
            if rng.random() < 0.1:
                talk.send(rng.randbytes(rng.randrange(60)))
        end = rng.randrange(3)
        talks.append((talk.close() if end == 0 else talk.reset() if end == 1 else talk).frames)
    pings = [
        c.Frame(c.START_NS + rng.randrange(10**8), c.ethernet(packet))
        for packet in c.fragments_4(c.udp_packet(h.ping(), ident=7), 16)
    ]
    web = s.http(rng.choice([80, 8080]), start_ns=c.START_NS + rng.randrange(40) * c.STEP_NS)
    for _ in range(rng.randrange(4)):
        web.send(s.published("4.1")).send(s.RESPONSE, by_client=False)
    frames = c.merged(*talks, web.frames, pings, s.samples()["pgm over ip"])
    return (
        c.disorder(frames, rng, reorder=0.1, duplicate=0.05, resegment=0.1) if rng.random() < 0.5 else frames
    )


@st.composite
def captures(draw: st.DrawFn) -> list[bytes]:
    """The files of a rotating capture; the last one may be truncated."""
    rng = random.Random(draw(st.integers(0, 2**32)))
    frames = traffic(rng, draw(st.integers(1, 3)), 12)
    cuts = sorted(draw(st.lists(st.integers(0, len(frames)), max_size=3)))
    groups = [frames[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(frames)], strict=True)]
    files = [(c.pcapng_bytes if rng.random() < 0.5 else c.pcap_bytes)(group) for group in groups]
    if draw(st.booleans()):
        files[-1] = files[-1][: draw(st.integers(0, len(files[-1])))]
    return files


def written(folder: str, files: Sequence[bytes]) -> list[str]:
    paths = []
    for number, data in enumerate(files):
        path = Path(folder, f"{number}.cap")
        path.write_bytes(data)
        paths.append(str(path))
    return paths


def rows_of(tables: Any) -> list[dict[str, Any]]:
    return [row for batch in tables for row in batch.to_pylist()]


def planned(paths: Sequence[str], split_size: int, overlap: int) -> list[Part]:
    return plan_parts(plan_windows(paths, split_size, search=False), split_size, overlap)


def packets(paths: Sequence[str], split_size: int, overlap: int) -> list[dict[str, Any]]:
    """The rows of all tasks, one after the other."""
    reader = PacketReader(Options(tuple(paths)), NAMES, SCHEMA)
    partitions = planned(paths, split_size, overlap)
    return [row for partition in partitions for row in rows_of(reader.read(partition))]


def alone(paths: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of one reader of all files, as Spark represents them, and one for each truncated file."""
    dissection = dissect(paths, lint=False)
    rows = rows_of(
        batch.cast(
            batch.schema.set(0, batch.schema.field(0).with_type(SCHEMA.field("time").type)), safe=False
        )
        for batch in batches(dissection, list(UNJUDGED), batch_rows=100)
    )
    empty_row = dict.fromkeys(NAMES)
    return rows + [
        empty_row | {"file": error.file, "kind": "Skipped", "error": f"byte {error.offset}: {error.why}"}
        for error in dissection.errors
    ]


def compared(rows: Sequence[dict[str, Any]], names: Sequence[str] = UNKNOWN) -> list[str]:
    return sorted(repr({**row, **dict.fromkeys(names)}) for row in rows)


@pytest.mark.filterwarnings("ignore::msmqwire.tables.CaptureWarning")
@settings(max_examples=60)
@given(captures(), st.integers(0, 6000))
def test_packets_of_all_partitions(files: list[bytes], split_size: int) -> None:
    with TemporaryDirectory() as folder:
        paths = written(folder, files)
        assert compared(packets(paths, split_size, ALL)) == compared(alone(paths))


def test_file_windows_are_equal_and_record_warm_up_starts() -> None:
    frames = [c.Frame(c.START_NS + n, bytes(984)) for n in range(100)]  # records of 1000 bytes
    with TemporaryDirectory() as folder:
        paths = written(folder, [c.pcap_bytes(frames)])
        (windows,) = plan_windows(paths, 60_000, search=False, overlap=8000)
        assert [window.end - window.start for window in windows] == [50_024, 50_000]
        _, second = plan_parts([windows], 60_000, 8000)
        assert [(window.start, window.end) for window in second.warm_up_windows()] == [
            (42_024, 48_024),
            (48_024, 50_024),
        ]


@pytest.mark.filterwarnings("ignore::msmqwire.tables.CaptureWarning")
@settings(max_examples=20)
@given(captures())
def test_a_single_partition_knows_frames_and_streams_too(files: list[bytes]) -> None:
    with TemporaryDirectory() as folder:
        paths = written(folder, files)
        assert len(planned(paths, ALL, ALL)) == 1
        assert compared(packets(paths, ALL, ALL), ()) == compared(alone(paths), ())


@pytest.mark.filterwarnings("ignore::msmqwire.tables.CaptureWarning")
@settings(max_examples=60)
@given(captures(), st.integers(0, 6000))
def test_segments_of_all_partitions(files: list[bytes], split_size: int) -> None:
    with TemporaryDirectory() as folder:
        paths = written(folder, files)
        decoder, expected = IpDecoder(), list[tuple[Any, ...]]()
        for index, path in enumerate(paths):
            try:
                for record in open_records(path):
                    expected += [
                        (index, *(getattr(datagram, name) for name in SEGMENT[1:]))
                        for datagram in decoder.feed(record)
                    ]
            except CaptureError as error:
                expected.append((index, *[None] * 5, 0, 0, 0, error.why.encode()))
        rows = [
            tuple(row.values())
            for partition in planned(paths, split_size, ALL)
            for batch in segment_batches(partition)
            for row in batch.select(SEGMENT).to_pylist()
        ]
        assert rows == expected


def test_a_packet_split_across_files_out_of_order_is_one_row() -> None:
    """The first segment comes after the split, the second before it."""
    talk = c.TcpConversation().handshake().send(h.establish_connection())
    talk.mss = 500
    talk.send(h.user_message(properties=h.properties_header(body=bytes(700))), acknowledged=False)
    frames = talk.frames
    frames[-1], frames[-2] = frames[-2], frames[-1]
    with TemporaryDirectory() as folder:
        paths = written(folder, [c.pcap_bytes(frames[:-1]), c.pcap_bytes(frames[-1:])])
        rows = packets(paths, 0, ALL)
        assert [(row["kind"], Path(row["file"]).name) for row in rows] == [
            (row["kind"], Path(row["file"]).name) for row in alone(paths)
        ]
        assert [row["kind"] for row in rows].count("UserMessage") == 1
