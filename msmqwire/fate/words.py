"""The fate of a message in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from msmqwire.fate.model import NEGATIVE, FateEvent, State, What
from msmqwire.fate.observations import Attributes, Observation
from msmqwire.names.class_words import class_words

_POSITIVE_ARRIVAL, _POSITIVE_RECEIVE = 1, 2  # MessagePropertiesHeader.Flags
_HANDED: Final = frozenset({What.HANDED_OUT, What.GIVEN_BACK, What.TAKEN_IN_TRANSACTION})
_SECOND: Final = 1_000_000_000


class Known(NamedTuple):
    """What is known of a message.

    Attributes:
        message: what it says of itself; None if it was not seen.
        state: the last thing that is known of it.
        decisive: the event that shows the state; None for one that was only sent.
        events: all events.
        last_sending: the last sending, and what is known of it on the same connection.
        retransmissions: how often it was sent again.
    """

    message: Attributes | None
    state: State
    decisive: FateEvent | None
    events: tuple[FateEvent, ...]
    last_sending: tuple[Observation, ...]
    retransmissions: int


def explain(known: Known) -> tuple[str, bool]:
    """Return the fate in words, and whether something that should have come did not."""
    if known.message is None:
        sentences, stuck = [_unseen(known)], False
    elif known.state in NEGATIVE or known.state is State.READ:
        sentences, stuck = [_ended(known, known.message)], False
    else:
        sentence, stuck = _open(known, known.message)
        sentences = [sentence]
        sentences += _deadline(known, known.message, stuck=stuck)
    if known.retransmissions:
        again = "once" if known.retransmissions == 1 else f"{known.retransmissions} times"
        sentences.append(f"it was sent again {again}")
    sentences += _not_believed(known.events)
    return "; ".join(sentences), stuck


def _unseen(known: Known) -> str:
    told = [event for event in known.events if event.message_class]
    if not told:
        return "the message itself is not in the capture"
    last = told[-1]
    return f"the message itself is not in the capture; {last.src} says MQMSG_CLASS_{last.message_class} of it"


def _ended(known: Known, message: Attributes) -> str:
    event = known.decisive
    assert event is not None, "a state that ends a message is shown by an event"
    if event.what in _HANDED | {What.TAKEN, What.PEEKED}:
        queue = _read_from(known.events)
        if known.state is State.DEAD_LETTERED:
            return f"it is in a dead-letter queue, {queue}: {event.dst} has read it there"
        return f"{event.dst} has received it by remote read" + (f" from {queue}" if queue else "")
    if known.state is State.READ:
        return f"an application has read it: {event.src} answered MQMSG_CLASS_{event.message_class}"
    if event.what is What.NOT_ACCEPTED:
        return f"the server at {event.src} has refused it: {event.detail}"
    words = class_words(event.message_class)
    sentence = f"the queue manager at {event.src} answered MQMSG_CLASS_{event.message_class}: {words}"
    if message.journal_negative:
        sentence += "; its sender was asked to put it into the dead-letter queue"
    return sentence


def _open(known: Known, message: Attributes) -> tuple[str, bool]:
    """Say how far a message has come that has not ended."""
    if known.state is State.DELIVERED:
        return _delivered(known, message), False
    last = known.last_sending[0] if known.last_sending else None
    missing = next(
        (o for o in reversed(known.last_sending) if o.what in (What.UNACKNOWLEDGED, What.NOT_STORED)), None
    )
    refused = next((o for o in reversed(known.last_sending) if o.what is What.NOT_ACCEPTED), None)
    if refused is not None:
        return f"the server at {refused.where.src} has not accepted it: {refused.detail}", True
    to = "" if last is None else last.where.dst
    if missing is not None and missing.what is What.UNACKNOWLEDGED:
        if not missing.is_certain:
            return f"sent to {to}; {missing.detail}", False
        return f"sent to {to}, and no acknowledgement came in the capture: {missing.detail}", True
    if missing is not None:
        return f"{to} has received it, and not stored it: {missing.detail}", missing.is_certain
    if known.state is State.SENT:
        return f"sent to {to}; nothing more is known", False
    has = "stored" if known.state is State.STORED else "received"
    if message.transactional:
        return f"{to} has {has} it; no acknowledgement of its order came in the capture", True
    if message.ack_flags & _POSITIVE_ARRIVAL and message.admin_queue is not None:
        return f"{to} has {has} it; the acknowledgement of arrival that it asks for did not come", True
    return f"{to} has {has} it; it asks for no acknowledgement that would tell more", False


def _delivered(known: Known, message: Attributes) -> str:
    reads = [event for event in known.events if event.what in _HANDED and not event.doubt]
    last = reads[-1] if reads else None
    if last is not None and last.what is What.TAKEN_IN_TRANSACTION:
        return f"it is in its queue; {last.dst} has received it in a transaction whose outcome is not seen"
    if last is not None and last.what is What.HANDED_OUT:
        return f"it is in its queue; it was handed out to {last.dst}, who has not accepted it in the capture"
    if last is not None:
        return f"it is in its queue; {last.dst} was handed it, and gave it back"
    if message.ack_flags & _POSITIVE_RECEIVE and message.admin_queue is not None:
        return "it is in its queue; no acknowledgement that it was read came in the capture"
    return "it is in its queue; it asks for no acknowledgement that would tell whether it was read"


def _read_from(events: tuple[FateEvent, ...]) -> str:
    reads = [event for event in events if event.what in (What.HANDED_OUT, What.PEEKED) and not event.doubt]
    return reads[-1].detail if reads else ""


def _deadline(known: Known, message: Attributes, *, stuck: bool) -> Iterator[str]:
    """Say whether the time of a message was over before the capture has last to do with it.

    One that nothing is missing of may have reached its queue in time.
    """
    times = [event.time_ns for event in known.events if event.time_ns is not None]
    limits = [(message.time_to_be_received, "to be received")]
    if stuck or known.state is State.SENT:
        limits.insert(0, (message.time_to_reach_queue, "to reach its queue"))
    for limit, name in limits:
        if limit is None or message.sent_time is None or not times:
            continue
        if (message.sent_time + limit) * _SECOND < max(times):
            yield f"its time {name}, {limit} s, was over by then"
            return


def _not_believed(events: tuple[FateEvent, ...]) -> Iterator[str]:
    doubted = [event for event in events if event.doubt]
    if doubted:
        last = doubted[-1]
        name = f"MQMSG_CLASS_{last.message_class}" if last.message_class else f"an event ({last.what})"
        more = f", and {len(doubted) - 1} more" if len(doubted) > 1 else ""
        yield f"not believed: {name}{more}, as {last.doubt}"
