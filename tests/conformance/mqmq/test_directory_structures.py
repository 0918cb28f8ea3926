"""Structures outside packets: [MS-MQMQ] 2.2.1 to 2.2.5, 2.2.8, 2.2.18.1.3, 2.2.18.1.8, 2.2.21 and 2.2.22."""

from __future__ import annotations

import struct
from hashlib import md5
from itertools import product
from typing import Any
from uuid import UUID

import pytest

from msmqwire.constants import ADDRESS_LENGTH, SECURITY_INFORMATION, AddressType, ProviderType
from msmqwire.headers import (
    MESSAGE_IDENTIFIER,
    MQDSPUBLICKEY,
    MQDSPUBLICKEYS,
    MQUSERSIGNCERT,
    MQUSERSIGNCERTS,
    OBJECTID,
    PUBLICKEYBLOB,
    SEQUENCE_INFO,
    TA_ADDRESS,
    XACTUOW,
)
from tests.support import handmade
from tests.support.codec_checks import assert_field, assert_refused, assert_same, nested, proving, requirement

TEXT = "01020304-0506-0708-090a-0b0c0d0e0f10"
GUID = bytes.fromhex("04 03 02 01 06 05 08 07 09 0A 0B 0C 0D 0E 0F 10")
PROVIDER = "Microsoft Base Cryptographic Provider v1.0"


def key(size: int) -> bytes:
    return bytes(1 + i % 255 for i in range(size))


# --- MQDSPUBLICKEY ---


@requirement("MQMQ-2.2.1-01", "MQMQ-2.2.1-02", "MQMQ-2.2.1-04")
@pytest.mark.parametrize("size", [0, 1, 0x0123, 0x10203])
@pytest.mark.parametrize("provider", ["", "p", PROVIDER])
def test_public_key(size: int, provider: str) -> None:
    """Bytes, not characters, including the null; the key follows the name, even at odd offsets."""
    name = provider.encode("utf-16-le") + b"\0\0"
    data = struct.pack("<LLL", size, len(name), 1) + name + key(size)
    assert data == handmade.mqdspublickey(key(size), provider)
    record = assert_same(MQDSPUBLICKEY, data)
    assert (record.ulKeyLen, record.ulProviderLen, record.ulProviderType) == (size, len(name), 1)
    assert (record.sProviderName, record.aBuf) == (provider, key(size))
    assert MQDSPUBLICKEY.build({"sProviderName": provider, "aBuf": key(size)}) == data


@requirement("MQMQ-2.2.1-03")
@pytest.mark.parametrize("number, name", [(0x01, "PROV_RSA_FULL"), (0x18, "PROV_RSA_AES")])
def test_provider_types(number: int, name: str) -> None:
    base = handmade.mqdspublickey(b"key", "p", 0)
    assert_field(MQDSPUBLICKEY, base, "ulProviderType", 8, struct.pack("<L", number), number)
    assert ProviderType(number).name == name
    assert len(ProviderType) == 2


