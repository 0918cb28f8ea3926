"""What the commands of the queue manager say when something goes wrong, and the exit status of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import typer

from msmqwire.cli.common import EX_DATAERR, EX_IOERR, EX_NOINPUT, EX_UNAVAILABLE, EX_USAGE, NoInput, say
from msmqwire.constants import HResult
from msmqwire.errors import (
    InvalidName,
    LocatedError,
    MsmqError,
    NotDelivered,
    QueueError,
    StoreError,
    StoreInUse,
    StoreMissing,
    StoreRefused,
    Unreachable,
)
from msmqwire.qm.runtime.operations import error_json

_STORES: Final = {StoreInUse: EX_UNAVAILABLE, StoreMissing: EX_NOINPUT, StoreRefused: EX_IOERR}


def status_of(exc: MsmqError) -> int:
    """The exit status of contract section 1."""
    if isinstance(exc, StoreError):
        return _STORES.get(type(exc), EX_DATAERR)
    if isinstance(exc, Unreachable | NotDelivered):
        return EX_UNAVAILABLE
    if isinstance(exc, QueueError):
        missing = exc.hresult == HResult.MQ_ERROR_QUEUE_NOT_FOUND
        return EX_NOINPUT if missing else EX_UNAVAILABLE
    return EX_USAGE if isinstance(exc, InvalidName) else EX_DATAERR


def ended_well(run: Callable[[], Any]) -> None:
    """Run a command; what goes wrong is said as one JSON object, and ends with its status."""
    try:
        run()
    except NoInput as exc:
        say({"error": str(exc), "path": "", "offset": None})
        raise typer.Exit(EX_NOINPUT) from None
    except MsmqError as exc:
        told = isinstance(exc, LocatedError | QueueError)
        say(error_json(exc) if told else {"error": str(exc), "path": "", "offset": None})  # type: ignore[arg-type]
        raise typer.Exit(status_of(exc)) from None
