"""The fate of a message, as far as captures show it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from msmqwire.analysis.lint.finding import Finding


class EventKind(StrEnum):
    """The kind of an event."""

    SENT = "sent"
    SENT_AGAIN = "sent again"
    FORWARDED = "forwarded"
    RECEIVED = "received"
    STORED = "stored"
    UNACKNOWLEDGED = "unacknowledged"
    NOT_STORED = "not stored"
    ORDER_ACK = "order acknowledgement"
    FINAL_ACK = "final acknowledgement"
    ACKNOWLEDGEMENT = "acknowledgement"
    DELIVERY_RECEIPT = "delivery receipt"
    COMMITMENT_RECEIPT = "commitment receipt"
    STREAM_RECEIPT = "stream receipt"
    FINAL_STREAM_RECEIPT = "final stream receipt"
    ACCEPTED = "accepted"
    NOT_ACCEPTED = "not accepted"
    PEEKED = "peeked"
    HANDED_OUT = "handed out"
    GIVEN_BACK = "given back"
    TAKEN = "taken"
    TAKEN_IN_TRANSACTION = "taken in a transaction"
    SECOND_ADDRESS = "at a second address"


What = EventKind
"""The former name of `EventKind`, which can still be imported."""


class State(StrEnum):
    """The last thing that is known of a message.

    SENT: it was seen on its way. RECEIVED: the next queue manager has it. STORED: that has saved it.
    DELIVERED: it is in its queue. READ: an application has it. The remaining states are ends of another kind;
    DELETED stands for messages that were deleted and for queues that were purged or deleted. UNKNOWN: the
    message itself is not in the capture.
    """

    SENT = "sent"
    RECEIVED = "received"
    STORED = "stored"
    DELIVERED = "delivered"
    READ = "read"
    EXPIRED = "expired"
    REFUSED = "refused"
    DELETED = "deleted"
    REJECTED = "rejected"
    DEAD_LETTERED = "dead-lettered"
    UNKNOWN = "unknown"


class Missing(StrEnum):
    """An event that was expected for a message and did not come."""

    NOTHING = ""
    SESSION_ACK = "session acknowledgement"
    RESPONSE = "response"
    ACCEPTANCE = "acceptance"
    STORAGE = "acknowledgement of storage"
    ORDER = "order acknowledgement"
    ARRIVAL = "arrival acknowledgement"


NEGATIVE = frozenset({State.EXPIRED, State.REFUSED, State.DELETED, State.REJECTED, State.DEAD_LETTERED})
"""The ends of messages that were not read."""


@dataclass(frozen=True, slots=True)
class FateEvent:
    """One thing that a capture shows of a message.

    Attributes:
        time_ns: when the frame was captured, nanoseconds since 1970-01-01 UTC; None if that is unknown.
        what: its kind.
        stream: the TCP connection.
        file, frame: its place in the capture; frame is None if numbers of frames are unknown.
        src, dst: addresses of the sender and the receiver of the packet.
        message_class: name of the class of an acknowledgement, without ``MQMSG_CLASS_``; else empty.
        detail: the rest, in words.
        doubt: why an acknowledgement is not believed; empty if it is.
    """

    time_ns: int | None
    what: EventKind
    stream: int | None
    file: str | None
    frame: int | None
    src: str
    dst: str
    message_class: str = ""
    detail: str = ""
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class MessageFate:
    r"""The fate of a message.

    Attributes:
        identity: ``GUID\number``: the queue manager that sent it first, and its MessageID there. Two messages
            have the same if two queue managers have the same GUID, or one has counted anew.
        source_qm, message_id: the two halves. A message of SRMP without Msmq has those of its ``id``; if that
            is some other text, the identity is this text, and the halves are empty and None.
        label, destination, admin_queue, body_size, recoverable, transactional: its own; None if unknown,
            as of a message of which only acknowledgements are in the capture. Names of queues are format
            names; they and labels are cut at `TEXT_MAX` characters. body_size is in bytes, that of an
            encrypted body before it is decrypted.
        message_class: name of its class, ``NORMAL`` for most.
        transport: ``tcp``, ``http`` or ``remote read``: how it was seen first; empty if it was not.
        sent_time: when its sender says that it was sent: seconds since 1970-01-01 UTC.
        sent_ns: when it was seen first: nanoseconds since 1970-01-01 UTC; None if it was not.
        events: its events in the capture, in order, at most `EVENTS_MAX`.
        events_omitted: the number of events beyond these.
        retransmissions: the number of times it was sent again by a computer that had sent it before.
        hops: the number of times it was passed on.
        state: the last thing that is known of it.
        reason: the class that says why it has ended so, without ``MQMSG_CLASS_``, or ``HTTP status 400``;
            empty if nothing does.
        explanation: state and reason in words, and the event that it waits for.
        stuck: whether it is known that no queue manager has taken it over from the one that sent it last: its
            state is ``sent``, and `missing` is not empty.
        latencies: nanoseconds from `sent_ns` to the first event that shows a state, by the state's text.
        complete: False if there were too many messages to wait for more about this one.
        missing: the expected event that did not come, as text of `Missing`; empty if none is known to be
            missing.
        sender: the address that it was seen to be sent from first; empty if it was not.
        findings: oddities about it: its queue manager's GUID is at two addresses.
    """

    identity: str
    source_qm: str
    message_id: int | None
    label: str | None
    destination: str | None
    admin_queue: str | None
    transport: str
    message_class: str
    body_size: int | None
    recoverable: bool | None
    transactional: bool | None
    sent_time: int | None
    sent_ns: int | None
    events: tuple[FateEvent, ...]
    events_omitted: int
    retransmissions: int
    hops: int
    state: State
    reason: str
    explanation: str
    stuck: bool
    latencies: Mapping[str, int] = field(default_factory=dict)
    complete: bool = True
    missing: str = ""
    sender: str = ""
    findings: tuple[Finding, ...] = ()


class Brief(NamedTuple):
    """The part of a fate that lines and sums show: no events. `MessageFate` has the meanings."""

    identity: str
    label: str | None
    destination: str | None
    body_size: int | None
    sent_ns: int | None
    retransmissions: int
    hops: int
    state: State
    reason: str
    explanation: str
    stuck: bool
    latencies: Mapping[str, int]
    missing: str
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Latency:
    """Durations in nanoseconds.

    Attributes:
        count: messages of which it is known.
        p50, p95: the times within which half of them, and 95 of 100, were done.
        max: the longest.
    """

    count: int
    p50: int
    p95: int
    max: int


@dataclass(frozen=True, slots=True)
class QueueSummary:
    """The messages to a queue.

    Attributes:
        queue: its format name; None for those whose destination is unknown.
        messages: their number.
        bytes: the size of their bodies together.
        states: messages by the text of their state.
        latencies: by the text of the state that was reached.
        retransmissions: their number.
        stuck: the number of stuck messages.
        stuck_messages: the identities of the first of them, at most `STUCK_MAX`.
        reasons: messages by the class that says why they have ended so.
        missing: messages by the expected event that did not come.
        findings: oddities about them, in words, each once, at most `FINDINGS_MAX`.
    """

    queue: str | None
    messages: int
    bytes: int
    states: Mapping[str, int]
    latencies: Mapping[str, Latency]
    retransmissions: int
    stuck: int
    stuck_messages: tuple[str, ...]
    reasons: Mapping[str, int]
    missing: Mapping[str, int] = field(default_factory=dict)
    findings: tuple[str, ...] = ()


EVENTS_MAX = 64
"""Events of a message that are kept; the rest are counted."""
TEXT_MAX = 1024
"""Characters of a label, or of the name of a queue."""
STUCK_MAX = 10
"""Identities of stuck messages in the summary of a queue."""
FINDINGS_MAX = 10
"""Findings in the summary of a queue."""
