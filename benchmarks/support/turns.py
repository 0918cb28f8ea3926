"""Actions timed in turns, so that they meet the same state of the machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

SLICE: Final = 0.004
"""Seconds of one turn."""


def best(actions: Sequence[Callable[[], Any]], rounds: int) -> list[float]:
    """Return the microseconds of the processor of each action, which take turns: the best of the rounds."""
    counts = []
    for action in actions:
        start, count = time.process_time(), 0
        while time.process_time() - start < SLICE:
            action()
            count += 1
        counts.append(count)
    found = [float("inf")] * len(actions)
    for _ in range(rounds):
        for number, (action, count) in enumerate(zip(actions, counts, strict=True)):
            start = time.process_time()
            for _ in range(count):
                action()
            found[number] = min(found[number], (time.process_time() - start) / count * 1e6)
    return found
