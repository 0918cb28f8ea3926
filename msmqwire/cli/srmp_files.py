"""The files that configure SRMP for ``msmqwire serve``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from click import BadParameter

from msmqwire.cli.common import readable
from msmqwire.qm.protocols.srmp.configuration import SrmpConfiguration
from msmqwire.qm.protocols.srmp.redirections import Redirections
from msmqwire.qm.runtime.http.redirections_file import load_redirections

if TYPE_CHECKING:
    from msmqwire.srmp.certificates import Signer, Trust


class SrmpFiles(NamedTuple):
    """Files, each None if it is not given.

    Attributes:
        redirections: JSON.
        sign_cert, sign_key: PEM, of the signer; they go together.
        trust: PEM, certificates whose signatures are believed.
    """

    redirections: Path | None
    sign_cert: Path | None
    sign_key: Path | None
    trust: Path | None

    def check(self) -> None:
        """Raise BadParameter for a certificate without its key, or a key without certificate."""
        if (self.sign_cert is None) != (self.sign_key is None):
            raise BadParameter("--http-sign-cert and --http-sign-key go together")


def srmp_configuration(files: SrmpFiles) -> SrmpConfiguration:
    """Return the contents of the files. Raises NoInput, and InvalidValue for contents."""
    readable(*files)
    redirections = Redirections() if files.redirections is None else load_redirections(files.redirections)
    return SrmpConfiguration(redirections, *_signatures(files))


def _signatures(files: SrmpFiles) -> tuple[Signer | None, Trust | None]:
    if files.sign_cert is None and files.trust is None:
        return None, None
    from msmqwire.qm.runtime.http.signature_files import (  # takes long to load, and few need it
        load_signer,
        load_trust,
    )

    signer = None
    if files.sign_cert is not None and files.sign_key is not None:
        signer = load_signer(files.sign_cert, files.sign_key)
    return signer, None if files.trust is None else load_trust(files.trust)
