"""Internal and coordinated transactions: [MS-MQDMPR] 3.1.4.3 to 3.1.4.11 and 3.1.7.1.8."""

from __future__ import annotations

from uuid import UUID

import pytest

from msmqwire.constants import MQ_OK, MessageClass
from msmqwire.qm.model.effects import ErrorReport, TransactionReply
from msmqwire.qm.model.elements import Queue, Transaction
from msmqwire.qm.model.enumerations import OperationType, PositionState
from msmqwire.qm.model.tables import Table
from msmqwire.qm.model.timers import Timer
from tests.support.engine_harness import RECOVERABLE, EngineHarness
from tests.support.qm.queue_contents import bodies, body_of, completed_reads, states

ACK_RECEIVE = MessageClass.MQMSG_CLASS_ACK_RECEIVE
PURGED = MessageClass.MQMSG_CLASS_NACK_Q_PURGED
QUEUE_DELETED = MessageClass.MQMSG_CLASS_NACK_Q_DELETED
UNKNOWN = 0xC00E0051
AVAILABLE, LOCKED = PositionState.AVAILABLE, PositionState.LOCKED
PREPAREREQDONE = "TXUSER_ENLISTMENT_MTAG_PREPAREREQDONE"
COMMITREQDONE = "TXUSER_ENLISTMENT_MTAG_COMMITREQDONE"
ABORTREQDONE = "TXUSER_ENLISTMENT_MTAG_ABORTREQDONE"
STRANGE = UUID(int=0xBAD)


def replies(harness: EngineHarness) -> list[tuple[UUID, str]]:
    return [
        (effect.transaction, effect.tag) for effect in harness.run() if isinstance(effect, TransactionReply)
    ]


def received(harness: EngineHarness, queue: Queue, transaction: Transaction) -> bytes:
    return body_of(harness.core.messages.dequeue(harness.open(queue), transaction=transaction, timeout=0))


# -- Create, Prepare ------------------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.7.1.8-01", "DMPR-3.1.1.14-01", "DMPR-3.1.1.14-03")
def test_a_transaction_is_made_with_its_identifier(harness: EngineHarness) -> None:
    identifier = UUID(int=77)
    transaction = harness.core.transactions.create(identifier)
    assert transaction.identifier == identifier
    assert transaction.operations == []
    assert transaction.single_phase is True, "it is internal unless a coordinator prepares it"
    assert harness.core.queue_manager.transactions == {identifier: transaction}


@pytest.mark.requirement("DMPR-3.1.4.3-01", "DMPR-3.1.1.14-03")
@pytest.mark.parametrize("single_phase", [True, False])
def test_prepare_sets_single_phase_and_commits_nothing(
    harness: EngineHarness, queue: Queue, single_phase: bool
) -> None:
    transaction = harness.begin()
    harness.enqueue(queue, b"1", transaction)
    transaction.single_phase = not single_phase
    status = harness.core.transactions.prepare(transaction.identifier, single_phase=single_phase)
    assert status == MQ_OK
    assert transaction.single_phase is single_phase
    assert states(queue) == [LOCKED]
    assert transaction.identifier in harness.core.queue_manager.transactions


@pytest.mark.requirement("DMPR-3.1.4.3-01")
def test_a_transaction_is_internal_by_default(harness: EngineHarness) -> None:
    transaction = harness.begin()
    transaction.single_phase = False
    assert harness.core.transactions.prepare(transaction.identifier) == MQ_OK
    assert transaction.single_phase is True


@pytest.mark.parametrize(
    "event",
    [
        pytest.param("prepare", marks=pytest.mark.requirement("DMPR-3.1.4.3-02")),
        pytest.param("commit", marks=pytest.mark.requirement("DMPR-3.1.4.4-01")),
        pytest.param("abort", marks=pytest.mark.requirement("DMPR-3.1.4.5-01")),
    ],
)
def test_an_unknown_transaction_changes_nothing(harness: EngineHarness, queue: Queue, event: str) -> None:
    transaction, events = harness.begin(), harness.record_events()
    harness.enqueue(queue, b"1", transaction)
    assert getattr(harness.core.transactions, event)(STRANGE) == UNKNOWN
    assert states(queue) == [LOCKED]
    assert events.log == []
    assert list(harness.core.queue_manager.transactions) == [transaction.identifier]


