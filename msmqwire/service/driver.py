"""The driver of a service: the calls of a turn of the event loop, one commit, and then their effects.

The shipped code is the simulated code: the driver is built with its loop, clock, store and carriers, and a
simulator passes its own.
"""

from __future__ import annotations

import asyncio
import gc
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeVar

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
from msmqwire.service.batch import Batch
from msmqwire.service.carrier import Carrier
from msmqwire.service.clock import Clock, WallClock
from msmqwire.service.disk import POLL_S, Room
from msmqwire.service.event_loop import EventLoop, Handle
from msmqwire.service.guest import Committer, Guest
from msmqwire.service.logs import log

T = TypeVar("T")
GuestT = TypeVar("GuestT", bound=Guest)
RETRY_S: Final = 0.25
"""Seconds after which a commit that the disk refused is retried."""
REFUSED_S: Final = 3.0
"""Seconds that a stop waits for a disk that refuses commits already."""
COMMIT_DELAY_S: Final = 0.005
"""The longest time in seconds that `Driver.defer_commit` leaves changes uncommitted."""
_LONGEST_S: Final = 3600.0
REFUSALS: Final = (InvalidName, InvalidValue, QueueError, NcpRefused)
"""Exceptions that a call may raise without having changed anything."""


class Reporter(Protocol):
    """Reports that are due in every turn, also while the disk refuses commits.

    Attributes:
        deadline: the time of the next call of `report`, in milliseconds of the driver's clock; None for
            never.
    """

    @property
    def deadline(self) -> int | None: ...

    def report(self, now_ms: int) -> None:
        """Make the reports that are due."""

    def close(self) -> None:
        """Make the last reports."""


