"""Reassembly on a cluster: the packets of one reader, however files and connections are divided."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import msmqwire
from msmqwire.ncp.headers import NCP_PORT
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.capture import srmp_captures as s
from tests.support.capture.netware_captures import NcpTalk
from tests.support.capture_files import Frame

EC, CP, ACK = h.establish_connection(), h.connection_parameters(), h.session_ack()
MESSAGE = h.user_message(properties=h.properties_header(label="label", body=b"b" * 3000))
SMALL = h.user_message(session=h.session_header(), properties=h.properties_header(body=b"small"))


def frames() -> list[Frame]:
    """A long connection, many short ones on reused ports, SRMP, and pings, with disorder and loss."""
    long = c.TcpConversation().handshake().send(EC).send(EC, by_client=False)
    for _ in range(60):
        long.send(MESSAGE).send(ACK, by_client=False)
    talks = [
        c.TcpConversation(("10.0.0.3", 4000 + number % 7), client_isn=number * 77_000, start_ns=start)
        for number, start in enumerate(range(c.START_NS, c.START_NS + 10**9, 10**8))
    ]
    for talk in talks:
        talk.handshake().send(EC).send(SMALL).send(b"noise").send(SMALL).close()
    pings = [Frame(c.START_NS + n, c.ethernet(c.udp_packet(h.ping(cookie=n)))) for n in range(5)]
    web = [s.http(port, start_ns=c.START_NS + port * 10**5) for port in (80, 8080)]
    for talk in web:
        for name in ("4.2", "4.4-1", "4.1"):
            talk.send(s.GET).send(s.published(name)).send(s.PAGE + s.RESPONSE, by_client=False)
    merged = c.merged(long.close().frames, *(talk.frames for talk in talks), *(talk.frames for talk in web))
    mixed = c.disorder(merged, random.Random(4), reorder=0.05, duplicate=0.05, drop=0.01, overlap=0.02)
    over_udp, over_ip = (s.samples()[f"pgm over {below}"] for below in ("udp", "ip"))
    return c.merged(mixed, pings, over_udp, over_ip, *netware())


def netware() -> list[list[Frame]]:
    """NCP over TCP, and the same over UDP."""
    talk = NcpTalk(7, ("10.0.0.9", 4000)).call("ReadQueueJobEntry", {"QueueID": 1, "JobNumber": 1}).destroy()
    datagrams = []
    for request, reply in talk.pairs:
        datagrams.append(c.udp_packet(request.to_bytes(), "10.0.0.9", 4000, c.SERVER, NCP_PORT))
        datagrams.append(c.udp_packet(reply.to_bytes(), c.SERVER, NCP_PORT, "10.0.0.9", 4000))
    frames = [Frame(c.START_NS + n * 10**7, c.ethernet(packet)) for n, packet in enumerate(datagrams)]
    return [talk.conversation.frames, frames]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Three files of one rotating capture, one of them pcap and two pcapng."""
    folder, captured = tmp_path_factory.mktemp("captures"), frames()
    third = len(captured) // 3
    groups = [captured[:third], captured[third : 2 * third], captured[2 * third :]]
    for number, group in enumerate(groups):
        data = c.pcap_bytes(group, nanoseconds=True) if number == 1 else c.pcapng_bytes(group)
        (folder / f"part-{number}.pcap").write_bytes(data)
    return [str(path) for path in sorted(folder.iterdir())]


def rows_of(batches: Iterator[Any] | list[Any]) -> list[tuple[object, ...]]:
    """All rows in a fixed order, times in microseconds; without the numbers of connections and frames."""
    rows: list[tuple[object, ...]] = []
    for batch in batches:
        names = [name for name in batch.schema.names if name not in ("stream", "frame", "frame_offset")]
        columns = [batch.column(name) for name in names]
        time = names.index("time")
        columns[time] = columns[time].cast(pa.timestamp("us", "UTC"), safe=False)
        rows += zip(*(column.to_pylist() for column in columns), strict=True)
    return sorted(rows, key=repr)


