"""RSA keys as blobs, and session keys in SIMPLEBLOBs: [MS-MQQB] 2.4, [MS-MQMQ] 2.2.20.6."""

from __future__ import annotations

import os
import struct
from itertools import product

import pytest
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers

from msmqwire.constants import CryptographicProvider, EncryptionAlgorithm, KeyAlgorithm
from msmqwire.crypto.ciphers import SessionKey, decrypt, encrypt, key_bits, new_session_key, provider_of
from msmqwire.crypto.keys import public_key_blob, public_key_of, unwrap, wrap
from msmqwire.crypto.readings import DEFAULT, Readings
from msmqwire.errors import DecryptionFailed, InvalidValue, MalformedPacket, UnsupportedAlgorithm
from tests.support import handmade
from tests.support.codec_checks import requirement
from tests.support.message_keys import private_key

BASE, ENHANCED, AES = CryptographicProvider
RC2, RC4 = EncryptionAlgorithm.CALG_RC2, EncryptionAlgorithm.CALG_RC4
UNSALTED = Readings(salted_40_bit_keys=False)
KEYS = [  # algorithm, bits, provider, bytes in the blob, bytes of salt
    (RC2, 40, BASE, 5, 11), (RC4, 40, BASE, 5, 11), (RC2, 128, ENHANCED, 16, 0), (RC4, 128, ENHANCED, 16, 0),
    (0x660E, 128, AES, 16, 0), (0x660F, 192, AES, 24, 0), (0x6610, 256, AES, 32, 0),
]  # fmt: skip


@requirement("MQQB-2.4.1-01", "MQQB-2.4.1-02", "MQQB-2.4.1-03", "MQQB-2.4.1-04")
@requirement("MQMQ-2.2.20.6-30", "MQMQ-2.2.20.6-31", "MQMQ-2.2.20.6-32")
@pytest.mark.parametrize("kind", KeyAlgorithm, ids=lambda member: member.name)
@pytest.mark.parametrize("bits", [384, 512, 1024])
def test_public_key_blob(bits: int, kind: KeyAlgorithm) -> None:
    key = private_key(bits)
    blob = public_key_blob(key, kind)
    assert blob[:8] == struct.pack("<BBHL", 6, 2, 0, kind)
    assert blob[8:20] == b"RSA1" + struct.pack("<LL", bits, 65537)
    assert int.from_bytes(blob[20:], "little") == key.public_key().public_numbers().n
    assert len(blob) == 20 + bits // 8
    assert public_key_blob(key.public_key(), kind) == blob
    assert public_key_of(blob).public_numbers() == key.public_key().public_numbers()


@requirement("MQMQ-2.2.20.6-33", "MQMQ-2.2.20.6-32")
@pytest.mark.parametrize("bits", [505, 511, 512])
def test_a_modulus_takes_whole_bytes(bits: int) -> None:
    modulus = (1 << bits) - 1
    blob = public_key_blob(RSAPublicNumbers(3, modulus).public_key())
    assert blob == handmade.publickeyblob(modulus.to_bytes(64, "little"), bits=bits, exponent=3)
    assert public_key_of(blob).public_numbers() == RSAPublicNumbers(3, modulus)


BLOB = handmade.publickeyblob(b"\xff" * 64)


@pytest.mark.parametrize(
    "blob, path, offset",
    [
        (b"", "PUBLICKEYBLOB.bType", 0),
        (BLOB[:19], "PUBLICKEYBLOB.pubExp", 19),
        *(
            pytest.param(*case, marks=requirement("MQQB-2.4.1-01"))
            for case in (
                (b"\7" + BLOB[1:], "PUBLICKEYBLOB.bType", 0),
                (BLOB[:1] + b"\3" + BLOB[2:], "PUBLICKEYBLOB.bVersion", 1),
                (BLOB[:3] + b"\1" + BLOB[4:], "PUBLICKEYBLOB.reserved", 2),
                (BLOB[:8] + b"RSA2" + BLOB[12:], "PUBLICKEYBLOB.magic", 8),
            )
        ),
        pytest.param(
            BLOB[:4] + b"\1" + BLOB[5:], "PUBLICKEYBLOB.aiKeyAlg", 4, marks=requirement("MQMQ-2.2.20.6-31")
        ),
        (BLOB[:-1], "PUBLICKEYBLOB.bitLen", 12),
        (BLOB + b"\0", "PUBLICKEYBLOB.bitLen", 12),
        (BLOB[:12] + struct.pack("<L", 0xFFFFFFFF) + BLOB[16:], "PUBLICKEYBLOB.bitLen", 12),
        (handmade.publickeyblob(b""), "PUBLICKEYBLOB.bitLen", 12),
        (handmade.publickeyblob(b"\xff" * 47), "PUBLICKEYBLOB.bitLen", 12),
        (handmade.publickeyblob(b"\xff" * 2049), "PUBLICKEYBLOB.bitLen", 12),
        *(
            pytest.param(blob, "PUBLICKEYBLOB.modulus", 20, marks=requirement("MQQB-2.4.1-04"))
            for blob in (
                handmade.publickeyblob(b"\xff" * 63 + b"\0"),
                handmade.publickeyblob(b"\xff" * 64, bits=511),
            )
        ),
        (handmade.publickeyblob(bytes(64)), "PUBLICKEYBLOB.modulus", 20),
        (handmade.publickeyblob(b"\xfe" + b"\xff" * 63), "PUBLICKEYBLOB.modulus", 20),
        *((handmade.publickeyblob(b"\xff" * 64, exponent=e), "PUBLICKEYBLOB.pubExp", 16) for e in (0, 1, 2)),
    ],
)
def test_blobs_that_are_no_key(blob: bytes, path: str, offset: int) -> None:
    with pytest.raises(MalformedPacket) as caught:
        public_key_of(blob)
    assert (caught.value.path, caught.value.offset) == (path, offset)


