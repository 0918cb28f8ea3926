"""Finding messages in a queue: [MS-MQDMPR] 3.1.7.3.2 and 3.1.7.3.3."""

from __future__ import annotations

from msmqwire.constants import MQ_OK, HResult
from msmqwire.qm.model.elements import Queue
from msmqwire.qm.model.enumerations import MessageSeekAction, PositionState, SeekDirection
from msmqwire.qm.model.positions import MessagePosition


def seek_available(
    queue: Queue,
    start: MessagePosition,
    *,
    direction: SeekDirection = SeekDirection.FORWARD,
    peek: bool = False,
) -> MessagePosition | None:
    """The next position from one on whose message can be read: [MS-MQDMPR] 3.1.7.3.2.

    Args:
        queue: the queue.
        start: where to begin; it is not looked at itself. The reserved entries Start and End stand before and
            behind all others.
        direction: forward or backward.
        peek: the message will stay: one that is locked is found if it may be peeked at then.

    Returns:
        The position, or None for End.
    """
    positions = queue.positions
    if direction is SeekDirection.FORWARD:
        if start is positions.start and not peek:
            found = positions.first_available()
            return None if found is positions.end else found
        position = start.next if start is not positions.end else start
        last = positions.end
    else:
        position = start.previous if start is not positions.start else start
        last = positions.start
    while position is not last:
        if _readable(position, peek):
            return position
        position = position.next if direction is SeekDirection.FORWARD else position.previous
    return None


def _readable(position: MessagePosition, peek: bool) -> bool:
    if position.state is PositionState.AVAILABLE:
        return True
    locked = position.state is PositionState.LOCKED and position.listed
    return peek and locked and position.message.allow_peek_when_locked


def seek_with_id(
    queue: Queue, lookup_identifier: int, action: MessageSeekAction, *, peek: bool
) -> tuple[int, MessagePosition | None]:
    """The position before, at or after the one with an identifier: [MS-MQDMPR] 3.1.7.3.3.

    Returns:
        MQ_OK and the position, or why there is none.
    """
    positions = queue.positions
    backward = SeekDirection.BACKWARD
    if action is MessageSeekAction.SEEK_FIRST:
        return _found(seek_available(queue, positions.start, peek=peek))
    if action is MessageSeekAction.SEEK_LAST:
        return _found(seek_available(queue, positions.end, direction=backward, peek=peek))
    at = positions.find(lookup_identifier)
    if at is None:  # DMPR-3.1.7.3.3-02
        return HResult.MQ_ERROR_MESSAGE_NOT_FOUND, None
    if action is MessageSeekAction.SEEK_NEXT:
        return _found(seek_available(queue, at, peek=peek))
    if action is MessageSeekAction.SEEK_PREVIOUS:
        return _found(seek_available(queue, at, direction=backward, peek=peek))
    if _readable(at, peek):
        return MQ_OK, at
    if peek and at.state is PositionState.LOCKED:  # DMPR-3.1.7.3.3-09
        return HResult.MQ_ERROR_TRANSACTION_USAGE, None
    if peek and at.state is PositionState.DELETED:  # DMPR-3.1.7.3.3-10
        return HResult.MQ_ERROR_MESSAGE_ALREADY_RECEIVED, None
    return HResult.MQ_ERROR_MESSAGE_NOT_FOUND, None  # DMPR-3.1.7.3.3-11


def _found(position: MessagePosition | None) -> tuple[int, MessagePosition | None]:
    if position is None:  # DMPR-3.1.7.3.3-07
        return HResult.MQ_ERROR_MESSAGE_NOT_FOUND, None
    return MQ_OK, position
