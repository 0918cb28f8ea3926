"""The numbers of service connections: who has them, and who makes room before a login."""

from __future__ import annotations

from functools import partial

from msmqwire.netware.protocol.connection_numbers import ConnectionNumbers

FLOOD, HONEST, KNOWN = "10.0.0.1", "10.0.0.2", "10.0.0.3"


class Office:
    """Sixteen numbers, four of them in reserve, and the clients that had to end."""

    def __init__(self) -> None:
        self.numbers = ConnectionNumbers(16, 4, {KNOWN}.__contains__)
        self.ended: list[str] = []

    def attach(self, name: str, origin: str) -> int | None:
        caller = self.numbers.take(origin=origin, end=partial(self.ended.append, name))
        return None if caller is None else caller.connection

    def login(self, origin: str) -> int | None:
        number = self.attach("logged in", origin)
        if number is not None:
            self.numbers.logged_in(number)
        return number


def test_a_flood_of_attaches_pays_with_its_own_numbers() -> None:
    office = Office()
    assert office.attach("honest", HONEST) == 1
    for number in range(11):
        assert office.attach(f"flood {number}", FLOOD) == 2 + number
    assert office.ended == []
    for number in range(4):
        assert office.attach(f"late {number}", FLOOD) == 13 + number
        assert office.ended[-1] == f"flood {number}"
    assert office.attach("late", FLOOD) is None, "the numbers of those that ended are not given back yet"
    assert "honest" not in office.ended
    office.numbers.give_back(2)
    assert office.attach("another", "10.0.0.4") == 2


def test_who_has_logged_in_makes_room_for_nobody() -> None:
    office = Office()
    assert [office.login(FLOOD) for _ in range(14)] == [*range(1, 15)]
    assert office.login(HONEST) is None, "two numbers are for known addresses"
    assert [office.login(KNOWN) for _ in range(3)] == [15, 16, None]
    assert office.ended == []


def test_who_is_being_given_up_makes_no_room() -> None:
    office = Office()
    for number in range(12):
        office.attach(f"flood {number}", FLOOD)
    office.numbers.leave(1)
    assert office.attach("honest", HONEST) == 13
    assert office.ended == []
