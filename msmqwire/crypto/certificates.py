"""X.509 certificates of senders: [MS-MQMQ] 2.2.20.6 and 2.2.22."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Self

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey


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
        """Read a certificate in DER. Raises InvalidValue, also for a key that is not RSA."""
        raise NotImplementedError

    @classmethod
    def read_file(cls, content: bytes) -> Self:
        """Read the content of a file, PEM or DER; the first certificate counts. Raises InvalidValue."""
        raise NotImplementedError

    def is_valid(self, now: int) -> bool:
        """Return whether it is valid at this time."""
        return self.not_before <= now <= self.not_after


def create_self_signed(
    private_key: RSAPrivateKey, subject: str, not_before: datetime, not_after: datetime, serial: int
) -> bytes:
    """Return a new certificate in DER, an internal certificate of MSMQ: signed by its own key, with SHA-256.

    Raises InvalidValue for a name or time that a certificate can't hold, or a key too short to sign it.
    """
    raise NotImplementedError
