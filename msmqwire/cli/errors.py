"""Error output and exit statuses of the commands of the queue manager and of lakes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from click import BadParameter, get_current_context
from click.exceptions import Exit

from msmqwire import errors
from msmqwire.cli.common import (
    EX_DATAERR,
    EX_IOERR,
    EX_NOINPUT,
    EX_SOFTWARE,
    EX_UNAVAILABLE,
    EX_USAGE,
    NoInput,
    say,
)
from msmqwire.cli.protocols import protocols
from msmqwire.cli.protocols.protocol import Refusals
from msmqwire.constants import HResult
from msmqwire.errors import (
    AuthenticationFailed,
    EngineFailed,
    InvalidArgument,
    InvalidName,
    InvalidValue,
    LakeError,
    LakeMismatch,
    LakeMissing,
    LocatedError,
    MsmqError,
    NotDelivered,
    QueueError,
    RpcFault,
    RpcRefused,
    StoreError,
    StoreInUse,
    StoreMissing,
    StoreRefused,
    Unreachable,
    UnsupportedStore,
)
from msmqwire.extras import MissingExtra

_STORE_STATUSES: Final = {StoreInUse: EX_UNAVAILABLE, StoreMissing: EX_NOINPUT, StoreRefused: EX_IOERR}
_LAKE_STATUSES: Final = {LakeMissing: EX_NOINPUT, LakeMismatch: EX_USAGE}


def status_of(exc: MsmqError) -> int:
    """Return the exit status of an error."""
    if isinstance(exc, StoreError):
        return _STORE_STATUSES.get(type(exc), EX_DATAERR)
    if isinstance(exc, LakeError):
        return _LAKE_STATUSES.get(type(exc), EX_DATAERR)
    if isinstance(exc, EngineFailed):
        return EX_SOFTWARE
    if isinstance(exc, Unreachable | NotDelivered | RpcFault | RpcRefused | AuthenticationFailed):
        return EX_UNAVAILABLE
    if isinstance(exc, QueueError):
        if exc.hresult == HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED:
            return EX_DATAERR  # a damaged message
        missing = exc.hresult == HResult.MQ_ERROR_QUEUE_NOT_FOUND
        return EX_NOINPUT if missing else EX_UNAVAILABLE
    if (refusals := _refusals_of(exc)) is not None:
        return EX_NOINPUT if refusals.is_missing(exc) else EX_UNAVAILABLE
    if isinstance(exc, InvalidArgument | InvalidName | MissingExtra | UnsupportedStore):
        return EX_USAGE
    return EX_DATAERR


@contextmanager
def usage(option: str = "") -> Iterator[None]:
    """Turn an InvalidArgument into wrong usage of an option: by default the one with the name of its path."""
    try:
        yield
    except InvalidArgument as exc:
        name = option or f"--{exc.path.replace('_', '-')}"
        raise BadParameter(exc.why, param_hint=name) from None


def wrong_value(error: InvalidValue, **options_of: str) -> BadParameter:
    """Return wrong usage for a value of the command line: of the option with the name of its path, if any.

    `options_of` has the options of paths with other names.
    """
    option = f"--{options_of.get(error.path, error.path).replace('_', '-')}"
    options = {name for one in get_current_context().command.params for name in one.opts}
    return BadParameter(error.why, param_hint=option) if option in options else BadParameter(str(error))


def run_reporting_errors(run: Callable[[], Any], advice: Callable[[MsmqError], str] | None = None) -> None:
    """Run a command; print an error as one JSON object, and exit with its status.

    `advice` returns what to do about an error, which is printed behind its reason; an empty text for nothing.
    """
    try:
        run()
    except NoInput as exc:
        say(str(exc))
        raise Exit(EX_NOINPUT) from None
    except MsmqError as exc:
        say(_with(_shown(exc), "" if advice is None else advice(exc)))
        raise Exit(status_of(exc)) from None


def _with(shown: dict[str, object] | str, advice: str) -> dict[str, object] | str:
    if not advice:
        return shown
    return (
        f"{shown}; {advice}" if isinstance(shown, str) else shown | {"error": f"{shown['error']}; {advice}"}
    )


def _shown(exc: MsmqError) -> dict[str, object] | str:
    if (refusals := _refusals_of(exc)) is not None:
        return refusals.shown(exc)
    return exc.to_json() if isinstance(exc, LocatedError | QueueError) else str(exc)


def _refusals_of(exc: MsmqError) -> Refusals | None:
    """Return what a protocol that has joined says of the refusals of its peers, if an error is one."""
    found = (protocol.refusals for protocol in protocols() if protocol.refusals is not None)
    return next((one for one in found if isinstance(exc, getattr(errors, one.error))), None)
