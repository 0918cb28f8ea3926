"""Messages in queues and the readers waiting for them: [MS-MQDMPR] 3.1.7.1.17, 3.1.7.2, 3.1.7.3."""

from __future__ import annotations

import pytest

from msmqwire.constants import MQ_OK, HResult, MessageClass
from msmqwire.constants.ntstatus import NtStatus
from msmqwire.qm.model.elements import OpenQueueDescriptor, Queue
from msmqwire.qm.model.enumerations import (
    INFINITE,
    EnqueueStatus,
    OperationType,
    OutgoingQueueState,
    PositionState,
    QueueType,
)
from msmqwire.qm.model.message import Message
from msmqwire.qm.model.tables import Table
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.rules import serialization
from tests.support.engine_harness import PEEK, RECOVERABLE, EngineHarness
from tests.support.qm.queue_contents import bodies, body_of, completed_reads, states

ACK_RECEIVE = MessageClass.MQMSG_CLASS_ACK_RECEIVE
TIMED_OUT = MessageClass.MQMSG_CLASS_NACK_RECEIVE_TIMEOUT
PURGED = MessageClass.MQMSG_CLASS_NACK_Q_PURGED
CANCELLED = HResult.MQ_ERROR_OPERATION_CANCELLED
IO_TIMEOUT = HResult.MQ_ERROR_IO_TIMEOUT
LOCKED, AVAILABLE = PositionState.LOCKED, PositionState.AVAILABLE


