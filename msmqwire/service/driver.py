"""The driver of a service: the calls of a turn of the event loop, one commit, and then their effects.

The shipped code is the simulated code: the driver is built with its loop, clock, store and carriers, and a
simulator passes its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from functools import partial
from typing import Final, Generic, TypeVar

from msmqwire.errors import (
    EngineFailed,
    InvalidName,
    InvalidValue,
    MsmqError,
    NcpRefused,
    QueueError,
    StoreError,
    StoreRefused,
    Unreachable,
)
from msmqwire.service.alarm import Alarm
from msmqwire.service.batch import Batch
from msmqwire.service.beginning import Beginning
from msmqwire.service.clock import Clock, WallClock
from msmqwire.service.disk import POLL_S, Room
from msmqwire.service.event_loop import EventLoop, Handle
from msmqwire.service.guest import Committer, Guest
from msmqwire.service.logs import log
from msmqwire.service.reporter import Reporter
from msmqwire.service.room_watch import RoomWatch

T = TypeVar("T")
GuestT = TypeVar("GuestT", bound=Guest)
RETRY_S: Final = 0.25
"""Seconds after which a commit that the disk refused is retried."""
REFUSED_S: Final = 3.0
"""Seconds that a stop waits for a disk that refuses commits already."""
COMMIT_DELAY_S: Final = 0.005
"""The longest time in seconds that `Driver.defer_commit` leaves changes uncommitted."""
REFUSALS: Final = (InvalidName, InvalidValue, QueueError, NcpRefused)
"""Exceptions that a call may raise without having changed anything."""


class Driver(Beginning, Generic[GuestT]):
    r"""Runs one guest in an event loop.

    A turn: the calls of one turn of the loop, by which the guest changes; one commit of all their changes, so
    that many messages share one sync of the disk; only then are the tasks that wait for `durable` woken and
    the effects carried out.

    Four ways to call the guest, by what their callers wait for:

    ============== ============================== ======================== =================================
    \               the caller waits for           committed                an unforeseen exception
    ============== ============================== ======================== =================================
    `call`         its result, then for `durable` at the end of the turn   ends the driver, and is raised
    `notify`       nothing: an event from outside the same                 ends the driver
    `defer_commit` its result; not for its        with the next ones, or   ends the driver, and is raised
                   changes                        `COMMIT_DELAY_S` later
    `read`         its result; it changes nothing what else has changed    is raised: nothing has changed
    ============== ============================== ======================== =================================

    Where it commits is a value, `writer`. Without one a turn commits by itself and the loop stands still
    meanwhile. For rows alone 2.5 times as many changes become durable in a second one by one, and 3.5 times
    with 64 under way, as by a thread (benchmarks/commit_place.py), and calls that arrive meanwhile share the
    next commit. With one the commit is made in a thread and the guest continues: for work on files, which may
    include copying a whole file.

    Attributes:
        guest: the rules that it runs.
        room: the room on the disk; None if it is not watched.
        poll_s: seconds between two checks of the room.
        refused_s: seconds for which a disk may refuse commits before those who wait for one are woken.
        calls_max: limit of calls in a turn, for a program whose tasks send many messages at once: its peer
            can process the first ones meanwhile. 0 for no limit: all share one sync.
        reporter: None for no reports.
        unsaved: the refusal of the disk that the driver has ended with; None if all changes are durable.
        commits: number of commits so far.
    """

    def __init__(
        self,
        guest: GuestT,
        store: Committer,
        *,
        loop: EventLoop | None = None,
        clock: Clock | None = None,
        writer: Executor | None = None,
    ) -> None:
        super().__init__(loop or asyncio.get_running_loop())
        self.guest = guest
        self._store, self._writer = store, writer
        self._clock: Clock = clock or WallClock()
        self.room: Room | None = None
        self.reporter: Reporter | None = None
        self.poll_s = POLL_S
        self.calls_max = 0
        self.unsaved: StoreError | None = None
        self.commits = 0
        self._deferred: Handle | None = None
        self._calls = self._calls_before = 0  # since the last commit, and before it
        self._acting = self._looks_at_alarm = False
        self._alarm = Alarm(self.loop, self._clock, self._ring)
        look = partial(self._look_at_room, tidy=True)
        self._room_watch = RoomWatch(
            self.loop, writer, look=look, measured=self._room_measured, fail=self.fail
        )

    def _before_restore(self) -> None:
        self._clock.check()
        self._update_time()

    async def _commit_in(self, thread: Executor) -> None:
        self.part()
        batch = self._pending
        if batch.changes:
            with suppress(StoreRefused):  # the end of the first turn tries again
                await self.loop.run_in_executor(thread, self._store.commit, batch.changes)
                batch.changes = None
                self.commits += 1

    def _restored(self) -> None:
        self._scheduled = True
        self._flush()
        if self._failure is not None:
            raise self._failure
        self.watch(self.room)

    def _update_time(self) -> int:
        """Set the guest's clock; return its milliseconds."""
        now_ms, utc = self._clock.read()
        self.guest.at(now_ms, utc)
        return now_ms

    # -- calls --------------------------------------------------------------------------------------------

    def call(self, action: Callable[..., T], *args: object) -> T:
        """Update the guest's clock and call `action`; its changes are committed at the end of this turn.

        If there have been `calls_max` calls in this turn, they are committed first.

        Raises `REFUSALS` of `action`, which has changed nothing then. After any other exception the driver
        ends: EngineFailed, or the StoreError of a message that could not be read.
        """
        if self.is_full and not (self._acting or self.refused):
            self._flush()
        self._begin_call()
        return self._act(action, *args)

    @property
    def is_full(self) -> bool:
        """Whether this turn has reached the limit of calls: see `calls_max`."""
        return self.calls_max != 0 and self._calls >= self.calls_max

    def _act(self, action: Callable[..., T], *args: object) -> T:
        acting, self._acting = self._acting, True
        try:
            return action(*args)
        except REFUSALS:
            raise
        except StoreError as exc:
            self.fail(exc)
            raise
        except Exception as exc:
            raise self.fail(exc) from exc
        except BaseException as exc:
            self.fail(exc)
            raise
        finally:
            self._acting = acting

    def defer_commit(self, action: Callable[..., T], *args: object) -> T:
        """Call `action` as `call` does, for changes without a waiting caller, like the end of a message.

        They are committed with the next ones, at most `COMMIT_DELAY_S` later, or as soon as a caller waits
        for `durable`. If `action` produces an awaited change, such as a copy in a journal, they are committed
        as usual.
        """
        scheduled, guest = self._scheduled, self.guest
        arrivals = guest.arrivals
        self._scheduled = True
        try:
            self._begin_call()
            return self._act(action, *args)
        finally:
            if not scheduled and not self._closed:
                self._scheduled = False
                if guest.arrivals != arrivals:
                    self._schedule()
                elif self._deferred is None:
                    self._deferred = self.loop.call_later(COMMIT_DELAY_S, self._schedule)

    def read(self, action: Callable[..., T], *args: object) -> T:
        """Update the guest's clock and call `action`, which changes nothing.

        Raises as `action` does. The driver continues, unless the store can't be read.
        """
        self._begin_call()
        try:
            return action(*args)
        except StoreError as exc:
            self.fail(exc)
            raise

    def notify(self, action: Callable[..., object], *args: object, alone: bool = False) -> None:
        """Call `action` for an event without an answer; any exception ends the driver.

        With `alone` there is no other sender: the changes are committed at once, unless this turn has further
        changes, or the last one had.
        """
        commits = alone and not (self._scheduled or self._closed or self._calls_before > 1)
        if commits:
            self._scheduled = True
        try:
            self._begin_call()
            self._act(action, *args)
        except (EngineFailed, StoreError):
            pass  # `broken` reports it
        except Exception as exc:
            self.fail(exc)
        finally:
            if commits:
                self._flush()

    def _begin_call(self) -> None:
        if isinstance(self._failure, EngineFailed):
            raise self._failure
        self._schedule()
        self._calls += 1
        try:
            self._update_time()
        except Exception as exc:
            failure = self.fail(exc)
            raise failure from (None if failure is exc else exc)
        except BaseException as exc:
            self.fail(exc)
            raise

    def _schedule(self) -> None:
        """Commit at the end of this turn."""
        if not self._scheduled:
            self._scheduled = True
            self.loop.call_soon(self._flush)
        elif (self.refused or self._on_disk is not None) and not self._looks_at_alarm:
            self._looks_at_alarm = True
            self.loop.call_soon(self._look_at_alarm)

    # -- durability ---------------------------------------------------------------------------------------

    async def durable(self) -> None:
        """Wait until the changes of all calls so far are durable.

        Raises Unreachable if the driver is abandoned before that, ChangeWaits if the disk refuses for
        `refused_s`, a subclass of StoreError if the store becomes unusable, and EngineFailed.
        """
        if self._failure is not None:
            raise self._failure
        if self._deferred is not None:
            self._schedule()
        waiter = self._waiter()
        if waiter is not None:
            await waiter

    async def durable_within(self, timeout_s: float) -> None:
        """Wait as `durable` does. Raises StoreRefused as well, if the disk refuses for `timeout`."""
        try:
            async with asyncio.timeout(timeout_s):
                await self.durable()
        except TimeoutError:
            if self._refusal is None:
                raise
            raise self._refusal from None

    # -- the end of a turn --------------------------------------------------------------------------------

    def _flush(self) -> None:
        """Commit, then carry out the effects; their changes are committed in the next turn."""
        if self._closed:
            return
        try:
            self._end_turn()
        except Exception as exc:
            self.fail(exc)
        except BaseException as exc:
            self.fail(exc)
            raise

    def _end_turn(self) -> None:
        self._calls_before, self._calls = self._calls, 0
        if self._deferred is not None:
            self._deferred.cancel()
            self._deferred = None
        if self._on_disk is not None:
            self._set_alarm()
            return  # `_written` continues
        if self.has_guest:
            # Actions due now belong to it, such as the acknowledgement of this turn's packets.
            now_ms = self._update_time()
            self.part()
            if self.reporter is not None:
                self.reporter.report(now_ms)
        if self._writer is not None:
            self._write(self._writer)
            return
        batch = self._pending
        if batch.changes:
            try:
                self._store.commit(batch.changes)
            except StoreRefused as exc:
                self._refuse(exc)
                return
            self.commits += 1
        self._scheduled = False
        self._settle(batch)

    def part(self) -> None:
        """Take the changes and effects of the guest, to be committed with this turn."""
        changes, effects = self.guest.take()
        self._add(changes, effects)

    def _write(self, writer: Executor) -> None:
        """Commit the next batch in a thread."""
        if self._ready:
            batch = self._ready.popleft()
        else:
            batch, self._scheduled = self._pending, False
        if not batch.changes:
            self._settle(batch)
            return
        self._on_disk = batch
        if batch is self._pending:
            self._pending = Batch()
        self._set_alarm()
        written = self.loop.run_in_executor(writer, self._store.commit, batch.changes)
        written.add_done_callback(self._written)

    def _written(self, written: asyncio.Future[None]) -> None:
        batch = self._on_disk
        if batch is None or self._closed or written.cancelled():
            return
        exc = written.exception()
        try:
            if exc is None:
                self.commits += 1
                self._settle(batch)
                if self._scheduled:
                    self._flush()
            else:
                self._on_disk = None
                self._ready.appendleft(batch)
                if isinstance(exc, StoreError if self.rebuilds else StoreRefused):
                    self._scheduled = True
                    self._refuse(exc)
                else:
                    self._spoilt(exc)
        except Exception as fault:
            self.fail(fault)

    def _settle(self, batch: Batch) -> None:
        """The changes of a batch are durable: wake the tasks that wait, and carry out the effects."""
        if self.refused:
            self.refused = False
            log.warning("the disk accepts commits again")
        if self.has_guest:
            self._look_at_room()
            # Not while changes taken after a refused batch still have to be committed.
            if not self._ready and (batch is self._pending or self._pending.changes is None):
                self.guest.committed()
        if batch is self._on_disk:
            self._on_disk = None
        elif batch is self._pending:
            self._pending = Batch()
        batch.wake()
        self._carry_out(batch)
        self._set_alarm()

    # -- failures -----------------------------------------------------------------------------------------

    def _refuse(self, exc: StoreError) -> None:
        """Accept no new messages while the disk is full or failing, and retry with the same changes."""
        self.note_refusal(exc)
        if self.rebuilds:
            self._give_up(exc)
            self.has_guest = False
            return
        self._throttles = True
        self.guest.throttle(on=True)
        self._end_waits()
        released = self.room is not None and self.room.release()
        self.loop.call_later(0 if released else RETRY_S, self._flush)
        self._set_alarm()

    def replace(self, guest: GuestT) -> None:
        """Continue with a guest that was made anew."""
        self.guest, self.has_guest = guest, True
        guest.throttle(on=self._throttles)

    # -- the room on the disk -----------------------------------------------------------------------------

    def _look_at_room(self, *, tidy: bool = False) -> None:
        """Throttle the guest, or end that: no new messages are accepted while the disk is full, or almost
        full.
        """
        room = self.room
        if room is not None and not self.refused and self._writer is None and (tidy or not room.plenty):
            room.look(tidy=tidy)
        throttles = (self.refused and not self.rebuilds) or (room is not None and room.low)
        if throttles and not self._throttles:
            self.guest.throttle(on=True)
        elif self._throttles and not throttles:
            self.call(self._end_throttle)
        self._throttles = throttles

    def _end_throttle(self) -> None:
        self.guest.throttle(on=False)

    def watch(self, room: Room | None) -> None:
        """Begin to watch the room on the disk, if there is one to watch."""
        self.room = room
        if room is not None:
            self._room_watch.start(room, self.poll_s)

    def _room_measured(self) -> None:
        """The writer has measured the room."""
        if self.has_guest:
            self._look_at_room()

    # -- time and the end ---------------------------------------------------------------------------------

    @property
    def _waits_for_disk(self) -> bool:
        """Whether the end of the turn is yet to come: the guest's timers still expire."""
        return self.refused or self._on_disk is not None

    def _set_alarm(self) -> None:
        """Set the alarm for the next deadline."""
        due = self.guest.deadline
        if self.reporter is not None and not self._waits_for_disk:
            reports = self.reporter.deadline
            if reports is not None and (due is None or reports < due):
                due = reports
        self._alarm.set(due)

    def _look_at_alarm(self) -> None:
        """A call has been made during the wait for the disk: it may have set a timer."""
        self._looks_at_alarm = False
        if self._waits_for_disk and not self._closed:
            self._set_alarm()

    def _ring(self) -> None:
        self.notify(_nothing)
        if self._waits_for_disk and not self._closed:  # otherwise the end of the turn sets it
            self._set_alarm()

    async def stop(self) -> None:
        """Stop the guest in good order, with its last changes durable and its effects carried out."""
        self.call(self.guest.stop)
        await self.durable()
        self.abandon()

    async def finish(self, timeout_s: float) -> None:
        """Acknowledge all received messages, then stop.

        Raises TimeoutError if the disk keeps refusing commits, and a subclass of StoreError. The wait for a
        disk that has refused before is shorter.
        """
        self.refused_s = float("inf")
        try:
            async with asyncio.timeout(min(timeout_s, REFUSED_S) if self.refused else timeout_s):
                self.call(self.guest.acknowledge_received)
                await self.durable()
                await self.stop()
        except TimeoutError:
            self.unsaved = self._refusal
            raise

    def abandon(self) -> None:
        """Stop without a commit: only unanswered changes are lost."""
        self._end(Unreachable("the service has ended before it was durable"))

    def _end(self, failure: MsmqError) -> None:
        if self._closed:
            return
        for timer in (self._alarm, self._room_watch, self._deferred):
            if timer is not None:
                timer.cancel()
        super()._end(failure)
        if self.reporter is not None:
            self.reporter.close()  # last: no task must wait forever if a report fails


def _nothing() -> None:
    """Do nothing: a timer only needs a call to update the guest's clock."""
