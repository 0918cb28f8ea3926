"""Transactions, internal ones and those of a coordinator: [MS-MQDMPR] 3.1.4.3 to 3.1.4.11 and 3.1.7.1.8."""

from __future__ import annotations

from uuid import UUID

import pytest

from msmqwire.constants import MQ_OK, MessageClass
from msmqwire.qm.model.changes import Table
from msmqwire.qm.model.effects import ErrorReport, TransactionReply
from msmqwire.qm.model.elements import Queue, Transaction
from msmqwire.qm.model.enumerations import OperationType, PositionState
from msmqwire.qm.model.timers import Timer
from tests.support.queue_manager_desk import RECOVERABLE, Desk, bodies, completed, states, taken

ACK_RECEIVE = MessageClass.MQMSG_CLASS_ACK_RECEIVE
PURGED = MessageClass.MQMSG_CLASS_NACK_Q_PURGED
QUEUE_DELETED = MessageClass.MQMSG_CLASS_NACK_Q_DELETED
UNKNOWN = 0xC00E0051
AVAILABLE, LOCKED = PositionState.AVAILABLE, PositionState.LOCKED
PREPAREREQDONE = "TXUSER_ENLISTMENT_MTAG_PREPAREREQDONE"
COMMITREQDONE = "TXUSER_ENLISTMENT_MTAG_COMMITREQDONE"
ABORTREQDONE = "TXUSER_ENLISTMENT_MTAG_ABORTREQDONE"
STRANGE = UUID(int=0xBAD)


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def queue(desk: Desk) -> Queue:
    return desk.queue()


def replies(desk: Desk) -> list[tuple[UUID, str]]:
    return [(one.transaction, one.tag) for one in desk.step() if isinstance(one, TransactionReply)]


def received(desk: Desk, queue: Queue, transaction: Transaction) -> bytes:
    return taken(desk.core.messages.dequeue(desk.open(queue), transaction=transaction, timeout=0))


# -- Create, Prepare ------------------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.7.1.8-01", "DMPR-3.1.1.14-01")
def test_a_transaction_is_made_with_its_identifier(desk: Desk) -> None:
    identifier = UUID(int=77)
    transaction = desk.core.transactions.create(identifier)
    assert transaction.identifier == identifier
    assert transaction.operations == []
    assert desk.core.queue_manager.transactions == {identifier: transaction}


@pytest.mark.requirement("DMPR-3.1.4.3-01", "DMPR-3.1.1.14-03")
@pytest.mark.parametrize("single_phase", [True, False])
def test_prepare_sets_single_phase_and_commits_nothing(desk: Desk, queue: Queue, single_phase: bool) -> None:
    transaction = desk.begin()
    desk.put(queue, b"1", transaction)
    transaction.single_phase = not single_phase
    status = desk.core.transactions.prepare(transaction.identifier, single_phase=single_phase)
    assert status == MQ_OK
    assert transaction.single_phase is single_phase
    assert states(queue) == [LOCKED]
    assert transaction.identifier in desk.core.queue_manager.transactions


@pytest.mark.requirement("DMPR-3.1.4.3-01")
def test_a_transaction_is_internal_unless_told_otherwise(desk: Desk) -> None:
    transaction = desk.begin()
    transaction.single_phase = False
    assert desk.core.transactions.prepare(transaction.identifier) == MQ_OK
    assert transaction.single_phase is True


@pytest.mark.parametrize(
    "event",
    [
        pytest.param("prepare", marks=pytest.mark.requirement("DMPR-3.1.4.3-02")),
        pytest.param("commit", marks=pytest.mark.requirement("DMPR-3.1.4.4-01")),
        pytest.param("abort", marks=pytest.mark.requirement("DMPR-3.1.4.5-01")),
    ],
)
def test_an_unknown_transaction_changes_nothing(desk: Desk, queue: Queue, event: str) -> None:
    transaction, watcher = desk.begin(), desk.watch()
    desk.put(queue, b"1", transaction)
    assert getattr(desk.core.transactions, event)(STRANGE) == UNKNOWN
    assert states(queue) == [LOCKED]
    assert watcher.log == []
    assert list(desk.core.queue_manager.transactions) == [transaction.identifier]


