"""Hashes and ciphers by their published vectors: [MS-MQMQ] 2.2.19.3."""

from __future__ import annotations

import pytest

from msmqwire.constants import EncryptionAlgorithm, HashAlgorithm
from msmqwire.crypto.ciphers import SessionKey, decrypt, encrypt
from msmqwire.crypto.hashes import digest, digest_info
from msmqwire.errors import DecryptionFailed, InvalidValue, UnsupportedAlgorithm
from tests.support.codec_checks import requirement
from tests.support.paths import ROOT

VECTORS = ROOT / "tests/vectors/crypto"
HASH_ROWS = {
    HashAlgorithm.CALG_MD2: "MQMQ-2.2.19.3-23",
    HashAlgorithm.CALG_MD4: "MQMQ-2.2.19.3-24",
    HashAlgorithm.CALG_MD5: "MQMQ-2.2.19.3-25",
    HashAlgorithm.CALG_SHA1: "MQMQ-2.2.19.3-26",
    HashAlgorithm.CALG_SHA_256: "MQMQ-2.2.19.3-27",
    HashAlgorithm.CALG_SHA_512: "MQMQ-2.2.19.3-28",
}
CIPHER_ROWS = {
    EncryptionAlgorithm.CALG_RC2: "MQMQ-2.2.19.3-33",
    EncryptionAlgorithm.CALG_AES_128: "MQMQ-2.2.19.3-34",
    EncryptionAlgorithm.CALG_AES_192: "MQMQ-2.2.19.3-35",
    EncryptionAlgorithm.CALG_AES_256: "MQMQ-2.2.19.3-36",
    EncryptionAlgorithm.CALG_RC4: "MQMQ-2.2.19.3-37",
}
KEYS = [
    SessionKey(EncryptionAlgorithm.CALG_RC2, b"12345", 40),
    SessionKey(EncryptionAlgorithm.CALG_RC2, b"12345", 40, bytes(11)),
    SessionKey(EncryptionAlgorithm.CALG_RC2, bytes(range(16)), 128),
    SessionKey(EncryptionAlgorithm.CALG_AES_128, bytes(range(16)), 128),
    SessionKey(EncryptionAlgorithm.CALG_AES_192, bytes(range(24)), 192),
    SessionKey(EncryptionAlgorithm.CALG_AES_256, bytes(range(32)), 256),
]


def rows(name: str) -> list[list[str]]:
    return [line.split("\t") for line in (VECTORS / name).read_text().splitlines()]


@pytest.mark.parametrize(
    "algorithm",
    [pytest.param(member, marks=requirement(id_), id=member.name) for member, id_ in HASH_ROWS.items()],
)
def test_hashes(algorithm: HashAlgorithm) -> None:
    vectors = [(text, value) for _, name, text, value in rows("hashes.tsv") if name == algorithm.name]
    assert len(vectors) == (2 if algorithm >= HashAlgorithm.CALG_SHA1 else 7)
    for text, value in vectors:
        assert digest(int(algorithm), text.encode("ascii")).hex() == value


@requirement("MQMQ-2.2.19.3-29")
@pytest.mark.parametrize("algorithm", [0, 0x8000, 0x8005, 0x800D, 0x800F, 0x18004, 0x6610])
def test_unknown_hashes(algorithm: int) -> None:
    for function in (digest, digest_info):
        with pytest.raises(UnsupportedAlgorithm) as caught:
            function(algorithm, b"abc")
        assert caught.value.algorithm == algorithm
        assert caught.value.path == "MessagePropertiesHeader.HashAlgorithm"


