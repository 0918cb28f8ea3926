"""MessagePropertiesHeader and the classes of messages: [MS-MQMQ] 2.2.18.1.6 and 2.2.19.3."""

from __future__ import annotations

import struct
from typing import Any

import pytest

import msmqwire
from msmqwire.constants import EncryptionAlgorithm, HashAlgorithm, PrivacyLevel
from msmqwire.constants.message_class import (
    MessageClass,
    class_name,
    is_about_receive,
    is_legal_class,
    is_negative,
)
from msmqwire.headers import MESSAGE_PROPERTIES_HEADER as HEADER
from tests.support import handmade
from tests.support.codec_checks import (
    assert_bits,
    assert_field,
    assert_refused,
    assert_same,
    assert_values,
    differences,
    proving,
    requirement,
)

BASE = handmade.properties_header(hash_algorithm=0, encryption_algorithm=0)
NAME = "MessagePropertiesHeader"


@pytest.mark.parametrize(
    "path, offset, data, value",
    [
        proving("MessageClass", 2, b"\x02\x80", 0x8002, ids="MQMQ-2.2.19.3-08"),
        proving("CorrelationID", 4, bytes(range(1, 21)), bytes(range(1, 21)), ids="MQMQ-2.2.19.3-09"),
        proving("BodyType", 24, b"\x04\x03\x02\x01", 0x01020304, ids="MQMQ-2.2.19.3-12"),
        proving("BodyType", 24, b"\x08\0\0\0", 8, ids="MQMQ-2.2.19.3-12", name="BodyType-8"),
        proving("ApplicationTag", 28, b"\x14\x13\x12\x11", 0x11121314, ids="MQMQ-2.2.19.3-13"),
        proving("PrivacyLevel", 40, b"\x24\x23\x22\x21", 0x21222324, ids="MQMQ-2.2.19.3-18"),
        proving("HashAlgorithm", 44, b"\x34\x33\x32\x31", 0x31323334, ids="MQMQ-2.2.19.3-22"),
        proving("EncryptionAlgorithm", 48, b"\x44\x43\x42\x41", 0x41424344, ids="MQMQ-2.2.19.3-32"),
    ],
)
def test_fields(path: str, offset: int, data: bytes, value: Any) -> None:
    assert len(BASE) == 56
    assert_field(HEADER, BASE, path, offset, data, value)


@requirement("MQMQ-2.2.19.3-01")
@pytest.mark.parametrize(
    "name, mask",
    [
        proving("PA", 0x01, ids="MQMQ-2.2.19.3-02"),
        proving("PR", 0x02, ids="MQMQ-2.2.19.3-03"),
        proving("NA", 0x04, ids="MQMQ-2.2.19.3-04"),
        proving("NR", 0x08, ids="MQMQ-2.2.19.3-05"),
        *(proving(f"X{bit}", 1 << bit, ids="MQMQ-2.2.19.3-06") for bit in (4, 5, 6, 7)),
    ],
)
def test_flags(name: str, mask: int) -> None:
    assert_bits(HEADER, BASE, f"Flags.{name}", 0, 1, mask)


@requirement("MQMQ-2.2.19.3-01")
def test_all_combinations_of_the_low_bits() -> None:
    for word in range(16):
        data = handmade.properties_header(flags=word, hash_algorithm=0, encryption_algorithm=0)
        flags = assert_same(HEADER, data).Flags
        assert tuple(bool(word >> i & 1) for i in range(4)) == (flags.PA, flags.PR, flags.NA, flags.NR)


@requirement("MQMQ-2.2.19.3-06")
def test_unused_bits() -> None:
    """Clear by default, and ignored when parsed."""
    assert HEADER.build({})[0] == 0
    before = msmqwire.parse(handmade.user_message(properties=handmade.properties_header(flags=0x05)))
    data = handmade.user_message(properties=handmade.properties_header(flags=0xF5))
    after = msmqwire.parse(data)
    assert differences(before, after) == {f"{NAME}.Flags.X{bit}" for bit in (4, 5, 6, 7)}
    assert msmqwire.build(after) == data


@requirement("MQMQ-2.2.19.3-07", "MQMQ-2.2.19.3-42", "MQMQ-2.2.19.3-43")
@pytest.mark.parametrize("characters", [0, 1, 2, 15, 248, 249])
def test_label(characters: int) -> None:
    label = "".join(chr(0x41 + i % 60) for i in range(characters))
    data = handmade.properties_header(label=label, body=b"body")
    assert data[1] == characters + 1
    assert data[56 : 56 + 2 * characters + 2] == label.encode("utf-16-le") + b"\0\0"
    record = assert_same(HEADER, data)
    assert record.LabelLength == characters + 1
    assert record.Label == label
    assert record.MessageBody == b"body"
    built = HEADER.build({"Label": label, "MessageBody": b"body"})
    assert built == data


