"""Targets for the cryptographic data of messages and the directory: keys, session keys, certificates."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from fuzz.invariants import both_readers_agree, what_is_accepted_rebuilds
from fuzz.readers.inputs import EXAMPLES, vectors
from fuzz.readers.registry import target
from msmqwire.constants import EncryptionAlgorithm, KeyAlgorithm
from msmqwire.crypto.certificates import SenderCertificate, ders_of_pem
from msmqwire.crypto.ciphers import decrypt, new_session_key, provider_of
from msmqwire.crypto.keys import (
    public_key_blob,
    public_key_of,
    read_private_key,
    read_public_key,
    unwrap,
    wrap,
)
from msmqwire.crypto.readings import DEFAULT
from msmqwire.errors import DecryptionFailed, InvalidValue, MalformedPacket
from msmqwire.headers import ACCESS_ACE_BODY, ACE, ACL, MQDSPUBLICKEYS, MQUSERSIGNCERTS, SID
from msmqwire.headers.security_descriptor import (
    DescriptorParts,
    build_descriptor,
    descriptor_parts,
    sid_bytes,
    sid_text,
)
from msmqwire.qm.model.access import Token, access_allowed
from msmqwire.rpc.ntlm_names import user_of
from msmqwire.srmp.certificates import Certificate

ALGORITHMS = (
    (EncryptionAlgorithm.CALG_RC2, 40),
    (EncryptionAlgorithm.CALG_RC4, 128),
    (EncryptionAlgorithm.CALG_AES_128, 128),
    (EncryptionAlgorithm.CALG_AES_192, 192),
    (EncryptionAlgorithm.CALG_AES_256, 256),
)


@cache
def _private_key() -> RSAPrivateKey:
    (pem,) = vectors("crypto/rsa-512.pem")
    return read_private_key(pem)


def _keys() -> Iterator[bytes]:
    for pem in vectors("crypto/*.pem"):
        for kind in KeyAlgorithm:
            yield public_key_blob(read_private_key(pem), kind)


@target(seeds=_keys, words=lambda: (b"RSA1", b"\6\2\0\0", b"\0\xa4\0\0", b"\1\0\1\0"), size_max=300)
def public_keys(data: bytes) -> None:
    """A PUBLICKEYBLOB that is read as a key is built of it again; a file of any bytes is a key or refused."""
    try:
        key = public_key_of(data)
    except MalformedPacket as refusal:
        assert refusal.path.startswith("PUBLICKEYBLOB")
        assert refusal.offset is not None
        assert refusal.offset <= len(data)
    else:
        kind = KeyAlgorithm(int.from_bytes(data[4:8], "little"))
        assert public_key_blob(key, kind) == data
        assert read_public_key(data.hex().encode()) == key
    try:
        read_public_key(data)
    except InvalidValue as refusal:
        assert refusal.why


def _session_keys() -> Iterator[bytes]:
    for number, (algorithm, bits) in enumerate(ALGORITHMS):
        if bits < 256:
            key = new_session_key(algorithm, bits, lambda size: b"\7" * size, DEFAULT)
            yield bytes([number]) + wrap(key, _private_key().public_key())


@target(seeds=_session_keys, words=lambda: (b"\1\2\0\0", b"\x10\x66\0\0", b"\0\xa4\0\0"), size_max=300)
def session_keys(data: bytes) -> None:
    """Any SIMPLEBLOB gives a key, usable or not: which, only the same error of decrypting tells."""
    if not data:
        return
    algorithm, bits = ALGORITHMS[data[0] % len(ALGORITHMS)]
    key = unwrap(data[1:], _private_key(), DEFAULT, algorithm, provider_of(algorithm, bits))
    assert key.algorithm == algorithm
    try:
        decrypt(key, data)
    except DecryptionFailed:
        return
    assert key.usable


def _certificates() -> Iterator[bytes]:
    if (path := EXAMPLES / "keys" / "alice.crt").exists():
        yield ders_of_pem(path.read_bytes())[0]


@target(
    seeds=_certificates,
    words=lambda: (b"\x30\x82", b"\x06\x03\x55\x04\x03", b"\x02\x01\x00", b"\x17\x0d", b"\x18\x0f"),
)
def certificates(data: bytes) -> None:
    """A certificate is read whole, by both who read them, or refused as an invalid value."""
    for read in (SenderCertificate.read, Certificate.read, SenderCertificate.read_file):
        try:
            certificate = read(data)
        except InvalidValue as refusal:
            assert refusal.why
            continue
        assert certificate.subject is not None
        assert certificate.not_before <= certificate.not_after or not certificate.is_valid(
            certificate.not_before
        )


def _directory_keys() -> Iterator[bytes]:
    blobs = list(_keys())
    keys = [
        {"sProviderName": "Microsoft Base Cryptographic Provider v1.0", "aBuf": blob} for blob in blobs[:2]
    ]
    yield b"\0" + MQDSPUBLICKEYS.build({"aPublicKeys": keys})
    for der in _certificates():
        yield b"\1" + MQUSERSIGNCERTS.build({"Certificates": [{"Digest": bytes(16), "Certificate": der}]})


@target(seeds=_directory_keys, words=lambda: (b"RSA1", b"\6\2\0\0", "v1.0\0".encode("utf-16-le")))
def directory(data: bytes) -> None:
    """MQDSPUBLICKEYS and MQUSERSIGNCERTS of the directory: rebuilt exactly, and by both readers alike."""
    schema = MQUSERSIGNCERTS if data[:1] == b"\1" else MQDSPUBLICKEYS
    what_is_accepted_rebuilds(schema, data[1:])
    both_readers_agree(schema, data[1:])


def _descriptors() -> Iterator[bytes]:
    users, everyone = sid_bytes("S-1-5-21-1-2-3-500"), sid_bytes("S-1-1-0")
    body = ACCESS_ACE_BODY.build({"Mask": 0x000F003F, "Sid": SID.parse(everyone)})
    acl = ACL.build({"Aces": [ACE.make(AceType=0, Body=body)]})
    yield build_descriptor(DescriptorParts())
    yield build_descriptor(DescriptorParts(users, everyone, acl, acl, 0x0400))


@target(
    seeds=_descriptors,
    words=lambda: (b"\1\1\0\0\0\0\0\1\0\0\0\0", b"\1\0\4\x80", b"\2\0", b"\x14\0\0\0"),
    size_max=512,
)
def descriptors(data: bytes) -> None:
    """A security descriptor has the same parts when it is built again, and a bad one allows nothing."""
    allowed = access_allowed(data, Token(b""), 0)
    try:
        parts = descriptor_parts(data)
    except MalformedPacket as refusal:
        assert refusal.path.startswith("SECURITY_DESCRIPTOR")
        assert refusal.offset is not None
        assert 0 <= refusal.offset <= len(data)
        assert not allowed
        return
    assert descriptor_parts(build_descriptor(parts)) == parts
    for sid in (parts.owner, parts.group):
        assert sid is None or sid_bytes(sid_text(sid)) == sid


def _tokens() -> Iterator[bytes]:
    head = b"NTLMSSP\0\3\0\0\0" + bytes(16)
    names = bytes.fromhex("0600060040000000 0A000A0046000000".replace(" ", ""))
    yield head + names + bytes(16) + b"\1\0\0\0" + "LABalice".encode("utf-16-le")


@target(seeds=_tokens, words=lambda: (b"NTLMSSP\0\3\0\0\0",), size_max=256)
def logons(data: bytes) -> None:
    """The user that a handshake of NTLM names is text, never more than its fields may hold."""
    assert len(user_of(data)) <= 1025