@pytest.mark.requirement("DMPR-3.1.4.3-03", "DMPR-3.1.1.12-73")
@pytest.mark.parametrize("count", [1, 2, 3])
def test_prepare_marks_the_first_and_the_last_message(desk: Desk, queue: Queue, count: int) -> None:
    transaction = desk.begin()
    messages = [desk.put(queue, b"", transaction).message for _ in range(count)]
    assert desk.core.transactions.prepare(transaction.identifier) == MQ_OK
    marks = [(message.first_in_transaction, message.last_in_transaction) for message in messages]
    assert marks == [(number == 0, number == count - 1) for number in range(count)]


# -- Commit ---------------------------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.4.4-02", "DMPR-3.1.4.4-03", "DMPR-3.1.4.4-05", "DMPR-3.1.1.14-02")
def test_commit_carries_out_the_operations_in_their_order(desk: Desk, queue: Queue) -> None:
    other, target = desk.queue("private$\\others"), desk.queue("private$\\orders;done")
    old, moving = desk.put(queue, b"old"), desk.put(queue, b"moving")
    transaction = desk.begin()
    first = desk.put(other, b"1", transaction)
    assert received(desk, queue, transaction) == b"old"
    desk.core.messages.move(moving, target, transaction)
    second = desk.put(other, b"2", transaction)
    watcher = desk.watch()
    assert desk.core.commit(transaction) == MQ_OK
    (moved,) = target.positions
    assert watcher.log == [
        ("available", other, first),
        ("deleted", queue, old, ACK_RECEIVE),
        ("available", target, moved),
        ("available", other, second),
    ]
    assert desk.core.queue_manager.transactions == {}
    assert transaction.operations == []
    assert desk.core.transactions.commit(transaction.identifier) == UNKNOWN


@pytest.mark.requirement("DMPR-3.1.4.4-02")
def test_commit_releases_the_readers_that_wait(desk: Desk, queue: Queue) -> None:
    waiting = desk.core.messages.dequeue(desk.open(queue), timeout=1_000)
    transaction = desk.begin()
    desk.put(queue, b"1", transaction)
    assert completed(desk.step()) == []
    desk.core.commit(transaction)
    assert completed(desk.step()) == [(waiting.request, MQ_OK, b"1")]


@pytest.mark.requirement("DMPR-3.1.4.4-03")
def test_commit_deletes_with_the_reason_of_the_operation(desk: Desk, queue: Queue) -> None:
    position, transaction, watcher = desk.put(queue, b"1"), desk.begin(), desk.watch()
    rejected = MessageClass.MQMSG_CLASS_NACK_RECEIVE_REJECTED
    desk.core.messages.lock(position, transaction, rejected)
    desk.core.commit(transaction)
    assert watcher.log == [("deleted", queue, position, rejected)]


@pytest.mark.requirement("DMPR-3.1.4.4-04", "DMPR-3.1.1.13-03")
def test_commit_moves_a_message_to_its_place_in_the_target(desk: Desk, queue: Queue) -> None:
    target = desk.queue("private$\\orders;urgent")
    position = desk.put(queue, b"moving", priority=5)
    message = position.message
    desk.put(target, b"less urgent", priority=3)
    transaction = desk.begin()
    desk.core.messages.move(position, target, transaction)
    desk.core.commit(transaction)
    assert position.state is PositionState.DELETED
    moved = queue.subqueues["urgent"].positions.head
    assert moved.message is message
    assert (moved.queue, moved.state) == (target, AVAILABLE)
    assert bodies(target) == [b"moving", b"less urgent"]
    assert bodies(queue) == []


def test_what_is_moved_into_a_queue_that_was_deleted_meanwhile_goes_with_it(desk: Desk, queue: Queue) -> None:
    target = desk.queue("private$\\orders;done")
    position, transaction = desk.put(queue, b"1", delivery_guarantee=RECOVERABLE), desk.begin()
    desk.core.messages.move(position, target, transaction)
    desk.core.queues.delete(target)
    watcher = desk.watch()
    assert desk.core.commit(transaction) == MQ_OK
    assert watcher.log == [("deleted", queue, position, QUEUE_DELETED)]
    desk.step()
    desk.restart()
    assert bodies(desk.find()) == []


# -- Abort ----------------------------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.4.5-02", "DMPR-3.1.4.5-04", "DMPR-3.1.4.5-05")
def test_abort_undoes_the_operations(desk: Desk, queue: Queue) -> None:
    target = desk.queue("private$\\orders;done")
    first, second = desk.put(queue, b"1"), desk.put(queue, b"2")
    transaction = desk.begin()
    assert received(desk, queue, transaction) == b"1"
    desk.core.messages.move(second, target, transaction)
    new = desk.put(queue, b"3", transaction)
    watcher = desk.watch()
    assert desk.core.transactions.abort(transaction.identifier) == MQ_OK
    assert watcher.log == [("available", queue, first), ("available", queue, second)]
    assert list(queue.positions) == [first, second]
    assert states(queue) == [AVAILABLE, AVAILABLE]
    assert bodies(target) == []
    assert not new.listed
    assert transaction.operations == []
    assert desk.core.queue_manager.transactions == {}
    assert desk.core.transactions.abort(transaction.identifier) == UNKNOWN
    assert received(desk, queue, desk.begin()) == b"1"


