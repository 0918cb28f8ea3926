"""The connection from a program to a queue, as a context manager."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Final

from msmqwire.errors import Unreachable
from msmqwire.names import DirectName
from msmqwire.names.printable import counted
from msmqwire.qm.client.entering import EnteredOnce
from msmqwire.qm.client.manager import ClientManager
from msmqwire.qm.client.network_sending import NetworkSending
from msmqwire.qm.client.queue import Queue
from msmqwire.qm.client.reading import Reading
from msmqwire.qm.client.remote_options import RemoteOptions
from msmqwire.qm.client.sending import ReadOnlySending, Sending
from msmqwire.qm.client.synchronous_queue import SyncQueue
from msmqwire.qm.runtime.addresses import AddressOverrides
from msmqwire.qm.runtime.joined import Transports
from msmqwire.service.loop_thread import SyncConnection

if TYPE_CHECKING:
    from msmqwire.qm.client.remote_reading import RemoteReading

_POLL_S: Final = 0.005
_GRACE_S: Final = 1.0
"""Seconds to wait for the acknowledgements of express messages."""


class Connection(EnteredOnce[Queue, SyncQueue]):
    """The result of `msmqwire.connect`, which can be entered once.

    Leaving it raises Unreachable if messages were not transferred and are lost, and NotDelivered if messages
    were refused or given up and the program has not been informed by `Sent.transferred`, `Sent.arrived` or
    `Sent.received`.
    """

    _path = "connection"
    _example = "with msmqwire.connect(...) as queue: queue"

    def __init__(
        self,
        format_name: str,
        state: str | os.PathLike[str] | None,
        overrides: AddressOverrides,
        listen: tuple[str, int] | None,
        drain: float,
        transports: Transports | None = None,
        remote: tuple[DirectName, RemoteOptions] | None = None,
    ) -> None:
        """`remote` has the options for reading the queue; None for a queue that only takes messages."""
        super().__init__()
        self._format_name, self._drain = format_name, drain
        self._manager_arguments = state, overrides, listen, transports
        self._remote = remote
        self._reading: RemoteReading | None = None
        self._manager: ClientManager | None = None

    async def _open(self) -> Queue:
        """Start the inner queue manager, and open the queue."""
        manager = ClientManager(*self._manager_arguments)
        try:
            await manager.start()
            queue = Queue(self._sending(manager), None if self._remote is None else self._read)
        except BaseException:
            await manager.stop()
            raise
        self._manager = manager
        return queue

    def _synchronous(self, sync: SyncConnection, opened: Queue) -> SyncQueue:
        return SyncQueue(sync, opened)

    def _sending(self, manager: ClientManager) -> Sending:
        if self._remote is not None and self._remote[0].is_read_only:
            return ReadOnlySending(str(self._remote[0]))
        return NetworkSending(manager, manager.open(self._format_name))

    def _read(self) -> Reading:
        from msmqwire.qm.client.remote_reading import RemoteReading  # most programs send only

        assert self._remote is not None, "it can be read"
        self._reading = RemoteReading(*self._remote)
        return self._reading

    async def _leave(self, *, wait: bool) -> None:
        """Stop the inner queue manager; with `wait` once everything is transferred."""
        manager = self._manager
        assert manager is not None, "it was entered"
        try:
            if self._reading is not None:
                await self._reading.close()
            if wait:
                await self._drain_transfers(manager)
        finally:
            await manager.stop()

    async def _drain_transfers(self, manager: ClientManager) -> None:
        loop = asyncio.get_running_loop()
        start = loop.time()
        while manager.has_waiting:
            if manager.driver.broken.done():
                raise manager.driver.broken.result()
            waited = loop.time() - start
            if waited > self._drain or (
                waited > _GRACE_S and all(message.sent for message in manager.waiting())
            ):
                break
            await asyncio.sleep(_POLL_S)
        waiting = manager.waiting()
        lost = sum(not (message.stored or message.sent) for message in waiting)
        if lost:
            what = "a message was" if lost == 1 else counted(lost, "message", "were")
            raise Unreachable(f"{what} not transferred{manager.obstacle().aside}")
        failed = manager.failures.error()
        if failed is not None:
            raise failed
