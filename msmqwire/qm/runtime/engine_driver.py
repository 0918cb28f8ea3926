"""The driver of a core on asyncio: passes it the time, commits its changes, then carries out its effects."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable
from logging import ERROR, WARNING
from typing import Final, TypeVar

from msmqwire.errors import (
    EngineFailed,
    InvalidName,
    InvalidValue,
    MsmqError,
    QueueError,
    StoreError,
    StoreRefused,
    Unreachable,
)
from msmqwire.qm.core import Core
from msmqwire.qm.model.effects import (
    Connect,
    Disconnect,
    Effect,
    EnlistTransaction,
    ErrorReport,
    HttpRequest,
    HttpResponse,
    Multicast,
    MulticastGroups,
    ReadCompleted,
    Resolve,
    RpcAnswer,
    RpcFault,
    Send,
    SendDatagram,
    TransactionReply,
)
from msmqwire.qm.runtime.carriers import GroupNetwork, Http, Network, Rpc
from msmqwire.qm.runtime.folder_security import FolderSecurity
from msmqwire.qm.runtime.limits import Traffic
from msmqwire.qm.runtime.refused import log_refusal
from msmqwire.service.clock import WallClock
from msmqwire.service.disk import POLL_S, DiskRoom
from msmqwire.service.logs import log
from msmqwire.service.restoring import restoring
from msmqwire.service.store import Store
from msmqwire.service.store.changes import Changes

T = TypeVar("T")
MANY: Final = 32
"""Calls in one turn after which `EngineDriver.hurry` commits at once: half of a session's window."""
RETRY_S: Final = 0.25
"""Seconds after which a commit that the disk refused is retried."""
REFUSED_S: Final = 3.0
"""Seconds that a stop waits for a disk that refuses commits already."""
PUT_OFF_S: Final = 0.005
"""Seconds that `EngineDriver.put_off` leaves changes uncommitted at most."""
_LONGEST_S: Final = 3600.0
_REFUSALS: Final = (InvalidName, InvalidValue, QueueError)
"""What a request may raise without having changed anything."""


