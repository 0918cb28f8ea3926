"""The third stage: all that is said of a message, folded into one fate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msmqwire.analysis.fate.acknowledging import ACKNOWLEDGING
from msmqwire.analysis.fate.hops import SENDINGS, Route
from msmqwire.analysis.fate.judging import judge, judge_of_hop
from msmqwire.analysis.fate.model import EVENTS_MAX, EventKind, MessageFate
from msmqwire.analysis.fate.observations import Attributes, Observation, split_identity

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
    """

    __slots__ = ("_way", "attributes", "hops", "observations", "omitted", "retransmissions")

    def __init__(self) -> None:
        self.attributes: Attributes | None = None
        self.observations: list[Observation] = []
        self.omitted = 0
        self.retransmissions = 0
        self.hops = 0
        self._way: Route | None = None

    @property
    def _is_sent_once(self) -> bool:
        """Whether its first event is its only sending, so that its way is not noted elsewhere."""
        return self._way is None and bool(self.observations) and self.observations[0].what is EventKind.SENT

    @property
    def way(self) -> Route:
        """Its hops."""
        way = self._way
        if way is None:
            way = Route()
            if self._is_sent_once and self.attributes is not None:
                way.add(self.observations[0], self.attributes)
            self._way = way
        return way

    @property
    def sender(self) -> str:
        """The address that it was seen to be sent from first; empty if it was not."""
        if self._is_sent_once:
            return self.observations[0].where.src
        return self.way.senders[0] if self.way.senders else ""

    def forget(self) -> None:
        """Keep no observations: nobody asks for them. Its way tells it from others with its identity."""
        self._way = self.way
        self.observations.clear()

    def add(self, observation: Observation) -> None:
        """Take the next observation."""
        attributes = observation.message
        if attributes is not None:
            if self.attributes is None:
                self.attributes = attributes
                if observation.what is EventKind.SENT and not self.observations and self._way is None:
                    self.observations.append(observation)
                    return
            if observation.what is EventKind.SENT:
                observation = self._sent(observation, attributes)
        observations = self.observations
        if len(observations) >= _REPEATED_MAX or observation.what in _ONCE:
            is_new = self._is_new(observation)
            if observation.what in _ONCE and not is_new:
                return
            if len(observations) >= EVENTS_MAX or not is_new:
                self.omitted += 1
                return
        if attributes is not None or observation.key:  # these are held once for the message
            observation = observation._replace(key="", message=None)
        observations.append(observation)

    def _is_new(self, observation: Observation) -> bool:
        """Whether nothing of this kind was seen."""
        kind = _kind(observation)
        return all(_kind(seen) != kind for seen in self.observations)

    def _sent(self, observation: Observation, attributes: Attributes) -> Observation:
        """Classify a sending: the first one, a resend, or a forwarding by an earlier receiver."""
        way, what, detail = self.way, EventKind.SENT, ""
        if not way.is_empty:
            what, detail = _later_sending(way, observation.where.src, attributes)
        self.retransmissions += what is EventKind.SENT_AGAIN
        self.hops += what is EventKind.FORWARDED
        way.add(observation, attributes)
        return observation._replace(what=what, detail=detail)

    def fate(self, key: str, *, complete: bool, namesakes: Sequence[Message] = ()) -> MessageFate:
        """Return its fate; `namesakes` are other messages with its identity."""
        source_qm, message_id = split_identity(key)
        observations, attributes, judgement = self.observations, self.attributes, None
        if not _are_in_order(observations):
            observations = sorted(observations, key=lambda observation: observation.where.position)
        if attributes is not None and not namesakes and self._is_sent_once:
            judgement = judge_of_hop(attributes, observations)
        if judgement is None:
            others = [other.outline() for other in namesakes]
            judgement = judge(source_qm, attributes, self.way, observations, self.retransmissions, others)
        own = _UNSEEN if attributes is None else attributes
        return MessageFate(  # in their order: there is one for each message
            key,
            source_qm,
            message_id,
            own.label,
            own.destination,
            own.admin_queue,
            own.transport,
            own.class_name,
            own.body_size,
            None if attributes is None else own.recoverable,
            None if attributes is None else own.transactional,
            own.sent_time,
            judgement.sent_ns,
            judgement.events,
            self.omitted,
            self.retransmissions,
            self.hops,
            judgement.state,
            judgement.reason,
            judgement.explanation,
            judgement.stuck,
            judgement.latencies,
            complete,
            judgement.missing,
            self.sender,
            judgement.findings,
        )

    def outline(self) -> str:
        """Return its difference to other messages with its identity, in words."""
        attributes, first = self.attributes, self.observations[0].where if self.observations else None
        words = [] if attributes is None or not attributes.label else [f'"{attributes.label}"']
        if attributes is not None and attributes.destination is not None:
            words.append(f"to {attributes.destination}")
        if self.sender:
            words.append(f"from {self.sender}")
        if first is not None and first.frame is not None:
            words.append(f"(frame {first.frame})")
        return " ".join(words) or "of which nothing is known"

    def may_be(self, attributes: Attributes) -> bool:
        """Whether a message that is seen may be this one: nothing differs that stays on a message's way.

        Routers change addresses, hop count and format names, never these. Another
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


_UNSEEN: Final = Attributes(
    None, None, None, None, "", 0, "", None, False, False, 0, False, None, None, None, 0, None
)
"""In place of the attributes of a message that was not seen."""


def _later_sending(way: Route, src: str, attributes: Attributes) -> tuple[EventKind, str]:
    """Classify a sending that is not the first one; return the detail of its event, too."""
    if src in way.senders:
        if attributes.destination == way.destination:
            return EventKind.SENT_AGAIN, ""
        return EventKind.SENT, f"a copy to {attributes.destination}"
    if src in way.receivers or attributes.hop_count > way.hop_count:
        return EventKind.FORWARDED, ""
    return EventKind.SENT_AGAIN, "from another address"


def _are_in_order(observations: Sequence[Observation]) -> bool:
    last = -1
    for observation in observations:
        position = observation.where.position
        if position < last:
            return False
        last = position
    return True


def _kind(observation: Observation) -> tuple[EventKind, int | None, str]:
    return observation.what, observation.message_class, observation.where.src


class Namesakes:
    """The messages of one identity: one, unless two queue managers have the same GUID, or one counts anew.

    Attributes:
        messages: in the order in which they were seen first.
    """

    __slots__ = ("messages",)

    def __init__(self, first: Message | None = None) -> None:
        self.messages = [first or Message()]

    def add(self, observation: Observation) -> None:
        """Take the next observation."""
        self.about(observation).add(observation)

    def about(self, observation: Observation) -> Message:
        """Return the message that an observation is about, a new one if it is none of them."""
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
