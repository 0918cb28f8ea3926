"""The functions on columns of raw bytes: over arrays, and from SQL on a cluster."""

from __future__ import annotations

import pyarrow as pa
import pytest

import msmqwire
from msmqwire.analysis.lint import lint
from msmqwire.tables.columns import GENERIC_GROUPS, USUAL
from spark_udfs import functions as f
from tests.support import handmade as h

BODY = "<string>hé</string>"
MESSAGE = h.user_message(
    session=h.session_header(), properties=h.properties_header(label="label", body=BODY.encode(), body_type=0)
)
RAW = [MESSAGE, h.establish_connection(), h.ping(), MESSAGE[:100], b"", None]


def test_parse_gives_the_columns_of_a_capture():
    rows = f.parse_raw(pa.array(RAW)).to_pylist()
    assert rows[5] is None
    kinds = ["UserMessage", "EstablishConnection", "Ping", "Malformed", "Malformed"]
    assert [row["kind"] for row in rows[:5]] == kinds
    assert [row["size"] for row in rows[:5]] == [len(raw) for raw in RAW[:5]]
    fields = msmqwire.parse(MESSAGE)
    assert rows[0]["label"] == "label"
    assert rows[0]["body"] == BODY.encode()
    assert rows[0]["message_id"] == fields.UserHeader.MessageID
    assert rows[0]["user_sequence"] == fields.SessionHeader.UserMsgSequenceNumber
    assert rows[0]["error"] is None
    with pytest.raises(msmqwire.MalformedPacket) as raised:
        msmqwire.parse(MESSAGE[:100])
    error = raised.value
    assert (rows[3]["error"], rows[3]["error_path"], rows[3]["error_offset"]) == (
        error.why, error.path, error.offset,
    )  # fmt: skip
    assert rows[3]["label"] is None


def test_the_struct_has_all_columns_but_those_of_a_capture():
    names = [field.name for field in f.FUNCTIONS["msmq_parse"][1]]
    assert names[:5] == ["kind", "size", "error", "error_path", "error_offset"]
    assert names[5:] == [column.name for column in USUAL if column.group not in ("where", *GENERIC_GROUPS)]


def test_parse_of_another_protocol():
    raw = pa.array([h.ping(cookie=7), h.remote_read_message(), MESSAGE, h.ping(), h.ping(), h.ping()])
    protocols = pa.array(["ping", "remote_read", None, None, "session", "smtp"])
    rows = f.parse_raw(raw, protocols).to_pylist()
    assert [row["kind"] for row in rows] == [
        "Ping", "RemoteReadMessage", "UserMessage", "Ping", "Malformed", "Malformed",
    ]  # fmt: skip
    assert rows[0]["ping_cookie"] == 7
    assert rows[5]["error"] == "'smtp' is none of session, ping, remote_read"


def test_kinds():
    kinds = ["UserMessage", "EstablishConnection", "Ping", "Malformed", "Malformed", None]
    assert f.kind_of_raw(pa.array(RAW)).to_pylist() == kinds


def test_pings():
    rows = f.ping_raw(pa.array([h.ping(cookie=9), h.ping()[:-1], None])).to_pylist()
    assert rows[0] == {
        "ping_cookie": 9, "ping_refused": False, "qm_guid": "557358d1-9150-9595-4997-b6e611ea26c6",
        "error": None, "error_path": None, "error_offset": None,
    }  # fmt: skip
    assert rows[1]["ping_cookie"] is None
    assert rows[1]["error_offset"] == 23
    assert rows[2] is None


FINDINGS = [lint(raw, protocol="ping" if raw == h.ping() else "session") for raw in RAW[:5]]


def test_findings():
    results = f.lint_raw(pa.array(RAW)).to_pylist()
    assert results == [*([finding.to_json() for finding in findings] for findings in FINDINGS), None]
    assert results[0]
    assert not results[2]
    assert results[3]


def test_body_texts():
    bodies = [BODY.encode(), "wide".encode("utf-16-le"), b"\xff\xfe\x00\xd8", b"\x07\0\0\0", None, b""]
    types = [0, 8, 8, 3, 3, None]
    texts = f.body_text(pa.array(bodies), pa.array(types, pa.int64())).to_pylist()
    assert texts == ["hé", "wide", "\ufeff\ufffd", "7", None, ""]