@pytest.mark.requirement("DMPR-3.1.4.3-03", "DMPR-3.1.1.12-73")
@pytest.mark.parametrize("count", [1, 2, 3])
def test_prepare_marks_the_first_and_the_last_message(
    harness: EngineHarness, queue: Queue, count: int
) -> None:
    transaction = harness.begin()
    messages = [harness.enqueue(queue, b"", transaction).message for _ in range(count)]
    assert harness.core.transactions.prepare(transaction.identifier) == MQ_OK
    marks = [(message.first_in_transaction, message.last_in_transaction) for message in messages]
    assert marks == [(number == 0, number == count - 1) for number in range(count)]


# -- Commit ---------------------------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.4.4-04")
@pytest.mark.requirement("DMPR-3.1.4.4-02", "DMPR-3.1.4.4-03", "DMPR-3.1.4.4-05", "DMPR-3.1.1.14-02")
def test_commit_carries_out_the_operations_in_their_order(harness: EngineHarness, queue: Queue) -> None:
    other, target = harness.queue("others"), harness.queue("orders;done")
    old, moving = harness.enqueue(queue, b"old"), harness.enqueue(queue, b"moving")
    transaction = harness.begin()
    first = harness.enqueue(other, b"1", transaction)
    assert received(harness, queue, transaction) == b"old"
    harness.core.messages.move(moving, target, transaction)
    second = harness.enqueue(other, b"2", transaction)
    events = harness.record_events()
    assert harness.core.commit(transaction) == MQ_OK
    (moved,) = target.positions
    assert events.log == [
        ("available", other, first),
        ("deleted", queue, old, ACK_RECEIVE),
        ("available", target, moved),
        ("available", other, second),
    ]
    assert harness.core.queue_manager.transactions == {}
    assert transaction.operations == []
    assert harness.core.transactions.commit(transaction.identifier) == UNKNOWN


@pytest.mark.requirement("DMPR-3.1.4.4-02")
def test_commit_releases_the_readers_that_wait(harness: EngineHarness, queue: Queue) -> None:
    waiting = harness.core.messages.dequeue(harness.open(queue), timeout=1_000)
    transaction = harness.begin()
    harness.enqueue(queue, b"1", transaction)
    assert completed_reads(harness.run()) == []
    harness.core.commit(transaction)
    assert completed_reads(harness.run()) == [(waiting.request, MQ_OK, b"1")]


@pytest.mark.requirement("DMPR-3.1.4.4-03")
def test_commit_deletes_with_the_reason_of_the_operation(harness: EngineHarness, queue: Queue) -> None:
    position, transaction, events = harness.enqueue(queue, b"1"), harness.begin(), harness.record_events()
    rejected = MessageClass.MQMSG_CLASS_NACK_RECEIVE_REJECTED
    harness.core.messages.lock(position, transaction, rejected)
    harness.core.commit(transaction)
    assert events.log == [("deleted", queue, position, rejected)]


@pytest.mark.requirement("DMPR-3.1.4.4-04", "DMPR-3.1.1.13-03")
def test_commit_moves_a_message_to_its_place_in_the_target(harness: EngineHarness, queue: Queue) -> None:
    target = harness.queue("orders;urgent")
    position = harness.enqueue(queue, b"moving", priority=5)
    message = position.message
    harness.enqueue(target, b"less urgent", priority=3)
    transaction = harness.begin()
    harness.core.messages.move(position, target, transaction)
    harness.core.commit(transaction)
    assert position.state is PositionState.DELETED
    moved = queue.subqueues["urgent"].positions.head
    assert moved.message is message
    assert (moved.queue, moved.state) == (target, AVAILABLE)
    assert bodies(target) == [b"moving", b"less urgent"]
    assert bodies(queue) == []


