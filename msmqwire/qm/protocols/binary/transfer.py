"""Messages leaving an outgoing queue: OutgoingMessageTable and related state, [MS-MQQB] 3.1.1.3.1."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final
from uuid import UUID

from msmqwire.headers.acknowledgements import ORDER_QUEUE_IDENTIFIER, ORDER_QUEUE_NAME
from msmqwire.names import DirectName, FormatName, PrivateName
from msmqwire.qm.model.elements import OutgoingQueue, SequenceInfo
from msmqwire.qm.model.message import NO_SEQUENCE, Message, TxSequenceId
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.protocols.binary.states import SessionMessageState

if TYPE_CHECKING:
    from msmqwire.qm.protocols.binary.session import Session

Peer = tuple[str, object]
"""The destination of a transfer.

("host", name or address); ("qm", Identifier of a queue manager) along any route to it; ("direct", Identifier)
over a session with that queue manager itself only; ("bound", origin and Identifier) over a session with that
origin only; ("queue", number of the outgoing queue) while its queue manager is unknown.
"""

_UNASSIGNED: Final = 0
PRIORITIES: Final = 8


def kind_of(message: Message) -> str:
    """Return the message diagram that applies: a key of `states.MESSAGES`."""
    if message.transactional or message.transaction_identifier is not None:
        return "Transactional"
    return "Recoverable" if message.recoverable else "Express"


class OutgoingMessagePosition:
    """A message to be transferred: [MS-MQQB] 3.1.1.3.1.2.

    Attributes:
        position: its position in the outgoing queue.
        transfer: the transfer of that queue.
        priority: the priority of the message, 0 to 7.
        state: the state of its transfer.
        sequence_number: SequenceNumber in the session that last sent it.
        recoverable_sequence_number: RecoverableSequenceNumber in that session; 0 for an express message.
        recoverable: whether it was sent as a recoverable message.
        tx_sequence_number: TxSequenceNumber; 0 if not transactional, or from another queue manager.
        tx_sequence_id: the sequence of that number.
        tx_previous_number: the number of its last predecessor that was not given up; 0 for the first of a
            sequence.
        transmitted: whether it was sent at least once.
        received_session_ack, received_order_ack: acknowledgements received.
        session: the session whose acknowledgement it awaits (AwaitingAck).
    """

    __slots__ = (
        "position",
        "priority",
        "received_order_ack",
        "received_session_ack",
        "recoverable",
        "recoverable_sequence_number",
        "sequence_number",
        "session",
        "state",
        "transfer",
        "transmitted",
        "tx_previous_number",
        "tx_sequence_id",
        "tx_sequence_number",
    )

    def __init__(self, position: MessagePosition, transfer: SessionTransfer, priority: int) -> None:
        self.position, self.transfer, self.priority = position, transfer, priority
        # MQQB-3.1.1.1.1.3-01, MQQB-3.1.1.1.1.5-01, MQQB-3.1.1.1.1.7-01
        self.state = SessionMessageState.WAITING_TO_SEND
        self.sequence_number = self.recoverable_sequence_number = _UNASSIGNED  # MQQB-3.1.1.3.1.2-02 and -03
        self.tx_sequence_number = self.tx_previous_number = _UNASSIGNED
        self.tx_sequence_id = NO_SEQUENCE
        # MQQB-3.1.1.3.1.2-05
        self.transmitted = self.received_session_ack = self.received_order_ack = self.recoverable = False
        self.session: Session | None = None

    @property
    def is_done(self) -> bool:
        """Whether the message needs no transfer any more."""
        return self.state is SessionMessageState.DONE


class SessionTransfer:
    """The transfer out of one outgoing queue, over one session after another.

    Attributes:
        queue: the outgoing queue.
        peer: its destination.
        host: the name or address to connect to; empty if routing provides it.
        direct: whether its queue has a direct format name: ServerGuid is null then.
        to_order_queue: whether it carries order and final acknowledgements.
        session: the session that serves it.
        table: OutgoingMessageTable, by position, in order of insertion.
        waiting: messages still to be sent, in order, by priority.
        numbered: the count of messages in the table with a number in a transactional sequence.
        ordered: numbered messages without order acknowledgement, in order.
        awaiting_final_ack: AwaitingFinalACKTable, by MessageID.
        sequence_id: OutgoingTxSequenceID.
        next_number: OutgoingTxSequenceNumber.
        last_ack, last_ack_count, time_of_last_ack, resend_index, resend_time, unacked_sequence: as in
            OutgoingTransferSequence, [MS-MQQB] 3.1.1.3.1.1; times are seconds since 1970-01-01 UTC.
        ended_unacknowledged: consecutive connections that the peer has ended after messages of this transfer
            were sent and none acknowledged.
    """

    def __init__(self, queue: OutgoingQueue, peer: Peer, host: str, *, direct: bool) -> None:
        self.queue, self.peer, self.host, self.direct = queue, peer, host, direct
        self.to_order_queue = _is_order_queue(queue.destination)
        self.session: Session | None = None
        self.table: dict[MessagePosition, OutgoingMessagePosition] = {}  # MQQB-3.1.1.3.1-29
        self.waiting: tuple[deque[OutgoingMessagePosition], ...] = tuple(deque() for _ in range(PRIORITIES))
        self.numbered = 0
        self.ordered: deque[OutgoingMessagePosition] = deque()
        self.awaiting_final_ack: dict[int, OutgoingMessagePosition] = {}
        self.sequence_id = TxSequenceId()
        self.next_number = 1
        self.last_ack = SequenceInfo()
        self.last_ack_count = 0
        self.time_of_last_ack = 0
        self.resend_index = 0
        self.resend_time = 0
        self.unacked_sequence: deque[SequenceInfo] = deque()
        self.ended_unacknowledged = 0

    @property
    def qm_guid(self) -> UUID | None:
        """The queue manager at its end, if known."""
        return self.peer[1] if isinstance(self.peer[1], UUID) else None

    @property
    def is_idle(self) -> bool:
        """Whether the transfer has no messages, and its queue is not in use."""
        return not (self.table or self.awaiting_final_ack or self.queue.active)

    def begin_session(self, utc: int) -> None:
        """Reset OutgoingTransferSequence except UnackedSequence: MQQB-3.1.3.2-05."""
        # MQQB-3.1.1.3.1-18
        self.last_ack, self.last_ack_count, self.time_of_last_ack = SequenceInfo(), 0, utc
        self.resend_index = self.resend_time = 0

    def add(self, position: MessagePosition, priority: int) -> OutgoingMessagePosition:
        """Add a message to transfer."""
        outgoing = OutgoingMessagePosition(position, self, priority)
        self.table[position] = outgoing
        self.waiting[priority].append(outgoing)
        if self.session is not None:
            self.session.send_order.add(outgoing)
        return outgoing

    def remove(self, outgoing: OutgoingMessagePosition) -> None:
        """Remove a message that no longer has to be sent."""
        outgoing.state = SessionMessageState.DONE
        if self.table.pop(outgoing.position, None) is not None and outgoing.tx_sequence_number:
            self.numbered -= 1
        outgoing.session = None

    def next_waiting(self) -> OutgoingMessagePosition | None:
        """Return the most urgent message to send, without removing it."""
        for waiting in reversed(self.waiting):
            while waiting:
                if waiting[0].state is SessionMessageState.WAITING_TO_SEND:
                    return waiting[0]
                waiting.popleft()
        return None

    def send_numbered_first(self) -> None:
        """After a restart, send numbered messages before all others, as `send_again` does.

        An earlier message may have no number yet because its transaction was committed later: it would be
        sent with a number out of order.
        """
        for waiting in self.waiting:
            in_order = sorted(waiting, key=lambda outgoing: not outgoing.tx_sequence_number)
            waiting.clear()
            waiting.extend(in_order)

    def send_again(self, outgoing: list[OutgoingMessagePosition]) -> None:
        """Queue messages, given in order, to be resent before all other messages."""
        for message in reversed(outgoing):
            message.state, message.session = SessionMessageState.WAITING_TO_SEND, None
            message.received_session_ack = False
            self.waiting[message.priority].appendleft(message)
        if self.session is not None:
            self.session.send_order.enter(self)


def _is_order_queue(name: FormatName | None) -> bool:
    match name:
        case PrivateName():
            return name.number == ORDER_QUEUE_IDENTIFIER
        case DirectName():
            return name.private and (name.queue or "").lower() == ORDER_QUEUE_NAME
    return False
