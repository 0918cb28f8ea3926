"""The third stage: all that is said of a message, folded into one fate."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

from msmqwire.fate.connections import ACKNOWLEDGING
from msmqwire.fate.judging import Way, judge
from msmqwire.fate.model import EVENTS_MAX, MessageFate, What
from msmqwire.fate.observations import Attributes, Observation, split_identity

HELD_MAX: Final = 1 << 20
"""Messages and events that are held; of more, the message that was silent longest gets its fate now."""
_REPEATED_MAX: Final = EVENTS_MAX // 2
"""Events of a message after which only those of a new kind are kept."""
_ONCE: Final = frozenset({What.ORDER_ACK, What.STREAM_RECEIPT})
"""What is told again and again, as it is about all messages up to a number."""


class Message:
    """What is known of one message.

    Attributes:
        attributes: what it says of itself; None while it was not seen.
        observations: what was seen.
        omitted: observations that are not kept.
        retransmissions, hops: how often it was sent again, and passed on.
        way: where it went.
    """

    __slots__ = ("attributes", "hops", "observations", "omitted", "retransmissions", "way")

    def __init__(self) -> None:
        self.attributes: Attributes | None = None
        self.observations: list[Observation] = []
        self.omitted = 0
        self.retransmissions = 0
        self.hops = 0
        self.way = Way()

    def add(self, observation: Observation) -> bool:
        """Take the next observation; return whether it is kept."""
        attributes = observation.message
        if attributes is not None:
            if observation.what is What.SENT:
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
        """Tell what a sending is: the first one, one more, or by who has got it before."""
        src, way = observation.where.src, self.way
        what, detail = What.SENT, ""
        if way.is_empty:
            way.destination = attributes.destination
        elif src in way.senders:
            if attributes.destination == way.destination:
                what = What.SENT_AGAIN
            else:
                detail = f"a copy to {attributes.destination}"
        elif src in way.receivers or attributes.hop_count > way.hop_count:
            what = What.FORWARDED
        else:
            what, detail = What.SENT_AGAIN, "from another address"
        self.retransmissions += what is What.SENT_AGAIN
        self.hops += what is What.FORWARDED
        way.add(observation, attributes)
        return observation._replace(what=what, detail=detail)

    def fate(self, key: str, *, complete: bool) -> MessageFate:
        """Return what became of it."""
        source_qm, message_id = split_identity(key)
        observations = sorted(self.observations, key=lambda observation: observation.where.position)
        judgement = judge(source_qm, self.attributes, self.way, observations, self.retransmissions)
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
        )

    @property
    def is_acknowledgement(self) -> bool:
        """Whether it is itself an acknowledgement of another one."""
        return self.attributes is not None and self.attributes.message_class in ACKNOWLEDGING


def _kind(observation: Observation) -> tuple[What, int | None, str]:
    return observation.what, observation.message_class, observation.where.src


class Messages:
    """All messages of a capture.

    Args:
        acknowledgements: whether messages that acknowledge others have fates of their own.
        held_max: messages and events that are held at a time.
    """

    def __init__(self, *, acknowledgements: bool = False, held_max: int = HELD_MAX) -> None:
        self._messages: OrderedDict[str, Message] = OrderedDict()
        self._acknowledgements, self._held_max = acknowledgements, held_max
        self._held = 0

    def feed(self, observation: Observation) -> Iterator[MessageFate]:
        """Take the next observation; yield the fates of messages for which there is no room any more."""
        message = self._messages.get(observation.key)
        if message is None:
            message = self._messages[observation.key] = Message()
            self._held += 1
        else:
            self._messages.move_to_end(observation.key)
        self._held += message.add(observation)
        if message.is_acknowledgement and not self._acknowledgements:  # nobody asks for more
            self._held -= len(message.observations)
            message.observations.clear()
        while self._held > self._held_max:
            yield from self._end(next(iter(self._messages)), complete=False)

    def _end(self, key: str, *, complete: bool) -> Iterator[MessageFate]:
        message = self._messages.pop(key)
        self._held -= 1 + len(message.observations)
        if self._acknowledgements or not message.is_acknowledgement:
            yield message.fate(key, complete=complete)

    def end(self) -> Iterator[MessageFate]:
        """Yield the fates of all messages, in the order in which they were seen first."""
        first = {
            key: message.observations[0].where.position
            for key, message in self._messages.items()
            if message.observations
        }
        for key in sorted(first, key=lambda key: first[key]):
            yield from self._end(key, complete=True)
