"""Sequences of two queue managers that have the same identifier."""

from __future__ import annotations

from msmqwire.analysis.fate.model import EventKind
from msmqwire.analysis.fate.numbers import Numbers
from msmqwire.analysis.fate.observations import AboutNumber, Numbered, Where


def where(position: int, src: str, dst: str) -> Where:
    return Where(position, None, None, None, None, src, dst)


def test_an_order_ack_belongs_to_its_destinations_sequence() -> None:
    numbers = Numbers()
    for position, (owner, src, dst) in enumerate(
        (("a", "10.0.0.1", "10.0.0.3"), ("b", "10.0.0.2", "10.0.0.4"))
    ):
        sent = Numbered("sequence", 1, owner, where(position, src, dst), f"of {owner}")
        assert list(numbers.feed(sent)) == []

    def acknowledged(src: str, dst: str) -> list[str]:
        about = AboutNumber("sequence", 1, "", where(9, src, dst), EventKind.ORDER_ACK)
        return [observation.key for observation in numbers.feed(about)]

    assert acknowledged("10.0.0.4", "10.0.0.2") == ["of b"]
    assert acknowledged("10.0.0.3", "10.0.0.1") == ["of a"]


def test_an_order_ack_to_another_address_fits_any_sender() -> None:
    numbers = Numbers()
    list(numbers.feed(Numbered("sequence", 1, "a", where(0, "10.0.0.1", "10.0.0.3"), "of a")))
    about = AboutNumber("sequence", 1, "", where(1, "10.0.0.3", "192.0.2.9"), EventKind.ORDER_ACK)
    assert [observation.key for observation in numbers.feed(about)] == ["of a"]
