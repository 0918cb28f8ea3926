"""A message as sent to a remote reader: [MS-MQRR] 2.2.5."""

from __future__ import annotations

import struct
from ipaddress import IPv6Address, ip_address
from typing import Any
from uuid import UUID

import pytest

import msmqwire
from msmqwire.headers import (
    COMPOUND_MESSAGE_HEADER,
    DEAD_LETTER_HEADER,
    EXTENDED_ADDRESS_HEADER,
    EXTENSION_HEADER,
    SOURCE_ADDRESS,
    SRMP_ENVELOPE_HEADER,
    SUBQUEUE_HEADER,
    source_address,
)
from msmqwire.packets import REMOTE_READ_MESSAGE, USER_MESSAGE
from tests.support import handmade
from tests.support.codec_checks import (
    assert_bits,
    assert_field,
    assert_refused,
    assert_same,
    differences,
    flat,
    nested,
    proving,
    requirement,
)

TEXT = "01020304-0506-0708-090a-0b0c0d0e0f10"
GUID = bytes.fromhex("04 03 02 01 06 05 08 07 09 0A 0B 0C 0D 0E 0F 10")
PATH = "host\\private$\\dead"  # 18 characters
SUBQUEUE = handmade.subqueue_header()
EXTENSION = handmade.extension_header(0, 0)
ADDRESS = handmade.extended_address_header()
BEHIND = ("ExtensionHeader", "SubqueueHeader", "DeadLetterHeader", "ExtendedAddressHeader")


def parse(data: bytes) -> Any:
    return msmqwire.parse(data, protocol="remote_read")


def headers(packet: Any) -> list[str]:
    return [name for name in dict(packet) if packet[name] is not None and name != "TrailingData"]


# --- the whole packet ---


@requirement("MQRR-2.2.5-01")
@pytest.mark.parametrize("dead_letter", [b"", handmade.dead_letter_header(PATH)], ids=["without", "with"])
def test_order_of_the_headers(dead_letter: bytes) -> None:
    message = handmade.user_message(properties=handmade.properties_header(label="l", body=b"12345"))
    subqueue = handmade.subqueue_header(name="sub", abort_counter=2)
    address = handmade.extended_address_header(ip_address("10.1.2.3").packed, kind=1)
    data = handmade.remote_read_message(message, subqueue=subqueue, dead_letter=dead_letter, address=address)
    packet = assert_same(REMOTE_READ_MESSAGE, data)
    assert parse(data) == packet
    assert len(data) == len(message) + 12 + 148 + len(dead_letter) + 28
    expected = [name for name in BEHIND if dead_letter or name != "DeadLetterHeader"]
    assert headers(packet)[-len(expected) :] == expected
    offset = len(message)
    for name, size in zip(BEHIND, (12, 148, len(dead_letter), 28), strict=True):
        if packet[name] is not None:
            record, end = packet[name].schema.read(data, offset)
            assert (record, end) == (packet[name], offset + size)
            offset = end
    assert offset == len(data)
    assert packet.BaseHeader.PacketSize == len(message)
    assert packet.SubqueueHeader.SubqueueName == "sub"
    assert bytes(packet.ExtendedAddressHeader.Address[:4]) == b"\x0a\x01\x02\x03"


@requirement("MQRR-2.2.5-02", "MQRR-2.2.5.2-03")
@pytest.mark.parametrize("flags", range(32))
def test_headers_by_the_flags(flags: int) -> None:
    """Any combination of DL, SQ, X2, DI and EA: only the three bits determine what follows."""
    parts = {
        "SubqueueHeader": (0x02, handmade.subqueue_header(name="sub")),
        "DeadLetterHeader": (0x01, handmade.dead_letter_header(PATH)),
        "ExtendedAddressHeader": (0x10, handmade.extended_address_header(b"\1\2\3\4", kind=1)),
    }
    behind = b"".join(raw for bit, raw in parts.values() if flags & bit)
    data = handmade.user_message() + handmade.extension_header(len(behind), flags) + behind
    packet = assert_same(REMOTE_READ_MESSAGE, data)
    assert {name for name in parts if packet[name] is not None} == {
        n for n, (bit, _) in parts.items() if flags & bit
    }
    assert int(packet.ExtensionHeader.Flags) == flags


