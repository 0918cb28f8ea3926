"""Receiving messages: [MS-MQDMPR] 3.1.7.1.10 to 3.1.7.1.12."""

from __future__ import annotations

import pytest

from msmqwire.constants import MQ_OK, HResult, MessageClass
from msmqwire.qm.model.elements import OpenQueueDescriptor, Queue
from msmqwire.qm.model.enumerations import CursorState, OperationType, PositionState
from msmqwire.qm.model.message import NULL_GUID
from msmqwire.qm.model.tables import Table
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.rules.read_results import PENDING
from tests.support.engine_harness import RECOVERABLE, EngineHarness
from tests.support.qm.event_recorder import EventRecorder
from tests.support.qm.queue_contents import bodies, body_of, completed_reads, states

ACK_RECEIVE = MessageClass.MQMSG_CLASS_ACK_RECEIVE
PURGED = MessageClass.MQMSG_CLASS_NACK_Q_PURGED
TIMEOUT = HResult.MQ_ERROR_IO_TIMEOUT
AVAILABLE, LOCKED = PositionState.AVAILABLE, PositionState.LOCKED


@pytest.fixture
def events(harness: EngineHarness) -> EventRecorder:
    return harness.record_events()


def cursor_of(harness: EngineHarness, descriptor: OpenQueueDescriptor):
    cursor = harness.core.queues.open_cursor(descriptor)
    assert cursor is not None
    return cursor


