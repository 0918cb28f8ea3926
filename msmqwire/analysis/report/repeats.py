"""Messages that were sent again: the same message, the same way."""

from __future__ import annotations

from msmqwire.analysis.dissection.item import Item
from msmqwire.analysis.report.facts import Facts, Group


class Repeats:
    """Remembers messages, up to a limit.

    Attributes:
        remembered: the number of messages remembered.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._sent: set[int] = set()

    @property
    def remembered(self) -> int:
        """The number of messages remembered."""
        return len(self._sent)

    def has(self, item: Item, facts: Facts) -> bool:
        """Return whether an item was sent before, and remember it."""
        is_again = facts.is_again
        if facts.identity is not None and facts.group is Group.MESSAGE:
            identity = hash((facts.identity, item.src, item.dst))
            is_again = is_again or identity in self._sent
            if len(self._sent) < self._limit:
                self._sent.add(identity)
        return is_again