@requirement("MQRR-2.2.5-02", "MQRR-2.2.5.2-11")
@pytest.mark.parametrize("session", [b"", handmade.session_header(ack=3)])
def test_a_packet_without_them(session: bytes) -> None:
    """As sent by Windows Server 2003: it ends with the UserMessage."""
    data = handmade.user_message(properties=handmade.properties_header(body=b"12345"), session=session)
    packet = assert_same(REMOTE_READ_MESSAGE, data)
    assert [packet[name] for name in BEHIND] == [None] * 4
    assert not set(BEHIND) & packet.to_json()["fields"].keys()
    assert {**flat(USER_MESSAGE.parse(data)), **dict.fromkeys(BEHIND)} == flat(packet)


@requirement("MQRR-2.2.5-02")
def test_each_header_is_stepped_over_by_its_size() -> None:
    """Longer headers are accepted, and the next header follows them."""
    subqueue = handmade.subqueue_header(size=152, name="sub") + b"more"
    address = handmade.extended_address_header(b"\1\2\3\4", kind=1, size=32) + b"more"
    data = handmade.remote_read_message(subqueue=subqueue, address=address)
    packet = assert_same(REMOTE_READ_MESSAGE, data)
    assert packet.SubqueueHeader.SubqueueName == "sub"
    assert packet.SubqueueHeader.Padding == b"more"
    assert packet.ExtendedAddressHeader.AddressType == 1
    path = handmade.dead_letter_header("a")
    longer = struct.pack("<L", len(path) + 4) + path[4:] + b"more"
    packet = assert_same(
        REMOTE_READ_MESSAGE, handmade.remote_read_message(dead_letter=longer, address=address)
    )
    assert (packet.DeadLetterHeader.DeadLetterPathName, packet.DeadLetterHeader.Padding) == ("a", b"more")
    assert packet.ExtendedAddressHeader.AddressType == 1
    extension = handmade.extension_header(176, 0x12, size=16) + b"more"
    data = handmade.user_message() + extension + SUBQUEUE + ADDRESS
    packet = assert_same(REMOTE_READ_MESSAGE, data)
    assert packet.SubqueueHeader.HeaderSize == 148


@requirement("MQRR-2.2.5.2-04", "MQRR-2.2.5.2-05", "MQRR-2.2.5.2-08", "MQRR-2.2.5.2-02")
@pytest.mark.parametrize("dead_letter", [False, True])
def test_bits_and_sizes_are_filled_in(dead_letter: bool) -> None:
    fields: dict[str, Any] = {"ExtensionHeader": {}, "SubqueueHeader": {}, "ExtendedAddressHeader": {}}
    if dead_letter:
        fields["DeadLetterHeader"] = {"DeadLetterPathName": PATH}
    data = REMOTE_READ_MESSAGE.build(fields)
    start = struct.unpack_from("<L", data, 8)[0]
    rest = handmade.dead_letter_header(PATH) if dead_letter else b""
    flags = 0x13 if dead_letter else 0x12
    assert data[start:] == handmade.extension_header(176 + len(rest), flags) + SUBQUEUE + rest + ADDRESS
    assert (parse(data).DeadLetterHeader is not None) == dead_letter
    message = msmqwire.build({"packet": "RemoteReadMessage", "fields": fields})
    assert message == data


# --- the message in it ---

ALL = {
    "transaction": handmade.transaction_header(),
    "security": handmade.security_header(flags=1, security_id=b"1234"),
    "debug": handmade.debug_header(GUID),
    "srmp": handmade.srmp_envelope_header("<e/>"),
    "compound": handmade.compound_message_header(b"POST", body_size=2, body_offset=1),
    "soap": handmade.soap_header(),
    "multi_queue": handmade.multi_queue_format_header(),
    "session": handmade.session_header(ack=7),
}
NAMES = {
    "transaction": "TransactionHeader",
    "security": "SecurityHeader",
    "debug": "DebugHeader",
    "srmp": "SRMPEnvelopeHeader",
    "compound": "CompoundMessageHeader",
    "soap": "SoapHeader",
    "multi_queue": "MultiQueueFormatHeader",
    "session": "SessionHeader",
}
ORDER = [
    "BaseHeader",
    "UserHeader",
    "TransactionHeader",
    "SecurityHeader",
    "MessagePropertiesHeader",
    "DebugHeader",
    "SRMPEnvelopeHeader",
    "CompoundMessageHeader",
    "SoapHeader",
    "MultiQueueFormatHeader",
    "SessionHeader",
]


