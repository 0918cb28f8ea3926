"""Digital signatures of messages: [MS-MQMQ] 2.2.20.6, [MS-MQQB] 3.1.5.8.3 and 3.1.7.1.4."""

from __future__ import annotations

from collections.abc import Sequence
from hmac import compare_digest
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
from cryptography.hazmat.primitives.asymmetric.utils import NoDigestInfo

from msmqwire.crypto.hashes import digest, digest_info
from msmqwire.crypto.readings import DEFAULT, Readings
from msmqwire.crypto.signed_fields import SignatureVersion, signed_fields
from msmqwire.errors import InvalidName, InvalidValue
from msmqwire.schema import Record

_PADDING: Final = PKCS1v15()  # MQQB-2.4.1-05
_AS_IT_IS: Final = NoDigestInfo()  # the DigestInfo is ours: cryptography knows none for MD2 and MD4
_SINGLE: Final = (
    SignatureVersion.MSMQ_2_0,  # MQQB-3.1.5.8.3-03, MQMQ-2.2.20.6-26
    SignatureVersion.MSMQ_1_0,  # MQQB-3.1.5.8.3-04, MQMQ-2.2.20.6-25
)
_MULTIPLE: Final = (SignatureVersion.MSMQ_3_0,)  # MQQB-3.1.5.8.3-05, MQMQ-2.2.20.6-27, MQMQ-2.2.20.3-05


def sign(
    packet: Record,
    version: SignatureVersion,
    private_key: RSAPrivateKey,
    hash_algorithm: int,
    readings: Readings = DEFAULT,
) -> bytes:
    """Return the signature of a UserMessage whose body is in clear, for SecurityData or MQFSignatureHeader.

    `hash_algorithm` is the value for MessagePropertiesHeader.HashAlgorithm. MD2, MD4, MD5 and SHA-1 are
    broken.

    Raises UnsupportedAlgorithm, InvalidValue for a key too short for the hash, and as `signed_fields`.
    """
    data = _hashed(hash_algorithm, signed_fields(packet, version, readings), readings)
    try:
        signature = private_key.sign(data, _PADDING, _AS_IT_IS)  # MQQB-2.4.1-05
    except ValueError:
        why = f"a key of {private_key.key_size} bits is too short for the hash {hash_algorithm:#x}"
        raise InvalidValue(why, path="MessagePropertiesHeader.HashAlgorithm") from None
    return _ordered(signature, readings)


def signature_version(
    packet: Record, public_key: RSAPublicKey, readings: Readings = DEFAULT
) -> SignatureVersion | None:
    """Return which version the signature of a UserMessage has, its body in clear; None if it is wrong.

    SecurityData.Signature is tried as 2.0 and then as 1.0, and only where there is none that of the
    MultiQueueFormatHeader as 3.0: [MS-MQQB] 3.1.5.8.3. A message without a signature has none.

    Raises UnsupportedAlgorithm for a HashAlgorithm that is unknown: MQMQ-2.2.19.3-29.
    """
    recovered = recovered_from_signature(packet, public_key, readings)
    if recovered is None:
        if _signature_of(packet)[0]:
            digest(packet.MessagePropertiesHeader.HashAlgorithm, b"")  # refuses it all the same if unknown
        return None
    return version_of(packet, recovered, readings)


def recovered_from_signature(
    packet: Record, public_key: RSAPublicKey, readings: Readings = DEFAULT
) -> bytes | None:
    """Return the data that the owner of a key has signed; None if the signature was made with another key.

    That takes no look at the fields, which may be long and their hash slow: `version_of` does.
    """
    return recovered_from(_signature_of(packet)[0], public_key, readings)


def recovered_from(signature: bytes, public_key: RSAPublicKey, readings: Readings = DEFAULT) -> bytes | None:
    """Return the data that the owner of a key has signed; None if there is no signature, or one of another
    key.
    """
    if not signature:
        return None
    try:
        return public_key.recover_data_from_signature(_ordered(signature, readings), _PADDING, _AS_IT_IS)
    except (InvalidSignature, ValueError):
        return None


def version_of(packet: Record, recovered: bytes, readings: Readings = DEFAULT) -> SignatureVersion | None:
    """Return for which version a signature is that of the packet, as `signature_version` does.

    `recovered` is the result of `recovered_from_signature`.
    """
    algorithm = packet.MessagePropertiesHeader.HashAlgorithm  # MQMQ-2.2.20.6-28
    for version in _signature_of(packet)[1]:
        try:
            data = signed_fields(packet, version, readings)
        except InvalidName:
            continue
        if compare_digest(recovered, _hashed(algorithm, data, readings)):  # MQMQ-2.2.20.6-28
            return version
    return None


def _signature_of(packet: Record) -> tuple[bytes, Sequence[SignatureVersion]]:
    """Return the signature to be verified and the possible data."""
    security, lists = packet.SecurityHeader, packet.MultiQueueFormatHeader
    if security is not None and security.SecurityData.Signature:
        return security.SecurityData.Signature, _SINGLE
    return (lists.Signature.Signature if lists is not None else b""), _MULTIPLE


def _hashed(algorithm: int, data: bytes, readings: Readings) -> bytes:
    return digest_info(algorithm, data) if readings.digest_info else digest(algorithm, data)


def _ordered(signature: bytes, readings: Readings) -> bytes:
    return signature[::-1] if readings.signature_bytes == "little" else signature  # MQQB-2.4.1-05
