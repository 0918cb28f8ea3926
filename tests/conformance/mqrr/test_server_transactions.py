"""Remote readers in transactions, and messages moved: [MS-MQRR] 3.1.4.10 to 3.1.4.15."""

from __future__ import annotations

from uuid import UUID

import pytest

from msmqwire.constants import MQ_OK, HResult, MessageClass
from msmqwire.constants.ntstatus import NtStatus
from msmqwire.packets import parse
from msmqwire.qm.model.effects import TransactionReply
from msmqwire.qm.model.elements import Queue
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.protocols.remote_read.configuration import Limit
from msmqwire.remote_read.constants import Access, Action, Opnum
from msmqwire.remote_read.procedures import XACTUOW
from msmqwire.rpc.handles import ContextHandle
from msmqwire.rpc.queue_format import QUEUE_FORMAT
from tests.support.engine_harness import START_UTC
from tests.support.qm.queue_contents import bodies, states
from tests.support.rpc.remote_read_harness import (
    AVAILABLE,
    BAD_HANDLE,
    BOB,
    FOREVER,
    INVALID,
    LOCKED,
    NO_MESSAGE,
    NO_TX,
    NOT_FOUND,
    OK,
    ORDERS,
    RR_ACK,
    RR_NACK,
    TX,
    Client,
    Fault,
    RemoteReadHarness,
    lookup_identifiers,
)

A = Action
USAGE = HResult.MQ_ERROR_TRANSACTION_USAGE
SEQUENCE = HResult.MQ_ERROR_TRANSACTION_SEQUENCE
ENLIST = HResult.MQ_ERROR_TRANSACTION_ENLIST
IN_TRANSACTION = HResult.MQ_ERROR_MESSAGE_LOCKED_UNDER_TRANSACTION
IDENTIFIER = UUID(bytes_le=TX)
OTHER_TX = bytes(15) + b"\1"
DONE = rf"{ORDERS};done"


@pytest.fixture
def queue(harness: RemoteReadHarness) -> Queue:
    """A transactional queue with the messages 1, 2 and 3."""
    queue = harness.queue(transactional=True)
    harness.send(b"1", b"2", b"3", to=ORDERS, transactional=True)
    return queue


# -- R_QMEnlistRemoteTransaction -----------------------------------------------------------------------------


@pytest.mark.requirement("MQRR-3.1.4.12-03", "MQRR-3.1.4.12-10", "MQRR-3.1.4.12-09", "DMPR-3.1.1.14-03")
def test_enlistment_by_the_coordinator_creates_the_transaction(harness, client):
    engine = harness.core.remote_read
    engine.transacting.coordinated = True
    call = client.begin(
        Opnum.R_QMEnlistRemoteTransaction,
        pTransactionId=XACTUOW.value(rgb=TX),
        cbPropagationToken=3,
        pbPropagationToken=b"abc",
        pQueueFormat=QUEUE_FORMAT.value(m_qft=0),
    )
    (asked,) = harness.enlistments
    assert (asked.transaction, asked.token) == (IDENTIFIER, b"abc")
    assert client.answer(call) is None
    assert harness.core.queue_manager.transactions == {}
    engine.enlisted(asked.request, done=True)
    harness.run()
    assert client.answer(call).status == OK
    transaction = harness.core.queue_manager.transactions[IDENTIFIER]
    assert transaction.single_phase is False
    again = client.enlist()
    assert client.answer(again).status == OK
    assert len(harness.enlistments) == 1
    assert harness.core.queue_manager.transactions[IDENTIFIER] is transaction