@requirement("MQRR-2.2.5.1-01", "MQRR-2.2.5.1.2-01")
def test_all_headers_of_a_message() -> None:
    data = handmade.remote_read_message(handmade.user_message(**ALL))
    packet = assert_same(REMOTE_READ_MESSAGE, data)
    assert headers(packet) == [*ORDER, "ExtensionHeader", "SubqueueHeader", "ExtendedAddressHeader"]
    offset = 0
    for name in ORDER:
        raw = packet[name].schema.build(packet[name])
        assert data[offset : offset + len(raw)] == raw
        offset += len(raw)
    assert offset == packet.BaseHeader.PacketSize + 16


@requirement("MQRR-2.2.5.1-02", "MQRR-2.2.5.1.2.1-01", "MQRR-2.2.5.1.2.2-01")
def test_srmp_headers_by_their_bit() -> None:
    data = handmade.user_message(srmp=ALL["srmp"], compound=ALL["compound"])
    assert data[60:64] == bytes.fromhex("00 0C 20 02")
    packet = assert_same(REMOTE_READ_MESSAGE, data)
    assert packet.UserHeader.Flags.AH is True
    assert packet.SRMPEnvelopeHeader.Data == "<e/>"
    assert packet.CompoundMessageHeader.Data == b"POST"
    plain = parse(handmade.user_message())
    assert (plain.UserHeader.Flags.AH, plain.SRMPEnvelopeHeader, plain.CompoundMessageHeader) == (
        False,
        None,
        None,
    )
    built = REMOTE_READ_MESSAGE.build(
        {"SRMPEnvelopeHeader": {"Data": "<e/>"}, "CompoundMessageHeader": {"Data": b"POST"}}
    )
    assert built[60:64] == bytes.fromhex("00 00 20 02")
    # the bit without its header; without the bit the headers are none
    bare = handmade.user_message(user_flags=handmade.MP | handmade.AH)
    assert_refused(parse, bare, "SRMPEnvelopeHeader.HeaderId", len(bare))
    unmarked = parse(data[:63] + b"\0" + data[64:])
    assert headers(unmarked) == headers(plain)
    assert unmarked.TrailingData == ALL["srmp"] + ALL["compound"]


@requirement("MQRR-2.2.5.1-13")
def test_session_header_by_its_bit() -> None:
    data = handmade.remote_read_message(handmade.user_message(session=handmade.session_header(ack=7)))
    packet = assert_same(REMOTE_READ_MESSAGE, data)
    assert packet.BaseHeader.Flags.SH is True
    assert packet.SessionHeader.AckSequenceNumber == 7
    assert packet.ExtensionHeader.RemainingHeadersSize == 176
    plain = parse(handmade.remote_read_message())
    assert (plain.BaseHeader.Flags.SH, plain.SessionHeader) == (False, None)
    assert REMOTE_READ_MESSAGE.build({"SessionHeader": {}})[2:4] == b"\x13\0"


@requirement("MQRR-2.2.5.1-03", "MQRR-2.2.5.1-14")
def test_fields_with_another_meaning_keep_their_place() -> None:
    """An absolute time at 12 and an address in the 16 bytes at 32: offsets within the message."""
    overlay = handmade.source_address(length=4, kind=1, address=b"\x0a\x01\x02\x03")
    user = handmade.user_header(address=overlay, destination=(7, handmade.direct_name("OS:a\\b")))
    data = handmade.remote_read_message(handmade.user_message(user=user, time_to_reach_queue=1_893_456_000))
    packet = assert_same(REMOTE_READ_MESSAGE, data)
    assert data[12:16] == struct.pack("<L", 1_893_456_000)
    assert packet.BaseHeader.TimeToReachQueue == 1_893_456_000
    message = USER_MESSAGE.parse(data[: packet.BaseHeader.PacketSize])
    assert nested(message) == {name: value for name, value in nested(packet).items() if name not in BEHIND}


# --- UserHeader with an address in it ---


@requirement("MQRR-2.2.5.1-07", "MQRR-2.2.5.1-08", "MQRR-2.2.5.1-09", "MQRR-2.2.5.1-10")
@pytest.mark.parametrize(
    ("address", "overlay"),
    [
        ("10.1.2.3", (4, 1, 0, bytes((10, 1, 2, 3, 0, 0, 0, 0)))),
        ("2001:db8:1:2:3:4:5:6", (16, 6, 0, bytes.fromhex("20010db800010002"))),
        ("fe80::1%7", (16, 6, 7, bytes.fromhex("fe80000000000000"))),
        ("fe80::1%4294967295", (16, 6, 0xFFFFFFFF, bytes.fromhex("fe80000000000000"))),
    ],
)
def test_an_address_is_built_with_its_true_length_type_and_scope(address: str, overlay: Any) -> None:
    length, kind, scope, start = overlay
    fields = {
        "QueueManagerAddress": source_address(ip_address(address)),
        "DestinationQueue": {"DirectFormatName": "OS:a\\b"},
    }
    data = REMOTE_READ_MESSAGE.build({"UserHeader": fields})
    assert data[32:48] == handmade.source_address(length=length, kind=kind, scope=scope, address=start)


