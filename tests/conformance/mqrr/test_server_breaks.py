"""Clients that vanish, and queue managers that restart: [MS-MQRR] 3.1.6.

Whatever ends a client, and when: a message that it has not ended with an acknowledgement is in its queue
again, one that it has is not, and nobody gets any message twice.
"""

from __future__ import annotations

import pytest

from msmqwire.constants import HResult
from msmqwire.qm.model.elements import Queue
from msmqwire.qm.model.enumerations import CursorState
from msmqwire.remote_read.constants import Acknowledge, Action, ShareMode
from tests.support.qm.queue_contents import bodies
from tests.support.rpc.remote_read_harness import (
    AVAILABLE,
    BOB,
    FOREVER,
    NO_MESSAGE,
    OK,
    ORDERS,
    TX,
    RemoteReadHarness,
)

BODIES = [b"1", b"2", b"3"]


@pytest.fixture
def queue(harness: RemoteReadHarness) -> Queue:
    queue = harness.queue()
    harness.send(*BODIES, to=ORDERS, recoverable=True)
    return queue


def drain(harness: RemoteReadHarness) -> list[bytes]:
    """What another client receives until the queue is empty."""
    client = harness.client(77, BOB)
    handle = client.open(share=ShareMode.MQ_DENY_SHARE)
    received = []
    while (body := client.read(handle, request=1)) != NO_MESSAGE:
        received.append(body)
        assert client.end(handle, 1) == OK
    client.close(handle)
    return received


def break_off(harness: RemoteReadHarness, how: str) -> RemoteReadHarness:
    """Let the client or the queue manager end; return the queue manager that is there then."""
    if how == "break":
        harness.lose()
        assert harness.nothing_is_left()
        return harness
    after = harness.restarted(stop=how == "stop")
    assert after.nothing_is_left()
    return after


POINTS = [
    "opened",
    "received",
    "given back",
    "acknowledged",
    "waiting",
    "satisfied",
    "by lookup",
    "by cursor",
]


@pytest.mark.requirement(
    "MQRR-3.1.6.1-01", "MQRR-3.1.6.1-02", "MQRR-3.1.6.1-03", "MQRR-3.1.6.2-01", "MQRR-3.1.6.2-03",
    "MQRR-3.1.6.2-04", "MQRR-3.1.6.2-05", "MQRR-3.1.6.2-06",
)  # fmt: skip
@pytest.mark.parametrize("how", ["break", "kill", "stop"])
@pytest.mark.parametrize("point", POINTS)
def test_an_interrupted_receive_loses_and_repeats_nothing(harness, queue, point, how):
    client = harness.client()
    handle = client.open(share=ShareMode.MQ_DENY_SHARE)
    left = BODIES
    match point:
        case "opened":
            client.create_cursor(handle)
        case "received":
            assert client.read(handle, request=1) == b"1"
        case "given back":
            assert client.read(handle, request=1) == b"1"
            assert client.end(handle, 1, Acknowledge.RR_NACK) == OK
        case "acknowledged":
            assert client.read(handle, request=1) == b"1"
            assert client.end(handle, 1) == OK
            left = BODIES[1:]
        case "waiting":
            client.purge(handle)
            left = []
            assert client.result(client.start(handle, timeout=FOREVER)) is None
        case "satisfied":
            client.purge(handle)
            call = client.start(handle, timeout=FOREVER)
            harness.send(b"4", to=ORDERS, recoverable=True)
            assert client.result(call) == b"4"
            left = [b"4"]
        case "by lookup":
            lookup = next(iter(queue.positions)).lookup_identifier
            assert client.read(handle, Action.MQ_LOOKUP_RECEIVE_NEXT, lookup=lookup) == b"2"
        case "by cursor":
            cursor = client.create_cursor(handle)
            assert client.read(handle, Action.MQ_ACTION_PEEK_CURRENT, cursor=cursor) == b"1"
            assert client.read(handle, cursor=cursor) == b"1"
    after = break_off(harness, how)
    assert bodies(after.find_queue(), AVAILABLE) == left
    assert drain(after) == left
    after.advance(600_000)
    assert bodies(after.find_queue()) == []


