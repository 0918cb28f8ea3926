"""``msmqwire cert create | register | revoke | list``: the certificates of users."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

from click import BadParameter

from msmqwire.cli.common import readable
from msmqwire.cli.errors import run_reporting_errors
from msmqwire.cli.folder_keys import AsJson, Data, key_file, show_rows, tell_server
from msmqwire.cli.options import Group, Option
from msmqwire.errors import StoreRefused
from msmqwire.headers.security_descriptor import sid_bytes, sid_text
from msmqwire.qm.runtime.certificate_rows import certificate_row, certificate_rows, register_read
from msmqwire.qm.runtime.certificate_rows import register as register_in
from msmqwire.qm.runtime.message_signers import (
    account_name,
    new_certificate,
    pem_of_certificate,
    read_certificate,
    sid_of,
)
from msmqwire.qm.runtime.new_keys import BITS, BITS_MAX, BITS_MIN
from msmqwire.service.credential_files import read_file

app = Group("cert", "Administer the certificates of users.")

Sid = Annotated[
    str | None,
    Option(metavar="SID", help="The user, S-1-5-...; by default the one who runs this command."),
]
Cert = Annotated[Path, Option(metavar="FILE", help="The certificate, PEM or DER.")]
_DIGEST_SIZE = 16
_DAYS = 8 * 365
_DAYS_MAX = 100 * 365


@app.command("create")
def create(
    data: Data,
    sid: Sid = None,
    subject: Annotated[
        str | None, Option(metavar="NAME", help=r"Its subject; COMPUTER\user by default.")
    ] = None,
    days: Annotated[
        int, Option(min=1, max=_DAYS_MAX, metavar="DAYS", help="Days that the certificate is valid.")
    ] = _DAYS,
    bits: Annotated[int, Option(min=BITS_MIN, max=BITS_MAX, help="Length of its key.")] = BITS,
    out: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="Write the certificate to this file, too, as PEM, to register it at the computers that "
            "receive its messages.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make an internal certificate, signed by its own key, and register it.

    The folder keeps its key for send --sign; only the owner of the folder can read it.
    """

    def run() -> None:
        user, file = sid_of(sid), key_file(data, create=True)
        own = new_certificate(sid_text(user), subject or account_name(), int(time.time()), days, bits)
        ring = file.change(lambda ring: ring.with_certificate(own))
        with file.exclusively():
            register_in(data, user, own.certificate)
        tell_server(data)
        if out is not None:
            _write(out, own.certificate)
        show_rows([certificate_row(own.certificate, user, ring, {own.certificate})], as_json)

    run_reporting_errors(run)


def _write(file: Path, der: bytes) -> None:
    """Write a certificate as PEM. Raises StoreRefused."""
    try:
        file.write_bytes(pem_of_certificate(der))
    except OSError as exc:
        raise StoreRefused(exc.strerror or str(exc), file=str(file)) from None


@app.command("register")
def register(
    cert: Cert,
    data: Data,
    sid: Sid = None,
    group: Annotated[
        list[str] | None,
        Option(
            metavar="SID",
            help="A group that the user is in: its rights are the user's, too. Replaces the groups given "
            "before; may be repeated.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Register the certificate of a user: messages that it signs are from that user."""

    def run() -> None:
        readable(cert)
        user, content = sid_of(sid), read_file(cert)
        groups = [sid_bytes(text) for text in group or ()]
        key_file(data, create=True)
        row = register_read(data, user, content, str(cert), groups)
        tell_server(data)
        show_rows([row], as_json)

    run_reporting_errors(run)


@app.command("revoke")
def revoke(
    data: Data,
    cert: Annotated[Path | None, Option(metavar="FILE", help="The certificate, PEM or DER.")] = None,
    digest: Annotated[
        str | None, Option(metavar="HEX", help="Its digest instead, as cert list prints it.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Revoke a certificate for good: messages that it signs are refused."""
    if (cert is None) == (digest is None):
        raise BadParameter("either --cert or --digest says which certificate")
    known = _digest(digest) if digest is not None else b""

    def run() -> None:
        readable(cert)
        number = known if cert is None else read_certificate(read_file(cert)).digest
        key_file(data).change(lambda ring: ring.with_revoked(number))
        tell_server(data)
        show_rows([row for row in rows_of(data) if row["digest"] == number.hex()], as_json)

    run_reporting_errors(run)


def rows_of(data: Path) -> list[dict[str, Any]]:
    """Return the certificates of a folder. Raises StoreMissing for one that is not there."""
    key_file(data)
    return certificate_rows(data)


def _digest(text: str) -> bytes:
    """Raises BadParameter."""
    try:
        digest = bytes.fromhex(text)
    except ValueError:
        digest = b""
    if len(digest) != _DIGEST_SIZE:
        raise BadParameter(f"{text!r:.80} is not {_DIGEST_SIZE} bytes in hex", param_hint="--digest")
    return digest


@app.command("list")
def list_(data: Data, as_json: AsJson = False) -> None:
    """List the certificates that are registered or revoked."""
    run_reporting_errors(lambda: show_rows(rows_of(data), as_json))
