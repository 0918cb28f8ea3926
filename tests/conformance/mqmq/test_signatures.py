"""Signatures of messages, made and verified: [MS-MQMQ] 2.2.20.6 and 2.5, [MS-MQQB] 3.1.5.8.3."""

from __future__ import annotations

import hashlib

import pytest

import msmqwire
from msmqwire.constants import HashAlgorithm
from msmqwire.crypto.ciphers import encrypt, new_session_key
from msmqwire.crypto.hashes import digest
from msmqwire.crypto.readings import DEFAULT, Readings
from msmqwire.crypto.signatures import sign, signature_version
from msmqwire.crypto.signed_fields import SignatureVersion, signed_fields
from msmqwire.errors import InvalidName, InvalidValue, UnsupportedAlgorithm
from msmqwire.schema import Record
from tests.support import handmade
from tests.support.codec_checks import requirement
from tests.support.message_keys import private_key, with_signature

V1, V2, V3 = SignatureVersion
SHA1, SHA512 = HashAlgorithm.CALG_SHA1, HashAlgorithm.CALG_SHA_512
SECURITY = handmade.security_header(flags=0x81, security_id=b"\1\1\0\0\0\0\0\5\22\0\0\0")


def message(**parts: bytes) -> Record:
    return msmqwire.parse(
        handmade.user_message(
            properties=handmade.properties_header(label="order", body=b"the body"),
            security=SECURITY,
            **parts,
        )
    )


def multiple() -> Record:
    lists = handmade.multi_queue_format_header(
        [handmade.mqf_direct("OS:a\\q"), handmade.mqf_direct("OS:b\\q")]
    )
    return message(multi_queue=lists)


def verified(packet: Record, bits: int = 1024, readings: Readings = DEFAULT) -> SignatureVersion | None:
    return signature_version(packet, private_key(bits).public_key(), readings)


@requirement("MQMQ-2.2.20.6-25", "MQMQ-2.2.20.6-26", "MQMQ-2.2.20.6-28")
@pytest.mark.parametrize("algorithm", HashAlgorithm, ids=lambda member: member.name)
@pytest.mark.parametrize("version", [V1, V2])
def test_signed_and_verified(version: SignatureVersion, algorithm: HashAlgorithm) -> None:
    signature = sign(message(), version, private_key(), algorithm)
    assert len(signature) == 128
    packet = with_signature(message(), signature, algorithm)
    assert verified(msmqwire.parse(packet.to_bytes())) is version
    assert signature_version(packet, private_key(1024, 1).public_key()) is None
    for other in HashAlgorithm:
        if other is not algorithm:
            assert verified(with_signature(message(), signature, other)) is None


@requirement("MQMQ-2.5-01")
@requirement("MQMQ-2.2.20.3-05", "MQMQ-2.2.20.6-27")
def test_signed_for_several_queues() -> None:
    signature = sign(multiple(), V3, private_key(), SHA512)
    packet = with_signature(multiple(), signature, SHA512, multiple=True)
    assert verified(msmqwire.parse(packet.to_bytes())) is V3
    # In the field for one queue it is none of the versions for one.
    assert verified(with_signature(multiple(), signature, SHA512)) is None
    # Nor are those for one queue any that counts for several.
    for version in (V1, V2):
        signature = sign(multiple(), version, private_key(), SHA512)
        assert verified(with_signature(multiple(), signature, SHA512, multiple=True)) is None


@requirement("MQMQ-2.2.20.6-27")
def test_the_signature_for_one_queue_counts_where_both_are_there() -> None:
    several = sign(multiple(), V3, private_key(), SHA512)
    both = with_signature(multiple(), several, SHA512, multiple=True)
    assert verified(with_signature(both, bytes(128), SHA512)) is None
    assert verified(with_signature(both, sign(both, V2, private_key(), SHA512), SHA512)) is V2


