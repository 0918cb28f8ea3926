"""Enqueueing, moving and purging messages: [MS-MQDMPR] 3.1.7.1.7, 3.1.7.1.9, 3.1.7.1.16 and 3.1.7.1.27."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmqwire.constants import MessageClass
from msmqwire.names import MultipleElementName
from msmqwire.qm.model.elements import Queue, short_name
from msmqwire.qm.model.enumerations import (
    INFINITE,
    DeliveryGuarantee,
    EnqueueStatus,
    OperationType,
    PositionState,
)
from msmqwire.qm.model.message import Message, TxSequenceId
from msmqwire.qm.model.settings import Settings
from msmqwire.qm.model.tables import Table
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.rules import serialization
from tests.support.engine_harness import RECOVERABLE, SEND, EngineHarness
from tests.support.qm.queue_contents import bodies, body_of, completed_reads, states

PURGED = MessageClass.MQMSG_CLASS_NACK_Q_PURGED
AVAILABLE, LOCKED = PositionState.AVAILABLE, PositionState.LOCKED
LOW = (1 << 56) - 1


# -- quotas ---------------------------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.7.1.9-01")
def test_statuses_are_small_numbers() -> None:
    numbers = {status.name: int(status) for status in EnqueueStatus}
    assert numbers == {
        "OK": 0,
        "QUEUE_QUOTA_EXCEEDED": 1,
        "QUEUE_MANAGER_QUOTA_EXCEEDED": 2,
        "TIMED_OUT": 3,
    }


@pytest.mark.requirement("DMPR-3.1.7.1.9-03", "DMPR-3.1.1.1-10", "DMPR-3.1.7.1.9-05")
def test_the_quota_of_the_queue_manager() -> None:
    message = Message(body=b"x" * 500)
    size = serialization.packet_size(message)
    harness = EngineHarness(quota=2 * size)
    queue, other = harness.queue(), harness.queue("others")
    harness.enqueue(queue, b"x" * 500)
    harness.enqueue(other, b"x" * 500)
    last = harness.core.queue_manager.sequential_id
    assert harness.core.messages.enqueue(queue, message) == 2
    assert len(queue.positions) == 1
    assert harness.core.queue_manager.sequential_id == last
    body_of(harness.core.messages.dequeue(harness.open(other)))
    assert harness.core.messages.enqueue(queue, message) == 0


@pytest.mark.requirement("DMPR-3.1.7.1.9-03")
def test_the_quota_of_the_queue_manager_is_judged_first() -> None:
    harness = EngineHarness(quota=10)
    assert harness.core.messages.enqueue(harness.queue(quota=0), Message()) == 2


@pytest.mark.requirement("MQMQ-2.3.1.5-01")
@pytest.mark.requirement("DMPR-3.1.7.1.9-04", "DMPR-3.1.1.2-10", "DMPR-3.1.7.1.9-05")
def test_the_quota_of_a_queue_is_kilobytes(harness: EngineHarness) -> None:
    queue = harness.queue(quota=1)
    room = 1024 - serialization.packet_size(Message())
    last = harness.core.queue_manager.sequential_id
    assert harness.core.messages.enqueue(queue, Message(body=bytes(room + 4))) == 1
    assert len(queue.positions) == 0
    assert harness.core.queue_manager.sequential_id == last
    assert harness.core.messages.enqueue(queue, Message(body=bytes(room - 8))) == 0
    assert harness.core.messages.enqueue(queue, Message()) == 1
    assert harness.core.messages.enqueue(harness.queue("full", quota=1), Message(body=bytes(room))) == 0


@pytest.mark.requirement("DMPR-3.1.7.1.9-04")
def test_messages_of_open_transactions_count_for_the_quota(harness: EngineHarness) -> None:
    queue, transaction = harness.queue(quota=1), harness.begin()
    harness.enqueue(queue, bytes(600), transaction)
    assert harness.core.messages.enqueue(queue, Message(body=bytes(600)), transaction) == 1
    harness.core.transactions.abort(transaction.identifier)
    assert harness.core.messages.enqueue(queue, Message(body=bytes(600))) == 0


@pytest.mark.requirement("MQMQ-2.3.1.7-01")
@pytest.mark.requirement("DMPR-3.1.1.2-11", "DMPR-3.1.1.12-22")
def test_a_full_journal_gets_no_more_copies(harness: EngineHarness) -> None:
    queue = harness.queue(journaling=True, journal_quota=1)
    room = 1024 // 2 - serialization.packet_size(Message())  # for two messages
    for body in (b"1", b"2", b"3"):
        harness.enqueue(queue, body * (room - 8))
        body_of(harness.core.messages.dequeue(harness.open(queue)))
    assert queue.journal is not None
    assert [body[:1] for body in bodies(queue.journal)] == [b"1", b"2"]
    (lost,) = harness.core.context.refusals.kept.values()
    assert (lost.key.queue, lost.key.reason, lost.count) == (short_name(queue.journal), "quota", 1)


# -- the place of a message -----------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.7.1.9-05", "DMPR-3.1.7.1.9-06", "DMPR-3.1.1.12-01")
@pytest.mark.parametrize("priority", range(8))
@pytest.mark.parametrize("by_the_letter", [False, True])
def test_lookup_identifiers(priority: int, by_the_letter: bool) -> None:
    harness = EngineHarness(settings=Settings(lookup_priority_of_transactional=by_the_letter))
    queue = harness.queue()
    last = harness.core.queue_manager.sequential_id
    sequence = TxSequenceId(5, 1)
    plain = harness.enqueue(queue, priority=priority).message
    transactional = harness.enqueue(
        queue, priority=priority, transactional_message_sequence_identifier=sequence
    ).message
    identifiers = [
        (message.lookup_identifier >> 56, message.lookup_identifier & LOW)
        for message in (plain, transactional)
    ]
    high = (0, 7 - priority) if by_the_letter else (7 - priority, 0)
    assert identifiers == [(high[0], last + 1), (high[1], last + 2)]


@pytest.mark.requirement("MQMQ-2.2.19.1-06")
@pytest.mark.requirement("DMPR-3.1.7.1.9-07", "DMPR-3.1.1.2-28", "DMPR-3.1.1.12-21")
@given(priorities=st.lists(st.integers(0, 7), max_size=30))
def test_messages_stand_by_priority_and_arrival(priorities: list[int]) -> None:
    harness = EngineHarness()
    queue = harness.queue()
    for number, priority in enumerate(priorities):
        harness.enqueue(queue, b"%d" % number, priority=priority)
    order = sorted(range(len(priorities)), key=lambda number: (-priorities[number], number))
    assert bodies(queue) == [b"%d" % number for number in order]
    identifiers = [position.lookup_identifier for position in queue.positions]
    assert identifiers == sorted(identifiers)


@pytest.mark.requirement("DMPR-3.1.1.2-28")
def test_the_most_urgent_message_is_received_first(harness: EngineHarness, queue: Queue) -> None:
    for body, priority in ((b"a", 3), (b"b", 7), (b"c", 3), (b"d", 0), (b"e", 7)):
        harness.enqueue(queue, body, priority=priority)
    opened = harness.open(queue)
    received = b"".join(body_of(harness.core.messages.dequeue(opened)) for _ in range(5))
    assert received == b"beacd"


@pytest.mark.requirement("DMPR-3.1.7.1.9-08")
@pytest.mark.parametrize("in_transaction", [False, True])
def test_the_time_to_be_received_runs(harness: EngineHarness, queue: Queue, in_transaction: bool) -> None:
    transaction = harness.begin() if in_transaction else None
    position = harness.enqueue(queue, b"", transaction, time_to_be_received=10)
    assert harness.time_left(Timer.TIME_TO_BE_RECEIVED, position.number) == 10_000


@pytest.mark.requirement("DMPR-3.1.7.1.9-09", "DMPR-3.1.1.13-01", "DMPR-3.1.1.13-02")
def test_a_message_of_a_transaction_is_locked(harness: EngineHarness, queue: Queue) -> None:
    waiting = harness.core.messages.dequeue(harness.open(queue), timeout=1_000)
    transaction, events = harness.begin(), harness.record_events()
    position = harness.enqueue(queue, b"1", transaction)
    assert position.state is LOCKED
    (operation,) = transaction.operations
    assert (operation.operation_type, operation.position) == (OperationType.ENQUEUE, position)
    assert (operation.target, operation.dequeue_reason) == (None, None)
    assert events.log == []
    assert completed_reads(harness.run()) == []
    assert waiting.request


@pytest.mark.requirement("DMPR-3.1.7.1.9-10", "DMPR-3.1.1.12-05")
def test_a_message_of_no_transaction_is_available(harness: EngineHarness, queue: Queue) -> None:
    events = harness.record_events()
    harness.advance(3_000)
    position = harness.enqueue(queue, b"1")
    assert events.log == [("available", queue, position)]
    assert position.message.arrival_time == harness.utc


@pytest.mark.requirement("DMPR-3.1.1.12-71")
def test_a_message_knows_its_transaction(harness: EngineHarness, queue: Queue) -> None:
    transaction = harness.begin()
    message = harness.enqueue(queue, b"", transaction, priority=5).message
    assert message.transaction_identifier == transaction.identifier
    assert (
        message.delivery_guarantee is DeliveryGuarantee.RECOVERABLE
    )  # only recoverable messages can be rolled back
    assert harness.enqueue(queue).message.transaction_identifier is None


# -- Enqueue Message To An Open Queue -------------------------------------------------------------------

SEVERAL = "DIRECT=OS:here\\private$\\a,DIRECT=OS:here\\private$\\b,DIRECT=OS:here\\private$\\c"


@pytest.mark.requirement("DMPR-3.1.7.1.27-01")
@pytest.mark.parametrize("in_transaction", [False, True])
def test_a_message_for_one_queue(harness: EngineHarness, in_transaction: bool) -> None:
    queue = harness.queue(quota=1)
    transaction = harness.begin() if in_transaction else None
    opened, message = harness.open(queue, SEND), Message(body=b"1")
    assert harness.core.messages.enqueue_to_open_queue(opened, message, transaction) == 0
    (position,) = queue.positions
    assert position.message is message
    assert position.state is (LOCKED if in_transaction else AVAILABLE)
    assert harness.core.messages.enqueue_to_open_queue(opened, Message(body=bytes(2_000))) == 1


@pytest.mark.requirement("DMPR-3.1.7.1.27-02", "DMPR-3.1.7.1.27-03", "DMPR-3.1.1.12-28")
@pytest.mark.parametrize("in_transaction", [False, True])
def test_a_message_for_several_queues(harness: EngineHarness, in_transaction: bool) -> None:
    queues = [harness.queue(name) for name in "abc"]
    transaction = harness.begin() if in_transaction else None
    opened = harness.open(SEVERAL, SEND)
    assert harness.core.messages.enqueue_to_open_queue(opened, Message(body=b"1"), transaction) == 0
    assert isinstance(opened.format_name, MultipleElementName)
    copies = [queue.positions.head.message for queue in queues]
    assert len(set(map(id, copies))) == 3
    for child, copy in zip(opened.children, copies, strict=True):
        assert copy.destination == child.format_name
        assert copy.destinations == opened.format_name.elements
        assert copy.body == b"1"
    expected = [LOCKED if in_transaction else AVAILABLE]
    assert [states(queue) for queue in queues] == [expected] * 3
    if transaction is not None:
        assert len(transaction.operations) == 3


@pytest.mark.requirement("DMPR-3.1.7.1.27-03")
@pytest.mark.parametrize("in_transaction", [False, True])
@pytest.mark.parametrize("status", [1, 2, 0xC00E004B])
def test_the_first_queue_that_takes_no_copy_ends_it(in_transaction: bool, status: int) -> None:
    """Its status is returned, and the copies before it stay, also in the transaction."""
    harness = EngineHarness(quota=4_000 if status == 2 else None)
    quotas = {"a": 9, "b": 0 if status == 1 else 9, "c": 9}
    first, second, third = [harness.queue(name, quota=quota) for name, quota in quotas.items()]
    opened = harness.open(SEVERAL, SEND)
    if status == 0xC00E004B:
        harness.core.queues.delete(second)
    transaction = harness.begin() if in_transaction else None
    message = Message(body=bytes(2_000))
    assert harness.core.messages.enqueue_to_open_queue(opened, message, transaction) == status
    assert states(first) == [LOCKED if in_transaction else AVAILABLE]
    if transaction is not None:
        harness.core.commit(transaction)
    assert states(first) == [AVAILABLE]
    assert (bodies(first), bodies(third)) == ([message.body], [])


# -- Move Message ---------------------------------------------------------------------------------------


@pytest.fixture
def later(harness: EngineHarness, queue: Queue) -> Queue:
    return harness.queue("orders;later")


@pytest.mark.requirement("DMPR-3.1.7.1.16-02", "DMPR-3.1.7.1.16-03", "DMPR-3.1.1.11-09")
def test_a_message_is_moved(harness: EngineHarness, queue: Queue, later: Queue) -> None:
    harness.enqueue(later, b"less urgent", priority=2)
    position = harness.enqueue(queue, b"1", priority=4)
    waiting = harness.core.messages.peek(harness.open("DIRECT=OS:here\\private$\\orders;later"), timeout=0)
    assert body_of(waiting) == b"less urgent"
    message, events = position.message, harness.record_events()
    harness.core.messages.move(position, later)
    moved = later.positions.head
    assert position.state is PositionState.DELETED
    assert (moved.message, moved.state, moved.queue) == (message, AVAILABLE, later)
    assert events.log == [("available", later, moved)]
    assert bodies(later) == [b"1", b"less urgent"]
    assert bodies(queue) == []
    assert (queue.total_bytes, later.total_bytes > 0) == (0, True)


@pytest.mark.requirement("DMPR-3.1.7.1.16-03")
def test_a_move_releases_who_waits(harness: EngineHarness, queue: Queue, later: Queue) -> None:
    waiting = harness.core.messages.dequeue(
        harness.open("DIRECT=OS:here\\private$\\orders;later"), timeout=1_000
    )
    harness.core.messages.move(harness.enqueue(queue, b"1"), later)
    assert [request for request, *_ in completed_reads(harness.run())] == [waiting.request]


@pytest.mark.requirement("DMPR-3.1.7.1.16-01", "DMPR-3.1.7.1.16-03")
def test_a_move_to_a_queue_of_the_system_is_not_reported(harness: EngineHarness, queue: Queue) -> None:
    deadletters = harness.core.queue_manager.system_deadletter_queue
    assert deadletters is not None
    position, events = harness.enqueue(queue, b"1"), harness.record_events()
    harness.core.messages.move(position, deadletters)
    (moved,) = deadletters.positions
    assert moved.state is AVAILABLE
    assert events.log == []
    assert bodies(deadletters) == [b"1"]
    assert deadletters.total_bytes == moved.size


@pytest.mark.requirement("DMPR-3.1.7.1.16-04", "DMPR-3.1.1.13-03")
def test_a_move_in_a_transaction(harness: EngineHarness, queue: Queue, later: Queue) -> None:
    position, transaction, events = harness.enqueue(queue, b"1"), harness.begin(), harness.record_events()
    harness.core.messages.move(position, later, transaction)
    assert position.state is LOCKED
    (operation,) = transaction.operations
    assert (operation.operation_type, operation.position, operation.target) == (
        OperationType.MOVE,
        position,
        later,
    )
    assert bodies(later) == []
    assert events.log == []


@pytest.mark.requirement("DMPR-3.1.7.1.16-05")
@pytest.mark.parametrize("in_transaction", [False, True])
def test_a_moved_message_survives_where_it_is(
    harness: EngineHarness, queue: Queue, later: Queue, in_transaction: bool
) -> None:
    position = harness.enqueue(queue, b"1", delivery_guarantee=RECOVERABLE, time_to_be_received=60)
    harness.run()
    transaction = harness.begin() if in_transaction else None
    harness.core.messages.move(position, later, transaction)
    if transaction is not None:
        harness.core.commit(transaction)
    harness.run()
    assert len(harness.rows(Table.MESSAGE)) == len(harness.rows(Table.PACKET)) == 1
    harness.restart()
    assert bodies(harness.find_queue("orders;later")) == [b"1"]
    assert bodies(harness.find_queue()) == []
    harness.advance(60_000)  # its timer keeps running
    assert bodies(harness.find_queue("orders;later")) == []


def test_a_message_goes_from_subqueue_to_subqueue_and_back(
    harness: EngineHarness, queue: Queue, later: Queue
) -> None:
    never = harness.queue("orders;never")
    position = harness.enqueue(queue, b"1", delivery_guarantee=RECOVERABLE)
    for target in (later, never, queue, later):
        harness.core.messages.move(position, target)
        (position,) = target.positions
        assert [len(each_queue.positions) for each_queue in (queue, later, never)].count(1) == 1
        assert bodies(target) == [b"1"]
        harness.run()
        assert len(harness.rows(Table.MESSAGE)) == 1


# -- Purge Queue ----------------------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.7.1.7-01", "DMPR-3.1.7.1.7-02", "DMPR-3.1.1.11-04")
def test_a_purge(harness: EngineHarness, queue: Queue) -> None:
    opened, positions = harness.open(queue), [harness.enqueue(queue, b"%d" % number) for number in range(4)]
    harness.core.messages.dequeue_begin(opened)
    harness.core.messages.dequeue(opened, transaction=harness.begin())
    events = harness.record_events()
    harness.core.messages.purge(queue)
    assert events.deleted() == [(position, PURGED) for position in positions[2:]]
    assert [position.state for position in positions] == [PositionState.PURGE_PENDING] * 2 + [
        PositionState.DELETED
    ] * 2
    harness.core.messages.purge(queue)
    assert len(events.deleted()) == 2


@pytest.mark.requirement("DMPR-3.1.7.1.7-01")
def test_a_purge_empties_the_store(harness: EngineHarness, queue: Queue) -> None:
    for _ in range(3):
        harness.enqueue(queue, delivery_guarantee=RECOVERABLE)
    harness.run()
    harness.core.messages.purge(queue)
    harness.run()
    assert harness.rows(Table.MESSAGE) == harness.rows(Table.PACKET) == {}
    assert queue.total_bytes == 0


def test_no_quota_is_no_limit(harness: EngineHarness) -> None:
    queue = harness.queue(quota=INFINITE)
    harness.enqueue(queue, bytes(1 << 20))
    assert queue.total_bytes > 1 << 20