@pytest.mark.requirement("MQRR-3.1.4.12-11", "MQRR-3.1.2.1-01", "MQRR-3.1.2-01")
@pytest.mark.parametrize("how", ["no coordinator", "refused", "no answer"])
def test_a_transaction_that_nobody_coordinates(harness, client, how):
    engine = harness.core.remote_read
    engine.transacting.coordinated = how != "no coordinator"
    call = client.enlist()
    if how == "refused":
        engine.enlisted(harness.enlistments[0].request, done=False)
        harness.run()
    elif how == "no answer":
        harness.advance(299_999)
        assert client.answer(call) is None
        harness.advance(1)
        engine.enlisted(harness.enlistments[0].request, done=True)
        harness.run()
    assert client.answer(call).status == ENLIST
    assert harness.core.queue_manager.transactions == {}
    assert not harness.core.context.timers.active(Timer.RPC_CALL_TIMEOUT, 1)
    assert harness.core.remote_read.shares.transactions.total == 0


@pytest.mark.requirement("MQRR-3.1.2.1-02")
def test_the_time_for_enlisting_is_a_setting():
    harness = RemoteReadHarness(call_timeout_s=60)
    harness.core.remote_read.transacting.coordinated = True
    client = harness.client()
    call = client.enlist()
    harness.advance(59_999)
    assert client.answer(call) is None
    harness.advance(1)
    assert client.answer(call).status == ENLIST


def test_transactions_of_applications_here_are_not_for_others(harness, client):
    harness.core.transactions.create(IDENTIFIER)
    harness.core.remote_read.transacting.coordinated = True
    assert client.answer(client.enlist()).status == ENLIST
    assert client.answer(client.enlist(NO_TX)).status == INVALID
    assert harness.enlistments == []


def test_the_number_of_transactions_is_limited():
    harness = RemoteReadHarness(transactions=Limit(1, 9))
    client = harness.client()
    client.enlisted()
    assert client.answer(client.enlist(OTHER_TX)).status == HResult.MQ_ERROR_INSUFFICIENT_RESOURCES
    harness.core.transactions.dtc_abort(IDENTIFIER)
    client.enlisted(OTHER_TX)
    harness.client(2, BOB).enlisted(bytes(15) + b"\2")


def test_a_client_that_goes_while_it_enlists(harness, client):
    engine = harness.core.remote_read
    engine.transacting.coordinated = True
    call = client.enlist()
    harness.lose()
    engine.enlisted(harness.enlistments[0].request, done=True)
    harness.run()
    assert call not in harness.answers
    assert harness.core.queue_manager.transactions == {}
    assert harness.nothing_is_left()


# -- R_StartTransactionalReceive -----------------------------------------------------------------------------


@pytest.mark.requirement(
    "MQRR-3.1.4.13-35", "MQRR-3.1.4.13-36", "MQRR-3.1.4.13-37", "MQRR-3.1.4.13-38", "MQRR-3.1.4.13-40",
    "MQRR-3.1.4.13-41", "MQRR-3.1.4.13-39", "MQRR-3.1.4.15-05", "MQRR-3.1.4.15-11", "MQRR-3.1.4.15-12",
    "MQRR-3.1.4.13-19",
)  # fmt: skip
@pytest.mark.parametrize("outcome", ["commit", "abort"])
@pytest.mark.parametrize("action", [A.MQ_ACTION_RECEIVE, A.MQ_LOOKUP_RECEIVE_NEXT])
def test_a_received_message_is_locked_until_the_outcome(harness, queue, client, outcome, action):
    """Until its transaction is decided, the message belongs to it."""
    identifiers = lookup_identifiers(queue)
    client.enlisted()
    handle = client.open()
    lookup = 0 if action is A.MQ_ACTION_RECEIVE else identifiers[0]
    index = 0 if action is A.MQ_ACTION_RECEIVE else 1
    body = (b"1", b"2")[index]
    call = client.start(handle, action, lookup=lookup, request=1, tx=TX)
    assert client.result(call) == body
    result = client.answer(call)
    assert result.pSequenceId == identifiers[index] & 0x00FFFFFFFFFFFFFF
    assert result.pdwArriveTime == harness.utc_start
    assert harness.time_left(Timer.PENDING_REQUEST_CLEANUP, 1) == 300_000
    assert client.end(handle, 1, transactional=True) == OK
    assert bodies(queue, LOCKED) == [body]
    client.close(handle)
    assert bodies(queue, LOCKED) == [body]
    transactions = harness.core.transactions
    transactions.dtc_prepare(IDENTIFIER, single_phase=False)
    (transactions.dtc_commit if outcome == "commit" else transactions.dtc_abort)(IDENTIFIER)
    harness.run()
    left = {"commit": [b for b in (b"1", b"2", b"3") if b != body], "abort": [b"1", b"2", b"3"]}
    assert bodies(queue, AVAILABLE) == left[outcome]
    assert bodies(harness.restarted().find_queue()) == left[outcome]


