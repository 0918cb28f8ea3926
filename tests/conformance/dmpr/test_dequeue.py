"""Messages received: [MS-MQDMPR] 3.1.7.1.10 to 3.1.7.1.12."""

from __future__ import annotations

import pytest

from msmqwire.constants import MQ_OK, HResult, MessageClass
from msmqwire.qm.model.changes import Table
from msmqwire.qm.model.elements import OpenQueueDescriptor, Queue
from msmqwire.qm.model.enumerations import CursorState, OperationType, PositionState
from msmqwire.qm.model.message import NULL_GUID
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.rules.read_results import PENDING
from tests.support.queue_manager_desk import RECOVERABLE, Desk, Watcher, bodies, completed, states, taken

ACK_RECEIVE = MessageClass.MQMSG_CLASS_ACK_RECEIVE
PURGED = MessageClass.MQMSG_CLASS_NACK_Q_PURGED
TIMEOUT = HResult.MQ_ERROR_IO_TIMEOUT
AVAILABLE, LOCKED = PositionState.AVAILABLE, PositionState.LOCKED


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def queue(desk: Desk) -> Queue:
    return desk.queue()


@pytest.fixture
def open_queue(desk: Desk, queue: Queue) -> OpenQueueDescriptor:
    return desk.open(queue)


@pytest.fixture
def watcher(desk: Desk) -> Watcher:
    return desk.watch()


def cursor_of(desk: Desk, descriptor: OpenQueueDescriptor):
    cursor = desk.core.queues.open_cursor(descriptor)
    assert cursor is not None
    return cursor


