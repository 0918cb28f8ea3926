"""The clock of a capture, compiled: the times of segments that it goes by."""

from __future__ import annotations

from typing import Any, Final

from msmqwire.capture.tcp import (
    CLOCK_BACK_NS,
    SWEEP_NS,
    TIME_MAX,
)
from msmqwire.tables.compiled.decorators import inlined, jit
from msmqwire.tables.compiled.state import (
    NOW,
    SWEEP_AT,
)

NO_CLOCK: Final = -TIME_MAX
"""In place of a time that is unknown, or beyond any true one."""


@jit
def clock_of(time_ns: int) -> int:
    """Return the time of a segment by which the clock goes."""
    return time_ns if -TIME_MAX < time_ns < TIME_MAX else NO_CLOCK


@jit
def next_multiple(time_ns: int, step_ns: int) -> int:
    """Return the first multiple of a step after a time."""
    return (time_ns // step_ns + 1) * step_ns


@inlined
def set_clock(state: Any, time_ns: int) -> None:
    """Set the clock to the time of a segment if it is the latest one, or far back."""
    if not state[NOW] - CLOCK_BACK_NS < time_ns < state[NOW]:
        state[NOW] = time_ns
        state[SWEEP_AT] = min(state[SWEEP_AT], next_multiple(time_ns, SWEEP_NS))
