"""The hops of a message on its way: where it was sent from and to, and how far the last one got."""

from __future__ import annotations

from typing import Final, TypeVar

from msmqwire.analysis.fate.model import EventKind, State
from msmqwire.analysis.fate.observations import Attributes, Observation

ADDRESSES_MAX: Final = 32
"""Addresses of a message's way that are remembered, on each side, and of queue managers."""
BAD_REQUEST: Final = "HTTP status 400"  # it is not sent again: SRMP-3.1.7.2.5-05
SENDINGS: Final = frozenset({EventKind.SENT, EventKind.SENT_AGAIN, EventKind.FORWARDED})
REACHED_BY_HOP: Final = {
    EventKind.RECEIVED: State.RECEIVED,
    EventKind.ACCEPTED: State.RECEIVED,
    EventKind.STORED: State.STORED,
}
"""Events that are known of one hop only."""
RANK: Final = {
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
        if self.is_empty:
            self.destination = attributes.destination
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
        return outcome.what is EventKind.NOT_ACCEPTED and outcome.detail == BAD_REQUEST

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
        elif what in REACHED_BY_HOP and RANK[REACHED_BY_HOP[what]] > RANK[self._reached]:
            self._reached, self._event = REACHED_BY_HOP[what], event
