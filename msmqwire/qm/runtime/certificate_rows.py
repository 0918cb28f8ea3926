"""The certificates of users as rows, for people and programs, and their changes in a folder."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from msmqwire.errors import InvalidValue
from msmqwire.headers.security_descriptor import sid_text
from msmqwire.qm.runtime.key_ring import KeyFile, KeyRing
from msmqwire.qm.runtime.key_rows import time_text
from msmqwire.qm.runtime.message_signers import read_certificate
from msmqwire.qm.runtime.user_certificates import open_users, register_certificate, registered_certificates


def certificate_row(der: bytes, sid: bytes | None, ring: KeyRing, own: Collection[bytes]) -> dict[str, Any]:
    """Return a certificate of a user; `own` are those whose keys are here."""
    certificate = read_certificate(der)
    return {
        "digest": certificate.digest.hex(),
        "sid": None if sid is None else sid_text(sid),
        "subject": certificate.subject,
        "serial": f"{certificate.serial:x}",
        "not_before": time_text(certificate.not_before),
        "not_after": time_text(certificate.not_after),
        "key": der in own,
        "revoked": certificate.digest in ring.revoked,
    }


def own_certificates(ring: KeyRing) -> set[bytes]:
    """Return the certificates that were made here."""
    return {own.certificate for own in ring.certificates}


def certificate_rows(folder: Path) -> list[dict[str, Any]]:
    """Return the certificates that are registered, then those that are revoked only.

    Raises InvalidValue and the subclasses of StoreError.
    """
    ring = KeyFile(folder).read()
    rows, own = [], own_certificates(ring)
    directory = open_users(folder)
    if directory is not None:
        with closing(directory):
            rows = [certificate_row(der, sid, ring, own) for sid, der in registered_certificates(directory)]
    registered = {row["digest"] for row in rows}
    unknown = dict.fromkeys(("sid", "subject", "serial", "not_before", "not_after"))
    return rows + [
        {"digest": digest.hex(), **unknown, "key": False, "revoked": True}
        for digest in sorted(ring.revoked)
        if digest.hex() not in registered
    ]


def register(folder: Path, sid: bytes, der: bytes, groups: Sequence[bytes] = ()) -> None:
    """Register a certificate in the directory of a folder. Raises as `register_certificate`."""
    directory = open_users(folder, create=True)
    assert directory is not None, "it is made if it is missing"
    with closing(directory):
        register_certificate(directory, sid, der, groups)


def register_read(
    folder: Path, sid: bytes, data: bytes, what: str, groups: Sequence[bytes] = ()
) -> dict[str, Any]:
    """Register a certificate, PEM or DER, for a user, and return its row; `what` names it in errors.

    Raises InvalidValue for one that can't be read or is revoked, and as `register_certificate`.
    """
    certificate, file = read_certificate(data), KeyFile(folder)
    with file.exclusively():
        ring = file.read()
        if certificate.digest in ring.revoked:
            raise InvalidValue(f"{what}: the certificate is revoked")
        register(folder, sid, certificate.der, groups)
    return certificate_row(certificate.der, sid, ring, own_certificates(ring))
