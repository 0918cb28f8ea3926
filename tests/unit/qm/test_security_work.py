"""Limits on the work that messages of others cause: who is kept out by whom."""

from __future__ import annotations

from itertools import count

import pytest

from msmqwire.qm.model.context import Context
from msmqwire.qm.model.elements import QueueManager
from msmqwire.qm.model.message import NULL_GUID
from msmqwire.qm.model.settings import Settings
from msmqwire.qm.security.work_limits import TooMuchWork, WorkLimits

OWN, TOTAL = 500, 750
SECONDS = 3


class Server:
    """Work of several origins, in turns of a millisecond."""

    def __init__(self) -> None:
        settings = Settings(security_per_origin_ms=OWN, security_total_ms=TOTAL)
        self.context = Context(QueueManager(NULL_GUID), settings, lambda: NULL_GUID)
        self.limits = WorkLimits(self.context, {"known"})

    def work(self, origin: str, milliseconds: float) -> float:
        """Do work for an origin; return how much that was, 0 if it was not allowed."""
        try:
            self.limits.check(origin)
        except TooMuchWork:
            return 0
        self.limits.spend(origin, milliseconds)
        return milliseconds

    def turns(self, seconds: int) -> list[int]:
        now = self.context.now
        return list(range(now + 1, now + seconds * 1_000 + 1))


@pytest.mark.parametrize("cost", [1, 50])
@pytest.mark.parametrize("attackers", [1, 3, 10])
def test_a_few_who_take_all_they_get_do_not_keep_out_others(attackers: int, cost: int) -> None:
    server, spent, refused = Server(), 0.0, 0
    for now in server.turns(SECONDS):
        server.context.timers.advance(now)
        for number in range(attackers):
            spent += server.work(f"peer {number}", cost)
        if now % 50 == 0:
            refused += not server.work("honest", 0.2)
        assert server.work("known", 100)
    assert refused <= 1  # all of them may overdraw at once
    allowed = min(attackers * OWN, TOTAL)
    # and what all may use at once in the beginning, and overdraw
    assert 0.95 * allowed * SECONDS < spent <= allowed * (SECONDS + 2) + cost * attackers


def test_work_does_not_grow_with_the_number_of_origins() -> None:
    server, spent, numbers = Server(), 0.0, count()
    for now in server.turns(SECONDS):
        server.context.timers.advance(now)
        for _ in range(3):
            spent += server.work(f"peer {next(numbers)}", 5)
    assert spent <= TOTAL * (SECONDS + 2) + 5


def test_those_who_have_rested_are_forgotten() -> None:
    server = Server()
    for number in range(100):
        server.work(f"peer {number}", 5)
    server.context.timers.advance(5_000)
    server.work("honest", 1)
    assert len(server.limits._origins) == 1
