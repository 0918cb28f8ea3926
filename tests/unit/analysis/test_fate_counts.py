"""The numbers of the messages of a session."""

from __future__ import annotations

from collections import deque

import pytest

from msmqwire.analysis.fate.session_counts import COUNTS, OUTSTANDING_MAX, Counter, Outstanding


def counter(sent: int = 0, *, from_start: bool = True, count: int | None = None) -> Counter:
    """A counter of messages with the keys 1, 2, ..., the last one with the number `count`."""
    made = Counter(from_start=from_start)
    for number in range(1, sent + 1):
        made.sent(str(number))
    if count is not None:
        made.synchronise(count)
    return made


def keys(made: Counter, number: int) -> list[int]:
    return [int(message.key) for message in made.acknowledge(number)]


def test_all_up_to_a_number_once() -> None:
    made = counter(5)
    assert keys(made, 3) == [1, 2, 3]
    assert keys(made, 3) == []
    assert keys(made, 2) == []
    assert keys(made, 5) == [4, 5]
    assert made.acknowledged == 5


@pytest.mark.parametrize(
    ("count", "number", "covered"), [(1, 0xFFFF, [1, 2]), (1, 0, [1, 2, 3]), (1, 1, [1, 2, 3, 4])]
)
def test_numbers_wrap(count: int, number: int, covered: list[int]) -> None:
    assert keys(counter(4, from_start=False, count=count), number) == covered


def test_half_the_range_ahead_is_old() -> None:
    assert keys(counter(2), COUNTS // 2) == [1, 2]
    assert keys(counter(2), COUNTS // 2 + 1) == []


def test_numbers_are_unknown_after_a_gap_and_known_after_a_count() -> None:
    made = counter(2)
    made.gap()
    made.sent("3")
    assert made.count is None
    assert keys(made, 2) == [1, 2]
    assert keys(made, 9) == []
    assert made.waits_for_numbers
    made.synchronise(9)
    assert keys(made, 8) == []
    assert keys(made, 9) == [3]
    assert made.lost


def test_messages_before_a_gap_keep_their_numbers() -> None:
    made = counter(2)
    made.gap()
    made.sent("3")
    made.synchronise(9)
    assert [message.number for message in made.outstanding] == [1, 2, 9]


def test_of_very_many_the_oldest_is_forgotten() -> None:
    made = counter(OUTSTANDING_MAX + 1)
    assert len(made.outstanding) == OUTSTANDING_MAX
    assert made.outstanding[0].key == "2"
    unknown = counter(OUTSTANDING_MAX + 9, from_start=False, count=5)
    assert (unknown.outstanding[0].key, unknown.outstanding[-1].number) == ("10", 5)


@pytest.mark.parametrize(
    ("base", "flags", "stored"),
    [
        (0, 0, []),
        (3, 0, [1, 2, 3]),
        (3, 0b1, [1, 2, 3]),
        (2, 0b111, [1, 2, 3, 4]),
        (2, 0b1001, [1, 2, 5]),
        (1, 1 << 31, [1, 32]),
        (1, 0xFFFFFFFF, list(range(1, 33))),
        (0, 1 << 3, [3]),  # the base is the number 0 of 65,536 messages before
    ],
)
def test_stored_by_number_and_flags(base: int, flags: int, stored: list[int]) -> None:
    made = counter(40)
    assert [int(message.key) for message in made.acknowledge_some(base, flags)] == stored
    left = [int(message.key) for message in made.outstanding]
    assert left == [number for number in range(1, 41) if number not in stored]


class Counted(deque[Outstanding]):
    """Counts what is taken from its beginning."""

    taken = 0

    def popleft(self) -> Outstanding:
        self.taken += 1
        return super().popleft()


def test_repeated_numbers_keep_acknowledgements_cheap() -> None:
    made = Counter(from_start=False)
    waiting = made.outstanding = Counted()
    for number in range(1, 501):
        made.sent(str(number))
        made.synchronise(5)
    assert [message.number for message in waiting] == [5] + [6] * 499
    assert [message.key for message in made.acknowledge_some(5, 0b101)] == ["1"]
    assert [int(message.key) for message in waiting] == list(range(2, 501))
    assert waiting.taken == 1 + 32  # no more than 32 numbers can be between those that are stored
    assert len(made.acknowledge_some(6, 0)) == 499
