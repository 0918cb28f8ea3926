"""Decryption and verification of a captured message with the keys and certificates at hand.

[MS-MQQB] 3.1.5.8.3 as far as a capture lets it be judged: there is no directory, and no time counts.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self, TypeAlias

from msmqwire.analysis.protocols import protocol_of
from msmqwire.analysis.protocols.protocol import JoinedPacket
from msmqwire.constants import PROVIDER_OF_LEVEL
from msmqwire.crypto.key_files import key_content, private_keys
from msmqwire.crypto.readings import DEFAULT, Readings
from msmqwire.errors import DecryptionFailed, InvalidValue, LocatedError
from msmqwire.names.printable import counted
from msmqwire.schema import Record

if TYPE_CHECKING:  # imported where a message is protected: it takes long
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey

    from msmqwire.crypto.ciphers import SessionKey

FileContent: TypeAlias = "bytes | str | os.PathLike[str]"
"""The content of a file, the same as PEM text, or its path."""

SENDERS_MAX: Final = 256
"""Certificates of senders whose keys are kept."""
SESSION_KEYS_MAX: Final = 256
"""Wrapped keys that are kept with their unwrapped ones."""

_PEM: Final = "-----BEGIN "
_SIMPLEBLOB_HEAD: Final = 12
_PATH_MAX: Final = 255  # characters of a path that an error shows


class SignatureStatus(StrEnum):
    """The status of a signature."""

    NONE = "none"
    """There is none, or no SecurityHeader, without which a receiver looks at none: MQQB-3.1.5.8.3-01."""
    VALID = "valid"
    """The signature is right by the sender's certificate, which is among those given."""
    INVALID = "invalid"
    """The signature is not right by the certificate that comes with it."""
    UNKNOWN_SENDER = "unknown_sender"
    """The signature is right by the certificate that comes with it, but that is not given; or none comes."""
    UNSUPPORTED = "unsupported"
    """The signature can't be judged: the hash is unknown, the certificate is unreadable or its key not RSA,
    the body is encrypted for another queue manager or not all there, or it is the XML signature of SRMP."""


@dataclass(frozen=True, slots=True)
class Examined:
    """The security of a message, as far as keys and certificates show it.

    Attributes:
        signature_status: see `SignatureStatus`.
        decrypted: whether the body was encrypted, and one of the keys given decrypts it.
        body: the body in clear; None unless `decrypted`.
    """

    signature_status: SignatureStatus
    decrypted: bool = False
    body: bytes | None = field(default=None, repr=False)


_UNPROTECTED: Final = Examined(SignatureStatus.NONE)


