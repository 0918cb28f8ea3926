"""Timers in the time that their owner sets: nothing here reads a clock."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable
from typing import Final

from msmqwire.qm.model.timer_kind import TimerKind

Expired = Callable[[], None]
_HEAP_MIN: Final = 64


class Timer(TimerKind):
    """The timers of [MS-MQDMPR], [MS-MQQB], [MS-MQRR] and [MS-MQBR], 3.1.2 of each."""

    DIRECTORY_SITES_UPDATE = "Directory Sites Update Timer"
    DIRECTORY_SITE_GATES_UPDATE = "Directory Site Gates Update Timer"
    WAITING_MESSAGE_READ = "Waiting Message Read Timer"
    TIME_TO_BE_RECEIVED = "Time To Be Received Timer"
    DIRECTORY_ONLINE = "Directory Online Timer"
    SESSION_INITIALIZATION = "Session Initialization Timer"
    SESSION_CLEANUP = "Session Cleanup Timer"
    SESSION_RETRY_CONNECT = "Session Retry Connect Timer"
    SESSION_ACK_WAIT = "Session Ack Wait Timer"
    SESSION_ACK_SEND = "Session Ack Send Timer"
    TRANSACTIONAL_ACK_WAIT = "Transactional Ack Wait Timer"
    ORDER_ACK_SEND = "Order Ack Send Timer"
    MESSAGE_ID_HISTORY_CLEANUP = "MessageIDHistory Cleanup Timer"
    RPC_CALL_TIMEOUT = "RPC Call Timeout Timer"
    PENDING_REQUEST_CLEANUP = "Pending Request Cleanup Timer"
    QUEUE_MANAGER_QUERY = "QueueManager Query Timer"
    PING_RESPONSE = "Ping Response Timer"
    TIME_TO_REACH_QUEUE = (
        "TimeToReachQueue"  # of messages waiting to be sent; not a timer of the specifications
    )
    RECEIVE_SYMMETRIC_KEY_CACHE_CLEANUP = "ReceiveSymmetricKeyCache Cleanup Timer"
    SEND_SYMMETRIC_KEY_CACHE_CLEANUP = "SendSymmetricKeyCache Cleanup Timer"
    SEND_BASE_SYMMETRIC_KEY_CACHE_CLEANUP = "SendBaseSymmetricKeyCache Cleanup Timer"
    USER_CERT_CACHE_CLEANUP = "UserCertCache Cleanup Timer"


def _nothing() -> None:
    """The action of a timer that was stopped."""


class _ArmedTimer:
    __slots__ = ("due", "expired", "name", "queued", "since")

    def __init__(self, name: tuple[TimerKind, Hashable], since: int, due: int, expired: Expired) -> None:
        self.name, self.since, self.due, self.expired = name, since, due, expired
        self.queued = due  # the time of its entry in the heap; `due` may be later


class Timers:
    """Running timers, each identified by its kind and the key of its owner.

    Starting, restarting and stopping a timer take amortised logarithmic time.

    Attributes:
        now: milliseconds since the system started.
    """

    def __init__(self) -> None:
        self.now = 0
        self._armed: dict[tuple[TimerKind, Hashable], _ArmedTimer] = {}
        self._heap: list[tuple[int, int, _ArmedTimer]] = []
        self._count = 0

    def start(self, timer: TimerKind, key: Hashable, delay: int, expired: Expired) -> None:
        """Start or restart a timer: `expired` is called once after `delay` milliseconds."""
        name, due = (timer, key), self.now + max(delay, 0)
        armed = self._armed.get(name)
        if armed is None or armed.queued > due:
            if armed is not None:
                armed.expired = _nothing
            self._armed[name] = armed = _ArmedTimer(name, self.now, due, expired)
            self._push(armed)
        else:
            armed.since, armed.due, armed.expired = self.now, due, expired

    def stop(self, timer: TimerKind, key: Hashable) -> None:
        """Stop a timer, if it runs."""
        armed = self._armed.pop((timer, key), None)
        if armed is not None:
            armed.expired = _nothing  # otherwise its owner would live as long as the entry in the heap
        self._drop_stale()

    def active(self, timer: TimerKind, key: Hashable) -> bool:
        """Whether a timer runs."""
        return (timer, key) in self._armed

    def elapsed(self, timer: TimerKind, key: Hashable) -> float:
        """Return the elapsed fraction of a timer's time, 0 to 1; 0 if it does not run."""
        armed = self._armed.get((timer, key))
        if armed is None:
            return 0.0
        return (self.now - armed.since) / (armed.due - armed.since) if armed.due > armed.since else 1.0

    @property
    def deadline(self) -> int | None:
        """The expiry of the next timer, in milliseconds since the system started; None for never."""
        heap = self._heap
        while heap:
            due, _, armed = heap[0]
            if self._armed.get(armed.name) is not armed:
                heapq.heappop(heap)
            elif armed.due > due:
                heapq.heappop(heap)
                self._push(armed)
            else:
                return due
        return None

    def advance(self, now: int) -> None:
        """Advance the time and expire timers, in the order of their times, then of their starts."""
        limit = max(now, self.now)
        while (due := self.deadline) is not None and due <= limit:
            armed = heapq.heappop(self._heap)[2]
            del self._armed[armed.name]
            self.now = max(self.now, due)
            armed.expired()
        self.now = limit

    def _push(self, armed: _ArmedTimer) -> None:
        armed.queued = armed.due
        self._count += 1
        heapq.heappush(self._heap, (armed.due, self._count, armed))
        self._drop_stale()

    def _drop_stale(self) -> None:
        """Remove entries of stopped and rescheduled timers once they are most of the heap."""
        heap = self._heap
        if len(heap) > _HEAP_MIN and len(heap) > 4 * len(self._armed):
            heap[:] = [entry for entry in heap if self._armed.get(entry[2].name) is entry[2]]
            heapq.heapify(heap)
