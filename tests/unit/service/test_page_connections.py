"""The connections to pages: who has a place, and who makes room."""

from __future__ import annotations

from typing import cast

from msmqwire.service.limited_connection import LimitedConnection
from msmqwire.service.page_connections import PageConnections, PageLimits


class Incoming:
    """A connection without a socket."""

    def __init__(self, address: str) -> None:
        self.address, self.aborted = address, False

    def abort(self) -> None:
        self.aborted = True


class Places:
    """Places for connections, and those that came."""

    def __init__(self, connections: int, per_origin: int, per_login: int = 2) -> None:
        limits = PageLimits(connections=connections, per_origin=per_origin, with_login=2, per_login=per_login)
        self.places = PageConnections("test", limits, lambda origin: False)
        self.came: list[Incoming] = []

    def come(self, *addresses: str) -> None:
        for address in addresses:
            self.came.append(Incoming(address))
            self.places.admit(cast(LimitedConnection, self.came[-1]))

    def log_in(self, number: int, login: str = "a") -> None:
        self.places.logged_in(cast(LimitedConnection, self.came[number]), login)

    @property
    def aborted(self) -> list[int]:
        return [number for number, one in enumerate(self.came) if one.aborted]


def test_the_oldest_of_an_origin_at_its_limit_makes_room() -> None:
    own = Places(connections=9, per_origin=2)
    own.come("192.0.2.1", "192.0.2.2", "192.0.2.1", "192.0.2.1")
    assert own.aborted == [0]
    assert len(own.places) == 3
    own.come("192.0.2.1")
    assert own.aborted == [0, 2]
    assert (own.places.traffic.accepted, own.places.traffic.evicted) == (5, 2)


def test_the_origin_that_has_most_makes_room_for_another_one() -> None:
    own = Places(connections=4, per_origin=3)
    own.come("192.0.2.1", "192.0.2.2", "192.0.2.2", "192.0.2.2", "192.0.2.3")
    assert own.aborted == [1]
    own.come("192.0.2.4")
    assert own.aborted == [1, 2]


def test_a_connection_with_a_login_makes_room_for_none_without() -> None:
    own = Places(connections=2, per_origin=2)
    own.come("192.0.2.1", "192.0.2.1")
    own.log_in(0)
    own.come("192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.2")
    assert own.aborted == [1, 2, 3]
    assert len(own.places) == 3


def test_logins_have_a_limit_of_their_own() -> None:
    """The one used least recently makes room."""
    own = Places(connections=2, per_origin=2)
    for number in range(3):
        own.come("192.0.2.1")
        own.log_in(number)
        own.log_in(0)
    assert own.aborted == [1]
    assert len(own.places) == 2


def test_a_login_at_its_limit_makes_room_itself() -> None:
    own = Places(connections=9, per_origin=9, per_login=1)
    own.come(*["192.0.2.1"] * 4)
    own.log_in(0, "a")
    own.log_in(1, "b")
    own.log_in(2, "b")
    assert own.aborted == [1]
    own.log_in(3, "c")
    assert own.aborted == [0, 1]


def test_an_ended_connection_gives_its_place_back() -> None:
    own = Places(connections=2, per_origin=1)
    own.come("192.0.2.1", "192.0.2.2")
    for one in own.came:
        own.places.forget(cast(LimitedConnection, one))
        own.places.forget(cast(LimitedConnection, one))
    own.log_in(0)  # its request was still under way
    assert len(own.places) == 0
    own.come("192.0.2.1", "192.0.2.2")
    assert own.aborted == []