class Examiner:
    """Decrypts the bodies of messages and verifies their signatures, as far as keys and certificates reach.

    Its results for one packet are kept until it gets the next one.

    Args:
        keys: private keys of the queue managers that messages were sent to.
        certificates: certificates of senders, in DER.
        readings: readings of the specification for signatures and session keys.
    """

    def __init__(
        self,
        keys: Iterable[RSAPrivateKey] = (),
        certificates: Iterable[bytes] = (),
        readings: Readings = DEFAULT,
    ) -> None:
        self._keys, self._certificates, self._readings = tuple(keys), frozenset(certificates), readings
        self._session_keys: dict[tuple[bytes, int, int], tuple[SessionKey, ...]] = {}
        self._last: tuple[Record | None, Examined] = None, _UNPROTECTED

    def __repr__(self) -> str:
        keys, certificates = counted(len(self._keys), "key"), counted(len(self._certificates), "certificate")
        return f"<Examiner {keys}, {certificates}>"

    @classmethod
    def from_files(
        cls,
        keys: FileContent | Iterable[FileContent] = (),
        certificates: FileContent | Iterable[FileContent] = (),
        readings: Readings | Mapping[str, str] = DEFAULT,
    ) -> Self:
        """Read files: keys in PEM (also several in one file) or DER, certificates likewise.

        Keys may also be the folder of a queue manager, or the file with the keys in it.

        Raises InvalidValue for a file that can't be read as a key or certificate, OSError for a file that
        can't be opened.
        """
        if not isinstance(readings, Readings):
            readings = Readings.of(readings)
        return cls(
            [key for content in _contents(keys, of_keys=True) for key in _private_keys(*content)],
            [der for content in _contents(certificates) for der in _certificates(*content)],
            readings,
        )

    def separate(self) -> Examiner:
        """Return an examiner with the same keys and certificates, for another thread."""
        return Examiner(self._keys, self._certificates, self._readings)

    @property
    def has_keys(self) -> bool:
        """Whether any body can be decrypted."""
        return bool(self._keys)

    @property
    def was_given_any(self) -> bool:
        """Whether there are keys or certificates."""
        return bool(self._keys or self._certificates)

    def examine(self, packet: Record | JoinedPacket | None) -> Examined | None:
        """Return the security of a message; None for a packet that is none."""
        cut = False
        if (protocol := protocol_of(packet)) is not None:
            if (enclosed := protocol.packets.message_in(packet)) is None:
                judge = protocol.packets.signature_status
                status = None if judge is None else judge(packet)
                return None if status is None else Examined(SignatureStatus(status))
            packet, cut = enclosed.whole, enclosed.cut
        if not isinstance(packet, Record) or packet.get("UserHeader") is None:
            return None
        if packet.SecurityHeader is None:
            return _UNPROTECTED
        last, examined = self._last
        if packet is not last:
            examined = self._examine(packet, cut=cut)
            self._last = packet, examined
        return examined

    def _examine(self, packet: Record, *, cut: bool) -> Examined:
        encrypted = bool(packet.SecurityHeader.Flags.EB)
        body = self._body_in_clear(packet) if encrypted and self._keys and not cut else None
        decrypted = body is not None
        if not is_signed(packet):
            status = SignatureStatus.NONE
        elif cut:
            status = SignatureStatus.UNSUPPORTED
        else:
            status = self._status(packet, body)
            if status is SignatureStatus.INVALID and encrypted and not decrypted:
                # A server of remote read may have decrypted the body, which is why it was tried.
                status = SignatureStatus.UNSUPPORTED
        return Examined(status, decrypted, body)

    # -- signatures ---------------------------------------------------------------------------------

    def _status(self, packet: Record, body: bytes | None) -> SignatureStatus:
        from msmqwire.crypto.signatures import signature_version

        certificate = packet.SecurityHeader.SecurityData.SenderCert
        key = key_of(certificate)
        if key is None:
            return status_without_key(certificate)
        if body is not None:
            properties = packet.MessagePropertiesHeader.replace(MessageBody=body)
            packet = packet.replace(MessagePropertiesHeader=properties)
        try:
            version = signature_version(packet, key, self._readings)
        except LocatedError:
            return SignatureStatus.UNSUPPORTED
        if version is None:
            return SignatureStatus.INVALID
        known = certificate in self._certificates
        return SignatureStatus.VALID if known else SignatureStatus.UNKNOWN_SENDER

    def status_if_forged(
        self, key: RSAPublicKey, signature: bytes, algorithm: int, *, encrypted: bool
    ) -> SignatureStatus | None:
        """Return the status of a signature that is not by the owner of the key; None if it may be.

        Args:
            key: the key of the certificate that comes with it.
            signature: the bytes of the signature.
            algorithm: the HashAlgorithm of the message.
            encrypted: whether the body is encrypted, and not for one of the keys given.
        """
        from msmqwire.crypto.signatures import recovered_from

        if recovered_from(signature, key, self._readings) is not None:
            return None
        return (
            SignatureStatus.INVALID if _is_hash(algorithm) and not encrypted else SignatureStatus.UNSUPPORTED
        )

    # -- bodies -------------------------------------------------------------------------------------

    def _body_in_clear(self, packet: Record) -> bytes | None:
        """Return the body decrypted; None if no key does it."""
        from msmqwire.crypto.ciphers import decrypt

        for session_key in self._session_keys_of(packet):
            try:
                return decrypt(session_key, packet.MessagePropertiesHeader.MessageBody)
            except DecryptionFailed:
                continue
        return None

    def _session_keys_of(self, packet: Record) -> tuple[SessionKey, ...]:
        """Return the content of EncryptionKey for the owners of the keys: for more than one of them at most
        by chance.
        """
        from msmqwire.crypto.keys import unwrap

        properties, blob = packet.MessagePropertiesHeader, packet.SecurityHeader.SecurityData.EncryptionKey
        level, algorithm = properties.PrivacyLevel, properties.EncryptionAlgorithm
        provider = PROVIDER_OF_LEVEL.get(level)  # MQQB-3.1.5.8.3-15
        if provider is None:
            return ()
        known = self._session_keys.get((blob, algorithm, level))
        if known is not None:
            return known
        found = []
        for key in self._keys:
            if len(blob) - _SIMPLEBLOB_HEAD < -(-key.key_size // 8):
                continue  # it was not wrapped for this one
            try:
                session_key = unwrap(blob, key, self._readings, algorithm, provider)
            except DecryptionFailed:
                continue
            if session_key.usable:
                found.append(session_key)
        if len(self._session_keys) >= SESSION_KEYS_MAX:
            del self._session_keys[next(iter(self._session_keys))]
        self._session_keys[blob, algorithm, level] = tuple(found)
        return tuple(found)


def is_signed(packet: Record) -> bool:
    """Return whether a message with a SecurityHeader has a signature, its own or one over several names."""
    lists = packet.MultiQueueFormatHeader
    return bool(packet.SecurityHeader.SecurityData.Signature) or (
        lists is not None and bool(lists.Signature.Signature)
    )


def status_without_key(certificate: bytes) -> SignatureStatus:
    """Return the status of a signature whose certificate is missing, or for which `key_of` has no key."""
    return SignatureStatus.UNSUPPORTED if certificate else SignatureStatus.UNKNOWN_SENDER


@lru_cache(maxsize=SENDERS_MAX)
def key_of(certificate: bytes) -> RSAPublicKey | None:
    """Return the key of a certificate, which may be hostile; None if it has none that messages can have."""
    from msmqwire.crypto.certificates import SenderCertificate

    try:
        return SenderCertificate.read(certificate).key
    except InvalidValue:
        return None


@lru_cache(maxsize=64)
def _is_hash(algorithm: int) -> bool:
    """Whether there is such a HashAlgorithm."""
    from msmqwire.crypto.hashes import digest

    try:
        digest(algorithm, b"")
    except LocatedError:
        return False
    return True


NOTHING_GIVEN: Final = Examiner()
"""Neither keys nor certificates."""

# -- files ----------------------------------------------------------------------------------------------


def contents_of(files: FileContent | Iterable[FileContent], *, of_keys: bool = False) -> list[bytes]:
    """Return the content of each file, for `Examiner.from_files` elsewhere. Raises OSError, InvalidValue.

    With `of_keys` that of a folder is the file with the keys of the queue manager there.
    """
    return [content for content, _ in _contents(files, of_keys=of_keys)]


def _contents(
    files: FileContent | Iterable[FileContent], *, of_keys: bool = False
) -> list[tuple[bytes, str]]:
    """Return the content of each file, and its path if it has one."""
    if isinstance(files, (bytes, str, os.PathLike)):
        return [_content(files, of_keys=of_keys)]
    return [_content(source, of_keys=of_keys) for source in files]


def _content(source: FileContent, *, of_keys: bool) -> tuple[bytes, str]:
    if isinstance(source, bytes):
        return source, ""
    if isinstance(source, str) and source.lstrip().startswith(_PEM):
        return source.encode(), ""
    path = os.fspath(source)
    is_strange = len(path) > _PATH_MAX or any(text in path for text in ("-----", "\n", "\0"))
    if is_strange and not os.path.exists(path):
        raise InvalidValue("neither a path nor PEM text")  # it may be a key, which no error must show
    return key_content(Path(path)) if of_keys else Path(path).read_bytes(), path


def _private_keys(content: bytes, path: str) -> list[RSAPrivateKey]:
    try:
        return private_keys(content)
    except InvalidValue as exc:
        raise InvalidValue(exc.why, path=path) from None


def _certificates(content: bytes, path: str) -> list[bytes]:
    from msmqwire.crypto.certificates import SenderCertificate, ders_of_pem

    try:
        ders = ders_of_pem(content) if _PEM.encode() in content else [content]
        return [SenderCertificate.read(der).der for der in ders]
    except InvalidValue as exc:
        raise InvalidValue(exc.why, path=path) from None
