"""The way from a program to a queue, entered and left."""

from __future__ import annotations

import asyncio
import os
from types import TracebackType
from typing import Final

from msmqwire.errors import InvalidValue, Unreachable
from msmqwire.qm.client.manager import ClientManager
from msmqwire.qm.client.queue import Queue
from msmqwire.qm.client.synchronous import SyncConnection, SyncQueue
from msmqwire.qm.runtime.transport import AddressOverrides

_LOOK_S: Final = 0.005
_GRACE_S: Final = 1.0
"""How long the acknowledgements of express messages are waited for."""


class Connection:
    """What `msmqwire.connect` gives; to be entered once.

    Leaving it raises Unreachable when something was not transferred and is lost with it, and NotDelivered
    when something was refused or given up and the program has not been told that: by `Sent.transferred`,
    `Sent.arrived` or `Sent.received`.
    """

    def __init__(
        self,
        format_name: str,
        state: str | os.PathLike[str] | None,
        overrides: AddressOverrides,
        listen: tuple[str, int] | None,
        drain: float,
    ) -> None:
        self._format_name, self._drain = format_name, drain
        self._given = state, overrides, listen
        self._manager: ClientManager | None = None
        self._sync: SyncConnection | None = None
        self._entered = False

    def _enter(self) -> None:
        if self._entered:
            raise InvalidValue("it was entered before: make another one", path="connection")
        self._entered = True

    async def __aenter__(self) -> Queue:
        self._enter()
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.leave(wait=kind is None)

    def __enter__(self) -> SyncQueue:
        self._enter()
        self._sync = sync = SyncConnection()
        return sync.start(self)

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._sync is not None, "it was entered"
        self._sync.stop(self, wait=kind is None)

    # -- in the loop --------------------------------------------------------------------------------------

    async def open(self) -> Queue:
        """Start the queue manager inside, and open the queue."""
        manager = ClientManager(*self._given)
        try:
            await manager.start()
            found = Queue(manager, manager.open(self._format_name))
        except BaseException:
            await manager.stop()
            raise
        self._manager = manager
        return found

    async def leave(self, *, wait: bool) -> None:
        """End it, once all is transferred if that is to be waited for."""
        manager = self._manager
        assert manager is not None, "it was entered"
        try:
            if wait:
                await self._transferred(manager)
        finally:
            await manager.stop()

    async def _transferred(self, manager: ClientManager) -> None:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        while manager.transfers():
            waited = loop.time() - begun
            if waited > self._drain or (waited > _GRACE_S and all(one.gone for one in manager.waiting())):
                break
            await asyncio.sleep(_LOOK_S)
        lost = sum(not (one.kept or one.gone) for one in manager.waiting())
        if lost:
            what = "a message was" if lost == 1 else f"{lost} messages were"
            raise Unreachable(f"{what} not transferred{manager.obstacle()}")
        failed = manager.failures.error()
        if failed is not None:
            raise failed
