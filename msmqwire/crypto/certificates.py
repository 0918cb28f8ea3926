"""X.509 certificates of senders: [MS-MQMQ] 2.2.20.6 and 2.2.22."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Self

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from msmqwire.constants import HashAlgorithm
from msmqwire.crypto.hashes import digest
from msmqwire.crypto.rsa import unusable
from msmqwire.errors import InvalidValue
from msmqwire.names.printable import counted

CERTIFICATE_SIZE_MAX: Final = 0xFFFF
"""Bytes: MQMQ-2.2.20.6-18."""

UNREADABLE: Final = (
    ValueError,
    TypeError,
    UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
)
"""The errors of cryptography for parts of certificates, which it reads only when they are asked for."""


@dataclass(frozen=True, slots=True)
class SenderCertificate:
    """A certificate of a sender. Whether it is believed is for whoever registers it, not for its issuer.

    Attributes:
        der: its bytes, as they are in SecurityData.SenderCert.
        key: its RSA key.
        subject: its name, as text for people.
        serial: its serial number.
        not_before, not_after: seconds since 1970-01-01 UTC, both included.
        digest: MD5 of `der`, Digest of MQUSERSIGNCERT: a number to find it by, no proof.
    """

    der: bytes
    key: RSAPublicKey
    subject: str
    serial: int
    not_before: int
    not_after: int
    digest: bytes

    @classmethod
    def read(cls, der: bytes) -> Self:
        """Read a certificate in DER. Raises InvalidValue, also for a key that messages can't have."""
        if len(der) > CERTIFICATE_SIZE_MAX:
            raise InvalidValue(
                f"a certificate of {counted(len(der), 'byte')}, not at most {CERTIFICATE_SIZE_MAX:,}"
            )
        try:
            certificate = x509.load_der_x509_certificate(der)
            key = certificate.public_key()
            subject = certificate.subject.rfc4514_string()
            validity = certificate.not_valid_before_utc, certificate.not_valid_after_utc
            serial = certificate.serial_number
        except UNREADABLE:
            raise unreadable() from None
        if why := unusable(key):
            raise InvalidValue(why)
        assert isinstance(key, RSAPublicKey)
        not_before, not_after = (int(time.timestamp()) for time in validity)
        return cls(der, key, subject, serial, not_before, not_after, digest(HashAlgorithm.CALG_MD5, der))

    @classmethod
    def read_file(cls, content: bytes) -> Self:
        """Read the content of a file, PEM or DER; the first certificate counts. Raises InvalidValue."""
        if b"-----BEGIN " not in content:
            return cls.read(content)
        return cls.read(ders_of_pem(content)[0])

    def is_valid(self, now: int) -> bool:
        """Return whether it is valid at this time."""
        return self.not_before <= now <= self.not_after


def unreadable() -> InvalidValue:
    """Return our error for one of `UNREADABLE`."""
    return InvalidValue("a certificate that can't be read: damaged, cut off, or no X.509 in PEM or DER")


def ders_of_pem(content: bytes) -> list[bytes]:
    """Return the certificates of a file in PEM, at least one, in DER. Raises InvalidValue."""
    try:
        found = x509.load_pem_x509_certificates(content)
    except ValueError:
        raise InvalidValue("no certificates in PEM") from None
    return [certificate.public_bytes(Encoding.DER) for certificate in found]


def create_self_signed(
    private_key: RSAPrivateKey, subject: str, not_before: int, not_after: int, serial: int
) -> bytes:
    """Return a new certificate in DER, an internal certificate of MSMQ: signed by its own key, with SHA-256.

    Args:
        private_key: the sender's.
        subject: its common name.
        not_before, not_after: seconds since 1970-01-01 UTC, both included.
        serial: its number, which should be random: `x509.random_serial_number`.

    Raises InvalidValue for a name, time or number that a certificate can't hold, or a key too short to sign.
    """
    if why := unusable(private_key):
        raise InvalidValue(why)
    try:
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)])
        builder = (
            x509.CertificateBuilder(name, name, private_key.public_key())
            .serial_number(serial)
            .not_valid_before(datetime.fromtimestamp(not_before, UTC))
            .not_valid_after(datetime.fromtimestamp(not_after, UTC))
        )
        return builder.sign(private_key, SHA256()).public_bytes(Encoding.DER)
    except (*UNREADABLE, OverflowError, OSError):
        why = "a name has 1 to 64 characters, times are between 1950 and 9999, a number has up to 20 bytes"
        raise InvalidValue(f"no certificate can be made: {why}") from None
