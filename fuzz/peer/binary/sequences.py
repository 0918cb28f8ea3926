"""Transactional sequences as a right peer sees them: [MS-MQQB] 3.1.5.8.6."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Sequences:
    """The peer's state of the sequences of this queue manager.

    Attributes:
        identifier, number: IncomingTxSequenceID and IncomingTxSequenceNumber.
        accepted: the highest number accepted of each sequence.
        due: whether an OrderAck is to come: each message has one, also one that is refused.
        uncertain: whether messages were sent for which the text does not say whether they count here.
        foreign: the sequences in OrderAcks that belong to other queue managers.
    """

    identifier: int = 0
    number: int = 0
    accepted: dict[int, int] = field(default_factory=dict)
    due: bool = False
    uncertain: bool = False
    foreign: list[tuple[int, int]] = field(default_factory=list)

    def accept(self, identifier: int, number: int, previous: int) -> bool:
        """Return whether a message is accepted, and go on to it if it is."""
        if identifier == self.identifier:
            follows = number > self.number >= previous
        else:
            follows = identifier > self.identifier and previous == 0
        if follows:
            self.identifier, self.number = identifier, number
            self.accepted[identifier] = number
        self.due = self.number > 0
        return follows

    def acknowledge(self, identifier: int, number: int) -> None:
        """An OrderAck has come."""
        if (identifier, number) == (self.identifier, self.number):
            self.due = False

    def doubt(self, identifier: int, number: int) -> None:
        """A message was sent, and it is not known whether the sequence advances to it."""
        self.uncertain = True
        self.accepted[identifier] = max(number, self.accepted.get(identifier, 0))

    @property
    def outstanding(self) -> int | None:
        """The number that an OrderAck is still to have; None for none."""
        return self.number if self.due and not self.uncertain else None
