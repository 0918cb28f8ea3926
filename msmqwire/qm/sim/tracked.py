"""One message of an application, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from msmqwire.qm.model.message import ObjectId

if TYPE_CHECKING:
    from msmqwire.qm.sim.node import Node

EXPRESS: Final = "express"
RECOVERABLE: Final = "recoverable"
TRANSACTIONAL: Final = "transactional"

OPEN: Final = "open"  # in a transaction that has not ended
COMMITTED: Final = "committed"
ABORTED: Final = "aborted"
LOST: Final = "lost"  # its sender went down before it was durable
REFUSED: Final = "refused"  # by the sender's own queue manager, when it was sent


@dataclass(slots=True, eq=False, repr=False)
class Tracked:
    """A message that an application has sent.

    Attributes:
        number: in the run; its body begins with it.
        node: the sender.
        kind: EXPRESS, RECOVERABLE or TRANSACTIONAL.
        to, queue: where it is to go.
        name: how that was named: with the sender it makes the stream whose order holds.
        wishes: what it asks for, as in the plan.
        sent_utc: by the clock of the sender.
        state: OPEN, COMMITTED, ABORTED, LOST or REFUSED.
        transaction: the transaction it is part of, 0 for none.
        sent_index, committed_index: the order of sending and of commits.
        identifier: of the message.
        sequence: its place in a transactional sequence (TimeStamp, Ordinal, number), once transmitted.
        transmitted_by: names of the nodes that have sent it over a connection.
        stored_by: names of the nodes that have had it in their stores, or the fact that they took it.
        arrivals: (epoch, number of the position) at its destination, in order; not those that a crash undid.
        received: how often it was received for good.
        failed: the class of message for which it was removed from its destination queue; 0 if it was not.
        refusal: the class for which its destination refused it; 0 if it did not.
        expired_at: the node that gave it up for its TimeToReachQueue; "" for none.
        journaled, deadlettered: how often it was put into those queues of its sender.
        acknowledgements: class and maker of the administration acknowledgements about it.
    """

    number: int
    node: Node
    kind: str
    to: Node
    queue: str
    name: str
    wishes: dict[str, object]
    sent_utc: int
    state: str = COMMITTED
    transaction: int = 0
    sent_index: int = 0
    committed_index: int = 0
    identifier: ObjectId = field(default_factory=ObjectId)
    sequence: tuple[int, int, int] | None = None
    transmitted_by: set[str] = field(default_factory=set)
    stored_by: set[str] = field(default_factory=set)
    arrivals: list[tuple[int, int]] = field(default_factory=list)
    received: int = 0
    failed: int = 0
    refusal: int = 0
    expired_at: str = ""
    journaled: int = 0
    deadlettered: int = 0
    acknowledgements: list[tuple[int, str]] = field(default_factory=list)

    def __str__(self) -> str:
        return f"#{self.number} ({self.kind}, {self.node} to {self.to}\\{self.queue})"

    __repr__ = __str__

    @property
    def label(self) -> str:
        """Its Label, which acknowledgements about it have too."""
        return f"m{self.number}"

    @property
    def reach_s(self) -> int | None:
        """TimeToReachQueue in seconds; None for the default, which is longer than a run."""
        found = self.wishes.get("reach_s")
        return found if isinstance(found, int) else None

    def expired(self, utc: int) -> bool:
        """Whether TimeToReachQueue is over by a clock."""
        return self.reach_s is not None and utc - self.sent_utc > self.reach_s

    def kept_by(self, node: Node) -> bool:
        """Whether a session acknowledgement of a node is true.

        At the destination of a transactional message it says nothing about it: one that does not follow in
        its sequence counts as well, [MS-MQQB] 3.1.5.8.6. There the order acknowledgement is what counts.
        """
        if self.kind == TRANSACTIONAL and node is self.to:
            return True
        return node.name in self.stored_by or node.world.plan.settings.remove_duplicate_size < 100

    def precedes(self, other: Tracked) -> bool:
        """Whether it must arrive before another one of its stream, if both do."""
        if self.transaction == other.transaction:
            return self.sent_index < other.sent_index
        return self.committed_index < other.sent_index