@requirement("MQMQ-2.2.1-05")
@pytest.mark.parametrize("bits", [512, 1024])
def test_the_key_is_a_blob(bits: int) -> None:
    blob = handmade.publickeyblob(key(bits // 8))
    data = handmade.mqdspublickey(blob, PROVIDER)
    assert data[12 + 2 * len(PROVIDER) + 2 :] == blob
    record = MQDSPUBLICKEY.parse(data)
    assert record.ulKeyLen == 8 + 12 + bits // 8
    parsed_blob = PUBLICKEYBLOB.parse(record.aBuf)
    assert (parsed_blob.aiKeyAlg, parsed_blob.magic, parsed_blob.bitLen, parsed_blob.pubExp) == (
        0xA400,
        0x31415352,
        bits,
        65537,
    )
    assert parsed_blob.modulus == key(bits // 8)
    assert MQDSPUBLICKEY.build({"sProviderName": PROVIDER, "aBuf": PUBLICKEYBLOB.build(parsed_blob)}) == data


@requirement("MQMQ-2.2.1-06")
@pytest.mark.parametrize(
    "data, path, offset",
    [
        pytest.param(struct.pack("<LLL", 1, 4, 1) + b"p\0\0\0", "ulKeyLen", 0, id="key past the end"),
        pytest.param(
            struct.pack("<LLL", 0xFFFFFFFF, 4, 1) + b"p\0\0\0" + bytes(9),
            "ulKeyLen",
            0,
            id="key, most of all",
        ),
        pytest.param(struct.pack("<LLL", 0, 6, 1) + b"p\0\0\0", "ulProviderLen", 4, id="name past the end"),
        pytest.param(
            struct.pack("<LLL", 0, 0xFFFFFFFE, 1) + b"p\0\0\0", "ulProviderLen", 4, id="name, most of all"
        ),
        pytest.param(struct.pack("<LLL", 0, 4, 1) + b"p\0q\0", "ulProviderLen", 4, id="no null"),
        pytest.param(
            struct.pack("<LLL", 2, 2, 1) + b"p\0\0\0", "ulProviderLen", 4, id="null beyond its length"
        ),
        pytest.param(struct.pack("<LLL", 0, 5, 1) + b"p\0\0\0\0", "ulProviderLen", 4, id="odd"),
        pytest.param(struct.pack("<LLL", 4, 0, 1) + b"p\0\0\0", "ulProviderLen", 4, id="none"),
    ],
)
def test_public_keys_that_cannot_be(data: bytes, path: str, offset: int) -> None:
    assert_refused(MQDSPUBLICKEY, data, f"MQDSPUBLICKEY.{path}", offset)
    many = struct.pack("<LL", 8 + len(data), 1) + data
    assert_refused(MQDSPUBLICKEYS, many, f"MQDSPUBLICKEYS.aPublicKeys[0].{path}", 8 + offset)


# --- MQDSPUBLICKEYS ---

KEYS = [handmade.mqdspublickey(key(5), "p"), handmade.mqdspublickey(key(64), PROVIDER, 0x18)]


@requirement("MQMQ-2.2.2-01", "MQMQ-2.2.2-02", "MQMQ-2.2.2-03")
@pytest.mark.parametrize("count", [0, 1, 2])
def test_public_keys(count: int) -> None:
    """ulLen includes its own eight bytes; the keys are packed, the first is 21 bytes long."""
    packed = b"".join(KEYS[:count])
    data = struct.pack("<LL", 8 + len(packed), count) + packed
    record = assert_same(MQDSPUBLICKEYS, data)
    assert (record.ulLen, record.cNumofKeys) == (len(data), count)
    assert record.aPublicKeys == [MQDSPUBLICKEY.parse(packed_key) for packed_key in KEYS[:count]]
    assert len(KEYS[0]) == 12 + 4 + 5
    fields = [{"sProviderName": "p", "aBuf": key(5)}]
    fields += [{"sProviderName": PROVIDER, "aBuf": key(64), "ulProviderType": 0x18}]
    assert MQDSPUBLICKEYS.build({"aPublicKeys": fields[:count]}) == data


@requirement("MQMQ-2.2.2-04")
def test_length_and_keys_disagree() -> None:
    packed = b"".join(KEYS)
    full = 8 + len(packed)
    data = handmade.mqdspublickeys(KEYS)
    assert MQDSPUBLICKEYS.parse(data).ulLen == full
    # the second key runs past ulLen
    short = struct.pack("<L", full - 1) + data[4:-1]
    assert_refused(MQDSPUBLICKEYS, short, "MQDSPUBLICKEYS.aPublicKeys[1].ulKeyLen", 8 + 21)
    # it ends before ulLen
    assert_refused(MQDSPUBLICKEYS, struct.pack("<L", full + 1) + data[4:] + b"\0", "MQDSPUBLICKEYS.ulLen", 0)
    # ulLen runs past the bytes
    assert_refused(MQDSPUBLICKEYS, struct.pack("<L", full + 1) + data[4:], "MQDSPUBLICKEYS.ulLen", 0)
    # there is no room for so many keys
    for count in (8, 0xFFFFFFFF):
        many = handmade.mqdspublickeys([KEYS[0]], count=count)
        assert_refused(MQDSPUBLICKEYS, many, "MQDSPUBLICKEYS.cNumofKeys", 4)


# --- SECURITY_INFORMATION ---


@pytest.mark.parametrize(
    "name, value",
    [
        proving("OWNER", 0x00000001, ids="MQMQ-2.2.3-01"),
        proving("GROUP", 0x00000002, ids="MQMQ-2.2.3-02"),
        proving("DACL", 0x00000004, ids="MQMQ-2.2.3-03"),
        proving("SACL", 0x00000008, ids="MQMQ-2.2.3-04"),
    ],
)
def test_security_information(name: str, value: int) -> None:
    assert SECURITY_INFORMATION[f"{name}_SECURITY_INFORMATION"] == value
    assert SECURITY_INFORMATION(value).name == f"{name}_SECURITY_INFORMATION"


@requirement("MQMQ-2.2.3-05")
def test_security_information_is_any_of_the_four() -> None:
    names = ("OWNER", "GROUP", "DACL", "SACL")
    for word, chosen in enumerate(product((0, 1), repeat=4)):
        value = SECURITY_INFORMATION(0)
        for name, bit in zip(names, reversed(chosen), strict=True):
            value |= SECURITY_INFORMATION[f"{name}_SECURITY_INFORMATION"] if bit else 0
        assert value == word == SECURITY_INFORMATION(word)
    assert len(SECURITY_INFORMATION) == 4


# --- TA_ADDRESS ---

ADDRESSES: list[Any] = [
    (0x0001, "IP_ADDRESS_TYPE", b"\x0a\x01\x02\x03", {"IP_Address": b"\x0a\x01\x02\x03"}),
    (0x0002, "IP_RAS_ADDRESS_TYPE", b"\x0a\x01\x02\x03", {"IP_Address": b"\x0a\x01\x02\x03"}),
    (0x0003, "IPX_ADDRESS_TYPE", key(10), {"Netnum": key(10)[:4], "nodenum": key(10)[4:]}),
    (0x0005, "FOREIGN_ADDRESS_TYPE", GUID, {"Guid": UUID(TEXT)}),
]
PROVED = [
    ("MQMQ-2.2.4.1-01",),
    ("MQMQ-2.2.4.1-01",),
    ("MQMQ-2.2.4.2-01",),
    (),
]


@requirement("MQMQ-2.2.4-01", "MQMQ-2.2.4-02", "MQMQ-2.2.4-03", "MQMQ-2.2.4-04")
@pytest.mark.parametrize(
    "kind, name, raw, fields",
    [proving(*row, ids=ids, name=row[1]) for row, ids in zip(ADDRESSES, PROVED, strict=True)],
)
def test_addresses(kind: int, name: str, raw: bytes, fields: dict[str, Any]) -> None:
    data = struct.pack("<HH", len(raw), kind) + raw
    record = assert_same(TA_ADDRESS, data)
    assert (record.AddressLength, record.AddressType) == (len(raw), kind)
    assert nested(record.Address) == fields
    assert TA_ADDRESS.build({"AddressType": kind, "Address": fields}) == data
    assert len(data) == {4: 8, 10: 14, 16: 20}[len(raw)]
    assert AddressType(kind).name == name
    assert ADDRESS_LENGTH[AddressType(kind)] == len(raw)


@requirement("MQMQ-2.2.4-02")
@pytest.mark.parametrize("kind", [1, 2, 3, 5])
def test_lengths_that_do_not_fit_the_type(kind: int) -> None:
    right = {1: 4, 2: 4, 3: 10, 5: 16}[kind]
    for length in {0, 4, 10, 16, right - 1, right + 1} - {right}:
        data = handmade.ta_address(kind, bytes(length))
        if length > right:
            assert_refused(TA_ADDRESS, data, "TA_ADDRESS.AddressLength", 0)
        else:  # the truncated field of the address, where it ends
            field = {1: "IP_Address", 2: "IP_Address", 3: "Netnum" if length < 4 else "nodenum", 5: "Guid"}[
                kind
            ]
            assert_refused(TA_ADDRESS, data, f"TA_ADDRESS.Address.{field}", 4 + length)
    assert_refused(
        TA_ADDRESS, handmade.ta_address(kind, bytes(right), length=0xFFFF), "TA_ADDRESS.AddressLength", 0
    )


@requirement("MQMQ-2.2.4-03")
@pytest.mark.parametrize("kind", [0, 4, 6, 7, 0x0100, 0xFFFF])
def test_other_types_are_refused(kind: int) -> None:
    assert_refused(TA_ADDRESS, handmade.ta_address(kind, bytes(16)), "TA_ADDRESS.AddressType", 2)


@requirement("MQMQ-2.2.4-05")
def test_addresses_are_packed() -> None:
    """An IPX address of 14 bytes leaves the next one unaligned."""
    data = b"".join(
        handmade.ta_address(kind, raw) for kind, _, raw, _ in (ADDRESSES[2], ADDRESSES[0], ADDRESSES[3])
    )
    offset, ends = 0, []
    while offset < len(data):
        record, offset = TA_ADDRESS.read(data, offset)
        ends.append((record.AddressType, offset))
    assert ends == [(3, 14), (1, 22), (5, 42)]


# --- SEQUENCE_INFO, OBJECTID, MessageIdentifier, XACTUOW ---


@requirement("MQMQ-2.2.5-01")
@pytest.mark.parametrize(
    "path, offset, data, value",
    [
        proving("SeqID", 0, b"\x08\x07\x06\x05\x04\x03\x02\x01", 0x0102030405060708, ids="MQMQ-2.2.5.1-01"),
        proving("SeqID", 0, b"\xfe" + b"\xff" * 7, -2, ids="MQMQ-2.2.5.1-01", name="SeqID-negative"),
        proving("SeqID", 0, bytes(7) + b"\x80", -(1 << 63), ids="MQMQ-2.2.5.1-01", name="SeqID-least"),
        proving("SeqNo", 8, b"\x14\x13\x12\xf1", 0xF1121314, ids="MQMQ-2.2.5.1-02"),
        proving("PrevNo", 12, b"\x24\x23\x22\xf1", 0xF1222324, ids="MQMQ-2.2.5.1-03"),
    ],
)
def test_sequence_info(path: str, offset: int, data: bytes, value: int) -> None:
    base = handmade.sequence_info(0, 0, 0)
    assert len(base) == 16
    assert_field(SEQUENCE_INFO, base, path, offset, data, value)
    assert_refused(SEQUENCE_INFO, base + b"\0", "SEQUENCE_INFO", 16)


@pytest.mark.parametrize(
    "path, offset, data, value",
    [
        proving("Lineage", 0, GUID, UUID(TEXT), ids="MQMQ-2.2.8-01"),
        proving("Uniquifier", 16, b"\x04\x03\x02\x01", 0x01020304, ids="MQMQ-2.2.8-02"),
    ],
)
def test_objectid(path: str, offset: int, data: bytes, value: Any) -> None:
    base = handmade.objectid(bytes(16), 0)
    assert_field(OBJECTID, base, path, offset, data, value)
    assert len(base) == 20
    assert_refused(OBJECTID, base + b"\0", "OBJECTID", 20)


@pytest.mark.parametrize(
    "path, offset, data, value",
    [
        proving("QueueManagerGuid", 0, GUID, UUID(TEXT), ids="MQMQ-2.2.18.1.3-01"),
        proving("Ordinal", 16, b"\x04\x03\x02\x01", 0x01020304, ids="MQMQ-2.2.18.1.3-02"),
    ],
)
def test_message_identifier(path: str, offset: int, data: bytes, value: Any) -> None:
    assert_field(MESSAGE_IDENTIFIER, bytes(20), path, offset, data, value)
    assert_refused(MESSAGE_IDENTIFIER, bytes(21), "MessageIdentifier", 20)
    assert_refused(MESSAGE_IDENTIFIER, bytes(19), "MessageIdentifier.Ordinal", 19)


@requirement("MQMQ-2.2.18.1.8-01")
def test_xactuow() -> None:
    """Bytes in order, without swapping."""
    record = assert_same(XACTUOW, GUID)
    assert record.rgb == GUID
    assert XACTUOW.build({"rgb": GUID}) == GUID
    assert_refused(XACTUOW, GUID + b"\0", "XACTUOW", 16)
    assert_refused(XACTUOW, GUID[:15], "XACTUOW.rgb", 15)


# --- certificates ---


@pytest.mark.parametrize(
    "path, offset, data, value",
    [
        proving("Digest", 0, GUID, GUID, ids="MQMQ-2.2.22-01"),
        proving("Identifier", 16, GUID, UUID(TEXT), ids="MQMQ-2.2.22-02"),
        proving("Certificate", 36, b"cert", b"cert", ids="MQMQ-2.2.22-04"),
    ],
)
def test_certificate_fields(path: str, offset: int, data: bytes, value: Any) -> None:
    base = handmade.mqusersigncert(bytes(4), digest=bytes(16), identifier=bytes(16))
    assert_field(MQUSERSIGNCERT, base, path, offset, data, value)


@requirement("MQMQ-2.2.22-03", "MQMQ-2.2.22-04", "MQMQ-2.2.22-01")
@pytest.mark.parametrize("size", [0, 1, 0x0123, 0x10203])
def test_certificate_length(size: int) -> None:
    certificate = key(size)
    digest = md5(certificate, usedforsecurity=False).digest()
    data = handmade.mqusersigncert(certificate, digest=digest, identifier=GUID)
    assert data[32:36] == struct.pack("<L", size)
    record, end = MQUSERSIGNCERT.read(data + b"more")
    assert end == len(data) == 36 + size
    assert (record.CertificateLength, record.Certificate) == (size, certificate)
    assert record.Digest == md5(record.Certificate, usedforsecurity=False).digest()
    fields = {"Digest": digest, "Identifier": TEXT, "Certificate": certificate}
    assert MQUSERSIGNCERT.build(fields) == data


@requirement("MQMQ-2.2.21-01", "MQMQ-2.2.21-02")
@pytest.mark.parametrize("count", [0, 1, 3])
def test_certificates(count: int) -> None:
    """Packed: the first is 37 bytes long."""
    certificate = handmade.mqusersigncert(b"1", digest=bytes(16), identifier=GUID)
    data = struct.pack("<L", count) + certificate * count
    assert len(certificate) == 37
    record = assert_same(MQUSERSIGNCERTS, data)
    assert (record.CertificateCount, len(record.Certificates)) == (count, count)
    assert all(parsed == MQUSERSIGNCERT.parse(certificate) for parsed in record.Certificates)
    fields = [{"Identifier": TEXT, "Certificate": b"1"}] * count
    assert MQUSERSIGNCERTS.build({"Certificates": fields}) == data


@requirement("MQMQ-2.2.21-03")
def test_truncated_certificates() -> None:
    certificate = handmade.mqusersigncert(b"1234", digest=bytes(16), identifier=GUID)
    path = "MQUSERSIGNCERTS.Certificates"
    truncated = handmade.mqusersigncerts([certificate, certificate])[:-1]
    assert_refused(MQUSERSIGNCERTS, truncated, f"{path}[1].CertificateLength", 4 + 40 + 32)
    long = handmade.mqusersigncert(b"1234", digest=bytes(16), identifier=GUID, length=0xFFFFFFFF)
    assert_refused(MQUSERSIGNCERTS, handmade.mqusersigncerts([long]), f"{path}[0].CertificateLength", 4 + 32)
    for count in (2, 0xFFFFFFFF):  # more than there are
        data = handmade.mqusersigncerts([certificate], count=count)
        assert_refused(MQUSERSIGNCERTS, data, "MQUSERSIGNCERTS.CertificateCount", 0)
    assert_refused(
        MQUSERSIGNCERTS, handmade.mqusersigncerts([certificate, certificate], count=1), "MQUSERSIGNCERTS", 44
    )
