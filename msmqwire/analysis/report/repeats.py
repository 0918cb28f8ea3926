"""Messages that were sent again: the same message, the same way."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

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
            (was_sent,) = self.of([(facts.identity, item.src, item.dst)])
            is_again = is_again or was_sent
        return is_again

    def of(self, identities: Iterable[Hashable]) -> list[bool]:
        """Return of each identity, with sender and receiver, whether it was sent before; remember it."""
        sent, result, room = self._sent, [], self._limit - len(self._sent)
        for identity in map(hash, identities):
            was_sent = identity in sent
            result.append(was_sent)
            if not was_sent and room:
                sent.add(identity)
                room -= 1
        return result
