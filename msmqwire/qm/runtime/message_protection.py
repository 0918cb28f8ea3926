"""Protection of messages by the names that programs use: versions of signatures, hashes and ciphers; and as
JSON.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from msmqwire.constants import EncryptionAlgorithm, HashAlgorithm, PrivacyLevel
from msmqwire.errors import InvalidName, InvalidValue, MalformedPacket
from msmqwire.headers.security_descriptor import SID
from msmqwire.names import FormatName
from msmqwire.qm.model.enumerations import AuthenticationLevel
from msmqwire.qm.model.message import Message
from msmqwire.qm.security import signing

VERSIONS: Final[Mapping[str, AuthenticationLevel]] = MappingProxyType(
    {"1.0": AuthenticationLevel.SIG10, "2.0": AuthenticationLevel.SIG20, "3.0": AuthenticationLevel.SIG30}
)
"""The versions of MSMQ whose signatures messages can have."""
HASHES: Final[Mapping[str, HashAlgorithm]] = MappingProxyType(
    {
        "md5": HashAlgorithm.CALG_MD5,
        "sha1": HashAlgorithm.CALG_SHA1,
        "sha256": HashAlgorithm.CALG_SHA_256,
        "sha512": HashAlgorithm.CALG_SHA_512,
    }
)
"""The hashes with which messages are signed."""
CIPHERS: Final[Mapping[str, tuple[PrivacyLevel, EncryptionAlgorithm]]] = MappingProxyType(
    {
        "rc2": (PrivacyLevel.MQMSG_PRIV_LEVEL_BODY_ENHANCED, EncryptionAlgorithm.CALG_RC2),
        "rc4": (PrivacyLevel.MQMSG_PRIV_LEVEL_BODY_ENHANCED, EncryptionAlgorithm.CALG_RC4),
        "aes128": (PrivacyLevel.MQMSG_PRIV_LEVEL_BODY_AES, EncryptionAlgorithm.CALG_AES_128),
        "aes192": (PrivacyLevel.MQMSG_PRIV_LEVEL_BODY_AES, EncryptionAlgorithm.CALG_AES_192),
        "aes256": (PrivacyLevel.MQMSG_PRIV_LEVEL_BODY_AES, EncryptionAlgorithm.CALG_AES_256),
    }
)
"""The ciphers with which messages are encrypted, and the PrivacyLevel of each."""
LEGACY: Final = frozenset({"md5", "rc2", "rc4"})
"""Broken algorithms, which must be asked for explicitly."""
PROPERTIES: Final = ("signature", "encrypt")
"""The further fields of a request to send, for a signed message and for a message to encrypt."""
_NAMES: Final[Mapping[int, str]] = {algorithm: name for name, (_, algorithm) in CIPHERS.items()}
_VERSION_TEXTS: Final = {version: text for text, version in VERSIONS.items()}
_SIGNATURE: Final = frozenset({"version", "hash", "sid", "certificate", "value"})


# -- messages that are read -------------------------------------------------------------------------------


def protection_json(message: Message) -> dict[str, Any]:
    """Return the protection of a message on its way here, as far as it was verified here.

    ``signature`` was verified with the certificate in the message, whoever owns it; ``authenticated`` means
    that this certificate is registered for the sender.
    """
    certificate = message.sender_certificate
    return {
        "authenticated": bool(message.authentication_level),
        "signature": signature_of(message),
        "sender_certificate": b64encode(certificate).decode() if certificate else None,
        "encrypted": cipher_of(message),
    }


def signature_of(message: Message) -> str | None:
    """Return the version of MSMQ of the signature that was verified here; None for none."""
    return _VERSION_TEXTS.get(message.signature_type)


def cipher_of(message: Message) -> str | None:
    """Return the cipher from which the body was decrypted here; None if it came in clear."""
    return _NAMES.get(message.encryption_algorithm) if message.decrypted else None


# -- messages that are sent -------------------------------------------------------------------------------


def set_cipher(message: Message, name: object) -> None:
    """Ask for a cipher. Raises InvalidValue."""
    if not isinstance(name, str) or name not in CIPHERS:
        raise InvalidValue(f"{name!r:.100} is none of {', '.join(CIPHERS)}", path="encrypt")
    message.privacy_level, message.encryption_algorithm = CIPHERS[name]


def protection_request(message: Message) -> dict[str, Any]:
    """Return the further fields of a request to send a message, if `signing.signed` has signed it or it asks
    for a cipher.

    It has the signature, and no key.
    """
    request: dict[str, Any] = {}
    if message.privacy_level:
        request["encrypt"] = _NAMES[message.encryption_algorithm]
    signature = message.signature or message.multiple_destination_signature
    if signature:
        request["signature"] = {
            "version": _VERSION_TEXTS[message.authentication_level],
            "hash": int(message.hash_algorithm),
            "sid": b64encode(message.sender_identifier).decode(),
            "certificate": b64encode(message.sender_certificate).decode(),
            "value": b64encode(signature).decode(),
        }
    return request


def protect(
    message: Message, request: Mapping[str, Any], destination: FormatName, *, transactional: bool
) -> None:
    """Protect a message by the fields of `protection_request`. Raises InvalidValue."""
    if request.get("encrypt") is not None:
        set_cipher(message, request["encrypt"])
    if request.get("signature") is None:
        return
    told = request["signature"]
    if not isinstance(told, Mapping) or set(told) != _SIGNATURE:
        raise InvalidValue("not a signature", path="signature")
    version, algorithm = told["version"], told["hash"]
    if not isinstance(version, str) or version not in VERSIONS:
        raise InvalidValue(f"{version!r:.100} is none of {', '.join(VERSIONS)}", path="signature")
    if type(algorithm) is not int or algorithm not in HASHES.values():
        raise InvalidValue(f"{algorithm!r:.100} is not a hash of messages", path="signature")
    sid, certificate, value = (_bytes(told[name]) for name in ("sid", "certificate", "value"))
    if sid:
        try:
            SID.parse(sid)
        except MalformedPacket as exc:
            raise InvalidValue(exc.why, path="signature") from None
    message.destination = destination  # a name in the spelling that was signed
    try:
        signing.prepare(message, sid, certificate, VERSIONS[version], algorithm, transactional=transactional)
    except InvalidName as exc:
        raise InvalidValue(exc.why, path="signature") from None
    signing.set_signature(message, value)


def _bytes(value: object) -> bytes:
    try:
        if isinstance(value, str):
            return b64decode(value, validate=True)
    except ValueError:
        pass
    raise InvalidValue("not base64", path="signature")
