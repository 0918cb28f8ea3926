"""SecurityHeader: [MS-MQMQ] 2.2.20.6."""

from __future__ import annotations

import struct
from datetime import datetime
from itertools import product
from typing import Any
from uuid import UUID

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

import msmqwire
from msmqwire.headers import PUBLICKEYBLOB, SECURITY_HEADER, SIMPLEBLOB
from msmqwire.packets import USER_MESSAGE
from tests.support import handmade
from tests.support.codec_checks import (
    assert_bits,
    assert_refused,
    assert_same,
    assert_values,
    differences,
    proving,
    requirement,
)

BASE = handmade.security_header()
SID = bytes.fromhex("01 05 00 00 00 00 00 05 15 00 00 00 AD 4A 9E BD 36 D9 FA 3D 63 A6 56 DA E8 03 00 00")
ITEMS = ("SecurityID", "EncryptionKey", "Signature", "SenderCert")
ARGUMENTS = ("security_id", "encryption_key", "signature", "certificate")
SIZES = ("SenderIdSize", "EncryptionKeySize", "SignatureSize", "SenderCertSize", "ProviderInfoSize")


@requirement("MQMQ-2.2.20.6-01", "MQMQ-2.2.19-01")
@pytest.mark.parametrize(
    "name, mask, value",
    [
        proving("ST", 0x000F, 1, ids="MQMQ-2.2.20.6-02", name="ST-1"),
        proving("ST", 0x000F, 2, ids="MQMQ-2.2.20.6-02", name="ST-2"),
        proving("ST", 0x000F, 15, name="ST-15"),
        proving("AU", 0x0010, 0, ids="MQMQ-2.2.20.6-06"),
        proving("EB", 0x0020, 0, ids="MQMQ-2.2.20.6-07"),
        proving("DE", 0x0040, 0, ids="MQMQ-2.2.20.6-08"),
        proving("AI", 0x0080, 0, ids="MQMQ-2.2.20.6-11"),
        proving("AS", 0x0F00, 15, ids="MQMQ-2.2.20.6-13", name="AS-15"),
        proving("AS", 0x0F00, 5, ids="MQMQ-2.2.20.6-13", name="AS-5"),
        *(proving(f"X{bit}", 1 << bit, 0, ids="MQMQ-2.2.20.6-14") for bit in (12, 13, 14, 15)),
    ],
)
def test_flags(name: str, mask: int, value: int) -> None:
    assert_bits(SECURITY_HEADER, BASE, f"Flags.{name}", 0, 2, mask, value)


@requirement("MQMQ-2.2.20.6-06", "MQMQ-2.2.20.6-13", "MQMQ-2.2.20.6-14", "MQMQ-2.2.20.6-02")
def test_flags_that_are_left_out() -> None:
    """AU, AS, ST and the unused bits are 0."""
    assert SECURITY_HEADER.build({}) == bytes(16)
    full = {"SecurityData": {"Signature": b"1234", "SenderCert": b"5678"}}
    assert SECURITY_HEADER.build(full)[:2] == b"\x80\x00"


@requirement("MQMQ-2.2.20.6-14")
def test_unused_bits_are_ignored() -> None:
    before = msmqwire.parse(
        handmade.user_message(security=handmade.security_header(flags=1, security_id=SID))
    )
    data = handmade.user_message(security=handmade.security_header(flags=0xF001, security_id=SID))
    after = msmqwire.parse(data)
    assert differences(before, after) == {f"SecurityHeader.Flags.X{bit}" for bit in (12, 13, 14, 15)}
    assert msmqwire.build(after) == data


@pytest.mark.parametrize(
    "item, offset, width",
    [
        proving(0, 2, 2, ids="MQMQ-2.2.20.6-15", name="SenderIdSize"),
        proving(1, 4, 2, ids="MQMQ-2.2.20.6-16", name="EncryptionKeySize"),
        proving(2, 6, 2, ids="MQMQ-2.2.20.6-17", name="SignatureSize"),
        proving(3, 8, 4, ids="MQMQ-2.2.20.6-18", name="SenderCertSize"),
    ],
)
@pytest.mark.parametrize("size", [1, 4, 0x0123, 0xFFFF])
def test_sizes(item: int, offset: int, width: int, size: int) -> None:
    value = bytes(1 + i % 251 for i in range(size))
    data = handmade.security_header(**{ARGUMENTS[item]: value})
    assert data[2:16] == bytes(offset - 2) + size.to_bytes(width, "little") + bytes(16 - offset - width)
    record = assert_same(SECURITY_HEADER, data)
    assert [getattr(record, name) for name in SIZES] == [size if i == item else 0 for i in range(5)]
    assert getattr(record.SecurityData, ITEMS[item]) == value
    assert SECURITY_HEADER.build({"Flags": 0, "SecurityData": {ITEMS[item]: value}}) == data


