"""Caches of keys and certificates, whose entries age: [MS-MQQB] 3.1.1.3 and 3.1.6.10 to 3.1.6.13."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from msmqwire.qm.model.context import Context
from msmqwire.qm.model.timers import Timer

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_MINUTE: Final = 60_000


@dataclass(frozen=True, slots=True)
class _Entry(Generic[V]):
    """An entry. `cached_time` is CachedTime, in milliseconds since start-up: the clock may be set."""

    value: V
    cached_time: int
    origin: str


class ExpiringCache(Generic[K, V]):
    """A list of [MS-MQQB] 3.1.1.3, keyed by the attributes that are searched.

    Entries are used until a timer removes them, up to a minute after their time is over.

    Args:
        context: the state of the queue manager.
        timer: the Cleanup Timer; its key is None.
        size: the number of entries, at least one.
        lifetime: milliseconds.
    """

    def __init__(self, context: Context, timer: Timer, size: int, lifetime: int) -> None:
        self._context, self._timer, self._size, self._lifetime = context, timer, size, lifetime
        self._entries: dict[K, _Entry[V]] = {}  # the oldest first

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K) -> V | None:
        """Return the value of an entry; None if there is none."""
        entry = self._entries.get(key)
        return None if entry is None else entry.value

    def add(self, key: K, value: V, origin: str = "") -> None:
        """Add an entry, and start the Cleanup Timer if it does not run.

        If there is no room, the oldest half of the entries is dropped. An origin that has most of them
        only drops its own.
        """
        self._entries.pop(key, None)
        # MQQB-3.1.1.3-01, MQQB-3.1.1.3-02, MQQB-3.1.1.3-04, MQQB-3.1.1.3-05, MQQB-3.1.5.8.3-11
        # MQQB-3.1.5.8.3-21, MQQB-3.1.7.1.5-17
        if len(self._entries) >= self._size:
            self._make_room(origin)
        # MQQB-3.1.5.8.3-10, MQQB-3.1.5.8.3-19, MQQB-3.1.5.8.3-20
        self._entries[key] = _Entry(value, self._context.now, origin)  # MQQB-3.1.1.3.3-06, MQQB-3.1.1.3.4-03
        # MQQB-3.1.2.10-01, MQQB-3.1.2.11-01, MQQB-3.1.2.12-01, MQQB-3.1.2.13-01
        # MQQB-3.1.5.8.3-12, MQQB-3.1.5.8.3-22, MQQB-3.1.7.1.5-18
        if not self._context.timers.active(self._timer, None):
            self._start(self._lifetime)

    def _make_room(self, origin: str) -> None:
        half = max(self._size // 2, 1)  # MQQB-3.1.5.8.3-11, MQQB-3.1.5.8.3-21, MQQB-3.1.7.1.5-17
        own = [old for old, entry in self._entries.items() if entry.origin == origin]
        for old in (own if len(own) > half else list(self._entries))[:half]:
            del self._entries[old]  # MQQB-3.1.5.8.3-11, MQQB-3.1.5.8.3-21, MQQB-3.1.7.1.5-17

    def remove(self, key: K) -> None:
        """Remove an entry, if it is there."""
        self._entries.pop(key, None)

    def clear(self) -> None:
        """Remove all entries."""
        self._entries.clear()
        self._context.timers.stop(self._timer, None)

    def _start(self, delay: int) -> None:
        self._context.timers.start(self._timer, None, delay, self._clean_up)

    def _clean_up(self) -> None:
        """Cleanup Timer Event: [MS-MQQB] 3.1.6.10 to 3.1.6.13."""
        now = self._context.now
        first = now - self._lifetime
        # MQQB-3.1.6.10-01, MQQB-3.1.6.11-01, MQQB-3.1.6.12-01, MQQB-3.1.6.13-01
        self._entries = {key: entry for key, entry in self._entries.items() if entry.cached_time >= first}
        if self._entries:
            oldest = next(iter(self._entries.values()))
            # MQQB-3.1.6.10-02, MQQB-3.1.6.11-02, MQQB-3.1.6.12-02, MQQB-3.1.6.13-02
            self._start(self._lifetime + _MINUTE - (now - oldest.cached_time))
