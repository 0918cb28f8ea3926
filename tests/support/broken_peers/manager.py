"""The queue manager of the sessions: queues, sequences and acknowledgements, [MS-MQQB] 3.1.5.8, 3.1.7."""

from __future__ import annotations

import struct
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from tests.support.broken_peers.message import Message, correlation
from tests.support.broken_peers.mistakes import MISTAKES
from tests.support.broken_peers.outgoing import Outgoing, Routes
from tests.support.broken_peers.session import Session, Timer, Transport
from tests.support.broken_peers.wire import (
    ACCESS_DENIED,
    ACK_REACH_QUEUE,
    ACK_RECEIVE,
    BAD_DST_Q,
    BAD_ENCRYPTION,
    BAD_SIGNATURE,
    EXCEED_QUOTA,
    HOP_COUNT_EXCEEDED,
    INFINITE,
    INSECURE,
    JN,
    JP,
    NA,
    NOT_TRANSACTIONAL_MSG,
    NOT_TRANSACTIONAL_Q,
    NR,
    NULL_GUID,
    ORDER_ACK,
    PA,
    PR,
    REACH_QUEUE_TIMEOUT,
    RECEIVE_TIMEOUT,
    Name,
    user_message,
)

HOPS_MAX = 0x1D
HISTORY_MAX = 4_096
SEQUENCES_MAX = 1_024
SESSIONS_MAX = 4_096
TIMED_MAX = 2 << 20
KEPT_MAX = 4_096
GUID = bytes.fromhex("b40cea5e0000404f80000000000000b5")
ORDER_QUEUE, ORDER_LABEL = 4, "QM Ordering Ack"


class Loop(Protocol):
    """The functions of an event loop that the peer needs."""

    def time(self) -> float: ...
    def call_later(self, delay: float, callback: Callable[..., Any], *args: Any) -> Timer: ...


@dataclass
class Queue:
    """A queue; only the beginnings of its last bodies are kept.

    Attributes:
        quota: bytes that it takes.
        size: bytes in it.
    """

    number: int
    transactional: bool = False
    quota: int = 1 << 62
    size: int = 0
    bodies: deque[bytes] = field(default_factory=lambda: deque(maxlen=64))