@pytest.mark.requirement("MQMQ-2.2.20.6-36")
@requirement("MQMQ-2.2.20.6-19", "MQMQ-2.2.20.6-37", "MQMQ-2.2.20.6-38")
@pytest.mark.parametrize("name", ["", "p", "Microsoft AES Cryptographic Provider"])
def test_provider_info(name: str) -> None:
    info = struct.pack("<L", 0x18) + name.encode("utf-16-le") + b"\0\0"
    data = handmade.security_header(flags=0x80, provider=info)
    assert data[12:16] == struct.pack("<L", 4 + 2 * len(name) + 2)
    assert data[16:20] == b"\x18\0\0\0"
    record = assert_same(SECURITY_HEADER, data)
    assert record.ProviderInfoSize == len(info)
    assert record.SecurityData.ProviderInfo.ProviderType == 0x18
    assert record.SecurityData.ProviderInfo.ProviderName == name
    fields = {"ProviderType": 0x18, "ProviderName": name}
    assert SECURITY_HEADER.build({"Flags": {"AI": 1}, "SecurityData": {"ProviderInfo": fields}}) == data


@requirement("MQMQ-2.2.20.6-35")
def test_provider_info_presence() -> None:
    """With a size of 0 it is absent and takes no bytes; with any other it is present."""
    data = handmade.security_header(flags=0x80, signature=b"sign")
    record = assert_same(SECURITY_HEADER, data)
    assert record.SecurityData.ProviderInfo is None
    assert SECURITY_HEADER.build({"SecurityData": {"Signature": b"sign"}}) == data
    data = handmade.security_header(flags=0x80, signature=b"sign", provider=handmade.provider_info(1, "x"))
    assert SECURITY_HEADER.parse(data).SecurityData.ProviderInfo.ProviderName == "x"
    fields = {"Signature": b"sign", "ProviderInfo": {"ProviderName": "x"}}
    assert SECURITY_HEADER.build({"SecurityData": fields})[:16] == data[:16]


