"""A subscriber that records the core's message and queue events."""

from __future__ import annotations

from typing import Any

from msmqwire.qm.model.elements import OutgoingQueue, Queue
from msmqwire.qm.model.positions import MessagePosition

Event = tuple[Any, ...]


class EventRecorder:
    """A subscriber that records its events.

    Attributes:
        log: the name of each event and its arguments.
    """

    def __init__(self) -> None:
        self.log: list[Event] = []

    def message_position_available(self, queue: Queue, position: MessagePosition) -> None:
        self.log.append(("available", queue, position))

    def message_position_deleted(self, queue: Queue, position: MessagePosition, reason: int) -> None:
        self.log.append(("deleted", queue, position, reason))

    def queue_paused(self, queue: OutgoingQueue) -> None:
        self.log.append(("paused", queue))

    def queue_resumed(self, queue: OutgoingQueue) -> None:
        self.log.append(("resumed", queue))

    def taken_offline(self) -> None:
        self.log.append(("offline",))

    def brought_online(self) -> None:
        self.log.append(("online",))

    def send_user_message(self, position: MessagePosition, protocol_data: object) -> None:
        self.log.append(("send", position, protocol_data))

    def available(self) -> list[tuple[Queue, MessagePosition]]:
        """The queues and positions of messages that became available so far."""
        return [(event[1], event[2]) for event in self.log if event[0] == "available"]

    def deleted(self) -> list[tuple[MessagePosition, int]]:
        """The positions deleted so far, each with the reason."""
        return [(event[2], event[3]) for event in self.log if event[0] == "deleted"]
