"""Rows of SRMP and PGM: those of the dissection, and the columns that envelopes fill."""

from __future__ import annotations

import io
import json

import click
import pyarrow as pa
import pytest

from msmqwire.analysis.dissection import dissect
from msmqwire.cli.captures.dissect import command
from msmqwire.names import FormatName
from msmqwire.qm.protocols.srmp.deserializing import deserialize
from msmqwire.srmp.attributes import attribute
from msmqwire.srmp.message import parse_message
from msmqwire.tables import read_capture
from msmqwire.tables.arrow import batch
from msmqwire.tables.arrow import rows as row_batches
from msmqwire.tables.arrow.rows import batches
from msmqwire.tables.columns import UNJUDGED
from msmqwire.tables.scanning import row_buffer
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.capture import srmp_captures as s
from tests.support.srmp.srmp_envelopes import PUBLISHED

NAMES = [column.name for column in UNJUDGED]
AFTER_RAW = NAMES[NAMES.index("raw") + 1 :]


def reference(data: bytes, body_limit: int | None = None) -> pa.Table:
    """The rows that are made item by item."""
    items = dissect(io.BytesIO(data), lint=False)
    made = batches(items, UNJUDGED, batch_rows=1000, body_limit=body_limit)
    return pa.Table.from_batches(list(made))


def table(data: bytes, **options) -> pa.Table:
    return read_capture(io.BytesIO(data), columns=NAMES, **options)


@pytest.mark.parametrize("name", s.samples())
def test_rows_are_those_of_the_dissection(name):
    data = c.pcap_bytes(s.samples()[name])
    rows = table(data)
    assert rows.equals(reference(data))
    assert "SrmpMessage" in rows["kind"].to_pylist()
    assert table(data, body_limit=5).equals(reference(data, 5))


def test_binary_and_http_rows_follow_the_capture_order():
    binary = c.TcpConversation((c.CLIENT, 40_000)).handshake()
    web = s.http(80, start_ns=c.START_NS + 500_000)
    for _ in range(3):
        binary.send(h.user_message(properties=h.properties_header(body=b"1801")))
        web.send(s.published("4.1")).send(s.RESPONSE, by_client=False)
    binary.close()
    data = c.pcap_bytes(c.merged(binary.frames, web.close().frames, s.samples()["pgm over ip"]))
    rows = table(data, batch_rows=2).read_all()
    assert rows.equals(reference(data))
    assert rows["kind"].to_pylist().count("UserMessage") == 3
    assert rows["kind"].to_pylist().count("SrmpMessage") == 8


def test_an_envelope_fills_the_columns_of_its_message():
    data = c.pcap_bytes(s.http().send(s.published("4.4-1")).send(s.RESPONSE, by_client=False).frames)
    request, response = table(data).to_pylist()
    assert {name: value for name, value in request.items() if name in AFTER_RAW and value is not None} == {
        "priority": 0, "trace": False, "time_to_reach_queue": 86_400,
        "source_qm": "dc1cd9a6-8130-4504-88d2-851707fe4632", "time_to_be_received": 86_400,
        "sent_time": request["sent_time"], "message_id": 1, "recoverable": True,
        "journal_negative": False, "journal_positive": False,
        "destination": "DIRECT=http://machine2/msmq/private$/tsimpleq",
        "admin_queue": "DIRECT=http://machine1/MSMQ/private$/receipts?SenderStream=XRntV",
        "tx_sequence_ordinal": 4_839_986_701_558_349_830 & 0xFFFF_FFFF,
        "tx_sequence_timestamp": 4_839_986_701_558_349_830 >> 32,
        "tx_number": 1, "tx_previous": 0, "tx_first": False, "tx_last": False, "final_ack_wanted": False,
        "signed": False, "signature_status": "none", "decrypted": False,
        "ack_flags": 0, "label": "mqsender label", "message_class": 0,
        "class_name": request["class_name"], "correlation_id": bytes(20), "body_type": 0, "app_tag": 0,
        "body_size": 13, "hash_algorithm": 32_772, "extension": b"", "body": b"First Message",
            "body_format": "text", "body_text": "First Message",
        "srmp_id": "uuid:1@00000000-0000-0000-0000-000000000008",
        "srmp_stream": "uid:2744e4e1-2b48-43e8-b441-42745f280d53\\4839986701558349830",
        "exchange": 0, "one_sided": False,
    }  # fmt: skip
    assert str(request["sent_time"]) == "2007-06-19 16:59:59+00:00"
    assert {name: response[name] for name in AFTER_RAW if response[name] is not None} == {
        "http_status": 200, "exchange": 0, "one_sided": False,
    }  # fmt: skip


