"""The memory of timers that are restarted many times is bounded."""

from __future__ import annotations

import sys
import weakref

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


class _Owner:
    def expire(self) -> None:
        raise AssertionError("a stopped timer expired")


@pytest.mark.parametrize("restarted", [False, True])
def test_a_stopped_timer_does_not_keep_its_owner(restarted: bool) -> None:
    timers, owner = Timers(), _Owner()
    gone = weakref.ref(owner)
    timers.start(Timer.SESSION_CLEANUP, 1, 300_000, owner.expire)
    del owner
    if restarted:
        timers.start(Timer.SESSION_CLEANUP, 1, 1, lambda: None)
    else:
        timers.stop(Timer.SESSION_CLEANUP, 1)
    assert gone() is None
    timers.advance(300_000)
