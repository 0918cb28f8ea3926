"""Cursors: [MS-MQDMPR] 3.2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msmqwire.qm.model.elements import Cursor, OpenQueueDescriptor
from msmqwire.qm.model.enumerations import CursorResult, CursorState, PositionState
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.rules.seek import seek_available

Result = tuple[CursorResult, MessagePosition | None]

UNREAD, READ = CursorState.UNREAD, CursorState.READ
WAIT_PEEK, WAIT_RECEIVE = CursorState.WAIT_PEEK, CursorState.WAIT_RECEIVE

TRANSITIONS: Final[Mapping[tuple[CursorState, str], CursorState]] = {
    (UNREAD, "Get Message For Peek: found"): READ,  # DMPR-3.2.1.1-02
    (UNREAD, "Get Message For Peek: End"): WAIT_PEEK,  # DMPR-3.2.1.1-03
    (UNREAD, "Get Next Message For Peek"): UNREAD,  # DMPR-3.2.1.1-04
    (UNREAD, "Get Next Message For Dequeue: found"): UNREAD,  # DMPR-3.2.1.1-05
    (UNREAD, "Get Next Message For Dequeue: End, waits"): WAIT_RECEIVE,  # DMPR-3.2.1.1-06
    (UNREAD, "Get Next Message For Dequeue: End, does not wait"): UNREAD,  # DMPR-3.2.7.4-02
    (READ, "Get Message For Peek"): READ,  # DMPR-3.2.1.1-07
    (READ, "Get Next Message For Peek: found"): READ,  # DMPR-3.2.1.1-08
    (READ, "Get Next Message For Peek: End"): WAIT_PEEK,  # DMPR-3.2.1.1-09
    (READ, "Get Next Message For Dequeue: Available"): UNREAD,  # DMPR-3.2.1.1-10
    (READ, "Get Next Message For Dequeue: not Available"): READ,  # DMPR-3.2.1.1-11
    (WAIT_PEEK, "Message Available"): READ,  # DMPR-3.2.1.1-12
    (WAIT_PEEK, "Wait Time Expired"): UNREAD,  # DMPR-3.2.1.1-13
    (WAIT_RECEIVE, "Message Available"): UNREAD,  # DMPR-3.2.1.1-14
    (WAIT_RECEIVE, "Wait Time Expired"): UNREAD,  # DMPR-3.2.1.1-15
}
"""The next state by state and event; an event that is missing here does not change the state."""


def open_cursor(descriptor: OpenQueueDescriptor, handle: int) -> Cursor | None:
    """Initialize: [MS-MQDMPR] 3.2.7.1. Returns None if the queue was deleted."""
    queue = descriptor.queue
    if queue is None:  # DMPR-3.2.7.1-02, DMPR-3.1.7.1.1-01
        return None
    start = queue.positions.start
    queue.positions.pin(start)
    # DMPR-3.1.1-10
    return Cursor(handle, descriptor, start)  # DMPR-3.2.1.1-01, DMPR-3.2.7.1-01, DMPR-3.2.1.2-01 to -03


def close_cursor(cursor: Cursor) -> None:
    """Release the position of a cursor."""
    _move(cursor, cursor.position.queue.positions.start)
    cursor.position.queue.positions.unpin(cursor.position)


def _move(cursor: Cursor, position: MessagePosition, resume_after: MessagePosition | None = None) -> None:
    positions = position.queue.positions
    released = (cursor.position, cursor.resume_after)
    for pinned in (position, resume_after):
        if pinned is not None:
            positions.pin(pinned)
    cursor.position, cursor.resume_after = position, resume_after  # DMPR-3.1.1-10
    for unpinned in released:
        if unpinned is not None:
            positions.unpin(unpinned)


def _step(cursor: Cursor, event: str) -> None:
    cursor.state = TRANSITIONS[cursor.state, event]


def _waits(cursor: Cursor) -> bool:
    """Whether a read of the cursor is waiting: another one is refused, DMPR-3.2.1.1-17."""
    return cursor.state is WAIT_PEEK or cursor.state is WAIT_RECEIVE


def _seek(cursor: Cursor, *, peek: bool) -> MessagePosition | None:
    return seek_available(cursor.position.queue, cursor.resume_after or cursor.position, peek=peek)


def _peek(cursor: Cursor, event: str) -> Result:
    """Move to the next message that can be peeked at, or begin to wait for one."""
    position = _seek(cursor, peek=True)
    if position is None:
        _step(cursor, f"{event}: End")  # DMPR-3.2.7.2-02, DMPR-3.2.7.3-03
        return CursorResult.WAITING, None
    _step(cursor, f"{event}: found")
    _move(cursor, position)  # DMPR-3.2.7.2-01, DMPR-3.2.7.3-02
    return CursorResult.SUCCEEDED, position


def get_message_for_peek(cursor: Cursor) -> Result:
    """Get Message For Peek: [MS-MQDMPR] 3.2.7.2."""
    if _waits(cursor):
        return CursorResult.ILLEGAL_CURSOR_ACTION, None
    if cursor.state is READ:
        _step(cursor, "Get Message For Peek")
        if cursor.position.state is PositionState.AVAILABLE:
            return CursorResult.SUCCEEDED, cursor.position  # DMPR-3.2.7.2-03
        return CursorResult.ALREADY_RECEIVED, None  # DMPR-3.2.7.2-04
    return _peek(cursor, "Get Message For Peek")


def get_next_message_for_peek(cursor: Cursor) -> Result:
    """Get Next Message For Peek: [MS-MQDMPR] 3.2.7.3."""
    if cursor.state is not READ:
        return CursorResult.ILLEGAL_CURSOR_ACTION, None  # DMPR-3.2.7.3-01
    return _peek(cursor, "Get Next Message For Peek")


def get_next_message_for_dequeue(cursor: Cursor, *, no_wait: bool) -> Result:
    """Get Next Message For Dequeue: [MS-MQDMPR] 3.2.7.4."""
    if _waits(cursor):
        return CursorResult.ILLEGAL_CURSOR_ACTION, None
    if cursor.state is READ:
        if cursor.position.state is PositionState.AVAILABLE:
            _step(cursor, "Get Next Message For Dequeue: Available")
            return CursorResult.SUCCEEDED, cursor.position  # DMPR-3.2.7.4-04
        _step(cursor, "Get Next Message For Dequeue: not Available")
        return CursorResult.ALREADY_RECEIVED, None  # DMPR-3.2.7.4-05
    position = _seek(cursor, peek=False)
    if position is not None:
        _step(cursor, "Get Next Message For Dequeue: found")
        _move(cursor, position)  # DMPR-3.2.7.4-01
        return CursorResult.SUCCEEDED, position
    if no_wait:
        _step(cursor, "Get Next Message For Dequeue: End, does not wait")
        return CursorResult.NOT_FOUND, None
    _step(cursor, "Get Next Message For Dequeue: End, waits")
    return CursorResult.WAITING, None  # DMPR-3.2.7.4-03


def message_available(cursor: Cursor, position: MessagePosition) -> None:
    """Message Available: [MS-MQDMPR] 3.2.7.5."""
    if _waits(cursor):
        _step(cursor, "Message Available")
    _move(cursor, position)  # DMPR-3.2.7.5-01


def wait_time_expired(cursor: Cursor) -> None:
    """Wait Time Expired: [MS-MQDMPR] 3.2.7.6."""
    if cursor.state is WAIT_RECEIVE:
        positions = cursor.position.queue.positions
        _move(cursor, positions.end, resume_after=positions.tail)  # DMPR-3.2.7.6-01
    if _waits(cursor):
        _step(cursor, "Wait Time Expired")  # DMPR-3.2.7.6-01 and -02