@pytest.mark.requirement("MQRR-3.1.4.15-06", "MQRR-3.1.4.15-12", "MQRR-3.1.4.15-09")
def test_a_message_given_back_leaves_the_transaction(harness, queue, client):
    client.enlisted()
    handle = client.open()
    assert client.read(handle, request=1, tx=TX) == b"1"
    assert client.read(handle, request=2, tx=TX) == b"2"
    assert client.end(handle, 1, RR_NACK, transactional=True) == OK
    assert client.end(handle, 2, transactional=True) == OK
    assert states(queue) == [AVAILABLE, LOCKED, AVAILABLE]
    other = harness.client(2, BOB)
    theirs = other.open()
    assert other.read(theirs, request=1) == b"1"
    harness.core.transactions.dtc_prepare(IDENTIFIER, single_phase=True)
    harness.run()
    assert bodies(queue) == [b"1", b"3"]
    assert other.end(theirs, 1, RR_NACK) == OK
    assert bodies(queue, AVAILABLE) == [b"1", b"3"]


@pytest.mark.requirement("MQRR-3.1.5.1-01", "MQRR-3.1.6.2-04", "MQRR-3.1.4.3-06")
@pytest.mark.parametrize("how", ["time", "close", "break"])
def test_a_message_that_is_not_ended_leaves_the_transaction(harness, queue, client, how):
    """Else the outcome would delete a message that another reader has by then."""
    client.enlisted()
    handle = client.open()
    assert client.read(handle, request=1, tx=TX) == b"1"
    assert client.read(handle, request=2, tx=TX) == b"2"
    assert client.end(handle, 2, transactional=True) == OK
    if how == "time":
        harness.advance(300_000)
    elif how == "close":
        client.close(handle)
    else:
        harness.lose()
    assert states(queue) == [AVAILABLE, LOCKED, AVAILABLE]
    harness.core.transactions.dtc_prepare(IDENTIFIER, single_phase=True)
    harness.run()
    assert bodies(queue, AVAILABLE) == [b"1", b"3"]


@pytest.mark.parametrize("ack", [RR_ACK, RR_NACK])
@pytest.mark.parametrize("how", ["time", "end", "close"])
def test_an_abort_leaves_a_message_received_by_another_reader(harness, queue, client, how, ack):
    client.enlisted()
    handle = client.open()
    assert client.read(handle, request=1, tx=TX) == b"1"
    harness.core.transactions.dtc_abort(IDENTIFIER)
    other = harness.client(2, BOB)
    theirs = other.open()
    harness.advance(1)
    assert other.read(theirs, request=1) == b"1"
    if how == "time":
        harness.advance(299_999)
        assert client.end(handle, 1, ack, transactional=True) == BAD_HANDLE
    elif how == "end":
        assert client.end(handle, 1, ack, transactional=True) == SEQUENCE
    else:
        client.close(handle)
    assert states(queue) == [LOCKED, AVAILABLE, AVAILABLE]
    assert other.end(theirs, 1) == OK
    assert bodies(queue) == [b"2", b"3"]


@pytest.mark.requirement("MQRR-3.1.4.15-11", "MQRR-3.1.4.15-09")
def test_a_transaction_that_is_decided_before_the_receive_ends(harness, queue, client):
    client.enlisted()
    handle = client.open()
    assert client.read(handle, request=1, tx=TX) == b"1"
    harness.core.transactions.dtc_prepare(IDENTIFIER, single_phase=True)
    harness.run()
    assert client.end(handle, 1, RR_NACK, transactional=True) == NOT_FOUND
    assert bodies(queue) == [b"2", b"3"]
    client.close(handle)
    assert bodies(queue) == [b"2", b"3"]


