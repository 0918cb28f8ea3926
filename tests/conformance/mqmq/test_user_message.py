"""The UserMessage packet as a whole: [MS-MQMQ] 2.2.18 and 2.2.20."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

import msmqwire
from msmqwire.analysis.lint import lint
from msmqwire.headers.propvariant import PROPVARIANT
from msmqwire.packets import USER_MESSAGE
from msmqwire.schema import Header
from tests.support import handmade
from tests.support.codec_checks import assert_refused, assert_same, flat, nested, proving, requirement
from tests.support.paths import VECTORS

GUID = bytes.fromhex("04 03 02 01 06 05 08 07 09 0A 0B 0C 0D 0E 0F 10")
FILL = b"\xcd"

# Every header, each with a different length that needs padding to a multiple of 4.
USER = handmade.user_header(
    destination=(7, handmade.direct_name("OS:ab\\c", FILL)), admin=(3, handmade.private_id(7))
)
PROPERTIES = handmade.properties_header(
    flags=0x0F, label="a label", extension=b"ext", body=b"12345", fill=FILL
)
PARTS: dict[str, tuple[str, bytes]] = {
    "transaction": ("TransactionHeader", handmade.transaction_header(flags=1, connector=GUID)),
    "security": (
        "SecurityHeader",
        handmade.security_header(flags=0x81, security_id=b"12345", signature=b"1", fill=FILL),
    ),
    "debug": ("DebugHeader", handmade.debug_header(GUID)),
    "soap": ("SoapHeader", handmade.soap_header("he", "body", fill=FILL)),
    "multi_queue": (
        "MultiQueueFormatHeader",
        handmade.multi_queue_format_header([handmade.mqf_direct("OS:ab\\c")], signature=b"1", fill=FILL),
    ),
    "session": ("SessionHeader", handmade.session_header(ack=7)),
}
ORDER = [
    "BaseHeader",
    "UserHeader",
    "TransactionHeader",
    "SecurityHeader",
    "MessagePropertiesHeader",
    "DebugHeader",
    "SoapHeader",
    "MultiQueueFormatHeader",
    "SessionHeader",
]
SUBSETS = [subset for size in range(7) for subset in itertools.combinations(PARTS, size)]


def message(*parts: str) -> bytes:
    chosen: dict[str, Any] = {part: PARTS[part][1] for part in parts}
    return handmade.user_message(user=USER, properties=PROPERTIES, flags=0, **chosen)


def header_spans(packet: Any) -> dict[str, tuple[int, int]]:
    """The start and end of each header, found by parsing it alone after the previous one."""
    spans, offset = {}, 0
    data = msmqwire.build(packet)
    for name in ORDER:
        if packet[name] is not None:
            record, end = packet[name].schema.read(data, offset)
            assert record == packet[name]
            spans[name], offset = (offset, end), end
    assert offset == len(data)
    return spans


@requirement(
    "MQMQ-2.2.20-02", "MQMQ-2.2.20-03", "MQMQ-2.2.20-11", "MQMQ-2.2.20-12", "MQQB-2.2-02", "MQMQ-2.2.19.1-19"
)
@pytest.mark.parametrize("parts", SUBSETS, ids=lambda parts: "+".join(parts) or "none")
def test_every_combination_of_headers(parts: tuple[str, ...]) -> None:
    """In order, on 4-byte boundaries; PacketSize is the sum without the SessionHeader."""
    data = message(*parts)
    packet = assert_same(USER_MESSAGE, data)
    assert msmqwire.parse(data) == packet
    names = [PARTS[part][0] for part in parts]
    assert [name for name in ORDER if packet[name] is not None] == [
        name for name in ORDER if name in {"BaseHeader", "UserHeader", "MessagePropertiesHeader", *names}
    ]
    spans = header_spans(packet)
    assert all(start % 4 == end % 4 == 0 for start, end in spans.values())
    for part in parts:
        name, raw = PARTS[part]
        assert data[slice(*spans[name])] == raw
    sizes = {name: end - start for name, (start, end) in spans.items()}
    counted = sum(size for name, size in sizes.items() if name != "SessionHeader")
    assert packet.BaseHeader.PacketSize == counted == len(data) - (16 if "session" in parts else 0)
    assert sizes.get("TransactionHeader", 36) == 36
    assert sizes.get("DebugHeader", 20) == 20
    # the sizes and the bits are filled in
    fields = nested(packet)
    del (
        fields["BaseHeader"]["PacketSize"],
        fields["BaseHeader"]["Flags"]["DH"],
        fields["BaseHeader"]["Flags"]["SH"],
    )
    for bit in ("SH", "TH", "MQ", "HH"):
        del fields["UserHeader"]["Flags"][bit]
    assert msmqwire.build({"packet": "UserMessage", "fields": fields}) == data


@requirement("MQMQ-2.2.20-03", "MQMQ-2.2.19.2-34")
def test_headers_that_are_always_there() -> None:
    built = USER_MESSAGE.build({})
    assert len(built) == 16 + 48 + 56
    packet = msmqwire.parse(built)
    assert list(packet.to_json()["fields"]) == ["BaseHeader", "UserHeader", "MessagePropertiesHeader"]
    assert packet.UserHeader.Flags.MP is True
    for size, path in ((16, "UserHeader.SourceQueueManager"), (64, "MessagePropertiesHeader.Flags")):
        assert_refused(msmqwire.parse, built[:8] + struct.pack("<L", size) + built[12:size], path, size)


@requirement("MQMQ-2.2.20-12", "MQQB-3.1.5.1.3-01")
@pytest.mark.parametrize(
    "parts", [(), ("session",), ("soap",), tuple(PARTS)], ids=lambda parts: "+".join(parts) or "none"
)
def test_a_packet_that_ends_elsewhere(parts: tuple[str, ...]) -> None:
    data = message(*parts)
    size = struct.unpack_from("<L", data, 8)[0]
    for more in (1, 4, 16):  # lint reports what is kept behind the last header
        longer = data[:8] + struct.pack("<L", size + more) + data[12:size] + bytes(more) + data[size:]
        packet = assert_same(USER_MESSAGE, longer)
        assert packet.TrailingData == bytes(more)
        assert [finding.id for finding in lint(longer) if finding not in lint(data)] == [
            "ATTACK-PACKET-SIZE",
            "MQMQ-2.2.19.1-19",
            "MQMQ-2.2.20-12",
        ]
    assert_refused(msmqwire.parse, data + b"\0", "BaseHeader.PacketSize", 8)
    shorter = data[:8] + struct.pack("<L", size - 4) + data[12:]
    with pytest.raises(msmqwire.MalformedPacket):
        msmqwire.parse(shorter)


@requirement("MQQB-3.1.5.1.3-01")
def test_every_cut_is_refused() -> None:
    """With the original PacketSize the data is truncated, and the offset is its end."""
    data = message(*PARTS)
    for cut in range(len(data)):
        with pytest.raises(msmqwire.MalformedPacket) as caught:
            msmqwire.parse(data[:cut])
        assert caught.value.offset == cut
        assert caught.value.path.partition(".")[0] in ORDER


@requirement("MQQB-2.2-01", "MQMQ-2.2.18-01")
def test_integers_are_little_endian() -> None:
    """A handmade packet in which every integer differs from its byte-swapped value."""
    user = handmade.user_header(
        source=GUID,
        time_to_be_received=0x01020304,
        sent_time=0x11121314,
        message_id=0x21222324,
        destination=(7, handmade.direct_name("Ω:\u6d88")),
    )
    properties = handmade.properties_header(
        message_class=0x4001,
        body_type=0x31323334,
        application_tag=0x41424344,
        body=bytes(0x0102),
        label="ΩÄ",
        privacy_level=0x51525354,
    )
    session = handmade.session_header(ack=0x6162, recoverable_flags=0x71727374)
    data = handmade.user_message(
        user=user, properties=properties, session=session, time_to_reach_queue=0x0A0B0C0D
    )
    expected = {
        "BaseHeader.TimeToReachQueue": (12, b"\x0d\x0c\x0b\x0a"),
        "UserHeader.TimeToBeReceived": (48, b"\x04\x03\x02\x01"),
        "UserHeader.SentTime": (52, b"\x14\x13\x12\x11"),
        "UserHeader.MessageID": (56, b"\x24\x23\x22\x21"),
        "MessagePropertiesHeader.MessageClass": (76 + 2, b"\x01\x40"),
        "MessagePropertiesHeader.BodyType": (76 + 24, b"\x34\x33\x32\x31"),
        "MessagePropertiesHeader.ApplicationTag": (76 + 28, b"\x44\x43\x42\x41"),
        "MessagePropertiesHeader.MessageSize": (76 + 32, b"\x02\x01\0\0"),
        "MessagePropertiesHeader.PrivacyLevel": (76 + 40, b"\x54\x53\x52\x51"),
        "SessionHeader.AckSequenceNumber": (len(data) - 16, b"\x62\x61"),
        "SessionHeader.RecoverableMsgAckFlags": (len(data) - 12, b"\x74\x73\x72\x71"),
    }
    record = assert_same(USER_MESSAGE, data)
    values = flat(record)
    for path, (offset, raw) in expected.items():
        assert data[offset : offset + len(raw)] == raw, path
        assert values[path] == int(raw[::-1].hex(), 16), path
    assert data[66:74] == b"\xa9\x03\x3a\x00\x88\x6d\0\0"
    assert record.UserHeader.DestinationQueue.DirectFormatName == "Ω:\u6d88"
    assert record.MessagePropertiesHeader.Label == "ΩÄ"
    assert str(record.UserHeader.SourceQueueManager) == "01020304-0506-0708-090a-0b0c0d0e0f10"


@requirement("MQQB-2.2-02")
def test_a_message_with_everything_by_json() -> None:
    """The names of all headers and their parts, and a round trip."""
    data = message(*PARTS)
    as_json = msmqwire.to_json(msmqwire.parse(data))
    assert (as_json["packet"], as_json["size"], list(as_json["fields"])) == ("UserMessage", len(data), ORDER)
    assert msmqwire.build(as_json) == msmqwire.from_json(as_json).to_bytes() == data
    assert as_json["fields"]["TransactionHeader"]["TxSequenceID"] == {"Ordinal": 1, "TimeStamp": 2}
    assert as_json["fields"]["DebugHeader"]["QueueIdentifier"] == "01020304-0506-0708-090a-0b0c0d0e0f10"
    assert as_json["fields"]["SecurityHeader"]["SecurityData"]["SecurityID"] == "3132333435"
    element = as_json["fields"]["MultiQueueFormatHeader"]["Destination"]["FormatNameList"][0]
    assert element["FormatName"] == {"DirectFormatName": "OS:ab\\c"}


@pytest.mark.parametrize(
    "name, start",
    [
        proving("BaseHeader", 0),
        proving("UserHeader", 16),
        proving("SecurityHeader", 92),
        proving("MessagePropertiesHeader", 136),
    ],
)
@requirement("MQMQ-2.2.20-13")
def test_captured_offsets(name: str, start: int) -> None:
    data = bytes.fromhex((VECTORS / "MS-MQQB-4.1.7-UserMessage.hex").read_text())
    printed = bytes.fromhex((VECTORS / "MS-MQQB-4.1.7-UserMessage.printed.hex").read_text())
    assert (len(data), len(printed), data[:1650]) == (2224, 1650, printed)
    packet = msmqwire.parse(data)
    assert packet.BaseHeader.PacketSize == 2224
    assert header_spans(packet)[name][0] == start
    # the items with their own place in the row
    assert data[64:66] == struct.pack("<H", packet.UserHeader.DestinationQueue.Count) == b"\x1a\0"
    assert data[108:136] == packet.SecurityHeader.SecurityData.SecurityID
    assert data[192:222] == handmade.wide(packet.MessagePropertiesHeader.Label)
    assert data[222:2222] == packet.MessagePropertiesHeader.MessageBody
    assert_refused(msmqwire.parse, printed, "MessagePropertiesHeader.MessageBody", 1650)


def headers_in(node: object, found: set[str]) -> set[str]:
    """The names of all structures that a packet is made of."""
    if isinstance(node, Header):
        if node.name in found:
            return found
        found.add(node.name)
    if isinstance(node, Mapping):
        node = tuple(node.values())
    if isinstance(node, tuple | list):
        inside = list(node)
    else:
        inside = [getattr(node, field.name) for field in fields(node)] if is_dataclass(node) else []
    for part in inside:
        headers_in(part, found)
    return found


@requirement("MQMQ-2.2.13-01")
def test_a_property_variant_is_in_no_message() -> None:
    names = headers_in(USER_MESSAGE, set())
    assert {"UserMessage", "UserHeader", "DirectQueueFormatName", "SecurityData", "SessionHeader"} <= names
    assert not names & headers_in(PROPVARIANT, set())
