"""The columns that say what is inside of bodies: there on request, null where there is nothing to be said."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from pyarrow import parquet

import msmqwire
from msmqwire.errors import InvalidArgument
from msmqwire.tables import arrow_schema
from msmqwire.tables.arrow import batch
from msmqwire.tables.arrow.rows import batches
from msmqwire.tables.columns import BY_NAME
from msmqwire.tables.lake import write_lake
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.nrbf_streams import objects, ref, stream
from tests.support.paths import EXAMPLES
from tests.support.running import called

NAMES = ["body_format", "body_text", "headers"]
EXTENSION = (
    b'<?xml version="1.0"?><ArrayOfHeaderInfo><HeaderInfo><Key>a</Key><Value>1</Value></HeaderInfo>'
    b"<HeaderInfo><Key>b</Key><Value>\xff</Value></HeaderInfo></ArrayOfHeaderInfo>"
)
HEADERS = [("a", "1"), ("b", "\ufffd")]
MESSAGES = [
    (b"hello", 0, b""),
    ("wide".encode("utf-16-le"), 8, b""), (b"\0\xd8", 8, b""), (b'{"a": 1}', 0, EXTENSION),
    (b"\0\xff", 0, b""), (b"", 0, b""), (b"abc", 3, b""), (b"<a><b>1</b></a>", 0, b"anything"),
]  # fmt: skip
EXPECTED = [
    ("text", "hello", None), ("activex", "wide", None), ("activex", "\ufffd", None),
    ("json", "{a: 1}", HEADERS), ("bytes", None, None), ("bytes", None, None), ("text", "abc", None),
    ("xml", "a{b: 1}", None),
]  # fmt: skip


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    talk = c.TcpConversation(start_ns=c.START_NS).handshake()
    for body, body_type, extension in MESSAGES:
        properties = h.properties_header(label="x", body=body, body_type=body_type, extension=extension)
        talk = talk.send(h.user_message(properties=properties))
    hidden = h.user_message(
        security=h.security_header(flags=1 << 5), properties=h.properties_header(body=b"hello")
    )
    talk = talk.send(hidden).send(h.order_ack())
    path = tmp_path / "capture.pcap"
    path.write_bytes(c.pcap_bytes(talk.close().frames))
    return path


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in NAMES) for row in table.to_pylist()]


def test_they_are_there_on_request_only(capture: Path) -> None:
    assert not set(NAMES) & set(msmqwire.read_capture(capture).schema.names)
    with mock.patch.object(batch, "content_arrays", side_effect=AssertionError("decoded unasked")):
        assert msmqwire.read_capture(capture).num_rows == len(MESSAGES) + 2
    table = msmqwire.read_capture(capture, columns=NAMES)
    assert table.schema == arrow_schema([BY_NAME[name] for name in NAMES])
    assert rows(table) == [*EXPECTED, (None, None, None), (None, None, None)]


@pytest.mark.parametrize(
    "columns", [["headers"], ["body_text", "body"], ["kind", "body_format", "encrypted"]]
)
def test_any_of_them_beside_others(capture: Path, columns: list[str]) -> None:
    table = msmqwire.read_capture(capture, columns=columns)
    assert table.schema.names == columns
    chosen = [BY_NAME[name] for name in columns]
    items = pa.Table.from_batches(batches(msmqwire.dissect(capture), chosen, batch_rows=3))
    assert table.to_pylist() == items.to_pylist()


@pytest.mark.parametrize("size", [1, 3, 100])
def test_in_batches_of_any_size(capture: Path, size: int) -> None:
    reader = msmqwire.read_capture(capture, columns=NAMES, batch_rows=size)
    assert rows(reader.read_all())[: len(EXPECTED)] == EXPECTED


def test_a_body_cut_at_the_limit_is_read_as_far_as_it_is_there(capture: Path) -> None:
    cut = rows(msmqwire.read_capture(capture, columns=NAMES, body_limit=3))
    assert [row[0] for row in cut[:2]] == ["text", "bytes"]
    assert cut[0][1] == "hel"
    for limit in range(20):
        msmqwire.read_capture(capture, columns=NAMES, body_limit=limit)


def test_conditions(capture: Path) -> None:
    found = msmqwire.read_capture(capture, columns=["body_text"], where="body_format == 'text'")
    assert found["body_text"].to_pylist() == ["hello", "abc"]
    found = msmqwire.read_capture(capture, columns=["body_format"], where="body_text contains 'a'")
    assert found["body_format"].to_pylist() == ["json", "text", "xml"]
    found = msmqwire.read_capture(capture, columns=["body_format"], where="headers is not null")
    assert found["body_format"].to_pylist() == ["json"]
    found = msmqwire.read_capture(capture, columns=["label"], where=[("body_format", "in", ["xml"])])
    assert found["label"].to_pylist() == ["x"]


@pytest.mark.parametrize("where", ["headers == 'a'", "headers like 'a'", "headers in ('a')", "headers"])
def test_texts_by_name_are_not_compared(where: str, capture: Path) -> None:
    with pytest.raises(InvalidArgument, match="headers has texts by name"):
        msmqwire.read_capture(capture, where=where)
    with pytest.raises(InvalidArgument, match="headers has texts by name"):
        msmqwire.read_capture(capture, where=[("headers", "==", [])])


def test_a_format_that_is_none_is_refused(capture: Path) -> None:
    with pytest.raises(InvalidArgument, match="'jsn' is not a format of a body; did you mean json"):
        msmqwire.read_capture(capture, where="body_format == 'jsn'")


def test_of_decrypted_bodies() -> None:
    keys = {"keys": EXAMPLES / "keys" / "queue-manager.pem"}
    columns = ["encrypted", "decrypted", "body_text"]
    clear = msmqwire.read_capture(EXAMPLES / "protected.pcap", columns=columns, **keys).to_pylist()
    hidden = msmqwire.read_capture(EXAMPLES / "protected.pcap", columns=columns).to_pylist()
    assert any(row["decrypted"] for row in clear)
    for row, other in zip(clear, hidden, strict=True):
        assert (row["body_text"] is not None) == bool(row["decrypted"] or row["encrypted"] is False)
        assert other["body_text"] is None or not other["encrypted"]


def test_as_csv_table_parquet_and_in_a_lake(capture: Path, tmp_path: Path) -> None:
    columns = ("--columns", ",".join(NAMES))
    run = called("dissect", capture, "--csv", *columns)
    cells = list(csv.DictReader(io.StringIO(run.out)))
    assert [row["body_format"] for row in cells[: len(EXPECTED)]] == [row[0] for row in EXPECTED]
    assert json.loads(cells[3]["headers"]) == dict(HEADERS)
    assert '{"a": "1", "b": "\\ufffd"}' in called("dissect", capture, "--table", *columns).out
    called("dissect", capture, "--parquet", tmp_path / "a.parquet", *columns)
    assert rows(parquet.read_table(tmp_path / "a.parquet"))[: len(EXPECTED)] == EXPECTED
    write_lake(capture, tmp_path / "lake", columns=["time", *NAMES])
    for path in (tmp_path / "lake").rglob("*.parquet"):
        group = parquet.ParquetFile(path).metadata.row_group(0)
        leaves = {
            group.column(i).path_in_schema: group.column(i).compression for i in range(group.num_columns)
        }
        assert {"headers.key_value.key", "headers.key_value.value"} < leaves.keys()
        assert set(leaves.values()) <= {"ZSTD", "UNCOMPRESSED"}
    parts = [parquet.ParquetFile(path).read() for path in (tmp_path / "lake").rglob("*.parquet")]
    assert sorted(map(str, rows(pa.concat_tables(parts)))) == sorted(
        map(str, [*EXPECTED, (None, None, None), (None, None, None)])
    )


def test_in_json_the_body_is_an_object(capture: Path) -> None:
    lines = [json.loads(line) for line in called("dissect", capture, "--json").out.splitlines()]
    bodies = [line.get("body") for line in lines]
    assert [body and body["format"] for body in bodies[: len(EXPECTED)]] == [row[0] for row in EXPECTED]
    assert bodies[3]["headers"] == dict(HEADERS)
    assert bodies[6]["problems"][0]["error"] == "VT_I4 takes 4 bytes, the body has 3"
    assert bodies[len(EXPECTED) :] == [None, None]
    assert "decrypted_body" not in lines[0]


def test_a_chain_of_objects_is_printed_and_shown(tmp_path: Path) -> None:
    links = (objects(number, 1) + ref(number + 1) for number in range(1, 20_000))
    body = stream(*links, objects(20_000, 0))
    properties = h.properties_header(body=body, body_type=0x300)
    talk = c.TcpConversation(start_ns=c.START_NS).handshake().send(h.user_message(properties=properties))
    (tmp_path / "chain.pcap").write_bytes(c.pcap_bytes(talk.close().frames))
    (tmp_path / "chain.bin").write_bytes(body)
    for arguments in (
        ("dissect", tmp_path / "chain.pcap", "--json"), ("dissect", tmp_path / "chain.pcap", "--hexdump"),
        ("dissect", tmp_path / "chain.pcap"), ("body", tmp_path / "chain.bin"),
        ("body", tmp_path / "chain.bin", "--body-type", "0x300"),
    ):  # fmt: skip
        run = called(*arguments)
        assert (run.status, run.err) == (0, ""), arguments
        assert "nrbf" in run.out or arguments[-1] == tmp_path / "chain.pcap"  # too large for a line
    assert run.out.count("[") > 19_000
    [text] = msmqwire.read_capture(tmp_path / "chain.pcap", columns=["body_text"])["body_text"].to_pylist()
    assert len(text) <= 4096
