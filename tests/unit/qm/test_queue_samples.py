"""The samples of queues: which are kept, and how many."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from msmqwire.qm.runtime.api.queue_samples import QueueSamples


class _Positions:
    """As much of the positions of a queue as is sampled."""

    def __init__(self) -> None:
        self.inserted = self.count = 0

    def __len__(self) -> int:
        return self.count

    def put(self, count: int) -> None:
        self.inserted += count
        self.count += count


class _Kept:
    """Queues by number, and the samples of two of them at most."""

    def __init__(self, queues: int) -> None:
        self.queues: dict[int, Any] = {
            number: SimpleNamespace(number=number, positions=_Positions()) for number in range(queues)
        }
        core = SimpleNamespace(queue_manager=SimpleNamespace(queues=self.queues))
        driver: Any = SimpleNamespace(core=core)
        self.samples = QueueSamples(driver, most=3, seconds=10.0, queues_max=2)
        self.now = 0.0

    def take(self) -> None:
        self.now += 10
        asyncio.run(self.samples.take(self.now))

    def put(self, number: int, count: int = 1) -> None:
        self.queues[number].positions.put(count)

    def columns(self, number: int) -> dict[str, Any]:
        return self.samples.columns(self.queues[number], self.now)

    def times(self, number: int) -> list[float]:
        return list(self.columns(number)["time"])


@pytest.fixture
def kept() -> _Kept:
    made = _Kept(5)
    made.put(4, 7)  # there at the start
    made.take()
    return made


def test_a_queue_is_sampled_from_when_messages_move(kept: _Kept) -> None:
    kept.take()
    kept.put(1, 3)
    kept.take()
    kept.queues[1].positions.count = 1
    kept.take()
    assert kept.columns(1) == {
        "seconds": 10.0,
        "queues_max": 2,
        "time": [30.0, 40.0],
        "messages": [3.0, 1.0],
        "put": [3.0, 3.0],
        "taken": [0.0, 2.0],
    }


def test_the_oldest_samples_make_room(kept: _Kept) -> None:
    kept.put(1)
    for _ in range(5):
        kept.take()
    assert kept.times(1) == [40.0, 50.0, 60.0]


def test_a_queue_is_sampled_from_when_it_is_looked_at(kept: _Kept) -> None:
    assert kept.times(4) == [10.0], "what was there at the start does not count as a move"
    kept.take()
    assert kept.columns(4)["messages"] == [7.0, 7.0]


def test_the_queue_used_longest_ago_makes_room(kept: _Kept) -> None:
    for number in (0, 1, 2):
        kept.put(number)
        kept.take()
    assert kept.times(1) == [30.0, 40.0]
    assert kept.times(2) == [40.0]
    assert kept.times(0) == [40.0], "it was forgotten, and begins anew"


def test_of_queues_that_are_all_in_use_the_first_stay(kept: _Kept) -> None:
    for _ in range(3):
        for number in (0, 1, 2, 3):
            kept.put(number)
        kept.take()
    assert kept.times(0) == [20.0, 30.0, 40.0]
    assert kept.times(1) == [20.0, 30.0, 40.0]


def test_a_queue_that_is_looked_at_stays_until_the_next(kept: _Kept) -> None:
    kept.put(0)
    kept.put(1)
    kept.take()
    kept.times(0)
    kept.put(2)
    kept.put(3)
    kept.take()
    assert kept.times(0) == [20.0, 30.0]


def test_the_samples_of_a_deleted_queue_are_forgotten(kept: _Kept) -> None:
    kept.put(0)
    kept.take()
    queue = kept.queues.pop(0)
    kept.take()
    kept.queues[0] = queue
    kept.now = 99.0
    assert kept.times(0) == [99.0]
