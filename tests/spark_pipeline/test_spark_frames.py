"""`spark_udfs.frame` without Spark: what it refuses, and what its tasks do."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest import mock

import pyarrow as pa
import pytest

from msmqwire import read_capture
from msmqwire.crypto.readings import Readings
from msmqwire.errors import InvalidValue, UnsupportedStore
from msmqwire.ncp.readings import Readings as NcpReadings
from msmqwire.tables.scanning import row_buffer
from spark_udfs.frames import frame
from spark_udfs.source.filters import pushed
from spark_udfs.source.options import BadOption
from spark_udfs.source.packet_reader import MalformedCapture
from spark_udfs.source.schema import arrow_fields, packet_schema
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.capture.protected_captures import ALICE, PROTECTED, QM_KEY
from tests.support.capture_files import Frame
from tests.support.paths import EXAMPLES

CAPTURE = EXAMPLES / "session.pcap"


@pytest.mark.parametrize(
    "arguments, why",
    [
        pytest.param(
            {"columns": ["kind", "colour"]}, "columns: 'colour' is not a column", id="unknown column"
        ),
        pytest.param({"columns": []}, "columns: a list of names", id="no columns"),
        pytest.param({"columns": "kind"}, "columns: a list of names", id="columns as text"),
        pytest.param(
            {"where": [("colour", "==", 1)]}, "where: 'colour' is not a column", id="unknown condition"
        ),
        pytest.param({"where": [("size", "~", 1)]}, "where: '~' is not an operator", id="unknown operator"),
        pytest.param({"where": [("size", "==")]}, "where: a condition is", id="condition of two"),
        pytest.param({"where": [("src_port", "==", "x")]}, "where: .*src_port", id="text for a number"),
        pytest.param({"where": [("size", "<", 1 << 64)]}, "where: .*size", id="number too large"),
        pytest.param(
            {"where": [("size", "<", None)]}, "where: size is a number of 64 bits, not nothing", id="null"
        ),
        pytest.param({"where": [("size", "in", 5)]}, "where: .*size", id="no list"),
        pytest.param({"where": [("time", ">", "noon")]}, "where: .*noon", id="no time"),
        pytest.param({"ports": [0]}, "ports: 0 is not a port", id="port"),
        pytest.param({"body_limit": -1}, "bodyLimit: -1", id="body limit"),
        pytest.param({"mode": "LENIENT"}, "mode: 'LENIENT'", id="mode"),
        pytest.param({"split_size": "big"}, "splitSize: big", id="split size"),
        pytest.param({"splits": "guessed"}, "splits: 'guessed'", id="splits"),
        pytest.param({"overlap": 1.5}, r"overlap: 1\.5", id="overlap"),
    ],
)
def test_arguments_that_cannot_be(arguments: dict[str, Any], why: str) -> None:
    spark: Any = None
    with pytest.raises(BadOption, match=why):
        frame(spark, CAPTURE, **arguments)


def test_keys_and_files_that_cannot_be() -> None:
    spark: Any = None
    with pytest.raises(InvalidValue, match="private key"):
        frame(spark, CAPTURE, keys=b"no key")
    with pytest.raises(FileNotFoundError, match="none-"):
        frame(spark, CAPTURE.parent / "none-*.pcap")
    with pytest.raises(UnsupportedStore, match="colour"):
        frame(spark, "s3://captures/monday", storage_options={"region": "x", "colour": "blue"})


@dataclass(frozen=True)
class Tasks:
    """A session, its range and its DataFrame; tasks run here, each on a copy of what Spark would send it.

    Attributes:
        numbers: of each task.
        function: of the tasks, pickled.
        schema: that of the DataFrame.
    """

    numbers: tuple[tuple[int, ...], ...] = ()
    function: bytes = b""
    schema: Any = None

    sparkContext = SimpleNamespace(defaultParallelism=1)

    def range(self, start: int, end: int, *, numPartitions: int) -> Tasks:
        assert start == 0
        bounds = [end * number // numPartitions for number in range(numPartitions + 1)]
        return replace(self, numbers=tuple(tuple(range(*pair)) for pair in pairwise(bounds)))

    def mapInArrow(self, function: Any, schema: Any) -> Tasks:
        return replace(self, function=pickle.dumps(function), schema=schema)

    def tables(self) -> list[pa.Table]:
        """The rows of each task."""
        schema = arrow_fields(self.schema)
        return [
            pa.Table.from_batches(
                pickle.loads(self.function)([pa.record_batch({"id": pa.array(numbers, pa.int64())})]), schema
            )
            for numbers in self.numbers
        ]


def framed(paths: Any, **arguments: Any) -> Tasks:
    spark: Any = Tasks()
    tasks: Any = frame(spark, paths, **arguments)
    return cast(Tasks, tasks)


PING = c.udp_packet(h.ping()[:20], "10.0.0.1", 4000, c.SERVER, 1999)
"""Cut short: a packet on a known port only."""
MALFORMED = c.TcpConversation().handshake().send(h.session_ack() + h.base_header(0x400001)).close()


@pytest.mark.parametrize(
    "names, arguments",
    [
        pytest.param(
            "kind label", {"where": [("label", "==", "signed by bob"), ("size", ">", 5)]}, id="where"
        ),
        pytest.param("label body body_size", {"body_limit": 3}, id="body_limit"),
        pytest.param("kind dst_port", {"ports": [1999]}, id="ports"),
        pytest.param("label signature_status body", {"keys": [QM_KEY]}, id="keys"),
        pytest.param("label signature_status body", {"certificates": [ALICE]}, id="certificates"),
        pytest.param(
            "label signature_status",
            {"certificates": ALICE, "readings": Readings(signature_bytes="big")},
            id="readings",
        ),
        pytest.param("kind job_number", {"ncp_readings": NcpReadings(job_number="big")}, id="ncp_readings"),
    ],
)
def test_an_argument_reaches_the_tasks(tmp_path: Path, names: str, arguments: dict[str, Any]) -> None:
    """The rows are those of `read_capture` with it, and not those without it."""
    ping = tmp_path / "ping.pcap"
    ping.write_bytes(c.pcap_bytes([Frame(c.START_NS, c.ethernet(PING))]))
    paths = [PROTECTED, EXAMPLES / "netware.pcap", ping]
    columns = names.split()
    [table] = framed(paths, columns=columns, **arguments).tables()
    assert table.to_pylist() == read_capture(paths, columns=columns, **arguments).to_pylist()
    assert table.to_pylist() != read_capture(paths, columns=columns).to_pylist()


@pytest.mark.parametrize(
    "mode, kinds", [("PERMISSIVE", ["SessionAck", "Malformed"]), ("dropMalformed", ["SessionAck"])]
)
def test_a_mode_reaches_the_tasks(tmp_path: Path, mode: str, kinds: list[str]) -> None:
    path = tmp_path / "malformed.pcap"
    path.write_bytes(c.pcap_bytes(MALFORMED.frames))
    [table] = framed(path, columns=["kind"], mode=mode).tables()
    assert table.column("kind").to_pylist() == kinds
    with pytest.raises(MalformedCapture, match=r"from 10\.0\.0\.1"):
        framed(path, columns=["kind"], mode="FAILFAST").tables()


@pytest.fixture
def long(tmp_path: Path) -> Path:
    """A capture of a connection with a few packets in each 4 KiB, most across the ends of segments."""
    talk = c.TcpConversation(mss=700).handshake().send(h.establish_connection())
    messages = [
        h.user_message(properties=h.properties_header(label=f"{n:02}", body=bytes(900))) for n in range(40)
    ]
    for segment in range(0, 40, 5):
        talk.send(b"".join(messages[segment : segment + 5]))
    path = tmp_path / "long.pcap"
    path.write_bytes(c.pcap_bytes(talk.close().frames))
    return path


def test_each_task_reads_its_part(long: Path) -> None:
    """After the overlap, which shows the state of the connection; without one, packets are lost."""
    expected = read_capture(long, columns=["kind", "label"]).to_pylist()
    tables = framed(long, columns=["kind", "label"], split_size="4k", overlap="8k").tables()
    assert len(tables) > 5
    assert all(0 < table.num_rows < 10 for table in tables)
    assert pa.concat_tables(tables).to_pylist() == expected
    without = framed(long, columns=["kind", "label"], split_size="4k", overlap=0).tables()
    assert pa.concat_tables(without).to_pylist() != expected
    assert len(framed([long, CAPTURE], columns=["kind"], split_size=0).tables()) == 2


def test_exact_parts_without_an_overlap(long: Path) -> None:
    with mock.patch.object(row_buffer, "CHUNK", 700):  # a place for a part after each chunk
        tables = framed(long, columns=["frame", "label"], splits="exact", split_size="4k", overlap=0).tables()
    assert len(tables) > 5
    assert pa.concat_tables(tables).to_pylist() == read_capture(long, columns=["frame", "label"]).to_pylist()


@pytest.mark.parametrize("name", ["raw", "body_format", "body_text", "headers"])
def test_the_usual_columns_and_others_if_they_are_named(name: str) -> None:
    assert framed(CAPTURE).schema.names == packet_schema().names
    assert name not in packet_schema().names
    [table] = framed(CAPTURE, columns=[name, "kind"]).tables()
    assert table.to_pylist() == read_capture(CAPTURE, columns=[name, "kind"]).to_pylist()


@dataclass(frozen=True)
class EqualTo:
    """A filter of `pyspark.sql.datasource`, which has it from 4.1 on."""

    attribute: tuple[str, ...]
    value: Any


class In(EqualTo):
    """Likewise."""


def test_filters_of_a_query_that_nothing_meets_stay_with_spark() -> None:
    right, wrong = EqualTo(("kind",), "UserMessage"), EqualTo(("kind",), "UserMesage")
    several, address = In(("kind",), ("Ping", "Pong")), EqualTo(("src",), "10.0.0.300")
    conditions, remaining = pushed([right, wrong, several, address], ["kind", "src"])
    assert conditions == [("kind", "==", "UserMessage")]
    assert remaining == [wrong, several, address]