class EngineDriver:
    """Runs one core in the running event loop.

    Every call into the core goes through `call`. The changes of all calls in one turn of the loop are
    committed together, so that many messages share one sync of the disk. Only then are their effects carried
    out and the waiters of `durable` woken.

    An exception that nobody has foreseen, in a call, a timer, a commit or an effect, may have left the core
    changed half way: the driver ends, and nothing that is not durable by then is stored or acknowledged.

    Attributes:
        core: the queue manager.
        network: carries out the effects that leave the process; None if there is nothing to send.
        http: carries out those of SRMP; None if there is no HTTP.
        rpc: carries out those of remote read; None if there is none.
        multicast: carries out the effects on multicast groups; None if there is no multicast.
        security: the keys and users of the folder; None if there is no folder.
        refused: whether the disk refuses commits; nothing new is accepted meanwhile.
        room, traffic: the room on the disk, and what `network` counts; None if nobody looks.
        unsaved: the refusal of the disk that the driver has ended with; None if all changes are durable.
        commits: number of commits so far.
        broken: done when the driver has ended by itself, with the reason: StoreError if the store has become
            unusable, EngineFailed for a fault of msmqwire itself.
    """

    def __init__(self, core: Core, store: Store) -> None:
        self.core, self._store = core, store
        self.network: Network | None = None
        self.http: Http | None = None
        self.rpc: Rpc | None = None
        self.multicast: GroupNetwork | None = None
        self.security: FolderSecurity | None = None
        self.refused = False
        self.room: DiskRoom | None = None
        self.traffic: Traffic | None = None
        self.unsaved: StoreRefused | None = None
        self.commits = 0
        self._loop = asyncio.get_running_loop()
        self.broken: asyncio.Future[MsmqError] = self._loop.create_future()
        self._start = time.monotonic()
        self._clock = WallClock()
        self._changes = Changes()
        self._effects: list[Effect] = []
        self._waiting: list[asyncio.Future[None]] = []
        self._when_settled: list[Callable[[], None]] = []
        self._put_off: asyncio.TimerHandle | None = None
        self._readers: dict[int, Callable[[ReadCompleted], None]] = {}
        self._calls = 0  # since the last commit
        self._calls_before = 0  # those of the last commit
        self._scheduled = self._closed = self._throttles = False
        self._failure: MsmqError | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._look: asyncio.TimerHandle | None = None
        self._refusal: StoreRefused | None = None
        self._due: int | None = None

    def start(self) -> None:
        """Start the core; what its store holds has been restored when this returns.

        Raises InvalidValue if the clock says what no packet can hold, the subclasses of StoreError, and
        EngineFailed.
        """
        self._clock.check()
        self._update_time()
        collects = gc.isenabled()
        gc.disable()  # it would scan millions of positions again and again, none of which is garbage
        try:
            with restoring(self._store):
                self.core.start()
        finally:
            if collects:
                gc.enable()
        self._scheduled = True
        self._flush()
        if self._failure is not None:
            raise self._failure
        self._watch_room()

    @property
    def now_ms(self) -> int:
        """Milliseconds since the driver was created."""
        return int((time.monotonic() - self._start) * 1000)

    def _update_time(self) -> None:
        self.core.at(self.now_ms, self._clock.now())

    def call(self, action: Callable[..., T], *args: object) -> T:
        """Update the core's clock and call `action`; its changes are committed at the end of this turn.

        Raises InvalidValue, InvalidName and QueueError of `action`, which has changed nothing then. After any
        other exception the driver ends: EngineFailed, or the StoreError that a message could not be read by.
        """
        self._begin_call()
        try:
            return action(*args)
        except _REFUSALS:
            raise
        except StoreError as exc:
            self.fail(exc)
            raise
        except Exception as exc:
            raise self.fail(exc) from exc
        except BaseException as exc:
            self.fail(exc)
            raise

    def put_off(self, action: Callable[..., T], *args: object) -> T:
        """Call `action` as `call` does, for changes that nobody waits for, like the end of a message.

        They are committed with the next ones, `PUT_OFF_S` later at most, or as soon as somebody waits for
        `durable`. If a message has come by `action`, a copy in a journal say, they are committed as usual.
        """
        scheduled, manager = self._scheduled, self.core.queue_manager
        messages = manager.sequential_id
        self._scheduled = True
        try:
            return self.call(action, *args)
        finally:
            if not scheduled and not self._closed:
                self._scheduled = False
                if manager.sequential_id != messages:
                    self._schedule()
                elif self._put_off is None:
                    self._put_off = self._loop.call_later(PUT_OFF_S, self._schedule)

    @property
    def settled(self) -> bool:
        """Whether all messages that are there are durable, and the disk takes commits."""
        return not self._scheduled

    def when_settled(self, action: Callable[[], None]) -> None:
        """Call `action` once the messages that are there now are durable."""
        self._when_settled.append(action)

    def read(self, action: Callable[..., T], *args: object) -> T:
        """Update the core's clock and call `action`, which changes nothing.

        Raises what `action` raises. The driver goes on, unless the store can't be read.
        """
        self._begin_call()
        try:
            return action(*args)
        except StoreError as exc:
            self.fail(exc)
            raise

    def notify(self, action: Callable[..., object], *args: object) -> None:
        """Call `action` for an event that nobody waits for an answer to; any exception ends the driver."""
        try:
            self.call(action, *args)
        except (EngineFailed, StoreError):
            pass  # `broken` says so
        except Exception as exc:
            self.fail(exc)

    def trace_refused(self, reason: str, peer: str, why: str) -> None:
        """Leave the trace of a message that is refused before the core has it: see `Context.refused`."""
        self.notify(lambda: self.core.context.refused(reason, peer=peer, why=why))

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
            self._loop.call_soon(self._flush)

    def hurry(self) -> None:
        """Commit at once if this turn has many calls already, as when many tasks send.

        The other side can then process the first messages while the next ones are created.
        """
        if self._calls >= MANY and not self.refused:
            self._flush()

    def begin_alone(self) -> bool:
        """Return whether a call is likely to be the only one of this turn, as one of the last turn was.

        If so, `end_alone` has to follow the call: it commits at once, not at the end of the turn.
        """
        if self._scheduled or self._closed or self._calls_before > 1:
            return False
        self._scheduled = True
        return True

    def end_alone(self) -> None:
        """Commit what has been called since `begin_alone`."""
        self._flush()

    @property
    def accepts(self) -> bool:
        """Whether new messages are accepted, as far as the disk goes."""
        return not self._throttles

    async def durable(self) -> None:
        """Wait until the changes of all calls so far are durable.

        Raises Unreachable if the driver is abandoned before that, a subclass of StoreError if the store
        becomes unusable, and EngineFailed.
        """
        if self._failure is not None:
            raise self._failure
        if self._put_off is not None:
            self._schedule()
        if self._scheduled:
            future = self._loop.create_future()
            self._waiting.append(future)
            await future

    async def durable_within(self, timeout_s: float) -> None:
        """Wait as `durable` does. Raises StoreRefused as well, if the disk refuses for so many seconds."""
        try:
            async with asyncio.timeout(timeout_s):
                await self.durable()
        except TimeoutError:
            if self._refusal is None:
                raise
            raise self._refusal from None

    def on_read(self, request: int, reader: Callable[[ReadCompleted], None]) -> None:
        """Call `reader` when a read that waits in the core completes or is cancelled there."""
        self._readers[request] = reader

    # -- making durable -----------------------------------------------------------------------------------

    def _flush(self) -> None:
        """Commit, then carry out the effects; what those change is committed in the next turn."""
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
        if self._put_off is not None:
            self._put_off.cancel()
            self._put_off = None
        self._update_time()  # include what is due now, such as the acknowledgement of this turn's packets
        changes, effects = self.core.take()
        for refusal in self.core.context.refusals.due(self.core.context.now):
            log_refusal(refusal)  # also while the disk refuses
        self._changes.add(changes)
        self._effects += effects
        if self._changes:
            try:
                self._store.commit(self._changes)
            except StoreRefused as exc:
                self._refuse(exc)
                return
            self._changes = Changes()
            self.commits += 1
        self._scheduled = False
        if self.refused:
            self.refused = False
            log.warning("the disk takes commits again")
        self._look_at_room()
        self.core.committed()
        effects, self._effects = self._effects, []
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)
        for effect in effects:
            self._carry_out(effect)
        if self._when_settled:
            actions, self._when_settled = self._when_settled, []
            for action in actions:
                action()
        if self.network is not None:
            self.network.flush()
        if self.rpc is not None:
            self.rpc.flush()
        self._set_alarm()

    def fail(self, exc: BaseException) -> MsmqError:
        """End because of an exception that nobody has foreseen, and return the error that says so.

        The core may be changed half way, so nothing more of it is stored, and no effect is carried out.
        """
        if self._failure is not None:
            if not isinstance(exc, MsmqError):
                log.error("a fault of msmqwire itself after its end", exc_info=exc)
            return self._failure
        failure: MsmqError
        if isinstance(exc, StoreError):
            failure = exc
            log.critical("the store can't be used any more", extra={"error": str(exc)})
        else:
            failure = EngineFailed(exc)
            log.critical("a fault of msmqwire itself ends it", exc_info=exc, extra={"error": repr(exc)})
        self._end(failure)
        self.broken.set_result(failure)
        return failure

    def _refuse(self, exc: StoreRefused) -> None:
        """Accept nothing new while the disk is full or failing, and retry with the same changes."""
        if not self.refused:
            self.refused = True
            log.error("the disk refuses a commit; tried again until it takes it", extra={"error": str(exc)})
        self._refusal, self._throttles = exc, True
        self.core.queues.begin_flow_control()
        released = self.room is not None and self.room.release()
        self._loop.call_later(0 if released else RETRY_S, self._flush)

    def _look_at_room(self, *, tidy: bool = False) -> None:
        """Begin or end flow control: nothing new is accepted while the disk is full, or almost full."""
        room = self.room
        if room is not None and not self.refused and (tidy or not room.plenty):
            room.look(tidy=tidy)
        throttles = self.refused or (room is not None and room.low)
        if throttles and not self._throttles:
            self.core.queues.begin_flow_control()
        elif self._throttles and not throttles:
            self.call(self.core.queues.end_flow_control)
        self._throttles = throttles

    def _watch_room(self) -> None:
        """Look at the room from time to time: others write to the disk as well."""
        if self.room is None or self._closed:
            return
        try:
            self._look_at_room(tidy=True)
        except Exception as exc:
            self.fail(exc)
        else:
            self._look = self._loop.call_later(POLL_S, self._watch_room)

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
            case Resolve(request, host, local):
                if network is not None:
                    network.resolve(request, host, local=local)
            case Connect(connection, address, host):
                if network is not None:
                    network.connect(connection, address, host)
            case Disconnect(connection):
                if network is not None:
                    network.disconnect(connection)
            case SendDatagram(address, port, data, request):
                if network is not None:
                    network.send_datagram(address, port, data, request=request)
            case HttpRequest(request, url, message):
                if self.http is not None:
                    self.http.request(request, url, message)
            case HttpResponse(request, status):
                if self.http is not None:
                    self.http.respond(request, status)
            case MulticastGroups(groups):
                if self.multicast is not None:
                    self.multicast.set_groups(groups)
            case Multicast(request, address, port, data):
                if self.multicast is not None:
                    self.multicast.send(request, address, port, data)
            case RpcAnswer(call, results):
                if self.rpc is not None:
                    self.rpc.answer(call, results)
            case RpcFault(call, status):
                if self.rpc is not None:
                    self.rpc.fault(call, status)
            case TransactionReply() | EnlistTransaction():
                pass  # only coordinators get one, and no request of the service creates any
            case ErrorReport(text, warning):
                log.log(WARNING if warning else ERROR, text)

    # -- time and the end ---------------------------------------------------------------------------------

    def _set_alarm(self) -> None:
        """Set a timer for the core's next deadline.

        One that rings earlier is left as it is, since deadlines move with each message: it is set anew then.
        """
        deadlines = self.core.deadline, self.core.context.refusals.deadline
        due = min((deadline for deadline in deadlines if deadline is not None), default=None)
        if self._alarm is not None:
            if due is not None and self._due is not None and self._due <= due:
                return
            self._alarm.cancel()
            self._alarm = None
        self._due = due
        if due is not None:
            delay = min(max(due / 1000 - (time.monotonic() - self._start), 0.0), _LONGEST_S)
            self._alarm = self._loop.call_later(delay, self._ring)

    def _ring(self) -> None:
        self._alarm = self._due = None
        self.notify(_nothing)

    async def stop(self) -> None:
        """Stop the core in good order, with its last changes durable and its effects carried out."""
        self.call(self.core.stop)
        await self.durable()
        self.abandon()

    async def finish(self, timeout_s: float) -> None:
        """Acknowledge what has been received, then stop.

        Raises TimeoutError if the disk keeps refusing commits, and a subclass of StoreError. A disk that has
        refused before is not waited for that long.
        """
        try:
            async with asyncio.timeout(min(timeout_s, REFUSED_S) if self.refused else timeout_s):
                self.call(self.core.acknowledge_received)
                await self.durable()
                await self.stop()
        except TimeoutError:
            self.unsaved = self._refusal
            raise

    def abandon(self) -> None:
        """Stop without a commit: only unanswered changes are lost."""
        self._end(Unreachable("the queue manager has ended before it was durable"))

    def _end(self, failure: MsmqError) -> None:
        if self._closed:
            return
        self._closed, self._failure = True, failure
        for timer in (self._alarm, self._look, self._put_off):
            if timer is not None:
                timer.cancel()
        for future in self._waiting:
            if not future.done():
                future.set_exception(failure)
        for refusal in self.core.context.refusals.rest():  # last: nobody waits for ever where a report fails
            log_refusal(refusal)


def _nothing() -> None:
    """Do nothing: a timer only needs `EngineDriver.call` to update the clock."""