# -- Dequeue Message ------------------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.7.1.10-01")
def test_the_statuses_of_a_dequeue(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    messages, cursor = harness.core.messages, cursor_of(harness, open_queue)
    assert messages.dequeue(open_queue, timeout=0).status == 0xC00E001B
    assert messages.dequeue(open_queue, timeout=0, cursor=cursor).status == 0xC00E0088
    harness.enqueue(queue)
    messages.peek(open_queue, cursor=cursor)
    assert messages.dequeue(open_queue).status == 0
    assert messages.dequeue(open_queue, cursor=cursor).status == 0xC00E001D
    harness.core.queues.delete(queue)
    assert messages.dequeue(open_queue).status == 0xC00E004B


@pytest.mark.requirement("DMPR-3.1.7.1.10-03")
def test_a_queue_that_is_gone_gives_no_message(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    harness.core.queues.delete(queue)
    assert harness.core.messages.dequeue(open_queue).status == 0xC00E004B


@pytest.mark.requirement("DMPR-3.1.7.1.11-01")
def test_a_queue_that_is_gone_begins_no_read(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    harness.core.queues.delete(queue)
    assert harness.core.messages.dequeue_begin(open_queue).status == 0xC00E004B


@pytest.mark.requirement("DMPR-3.1.7.1.12-01")
def test_a_queue_that_is_gone_ends_no_read(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    position = harness.enqueue(queue)
    harness.core.messages.dequeue_begin(open_queue)
    harness.core.queues.delete(queue)
    assert harness.core.messages.dequeue_end(open_queue, position, delete=True) == 0xC00E004B


@pytest.mark.requirement(
    "DMPR-3.1.7.1.10-02", "DMPR-3.1.7.1.10-09", "DMPR-3.1.7.1.10-14", "DMPR-3.1.7.1.10-15"
)
def test_the_first_available_message_is_given_and_deleted(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor, events: EventRecorder
) -> None:
    first, second = harness.enqueue(queue, b"1"), harness.enqueue(queue, b"2")
    message = first.message
    read = harness.core.messages.dequeue(open_queue)
    assert read.status == MQ_OK
    assert read.message is message
    assert events.deleted() == [(first, ACK_RECEIVE)]
    assert first.state is PositionState.DELETED
    assert list(queue.positions) == [second]


@pytest.mark.requirement("DMPR-3.1.7.1.10-09", "DMPR-3.1.7.3.2-04")
def test_locked_messages_are_passed_over(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    harness.enqueue(queue, b"1", allow_peek_when_locked=True)
    harness.enqueue(queue, b"2")
    assert body_of(harness.core.messages.dequeue_begin(open_queue)) == b"1"
    assert body_of(harness.core.messages.dequeue(open_queue)) == b"2"
    assert harness.core.messages.dequeue(open_queue, timeout=0).status == TIMEOUT


@pytest.mark.requirement("DMPR-3.1.7.1.10-04")
def test_a_cursor_says_which_message_is_received(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    for body in (b"1", b"2", b"3"):
        harness.enqueue(queue, body)
    cursor = cursor_of(harness, open_queue)
    messages = harness.core.messages
    assert body_of(messages.peek(open_queue, cursor=cursor)) == b"1"
    assert body_of(messages.peek_next(open_queue, cursor)) == b"2"
    assert body_of(messages.dequeue(open_queue, cursor=cursor)) == b"2"
    assert bodies(queue) == [b"1", b"3"]


@pytest.mark.requirement("DMPR-3.1.7.1.10-04", "DMPR-3.1.7.1.10-06")
def test_a_cursor_at_the_end_does_not_wait_for_time_out_zero(
    harness: EngineHarness, open_queue: OpenQueueDescriptor
) -> None:
    cursor = cursor_of(harness, open_queue)
    assert harness.core.messages.dequeue(open_queue, cursor=cursor, timeout=0).status == 0xC00E0088
    assert cursor.state is CursorState.UNREAD
    assert harness.core.messages.dequeue(open_queue, cursor=cursor, timeout=1).status == PENDING
    assert cursor.state is CursorState.WAIT_RECEIVE


@pytest.mark.requirement("DMPR-3.1.7.1.10-05")
def test_a_cursor_whose_message_another_has_received(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    harness.enqueue(queue)
    cursor = cursor_of(harness, open_queue)
    harness.core.messages.peek(open_queue, cursor=cursor)
    harness.core.messages.dequeue(open_queue)
    assert harness.core.messages.dequeue(open_queue, cursor=cursor).status == 0xC00E001D


@pytest.mark.requirement("DMPR-3.1.7.1.10-07")
def test_a_cursor_that_waits_receives_what_comes(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor, events: EventRecorder
) -> None:
    cursor = cursor_of(harness, open_queue)
    waiting = harness.core.messages.dequeue(open_queue, cursor=cursor, timeout=1_000, tag="mine")
    (reader,) = open_queue.waiting.values()
    assert (reader.destructive, reader.tag, reader.cursor) == (True, "mine", cursor)
    harness.enqueue_message(queue, b"new")
    assert completed_reads(harness.run()) == [(waiting.request, MQ_OK, b"new")]
    ((position, reason),) = events.deleted()
    assert reason == ACK_RECEIVE
    assert cursor.position is position
    assert cursor.state is CursorState.UNREAD
    assert bodies(queue) == []


@pytest.mark.requirement("DMPR-3.1.7.1.10-07", "DMPR-3.1.7.1.10-08", "DMPR-3.1.6.3-01")
def test_a_cursor_whose_wait_is_over_stands_behind_all_messages(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    cursor = cursor_of(harness, open_queue)
    waiting = harness.core.messages.dequeue(open_queue, cursor=cursor, timeout=1_000)
    assert completed_reads(harness.advance(999)) == []
    assert completed_reads(harness.advance(1)) == [(waiting.request, TIMEOUT, None)]
    assert cursor.state is CursorState.UNREAD
    assert cursor.position is queue.positions.end


@pytest.mark.requirement("DMPR-3.1.7.1.10-10", "DMPR-3.1.7.3.1-03", "DMPR-3.1.1.10-03")
def test_without_a_cursor_an_empty_queue_is_waited_for(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    waiting = harness.core.messages.dequeue(open_queue, timeout=1_000, tag="mine")
    assert waiting.status == PENDING
    (reader,) = open_queue.waiting.values()
    assert (reader.destructive, reader.tag, reader.cursor) == (True, "mine", None)
    harness.enqueue_message(queue, b"new")
    assert completed_reads(harness.run()) == [(waiting.request, MQ_OK, b"new")]
    assert bodies(queue) == []


@pytest.mark.requirement("DMPR-3.1.7.1.10-10", "DMPR-3.1.7.3.1-02")
@pytest.mark.parametrize("timeout", [0, -1])
def test_no_time_to_wait_gives_a_time_out_at_once(
    harness: EngineHarness, open_queue: OpenQueueDescriptor, timeout: int
) -> None:
    assert harness.core.messages.dequeue(open_queue, timeout=timeout).status == 0xC00E001B
    assert open_queue.waiting == {}


@pytest.mark.requirement("DMPR-3.1.7.1.10-02", "DMPR-3.1.2.3-02")
def test_a_wait_without_a_limit_never_ends(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    waiting = harness.core.messages.dequeue(open_queue)
    assert not harness.core.context.timers.active(Timer.WAITING_MESSAGE_READ, waiting.request)
    assert harness.advance(10**12) == []
    harness.enqueue_message(queue, b"late")
    assert completed_reads(harness.run()) == [(waiting.request, MQ_OK, b"late")]


@pytest.mark.requirement("DMPR-3.1.7.1.10-11", "DMPR-3.1.7.1.10-15", "DMPR-3.1.1.13-04", "DMPR-3.1.1.11-03/a")
def test_a_transaction_locks_what_it_receives(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor, events: EventRecorder
) -> None:
    position = harness.enqueue(queue, b"1")
    transaction = harness.begin()
    assert body_of(harness.core.messages.dequeue(open_queue, transaction=transaction)) == b"1"
    (operation,) = transaction.operations
    assert operation.operation_type is OperationType.DEQUEUE
    assert operation.position is position
    assert operation.dequeue_reason == ACK_RECEIVE
    assert states(queue) == [LOCKED]
    assert events.deleted() == []
    assert harness.core.commit(transaction) == MQ_OK
    assert events.deleted() == [(position, ACK_RECEIVE)]


@pytest.mark.requirement("DMPR-3.1.7.1.10-11")
def test_a_transaction_that_waits_locks_what_it_receives(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    transaction = harness.begin()
    waiting = harness.core.messages.dequeue(open_queue, timeout=1_000, transaction=transaction)
    position = harness.enqueue(queue, b"1")
    assert completed_reads(harness.run()) == [(waiting.request, MQ_OK, b"1")]
    assert position.state is LOCKED
    assert [operation.position for operation in transaction.operations] == [position]


def test_a_read_whose_transaction_has_ended_takes_no_message(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    transaction = harness.begin()
    waiting = harness.core.messages.dequeue(open_queue, timeout=1_000, transaction=transaction)
    harness.core.transactions.abort(transaction.identifier)
    harness.enqueue(queue, b"1")
    assert completed_reads(harness.run()) == [(waiting.request, HResult.MQ_ERROR_TRANSACTION_SEQUENCE, None)]
    assert states(queue) == [AVAILABLE]


@pytest.mark.requirement("DMPR-3.1.7.1.10-12")
def test_no_transaction_means_that_the_message_goes(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    harness.enqueue(queue, b"1")
    assert body_of(harness.core.messages.dequeue(open_queue, transaction=None)) == b"1"
    assert states(queue) == []


@pytest.mark.requirement("DMPR-3.1.7.1.10-12")
def test_a_transaction_without_an_identifier_is_none(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    harness.enqueue(queue, b"1")
    nobody = harness.core.transactions.create(NULL_GUID)
    assert body_of(harness.core.messages.dequeue(open_queue, transaction=nobody)) == b"1"
    assert states(queue) == []
    assert nobody.operations == []


@pytest.mark.requirement("DMPR-3.1.1.11-03/b")
@pytest.mark.requirement("DMPR-3.1.7.1.10-13", "DMPR-3.1.7.1.10-15", "DMPR-3.1.7.1.11-02")
def test_a_read_in_two_phases_locks_the_message(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor, events: EventRecorder
) -> None:
    position = harness.enqueue(queue, b"1")
    read = harness.core.messages.dequeue_begin(open_queue)
    assert (read.status, read.position) == (MQ_OK, position)
    assert read.message is position.message
    assert states(queue) == [LOCKED]
    assert events.deleted() == []


# -- Dequeue Message Begin ------------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.7.1.11-02")
def test_begin_hands_on_what_it_is_given(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    messages, cursor, transaction = harness.core.messages, cursor_of(harness, open_queue), harness.begin()
    waiting = messages.dequeue_begin(
        open_queue, timeout=500, cursor=cursor, transaction=transaction, tag=("a", 1)
    )
    (reader,) = open_queue.waiting.values()
    assert (reader.two_phase, reader.cursor, reader.tag) == (True, cursor, ("a", 1))
    assert reader.transaction is transaction
    assert completed_reads(harness.advance(499)) == []
    assert completed_reads(harness.advance(1)) == [(waiting.request, TIMEOUT, None)]


@pytest.mark.requirement("DMPR-3.1.7.1.11-02")
def test_begin_gives_the_status_of_dequeue(harness: EngineHarness, open_queue: OpenQueueDescriptor) -> None:
    messages = harness.core.messages
    assert messages.dequeue_begin(open_queue, timeout=0).status == 0xC00E001B
    cursor = cursor_of(harness, open_queue)
    assert messages.dequeue_begin(open_queue, timeout=0, cursor=cursor).status == 0xC00E0088
    assert messages.dequeue_begin(open_queue).status == PENDING  # Infinite when absent
    assert completed_reads(harness.advance(10**12)) == []


# -- Dequeue Message End --------------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.7.1.12-02")
def test_end_of_a_read_that_never_began(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor, events: EventRecorder
) -> None:
    position = harness.enqueue(queue)
    events.log.clear()
    assert harness.core.messages.dequeue_end(open_queue, position, delete=True) == 0xC00E0051
    assert states(queue) == [AVAILABLE]
    assert events.log == []


@pytest.mark.requirement("DMPR-3.1.7.1.12-03")
@pytest.mark.parametrize("delete", [True, False])
def test_end_leaves_the_message_to_its_transaction(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor, delete: bool
) -> None:
    position, transaction = harness.enqueue(queue), harness.begin()
    harness.core.messages.dequeue_begin(open_queue, transaction=transaction)
    status = harness.core.messages.dequeue_end(open_queue, position, delete=delete, transactional=True)
    assert status == MQ_OK
    assert states(queue) == [LOCKED]


@pytest.mark.requirement("DMPR-3.1.7.1.12-04")
def test_end_deletes_the_message(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor, events: EventRecorder
) -> None:
    position = harness.enqueue(queue, delivery_guarantee=RECOVERABLE)
    harness.core.messages.dequeue_begin(open_queue)
    assert harness.core.messages.dequeue_end(open_queue, position, delete=True) == MQ_OK
    assert events.deleted() == [(position, ACK_RECEIVE)]
    harness.run()
    assert harness.rows(Table.MESSAGE) == {}
    assert harness.rows(Table.PACKET) == {}


@pytest.mark.requirement("DMPR-3.1.7.1.12-05", "DMPR-3.1.7.1.7-02")
@pytest.mark.parametrize("delete", [True, False])
def test_end_of_a_read_whose_queue_was_purged(
    harness: EngineHarness,
    queue: Queue,
    open_queue: OpenQueueDescriptor,
    events: EventRecorder,
    delete: bool,
) -> None:
    position = harness.enqueue(queue)
    harness.core.messages.dequeue_begin(open_queue)
    harness.core.messages.purge(queue)
    assert states(queue) == [PositionState.PURGE_PENDING]
    assert harness.core.messages.dequeue_end(open_queue, position, delete=delete) == MQ_OK
    assert events.deleted() == [(position, PURGED)]
    assert states(queue) == []


@pytest.mark.requirement("DMPR-3.1.7.1.12-06")
def test_end_gives_the_message_back(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor, events: EventRecorder
) -> None:
    position = harness.enqueue(queue, b"1")
    harness.enqueue(queue, b"2")
    harness.core.messages.dequeue_begin(open_queue)
    events.log.clear()
    assert harness.core.messages.dequeue_end(open_queue, position, delete=False) == MQ_OK
    assert events.log == [("available", queue, position)]
    assert bodies(queue, AVAILABLE) == [b"1", b"2"]
    assert body_of(harness.core.messages.dequeue(open_queue)) == b"1"


@pytest.mark.requirement("DMPR-3.1.7.1.12-06")
def test_a_message_given_back_goes_to_who_waits(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    position = harness.enqueue(queue, b"1")
    harness.core.messages.dequeue_begin(open_queue)
    waiting = harness.core.messages.dequeue(open_queue, timeout=1_000)
    harness.core.messages.dequeue_end(open_queue, position, delete=False)
    assert completed_reads(harness.run()) == [(waiting.request, MQ_OK, b"1")]


@pytest.mark.requirement("DMPR-3.1.1.11-11/c")
def test_a_read_in_two_phases_does_not_survive(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    harness.enqueue(queue, b"1", delivery_guarantee=RECOVERABLE)
    harness.core.messages.dequeue_begin(open_queue)
    harness.run()
    harness.restart()
    assert states(harness.find_queue()) == [AVAILABLE]
