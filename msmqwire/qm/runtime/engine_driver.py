"""A core carried on asyncio: told the time, its changes made durable, then its effects carried out."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable
from typing import Final, Protocol, TypeVar

from msmqwire.errors import MsmqError, StoreError, StoreRefused, Unreachable
from msmqwire.qm.core import Core
from msmqwire.qm.model.changes import Changes
from msmqwire.qm.model.effects import (
    Connect,
    Disconnect,
    Effect,
    ErrorReport,
    ReadCompleted,
    Resolve,
    Send,
    SendDatagram,
    TransactionReply,
)
from msmqwire.qm.runtime.logs import log
from msmqwire.qm.store import Store

T = TypeVar("T")
MANY: Final = 32
"""Calls of one turn after which `EngineDriver.hurry` waits for no more: half of a session's window."""
RETRY_S: Final = 0.25
"""A commit that the disk refused is tried again after this time."""
_LONGEST_S: Final = 3600.0


class Network(Protocol):
    """What carries out the effects that go outside."""

    def resolve(self, request: int, host: str) -> None:
        """See `msmqwire.qm.model.effects.Resolve`."""

    def connect(self, connection: int, address: str, host: str) -> None:
        """See `msmqwire.qm.model.effects.Connect`."""

    def send(self, connection: int, data: bytes) -> None:
        """See `msmqwire.qm.model.effects.Send`."""

    def disconnect(self, connection: int) -> None:
        """See `msmqwire.qm.model.effects.Disconnect`."""

    def send_datagram(self, address: str, port: int, data: bytes, *, request: bool) -> None:
        """See `msmqwire.qm.model.effects.SendDatagram`."""

    def flush(self) -> None:
        """All that was to be sent in this turn has been told."""