class Driver(Generic[GuestT]):
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

    An unforeseen exception in a call, a timer, a commit or an effect may have left the guest partly changed:
    nothing that is not durable by then is stored or acknowledged. Commits that the disk refuses, and state
    that a fault has spoilt, are handled in one of two ways, depending on what peers can bear:

    - Peers of a queue manager repeat unacknowledged messages, and do not wait for that. So changes that the
    disk refuses are kept and retried, and no new messages are accepted meanwhile. A fault ends the driver,
    since most of a queue manager's knowledge of its sessions is not in its store.
    - A client of a file server waits for its reply, and considers the server dead without one. If the driver
    `rebuilds`, all waiting calls are refused, and the guest is made anew from its store, as by a restart.

    Attributes:
        guest: the rules that it runs.
        has_guest: whether there is a guest; if not, the next user has one made.
        loop: the event loop.
        refused: whether the disk refuses commits; no new messages are accepted meanwhile.
        room: the room on the disk; None if it is not watched.
        poll_s: seconds between two checks of the room.
        calls_max: limit of calls in a turn, for a program whose tasks send many messages at once: its peer
            can process the first ones meanwhile. 0 for no limit: all share one sync.
        reporter: None for no reports.
        rebuilds: whether the guest is made anew: see `msmqwire.service.rebuilding`.
        unsaved: the refusal of the disk that the driver has ended with; None if all changes are durable.
        commits: number of commits so far.
        broken: done when the driver has ended by itself, with the reason: StoreError if the store has become
            unusable, EngineFailed for a fault of msmqwire itself.
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
        self.guest = guest
        self._store, self._writer = store, writer
        self.loop: EventLoop = loop or asyncio.get_running_loop()
        self._clock: Clock = clock or WallClock()
        self.refused = False
        self.room: Room | None = None
        self.reporter: Reporter | None = None
        self.rebuilds = False
        self.poll_s = POLL_S
        self.calls_max = 0
        self.unsaved: StoreError | None = None
        self.commits = 0
        self.broken: asyncio.Future[MsmqError] = self.loop.create_future()
        self.carriers: list[Carrier] = []
        self._performers: dict[type, Callable[[Any], None]] = {}
        self._flushing: list[Callable[[], None]] = []
        self._pending = Batch()
        self._ready: deque[Batch] = deque()  # earlier changes, which it could not join
        self._on_disk: Batch | None = None  # changes that the writer commits
        self._deferred: Handle | None = None
        self._calls = 0  # since the last commit
        self._calls_before = 0  # those of the last commit
        self._scheduled = self._closed = self._throttles = self._acting = False
        self.has_guest, self._looks_at_alarm = True, False
        self._failure: MsmqError | None = None
        self._alarm: Handle | None = None
        self._look: Handle | None = None
        self._refusal: StoreError | None = None
        self._room_unknown = ""
        self._due: int | None = None

    def register(self, carrier: Carrier) -> None:
        """Let a carrier carry out its kinds of effects; effects without a carrier are ignored."""
        for kind, perform in carrier.performers.items():
            self.perform_by(kind, perform)
        self.carriers.append(carrier)

    def perform_by(self, kind: type, perform: Callable[[Any], None]) -> None:
        """Let a function carry out a kind of effect."""
        if kind in self._performers:
            raise ValueError(f"two carriers carry out {kind.__name__}")
        self._performers[kind] = perform

    def flush_by(self, flush: Callable[[], None]) -> None:
        """Register a function that sends the output queued by the effects of a turn; it is called once after
        them.
        """
        self._flushing.append(flush)

    def stop_listening(self) -> None:
        """Let all carriers stop accepting work."""
        for carrier in self.carriers:
            carrier.stop_listening()

    async def finish_carriers(self) -> None:
        """Let all carriers end their work under way, while its changes can still be made durable."""
        for carrier in self.carriers:
            await carrier.finish()

    async def close_carriers(self) -> None:
        """End all connections, the last registered carrier first; at once after a fault of msmqwire
        itself.
        """
        if self.broken.done() and isinstance(self.broken.result(), EngineFailed):
            for carrier in self.carriers:
                carrier.abort()  # its output may be wrong
        for carrier in reversed(self.carriers):
            await carrier.close()

    def begin(self, restore: Callable[[], object]) -> None:
        """Start the guest by a function; its store has been restored when this returns.

        Raises InvalidValue if no packet can hold the time of the clock, the subclasses of StoreError, and
        EngineFailed.
        """
        self._clock.check()
        self._update_time()
        collects = gc.isenabled()
        gc.disable()  # it would repeatedly scan millions of positions, none of which is garbage
        try:
            restore()
        finally:
            if collects:
                gc.enable()
        self._scheduled = True
        self._flush()
        if self._failure is not None:
            raise self._failure
        self._watch_room()

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

    async def durable(self) -> None:
        """Wait until the changes of all calls so far are durable.

        Raises Unreachable if the driver is abandoned before that, a subclass of StoreError if the store
        becomes unusable, and EngineFailed.
        """
        if self._failure is not None:
            raise self._failure
        if self._deferred is not None:
            self._schedule()
        batch = self._pending if self._scheduled else self._on_disk
        if batch is not None:
            future = self.loop.create_future()
            batch.waiting.append(future)
            await future

    async def idle(self) -> None:
        """Wait until no commit is under way or due, whatever its outcome."""
        while not self._closed:
            batch = self._pending if self._scheduled else self._on_disk
            if batch is None:
                return
            future = self.loop.create_future()
            batch.waiting.append(future)
            await asyncio.wait((future,))
            future.exception()  # its exception has been retrieved

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
        """Take the changes, into a separate batch if they can't be committed with earlier ones."""
        changes, effects = self.guest.take()
        batch = self._pending
        if batch.changes is not None and not batch.changes.joins(changes):
            self._ready.append(batch)
            self._pending = batch = Batch()
        batch.add(changes, effects)

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
        performers = self._performers
        for effect in batch.effects:
            perform = performers.get(type(effect))
            if perform is not None:
                perform(effect)
        for action in batch.actions:
            action()
        for flush in self._flushing:
            flush()
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
        released = self.room is not None and self.room.release()
        self.loop.call_later(0 if released else RETRY_S, self._flush)
        self._set_alarm()

    def note_refusal(self, exc: StoreError) -> None:
        """Note that the disk refuses changes; it is logged once."""
        if not self.refused:
            self.refused = True
            what = "changes: they fail" if self.rebuilds else "a commit; retried until the disk accepts it"
            log.error(f"the disk refuses {what}", extra={"error": str(exc)})
        self._refusal = exc

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
        self._watch_room()

    def _watch_room(self) -> None:
        """Check the room from time to time: other programs write to the disk as well."""
        if self.room is None or self._closed:
            return
        if self._writer is not None:
            look = self.loop.run_in_executor(self._writer, partial(self.room.look, tidy=True))
            look.add_done_callback(self._looked)
            return
        try:
            self._look_at_room(tidy=True)
        except Exception as exc:
            self.fail(exc)
        else:
            self._look = self.loop.call_later(self.poll_s, self._watch_room)

    def _looked(self, look: asyncio.Future[None]) -> None:
        """The writer has measured the room."""
        if self._closed or look.cancelled():
            return
        failure = look.exception()
        if isinstance(failure, StoreError):
            if str(failure) != self._room_unknown:
                self._room_unknown = str(failure)
                log.warning("the room on the disk is unknown", extra={"error": str(failure)})
        elif failure is not None:
            self.fail(failure)
        elif self.has_guest:
            self._look_at_room()
        self._look = self.loop.call_later(self.poll_s, self._watch_room)

    # -- time and the end ---------------------------------------------------------------------------------

    @property
    def _waits_for_disk(self) -> bool:
        """Whether the end of the turn is yet to come: the guest's timers still expire."""
        return self.refused or self._on_disk is not None

    def _set_alarm(self) -> None:
        """Set a timer for the next deadline.

        A timer that is due earlier is left as it is, since deadlines move with each message: it is then set
        anew.
        """
        due = self.guest.deadline
        if self.reporter is not None and not self._waits_for_disk:
            reports = self.reporter.deadline
            if reports is not None and (due is None or reports < due):
                due = reports
        if self._alarm is not None:
            if due is not None and self._due is not None and self._due <= due:
                return
            self._alarm.cancel()
            self._alarm = None
        self._due = due
        if due is not None:
            delay = min(max(self._clock.seconds_until(due), 0.0), _LONGEST_S)
            self._alarm = self.loop.call_later(delay, self._ring)

    def _look_at_alarm(self) -> None:
        """A call has been made during the wait for the disk: it may have set a timer."""
        self._looks_at_alarm = False
        if self._waits_for_disk and not self._closed:
            self._set_alarm()

    def _ring(self) -> None:
        self._alarm = self._due = None
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
        self._closed, self._failure = True, failure
        for timer in (self._alarm, self._look, self._deferred):
            if timer is not None:
                timer.cancel()
        if self._on_disk is not None:
            self._on_disk.wake(failure)
        self._give_up(failure)
        if self.reporter is not None:
            self.reporter.close()  # last: no task must wait forever if a report fails


def _nothing() -> None:
    """Do nothing: a timer only needs a call to update the guest's clock."""