@requirement("MQMQ-2.2.19.3-07", "MQMQ-2.2.19.3-42")
def test_no_label() -> None:
    record = assert_same(HEADER, handmade.properties_header(body=b"body"))
    assert record.LabelLength == 0
    assert record.Label is None
    assert HEADER.build({"MessageBody": b"body"})[56:] == b"body"


@requirement("MQMQ-2.2.19.3-07", "MQQB-3.1.5.1.3-01")
@pytest.mark.parametrize("length", [0xFB, 0xFC, 0xFF])
def test_labels_that_are_too_long(length: int) -> None:
    properties = handmade.properties_header(label="x" * (length - 1), label_length=length)
    assert_refused(HEADER, properties, f"{NAME}.LabelLength", 1)
    assert_refused(msmqwire.parse, handmade.user_message(properties=properties), f"{NAME}.LabelLength", 69)


@requirement("MQMQ-2.2.19.3-07")
def test_the_longest_label() -> None:
    data = handmade.properties_header(label="x" * 249)
    assert data[1] == 0xFA
    assert assert_same(HEADER, data).Label == "x" * 249


@requirement("MQMQ-2.2.19.3-15")
@pytest.mark.parametrize("size", [0, 1, 255, 256, 0x10203])
def test_message_size(size: int) -> None:
    body = bytes(i % 251 for i in range(size))
    data = handmade.properties_header(body=body)
    assert data[32:36] == struct.pack("<L", size)
    record = assert_same(HEADER, data)
    assert record.MessageSize == size
    assert record.MessageBody == body
    assert HEADER.build({"MessageBody": body}) == data


@requirement("MQQB-3.1.5.1.3-01")
@pytest.mark.parametrize(
    "field, offset, size, blamed",
    [
        proving("MessageSize", 32, 9, ("MessageSize", 32), ids="MQMQ-2.2.19.3-15"),
        proving(
            "MessageSize", 32, 0xFFFFFFFF, ("MessageSize", 32), ids="MQMQ-2.2.19.3-15", name="MessageSize-max"
        ),
        proving("AllocationBodySize", 36, 9, ("AllocationBodySize", 36), ids="MQMQ-2.2.19.3-16"),
        proving("ExtensionSize", 52, 9, ("ExtensionSize", 52), ids="MQMQ-2.2.19.3-41"),
        proving("ExtensionSize", 52, 0xFFFFFFFF, ("ExtensionSize", 52), name="ExtensionSize-max"),
        proving("ExtensionSize", 52, 1, ("MessageSize", 32), name="ExtensionSize-that-leaves-too-little"),
    ],
)
def test_sizes_past_the_packet(field: str, offset: int, size: int, blamed: tuple[str, int]) -> None:
    """Eight bytes remain after the fixed part, and the body takes them all."""
    data = handmade.user_message(properties=handmade.properties_header(body=bytes(8)))
    at = 68 + offset
    data = data[:at] + struct.pack("<L", size) + data[at + 4 :]
    assert_refused(msmqwire.parse, data, f"{NAME}.{blamed[0]}", 68 + blamed[1])


@requirement("MQMQ-2.2.19.3-16")
def test_allocation_body_size() -> None:
    data = handmade.properties_header(body=b"12345", slack=b"\1\2\3")
    assert data[36:40] == b"\x08\0\0\0"
    record = assert_same(HEADER, data)
    assert (record.MessageSize, record.AllocationBodySize) == (5, 8)
    assert record.MessageBody == b"12345"
    assert record.MessageBodySlack == b"\1\2\3"


@requirement("MQMQ-2.2.19.3-17")
def test_message_size_and_allocation_body_size() -> None:
    """Both default to the bytes on the wire; when parsed, the larger counts and must fit the packet."""
    built = HEADER.build({"MessageBody": b"12345"})
    assert built[32:40] == b"\x05\0\0\0\x05\0\0\0"
    smaller = handmade.properties_header(body=b"12345", allocation_body_size=2)
    record = assert_same(HEADER, smaller)
    assert (record.MessageBody, record.AllocationBodySize) == (b"12345", 2)
    larger = handmade.properties_header(body=b"1234", slack=bytes(4))
    record, end = HEADER.read(larger + b"next")
    assert (record.MessageBody, end) == (b"1234", 64)
    message = handmade.user_message(
        properties=handmade.properties_header(body=b"1234", allocation_body_size=5)
    )
    assert_refused(msmqwire.parse, message, f"{NAME}.AllocationBodySize", 104)


