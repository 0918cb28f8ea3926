"""Keys, certificates, and messages that are signed and encrypted by hand.

Nothing here uses the library: signatures and ciphers are `cryptography`'s, and struct puts fields together.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any
from uuid import UUID

from cryptography import x509
from cryptography.hazmat.primitives import hashes, padding
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from tests.support import handmade as h
from tests.support.engine_harness import PEER_ID, START_UTC
from tests.support.peers.handwritten_peer import direct

BASE = "Microsoft Base Cryptographic Provider v1.0"
ENHANCED = "Microsoft Enhanced Cryptographic Provider v1.0"
AES_PROVIDER = "Microsoft Enhanced RSA and AES Cryptographic Provider"
MD5, SHA1, SHA256, SHA512 = 0x8003, 0x8004, 0x800C, 0x800E
RC2, AES128, AES192, AES256, RC4 = 0x6602, 0x660E, 0x660F, 0x6610, 0x6801
EB = 0x20
"""SecurityHeader.Flags; ST is the low four bits."""
DAY = 86_400
_HASHES: dict[int, hashes.HashAlgorithm] = {
    MD5: hashes.MD5(), SHA1: hashes.SHA1(), SHA256: hashes.SHA256(), SHA512: hashes.SHA512()
}  # fmt: skip


@cache
def rsa_key(name: str, bits: int = 1024) -> rsa.RSAPrivateKey:
    """A private key, the same for the same name as long as the tests run."""
    return rsa.generate_private_key(65537, bits)


@cache
def certificate(name: str, start: int = START_UTC - DAY, end: int = START_UTC + DAY) -> bytes:
    """A certificate for the key of that name, self-signed."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    key = rsa_key(name)
    builder = (
        x509.CertificateBuilder(subject, subject, key.public_key(), 1)
        .not_valid_before(datetime.fromtimestamp(start, UTC))
        .not_valid_after(datetime.fromtimestamp(end, UTC))
    )
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.DER)


def sign(key: rsa.RSAPrivateKey, data: bytes, algorithm: int = SHA512) -> bytes:
    """A signature in the form of CryptoAPI, least significant byte first."""
    return key.sign(data, PKCS1v15(), _HASHES[algorithm])[::-1]


@dataclass
class Sealed:
    """A message to be sent by a `HandwrittenPeer`, in clear until `packet` signs and encrypts it.

    Attributes:
        signer: the name of the key and certificate that sign it; empty for no signature.
        signature: one that has been made already, instead.
        version: 1, 2 or 3, of the signature.
        sid: SecurityID; with `kind`, ST.
        recipient: the public key to encrypt for; None to leave the body in clear.
        session_key: the key that the body is encrypted with.
        provider: ProviderInfo.
        others: further fields of the message, for `HandwrittenPeer.message`.
    """

    body: bytes = b"secret body"
    signer: str = ""
    signature: bytes = b""
    version: int = 2
    sid: bytes = b""
    kind: int = 1
    certificate: bytes | None = None
    hash_algorithm: int = SHA512
    label: str | None = None
    queue: tuple[int, bytes] = field(default_factory=direct)
    admin: tuple[int, bytes] = (0, b"")
    response: tuple[int, bytes] = (0, b"")
    acks: int = 0
    priority: int = 3
    user_flags: int = 0
    recoverable: bool = False
    extension: bytes = b""
    recipient: rsa.RSAPublicKey | None = None
    session_key: bytes = bytes(range(32))
    algorithm: int = AES256
    privacy: int = 5
    blob: bytes | None = None
    provider: bytes = b""
    source: UUID = PEER_ID
    others: dict[str, Any] = field(default_factory=dict)

    def signed_fields(self) -> bytes:
        """The values that the signature covers: [MS-MQMQ] 2.5.1 to 2.5.3."""
        label = b"" if self.label is None else h.wide(self.label)
        data = bytes(20) + bytes(4) + self.body + label + _bare(self.response) + _bare(self.admin)
        if self.version == 1:
            return data
        if self.version == 3:
            data += self.extension + _element(self.queue)
        journal = (self.user_flags >> 9 & 1) << 1 | self.user_flags >> 8 & 1
        transactional = "tx" in self.others
        data += self.source.bytes_le + struct.pack(
            "<BBBBHL", self.recoverable or transactional, 0 if transactional else self.priority, journal,
            self.acks & 0x0F, 0, 0,
        ) + bytes(16)  # fmt: skip
        return data if self.version == 3 else data + _bare(self.queue)

    def fields(self) -> dict[str, Any]:
        """The arguments of `HandwrittenPeer.message`."""
        signature = (
            sign(rsa_key(self.signer), self.signed_fields(), self.hash_algorithm)
            if self.signer
            else self.signature
        )
        shown = (
            certificate(self.signer) if self.signer and self.certificate is None else self.certificate or b""
        )
        body, key = self.body, b""
        if self.recipient is not None:
            body, key = encrypted(self.algorithm, self.session_key, body), self.wrapped()
        if self.blob is not None:
            key = self.blob
        security = h.security_header(
            flags=self.kind | (EB if self.recipient is not None else 0),
            security_id=self.sid,
            encryption_key=key,
            signature=b"" if self.version == 3 else signature,
            certificate=shown,
            provider=self.provider,
        )
        multi = b""
        if self.version == 3:
            multi = h.multi_queue_format_header(
                [h.mqf_element(3, _bare(self.queue)[2:])], signature=signature
            )
        return {
            "body": body, "security": security, "hash_algorithm": self.hash_algorithm, "label": self.label,
            "privacy": self.privacy if self.recipient is not None else 0, "algorithm": self.algorithm,
            "destination": self.queue, "admin": self.admin, "response": self.response, "acks": self.acks,
            "priority": self.priority, "flags": self.user_flags, "recoverable": self.recoverable,
            "extension": self.extension, "multi_queue": multi,
        } | self.others  # fmt: skip

    def wrapped(self) -> bytes:
        """The SIMPLEBLOB of the session key."""
        assert self.recipient is not None
        return h.simpleblob(self.recipient.encrypt(self.session_key, PKCS1v15())[::-1], self.algorithm)


