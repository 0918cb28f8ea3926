"""Deadlines of receipts, transactions and sessions: many things with one timer, in virtual time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from msmqwire.qm.runtime.api.deadlines import Deadlines
from msmqwire.service.virtual.loop import VirtualLoop

_LATE_S = 0.06
"""Two looks are at least 0.05 seconds apart."""


class Noted:
    """Deadlines whose things are noted with the time when they were due."""

    def __init__(self) -> None:
        self.loop = VirtualLoop()
        self.due: dict[str, float] = {}
        self.deadlines: Deadlines[str] = Deadlines(self.loop, self._note)

    def _note(self, keys: list[str]) -> None:
        for key in keys:
            assert key not in self.due
            self.due[key] = self.loop.time()

    def until(self, time: float) -> None:
        self.loop.run_until(time)


def test_a_thing_is_due_after_its_seconds() -> None:
    noted = Noted()
    noted.deadlines.add("slow", 30)
    noted.deadlines.add("fast", 1)
    noted.until(0.99)
    assert noted.due == {}
    noted.until(1.0)
    assert noted.due == {"fast": 1.0}
    noted.until(40)
    assert noted.due == {"fast": 1.0, "slow": 30.0}
    assert len(noted.deadlines) == 0


def test_a_discarded_thing_is_never_due_and_an_added_one_later() -> None:
    noted = Noted()
    for key in ("gone", "later"):
        noted.deadlines.add(key, 2)
    noted.until(1)
    noted.deadlines.discard("gone")
    noted.deadlines.discard("gone")
    noted.deadlines.add("later", 2)
    noted.until(2.9)
    assert noted.due == {}
    noted.until(10)
    assert noted.due == {"later": 3.0}


def test_nothing_is_due_after_the_end() -> None:
    noted = Noted()
    noted.deadlines.add("a", 1)
    noted.deadlines.close()
    noted.until(10)
    assert (noted.due, len(noted.deadlines)) == ({}, 0)


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abcdef"), st.one_of(st.none(), st.integers(1, 9)), st.floats(0, 2, width=16)
        )
    )
)
def test_each_thing_is_due_once_and_at_its_time(steps: list[tuple[str, int | None, float]]) -> None:
    """Against the plain model of a time by thing; None discards."""
    noted = Noted()
    expected: dict[str, float] = {}
    now = 0.0
    for key, seconds, pause in steps:
        noted.due.pop(key, None)
        if seconds is None:
            noted.deadlines.discard(key)
            expected.pop(key, None)
        else:
            noted.deadlines.add(key, seconds)
            expected[key] = now + seconds
        now += pause
        noted.until(now)
        for one, at in list(expected.items()):
            if at + _LATE_S < now:
                assert at <= noted.due[one] <= at + _LATE_S
            elif at > now:
                assert one not in noted.due
    noted.until(now + 100)
    assert noted.due.keys() >= expected.keys()
    assert len(noted.deadlines) == 0
