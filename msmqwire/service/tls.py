"""TLS contexts for HTTPS, from PEM files of an administrator."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable
from pathlib import Path

from msmqwire.errors import InvalidValue
from msmqwire.ownership import secret_fault


def server_context(certificate: str | os.PathLike[str], key: str | os.PathLike[str]) -> ssl.SSLContext:
    """Return the context of a server with a certificate, intermediate ones, and its key.

    Raises InvalidValue for files that are unreadable, or do not belong together.
    """
    _check_readable(certificate, "tls_cert")
    _check_readable(key, "tls_key", secret=True)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(["http/1.1"])
    asked: list[bool] = []
    try:
        context.load_cert_chain(certificate, key, password=_no_password(asked))
    except (ssl.SSLError, ValueError) as exc:
        if asked:
            raise InvalidValue(
                f"{os.fspath(key)} is encrypted; give a key without password", path="tls_key"
            ) from None
        reason = getattr(exc, "reason", None) or str(exc)
        if reason == "KEY_VALUES_MISMATCH":
            why = f"{os.fspath(key)} is not the key of the certificate in {os.fspath(certificate)}"
            raise InvalidValue(why, path="tls_key") from None
        files = f"{os.fspath(certificate)} and {os.fspath(key)}"
        why = f"{files} are not a certificate and its key in PEM: {reason}"
        raise InvalidValue(why, path="tls_cert") from None
    return context


def client_context(
    authorities: str | os.PathLike[str] | None = None, *, verify: bool = True
) -> ssl.SSLContext:
    """Return a context that verifies certificates by the authorities of a file, or of the system.

    With `verify` False it verifies nothing: anyone in between may read and change everything. Raises
    InvalidValue for a file that is unreadable, or has no certificate.
    """
    if authorities is not None:
        _check_readable(authorities, "tls_ca")
    try:
        context = ssl.create_default_context(cafile=authorities)
    except ssl.SSLError:
        raise InvalidValue(
            f"{os.fspath(authorities or '')} has no certificate in PEM", path="tls_ca"
        ) from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _check_readable(file: str | os.PathLike[str], path: str, *, secret: bool = False) -> None:
    """Raise InvalidValue for a file that can't be read, or a secret one that other users may use."""
    try:
        with open(file, "rb") as stream:
            fault = secret_fault(Path(file), os.fstat(stream.fileno())) if secret else ""
    except (OSError, ValueError) as exc:
        why = f"{os.fspath(file)!s} can't be read: {getattr(exc, 'strerror', None) or exc}"
        raise InvalidValue(why, path=path) from None
    if fault:
        raise InvalidValue(f"{os.fspath(file)!s} {fault}", path=path)


def _no_password(asked: list[bool]) -> Callable[[], str]:
    """Return the callback of OpenSSL for the password of a key, which would otherwise ask at the terminal."""

    def password() -> str:
        asked.append(True)
        return ""

    return password
