"""The certificates that are registered for a user in the directory: [MS-MQMQ] 2.2.21 and 2.2.22."""

from __future__ import annotations

from hashlib import md5
from uuid import UUID

from msmqwire.errors import MalformedPacket
from msmqwire.headers import MQUSERSIGNCERT, MQUSERSIGNCERTS
from msmqwire.qm.model.directory_objects import User
from msmqwire.schema import Record


def digest_of(certificate: bytes) -> bytes:
    """Return the MD5 digest by which the directory finds a certificate: MQMQ-2.2.22-01. It is not a proof."""
    return md5(certificate, usedforsecurity=False).digest()


def registered(user: User) -> list[Record]:
    """Return the MQUSERSIGNCERT structures of a user. Raises MalformedPacket."""
    return list(MQUSERSIGNCERTS.parse(user.certificates).Certificates) if user.certificates else []


def register(user: User, certificate: bytes, identifier: UUID) -> None:
    """Add a certificate to a user, whose Certificates and CertificateDigestList then have to be written.

    Does nothing if it is there. Raises MalformedPacket if the user's certificates are unreadable.
    """
    known = registered(user)
    if all(entry.Certificate != certificate for entry in known):
        added = MQUSERSIGNCERT.make(
            {"Digest": digest_of(certificate), "Identifier": identifier, "Certificate": certificate}
        )
        _set(user, [*known, added])


def unregister(user: User, certificate: bytes) -> bool:
    """Remove a certificate from a user, as `register` adds one; return whether it was there."""
    known = registered(user)
    left = [entry for entry in known if entry.Certificate != certificate]
    _set(user, left)
    return len(left) < len(known)


def is_registered(user: User, certificate: bytes) -> bool:
    """Return whether a certificate is among those of a user: MQQB-3.1.5.8.3-09."""
    try:
        return any(entry.Certificate == certificate for entry in registered(user))
    except MalformedPacket:
        return False


def _set(user: User, entries: list[Record]) -> None:
    user.certificates = MQUSERSIGNCERTS.build({"Certificates": entries})
    user.certificate_digest_list = [entry.Digest for entry in entries]
