"""The rate at which connections are accepted: who is refused, and whom a flood leaves room."""

from __future__ import annotations

from msmqwire.service.accept_rate import AcceptRate


def accepted(rate: AcceptRate, address: str, attempts: int, now: float, *, known: bool = False) -> int:
    return sum(rate.admits(address, now, known=known) for _ in range(attempts))


def test_an_origin_has_its_number_in_each_second() -> None:
    rate = AcceptRate(total=1000, per_origin=5)
    assert accepted(rate, "192.0.2.1", 9, 0.0) == 5
    assert accepted(rate, "192.0.2.1", 9, 0.99) == 0
    assert accepted(rate, "192.0.2.2", 9, 0.99) == 5, "another origin has its own"
    assert accepted(rate, "192.0.2.1", 9, 1.0) == 5


def test_a_network_of_ipv6_is_one_origin() -> None:
    rate = AcceptRate(total=1000, per_origin=5)
    assert sum(rate.admits(f"2001:db8::{number:x}", 0.0) for number in range(1, 9)) == 5
    assert rate.admits("2001:db8:0:1::1", 0.0)


def test_greedy_origins_leave_the_last_fourth() -> None:
    rate = AcceptRate(total=100, per_origin=50)
    taken = sum(accepted(rate, f"192.0.2.{number}", 50, 0.0) for number in range(4))
    assert taken == 75 + 2 * 8, "the third and fourth have few each"
    assert accepted(rate, "198.51.100.1", 50, 0.0) == 8
    assert accepted(rate, "198.51.100.2", 50, 0.0) == 1
    assert accepted(rate, "198.51.100.3", 50, 0.0) == 0, "there are no more in this second"
    assert accepted(rate, "198.51.100.3", 50, 0.0, known=True) == 50, "a known origin has its own limit"
    assert accepted(rate, "198.51.100.4", 50, 1.0) == 50


def test_what_is_remembered_is_bounded_by_the_limit() -> None:
    rate = AcceptRate(total=100, per_origin=50)
    for number in range(10_000):
        rate.admits(f"10.0.{number >> 8}.{number & 0xFF}", 0.0)
    assert len(rate._of) == 100