@pytest.mark.parametrize(
    ("path", "offset", "data", "value"),
    [
        proving("AddressLength", 0, b"\x02\x01", 0x0102, ids="MQRR-2.2.5.1-07"),
        proving("AddressType", 2, b"\x02\x01", 0x0102, ids="MQRR-2.2.5.1-08"),
        proving("AddressScope", 4, b"\x04\x03\x02\x01", 0x01020304, ids="MQRR-2.2.5.1-09"),
        proving("Address", 8, bytes(range(1, 9)), bytes(range(1, 9)), ids="MQRR-2.2.5.1-10"),
    ],
)
def test_fields_of_the_overlay(path: str, offset: int, data: bytes, value: Any) -> None:
    assert_field(SOURCE_ADDRESS, bytes(16), path, offset, data, value)


@pytest.mark.parametrize("scope", ["eth0", "4294967296", "-1", "²"])
def test_an_address_of_no_numbered_scope_is_refused(scope: str) -> None:
    with pytest.raises(msmqwire.InvalidValue) as caught:
        source_address(IPv6Address(f"fe80::1%{scope}"))
    assert caught.value.path.endswith("AddressScope")


@requirement("MQRR-2.2.5.1-04", "MQRR-2.2.5.1-06", "MQRR-2.2.5.1-11")
def test_address_overlay() -> None:
    overlay = struct.pack("<HHL8s", 16, 6, 0x01020304, bytes(range(1, 9)))
    user = handmade.user_header(
        source=GUID,
        address=overlay,
        time_to_be_received=0x11121314,
        sent_time=0x21222324,
        message_id=0x31323334,
        destination=(7, handmade.direct_name("OS:a\\b")),
    )
    assert user[16:32] == overlay
    packet = parse(handmade.remote_read_message(handmade.user_message(user=user)))
    header = packet.UserHeader
    source_address = SOURCE_ADDRESS.parse(header.QueueManagerAddress.bytes_le)
    assert nested(source_address) == {
        "AddressLength": 16,
        "AddressType": 6,
        "AddressScope": 0x01020304,
        "Address": bytes(range(1, 9)),
    }
    assert header.SourceQueueManager == UUID(TEXT)
    assert (header.TimeToBeReceived, header.SentTime, header.MessageID) == (
        0x11121314,
        0x21222324,
        0x31323334,
    )
    assert header.DestinationQueue.DirectFormatName == "OS:a\\b"
    fields = {"QueueManagerAddress": UUID(bytes_le=SOURCE_ADDRESS.build(nested(source_address)))}
    assert REMOTE_READ_MESSAGE.build({"UserHeader": fields})[32:48] == overlay


@pytest.mark.parametrize(
    "path, offset, data, value",
    [
        proving("AddressLength", 0, b"\x02\x01", 0x0102, ids="MQRR-2.2.5.1-04"),
        proving("AddressType", 2, b"\x12\x11", 0x1112, ids="MQRR-2.2.5.1-04"),
        proving("AddressScope", 4, b"\x24\x23\x22\x21", 0x21222324, ids="MQRR-2.2.5.1-04"),
        proving("Address", 8, bytes(range(1, 9)), bytes(range(1, 9)), ids="MQRR-2.2.5.1-04"),
    ],
)
def test_source_address(path: str, offset: int, data: bytes, value: Any) -> None:
    assert_field(SOURCE_ADDRESS, bytes(16), path, offset, data, value)


@pytest.mark.parametrize(
    "address, kind, scope",
    [("10.1.2.3", 1, 0), ("fe80::102:304:506:708", 6, 0x0A0B0C0D)],
)
def test_addresses_of_both_kinds(address: str, kind: int, scope: int) -> None:
    """The true length, and as much of the address as fits in eight bytes."""
    packed = ip_address(address).packed
    data = handmade.source_address(length=len(packed), kind=kind, scope=scope, address=packed[:8])
    record = assert_same(SOURCE_ADDRESS, data)
    assert (record.AddressLength, record.AddressType, record.AddressScope) == (len(packed), kind, scope)
    assert record.Address == packed[:8].ljust(8, b"\0")