def test_a_prepared_transaction_keeps_its_messages(harness, queue, client):
    """It has promised to commit what it has, also after a crash."""
    client.enlisted()
    handle = client.open()
    assert client.read(handle, request=1, tx=TX) == b"1"
    harness.core.transactions.dtc_prepare(IDENTIFIER, single_phase=False)
    assert client.read(handle, request=2, tx=TX) == SEQUENCE
    assert client.end(handle, 1, RR_NACK, transactional=True) == SEQUENCE
    client.close(handle)
    assert states(queue) == [LOCKED, AVAILABLE, AVAILABLE]
    twin = harness.restarted()
    twin.core.transactions.dtc_reenlistment_commit(IDENTIFIER)
    twin.run()
    assert bodies(twin.find_queue()) == [b"2", b"3"]


@pytest.mark.requirement(
    "MQRR-3.1.4.13-10", "MQRR-3.1.4.13-11", "MQRR-3.1.4.13-12", "MQRR-3.1.4.13-27", "MQRR-3.1.4.13-32",
    "MQRR-3.1.4.13-33", "MQRR-3.1.4.13-34",
)  # fmt: skip
def test_what_no_transaction_does(harness, queue, client):
    harness.queue("plain")
    harness.enqueue(harness.find_queue("plain"), b"p")
    handle, plain = client.open(), client.open(r"DIRECT=OS:here\private$\plain")
    assert client.read(plain, tx=TX) == USAGE
    assert client.read(plain, cursor=9, tx=TX) == NtStatus.STATUS_INVALID_HANDLE
    cursor = client.create_cursor(handle)
    lookup = lookup_identifiers(queue)[0]
    for action in A:
        if not action.receives:
            by_lookup = action.by_lookup_identifier
            where = {"lookup": lookup} if by_lookup else {"cursor": cursor}
            assert client.read(handle, action, **where, tx=TX) == USAGE
    peeking = client.open(access=Access.PEEK_ACCESS)
    assert client.read(peeking, tx=TX) == HResult.MQ_ERROR_ACCESS_DENIED
    client.enlisted()
    assert client.read(handle, request=1, tx=TX) == b"1"
    assert client.end(handle, 1) == INVALID
    assert client.end(handle, 1, transactional=True) == OK


@pytest.mark.requirement("MQRR-3.1.4.13-02", "MQRR-3.1.4.13-30")
@pytest.mark.parametrize("transactional", [False, True])
def test_without_a_transaction_it_is_a_receive_like_any_other(harness, queue, client, transactional):
    handle = client.open()
    assert client.read(handle, request=1, tx=NO_TX) == b"1"
    assert client.end(handle, 1, RR_NACK, transactional=transactional) == OK
    assert states(queue) == [AVAILABLE] * 3
    assert client.read(handle, request=1, tx=NO_TX) == b"1"
    assert client.end(handle, 1, transactional=transactional) == OK
    assert bodies(queue) == [b"2", b"3"]
    assert harness.core.queue_manager.transactions == {}


@pytest.mark.requirement("MQRR-3.1.4.13-35")
@pytest.mark.parametrize("action", [A.MQ_ACTION_RECEIVE, A.MQ_LOOKUP_RECEIVE_CURRENT])
@pytest.mark.parametrize("how", ["no coordinator", "not enlisted", "other enlisted", "aborted"])
def test_a_transaction_that_is_not_enlisted_takes_nothing(harness, queue, client, how, action):
    """Nobody could commit it, and RR_ACK must not delete a message before the commit."""
    harness.core.remote_read.transacting.coordinated = how != "no coordinator"
    if how == "other enlisted":
        client.enlisted(OTHER_TX)
    elif how == "aborted":
        client.enlisted()
        harness.core.transactions.dtc_abort(IDENTIFIER)
    known = dict(harness.core.queue_manager.transactions)
    handle = client.open()
    lookup = lookup_identifiers(queue)[0] if action.by_lookup_identifier else 0
    wait = 0 if lookup else FOREVER
    assert client.read(handle, action, lookup=lookup, timeout=wait, request=1, tx=TX) == ENLIST
    assert client.end(handle, 1, transactional=True) == BAD_HANDLE
    assert bodies(queue, AVAILABLE) == [b"1", b"2", b"3"]
    assert bodies(harness.restarted().find_queue(), AVAILABLE) == [b"1", b"2", b"3"]
    assert harness.core.queue_manager.transactions == known
    assert client.read(handle, request=1) == b"1"  # the request number is free