# -- Dequeue Message ------------------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.7.1.10-01", "DMPR-3.1.7.1.10-03")
def test_a_queue_that_is_gone_gives_no_message(
    desk: Desk, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    desk.core.queues.delete(queue)
    assert desk.core.messages.dequeue(open_queue).status == 0xC00E004B


@pytest.mark.requirement("DMPR-3.1.7.1.11-01")
def test_a_queue_that_is_gone_begins_no_read(
    desk: Desk, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    desk.core.queues.delete(queue)
    assert desk.core.messages.dequeue_begin(open_queue).status == 0xC00E004B


@pytest.mark.requirement("DMPR-3.1.7.1.12-01")
def test_a_queue_that_is_gone_ends_no_read(desk: Desk, queue: Queue, open_queue: OpenQueueDescriptor) -> None:
    position = desk.put(queue)
    desk.core.messages.dequeue_begin(open_queue)
    desk.core.queues.delete(queue)
    assert desk.core.messages.dequeue_end(open_queue, position, delete=True) == 0xC00E004B


@pytest.mark.requirement("DMPR-3.1.7.1.10-09", "DMPR-3.1.7.1.10-14", "DMPR-3.1.7.1.10-15")
def test_the_first_available_message_is_given_and_deleted(
    desk: Desk, queue: Queue, open_queue: OpenQueueDescriptor, watcher: Watcher
) -> None:
    first, second = desk.put(queue, b"1"), desk.put(queue, b"2")
    message = first.message
    found = desk.core.messages.dequeue(open_queue)
    assert found.status == MQ_OK
    assert found.message is message
    assert watcher.deleted() == [(first, ACK_RECEIVE)]
    assert first.state is PositionState.DELETED
    assert list(queue.positions) == [second]


@pytest.mark.requirement("DMPR-3.1.7.1.10-09", "DMPR-3.1.7.3.2-04")
def test_locked_messages_are_passed_over(desk: Desk, queue: Queue, open_queue: OpenQueueDescriptor) -> None:
    desk.put(queue, b"1", allow_peek_when_locked=True)
    desk.put(queue, b"2")
    assert taken(desk.core.messages.dequeue_begin(open_queue)) == b"1"
    assert taken(desk.core.messages.dequeue(open_queue)) == b"2"
    assert desk.core.messages.dequeue(open_queue, timeout=0).status == TIMEOUT


@pytest.mark.requirement("DMPR-3.1.7.1.10-04")
def test_a_cursor_says_which_message_is_received(
    desk: Desk, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    for body in (b"1", b"2", b"3"):
        desk.put(queue, body)
    cursor = cursor_of(desk, open_queue)
    messages = desk.core.messages
    assert taken(messages.peek(open_queue, cursor=cursor)) == b"1"
    assert taken(messages.peek_next(open_queue, cursor)) == b"2"
    assert taken(messages.dequeue(open_queue, cursor=cursor)) == b"2"
    assert bodies(queue) == [b"1", b"3"]


@pytest.mark.requirement("DMPR-3.1.7.1.10-04", "DMPR-3.1.7.1.10-06")
def test_a_cursor_at_the_end_does_not_wait_for_time_out_zero(
    desk: Desk, open_queue: OpenQueueDescriptor
) -> None:
    cursor = cursor_of(desk, open_queue)
    assert desk.core.messages.dequeue(open_queue, cursor=cursor, timeout=0).status == 0xC00E0088
    assert cursor.state is CursorState.UNREAD
    assert desk.core.messages.dequeue(open_queue, cursor=cursor, timeout=1).status == PENDING
    assert cursor.state is CursorState.WAIT_RECEIVE


@pytest.mark.requirement("DMPR-3.1.7.1.10-05")
def test_a_cursor_whose_message_another_has_received(
    desk: Desk, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    desk.put(queue)
    cursor = cursor_of(desk, open_queue)
    desk.core.messages.peek(open_queue, cursor=cursor)
    desk.core.messages.dequeue(open_queue)
    assert desk.core.messages.dequeue(open_queue, cursor=cursor).status == 0xC00E001D


@pytest.mark.requirement("DMPR-3.1.7.1.10-07")
def test_a_cursor_that_waits_receives_what_comes(
    desk: Desk, queue: Queue, open_queue: OpenQueueDescriptor, watcher: Watcher
) -> None:
    cursor = cursor_of(desk, open_queue)
    waiting = desk.core.messages.dequeue(open_queue, cursor=cursor, timeout=1_000, tag="mine")
    (reader,) = open_queue.waiting.values()
    assert (reader.destructive, reader.tag, reader.cursor) == (True, "mine", cursor)
    desk.put_quickly(queue, b"new")
    assert completed(desk.step()) == [(waiting.request, MQ_OK, b"new")]
    ((position, reason),) = watcher.deleted()
    assert reason == ACK_RECEIVE
    assert cursor.position is position
    assert cursor.state is CursorState.UNREAD
    assert bodies(queue) == []


@pytest.mark.requirement("DMPR-3.1.7.1.10-08", "DMPR-3.1.6.3-01")
def test_a_cursor_whose_wait_is_over_stands_behind_all_messages(
    desk: Desk, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    cursor = cursor_of(desk, open_queue)
    waiting = desk.core.messages.dequeue(open_queue, cursor=cursor, timeout=1_000)
    assert completed(desk.advance(1_000)) == [(waiting.request, TIMEOUT, None)]
    assert cursor.state is CursorState.UNREAD
    assert cursor.position is queue.positions.end


@pytest.mark.requirement("DMPR-3.1.7.1.10-10", "DMPR-3.1.7.3.1-03", "DMPR-3.1.1.10-03")
def test_without_a_cursor_an_empty_queue_is_waited_for(
    desk: Desk, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    waiting = desk.core.messages.dequeue(open_queue, timeout=1_000, tag="mine")
    assert waiting.status == PENDING
    (reader,) = open_queue.waiting.values()
    assert (reader.destructive, reader.tag, reader.cursor) == (True, "mine", None)
    desk.put_quickly(queue, b"new")
    assert completed(desk.step()) == [(waiting.request, MQ_OK, b"new")]
    assert bodies(queue) == []


@pytest.mark.requirement("DMPR-3.1.7.1.10-10", "DMPR-3.1.7.3.1-02")
@pytest.mark.parametrize("timeout", [0, -1])
def test_no_time_to_wait_gives_a_time_out_at_once(
    desk: Desk, open_queue: OpenQueueDescriptor, timeout: int
) -> None:
    assert desk.core.messages.dequeue(open_queue, timeout=timeout).status == 0xC00E001B
    assert open_queue.waiting == {}


@pytest.mark.requirement("DMPR-3.1.7.1.10-02", "DMPR-3.1.2.3-02")
def test_a_wait_without_a_limit_never_ends(desk: Desk, queue: Queue, open_queue: OpenQueueDescriptor) -> None:
    waiting = desk.core.messages.dequeue(open_queue)
    assert not desk.core.context.timers.active(Timer.WAITING_MESSAGE_READ, waiting.request)
    assert desk.advance(10**12) == []
    desk.put_quickly(queue, b"late")
    assert completed(desk.step()) == [(waiting.request, MQ_OK, b"late")]


@pytest.mark.requirement("DMPR-3.1.7.1.10-11", "DMPR-3.1.1.13-04", "DMPR-3.1.1.11-03")
def test_a_transaction_locks_what_it_receives(
    desk: Desk, queue: Queue, open_queue: OpenQueueDescriptor, watcher: Watcher
) -> None:
    position = desk.put(queue, b"1")
    transaction = desk.begin()
    assert taken(desk.core.messages.dequeue(open_queue, transaction=transaction)) == b"1"
    (operation,) = transaction.operations
    assert operation.operation_type is OperationType.DEQUEUE
    assert operation.position is position
    assert operation.dequeue_reason == ACK_RECEIVE
    assert states(queue) == [LOCKED]
    assert watcher.deleted() == []
    assert desk.core.commit(transaction) == MQ_OK
    assert watcher.deleted() == [(position, ACK_RECEIVE)]


@pytest.mark.requirement("DMPR-3.1.7.1.10-11")
def test_a_transaction_that_waits_locks_what_it_receives(
    desk: Desk, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    transaction = desk.begin()
    waiting = desk.core.messages.dequeue(open_queue, timeout=1_000, transaction=transaction)
    position = desk.put(queue, b"1")
    assert completed(desk.step()) == [(waiting.request, MQ_OK, b"1")]
    assert position.state is LOCKED
    assert [operation.position for operation in transaction.operations] == [position]


def test_a_read_whose_transaction_has_ended_takes_no_message(
    desk: Desk, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    transaction = desk.begin()
    waiting = desk.core.messages.dequeue(open_queue, timeout=1_000, transaction=transaction)
    desk.core.transactions.abort(transaction.identifier)
    desk.put(queue, b"1")
    assert completed(desk.step()) == [(waiting.request, HResult.MQ_ERROR_TRANSACTION_SEQUENCE, None)]
    assert states(queue) == [AVAILABLE]


@pytest.mark.requirement("DMPR-3.1.7.1.10-12")
def test_no_transaction_means_that_the_message_goes(
    desk: Desk, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    desk.put(queue, b"1")
    assert taken(desk.core.messages.dequeue(open_queue, transaction=None)) == b"1"
    assert states(queue) == []


@pytest.mark.requirement("DMPR-3.1.7.1.10-12")
def test_a_transaction_without_an_identifier_is_none(
    desk: Desk, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    desk.put(queue, b"1")
    nobody = desk.core.transactions.create(NULL_GUID)
    assert taken(desk.core.messages.dequeue(open_queue, transaction=nobody)) == b"1"
    assert states(queue) == []
    assert nobody.operations == []


@pytest.mark.requirement("DMPR-3.1.7.1.10-13", "DMPR-3.1.7.1.11-02", "DMPR-3.1.7.1.10-02")
def test_a_read_in_two_phases_locks_the_message(
    desk: Desk, queue: Queue, open_queue: OpenQueueDescriptor, watcher: Watcher
) -> None:
    position = desk.put(queue, b"1")
    found = desk.core.messages.dequeue_begin(open_queue)
    assert (found.status, found.position) == (MQ_OK, position)
    assert found.message is position.message
    assert states(queue) == [LOCKED]
    assert watcher.deleted() == []


# -- Dequeue Message Begin ------------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.7.1.11-02")
def test_begin_hands_on_what_it_is_given(desk: Desk, queue: Queue, open_queue: OpenQueueDescriptor) -> None:
    messages, cursor, transaction = desk.core.messages, cursor_of(desk, open_queue), desk.begin()
    waiting = messages.dequeue_begin(
        open_queue, timeout=500, cursor=cursor, transaction=transaction, tag=("a", 1)
    )
    (reader,) = open_queue.waiting.values()
    assert (reader.two_phase, reader.cursor, reader.tag) == (True, cursor, ("a", 1))
    assert reader.transaction is transaction
    assert completed(desk.advance(499)) == []
    assert completed(desk.advance(1)) == [(waiting.request, TIMEOUT, None)]


@pytest.mark.requirement("DMPR-3.1.7.1.11-02")
def test_begin_gives_the_status_of_dequeue(desk: Desk, open_queue: OpenQueueDescriptor) -> None:
    messages = desk.core.messages
    assert messages.dequeue_begin(open_queue, timeout=0).status == 0xC00E001B
    cursor = cursor_of(desk, open_queue)
    assert messages.dequeue_begin(open_queue, timeout=0, cursor=cursor).status == 0xC00E0088
    assert messages.dequeue_begin(open_queue).status == PENDING  # Infinite when absent
    assert completed(desk.advance(10**12)) == []


# -- Dequeue Message End --------------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.7.1.12-02")
def test_end_of_a_read_that_never_began(
    desk: Desk, queue: Queue, open_queue: OpenQueueDescriptor, watcher: Watcher
) -> None:
    position = desk.put(queue)
    watcher.log.clear()
    assert desk.core.messages.dequeue_end(open_queue, position, delete=True) == 0xC00E0051
    assert states(queue) == [AVAILABLE]
    assert watcher.log == []


@pytest.mark.requirement("DMPR-3.1.7.1.12-03")
@pytest.mark.parametrize("delete", [True, False])
def test_end_leaves_the_message_to_its_transaction(
    desk: Desk, queue: Queue, open_queue: OpenQueueDescriptor, delete: bool
) -> None:
    position, transaction = desk.put(queue), desk.begin()
    desk.core.messages.dequeue_begin(open_queue, transaction=transaction)
    status = desk.core.messages.dequeue_end(open_queue, position, delete=delete, transactional=True)
    assert status == MQ_OK
    assert states(queue) == [LOCKED]


@pytest.mark.requirement("DMPR-3.1.7.1.12-04")
def test_end_deletes_the_message(
    desk: Desk, queue: Queue, open_queue: OpenQueueDescriptor, watcher: Watcher
) -> None:
    position = desk.put(queue, delivery_guarantee=RECOVERABLE)
    desk.core.messages.dequeue_begin(open_queue)
    assert desk.core.messages.dequeue_end(open_queue, position, delete=True) == MQ_OK
    assert watcher.deleted() == [(position, ACK_RECEIVE)]
    desk.step()
    assert desk.rows(Table.MESSAGE) == {}
    assert desk.rows(Table.PACKET) == {}


@pytest.mark.requirement("DMPR-3.1.7.1.12-05", "DMPR-3.1.7.1.7-02")
@pytest.mark.parametrize("delete", [True, False])
def test_end_of_a_read_whose_queue_was_purged(
    desk: Desk, queue: Queue, open_queue: OpenQueueDescriptor, watcher: Watcher, delete: bool
) -> None:
    position = desk.put(queue)
    desk.core.messages.dequeue_begin(open_queue)
    desk.core.messages.purge(queue)
    assert states(queue) == [PositionState.PURGE_PENDING]
    assert desk.core.messages.dequeue_end(open_queue, position, delete=delete) == MQ_OK
    assert watcher.deleted() == [(position, PURGED)]
    assert states(queue) == []


@pytest.mark.requirement("DMPR-3.1.7.1.12-06")
def test_end_gives_the_message_back(
    desk: Desk, queue: Queue, open_queue: OpenQueueDescriptor, watcher: Watcher
) -> None:
    position = desk.put(queue, b"1")
    desk.put(queue, b"2")
    desk.core.messages.dequeue_begin(open_queue)
    watcher.log.clear()
    assert desk.core.messages.dequeue_end(open_queue, position, delete=False) == MQ_OK
    assert watcher.log == [("available", queue, position)]
    assert bodies(queue, AVAILABLE) == [b"1", b"2"]
    assert taken(desk.core.messages.dequeue(open_queue)) == b"1"


@pytest.mark.requirement("DMPR-3.1.7.1.12-06")
def test_a_message_given_back_goes_to_who_waits(
    desk: Desk, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    position = desk.put(queue, b"1")
    desk.core.messages.dequeue_begin(open_queue)
    waiting = desk.core.messages.dequeue(open_queue, timeout=1_000)
    desk.core.messages.dequeue_end(open_queue, position, delete=False)
    assert completed(desk.step()) == [(waiting.request, MQ_OK, b"1")]


@pytest.mark.requirement("DMPR-3.1.1.11-11")
def test_a_read_in_two_phases_does_not_survive(
    desk: Desk, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    desk.put(queue, b"1", delivery_guarantee=RECOVERABLE)
    desk.core.messages.dequeue_begin(open_queue)
    desk.step()
    desk.restart()
    assert states(desk.find()) == [AVAILABLE]
