"""Samples of the counters of a queue manager, taken periodically and kept for a while."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import deque
from contextlib import suppress
from typing import Any, Final

from msmqwire.qm.runtime.activity import counters
from msmqwire.qm.runtime.api.queue_samples import QueueSamples
from msmqwire.qm.runtime.console.options import ConsoleLimits
from msmqwire.qm.runtime.engine_driver import EngineDriver

_QUEUES_EVERY: Final = 5
"""Of queues each fifth sample is taken."""
COLUMNS: Final = (
    "time", "messages", "bytes", "put", "taken", "commits", "bytes_received", "bytes_sent", "sessions",
)  # fmt: skip
"""The content of a sample: seconds since 1970-01-01, and the figures at that time."""


class Samples:
    """The latest samples.

    Attributes:
        kept: the samples, the latest last, each as in `COLUMNS`.
        seconds: the interval between samples.
        queues: the samples of queues, taken more rarely.
        closed: whether sampling has ended.
    """

    def __init__(self, driver: EngineDriver, limits: ConsoleLimits) -> None:
        self._driver, self.seconds = driver, limits.sample_s
        self.kept: deque[tuple[float, ...]] = deque(maxlen=limits.samples)
        self.queues = QueueSamples(driver, limits.samples // _QUEUES_EVERY, self.seconds * _QUEUES_EVERY)
        self.closed = False
        self._task: asyncio.Task[None] | None = None
        self._next: asyncio.Future[None] | None = None

    def start(self) -> None:
        """Take the first sample, and continue."""
        self._take()
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Stop sampling, and wake the tasks that wait for the next sample."""
        self.closed = True
        self._wake()
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def next(self) -> None:
        """Wait for the next sample, or for the end."""
        if self.closed:
            return
        if self._next is None:
            self._next = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._next)

    def columns(self) -> dict[str, list[float]]:
        """Return all samples by column."""
        return {name: [sample[at] for sample in self.kept] for at, name in enumerate(COLUMNS)}

    def latest(self) -> dict[str, float]:
        """Return the latest sample."""
        return dict(zip(COLUMNS, self.kept[-1], strict=True))

    async def _run(self) -> None:
        for number in itertools.count():
            if number % _QUEUES_EVERY == 0:
                await self.queues.take(round(time.time(), 3))
            await asyncio.sleep(self.seconds)
            self._take()
            self._wake()

    def _wake(self) -> None:
        waiting, self._next = self._next, None
        if waiting is not None:
            waiting.set_result(None)

    def _take(self) -> None:
        core = self._driver.core
        figures: dict[str, Any] = {
            "time": round(time.time(), 3),
            "messages": sum(len(queue.positions) for queue in core.queue_manager.queues.values()),
            "bytes": core.queue_manager.total_bytes,
            "sessions": sum(session.is_open for session in core.binary.sessions.values()),
            **counters(self._driver),
        }
        self.kept.append(tuple(figures.get(name, 0) for name in COLUMNS))
