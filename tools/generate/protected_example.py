"""The capture of signed and encrypted messages in examples/, with keys that protect nothing else.

The private keys are files in examples/keys: missing ones are made, and everything that depends on them is
made anew.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509 import load_der_x509_certificate

import msmqwire
from msmqwire.constants import (
    PROVIDER_OF_LEVEL,
    EncryptionAlgorithm,
    HashAlgorithm,
    PrivacyLevel,
)
from msmqwire.crypto.certificates import create_self_signed
from msmqwire.crypto.ciphers import SessionKey, encrypt, new_session_key
from msmqwire.crypto.keys import read_private_key
from msmqwire.crypto.signatures import sign
from msmqwire.crypto.signed_fields import SignatureVersion
from msmqwire.headers import SIMPLEBLOB
from msmqwire.schema import Record
from tests.support.captures import TcpConversation

SENT: Final = 1_772_366_400  # 2026-03-01T12:00:00Z
YEAR: Final = 365 * 86_400
QM_CLIENT = UUID("557358d1-9150-9595-4997-b6e611ea26c6")
QM_SERVER = UUID("43cd8907-394c-8f11-4445-9078909ea0fc")
ALICE_SID: Final = "010500000000000515000000ad4a9ebd36d9fa3d63a656dae8030000"
KEYS: Final = {"queue-manager": 2048, "other-queue-manager": 2048, "alice": 2048, "bob": 1024}
"""The bits of each private key."""
V1, V2, V3 = SignatureVersion
LEVELS: Final = {
    EncryptionAlgorithm.CALG_RC2: PrivacyLevel.MQMSG_PRIV_LEVEL_BODY_BASE,
    EncryptionAlgorithm.CALG_RC4: PrivacyLevel.MQMSG_PRIV_LEVEL_BODY_ENHANCED,
    EncryptionAlgorithm.CALG_AES_128: PrivacyLevel.MQMSG_PRIV_LEVEL_BODY_AES,
    EncryptionAlgorithm.CALG_AES_256: PrivacyLevel.MQMSG_PRIV_LEVEL_BODY_AES,
}
KEY_BITS: Final = {
    EncryptionAlgorithm.CALG_RC2: 40,
    EncryptionAlgorithm.CALG_RC4: 128,
    EncryptionAlgorithm.CALG_AES_128: 128,
    EncryptionAlgorithm.CALG_AES_256: 256,
}


def private_keys(folder: Path) -> dict[str, RSAPrivateKey]:
    """Return the keys by name; make the missing files."""
    folder.mkdir(exist_ok=True)
    keys = {}
    for name, bits in KEYS.items():
        path = folder / f"{name}.pem"
        if not path.exists():
            key = rsa.generate_private_key(65537, bits)
            path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        keys[name] = read_private_key(path.read_bytes())
    return keys


def certificate(keys: dict[str, RSAPrivateKey], name: str) -> bytes:
    """Return the certificate of a sender in DER, as MSMQ makes them: signed by its own key."""
    return create_self_signed(keys[name], name, SENT - YEAR, SENT + 9 * YEAR, list(KEYS).index(name))


def certificate_file(keys: dict[str, RSAPrivateKey], name: str) -> bytes:
    return load_der_x509_certificate(certificate(keys, name)).public_bytes(Encoding.PEM)


def wrapped(session_key: SessionKey, public_key: RSAPublicKey, rng: random.Random) -> bytes:
    """Return a SIMPLEBLOB that is the same each time: `crypto.keys.wrap` pads at random, as one should."""
    numbers, size = public_key.public_numbers(), public_key.key_size // 8
    padding = bytes(rng.randrange(1, 256) for _ in range(size - 3 - len(session_key.key)))
    padded = int.from_bytes(b"\0\2" + padding + b"\0" + session_key.key)
    encrypted = pow(padded, numbers.e, numbers.n).to_bytes(size, "little")
    return SIMPLEBLOB.build({"sessionKeyAlgorithm": session_key.algorithm, "encryptedKey": encrypted})


def message(number: int, label: str, body: str, **more: Any) -> Record:
    """Return a message to a private queue of the server."""
    user = {
        "SourceQueueManager": QM_CLIENT,
        "QueueManagerAddress": QM_SERVER,
        "SentTime": SENT,
        "MessageID": number,
        "DestinationQueue": {"PrivateQueueIdentifier": 7},
    }
    fields = {
        "UserHeader": user,
        "SecurityHeader": {"Flags": {"ST": 1}, "SecurityData": {"SecurityID": bytes.fromhex(ALICE_SID)}},
        "MessagePropertiesHeader": {"Label": label, "MessageBody": body.encode("utf-16-le"), "BodyType": 31},
        **more,
    }
    return msmqwire.parse(msmqwire.build({"packet": "UserMessage", "fields": fields}))


def secured(packet: Record, *, flags: dict[str, int] | None = None, **items: Any) -> Record:
    """Return a message with more items in its SecurityHeader."""
    security = packet.SecurityHeader
    data = security.SecurityData.replace(**items)
    header = security.replace(SecurityData=data, Flags=security.Flags.replace(AI=1, **(flags or {})))
    return packet.replace(SecurityHeader=header).recomputed()


def with_properties(packet: Record, **fields: Any) -> Record:
    return packet.replace(
        MessagePropertiesHeader=packet.MessagePropertiesHeader.replace(**fields)
    ).recomputed()


def signed(packet: Record, keys: dict[str, RSAPrivateKey], name: str, version: int, algorithm: int) -> Record:
    """Return a message with the signature and the certificate of a sender."""
    packet = with_properties(packet, HashAlgorithm=int(algorithm))
    signature = sign(packet, SignatureVersion(version), keys[name], algorithm)
    packet = secured(packet, SenderCert=certificate(keys, name), flags={"DE": 1})
    if version != V3:
        return secured(packet, Signature=signature)
    lists = packet.MultiQueueFormatHeader
    lists = lists.replace(Signature=lists.Signature.replace(Signature=signature))
    return packet.replace(MultiQueueFormatHeader=lists).recomputed()


def encrypted(packet: Record, algorithm: EncryptionAlgorithm, key: RSAPrivateKey, seed: int) -> Record:
    """Return a message with its body encrypted for the owner of a key."""
    rng, level = random.Random(seed), LEVELS[algorithm]
    session_key = new_session_key(
        algorithm, KEY_BITS[algorithm], rng.randbytes, provider=PROVIDER_OF_LEVEL[level]
    )
    body = encrypt(session_key, packet.MessagePropertiesHeader.MessageBody)
    packet = with_properties(
        packet,
        MessageBody=body,
        AllocationBodySize=len(body),
        PrivacyLevel=int(level),
        EncryptionAlgorithm=int(algorithm),
    )
    return secured(
        packet, EncryptionKey=wrapped(session_key, key.public_key(), rng), flags={"EB": 1, "DE": 1}
    )


def messages(keys: dict[str, RSAPrivateKey]) -> list[Record]:
    """Return the messages of the capture, one for each outcome."""
    here, other = keys["queue-manager"], keys["other-queue-manager"]
    several = {
        "Destination": {
            "FormatNameList": [
                {"FormatName": {"DirectFormatName": "TCP:10.0.0.2\\private$\\orders"}},
                {"FormatName": {"PublicQueueIdentifier": QM_SERVER}},
            ]
        }
    }
    sha1, sha512 = HashAlgorithm.CALG_SHA1, HashAlgorithm.CALG_SHA_512
    by_alice = signed(message(2, "signed by alice", "ten barrels"), keys, "alice", V2, sha512)
    return [
        message(1, "neither signed nor encrypted", "one barrel"),
        by_alice,
        with_properties(by_alice, Label="changed on its way"),
        signed(message(4, "MSMQ 1.0 with SHA-1", "two barrels"), keys, "alice", V1, sha1),
        signed(
            message(5, "MSMQ 3.0 for two queues", "three barrels", MultiQueueFormatHeader=several),
            keys, "alice", V3, sha512,
        ),
        signed(message(6, "signed by bob", "four barrels"), keys, "bob", V2, HashAlgorithm.CALG_MD5),
        with_properties(by_alice, HashAlgorithm=0x800D, Label="SHA-384"),
        encrypted(message(8, "AES-256", "five barrels"), EncryptionAlgorithm.CALG_AES_256, here, 8),
        encrypted(message(9, "RC2 with 40 bits", "six barrels"), EncryptionAlgorithm.CALG_RC2, here, 9),
        encrypted(message(10, "RC4 with 128 bits", "seven barrels"), EncryptionAlgorithm.CALG_RC4, here, 10),
        encrypted(
            signed(message(11, "signed, AES-128", "eight barrels"), keys, "alice", V2, sha512),
            EncryptionAlgorithm.CALG_AES_128, here, 11,
        ),
        encrypted(
            signed(message(12, "for another queue manager", "nine barrels"), keys, "alice", V2, sha512),
            EncryptionAlgorithm.CALG_AES_256, other, 12,
        ),
    ]  # fmt: skip


def protected(
    keys: dict[str, RSAPrivateKey],
    opened: Callable[[TcpConversation], TcpConversation],
    talk: TcpConversation,
) -> TcpConversation:
    """Return a session with the messages; `opened` adds its handshake to a conversation."""
    opened(talk)
    for packet in messages(keys):
        talk.send(packet.to_bytes())
    return talk.close()
