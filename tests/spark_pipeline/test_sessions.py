"""The table of sessions: its cells, and that one task yields the same rows as many."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from msmqwire.capture.record import RECORD_SIZE_MAX
from msmqwire.capture.tcp import IDLE_NS_MAX
from msmqwire.tables import CaptureWarning
from spark_udfs.jobs.sessions import session_rows
from spark_udfs.source.session_reader import session_batches
from spark_udfs.source.session_table import SESSION_SCHEMA
from tests.property.spark.test_spark_reassembly import captures, shuffled_shares
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.capture import srmp_captures as s
from tests.support.capture import tunnelled_frames as t
from tests.support.paths import ROOT

EC, CP, ACK = h.establish_connection(), h.connection_parameters(), h.session_ack()
EXPRESS = h.user_message(flags=0, properties=h.properties_header(body=b"x" * 3000))
TRANSACTIONAL = h.user_message(transaction=h.transaction_header(), flags=0)


def table(path: Path, *files: bytes, ports: tuple[int, ...] = ()) -> list[dict[str, Any]]:
    """The sessions of files, first to last."""
    paths = []
    for number, data in enumerate(files):
        paths.append(str(path / f"part-{number}.pcapng"))
        Path(paths[-1]).write_bytes(data)
    return shown(session_batches(paths, ports))


def shown(batches: Iterable[Any]) -> list[dict[str, Any]]:
    rows = []
    for batch in batches:
        assert batch.schema == SESSION_SCHEMA
        times = [pa.array(batch.column(name).cast(pa.int64())) for name in ("first", "last")]
        others = batch.drop_columns(["first", "last"]).to_pylist()
        first, last = (column.to_pylist() for column in times)
        rows += [{"first": f, "last": e, **row} for f, e, row in zip(first, last, others, strict=True)]
    return sorted(rows, key=lambda row: (row["first"], row["flow"]))


def handshake(talk: c.TcpConversation) -> c.TcpConversation:
    talk.handshake().send(EC).send(EC, by_client=False).send(CP)
    return talk.send(CP, by_client=False)


def test_a_frame_above_the_limit_is_passed_over(tmp_path):
    talk = handshake(c.TcpConversation())
    huge = c.Frame(talk.frames[2].time_ns, bytes(RECORD_SIZE_MAX + 8))
    data = c.pcapng_bytes([*talk.frames[:3], huge, *talk.frames[3:]])
    with pytest.warns(CaptureWarning, match="a packet of 16,777,224 bytes") as warned:
        (row,) = table(tmp_path, data)
    assert len(warned) == 1
    assert (row["first"], row["last"]) == (talk.frames[0].time_ns, talk.frames[-1].time_ns)


def test_a_whole_session(tmp_path):
    talk = handshake(c.TcpConversation())
    talk.send(EXPRESS).send(TRANSACTIONAL).send(ACK, by_client=False).close()
    (row,) = table(tmp_path, c.pcapng_bytes(talk.frames))
    assert (row["client"], row["client_port"]) == ("10.0.0.1", 50_000)
    assert (row["server"], row["server_port"]) == ("10.0.0.2", 1801)
    assert (row["first"], row["last"]) == (talk.frames[0].time_ns, talk.frames[-1].time_ns)
    assert row["duration_ns"] == row["last"] - row["first"]
    assert (row["handshake"], row["ended"], row["opening_seen"]) == ("complete", "fin", True)
    assert row["client_guid"] == "557358d1-9150-9595-4997-b6e611ea26c6"
    assert row["server_guid"] == "43cd8907-394c-8f11-4445-9078909ea0fc"
    assert (row["window_size"], row["ack_timeout_ms"], row["recoverable_ack_timeout_ms"]) == (
        64,
        120_000,
        500,
    )
    assert row["client_packets"] == 4
    assert row["client_express_messages"] == row["client_transactional_messages"] == 1
    assert row["server_session_ack_packets"] == 1
    assert row["client_payload_bytes"] == len(talk.sent[True])
    assert row["server_payload_bytes"] == len(talk.sent[False])
    segments = [frame.segment for frame in talk.frames]
    from_client = [segment for segment in segments if segment is not None and segment.src[1] == 50_000]
    assert row["client_segments"] == len(from_client)
    zero = ["malformed_packets", "skipped_bytes", "repeated_bytes", "conflicting_bytes", "lost_bytes"]
    assert {row[f"{side}_{name}"] for side in ("client", "server") for name in zero} == {0}


FIRST_NS, LAST_NS = -9_223_372_036_000_000_000, 9_223_372_036_000_000_000


@pytest.mark.parametrize(
    ("times", "duration_ns", "ended"),
    [
        ((-(10**18), -(10**18) + 5000), 5000, "capture"),  # before 1970
        ((FIRST_NS, LAST_NS), None, "capture"),
        ((LAST_NS + 10**10, LAST_NS + 10**10), None, "capture"),
    ],
)
def test_a_session_of_any_time(tmp_path, times, duration_ns, ended):
    """However far apart its times are, or if it has none: a session is a row."""
    talk = handshake(c.TcpConversation())
    frames = [c.Frame(times[number > 0], frame.data) for number, frame in enumerate(talk.frames)]
    (row,) = table(tmp_path, c.pcapng_bytes(frames, tsresol=6, tsoffset=-(1 << 34)))
    known = [time if time < 1 << 63 else None for time in times]
    assert [row["first"], row["last"]] == known
    assert (row["duration_ns"], row["ended"]) == (duration_ns, ended)


def test_only_connections_with_srmp_are_sessions_on_web_ports(tmp_path):
    with_srmp = s.http().send(s.published("4.2") + s.GET).send(s.RESPONSE + s.PAGE, by_client=False).close()
    without = s.http(client=(c.CLIENT, 6000)).send(s.GET).send(s.PAGE, by_client=False).close()
    (row,) = table(tmp_path, c.pcapng_bytes(c.merged(with_srmp.frames, without.frames)))
    assert (row["client_port"], row["server_port"], row["handshake"]) == (50_000, 80, "none seen")
    assert (row["client_srmp_message_packets"], row["server_srmp_message_packets"]) == (1, 1)
    assert (row["client_skipped_bytes"], row["server_skipped_bytes"]) == (len(s.GET), len(s.PAGE))


@pytest.mark.parametrize(
    ("example", "packets"),
    [("netware.pcap", [(38, 38)]), ("remote_read.pcap", None), ("management.pcap", None)],
)
def test_connections_of_calls_are_sessions_of_packets(example, packets):
    rows = shown(session_batches([str(ROOT / "examples" / example)], ()))
    counts = [
        (row["client_packets"], row["server_packets"]) for row in rows if row["server_port"] != 1801
    ]  # a queue manager that is not there refuses a connection
    assert counts
    assert all(client and server for client, server in counts)
    assert packets is None or [tuple(map(sum, zip(*counts, strict=True)))] == packets


def test_what_is_sent_again_lost_or_wrong(tmp_path):
    talk = handshake(c.TcpConversation()).send(EXPRESS).send(b"noise!").send(EXPRESS).close()
    frames, data = [], 0
    for frame in talk.frames:
        size = len(frame.segment.payload) if frame.segment else 0
        data += size == 1460
        if size == 1460 and data == 3:
            continue  # lost
        frames += [frame, frame] if size == 1460 and data == 1 else [frame]
    (row,) = table(tmp_path, c.pcapng_bytes(frames))
    assert (row["client_repeated_bytes"], row["client_lost_bytes"]) == (1460, 1460)
    assert row["client_payload_bytes"] == len(talk.sent[True])
    assert row["client_express_messages"] == 1
    assert row["client_skipped_bytes"] + row["client_malformed_packets"] > 6


@pytest.mark.parametrize(
    "ending, ended",
    [
        (lambda talk: talk.reset(), "rst"),
        (lambda talk: talk.segment(True, flags=c.FIN | c.ACK), "half-fin"),
        (lambda talk: talk, "capture"),
    ],
    ids=["rst", "half-fin", "capture"],
)
def test_how_it_ends(tmp_path, ending, ended):
    talk = ending(handshake(c.TcpConversation()))
    (row,) = table(tmp_path, c.pcapng_bytes(talk.frames))
    assert row["ended"] == ended


def test_a_silent_connection_and_one_on_the_same_ports(tmp_path):
    talk = handshake(c.TcpConversation()).wait(IDLE_NS_MAX).segment(True).close()
    again = handshake(c.TcpConversation(client_isn=90_000_000, start_ns=talk.time_ns))
    rows = table(tmp_path, c.pcapng_bytes(talk.frames), c.pcapng_bytes(again.frames))
    assert [row["ended"] for row in rows] == ["idle", "fin", "capture"]
    assert [row["handshake"] for row in rows] == ["complete", "none seen", "complete"]
    assert [Path(row["file"]).name for row in rows] == ["part-0.pcapng"] * 2 + ["part-1.pcapng"]


def test_handshakes(tmp_path):
    refused = h.establish_connection(internal=2 | 0x10)
    talks = [c.TcpConversation(("10.0.0.1", 5000 + number)).handshake() for number in range(3)]
    talks[0].send(EC).send(refused, by_client=False)
    talks[1].send(EC)
    rows = table(tmp_path, c.pcapng_bytes(c.merged(*(talk.close().frames for talk in talks))))
    handshakes = {row["client_port"]: row["handshake"] for row in rows}
    assert handshakes == {5000: "refused", 5001: "incomplete", 5002: "none seen"}


def test_connections_on_other_ports(tmp_path):
    web = c.TcpConversation(("10.0.0.1", 6000), ("10.0.0.2", 80)).handshake().send(b"GET /").close()
    other = c.TcpConversation(("10.0.0.1", 6001), ("10.0.0.2", 8000)).handshake().send(EC).close()
    data = c.pcapng_bytes(c.merged(web.frames, other.frames))
    assert [row["server_port"] for row in table(tmp_path, data)] == [8000]
    assert sorted(row["server_port"] for row in table(tmp_path, data, ports=(80,))) == [80, 8000]


def test_a_cut_file_is_read_as_far_as_it_goes(tmp_path):
    data = c.pcapng_bytes(handshake(c.TcpConversation()).frames)
    with pytest.warns(CaptureWarning, match="the file ends within"):
        (row,) = table(tmp_path, data[:-3])
    assert (row["ended"], row["server_packets"]) == ("capture", 2)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files=captures(), tasks=st.integers(1, 4), rng=st.randoms())
def test_any_partitioning_gives_the_same_sessions(tmp_path, files, tasks, rng):
    shares, end = shuffled_shares(files, flows=1 << 30, tasks=tasks, rng=rng)
    rows = [row for share in shares for row in session_rows(share, end_ns=end)]
    assert without_names(rows) == without_names(table(tmp_path, *files))


def test_two_networks_with_the_same_addresses_are_two_sessions(tmp_path):
    """Once both directions had ended in one, the last segment of the other began a third."""
    talk = handshake(c.TcpConversation()).close().frames
    tunnelled = [c.Frame(frame.time_ns, t.frame(t.vxlan(frame.data))) for frame in talk]
    file = c.pcapng_bytes([frame for pair in zip(talk, tunnelled, strict=True) for frame in pair])
    ((share,), end) = shuffled_shares([file], flows=1 << 30, tasks=1, rng=random.Random(1))
    rows = list(session_rows(share, end_ns=end))
    assert [row["ended"] for row in rows] == ["fin", "fin"]
    assert without_names(rows) == without_names(table(tmp_path, file))


def without_names(rows: Iterable[dict[str, Any]]) -> list[str]:
    """Rows in a fixed order, without the numbers and names that differ between the two readers."""
    names = [name for name in SESSION_SCHEMA.names if name not in ("flow", "file")]
    return sorted(repr([row.get(name) for name in names]) for row in rows)


def test_on_a_cluster(spark, tmp_path):
    from spark_udfs.jobs.sessions import sessions_of
    from spark_udfs.reassembly.shuffle import load_flows

    talks = [handshake(c.TcpConversation(("10.0.0.1", 5000 + number))) for number in range(9)]
    frames = c.merged(*(talk.send(EXPRESS).close().frames for talk in talks))
    frames = c.disorder(frames, random.Random(3), reorder=0.1, drop=0.02, duplicate=0.1)
    half = len(frames) // 2
    expected = table(tmp_path, c.pcapng_bytes(frames[:half]), c.pcapng_bytes(frames[half:]))
    rows = sessions_of(load_flows(spark, tmp_path, piece_size=None), partitions=4).collect()
    assert len(rows) == 9
    rows = sorted((row.asDict() for row in rows), key=lambda row: row["client_port"])
    for row, expected_row in zip(rows, sorted(expected, key=lambda row: row["client_port"]), strict=True):
        assert {name: row[name] for name in row if name not in ("first", "last")} == {
            name: expected_row[name] for name in expected_row if name not in ("first", "last")
        }


def test_the_data_source_gives_the_same_table(spark, tmp_path):
    """All columns, then some of them."""
    talks = [handshake(c.TcpConversation(("10.0.0.1", 5000 + number))) for number in range(3)]
    data = c.pcapng_bytes(c.merged(*(talk.send(EXPRESS).close().frames for talk in talks)))
    expected = table(tmp_path, data)
    reader = spark.read.format("msmq").option("read", "sessions")
    sessions = reader.load(f"{tmp_path}/*")
    assert sessions.columns == SESSION_SCHEMA.names
    names = [name for name in sessions.columns if name not in ("first", "last")]

    def comparable(rows: Iterable[Any]) -> list[dict[str, Any]]:
        selected = ({name: row[name] for name in names} for row in rows)
        return sorted(selected, key=lambda row: row["client_port"])

    assert comparable(sessions.collect()) == comparable(expected)
    narrow = reader.schema("ended string, client_port int").load(f"{tmp_path}/*")
    assert sorted(map(tuple, narrow.collect())) == [("fin", 5000), ("fin", 5001), ("fin", 5002)]
