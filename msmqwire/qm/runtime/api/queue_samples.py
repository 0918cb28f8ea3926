"""Samples of the figures of queues, kept for those that messages move in and those that are looked at."""

from __future__ import annotations

import asyncio
from array import array
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from msmqwire.qm.model.elements import Queue
    from msmqwire.qm.runtime.engine_driver import EngineDriver

QUEUES_MAX: Final = 256
"""Limit of the queues whose samples are kept."""
COLUMNS: Final = ("time", "messages", "put", "taken")
"""The content of a sample: seconds since 1970-01-01, and the figures of the queue at that time."""
_SLICE: Final = 1000
"""Queues that are examined at once, before others have their turn."""


class _Kept:
    """The samples of a queue, the oldest of which make room."""

    def __init__(self, most: int) -> None:
        self._most, self._next = most, 0
        self._columns = [array("d") for _ in COLUMNS]

    def add(self, sample: tuple[float, ...]) -> None:
        for column, value in zip(self._columns, sample, strict=True):
            if len(column) < self._most:
                column.append(value)
            else:
                column[self._next] = value
        self._next = (self._next + 1) % self._most

    def columns(self) -> dict[str, list[float]]:
        at = self._next if len(self._columns[0]) == self._most else 0
        return {
            name: [*column[at:], *column[:at]] for name, column in zip(COLUMNS, self._columns, strict=True)
        }


class QueueSamples:
    """The samples of `QUEUES_MAX` queues at most.

    A queue is kept from when messages have moved in it, or it was asked for. One that is new takes the place
    of the one that was used longest ago, unless that was used since the last sample: among more queues than
    `QUEUES_MAX` that are all in use, those that are kept stay.
    """

    def __init__(self, driver: EngineDriver, most: int, seconds: float, queues_max: int = QUEUES_MAX) -> None:
        """Keep `most` samples of each queue, one every `seconds`."""
        self._driver, self._most, self.seconds, self._queues_max = driver, most, seconds, queues_max
        self._kept: OrderedDict[int, _Kept] = (
            OrderedDict()
        )  # by number of the queue, that used last at the end
        self._used: set[int] = set()  # since the last sample
        self._moves: dict[int, int] = {}  # by number: what grows with each message that is put or taken
        self._began = False

    async def take(self, now: float) -> None:
        """Take a sample of each queue that is kept, at `now`; other work of the loop goes on meanwhile."""
        queues = self._driver.core.queue_manager.queues
        used, self._used = self._used, set()
        for at, (number, queue) in enumerate(list(queues.items())):
            if at % _SLICE == _SLICE - 1:
                await asyncio.sleep(0)
            moves = 2 * queue.positions.inserted - len(queue.positions)
            if self._moves.get(number, 0) != moves:
                self._moves[number] = moves
                if self._began:  # else they were there at the start
                    self._use(number, used)
            kept = self._kept.get(number)
            if kept is not None:
                kept.add(_sample(queue, now))
        self._began = True
        for number in [one for one in self._moves if one not in queues]:
            del self._moves[number]
        for number in [one for one in self._kept if one not in queues]:
            del self._kept[number]

    def columns(self, queue: Queue, now: float) -> dict[str, Any]:
        """Return the samples of a queue by column, and keep them from now on.

        Beside `COLUMNS` there are ``seconds`` from one sample to the next, and ``queues_max``.
        """
        number = queue.number
        if number not in self._kept:
            self._use(number, set())
            self._kept[number].add(_sample(queue, now))
        self._kept.move_to_end(number)
        self._used.add(number)
        return {"seconds": self.seconds, "queues_max": self._queues_max, **self._kept[number].columns()}

    def _use(self, number: int, used: set[int]) -> None:
        """Keep a queue, unless all that are kept are among those used."""
        used.add(number)
        if number not in self._kept:
            if len(self._kept) >= self._queues_max:
                oldest = next(iter(self._kept))
                if oldest in used:
                    return
                del self._kept[oldest]
            self._kept[number] = _Kept(self._most)
        self._kept.move_to_end(number)


def _sample(queue: Queue, now: float) -> tuple[float, ...]:
    positions = queue.positions
    return now, len(positions), positions.inserted, positions.inserted - len(positions)
