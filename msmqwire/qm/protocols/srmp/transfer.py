"""Messages that leave an outgoing queue by SRMP: SRMPMessage and Stream, [MC-MQSRM] 3.1.1.1.4, 3.1.1.1.6."""

from __future__ import annotations

import hashlib
import heapq
from collections import deque
from typing import Final

from msmqwire.qm.model.elements import OutgoingQueue
from msmqwire.qm.model.enumerations import OutgoingQueueState
from msmqwire.qm.model.message import NO_SEQUENCE, Message, TxSequenceId
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.protocols.srmp.states import MESSAGES, SrmpMessageEvent, SrmpMessageState

_HELD: Final = (OutgoingQueueState.ON_HOLD, OutgoingQueueState.LOCKED)


class OutgoingMessage:
    """A message to be sent: SRMPMessage at its sender.

    Attributes:
        position: its position in the outgoing queue.
        transfer: the transfer of that queue. stream: whether it belongs to a stream of this queue manager.
        state: the state of its transfer; AwaitingStreamReceipt and AwaitingFinalStreamReceipt follow from it.
        tx_sequence_id: Id.Ordinal of its stream.
        tx_sequence_number: its number there; 0 before it is sent for the first time.
        previous_number: the number of the last message before it that was not given up; 0 for the first of a
            stream.
        renumbered: whether it had another number before, in a stream whose first message was given up.
        request: the number of the last request it was sent in.
        sent: whether one of its requests was sent over a connection.
        overdue: whether its time ended while the response was awaited.
        digest: the digest of the request that brought it; empty for a message that begins here.
    """

    __slots__ = (
        "digest",
        "overdue",
        "position",
        "previous_number",
        "renumbered",
        "request",
        "sent",
        "state",
        "stream",
        "transfer",
        "tx_sequence_id",
        "tx_sequence_number",
        "urgency",
    )

    def __init__(
        self, position: MessagePosition, transfer: SrmpTransfer, message: Message, order: int
    ) -> None:
        self.position, self.transfer = position, transfer
        # SRMP-3.1.7.2.3-01, SRMP-3.1.1.1.6-01
        self.stream = message.transaction_identifier is not None or _is_own_stream(message)
        self.state = SrmpMessageState.PREPARE_TO_SEND  # SRMP-3.1.1.1.4-01 and -02
        self.tx_sequence_id, self.tx_sequence_number, self.previous_number = NO_SEQUENCE, 0, 0
        self.request = 0
        self.overdue = self.renumbered = self.sent = False
        self.urgency = -message.priority, order
        self.digest = digest_of(message)

    @property
    def is_done(self) -> bool:
        """Whether the message needs no transfer any more."""
        return self.state is SrmpMessageState.DONE

    def step(self, event: SrmpMessageEvent) -> None:
        """Go to the next state. Raises KeyError for an event that the state does not have."""
        self.state = MESSAGES["Stream" if self.stream else "Regular or durable"][self.state, event]

    @property
    def turn(self) -> tuple[int, int, int]:
        """The order of sending, least first: messages of a stream that have a number come first."""
        if self.tx_sequence_number:
            time_stamp, ordinal = self.tx_sequence_id
            return 0, time_stamp << 32 | ordinal, self.tx_sequence_number
        return 1, *self.urgency


def digest_of(message: Message) -> bytes:
    """Return the key of a request that is to be forwarded; empty for a message that begins here."""
    request = message.soap_compound_message
    return hashlib.sha256(request).digest() if request else b""


def _is_own_stream(message: Message) -> bool:
    """Return whether a restored message belongs to a stream that begins here; a forwarded message has an
    envelope.
    """
    return message.transactional and not message.soap_envelope


class SrmpTransfer:
    """The transfer out of one outgoing queue, one request after another.

    Attributes:
        queue: the outgoing queue.
        url: the URL of its destination; empty for a multicast address.
        messages: all messages of the queue, by position.
        under_way: the message whose response is awaited.
        failed: the message whose last transmission failed.
        blocked: whether nothing is sent before the Retransmission Timer fires: the queue is Inactive.
        stream_id: Stream.Id.Ordinal; `NO_SEQUENCE` while there is no stream.
        next_number: Stream.SequenceNumber + 1.
        unacknowledged: the messages of the stream with AwaitingStreamReceipt, in order.
        awaiting_final: the messages with AwaitingFinalStreamReceipt alone, by stream and number.
        former: streams whose messages continue in the present one because their first message was given up.
        last_acknowledged: EodLastAck.SeqNo.
        acknowledgements, acknowledged_at: EodLastAckCount and EodLastAckTime, in seconds since 1970.
        resend_index: ResendIntervalIndex, from 0.
        resend_at: EodResendTime.
        failures: the count of consecutive failed attempts.
        answer: the status and text that made the last attempt fail, if any.
        digests: the digests of the requests whose messages are to be forwarded.
    """

    def __init__(self, queue: OutgoingQueue, url: str) -> None:
        self.queue, self.url = queue, url
        self.messages: dict[MessagePosition, OutgoingMessage] = {}
        self._waiting: list[tuple[tuple[int, int, int], int, OutgoingMessage]] = []
        self._order = self._waits = 0
        self.under_way: OutgoingMessage | None = None
        self.failed: OutgoingMessage | None = None
        self.blocked = False
        self.stream_id: TxSequenceId = NO_SEQUENCE
        self.next_number = 1
        self.unacknowledged: deque[OutgoingMessage] = deque()
        self.awaiting_final: dict[tuple[TxSequenceId, int], OutgoingMessage] = {}
        self.former: set[TxSequenceId] = set()
        self.last_acknowledged = 0
        self.acknowledgements = self.acknowledged_at = 0
        self.resend_index = self.resend_at = 0
        self.failures = 0
        self.answer = ""
        self.digests: set[bytes] = set()

    @property
    def is_idle(self) -> bool:
        """Whether the transfer has no messages, and its queue is not in use."""
        return not (self.messages or self.queue.active)

    @property
    def is_held(self) -> bool:
        """Whether its queue may send nothing."""
        return self.queue.state in _HELD

    def add(self, position: MessagePosition, message: Message) -> OutgoingMessage:
        """Add a message; `wait` lets it be sent."""
        self._order += 1
        self.messages[position] = outgoing = OutgoingMessage(position, self, message, self._order)
        if outgoing.digest:
            self.digests.add(outgoing.digest)
        return outgoing

    def wait(self, outgoing: OutgoingMessage) -> None:
        """Let a message wait for its turn to be sent."""
        self._waits += 1
        heapq.heappush(self._waiting, (outgoing.turn, self._waits, outgoing))

    def next_waiting(self) -> OutgoingMessage | None:
        """Return the next message, without removing it."""
        waiting = self._waiting
        while waiting:
            turn, _, outgoing = waiting[0]
            if outgoing.state is SrmpMessageState.PREPARE_TO_SEND and turn == outgoing.turn:
                return outgoing
            heapq.heappop(waiting)
        return None

    def remove(self, outgoing: OutgoingMessage) -> None:
        """Remove a message that no longer has to be sent. Its response is still awaited."""
        self.messages.pop(outgoing.position, None)
        self.digests.discard(outgoing.digest)