@pytest.mark.requirement("DMPR-3.1.4.5-04")
def test_a_message_of_an_aborted_transaction_was_never_there(desk: Desk, queue: Queue) -> None:
    transaction = desk.begin()
    position = desk.put(queue, b"1", transaction, time_to_be_received=10)
    desk.core.transactions.abort(transaction.identifier)
    assert desk.core.messages.dequeue(desk.open(queue), timeout=0).message is None
    assert queue.total_bytes == 0
    desk.step()
    assert desk.rows(Table.MESSAGE) == desk.rows(Table.PACKET) == {}
    assert not desk.core.context.timers.active(Timer.TIME_TO_BE_RECEIVED, position.number)


@pytest.mark.requirement("DMPR-3.1.4.5-03")
@pytest.mark.parametrize("moves, reason", [(False, ACK_RECEIVE), (True, PURGED)])
def test_abort_deletes_what_a_purge_waits_for(desk: Desk, queue: Queue, moves: bool, reason: int) -> None:
    target = desk.queue("private$\\orders;done")
    position, transaction = desk.put(queue, b"1"), desk.begin()
    if moves:
        desk.core.messages.move(position, target, transaction)
    else:
        received(desk, queue, transaction)
    desk.core.messages.purge(queue)
    watcher = desk.watch()
    desk.core.transactions.abort(transaction.identifier)
    assert watcher.log == [("deleted", queue, position, reason)]
    assert bodies(queue) == bodies(target) == []


@pytest.mark.requirement("DMPR-3.1.7.1.7-02")
def test_a_purge_waits_for_the_commit_of_a_new_message(desk: Desk, queue: Queue) -> None:
    transaction = desk.begin()
    position = desk.put(queue, b"1", transaction)
    desk.core.messages.purge(queue)
    assert states(queue) == [PositionState.PURGE_PENDING]
    watcher = desk.watch()
    desk.core.commit(transaction)
    assert watcher.log == [("deleted", queue, position, PURGED)]


# -- a coordinator's requests ---------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.4.6-01", "DMPR-3.1.4.6-02")
def test_a_transaction_is_prepared_for_a_coordinator(desk: Desk, queue: Queue) -> None:
    transaction = desk.begin()
    desk.put(queue, b"1", transaction)
    desk.core.transactions.dtc_prepare(transaction.identifier, single_phase=False)
    assert transaction.single_phase is False
    assert replies(desk) == [(transaction.identifier, PREPAREREQDONE)]
    assert states(queue) == [LOCKED]
    assert desk.core.transactions.in_doubt == [transaction.identifier]


@pytest.mark.requirement("DMPR-3.1.4.6-03", "DMPR-3.1.4.7-01")
def test_a_coordinator_that_asks_one_alone_has_it_commit_at_once(desk: Desk, queue: Queue) -> None:
    transaction = desk.begin()
    desk.put(queue, b"1", transaction)
    desk.core.transactions.dtc_prepare(transaction.identifier, single_phase=True)
    assert replies(desk) == [(transaction.identifier, COMMITREQDONE)]
    assert states(queue) == [AVAILABLE]
    assert desk.rows(Table.TRANSACTION) == {}


@pytest.mark.requirement("DMPR-3.1.4.6-04")
@pytest.mark.parametrize("single_phase", [True, False])
def test_what_cannot_be_prepared_is_aborted(desk: Desk, single_phase: bool) -> None:
    desk.core.transactions.dtc_prepare(STRANGE, single_phase=single_phase)
    assert replies(desk) == [(STRANGE, ABORTREQDONE)]


@pytest.mark.requirement("DMPR-3.1.4.7-01")
def test_a_coordinator_commits(desk: Desk, queue: Queue) -> None:
    transaction = desk.begin()
    desk.put(queue, b"1", transaction)
    desk.core.transactions.dtc_prepare(transaction.identifier, single_phase=False)
    desk.step()
    desk.core.transactions.dtc_commit(transaction.identifier)
    assert replies(desk) == [(transaction.identifier, COMMITREQDONE)]
    assert states(queue) == [AVAILABLE]
    desk.core.transactions.dtc_commit(transaction.identifier)  # asked again: the answer was lost
    assert replies(desk) == [(transaction.identifier, COMMITREQDONE)]


