"""The packets that a source is to send again. Those who ask take turns: RFC 3208 section 5.4.

Anybody who knows a session can ask for its whole window, which takes minutes at its rate. A receiver that has
lost one packet must not wait for that.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from typing import Final

ASKERS_MAX: Final = 64
"""Addresses with a turn of their own; all others share one. Our own limit, like the next one."""
ASKED_MAX: Final = 1024
"""Packets that one address may wait for."""


class _Asked:
    """The packets that one address waits for, by time. Those that came through others' turns stay, void."""

    def __init__(self) -> None:
        self.by_time: Final = list[tuple[float, int]]()
        self.numbers: Final = set[int]()


class Repairs:
    """The sequence numbers that are asked for, and when each is due."""

    def __init__(self) -> None:
        self._wanted: Final = set[int]()
        self._askers: Final = dict[Hashable, _Asked]()  # whose turn is next, first

    def __contains__(self, sequence: int) -> bool:
        return sequence in self._wanted

    def ask(self, sequence: int, at: float, asker: Hashable) -> bool:
        """Note that an address asks for a packet, due at a time; return False if it asks for too many.

        Asking again changes nothing.
        """
        if asker not in self._askers and len(self._askers) >= ASKERS_MAX:
            asker = None
        asked = self._askers.setdefault(asker, _Asked())
        if sequence in asked.numbers and sequence in self._wanted:
            return True
        if len(asked.by_time) >= ASKED_MAX:
            return False
        asked.numbers.add(sequence)
        self._wanted.add(sequence)
        heapq.heappush(asked.by_time, (at, sequence))
        return True

    def next(self, now: float) -> tuple[float, int] | None:
        """Return the time and number of a packet that is due, in turn; else of the one due first, if any."""
        first: tuple[float, int] | None = None
        for asker, asked in list(self._askers.items()):
            while asked.by_time and asked.by_time[0][1] not in self._wanted:
                asked.numbers.discard(heapq.heappop(asked.by_time)[1])
            if not asked.by_time:
                del self._askers[asker]
                continue
            if asked.by_time[0][0] <= now:
                return asked.by_time[0]
            first = asked.by_time[0] if first is None else min(first, asked.by_time[0])
        return first

    def repaired(self, sequence: int) -> None:
        """Note that a packet is sent: the turn of the address it was sent for is over."""
        self._wanted.discard(sequence)
        for asker, asked in self._askers.items():
            if asked.by_time[0][1] == sequence:
                self._askers[asker] = self._askers.pop(asker)
                return

    def forget(self, sequence: int) -> None:
        """Note that a packet has left the window."""
        self._wanted.discard(sequence)

    def clear(self) -> None:
        """Forget all."""
        self._wanted.clear()
        self._askers.clear()
