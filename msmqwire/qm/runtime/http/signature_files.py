"""The files of XML signatures: the key that signs, and the trusted certificates."""

from __future__ import annotations

from pathlib import Path

from msmqwire.errors import InvalidValue
from msmqwire.service.credential_files import read_file, read_private
from msmqwire.srmp.certificates import Signer, Trust


def load_signer(cert_path: Path, key_path: Path) -> Signer:
    """Return the signer of these files, both in PEM, the key RSA or DSA and not encrypted.

    Raises InvalidValue, with the files in the text.
    """
    certificate, key = read_file(cert_path), read_private(key_path)
    try:
        return Signer.from_pem(certificate, key)
    except InvalidValue as exc:
        raise InvalidValue(f"{cert_path} and {key_path}: {exc.why}") from None


def load_trust(path: Path) -> Trust:
    """Return the certificates of a PEM file as trusted ones. Raises InvalidValue."""
    data = read_file(path)
    try:
        return Trust.from_pem(data)
    except InvalidValue as exc:
        raise InvalidValue(f"{path}: {exc.why}") from None
