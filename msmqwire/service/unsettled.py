"""Changes of a driver that are not durable: the waiters for them, and the failures that give them up."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from msmqwire.errors import ChangeWaits, EngineFailed, MsmqError, StoreError
from msmqwire.service.batch import Batch
from msmqwire.service.event_loop import EventLoop
from msmqwire.service.guest import Pending
from msmqwire.service.logs import log


class Unsettled:
    """The part of a driver that holds changes until they are durable, or given up.

    An unforeseen exception in a call, a timer, a commit or an effect may have left the guest partly changed:
    nothing that is not durable by then is stored or acknowledged. Commits that the disk refuses, and state
    that a fault has spoilt, are handled in one of two ways, depending on what peers can bear:

    - Peers of a queue manager repeat unacknowledged messages, and do not wait for that. So changes that the
    disk refuses are kept and retried, and no new messages are accepted meanwhile. A fault ends the driver,
    since most of a queue manager's knowledge of its sessions is not in its store.
    - A client of a file server waits for its reply, and considers the server dead without one. If the driver
    `rebuilds`, all waiting calls are refused, and the guest is made anew from its store, as by a restart.

    Attributes:
        has_guest: whether there is a guest; if not, the next user has one made.
        loop: the event loop.
        refused: whether the disk refuses commits; no new messages are accepted meanwhile.
        rebuilds: whether the guest is made anew: see `msmqwire.service.rebuilding`.
        broken: done when the driver has ended by itself, with the reason: StoreError if the store has become
            unusable, EngineFailed for a fault of msmqwire itself.
    """

    def __init__(self, loop: EventLoop) -> None:
        self.loop = loop
        self.refused = self.rebuilds = False
        self.has_guest = True
        self.broken: asyncio.Future[MsmqError] = loop.create_future()
        self._pending = Batch()
        self._ready: deque[Batch] = deque()  # earlier changes, which it could not join
        self._on_disk: Batch | None = None  # changes that the writer commits
        self._scheduled = self._closed = self._throttles = False
        self._failure: MsmqError | None = None
        self._refusal: StoreError | None = None
        self._refused_at = 0.0
        self.refused_s = float("inf")

    def _add(self, changes: Pending, effects: list[Any]) -> None:
        """Add changes, in a separate batch if they can't be committed with earlier ones."""
        batch = self._pending
        if batch.changes is not None and not batch.changes.joins(changes):
            self._ready.append(batch)
            self._pending = batch = Batch()
        batch.add(changes, effects)

    @property
    def settled(self) -> bool:
        """Whether all changes are durable, and the disk accepts commits."""
        return not self._scheduled and self._on_disk is None

    @property
    def under_way(self) -> Any:
        """The changes that the writer commits; None if it does nothing."""
        return None if self._on_disk is None else self._on_disk.changes

    def when_settled(self, action: Callable[[], None]) -> None:
        """Call `action` once all changes so far are durable."""
        batch = self._on_disk
        if batch is None or self._scheduled:
            batch = self._pending
        batch.actions.append(action)

    @property
    def accepts(self) -> bool:
        """Whether the disk allows new messages."""
        return not self._throttles

    async def idle(self) -> None:
        """Wait until no commit is under way or due, whatever its outcome."""
        while not self._closed:
            waiter = self._waiter()
            if waiter is None:
                return
            await asyncio.wait((waiter,))
            waiter.exception()  # its exception has been retrieved

    def _waiter(self) -> asyncio.Future[None] | None:
        """Return a future that is done with the last batch; None if all changes are durable."""
        batch = self._pending if self._scheduled else self._on_disk
        if batch is None:
            return None
        future: asyncio.Future[None] = self.loop.create_future()
        batch.waiting.append(future)
        return future

    def note_refusal(self, exc: StoreError) -> None:
        """Note that the disk refuses changes; it is logged once."""
        if not self.refused:
            self.refused, self._refused_at = True, self.loop.time()
            what = "changes: they fail" if self.rebuilds else "a commit; retried until the disk accepts it"
            log.error(f"the disk refuses {what}", extra={"error": str(exc)})
        self._refusal = exc

    @property
    def oldest_unsynced_s(self) -> float:
        """The age in seconds of the oldest change that the disk has been refusing; 0 if it refuses none."""
        return self.loop.time() - self._refused_at if self.refused else 0.0

    def _end_waits(self) -> None:
        """Wake the tasks that wait for a disk which has refused for `refused_s`: their changes stay."""
        if self.loop.time() - self._refused_at < self.refused_s:
            return
        why = f"{self._refusal}; the change waits for that in the memory of the server"
        for batch in (*self._ready, self._pending):
            batch.wake(ChangeWaits(why))

    def fail(self, exc: BaseException) -> MsmqError:
        """End because of an unforeseen exception, and return the error for it.

        The guest may be partly changed, so no more of its changes are stored, and no effect is carried out.
        """
        if self._failure is not None:
            if not isinstance(exc, MsmqError):
                log.error("a fault of msmqwire itself after its end", exc_info=exc)
            return self._failure
        failure: MsmqError
        if self.rebuilds and not isinstance(exc, StoreError):
            failure = EngineFailed(exc)
            log.critical("a fault of msmqwire itself: the service starts anew", exc_info=exc)
            self.has_guest = False
            return failure
        if isinstance(exc, StoreError):
            failure = exc
            log.critical("the store can't be used any more", extra={"error": str(exc)})
        else:
            failure = EngineFailed(exc)
            log.critical("a fault of msmqwire itself ends it", exc_info=exc, extra={"error": repr(exc)})
        self._end(failure)
        self.broken.set_result(failure)
        return failure

    def _spoilt(self, exc: BaseException) -> None:
        """A commit has failed in an unforeseen way: its changes are given up."""
        failure = self.fail(exc)
        if self.rebuilds:
            self._give_up(failure)

    def _give_up(self, failure: MsmqError) -> None:
        """Give up all changes that are not durable."""
        batches = [*self._ready, self._pending]
        self._ready.clear()
        self._pending, self._scheduled = Batch(), False
        for batch in batches:
            batch.wake(failure)

    def _end(self, failure: MsmqError) -> None:
        """Give up all changes, those that the writer commits too, and take no more."""
        self._closed, self._failure = True, failure
        if self._on_disk is not None:
            self._on_disk.wake(failure)
        self._give_up(failure)
