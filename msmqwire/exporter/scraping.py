"""All targets: what is asked for a page, in its time, and what changes with the file of targets."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msmqwire.exporter.families import (
    OF_EXPORTER,
    OF_MACHINES,
    OF_QUEUES,
    OF_SCRAPES,
    RELOAD_TIME,
    RELOADED,
    TARGETS,
    Blocks,
    Lines,
    page,
)
from msmqwire.exporter.machine import Connect, Lanes, Machine, Outcome
from msmqwire.exporter.targets import Target

AT_ONCE: Final = 16
QUEUES_MAX: Final = 1000


class Scraping:
    """The targets, each with its connection.

    Attributes:
        machines: the targets by name, in the order of the file.
    """

    def __init__(self, connect: Connect, *, at_once: int = AT_ONCE, queues_max: int = QUEUES_MAX) -> None:
        """Take the way to targets.

        Args:
            connect: makes the access to a target.
            at_once: conversations at a time with targets that were well; those that failed have as many.
            queues_max: queues of a target that have metrics.
        """
        self.machines: Mapping[str, Machine] = {}
        self._connect, self._lanes, self._queues_max = connect, Lanes(at_once), queues_max
        self._read_at = 0.0
        self._right = True

    async def use(self, targets: Iterable[Target]) -> None:
        """Replace the targets; one that has not changed keeps its connection, its scrape and its counters."""
        old = dict(self.machines)
        self.machines = {}
        for target in targets:
            machine = old.get(target.name)
            if machine is not None and machine.target == target:
                self.machines[target.name] = old.pop(target.name)
            else:
                self.machines[target.name] = Machine(target, self._connect, self._lanes, self._queues_max)
        self._read_at, self._right = time.time(), True
        await asyncio.gather(*(machine.close() for machine in old.values()))

    def keep(self) -> None:
        """Note that a new file of targets was wrong: those of the old one stay."""
        self._right = False

    async def close(self) -> None:
        """End all scrapes and connections."""
        machines, self.machines = self.machines, {}
        await asyncio.gather(*(machine.close() for machine in machines.values()))

    async def all(self, seconds: float) -> Iterator[bytes]:
        """Return the parts of the page of all targets, and of the exporter, after so many seconds at most."""
        blocks = await self._blocks(list(self.machines.values()), seconds)
        lines = Lines()
        lines.add(TARGETS, len(self.machines))
        lines.add(RELOADED, int(self._right))
        lines.add(RELOAD_TIME, self._read_at)
        return page((*OF_SCRAPES, *OF_MACHINES, *OF_QUEUES, *OF_EXPORTER), [*blocks, lines.blocks()])

    async def one(self, machine: Machine, seconds: float) -> Iterator[bytes]:
        """Return the parts of the page of a target, after so many seconds at most."""
        return page((*OF_SCRAPES, *OF_MACHINES, *OF_QUEUES), await self._blocks([machine], seconds))

    @staticmethod
    async def _blocks(machines: list[Machine], seconds: float) -> list[Blocks]:
        scrapes = {machine: machine.scrape() for machine in machines}
        running = {one for one in scrapes.values() if isinstance(one, asyncio.Task)}
        if running:
            await asyncio.wait(running, timeout=seconds)
        found: list[Blocks] = []
        for machine, scrape in scrapes.items():
            if isinstance(scrape, Outcome):
                outcome = scrape
            elif not scrape.done():
                outcome = machine.given_up()
            elif scrape.cancelled():
                continue  # it is no target any more
            else:
                outcome = scrape.result()
            found += (machine.samples(outcome), outcome.blocks)
        return found
