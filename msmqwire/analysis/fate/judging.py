"""Judgement of a message's observations: its state, and whether acknowledgements are credible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from msmqwire.analysis.fate.model import NEGATIVE, EventKind, FateEvent, Missing, State
from msmqwire.analysis.fate.observations import Attributes, Observation
from msmqwire.analysis.fate.words import Known, explain, is_stuck
from msmqwire.analysis.lint.finding import Finding
from msmqwire.analysis.lint.queue_managers import TWO_ADDRESSES
from msmqwire.constants import MessageClass, class_name
from msmqwire.constants.message_class import is_about_receive, is_negative

ADDRESSES_MAX: Final = 32
"""Addresses of a message's way that are remembered, on each side, and of queue managers."""
LATENCY_MAX: Final = (1 << 63) - 1
"""Nanoseconds between two times of a capture that count as a latency: more has no place in a column."""

_POSITIVE_ARRIVAL, _POSITIVE_RECEIVE, _NEGATIVE_ANY = 1, 2, 4 | 8  # MessagePropertiesHeader.Flags
_BAD_REQUEST: Final = "HTTP status 400"  # it is not sent again: SRMP-3.1.7.2.5-05
_SOURCE, _SOURCE_OFFSET = "UserHeader.SourceQueueManager", 16
_TCP: Final = "direct=tcp:"
_DEAD_LETTER: Final = (";deadletter", ";deadxact")
_JOURNAL: Final = ";journal"

SENDINGS: Final = frozenset({EventKind.SENT, EventKind.SENT_AGAIN, EventKind.FORWARDED})
_BY_MESSAGE: Final = frozenset(
    {
        EventKind.ACKNOWLEDGEMENT,
        EventKind.FINAL_ACK,
        EventKind.DELIVERY_RECEIPT,
        EventKind.COMMITMENT_RECEIPT,
        EventKind.FINAL_STREAM_RECEIPT,
    }
)
"""Events that have a class."""
_FROM_RECEIVER: Final = _BY_MESSAGE | {EventKind.ORDER_ACK, EventKind.STREAM_RECEIPT}
"""Events that may come by a connection of their own, from anywhere."""
_READS: Final = frozenset(
    {
        EventKind.PEEKED,
        EventKind.HANDED_OUT,
        EventKind.GIVEN_BACK,
        EventKind.TAKEN,
        EventKind.TAKEN_IN_TRANSACTION,
    }
)
_REACHED_BY_HOP: Final = {
    EventKind.RECEIVED: State.RECEIVED,
    EventKind.ACCEPTED: State.RECEIVED,
    EventKind.STORED: State.STORED,
}
"""Events that are known of one hop only."""
_STATES: Final = {
    **_REACHED_BY_HOP,
    EventKind.ORDER_ACK: State.DELIVERED,
    EventKind.STREAM_RECEIPT: State.DELIVERED,
}
_STATE_OF_CLASS: Final[dict[int, State]] = {
    MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE: State.DELIVERED,
    MessageClass.MQMSG_CLASS_ACK_RECEIVE: State.READ,
    MessageClass.MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT: State.EXPIRED,
    MessageClass.MQMSG_CLASS_NACK_RECEIVE_TIMEOUT: State.EXPIRED,
    MessageClass.MQMSG_CLASS_NACK_DELETED: State.DELETED,
    MessageClass.MQMSG_CLASS_NACK_Q_DELETED: State.DELETED,
    MessageClass.MQMSG_CLASS_NACK_Q_PURGED: State.DELETED,
    MessageClass.MQMSG_CLASS_NACK_RECEIVE_REJECTED: State.REJECTED,
}
_RANK: Final = {
    State.UNKNOWN: 0,
    State.SENT: 1,
    State.RECEIVED: 2,
    State.STORED: 3,
    State.DELIVERED: 4,
    State.EXPIRED: 5,
    State.REFUSED: 5,
    State.DELETED: 5,
    State.REJECTED: 5,
    State.DEAD_LETTERED: 6,
    State.READ: 7,
}
"""Rank of a state: a message may get from one to any of a higher rank."""


