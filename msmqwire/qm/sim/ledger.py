"""The actions of applications and the fate of each message, in memory: the record for checking invariants.

Events inside a queue manager are recorded with a way to undo them, an undo log. The record is final once the
step in which it happened is durable, and rolled back when a crash loses the step.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from enum import StrEnum
from functools import partial
from typing import Final, Protocol
from uuid import UUID

from msmqwire.constants import MessageClass
from msmqwire.headers.acknowledgements import ACK_LABEL, FINAL_ACK_BODY
from msmqwire.qm.core import Core
from msmqwire.qm.model.elements import OutgoingQueue, Queue
from msmqwire.qm.model.enumerations import AcknowledgementsRequested, QueueManagerState
from msmqwire.qm.model.message import Message, ObjectId
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.sim.environment import Environment
from msmqwire.qm.sim.protection import check_arrived
from msmqwire.qm.sim.tracked import SendState, Tracked
from msmqwire.qm.sim.violation import Invariant
from msmqwire.service.store.memory import MemoryStore
from msmqwire.service.virtual.violation import Violation

ABOUT_RECEIVING: Final = 0x4000
"""The bit of classes of acknowledgements that concern the reception of a message, not its arrival."""
_NEGATIVE: Final = 0x8000
_TAG: Final = re.compile(rb"#(\d+);")
_LABEL: Final = re.compile(r"m(\d+)")
_RECEIVED: Final = MessageClass.MQMSG_CLASS_ACK_RECEIVE
_PURGED: Final = MessageClass.MQMSG_CLASS_NACK_Q_PURGED
_UNPROTECTED: Final = (
    MessageClass.MQMSG_CLASS_NACK_BAD_SIGNATURE,
    MessageClass.MQMSG_CLASS_NACK_BAD_ENCRYPTION,
)

Undo = Callable[[], None]


class NodeView(Protocol):
    """A node as the record sees it.

    Attributes:
        core: None while the node is down.
        epoch: the number of its starts.
        decided_utc: the latest time that the core was given in the turns of the last commit.
        effect_utc: the time that it was given in the step whose effect is carried out.
    """

    name: str
    identifier: UUID
    core: Core | None
    epoch: int
    store: MemoryStore
    decided_utc: int
    effect_utc: int


class QueueKind(StrEnum):
    """The role of a queue for a message."""

    OUTGOING = "outgoing"
    USER = "user"
    JOURNAL = "journal"
    DEADLETTER = "dead-letter"
    OTHER = "other"


def queue_kind(queue: Queue) -> QueueKind:
    """Return the role of a queue for a message."""
    if isinstance(queue, OutgoingQueue):
        return QueueKind.OUTGOING
    path = queue.pathname.lower()
    if path.endswith("system$;journal"):
        return QueueKind.JOURNAL
    if path.endswith((";deadletter", ";deadxact")):
        return QueueKind.DEADLETTER
    owner = queue.owner_queue
    is_journal = owner is not None and owner.journal is queue
    is_user = "\\private$\\" in path and not is_journal and "_queue$" not in path
    return QueueKind.USER if is_user else QueueKind.OTHER


def message_number(message: Message) -> int | None:
    """Return the number of a message of an application; None for a message of the system."""
    if message.message_class != MessageClass.MQMSG_CLASS_NORMAL:
        return None
    tag = _LABEL.fullmatch(message.label) if message.encrypted else _TAG.match(message.body)
    return int(tag[1]) if tag else None


class MessageLedger:
    """All messages of a run.

    Attributes:
        messages: the messages, by number.
        by_identifier: the messages, by MessageID.
        by_position: the messages, by name of the node and number of the position that they have had there.
        restored: the numbers of the positions that the present life of a node began with, by its name.
    """

    def __init__(self, environment: Environment) -> None:
        self._environment, self._plan = environment, environment.plan
        self.messages: dict[int, Tracked] = {}
        self.by_identifier: dict[bytes, Tracked] = {}
        self.by_position: dict[tuple[str, int], Tracked] = {}
        self.restored: dict[str, set[int]] = {}
        self._pending_undo: dict[str, list[Undo]] = {name: [] for name in self._plan.nodes}
        self._being_sent: Tracked | None = None  # it may be received before `send` returns
        self._arrived: dict[tuple[str, str], list[Tracked]] = {}  # transactional ones, by stream
        self._numbers: dict[tuple[str, int, int, int], Tracked] = {}
        self._sequences: dict[tuple[str, int, int], str] = {}
        self._acknowledgements_sent: set[ObjectId] = set()
        self._acknowledgements_arrived: set[tuple[str, ObjectId]] = set()
        self._index = 0

    # -- the undo log -----------------------------------------------------------------------------------

    def on_crash(self, node: str, undo: Undo) -> None:
        """Register a function that is called if a crash of the node loses the present step."""
        self._pending_undo[node].append(undo)

    def take_undo(self, node: str) -> list[Undo]:
        """Return the undo log of the present step of a node, and begin the next step."""
        undo, self._pending_undo[node] = self._pending_undo[node], []
        return undo

    def roll_back(self, undo: Iterable[Undo]) -> None:
        """Undo the events that a crash has lost, in reverse order."""
        for action in reversed(list(undo)):
            action()

    # -- actions of applications ------------------------------------------------------------------------

    def next_index(self) -> int:
        """Return the next number in the order of the actions of applications."""
        self._index += 1
        return self._index

    def add(self, tracked: Tracked) -> None:
        """Record a message that is about to be sent."""
        tracked.sent_index = tracked.committed_index = self.next_index()
        self.messages[tracked.number] = self._being_sent = tracked

    def sent(self, tracked: Tracked, identifier: ObjectId) -> None:
        """Record that the queue manager has taken a message; a crash before it is durable loses it."""
        tracked.identifier, self._being_sent = identifier, None
        self.by_identifier[bytes(identifier)] = tracked
        if not tracked.is_express:
            self.on_crash(tracked.sender, partial(setattr, tracked, "state", SendState.LOST))

    def committed(self, node: str, messages: Iterable[Tracked], after_crash: SendState) -> None:
        """Record the commit of the transaction that sends messages.

        Args:
            node: the sender.
            messages: the messages that the transaction sends.
            after_crash: their state if a crash loses the commit.
        """
        for tracked in messages:
            tracked.state = SendState.COMMITTED
            tracked.committed_index = self.next_index()
            self.on_crash(node, partial(setattr, tracked, "state", after_crash))

    # -- queues of queue managers ---------------------------------------------------------------------

    def available(self, node: NodeView, queue: Queue, position: MessagePosition) -> None:
        """Record a message that can be taken from a queue: it has arrived or returned."""
        message = position.message
        number = message_number(message)
        if number is None:
            self._system_message(node, queue, position)
            return
        tracked = self.messages[number]
        if tracked.state is not SendState.COMMITTED:
            raise Violation(
                Invariant.SENT_ONLY, f"{tracked}, which is {tracked.state}, is in a queue of {node.name}"
            )
        self.by_position[node.name, position.number] = tracked
        if queue_kind(queue) is QueueKind.USER:
            self._arrives(node, tracked, position)

    def handed_out(self, node: NodeView, queue: Queue, position: MessagePosition) -> None:
        """Record a message that a reader holds; a waiting reader may hold it before it was available."""
        number = message_number(position.message)
        if number is not None and queue_kind(queue) is QueueKind.USER:
            tracked = self.by_position[node.name, position.number] = self.messages[number]
            self._arrives(node, tracked, position)

    def deleted(self, node: NodeView, queue: Queue, position: MessagePosition, reason: int) -> None:
        """Record a message that leaves a queue; the reason is a class of message."""
        number = message_number(position.message)
        if number is None or queue_kind(queue) is not QueueKind.USER:
            return
        tracked = self.messages[number]
        if reason == _PURGED and not tracked.arrivals:
            tracked.purged_before_commit = True
            self.on_crash(node.name, partial(setattr, tracked, "purged_before_commit", False))
        self._arrives(node, tracked, position)  # a message taken by a waiting reader was never available
        if reason == _RECEIVED:
            if tracked.received >= len(tracked.arrivals) and not tracked.is_express:
                raise Violation(Invariant.RECEIVED_ONCE, f"{tracked} is received again")
            self._environment.counts["received"] += 1
            self._environment.log(node.name, f"{tracked} is received")
            tracked.received += 1
            self.on_crash(node.name, lambda: setattr(tracked, "received", tracked.received - 1))
            if tracked.deadlettered and tracked.is_transactional and not tracked.expired_in_doubt:
                raise Violation(
                    Invariant.NOT_BOTH, f"{tracked} is received, and in the dead-letter queue of its sender"
                )
        else:
            self._environment.log(node.name, f"{tracked} is removed, class {reason:#x}")
            self.on_crash(node.name, partial(setattr, tracked, "failed", tracked.failed))
            tracked.failed = reason

    def _arrives(self, node: NodeView, tracked: Tracked, position: MessagePosition) -> None:
        check_arrived(tracked, position.message)
        arrival = self._arrival(node, tracked, position.number)
        if arrival in tracked.arrivals or (-node.epoch, position.number) in tracked.arrivals:
            return
        if node.name != tracked.destination:
            raise Violation(Invariant.SENT_ONLY, f"{tracked} has come to {node.name}")
        if tracked.is_transactional:
            self._check_order(tracked, position.number)
        elif tracked.arrivals and not self._may_repeat(tracked, arrival[0]):
            raise Violation(Invariant.NOT_TWICE, f"{tracked} has come again")
        self._environment.counts["arrivals"] += 1
        self._environment.counts["signed"] += bool(tracked.signature)
        self._environment.counts["encrypted"] += position.message.decrypted
        self._environment.log(node.name, f"{tracked} is in the queue")
        tracked.arrivals.append(arrival)
        if not tracked.is_express:
            self.on_crash(node.name, partial(tracked.arrivals.remove, arrival))

    def _arrival(self, node: NodeView, tracked: Tracked, number: int) -> tuple[int, int]:
        """Return the arrival of a message: for an express one with the epoch of the node, else with 0.

        The epoch is negative for a message that was restored: a prepared transaction stores express messages
        too, but they are not in MessageIDHistoryTable after a restart.
        """
        if not tracked.is_express:
            return 0, number
        starting = node.core is None or node.core.queue_manager.state is not QueueManagerState.READY
        restored = starting or number in self.restored.get(node.name, ())
        return (-node.epoch if restored else node.epoch), number

    def _may_repeat(self, tracked: Tracked, epoch: int) -> bool:
        """Whether a message that is not transactional may arrive again.

        MessageIDHistoryTable is bounded, [MS-MQQB] 3.1.1.3; its entries for express messages do not survive.
        """
        if self._plan.short_history:
            return True
        return tracked.is_express and all(earlier != epoch for earlier, _ in tracked.arrivals)

    def _check_order(self, tracked: Tracked, number: int) -> None:
        # By the numbers of positions: a waiting reader may take a message before its arrival is recorded.
        if tracked.arrivals:
            # A stream that begins anew repeats accepted messages: only the history shows it.
            if tracked.fates.begins_anew and self._plan.short_history:
                return
            raise Violation(Invariant.ONCE, f"{tracked} has come again")
        if tracked.deadlettered and not tracked.expired_in_doubt:
            raise Violation(
                Invariant.NOT_BOTH, f"{tracked} has come, and is in the dead-letter queue of its sender"
            )
        stream = self._arrived.setdefault((tracked.sender, tracked.format_name), [])
        for other in stream:
            if tracked.precedes(other) and number > other.arrivals[0][1]:
                raise Violation(Invariant.IN_ORDER, f"{tracked} has come after {other}")
        stream.append(tracked)
        self.on_crash(tracked.destination, partial(stream.remove, tracked))

    # -- acknowledgements -------------------------------------------------------------------------------

    def _system_message(self, view: NodeView, queue: Queue, position: MessagePosition) -> None:
        """Record an acknowledgement that a node has made, or that has arrived."""
        message, node = position.message, view.name
        is_own = message.source_machine_identifier == view.identifier
        if message.label == ACK_LABEL:
            if is_own and message.soap_envelope:
                self._final_receipt(node, message)
            elif is_own and message.message_class & _NEGATIVE:
                self._refused(node, message)
            return
        # The next message gets the identifier of one lost in a crash, and is meant while it is sent.
        tracked, being_sent = self.by_identifier.get(message.correlation_identifier), self._being_sent
        if being_sent is not None and message.label == being_sent.label:
            tracked = being_sent
        if tracked is None:
            return
        if is_own and message.identifier not in self._acknowledgements_sent:
            self._acknowledgements_sent.add(message.identifier)
            self.on_crash(node, partial(self._acknowledgements_sent.discard, message.identifier))
            self._acknowledgement_sent(node, tracked, message.message_class)
        if queue_kind(queue) is QueueKind.USER and message.recoverable:
            self._acknowledgement_arrives(node, tracked, position, message)

    def _refused(self, node: str, message: Message) -> None:
        """Record a negative FinalAck."""
        body = FINAL_ACK_BODY.parse(message.body)
        tracked = self.by_identifier.get(bytes(ObjectId(body.SourceGUID, body.MessageID)))
        if tracked is not None and not message.message_class & ABOUT_RECEIVING:
            self.on_crash(node, partial(setattr, tracked, "refusal", tracked.refusal))
            tracked.refusal = message.message_class
            if tracked.refusal in _UNPROTECTED:
                raise Violation(Invariant.PROTECTED, f"{tracked} is refused with {tracked.refusal:#x}")
            self._environment.log(node, f"{tracked} is refused, class {message.message_class:#x}")

    def _final_receipt(self, node: str, message: Message) -> None:
        """Record a final stream receipt that a node has made."""
        tracked = self.by_identifier.get(message.correlation_identifier)
        if tracked is None or tracked.final_receipt == message.identifier:
            return  # a stream receipt, or one that was stored
        if tracked.final_receipt is not None and not self._plan.short_history:
            raise Violation(Invariant.ACKNOWLEDGED, f"{tracked} has a second final stream receipt")
        self.on_crash(node, partial(setattr, tracked, "final_receipt", tracked.final_receipt))
        tracked.final_receipt = message.identifier

    def _acknowledgement_sent(self, node: str, tracked: Tracked, message_class: int) -> None:
        requested = {
            (False, False): AcknowledgementsRequested.ACK_POS_ARRIVAL,
            (True, False): AcknowledgementsRequested.ACK_NEG_ARRIVAL,
            (False, True): AcknowledgementsRequested.ACK_POS_RECEIVE,
            (True, True): AcknowledgementsRequested.ACK_NEG_RECEIVE,
        }[bool(message_class & _NEGATIVE), bool(message_class & ABOUT_RECEIVING)]
        if not tracked.acknowledgements_requested & requested:
            raise Violation(Invariant.ACKNOWLEDGED, f"{tracked} did not ask for class {message_class:#x}")
        earlier = tracked.acknowledgements
        if tracked.is_transactional:
            repeated = [sent for sent, _ in earlier if (sent ^ message_class) & ABOUT_RECEIVING == 0]
        else:
            # Figures 5 and 7 of [MS-MQQB] 3.1.1.1: a message expires also while it may have arrived, so that
            # every queue manager on the way may report its expiry, and the last one its arrival.
            repeated = [sent for sent, origin in earlier if (sent, origin) == (message_class, node)]
        if repeated and not (tracked.is_express or self._plan.short_history):
            raise Violation(
                Invariant.ACKNOWLEDGED, f"{tracked} has class {message_class:#x} after {repeated[-1]:#x}"
            )
        self._environment.counts["acknowledgements"] += 1
        earlier.append((message_class, node))
        if not tracked.is_express:
            self.on_crash(node, partial(earlier.remove, (message_class, node)))

    def _acknowledgement_arrives(
        self, node: str, tracked: Tracked, position: MessagePosition, message: Message
    ) -> None:
        arrived = self._acknowledgements_arrived
        key = (f"{node} {position.number}", message.identifier)
        if key in arrived:
            return
        repeated = any(identifier == message.identifier for _, identifier in arrived)
        if repeated and not self._plan.short_history:
            raise Violation(
                Invariant.NOT_TWICE, f"class {message.message_class:#x} about {tracked} has come again"
            )
        arrived.add(key)
        self.on_crash(node, partial(arrived.discard, key))

    # -- messages on connections -----------------------------------------------------------------------

    def transmitted(self, node: str, message: Message) -> Tracked | None:
        """Record a message that a node sends over a connection; return it if an application has sent it."""
        number = message_number(message)
        tracked = self.messages.get(number) if number is not None else None
        if tracked is None:
            return None
        self.sent_by(node, tracked)
        if message.transactional and node == tracked.sender:
            identifier = message.transactional_message_sequence_identifier
            assert identifier is not None, "every transactional message has one"
            self.numbered(tracked, (*identifier, message.transaction_sequence_number))
        return tracked

    def sent_by(self, node: str, tracked: Tracked) -> None:
        """Record that a node sends a message to another one."""
        if tracked.state is not SendState.COMMITTED:
            raise Violation(Invariant.SENT_ONLY, f"{tracked}, which is {tracked.state}, is sent by {node}")
        if not tracked.is_express and node not in tracked.stored_by:
            raise Violation(Invariant.DURABLE, f"{tracked} is sent by {node} before it is in its store")
        tracked.transmitted_by.add(node)

    def numbered(self, tracked: Tracked, sequence: tuple[int, int, int]) -> None:
        """Check the TimeStamp and Ordinal of the sequence, and the number, with which a message is sent."""
        if tracked.sequence not in (None, sequence) and not self._begins_anew(tracked, sequence):
            raise Violation(Invariant.NUMBERED, f"{tracked} is sent as {sequence} after {tracked.sequence}")
        tracked.sequence = sequence
        if self._numbers.setdefault((tracked.sender, *sequence), tracked) is not tracked:
            raise Violation(
                Invariant.NUMBERED, f"{tracked} is sent as {sequence}, the number of another message"
            )
        self._sequences[tracked.sender, *sequence[:2]] = tracked.format_name

    def _begins_anew(self, tracked: Tracked, now: tuple[int, int, int]) -> bool:
        """Whether a message may be in a new stream: the first one of the former is not sent any more.

        A receiver that has not accepted the first message of a stream would not accept the rest.
        """
        before = tracked.sequence
        if before is None or not tracked.fates.begins_anew:
            return False
        first = self._numbers[tracked.sender, before[0], before[1], 1]
        # A final receipt with its number in a former stream does not reveal its place in this one.
        has_left = first.is_given_up or first.final_receipt is not None
        return now[:2] > before[:2] and has_left

    def of_sequence(self, sender: str, sequence: tuple[int, int], last: int) -> list[Tracked]:
        """Return the messages of a sequence of a sender up to a number, as far as they have been sent."""
        numbers = (self._numbers.get((sender, *sequence, number)) for number in range(1, last + 1))
        return [tracked for tracked in numbers if tracked is not None]

    def format_name(self, sender: str, sequence: tuple[int, int]) -> str | None:
        """Return the destination format name of the messages of a sequence of a sender."""
        return self._sequences.get((sender, *sequence))