def test_a_message_moved_into_a_deleted_queue_is_deleted(harness: EngineHarness, queue: Queue) -> None:
    """The queue is deleted while the transaction of the move is still open."""
    target = harness.queue("orders;done")
    position, transaction = harness.enqueue(queue, b"1", delivery_guarantee=RECOVERABLE), harness.begin()
    harness.core.messages.move(position, target, transaction)
    harness.core.queues.delete(target)
    events = harness.record_events()
    assert harness.core.commit(transaction) == MQ_OK
    assert events.log == [("deleted", queue, position, QUEUE_DELETED)]
    harness.run()
    harness.restart()
    assert bodies(harness.find_queue()) == []


# -- Abort ----------------------------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.4.5-02", "DMPR-3.1.4.5-04", "DMPR-3.1.4.5-05")
def test_abort_undoes_the_operations(harness: EngineHarness, queue: Queue) -> None:
    target = harness.queue("orders;done")
    first, second = harness.enqueue(queue, b"1"), harness.enqueue(queue, b"2")
    transaction = harness.begin()
    assert received(harness, queue, transaction) == b"1"
    harness.core.messages.move(second, target, transaction)
    new = harness.enqueue(queue, b"3", transaction)
    events = harness.record_events()
    assert harness.core.transactions.abort(transaction.identifier) == MQ_OK
    assert events.log == [("available", queue, first), ("available", queue, second)]
    assert list(queue.positions) == [first, second]
    assert states(queue) == [AVAILABLE, AVAILABLE]
    assert bodies(target) == []
    assert not new.listed
    assert transaction.operations == []
    assert harness.core.queue_manager.transactions == {}
    assert harness.core.transactions.abort(transaction.identifier) == UNKNOWN
    assert received(harness, queue, harness.begin()) == b"1"


@pytest.mark.requirement("DMPR-3.1.4.5-04")
def test_a_message_of_an_aborted_transaction_was_never_there(harness: EngineHarness, queue: Queue) -> None:
    transaction = harness.begin()
    position = harness.enqueue(queue, b"1", transaction, time_to_be_received=10)
    harness.core.transactions.abort(transaction.identifier)
    assert harness.core.messages.dequeue(harness.open(queue), timeout=0).message is None
    assert queue.total_bytes == 0
    harness.run()
    assert harness.rows(Table.MESSAGE) == harness.rows(Table.PACKET) == {}
    assert not harness.core.context.timers.active(Timer.TIME_TO_BE_RECEIVED, position.number)


@pytest.mark.requirement("DMPR-3.1.4.5-03")
@pytest.mark.parametrize("moves, reason", [(False, ACK_RECEIVE), (True, PURGED)])
def test_abort_deletes_what_a_purge_waits_for(
    harness: EngineHarness, queue: Queue, moves: bool, reason: int
) -> None:
    target = harness.queue("orders;done")
    position, transaction = harness.enqueue(queue, b"1"), harness.begin()
    if moves:
        harness.core.messages.move(position, target, transaction)
    else:
        received(harness, queue, transaction)
    harness.core.messages.purge(queue)
    events = harness.record_events()
    harness.core.transactions.abort(transaction.identifier)
    assert events.log == [("deleted", queue, position, reason)]
    assert bodies(queue) == bodies(target) == []


@pytest.mark.requirement("DMPR-3.1.7.1.7-02")
def test_a_purge_waits_for_the_commit_of_a_new_message(harness: EngineHarness, queue: Queue) -> None:
    transaction = harness.begin()
    position = harness.enqueue(queue, b"1", transaction)
    harness.core.messages.purge(queue)
    assert states(queue) == [PositionState.PURGE_PENDING]
    events = harness.record_events()
    harness.core.commit(transaction)
    assert events.log == [("deleted", queue, position, PURGED)]