@pytest.mark.parametrize(
    "algorithm",
    [pytest.param(member, marks=requirement(id_), id=member.name) for member, id_ in CIPHER_ROWS.items()],
)
def test_ciphers(algorithm: EncryptionAlgorithm) -> None:
    """The first block: with a zero vector it is that of the bare cipher."""
    vectors = [row[2:] for row in rows("ciphers.tsv") if row[1] == algorithm.name]
    assert len(vectors) == {EncryptionAlgorithm.CALG_RC2: 7, EncryptionAlgorithm.CALG_RC4: 2}.get(
        algorithm, 1
    )
    for bits, key, clear, encrypted in vectors:
        session_key = SessionKey(int(algorithm), bytes.fromhex(key), int(bits))
        ours = encrypt(session_key, bytes.fromhex(clear))
        assert ours[: len(encrypted) // 2].hex() == encrypted
        assert decrypt(session_key, ours) == bytes.fromhex(clear)


@requirement("MQMQ-2.2.19.3-40")
@pytest.mark.parametrize("key", KEYS, ids=lambda key: f"{key.algorithm.name} {key.effective_bits}")
def test_blocks_are_chained_from_a_zero_vector_and_padded(key: SessionKey) -> None:
    block = 8 if key.algorithm == EncryptionAlgorithm.CALG_RC2 else 16
    clear = bytes(range(64))
    encrypted = encrypt(key, clear)
    assert len(encrypted) == 64 + block  # a whole block of padding where none is needed
    first = encrypt(key, clear[:block])[:block]
    chained = bytes(a ^ b for a, b in zip(first, clear[block : 2 * block], strict=True))
    assert encrypted[: 2 * block] == first + encrypt(key, chained)[:block]
    for size in range(2 * block):
        missing = block - size % block
        padded = clear[:size] + bytes([missing] * missing)
        assert encrypt(key, clear[:size]) == encrypt(key, padded)[: len(padded)]
        assert decrypt(key, encrypt(key, clear[:size])) == clear[:size]


@requirement("MQMQ-2.2.19.3-40")
@pytest.mark.parametrize("key", KEYS, ids=lambda key: f"{key.algorithm.name} {key.effective_bits}")
def test_a_wrong_padding_is_refused_whatever_it_is(key: SessionKey) -> None:
    block = 8 if key.algorithm == EncryptionAlgorithm.CALG_RC2 else 16
    texts = set()
    wrong = [bytes(block), bytes([block + 1] * block), b"\2".rjust(block, b"\1"), b"\xff" * block]
    for end in wrong:
        with pytest.raises(DecryptionFailed) as caught:
            decrypt(key, encrypt(key, bytes(block) + end)[: 2 * block])
        texts.add(str(caught.value))
    for data in (b"", bytes(block - 1), bytes(block + 1)):
        with pytest.raises(DecryptionFailed) as caught:
            decrypt(key, data)
        texts.add(str(caught.value))
    assert len(texts) == 1
    assert caught.value.__cause__ is None


@requirement("MQMQ-2.2.19.3-40")
def test_rc4_has_neither_vector_nor_padding() -> None:
    key = SessionKey(EncryptionAlgorithm.CALG_RC4, b"12345", 40)
    stream = encrypt(key, bytes(99))
    assert encrypt(key, b"\xff" * 50) == bytes(0xFF ^ byte for byte in stream[:50])
    assert encrypt(key, b"") == decrypt(key, b"") == b""


@pytest.mark.parametrize(
    "algorithm, size, bits",
    [
        (0x660E, 15, 120), (0x660E, 16, 120), (0x660E, 32, 256), (0x660F, 16, 128), (0x6610, 24, 192),
        (0x6602, 4, 40), (0x6602, 5, 39), (0x6602, 16, 1025), (0x6602, 129, 128), (0x6801, 4, 32),
        (0x6801, 5, 128), (0x6801, 257, 2056),
    ],
)  # fmt: skip
def test_keys_that_do_not_fit(algorithm: int, size: int, bits: int) -> None:
    with pytest.raises(InvalidValue, match=f"^SessionKey: {size} bytes with {bits} effective bits"):
        SessionKey(algorithm, bytes(size), bits)


@requirement("MQMQ-2.2.19.3-38")
@pytest.mark.parametrize("algorithm", [0, 0x6601, 0x6603, 0x660D, 0x6611, 0x16610])
def test_unknown_ciphers(algorithm: int) -> None:
    with pytest.raises(UnsupportedAlgorithm) as caught:
        SessionKey(algorithm, bytes(16), 128)
    assert caught.value.path == "MessagePropertiesHeader.EncryptionAlgorithm"


def test_the_key_is_not_shown() -> None:
    key = SessionKey(EncryptionAlgorithm.CALG_RC2, b"SECRET-KEY-16-by", 128)
    for text in (repr(key), str(key), f"{key}", repr([key])):
        assert (
            text.strip("[]")
            == "SessionKey(algorithm=<EncryptionAlgorithm.CALG_RC2: 26114>, effective_bits=128)"
        )
