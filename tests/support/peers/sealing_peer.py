"""Signed and encrypted messages of a `raw_peer`, made and read with `cryptography` and `struct` alone.

[MS-MQMQ] 2.5 and [MS-MQQB] 2.4, 3.1.5.8.3 and 3.1.7.1.5, as CryptoAPI would do it: signatures and wrapped
keys have their least significant byte first.
"""

from __future__ import annotations

import os
import struct
import time
import warnings
from dataclasses import dataclass
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, padding
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey, RSAPublicNumbers
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC

from tests.support import handmade as h
from tests.support.peers.raw_peer import Message
from tests.support.qm.received_packets import ReceivedPacket

RC2, AES128, AES256 = 0x6602, 0x660E, 0x6610
KEY_BYTES = {RC2: 16, AES128: 16, AES256: 32}
SHA256, SHA512 = 0x800C, 0x800E
_HASHES: dict[int, hashes.HashAlgorithm] = {SHA256: hashes.SHA256(), SHA512: hashes.SHA512()}
_AES_LEVEL, _ENHANCED_LEVEL = 5, 3
_EB, _SID = 0x20, 1


def _cipher(algorithm: int, key: bytes) -> tuple[Cipher[CBC], int]:
    """The cipher, and its block in bits."""
    if algorithm == RC2:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from cryptography.hazmat.decrepit.ciphers.algorithms import RC2 as Rc2

            return Cipher(Rc2(key), CBC(bytes(8))), 64
    return Cipher(AES(key), CBC(bytes(16))), 128


def encrypt(algorithm: int, key: bytes, body: bytes) -> bytes:
    cipher, block = _cipher(algorithm, key)
    padder, encryptor = padding.PKCS7(block).padder(), cipher.encryptor()
    return encryptor.update(padder.update(body) + padder.finalize()) + encryptor.finalize()


def decrypt(algorithm: int, key: bytes, body: bytes) -> bytes:
    cipher, block = _cipher(algorithm, key)
    unpadder, decryptor = padding.PKCS7(block).unpadder(), cipher.decryptor()
    return unpadder.update(decryptor.update(body) + decryptor.finalize()) + unpadder.finalize()


def public_key(blob: bytes) -> RSAPublicKey:
    """The key of a PUBLICKEYBLOB for encryption: [MS-MQQB] 2.4.1."""
    head = struct.unpack_from("<BBHL4sLL", blob)
    assert head[:5] == (6, 2, 0, 0xA400, b"RSA1")
    return RSAPublicNumbers(head[6], int.from_bytes(blob[20:], "little")).public_key()