@pytest.mark.requirement("DMPR-3.1.4.8-01")
def test_a_coordinator_aborts(desk: Desk, queue: Queue) -> None:
    transaction = desk.begin()
    desk.put(queue, b"1", transaction)
    desk.core.transactions.dtc_prepare(transaction.identifier, single_phase=False)
    desk.step()
    desk.core.transactions.dtc_abort(transaction.identifier)
    assert replies(desk) == [(transaction.identifier, ABORTREQDONE)]
    assert states(queue) == []
    desk.core.transactions.dtc_abort(transaction.identifier)
    assert replies(desk) == [(transaction.identifier, ABORTREQDONE)]


def prepared_then_crashed(desk: Desk, queue: Queue) -> UUID:
    """A transaction that receives ``old``, moves ``moving`` and sends ``new``, in doubt after a crash."""
    target = desk.queue("private$\\orders;done")
    desk.put(queue, b"old", delivery_guarantee=RECOVERABLE)
    moving = desk.put(queue, b"moving", delivery_guarantee=RECOVERABLE)
    transaction = desk.begin()
    assert received(desk, queue, transaction) == b"old"
    desk.core.messages.move(moving, target, transaction)
    desk.put(queue, b"new", transaction)
    desk.core.transactions.dtc_prepare(transaction.identifier, single_phase=False)
    desk.step()
    desk.restart()
    return transaction.identifier


@pytest.mark.requirement(
    "DMPR-3.1.1.1-44", "DMPR-3.1.1.14-01", "DMPR-3.1.1.14-02", "DMPR-3.1.1.14-03", "DMPR-3.1.1.13-01",
    "DMPR-3.1.1.13-02", "DMPR-3.1.1.13-03", "DMPR-3.1.1.13-04", "DMPR-3.1.3-26", "DMPR-3.1.1.11-06",
)  # fmt: skip
def test_a_prepared_transaction_survives(desk: Desk, queue: Queue) -> None:
    identifier = prepared_then_crashed(desk, queue)
    (transaction,) = desk.core.queue_manager.transactions.values()
    assert transaction.identifier == identifier
    assert transaction.single_phase is False
    queue = desk.find()
    assert states(queue) == [LOCKED] * 3
    assert [
        (one.operation_type, one.position.message.body, one.target, one.dequeue_reason)
        for one in transaction.operations
    ] == [
        (OperationType.DEQUEUE, b"old", None, ACK_RECEIVE),
        (OperationType.MOVE, b"moving", queue.subqueues["done"], None),
        (OperationType.ENQUEUE, b"new", None, None),
    ]
    assert all(one.position.queue is queue for one in transaction.operations)
    assert desk.core.messages.dequeue(desk.open(queue), timeout=0).message is None
    assert desk.core.messages.peek(desk.open(queue), timeout=0).message is None


@pytest.mark.requirement("DMPR-3.1.4.9-01")
def test_recovery_commits_a_transaction_that_was_in_doubt(desk: Desk, queue: Queue) -> None:
    identifier = prepared_then_crashed(desk, queue)
    desk.core.transactions.dtc_reenlistment_commit(identifier)
    desk.step()
    desk.restart()
    queue = desk.find()
    assert bodies(queue, AVAILABLE) == bodies(queue) == [b"new"]
    assert bodies(queue.subqueues["done"], AVAILABLE) == [b"moving"]
    assert desk.core.transactions.in_doubt == []


@pytest.mark.requirement("DMPR-3.1.4.10-01")
def test_recovery_aborts_a_transaction_that_was_in_doubt(desk: Desk, queue: Queue) -> None:
    identifier = prepared_then_crashed(desk, queue)
    desk.core.transactions.dtc_reenlistment_abort(identifier)
    desk.step()
    desk.restart()
    queue = desk.find()
    assert bodies(queue, AVAILABLE) == bodies(queue) == [b"old", b"moving"]
    assert bodies(queue.subqueues["done"]) == []
    assert desk.core.transactions.in_doubt == []


@pytest.mark.requirement("DMPR-3.1.4.11-01")
def test_a_coordinator_that_does_not_answer_is_reported(desk: Desk, queue: Queue) -> None:
    prepared_then_crashed(desk, queue)
    desk.core.transactions.dtc_reenlistment_timeout()
    (report,) = desk.step()
    assert isinstance(report, ErrorReport)
    assert states(desk.find()) == [LOCKED] * 3  # nothing is decided


