"""Messages sent, received and settled by the API."""

from __future__ import annotations

import contextlib
from base64 import b64encode
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from msmqwire.qm.runtime.operations import LocalSession
from tests.support.qm.api_client import ApiClient, WithApi, with_api
from tests.support.qm.event_client import EventStream
from tests.support.running import LEDGER, ORDERS, until

SMALL = "private$\\small"


@pytest.fixture
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WithApi]:
    with with_api(tmp_path_factory.mktemp("messages") / "data") as running:
        yield running


def path_of(queue: str, rest: str = "") -> str:
    return f"/queues/{quote(queue, safe='')}{rest}"


def message(text: str, **more: Any) -> dict[str, Any]:
    return {"body": b64encode(text.encode()).decode(), "label": text, **more}


def send(client: ApiClient, queue: str, *texts: str, **more: Any) -> list[str]:
    told = {"to": queue, "messages": [message(text) for text in texts], **more}
    sent: list[str] = client.told("POST", "/messages", told, 201)["sent"]
    return sent


def receive(client: ApiClient, queue: str, **more: Any) -> list[dict[str, Any]]:
    received: list[dict[str, Any]] = client.told("POST", path_of(queue, "/receive"), more)["messages"]
    return received


def labels(messages: list[dict[str, Any]]) -> list[str]:
    return [one["label"] for one in messages]


def set_quota(api: WithApi, queue: str, kilobytes: int) -> None:
    driver = api.server.server.driver
    assert driver is not None
    api.server.run(LocalSession(driver).run({"op": "set", "queue": queue, "quota": kilobytes}))


def test_sent_messages_are_received_and_settled(api: WithApi) -> None:
    sent = send(api.own, ORDERS, "a", "b", "c")
    assert len(set(sent)) == 3
    got = receive(api.own, ORDERS, count=2)
    assert (labels(got), [one["identifier"] for one in got]) == (["a", "b"], sent[:2])
    assert {type(one["lookup_identifier"]) for one in got} == {str}
    settled = {"done": [got[0]["receipt"]], "back": [got[1]["receipt"]]}
    assert api.own.told("POST", "/settle", settled) == {"done": 1, "back": 1}
    again = receive(api.own, ORDERS, count=10)
    assert [(one["label"], one["deliveries"]) for one in again] == [("b", 1), ("c", 0)]
    assert receive(api.own, ORDERS) == []


def test_the_delivery_follows_the_queue_unless_it_is_told(api: WithApi) -> None:
    send(api.own, LEDGER, "a")
    send(api.own, ORDERS, "b")
    told = {"to": ORDERS, "messages": [message("c", delivery="express")]}
    api.own.told("POST", "/messages", told, 201)
    got = receive(api.own, LEDGER) + receive(api.own, ORDERS, count=2)
    assert [one["delivery"] for one in got] == ["transactional", "recoverable", "express"]


def test_a_refused_message_leaves_none_of_its_request(api: WithApi) -> None:
    """The quota of the queue has room for the first ones only, whatever their delivery."""
    set_quota(api, ORDERS, 20)
    large = "x" * 4096
    for delivery in ("recoverable", "express"):
        messages = [{"body": b64encode(large.encode()).decode(), "delivery": delivery}] * 6
        problem = api.own.told("POST", "/messages", {"to": ORDERS, "messages": messages}, 507)
        assert problem["name"] == "MQ_ERROR_INSUFFICIENT_RESOURCES"
        assert receive(api.own, ORDERS) == []
        api.own.told("POST", "/messages", {"to": ORDERS, "messages": messages[:3]}, 201)
        got = receive(api.own, ORDERS, count=10)
        assert len(got) == 3
        api.own.told("POST", "/settle", {"done": [one["receipt"] for one in got]})


def test_a_wrong_message_is_named_by_its_place(api: WithApi) -> None:
    told = {"to": ORDERS, "messages": [message("a"), message("b", priority=8)]}
    problem = api.own.told("POST", "/messages", told, 400)
    assert (problem["path"], problem["name"]) == ("messages[1].priority", "InvalidValue")
    told["messages"] = [message("a"), {"body": "no base64"}]
    assert api.own.told("POST", "/messages", told, 400)["path"] == "messages[1].body"
    assert receive(api.own, ORDERS) == []