# -- a coordinator's requests ---------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.4.6-01", "DMPR-3.1.4.6-02")
def test_a_transaction_is_prepared_for_a_coordinator(harness: EngineHarness, queue: Queue) -> None:
    transaction = harness.begin()
    harness.enqueue(queue, b"1", transaction)
    harness.core.transactions.dtc_prepare(transaction.identifier, single_phase=False)
    assert transaction.single_phase is False
    assert replies(harness) == [(transaction.identifier, PREPAREREQDONE)]
    assert states(queue) == [LOCKED]
    assert harness.core.transactions.in_doubt == [transaction.identifier]


@pytest.mark.requirement("DMPR-3.1.4.6-03", "DMPR-3.1.4.7-01")
def test_a_coordinator_that_asks_one_alone_has_it_commit_at_once(
    harness: EngineHarness, queue: Queue
) -> None:
    transaction = harness.begin()
    harness.enqueue(queue, b"1", transaction)
    harness.core.transactions.dtc_prepare(transaction.identifier, single_phase=True)
    assert replies(harness) == [(transaction.identifier, COMMITREQDONE)]
    assert states(queue) == [AVAILABLE]
    assert harness.rows(Table.TRANSACTION) == {}


@pytest.mark.requirement("DMPR-3.1.4.6-04")
@pytest.mark.parametrize("single_phase", [True, False])
def test_what_cannot_be_prepared_is_aborted(harness: EngineHarness, single_phase: bool) -> None:
    harness.core.transactions.dtc_prepare(STRANGE, single_phase=single_phase)
    assert replies(harness) == [(STRANGE, ABORTREQDONE)]


@pytest.mark.requirement("DMPR-3.1.4.7-01")
def test_a_coordinator_commits(harness: EngineHarness, queue: Queue) -> None:
    transaction = harness.begin()
    harness.enqueue(queue, b"1", transaction)
    harness.core.transactions.dtc_prepare(transaction.identifier, single_phase=False)
    harness.run()
    harness.core.transactions.dtc_commit(transaction.identifier)
    assert replies(harness) == [(transaction.identifier, COMMITREQDONE)]
    assert states(queue) == [AVAILABLE]
    harness.core.transactions.dtc_commit(
        transaction.identifier
    )  # the coordinator asks again: the reply was lost
    assert replies(harness) == [(transaction.identifier, COMMITREQDONE)]


@pytest.mark.requirement("DMPR-3.1.4.8-01")
def test_a_coordinator_aborts(harness: EngineHarness, queue: Queue) -> None:
    transaction = harness.begin()
    harness.enqueue(queue, b"1", transaction)
    harness.core.transactions.dtc_prepare(transaction.identifier, single_phase=False)
    harness.run()
    harness.core.transactions.dtc_abort(transaction.identifier)
    assert replies(harness) == [(transaction.identifier, ABORTREQDONE)]
    assert states(queue) == []
    harness.core.transactions.dtc_abort(transaction.identifier)
    assert replies(harness) == [(transaction.identifier, ABORTREQDONE)]


def prepared_then_crashed(harness: EngineHarness, queue: Queue) -> UUID:
    """A transaction, in doubt after a crash, that receives ``old``, moves ``moving`` and sends ``new``."""
    target = harness.queue("orders;done")
    harness.enqueue(queue, b"old", delivery_guarantee=RECOVERABLE)
    moving = harness.enqueue(queue, b"moving", delivery_guarantee=RECOVERABLE)
    transaction = harness.begin()
    assert received(harness, queue, transaction) == b"old"
    harness.core.messages.move(moving, target, transaction)
    harness.enqueue(queue, b"new", transaction)
    harness.core.transactions.dtc_prepare(transaction.identifier, single_phase=False)
    assert harness.core.transactions.in_doubt == [transaction.identifier]
    harness.run()
    harness.restart()
    return transaction.identifier


