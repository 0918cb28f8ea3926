"""The origin that makes room is the one that uses most, and is found fast among very many."""

from __future__ import annotations

import random
from heapq import nlargest
from unittest import mock

import pytest

from msmqwire.service import origin_shares
from msmqwire.service.origin_shares import OriginShares

MANY = 20_000


def shares(sizes: list[int]) -> OriginShares:
    made = OriginShares(1 << 40, ())
    for number, size in enumerate(sizes):
        made.take(str(number), size)
    return made


def test_nobody_makes_room_but_the_origin_itself() -> None:
    assert OriginShares(100, ()).crowding("a", 10) == "a"


def test_who_would_exceed_its_own_part_makes_room() -> None:
    made = OriginShares(100, {"known"})
    made.take("a", 20)
    made.take("known", 30)
    assert made.crowding("a", 5) == "known"
    assert made.crowding("a", 6) == "a"
    assert made.crowding("known", 60) == "known"


@pytest.mark.parametrize("sizes", [[700] * MANY, list(range(1, MANY + 1))], ids=["equal", "different"])
def test_all_origins_are_seldom_compared(sizes: list[int]) -> None:
    """Each new origin evicts one of 20,000: a comparison of all costs as much as many messages."""
    made, found = shares(sizes), list[str]()
    with mock.patch.object(origin_shares, "nlargest", side_effect=nlargest) as compared:
        for number in range(640):
            most = made.crowding("new", 700)
            made.give_back(most, made.used_by(most))
            made.take(f"new {number}", 1)
            found.append(most)
    assert compared.call_count <= 11
    assert sorted(made.by_origin().values())[-1] <= sorted(sizes)[-641]
    assert len(set(found)) == 640


def test_no_origin_uses_more_than_the_one_found() -> None:
    """Whatever was taken and given back in between."""
    chance = random.Random(4)
    made = shares([chance.randrange(1, 50) for _ in range(300)])
    for _ in range(5_000):
        origin, size = str(chance.randrange(600)), chance.randrange(1, 50)
        if chance.random() < 0.5 or not made.used_by(origin):
            made.take(origin, size)
        else:
            made.give_back(origin, min(size, made.used_by(origin)))
        if chance.random() < 0.3:
            most = made.crowding("new", 1)
            assert made.used_by(most) == max(made.by_origin().values())
            if chance.random() < 0.7:
                made.give_back(most, made.used_by(most))
