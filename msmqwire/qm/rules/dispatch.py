"""Messages waiting to be sent, highest priority first: [MS-MQDMPR] 3.1.7.1.28, .29, .34 and 3.1.7.3.9."""

from __future__ import annotations

import heapq
from typing import Final

from msmqwire.qm.model.context import Context
from msmqwire.qm.model.elements import DispatchEntry, OutgoingQueue
from msmqwire.qm.model.enumerations import PositionState
from msmqwire.qm.model.positions import MessagePosition

_DELETED: Final = PositionState.DELETED


class Dispatch:
    """DispatchCollection.

    A message is passed to the subscriber that owns its protocol, which sends it and returns; messages added
    meanwhile wait their turn.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._entries: dict[MessagePosition, DispatchEntry] = {}
        self._order: list[tuple[int, int, DispatchEntry]] = []
        self._count = 0
        self._sending = False

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, position: MessagePosition, data: object, message_priority: int) -> None:
        """Add Message To Dispatch Collection: [MS-MQDMPR] 3.1.7.1.28."""
        priority = position.queue.base_priority + message_priority  # DMPR-3.1.7.1.28-02, DMPR-3.1.1.18-03
        entry = DispatchEntry(position, data, priority)
        self._entries[position] = entry  # DMPR-3.1.7.1.28-01, DMPR-3.1.1.1-50, DMPR-3.1.1.18-01
        self._count += 1
        heapq.heappush(self._order, (-priority, self._count, entry))  # DMPR-3.1.7.3.9-05, DMPR-3.1.1.18-03
        self.send()  # DMPR-3.1.7.1.28-03

    def remove(self, position: MessagePosition) -> None:
        """Remove Message From Dispatch Collection: [MS-MQDMPR] 3.1.7.1.29."""
        self._entries.pop(position, None)
        self.send()  # DMPR-3.1.7.1.29-01

    def remove_queue(self, queue: OutgoingQueue) -> None:
        """Remove Messages From Dispatch Collection By Queue: [MS-MQDMPR] 3.1.7.1.34."""
        for position in [waiting for waiting in self._entries if waiting.queue is queue]:
            del self._entries[position]  # DMPR-3.1.7.1.34-01

    def send(self) -> None:
        """Dispatch Send Message: [MS-MQDMPR] 3.1.7.3.9, until no message is left that can be sent."""
        if self._sending:  # DMPR-3.1.7.3.9-01
            return
        self._sending = True
        order = self._order
        while order:
            entry = heapq.heappop(order)[2]
            position = entry.position
            if self._entries.get(position) is not entry:
                continue
            if position.state is _DELETED or not position.queue.active:  # DMPR-3.1.7.3.9-02
                del self._entries[position]
                continue
            entry.send_in_progress = True  # DMPR-3.1.1.1-50, DMPR-3.1.1.18-04
            for subscriber in self._context.subscribers:
                # DMPR-3.1.1.18-01 and -02
                subscriber.send_user_message(position, entry.protocol_data)  # DMPR-3.1.7.3.9-03 and -04
            entry.send_in_progress = False
            if self._entries.get(position) is entry:
                del self._entries[position]
        self._sending = False