def text(name: FormatName | None) -> str | None:
    return None if name is None else name.text


@pytest.mark.parametrize("name", PUBLISHED)
def test_attributes_are_those_of_the_queue_manager(name):
    received = parse_message(PUBLISHED[name])
    message = deserialize(received, 2**31)
    envelope = received.envelope
    assert envelope is not None
    expected = {
        "priority": message.priority, "trace": message.tracing_requested, "label": message.label or None,
        "message_class": message.message_class, "body_type": message.body_type,
        "app_tag": message.application_tag,
        "journal_negative": message.negative_journaling_requested,
        "journal_positive": message.positive_journaling_requested,
        "recoverable": message.recoverable, "final_ack_wanted": message.final_ack_required,
        "ack_flags": int(message.acknowledgements_requested),
        "correlation_id": message.correlation_identifier,
        "destination": text(message.destination), "admin_queue": text(message.administration),
        "response_queue": text(message.response),
    }  # fmt: skip
    if envelope.properties.sentAt is not None:
        expected |= {"sent_time": message.sent_time, "time_to_reach_queue": message.time_to_reach_queue}
    if envelope.Msmq is not None:
        expected |= {
            "message_id": message.identifier.uniquifier,
            "source_qm": str(message.source_machine_identifier),
        }
        expected |= {"time_to_be_received": message.time_to_be_received}
    if (stream := message.transactional_message_sequence_identifier) is not None:
        expected |= {
            "tx_sequence_ordinal": stream.ordinal, "tx_sequence_timestamp": stream.time_stamp,
            "tx_number": message.transaction_sequence_number,
            "tx_previous": message.transaction_previous_sequence_number,
            "tx_first": message.first_in_transaction, "tx_last": message.last_in_transaction,
        }  # fmt: skip
    found = {column: attribute(column, received) for column in expected}
    assert found == expected


def test_conditions_see_the_cells_of_messages():
    data = c.pcap_bytes(s.samples()["pipelined"])
    second = [("tx_number", "==", 1), ("kind", "in", ["SrmpMessage"])]
    (row,) = read_capture(io.BytesIO(data), columns=["body", "size"], where=second).to_pylist()
    assert row["body"] == b"First Message"
    assert read_capture(io.BytesIO(data), where=[("kind", "==", "Ping")]).num_rows == 0
    pgm = c.pcap_bytes(s.samples()["pgm over ip"])
    assert read_capture(io.BytesIO(pgm), where=[("transport", "==", "pgm")]).num_rows == 14
    assert read_capture(io.BytesIO(pgm), where=[("transport", "==", "udp")]).num_rows == 0


def test_bodies_of_messages_count_for_the_size_of_a_batch(monkeypatch):
    for module in (batch, row_batches):  # whichever reads
        monkeypatch.setattr(module, "BATCH_BYTES_MAX", 300)
    monkeypatch.setattr(row_buffer, "ARENA", 2000)
    data = c.pcap_bytes(s.http().send(s.published("4.2") * 5).frames)
    sizes = [part.num_rows for part in read_capture(io.BytesIO(data), batch_rows=100, columns=["body"])]
    assert sum(sizes) == 5
    assert max(sizes) == 2  # 223 bytes each


def printed(capsys, tmp_path, *arguments, **options) -> str:
    path = tmp_path / "srmp.pcap"
    path.write_bytes(c.pcap_bytes(s.samples()["other port"]))
    with pytest.raises(click.exceptions.Exit) as exit_:
        command([str(path)], **options)
    assert exit_.value.exit_code == 0
    return capsys.readouterr().out


def test_the_command_prints_filters_and_writes_messages(capsys, tmp_path):
    lines = printed(capsys, tmp_path).splitlines()
    assert [line.split()[-1] for line in lines[1:3]] == ["MSMQ", "Message"]
    assert "request #0 DIRECT=http://" in lines[2]
    assert "response #0 200 OK" in lines[4]
    (line,) = printed(capsys, tmp_path, as_json=True, kind=["srmpmessage"], queue="*/private$/*").splitlines()
    item = json.loads(line)
    assert (item["packet"], item["exchange"]) == ("SrmpMessage", 0)
    assert "Envelope" in json.dumps(item["fields"])
    assert printed(capsys, tmp_path, as_json=True, label="no such *") == ""
    assert printed(capsys, tmp_path, dump=True, kind=["SrmpMessage"]).count("000000  ") == 2