# --- SRMPEnvelopeHeader and CompoundMessageHeader ---


@pytest.mark.parametrize(
    "path, offset, data, value",
    [
        proving("HeaderId", 0, b"\x02\x01", 0x0102, ids="MQRR-2.2.5.1.2.1-02"),
        proving("HeaderId", 0, b"\xff\xff", 0xFFFF, ids="MQRR-2.2.5.1.2.1-02", name="HeaderId-max"),
        proving("Reserved", 2, b"\x12\x11", 0x1112, ids="MQRR-2.2.5.1.2.1-03"),
        proving("Data", 8, b"<\0x\0/\0>\0", "<x/>", ids="MQRR-2.2.5.1.2.1-05"),
    ],
)
def test_srmp_envelope_fields(path: str, offset: int, data: bytes, value: Any) -> None:
    assert_field(SRMP_ENVELOPE_HEADER, handmade.srmp_envelope_header("<e/>"), path, offset, data, value)


@requirement("MQRR-2.2.5.1.2.1-04", "MQRR-2.2.5.1.2.1-05")
@pytest.mark.parametrize("characters", [0, 1, 2, 300])
def test_srmp_envelope_length(characters: int) -> None:
    """Characters including the null; a byte count is accepted if only that ends on the null."""
    text = "x" * characters
    data = handmade.srmp_envelope_header(text)
    assert data[4:8] == struct.pack("<L", characters + 1)
    record, end = SRMP_ENVELOPE_HEADER.read(data + bytes(4))
    assert (record.DataLength, record.Data, end) == (characters + 1, text, len(data))
    assert len(data) == 8 + (2 * characters + 2 + 3) // 4 * 4
    assert_same(SRMP_ENVELOPE_HEADER, data)
    assert SRMP_ENVELOPE_HEADER.build({"Data": text}) == data
    if not characters:
        return  # the padding would be taken for the null
    bytes_told = handmade.srmp_envelope_header(text, length=2 * characters + 2)
    record = assert_same(SRMP_ENVELOPE_HEADER, bytes_told)
    assert (record.DataLength, record.Data) == (2 * characters + 2, text)


@requirement("MQRR-2.2.5.1.2.1-04", "MQRR-2.2.5.1.2.1-05")
def test_srmp_envelope_length_in_bytes_in_a_packet() -> None:
    envelope = handmade.srmp_envelope_header("<e/>", length=10)
    data = handmade.user_message(srmp=envelope, compound=handmade.compound_message_header(b"POST"))
    assert parse(data).SRMPEnvelopeHeader.Data == "<e/>"


@pytest.mark.parametrize(
    "path, offset, data, value",
    [
        proving("HeaderId", 0, b"\x02\x01", 0x0102, ids="MQRR-2.2.5.1.2.2-02"),
        proving("Reserved", 2, b"\x12\x11", 0x1112, ids="MQRR-2.2.5.1.2.2-03"),
        proving("MsgBodySize", 8, b"\x24\x23\x22\x21", 0x21222324, ids="MQRR-2.2.5.1.2.2-05"),
        proving("MsgBodyOffset", 12, b"\x34\x33\x32\x31", 0x31323334, ids="MQRR-2.2.5.1.2.2-06"),
        proving("Data", 16, b"\xd1\xd2\xd3\xd4", b"\xd1\xd2\xd3\xd4", ids="MQRR-2.2.5.1.2.2-07"),
    ],
)
def test_compound_message_fields(path: str, offset: int, data: bytes, value: Any) -> None:
    assert_field(
        COMPOUND_MESSAGE_HEADER, handmade.compound_message_header(b"POST"), path, offset, data, value
    )


