"""Benchmark of message security: messages signed, verified, encrypted and decrypted, against bare calls.

    python benchmarks/message_security.py [ROUNDS]

A message of 1 KiB with a label and direct names of queues; RSA keys of 2048 bits, SHA-512, AES-256. The bare
side calls `cryptography` alone, with the bytes that are signed at hand and a body without a packet. Ours is
given a parsed packet and leaves it as it is sent, or handed to the queue: it gathers the fields, orders the
bytes, makes and reads blobs and sets the fields. The last two columns also parse the packet from bytes and
build it again, which a queue manager does with every message, signed or not.

All take turns in one process; the best of the rounds counts, in processor time.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final
from uuid import UUID

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC
from cryptography.hazmat.primitives.hashes import SHA512
from cryptography.hazmat.primitives.padding import PKCS7

from benchmarks.support.turns import best
from msmqwire.constants import CryptographicProvider, EncryptionAlgorithm, HashAlgorithm
from msmqwire.crypto.ciphers import decrypt, encrypt, new_session_key
from msmqwire.crypto.keys import unwrap, wrap
from msmqwire.crypto.readings import DEFAULT
from msmqwire.crypto.signatures import sign, signature_version
from msmqwire.crypto.signed_fields import SignatureVersion, signed_fields
from msmqwire.packets import USER_MESSAGE
from msmqwire.schema import Record

AIM: Final = 1.3
BODY: Final = bytes(range(256)) * 4
V2: Final = SignatureVersion.MSMQ_2_0
AES_256: Final = EncryptionAlgorithm.CALG_AES_256
SHA_512: Final = HashAlgorithm.CALG_SHA_512
PADDING: Final = bytes(3)


def message() -> Record:
    """A message with the usual properties, and places for signature, certificate and key."""
    return USER_MESSAGE.make(
        {
            "UserHeader": {
                "SourceQueueManager": UUID(int=7),
                "DestinationQueue": {"DirectFormatName": "TCP:10.0.0.2\\private$\\orders"},
                "ResponseQueue": {"DirectFormatName": "TCP:10.0.0.1\\private$\\answers"},
                "AdminQueue": {"DirectFormatName": "TCP:10.0.0.1\\private$\\admin"},
            },
            "SecurityHeader": {
                "Flags": {"ST": 2, "AI": 1, "DE": 1},
                "SecurityData": {"SecurityID": bytes(16), "Signature": bytes(256), "SenderCert": bytes(800)},
            },
            "MessagePropertiesHeader": {"Label": "order 4711", "MessageBody": BODY},
        }
    )


def set_signature(packet: Record, signature: bytes) -> None:
    security = packet.SecurityHeader
    packet.BaseHeader.PacketSize += len(signature) - security.SignatureSize
    security.SignatureSize = len(signature)
    security.SecurityData.Signature = signature


def set_body(packet: Record, body: bytes, key: bytes) -> None:
    security, properties = packet.SecurityHeader, packet.MessagePropertiesHeader
    data = security.SecurityData
    key_padding, padding = PADDING[: -len(key) % 4], PADDING[: -(22 + len(body)) % 4]
    packet.BaseHeader.PacketSize += (
        len(key) + len(key_padding) + len(body) + len(padding)
        - len(data.EncryptionKey) - len(data.EncryptionKeyPadding)
        - len(properties.MessageBody) - len(properties.Padding)
    )  # fmt: skip
    security.EncryptionKeySize, data.EncryptionKey, data.EncryptionKeyPadding = len(key), key, key_padding
    properties.MessageSize = properties.AllocationBodySize = len(body)
    properties.MessageBody, properties.Padding = body, padding


def bare_encrypt(key: bytes) -> bytes:
    padder, encryptor = PKCS7(128).padder(), Cipher(AES(key), CBC(bytes(16))).encryptor()
    return encryptor.update(padder.update(BODY) + padder.finalize()) + encryptor.finalize()


def bare_decrypt(key: bytes, body: bytes) -> bytes:
    unpadder, decryptor = PKCS7(128).unpadder(), Cipher(AES(key), CBC(bytes(16))).decryptor()
    return unpadder.update(decryptor.update(body) + decryptor.finalize()) + unpadder.finalize()


class Bench:
    """One message in clear and encrypted, signed, as packet and as bytes, and its keys."""

    def __init__(self) -> None:
        self.key = rsa.generate_private_key(65537, 2048)
        self.public = self.key.public_key()
        self.clear = message()
        self.covered = signed_fields(self.clear, V2)
        self.signature = self.key.sign(self.covered, PKCS1v15(), SHA512())
        set_signature(self.clear, sign(self.clear, V2, self.key, SHA_512))
        assert self.clear.SecurityHeader.SecurityData.Signature == self.signature[::-1]
        self.clear_bytes = self.clear.to_bytes()
        self.session = new_session_key(AES_256, 256, os.urandom)
        self.blob = wrap(self.session, self.public)
        self.secret = USER_MESSAGE.parse(self.clear_bytes)
        set_body(self.secret, encrypt(self.session, BODY), self.blob)
        self.secret_bytes = self.secret.to_bytes()
        assert USER_MESSAGE.parse(self.secret_bytes) == self.secret
        self.wrapped, self.body = self.blob[:11:-1], self.secret.MessagePropertiesHeader.MessageBody

    def rows(self) -> Iterator[tuple[str, Callable[[], Any], Callable[[Record], None], bool]]:
        """Return the name of the work, the bare calls, ours, and whether ours gets the encrypted packet."""
        session, blob, body = self.session.key, self.blob, self.body

        def sign_packet(packet: Record) -> None:
            set_signature(packet, sign(packet, V2, self.key, SHA_512))

        def verify_packet(packet: Record) -> None:
            assert signature_version(packet, self.public) is V2

        def encrypt_with_new_key(packet: Record) -> None:
            key = new_session_key(AES_256, 256, os.urandom)
            set_body(packet, encrypt(key, BODY), wrap(key, self.public))

        def decrypt_unwrapping(packet: Record) -> None:
            data, properties = packet.SecurityHeader.SecurityData, packet.MessagePropertiesHeader
            key = unwrap(
                data.EncryptionKey,
                self.key,
                DEFAULT,
                properties.EncryptionAlgorithm,
                CryptographicProvider.AES,
            )
            set_body(packet, decrypt(key, body), blob)

        def bare_new_key() -> None:
            key = os.urandom(32)
            self.public.encrypt(key, PKCS1v15())
            bare_encrypt(key)

        yield "sign", lambda: self.key.sign(self.covered, PKCS1v15(), SHA512()), sign_packet, False
        yield (
            "verify",
            lambda: self.public.verify(self.signature, self.covered, PKCS1v15(), SHA512()),
            verify_packet,
            False,
        )
        yield "encrypt, new key", bare_new_key, encrypt_with_new_key, False
        yield (
            "encrypt, cached key",
            lambda: bare_encrypt(session),
            lambda packet: set_body(packet, encrypt(self.session, BODY), blob),
            False,
        )
        yield (
            "decrypt, new key",
            lambda: bare_decrypt(self.key.decrypt(self.wrapped, PKCS1v15()), body),
            decrypt_unwrapping,
            True,
        )
        yield (
            "decrypt, cached key",
            lambda: bare_decrypt(session, body),
            lambda packet: set_body(packet, decrypt(self.session, body), blob),
            True,
        )


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    bench = Bench()
    print(
        f"{'µs a message of 1 KiB':<22} {'bare':>8} {'ours':>8} {'ratio':>6} {'from bytes':>11} {'ratio':>6}"
    )
    ratios = []
    for name, bare, ours, encrypted in bench.rows():
        packet, data = (bench.secret, bench.secret_bytes) if encrypted else (bench.clear, bench.clear_bytes)
        packet = USER_MESSAGE.parse(data)

        def from_bytes(data: bytes = data, ours: Callable[[Record], None] = ours) -> bytes:
            packet = USER_MESSAGE.parse(data)
            ours(packet)
            return packet.to_bytes()

        plain, own, whole = best([bare, lambda ours=ours, packet=packet: ours(packet), from_bytes], rounds)
        ratios.append(own / plain)
        print(
            f"{name:<22} {plain:>8.1f} {own:>8.1f} {own / plain:>6.2f} {whole:>11.1f} {whole / plain:>6.2f}"
        )
    verdict = "reached" if max(ratios) < AIM else "missed"
    print(f"\nworst ratio {max(ratios):.2f}, aim under {AIM}: {verdict}")


if __name__ == "__main__":
    main()