@requirement("MQMQ-2.2.20.6-21", "MQMQ-2.2.20.6-22")
@pytest.mark.parametrize("fill", [b"\0", b"\xab"], ids=["zeroes", "anything"])
@pytest.mark.parametrize(
    "sizes",
    [*product((0, 5), repeat=5), (1, 2, 3, 4, 3), (4, 3, 2, 1, 5)],
    ids=lambda sizes: "-".join(map(str, sizes)),
)
def test_order_and_padding_of_the_items(sizes: tuple[int, ...], fill: bytes) -> None:
    """Every combination of present and absent items; the fifth has a name of that many characters."""
    values = [bytes([0x11 * (i + 1)]) * size for i, size in enumerate(sizes[:4])]
    info = handmade.provider_info(1, "n" * sizes[4]) if sizes[4] else b""
    data = handmade.security_header(
        flags=0x81, provider=info, fill=fill, **dict(zip(ARGUMENTS, values, strict=True))
    )
    assert len(data) == 16 + sum((size + 3) // 4 * 4 for size in (*sizes[:4], len(info)))
    assert data[2:16] == struct.pack("<HHHLL", *sizes[:4], len(info))
    record, end = SECURITY_HEADER.read(data + b"next")
    assert end == len(data)
    assert_same(SECURITY_HEADER, data)
    assert [getattr(record.SecurityData, item) for item in ITEMS] == values
    offset = 16
    for value in (*values, info):
        assert data[offset : offset + len(value)] == value
        offset += (len(value) + 3) // 4 * 4
    fields: dict[str, Any] = {item: value for item, value in zip(ITEMS, values, strict=True) if value}
    if info:
        fields["ProviderInfo"] = {"ProviderName": "n" * sizes[4]}
    zeroes = dict(zip(ARGUMENTS, values, strict=True))
    built = SECURITY_HEADER.build({"Flags": 0x81, "SecurityData": fields})
    assert built == handmade.security_header(flags=0x81, provider=info, **zeroes)


@requirement("MQMQ-2.2.20.6-11", "MQMQ-2.2.20.6-12")
def test_sizes_decide_and_not_the_bit() -> None:
    """Parsed with AI set or clear; built with AI clear for a SecurityID alone, otherwise set."""
    for flags in (0x01, 0x81):
        data = handmade.security_header(flags=flags, security_id=SID)
        record = assert_same(SECURITY_HEADER, data)
        assert (flags == 0x81) == record.Flags.AI
        assert record.SecurityData.SecurityID == SID
    bare = SECURITY_HEADER.build({"SecurityData": {"SecurityID": SID}})
    assert bare == handmade.security_header(flags=0x01, security_id=SID)
    for item in ITEMS[1:]:
        built = SECURITY_HEADER.build({"SecurityData": {"SecurityID": SID, item: b"1234"}})
        assert built[:2] == b"\x81\x00"


@requirement("MQMQ-2.2.20.6-25")
@requirement("MQMQ-2.2.20.6-04")
def test_sid() -> None:
    """ST 1: 28 bytes with five sub-authorities, as captured, in packet form."""
    data = handmade.security_header(flags=1, security_id=SID)
    record = assert_same(SECURITY_HEADER, data)
    assert record.Flags.ST == 1
    assert record.SenderIdSize == len(SID) == 8 + 4 * SID[1] == 28
    assert record.SecurityData.SecurityID == SID


@requirement("MQMQ-2.2.20.6-25")
@requirement("MQMQ-2.2.20.6-05")
def test_queue_manager_guid() -> None:
    data = handmade.security_header(flags=2, security_id=handmade.CLIENT)
    record = assert_same(SECURITY_HEADER, data)
    assert (record.Flags.ST, record.SenderIdSize) == (2, 16)
    assert UUID(bytes_le=record.SecurityData.SecurityID) == UUID("557358d1-9150-9595-4997-b6e611ea26c6")
    fields = {"Flags": {"ST": 2}, "SecurityData": {"SecurityID": handmade.CLIENT}}
    assert SECURITY_HEADER.build(fields) == data


@requirement("MQMQ-2.2.20.6-03")
def test_no_sender() -> None:
    data = handmade.security_header(flags=0x80, certificate=b"cert")
    record = assert_same(SECURITY_HEADER, data)
    assert (record.Flags.ST, record.SenderIdSize, record.SecurityData.SecurityID) == (0, 0, b"")
    assert SECURITY_HEADER.build({"SecurityData": {"SenderCert": b"cert"}}) == data


@requirement("MQMQ-2.2.20.6-24")
def test_encryption_key_is_a_simpleblob() -> None:
    key = handmade.simpleblob(bytes(range(64)), 0x660F)
    record = SECURITY_HEADER.parse(handmade.security_header(flags=0xA0, encryption_key=key))
    blob = SIMPLEBLOB.parse(record.SecurityData.EncryptionKey)
    assert (blob.sessionKeyAlgorithm, blob.encryptedKey) == (0x660F, bytes(range(64)))
    built = SECURITY_HEADER.build(
        {"Flags": {"EB": 1}, "SecurityData": {"EncryptionKey": SIMPLEBLOB.build(blob)}}
    )
    assert built == handmade.security_header(flags=0xA0, encryption_key=key)


@requirement("MQMQ-2.2.20.6-30", "MQMQ-2.2.20.6-32", "MQMQ-2.2.20.6-33")
def test_public_key_blob() -> None:
    """Two zero bytes after 06 02, so that the key type is at 4 and the modulus at 20."""
    modulus = bytes(range(1, 65))
    data = bytes.fromhex("06 02 00 00 00 A4 00 00 52 53 41 31 00 02 00 00 01 00 01 00") + modulus
    assert data == handmade.publickeyblob(modulus)
    record = assert_same(PUBLICKEYBLOB, data)
    assert (record.aiKeyAlg, record.bitLen, record.pubExp) == (0xA400, 512, 65537)
    assert record.modulus == modulus
    # 509 bits are 64 bytes: the top three bits of the last are zero
    odd = handmade.publickeyblob(bytes(63) + b"\x1f", bits=509)
    record = assert_same(PUBLICKEYBLOB, odd)
    assert (record.bitLen, len(record.modulus), record.modulus[-1]) == (509, 64, 0x1F)


@requirement("MQMQ-2.2.20.6-31")
@pytest.mark.parametrize("key_type", [0x2400, 0xA400])
def test_key_types(key_type: int) -> None:
    data = handmade.publickeyblob(bytes(range(64)), key_type=key_type)
    assert data[4:8] == key_type.to_bytes(4, "little")
    assert assert_same(PUBLICKEYBLOB, data).aiKeyAlg == key_type
    assert PUBLICKEYBLOB.build({"aiKeyAlg": key_type, "modulus": bytes(range(64))}) == data


def certificate(key: rsa.RSAPrivateKey) -> bytes:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sender")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 4711)
    builder = builder.not_valid_before(datetime(2026, 1, 1)).not_valid_after(datetime(2027, 1, 1))
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.DER)