@requirement("MQQB-2.4.1-05", "MQMQ-2.2.20.6-26", "MQMQ-2.2.20.6-28")
@pytest.mark.parametrize("bits", [384, 512, 1024])
def test_a_signature_is_that_of_pkcs_1(bits: int) -> None:
    """By integers alone: s^e mod n is the block of [RFC8017] 9.2, the bytes of s in reverse."""
    key = private_key(bits)
    signature = sign(message(), V2, key, SHA1)
    numbers = key.public_key().public_numbers()
    block = pow(int.from_bytes(signature, "little"), numbers.e, numbers.n).to_bytes(bits // 8, "big")
    info = (
        bytes.fromhex("3021300906052B0E03021A05000414") + hashlib.sha1(signed_fields(message(), V2)).digest()
    )
    assert block == b"\0\1" + b"\xff" * (bits // 8 - 3 - len(info)) + b"\0" + info
    assert verified(with_signature(message(), signature, SHA1), bits) is V2


@pytest.mark.parametrize("order", ["little", "big"])
@pytest.mark.parametrize("info", [True, False], ids=["DigestInfo", "bare hash"])
@pytest.mark.parametrize("algorithm", [HashAlgorithm.CALG_MD2, HashAlgorithm.CALG_MD4, SHA512])
def test_readings_of_the_signature(order: str, info: bool, algorithm: HashAlgorithm) -> None:
    readings = Readings(signature_bytes=order, digest_info=info)  # type: ignore[arg-type]
    signature = sign(message(), V2, private_key(), algorithm, readings)
    numbers = private_key().public_key().public_numbers()
    block = pow(int.from_bytes(signature, order), numbers.e, numbers.n).to_bytes(128, "big")  # type: ignore[arg-type]
    content = block[block.index(b"\0", 2) + 1 :]
    hashed = digest(algorithm, signed_fields(message(), V2))
    assert content.endswith(hashed)
    assert (content == hashed) is not info
    packet = with_signature(message(), signature, algorithm)
    assert verified(packet, readings=readings) is V2
    others = [Readings(signature_bytes=o, digest_info=i) for o in ("little", "big") for i in (True, False)]  # type: ignore[arg-type]
    assert [verified(packet, readings=other) for other in others].count(V2) == 1


@requirement("MQMQ-2.5-04")
def test_the_body_is_signed_in_clear() -> None:
    """Encrypted after signing: what the receiver verifies is what it has decrypted."""
    packet = with_signature(message(), sign(message(), V2, private_key(), SHA512), SHA512)
    properties = packet.MessagePropertiesHeader
    key = new_session_key(0x6610, 256, lambda size: b"k" * size)
    encrypted = packet.replace(
        MessagePropertiesHeader=properties.replace(MessageBody=encrypt(key, properties.MessageBody))
    ).recomputed()
    assert verified(encrypted) is None
    assert verified(packet) is V2


@requirement("MQMQ-2.2.19.3-29")
@pytest.mark.parametrize("algorithm", [0, 0x8000, 0x800D])
def test_unknown_hashes_fail(algorithm: int) -> None:
    with pytest.raises(UnsupportedAlgorithm):
        sign(message(), V2, private_key(), algorithm)
    signature = sign(message(), V2, private_key(), SHA512)
    for wrong in (signature, bytes(128), b"short", b"\xff" * 128):
        with pytest.raises(UnsupportedAlgorithm) as caught:
            verified(with_signature(message(), wrong, algorithm))
        assert caught.value.algorithm == algorithm
    unsigned = message().replace(
        MessagePropertiesHeader=message().MessagePropertiesHeader.replace(HashAlgorithm=algorithm)
    )
    assert verified(unsigned) is None


@pytest.mark.parametrize(
    "signature", [b"x", bytes(127), bytes(128), b"\xff" * 128, bytes(129), b"\1" * 0xFFF0]
)
def test_signatures_that_are_none(signature: bytes) -> None:
    assert verified(with_signature(message(), signature, SHA512)) is None
    packet = with_signature(multiple(), signature, SHA512, multiple=True)
    assert verified(packet) is None


def test_more_than_the_hash_in_the_block_is_refused() -> None:
    """The whole block is compared: with a small exponent, what follows the hash could be chosen at will."""
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
    from cryptography.hazmat.primitives.asymmetric.utils import NoDigestInfo

    from msmqwire.crypto.hashes import digest_info

    info = digest_info(SHA1, signed_fields(message(), V2))
    for block, expected in ((info, V2), (info + b"\0", None), (b"\0" + info, None), (info[:-1], None)):
        signature = private_key().sign(block, PKCS1v15(), NoDigestInfo())[::-1]
        assert verified(with_signature(message(), signature, SHA1)) is expected


def test_messages_without_a_signature() -> None:
    assert verified(message()) is None
    assert verified(msmqwire.parse(handmade.user_message())) is None
    assert verified(multiple()) is None


def test_keys_too_short_for_the_hash() -> None:
    with pytest.raises(InvalidValue, match="a key of 512 bits is too short for the hash 0x800e"):
        sign(message(), V2, private_key(512), SHA512)
    bare = Readings(digest_info=False)
    with pytest.raises(InvalidValue, match="too short"):
        sign(message(), V2, private_key(512), SHA512, bare)  # 64 bytes are too many even alone
    assert sign(message(), V2, private_key(384), SHA1)
    assert sign(message(), V2, private_key(384), HashAlgorithm.CALG_SHA_256, bare)


def test_a_queue_that_has_no_text_is_not_verified() -> None:
    queue = (7, handmade.direct_name("nonsense"))
    packet = msmqwire.parse(
        handmade.user_message(user=handmade.user_header(destination=queue), security=SECURITY)
    )
    text = Readings(queue_names="text")
    with pytest.raises(InvalidName):
        sign(packet, V2, private_key(), SHA512, text)
    signature = sign(packet, V1, private_key(), SHA512, text)
    assert verified(with_signature(packet, signature, SHA512), readings=text) is V1
    assert verified(with_signature(packet, bytes(128), SHA512), readings=text) is None


def test_versions() -> None:
    assert [(version.value, version.text) for version in SignatureVersion] == [
        (1, "1.0"),
        (3, "2.0"),
        (5, "3.0"),
    ]