class Route:
    """The way of a message: its hops.

    Attributes:
        senders, receivers: the addresses that it was seen to be sent from and to.
        queue_managers: GUID and address of queue managers on its way.
        destination: the queue of the first sending.
        hop_count: the highest that was seen.
    """

    __slots__ = ("destination", "hop_count", "queue_managers", "receivers", "senders")

    def __init__(self) -> None:
        self.senders: tuple[str, ...] = ()  # there are few, of many messages
        self.receivers: tuple[str, ...] = ()
        self.queue_managers: tuple[tuple[str, str], ...] = ()
        self.destination: str | None = None
        self.hop_count = 0

    @property
    def is_empty(self) -> bool:
        """Whether it was not seen to be sent."""
        return not self.senders

    def add(self, sent: Observation, attributes: Attributes) -> None:
        """Add a sending."""
        self.hop_count = max(self.hop_count, attributes.hop_count)
        where = sent.where
        self.senders = _with(self.senders, where.src)
        self.receivers = _with(self.receivers, where.dst)
        for guid, address in ((sent.sender_qm, where.src), (sent.receiver_qm, where.dst)):
            if guid:
                self.queue_managers = _with(self.queue_managers, (guid, address))

    def addresses(self, guid: str) -> list[str]:
        """Return where a queue manager was seen."""
        return sorted(address for known, address in self.queue_managers if known == guid)


_Item = TypeVar("_Item")


def _with(items: tuple[_Item, ...], item: _Item) -> tuple[_Item, ...]:
    return items if item in items or len(items) >= ADDRESSES_MAX else (*items, item)


class Hop:
    """The last hop of a message: all attempts to send it since it was last passed on.

    It is SENT until it is known to have been received, or stored; a later attempt does not undo that. Else
    the last attempt counts: REFUSED if it was answered so.

    Attributes:
        to: the address of the last attempt.
    """

    def __init__(self) -> None:
        self.to = ""
        self._reached, self._event = State.SENT, -1
        self._attempts: dict[int | None, tuple[int, Observation | None]] = {}  # by stream, the last one last
        self._unstored: Observation | None = None

    @property
    def state(self) -> State:
        """The state that the message has reached."""
        return State.REFUSED if self._is_refused else self._reached

    @property
    def event(self) -> int:
        """The number of the event that shows it; -1 if none does."""
        return self._last[0] if self._is_refused else self._event

    @property
    def outcome(self) -> Observation | None:
        """The fact known about the missing event."""
        if self._reached is State.STORED:
            return None
        return self._last[1] if self._reached is State.SENT else self._unstored

    @property
    def _last(self) -> tuple[int, Observation | None]:
        return next(reversed(self._attempts.values()), (-1, None))

    @property
    def _is_refused(self) -> bool:
        outcome = self._last[1]
        if self._reached is not State.SENT or outcome is None:
            return False
        return outcome.what is EventKind.NOT_ACCEPTED and outcome.detail == _BAD_REQUEST

    def add(self, observation: Observation, event: int) -> None:
        """Take an observation of it."""
        what, stream = observation.what, observation.where.stream
        if what in SENDINGS:
            self._unstored = None
            self.to = observation.where.dst
            self._attempts.pop(stream, None)
            self._attempts[stream] = event, None
        elif stream not in self._attempts:  # it is of a hop before
            return
        elif what in (EventKind.NOT_ACCEPTED, EventKind.UNACKNOWLEDGED):
            self._attempts[stream] = event, observation
        elif what is EventKind.NOT_STORED:
            self._unstored = observation
        elif what in _REACHED_BY_HOP and _RANK[_REACHED_BY_HOP[what]] > _RANK[self._reached]:
            self._reached, self._event = _REACHED_BY_HOP[what], event


class Judgement(NamedTuple):
    """The result of observations; the attributes are those of `MessageFate`."""

    sent_ns: int | None
    events: tuple[FateEvent, ...]
    state: State
    reason: str
    explanation: str
    stuck: bool
    latencies: Mapping[str, int]
    missing: Missing
    findings: tuple[Finding, ...]