class EngineDriver:
    """Runs one core in the running event loop.

    Everything that calls into the core goes through `call`. What came of all calls of one turn of the loop is
    committed together, so that many messages share one sync of the disk; only then is anything carried out
    that they want done, and only then do the futures of `durable` end.

    Attributes:
        core: the queue manager.
        network: carries out what goes outside; None for none, as long as nothing is to be sent.
        refused: whether the disk refuses commits: nothing new is taken then.
        commits: how many there were.
        broken: why the store can't be used any more, once that is so: the driver does nothing more then.
    """

    def __init__(self, core: Core, store: Store) -> None:
        self.core, self._store = core, store
        self.network: Network | None = None
        self.refused = False
        self.commits = 0
        self._loop = asyncio.get_running_loop()
        self.broken: asyncio.Future[StoreError] = self._loop.create_future()
        self._start = time.monotonic()
        self._changes = Changes()
        self._effects: list[Effect] = []
        self._waiting: list[asyncio.Future[None]] = []
        self._readers: dict[int, Callable[[ReadCompleted], None]] = {}
        self._calls = 0  # since the last commit
        self._scheduled = self._closed = False
        self._failure: MsmqError | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._due: int | None = None

    def start(self) -> None:
        """Start the core: what its store has is there again when this returns."""
        self._tell_time()
        collects = gc.isenabled()
        gc.disable()  # of millions of positions that all stay it would look through each again and again
        try:
            self.core.start()
        finally:
            if collects:
                gc.enable()
        self._scheduled = True
        self._flush()

    @property
    def now_ms(self) -> int:
        """Milliseconds since the driver was made."""
        return int((time.monotonic() - self._start) * 1000)

    def _tell_time(self) -> None:
        self.core.at(self.now_ms, int(time.time()))

    def call(self, action: Callable[..., T], *args: object) -> T:
        """Call something of the core at the present time; what comes of it is carried out soon."""
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._flush)
        self._tell_time()
        self._calls += 1
        return action(*args)

    def hurry(self) -> None:
        """Commit and carry out at once if this turn has many calls already, as when many tasks send.

        The other side then works on the first of them while the next ones are made.
        """
        if self._calls >= MANY and not self.refused:
            self._flush()

    async def durable(self) -> None:
        """Wait until all that was called before is durable.

        Raises Unreachable when it was given up before that, and the subclasses of StoreError when the store
        can't be used any more.
        """
        if self._failure is not None:
            raise self._failure
        if self._scheduled:
            future = self._loop.create_future()
            self._waiting.append(future)
            await future

    def on_read(self, request: int, reader: Callable[[ReadCompleted], None]) -> None:
        """What a read that waits in the core ends in, also if it is cancelled there."""
        self._readers[request] = reader

    # -- making durable -----------------------------------------------------------------------------------

    def _flush(self) -> None:
        """Commit, then carry out; what that brings about is committed in the next turn."""
        if self._closed:
            return
        self._calls = 0
        self._tell_time()  # what is due at once, as the acknowledgement of all of this turn, goes with it
        changes, effects = self.core.take()
        self._changes.add(changes)
        self._effects += effects
        if self._changes:
            try:
                self._store.commit(self._changes)
            except StoreRefused as exc:
                self._refuse(exc)
                return
            except StoreError as exc:
                log.critical("the store can't be used any more", extra={"error": str(exc)})
                self._end(exc)
                self.broken.set_result(exc)
                return
            self._changes = Changes()
            self.commits += 1
        self._scheduled = False
        if self.refused:
            self.refused = False
            log.warning("the disk takes commits again")
            self.call(self.core.queues.end_flow_control)
        self.core.committed()
        effects, self._effects = self._effects, []
        waiting, self._waiting = self._waiting, []
        for effect in effects:
            self._carry_out(effect)
        if self.network is not None:
            self.network.flush()
        for future in waiting:
            if not future.done():
                future.set_result(None)
        self._set_alarm()

    def _refuse(self, exc: StoreRefused) -> None:
        """The disk is full or fails: take nothing new, and try again with the same changes."""
        if not self.refused:
            self.refused = True
            log.error("the disk refuses a commit; tried again until it takes it", extra={"error": str(exc)})
        self.core.queues.begin_flow_control()
        self._loop.call_later(RETRY_S, self._flush)

    def _carry_out(self, effect: Effect) -> None:
        network = self.network
        match effect:
            case Send(connection, data):
                if network is not None:
                    network.send(connection, data)
            case ReadCompleted(number):
                reader = self._readers.pop(number, None)
                if reader is not None:
                    reader(effect)
            case Resolve(request, host):
                if network is not None:
                    network.resolve(request, host)
            case Connect(connection, address, host):
                if network is not None:
                    network.connect(connection, address, host)
            case Disconnect(connection):
                if network is not None:
                    network.disconnect(connection)
            case SendDatagram(address, port, data, request):
                if network is not None:
                    network.send_datagram(address, port, data, request=request)
            case TransactionReply():
                pass  # of coordinators, which no entrance of the service makes
            case ErrorReport(text):
                log.error(text)

    # -- time and the end ---------------------------------------------------------------------------------

    def _set_alarm(self) -> None:
        """Have the core told the time when its next timer expires."""
        due = self.core.deadline
        if due == self._due and self._alarm is not None:
            return
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        self._due = due
        if due is not None:
            delay = min(max(due / 1000 - (time.monotonic() - self._start), 0.0), _LONGEST_S)
            self._alarm = self._loop.call_later(delay, self._ring)

    def _ring(self) -> None:
        self._alarm = self._due = None
        self.call(_nothing)

    async def stop(self) -> None:
        """Stop the core in good order; all that it has told is durable and carried out when this returns."""
        self.call(self.core.stop)
        await self.durable()
        self.abandon()

    def abandon(self) -> None:
        """Do nothing more: what is not durable is lost, and nobody was told of it."""
        self._end(Unreachable("the queue manager has ended before it was durable"))

    def _end(self, why: MsmqError) -> None:
        if self._closed:
            return
        self._closed, self._failure = True, why
        if self._alarm is not None:
            self._alarm.cancel()
        for future in self._waiting:
            if not future.done():
                future.set_exception(why)


def _nothing() -> None:
    """What a timer calls: `EngineDriver.call` tells the time."""
