"""Messages in queues, and the readers that wait for them: [MS-MQDMPR] 3.1.7.1.17, 3.1.7.2, 3.1.7.3."""

from __future__ import annotations

import pytest

from msmqwire.constants import MQ_OK, HResult, MessageClass
from msmqwire.qm.model.changes import Table
from msmqwire.qm.model.elements import OpenQueueDescriptor, Queue
from msmqwire.qm.model.enumerations import (
    INFINITE,
    EnqueueStatus,
    OperationType,
    OutgoingQueueState,
    PositionState,
)
from msmqwire.qm.model.message import Message
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.rules import serialization
from msmqwire.qm.rules.read_results import PENDING, STATUS_NOT_FOUND
from tests.support.queue_manager_desk import PEEK, RECOVERABLE, Desk, bodies, completed, states, taken

ACK_RECEIVE = MessageClass.MQMSG_CLASS_ACK_RECEIVE
TIMED_OUT = MessageClass.MQMSG_CLASS_NACK_RECEIVE_TIMEOUT
PURGED = MessageClass.MQMSG_CLASS_NACK_Q_PURGED
CANCELLED = HResult.MQ_ERROR_OPERATION_CANCELLED
IO_TIMEOUT = HResult.MQ_ERROR_IO_TIMEOUT
LOCKED, AVAILABLE = PositionState.LOCKED, PositionState.AVAILABLE


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def queue(desk: Desk) -> Queue:
    return desk.queue()


@pytest.fixture
def open_queue(desk: Desk, queue: Queue) -> OpenQueueDescriptor:
    return desk.open(queue)