def judge(
    source_qm: str,
    message: Attributes | None,
    way: Route,
    observations: Sequence[Observation],
    retransmissions: int = 0,
    namesakes: Sequence[str] = (),
) -> Judgement:
    """Return the result of the observations of a message, in their order.

    Args:
        source_qm: GUID of the queue manager that sent it first.
        message: its own attributes; None if it was not seen.
        way: its hops.
        observations: its observations.
        retransmissions: the number of times it was sent again.
        namesakes: descriptions of other messages with its identity.
    """
    sent_ns = next((o.where.time_ns for o in observations if o.what in SENDINGS), None)
    events: list[FateEvent] = []
    hop = Hop()
    final, reason, decisive = State.UNKNOWN, "", None
    latencies: dict[str, int] = {}
    has_arrived = True
    read_from, believed = "", set[tuple[str, int | None]]()
    for observation in observations:
        by = observation.acknowledged_by, observation.message_class
        doubt = "" if message is None or by in believed else _doubt(observation, source_qm, message, way)
        if observation.acknowledged_by and not doubt:
            believed.add(by)  # it is the same when other queue managers forward it
        events.append(_event(observation, doubt))
        if doubt:
            continue
        if observation.what is EventKind.FORWARDED:
            hop = Hop()
        hop.add(observation, len(events) - 1)
        if observation.what in (EventKind.HANDED_OUT, EventKind.PEEKED):
            read_from = observation.detail
        if message is None:
            continue
        reached = _reached(observation, read_from)
        if reached is None:
            continue
        time_ns = observation.where.time_ns
        if sent_ns is not None and time_ns is not None and 0 <= time_ns - sent_ns <= LATENCY_MAX:
            latencies.setdefault(reached.value, time_ns - sent_ns)
        if observation.what in _REACHED_BY_HOP or observation.what is EventKind.NOT_ACCEPTED:
            continue
        if _RANK[reached] > _RANK[final]:
            final, decisive = reached, events[-1]
        if reached in NEGATIVE and not reason:
            reason = events[-1].message_class
            has_arrived = not reason or is_about_receive(observation.message_class or 0)
    state = State.UNKNOWN if message is None else final
    if message is not None and final is State.UNKNOWN:
        state = hop.state
        decisive = events[hop.event] if hop.event >= 0 else None
        if state is State.REFUSED and decisive is not None:
            reason = decisive.detail
    if state not in NEGATIVE:
        reason = ""
    elif not has_arrived:  # an acknowledgement of order covers messages that the receiver has rejected, too
        latencies.pop(State.DELIVERED, None)
    if state is not State.REFUSED:  # one attempt was refused, and that was not the end
        latencies.pop(State.REFUSED, None)
    missing = Missing.NOTHING if message is None else _missing(state, message, hop)
    found = [event.detail for event in events if event.what is EventKind.SECOND_ADDRESS]
    known = Known(message, state, missing, decisive, tuple(events), hop.to, _why(hop), retransmissions)
    explanation = explain(known, namesakes)
    return Judgement(
        sent_ns, tuple(events), state, reason, explanation, is_stuck(state, missing), latencies, missing,
        tuple(TWO_ADDRESSES.at(_SOURCE, _SOURCE_OFFSET, words) for words in found),
    )  # fmt: skip


def _missing(state: State, message: Attributes, hop: Hop) -> Missing:
    """Return the expected event that is missing of a message in a state."""
    outcome = hop.outcome
    if state is State.SENT:
        if outcome is None or not outcome.is_certain:
            return Missing.NOTHING
        if outcome.what is EventKind.NOT_ACCEPTED:
            return Missing.ACCEPTANCE
        return Missing.RESPONSE if message.transport == "http" else Missing.SESSION_ACK
    if state not in (State.RECEIVED, State.STORED):
        return Missing.NOTHING
    if state is State.RECEIVED and outcome is not None and outcome.is_certain:
        return Missing.STORAGE
    if message.transactional:
        return Missing.ORDER
    asks = message.ack_flags & _POSITIVE_ARRIVAL and message.admin_queue is not None
    return Missing.ARRIVAL if asks else Missing.NOTHING


