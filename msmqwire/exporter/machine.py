"""A target between its scrapes: its connection, the scrape that runs, and the counters of errors."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from msmqwire.errors import MsmqError, Unreachable
from msmqwire.exporter.asking import BUSY, FAULT, NAME, TIMEOUT, UNREACHABLE, Managed, ask, reason_of
from msmqwire.exporter.families import AGE, DURATION, ERRORS, UP, Blocks, Lines
from msmqwire.exporter.targets import Target
from msmqwire.management.reports import QueueReport
from msmqwire.names.printable import cut
from msmqwire.service.logs import log

FRESH_S: Final = 1.0
"""Seconds for which an answer counts: whoever asks the exporter more often costs the targets no more."""
_GRACE_S: Final = 1.0
"""Seconds that a client has beyond the timeout that it keeps itself."""
_WHY_MAX: Final = 300
_NAMED_MAX: Final = 5

Connect = Callable[[Target], Managed]
"""Makes the access to a target; the first call connects."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a scrape.

    Attributes:
        reason: why it failed, one of REASONS; empty if it did not.
        began, ended: when the calls did, by the clock of the loop.
        blocks: the samples that the target gave; none after a failure.
    """

    reason: str
    began: float
    ended: float
    blocks: Blocks = field(default_factory=dict)


class Lanes:
    """The places of the conversations with targets.

    Targets that have failed the last time have places of their own, so many as the others: silent machines
    do not keep the others waiting.
    """

    def __init__(self, at_once: int) -> None:
        self._well, self._failed = asyncio.Semaphore(at_once), asyncio.Semaphore(at_once)

    def of(self, *, failed: bool) -> asyncio.Semaphore:
        """Return the places for a target that has failed, or not."""
        return self._failed if failed else self._well


class Machine:
    """A target that is scraped; every caller that wants it at a time gets the same scrape.

    Attributes:
        target: its configuration.
        errors: the number of failed scrapes by reason.
        reason: why the last scrape failed; empty if it did not, None before the first.
    """

    def __init__(self, target: Target, connect: Connect, lanes: Lanes, queues_max: int) -> None:
        self.target = target
        self.errors: Counter[str] = Counter()
        self.reason: str | None = None
        self._connect, self._lanes, self._queues_max = connect, lanes, queues_max
        self._managed: Managed | None = None
        self._answered = False
        self._running: asyncio.Task[Outcome] | None = None
        self._began: float | None = None
        self._last: Outcome | None = None

    def scrape(self) -> asyncio.Task[Outcome] | Outcome:
        """Return the scrape that runs, by this call if none did; or the result of one that just ended."""
        if self._running is not None:
            return self._running
        loop = asyncio.get_running_loop()
        if self._last is not None:
            if loop.time() - self._last.ended < FRESH_S:
                return self._last
            self._last = None
        self._running = task = loop.create_task(self._scrape())
        return task

    def given_up(self) -> Outcome:
        """Return the result for a caller that can't wait for the scrape any longer."""
        now = asyncio.get_running_loop().time()
        reason, began = (BUSY, now) if self._began is None else (TIMEOUT, self._began)
        self.errors[reason] += 1
        return Outcome(reason, began, now)

    async def close(self) -> None:
        """End the scrape that runs, and the connection."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])
        await self._leave()

    def samples(self, outcome: Outcome) -> Blocks:
        """Return the samples about a scrape, its result and the errors so far."""
        lines, name = Lines(), self.target.name
        lines.add(UP, int(not outcome.reason), name)
        lines.add(DURATION, round(outcome.ended - outcome.began, 6), name)
        lines.add(AGE, round(asyncio.get_running_loop().time() - outcome.ended, 6), name)
        for reason, count in sorted(self.errors.items()):
            lines.add(ERRORS, count, name, reason)
        return lines.blocks()

    # -- a scrape -----------------------------------------------------------------------------------------

    async def _scrape(self) -> Outcome:
        loop = asyncio.get_running_loop()
        try:
            async with self._lanes.of(failed=bool(self.reason)):
                self._began = began = loop.time()
                reason, blocks = await self._asked()
            self.reason = reason
            self._last = Outcome(reason, began, loop.time(), blocks)
            return self._last
        finally:
            self._running = self._began = None

    async def _asked(self) -> tuple[str, Blocks]:
        """Return why the target can't be asked, or its samples."""
        try:
            async with asyncio.timeout(self.target.timeout + _GRACE_S):
                blocks, refused = await self._conversation()
        except (MsmqError, TimeoutError) as exc:
            reason = reason_of(exc)
            details = {"target": self.target.name, "reason": reason, "error": cut(str(exc), _WHY_MAX)}
            level = logging.DEBUG if reason == self.reason else logging.WARNING
            log.log(level, "a target can't be scraped", extra=details)
        except Exception as exc:  # a fault of one target's must not end the pages of all
            reason = FAULT
            log.error(
                "a fault of msmqwire itself in a scrape", extra={"target": self.target.name}, exc_info=exc
            )
        else:
            if self.reason:
                log.info("a target answers again", extra={"target": self.target.name})
            self._note(refused)
            self._answered = True
            return "", blocks
        self.errors[reason] += 1
        await self._leave()
        return reason, {}

    async def _conversation(self) -> tuple[Blocks, list[QueueReport]]:
        kept = self._answered
        if self._managed is None:
            self._managed = self._connect(self.target)
        try:
            return await ask(self._managed, self.target, self._queues_max)
        except Unreachable as exc:
            if not kept or reason_of(exc) != UNREACHABLE:
                raise
        # It may have restarted since the last scrape: the connection is gone, and the target is not.
        await self._leave()
        self._managed = self._connect(self.target)
        return await ask(self._managed, self.target, self._queues_max)

    def _note(self, refused: list[QueueReport]) -> None:
        if not refused:
            return
        self.errors[NAME] += len(refused)
        shown = [
            f"{cut(row.name, _WHY_MAX)}: {cut(str(row.reason), _WHY_MAX)}" for row in refused[:_NAMED_MAX]
        ]
        log.info(
            "queues of a target are not reported",
            extra={"target": self.target.name, "number": len(refused), "queues": shown},
        )

    async def _leave(self) -> None:
        managed, self._managed, self._answered = self._managed, None, False
        if managed is not None:
            await managed.close()
