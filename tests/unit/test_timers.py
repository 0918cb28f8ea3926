"""The memory of timers that are restarted many times is bounded."""

from __future__ import annotations

import sys

import pytest

from msmqwire.qm.model.timers import Timer, Timers

KEYS = 10
RESTARTS = 10_000
BOUND = 64 << 10


@pytest.mark.parametrize("expire", [True, False])
def test_rescheduled_timers_do_not_accumulate(expire: bool) -> None:
    timers, expired = Timers(), []
    for key in range(KEYS):
        timers.start(Timer.SESSION_CLEANUP, key, 3_600_000, lambda: None)
    for number in range(RESTARTS):
        timers.start(Timer.SESSION_ACK_SEND, number % KEYS, 10_000_000 - number, lambda: None)
        if expire:
            timers.start(Timer.SESSION_ACK_SEND, number % KEYS, 0, lambda: expired.append(timers.now))
            timers.advance(number)
    assert len(expired) == (RESTARTS if expire else 0)
    assert sys.getsizeof(timers._heap) < BOUND
    timers.advance(3_600_000)
    assert timers.deadline == (None if expire else 10_000_000 - RESTARTS + 1)