@pytest.mark.requirement("DMPR-3.1.3-26", "DMPR-3.1.1.11-11", "DMPR-3.1.4.5-02")
@pytest.mark.parametrize("prepared", [True, False])
def test_an_internal_transaction_is_aborted_by_a_restart(desk: Desk, queue: Queue, prepared: bool) -> None:
    desk.put(queue, b"old", delivery_guarantee=RECOVERABLE)
    transaction = desk.begin()
    assert received(desk, queue, transaction) == b"old"
    desk.put(queue, b"new", transaction)
    if prepared:
        desk.core.transactions.prepare(transaction.identifier)
    desk.step()
    desk.restart()
    queue = desk.find()
    assert bodies(queue) == [b"old"]
    assert states(queue) == [AVAILABLE]
    assert desk.core.queue_manager.transactions == {}


@pytest.mark.requirement("DMPR-3.1.1.11-04", "DMPR-3.1.1.11-06")
@pytest.mark.parametrize("in_doubt", [True, False])
def test_a_purge_that_waits_for_a_transaction_survives(desk: Desk, queue: Queue, in_doubt: bool) -> None:
    desk.put(queue, b"old", delivery_guarantee=RECOVERABLE)
    transaction = desk.begin()
    assert received(desk, queue, transaction) == b"old"
    if in_doubt:
        desk.core.transactions.dtc_prepare(transaction.identifier, single_phase=False)
    desk.core.messages.purge(queue)
    desk.step()
    desk.restart()
    queue = desk.find()
    assert states(queue) == ([PositionState.PURGE_PENDING] if in_doubt else [])
    desk.core.transactions.dtc_reenlistment_abort(transaction.identifier)
    desk.step()
    assert states(queue) == []
    assert desk.rows(Table.MESSAGE) == desk.rows(Table.PACKET) == {}


@pytest.mark.parametrize("end", ["commit", "abort", "moved"])
def test_an_express_message_of_a_prepared_transaction_leaves_no_row_behind(
    desk: Desk, queue: Queue, end: str
) -> None:
    position = desk.put(queue, b"old")
    transaction = desk.begin()
    if end == "moved":
        desk.core.messages.move(position, desk.queue("private$\\orders;done"), transaction)
    else:
        assert received(desk, queue, transaction) == b"old"
    desk.core.transactions.dtc_prepare(transaction.identifier, single_phase=False)
    desk.step()
    assert len(desk.rows(Table.MESSAGE)) == 1  # it has to survive until the coordinator decides
    if end == "abort":
        desk.core.transactions.dtc_abort(transaction.identifier)
        desk.step()
        assert desk.rows(Table.MESSAGE) == desk.rows(Table.PACKET) == {}
        assert (bodies(queue), states(queue)) == ([b"old"], [AVAILABLE])
    else:
        desk.core.transactions.dtc_commit(transaction.identifier)
    place = queue.subqueues["done"] if end == "moved" else queue
    if end != "commit":
        desk.core.messages.dequeue(desk.open(place), timeout=0)
    desk.step()
    assert desk.rows(Table.MESSAGE) == desk.rows(Table.PACKET) == {}
    desk.restart()
    assert bodies(desk.find()) == []


def test_a_transaction_in_doubt_whose_queue_is_deleted(desk: Desk, queue: Queue) -> None:
    identifier = prepared_then_crashed(desk, queue)
    desk.core.queues.delete(desk.find())
    desk.step()
    desk.restart()
    assert desk.core.transactions.in_doubt == [identifier]
    desk.core.transactions.dtc_commit(identifier)
    assert replies(desk) == [(identifier, COMMITREQDONE)]
    assert desk.rows(Table.MESSAGE) == desk.rows(Table.TRANSACTION) == {}


def test_a_message_in_doubt_that_has_expired_goes_when_it_is_decided(desk: Desk, queue: Queue) -> None:
    transaction = desk.begin()
    desk.put(queue, b"1", transaction, time_to_be_received=10)
    desk.core.transactions.dtc_prepare(transaction.identifier, single_phase=False)
    desk.step()
    desk.restart()
    desk.advance(20_000)
    assert states(desk.find()) == [LOCKED]
    desk.core.transactions.dtc_reenlistment_commit(transaction.identifier)
    desk.step()
    assert states(desk.find()) == []
    assert desk.rows(Table.MESSAGE) == {}
