"""The order in which messages that wait for a session are sent."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Final

from msmqwire.qm.model.enumerations import OutgoingQueueState
from msmqwire.qm.protocols.binary.states import SessionMessageState

if TYPE_CHECKING:
    from msmqwire.qm.protocols.binary.transfer import OutgoingMessagePosition, SessionTransfer

_SLACK: Final = 16

_Entry = tuple[int, int, int, "OutgoingMessagePosition"]


class SendOrder:
    """The transfers with messages to send over a session, the most urgent message first.

    A session may serve thousands of transfers, which are not searched for each message: only the first
    message of each is entered, in a heap, and later changes are found when it is taken out.
    """

    def __init__(self) -> None:
        self._heap: list[_Entry] = []
        self._entered: dict[SessionTransfer, OutgoingMessagePosition] = {}
        self._count = 0

    def add(self, message: OutgoingMessagePosition) -> None:
        """Enter a message that will be sent last of its priority."""
        entered = self._entered.get(message.transfer)
        if entered is None or message.priority > entered.priority:
            self._enter(message)

    def enter(self, transfer: SessionTransfer) -> None:
        """Enter a transfer whose first message may have changed."""
        first = transfer.next_waiting()
        if first is not None and self._entered.get(transfer) is not first:
            self._enter(first)

    def _enter(self, first: OutgoingMessagePosition) -> None:
        self._entered[first.transfer] = first
        if len(self._heap) > 2 * len(self._entered) + _SLACK:
            self._heap = [self._entry(message) for message in self._entered.values()]
            heapq.heapify(self._heap)
        else:
            heapq.heappush(self._heap, self._entry(first))

    def _entry(self, message: OutgoingMessagePosition) -> _Entry:
        """Return the entry of a message: the more urgent one sorts first, then the older one."""
        self._count += 1
        urgency = message.transfer.queue.base_priority + message.priority
        return -urgency, message.position.number, self._count, message

    def first(self) -> OutgoingMessagePosition | None:
        """Return the message to be sent next, which stays entered."""
        while self._heap:
            message = self._heap[0][-1]
            transfer = message.transfer
            is_entered = self._entered.get(transfer) is message
            is_served = transfer.session is not None and transfer.session.send_order is self
            is_connected = is_served and transfer.queue.state is OutgoingQueueState.CONNECTED
            if is_entered and is_connected and message.state is SessionMessageState.WAITING_TO_SEND:
                return message
            heapq.heappop(self._heap)
            if is_entered:
                del self._entered[transfer]
                if is_connected:
                    self.enter(transfer)
        return None