# -- Message Position Available and Deleted -------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.7.2.1-01", "DMPR-3.1.7.2.2-01", "DMPR-3.1.1.2-22", "DMPR-3.1.1.11-02")
def test_bytes_of_a_queue_are_those_of_its_messages(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    assert queue.total_bytes == 0
    first, second = harness.enqueue(queue, b"x" * 100), harness.enqueue(queue, b"y")
    size = serialization.packet_size(first.message), serialization.packet_size(second.message)
    assert size[0] > size[1] > 0
    assert queue.total_bytes == sum(size)
    assert first.state is AVAILABLE
    harness.core.messages.dequeue(open_queue)
    assert queue.total_bytes == size[1]
    assert first.state is PositionState.DELETED
    assert list(queue.positions) == [second]


@pytest.mark.requirement("DMPR-3.1.7.2.2-01", "DMPR-3.1.7.2.1-01")
def test_a_message_counts_once_as_long_as_it_is_in_the_queue(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    transaction, other = harness.begin(), harness.begin()
    position = harness.enqueue(queue, b"x" * 100, transaction)
    size = position.size
    assert queue.total_bytes == size  # it already takes up space
    harness.core.commit(transaction)
    assert queue.total_bytes == size
    harness.core.messages.dequeue(open_queue, transaction=other)
    assert queue.total_bytes == size
    harness.core.transactions.abort(other.identifier)
    assert (queue.total_bytes, position.state) == (size, AVAILABLE)
    harness.core.messages.dequeue(open_queue)
    assert queue.total_bytes == harness.core.queue_manager.total_bytes == 0


@pytest.mark.requirement("DMPR-3.1.7.2-01", "DMPR-3.1.7.2.1-02")
def test_the_other_protocols_get_the_reason(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    events = harness.record_events()
    first, second = harness.enqueue(queue, b"1"), harness.enqueue(queue, b"2")
    harness.core.messages.dequeue(open_queue)
    harness.core.messages.purge(queue)
    assert events.log == [
        ("available", queue, first),
        ("available", queue, second),
        ("deleted", queue, first, ACK_RECEIVE),
        ("deleted", queue, second, PURGED),
    ]


@pytest.mark.requirement("DMPR-3.1.7.2.2-02", "DMPR-3.1.7.2.2-03", "DMPR-3.1.1.16-12", "DMPR-3.1.1.10-01")
def test_readers_are_served_one_by_one_in_their_order(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    messages, second = harness.core.messages, harness.open(queue)
    requests = [
        messages.dequeue(open_queue, timeout=1_000).request,
        messages.dequeue(open_queue, timeout=1_000).request,
        messages.dequeue(second, timeout=1_000).request,
    ]
    events, completed = harness.record_events(), []
    for number in (1, 2, 3):
        harness.enqueue_message(queue, b"%d" % number)
        completed.append(completed_reads(harness.run()))
    assert completed == [[(requests[number], MQ_OK, b"%d" % (number + 1))] for number in range(3)]
    assert bodies(queue) == []
    assert {event for event, *_ in events.log} == {"deleted"}  # what a reader took is offered to nobody else


@pytest.mark.requirement("DMPR-3.1.7.2.2-03", "DMPR-3.1.7.2.2-04", "DMPR-3.1.7.3.7-01")
def test_peekers_and_one_receiver_get_the_same_message(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    messages, second = harness.core.messages, harness.open(queue, PEEK)
    requests = [
        messages.peek(open_queue, timeout=1_000).request,
        messages.peek(open_queue, timeout=1_000).request,
        messages.dequeue(open_queue, timeout=1_000).request,
        messages.peek(open_queue, timeout=1_000).request,
        messages.peek(second, timeout=1_000).request,
    ]
    events = harness.record_events()
    harness.enqueue_message(queue, b"1")
    assert [request for request, *_ in completed_reads(harness.run())] == requests[:3]
    assert [event for event, *_ in events.log] == ["deleted"]  # the event stopped at the receiver
    assert list(open_queue.waiting) == requests[3:4]
    assert list(second.waiting) == requests[4:]
    harness.enqueue(queue, b"2")
    assert completed_reads(harness.run()) == [(request, MQ_OK, b"2") for request in requests[3:]]
    assert bodies(queue) == [b"2"]


@pytest.mark.requirement("DMPR-3.1.7.2.2-03")
def test_a_receiver_that_only_locks_stops_the_others_too(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    messages = harness.core.messages
    first = messages.dequeue_begin(open_queue, timeout=1_000)
    second = messages.dequeue_begin(open_queue, timeout=1_000)
    position = harness.enqueue(queue, b"1")
    assert [request for request, *_ in completed_reads(harness.run())] == [first.request]
    messages.dequeue_end(open_queue, position, delete=False)
    assert completed_reads(harness.run()) == [(second.request, MQ_OK, b"1")]


# -- Pause, Resume, flow control ------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.1.3-11/b")
@pytest.mark.requirement("DMPR-3.1.7.2.3-01", "DMPR-3.1.4.14-01")
@pytest.mark.parametrize("state", list(OutgoingQueueState))
def test_a_paused_queue_is_on_hold(harness: EngineHarness, state: OutgoingQueueState) -> None:
    outgoing, events = harness.outgoing(), harness.record_events()
    outgoing.state = state
    harness.core.queues.pause(outgoing)
    assert outgoing.state is OutgoingQueueState.ON_HOLD
    assert events.log == [("paused", outgoing)]


@pytest.mark.requirement("DMPR-3.1.7.2.4-01", "DMPR-3.1.4.15-01")
@pytest.mark.parametrize("state", list(OutgoingQueueState))
def test_a_resumed_queue_is_inactive(harness: EngineHarness, state: OutgoingQueueState) -> None:
    outgoing, events = harness.outgoing(), harness.record_events()
    outgoing.state = state
    harness.core.queues.resume(outgoing)
    assert outgoing.state is OutgoingQueueState.INACTIVE
    assert events.log == [("resumed", outgoing)]


@pytest.mark.requirement("DMPR-3.1.7.2.4-01")
def test_a_resumed_queue_stays_locked_while_security_is_hardened(harness: EngineHarness) -> None:
    outgoing = harness.outgoing()
    harness.core.queue_manager.hardened_security = True
    harness.core.queues.resume(outgoing)
    assert outgoing.state is OutgoingQueueState.LOCKED


@pytest.mark.requirement("DMPR-3.1.7.2.4-01")
def test_a_resumed_queue_over_http_is_not_locked(harness: EngineHarness) -> None:
    outgoing = harness.outgoing(r"DIRECT=HTTP://peer/msmq/private$/q")
    harness.core.queue_manager.hardened_security = True
    harness.core.queues.resume(outgoing)
    assert outgoing.state is OutgoingQueueState.INACTIVE


@pytest.mark.requirement("DMPR-3.1.7.2.5-01", "DMPR-3.1.7.2.6-01", "DMPR-3.1.7.1.9-02", "DMPR-3.1.1.1-34")
def test_flow_control(harness: EngineHarness, queue: Queue) -> None:
    manager = harness.core.queue_manager
    assert manager.throttled is False
    harness.core.queues.begin_flow_control()
    assert manager.throttled is True
    assert harness.core.messages.enqueue(queue, Message()) == 2
    assert len(queue.positions) == 0
    harness.core.queues.end_flow_control()
    assert manager.throttled is False
    assert harness.core.messages.enqueue(queue, Message()) == 0


# -- Time To Be Received Timer --------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.2.4-01", "DMPR-3.1.2.4-03", "DMPR-3.1.7.2.7-01")
def test_a_message_that_nobody_receives_in_time_is_deleted(harness: EngineHarness, queue: Queue) -> None:
    events = harness.record_events()
    position = harness.enqueue(queue, time_to_be_received=10)
    forever = harness.enqueue(queue, time_to_be_received=INFINITE)
    harness.advance(9_999)
    assert list(queue.positions) == [position, forever]
    harness.advance(1)
    assert events.deleted() == [(position, TIMED_OUT)]
    harness.advance(10**12)
    assert list(queue.positions) == [forever]


@pytest.mark.requirement("DMPR-3.1.1.12-47")
@pytest.mark.requirement("DMPR-3.1.2.4-01", "DMPR-3.1.1.12-49")
def test_time_to_be_received_counts_from_the_sent_time(harness: EngineHarness, queue: Queue) -> None:
    harness.enqueue(queue, time_to_be_received=10, sent_time=harness.utc - 4)
    harness.advance(5_999)
    assert states(queue) == [AVAILABLE]
    harness.advance(1)
    assert states(queue) == []


@pytest.mark.requirement("DMPR-3.1.2.4-01")
def test_only_where_messages_are_received_their_time_runs(harness: EngineHarness, queue: Queue) -> None:
    journal = harness.core.queue_manager.system_journal_queue
    assert journal is not None

    def left(where: Queue, limit: int) -> int | None:
        position = harness.enqueue(where, time_to_be_received=limit, sent_time=harness.utc)
        return harness.time_left(Timer.TIME_TO_BE_RECEIVED, position.number)

    public = harness.queue("public")
    public.queue_type = QueueType.PUBLIC
    assert (left(queue, 10), left(public, 10), left(queue, INFINITE)) == (10_000, 10_000, None)
    assert (left(harness.outgoing(), 10), left(journal, 10)) == (None, None)
    harness.advance(100_000)
    assert len(journal.positions) == 1


@pytest.mark.requirement("DMPR-3.1.2.4-02")
def test_time_zero_is_over_at_once(harness: EngineHarness, queue: Queue) -> None:
    events = harness.record_events()
    position = harness.enqueue(queue, time_to_be_received=0)
    other = harness.enqueue(queue, time_to_be_received=1)
    harness.advance(0)
    assert events.deleted() == [(position, TIMED_OUT)]
    harness.advance(999)
    assert list(queue.positions) == [other]
    harness.advance(1)
    assert list(queue.positions) == []


@pytest.mark.requirement("DMPR-3.1.2.4-03")
def test_a_message_that_is_gone_does_not_expire(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    position = harness.enqueue(queue, time_to_be_received=10)
    events = harness.record_events()
    harness.core.messages.dequeue(open_queue)
    harness.advance(20_000)
    assert events.deleted() == [(position, ACK_RECEIVE)]


@pytest.mark.requirement("DMPR-3.1.7.2.7-02", "DMPR-3.1.7.1.9-08")
def test_an_uncommitted_message_that_expires_goes_at_commit(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    events, transaction = harness.record_events(), harness.begin()
    waiting = harness.core.messages.dequeue(open_queue, timeout=100_000)
    position = harness.enqueue(queue, b"1", transaction, time_to_be_received=10)
    harness.advance(10_000)
    assert states(queue) == [LOCKED]
    operation = transaction.operations[-1]
    assert operation.operation_type is OperationType.DEQUEUE
    assert (operation.position, operation.dequeue_reason) == (position, TIMED_OUT)
    harness.core.commit(transaction)
    assert events.log == [("deleted", queue, position, TIMED_OUT)]
    assert completed_reads(harness.run()) == []
    assert waiting.request in open_queue.waiting


def test_an_uncommitted_message_that_expires_goes_at_abort(harness: EngineHarness, queue: Queue) -> None:
    events, transaction = harness.record_events(), harness.begin()
    harness.enqueue(queue, b"1", transaction, time_to_be_received=10)
    harness.advance(10_000)
    harness.core.transactions.abort(transaction.identifier)
    assert states(queue) == []
    assert events.log == []


def test_a_message_that_is_purged_and_expires_before_its_commit(harness: EngineHarness, queue: Queue) -> None:
    events, transaction = harness.record_events(), harness.begin()
    position = harness.enqueue(queue, b"1", transaction, time_to_be_received=10)
    harness.core.messages.purge(queue)
    harness.advance(10_000)
    harness.core.commit(transaction)
    assert events.log == [("deleted", queue, position, PURGED)]


@pytest.mark.requirement("DMPR-3.1.7.2.7-02")
def test_a_committed_message_expires_as_any_other(harness: EngineHarness, queue: Queue) -> None:
    events, transaction = harness.record_events(), harness.begin()
    position = harness.enqueue(queue, b"1", transaction, time_to_be_received=10)
    harness.core.commit(transaction)
    assert position.message.transaction_identifier == transaction.identifier
    harness.advance(10_000)
    assert events.deleted() == [(position, TIMED_OUT)]


@pytest.mark.parametrize("deleted", [True, False])
def test_a_message_that_expires_while_read_is_not_returned(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor, deleted: bool
) -> None:
    events = harness.record_events()
    position = harness.enqueue(queue, b"1", time_to_be_received=10)
    assert body_of(harness.core.messages.dequeue_begin(open_queue)) == b"1"
    harness.advance(10_000)
    assert states(queue) == [LOCKED]  # its reader has it, so no acknowledgement may say otherwise
    harness.core.messages.dequeue_end(open_queue, position, delete=deleted)
    assert events.deleted() == [(position, ACK_RECEIVE if deleted else TIMED_OUT)]


@pytest.mark.parametrize("commits", [True, False])
def test_a_message_that_expires_while_a_transaction_has_it(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor, commits: bool
) -> None:
    events, transaction = harness.record_events(), harness.begin()
    position = harness.enqueue(queue, b"1", time_to_be_received=10)
    harness.core.messages.dequeue(open_queue, transaction=transaction)
    harness.advance(10_000)
    assert states(queue) == [LOCKED]
    if commits:
        harness.core.commit(transaction)
    else:
        harness.core.transactions.abort(transaction.identifier)
    assert events.deleted() == [(position, ACK_RECEIVE if commits else TIMED_OUT)]


@pytest.mark.requirement("DMPR-3.1.2.4-01")
def test_the_time_of_a_message_goes_on_over_a_restart(harness: EngineHarness, queue: Queue) -> None:
    harness.enqueue(queue, delivery_guarantee=RECOVERABLE, time_to_be_received=10)
    harness.advance(4_000)
    harness.restart()
    harness.advance(5_000)
    assert states(harness.find_queue()) == [AVAILABLE]
    harness.advance(1_000)
    assert states(harness.find_queue()) == []
    assert harness.rows(Table.MESSAGE) == {}


# -- Wait For New Message -------------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.7.3.1-01")
def test_no_read_waits_at_a_queue_that_is_gone(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    harness.core.queues.delete(queue)
    read = harness.core.messages.dequeue(open_queue, timeout=1_000)
    assert (read.status, read.request) == (HResult.MQ_ERROR_QUEUE_NOT_AVAILABLE, 0)
    assert open_queue.waiting == {}


@pytest.mark.requirement("DMPR-3.1.1-10/b")
@pytest.mark.requirement("DMPR-3.1.1.10-01", "DMPR-3.1.1.10-03")
@pytest.mark.requirement("DMPR-3.1.7.3.1-03", "DMPR-3.1.7.3.4-01", "DMPR-3.1.2.3-01", "DMPR-3.1.2.3-03")
def test_a_read_that_waits_has_a_timer(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    messages, timers = harness.core.messages, harness.core.context.timers
    cursor = harness.core.queues.open_cursor(open_queue)
    first = messages.dequeue(open_queue, timeout=700, tag="a", cursor=cursor)
    second = messages.peek(open_queue, timeout=500)
    readers = list(open_queue.waiting.values())
    assert [(reader.request, reader.destructive, reader.tag, reader.cursor) for reader in readers] == [
        (first.request, True, "a", cursor),
        (second.request, False, None, None),
    ]
    assert all(timers.active(Timer.WAITING_MESSAGE_READ, reader.request) for reader in readers)
    assert completed_reads(harness.advance(499)) == []
    assert completed_reads(harness.advance(1)) == [(second.request, IO_TIMEOUT, None)]
    assert completed_reads(harness.advance(200)) == [(first.request, IO_TIMEOUT, None)]


@pytest.mark.requirement("DMPR-3.1.7.3.1-04", "DMPR-3.1.7.3.1-06", "DMPR-3.1.7.3.5-01", "DMPR-3.1.6.3-01")
@pytest.mark.parametrize("status", [IO_TIMEOUT, CANCELLED])
def test_a_read_that_is_stopped_ends_with_that_status(
    harness: EngineHarness, open_queue: OpenQueueDescriptor, status: int
) -> None:
    waiting = harness.core.messages.dequeue(open_queue, timeout=1_000)
    (reader,) = open_queue.waiting.values()
    if status == IO_TIMEOUT:
        effects = harness.advance(1_000)
    else:
        harness.core.messages.waiting_reads.stop(reader, status)
        effects = harness.run()
    assert completed_reads(effects) == [(waiting.request, status, None)]
    assert open_queue.waiting == {}
    assert not harness.core.context.timers.active(Timer.WAITING_MESSAGE_READ, waiting.request)
    assert completed_reads(harness.advance(10_000)) == []


@pytest.mark.requirement("DMPR-3.1.7.3.1-05", "DMPR-3.1.7.3.1-06", "DMPR-3.1.7.3.6-01")
def test_a_read_that_is_satisfied_ends_with_the_message(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    waiting = harness.core.messages.dequeue_begin(open_queue, timeout=1_000)
    position = harness.enqueue(queue, b"1")
    (effect,) = harness.run()
    assert (effect.request, effect.status, effect.position) == (waiting.request, MQ_OK, position)
    assert effect.message is position.message
    assert open_queue.waiting == {}
    assert not harness.core.context.timers.active(Timer.WAITING_MESSAGE_READ, waiting.request)
    assert completed_reads(harness.advance(10_000)) == []


# -- Cancel Waiting Message Read Request ----------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.7.1.17-01", "DMPR-3.1.1.10-02")
def test_a_read_is_cancelled_by_its_tag(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    messages, second = harness.core.messages, harness.open(queue)
    messages.dequeue(open_queue, timeout=1_000)
    messages.dequeue(open_queue, timeout=1_000, tag=1)
    cancelled = messages.dequeue(second, timeout=1_000, tag=2)
    later = messages.dequeue(second, timeout=1_000, tag=2)
    assert messages.waiting_reads.cancel(queue, 2, CANCELLED) == MQ_OK
    assert completed_reads(harness.run()) == [(cancelled.request, CANCELLED, None)]
    assert len(open_queue.waiting) == 2
    assert list(second.waiting) == [later.request]


@pytest.mark.requirement("DMPR-3.1.7.1.17-02")
@pytest.mark.parametrize("tag", [3, None])
def test_a_tag_that_no_read_has(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor, tag: int | None
) -> None:
    harness.core.messages.dequeue(open_queue, timeout=1_000)
    harness.core.messages.dequeue(open_queue, timeout=1_000, tag=1)
    status = harness.core.messages.waiting_reads.cancel(queue, tag, CANCELLED)
    assert status == 0xC0000225 == NtStatus.STATUS_NOT_FOUND
    assert len(open_queue.waiting) == 2


def test_a_full_queue_takes_a_message_again_once_one_is_received(
    harness: EngineHarness, queue: Queue, open_queue: OpenQueueDescriptor
) -> None:
    queue.quota = 1  # kilobytes
    harness.enqueue(queue, b"x" * 600)
    assert (
        harness.core.messages.enqueue(queue, Message(body=b"y" * 600)) is EnqueueStatus.QUEUE_QUOTA_EXCEEDED
    )
    harness.core.messages.dequeue(open_queue)
    assert harness.core.messages.enqueue(queue, Message(body=b"y" * 600)) is EnqueueStatus.OK