@pytest.mark.requirement(
    "MQRR-3.1.4.13-08", "MQRR-3.1.4.8-02", "MQRR-3.1.4.8-08", "MQRR-3.1.4.13-27", "MQRR-3.1.2.1-03"
)
def test_a_transactional_receive_waits_and_is_cancelled(harness, queue, client):
    client.enlisted()
    handle = client.open()
    client.purge(handle)
    call = client.start(handle, request=1, timeout=1_000, tx=TX)
    assert client.cancel(handle, 1) == OK
    assert client.result(call) == HResult.MQ_ERROR_OPERATION_CANCELLED
    call = client.start(handle, request=1, timeout=1_000, tx=TX)
    harness.advance(999)
    assert client.result(call) is None
    harness.advance(1)
    assert client.result(call) == NO_MESSAGE
    call = client.start(handle, request=1, timeout=FOREVER, tx=TX)
    harness.send(b"4", to=ORDERS, transactional=True)
    assert client.result(call) == b"4"
    assert client.end(handle, 1, transactional=True) == OK
    harness.core.transactions.dtc_prepare(IDENTIFIER, single_phase=True)
    harness.run()
    assert bodies(queue) == []
    assert harness.core.queue_manager.transactions == {}


# -- R_SetUserAcknowledgementClass ---------------------------------------------------------------------------


@pytest.mark.requirement("MQRR-3.1.4.14-10", "MQRR-3.1.4.14-06")
@pytest.mark.parametrize("prepared", [False, True])
@pytest.mark.parametrize("message_class", [0, 0xC004])
def test_a_message_is_rejected_when_its_transaction_commits(harness, queue, client, message_class, prepared):
    client.enlisted()
    handle = client.open()
    lookup = lookup_identifiers(queue)[0]
    assert client.read(handle, request=1, tx=TX) == b"1"
    assert client.end(handle, 1, transactional=True) == OK
    if prepared:
        harness.core.transactions.dtc_prepare(IDENTIFIER, single_phase=False)
    assert client.reject(handle, lookup, message_class) == OK
    if prepared:
        harness = harness.restarted()
        queue = harness.find_queue()
    (position, *_) = queue.positions
    events = harness.record_events()
    harness.core.transactions.dtc_prepare(IDENTIFIER, single_phase=True)
    reason = MessageClass.MQMSG_CLASS_NACK_RECEIVE_REJECTED
    expected = reason if message_class else MessageClass.MQMSG_CLASS_ACK_RECEIVE
    assert events.deleted() == [(position, expected)]


@pytest.mark.requirement("MQRR-3.1.4.14-08", "MQRR-3.1.4.14-09", "MQRR-3.1.4.14-06")
def test_what_can_not_be_rejected(harness, queue, client):
    handle = client.open()
    lookup = lookup_identifiers(queue)[0]
    assert client.reject(handle, 12345) == NOT_FOUND
    assert client.reject(handle, lookup) == USAGE
    client.read(handle, request=1)
    assert client.reject(handle, lookup) == USAGE
    assert client.reject(client.open(access=Access.PEEK_ACCESS), lookup) == HResult.MQ_ERROR_ACCESS_DENIED


