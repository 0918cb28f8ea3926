"""Digital signatures of messages: [MS-MQMQ] 2.2.20.6, [MS-MQQB] 3.1.5.8.3 and 3.1.7.1.4."""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey

from msmqwire.crypto.readings import DEFAULT, Readings
from msmqwire.crypto.signed_fields import SignatureVersion
from msmqwire.schema import Record


def sign(
    packet: Record,
    version: SignatureVersion,
    private_key: RSAPrivateKey,
    hash_algorithm: int,
    readings: Readings = DEFAULT,
) -> bytes:
    """Return the signature of a UserMessage whose body is in clear, for SecurityData or MQFSignatureHeader.

    `hash_algorithm` is what MessagePropertiesHeader.HashAlgorithm is to be. MD2, MD4, MD5 and SHA-1 are broken.
    Raises UnsupportedAlgorithm, InvalidValue for a key too short for the hash, and as `signed_fields`.
    """
    raise NotImplementedError


def signature_version(
    packet: Record, public_key: RSAPublicKey, readings: Readings = DEFAULT
) -> SignatureVersion | None:
    """Return of which version the signature of a UserMessage is, its body in clear; None if it is none of it.

    SecurityData.Signature is tried as 2.0 and then as 1.0, and only where there is none that of the
    MultiQueueFormatHeader as 3.0: [MS-MQQB] 3.1.5.8.3.
    Raises UnsupportedAlgorithm for a HashAlgorithm that is unknown: MQMQ-2.2.19.3-29.
    """
    raise NotImplementedError