def public_blob(key: RSAPrivateKey) -> bytes:
    """The PUBLICKEYBLOB for encryption of a key."""
    numbers = key.public_key().public_numbers()
    head = struct.pack("<BBHL4sLL", 6, 2, 0, 0xA400, b"RSA1", key.key_size, numbers.e)
    return head + numbers.n.to_bytes(key.key_size // 8, "little")


# -- messages that the peer sends -------------------------------------------------------------------------


@dataclass(frozen=True)
class SealedMessage(Message):
    """A message to a private queue of the server at `address`, signed and encrypted.

    An administration queue is a private one of the peer.
    """

    signer: RSAPrivateKey | None = None
    certificate: bytes = b""
    sid: bytes = b""
    version: int = 2
    hash_algorithm: int = SHA512
    cipher: int = 0
    recipient: RSAPublicKey | None = None

    @property
    def _element(self) -> tuple[int, bytes]:
        return h.mqf_element(2, self.address + self.queue[1])

    def _covered(self) -> bytes:
        """The values that its signature covers: [MS-MQMQ] 2.5.2 and 2.5.3."""
        label = b"" if self.label is None else h.wide(self.label)
        data = bytes(20) + bytes(4) + self.body + label + self.admin[1]
        kind, name = self._element
        lists = struct.pack("<H", kind) + name if self.version == 3 else b""
        properties = struct.pack("<BBBBHL", self.recoverable, 3, 0, self.wants & 0x0F, 0, 0)
        queue = b"" if self.version == 3 else self.queue[1]
        return data + lists + self.source + properties + bytes(16) + queue

    def bytes(self, *, session: bytes = b"") -> bytes:
        signature = b""
        if self.signer is not None:
            signature = self.signer.sign(self._covered(), PKCS1v15(), _HASHES[self.hash_algorithm])[::-1]
        body, wrapped, level = self.body, b"", 0
        if self.recipient is not None:
            key = os.urandom(KEY_BYTES[self.cipher])
            body = encrypt(self.cipher, key, self.body)
            wrapped = h.simpleblob(self.recipient.encrypt(key, PKCS1v15())[::-1], self.cipher)
            level = _ENHANCED_LEVEL if self.cipher == RC2 else _AES_LEVEL
        security = h.security_header(
            flags=(_SID if self.sid else 0) | (_EB if wrapped else 0),
            security_id=self.sid,
            encryption_key=wrapped,
            signature=b"" if self.version == 3 else signature,
            certificate=self.certificate,
        )
        multi_queue = b""
        if self.version == 3:
            multi_queue = h.multi_queue_format_header([self._element], signature=signature)
        return h.user_message(
            user=self.user(),
            security=security,
            properties=h.properties_header(
                flags=self.wants, label=self.label, body=body, privacy_level=level,
                hash_algorithm=self.hash_algorithm, encryption_algorithm=self.cipher or AES256,
            ),
            multi_queue=multi_queue,
            session=session,
        )  # fmt: skip


# -- messages that the peer receives ----------------------------------------------------------------------


def opened(packet: ReceivedPacket, key: RSAPrivateKey) -> bytes:
    """The body of an encrypted message for the owner of a key."""
    blob = packet.security.encryption_key
    assert blob[:12] == b"\x01\x02\x00\x00" + struct.pack("<L", packet.EncryptionAlgorithm) + b"\0\xa4\0\0"
    assert packet.security.flags & _EB
    assert packet.PrivacyLevel == (_ENHANCED_LEVEL if packet.EncryptionAlgorithm == RC2 else _AES_LEVEL)
    session_key = key.decrypt(blob[12:][::-1], PKCS1v15())
    assert len(session_key) == KEY_BYTES[packet.EncryptionAlgorithm]
    return decrypt(packet.EncryptionAlgorithm, session_key, packet.body)


def verify(packet: ReceivedPacket, body: bytes, version: int, queue: bytes) -> None:
    """Verify the signature of a message to the private queue with these four bytes.

    Raises cryptography.exceptions.InvalidSignature.
    """
    security, label = packet.security, packet.Label
    certificate = x509.load_der_x509_certificate(security.certificate)
    assert abs(certificate.not_valid_before_utc.timestamp() - time.time()) < 86_400
    signature = multiple_signature(packet) if version == 3 else security.signature
    assert bool(security.signature) != (version == 3)
    data = packet.CorrelationID + struct.pack("<L", packet.ApplicationTag) + body
    data += h.wide(label) if label else b""
    if version == 3:
        data += struct.pack("<H", 2) + packet.QueueManagerAddress + queue
    data += packet.SourceQueueManager + struct.pack(
        "<BBBBHL", packet.is_recoverable, packet.PR, 0, packet.wants & 0x0F, packet.MessageClass,
        packet.BodyType,
    ) + bytes(16)  # fmt: skip
    data += b"" if version == 3 else queue
    issuer: Any = certificate.public_key()
    issuer.verify(signature[::-1], data, PKCS1v15(), _HASHES[packet.HashAlgorithm])


def multiple_signature(packet: ReceivedPacket) -> bytes:
    """The signature at the end of the MultiQueueFormatHeader: [MS-MQMQ] 2.2.20.3."""
    assert packet.Flags & h.MQ
    start = bytes(packet).rindex(struct.pack("<HH", 0x015E, 0))
    (size,) = struct.unpack_from("<L", packet, start + 4)
    return bytes(packet)[start + 8 : start + 8 + size]