@pytest.mark.parametrize("how", ["break", "kill", "stop"])
@pytest.mark.parametrize("ended", [False, True])
@pytest.mark.requirement("MQRR-3.1.6.2-04")
def test_a_transaction_without_decision(harness, how, ended):
    """A break leaves what was ended with the transaction; the end of the queue manager aborts it."""
    harness.queue(transactional=True)
    harness.send(*BODIES, to=ORDERS, transactional=True)
    client = harness.client()
    client.enlisted()
    handle = client.open()
    assert client.read(handle, request=1, tx=TX) == b"1"
    if ended:
        assert client.end(handle, 1, transactional=True) == OK
    if how == "break":
        harness.lose()
        assert bodies(harness.find_queue(), AVAILABLE) == BODIES[ended:]
        return
    assert bodies(harness.restarted(stop=how == "stop").find_queue(), AVAILABLE) == BODIES


@pytest.mark.requirement("MQRR-3.1.6.2-05", "MQRR-3.1.6.1-02")
def test_calls_of_a_client_that_has_gone_are_not_answered(harness, queue):
    client = harness.client()
    first, second = client.open(), client.open()
    client.purge(first)
    cursor = client.create_cursor(second)
    held = client.open()
    harness.enqueue(queue, b"4")
    assert client.read(held, request=1) == b"4"
    calls = [
        client.start(first, timeout=FOREVER),
        client.start(second, timeout=FOREVER, cursor=cursor),
        client.start(first, Action.MQ_ACTION_PEEK_CURRENT, timeout=5_000),
    ]
    (context, *_) = [each for each in harness.core.remote_read.contexts if each.handle == second]
    state = context.cursors[cursor]
    assert state.state is CursorState.WAIT_RECEIVE
    assert [*context.descriptor.cursors.values()] == [state]
    other = harness.client(2, BOB)
    theirs = other.open()
    waiting = other.start(theirs, request=1, timeout=FOREVER)
    harness.lose()
    assert context.descriptor.cursors == {}
    harness.advance(600_000)
    assert not harness.answers.keys() & set(calls)
    # The message does not go to a read of the client that goes, but to one that waits behind them.
    assert other.result(waiting) == b"4"


@pytest.mark.requirement("MQRR-3.1.6.1-04", "MQRR-3.1.6.2-02")
def test_an_association_without_handles_ends_quietly(harness, queue):
    harness.lose(5)
    client = harness.client()
    handle = client.open()
    client.close(handle)
    harness.lose()
    harness.lose()
    assert client.close(handle)[0] == HResult.MQ_ERROR_INVALID_HANDLE
    assert harness.nothing_is_left()


@pytest.mark.requirement("MQRR-3.1.6.1-04", "MQRR-3.1.6.1-01", "MQRR-3.1.6.2-01")
def test_the_end_of_an_association_leaves_the_handles_of_others(harness, queue):
    client, other = harness.client(), harness.client(2, BOB)
    handle, others = client.open(), other.open()
    harness.lose(5)
    assert client.read(handle, Action.MQ_ACTION_PEEK_CURRENT) == b"1"
    harness.lose()
    assert other.read(others, Action.MQ_ACTION_PEEK_CURRENT) == b"1"
    assert client.close(handle)[0] == HResult.MQ_ERROR_INVALID_HANDLE
    assert other.close(others)[0] == OK


@pytest.mark.requirement("MQRR-3.1.6.2-05", "MQRR-3.1.6.2-04")
def test_the_time_of_a_receive_that_was_run_down_is_over(harness, queue):
    """Else its timer would release the message of the next reader."""
    client = harness.client()
    assert client.read(client.open(), request=1) == b"1"
    harness.advance(1_000)
    harness.lose()
    other = harness.client(2, BOB)
    theirs = other.open()
    assert other.read(theirs, request=1) == b"1"
    harness.advance(299_999)
    third = harness.client(3)
    assert third.read(third.open()) == b"2"
    assert other.end(theirs, 1) == OK


def test_a_connection_that_is_gone_while_its_association_goes_on(harness, queue):
    """Its calls are cancelled; what the client holds stays its own."""
    client = harness.client()
    handle = client.open()
    assert client.read(handle, request=1) == b"1"
    client.purge(handle)
    call = client.start(handle, request=2, timeout=FOREVER)
    harness.core.remote_read.cancelled(call)
    harness.run()
    harness.enqueue(queue, b"5")
    harness.run()
    assert client.read(handle, request=3) == b"5"
    assert client.end(handle, 1) == OK
    assert client.end(handle, 3) == OK


def test_a_local_reader_skips_messages_locked_by_a_remote_one(harness, queue):
    """Locked messages are not for local readers either, until their reader gives them back."""
    client = harness.client()
    handle = client.open()
    assert client.read(handle, request=1) == b"1"
    assert harness.receive(ORDERS) == b"2"
    harness.lose()
    assert [harness.receive(ORDERS) for _ in range(3)] == [b"1", b"3", None]
