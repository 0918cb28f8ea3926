"""The state that all rules of one queue manager share: the model, the time, changes and effects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol
from uuid import UUID

from msmqwire.qm.model.changes import Changes
from msmqwire.qm.model.effects import Effect
from msmqwire.qm.model.elements import OutgoingQueue, Queue, QueueManager
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.model.settings import Settings
from msmqwire.qm.model.timers import Timers


class Subscriber(Protocol):
    """The events on messages and queues that a protocol receives: [MS-MQDMPR] 3.1.7.2."""

    def message_position_available(self, queue: Queue, position: MessagePosition) -> None:
        """[MS-MQDMPR] 3.1.7.2.2."""

    def message_position_deleted(self, queue: Queue, position: MessagePosition, reason: int) -> None:
        """[MS-MQDMPR] 3.1.7.2.1. The position still has its message."""

    def queue_paused(self, queue: OutgoingQueue) -> None:
        """[MS-MQDMPR] 3.1.7.2.3."""

    def queue_resumed(self, queue: OutgoingQueue) -> None:
        """[MS-MQDMPR] 3.1.7.2.4."""

    def send_user_message(self, position: MessagePosition, protocol_data: object) -> None:
        """Send User Message Wrapper, raised by Dispatch Send Message: [MS-MQDMPR] 3.1.7.3.9."""


class Context:
    """The state of a queue manager on which its rules operate.

    Attributes:
        queue_manager: LocalQueueManager.
        settings: set by the administrator.
        timers: all timers; their `now` is the time since the system started.
        utc: seconds since 1970-01-01 UTC.
        changes: rows that have changed since the owner took them.
        effects: to be carried out once these changes are durable.
        subscribers: the protocols beside the core.
        new_guid: returns a new, globally unique GUID.
    """

    def __init__(self, queue_manager: QueueManager, settings: Settings, new_guid: Callable[[], UUID]) -> None:
        self.queue_manager, self.settings, self.new_guid = queue_manager, settings, new_guid
        self.timers = Timers()
        self.utc = 0
        self.changes = Changes()
        self.effects: list[Effect] = []
        self.subscribers: list[Subscriber] = []

    @property
    def now(self) -> int:
        """Milliseconds since the system started."""
        return self.timers.now

    def take(self) -> tuple[Changes, list[Effect]]:
        """Return the changes and effects since the last call."""
        taken = self.changes, self.effects
        self.changes, self.effects = Changes(), []
        return taken