def _bare(queue: tuple[int, bytes]) -> bytes:
    """A direct name without its padding, or any other name."""
    kind, name = queue
    return name[: 2 + struct.unpack_from("<H", name)[0]] if kind == 7 else name


def _element(queue: tuple[int, bytes]) -> bytes:
    """A direct name as an MQFFormatNameElement: [MS-MQMQ] 2.2.18.1.4.1."""
    return struct.pack("<H", 3) + _bare(queue)[2:]


def encrypted(algorithm: int, key: bytes, body: bytes) -> bytes:
    """A body under one of the ciphers."""
    if algorithm == RC4:
        return _rc4(key, body)
    assert algorithm in (AES128, AES192, AES256)
    padder, encryptor = padding.PKCS7(128).padder(), Cipher(AES(key), CBC(bytes(16))).encryptor()
    return encryptor.update(padder.update(body) + padder.finalize()) + encryptor.finalize()


def decrypted(algorithm: int, key: bytes, body: bytes) -> bytes:
    """The content encrypted by `encrypted`."""
    if algorithm == RC4:
        return _rc4(key, body)
    unpadder, decryptor = padding.PKCS7(128).unpadder(), Cipher(AES(key), CBC(bytes(16))).decryptor()
    return unpadder.update(decryptor.update(body) + decryptor.finalize()) + unpadder.finalize()


def _rc4(key: bytes, data: bytes) -> bytes:
    state, j, out = list(range(256)), 0, bytearray()
    for i in range(256):
        j = (j + state[i] + key[i % len(key)]) & 255
        state[i], state[j] = state[j], state[i]
    i = j = 0
    for byte in data:
        i = (i + 1) & 255
        j = (j + state[i]) & 255
        state[i], state[j] = state[j], state[i]
        out.append(byte ^ state[(state[i] + state[j]) & 255])
    return bytes(out)


def user_certificates(*certificates: bytes) -> bytes:
    """MQUSERSIGNCERTS: [MS-MQMQ] 2.2.21."""
    return h.mqusersigncerts(
        [
            h.mqusersigncert(der, digest=hashlib.md5(der).digest(), identifier=bytes(16))
            for der in certificates
        ]
    )


def published(**keys: rsa.RSAPrivateKey) -> bytes:
    """MQDSPUBLICKEYS with keys named base, enhanced and aes: [MS-MQMQ] 2.2.2."""
    providers = {"base": BASE, "enhanced": ENHANCED, "aes": AES_PROVIDER}
    return h.mqdspublickeys(
        [
            h.mqdspublickey(public_blob(key), providers[name], 0x18 if name == "aes" else 1)
            for name, key in keys.items()
        ]
    )


def public_blob(key: rsa.RSAPrivateKey, kind: int = 0xA400) -> bytes:
    """PUBLICKEYBLOB: [MS-MQQB] 2.4.1."""
    numbers = key.public_key().public_numbers()
    head = struct.pack("<BBHL4sLL", 6, 2, 0, kind, b"RSA1", key.key_size, numbers.e)
    return head + numbers.n.to_bytes(key.key_size // 8, "little")