@requirement("MQMQ-2.2.19.3-41", "MQMQ-2.2.19.3-44", "MQMQ-2.2.19.3-45")
@pytest.mark.parametrize("label", [None, "", "ab", "abc"])
@pytest.mark.parametrize("extension", [b"", b"\xe1", b"\xe1\xe2\xe3"])
@pytest.mark.parametrize("body", [b"", b"\xb0", b"\xb0\xb1\xb2"])
def test_extension_and_body_are_not_aligned(label: str | None, extension: bytes, body: bytes) -> None:
    text = b"" if label is None else label.encode("utf-16-le") + b"\0\0"
    data = handmade.properties_header(label=label, extension=extension, body=body)
    assert data[52:56] == struct.pack("<L", len(extension))
    assert data[56:].startswith(text + extension + body)
    record = assert_same(HEADER, data)
    assert record.ExtensionSize == len(extension)
    assert record.ExtensionData == extension
    assert record.MessageBody == body
    assert HEADER.build({"Label": label, "ExtensionData": extension, "MessageBody": body}) == data


@requirement("MQMQ-2.2.19.3-46", "MQMQ-2.2.19.3-47")
@pytest.mark.parametrize("size", range(9))
@pytest.mark.parametrize("fill", [b"\0", b"\xab"])
def test_padding(size: int, fill: bytes) -> None:
    data = handmade.properties_header(label="a", body=b"b" * size, fill=fill)
    assert len(data) == (56 + 4 + size + 3) // 4 * 4
    record, end = HEADER.read(data + b"next header")
    assert end == len(data)
    assert record.MessageBody == b"b" * size
    assert record.Padding == fill * (-size % 4)
    assert_same(HEADER, data)
    assert len(HEADER.build({"Label": "a", "MessageBody": b"b" * size})) == len(data)


def values_of(offset: int, size: int, field: str, number: int) -> None:
    data = struct.pack("<L", number)[:size]
    if int.from_bytes(BASE[offset : offset + size], "little") == number:
        assert getattr(HEADER.parse(BASE), field) == number
        assert HEADER.build({"HashAlgorithm": 0, "EncryptionAlgorithm": 0, field: number}) == BASE
    else:
        assert_field(HEADER, BASE, field, offset, data, number)


@requirement("MQMQ-2.2.19.3-19")
@pytest.mark.parametrize("level", [0, 1, 3, 5])
def test_privacy_levels(level: int) -> None:
    values_of(40, 4, "PrivacyLevel", level)
    assert [member.value for member in PrivacyLevel] == [0, 1, 3, 5]


@pytest.mark.parametrize(
    "number, name",
    [
        proving(0x8001, "CALG_MD2", ids="MQMQ-2.2.19.3-23", name="MD2"),
        proving(0x8002, "CALG_MD4", ids="MQMQ-2.2.19.3-24", name="MD4"),
        proving(0x8003, "CALG_MD5", ids="MQMQ-2.2.19.3-25", name="MD5"),
        proving(0x8004, "CALG_SHA1", ids="MQMQ-2.2.19.3-26", name="SHA1"),
        proving(0x800C, "CALG_SHA_256", ids="MQMQ-2.2.19.3-27", name="SHA256"),
        proving(0x800E, "CALG_SHA_512", ids="MQMQ-2.2.19.3-28", name="SHA512"),
    ],
)
def test_hash_algorithms(number: int, name: str) -> None:
    values_of(44, 4, "HashAlgorithm", number)
    assert HashAlgorithm(number).name == name


@pytest.mark.parametrize(
    "number, name",
    [
        proving(0x6602, "CALG_RC2", ids="MQMQ-2.2.19.3-33", name="RC2"),
        proving(0x660E, "CALG_AES_128", ids="MQMQ-2.2.19.3-34", name="AES128"),
        proving(0x660F, "CALG_AES_192", ids="MQMQ-2.2.19.3-35", name="AES192"),
        proving(0x6610, "CALG_AES_256", ids="MQMQ-2.2.19.3-36", name="AES256"),
        proving(0x6801, "CALG_RC4", ids="MQMQ-2.2.19.3-37", name="RC4"),
    ],
)
def test_encryption_algorithms(number: int, name: str) -> None:
    values_of(48, 4, "EncryptionAlgorithm", number)
    assert EncryptionAlgorithm(number).name == name


