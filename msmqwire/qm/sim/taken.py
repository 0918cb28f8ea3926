"""Changes taken from a core that become durable together, with their entries in the books."""

from __future__ import annotations

from msmqwire.qm.sim.ledger import Undo
from msmqwire.service.store.changes import Changes


class Taken:
    """The changes of one turn or of several, for a driver to commit together.

    A driver may have several to commit one after the other, and a crash loses those that are not stored: so
    each has its own part of the undo log.

    Attributes:
        changes: the changes of the core. undo: the undo log of a crash before the changes are stored.
        utc: the latest time that the core was given in those turns.
    """

    __slots__ = ("changes", "undo", "utc")

    def __init__(self, changes: Changes, undo: list[Undo], utc: int) -> None:
        self.changes, self.undo, self.utc = changes, undo, utc

    def __bool__(self) -> bool:
        return bool(self.changes)

    def add(self, later: Taken) -> None:
        """Add changes that were taken later: see `Pending`."""
        self.changes.add(later.changes)
        self.undo += later.undo
        self.utc = max(self.utc, later.utc)
        later.changes, later.undo = Changes(), []

    def joins(self, later: Taken) -> bool:
        """See `Pending`."""
        return self.changes.joins(later.changes)
