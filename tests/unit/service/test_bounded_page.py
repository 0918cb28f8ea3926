"""A page that is made anew only while that takes a small part of the time."""

from __future__ import annotations

from msmqwire.service.bounded_page import BURST_S, SHARE, BoundedPage


class Made:
    """A page whose content is the count of its makings, each of a number of seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.now, self.worked, self.count = seconds, 0.0, 0.0, 0
        self.page = BoundedPage(self._make, lambda: self.now)

    def _make(self) -> bytes:
        self.worked += self.seconds
        self.now += self.seconds
        self.count += 1
        return str(self.count).encode()


def test_each_request_of_a_scraper_gets_a_new_page() -> None:
    made = Made(0.1)
    for number in range(1, 20):
        assert made.page.content() == str(number).encode()
        made.now += 1.0


def test_a_flood_costs_a_share_of_the_time() -> None:
    made = Made(0.01)
    for _ in range(10_000):
        made.page.content()
        made.now += 0.001
    assert made.worked <= BURST_S + SHARE * made.now + made.seconds
    latest = made.count
    made.now += 1.0
    assert made.page.content() == str(latest + 1).encode(), "who comes later gets a new one"


def test_a_page_that_takes_long_is_made_all_the_same() -> None:
    made = Made(5.0)
    assert [made.page.content() for _ in range(3)] == [b"1"] * 3
    made.now += 5.0 / SHARE
    assert made.page.content() == b"2"
