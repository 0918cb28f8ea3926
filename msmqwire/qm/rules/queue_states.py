"""Outgoing queues paused and resumed, flow control, and a computer taken offline."""

from __future__ import annotations

from typing import Final

from msmqwire.names import DirectName, FormatName
from msmqwire.qm.model.context import Context
from msmqwire.qm.model.elements import OutgoingQueue
from msmqwire.qm.model.enumerations import OutgoingQueueState
from msmqwire.qm.rules import stored_rows

HTTP: Final = ("HTTP", "HTTPS")


def is_http(name: FormatName | None) -> bool:
    """Whether a name is a direct format name for HTTP or HTTPS."""
    return isinstance(name, DirectName) and name.protocol in HTTP


class QueueStates:
    """The events on the states of queues, and of the queue manager as a whole."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def announce_groups(self) -> None:
        """Notify the owner of the groups that queues listen to."""
        raise NotImplementedError

    def pause(self, queue: OutgoingQueue) -> None:
        """Pause Queue: [MS-MQDMPR] 3.1.4.14 and 3.1.7.2.3."""
        for subscriber in self._context.subscribers:
            subscriber.queue_paused(queue)
        queue.state = OutgoingQueueState.ON_HOLD  # DMPR-3.1.4.14-01, DMPR-3.1.7.2.3-01
        stored_rows.put_queue(self._context.changes, queue)

    def resume(self, queue: OutgoingQueue) -> None:
        """Resume Queue: [MS-MQDMPR] 3.1.4.15 and 3.1.7.2.4."""
        # With hardened security a queue that does not use HTTP becomes Locked: DMPR-3.1.7.2.4-01
        locked = self._context.queue_manager.hardened_security and not is_http(queue.destination)
        # DMPR-3.1.4.15-01, DMPR-3.1.7.2.4-01
        queue.state = OutgoingQueueState.LOCKED if locked else OutgoingQueueState.INACTIVE
        stored_rows.put_queue(self._context.changes, queue)
        for subscriber in self._context.subscribers:
            subscriber.queue_resumed(queue)

    def begin_flow_control(self) -> None:
        """Begin Flow Control: [MS-MQDMPR] 3.1.7.2.5. No new message is enqueued until it ends."""
        self._context.queue_manager.throttled = True  # DMPR-3.1.7.2.5-01

    def end_flow_control(self) -> None:
        """End Flow Control: [MS-MQDMPR] 3.1.7.2.6."""
        self._context.queue_manager.throttled = False  # DMPR-3.1.7.2.6-01

    def take_offline(self) -> None:
        """Take Offline: [MS-MQDMPR] 3.1.4.12."""
        manager = self._context.queue_manager
        if manager.connection_active:
            manager.connection_active = False  # DMPR-3.1.4.12-01
            for subscriber in self._context.subscribers:
                subscriber.taken_offline()  # MQMR-3.1.4.2-15
            self.announce_groups()

    def bring_online(self) -> None:
        """Bring Online: [MS-MQDMPR] 3.1.4.13."""
        manager = self._context.queue_manager
        if not manager.connection_active:
            manager.connection_active = True  # DMPR-3.1.4.13-01
            self.announce_groups()
            for subscriber in self._context.subscribers:
                subscriber.brought_online()  # MQMR-3.1.4.2-14
