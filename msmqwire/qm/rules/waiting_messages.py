"""Messages that wait in outgoing queues until their time is over."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

from msmqwire.qm.model.context import Context
from msmqwire.qm.model.enumerations import INFINITE
from msmqwire.qm.model.message import Message
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.model.timers import Timer

_MOVES_MIN: Final = 16


class Waiting(Protocol):
    """A message to be transferred.

    Attributes:
        position: its position in the outgoing queue. is_done: whether it needs no transfer any more.
    """

    position: MessagePosition

    @property
    def is_done(self) -> bool: ...


W = TypeVar("W", bound=Waiting)


class WaitingMessages(Generic[W]):
    """Calls back when the time of a message is over, even if nothing can be sent.

    Args:
        context: the state of the queue manager.
        protocol: the protocol that transfers them.
        over: called with each message whose time is over.
    """

    def __init__(self, context: Context, protocol: str, over: Callable[[W, Message], None]) -> None:
        self._context, self._protocol, self._over = context, protocol, over
        self._expiring: list[tuple[int, int, W]] = []  # by milliseconds since start-up
        self._moves = 0

    def watch(self, outgoing: W, message: Message, limit: int) -> None:
        """Watch a message whose time is over `limit` seconds after it was sent; `INFINITE` for never."""
        if limit == INFINITE:
            return
        context = self._context
        left = (message.sent_time or context.utc) + limit - context.utc
        due = context.now + (left + 1) * 1000
        self.moved()
        heapq.heappush(self._expiring, (due, outgoing.position.number, outgoing))
        if self._expiring[0][2] is outgoing:
            self._await_next()

    def moved(self) -> None:
        """Drop entries of messages that are done: the end of their time may be days away.

        Called for each message that is added or sent, so that the cost is spread over them.
        """
        expiring = self._expiring
        self._moves += 1
        if self._moves > max(len(expiring) // 2, _MOVES_MIN):
            self._moves = 0
            expiring[:] = [entry for entry in expiring if not entry[2].is_done]
            heapq.heapify(expiring)

    def _await_next(self) -> None:
        expiring = self._expiring
        while expiring and expiring[0][2].is_done:
            heapq.heappop(expiring)
        if expiring:
            delay = expiring[0][0] - self._context.now
            self._context.timers.start(Timer.TIME_TO_REACH_QUEUE, self._protocol, delay, self._expire)

    def _expire(self) -> None:
        expiring = self._expiring
        while expiring and expiring[0][0] <= self._context.now:
            outgoing = heapq.heappop(expiring)[2]
            if not outgoing.is_done:
                self._over(outgoing, outgoing.position.message)
        self._await_next()


def time_limit(message: Message) -> int:
    """Return the seconds after which it is too late to receive a message.

    TimeToBeReceived counts here too.
    """
    return min(message.time_to_reach_queue, message.time_to_be_received)


def is_over(message: Message, limit: int, utc: int) -> bool:
    """Return whether a number of seconds has passed since a message was sent."""
    return limit != INFINITE and utc - message.sent_time > limit