@pytest.mark.requirement("DMPR-3.1.1.11-11/b", "DMPR-3.1.1-12")
@pytest.mark.requirement(
    "DMPR-3.1.1.1-44", "DMPR-3.1.1.14-01", "DMPR-3.1.1.14-02", "DMPR-3.1.1.14-03", "DMPR-3.1.1.13-01",
    "DMPR-3.1.1.13-02", "DMPR-3.1.1.13-03", "DMPR-3.1.1.13-04", "DMPR-3.1.3-26", "DMPR-3.1.1.11-06",
)  # fmt: skip
def test_a_prepared_transaction_survives(harness: EngineHarness, queue: Queue) -> None:
    identifier = prepared_then_crashed(harness, queue)
    (transaction,) = harness.core.queue_manager.transactions.values()
    assert transaction.identifier == identifier
    assert transaction.single_phase is False
    assert harness.core.transactions.in_doubt == [identifier]
    queue = harness.find_queue()
    assert states(queue) == [LOCKED] * 3
    assert [
        (
            operation.operation_type,
            operation.position.message.body,
            operation.target,
            operation.dequeue_reason,
        )
        for operation in transaction.operations
    ] == [
        (OperationType.DEQUEUE, b"old", None, ACK_RECEIVE),
        (OperationType.MOVE, b"moving", queue.subqueues["done"], None),
        (OperationType.ENQUEUE, b"new", None, None),
    ]
    assert all(operation.position.queue is queue for operation in transaction.operations)
    assert harness.core.messages.dequeue(harness.open(queue), timeout=0).message is None
    assert harness.core.messages.peek(harness.open(queue), timeout=0).message is None


@pytest.mark.requirement("DMPR-3.1.4.9-01")
def test_recovery_commits_a_transaction_that_was_in_doubt(harness: EngineHarness, queue: Queue) -> None:
    identifier = prepared_then_crashed(harness, queue)
    harness.core.transactions.dtc_reenlistment_commit(identifier)
    harness.run()
    harness.restart()
    queue = harness.find_queue()
    assert bodies(queue, AVAILABLE) == bodies(queue) == [b"new"]
    assert bodies(queue.subqueues["done"], AVAILABLE) == [b"moving"]
    assert harness.core.transactions.in_doubt == []


@pytest.mark.requirement("DMPR-3.1.4.10-01")
def test_recovery_aborts_a_transaction_that_was_in_doubt(harness: EngineHarness, queue: Queue) -> None:
    identifier = prepared_then_crashed(harness, queue)
    harness.core.transactions.dtc_reenlistment_abort(identifier)
    harness.run()
    harness.restart()
    queue = harness.find_queue()
    assert bodies(queue, AVAILABLE) == bodies(queue) == [b"old", b"moving"]
    assert bodies(queue.subqueues["done"]) == []
    assert harness.core.transactions.in_doubt == []


@pytest.mark.requirement("DMPR-3.1.4.11-01")
def test_a_coordinator_that_does_not_answer_is_reported(harness: EngineHarness, queue: Queue) -> None:
    prepared_then_crashed(harness, queue)
    harness.core.transactions.dtc_reenlistment_timeout()
    (report,) = harness.run()
    assert isinstance(report, ErrorReport)
    assert states(harness.find_queue()) == [LOCKED] * 3  # still undecided


@pytest.mark.requirement("DMPR-3.1.3-26", "DMPR-3.1.1.11-11/a", "DMPR-3.1.4.5-02")
@pytest.mark.parametrize("prepared", [True, False])
def test_an_internal_transaction_is_aborted_by_a_restart(
    harness: EngineHarness, queue: Queue, prepared: bool
) -> None:
    harness.enqueue(queue, b"old", delivery_guarantee=RECOVERABLE)
    transaction = harness.begin()
    assert received(harness, queue, transaction) == b"old"
    harness.enqueue(queue, b"new", transaction)
    if prepared:
        harness.core.transactions.prepare(transaction.identifier)
    harness.run()
    harness.restart()
    queue = harness.find_queue()
    assert bodies(queue) == [b"old"]
    assert states(queue) == [AVAILABLE]
    assert harness.core.queue_manager.transactions == {}