@pytest.mark.requirement("MQRR-3.1.5.1-01", "MQRR-3.1.5.1-02", "MQRR-3.1.4.14-08", "MQRR-3.1.4.14-09")
@pytest.mark.parametrize("taken", [False, True])
def test_a_message_that_went_back_in_time_can_not_be_rejected(harness, queue, client, taken):
    """One that was ended by R_EndTransactionalReceive stays in the transaction, however long that lasts."""
    client.enlisted()
    handle = client.open()
    first, second, _ = lookup_identifiers(queue)
    assert client.read(handle, request=1, tx=TX) == b"1"
    assert client.read(handle, request=2, tx=TX) == b"2"
    assert client.end(handle, 1, transactional=True) == OK
    harness.advance(300_000)
    if taken:
        other = harness.client(2, BOB)
        theirs = other.open()
        assert other.read(theirs, request=1) == b"2"
        assert other.end(theirs, 1) == OK
    assert client.reject(handle, second) == (NOT_FOUND if taken else USAGE)
    assert client.end(handle, 2, transactional=True) == BAD_HANDLE
    assert client.reject(handle, first) == OK


# -- R_OpenQueueForMove and R_MoveMessage --------------------------------------------------------------------


@pytest.mark.requirement("MQRR-3.1.4.11-14", "MQRR-3.1.4.11-15", "MQRR-3.1.4.11-17", "MQRR-3.1.4.10-09")
def test_the_number_of_a_destination_is_good_while_it_is_open(harness, queue, client):
    harness.queue("orders;done", transactional=True)
    lookup = lookup_identifiers(queue)[0]
    source = client.open()
    number, handle = client.open_for_move(DONE, dwAccess=Access.RECEIVE_ACCESS)
    assert handle.attributes == 0
    second, _ = client.open_for_move(DONE)
    assert number
    assert number != second
    assert client.move(source, number + 12345, lookup) == BAD_HANDLE
    assert client.move(source, 0, lookup) == BAD_HANDLE
    for opened in (source, handle):  # their handles are no destinations
        assert client.move(source, opened.uuid.int % (1 << 64), lookup) == BAD_HANDLE
    assert harness.client(2).open_for_move(DONE)[0] not in (number, second)
    assert client.close(handle)[0] == OK
    assert client.move(source, number, lookup) == BAD_HANDLE
    assert client.move(source, second, lookup) == OK


@pytest.mark.requirement("MQRR-3.1.4.10-09")
def test_the_destination_of_another_client_is_refused(harness, queue, client):
    lookup = lookup_identifiers(queue)[0]
    theirs, _ = harness.client(2).open_for_move(DONE)
    assert client.move(client.open(), theirs, lookup) == BAD_HANDLE
    assert bodies(queue) == [b"1", b"2", b"3"]


@pytest.mark.requirement("MQRR-3.1.4.11-16", "MQRR-3.1.4.11-18")
@pytest.mark.parametrize(
    "name, status",
    [
        (r"DIRECT=OS:here\private$\others", 0xC00E0003),
        (r"DIRECT=OS:here\private$\others;done", 0xC00E0003),
        (r"DIRECT=OS:there\private$\orders;done", 0xC00E0003),
        (QUEUE_FORMAT.value(m_qft=0), INVALID),
    ],
    ids=["queue", "subqueue", "elsewhere", "kind"],
)
def test_destinations_that_are_not_there(harness, queue, client, name, status):
    with pytest.raises(Fault) as caught:
        client.open_for_move(name)
    assert caught.value.status == status


