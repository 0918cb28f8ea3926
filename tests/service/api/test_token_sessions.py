"""What tokens hold: receipts, transactions and their times, in virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from msmqwire.errors import QueueError
from msmqwire.qm.runtime.api.messaging_limits import MessagingLimits
from msmqwire.qm.runtime.api.problems import Problem
from tests.support.qm.virtual_tokens import VirtualTokens
from tests.support.running import LEDGER, ORDERS


def refused(tokens: VirtualTokens, work: Any) -> Problem:
    with pytest.raises(Problem) as caught:
        tokens.run(work)
    return caught.value


def test_a_receipt_is_of_its_token_alone() -> None:
    tokens = VirtualTokens()
    tokens.send(tokens.ann, ORDERS, "a")
    (got,) = tokens.receive(tokens.ann, ORDERS)
    receipt = got["receipt"]
    for settled in (([receipt], []), ([], [receipt])):
        assert refused(tokens, tokens.of(tokens.bob).settle(*settled)).status == 409
    assert tokens.held(ORDERS) == 1
    tokens.run(tokens.of(tokens.ann).settle([receipt], []))
    assert (tokens.held(ORDERS), tokens.labels(ORDERS), tokens.sessions.held) == (0, [], 0)


def test_a_transaction_is_of_its_token_alone() -> None:
    tokens = VirtualTokens()
    transaction = tokens.run(tokens.of(tokens.ann).begin(60))
    bob = tokens.of(tokens.bob)
    assert refused(tokens, bob.commit(transaction)).status == 404
    assert refused(tokens, bob.abort(transaction)).status == 404
    work = bob.receive(LEDGER, 1, 0, 30, transaction, tokens.gone())
    assert refused(tokens, work).status == 404
    tokens.run(tokens.of(tokens.ann).commit(transaction))


def test_a_receipt_is_good_to_the_end_of_its_time() -> None:
    tokens = VirtualTokens()
    tokens.send(tokens.ann, ORDERS, "early", "late")
    early, late = tokens.receive(tokens.ann, ORDERS, 2, settle_s=10)
    tokens.wait(9.9)
    assert tokens.held(ORDERS) == 2
    tokens.run(tokens.of(tokens.ann).settle([early["receipt"]], []))
    tokens.wait(0.2)
    assert (tokens.held(ORDERS), tokens.labels(ORDERS)) == (0, ["late"])
    assert refused(tokens, tokens.of(tokens.ann).settle([late["receipt"]], [])).status == 409
    assert tokens.receive(tokens.ann, ORDERS)[0]["deliveries"] == 1


def test_a_message_in_a_transaction_has_the_time_of_that() -> None:
    tokens = VirtualTokens()
    tokens.send(tokens.ann, LEDGER, "a")
    transaction = tokens.run(tokens.of(tokens.ann).begin(100))
    tokens.receive(tokens.ann, LEDGER, settle_s=1, transaction=transaction)
    tokens.wait(99)
    assert tokens.held(LEDGER) == 1
    tokens.send(tokens.ann, LEDGER, "b", transaction=transaction)  # used: 100 more
    tokens.wait(99)
    assert tokens.labels(LEDGER) == []
    tokens.wait(2)
    assert (tokens.labels(LEDGER), tokens.sessions.held) == (["a"], 0)
    assert refused(tokens, tokens.of(tokens.ann).commit(transaction)).status == 404


def test_a_transaction_is_not_aborted_while_a_receive_waits() -> None:
    tokens = VirtualTokens()
    ann = tokens.of(tokens.ann)
    transaction = tokens.run(ann.begin(1))
    waiting = tokens.loop.create_task(ann.receive(LEDGER, 1, 50, 30, transaction, tokens.gone()))
    tokens.wait(40)
    assert refused(tokens, ann.commit(transaction)).name == "TransactionInUse"
    tokens.send(tokens.bob, LEDGER, "a")
    tokens.wait(0.1)
    assert [one["label"] for one in waiting.result()] == ["a"]
    tokens.run(ann.commit(transaction))
    tokens.wait(10)
    assert (tokens.labels(LEDGER), tokens.held(LEDGER)) == ([], 0)


@pytest.mark.parametrize("in_transaction", [False, True])
def test_a_client_that_leaves_while_it_waits_takes_nothing(in_transaction: bool) -> None:
    tokens = VirtualTokens()
    ann, gone = tokens.of(tokens.ann), tokens.gone()
    transaction = tokens.run(ann.begin(60)) if in_transaction else None
    waiting = tokens.loop.create_task(ann.receive(LEDGER, 1, 50, 30, transaction, gone))
    tokens.wait(1)
    gone.set_result(None)
    tokens.wait(0.1)
    assert isinstance(waiting.exception(), ConnectionError)
    tokens.send(tokens.bob, LEDGER, "a")
    assert (tokens.labels(LEDGER), tokens.held(LEDGER)) == (["a"], 0)
    if transaction is not None:
        tokens.run(ann.commit(transaction))
    assert tokens.labels(LEDGER) == ["a"]


@pytest.mark.parametrize("in_transaction", [False, True])
@pytest.mark.parametrize("turns", range(12))
def test_a_client_that_leaves_as_its_message_comes_loses_none(turns: int, in_transaction: bool) -> None:
    """It leaves so many turns of the loop after the message was sent: nothing is held for it then."""
    tokens = VirtualTokens()
    ann, gone = tokens.of(tokens.ann), tokens.gone()
    transaction = tokens.run(ann.begin(60)) if in_transaction else None
    waiting = tokens.loop.create_task(ann.receive(LEDGER, 1, 50, 30, transaction, gone))
    tokens.wait(1)
    message = {"label": "a", "delivery": "transactional"}
    request = {"to": f"DIRECT=OS:.\\{LEDGER}", "messages": [message]}
    sending = tokens.loop.create_task(tokens.of(tokens.bob).send(request))
    for _ in range(turns):
        tokens.loop.run_one(tokens.loop.time())
    gone.set_result(None)
    tokens.wait(0.1)
    assert len(sending.result()) == 1
    if waiting.exception() is None:
        ann.withdraw([one["receipt"] for one in waiting.result()])  # as the endpoint does
        tokens.wait(0.1)
    if transaction is not None:
        tokens.run(ann.commit(transaction))
    assert (tokens.labels(LEDGER), tokens.held(LEDGER), tokens.sessions.held) == (["a"], 0, 0)
    assert tokens.receive(tokens.bob, LEDGER)[0]["deliveries"] == 0


@pytest.mark.parametrize("turns", range(8))
def test_a_client_that_leaves_before_a_commit_loses_no_message(turns: int) -> None:
    """The message is there, but not yet durable: the receive waits for that, and not for the message."""
    tokens = VirtualTokens()
    ann, gone = tokens.of(tokens.ann), tokens.gone()
    message = {"label": "a", "delivery": "transactional"}
    request = {"to": f"DIRECT=OS:.\\{LEDGER}", "messages": [message]}
    receiving = tokens.loop.create_task(ann.receive(LEDGER, 1, 50, 30, None, gone))
    sending = tokens.loop.create_task(tokens.of(tokens.bob).send(request))
    for _ in range(turns):
        tokens.loop.run_one(tokens.loop.time())
    gone.set_result(None)
    tokens.wait(0.1)
    assert len(sending.result()) == 1
    if receiving.exception() is None:
        ann.withdraw([one["receipt"] for one in receiving.result()])
        tokens.wait(0.1)
    assert (tokens.labels(LEDGER), tokens.held(LEDGER), tokens.sessions.held) == (["a"], 0, 0)


def test_what_a_revoked_token_holds_is_back_at_once() -> None:
    tokens = VirtualTokens()
    tokens.send(tokens.ann, ORDERS, "a", "b")
    tokens.send(tokens.ann, LEDGER, "c")
    (got,) = tokens.receive(tokens.ann, ORDERS)
    ann = tokens.of(tokens.ann)
    transaction = tokens.run(ann.begin(60))
    tokens.receive(tokens.ann, LEDGER, transaction=transaction)
    waiting = tokens.loop.create_task(ann.receive("private$\\orders;empty", 1, 50, 30, None, tokens.gone()))
    tokens.wait(0.1)
    tokens.sessions.revoked(tokens.ann)
    tokens.wait(0.1)
    assert (tokens.labels(ORDERS), tokens.labels(LEDGER)) == (["a", "b"], ["c"])
    assert (tokens.sessions.held, len(tokens.sessions), len(tokens.sessions.transactions)) == (0, 0, 0)
    raised = waiting.exception()
    assert isinstance(raised, Problem)
    assert raised.status == 401
    assert refused(tokens, tokens.of(tokens.ann).settle([got["receipt"]], [])).status == 409


def test_an_empty_session_is_closed_and_one_that_holds_is_not() -> None:
    tokens = VirtualTokens(MessagingLimits(idle_s=5))
    tokens.send(tokens.ann, ORDERS, "a")
    tokens.receive(tokens.ann, ORDERS, settle_s=60)
    tokens.receive(tokens.bob, LEDGER)
    assert len(tokens.sessions) == 2
    tokens.wait(6)
    assert len(tokens.sessions) == 1
    tokens.wait(55)  # the message is back: the session is empty
    assert tokens.labels(ORDERS) == ["a"]
    tokens.wait(6)
    assert len(tokens.sessions) == 0
    assert queue_descriptors(tokens) == 0


def queue_descriptors(tokens: VirtualTokens) -> int:
    manager = tokens.core.queue_manager
    return sum(len(queue.descriptors) for queue in manager.queues.values())


def test_the_end_returns_all_and_admits_nobody() -> None:
    tokens = VirtualTokens()
    tokens.send(tokens.ann, ORDERS, "a")
    tokens.receive(tokens.ann, ORDERS)
    tokens.sessions.close()
    tokens.wait(0.1)
    assert (tokens.labels(ORDERS), tokens.sessions.held) == (["a"], 0)
    with pytest.raises(Problem) as caught:
        tokens.of(tokens.bob)
    assert caught.value.status == 503


def test_all_tokens_together_hold_so_many_messages() -> None:
    tokens = VirtualTokens(MessagingLimits(held=3))
    tokens.send(tokens.ann, ORDERS, *"abcde")
    tokens.receive(tokens.ann, ORDERS, 2)
    tokens.receive(tokens.bob, ORDERS, 1)
    work = tokens.of(tokens.bob).receive(ORDERS, 1, 0, 30, None, tokens.gone())
    assert refused(tokens, work).status == 429
    tokens.wait(31)
    assert tokens.sessions.held == 0
    assert len(tokens.receive(tokens.bob, ORDERS)) == 1


def test_all_tokens_together_have_so_many_transactions() -> None:
    tokens = VirtualTokens(MessagingLimits(transactions=2))
    tokens.run(tokens.of(tokens.ann).begin(10))
    tokens.run(tokens.of(tokens.bob).begin(10))
    assert refused(tokens, tokens.of(tokens.ann).begin(10)).status == 429
    tokens.wait(11)
    tokens.run(tokens.of(tokens.ann).begin(10))


def test_a_session_leaves_few_queues_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msmqwire.qm.runtime.api.holding_session.OPEN_MAX", 5)
    tokens = VirtualTokens()
    ann = tokens.of(tokens.ann)
    tokens.send(tokens.ann, ORDERS, "a")
    tokens.receive(tokens.ann, ORDERS)
    for number in range(20):
        request = {"to": f"DIRECT=TCP:192.0.2.{number}\\private$\\far", "messages": [{"label": "x"}]}
        tokens.run(ann.send(request))
    assert queue_descriptors(tokens) <= 7
    tokens.wait(31)
    assert tokens.labels(ORDERS) == ["a"]


def test_a_refused_send_in_a_batch_sends_none() -> None:
    tokens = VirtualTokens()
    request = {"to": f"DIRECT=OS:.\\{ORDERS}", "messages": [{"label": "a"}, {"label": "b", "priority": 9}]}
    with pytest.raises(Exception, match="9 is not"):
        tokens.run(tokens.of(tokens.ann).send(request))
    request["messages"] = [{"label": "a", "delivery": "transactional"}]
    with pytest.raises(QueueError):
        tokens.run(tokens.of(tokens.ann).send(request))
    assert tokens.labels(ORDERS) == []


def test_a_cancelled_wait_is_no_fault_of_the_connection() -> None:
    """The server ends: the work for the request is cancelled, and nothing is held."""
    tokens = VirtualTokens()
    ann = tokens.of(tokens.ann)
    waiting = tokens.loop.create_task(ann.receive(LEDGER, 1, 50, 30, None, tokens.gone()))
    tokens.wait(1)
    waiting.cancel()
    tokens.wait(0.1)
    assert waiting.cancelled()
    with pytest.raises(asyncio.CancelledError):
        waiting.result()
    tokens.send(tokens.bob, LEDGER, "a")
    assert (tokens.labels(LEDGER), tokens.held(LEDGER)) == (["a"], 0)
