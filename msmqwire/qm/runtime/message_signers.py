"""Signers of messages: from the files of a user, or with a certificate that a folder keeps."""

from __future__ import annotations

import getpass
import os
from pathlib import Path
from ssl import DER_cert_to_PEM_cert
from typing import TYPE_CHECKING

from msmqwire.crypto.readings import DEFAULT, Readings
from msmqwire.errors import InvalidValue
from msmqwire.headers.security_descriptor import sid_bytes
from msmqwire.qm.model.caller import user_sid
from msmqwire.qm.runtime.folder import default_name
from msmqwire.qm.runtime.key_ring import KeyFile, OwnCertificate
from msmqwire.qm.security.signing import Signer
from msmqwire.service.credential_files import read_file, read_private

if TYPE_CHECKING:
    from msmqwire.crypto.certificates import SenderCertificate


def account_name() -> str:
    r"""Return the name of the account that runs this process, ``COMPUTER\user``. Raises InvalidValue."""
    try:
        return f"{default_name().upper()}\\{getpass.getuser()}"
    except (KeyError, OSError, ImportError):
        raise InvalidValue("this account has no name: a SID has to be given", path="sid") from None


def sid_of(text: str | None) -> bytes:
    """Return a SID given as text; that of the account that runs this process for None.

    Raises InvalidValue.
    """
    return user_sid(account_name()) if text is None else sid_bytes(text)


def load_signer(
    certificate: str | os.PathLike[str],
    key: str | os.PathLike[str],
    sid: str | None = None,
    readings: Readings = DEFAULT,
) -> Signer:
    """Return a signer of messages with a certificate and its key.

    Args:
        certificate: a file with it, PEM or DER.
        key: a file with its RSA key, PEM or DER, not encrypted.
        sid: the SID for which the certificate is registered, ``S-1-5-...``; by default that of the account
            that runs this process.
        readings: the readings of the specification that the receivers follow.

    Raises InvalidValue, with the files in the text.
    """
    from msmqwire.crypto.keys import read_private_key

    cert_content, key_content = read_file(certificate), read_private(key)
    try:
        private_key, read = read_private_key(key_content), read_certificate(cert_content)
        return Signer(private_key, read, sid_of(sid), readings)
    except InvalidValue as exc:
        if exc.path == "SID":
            raise
        raise InvalidValue(f"{os.fspath(certificate)} and {os.fspath(key)}: {exc.why}") from None


def own_signer(
    folder: str | os.PathLike[str], sid: str | None = None, readings: Readings = DEFAULT
) -> Signer:
    """Return a signer with the newest certificate that a folder keeps, or the newest for a SID.

    `readings` are the receivers' readings of the specification.

    Raises InvalidValue if there is none that is not revoked, and the subclasses of StoreError.
    """
    from msmqwire.crypto.keys import read_private_key

    ring = KeyFile(Path(folder)).read()
    for own in ring.certificates:
        certificate = read_certificate(own.certificate)
        if certificate.digest not in ring.revoked and sid in (None, own.sid):
            return Signer(read_private_key(own.private_key), certificate, sid_bytes(own.sid), readings)
    raise InvalidValue(f"{os.fspath(folder)} has no certificate to sign with: cert create makes one")


def new_certificate(sid: str, subject: str, now: int, days: int, bits: int) -> OwnCertificate:
    """Return a new internal certificate with a new key. Raises InvalidValue."""
    from cryptography.x509 import random_serial_number

    from msmqwire.crypto.certificates import create_self_signed
    from msmqwire.qm.runtime.new_keys import new_key, pem_of

    key = new_key(bits)
    until = now + days * 86_400
    der = create_self_signed(key, subject, now - 3600, until, random_serial_number())
    return OwnCertificate(sid, der, pem_of(key))


def pem_of_certificate(der: bytes) -> bytes:
    """Return a certificate in DER as PEM."""
    return DER_cert_to_PEM_cert(der).encode()


def read_certificate(content: bytes) -> SenderCertificate:
    """Return the certificate in the content of a file, PEM or DER. Raises InvalidValue."""
    from msmqwire.crypto.certificates import SenderCertificate

    return SenderCertificate.read_file(content)
