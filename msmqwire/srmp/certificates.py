"""X.509 certificates of XML signatures: the signer, and the certificates that a receiver trusts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Self

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.hashes import MD5, SHA1
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtensionOID

from msmqwire.crypto.certificates import UNREADABLE, ders_of_pem, unreadable
from msmqwire.crypto.keys import load_private_key
from msmqwire.errors import InvalidValue
from msmqwire.names.printable import counted
from msmqwire.srmp.signature_keys import PrivateKey, PublicKey, unusable

CERTIFICATES_MAX: Final = 256
"""Trusted certificates: each is tried with a signature."""
CHAIN_MAX: Final = 5
"""Certificates from a signer to one that is trusted."""

_UNDERSTOOD: Final = {
    ExtensionOID.BASIC_CONSTRAINTS,
    ExtensionOID.KEY_USAGE,
    ExtensionOID.EXTENDED_KEY_USAGE,
}


@dataclass(frozen=True)
class Certificate:
    """A certificate, all parts of which could be read.

    Attributes:
        der: its bytes.
        subject, issuer: their names, as text for people.
        key: for signatures of messages; None if it is of another kind, or too short.
        not_before, not_after: seconds since 1970-01-01 UTC, both included.
        signs: whether it is for signatures, as far as it says.
        issues: the number of further issuers that may follow below it; None if it may not issue certificates.
    """

    der: bytes
    subject: str
    issuer: str
    key: PublicKey | None
    not_before: int
    not_after: int
    signs: bool
    issues: int | None
    _x509: x509.Certificate = field(repr=False, compare=False)

    @classmethod
    def read(cls, der: bytes) -> Self:
        """Read a certificate. Raises InvalidValue."""
        try:
            return cls._of(x509.load_der_x509_certificate(der))
        except InvalidValue:
            raise
        except UNREADABLE:
            raise unreadable() from None

    @classmethod
    def _of(cls, certificate: x509.Certificate) -> Self:
        extensions = {extension.oid: extension for extension in certificate.extensions}
        strange = [
            oid for oid, extension in extensions.items() if extension.critical and oid not in _UNDERSTOOD
        ]
        if strange:
            oid = strange[0].dotted_string
            raise InvalidValue(f"a certificate whose critical extension {oid} is not understood")
        usage = constraints = None
        if (extension := extensions.get(ExtensionOID.KEY_USAGE)) is not None:
            usage = extension.value
            assert isinstance(usage, x509.KeyUsage)
        if (extension := extensions.get(ExtensionOID.BASIC_CONSTRAINTS)) is not None:
            constraints = extension.value
            assert isinstance(constraints, x509.BasicConstraints)
        issues = None
        if constraints is not None and constraints.ca and (usage is None or usage.key_cert_sign):
            issues = CHAIN_MAX if constraints.path_length is None else constraints.path_length
        return cls(
            certificate.public_bytes(Encoding.DER),
            certificate.subject.rfc4514_string(),
            certificate.issuer.rfc4514_string(),
            _key_of(certificate),
            int(certificate.not_valid_before_utc.timestamp()),
            int(certificate.not_valid_after_utc.timestamp()),
            usage is None or usage.digital_signature or usage.content_commitment,
            issues,
            certificate,
        )

    def is_valid(self, now: int) -> bool:
        """Return whether it is valid at this time."""
        return self.not_before <= now <= self.not_after

    def is_issued_by(self, issuer: Certificate) -> bool:
        """Return whether the key of another certificate has signed this one.

        Not with MD5 or SHA-1, for which certificates have been forged.
        """
        try:
            if isinstance(self._x509.signature_hash_algorithm, MD5 | SHA1):
                return False
            self._x509.verify_directly_issued_by(issuer._x509)
        except (InvalidSignature, *UNREADABLE):
            return False
        return True


def _key_of(certificate: x509.Certificate) -> PublicKey | None:
    try:
        key = certificate.public_key()
    except UNREADABLE:
        return None
    return None if unusable(key) else key  # type: ignore[return-value]


class Trust:
    """The certificates that a receiver believes: of signers, and of authorities that issue theirs."""

    def __init__(self, certificates: Iterable[Certificate] = ()) -> None:
        """Take certificates; none trusts nobody. Raises InvalidValue for too many."""
        self.certificates = tuple(certificates)
        if len(self.certificates) > CERTIFICATES_MAX:
            raise InvalidValue(
                f"{counted(len(self.certificates), 'certificate')}, more than {CERTIFICATES_MAX:,}"
            )

    @classmethod
    def from_pem(cls, data: bytes) -> Self:
        """Read a bundle of certificates in PEM. Raises InvalidValue."""
        return cls(read_pem(data))

    def why_not(self, signer: Certificate, offered: Sequence[Certificate], now: int) -> str:
        """Return why a signer is not believed at this time; empty if he is.

        He is if his certificate is among those trusted, or was issued by one of them, by way of `offered`
        if need be. No list of revoked certificates is looked at.
        """
        if not signer.signs:
            return "its certificate is not for signatures"
        if not signer.is_valid(now):
            return "its certificate is not valid at this time"
        if self._reaches(signer, (*self.certificates, *offered), now, 0):
            return ""
        return "its certificate is not trusted, nor issued by one that is"

    def _reaches(self, certificate: Certificate, known: Sequence[Certificate], now: int, below: int) -> bool:
        """Return whether a chain from this certificate ends in a trusted one; `below` issuers are passed."""
        if certificate in self.certificates:
            return True
        left = tuple(item for item in known if item != certificate)
        return below < CHAIN_MAX and any(
            self._reaches(issuer, left, now, below + 1)
            for issuer in left
            if issuer.subject == certificate.issuer  # asked first: the rest costs more
            and issuer.issues is not None
            and issuer.issues >= below
            and issuer.is_valid(now)
            and certificate.is_issued_by(issuer)
        )


@dataclass(frozen=True)
class Signer:
    """A signer of messages: a certificate, and the private key that belongs to it."""

    certificate: Certificate
    key: PrivateKey = field(repr=False)

    @classmethod
    def from_pem(cls, certificate: bytes, key: bytes) -> Self:
        """Read a certificate in PEM, the first one of several, and a key in PEM or DER.

        Raises InvalidValue, also for a key that is encrypted or belongs to another certificate. Whether the
        certificate has expired is for the receivers to see.
        """
        first = read_pem(certificate)[0]
        private = load_private_key(key)
        if why := unusable(private):
            raise InvalidValue(why)
        assert isinstance(private, PrivateKey)
        if private.public_key() != first.key:
            raise InvalidValue("the private key does not belong to the certificate")
        if not first.signs:  # no receiver would believe it
            raise InvalidValue("the certificate is not for signatures")
        return cls(first, private)


def read_pem(data: bytes) -> list[Certificate]:
    """Read one or more certificates in PEM. Raises InvalidValue."""
    return [Certificate.read(der) for der in ders_of_pem(data)]
