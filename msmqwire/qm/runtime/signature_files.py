"""The files of XML signatures: whose key signs, and which certificates are trusted."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from msmqwire.errors import InvalidValue
from msmqwire.srmp.certificates import Signer, Trust

FILE_SIZE_MAX: Final = 0x0010_0000
"""Bytes; 256 certificates have about half of it."""


def load_signer(cert_path: Path, key_path: Path) -> Signer:
    """Return the signer of these files, both in PEM, the key RSA or DSA and not encrypted.

    Raises InvalidValue, with the files in the text.
    """
    certificate, key = _read(cert_path), _read(key_path)
    try:
        return Signer.from_pem(certificate, key)
    except InvalidValue as exc:
        raise InvalidValue(f"{cert_path} and {key_path}: {exc.why}") from None


def load_trust(path: Path) -> Trust:
    """Return the certificates of a file in PEM as those that are trusted. Raises InvalidValue."""
    data = _read(path)
    try:
        return Trust.from_pem(data)
    except InvalidValue as exc:
        raise InvalidValue(f"{path}: {exc.why}") from None


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(FILE_SIZE_MAX + 1)
    except OSError as exc:
        raise InvalidValue(f"{path}: {exc.strerror or exc}") from None
    if len(data) > FILE_SIZE_MAX:
        raise InvalidValue(f"{path}: more than {FILE_SIZE_MAX} bytes")
    return data