@pytest.mark.parametrize("reassembly", ["parts", "shuffle"])
def test_the_packets_of_rotating_captures_in_any_number_of_tasks(spark, files, reassembly, small_chunks):
    from spark_udfs.reassembly.packets import packets

    rows = packets(spark, files, partitions=5, split_size=40_000, reassembly=reassembly)
    assert ("Exchange" in plan_of(rows)) == (reassembly == "shuffle")
    assert rows.rdd.getNumPartitions() > 3
    table = rows.toArrow()
    assert rows_of(table.to_batches()) == rows_of(msmqwire.read_capture(files).to_batches())
    assert table.column("frame").null_count == table.num_rows
    is_ping = pa.compute.equal(table.column("kind"), "Ping")
    assert pa.compute.sum(is_ping).as_py() == 5
    is_answered = pa.compute.equal(table.column("kind"), "ReadQueueJobEntry reply")
    assert sorted(table.filter(is_answered).column("transport").to_pylist()) == ["tcp", "udp"]
    assert table.filter(is_answered).column("queue_id").to_pylist() == [1, 1]
    is_tcp = pa.compute.equal(table.column("transport"), "tcp")
    assert table.column("stream").null_count == table.num_rows - pa.compute.sum(is_tcp).as_py()
    kinds = list(zip(table.column("kind").to_pylist(), table.column("transport").to_pylist(), strict=True))
    assert kinds.count(("SrmpMessage", "pgm")) == kinds.count(("SrmpMessage", "udp")) == 2
    assert kinds.count(("SrmpMessage", "tcp")) > 6
    offsets = set(zip(*(table.column(name).to_pylist() for name in ("file", "frame_offset")), strict=True))
    for file, offset in offsets:
        head = Path(file).read_bytes()[offset : offset + 4]
        # A record of pcap begins with its time in seconds, a block of pcapng with its type.
        assert int.from_bytes(head, "little") == (1_700_000_000 if "part-1" in file else 6)


def test_a_long_connection_is_many_tasks_with_the_same_packets(spark, files):
    from spark_udfs.reassembly.packets import packets_of
    from spark_udfs.reassembly.shuffle import load_flows

    flows = load_flows(spark, files, piece_size=20_000)
    (boundaries,) = flows.boundaries.values()
    assert len(boundaries) >= 3
    columns = ["time", "src", "kind", "size", "label", "error", "body"]
    rows = packets_of(flows, columns=columns, body_limit=10, partitions=4).toArrow()
    expected = msmqwire.read_capture(files, columns=columns, body_limit=10)
    assert rows.schema.names == columns
    assert rows_of(rows.to_batches()) == rows_of(expected.to_batches())
    chunks = flows.shuffled(4).groupBy("flow").agg({"chunk": "max"}).collect()
    assert sorted(row["max(chunk)"] for row in chunks)[-1] == len(boundaries)


def plan_of(rows: Any) -> str:
    return str(rows._jdf.queryExecution().executedPlan().toString())


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small captures have parts too."""
    monkeypatch.setattr("msmqwire.tables.scanning.row_buffer.CHUNK", 20_000)


@pytest.mark.parametrize("by_tasks", [False, True])
def test_parts_are_preferred_unless_their_states_are_too_large(
    spark, files, small_chunks, monkeypatch, by_tasks
):
    from spark_udfs.reassembly.packets import ShuffleWarning, packets

    monkeypatch.setattr("spark_udfs.source.survey_tasks.SURVEYORS_MIN", 0 if by_tasks else 1 << 20)
    rows = packets(spark, files, split_size=40_000)
    assert "Exchange" not in plan_of(rows)
    expected = rows_of(rows.toArrow().to_batches())
    monkeypatch.setattr("msmqwire.tables.exact_parts.STATES_MAX", 20_000)
    with pytest.warns(ShuffleWarning, match="not by . exact parts"):
        rows = packets(spark, files, split_size=40_000)
    assert "Exchange" in plan_of(rows)
    rows = packets(spark, files, split_size=40_000, reassembly="parts")
    assert "Exchange" not in plan_of(rows)
    assert rows_of(rows.toArrow().to_batches()) == expected
    with pytest.raises(ValueError, match="auto, parts and shuffle"):
        packets(spark, files, reassembly="magic")


@pytest.mark.parametrize("reassembly", ["parts", "shuffle"])
def test_a_damaged_file_is_reported(spark, files, tmp_path, reassembly):
    from spark_udfs.reassembly.packets import packets

    truncated = tmp_path / "truncated.pcap"
    truncated.write_bytes(Path(files[0]).read_bytes()[:-5])
    rows = packets(spark, [truncated], columns=["file", "kind", "error"], reassembly=reassembly)
    damage = [tuple(row) for row in rows.collect() if row.kind == "Skipped" and row.error.startswith("byte ")]
    assert [row[0] for row in damage] == [str(truncated)]
    assert "the file ends within" in damage[0][2]


def test_a_column_that_there_is_not(spark, files):
    from spark_udfs.reassembly.packets import packets

    with pytest.raises(ValueError, match="'colour' is not a column"):
        packets(spark, files, columns=["kind", "colour"])
