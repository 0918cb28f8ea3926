"""Deliveries: messages that programs have, and give back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msmqwire.qm.model.hand_outs import HandOuts
from msmqwire.qm.model.positions import MessagePosition, MoveHistory

if TYPE_CHECKING:
    from msmqwire.qm.rules.messages import MessageEvents


class Deliveries:
    """Counts the deliveries of messages: a program had them, and did not end them.

    Attributes:
        hand_outs: the messages that programs have.
        at_limit: called with each message that has one delivery more; returns whether it has moved it away.
    """

    def __init__(self, messages: MessageEvents, hand_outs: HandOuts) -> None:
        self._messages, self.hand_outs = messages, hand_outs
        self.ended = hand_outs.ended
        self.at_limit: Callable[[MessagePosition], bool] | None = None

    def handed_out(self, position: MessagePosition) -> None:
        """Note that a program has received a message: its return is one delivery more."""
        deliveries = position.history.deliveries + 1
        self.hand_outs.note(position.lookup_identifier, deliveries, lasting=position.recoverable)

    def given_back(self, position: MessagePosition) -> None:
        """Return a message to its queue after an aborted read or move.

        It is one delivery more if a program had it.
        """
        history = position.history.aborted()
        if self.ended(position.lookup_identifier):
            self._count(position, history.delivered())
        else:
            position.remember(history)
            self._messages.position_available(position.queue, position)

    def left_by_end(self, position: MessagePosition, deliveries: int) -> None:
        """Return a message that a program had when the last process ended, with its count of deliveries."""
        self._count(position, position.history._replace(deliveries=deliveries))

    def _count(self, position: MessagePosition, history: MoveHistory) -> None:
        position.remember(history)
        if self.at_limit is None or not self.at_limit(position):
            self._messages.position_available(position.queue, position)
