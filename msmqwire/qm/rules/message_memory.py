"""Recoverable messages in memory, besides the store."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Final

from msmqwire.qm.model.message import Message
from msmqwire.qm.model.positions import MessagePosition

_SWEEP_MIN: Final = 1024
"""Positions from which on those of removed messages are looked for."""


class MessageMemory:
    """The recoverable messages that are in memory as well as in the store, oldest first.

    Once their rows are durable, the oldest messages leave memory while all exceed `limit` bytes. Removed ones
    leave it whenever there are twice as many positions as at the last sweep: an old message that nobody
    receives would else keep all after it.

    Attributes:
        limit: bytes of messages.
        load: reads the message of a position from the store; None until a store is attached.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.load: Callable[[MessagePosition], Message] | None = None
        self._positions: deque[MessagePosition] = deque()
        self._bytes = 0
        self._taken = 0  # the number of positions whose rows the owner has taken
        self._sweep_at = _SWEEP_MIN

    def __len__(self) -> int:
        return len(self._positions)

    def add(self, position: MessagePosition) -> None:
        """Add a position whose message is about to be stored."""
        self._positions.append(position)
        self._bytes += position.size

    def changes_taken(self) -> None:
        """Note that the owner has taken all changes so far."""
        self._taken = len(self._positions)

    def changes_durable(self) -> None:
        """Drop the oldest messages beyond the limit: all changes taken so far are durable."""
        if self.load is None:
            return
        positions = self._positions
        while self._taken and (self._bytes > self.limit or not positions[0].stored):
            position = positions.popleft()
            self._taken -= 1
            self._bytes -= position.size
            if position.stored:
                position.keep_in_store(self.load)
        if len(positions) >= self._sweep_at:
            self._sweep()

    def _sweep(self) -> None:
        """Drop the removed messages whose rows were taken."""
        taken = list(islice(self._positions, self._taken))
        kept = [position for position in taken if position.stored]
        self._positions = deque((*kept, *islice(self._positions, self._taken, None)))
        self._bytes -= sum(position.size for position in taken if not position.stored)
        self._taken = len(kept)
        self._sweep_at = max(_SWEEP_MIN, 2 * len(self._positions))
