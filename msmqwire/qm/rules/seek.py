"""Search for messages in a queue: [MS-MQDMPR] 3.1.7.3.2 and 3.1.7.3.3."""

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
    """Find the next position after `start` whose message can be read: [MS-MQDMPR] 3.1.7.3.2.

    Args:
        queue: the queue.
        start: the position where the search begins, itself excluded. The reserved entries Start and End are
            before and after all messages.
        direction: forward or backward.
        peek: include locked messages that may be peeked at.

    Returns:
        The position, or None for End.
    """
    positions = queue.positions
    forward = direction is SeekDirection.FORWARD  # DMPR-3.1.7.3.2-01
    if forward:
        if start is positions.start and not peek:
            first = positions.first_available()
            return None if first is positions.end else first
        position = start.next if start is not positions.end else start  # DMPR-3.1.7.3.2-02
        last = positions.end
    else:
        position = start.previous if start is not positions.start else start  # DMPR-3.1.7.3.2-03
        last = positions.start
    while position is not last:
        if _readable(position, peek):  # DMPR-3.1.7.3.2-04
            return position
        position = position.next if forward else position.previous
    return None  # DMPR-3.1.7.3.2-01


def _readable(position: MessagePosition, peek: bool) -> bool:
    if position.state is PositionState.AVAILABLE:
        return True
    locked = position.state is PositionState.LOCKED and position.listed and not position.is_set_aside
    return peek and locked and position.message.allow_peek_when_locked  # DMPR-3.1.7.3.2-05


def seek_with_id(
    queue: Queue, lookup_identifier: int, action: MessageSeekAction, *, peek: bool
) -> tuple[int, MessagePosition | None]:
    """Find the position before, at or after the one with an identifier: [MS-MQDMPR] 3.1.7.3.3.

    Returns:
        MQ_OK and the position, or an error and None.
    """
    positions = queue.positions
    backward = SeekDirection.BACKWARD
    if action is MessageSeekAction.SEEK_FIRST:
        return _seek_result(seek_available(queue, positions.start, peek=peek))  # DMPR-3.1.7.3.3-03
    if action is MessageSeekAction.SEEK_LAST:  # DMPR-3.1.7.3.3-04
        return _seek_result(seek_available(queue, positions.end, direction=backward, peek=peek))
    current = positions.find(lookup_identifier)
    if current is None:  # DMPR-3.1.7.3.3-02
        return HResult.MQ_ERROR_MESSAGE_NOT_FOUND, None
    if action is MessageSeekAction.SEEK_NEXT:  # DMPR-3.1.7.3.3-05
        return _seek_result(seek_available(queue, current, peek=peek))  # DMPR-3.1.7.3.3-05
    if action is MessageSeekAction.SEEK_PREVIOUS:  # DMPR-3.1.7.3.3-06
        return _seek_result(seek_available(queue, current, direction=backward, peek=peek))
    if _readable(current, peek):
        return MQ_OK, current  # DMPR-3.1.7.3.3-01 and -08
    if peek and current.state is PositionState.LOCKED:  # DMPR-3.1.7.3.3-09
        return HResult.MQ_ERROR_TRANSACTION_USAGE, None
    if peek and current.state is PositionState.DELETED:  # DMPR-3.1.7.3.3-10
        return HResult.MQ_ERROR_MESSAGE_ALREADY_RECEIVED, None
    return HResult.MQ_ERROR_MESSAGE_NOT_FOUND, None  # DMPR-3.1.7.3.3-11


def _seek_result(position: MessagePosition | None) -> tuple[int, MessagePosition | None]:
    if position is None:  # DMPR-3.1.7.3.3-07
        return HResult.MQ_ERROR_MESSAGE_NOT_FOUND, None
    return MQ_OK, position
