"""Limits of waiting, in seconds: longer on a slow or loaded machine, and by MSMQWIRE_TEST_PATIENCE.

A test waits for an event and has a limit only so that a hang fails with a name. On a machine that was three
times slower than usual when the tests began, each limit is three times as long; the variable multiplies all
of them once more.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import time
from collections.abc import Callable
from statistics import median
from typing import Final

VARIABLE: Final = "MSMQWIRE_TEST_PATIENCE"
USUAL_S: Final = 0.004
"""Seconds of the measured work on a quiet machine: the minimum of thousands of runs is 0.0036."""
SCALE_MAX: Final = 10.0
_TIMES: Final = 5
_LOOPS: Final = 200_000


def measured_scale() -> float:
    """Return how many times slower than usual this machine is now; from 1 to SCALE_MAX."""
    return min(SCALE_MAX, max(1.0, median(_work_s() for _ in range(_TIMES)) / USUAL_S))


def limit(seconds: float) -> float:
    """Return the wait for an event that takes less than this on a quiet machine."""
    return seconds * SCALE


def _work_s() -> float:
    begin, total = time.perf_counter(), 0
    for number in range(_LOOPS):
        total += number & 7
    return time.perf_counter() - begin


SCALE: Final = float(os.environ.get(VARIABLE, "1")) * measured_scale()
"""How many times longer than on a quiet machine a test waits here."""
PATIENCE_S: Final = limit(120)
"""Seconds that a test waits for something to happen; generous for a loaded machine."""


async def happens(condition: Callable[[], object], what: str = "what the test waits for") -> None:
    """Wait in an event loop until a condition holds; a failure names `what`.

    The condition may be a coroutine function. `tests.support.running.until` is the same without a loop.
    """
    end = time.monotonic() + PATIENCE_S
    while True:
        result = condition()
        if await result if inspect.isawaitable(result) else result:
            return
        assert time.monotonic() < end, f"in vain: {what}"
        await asyncio.sleep(0.002)  # between two looks
