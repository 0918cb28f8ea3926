"""Messages of a queue that can be read, for peeking at them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msmqwire.constants import HResult
from msmqwire.errors import QueueError, StoreDamaged
from msmqwire.qm.model.context import Context
from msmqwire.qm.model.elements import OpenQueueDescriptor, OutgoingQueue, Queue
from msmqwire.qm.model.enumerations import PositionState
from msmqwire.qm.model.message import Message
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.rules.unreadable import readable
from msmqwire.qm.runtime.message_json import number
from msmqwire.qm.runtime.reasons import reason

BATCH_BYTES: Final = 8 << 20
"""Bytes of bodies after which an answer has no further messages."""
_UINT64_MAX: Final = (1 << 64) - 1


def check_read(status: int, queue: Queue | None) -> None:
    """Raise QueueError if a read has come to a damaged message."""
    if status == HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED:
        raise QueueError(reason(status, queue.pathname if queue is not None else ""), status)


def available(queue: Queue | None, after: int | None) -> Iterator[MessagePosition]:
    """Yield the positions that can be read, after a lookup identifier or from the first one on."""
    if queue is None:
        return
    positions = queue.positions
    outgoing = isinstance(queue, OutgoingQueue)  # messages being transferred are shown as well
    position = positions.start.next if outgoing else positions.first_available()
    if after is not None:
        last = positions.find(after)
        position = last.next if last is not None else positions.start.next
    while position is not positions.end:
        following = position.next
        if (outgoing or position.state is PositionState.AVAILABLE) and position.lookup_identifier > (
            after or 0
        ):
            yield position
        position = following


def available_messages(
    context: Context, descriptor: OpenQueueDescriptor, count: int, after: object, wanted: object
) -> list[Message]:
    """Return messages of a queue for a peek: up to a number, or the one with a lookup identifier.

    Raises InvalidValue, and QueueError if the first one is damaged.
    """
    behind = None if after is None else number(after, "after", _UINT64_MAX)
    if wanted is not None:
        return _message_with(context, descriptor.queue, number(wanted, "lookup_identifier", _UINT64_MAX))
    messages: list[Message] = []
    size = 0
    for position in available(descriptor.queue, behind):
        if len(messages) >= count or size >= BATCH_BYTES:
            break
        try:
            message = position.message
        except StoreDamaged:
            if not messages:  # else the next peek comes to it
                _read(context, position)
            break
        size += len(message.body)
        messages.append(message)
    return messages


def _read(context: Context, position: MessagePosition) -> list[Message]:
    message = readable(context, position)
    if message is None:
        check_read(HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED, position.queue)
        return []
    return [message]


def _message_with(context: Context, queue: Queue | None, lookup_identifier: int) -> list[Message]:
    """Return the message with a lookup identifier, if it can be read or is in an outgoing queue."""
    position = None if queue is None else queue.positions.find(lookup_identifier)
    if position is None or not (
        isinstance(queue, OutgoingQueue) or position.state is PositionState.AVAILABLE
    ):
        return []
    return _read(context, position)
