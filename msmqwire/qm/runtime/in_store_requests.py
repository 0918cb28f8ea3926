"""Requests to a queue manager in this process, over the store of a folder that no server serves."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final

from msmqwire.errors import MsmqError, StoreRefused, Unreachable
from msmqwire.qm.runtime.control_frames import Incoming
from msmqwire.qm.runtime.data_folder import STORE, DataFolder
from msmqwire.qm.runtime.definitions.key_definitions import finish_import
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.qm.runtime.folder import check_name, default_name, open_core, stored_name
from msmqwire.qm.runtime.folder_security import FolderSecurity
from msmqwire.qm.runtime.hand_out_file import hand_outs_of
from msmqwire.qm.runtime.kept_options import KeptOptions
from msmqwire.qm.runtime.local import DISK_S
from msmqwire.qm.runtime.operations import LocalSession
from msmqwire.qm.runtime.pushed import Pushed, Subscribed
from msmqwire.service.control.client import connection_closed
from msmqwire.service.control.server import FRAMES

_POLL_S: Final = 0.1


class _Sink:
    """Passes on pushed messages: there is no connection that could be full."""

    writable = True

    def __init__(self, subscribed: Subscribed) -> None:
        self._subscribed = subscribed
        self._incoming = Incoming(lambda _: None, subscribed.add)
        self.subscription_ended = subscribed.fail

    def when_writable(self, action: Callable[[], None]) -> None:
        action()

    def push(self, frames: list[bytes]) -> None:
        for frame in frames:
            self._incoming.feed(frame)


class InStoreRequests:
    """Requests to a queue manager in this process; nothing is sent to other computers.

    See `msmqwire.qm.runtime.requests.Requests`.
    """

    served = lost = False

    def __init__(self, folder: DataFolder, *, create: bool) -> None:
        """Open the store. Raises the subclasses of StoreError."""
        self._path = str(folder.path / STORE)
        self._store = folder.open_store(create=create)
        self._folder = folder.path
        self._security: FolderSecurity | None = None
        self._subscribed = Subscribed()
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
        finish_import(self._store, self._folder)
        self._security = FolderSecurity(self._folder)
        core = open_core(
            self._store,
            name,
            security=self._security.configuration,
            hand_outs=hand_outs_of(self._store),
        )
        self._driver = driver = EngineDriver(core, self._store)
        driver.security, driver.kept = self._security, KeptOptions.read(self._store)
        driver.core.queues.take_offline()
        driver.broken.add_done_callback(self._broken)
        driver.start()
        self._session = LocalSession(driver, lasting=False, sink=_Sink(self._subscribed))
        self._watching = asyncio.ensure_future(self._watch_disk())

    def _broken(self, broken: asyncio.Future[MsmqError]) -> None:
        if not broken.cancelled():
            self._fail(broken.result())

    def _fail(self, error: MsmqError) -> None:
        """End the requests that wait for a queue manager that has ended."""
        if not self._ended.done():
            self._ended.set_result(error)
            self._subscribed.fail_all(error)

    async def _watch_disk(self) -> None:
        """End if the disk persistently refuses changes."""
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
            return _with_records(task.result())
        except Unreachable:  # of the driver that was abandoned
            if self._ended.done():
                raise self._ended.result() from None
            raise
        finally:
            if not task.done():
                task.cancel()

    async def subscribe(self, queue: str, window: int) -> Pushed:
        return await self._subscribed.subscribe(self.call, queue, window)

    def done(self, subscription: int, upto: int) -> None:
        if not self._ended.done():
            self._session.notify({"op": "done", "subscription": subscription, "upto": upto})

    async def unsubscribe(self, subscription: int, upto: int, back: int = 0) -> None:
        self._subscribed.remove(subscription)
        await self.call("unsubscribe", subscription=subscription, upto=upto, back=back or None)

    async def close(self) -> None:
        try:
            if (
                not self._ended.done() and not self._driver.refused
            ):  # otherwise only unanswered changes are lost
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


def _with_records(answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer with the receipts and records of its frames, as if they had been sent."""
    frames = answer.pop(FRAMES, None)
    if frames is None:
        return answer
    records: list[tuple[int, bytes]] = []
    incoming = Incoming(lambda _: None, lambda _, receipt, record: records.append((receipt, record)))
    for frame in frames:
        incoming.feed(frame)
    return {**answer, "records": records}