@requirement("MQRR-2.2.5.1.2.2-04", "MQRR-2.2.5.1.2.2-07")
@pytest.mark.parametrize("size", [0, 1, 4, 0x10203])
def test_compound_message_size(size: int) -> None:
    body = bytes(1 + i % 255 for i in range(size))
    data = handmade.compound_message_header(body)
    assert data[4:8] == struct.pack("<L", size)
    record, end = COMPOUND_MESSAGE_HEADER.read(data + b"next")
    assert (record.HTTPBodySize, record.Data, end) == (size, body, 16 + (size + 3) // 4 * 4)
    assert_same(COMPOUND_MESSAGE_HEADER, data)
    assert COMPOUND_MESSAGE_HEADER.build({"Data": body}) == data


@requirement("MQRR-2.2.5.1.2.1-03", "MQRR-2.2.5.1.2.2-03")
def test_reserved_of_both_is_ignored() -> None:
    def message(reserved: int) -> bytes:
        return handmade.user_message(
            srmp=handmade.srmp_envelope_header(reserved=reserved, header_id=reserved),
            compound=handmade.compound_message_header(reserved=reserved, header_id=reserved),
        )

    changes = differences(parse(message(0)), parse(message(0xFFFF)))
    assert changes == {
        f"{name}.{field}"
        for name in ("SRMPEnvelopeHeader", "CompoundMessageHeader")
        for field in ("HeaderId", "Reserved")
    }


@requirement("MQRR-2.2.5.1.2.1-04", "MQRR-2.2.5.1.2.2-04")
@pytest.mark.parametrize("size", [0x7FFFFFFF, 0xFFFFFFFF])
def test_sizes_past_the_packet(size: int) -> None:
    data = handmade.user_message(srmp=handmade.srmp_envelope_header(length=size), compound=ALL["compound"])
    assert_refused(parse, data, "SRMPEnvelopeHeader.DataLength", 124 + 4)
    compound = handmade.compound_message_header(size=size)
    data = handmade.user_message(srmp=handmade.srmp_envelope_header("<e/>"), compound=compound)
    assert_refused(parse, data, "CompoundMessageHeader.HTTPBodySize", 124 + 20 + 4)


# --- ExtensionHeader ---


@pytest.mark.parametrize(
    "path, offset, data, value",
    [
        proving("RemainingHeadersSize", 4, b"\x04\x03\x02\x01", 0x01020304, ids="MQRR-2.2.5.2-02"),
        proving("Reserved", 9, b"\x11\x12\x13", b"\x11\x12\x13", ids="MQRR-2.2.5.2-10"),
    ],
)
def test_extension_fields(path: str, offset: int, data: bytes, value: Any) -> None:
    assert_field(EXTENSION_HEADER, EXTENSION, path, offset, data, value)


@requirement("MQRR-2.2.5.2-03")
@pytest.mark.parametrize(
    "name, mask",
    [
        proving("DL", 0x01, ids="MQRR-2.2.5.2-04"),
        proving("SQ", 0x02, ids="MQRR-2.2.5.2-05"),
        proving("X2", 0x04, ids="MQRR-2.2.5.2-09"),
        proving("DI", 0x08, ids="MQRR-2.2.5.2-06"),
        proving("EA", 0x10, ids="MQRR-2.2.5.2-08"),
        *(proving(f"X{bit}", 1 << bit, ids="MQRR-2.2.5.2-09") for bit in (5, 6, 7)),
    ],
)
def test_extension_flags(name: str, mask: int) -> None:
    assert_bits(EXTENSION_HEADER, EXTENSION, f"Flags.{name}", 8, 1, mask)


@requirement("MQRR-2.2.5.2-09", "MQRR-2.2.5.2-10")
def test_what_is_ignored_of_the_extension() -> None:
    behind = SUBQUEUE + ADDRESS
    plain = handmade.user_message() + handmade.extension_header(176, 0x12) + behind
    data = handmade.user_message() + handmade.extension_header(176, 0xF6, reserved=b"abc") + behind
    changes = differences(parse(plain), parse(data))
    unused = {f"ExtensionHeader.Flags.X{bit}" for bit in (2, 5, 6, 7)}
    assert changes == unused | {"ExtensionHeader.Reserved"}


@pytest.mark.parametrize(
    "schema, base, size",
    [
        proving(EXTENSION_HEADER, EXTENSION, 12, ids="MQRR-2.2.5.2-01", name="ExtensionHeader"),
        proving(SUBQUEUE_HEADER, SUBQUEUE, 148, ids="MQRR-2.2.5.3-01", name="SubqueueHeader"),
        proving(EXTENDED_ADDRESS_HEADER, ADDRESS, 28, ids="MQRR-2.2.5.5-01", name="ExtendedAddressHeader"),
    ],
)
def test_header_sizes(schema: Any, base: bytes, size: int) -> None:
    """At offset 0 and filled in; a value too small or past the packet is refused there."""
    assert len(base) == size
    assert base[:4] == struct.pack("<L", size)
    assert assert_same(schema, base).HeaderSize == size
    assert schema.build({}) == base
    longer = struct.pack("<L", size + 8) + base[4:] + bytes(range(1, 9))
    record, end = schema.read(longer + b"next")
    assert (record.HeaderSize, end) == (size + 8, size + 8)
    for wrong in (0, 3, 4, size - 1, size + 1, 0xFFFFFFFF):
        assert_refused(schema, struct.pack("<L", wrong) + base[4:], f"{schema.name}.HeaderSize", 0)


@pytest.mark.parametrize("header", BEHIND)
@pytest.mark.parametrize("more", [1, 4, 0xFFFFFF00])
def test_header_sizes_past_the_data(header: str, more: int) -> None:
    """In a packet only the data itself shows where its last headers end."""
    raw = {
        "ExtensionHeader": (0x00, b""),
        "SubqueueHeader": (0x02, SUBQUEUE),
        "DeadLetterHeader": (0x01, handmade.dead_letter_header("a")),
        "ExtendedAddressHeader": (0x10, ADDRESS),
    }
    flags, behind = raw[header]
    last = behind or EXTENSION
    size = struct.unpack_from("<L", last)[0] + more
    last = struct.pack("<L", size) + last[4:]
    front = handmade.user_message() + (handmade.extension_header(len(behind), flags) if behind else b"")
    with pytest.raises(msmqwire.MalformedPacket) as caught:
        parse(front + last)
    assert caught.value.path.startswith(f"{header}.")
    assert caught.value.offset in {len(front), len(front + last)}


# --- SubqueueHeader ---


@pytest.mark.parametrize(
    "path, offset, data, value",
    [
        proving("AbortCounter", 8, b"\x04\x03\x02\x01", 0x01020304, ids="MQRR-2.2.5.3-06"),
        proving("MoveCounter", 12, b"\x14\x13\x12\x11", 0x11121314, ids="MQRR-2.2.5.3-07"),
        proving("LastMoveTime", 16, b"\x24\x23\x22\x21", 0x21222324, ids="MQRR-2.2.5.3-08"),
        proving("SubqueueName", 20, b"s\0u\0b\0", "sub", ids="MQRR-2.2.5.3-09"),
        proving("TargetSubqueueName", 84, b"t\0o\0", "to", ids="MQRR-2.2.5.3-10"),
    ],
)
def test_subqueue_fields(path: str, offset: int, data: bytes, value: Any) -> None:
    assert_field(SUBQUEUE_HEADER, SUBQUEUE, path, offset, data, value)


@pytest.mark.parametrize(
    "name, mask, value",
    [
        proving("TM", 0x00000001, 0, ids="MQRR-2.2.5.3-03"),
        proving("AcknowledgementClass", 0x0001FFFE, 0xFFFF, ids="MQRR-2.2.5.3-04"),
        proving(
            "AcknowledgementClass",
            0x0001FFFE,
            0x8002,
            ids="MQRR-2.2.5.3-04",
            name="AcknowledgementClass-8002",
        ),
        proving("AcknowledgementClass", 0x0001FFFE, 1, ids="MQRR-2.2.5.3-04", name="AcknowledgementClass-1"),
        proving("Reserved", 0xFFFE0000, 0x7FFF, ids="MQRR-2.2.5.3-05"),
    ],
)
def test_subqueue_word(name: str, mask: int, value: int) -> None:
    assert_bits(SUBQUEUE_HEADER, SUBQUEUE, f"Flags.{name}", 4, 4, mask, value)
    if name == "AcknowledgementClass":
        word = struct.unpack_from("<L", SUBQUEUE_HEADER.build({"Flags": {name: value}}), 4)[0]
        assert word >> 1 & 0xFFFF == value


@requirement("MQRR-2.2.5.3-03", "MQRR-2.2.5.3-05", "MQRR-2.2.5.3-08", "MQRR-2.2.5.3-09", "MQRR-2.2.5.3-10")
def test_subqueue_header_that_says_nothing() -> None:
    """TM 0, never moved, no subqueue and no target: 144 zero bytes."""
    assert SUBQUEUE_HEADER.build({}) == b"\x94\0\0\0" + bytes(144)
    record = SUBQUEUE_HEADER.parse(SUBQUEUE)
    assert (record.SubqueueName, record.TargetSubqueueName, record.LastMoveTime) == ("", "", 0)
    data = handmade.remote_read_message(subqueue=handmade.subqueue_header(word=0xFFFE0000))
    before = parse(handmade.remote_read_message())
    assert differences(before, parse(data)) == {"SubqueueHeader.Flags.Reserved"}


@pytest.mark.parametrize(
    "field, offset",
    [
        proving("SubqueueName", 20, ids="MQRR-2.2.5.3-09"),
        proving("TargetSubqueueName", 84, ids="MQRR-2.2.5.3-10"),
    ],
)
@pytest.mark.parametrize("characters", [1, 31])
def test_subqueue_names(field: str, offset: int, characters: int) -> None:
    """Up to 31 characters and a null, padded with zeroes to 64 bytes."""
    name = "n" * characters
    data = SUBQUEUE_HEADER.build({field: name})
    assert data[offset : offset + 64] == name.encode("utf-16-le").ljust(64, b"\0")
    assert len(data) == 148
    assert assert_same(SUBQUEUE_HEADER, data)[field] == name


# --- DeadLetterHeader ---


@requirement("MQRR-2.2.5.4-01", "MQRR-2.2.5.4-02")
@pytest.mark.parametrize("path", ["", "a", "ab", PATH, PATH + "x"])
def test_dead_letter_header(path: str) -> None:
    size = 4 + (2 * len(path) + 2 + 3) // 4 * 4
    data = struct.pack("<L", size) + (path.encode("utf-16-le") + b"\0\0").ljust(size - 4, b"\0")
    assert data == handmade.dead_letter_header(path)
    record, end = DEAD_LETTER_HEADER.read(data + b"next")
    assert (record.HeaderSize, record.DeadLetterPathName, end) == (size, path, size)
    assert size % 4 == 0
    assert_same(DEAD_LETTER_HEADER, data)
    assert DEAD_LETTER_HEADER.build({"DeadLetterPathName": path}) == data


@requirement("MQRR-2.2.5.4-01")
@pytest.mark.parametrize("size", [0, 4, 5, 9, 0xFFFFFFFF])
def test_dead_letter_sizes_that_cannot_be(size: int) -> None:
    """Less than the shortest name, or more than the data."""
    data = handmade.dead_letter_header("", size=size)
    assert_refused(DEAD_LETTER_HEADER, data, "DeadLetterHeader.HeaderSize", 0)


@requirement("MQRR-2.2.5.4-02")
def test_dead_letter_name_without_a_null() -> None:
    data = struct.pack("<L", 8) + b"a\0b\0" + bytes(4)
    with pytest.raises(msmqwire.MalformedPacket) as caught:
        DEAD_LETTER_HEADER.read(data)
    assert (caught.value.path, caught.value.offset) == ("DeadLetterHeader.DeadLetterPathName", 8)


# --- ExtendedAddressHeader ---


@pytest.mark.parametrize(
    "path, offset, data, value",
    [
        proving("AddressLength", 4, b"\x02\x01", 0x0102, ids="MQRR-2.2.5.5-02"),
        proving("AddressType", 6, b"\x12\x11", 0x1112, ids="MQRR-2.2.5.5-03"),
        proving("AddressScope", 8, b"\x24\x23\x22\x21", 0x21222324, ids="MQRR-2.2.5.5-05"),
        proving("Address", 12, bytes(range(1, 17)), bytes(range(1, 17)), ids="MQRR-2.2.5.5-06"),
    ],
)
def test_extended_address_fields(path: str, offset: int, data: bytes, value: Any) -> None:
    assert_field(EXTENDED_ADDRESS_HEADER, ADDRESS, path, offset, data, value)


@requirement("MQRR-2.2.5.5-02", "MQRR-2.2.5.5-03", "MQRR-2.2.5.5-05", "MQRR-2.2.5.5-06")
@pytest.mark.parametrize(
    "address, kind, scope",
    [("", 0, 0), ("10.1.2.3", 1, 0), ("fe80::102:304:506:708", 6, 0x0A0B0C0D)],
)
def test_extended_addresses(address: str, kind: int, scope: int) -> None:
    packed = ip_address(address).packed if address else b""
    data = handmade.extended_address_header(packed, kind=kind, scope=scope)
    record = assert_same(EXTENDED_ADDRESS_HEADER, data)
    assert (record.AddressLength, record.AddressType, record.AddressScope) == (len(packed), kind, scope)
    assert record.Address == packed.ljust(16, b"\0")
    fields = {"AddressLength": len(packed), "AddressType": kind, "AddressScope": scope}
    assert EXTENDED_ADDRESS_HEADER.build({**fields, "Address": packed.ljust(16, b"\0")}) == data
