"""One message of an application, and its fate."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from msmqwire.qm.model.enumerations import INFINITE, AcknowledgementsRequested, DeliveryGuarantee
from msmqwire.qm.model.message import TIME_TO_REACH_QUEUE, Message, ObjectId
from msmqwire.qm.sim.fates import OF_SESSIONS, Fates
from msmqwire.qm.sim.joined import fates_of
from msmqwire.qm.sim.plan import HTTP, SMALL, SMALL_TRANSACTIONAL, STRAY, TRANSACTIONAL


class Delivery(StrEnum):
    """The guarantee with which a message is sent."""

    EXPRESS = "express"
    RECOVERABLE = "recoverable"
    TRANSACTIONAL = "transactional"


class SendState(StrEnum):
    """The state of the sending of a message."""

    OPEN = "open"  # in a transaction that has not ended
    COMMITTED = "committed"
    ABORTED = "aborted"
    LOST = "lost"  # its sender crashed before it was durable
    REFUSED = "refused"  # by the sender's own queue manager, when it was sent


@dataclass(slots=True, eq=False, repr=False)
class Tracked:
    """A message that an application has sent. Nodes are given by their names.

    Attributes:
        number: its number in the run, with which its body begins.
        sender: the node that sends it.
        delivery: the guarantee with which it is sent.
        destination, queue: the node and the queue that it is sent to.
        format_name: the name used for the queue: sender and format name make the stream whose order holds.
        options: its options, as in the plan.
        sent_utc: the time of sending, by the clock of the sender.
        state: the state of the sending.
        transaction: the transaction it is part of, 0 for none.
        sent_index, committed_index: the order of sending and of commits.
        identifier: its MessageID.
        sequence: its position in a transactional sequence (TimeStamp, Ordinal, number), once transmitted.
        transmitted_by: the nodes that have sent it over a connection.
        stored_by: the nodes that have had it in their stores, or the fact that they accepted it.
        arrivals: (epoch, number of the position) at its destination, in order, without those that a crash
            undid.
        received: how often it was received for good.
        failed: the class of message for which it was removed from its destination queue; 0 if it was not.
        purged_before_commit: whether its queue was purged while the transaction that sends it was open: the
            commit deletes it, and no reader ever saw it.
        refusal: the class, or the status of HTTP, for which its destination refused it; 0 if it did not.
        expired_at: the node that gave it up because its time was over; "" for none.
        journaled, deadlettered: how often it was put into those queues of its sender.
        acknowledgements: class and origin of the administration acknowledgements about it.
        final_receipt: the identifier of the final stream receipt about it; None for none.
    """

    number: int
    sender: str
    delivery: Delivery
    destination: str
    queue: str
    format_name: str
    options: dict[str, Any]
    sent_utc: int
    state: SendState = SendState.COMMITTED
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
    purged_before_commit: bool = False
    refusal: int = 0
    expired_at: str = ""
    journaled: int = 0
    deadlettered: int = 0
    acknowledgements: list[tuple[int, str]] = field(default_factory=list)
    final_receipt: ObjectId | None = None

    def __str__(self) -> str:
        return f"#{self.number} ({self.delivery}, {self.sender} to {self.destination}\\{self.queue})"

    __repr__ = __str__

    @property
    def is_transactional(self) -> bool:
        return self.delivery is Delivery.TRANSACTIONAL

    @property
    def is_express(self) -> bool:
        return self.delivery is Delivery.EXPRESS

    @property
    def fates(self) -> Fates:
        """The possible fates of the message under the protocol that carries it."""
        return fates_of(self.options.get("form")) if self.sender != self.destination else OF_SESSIONS

    @property
    def body(self) -> bytes:
        """Its body."""
        return f"#{self.number};".encode() + bytes(self.options["size"])

    @property
    def signature(self) -> int:
        """The version of its signature, 1 to 3; 0 if it has none. Signatures of SRMP do not count."""
        signs = self.options.get("form") not in (HTTP, STRAY)
        return int(self.options.get("sign", 0)) if signs else 0

    @property
    def is_encrypted(self) -> bool:
        """Whether its body is encrypted on its way, for which its queue needs a name with a GUID."""
        return bool(self.options.get("encrypt")) and self.options.get("form") == "PRIVATE"

    def message(self) -> Message:
        """Return a new message with the planned properties, neither signed nor encrypted."""
        options = self.options
        return Message(
            body=self.body,
            label=self.label,
            delivery_guarantee=DeliveryGuarantee(int(bool(options.get("recoverable")))),
            priority=options.get("priority", 3),
            positive_journaling_requested=bool(options.get("journal")),
            negative_journaling_requested=bool(options.get("deadletter")),
            acknowledgements_requested=AcknowledgementsRequested(self.acknowledgements_requested),
            time_to_reach_queue=options.get("reach_s", TIME_TO_REACH_QUEUE),
            time_to_be_received=options.get("receive_s", INFINITE),
        )

    @property
    def label(self) -> str:
        """The Label of the message, which acknowledgements about it have too."""
        return f"m{self.number}"

    @property
    def reach_s(self) -> int | None:
        """Seconds in which it may be sent; None for the default of the binary protocol, longer than a run.

        With some protocols only TimeToReachQueue counts at the sender.
        """
        if (reach_time := self.fates.reach_time) is not None:
            return int(self.options.get("reach_s", reach_time))
        limits = [self.options[name] for name in ("reach_s", "receive_s") if name in self.options]
        return min(limits, default=None)

    @property
    def acknowledgements_requested(self) -> int:
        """AcknowledgementsRequested."""
        return int(self.options.get("acks", 0))

    @property
    def is_given_up(self) -> bool:
        """Whether its sender has stopped sending it although it may not have arrived."""
        return bool(self.expired_at or self.refusal)

    @property
    def expired_in_doubt(self) -> bool:
        """Whether the message may be in its queue and dead-lettered, as its time was over."""
        return self.fates.expires_in_doubt and bool(self.expired_at)

    @property
    def may_be_dropped(self) -> bool:
        """Whether its destination may have refused it silently: it must report only transactional ones.

        With some protocols it is dropped silently only if its queue is full or its time is over.
        """
        if self.is_transactional:
            return False
        if self.options.get("form") == STRAY:
            return True
        if self.fates.drops_only_late:
            return self.queue == SMALL or "reach_s" in self.options
        transactional_queue = self.queue in (TRANSACTIONAL, SMALL_TRANSACTIONAL)
        return transactional_queue or self.queue == SMALL or self.reach_s is not None

    def has_expired(self, utc: int) -> bool:
        """Whether the time in which it may be sent is over by a clock."""
        return self.reach_s is not None and utc - self.sent_utc > self.reach_s

    def precedes(self, other: Tracked) -> bool:
        """Whether the message must arrive before another one of its stream, if both do."""
        if self.transaction == other.transaction:
            return self.sent_index < other.sent_index
        return self.committed_index < other.sent_index
