"""Judgement of a message's observations: its state, and whether acknowledgements are credible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Final, NamedTuple

from msmqwire.analysis.fate.hops import BAD_REQUEST, RANK, REACHED_BY_HOP, SENDINGS, Hop, Route
from msmqwire.analysis.fate.model import NEGATIVE, EventKind, FateEvent, Missing, State
from msmqwire.analysis.fate.observations import Attributes, Observation
from msmqwire.analysis.fate.words import Known, Words, is_stuck
from msmqwire.analysis.lint.finding import Finding
from msmqwire.analysis.lint.queue_managers import TWO_ADDRESSES
from msmqwire.constants import MessageClass, class_name
from msmqwire.constants.message_class import is_about_receive, is_negative

LATENCY_MAX: Final = (1 << 63) - 1
"""Nanoseconds between two times of a capture that count as a latency: more has no place in a column."""

_POSITIVE_ARRIVAL, _POSITIVE_RECEIVE, _NEGATIVE_ANY = 1, 2, 4 | 8  # MessagePropertiesHeader.Flags
_SOURCE, _SOURCE_OFFSET = "UserHeader.SourceQueueManager", 16
_TCP: Final = "direct=tcp:"
_DEAD_LETTER: Final = (";deadletter", ";deadxact")
_JOURNAL: Final = ";journal"

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
_OF_ATTEMPT: Final = frozenset(
    {
        EventKind.SENT,
        EventKind.RECEIVED,
        EventKind.STORED,
        EventKind.UNACKNOWLEDGED,
        EventKind.NOT_STORED,
    }
)
"""Events of one attempt to send a message by [MS-MQQB]: nobody doubts these."""
_OUTCOMES_MAX: Final = 1 << 12
_OUTCOMES: Final[dict[tuple[object, ...], Outcome]] = {}
"""Outcomes of single attempts by all that they depend on; of more than `_OUTCOMES_MAX`, all are forgotten."""
_STATES: Final = {
    **REACHED_BY_HOP,
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


class Judgement(NamedTuple):
    """The result of observations; the attributes are those of `MessageFate`."""

    sent_ns: int | None
    events: tuple[FateEvent, ...]
    state: State
    reason: str
    explanation: str
    stuck: bool
    latencies: Mapping[str, int]
    missing: str
    findings: tuple[Finding, ...]


class Outcome(NamedTuple):
    """The part of a judgement that doesn't depend on times.

    Attributes:
        reached: the texts of the states that events show, with the number of the event, in order.
        without_latency: the texts of the states whose latency does not count.
        words: the explanation, without deadlines.
        findings: oddities.
    """

    state: State
    reason: str
    missing: str
    stuck: bool
    reached: tuple[tuple[str, int], ...]
    without_latency: tuple[str, ...]
    words: Words
    findings: tuple[Finding, ...]

    def latencies(self, sent_ns: int, times: Sequence[int | None]) -> dict[str, int]:
        """Return the nanoseconds to each state, of events with these times."""
        found: dict[str, int] = {}
        for state, number in self.reached:
            time_ns = times[number]
            if time_ns is not None and 0 <= time_ns - sent_ns <= LATENCY_MAX:
                found.setdefault(state, time_ns - sent_ns)
        for state in self.without_latency:
            found.pop(state, None)
        return found


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
    events, outcome = _outcome(source_qm, message, way, observations, retransmissions, namesakes)
    return _timed(outcome, message, events)


def judge_of_hop(message: Attributes, observations: Sequence[Observation]) -> Judgement | None:
    """Return the result of the observations of a message that are of one attempt to send it.

    None if there are other observations.
    """
    outcome = outcome_of_hop(message, observations)
    if outcome is None:
        return None
    events = [event_of(observations[0], ""), *[_event_of_many(one) for one in observations[1:]]]
    return _timed(outcome, message, events)


def outcome_of_hop(message: Attributes, observations: Sequence[Observation]) -> Outcome | None:
    """Return the outcome of the observations of a message that are of one attempt to send it.

    Most messages are so, with few outcomes: the same as for an earlier one with equal facts is not worked
    out again. None if there are other observations.
    """
    facts: list[object] = [
        observations[0].where.dst, message.transactional, message.ack_flags, message.admin_queue is None,
        message.transport,
    ]  # fmt: skip
    stream = observations[0].where.stream
    for observation in observations:
        if observation.where.stream != stream or observation.what not in _OF_ATTEMPT:
            return None
        facts += facts_of(observation)
    if observations[0].what is not EventKind.SENT or facts.count(EventKind.SENT) != 1:
        return None
    known = tuple(facts)
    outcome = _OUTCOMES.get(known)
    if outcome is None:
        _, outcome = _outcome("", message, Route(), observations, 0, ())
        if len(_OUTCOMES) >= _OUTCOMES_MAX:
            _OUTCOMES.clear()
        _OUTCOMES[known] = outcome
    return outcome


def facts_of(observation: Observation) -> tuple[EventKind, str, bool, str]:
    """Return all of an observation of one attempt that an outcome depends on."""
    return observation.what, observation.where.src, observation.is_certain, observation.detail


def _timed(outcome: Outcome, message: Attributes | None, events: list[FateEvent]) -> Judgement:
    """Return the judgement with the times of the events."""
    sent_ns = next((event.time_ns for event in events if event.what in SENDINGS), None)
    latencies = {} if sent_ns is None else outcome.latencies(sent_ns, [event.time_ns for event in events])
    return Judgement(
        sent_ns, tuple(events), outcome.state, outcome.reason, outcome.words.explain(message, events),
        outcome.stuck, latencies, outcome.missing, outcome.findings,
    )  # fmt: skip


def _outcome(
    source_qm: str,
    message: Attributes | None,
    way: Route,
    observations: Sequence[Observation],
    retransmissions: int,
    namesakes: Sequence[str],
) -> tuple[list[FateEvent], Outcome]:
    """Return the events of a message, and the rest of the judgement but for times; arguments as `judge`."""
    events: list[FateEvent] = []
    hop = Hop()
    final, reason, decisive = State.UNKNOWN, "", None
    shown: list[tuple[str, int]] = []
    has_arrived = True
    read_from, believed = "", set[tuple[str, int | None]]()
    for observation in observations:
        by = observation.acknowledged_by, observation.message_class
        doubt = "" if message is None or by in believed else _doubt(observation, source_qm, message, way)
        if observation.acknowledged_by and not doubt:
            believed.add(by)  # it is the same when other queue managers forward it
        events.append(event_of(observation, doubt))
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
        shown.append((reached.value, len(events) - 1))
        if observation.what in REACHED_BY_HOP or observation.what is EventKind.NOT_ACCEPTED:
            continue
        if RANK[reached] > RANK[final]:
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
    without_latency: list[str] = []
    if state not in NEGATIVE:
        reason = ""
    elif not has_arrived:  # an acknowledgement of order covers messages that the receiver has rejected, too
        without_latency.append(State.DELIVERED.value)
    if state is not State.REFUSED:  # one attempt was refused, and that was not the end
        without_latency.append(State.REFUSED.value)
    missing = Missing.NOTHING if message is None else _missing(state, message, hop)
    found = [event.detail for event in events if event.what is EventKind.SECOND_ADDRESS]
    known = Known(message, state, missing, decisive, tuple(events), hop.to, _why(hop), retransmissions)
    return events, Outcome(
        state, reason, missing.value, is_stuck(state, missing), tuple(shown), tuple(without_latency),
        Words.of(known, namesakes),
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


def event_of(observation: Observation, doubt: str) -> FateEvent:
    """Return the event that an observation becomes."""
    where, number = observation.where, observation.message_class
    return FateEvent(
        where.time_ns,
        observation.what,
        where.stream,
        where.file,
        where.frame,
        where.src,
        where.dst,
        "" if number is None else class_name(number),
        observation.detail,
        doubt,
    )


_event_of_many: Final = lru_cache(1 << 10)(partial(event_of, doubt=""))
"""The event of an acknowledgement, which many messages have in common."""


def _reached(observation: Observation, read_from: str) -> State | None:
    """Return the state that an observation shows; None if it shows none."""
    what = observation.what
    if what in _STATES:
        return _STATES[what]
    if what is EventKind.NOT_ACCEPTED:
        return State.REFUSED if observation.detail == BAD_REQUEST else None
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
