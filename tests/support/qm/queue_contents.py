"""The contents of a queue manager's queues and the results of reads."""

from __future__ import annotations

from msmqwire.constants import MQ_OK
from msmqwire.qm.model.effects import Effect, ReadCompleted
from msmqwire.qm.model.elements import Queue
from msmqwire.qm.model.enumerations import PositionState
from msmqwire.qm.model.message import Message
from msmqwire.qm.rules.read_results import ReadOutcome


def messages(queue: Queue | None) -> list[Message]:
    """The messages in a queue, in order."""
    assert queue is not None
    return [position.message for position in queue.positions]


def bodies(queue: Queue | None, *states: PositionState) -> list[bytes]:
    """The bodies of the messages in a queue, in order: all, or those in the given states."""
    assert queue is not None
    return [p.message.body for p in queue.positions if not states or p.state in states]


def states(queue: Queue) -> list[PositionState]:
    """The states of the messages in a queue, in order."""
    return [position.state for position in queue.positions]


def message_classes(queue: Queue | None) -> list[int]:
    """The classes of the acknowledgements in an administration queue."""
    return [message.message_class for message in messages(queue)]


def body_of(read: ReadOutcome) -> bytes:
    """The body of the message that a successful read returned."""
    assert read.status == MQ_OK
    assert read.message is not None
    return read.message.body


def completed_reads(effects: list[Effect]) -> list[tuple[int, int, bytes | None]]:
    """The request, the status and the body of each read that ended."""
    return [
        (effect.request, effect.status, effect.message.body if effect.message else None)
        for effect in effects
        if isinstance(effect, ReadCompleted)
    ]
