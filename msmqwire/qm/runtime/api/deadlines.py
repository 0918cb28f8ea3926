"""Deadlines of many things, with one timer."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

from msmqwire.service.event_loop import EventLoop, Handle

KeyT = TypeVar("KeyT", bound=Hashable)
_PAUSE_S: Final = 0.05
"""The least interval in seconds between two looks, each of which may cost a few thousand steps."""


class Deadlines(Generic[KeyT]):
    """Things that are due some time after they were added.

    Those with the same number of seconds are due in the order in which they were added, so that nothing is
    ever sorted, and a thing that is discarded leaves nothing behind.
    """

    def __init__(self, loop: EventLoop, due: Callable[[list[KeyT]], None]) -> None:
        """`due` is called with the things that are due; they are discarded."""
        self._loop, self._due = loop, due
        self._queues: dict[float, dict[KeyT, float]] = {}  # by seconds: the times
        self._seconds: dict[KeyT, float] = {}
        self._timer: Handle | None = None
        self._rings_at = float("inf")

    def __len__(self) -> int:
        return len(self._seconds)

    def add(self, key: KeyT, seconds: float) -> None:
        """Set the deadline of a thing, a number of seconds from now, in place of the one that it has."""
        self.discard(key)
        at = self._loop.time() + seconds
        self._seconds[key] = seconds
        self._queues.setdefault(seconds, {})[key] = at
        self._ring_by(at)

    def discard(self, key: KeyT) -> None:
        """Forget the deadline of a thing, if it has one."""
        seconds = self._seconds.pop(key, None)
        if seconds is not None:
            queue = self._queues[seconds]
            del queue[key]
            if not queue:
                del self._queues[seconds]

    def close(self) -> None:
        """Forget all deadlines."""
        self._queues.clear()
        self._seconds.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _ring_by(self, at: float) -> None:
        if at >= self._rings_at:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._rings_at = at
        self._timer = self._loop.call_later(max(0.0, at - self._loop.time()), self._ring)

    def _ring(self) -> None:
        self._timer, self._rings_at = None, float("inf")
        now = self._loop.time()
        due: list[KeyT] = []
        for queue in self._queues.values():
            for key, at in queue.items():
                if at > now:
                    break
                due.append(key)
        for key in due:
            self.discard(key)
        if self._queues:
            following = min(next(iter(queue.values())) for queue in self._queues.values())
            self._ring_by(max(following, now + _PAUSE_S))
        if due:
            self._due(due)