@pytest.mark.parametrize(
    ("settled", "path"),
    [
        ({"done": ["unknown"]}, "done[0]"),
        ({"back": ["MINE", "KYqPWXk9QXWiHor6cdyKbg"]}, "back[1]"),
        ({"done": ["MINE"], "back": ["unknown"]}, "back[0]"),
    ],
)
def test_one_wrong_receipt_settles_nothing(api: WithApi, settled: dict[str, list[str]], path: str) -> None:
    send(api.own, ORDERS, "a")
    (got,) = receive(api.own, ORDERS)
    told = {
        name: [got["receipt"] if one == "MINE" else one for one in several]
        for name, several in settled.items()
    }
    problem = api.own.told("POST", "/settle", told, 409)
    assert (problem["name"], problem["path"]) == ("ReceiptUnknown", path)
    assert api.own.told("POST", "/settle", {"done": [got["receipt"]]}) == {"done": 1, "back": 0}
    assert api.own.told("POST", "/settle", {"done": [got["receipt"]]}, 409)["path"] == "done[0]"


def named(api: WithApi, name: str) -> ApiClient:
    told = {"name": name, "right": "read-write"}
    return api.client(api.own.told("POST", "/tokens", told, 201)["token"])


def test_receipts_and_transactions_of_others_are_unknown(api: WithApi) -> None:
    ann, bob = named(api, "ann"), named(api, "bob")
    send(ann, ORDERS, "a")
    receipt = receive(ann, ORDERS)[0]["receipt"]
    transaction = begun(ann)
    assert bob.told("POST", "/settle", {"done": [receipt]}, 409)["name"] == "ReceiptUnknown"
    assert bob.told("POST", f"/transactions/{transaction}/commit", status=404)["name"] == "TransactionEnded"
    assert ann.told("POST", "/settle", {"done": [receipt]}) == {"done": 1, "back": 0}
    for client in (ann, bob):
        client.close()


def test_revoking_a_token_returns_what_it_holds(api: WithApi) -> None:
    ann = named(api, "ann")
    send(ann, ORDERS, "a", "b")
    receive(ann, ORDERS, settle_within_s=3600)
    with EventStream(ann, ORDERS, "?settle_within_s=3600") as stream:
        assert stream.message()["label"] == "b"
        api.own.told("DELETE", "/tokens/ann", status=204)
        back: list[dict[str, Any]] = []
        until(lambda: back.extend(receive(api.own, ORDERS, count=5)) or len(back) == 2, "they are back")
        assert sorted(labels(back)) == ["a", "b"]
        with contextlib.suppress(ConnectionError, ValueError):  # aborted, or ended in order
            assert stream.event() is None or stream.event() is None
    ann.close()


def test_a_receipt_that_is_there_twice_is_a_wrong_value(api: WithApi) -> None:
    send(api.own, ORDERS, "a")
    receipt = receive(api.own, ORDERS)[0]["receipt"]
    for told in ({"done": [receipt, receipt]}, {"done": [receipt], "back": [receipt]}):
        assert api.own.told("POST", "/settle", told, 400)["path"] == "done"
    assert api.own.told("POST", "/settle", {"back": [receipt]}) == {"done": 0, "back": 1}


def test_a_message_that_is_not_settled_in_time_is_back(api: WithApi) -> None:
    send(api.own, ORDERS, "a")
    (got,) = receive(api.own, ORDERS, settle_within_s=1)
    (again,) = receive(api.own, ORDERS, wait_s=10)
    assert (again["label"], again["deliveries"]) == ("a", 1)
    assert api.own.told("POST", "/settle", {"done": [got["receipt"]]}, 409)["name"] == "ReceiptUnknown"
    assert api.own.told("POST", "/settle", {"done": [again["receipt"]]}) == {"done": 1, "back": 0}


def test_receiving_from_a_missing_subqueue_creates_none(api: WithApi) -> None:
    missing = f"{ORDERS};late"
    for asked in (("POST", "/receive"), ("GET", "/events")):
        assert api.own.told(asked[0], path_of(missing, asked[1]), status=404)["name"].startswith("MQ_ERROR")
    assert api.own.told("GET", "/queues?find=late")["items"] == []


# -- transactions -------------------------------------------------------------------------------------------


