"""Requests to the queue manager of a folder from programs with asyncio: many at a time.

What `msmqwire.qm.runtime.local` is to commands and other programs that do one thing after the other.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final, Protocol

from msmqwire.constants import HResult
from msmqwire.errors import InvalidValue, MsmqError, QueueError, StoreInUse, StoreRefused, Unreachable
from msmqwire.qm.runtime import control
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.qm.runtime.folder import STORE, DataFolder, check_name, default_name, open_core, stored_name
from msmqwire.qm.runtime.folder_security import FolderSecurity
from msmqwire.qm.runtime.local import DISK_S, RETRY_S, STARTING_S, error_of
from msmqwire.qm.runtime.operations import LocalSession

_READS_MAX: Final = 900
"""Limit of reads under way, less than the control channel has: there is always room to cancel one."""
_ANSWER_MAX: Final = 64 << 20
_POLL_S: Final = 0.1


class Requests(Protocol):
    """The queue manager of a folder.

    Attributes:
        served: whether requests go through a server.
    """

    served: bool

    async def call(self, op: str, /, **request: Any) -> dict[str, Any]:
        """Run a request of `msmqwire.qm.runtime.operations`, and return its answer.

        Raises InvalidValue, InvalidName and QueueError; Unreachable if the server has gone; StoreRefused if
        no server runs and the disk refuses the commit; EngineFailed and RuntimeError for an internal error.
        """

    async def close(self) -> None:
        """End the session.

        Reads that wait end with MQ_ERROR_OPERATION_CANCELLED, messages received and not ended return to their
        queues, transactions are aborted.
        """


async def open_requests(path: str | os.PathLike[str], *, create: bool = False) -> Requests:
    """Open the queues of a folder: through its server, or in its store if none runs.

    Raises as `msmqwire.qm.runtime.local.attach` does.
    """
    folder = DataFolder(path)
    until = time.monotonic() + STARTING_S
    while True:
        served = await _server_of(folder)
        if served is not None:
            return served
        try:
            return await InStoreRequests.start(folder, create=create)
        except StoreInUse:
            if time.monotonic() > until:
                raise
            await asyncio.sleep(RETRY_S)


async def _server_of(folder: DataFolder) -> ServedRequests | None:
    address = folder.control()
    if address is None:
        return None
    try:
        if address.path:
            streams = await asyncio.open_unix_connection(address.path, limit=_ANSWER_MAX)
        else:
            streams = await asyncio.open_connection("127.0.0.1", address.port, limit=_ANSWER_MAX)
    except OSError:
        return None
    return ServedRequests(*streams, address.token)


class ServedRequests:
    """Requests through the server of a folder."""

    served = True

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str) -> None:
        """Begin to read answers in the running loop."""
        self._reader, self._writer, self._token = reader, writer, token
        self._number = 0
        self._pending: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._reads = 0
        self._gone: str | None = None
        self._closed = False
        self._answers = asyncio.ensure_future(self._read_answers())

    async def call(self, op: str, /, **request: Any) -> dict[str, Any]:
        if op != "read":
            return await self._call(op, request)
        if self._reads >= _READS_MAX:
            why = f"{_READS_MAX} reads are under way"
            raise QueueError(why, HResult.MQ_ERROR_INSUFFICIENT_RESOURCES)
        self._reads += 1
        try:
            return await self._call(op, request)
        finally:
            self._reads -= 1

    async def _call(self, op: str, request: dict[str, Any]) -> dict[str, Any]:
        if self._closed:
            raise connection_closed()
        if self._gone is not None:
            raise Unreachable(self._gone)
        self._number += 1
        number = self._number
        line = {"id": number, "op": op, **request}
        if self._token and number == 1:
            line["token"] = self._token
        data = json.dumps(line).encode()
        if len(data) > control.REQUEST_MAX:
            why = f"the request has {len(data)} bytes, and may have {control.REQUEST_MAX}"
            raise InvalidValue(why, path=op)
        future = self._pending[number] = asyncio.get_running_loop().create_future()
        try:
            self._writer.write(data + b"\n")
            with suppress(OSError):  # the answers end, too
                await self._writer.drain()
            response = await future
        finally:
            self._pending.pop(number, None)
        if "error" in response:
            raise error_of(response["error"])
        answer: dict[str, Any] = response["answer"]
        return answer

    async def _read_answers(self) -> None:
        reason = "the server has gone"
        try:
            while line := await self._reader.readline():
                if not line.endswith(b"\n"):
                    break
                response = json.loads(line)
                future = self._pending.get(response["id"])
                if future is not None and not future.done():
                    future.set_result(response)
        except OSError as exc:
            reason = f"the server has gone: {exc.strerror or exc}"
        except (ValueError, KeyError, TypeError) as exc:  # longer than any answer, or not JSON of ours
            reason = f"what answers is not a server of ours: {exc!r}"
        finally:
            self._end(Unreachable(reason), reason)

    def _end(self, error: MsmqError, reason: str) -> None:
        if self._gone is not None:
            return
        self._gone = reason
        for future in self._pending.values():
            if not future.done():
                future.set_exception(error)
        self._writer.close()

    async def close(self) -> None:
        self._closed = True
        self._end(QueueError("it was closed", HResult.MQ_ERROR_OPERATION_CANCELLED), "it was closed")
        self._answers.cancel()
        with suppress(asyncio.CancelledError, OSError):
            await self._answers
        with suppress(OSError):
            await self._writer.wait_closed()


class InStoreRequests:
    """Requests to a queue manager in this process; nothing is sent to other computers."""

    served = False

    def __init__(self, folder: DataFolder, *, create: bool) -> None:
        """Open the store. Raises the subclasses of StoreError."""
        self._path = str(folder.path / STORE)
        self._store = folder.open_store(create=create)
        self._folder = folder.path
        self._security: FolderSecurity | None = None
        self._calls: set[asyncio.Task[dict[str, Any]]] = set()
        self._ended: asyncio.Future[MsmqError] = asyncio.get_running_loop().create_future()

    @classmethod
    async def start(cls, folder: DataFolder, *, create: bool) -> InStoreRequests:
        """Start the queue manager of a folder in the running loop. Raises the subclasses of StoreError."""
        requests = cls(folder, create=create)
        try:
            requests._start()
        except BaseException:
            requests._close()
            raise
        return requests

    def _start(self) -> None:
        name = stored_name(self._store) or check_name(default_name())
        self._security = FolderSecurity(self._folder)
        core = open_core(self._store, name, security=self._security.configuration)
        self._driver = driver = EngineDriver(core, self._store)
        driver.security = self._security
        driver.core.queues.take_offline()
        driver.broken.add_done_callback(self._broken)
        driver.start()
        self._session = LocalSession(driver, lasting=False)
        self._watching = asyncio.ensure_future(self._watch_disk())

    def _broken(self, broken: asyncio.Future[MsmqError]) -> None:
        if not broken.cancelled():
            self._fail(broken.result())

    def _fail(self, error: MsmqError) -> None:
        """Let no request wait for what an ended queue manager would have to do."""
        if not self._ended.done():
            self._ended.set_result(error)

    async def _watch_disk(self) -> None:
        """End if the disk keeps refusing changes."""
        refused_since: float | None = None
        while True:
            await asyncio.sleep(_POLL_S)
            if not self._driver.refused:
                refused_since = None
            elif refused_since is None:
                refused_since = time.monotonic()
            elif time.monotonic() - refused_since > DISK_S:
                why = "the disk does not take what was to be changed"
                self._fail(StoreRefused(why, file=self._path))
                self._driver.abandon()
                return

    async def call(self, op: str, /, **request: Any) -> dict[str, Any]:
        if self._ended.done():
            raise self._ended.result()
        task = asyncio.ensure_future(self._session.run({"op": op, **request}))
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)
        try:
            await asyncio.wait((task, self._ended), return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise self._ended.result()
            return task.result()
        except Unreachable:  # of the driver that was abandoned
            if self._ended.done():
                raise self._ended.result() from None
            raise
        finally:
            if not task.done():
                task.cancel()

    async def close(self) -> None:
        try:
            if not self._ended.done() and not self._driver.refused:  # else only unanswered changes are lost
                await self._stop()
        finally:
            self._watching.cancel()
            self._fail(connection_closed())
            self._driver.abandon()
            self._close()

    def _close(self) -> None:
        if self._security is not None:
            self._security.close()
        self._store.close()

    async def _stop(self) -> None:
        self._session.stop_waiting()
        if self._calls:
            await asyncio.wait(set(self._calls))
        self._session.close()
        await self._ended_or(self._driver.stop())

    async def _ended_or(self, work: Coroutine[Any, Any, None]) -> None:
        """Do `work`, unless the driver ends before it."""
        task = asyncio.ensure_future(work)
        await asyncio.wait((task, self._ended), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
        else:
            task.cancel()
            raise self._ended.result()


def connection_closed() -> InvalidValue:
    """Return the exception for the use of a connection that was left."""
    return InvalidValue("it was left, and can't be used any more", path="connection")