@pytest.mark.parametrize("exponent", [0x1_0000_0001, (1 << 500) + 1], ids=["33 bits", "501 bits"])
def test_exponents_that_a_blob_can_not_hold(exponent: int) -> None:
    with pytest.raises(InvalidValue, match="more than 32 bits"):
        public_key_blob(RSAPublicNumbers(exponent, (1 << 512) - 1).public_key())


@requirement("MQQB-2.4.2-01", "MQQB-2.4.2-02", "MQQB-2.4.2-03")
@pytest.mark.parametrize("algorithm, bits, provider, size, salt", KEYS)
@pytest.mark.parametrize("rsa_bits", [384, 512, 1024])
def test_session_keys_are_wrapped(
    rsa_bits: int, algorithm: int, bits: int, provider: CryptographicProvider, size: int, salt: int
) -> None:
    key = new_session_key(algorithm, bits, lambda count: bytes(range(1, count + 1)))
    assert key == SessionKey(algorithm, bytes(range(1, size + 1)), bits, bytes(salt))
    private = private_key(rsa_bits)
    blob = wrap(key, private.public_key())
    assert blob[:12] == struct.pack("<BBHLL", 1, 2, 0, algorithm, 0xA400)
    assert len(blob) == 12 + rsa_bits // 8
    numbers = private.private_numbers()
    block = pow(int.from_bytes(blob[12:], "little"), numbers.d, numbers.public_numbers.n).to_bytes(
        rsa_bits // 8
    )
    assert block[:2] == b"\0\2"
    assert block[2:].partition(b"\0")[2] == key.key
    assert unwrap(blob, private, DEFAULT, algorithm, provider) == key
    assert unwrap(blob + bytes(256 - len(blob) + 12), private, DEFAULT, algorithm, provider) == key
    assert wrap(key, private.public_key()) != blob  # random bytes are between


@pytest.mark.parametrize("algorithm", [RC2, RC4])
def test_readings_of_keys_of_40_bits(algorithm: int) -> None:
    key = new_session_key(algorithm, 40, os.urandom, UNSALTED)
    assert (len(key.key), key.salt, key.effective_bits) == (5, b"", 40)
    blob = wrap(key, private_key().public_key())
    assert unwrap(blob, private_key(), UNSALTED, algorithm, BASE) == key
    salted = unwrap(blob, private_key(), DEFAULT, algorithm, BASE)
    assert (salted.key, salted.salt, salted.effective_bits) == (key.key, bytes(11), 40)
    assert encrypt(salted, b"body") != encrypt(key, b"body")


@requirement("MQQB-3.1.7.1.5-15")
def test_40_bits_for_the_enhanced_provider_are_padded() -> None:
    key = new_session_key(RC2, 40, lambda size: b"\xff" * size, provider=ENHANCED)
    assert key == SessionKey(RC2, b"\xff" * 5 + bytes(11), 128)
    assert unwrap(wrap(key, private_key().public_key()), private_key(), DEFAULT, RC2, ENHANCED) == key


@requirement("MQMQ-2.2.19.3-39")
def test_ciphers_of_providers() -> None:
    lengths = {(a, p): key_bits(a, p) for a, p in product(EncryptionAlgorithm, CryptographicProvider)}
    assert {pair: bits for pair, bits in lengths.items() if bits is not None} == {
        (RC2, BASE): 40, (RC4, BASE): 40, (RC2, ENHANCED): 128, (RC4, ENHANCED): 128,
        (EncryptionAlgorithm.CALG_AES_128, AES): 128, (EncryptionAlgorithm.CALG_AES_192, AES): 192,
        (EncryptionAlgorithm.CALG_AES_256, AES): 256,
    }  # fmt: skip
    for algorithm, bits, provider, *_ in KEYS:
        assert provider_of(algorithm, bits) is provider