CLASSES = [
    ("NORMAL", 0x0000),
    ("REPORT", 0x0001),
    ("ACK_REACH_QUEUE", 0x0002),
    ("ORDER_ACK", 0x00FF),
    ("ACK_RECEIVE", 0x4000),
    ("NACK_BAD_DST_Q", 0x8000),
    ("NACK_DELETED", 0x8001),
    ("NACK_REACH_QUEUE_TIMEOUT", 0x8002),
    ("NACK_Q_EXCEED_QUOTA", 0x8003),
    ("NACK_ACCESS_DENIED", 0x8004),
    ("NACK_HOP_COUNT_EXCEEDED", 0x8005),
    ("NACK_BAD_SIGNATURE", 0x8006),
    ("NACK_BAD_ENCRYPTION", 0x8007),
    ("NACK_NOT_TRANSACTIONAL_Q", 0x8009),
    ("NACK_NOT_TRANSACTIONAL_MSG", 0x800A),
    ("NACK_UNSUPPORTED_CRYPTO_PROVIDER", 0x800B),
    ("NACK_Q_DELETED", 0xC000),
    ("NACK_Q_PURGED", 0xC001),
    ("NACK_RECEIVE_TIMEOUT", 0xC002),
    ("NACK_RECEIVE_REJECTED", 0xC004),
]


@pytest.mark.parametrize(
    "name, number",
    [proving(*row, ids=f"MQMQ-2.2.18.1.6-{i:02}") for i, row in enumerate(CLASSES, 1)],
)
def test_message_classes(name: str, number: int) -> None:
    """The number on the wire, and its name."""
    values_of(2, 2, "MessageClass", number)
    assert MessageClass(number).name == f"MQMSG_CLASS_{name}"
    assert class_name(number) == name
    assert (
        msmqwire.parse(
            handmade.user_message(properties=handmade.properties_header(message_class=number))
        ).MessagePropertiesHeader.MessageClass
        == number
    )


@requirement("MQMQ-2.2.18.1.6-22")
def test_classes_of_applications() -> None:
    for number in range(0x10000):
        assert is_legal_class(number) == (number & 0x1E00 == 0)
    for number in (0x2001, 0x01FE, 0xE1FF, 0x0200, 0x1E00, 0xFFFF):
        values_of(2, 2, "MessageClass", number)


@requirement("MQMQ-2.2.18.1.6-23")
def test_bits_of_a_class() -> None:
    for name, number in CLASSES:
        assert is_negative(number) == name.startswith("NACK")
    assert {name for name, number in CLASSES if is_about_receive(number)} == {
        "ACK_RECEIVE",
        "NACK_Q_DELETED",
        "NACK_Q_PURGED",
        "NACK_RECEIVE_TIMEOUT",
        "NACK_RECEIVE_REJECTED",
    }
    assert {member.value for member in MessageClass} == {number for _, number in CLASSES}
    assert (class_name(0x8008), class_name(0xC003)) == ("0x8008", "0xC003")


@requirement("MQMQ-2.2.19.3-48")
def test_captured_header() -> None:
    data = bytes.fromhex(
        "0F 0F 00 00" + "00" * 20 + "08 00 00 00 00 00 00 00 D0 07 00 00 D0 07 00 00"
        "00 00 00 00 04 80 00 00 01 68 00 00 00 00 00 00"
        "6D 00 71 00 73 00 65 00 6E 00 64 00 65 00 72 00 20 00 6C 00 61 00 62 00 65 00 6C 00 00 00"
        + "61 00" * 1000
        + "00 00"
    )
    assert len(data) == 2088
    assert_values(
        HEADER,
        data,
        {
            "Flags.PA": True,
            "Flags.PR": True,
            "Flags.NA": True,
            "Flags.NR": True,
            **{f"Flags.X{bit}": False for bit in (4, 5, 6, 7)},
            "LabelLength": 15,
            "MessageClass": 0,
            "CorrelationID": bytes(20),
            "BodyType": 8,
            "ApplicationTag": 0,
            "MessageSize": 2000,
            "AllocationBodySize": 2000,
            "PrivacyLevel": 0,
            "HashAlgorithm": 0x8004,
            "EncryptionAlgorithm": 0x6801,
            "ExtensionSize": 0,
            "Label": "mqsender label",
            "ExtensionData": b"",
            "MessageBody": b"a\0" * 1000,
            "MessageBodySlack": b"",
            "Padding": b"\0\0",
        },
    )


@requirement("MQQB-3.1.5.1.3-01")
@pytest.mark.parametrize(
    "path, offset",
    [
        ("Flags", 0),
        ("LabelLength", 1),
        ("MessageClass", 2),
        ("CorrelationID", 4),
        ("BodyType", 24),
        ("ApplicationTag", 28),
        ("MessageSize", 32),
        ("AllocationBodySize", 36),
        ("PrivacyLevel", 40),
        ("HashAlgorithm", 44),
        ("EncryptionAlgorithm", 48),
        ("ExtensionSize", 52),
    ],
)
def test_cuts(path: str, offset: int) -> None:
    """A packet that ends in the middle of a field, with a matching PacketSize."""
    data = handmade.user_message()[: 68 + offset]
    data = data[:8] + struct.pack("<L", len(data)) + data[12:]
    assert_refused(msmqwire.parse, data, f"{NAME}.{path}", len(data))
