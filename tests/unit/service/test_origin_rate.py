"""What peers may use in a second: who is refused, and whom a flood leaves room."""

from __future__ import annotations

from msmqwire.service.origin_rate import OriginRate


def admitted(rate: OriginRate, address: str, attempts: int, now: float, *, known: bool = False) -> int:
    return sum(rate.admits(address, now, known=known) for _ in range(attempts))


def test_an_origin_has_its_number_in_each_second() -> None:
    rate = OriginRate(total=1000, per_origin=5)
    assert admitted(rate, "192.0.2.1", 9, 0.0) == 5
    assert admitted(rate, "192.0.2.1", 9, 0.99) == 0
    assert admitted(rate, "192.0.2.2", 9, 0.99) == 5, "another origin has its own"
    assert admitted(rate, "192.0.2.1", 9, 1.0) == 5


def test_an_amount_is_counted_whole_or_not_at_all() -> None:
    rate = OriginRate(total=1000, per_origin=100)
    assert [rate.admits("192.0.2.1", 0.0, size) for size in (60, 60, 40, 1)] == [True, False, True, False]


def test_a_network_of_ipv6_is_one_origin() -> None:
    rate = OriginRate(total=1000, per_origin=5)
    assert sum(rate.admits(f"2001:db8::{number:x}", 0.0) for number in range(1, 9)) == 5
    assert rate.admits("2001:db8:0:1::1", 0.0)


def test_greedy_origins_leave_the_last_fourth() -> None:
    rate = OriginRate(total=100, per_origin=64)
    taken = [admitted(rate, f"192.0.2.{number}", 64, 0.0) for number in range(14)]
    assert taken == [64, 11] + [2] * 12, "the last fourth is for those that have had little"
    assert admitted(rate, "198.51.100.1", 64, 0.0) == 1
    assert admitted(rate, "198.51.100.2", 64, 0.0) == 0, "there is no more in this second"
    assert admitted(rate, "198.51.100.2", 64, 0.0, known=True) == 64, "a known origin has its own limit"
    assert admitted(rate, "198.51.100.4", 64, 1.0) == 64


def test_a_first_connection_has_the_last_fourth_at_any_limit() -> None:
    rate = OriginRate(total=8, per_origin=6)
    assert [admitted(rate, f"192.0.2.{number}", 9, 0.0) for number in range(5)] == [6, 1, 1, 0, 0]


def test_what_is_remembered_is_bounded_by_the_limit() -> None:
    rate = OriginRate(total=100, per_origin=64)
    for number in range(10_000):
        rate.admits(f"10.0.{number >> 8}.{number & 0xFF}", 0.0)
    assert len(rate._of) == 100