@pytest.mark.requirement("MQRR-3.1.4.10-16", "MQRR-3.1.4.10-17", "MQRR-3.1.4.11-17")
@pytest.mark.parametrize(
    "names", [(ORDERS, DONE), (DONE, ORDERS), (DONE, rf"{ORDERS};other")], ids=["down", "up", "across"]
)
@pytest.mark.parametrize("seven_bytes", [False, True])
def test_a_message_is_moved(harness, queue, client, names, seven_bytes):
    start, goal = names
    lookup = lookup_identifiers(queue)[0]
    if start != ORDERS:
        number, _ = client.open_for_move(start)
        assert client.move(client.open(), number, lookup) == OK
        lookup = lookup_identifiers(queue.subqueues["done"])[0]
    source = client.open(start)
    number, _ = client.open_for_move(goal)
    assert client.move(source, number, lookup & (1 << 56) - 1 if seven_bytes else lookup) == OK
    target = {ORDERS: queue}.get(goal) or queue.subqueues[goal.rpartition(";")[2]]
    assert b"1" in bodies(target, AVAILABLE)
    assert bodies(harness.restarted().find_queue(), AVAILABLE) == bodies(queue)
    moved = client.answer(client.start(client.open(goal), A.MQ_LOOKUP_PEEK_CURRENT,
                                       lookup=lookup_identifiers(target)[-1]))  # fmt: skip
    packet = parse(moved.ppPacketSections[0].pSectionBuffer, protocol="remote_read")
    assert packet.MessagePropertiesHeader.MessageBody == b"1"
    assert packet.SubqueueHeader.SubqueueName == ("" if goal == ORDERS else goal.rpartition(";")[2])


@pytest.mark.requirement("MQRR-3.1.4.10-17", "MQRR-3.1.4.12-03", "MQRR-3.1.4.10-13")
@pytest.mark.parametrize("outcome", ["commit", "abort"])
def test_a_move_in_a_transaction_is_provisional(harness, queue, client, outcome):
    client.enlisted()
    source = client.open()
    number, _ = client.open_for_move(DONE)
    first, second, _ = lookup_identifiers(queue)
    assert client.move(source, number, first, TX) == OK
    assert client.read(source, request=1, tx=TX) == b"2"
    assert client.end(source, 1, transactional=True) == OK
    assert states(queue) == [LOCKED, LOCKED, AVAILABLE]
    for lookup in (first, second):
        assert client.move(source, number, lookup) == IN_TRANSACTION
        assert client.move(source, number, lookup, TX) == IN_TRANSACTION
    transactions = harness.core.transactions
    transactions.dtc_prepare(IDENTIFIER, single_phase=False)
    (transactions.dtc_commit if outcome == "commit" else transactions.dtc_abort)(IDENTIFIER)
    replies = [effect for effect in harness.run() if isinstance(effect, TransactionReply)]
    assert len(replies) == 2
    done = queue.subqueues["done"]
    expected = ([b"3"], [b"1"]) if outcome == "commit" else ([b"1", b"2", b"3"], [])
    assert (bodies(queue, AVAILABLE), bodies(done, AVAILABLE)) == expected


def subqueue_header(client: Client, handle: ContextHandle) -> tuple[int, int, int]:
    """AbortCounter, MoveCounter and LastMoveTime of the first message."""
    answer = client.answer(client.start(handle, A.MQ_ACTION_PEEK_CURRENT))
    header = parse(answer.ppPacketSections[0].pSectionBuffer, protocol="remote_read").SubqueueHeader
    return header.AbortCounter, header.MoveCounter, header.LastMoveTime