def begun(client: ApiClient, within_s: int = 60) -> str:
    transaction: str = client.told("POST", "/transactions", {"within_s": within_s}, 201)["transaction"]
    return transaction


def test_a_transaction_commits_sends_and_receives_at_once(api: WithApi) -> None:
    send(api.own, LEDGER, "old")
    transaction = begun(api.own)
    (old,) = receive(api.own, LEDGER, transaction=transaction)
    send(api.own, LEDGER, "new", "newer", transaction=transaction)
    assert receive(api.own, LEDGER, count=5) == []
    api.own.told("POST", f"/transactions/{transaction}/commit")
    assert labels(receive(api.own, LEDGER, count=5)) == ["new", "newer"]
    assert api.own.told("POST", "/settle", {"done": [old["receipt"]]}, 409)["name"] == "ReceiptUnknown"


def test_an_aborted_transaction_leaves_all_as_it_was(api: WithApi) -> None:
    send(api.own, LEDGER, "old")
    transaction = begun(api.own)
    receive(api.own, LEDGER, transaction=transaction)
    send(api.own, LEDGER, "new", transaction=transaction)
    api.own.told("POST", f"/transactions/{transaction}/abort")
    assert [(one["label"], one["deliveries"]) for one in receive(api.own, LEDGER, count=5)] == [("old", 1)]


def test_a_message_may_leave_its_transaction(api: WithApi) -> None:
    send(api.own, LEDGER, "a", "b")
    transaction = begun(api.own)
    first, second = receive(api.own, LEDGER, count=2, transaction=transaction)
    told = {"back": [first["receipt"]], "done": [second["receipt"]]}
    assert api.own.told("POST", "/settle", told) == {"done": 1, "back": 1}
    api.own.told("POST", f"/transactions/{transaction}/commit")
    assert labels(receive(api.own, LEDGER, count=5)) == ["a"]


def test_a_refused_send_leaves_the_rest_of_its_transaction(api: WithApi) -> None:
    set_quota(api, LEDGER, 20)
    transaction = begun(api.own)
    send(api.own, LEDGER, "before", transaction=transaction)
    large = [{"body": b64encode(bytes(4096)).decode()}] * 6
    told = {"to": LEDGER, "messages": large, "transaction": transaction}
    api.own.told("POST", "/messages", told, 507)
    send(api.own, LEDGER, "after", transaction=transaction)
    api.own.told("POST", f"/transactions/{transaction}/commit")
    assert labels(receive(api.own, LEDGER, count=20)) == ["before", "after"]


def test_an_ended_transaction_is_not_there(api: WithApi) -> None:
    transaction = begun(api.own)
    api.own.told("POST", f"/transactions/{transaction}/abort")
    tried = [
        ("/transactions/{}/commit", None),
        ("/transactions/{}/abort", None),
        ("/messages", {"to": LEDGER, "messages": [message("a")], "transaction": transaction}),
        (path_of(LEDGER, "/receive"), {"transaction": transaction}),
    ]
    for path, told in tried:
        problem = api.own.told("POST", path.format(transaction), told, 404)
        assert problem["name"] == "TransactionEnded"
    for odd in ("x", "%00", "00000000-0000-0000-0000-000000000000"):
        assert api.own.told("POST", f"/transactions/{odd}/commit", status=404)["name"] == "TransactionEnded"


def test_a_transaction_is_aborted_some_time_after_its_last_use(api: WithApi) -> None:
    send(api.own, LEDGER, "a")
    transaction = begun(api.own, within_s=1)
    receive(api.own, LEDGER, transaction=transaction)
    (again,) = receive(api.own, LEDGER, wait_s=10)
    assert (again["label"], again["deliveries"]) == ("a", 1)
    assert api.own.told("POST", f"/transactions/{transaction}/commit", status=404)


def test_a_queue_that_is_not_transactional_refuses_one(api: WithApi) -> None:
    transaction = begun(api.own)
    told = {"to": ORDERS, "messages": [message("a")], "transaction": transaction}
    assert api.own.told("POST", "/messages", told, 409)["name"] == "MQ_ERROR_TRANSACTION_USAGE"
    problem = api.own.told("POST", path_of(ORDERS, "/receive"), {"transaction": transaction}, 409)
    assert problem["name"] == "MQ_ERROR_TRANSACTION_USAGE"