def test_what_is_inside_of_bodies():
    extension = (
        b'<?xml version="1.0"?><ArrayOfHeaderInfo><HeaderInfo><Key>a</Key><Value>1</Value></HeaderInfo>'
        b"</ArrayOfHeaderInfo>"
    )
    bodies = [b'{"a": 1}', "wide".encode("utf-16-le"), b"\0\xd8", b"abc", b"\0\xff", None]
    types = pa.array([0, 8, 8, 3, None, 0], pa.int64())
    extensions = pa.array([extension, None, None, b"", None, extension])
    array = f.body_content(pa.array(bodies), types, extensions)
    assert array.type == f.BODY
    rows = array.to_pylist()
    assert rows[0] == {
        "format": "json", "text": "{a: 1}", "headers_format": "nservicebus", "headers": [("a", "1")],
        "value": '{"a": 1}', "error": None,
    }  # fmt: skip
    assert (rows[1]["format"], rows[1]["value"], rows[1]["headers"]) == ("activex", '"wide"', None)
    assert rows[2]["text"] == "\ufffd"
    assert rows[3]["format"] == "text"
    assert rows[3]["error"] == "VT_I4, byte 3: VT_I4 takes 4 bytes, the body has 3"
    assert (rows[4]["format"], rows[4]["text"]) == ("bytes", None)
    assert rows[5] is None
    alone = f.body_content(pa.array(bodies)).to_pylist()
    assert (alone[0]["headers"], alone[0]["value"], alone[5]) == (None, '{"a": 1}', None)


def test_format_names():
    names = [
        "DIRECT=os:host\\private$\\orders;JOURNAL",
        "PRIVATE=557358d1-9150-9595-4997-b6e611ea26c6\\f",
        "DIRECT=TCP:10.0.0.5\\q,PUBLIC=557358d1-9150-9595-4997-b6e611ea26c6",
        "MULTICAST=234.1.1.1:8001",
        "nonsense",
        None,
    ]
    parts = f.format_name(pa.array(names)).to_pylist()
    direct, private, multiple, multicast, wrong, nothing = parts
    assert {name: value for name, value in direct.items() if value is not None} == {
        "kind": "direct", "protocol": "OS", "address": "host", "host": "host", "queue": "orders",
        "private": True, "journal": True, "canonical": "DIRECT=OS:host\\PRIVATE$\\orders;JOURNAL",
    }  # fmt: skip
    assert (private["kind"], private["number"], private["guid"]) == (
        "private", 15, "557358d1-9150-9595-4997-b6e611ea26c6",
    )  # fmt: skip
    assert multiple["elements"] == names[2].split(",")
    assert (multicast["address"], multicast["port"]) == ("234.1.1.1", 8001)
    assert (wrong["kind"], wrong["error_offset"]) == (None, 0)
    assert wrong["error"]
    assert nothing is None


def test_from_sql(spark):
    spark.createDataFrame([(raw,) for raw in RAW], "raw binary").createOrReplaceTempView("packets")
    rows = spark.sql(
        "SELECT p.label, p.kind, msmq_kind(raw) AS same, msmq_body_text(p.body, p.body_type) AS text,"
        " size(msmq_lint(raw)) AS findings, msmq_ping(raw).qm_guid AS ping,"
        " msmq_parse(raw, 'ping').kind AS other, p.sent_time IS NOT NULL AS sent"
        " FROM (SELECT raw, msmq_parse(raw) AS p FROM packets)"
    ).collect()
    guid = "557358d1-9150-9595-4997-b6e611ea26c6"
    counts = [len(findings) for findings in FINDINGS]
    assert [tuple(row) for row in rows] == [
        ("label", "UserMessage", "UserMessage", "hé", counts[0], None, "Malformed", True),
        (None, "EstablishConnection", "EstablishConnection", None, counts[1], None, "Malformed", False),
        (None, "Ping", "Ping", None, counts[2], guid, "Ping", False),
        (None, "Malformed", "Malformed", None, counts[3], None, "Malformed", False),
        (None, "Malformed", "Malformed", None, counts[4], None, "Malformed", False),
        (None, None, None, None, None, None, None, False),
    ]


def test_bodies_from_sql(spark):
    extension = b'{"rbs2-msg-id": "7", "rbs2-content-type": "application/json"}'
    rows = [(b'{"a": [1, 2]}', 0, extension), (b"abc", 3, None), (None, 0, None)]
    bodies = spark.createDataFrame(rows, "body binary, body_type bigint, extension binary")
    bodies.createOrReplaceTempView("bodies")
    told = spark.sql(
        "SELECT b.format, b.headers['rbs2-msg-id'] AS id, get_json_object(b.value, '$.a[1]') AS a,"
        " b.error IS NOT NULL AS wrong"
        " FROM (SELECT msmq_body(body, body_type, extension) AS b FROM bodies)"
    ).collect()
    assert [tuple(row) for row in told] == [
        ("json", "7", "2", False), ("text", None, None, True), (None, None, None, False),
    ]  # fmt: skip


def test_from_python(spark):
    from pyspark.sql import functions as F

    names = spark.createDataFrame([("DIRECT=OS:a\\b",), ("?",)], "name string")
    rows = names.select(F.call_function("msmq_format_name", "name").alias("n")).select("n.queue").collect()
    assert [row.queue for row in rows] == ["b", None]
