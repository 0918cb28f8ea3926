"""The fate of a message in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from msmqwire.analysis.fate.model import NEGATIVE, EventKind, FateEvent, Missing, State
from msmqwire.analysis.fate.observations import Attributes
from msmqwire.names.class_words import class_words

_POSITIVE_RECEIVE: Final = 2  # MessagePropertiesHeader.Flags
_HANDED: Final = frozenset({EventKind.HANDED_OUT, EventKind.GIVEN_BACK, EventKind.TAKEN_IN_TRANSACTION})
_SECOND: Final = 1_000_000_000


OPEN: Final = {
    (State.SENT, Missing.NOTHING): "sent to {to}; {why}",
    (State.SENT, Missing.SESSION_ACK): "sent to {to}, and no acknowledgement came in the capture: {why}",
    (State.SENT, Missing.RESPONSE): "sent to {to}, and no acknowledgement came in the capture: {why}",
    (State.SENT, Missing.ACCEPTANCE): "the server at {to} has not accepted it: {why}",
    (State.RECEIVED, Missing.NOTHING): "{by} has received it; {more}",
    (State.RECEIVED, Missing.STORAGE): "{by} has received it, and not acknowledged its storing: {why}",
    (
        State.RECEIVED,
        Missing.ORDER,
    ): "{by} has received it; no acknowledgement of its order came in the capture",
    (State.RECEIVED, Missing.ARRIVAL): "{by} has received it; {no_arrival}",
    (State.STORED, Missing.NOTHING): "{by} has stored it; {more}",
    (State.STORED, Missing.ORDER): "{by} has stored it; no acknowledgement of its order came in the capture",
    (State.STORED, Missing.ARRIVAL): "{by} has stored it; {no_arrival}",
}
"""Progress of a message that has not ended, by state and missing event: there are no other pairs."""
_NO_ARRIVAL: Final = "the acknowledgement of arrival that it asks for did not come"
_NOT_ASKED: Final = "it asks for no further acknowledgement"
_STUCK: Final = frozenset({Missing.SESSION_ACK, Missing.RESPONSE, Missing.ACCEPTANCE})


class Known(NamedTuple):
    """The facts known about a message.

    Attributes:
        message: its own attributes; None if it was not seen.
        state: the last thing that is known of it.
        missing: the expected event.
        decisive: the event that shows the state; None for one that was only sent.
        events: all events.
        to: the address of the last attempt to send it.
        why: the reason in words; empty if it is unknown.
        retransmissions: the number of times it was sent again.
    """

    message: Attributes | None
    state: State
    missing: Missing
    decisive: FateEvent | None
    events: tuple[FateEvent, ...]
    to: str
    why: str
    retransmissions: int


class Limit(NamedTuple):
    """A time limit of a message: its name, and its attribute."""

    name: str
    attribute: str


_LIMITS: Final = (
    Limit("to reach its queue", "time_to_reach_queue"),
    Limit("to be received", "time_to_be_received"),
)


def is_stuck(state: State, missing: Missing) -> bool:
    """Whether a message is known to be where it was sent from."""
    return state is State.SENT and missing in _STUCK


class Words(NamedTuple):
    """The fate of a message in words, but for its deadlines.

    Attributes:
        beginning: the first sentence.
        limits: the time limits that it is about: none of a message that has ended.
        ends: the sentences after the deadline.
        whole: the sentences together, for a message whose time was not over.
    """

    beginning: str
    limits: tuple[Limit, ...]
    ends: tuple[str, ...]
    whole: str

    @classmethod
    def of(cls, known: Known, namesakes: Sequence[str] = ()) -> Words:
        """Return the words for facts; `namesakes` are other messages with the same identity."""
        limits: tuple[Limit, ...] = ()
        if known.message is None:
            beginning = _unseen(known)
        elif known.state in NEGATIVE or known.state is State.READ:
            beginning = _ended(known, known.message)
        else:
            is_delivered = known.state is State.DELIVERED
            beginning = _delivered(known, known.message) if is_delivered else _open(known)
            # One that nothing is missing of may have reached its queue in time.
            needs_to_reach = known.missing or known.state is State.SENT
            limits = _LIMITS if needs_to_reach else _LIMITS[1:]
        ends = tuple(_ends(known, namesakes))
        return cls(beginning, limits, ends, "; ".join([beginning, *ends]))

    def explain(self, message: Attributes | None, events: Sequence[FateEvent]) -> str:
        """Return the fate in words."""
        late = "" if message is None else _deadline(self.limits, message, events)
        return "; ".join([self.beginning, late, *self.ends]) if late else self.whole


def _ends(known: Known, namesakes: Sequence[str]) -> list[str]:
    """Return what there is to say after the outcome."""
    sentences = []
    if known.retransmissions:
        again = "once" if known.retransmissions == 1 else f"{known.retransmissions} times"
        sentences.append(f"it was sent again {again}")
    seconds = [event for event in known.events if event.what is EventKind.SECOND_ADDRESS]
    sentences += [event.detail for event in seconds]
    if namesakes:
        more = f", and {len(namesakes) - 1} more" if len(namesakes) > 1 else ""
        sentences.append(f"another message has the same identity: {namesakes[0]}{more}")
    sentences += _not_believed(known.events)
    return sentences


def _unseen(known: Known) -> str:
    told = [event for event in known.events if event.message_class]
    if not told:
        return "the message itself is not in the capture"
    last = told[-1]
    return f"the message itself is not in the capture; {last.src} says MQMSG_CLASS_{last.message_class} of it"


def _ended(known: Known, message: Attributes) -> str:
    event = known.decisive
    assert event is not None, "a state that ends a message is shown by an event"
    if event.what in _HANDED | {EventKind.TAKEN, EventKind.PEEKED}:
        queue = _read_from(known.events)
        if known.state is State.DEAD_LETTERED:
            return f"it is in a dead-letter queue, {queue}: {event.dst} has read it there"
        return f"{event.dst} has received it by remote read" + (f" from {queue}" if queue else "")
    if known.state is State.READ:
        return f"an application has read it: {event.src} answered MQMSG_CLASS_{event.message_class}"
    if event.what is EventKind.NOT_ACCEPTED:
        return f"the server at {event.src} has refused it: {event.detail}"
    words = class_words(event.message_class)
    sentence = f"the queue manager at {event.src} answered MQMSG_CLASS_{event.message_class}: {words}"
    if message.journal_negative:
        sentence += "; its sender was asked to put it into the dead-letter queue"
    return sentence


def _open(known: Known) -> str:
    """Say how far a message has come that has not ended."""
    if not known.to:  # a remote reader has found it where that tells nothing
        return "it was seen in a journal, and not on its way; nothing more is known"
    by = "" if known.decisive is None else known.decisive.src
    return OPEN[known.state, known.missing].format(
        to=known.to,
        by=by,
        why=known.why or "nothing more is known",
        more=known.why or _NOT_ASKED,
        no_arrival=_NO_ARRIVAL,
    )


def _delivered(known: Known, message: Attributes) -> str:
    reads = [event for event in known.events if event.what in _HANDED and not event.doubt]
    last = reads[-1] if reads else None
    if last is not None and last.what is EventKind.TAKEN_IN_TRANSACTION:
        return f"it is in its queue; {last.dst} has received it in a transaction whose outcome is not seen"
    if last is not None and last.what is EventKind.HANDED_OUT:
        return f"it is in its queue; it was handed out to {last.dst}, who has not accepted it in the capture"
    if last is not None:
        return f"it is in its queue; {last.dst} was handed it, and gave it back"
    if message.ack_flags & _POSITIVE_RECEIVE and message.admin_queue is not None:
        return "it is in its queue; no acknowledgement that it was read came in the capture"
    return "it is in its queue; it asks for no acknowledgement that it was read"


def _read_from(events: tuple[FateEvent, ...]) -> str:
    reads = [
        event
        for event in events
        if event.what in (EventKind.HANDED_OUT, EventKind.PEEKED) and not event.doubt
    ]
    return reads[-1].detail if reads else ""


def _deadline(limits: Sequence[Limit], message: Attributes, events: Sequence[FateEvent]) -> str:
    """Say if the time of a message was over before the capture has last to do with it."""
    for limit in limits:
        seconds = getattr(message, limit.attribute)
        if seconds is None or message.sent_time is None:
            continue
        last = max((event.time_ns for event in events if event.time_ns is not None), default=None)
        if last is not None and (message.sent_time + seconds) * _SECOND < last:
            return f"its time {limit.name}, {seconds} s, was over by then"
    return ""


def _not_believed(events: tuple[FateEvent, ...]) -> Iterator[str]:
    doubted = [event for event in events if event.doubt]
    if doubted:
        last = doubted[-1]
        name = f"MQMSG_CLASS_{last.message_class}" if last.message_class else f"an event ({last.what})"
        more = f", and {len(doubted) - 1} more" if len(doubted) > 1 else ""
        yield f"not believed: {name}{more}, as {last.doubt}"