@pytest.mark.requirement("DMPR-3.1.1.11-04", "DMPR-3.1.1.11-06", "DMPR-3.1.3-26")
@pytest.mark.parametrize("in_doubt", [True, False])
def test_a_purge_that_waits_for_a_transaction_survives(
    harness: EngineHarness, queue: Queue, in_doubt: bool
) -> None:
    harness.enqueue(queue, b"old", delivery_guarantee=RECOVERABLE)
    transaction = harness.begin()
    assert received(harness, queue, transaction) == b"old"
    if in_doubt:
        harness.core.transactions.dtc_prepare(transaction.identifier, single_phase=False)
    harness.core.messages.purge(queue)
    harness.run()
    harness.restart()
    queue = harness.find_queue()
    assert states(queue) == ([PositionState.PURGE_PENDING] if in_doubt else [])
    harness.core.transactions.dtc_reenlistment_abort(transaction.identifier)
    harness.run()
    assert states(queue) == []
    assert harness.rows(Table.MESSAGE) == harness.rows(Table.PACKET) == {}


@pytest.mark.parametrize("outcome", ["commit", "abort", "moved"])
def test_a_prepared_express_message_leaves_no_row_when_decided(
    harness: EngineHarness, queue: Queue, outcome: str
) -> None:
    position = harness.enqueue(queue, b"old")
    transaction = harness.begin()
    if outcome == "moved":
        harness.core.messages.move(position, harness.queue("orders;done"), transaction)
    else:
        assert received(harness, queue, transaction) == b"old"
    harness.core.transactions.dtc_prepare(transaction.identifier, single_phase=False)
    harness.run()
    assert len(harness.rows(Table.MESSAGE)) == 1  # it must survive until the coordinator decides
    if outcome == "abort":
        harness.core.transactions.dtc_abort(transaction.identifier)
        harness.run()
        assert harness.rows(Table.MESSAGE) == harness.rows(Table.PACKET) == {}
        assert (bodies(queue), states(queue)) == ([b"old"], [AVAILABLE])
    else:
        harness.core.transactions.dtc_commit(transaction.identifier)
    queue_after = queue.subqueues["done"] if outcome == "moved" else queue
    if outcome != "commit":
        harness.core.messages.dequeue(harness.open(queue_after), timeout=0)
    harness.run()
    assert harness.rows(Table.MESSAGE) == harness.rows(Table.PACKET) == {}
    harness.restart()
    assert bodies(harness.find_queue()) == []


def test_a_transaction_in_doubt_whose_queue_is_deleted(harness: EngineHarness, queue: Queue) -> None:
    identifier = prepared_then_crashed(harness, queue)
    harness.core.queues.delete(harness.find_queue())
    harness.run()
    harness.restart()
    assert harness.core.transactions.in_doubt == [identifier]
    harness.core.transactions.dtc_commit(identifier)
    assert replies(harness) == [(identifier, COMMITREQDONE)]
    assert harness.rows(Table.MESSAGE) == harness.rows(Table.TRANSACTION) == {}


def test_an_expired_message_in_doubt_is_deleted_on_commit(harness: EngineHarness, queue: Queue) -> None:
    transaction = harness.begin()
    harness.enqueue(queue, b"1", transaction, time_to_be_received=10)
    harness.core.transactions.dtc_prepare(transaction.identifier, single_phase=False)
    harness.run()
    harness.restart()
    harness.advance(20_000)
    assert states(harness.find_queue()) == [LOCKED]
    harness.core.transactions.dtc_reenlistment_commit(transaction.identifier)
    harness.run()
    assert states(harness.find_queue()) == []
    assert harness.rows(Table.MESSAGE) == {}
