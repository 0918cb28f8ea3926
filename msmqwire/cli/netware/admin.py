"""The common part of the commands that administer the bindery and queues of a folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final

from click import BadParameter

from msmqwire.cli.errors import run_reporting_errors, wrong_value
from msmqwire.cli.options import Option
from msmqwire.errors import InvalidValue, NcpRefused
from msmqwire.ncp.constants import CompletionCode
from msmqwire.netware.runtime.administration import attach
from msmqwire.service.control.client import Local

Data = Annotated[Path, Option(help="Folder of the queue service, with or without a server.")]
_WRONG: Final = (
    CompletionCode.INVALID_NAME,
    CompletionCode.WILD_CARD_NOT_ALLOWED,
    CompletionCode.INVALID_PATH,
)
"""Wrong usage of a command: it names an object or a value that can't exist."""


def in_folder(data: Path, work: Callable[[Local], None], *, create: bool = False) -> None:
    """Do work with the queue service of a folder; report an error, and exit with its status."""

    def run() -> None:
        with attach(data, create=create) as local:
            try:
                work(local)
            except InvalidValue as exc:  # all values are those of the command line
                raise wrong_value(exc) from None
            except NcpRefused as exc:
                if exc.code in _WRONG:
                    raise BadParameter(exc.why) from None
                raise

    run_reporting_errors(run)
