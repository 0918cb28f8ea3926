"""The queues of a folder, for commands and programs: through its server, or in its store when none runs."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import time
from collections.abc import Coroutine
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from msmqwire.errors import InvalidName, InvalidValue, QueueError, StoreInUse, StoreRefused, Unreachable
from msmqwire.qm.runtime import control
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.qm.runtime.folder import STORE, DataFolder, check_name, default_name, open_core, stored_name
from msmqwire.qm.runtime.operations import LocalSession

T = TypeVar("T")

if TYPE_CHECKING:
    from typing import Self

_STARTING_S: Final = 10.0
"""How long a server that has just been started may take until it can be reached."""
_RETRY_S: Final = 0.05
_DISK_S: Final = 10.0
"""How long a disk that refuses commits is waited for."""
_LOOK_S: Final = 0.1
"""What the server says when it fails."""


class Local(Protocol):
    """The queues of one folder.

    Attributes:
        served: whether a server runs them.
    """

    served: bool

    def call(self, op: str, /, **request: Any) -> dict[str, Any]:
        """One request of `msmqwire.qm.runtime.operations`, and its answer.

        Raises InvalidValue, InvalidName and QueueError; Unreachable when the server has gone, or when another
        request was interrupted before it was answered; StoreRefused when no server runs and the disk takes
        nothing; RuntimeError for a fault of the server itself.
        """

    def close(self) -> None:
        """End the use; messages taken and not ended go back."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def attach(path: str | os.PathLike[str], *, create: bool = False) -> Local:
    """The queues of a folder, by its server, or by its store if none runs.

    Args:
        path: the folder.
        create: make a queue manager, with the name of this computer, if there is none.

    Raises the subclasses of StoreError: StoreMissing where there is none, StoreInUse for one that somebody
    has open and does not serve.
    """
    folder = DataFolder(path)
    until = time.monotonic() + _STARTING_S
    while True:
        served = server_of(folder)
        if served is not None:
            return served
        try:
            return InStore(folder, create=create)
        except StoreInUse:
            if time.monotonic() > until:
                raise
            time.sleep(_RETRY_S)


class _Base:
    """What both ways share."""

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def server_of(folder: DataFolder) -> Served | None:
    """The server of a folder; None if none can be reached."""
    address = folder.control()
    if address is None:
        return None
    try:
        if address.path:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                connection.connect(address.path)
            except OSError:
                connection.close()
                raise
        else:
            connection = socket.create_connection(("127.0.0.1", address.port))
    except OSError:
        return None
    return Served(connection, address.token)


class Served(_Base):
    """The queues of a folder through its server."""

    served = True

    def __init__(self, connection: socket.socket, token: str) -> None:
        self._connection, self._token = connection, token
        self._file = connection.makefile("rb")
        self._numbers = 0
        self._gone = ""

    def call(self, op: str, /, **request: Any) -> dict[str, Any]:
        if self._gone:
            raise Unreachable(self._gone)
        self._numbers += 1
        line = {"id": self._numbers, "op": op, **request}
        if self._token and self._numbers == 1:
            line["token"] = self._token
        data = json.dumps(line).encode()
        if len(data) > control.REQUEST_MAX:
            raise InvalidValue(
                f"the request has {len(data)} bytes, and may have {control.REQUEST_MAX}", path=op
            )
        try:
            self._connection.sendall(data + b"\n")
            answer = self._file.readline()
        except OSError as exc:
            self._end(f"the server has gone: {exc.strerror or exc}")
            raise Unreachable(self._gone) from None
        except BaseException:  # its answer would be taken for that of the next request
            self._end("a request was interrupted before it was answered")
            raise
        if not answer.endswith(b"\n"):
            self._end("the server has gone")
            raise Unreachable(self._gone)
        found = json.loads(answer)
        if "error" in found:
            raise _error(found["error"])
        answered: dict[str, Any] = found["answer"]
        return answered

    def _end(self, why: str) -> None:
        self._gone = why
        self.close()

    def close(self) -> None:
        self._gone = self._gone or "it was closed"
        self._file.close()
        self._connection.close()


def _error(told: dict[str, Any]) -> QueueError | InvalidName | InvalidValue | RuntimeError:
    """The exception that an error of the control channel stands for."""
    match told["kind"]:
        case control.QUEUE:
            return QueueError(told["error"], int(told["hresult"], 16))
        case control.NAME:
            code = int(told["hresult"], 16)
            return InvalidName(told["error"], path=told["path"], offset=told["offset"], hresult=code)
        case control.FAULT:
            return RuntimeError(told["error"])
    return InvalidValue(told["error"], path=told["path"], offset=told["offset"])


class InStore(_Base):
    """The queues of a folder in its store, which nobody else has open meanwhile; nothing goes out."""

    served = False

    def __init__(self, folder: DataFolder, *, create: bool) -> None:
        self._path = str(folder.path / STORE)
        self._refused: StoreRefused | None = None
        self._store = folder.open_store(create=create)
        self._loop = asyncio.new_event_loop()
        try:
            name = stored_name(self._store) or check_name(default_name())
            self._driver, self._session = self._loop.run_until_complete(self._start(name))
        except BaseException:
            self._store.close()
            self._loop.close()
            raise

    async def _start(self, name: str) -> tuple[EngineDriver, LocalSession]:
        driver = EngineDriver(open_core(self._store, name), self._store)
        driver.core.queues.take_offline()
        driver.start()
        return driver, LocalSession(driver, lasting=False)

    def call(self, op: str, /, **request: Any) -> dict[str, Any]:
        if self._refused is not None:
            raise self._refused
        return self._loop.run_until_complete(self._limited(self._session.run({"op": op, **request})))

    async def _limited(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something, as long as the disk takes what it changes. Raises StoreRefused."""
        task = asyncio.ensure_future(work)
        refused: float | None = None
        try:
            while not task.done():
                await asyncio.wait((task,), timeout=_LOOK_S)
                if not self._driver.refused:
                    refused = None
                elif refused is None:
                    refused = time.monotonic()
                elif time.monotonic() - refused > _DISK_S:
                    self._driver.abandon()
                    why = "the disk does not take what was to be changed"
                    self._refused = StoreRefused(why, file=self._path)
                    raise self._refused
            return task.result()
        finally:
            if not task.done():
                task.cancel()

    def close(self) -> None:
        if self._loop.is_closed():
            return
        try:
            self._loop.run_until_complete(_cancel_all())  # what was interrupted
            if not self._driver.refused:  # else nothing is lost but what was answered to nobody
                self._session.close()
                self._loop.run_until_complete(self._limited(self._driver.stop()))
        finally:
            self._driver.abandon()
            self._loop.close()
            self._store.close()


async def _cancel_all() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
