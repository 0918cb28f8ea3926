"""Peeks and reads by lookup identifier: [MS-MQDMPR] 3.1.7.1.13 to 15, 3.1.7.3.2, 3.1.7.3.3."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from msmqwire.constants import MQ_OK, HResult, MessageClass
from msmqwire.qm.model.elements import Cursor, OpenQueueDescriptor, Queue
from msmqwire.qm.model.enumerations import (
    CursorState,
    MessageSeekAction,
    OperationType,
    PositionState,
    SeekDirection,
)
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.rules.read_results import PENDING, ReadOutcome
from msmqwire.qm.rules.seek import seek_available, seek_with_id
from tests.support.engine_harness import RECOVERABLE, EngineHarness
from tests.support.qm.queue_contents import bodies, body_of, completed_reads, states

TIMEOUT = HResult.MQ_ERROR_IO_TIMEOUT
NOT_FOUND = 0xC00E0088
GONE = HResult.MQ_ERROR_QUEUE_NOT_AVAILABLE
AVAILABLE, LOCKED = PositionState.AVAILABLE, PositionState.LOCKED
FIRST, PREVIOUS, CURRENT, NEXT, LAST = MessageSeekAction
BACKWARD = SeekDirection.BACKWARD


@pytest.fixture
def cursor(harness: EngineHarness, open_queue: OpenQueueDescriptor) -> Cursor:
    new_cursor = harness.core.queues.open_cursor(open_queue)
    assert new_cursor is not None
    return new_cursor


@pytest.fixture
def five(harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor) -> list[MessagePosition]:
    """1 and 3 available, 2 locked, 4 locked but open to peeks, 5 purged while locked."""
    positions = [
        harness.enqueue(queue, b"%d" % number, allow_peek_when_locked=number == 4) for number in range(1, 6)
    ]
    positions[1].state = positions[3].state = LOCKED
    positions[4].state = PositionState.PURGE_PENDING
    return positions


# -- Peek Next Message and Peek Message -----------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.7.1.14-01", "DMPR-3.1.7.1.15-01", "DMPR-3.1.7.1.13-01")
def test_nothing_is_read_from_a_queue_that_is_gone(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor, cursor: Cursor
) -> None:
    messages = harness.core.messages
    harness.core.queues.delete(queue)
    assert messages.peek_next(open_queue, cursor).status == 0xC00E004B
    assert messages.peek(open_queue).status == messages.peek(open_queue, cursor=cursor).status == 0xC00E004B
    assert messages.read_by_lookup_identifier(open_queue, 0, FIRST, peek=True).status == 0xC00E004B


@pytest.mark.requirement("DMPR-3.1.7.1.14-02", "DMPR-3.1.7.1.15-02")
def test_a_cursor_goes_from_message_to_message(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor, cursor: Cursor
) -> None:
    positions = [harness.enqueue(queue, body) for body in (b"1", b"2")]
    first = harness.core.messages.peek(open_queue, cursor=cursor)
    assert (first.status, first.message) == (MQ_OK, positions[0].message)
    second = harness.core.messages.peek_next(open_queue, cursor)
    assert (second.status, second.message) == (MQ_OK, positions[1].message)
    assert bodies(queue, AVAILABLE) == [b"1", b"2"]


@pytest.mark.requirement("DMPR-3.1.7.1.14-03")
def test_the_next_message_of_an_unread_cursor(
    harness: EngineHarness, open_queue: OpenQueueDescriptor, cursor: Cursor
):
    assert harness.core.messages.peek_next(open_queue, cursor).status == 0xC00E001C


@pytest.mark.requirement("DMPR-3.1.7.1.15-03")
def test_a_message_at_a_cursor_that_another_has_received(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor, cursor: Cursor
) -> None:
    harness.enqueue(queue)
    harness.core.messages.peek(open_queue, cursor=cursor)
    harness.core.messages.dequeue(open_queue)
    assert harness.core.messages.peek(open_queue, cursor=cursor).status == 0xC00E001D


def waits_to_peek(
    harness: EngineHarness, queue: Queue, opened: OpenQueueDescriptor, cursor: Cursor
) -> ReadOutcome:
    return harness.core.messages.peek(opened, cursor=cursor, timeout=1_000)


def waits_to_peek_next(
    harness: EngineHarness, queue: Queue, opened: OpenQueueDescriptor, cursor: Cursor
) -> ReadOutcome:
    if not len(queue.positions):
        harness.enqueue(queue, b"0")
    assert body_of(harness.core.messages.peek(opened, cursor=cursor)) == b"0"
    return harness.core.messages.peek_next(opened, cursor, timeout=1_000)


def with_cursor(*numbers: str) -> pytest.MarkDecorator:
    """Both peeks with a cursor, with the rows of their sections."""
    return pytest.mark.parametrize(
        "waits",
        [
            pytest.param(waits, marks=pytest.mark.requirement(*(f"{section}-{number}" for number in numbers)))
            for waits, section in (
                (waits_to_peek_next, "DMPR-3.1.7.1.14"),
                (waits_to_peek, "DMPR-3.1.7.1.15"),
            )
        ],
    )


@with_cursor("04")
@pytest.mark.requirement("DMPR-3.1.7.3.7-01")
def test_a_waiting_cursor_peek_leaves_the_message_available(
    harness: EngineHarness,
    queue: Queue,
    open_queue: OpenQueueDescriptor,
    cursor: Cursor,
    waits: Callable[..., ReadOutcome],
) -> None:
    """The next reader gets the same message."""
    waiting = waits(harness, queue, open_queue, cursor)
    assert waiting.status == PENDING
    (reader,) = open_queue.waiting.values()
    assert (reader.destructive, reader.tag, reader.cursor) == (False, None, cursor)
    second = harness.core.queues.open_cursor(open_queue)
    assert second is not None
    next_reader = waits(harness, queue, open_queue, second)
    position = harness.enqueue(queue, b"new")
    assert completed_reads(harness.run()) == [
        (waiting.request, MQ_OK, b"new"),
        (next_reader.request, MQ_OK, b"new"),
    ]
    for read_cursor in (cursor, second):
        assert (read_cursor.state, read_cursor.position) == (CursorState.READ, position)


@with_cursor("04", "05")
def test_a_peek_with_a_cursor_that_waits_too_long(
    harness: EngineHarness,
    queue: Queue,
    open_queue: OpenQueueDescriptor,
    cursor: Cursor,
    waits: Callable[..., ReadOutcome],
) -> None:
    waiting = waits(harness, queue, open_queue, cursor)
    assert completed_reads(harness.advance(999)) == []
    assert completed_reads(harness.advance(1)) == [(waiting.request, TIMEOUT, None)]
    assert cursor.state is CursorState.UNREAD
    assert cursor.position is (queue.positions.head if len(queue.positions) else queue.positions.start)


@pytest.mark.requirement("DMPR-3.1.7.1.14-02", "DMPR-3.1.7.1.15-02")
def test_peeks_wait_without_a_limit_unless_one_is_given(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor, cursor: Cursor
) -> None:
    first = harness.core.messages.peek(open_queue, cursor=cursor)
    harness.enqueue(queue, b"1")
    second = harness.core.messages.peek_next(open_queue, cursor)
    assert harness.advance(10**12)[1:] == []
    harness.enqueue(queue, b"2")
    assert (first.status, second.status) == (PENDING, PENDING)
    assert completed_reads(harness.run()) == [(second.request, MQ_OK, b"2")]


@pytest.mark.requirement("DMPR-3.1.1.12-03")
@pytest.mark.requirement("DMPR-3.1.7.1.15-06", "DMPR-3.1.7.3.2-05")
def test_a_peek_without_a_cursor_shows_the_first_message(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    hidden = harness.enqueue(queue, b"1")
    shown = harness.enqueue(queue, b"2", allow_peek_when_locked=True)
    hidden.state = shown.state = LOCKED
    harness.enqueue(queue, b"3")
    for _ in range(2):
        read = harness.core.messages.peek(open_queue)
        assert (read.status, read.message) == (MQ_OK, shown.message)
    assert states(queue) == [LOCKED, LOCKED, AVAILABLE]


@pytest.mark.requirement("DMPR-3.1.1.10-01")
@pytest.mark.requirement("DMPR-3.1.7.1.15-07")
def test_waiting_peeks_leave_the_message_to_the_next_reader(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    messages = harness.core.messages
    peeks = [messages.peek(open_queue, timeout=1_000) for _ in range(2)]
    readers = list(open_queue.waiting.values())
    assert [(reader.destructive, reader.tag, reader.cursor) for reader in readers] == [
        (False, None, None)
    ] * 2
    receives = messages.dequeue(open_queue, timeout=1_000)
    harness.enqueue_message(queue, b"new")
    assert completed_reads(harness.run()) == [
        (request, MQ_OK, b"new") for request in (peeks[0].request, peeks[1].request, receives.request)
    ]


@pytest.mark.requirement("DMPR-3.1.7.1.15-07")
def test_a_peek_without_a_cursor_that_waits_too_long(
    harness: EngineHarness, open_queue: OpenQueueDescriptor
) -> None:
    assert harness.core.messages.peek(open_queue, timeout=0).status == TIMEOUT
    waiting = harness.core.messages.peek(open_queue, timeout=10)
    assert completed_reads(harness.advance(10)) == [(waiting.request, TIMEOUT, None)]


# -- Read Message By Lookup Identifier ------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.7.1.13-03", "DMPR-3.1.7.1.13-05")
@pytest.mark.parametrize(
    "action, at, body",
    [(FIRST, 0, b"1"), (PREVIOUS, 1, b"1"), (CURRENT, 1, b"2"), (NEXT, 1, b"3"), (LAST, 0, b"3")],
)
def test_a_message_is_shown_by_identifier(
    harness: EngineHarness,
    queue: Queue,
    open_queue: OpenQueueDescriptor,
    action: MessageSeekAction,
    at: int,
    body: bytes,
) -> None:
    identifiers = [harness.enqueue(queue, b"%d" % number).lookup_identifier for number in (1, 2, 3)]
    read = harness.core.messages.read_by_lookup_identifier
    assert body_of(read(open_queue, identifiers[at], action, peek=True)) == body
    assert states(queue) == [AVAILABLE] * 3


@pytest.mark.requirement("DMPR-3.1.7.1.13-03", "DMPR-3.1.7.1.13-04")
def test_a_read_by_identifier_never_waits(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    read = harness.core.messages.read_by_lookup_identifier
    for action in (FIRST, LAST, CURRENT):
        assert read(open_queue, 1, action, peek=False).status == 0xC00E0088
    assert open_queue.waiting == {}


@pytest.mark.requirement("DMPR-3.1.7.1.13-02", "DMPR-3.1.7.1.13-08")
def test_a_message_is_received_by_identifier(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    events = harness.record_events()
    harness.enqueue(queue, b"1")
    position = harness.enqueue(queue, b"2")
    read = harness.core.messages.read_by_lookup_identifier
    assert body_of(read(open_queue, position.lookup_identifier, CURRENT, peek=False)) == b"2"
    assert events.deleted() == [(position, MessageClass.MQMSG_CLASS_ACK_RECEIVE)]
    assert bodies(queue) == [b"1"]


@pytest.mark.requirement("DMPR-3.1.7.1.13-02", "DMPR-3.1.7.1.13-05")
def test_a_peek_by_identifier_has_no_part_in_a_transaction(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    position, transaction = harness.enqueue(queue, b"1"), harness.begin()
    read = harness.core.messages.read_by_lookup_identifier
    result = read(open_queue, position.lookup_identifier, CURRENT, peek=True, transaction=transaction)
    assert (result.status, result.message) == (MQ_OK, position.message)
    assert states(queue) == [AVAILABLE]
    assert transaction.operations == []


@pytest.mark.requirement("DMPR-3.1.7.1.13-06")
def test_a_message_is_received_by_identifier_in_a_transaction(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    position, transaction = harness.enqueue(queue, b"1"), harness.begin()
    read = harness.core.messages.read_by_lookup_identifier
    result = read(open_queue, position.lookup_identifier, CURRENT, peek=False, transaction=transaction)
    assert body_of(result) == b"1"
    (operation,) = transaction.operations
    assert operation.operation_type is OperationType.DEQUEUE
    assert (operation.position, operation.dequeue_reason) == (
        position,
        MessageClass.MQMSG_CLASS_ACK_RECEIVE,
    )
    assert states(queue) == [LOCKED]


@pytest.mark.requirement("DMPR-3.1.7.1.13-07")
def test_a_message_is_received_by_identifier_in_two_phases(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    position = harness.enqueue(queue, b"1")
    read = harness.core.messages.read_by_lookup_identifier
    assert body_of(read(open_queue, position.lookup_identifier, CURRENT, peek=False, two_phase=True)) == b"1"
    assert states(queue) == [LOCKED]


@pytest.mark.requirement("DMPR-3.1.1.1-49", "DMPR-3.1.1.12-01")
@pytest.mark.parametrize("orderly", [True, False])
def test_identifiers_go_on_over_a_restart(harness: EngineHarness, queue: Queue, orderly: bool) -> None:
    recoverable = harness.enqueue(queue, b"1", delivery_guarantee=RECOVERABLE).lookup_identifier
    express = harness.enqueue(queue, b"2").lookup_identifier
    harness.run()
    last = harness.core.queue_manager.sequential_id
    if orderly:
        harness.stop()
    harness.restart()
    queue = harness.find_queue()
    assert [position.lookup_identifier for position in queue.positions] == [recoverable]
    if orderly:
        assert harness.core.queue_manager.sequential_id == last
    assert harness.core.queue_manager.sequential_id >= last
    assert harness.enqueue(queue, b"3").lookup_identifier > express
    read = harness.core.messages.read_by_lookup_identifier
    result = read(harness.open(queue), recoverable, NEXT, peek=True)
    assert body_of(result) == b"3"


# -- Seek Available Message Position --------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.7.3.2-01", "DMPR-3.1.7.3.2-02", "DMPR-3.1.1.2-31/a")
def test_a_search_runs_forward_by_default_and_skips_its_start(
    queue: Queue, five: list[MessagePosition]
) -> None:
    first, second, third, *_ = five
    start = queue.positions.start
    assert seek_available(queue, start) is first  # Head, although only Start was passed
    assert seek_available(queue, first) is third
    assert seek_available(queue, second) is third
    assert seek_available(queue, third) is None
    assert seek_available(queue, queue.positions.end) is None


@pytest.mark.requirement("DMPR-3.1.7.3.2-01", "DMPR-3.1.7.3.2-03")
def test_a_backward_search_skips_its_start_and_ends_at_the_front(
    queue: Queue, five: list[MessagePosition]
) -> None:
    first, _, third, fourth, _ = five
    assert seek_available(queue, queue.positions.end, direction=BACKWARD) is third
    assert seek_available(queue, fourth, direction=BACKWARD) is third
    assert seek_available(queue, third, direction=BACKWARD) is first
    assert seek_available(queue, first, direction=BACKWARD) is None
    assert seek_available(queue, queue.positions.start, direction=BACKWARD) is None


@pytest.mark.requirement("DMPR-3.1.7.3.2-04", "DMPR-3.1.7.3.2-05")
@pytest.mark.parametrize("peek, expected", [(False, [b"1", b"3"]), (True, [b"1", b"3", b"4"])])
@pytest.mark.parametrize("direction", list(SeekDirection))
def test_what_cannot_be_read_is_passed_over(
    queue: Queue, five: list[MessagePosition], peek: bool, expected: list[bytes], direction: SeekDirection
) -> None:
    backward = direction is BACKWARD
    position: MessagePosition | None = queue.positions.end if backward else queue.positions.start
    found_bodies = []
    while position is not None:
        position = seek_available(queue, position, direction=direction, peek=peek)
        if position is not None:
            found_bodies.append(position.message.body)
    assert found_bodies == (expected[::-1] if backward else expected)


# -- Seek Available Message Position With Id ------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.7.3.3-02")
@pytest.mark.parametrize("action", [PREVIOUS, CURRENT, NEXT])
@pytest.mark.parametrize("peek", [True, False])
def test_an_identifier_that_no_message_has(
    queue: Queue, five: list[MessagePosition], action: MessageSeekAction, peek: bool
) -> None:
    assert seek_with_id(queue, 12345, action, peek=peek) == (0xC00E0088, None)


@pytest.mark.requirement("DMPR-3.1.7.3.3-02", "DMPR-3.1.7.3.3-03", "DMPR-3.1.7.3.3-04")
def test_first_and_last_need_no_identifier(queue: Queue, five: list[MessagePosition]) -> None:
    assert seek_with_id(queue, 0, FIRST, peek=False) == (MQ_OK, five[0])
    assert seek_with_id(queue, 0, LAST, peek=False) == (MQ_OK, five[2])
    assert seek_with_id(queue, 0, LAST, peek=True) == (MQ_OK, five[3])
    five[0].state = five[2].state = LOCKED
    assert seek_with_id(queue, 0, FIRST, peek=True) == (MQ_OK, five[3])
    assert seek_with_id(queue, 0, FIRST, peek=False) == (NOT_FOUND, None)


@pytest.mark.requirement("DMPR-3.1.7.3.3-05", "DMPR-3.1.7.3.3-06")
def test_next_and_previous_of_a_message(queue: Queue, five: list[MessagePosition]) -> None:
    identifiers = [position.lookup_identifier for position in five]
    assert seek_with_id(queue, identifiers[1], NEXT, peek=False) == (MQ_OK, five[2])
    assert seek_with_id(queue, identifiers[2], NEXT, peek=True) == (MQ_OK, five[3])
    assert seek_with_id(queue, identifiers[4], PREVIOUS, peek=False) == (MQ_OK, five[2])
    assert seek_with_id(queue, identifiers[4], PREVIOUS, peek=True) == (MQ_OK, five[3])


@pytest.mark.requirement("DMPR-3.1.7.3.3-07")
@pytest.mark.parametrize("action, at", [(NEXT, 2), (PREVIOUS, 0)])
def test_nothing_before_or_behind_a_message(
    queue: Queue, five: list[MessagePosition], action: MessageSeekAction, at: int
) -> None:
    assert seek_with_id(queue, five[at].lookup_identifier, action, peek=False) == (NOT_FOUND, None)


@pytest.mark.requirement("DMPR-3.1.7.3.3-07")
@pytest.mark.parametrize("action", [FIRST, LAST])
def test_first_and_last_of_an_empty_queue(queue: Queue, action: MessageSeekAction) -> None:
    assert seek_with_id(queue, 0, action, peek=True) == (NOT_FOUND, None)


TRANSACTION_USAGE, RECEIVED = 0xC00E0050, 0xC00E001D


@pytest.mark.requirement("DMPR-3.1.7.3.3-01")
@pytest.mark.parametrize(
    "state, shown, peek, status",
    [
        pytest.param(state, shown, peek, status, marks=pytest.mark.requirement(f"DMPR-3.1.7.3.3-{row}"))
        for row, state, shown, peek, status in [
            ("08", AVAILABLE, False, True, MQ_OK),
            ("08", AVAILABLE, False, False, MQ_OK),
            ("09", LOCKED, True, True, MQ_OK),
            ("09", LOCKED, False, True, TRANSACTION_USAGE),
            ("10", PositionState.DELETED, True, True, RECEIVED),
            ("10", PositionState.PURGE_PENDING, True, True, NOT_FOUND),
            ("11", LOCKED, True, False, NOT_FOUND),
            ("11", PositionState.DELETED, False, False, NOT_FOUND),
            ("11", PositionState.PURGE_PENDING, False, False, NOT_FOUND),
        ]
    ],
)
def test_the_message_with_an_identifier(
    harness: EngineHarness, queue: Queue, state: PositionState, shown: bool, peek: bool, status: int
) -> None:
    position = harness.enqueue(queue, allow_peek_when_locked=shown)
    position.state = state
    expected = position if status == MQ_OK else None
    assert seek_with_id(queue, position.lookup_identifier, CURRENT, peek=peek) == (status, expected)


@pytest.mark.requirement("DMPR-3.1.7.1.13-04")
def test_the_status_of_the_search_is_given(
    harness: EngineHarness, open_queue: OpenQueueDescriptor, five: list[MessagePosition]
) -> None:
    read = harness.core.messages.read_by_lookup_identifier
    assert read(open_queue, five[1].lookup_identifier, CURRENT, peek=True).status == TRANSACTION_USAGE
    five[0].state = PositionState.DELETED
    assert read(open_queue, five[0].lookup_identifier, CURRENT, peek=True).status == 0xC00E001D