class Manager:
    """One peer.

    Args:
        loop: tells the time and calls back.
        mistake: one of `MISTAKES`, or none.
        queues, transactional_queues: path names such as ``private$\\orders``.
        reader: whether an application reads each message as soon as it is in its queue.
        insecure_nacks: SendInsecureNacks.
        quota: bytes that the queues in `queues` take; unlimited by default.
    """

    def __init__(
        self,
        loop: Loop,
        mistake: str | None = None,
        *,
        queues: tuple[str, ...] = ("private$\\orders",),
        transactional_queues: tuple[str, ...] = ("private$\\tx",),
        reader: bool = False,
        insecure_nacks: bool = False,
        quota: int = 1 << 62,
    ) -> None:
        assert mistake is None or mistake in MISTAKES, mistake
        self.loop, self.mistake, self.guid = loop, mistake, GUID
        self.reader, self.insecure_nacks = reader, insecure_nacks
        self.queues: dict[str, Queue] = {}
        for path in queues:
            self.queues[path.lower()] = Queue(len(self.queues) + 0x10, quota=quota)
        for path in transactional_queues:
            self.queues[path.lower()] = Queue(len(self.queues) + 0x10, transactional=True)
        self.sessions: list[Session] = []
        self.routes = Routes(self)
        self.leaked: list[bytearray] = []
        self.last_counts: tuple[int, int] | None = None
        self._blocker: Session | None = None
        self._blocked: list[tuple[Session, bytes]] = []
        self._history: OrderedDict[tuple[bytes, int], None] = OrderedDict()
        self._sequences: OrderedDict[tuple[bytes, str], tuple[int, int]] = OrderedDict()
        self._last: Session | None = None
        self._timed = 0
        self._message_id = 0

    def makes(self, mistake: str) -> bool:
        """Return whether the peer makes a mistake."""
        return self.mistake == mistake

    # -- sessions -----------------------------------------------------------------------------------------

    def receive(self, session: Session, data: bytes) -> None:
        """Pass the received bytes of a connection to its session, unless another one keeps the peer busy."""
        if self._blocker not in (None, session):
            self._blocked.append((session, data))
            return
        session.receive(data)

    def blocked_by(self, session: Session | None, by: Session) -> None:
        """A session waits in a blocking read, or `by` has left it."""
        if session is not None or self._blocker is by:
            self._blocker = session
        while self._blocker is None and self._blocked:
            other, data = self._blocked.pop(0)
            other.receive(data)

    def lost(self, session: Session, *, reset: bool) -> None:
        """The connection of a session has ended. Raises Crash."""
        if reset and self.makes("closes_server_on_reset"):
            raise ConnectionResetError("nobody catches it")
        session.close("connection lost")

    def opened(self, session: Session) -> None:
        """A session is open: send the messages that wait for it."""
        self.routes.opened(session)

    def closed(self, session: Session) -> None:
        """A session has ended."""
        self.last_counts = session.received, session.sent
        if not self.makes("sessions_stay"):
            self.sessions.remove(session)
        self.routes.closed(session)
        if self.makes("sequences_of_a_session"):
            self._sequences.clear()

    def accept(self, transport: Transport, address: str, *, initiator: bool = False) -> Session | None:
        """Begin the session of a connection; None if the table of sessions is full."""
        if len(self.sessions) >= (32 if self.makes("sessions_stay") else SESSIONS_MAX):
            transport.close()
            return None
        return Session(self, transport, address, initiator=initiator)

    # -- messages that come -------------------------------------------------------------------------------

    def is_known(self, message: Message, session: Session) -> bool:
        """Duplicate Detection: [MS-MQQB] 3.1.5.8.1."""
        if self.makes("history_of_a_session") and session is not self._last:
            self._history.clear()
        self._last = session
        return (message.source, message.message_id) in self._history

    def arrived(self, message: Message, session: Session) -> None:
        """Take a UserMessage packet that has been counted."""
        if _is_order_queue(message) and message.label == ORDER_LABEL and message.message_class:
            return  # an OrderAck or FinalAck, and nothing transactional has been sent
        if message.tx is not None and self._is_local(message):
            self._transactional(message, session)
        elif message.tx is not None:
            self._take(message, session)  # its sequence is none of ours: MQQB-3.1.1.6.2-01
        elif not self.is_known(message, session):
            self._remember(message)
            self._take(message, session)
        elif self.makes("takes_duplicates"):
            self._take(message, session)

    def _remember(self, message: Message) -> None:
        self._history[message.source, message.message_id] = None
        if len(self._history) > HISTORY_MAX:
            self._history.popitem(last=False)

    def _transactional(self, message: Message, session: Session) -> None:
        """Transactional Message Processing: [MS-MQQB] 3.1.5.8.6."""
        assert message.tx is not None
        key = message.source, repr(message.destination)
        sequence, number = self._sequences.get(key, (0, 0))
        follows = self._follows(message.tx.sequence, message.tx.number, message.tx.previous, sequence, number)
        if follows:
            self._take(message, session)
            self._sequences[key] = message.tx.sequence, message.tx.number
            self._sequences.move_to_end(key)
            if len(self._sequences) > SEQUENCES_MAX:
                self._sequences.popitem(last=False)
        if not follows and self.makes("order_ack_for_accepted_only"):
            return
        if key in self._sequences and not self.makes("no_order_ack"):
            session.order_ack_due(key)

    def _follows(self, sequence: int, number: int, previous: int, last: int, last_number: int) -> bool:
        """MQQB-3.1.5.8.6-03 to -05."""
        if sequence == last:
            if number <= last_number:
                return self.makes("takes_transactional_duplicates")
            return previous <= last_number or self.makes("takes_gaps")
        if sequence < last:
            return self.makes("takes_old_sequences")
        return previous == 0 or self.makes("takes_gaps")

    def _take(self, message: Message, session: Session) -> None:
        """Put a message into its queue, or refuse it."""
        queue = self._queue(message)
        refusal = self._judge(message, queue)
        if refusal is not None:
            self._refuse(message, refusal, session)
            return
        assert queue is not None
        queue.size += len(message.body)
        queue.bodies.append(message.body[:KEPT_MAX])
        if message.wants & PA or self.makes("acknowledges_unasked"):
            self._administration(message, ACK_REACH_QUEUE, session)
        if self.reader:
            self._removed(message, queue, ACK_RECEIVE, session)
        elif message.time_to_be_received != INFINITE and self._timed < TIMED_MAX:
            self._timed += len(message.body) + 1_000
            self.loop.call_later(message.time_to_be_received, self._expired, message, queue, session)

    def _judge(self, message: Message, queue: Queue | None) -> int | None:
        """Return the class of the negative acknowledgement; None if the message is to be taken."""
        makes = self.makes
        if not self._is_local(message):
            if message.hops + 1 > HOPS_MAX and not makes("ignores_hop_count"):
                return HOP_COUNT_EXCEEDED
            return BAD_DST_Q
        if queue is None:
            return ACCESS_DENIED if _is_order_queue(message) else BAD_DST_Q
        if message.tx is not None and not queue.transactional and not makes("takes_transactional"):
            return NOT_TRANSACTIONAL_MSG if makes("swaps_transactional_classes") else NOT_TRANSACTIONAL_Q
        if message.tx is None and queue.transactional and not makes("takes_non_transactional"):
            return NOT_TRANSACTIONAL_Q if makes("swaps_transactional_classes") else NOT_TRANSACTIONAL_MSG
        if message.address == self.guid and (message.signed or message.encrypted):
            return BAD_SIGNATURE if message.signed else BAD_ENCRYPTION
        age = int(time.time()) - message.sent_time
        limit = message.time_to_reach_queue
        if limit != INFINITE and age > limit and not makes("ignores_time_to_reach_queue"):
            return REACH_QUEUE_TIMEOUT
        if queue.size + len(message.body) > queue.quota and not makes("ignores_quota"):
            return EXCEED_QUOTA
        return None

    def _is_local(self, message: Message) -> bool:
        return message.address in (NULL_GUID, self.guid)

    def _queue(self, message: Message) -> Queue | None:
        name = message.destination
        if name.kind == "direct":
            return self.queues.get(name.text.partition("\\")[2].lower())
        if name.kind == "private":
            numbers = {queue.number: queue for queue in self.queues.values()}
            return numbers.get(name.number)
        return None

    def _refuse(self, message: Message, message_class: int, session: Session) -> None:
        if message.wants & NA and not self.makes("no_negative_acknowledgement"):
            self._administration(message, message_class, session)
        if message.tx is not None and not self.makes("no_final_ack"):
            if message_class == BAD_DST_Q and self.makes("wrong_class_for_missing_queue"):
                message_class = NOT_TRANSACTIONAL_Q
            self._final_ack(message, message_class, session)

    def _expired(self, message: Message, queue: Queue, session: Session) -> None:
        self._timed -= len(message.body) + 1_000
        if not self.makes("never_expires_in_queue"):
            self._removed(message, queue, RECEIVE_TIMEOUT, session)

    def _removed(self, message: Message, queue: Queue, reason: int, session: Session) -> None:
        """Message Position Deleted: [MS-MQQB] 3.1.7.2."""
        queue.size -= len(message.body)
        if message.wants & (PR if reason == ACK_RECEIVE else NR):
            self._administration(message, reason, session)
        if message.tx is not None and (message.flags & (JN | JP) or message.tx.final_ack):
            self._final_ack(message, reason, session)

    # -- acknowledgements that go -------------------------------------------------------------------------

    def _administration(self, message: Message, message_class: int, session: Session) -> None:
        """Send Administration Acknowledgment: [MS-MQQB] 3.1.7.15."""
        makes = self.makes
        if message.admin is None or (message_class in INSECURE and not self.insecure_nacks):
            return
        positive = message_class in (ACK_REACH_QUEUE, ACK_RECEIVE)
        if positive and makes("no_positive_acknowledgement"):
            return
        about = correlation(message)
        if makes("wrong_correlation"):
            about = struct.pack("<L", message.message_id) + message.source
        has_body = not positive and not message.encrypted and not makes("negative_without_body")
        self._send(
            message.admin,
            message_class,
            message.body if has_body else b"",
            session,
            recoverable=message.recoverable and not makes("acknowledges_by_express"),
            response=None if makes("no_response_queue") else message.destination,
            correlation=about,
        )

    def order_ack(self, key: tuple[bytes, str], session: Session) -> None:
        """Send Transactional Acknowledgment of class ORDER_ACK: [MS-MQQB] 3.1.7.17 and 2.2.4."""
        sequence, number = self._sequences.get(key, (0, 0))
        if not number:
            return
        if self.makes("order_ack_of_other_sequence"):
            sequence += 1
        previous = number if self.makes("order_ack_previous_is_number") else number - 1
        body = struct.pack("<QLL20s", sequence, number, previous, b"")
        label = "QM ordering ack" if self.makes("order_ack_label") else ORDER_LABEL
        recoverable, priority = False, 3 * self.makes("order_ack_with_priority")
        to = self._order_queue(key[0], session)
        self._send(to, ORDER_ACK, body, session, recoverable=recoverable, label=label, priority=priority)

    def _final_ack(self, message: Message, message_class: int, session: Session) -> None:
        """Send Transactional Acknowledgment of another class: [MS-MQQB] 3.1.7.17 and 2.2.5."""
        assert message.tx is not None
        tx = message.tx
        message_id = 0 if self.makes("final_ack_without_message_id") else message.message_id
        previous = tx.number - 1 if self.makes("final_ack_previous_is_number_less_1") else tx.previous
        body = struct.pack("<QLL16sL", tx.sequence, tx.number, previous, message.source, message_id)
        to = self._order_queue(message.source, session)
        self._send(to, message_class, body, session, recoverable=True, label=ORDER_LABEL, priority=0)

    def _order_queue(self, sender: bytes, session: Session) -> Name:
        if session.direct and session.remote_guid == sender:
            return Name("direct", text=f"TCP:{session.address}\\PRIVATE$\\order_queue$")
        return Name("private", sender, ORDER_QUEUE)

    def _send(
        self, to: Name, message_class: int, body: bytes, session: Session, *, recoverable: bool, **more: Any
    ) -> None:
        self._message_id = (self._message_id + 1) & 0xFFFFFFFF
        packet = user_message(
            source=self.guid,
            message_id=self._message_id,
            sent_time=int(time.time()),
            to=to,
            message_class=message_class,
            recoverable=recoverable,
            body=body,
            **more,
        )
        lasting = message_class != ORDER_ACK  # MQQB-3.1.6.9-01: only if the session is not closed
        if not self.routes.send(to, Outgoing(packet, recoverable, lasting), session):
            session.close("QueueManagerQuota")  # MQQB-3.1.5.8.8-06


def _is_order_queue(message: Message) -> bool:
    name = message.destination
    if name.kind == "direct":
        return name.text.partition("\\")[2].lower() == "private$\\order_queue$"
    return name.kind == "private" and name.number == ORDER_QUEUE