def _why(hop: Hop) -> str:
    outcome = hop.outcome
    return "" if outcome is None else outcome.detail


def _event(observation: Observation, doubt: str) -> FateEvent:
    where, number = observation.where, observation.message_class
    return FateEvent(
        time_ns=where.time_ns,
        what=observation.what,
        stream=where.stream,
        file=where.file,
        frame=where.frame,
        src=where.src,
        dst=where.dst,
        message_class="" if number is None else class_name(number),
        detail=observation.detail,
        doubt=doubt,
    )


def _reached(observation: Observation, read_from: str) -> State | None:
    """Return the state that an observation shows; None if it shows none."""
    what = observation.what
    if what in _STATES:
        return _STATES[what]
    if what is EventKind.NOT_ACCEPTED:
        return State.REFUSED if observation.detail == _BAD_REQUEST else None
    if what in _BY_MESSAGE:
        number = observation.message_class or 0
        return _STATE_OF_CLASS.get(number, State.REFUSED if is_negative(number) else None)
    if what not in _READS or read_from.lower().endswith(_JOURNAL):
        return None
    if read_from.lower().endswith(_DEAD_LETTER):
        return State.DEAD_LETTERED
    return State.READ if what is EventKind.TAKEN else State.DELIVERED


def _doubt(observation: Observation, source_qm: str, message: Attributes, way: Route) -> str:
    """Return why an acknowledgement or a read is not believed; nothing if it is."""
    what = observation.what
    if way.is_empty:
        return ""
    if what in _READS:
        return _doubt_of_server(observation.where.src, message, way)
    if what not in _FROM_RECEIVER:
        return ""
    return _doubt_of_class(observation, message) or _doubt_of_sender(observation, source_qm, message, way)


def _doubt_of_server(server: str, message: Attributes, way: Route) -> str:
    address = _direct_address(message.destination)
    if address is None or server == address or server in way.receivers:
        return ""
    return f"{server} is not where the message was sent to"


def _doubt_of_class(observation: Observation, message: Attributes) -> str:
    """Return why there should be no such acknowledgement of a message."""
    number, flags = observation.message_class or 0, message.ack_flags
    what = observation.what
    if what in (
        EventKind.FINAL_ACK,
        EventKind.ORDER_ACK,
        EventKind.STREAM_RECEIPT,
        EventKind.FINAL_STREAM_RECEIPT,
    ):
        return "" if message.transactional else "the message is not transactional"
    if message.admin_queue is None:
        return "the message has no administration queue"
    wanted = _NEGATIVE_ANY
    if number == MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE:
        wanted = _POSITIVE_ARRIVAL
    elif number == MessageClass.MQMSG_CLASS_ACK_RECEIVE:
        wanted = _POSITIVE_RECEIVE
    return "" if flags & wanted else "the message did not ask for it"


def _doubt_of_sender(observation: Observation, source_qm: str, message: Attributes, way: Route) -> str:
    """Return why an acknowledgement should not come from there."""
    src, guid = observation.where.src, observation.sender_qm
    if src in way.receivers or src == _direct_address(message.destination):
        return ""
    if src in way.senders:
        # Who gives up a message tells its administration queue so.
        if is_negative(observation.message_class or 0) and guid in (source_qm, ""):
            return ""
        return f"it comes from {src}, which has sent the message"
    addresses = way.addresses(guid) if guid else []
    if addresses:
        return f"it comes from {src}, and its queue manager is at {', '.join(addresses[:3])}"
    if guid and guid == message.destination_qm:
        return ""
    return f"it comes from {src}, which the message was not sent to"


def _direct_address(destination: str | None) -> str | None:
    """Return the address in a direct format name for TCP."""
    if destination is None or not destination.lower().startswith(_TCP):
        return None
    return destination[len(_TCP) :].partition("\\")[0]
