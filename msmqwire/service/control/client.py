"""The other end of the control channel: requests to the server of a folder."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol

from msmqwire.errors import (
    ChangeWaits,
    InvalidName,
    InvalidValue,
    ManagerStopped,
    MsmqError,
    NcpRefused,
    OutcomeUnknown,
    QueueError,
    StoreInUse,
    StoreRefused,
    Unreachable,
)
from msmqwire.names.printable import counted
from msmqwire.service.control import server as control
from msmqwire.service.folder import ServedFolder

if TYPE_CHECKING:
    from typing import Self

STARTING_S: Final = 10.0
"""Seconds that a new server may take until it is reachable."""
RETRY_S: Final = 0.05
GONE: Final = "the server has gone"


class Local(Protocol):
    """Access to the content of one folder.

    Attributes:
        served: whether requests go through a server.
    """

    served: bool

    def call(self, op: str, /, **request: Any) -> dict[str, Any]:
        """Run a request of the service, and return its answer.

        Raises InvalidValue, InvalidName and QueueError; Unreachable if the server has gone, or if an earlier
        request was interrupted before it was answered; OutcomeUnknown, a kind of Unreachable, if it may have
        carried out a request that changes something; StoreRefused if no server runs and the disk refuses the
        commit; RuntimeError for an internal error of the server.
        """

    def close(self) -> None:
        """End the session; messages that it holds return to their queues."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def attach_to(folder: ServedFolder, in_store: Callable[[], Local]) -> Local:
    """Reach the content of a folder: through its server, or by `in_store` if none runs.

    Raises as `in_store` does: StoreInUse only if the store stays in use without a server.
    """
    until = time.monotonic() + STARTING_S
    while True:
        served = server_of(folder)
        if served is not None:
            return served
        try:
            return in_store()
        except StoreInUse:
            if time.monotonic() > until:
                raise
            time.sleep(RETRY_S)


class LocalBase:
    """The context manager of the implementations."""

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def server_of(folder: ServedFolder, *, timeout_s: float | None = None) -> Served | None:
    """Connect to the server of a folder; return None if none is reachable.

    Without a timeout, in seconds, answers are awaited as long as the server runs.
    """
    address = folder.control()
    if address is None:
        return None
    try:
        if address.path:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            connection.settimeout(timeout_s)
            try:
                connection.connect(address.path)
            except OSError:
                connection.close()
                raise
        else:
            connection = socket.create_connection(("127.0.0.1", address.port), timeout_s)
    except OSError:
        return None
    return Served(connection, address.token, folder)


class Served(LocalBase):
    """Access through the server of a folder."""

    served = True

    def __init__(self, connection: socket.socket, token: str, folder: ServedFolder) -> None:
        self._connection, self._token, self._folder = connection, token, folder
        self._file = connection.makefile("rb")
        self._numbers = 0
        self._gone = ""

    def call(self, op: str, /, **request: Any) -> dict[str, Any]:
        if self._gone:
            raise Unreachable(self._gone)
        line = {"id": self._numbers + 1, "op": op, **request}
        if self._token and not self._numbers:
            line["token"] = self._token
        data = json.dumps(line).encode()
        if len(data) > control.REQUEST_MAX:
            raise InvalidValue(
                f"the request has {counted(len(data), 'byte')}, and may have {control.REQUEST_MAX:,}", path=op
            )
        self._numbers += 1
        sent = False  # a part of a line is not a request
        try:
            self._connection.sendall(data + b"\n")
            sent = True
            answer = self._file.readline()
        except OSError as exc:
            self._end(f"{GONE}: {exc.strerror or exc}")
            raise self._lost(op, request) if sent else Unreachable(self._gone) from None
        except BaseException:  # otherwise the next request would get the answer of this one
            self._end("a request was interrupted before it was answered")
            raise
        if not answer.endswith(b"\n"):
            self._end(GONE)
            raise self._lost(op, request)
        response = json.loads(answer)
        if "error" in response:
            raise error_of(response["error"])
        result: dict[str, Any] = response["answer"]
        return result

    def _lost(self, op: str, request: Mapping[str, Any]) -> Unreachable:
        return lost(op, self._gone, changes=self._folder.changes(op, request))

    def _end(self, reason: str) -> None:
        self._gone = reason
        self.close()

    def close(self) -> None:
        self._gone = self._gone or "it was closed"
        self._file.close()
        self._connection.close()


def lost(op: str, why: str, *, changes: bool) -> Unreachable:
    """Return the exception for a request whose connection was lost before its answer.

    `changes` is whether it may have had an effect: see `ServedFolder.changes`.
    """
    return OutcomeUnknown(f"{why}; whether it did this is not known: {op}") if changes else Unreachable(why)


def error_of(error: dict[str, Any]) -> MsmqError | RuntimeError:
    """Return the exception for an error of the control channel."""
    match error["kind"]:
        case control.QUEUE:
            kind = ManagerStopped if error.get("stops") else QueueError
            return kind(error["error"], int(error["hresult"], 16))
        case control.NAME:
            code = int(error["hresult"], 16)
            return InvalidName(error["error"], path=error["path"], offset=error["offset"], hresult=code)
        case control.NCP:
            return NcpRefused(error["error"], error["code"])
        case control.STORE:
            return StoreRefused(error["error"], file=error["file"])
        case control.WAITS:
            return ChangeWaits(error["error"])
        case control.FAULT:
            return RuntimeError(error["error"])
    return InvalidValue(error["error"], path=error["path"], offset=error["offset"])


def connection_closed() -> InvalidValue:
    """Return the exception for the use of a connection that was left."""
    return InvalidValue("it was left, and can't be used any more", path="connection")
