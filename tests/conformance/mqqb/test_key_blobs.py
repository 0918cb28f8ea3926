"""PUBLICKEYBLOB and SIMPLEBLOB: [MS-MQQB] 2.4.1 and 2.4.2."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from msmqwire.constants import EncryptionAlgorithm
from msmqwire.headers import PUBLICKEYBLOB, SECURITY_HEADER, SIMPLEBLOB
from tests.support import handmade
from tests.support.codec_checks import assert_field, assert_refused, assert_same, proving, requirement

MODULUS = bytes(range(1, 129))


@requirement("MQQB-2.4.1-01")
def test_public_key_head() -> None:
    head = bytes.fromhex("06 02 00 00 00 A4 00 00 52 53 41 31")
    data = PUBLICKEYBLOB.build({"modulus": MODULUS})
    assert data[:12] == head
    record = assert_same(PUBLICKEYBLOB, data)
    assert (record.bType, record.bVersion, record.reserved, record.aiKeyAlg) == (6, 2, 0, 0xA400)
    assert record.magic == struct.unpack("<L", b"RSA1")[0]


@pytest.mark.parametrize(
    "path, offset, data, value",
    [
        proving("pubExp", 16, b"\x04\x03\x02\x01", 0x01020304, ids="MQQB-2.4.1-03"),
        proving("pubExp", 16, b"\x03\0\0\0", 3, ids="MQQB-2.4.1-03", name="pubExp-3"),
        proving("modulus", 20, MODULUS[::-1], MODULUS[::-1], ids="MQQB-2.4.1-04"),
    ],
)
def test_public_key_fields(path: str, offset: int, data: bytes, value: Any) -> None:
    assert_field(PUBLICKEYBLOB, handmade.publickeyblob(MODULUS), path, offset, data, value)


@requirement("MQQB-2.4.1-02", "MQQB-2.4.1-03", "MQQB-2.4.1-04")
@pytest.mark.parametrize("bits", [512, 1024, 2048, 4096])
def test_bit_length(bits: int) -> None:
    modulus = bytes(1 + i % 255 for i in range(bits // 8))
    data = handmade.publickeyblob(modulus)
    assert data[12:16] == struct.pack("<L", bits)
    record, end = PUBLICKEYBLOB.read(data + b"more")
    assert end == len(data) == 20 + bits // 8
    assert (record.bitLen, record.modulus) == (bits, modulus)
    assert int.from_bytes(record.modulus, "little").bit_length() <= bits
    assert PUBLICKEYBLOB.build({"modulus": modulus}) == data
    assert_refused(PUBLICKEYBLOB, data[:-1], "PUBLICKEYBLOB.bitLen", 12)


@requirement("MQQB-2.4.2-01")
def test_session_key_head() -> None:
    data = SIMPLEBLOB.build({"sessionKeyAlgorithm": 0x01020304, "encryptedKey": MODULUS})
    assert data == bytes.fromhex("01 02 00 00 04 03 02 01 00 A4 00 00") + MODULUS
    record = assert_same(SIMPLEBLOB, data)
    assert (record.bType, record.bVersion, record.reserved, record.aiKeyAlg) == (1, 2, 0, 0xA400)
    assert (record.sessionKeyAlgorithm, record.encryptedKey) == (0x01020304, MODULUS)


@requirement("MQQB-2.4.2-02")
@pytest.mark.parametrize(
    "algorithm, name",
    [
        (0x660E, "CALG_AES_128"),
        (0x660F, "CALG_AES_192"),
        (0x6610, "CALG_AES_256"),
        (0x6602, "CALG_RC2"),
        (0x6801, "CALG_RC4"),
    ],
)
def test_session_key_algorithms(algorithm: int, name: str) -> None:
    base = handmade.simpleblob(MODULUS, 0)
    assert_field(SIMPLEBLOB, base, "sessionKeyAlgorithm", 4, struct.pack("<L", algorithm), algorithm)
    assert EncryptionAlgorithm(algorithm).name == name


@requirement("MQQB-2.4.2-03")
@pytest.mark.parametrize("size", [64, 128, 256])
def test_session_key_size(size: int) -> None:
    """From offset 12 for EncryptionKeySize bytes: 256, or 64 or 128 with short keys."""
    key = bytes(1 + i % 255 for i in range(size))
    blob = handmade.simpleblob(key)
    assert len(blob) == 12 + size
    assert assert_same(SIMPLEBLOB, blob).encryptedKey == key
    assert SIMPLEBLOB.build({"encryptedKey": key}) == blob
    security = SECURITY_HEADER.parse(
        handmade.security_header(flags=0xA0, encryption_key=blob, signature=b"sign")
    )
    assert security.EncryptionKeySize == 12 + size
    assert SIMPLEBLOB.parse(security.SecurityData.EncryptionKey).encryptedKey == key