@requirement("MQMQ-2.2.20.6-29", "MQMQ-2.2.20.6-30", "MQMQ-2.2.20.6-32")
def test_sender_certificate() -> None:
    """An X.509 certificate from another library, unchanged, and its public key as a blob."""
    key = rsa.generate_private_key(65537, 1024)
    der = certificate(key)
    data = handmade.security_header(flags=0x80, certificate=der)
    record = assert_same(SECURITY_HEADER, data)
    assert record.SecurityData.SenderCert == der
    assert SECURITY_HEADER.build({"SecurityData": {"SenderCert": der}}) == data
    public_key = x509.load_der_x509_certificate(record.SecurityData.SenderCert).public_key()
    assert isinstance(public_key, rsa.RSAPublicKey)
    modulus = public_key.public_numbers().n
    blob = PUBLICKEYBLOB.parse(handmade.publickeyblob(modulus.to_bytes(128, "little")))
    assert (blob.bitLen, blob.pubExp) == (public_key.key_size, public_key.public_numbers().e)
    assert int.from_bytes(blob.modulus, "little") == modulus


@requirement("MQMQ-2.2.20.6-39", "MQQB-3.1.5.1.3-01")
@pytest.mark.parametrize("item", range(5), ids=SIZES)
def test_sizes_past_the_packet(item: int) -> None:
    """The packet has 56 bytes after the sizes; 57 are refused at the size that asks for them."""
    offset = (2, 4, 6, 8, 12)[item]
    sizes = [0] * 5
    for sizes[item] in (57, 0xFFFF):
        data = handmade.user_message(security=handmade.security_header(sizes=sizes))
        assert_refused(msmqwire.parse, data, f"SecurityHeader.{SIZES[item]}", 68 + offset)


@requirement("MQMQ-2.2.20.6-39")
def test_padding_past_the_packet() -> None:
    """The item fits but its padding does not: nothing is left for the next header."""
    data = handmade.user_message(
        security=handmade.security_header(sizes=[53, 0, 0, 0, 0]), properties=bytes(53)
    )
    with pytest.raises(msmqwire.MalformedPacket) as caught:
        msmqwire.parse(data)
    assert (caught.value.path, caught.value.offset) == ("MessagePropertiesHeader.Flags", len(data))


@requirement("MQMQ-2.2.20.6-40", "MQMQ-2.2.20.6-12", "MQMQ-2.2.20.6-01")
def test_captured_header() -> None:
    data = bytes.fromhex("01 00 1C 00 00 00 00 00 00 00 00 00 00 00 00 00") + SID
    assert len(data) == 44
    assert_values(
        SECURITY_HEADER,
        data,
        {
            "Flags.ST": 1,
            **{f"Flags.{name}": 0 for name in ("AU", "EB", "DE", "AI", "AS", "X12", "X13", "X14", "X15")},
            "SenderIdSize": 28,
            "EncryptionKeySize": 0,
            "SignatureSize": 0,
            "SenderCertSize": 0,
            "ProviderInfoSize": 0,
            "SecurityData.SecurityID": SID,
            "SecurityData.EncryptionKey": b"",
            "SecurityData.Signature": b"",
            "SecurityData.SenderCert": b"",
            "SecurityData.ProviderInfo": None,
            **{f"SecurityData.{item}Padding": b"" for item in (*ITEMS, "ProviderInfo")},
        },
    )


def test_the_header_in_a_message() -> None:
    """All five items, before the properties; the presence bit is filled in."""
    security = {
        "SecurityID": SID,
        "EncryptionKey": b"12345",
        "Signature": b"123",
        "SenderCert": b"1",
        "ProviderInfo": {"ProviderType": 1, "ProviderName": "x"},
    }
    data = USER_MESSAGE.build({"SecurityHeader": {"SecurityData": security}})
    assert data[64 : 64 + 16] == struct.pack("<HHHHLL", 0x81, 28, 5, 3, 1, 8)
    assert data[80:] == (
        SID
        + b"12345\0\0\0"
        + b"123\0"
        + b"1\0\0\0"
        + handmade.provider_info(1, "x")
        + handmade.properties_header()
    )
