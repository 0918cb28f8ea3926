"""Expectations of the peer after a step: the words of `Step.expects`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from msmqwire.errors import InvalidValue

ARRIVED: Final = 0x0002
"""MQMSG_CLASS_ACK_REACH_QUEUE."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """The meaning of `Step.expects`, words with commas between them.

    Attributes:
        closed: ``closed``: the peer ends the connection.
        either: ``either``: the peer ends the connection, or the session goes on.
        open: ``open``: the session continues, as with every word except those two.
        taken: ``taken``: the messages are put into the queue, unless they are duplicates or out of order.
        uncounted: ``uncounted``: the text lets the peer leave them out of its counts.
        classes: ``class 0x8002``: the class of the administration acknowledgement, if one is asked for.
        finals: ``final 0x8009``: the class of the FinalAck.
        maybe: ``maybe 0x8000``: the class of an administration acknowledgement that may be left out.
    """

    closed: bool = False
    either: bool = False
    open: bool = False
    taken: bool = False
    uncounted: bool = False
    classes: tuple[int, ...] = ()
    finals: tuple[int, ...] = ()
    maybe: tuple[int, ...] = ()

    @property
    def known(self) -> bool:
        """Whether the outcome of the messages is known."""
        return bool(self.taken or self.classes or self.finals or self.maybe)

    @classmethod
    def of(cls, text: str) -> Expectation:
        """Return the expectation that words mean. Raises InvalidValue."""
        words: set[str] = set()
        numbers: dict[str, list[int]] = {"class": [], "final": [], "maybe": []}
        for item in filter(None, (item.strip() for item in text.split(","))):
            word, _, number = item.partition(" ")
            try:
                if word in numbers:
                    numbers[word].append(int(number, 16))
                elif item in ("closed", "either", "open", "taken", "uncounted"):
                    words.add(item)
                else:
                    raise ValueError
            except ValueError:
                raise InvalidValue(f"{item!r} is nothing to expect", path="steps.expects") from None
        return cls(
            "closed" in words,
            "either" in words,
            bool(text) and not words & {"closed", "either"},
            "taken" in words,
            "uncounted" in words,
            tuple(numbers["class"]),
            tuple(numbers["final"]),
            tuple(numbers["maybe"]),
        )