@pytest.mark.requirement("MQRR-2.2.5.3-06", "MQRR-2.2.5.3-07", "MQRR-2.2.5.3-08")
@pytest.mark.parametrize("recoverable", [True, False])
def test_moves_and_failed_attempts_are_counted(recoverable):
    """Recoverable messages are counted on after a restart; a move ends a sequence of failed attempts."""
    harness = RemoteReadHarness()
    queue, client = harness.queue(transactional=recoverable), harness.client()
    done = harness.queue("orders;done", transactional=recoverable)
    if recoverable:
        harness.send(b"1", to=ORDERS, transactional=True)
    else:
        harness.enqueue(queue, b"1")
    source, subqueue = client.open(), client.open(DONE)
    number, _ = client.open_for_move(DONE)
    assert subqueue_header(client, source) == (0, 0, 0)
    for _ in range(2):  # given back by the reader, and for it
        client.read(source, request=1)
        client.end(source, 1, RR_NACK)
        other = client.open()
        assert client.read(other, request=1) == b"1"
        client.close(other)
    assert subqueue_header(client, source) == (4, 0, 0)
    harness.advance(5_000)
    assert client.move(source, number, lookup_identifiers(queue)[0]) == OK
    moved = 1000 * (START_UTC + 5) & 0xFFFFFFFF
    assert subqueue_header(client, subqueue) == (0, 1, moved)
    if not recoverable:
        return
    client.enlisted()
    assert client.read(subqueue, request=1, tx=TX) == b"1"
    harness.core.transactions.dtc_abort(IDENTIFIER)
    client.enlisted()
    back, _ = client.open_for_move(ORDERS)
    assert client.move(subqueue, back, lookup_identifiers(done)[0], TX) == OK
    harness.core.transactions.dtc_abort(IDENTIFIER)
    harness.run()
    later = harness.restarted().client()
    assert subqueue_header(later, later.open(DONE)) == (2, 1, moved)


@pytest.mark.requirement(
    "MQRR-3.1.4.10-08", "MQRR-3.1.4.10-09", "MQRR-3.1.4.10-10", "MQRR-3.1.4.10-11", "MQRR-3.1.4.10-12",
    "MQRR-3.1.4.10-13", "MQRR-3.1.4.10-14", "MQRR-3.1.4.10-15",
)  # fmt: skip
def test_the_first_check_that_fails_decides(harness, queue, client):
    """Each call below passes one check more than the call before it."""
    harness.queue("others")
    plain = harness.queue("plain")
    harness.enqueue(plain, b"p")
    source, peeking = client.open(), client.open(access=Access.PEEK_ACCESS)
    unrelated, _ = client.open_for_move(r"DIRECT=OS:here\private$\others")
    done, closed = client.open_for_move(DONE)
    from_plain = client.open(r"DIRECT=OS:here\private$\plain")
    plain_done, _ = client.open_for_move(r"DIRECT=OS:here\private$\plain;done")
    first = lookup_identifiers(queue)[0]
    client.read(source, request=1)
    assert client.move(closed, 0, 0, TX) == HResult.MQ_ERROR_ACCESS_DENIED
    assert client.move(peeking, done, first) == HResult.MQ_ERROR_ACCESS_DENIED
    assert client.move(source, 0, 0, TX) == BAD_HANDLE
    assert client.move(source, unrelated, 0, TX) == NtStatus.STATUS_INVALID_PARAMETER
    assert client.move(from_plain, plain_done, 0, TX) == USAGE
    assert client.move(source, done, 0, TX) == NOT_FOUND
    assert client.move(source, done, first, TX) == IN_TRANSACTION
    assert client.end(source, 1, RR_NACK) == OK
    assert client.move(source, done, first, TX) == SEQUENCE
    client.enlisted()
    assert client.move(source, done, first, TX) == OK


@pytest.mark.requirement("MQRR-3.1.4.10-10")
def test_a_journal_is_no_subqueue(harness, queue, client):
    journal = client.open(rf"{ORDERS};JOURNAL")
    harness.core.messages.journal(next(iter(queue.positions)).message, queue.journal)
    number, _ = client.open_for_move(ORDERS)
    lookup = lookup_identifiers(queue.journal)[0]
    assert client.move(journal, number, lookup) == NtStatus.STATUS_INVALID_PARAMETER


@pytest.mark.requirement("MQRR-3.1.4.10-13")
def test_a_message_that_a_reader_has_is_not_moved(harness, queue, client):
    """It would be there twice when the reader ends its receive."""
    other = harness.client(2, BOB)
    theirs = other.open()
    assert other.read(theirs, request=1) == b"1"
    number, _ = client.open_for_move(DONE)
    assert client.move(client.open(), number, lookup_identifiers(queue)[0]) == IN_TRANSACTION
    assert other.end(theirs, 1) == MQ_OK
    assert bodies(queue) == [b"2", b"3"]
    assert bodies(queue.subqueues["done"]) == []