@pytest.mark.parametrize(
    "algorithm, bits, provider",
    [
        (0x660E, 256, None), (0x6610, 128, None), (RC2, 56, None), (RC4, 0, None), (RC2, 128, BASE),
        (RC4, 40, ENHANCED), (0x6610, 256, ENHANCED), (RC2, 128, AES),
    ],
)  # fmt: skip
def test_keys_that_no_provider_has(algorithm: int, bits: int, provider: CryptographicProvider | None) -> None:
    with pytest.raises(InvalidValue, match=f"has no keys of {bits} bits"):
        new_session_key(algorithm, bits, bytes, provider=provider)


def test_keys_of_unknown_algorithms() -> None:
    with pytest.raises(UnsupportedAlgorithm):
        new_session_key(0x6603, 128, bytes)


def wrapped(content: bytes, algorithm: int = RC4, bits: int = 512) -> bytes:
    """A SIMPLEBLOB with anything in the place of the key."""
    encrypted = private_key(bits).public_key().encrypt(content, PKCS1v15())
    return handmade.simpleblob(encrypted[::-1], algorithm)


def refusal(blob: bytes, algorithm: int = RC4, provider: CryptographicProvider = ENHANCED) -> str:
    """What decrypting a body says with the key of this blob, after as much work as with a right one."""
    key = unwrap(blob, private_key(512), DEFAULT, algorithm, provider)
    assert not key.usable
    assert len(key.key) * 8 == key_bits(algorithm, provider)
    with pytest.raises(InvalidValue):
        encrypt(key, b"")
    with pytest.raises(InvalidValue):
        wrap(key, private_key().public_key())
    clear = b"0123456789ABCDEF"
    good = SessionKey(algorithm, key.key, key.effective_bits, key.salt)
    with pytest.raises(DecryptionFailed) as caught:  # although the padding of the body is right
        decrypt(key, encrypt(good, clear))
    return str(caught.value)


def test_faults_of_blobs_can_not_be_distinguished() -> None:
    good = wrapped(b"k" * 16)
    assert unwrap(good, private_key(512), DEFAULT, RC4, ENHANCED).key == b"k" * 16
    numbers = private_key(512).private_numbers()
    type_1 = pow(int.from_bytes(b"\0\1" + b"\xff" * 45 + b"\0" + b"k" * 16), 65537, numbers.public_numbers.n)
    blobs = [
        b"", good[:11], good[:12], good[:-1], good + b"\1", good + bytes(9) + b"\1", b"\2" + good[1:],
        good[:1] + b"\3" + good[2:], good[:2] + b"\1" + good[3:], good[:4] + b"\2\x66\0\0" + good[8:],
        good[:8] + b"\0\x24" + good[10:], good[:12] + bytes([good[12] ^ 1]) + good[13:],
        good + bytes(256 - 64 + 1), good + bytes(0xFFFF - len(good)),
        good[:12] + bytes(64), good[:12] + b"\xff" * 64, wrapped(b""), wrapped(b"k" * 15), wrapped(b"k" * 17),
        handmade.simpleblob(type_1.to_bytes(64, "little"), RC4),
        wrap(new_session_key(RC4, 128, os.urandom), private_key(1024).public_key()),
    ]  # fmt: skip
    texts = {refusal(blob) for blob in blobs}
    texts.add(refusal(wrapped(b"k" * 16, 0x660E), 0x660F, AES))
    texts.add(refusal(good, RC4, BASE))
    assert len(texts) == 1


def test_a_wrong_padding_never_passes_for_a_key() -> None:
    """What stands in for its content has any length, of 53 with this key."""
    for number in range(300):
        blob = handmade.simpleblob(bytes([number % 256, number // 256]) * 31 + b"\1\0", RC4)
        assert not unwrap(blob, private_key(512), DEFAULT, RC4, ENHANCED).usable


@requirement("MQMQ-2.2.19.3-38", "MQMQ-2.2.19.3-39")
def test_ciphers_that_the_provider_does_not_have() -> None:
    blob = wrapped(b"k" * 16)
    for algorithm, provider in ((0x660E, ENHANCED), (RC4, AES), (0x6610, BASE), (0x6603, ENHANCED), (0, AES)):
        with pytest.raises(DecryptionFailed) as caught:
            unwrap(blob, private_key(512), DEFAULT, algorithm, provider)
        assert str(caught.value) == refusal(blob[:-1])


def test_keys_too_short_for_a_session_key() -> None:
    with pytest.raises(InvalidValue, match="33 bytes do not fit into a key of 256 bits"):
        wrap(SessionKey(RC4, bytes(33), 264), RSAPublicNumbers(3, (1 << 256) - 1).public_key())
