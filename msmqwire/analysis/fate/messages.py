"""The third stage: all that is said of a message, folded into one fate."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Final

from msmqwire.analysis.fate.connections import ACKNOWLEDGING
from msmqwire.analysis.fate.judging import SENDINGS, Route, judge
from msmqwire.analysis.fate.model import EVENTS_MAX, EventKind, MessageFate
from msmqwire.analysis.fate.observations import Attributes, Observation, split_identity

HELD_MAX: Final = 1 << 20
"""Messages and events that are held; of more, the message that was silent longest gets its fate now."""
_REPEATED_MAX: Final = EVENTS_MAX // 2
"""Events of a message after which only those of a new kind are kept."""
NAMESAKES_MAX: Final = 16
"""Messages of one identity that have fates of their own; events of further ones count for the last."""
_SHOWN: Final = SENDINGS | {EventKind.HANDED_OUT, EventKind.PEEKED}
"""Observations that show the message itself."""
_ONCE: Final = frozenset({EventKind.ORDER_ACK, EventKind.STREAM_RECEIPT})
"""Observations that are repeated, as each is about all messages up to a number."""


class Message:
    """State of one message.

    Attributes:
        attributes: its own attributes; None while it was not seen.
        observations: its observations.
        omitted: observations that are not kept.
        retransmissions, hops: the number of times it was sent again, and passed on.
        way: its hops.
    """

    __slots__ = ("attributes", "hops", "observations", "omitted", "retransmissions", "way")

    def __init__(self) -> None:
        self.attributes: Attributes | None = None
        self.observations: list[Observation] = []
        self.omitted = 0
        self.retransmissions = 0
        self.hops = 0
        self.way = Route()

    def add(self, observation: Observation) -> bool:
        """Take the next observation; return whether it is kept."""
        attributes = observation.message
        if attributes is not None:
            if observation.what is EventKind.SENT:
                observation = self._sent(observation, attributes)
            if self.attributes is None:
                self.attributes = attributes
        count = len(self.observations)
        if observation.what in _ONCE and not self._is_new(observation):
            return False
        if count >= EVENTS_MAX or (count >= _REPEATED_MAX and not self._is_new(observation)):
            self.omitted += 1
            return False
        self.observations.append(observation._replace(key="", message=None))
        return True

    def _is_new(self, observation: Observation) -> bool:
        """Whether nothing of this kind was seen."""
        kind = _kind(observation)
        return all(_kind(seen) != kind for seen in self.observations)

    def _sent(self, observation: Observation, attributes: Attributes) -> Observation:
        """Classify a sending: the first one, a resend, or a forwarding by an earlier receiver."""
        src, way = observation.where.src, self.way
        what, detail = EventKind.SENT, ""
        if way.is_empty:
            way.destination = attributes.destination
        elif src in way.senders:
            if attributes.destination == way.destination:
                what = EventKind.SENT_AGAIN
            else:
                detail = f"a copy to {attributes.destination}"
        elif src in way.receivers or attributes.hop_count > way.hop_count:
            what = EventKind.FORWARDED
        else:
            what, detail = EventKind.SENT_AGAIN, "from another address"
        self.retransmissions += what is EventKind.SENT_AGAIN
        self.hops += what is EventKind.FORWARDED
        way.add(observation, attributes)
        return observation._replace(what=what, detail=detail)

    def fate(self, key: str, *, complete: bool, namesakes: Sequence[Message] = ()) -> MessageFate:
        """Return its fate; `namesakes` are other messages with its identity."""
        source_qm, message_id = split_identity(key)
        observations = sorted(self.observations, key=lambda observation: observation.where.position)
        others = [other.outline() for other in namesakes]
        judgement = judge(source_qm, self.attributes, self.way, observations, self.retransmissions, others)
        attributes = self.attributes
        return MessageFate(
            identity=key,
            source_qm=source_qm,
            message_id=message_id,
            label=None if attributes is None else attributes.label,
            destination=None if attributes is None else attributes.destination,
            admin_queue=None if attributes is None else attributes.admin_queue,
            transport="" if attributes is None else attributes.transport,
            message_class="" if attributes is None else attributes.class_name,
            body_size=None if attributes is None else attributes.body_size,
            recoverable=None if attributes is None else attributes.recoverable,
            transactional=None if attributes is None else attributes.transactional,
            sent_time=None if attributes is None else attributes.sent_time,
            sent_ns=judgement.sent_ns,
            events=judgement.events,
            events_omitted=self.omitted,
            retransmissions=self.retransmissions,
            hops=self.hops,
            state=judgement.state,
            reason=judgement.reason,
            explanation=judgement.explanation,
            stuck=judgement.stuck,
            latencies=judgement.latencies,
            complete=complete,
            missing=judgement.missing.value,
            sender=self.way.senders[0] if self.way.senders else "",
            findings=judgement.findings,
        )

    def outline(self) -> str:
        """Return its difference to other messages with its identity, in words."""
        attributes, first = self.attributes, self.observations[0].where if self.observations else None
        words = [] if attributes is None or not attributes.label else [f'"{attributes.label}"']
        if attributes is not None and attributes.destination is not None:
            words.append(f"to {attributes.destination}")
        if self.way.senders:
            words.append(f"from {self.way.senders[0]}")
        if first is not None and first.frame is not None:
            words.append(f"(frame {first.frame})")
        return " ".join(words) or "of which nothing is known"

    def may_be(self, attributes: Attributes) -> bool:
        """Whether a message that is seen may be this one: nothing differs that stays on a message's way.

        Routers change addresses, hop count and format names, never these: DMPR-3.1.7.1.32-40. Another
        transport has the body in another form.
        """
        own = self.attributes
        if own is None:
            return True
        pairs: list[tuple[object, object]]
        if own.transport == attributes.transport:
            same = (own.label, own.body_size) == (attributes.label, attributes.body_size)
            pairs = [(own.beginning, attributes.beginning)]
        else:
            same, pairs = True, [(own.label, attributes.label)]
        pairs += [(own.sent_time, attributes.sent_time), (own.message_class, attributes.message_class)]
        return same and all(one is None or other is None or one == other for one, other in pairs)

    def has_stream(self, stream: int | None) -> bool:
        """Whether it was sent, or read, on a connection."""
        return any(seen.where.stream == stream for seen in self.observations if seen.what in _SHOWN)

    @property
    def is_acknowledgement(self) -> bool:
        """Whether it is itself an acknowledgement of another one."""
        return self.attributes is not None and self.attributes.message_class in ACKNOWLEDGING


def _kind(observation: Observation) -> tuple[EventKind, int | None, str]:
    return observation.what, observation.message_class, observation.where.src


class Namesakes:
    """The messages of one identity: one, unless two queue managers have the same GUID, or one counts anew.

    Attributes:
        messages: in the order in which they were seen first.
    """

    __slots__ = ("messages",)

    def __init__(self) -> None:
        self.messages = [Message()]

    @property
    def size(self) -> int:
        """The number of messages, and of their events, that are held."""
        return sum(1 + len(message.observations) for message in self.messages)

    def add(self, observation: Observation) -> Message:
        """Take the next observation; return the message that it is about."""
        message = self._about(observation)
        message.add(observation)
        return message

    def _about(self, observation: Observation) -> Message:
        messages = self.messages
        if observation.message is None:
            return messages[0] if len(messages) == 1 else self._on_its_way(observation)
        for message in messages:
            if message.may_be(observation.message):
                return message
        if len(messages) < NAMESAKES_MAX:
            messages.append(Message())
        return messages[-1]

    def _on_its_way(self, observation: Observation) -> Message:
        """Return the message that something is about by where it was seen: a connection, then addresses."""
        where = observation.where

        def fit(message: Message) -> tuple[bool, bool, bool]:
            way = message.way
            return message.has_stream(where.stream), where.dst in way.senders, where.src in way.receivers

        return max(reversed(self.messages), key=fit)

    def fate(self, message: Message, key: str, *, complete: bool = True) -> MessageFate:
        """Return the fate of one of them."""
        others = [other for other in self.messages if other is not message and other.observations]
        return message.fate(key, complete=complete, namesakes=others)


class Messages:
    """All messages of a capture.

    Args:
        acknowledgements: whether acknowledgement messages have fates of their own.
        held_max: messages and events of them that are held at a time.
    """

    def __init__(self, *, acknowledgements: bool = False, held_max: int = HELD_MAX) -> None:
        self._messages: OrderedDict[str, Namesakes] = OrderedDict()
        self._acknowledgements, self._held_max = acknowledgements, held_max
        self._held = 0

    def feed(self, observation: Observation) -> Iterator[MessageFate]:
        """Take the next observation; yield the fates of messages for which there is no room any more."""
        namesakes = self._messages.get(observation.key)
        if namesakes is None:
            namesakes = self._messages[observation.key] = Namesakes()
        else:
            self._held -= namesakes.size
            self._messages.move_to_end(observation.key)
        message = namesakes.add(observation)
        if message.is_acknowledgement and not self._acknowledgements:  # nobody asks for more
            message.observations.clear()
        self._held += namesakes.size
        while self._held > self._held_max:
            key, namesakes = self._messages.popitem(last=False)
            self._held -= namesakes.size
            for message in namesakes.messages:
                if self._is_asked_for(message):
                    yield namesakes.fate(message, key, complete=False)

    def _is_asked_for(self, message: Message) -> bool:
        return self._acknowledgements or not message.is_acknowledgement

    def end(self) -> Iterator[MessageFate]:
        """Yield the fates of all messages, in the order in which they were seen first."""
        seen = [
            (message.observations[0].where.position, number, key)
            for key, namesakes in self._messages.items()
            for number, message in enumerate(namesakes.messages)
            if message.observations and self._is_asked_for(message)
        ]
        seen.sort(key=itemgetter(0))
        left = Counter(key for _, _, key in seen)
        for _, number, key in seen:
            namesakes = self._messages[key]
            yield namesakes.fate(namesakes.messages[number], key)
            left[key] -= 1
            if not left[key]:
                del self._messages[key]
