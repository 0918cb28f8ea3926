"""Messages put into queues, moved and purged: [MS-MQDMPR] 3.1.7.1.7, 3.1.7.1.9, 3.1.7.1.16 and 3.1.7.1.27."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmqwire.constants import HResult, MessageClass
from msmqwire.names import MultipleElementName
from msmqwire.qm.model.changes import Table
from msmqwire.qm.model.elements import Queue
from msmqwire.qm.model.enumerations import (
    INFINITE,
    DeliveryGuarantee,
    EnqueueStatus,
    OperationType,
    PositionState,
)
from msmqwire.qm.model.message import Message, TxSequenceId
from msmqwire.qm.model.settings import Settings
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.rules import serialization
from tests.support.queue_manager_desk import RECOVERABLE, SEND, Desk, bodies, completed, states, taken

PURGED = MessageClass.MQMSG_CLASS_NACK_Q_PURGED
AVAILABLE, LOCKED = PositionState.AVAILABLE, PositionState.LOCKED
LOW = (1 << 56) - 1


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def queue(desk: Desk) -> Queue:
    return desk.queue()


# -- quotas ---------------------------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.7.1.9-01")
def test_statuses_are_small_numbers() -> None:
    assert [int(status) for status in EnqueueStatus] == [0, 1, 2, 3]


@pytest.mark.requirement("DMPR-3.1.7.1.9-03", "DMPR-3.1.1.1-10", "DMPR-3.1.7.1.9-05")
def test_the_quota_of_the_queue_manager() -> None:
    message = Message(body=b"x" * 500)
    size = serialization.packet_size(message)
    desk = Desk(quota=2 * size)
    queue, other = desk.queue(), desk.queue("private$\\others")
    desk.put(queue, b"x" * 500)
    desk.put(other, b"x" * 500)
    last = desk.core.queue_manager.sequential_id
    assert desk.core.messages.enqueue(queue, message) == 2
    assert len(queue.positions) == 1
    assert desk.core.queue_manager.sequential_id == last
    taken(desk.core.messages.dequeue(desk.open(other)))
    assert desk.core.messages.enqueue(queue, message) == 0


@pytest.mark.requirement("DMPR-3.1.7.1.9-03")
def test_the_quota_of_the_queue_manager_is_judged_first() -> None:
    desk = Desk(quota=10)
    assert desk.core.messages.enqueue(desk.queue(quota=0), Message()) == 2


@pytest.mark.requirement("DMPR-3.1.7.1.9-04", "DMPR-3.1.1.2-10", "DMPR-3.1.7.1.9-05")
def test_the_quota_of_a_queue_is_kilobytes(desk: Desk) -> None:
    queue = desk.queue(quota=1)
    room = 1024 - serialization.packet_size(Message())
    last = desk.core.queue_manager.sequential_id
    assert desk.core.messages.enqueue(queue, Message(body=bytes(room + 4))) == 1
    assert len(queue.positions) == 0
    assert desk.core.queue_manager.sequential_id == last
    assert desk.core.messages.enqueue(queue, Message(body=bytes(room - 8))) == 0
    assert desk.core.messages.enqueue(queue, Message()) == 1


@pytest.mark.requirement("DMPR-3.1.7.1.9-04")
def test_messages_of_open_transactions_count_for_the_quota(desk: Desk) -> None:
    queue, transaction = desk.queue(quota=1), desk.begin()
    desk.put(queue, bytes(600), transaction)
    assert desk.core.messages.enqueue(queue, Message(body=bytes(600)), transaction) == 1
    desk.core.transactions.abort(transaction.identifier)
    assert desk.core.messages.enqueue(queue, Message(body=bytes(600))) == 0


@pytest.mark.requirement("DMPR-3.1.1.2-11", "DMPR-3.1.1.12-22")
def test_a_full_journal_gets_no_more_copies(desk: Desk) -> None:
    queue = desk.queue(journaling=True, journal_quota=1)
    room = 1024 // 2 - serialization.packet_size(Message())  # for two of them
    for body in (b"1", b"2", b"3"):
        desk.put(queue, body * (room - 8))
        taken(desk.core.messages.dequeue(desk.open(queue)))
    assert queue.journal is not None
    assert [body[:1] for body in bodies(queue.journal)] == [b"1", b"2"]


# -- the place of a message -----------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.7.1.9-05", "DMPR-3.1.7.1.9-06", "DMPR-3.1.1.12-01")
@pytest.mark.parametrize("priority", range(8))
@pytest.mark.parametrize("by_the_letter", [False, True])
def test_lookup_identifiers(priority: int, by_the_letter: bool) -> None:
    desk = Desk(settings=Settings(lookup_priority_of_transactional=by_the_letter))
    queue = desk.queue()
    last = desk.core.queue_manager.sequential_id
    sequence = TxSequenceId(5, 1)
    plain = desk.put(queue, priority=priority).message
    transactional = desk.put(
        queue, priority=priority, transactional_message_sequence_identifier=sequence
    ).message
    found = [(one.lookup_identifier >> 56, one.lookup_identifier & LOW) for one in (plain, transactional)]
    high = (0, 7 - priority) if by_the_letter else (7 - priority, 0)
    assert found == [(high[0], last + 1), (high[1], last + 2)]


@pytest.mark.requirement("DMPR-3.1.7.1.9-07", "DMPR-3.1.1.2-28", "DMPR-3.1.1.12-21")
@given(priorities=st.lists(st.integers(0, 7), max_size=30))
def test_messages_stand_by_priority_and_arrival(priorities: list[int]) -> None:
    desk = Desk()
    queue = desk.queue()
    for number, priority in enumerate(priorities):
        desk.put(queue, b"%d" % number, priority=priority)
    order = sorted(range(len(priorities)), key=lambda number: (-priorities[number], number))
    assert bodies(queue) == [b"%d" % number for number in order]
    identifiers = [position.lookup_identifier for position in queue.positions]
    assert identifiers == sorted(identifiers)


@pytest.mark.requirement("DMPR-3.1.1.2-28")
def test_the_most_urgent_message_is_received_first(desk: Desk, queue: Queue) -> None:
    for body, priority in ((b"a", 3), (b"b", 7), (b"c", 3), (b"d", 0), (b"e", 7)):
        desk.put(queue, body, priority=priority)
    opened = desk.open(queue)
    got = b"".join(taken(desk.core.messages.dequeue(opened)) for _ in range(5))
    assert got == b"beacd"


@pytest.mark.requirement("DMPR-3.1.7.1.9-08")
@pytest.mark.parametrize("in_transaction", [False, True])
def test_the_time_to_be_received_runs(desk: Desk, queue: Queue, in_transaction: bool) -> None:
    transaction = desk.begin() if in_transaction else None
    position = desk.put(queue, b"", transaction, time_to_be_received=10)
    assert desk.core.context.timers.active(Timer.TIME_TO_BE_RECEIVED, position.number)


@pytest.mark.requirement("DMPR-3.1.7.1.9-09", "DMPR-3.1.1.13-01", "DMPR-3.1.1.13-02")
def test_a_message_of_a_transaction_is_locked(desk: Desk, queue: Queue) -> None:
    waiting = desk.core.messages.dequeue(desk.open(queue), timeout=1_000)
    transaction, watcher = desk.begin(), desk.watch()
    position = desk.put(queue, b"1", transaction)
    assert position.state is LOCKED
    (operation,) = transaction.operations
    assert (operation.operation_type, operation.position) == (OperationType.ENQUEUE, position)
    assert (operation.target, operation.dequeue_reason) == (None, None)
    assert watcher.log == []
    assert completed(desk.step()) == []
    assert waiting.request


@pytest.mark.requirement("DMPR-3.1.7.1.9-10", "DMPR-3.1.1.12-05")
def test_a_message_of_no_transaction_is_available(desk: Desk, queue: Queue) -> None:
    watcher = desk.watch()
    desk.advance(3_000)
    position = desk.put(queue, b"1")
    assert watcher.log == [("available", queue, position)]
    assert position.message.arrival_time == desk.utc


@pytest.mark.requirement("DMPR-3.1.1.12-71")
def test_a_message_knows_its_transaction(desk: Desk, queue: Queue) -> None:
    transaction = desk.begin()
    message = desk.put(queue, b"", transaction, priority=5).message
    assert message.transaction_identifier == transaction.identifier
    assert message.delivery_guarantee is DeliveryGuarantee.RECOVERABLE  # nothing less can be undone
    assert desk.put(queue).message.transaction_identifier is None


# -- Enqueue Message To An Open Queue -------------------------------------------------------------------

SEVERAL = "DIRECT=OS:here\\private$\\a,DIRECT=OS:here\\private$\\b,DIRECT=OS:here\\private$\\c"


@pytest.mark.requirement("DMPR-3.1.7.1.27-01")
@pytest.mark.parametrize("in_transaction", [False, True])
def test_a_message_for_one_queue(desk: Desk, in_transaction: bool) -> None:
    queue = desk.queue(quota=1)
    transaction = desk.begin() if in_transaction else None
    opened, message = desk.open(queue, SEND), Message(body=b"1")
    assert desk.core.messages.enqueue_to_open_queue(opened, message, transaction) == 0
    (position,) = queue.positions
    assert position.message is message
    assert position.state is (LOCKED if in_transaction else AVAILABLE)
    assert desk.core.messages.enqueue_to_open_queue(opened, Message(body=bytes(2_000))) == 1


@pytest.mark.requirement("DMPR-3.1.7.1.27-02", "DMPR-3.1.7.1.27-03", "DMPR-3.1.1.12-28")
@pytest.mark.parametrize("in_transaction", [False, True])
def test_a_message_for_several_queues(desk: Desk, in_transaction: bool) -> None:
    queues = [desk.queue(f"private$\\{name}") for name in "abc"]
    transaction = desk.begin() if in_transaction else None
    opened = desk.open(SEVERAL, SEND)
    assert desk.core.messages.enqueue_to_open_queue(opened, Message(body=b"1"), transaction) == 0
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
def test_the_first_queue_that_takes_no_copy_ends_it(desk: Desk) -> None:
    first, _, third = [desk.queue(f"private$\\{name}", quota=0 if name == "b" else 9) for name in "abc"]
    opened = desk.open(SEVERAL, SEND)
    assert desk.core.messages.enqueue_to_open_queue(opened, Message(body=b"1")) == 1
    assert (bodies(first), bodies(third)) == ([b"1"], [])


def test_a_queue_that_was_deleted_since_takes_no_message(desk: Desk) -> None:
    queues = [desk.queue(f"private$\\{name}") for name in "abc"]
    opened = desk.open(SEVERAL, SEND)
    desk.core.queues.delete(queues[0])
    status = desk.core.messages.enqueue_to_open_queue(opened, Message())
    assert status == HResult.MQ_ERROR_QUEUE_NOT_AVAILABLE


# -- Move Message ---------------------------------------------------------------------------------------


@pytest.fixture
def later(desk: Desk, queue: Queue) -> Queue:
    return desk.queue("private$\\orders;later")


@pytest.mark.requirement("DMPR-3.1.7.1.16-02", "DMPR-3.1.7.1.16-03", "DMPR-3.1.1.11-09")
def test_a_message_is_moved(desk: Desk, queue: Queue, later: Queue) -> None:
    desk.put(later, b"less urgent", priority=2)
    position = desk.put(queue, b"1", priority=4)
    waiting = desk.core.messages.peek(desk.open("DIRECT=OS:here\\private$\\orders;later"), timeout=0)
    assert taken(waiting) == b"less urgent"
    message, watcher = position.message, desk.watch()
    moved = desk.core.messages.move(position, later)
    assert moved is not None
    assert position.state is PositionState.DELETED
    assert (moved.message, moved.state, moved.queue) == (message, AVAILABLE, later)
    assert watcher.log == [("available", later, moved)]
    assert bodies(later) == [b"1", b"less urgent"]
    assert bodies(queue) == []
    assert (queue.total_bytes, later.total_bytes > 0) == (0, True)


@pytest.mark.requirement("DMPR-3.1.7.1.16-03")
def test_a_move_releases_who_waits(desk: Desk, queue: Queue, later: Queue) -> None:
    waiting = desk.core.messages.dequeue(desk.open("DIRECT=OS:here\\private$\\orders;later"), timeout=1_000)
    desk.core.messages.move(desk.put(queue, b"1"), later)
    assert [one[0] for one in completed(desk.step())] == [waiting.request]


@pytest.mark.requirement("DMPR-3.1.7.1.16-01", "DMPR-3.1.7.1.16-03")
def test_a_move_to_a_queue_of_the_system_is_not_told(desk: Desk, queue: Queue) -> None:
    deadletters = desk.core.queue_manager.system_deadletter_queue
    assert deadletters is not None
    position, watcher = desk.put(queue, b"1"), desk.watch()
    moved = desk.core.messages.move(position, deadletters)
    assert moved is not None
    assert moved.state is AVAILABLE
    assert watcher.log == []
    assert bodies(deadletters) == [b"1"]
    assert deadletters.total_bytes == moved.size


@pytest.mark.requirement("DMPR-3.1.7.1.16-04", "DMPR-3.1.1.13-03")
def test_a_move_in_a_transaction(desk: Desk, queue: Queue, later: Queue) -> None:
    position, transaction, watcher = desk.put(queue, b"1"), desk.begin(), desk.watch()
    assert desk.core.messages.move(position, later, transaction) is None
    assert position.state is LOCKED
    (operation,) = transaction.operations
    assert (operation.operation_type, operation.position, operation.target) == (
        OperationType.MOVE,
        position,
        later,
    )
    assert bodies(later) == []
    assert watcher.log == []


@pytest.mark.requirement("DMPR-3.1.7.1.16-05")
@pytest.mark.parametrize("in_transaction", [False, True])
def test_a_moved_message_survives_where_it_is(
    desk: Desk, queue: Queue, later: Queue, in_transaction: bool
) -> None:
    position = desk.put(queue, b"1", delivery_guarantee=RECOVERABLE, time_to_be_received=60)
    desk.step()
    transaction = desk.begin() if in_transaction else None
    desk.core.messages.move(position, later, transaction)
    if transaction is not None:
        desk.core.commit(transaction)
    desk.step()
    assert len(desk.rows(Table.MESSAGE)) == len(desk.rows(Table.PACKET)) == 1
    desk.restart()
    assert bodies(desk.find("private$\\orders;later")) == [b"1"]
    assert bodies(desk.find()) == []
    desk.advance(60_000)  # its time goes on
    assert bodies(desk.find("private$\\orders;later")) == []


def test_a_message_goes_from_subqueue_to_subqueue_and_back(desk: Desk, queue: Queue, later: Queue) -> None:
    never = desk.queue("private$\\orders;never")
    position = desk.put(queue, b"1", delivery_guarantee=RECOVERABLE)
    for target in (later, never, queue, later):
        moved = desk.core.messages.move(position, target)
        assert moved is not None
        position = moved
        assert [len(one.positions) for one in (queue, later, never)].count(1) == 1
        assert bodies(target) == [b"1"]
        desk.step()
        assert len(desk.rows(Table.MESSAGE)) == 1


# -- Purge Queue ----------------------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.7.1.7-01", "DMPR-3.1.7.1.7-02", "DMPR-3.1.1.11-04")
def test_a_purge(desk: Desk, queue: Queue) -> None:
    opened, positions = desk.open(queue), [desk.put(queue, b"%d" % number) for number in range(4)]
    desk.core.messages.dequeue_begin(opened)
    desk.core.messages.dequeue(opened, transaction=desk.begin())
    watcher = desk.watch()
    desk.core.messages.purge(queue)
    assert watcher.deleted() == [(position, PURGED) for position in positions[2:]]
    assert [position.state for position in positions] == [PositionState.PURGE_PENDING] * 2 + [
        PositionState.DELETED
    ] * 2
    desk.core.messages.purge(queue)
    assert len(watcher.deleted()) == 2


@pytest.mark.requirement("DMPR-3.1.7.1.7-01")
def test_a_purge_empties_the_store(desk: Desk, queue: Queue) -> None:
    for _ in range(3):
        desk.put(queue, delivery_guarantee=RECOVERABLE)
    desk.step()
    desk.core.messages.purge(queue)
    desk.step()
    assert desk.rows(Table.MESSAGE) == desk.rows(Table.PACKET) == {}
    assert queue.total_bytes == 0


def test_no_quota_is_no_limit(desk: Desk) -> None:
    queue = desk.queue(quota=INFINITE)
    desk.put(queue, bytes(1 << 20))
    assert queue.total_bytes > 1 << 20