# -- Message Position Available and Deleted -------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.7.2.1-01", "DMPR-3.1.7.2.2-01", "DMPR-3.1.1.2-22", "DMPR-3.1.1.11-02")
def test_bytes_of_a_queue_are_those_of_its_messages(
    desk: Desk, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    assert queue.total_bytes == 0
    first, second = desk.put(queue, b"x" * 100), desk.put(queue, b"y")
    size = serialization.packet_size(first.message), serialization.packet_size(second.message)
    assert size[0] > size[1] > 0
    assert queue.total_bytes == sum(size)
    assert first.state is AVAILABLE
    desk.core.messages.dequeue(open_queue)
    assert queue.total_bytes == size[1]
    assert first.state is PositionState.DELETED
    assert list(queue.positions) == [second]


@pytest.mark.requirement("DMPR-3.1.7.2.2-01", "DMPR-3.1.7.2.1-01")
def test_a_message_counts_once_as_long_as_it_is_in_the_queue(
    desk: Desk, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    transaction, other = desk.begin(), desk.begin()
    position = desk.put(queue, b"x" * 100, transaction)
    size = position.size
    assert queue.total_bytes == size  # it takes its place already
    desk.core.commit(transaction)
    assert queue.total_bytes == size
    desk.core.messages.dequeue(open_queue, transaction=other)
    assert queue.total_bytes == size
    desk.core.transactions.abort(other.identifier)
    assert (queue.total_bytes, position.state) == (size, AVAILABLE)
    desk.core.messages.dequeue(open_queue)
    assert queue.total_bytes == desk.core.queue_manager.total_bytes == 0


@pytest.mark.requirement("DMPR-3.1.7.2-01", "DMPR-3.1.7.2.1-02")
def test_the_other_protocols_are_told_with_the_reason(
    desk: Desk, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    watcher = desk.watch()
    first, second = desk.put(queue, b"1"), desk.put(queue, b"2")
    desk.core.messages.dequeue(open_queue)
    desk.core.messages.purge(queue)
    assert watcher.log == [
        ("available", queue, first),
        ("available", queue, second),
        ("deleted", queue, first, ACK_RECEIVE),
        ("deleted", queue, second, PURGED),
    ]


@pytest.mark.requirement("DMPR-3.1.7.2.2-02", "DMPR-3.1.7.2.2-03", "DMPR-3.1.1.16-12", "DMPR-3.1.1.10-01")
def test_readers_are_served_one_by_one_in_their_order(
    desk: Desk, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    messages, second = desk.core.messages, desk.open(queue)
    requests = [
        messages.dequeue(open_queue, timeout=1_000).request,
        messages.dequeue(open_queue, timeout=1_000).request,
        messages.dequeue(second, timeout=1_000).request,
    ]
    found = []
    for number in (1, 2, 3):
        desk.put_quickly(queue, b"%d" % number)
        found.append(completed(desk.step()))
    assert found == [[(requests[number], MQ_OK, b"%d" % (number + 1))] for number in range(3)]
    assert bodies(queue) == []


@pytest.mark.requirement("DMPR-3.1.7.2.2-03", "DMPR-3.1.7.2.2-04", "DMPR-3.1.7.3.7-01")
def test_peekers_and_one_receiver_get_the_same_message(
    desk: Desk, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    messages, second = desk.core.messages, desk.open(queue, PEEK)
    requests = [
        messages.peek(open_queue, timeout=1_000).request,
        messages.peek(open_queue, timeout=1_000).request,
        messages.dequeue(open_queue, timeout=1_000).request,
        messages.peek(open_queue, timeout=1_000).request,
        messages.peek(second, timeout=1_000).request,
    ]
    desk.put_quickly(queue, b"1")
    assert [request for request, *_ in completed(desk.step())] == requests[:3]
    assert list(open_queue.waiting) == requests[3:4]
    assert list(second.waiting) == requests[4:]
    desk.put(queue, b"2")
    assert completed(desk.step()) == [(request, MQ_OK, b"2") for request in requests[3:]]
    assert bodies(queue) == [b"2"]


@pytest.mark.requirement("DMPR-3.1.7.2.2-03")
def test_a_receiver_that_only_locks_stops_the_others_too(
    desk: Desk, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    messages = desk.core.messages
    first = messages.dequeue_begin(open_queue, timeout=1_000)
    second = messages.dequeue_begin(open_queue, timeout=1_000)
    position = desk.put(queue, b"1")
    assert [request for request, *_ in completed(desk.step())] == [first.request]
    messages.dequeue_end(open_queue, position, delete=False)
    assert completed(desk.step()) == [(second.request, MQ_OK, b"1")]


# -- Pause, Resume, flow control ------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.7.2.3-01", "DMPR-3.1.4.14-01")
@pytest.mark.parametrize("state", list(OutgoingQueueState))
def test_a_paused_queue_is_on_hold(desk: Desk, state: OutgoingQueueState) -> None:
    outgoing, watcher = desk.outgoing(), desk.watch()
    outgoing.state = state
    desk.core.queues.pause(outgoing)
    assert outgoing.state is OutgoingQueueState.ON_HOLD
    assert watcher.log == [("paused", outgoing)]


@pytest.mark.requirement("DMPR-3.1.7.2.4-01", "DMPR-3.1.4.15-01")
@pytest.mark.parametrize("state", list(OutgoingQueueState))
def test_a_resumed_queue_is_inactive(desk: Desk, state: OutgoingQueueState) -> None:
    outgoing, watcher = desk.outgoing(), desk.watch()
    outgoing.state = state
    desk.core.queues.resume(outgoing)
    assert outgoing.state is OutgoingQueueState.INACTIVE
    assert watcher.log == [("resumed", outgoing)]


@pytest.mark.requirement("DMPR-3.1.7.2.4-01")
def test_a_resumed_queue_stays_locked_while_security_is_hardened(desk: Desk) -> None:
    outgoing = desk.outgoing()
    desk.core.queue_manager.hardened_security = True
    desk.core.queues.resume(outgoing)
    assert outgoing.state is OutgoingQueueState.LOCKED


@pytest.mark.requirement("DMPR-3.1.7.2.5-01", "DMPR-3.1.7.2.6-01", "DMPR-3.1.7.1.9-02", "DMPR-3.1.1.1-34")
def test_flow_control(desk: Desk, queue: Queue) -> None:
    manager = desk.core.queue_manager
    assert manager.throttled is False
    desk.core.queues.begin_flow_control()
    assert manager.throttled is True
    assert desk.core.messages.enqueue(queue, Message()) == 2
    assert len(queue.positions) == 0
    desk.core.queues.end_flow_control()
    assert manager.throttled is False
    assert desk.core.messages.enqueue(queue, Message()) == 0


# -- Time To Be Received Timer --------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.2.4-01", "DMPR-3.1.2.4-03", "DMPR-3.1.7.2.7-01")
def test_a_message_that_nobody_receives_in_time_is_deleted(desk: Desk, queue: Queue) -> None:
    watcher = desk.watch()
    position = desk.put(queue, time_to_be_received=10)
    forever = desk.put(queue, time_to_be_received=INFINITE)
    desk.advance(9_999)
    assert list(queue.positions) == [position, forever]
    desk.advance(1)
    assert watcher.deleted() == [(position, TIMED_OUT)]
    desk.advance(10**12)
    assert list(queue.positions) == [forever]


@pytest.mark.requirement("DMPR-3.1.2.4-01", "DMPR-3.1.1.12-49")
def test_time_to_be_received_counts_from_when_the_message_was_sent(desk: Desk, queue: Queue) -> None:
    desk.put(queue, time_to_be_received=10, sent_time=desk.utc - 4)
    desk.advance(5_999)
    assert states(queue) == [AVAILABLE]
    desk.advance(1)
    assert states(queue) == []


@pytest.mark.requirement("DMPR-3.1.2.4-01")
def test_only_where_messages_are_received_their_time_runs(desk: Desk) -> None:
    outgoing = desk.outgoing()
    position = desk.put(outgoing, time_to_be_received=1)
    journal = desk.core.queue_manager.system_journal_queue
    assert journal is not None
    kept = desk.put(journal, time_to_be_received=1)
    desk.advance(10_000)
    assert (list(outgoing.positions), list(journal.positions)) == ([position], [kept])


@pytest.mark.requirement("DMPR-3.1.2.4-02")
def test_time_zero_is_over_at_once(desk: Desk, queue: Queue) -> None:
    watcher = desk.watch()
    position = desk.put(queue, time_to_be_received=0)
    desk.advance(0)
    assert watcher.deleted() == [(position, TIMED_OUT)]


@pytest.mark.requirement("DMPR-3.1.2.4-03")
def test_a_message_that_is_gone_does_not_expire(
    desk: Desk, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    position = desk.put(queue, time_to_be_received=10)
    watcher = desk.watch()
    desk.core.messages.dequeue(open_queue)
    desk.advance(20_000)
    assert watcher.deleted() == [(position, ACK_RECEIVE)]


@pytest.mark.requirement("DMPR-3.1.7.2.7-02", "DMPR-3.1.7.1.9-08")
def test_an_uncommitted_message_that_expires_goes_at_commit(
    desk: Desk, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    watcher, transaction = desk.watch(), desk.begin()
    waiting = desk.core.messages.dequeue(open_queue, timeout=100_000)
    position = desk.put(queue, b"1", transaction, time_to_be_received=10)
    desk.advance(10_000)
    assert states(queue) == [LOCKED]
    operation = transaction.operations[-1]
    assert operation.operation_type is OperationType.DEQUEUE
    assert (operation.position, operation.dequeue_reason) == (position, TIMED_OUT)
    desk.core.commit(transaction)
    assert watcher.log == [("deleted", queue, position, TIMED_OUT)]
    assert completed(desk.step()) == []
    assert waiting.request in open_queue.waiting


def test_an_uncommitted_message_that_expires_goes_at_abort(desk: Desk, queue: Queue) -> None:
    watcher, transaction = desk.watch(), desk.begin()
    desk.put(queue, b"1", transaction, time_to_be_received=10)
    desk.advance(10_000)
    desk.core.transactions.abort(transaction.identifier)
    assert states(queue) == []
    assert watcher.log == []


def test_a_message_that_is_purged_and_expires_before_its_commit(desk: Desk, queue: Queue) -> None:
    watcher, transaction = desk.watch(), desk.begin()
    position = desk.put(queue, b"1", transaction, time_to_be_received=10)
    desk.core.messages.purge(queue)
    desk.advance(10_000)
    desk.core.commit(transaction)
    assert watcher.log == [("deleted", queue, position, PURGED)]


@pytest.mark.requirement("DMPR-3.1.7.2.7-02")
def test_a_committed_message_expires_as_any_other(desk: Desk, queue: Queue) -> None:
    watcher, transaction = desk.watch(), desk.begin()
    position = desk.put(queue, b"1", transaction, time_to_be_received=10)
    desk.core.commit(transaction)
    assert position.message.transaction_identifier == transaction.identifier
    desk.advance(10_000)
    assert watcher.deleted() == [(position, TIMED_OUT)]


@pytest.mark.parametrize("deleted", [True, False])
def test_a_message_that_expires_while_it_is_read_is_not_given_back(
    desk: Desk, queue: Queue, open_queue: OpenQueueDescriptor, deleted: bool
) -> None:
    watcher = desk.watch()
    position = desk.put(queue, b"1", time_to_be_received=10)
    assert taken(desk.core.messages.dequeue_begin(open_queue)) == b"1"
    desk.advance(10_000)
    assert states(queue) == [LOCKED]  # its reader has it: no acknowledgement may tell otherwise
    desk.core.messages.dequeue_end(open_queue, position, delete=deleted)
    assert watcher.deleted() == [(position, ACK_RECEIVE if deleted else TIMED_OUT)]


@pytest.mark.parametrize("commits", [True, False])
def test_a_message_that_expires_while_a_transaction_has_it(
    desk: Desk, queue: Queue, open_queue: OpenQueueDescriptor, commits: bool
) -> None:
    watcher, transaction = desk.watch(), desk.begin()
    position = desk.put(queue, b"1", time_to_be_received=10)
    desk.core.messages.dequeue(open_queue, transaction=transaction)
    desk.advance(10_000)
    assert states(queue) == [LOCKED]
    if commits:
        desk.core.commit(transaction)
    else:
        desk.core.transactions.abort(transaction.identifier)
    assert watcher.deleted() == [(position, ACK_RECEIVE if commits else TIMED_OUT)]


@pytest.mark.requirement("DMPR-3.1.2.4-01")
def test_the_time_of_a_message_goes_on_over_a_restart(desk: Desk, queue: Queue) -> None:
    desk.put(queue, delivery_guarantee=RECOVERABLE, time_to_be_received=10)
    desk.advance(4_000)
    desk.restart()
    desk.advance(5_000)
    assert states(desk.find()) == [AVAILABLE]
    desk.advance(1_000)
    assert states(desk.find()) == []
    assert desk.rows(Table.MESSAGE) == {}


# -- Wait For New Message -------------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.7.3.1-01")
def test_no_read_waits_at_a_queue_that_is_gone(
    desk: Desk, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    desk.core.queues.delete(queue)
    assert desk.core.messages.dequeue(open_queue, timeout=1_000).status != PENDING
    assert open_queue.waiting == {}


@pytest.mark.requirement("DMPR-3.1.7.3.1-03", "DMPR-3.1.7.3.4-01", "DMPR-3.1.2.3-01", "DMPR-3.1.2.3-03")
def test_a_read_that_waits_has_a_timer(desk: Desk, queue: Queue, open_queue: OpenQueueDescriptor) -> None:
    messages, timers = desk.core.messages, desk.core.context.timers
    cursor = desk.core.queues.open_cursor(open_queue)
    first = messages.dequeue(open_queue, timeout=700, tag="a", cursor=cursor)
    second = messages.peek(open_queue, timeout=500)
    readers = list(open_queue.waiting.values())
    assert [(one.request, one.destructive, one.tag, one.cursor) for one in readers] == [
        (first.request, True, "a", cursor),
        (second.request, False, None, None),
    ]
    assert all(timers.active(Timer.WAITING_MESSAGE_READ, one.request) for one in readers)
    assert completed(desk.advance(499)) == []
    assert completed(desk.advance(1)) == [(second.request, IO_TIMEOUT, None)]
    assert completed(desk.advance(200)) == [(first.request, IO_TIMEOUT, None)]


@pytest.mark.requirement("DMPR-3.1.7.3.1-04", "DMPR-3.1.7.3.1-06", "DMPR-3.1.7.3.5-01", "DMPR-3.1.6.3-01")
@pytest.mark.parametrize("status", [IO_TIMEOUT, CANCELLED])
def test_a_read_that_is_stopped_ends_with_that_status(
    desk: Desk, open_queue: OpenQueueDescriptor, status: int
) -> None:
    waiting = desk.core.messages.dequeue(open_queue, timeout=1_000)
    (reader,) = open_queue.waiting.values()
    if status == IO_TIMEOUT:
        effects = desk.advance(1_000)
    else:
        desk.core.messages.waiting_reads.stop(reader, status)
        effects = desk.step()
    assert completed(effects) == [(waiting.request, status, None)]
    assert open_queue.waiting == {}
    assert not desk.core.context.timers.active(Timer.WAITING_MESSAGE_READ, waiting.request)
    assert completed(desk.advance(10_000)) == []


@pytest.mark.requirement("DMPR-3.1.7.3.1-05", "DMPR-3.1.7.3.1-06", "DMPR-3.1.7.3.6-01")
def test_a_read_that_is_satisfied_ends_with_the_message(
    desk: Desk, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    waiting = desk.core.messages.dequeue_begin(open_queue, timeout=1_000)
    position = desk.put(queue, b"1")
    (effect,) = desk.step()
    assert (effect.request, effect.status, effect.position) == (waiting.request, MQ_OK, position)
    assert effect.message is position.message
    assert open_queue.waiting == {}
    assert not desk.core.context.timers.active(Timer.WAITING_MESSAGE_READ, waiting.request)
    assert completed(desk.advance(10_000)) == []


# -- Cancel Waiting Message Read Request ----------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.7.1.17-01", "DMPR-3.1.1.10-02")
def test_a_read_is_cancelled_by_its_tag(desk: Desk, queue: Queue, open_queue: OpenQueueDescriptor) -> None:
    messages, second = desk.core.messages, desk.open(queue)
    messages.dequeue(open_queue, timeout=1_000)
    messages.dequeue(open_queue, timeout=1_000, tag=1)
    wanted = messages.dequeue(second, timeout=1_000, tag=2)
    later = messages.dequeue(second, timeout=1_000, tag=2)
    assert messages.waiting_reads.cancel(queue, 2, CANCELLED) == MQ_OK
    assert completed(desk.step()) == [(wanted.request, CANCELLED, None)]
    assert len(open_queue.waiting) == 2
    assert list(second.waiting) == [later.request]


@pytest.mark.requirement("DMPR-3.1.7.1.17-02")
@pytest.mark.parametrize("tag", [3, None])
def test_a_tag_that_no_read_has(
    desk: Desk, queue: Queue, open_queue: OpenQueueDescriptor, tag: int | None
) -> None:
    desk.core.messages.dequeue(open_queue, timeout=1_000)
    desk.core.messages.dequeue(open_queue, timeout=1_000, tag=1)
    assert desk.core.messages.waiting_reads.cancel(queue, tag, CANCELLED) == 0xC0000225 == STATUS_NOT_FOUND
    assert len(open_queue.waiting) == 2


def test_a_full_queue_takes_a_message_again_once_one_is_received(
    desk: Desk, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    queue.quota = 1  # kilobytes
    desk.put(queue, b"x" * 600)
    assert desk.core.messages.enqueue(queue, Message(body=b"y" * 600)) is EnqueueStatus.QUEUE_QUOTA_EXCEEDED
    desk.core.messages.dequeue(open_queue)
    assert desk.core.messages.enqueue(queue, Message(body=b"y" * 600)) is EnqueueStatus.OK
