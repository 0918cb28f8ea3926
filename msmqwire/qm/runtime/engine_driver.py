"""The driver of a queue manager: the parts that `Driver` leaves to its guest, and reads of local programs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from logging import ERROR, WARNING
from typing import Any

from msmqwire.qm.core import Core
from msmqwire.qm.model.effects import ErrorReport, ReadCompleted
from msmqwire.qm.runtime.drain import Drain
from msmqwire.qm.runtime.folder_security import FolderSecurity
from msmqwire.qm.runtime.kept_options import KeptOptions
from msmqwire.qm.runtime.limits import Traffic
from msmqwire.qm.runtime.refused import RefusalReports
from msmqwire.service.clock import Clock
from msmqwire.service.driver import Driver
from msmqwire.service.event_loop import EventLoop
from msmqwire.service.guest import Committer, Guest
from msmqwire.service.logs import log
from msmqwire.service.restoring import restoring


class EngineDriver(Driver[Guest]):
    """Runs one core in an event loop.

    Attributes:
        core: the queue manager.
        security: the keys and users of the folder; None if there is no folder.
        traffic: the counters of its TCP connections; None if there are none.
        drain: whether it drains before a stop, and what is held by then.
        kept: the options that the folder keeps.
        importing: held while definitions are imported.
        noted_import: the changes of keys and directory that an import has noted and not made.
    """

    def __init__(
        self,
        core: Core,
        store: Committer,
        *,
        guest: Guest | None = None,
        loop: EventLoop | None = None,
        clock: Clock | None = None,
        writer: Executor | None = None,
    ) -> None:
        """Drive a core, or in a simulator a `guest` that watches its changes and effects."""
        super().__init__(guest or core, store, loop=loop, clock=clock, writer=writer)
        self.core, self._rows = core, store
        self.security: FolderSecurity | None = None
        self.traffic: Traffic | None = None
        self.kept = KeptOptions()
        self.importing = asyncio.Lock()
        self.noted_import: Mapping[str, Any] = {}
        self.drain = Drain(core)
        self.reporter = RefusalReports(core.context.refusals)
        self._readers: dict[int, Callable[[ReadCompleted], None]] = {}
        self.perform_by(ReadCompleted, self._read_completed)
        self.perform_by(ErrorReport, _report)

    def start(self) -> None:
        """Start the core; its store has been restored when this returns. Raises as `begin`."""
        self.begin(self._restore)

    async def start_beside(self, thread: Executor) -> None:
        """Start the core as `start` does, its store being restored in a thread: see `Driver.begin_beside`."""
        await self.begin_beside(self._restore, thread)

    def _restore(self) -> None:
        with restoring(self._rows):
            self.core.start()

    def _look_at_room(self, *, tidy: bool = False) -> None:
        """Throttle the core as `Driver` does, and report what the disk can hold: its shares depend on it."""
        super()._look_at_room(tidy=tidy)
        if self.room is not None:
            self.core.messages.quotas.disk_has(self.room.spare)

    def is_known(self, origin: str) -> bool:
        """Return whether an origin is known to the owner of this queue manager: see `MemoryPool.known`."""
        return origin in self.core.messages.pool.known

    def trace_refused(self, reason: str, peer: str, why: str) -> None:
        """Leave the trace of a message that is refused before the core has it: see `Context.refused`."""
        self.notify(lambda: self.core.context.refused(reason, peer=peer, why=why))

    def on_read(self, request: int, reader: Callable[[ReadCompleted], None]) -> None:
        """Call `reader` when a read that waits in the core completes or is cancelled there."""
        self._readers[request] = reader

    def _read_completed(self, effect: ReadCompleted) -> None:
        reader = self._readers.pop(effect.request, None)
        if reader is not None:
            reader(effect)


def _report(effect: ErrorReport) -> None:
    log.log(WARNING if effect.warning else ERROR, effect.text)
