"""Bytes that PacketSize counts behind the last header of a message, by every reader and writer.

The vector is a UserMessage that a scanner sends over TCP and that real receivers take.
"""

from __future__ import annotations

import io
import json
from operator import attrgetter

import pyarrow as pa
import pytest

import msmqwire
from msmqwire.analysis.lint import lint
from msmqwire.packets import USER_MESSAGE
from msmqwire.qm.rules import serialization
from msmqwire.schema import reference
from msmqwire.schema.layout import layout
from msmqwire.tables import read_packets
from tests.support import handmade as h
from tests.support.capture_files import pcap_bytes
from tests.support.captures import TcpConversation
from tests.support.installed import library
from tests.support.paths import VECTORS

VECTOR = bytes.fromhex((VECTORS / "srmp" / "usermsg_srmp_msf_raw_v1.hex").read_text())
EXTENSION = h.extension_header(0, 0)
COMPOUND = "CompoundMessageHeader"
MESSAGES = {
    "vector": VECTOR,
    "extension": h.user_message(trailing=EXTENSION),
    "one byte": h.user_message(properties=h.properties_header(body=b"12345"), trailing=b"\xff"),
    "before a SessionHeader": h.user_message(trailing=bytes(5), session=h.session_header(sent=1)),
    "a packet": h.user_message(soap=h.soap_header(), trailing=h.session_ack()),
}
EVERY = pytest.mark.parametrize("data", MESSAGES.values(), ids=MESSAGES)


@EVERY
def test_all_readers_and_writers_agree(data: bytes) -> None:
    packet = msmqwire.parse(data)
    tail = packet.TrailingData
    assert tail
    assert reference.read(USER_MESSAGE, data)[0].TrailingData == tail
    assert packet.to_bytes() == USER_MESSAGE.construct.build(packet) == data
    text = json.dumps(msmqwire.to_json(packet))
    assert json.loads(text)["fields"]["TrailingData"] == tail.hex()
    assert msmqwire.build(json.loads(text)) == data
    (field,) = (field for field in layout(packet) if field.path == "TrailingData")
    assert data[field.offset : field.offset + field.size] == tail
    assert field.offset + field.size == packet.BaseHeader.PacketSize


@EVERY
def test_every_cut_is_refused_where_the_bytes_end(data: bytes) -> None:
    size = msmqwire.parse(data).BaseHeader.PacketSize
    for cut in range(size - 5, len(data)):
        with pytest.raises(msmqwire.MalformedPacket) as caught:
            msmqwire.parse(data[:cut])
        assert caught.value.offset == cut
        assert "ATTACK-TRUNCATED" in {finding.id for finding in lint(data[:cut])}
    with pytest.raises(msmqwire.MalformedPacket, match="TrailingData"):
        msmqwire.parse(data[: size - 1])


@EVERY
def test_recomputing_keeps_the_bytes_and_counts_them(data: bytes) -> None:
    packet = msmqwire.parse(data)
    shorter = packet.replace(TrailingData=b"abc").recomputed()
    assert shorter.TrailingData == b"abc"
    assert shorter.BaseHeader.PacketSize == packet.BaseHeader.PacketSize - len(packet.TrailingData) + 3
    assert packet.recomputed().BaseHeader.PacketSize == packet.BaseHeader.PacketSize


def test_a_packet_size_that_is_set_wrong_invents_no_bytes() -> None:
    fields = {"BaseHeader": {"PacketSize": 500}}
    packet = USER_MESSAGE.make(fields)
    assert packet.TrailingData == b""
    assert len(packet.to_bytes()) == len(USER_MESSAGE.build({}))
    assert "TrailingData" not in packet.to_json()["fields"]
    with pytest.raises(msmqwire.MalformedPacket):
        msmqwire.parse(packet.to_bytes())


@EVERY
def test_rows_are_those_of_the_generic_reader(data: bytes) -> None:
    conversation = TcpConversation().handshake().send(data).send(h.session_ack(), by_client=False)
    capture = pcap_bytes(conversation.close().frames)
    items = sorted(msmqwire.dissect(io.BytesIO(capture)), key=attrgetter("src"))
    assert [item.kind for item in items] == ["UserMessage", "SessionAck"]
    assert items[0].raw == data
    assert {finding.id for finding in lint(data)} <= {finding.id for finding in items[0].findings}
    table = msmqwire.read_capture(io.BytesIO(capture))
    assert sorted(table["kind"].to_pylist()) == ["SessionAck", "UserMessage"]
    library("pyspark")
    from spark_udfs import functions

    for array in (read_packets(pa.array([data])), functions.parse_raw(pa.array([data]))):
        (row,) = array.to_pylist()
        packet = msmqwire.parse(data)
        assert (row["kind"], row["size"], row["error"]) == ("UserMessage", len(data), None)
        assert row["message_id"] == packet.UserHeader.MessageID
        assert row["body"] == packet.MessagePropertiesHeader.MessageBody
        session = packet.SessionHeader
        assert row["user_sequence"] == (session.UserMsgSequenceNumber if session else None)


@EVERY
def test_a_message_keeps_the_bytes_with_its_packet_only(data: bytes) -> None:
    message = serialization.deserialize(data)
    tail = msmqwire.parse(data).TrailingData
    assert msmqwire.parse(serialization.to_packet(message)).TrailingData == tail
    # A packet with SRMP headers is stored anew: what comes from the store with them is never sent.
    stored = b"" if message.soap_envelope else tail
    assert msmqwire.parse(serialization.to_stored(message)).TrailingData == stored
    without = message.copy(packet=None)
    packet = msmqwire.parse(serialization.to_packet(without))
    assert packet.TrailingData == b""
    assert packet.BaseHeader.PacketSize == len(packet.to_bytes()) == serialization.packet_size(without)


@pytest.mark.requirement("MQMQ-2.2.20-12")
def test_a_finding_says_what_the_bytes_look_like() -> None:
    assert not {"MQMQ-2.2.20-12", "ATTACK-PACKET-SIZE"} & {finding.id for finding in lint(VECTOR)}
    (finding,) = (f for f in lint(MESSAGES["a packet"]) if f.id == "MQMQ-2.2.20-12")
    assert "no ExtensionHeader" in finding.message
    assert "ATTACK-PACKET-SIZE" in {finding.id for finding in lint(MESSAGES["a packet"])}


@pytest.mark.parametrize(
    "changes, id, path",
    [
        ({"MsgBodyOffset": 900}, "MQRR-2.2.5.1.2.2-06-PLACE", f"{COMPOUND}.MsgBodyOffset"),
        ({"MsgBodyOffset": 1054}, "ATTACK-BODY-RANGE", f"{COMPOUND}.MsgBodyOffset"),
        ({"MsgBodySize": 9}, "MQRR-2.2.5.1.2.2-05", f"{COMPOUND}.MsgBodySize"),
    ],
)
def test_a_body_elsewhere_is_parsed_and_found(changes: dict[str, int], id: str, path: str) -> None:
    packet = msmqwire.parse(VECTOR)
    header = packet.CompoundMessageHeader
    assert header.Data[header.MsgBodyOffset :][: header.MsgBodySize] == b"Message"
    data = packet.replace(CompoundMessageHeader=header.replace(**changes)).to_bytes()
    read = msmqwire.parse(data)
    assert read.to_bytes() == data
    assert read.CompoundMessageHeader.Data == header.Data
    before = {(f.id, f.path) for f in lint(VECTOR)}
    assert (id, path) in {(f.id, f.path) for f in lint(data)} - before
