"""Messages put back into their queues, and moved between queues, by the API."""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.patience import limit
from tests.support.qm.api_client import WithApi, with_api
from tests.support.running import LEDGER, ORDERS

DEAD, DEADXACT = "system$;deadletter", "system$;deadxact"
OTHER = "private$\\other"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WithApi]:
    data = tmp_path_factory.mktemp("requeue") / "data"
    with with_api(data, ORDERS, OTHER, f"{LEDGER};transactional") as running:
        yield running


def at(queue: str, rest: str = "") -> str:
    return f"/queues/{quote(queue, safe='')}{rest}"


def messages(api: WithApi, queue: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = api.own.told("GET", at(queue, "/messages"))["items"]
    return found


def sent(api: WithApi, queue: str, **properties: Any) -> str:
    message = {"body": b64encode(b"hello").decode(), "label": "one", "delivery": "recoverable"}
    told = api.own.told("POST", "/messages", {"to": queue, "messages": [message | properties]}, 201)
    return str(told["sent"][0])


def empty(api: WithApi) -> None:
    for queue in (ORDERS, OTHER, LEDGER, DEAD, DEADXACT):
        api.own.told("POST", at(queue, "/purge"))


def dead(api: WithApi, queue: str, where: str, **properties: Any) -> dict[str, Any]:
    """A message that a program has given back as often as its queue allows: a dead letter."""
    empty(api)
    api.own.told("PATCH", at(queue), {"delivery_limit": 1, "poison": "dead-letters"})
    sent(api, queue, **properties)
    (given,) = api.own.told("POST", at(queue, "/receive"), {"count": 1, "wait_s": 5})["messages"]
    api.own.told("POST", "/settle", {"back": [given["receipt"]]})
    (message,) = messages(api, where)
    assert (message["deliveries"], message["reason"]) == (1, "delivery_limit")
    return message


@pytest.mark.parametrize(
    ("queue", "where", "delivery"),
    [(ORDERS, DEAD, "recoverable"), (ORDERS, DEAD, "express"), (LEDGER, DEADXACT, "transactional")],
)
def test_a_dead_letter_goes_back_as_it_was(api: WithApi, queue: str, where: str, delivery: str) -> None:
    before = dead(api, queue, where, delivery=delivery, application=7, priority=0)
    path = at(where, f"/messages/{before['lookup_identifier']}/requeue")
    told = api.own.told("POST", path, {})
    assert told == {"requeued": [before["identifier"]], "to": queue, "kept": True}
    assert messages(api, where) == []
    (after,) = messages(api, queue)
    differing = {name for name in after if after[name] != before[name]}
    assert differing - {"arrived"} == {"lookup_identifier", "deliveries", "reason"}
    assert (after["deliveries"], after["reason"]) == (0, None)
    assert api.own.ask("POST", path, {}).status == 404


def test_a_time_limit_that_is_over_is_dropped(api: WithApi) -> None:
    """Else the message would be gone at once."""
    seconds = int(limit(3))
    before = dead(api, ORDERS, DEAD, time_to_be_received=seconds)
    time.sleep(seconds + 1)  # dead letters have no end, but their limit passes
    path = at(DEAD, f"/messages/{before['lookup_identifier']}/requeue")
    assert api.own.told("POST", path)["kept"] is True
    time.sleep(0.2)  # for a timer that must not be there
    (after,) = messages(api, ORDERS)
    assert (after["identifier"], after["time_to_be_received"]) == (before["identifier"], None)


def test_a_requeued_message_is_there_after_a_restart(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with with_api(data, ORDERS, OTHER, f"{LEDGER};transactional") as first:
        before = dead(first, ORDERS, DEAD)
        first.own.told("POST", at(DEAD, f"/messages/{before['lookup_identifier']}/requeue"))
        (after,) = messages(first, ORDERS)
    with with_api(data, ORDERS, OTHER, f"{LEDGER};transactional") as again:
        assert [one["identifier"] for one in messages(again, ORDERS)] == [after["identifier"]]
        assert messages(again, DEAD) == []


def test_to_another_queue_and_to_one_of_the_other_kind(api: WithApi) -> None:
    """A queue of the other kind can't have the message as it is: it is sent again."""
    before = dead(api, ORDERS, DEAD)
    path = at(DEAD, f"/messages/{before['lookup_identifier']}/requeue")
    assert api.own.told("POST", path, {"to": OTHER})["kept"] is True
    (message,) = messages(api, OTHER)
    assert message["identifier"] == before["identifier"]
    path = at(OTHER, f"/messages/{message['lookup_identifier']}/requeue")
    told = api.own.told("POST", path, {"to": LEDGER})
    assert (told["kept"], told["requeued"] != [before["identifier"]]) == (False, True)
    (new,) = messages(api, LEDGER)
    assert (new["label"], new["delivery"], [new["identifier"]]) == ("one", "transactional", told["requeued"])


def test_a_remote_destination_is_sent_to_again(api: WithApi) -> None:
    before = dead(api, ORDERS, DEAD)
    far = "DIRECT=TCP:192.0.2.1\\private$\\far"
    path = at(DEAD, f"/messages/{before['lookup_identifier']}/requeue")
    told = api.own.told("POST", path, {"to": far})
    assert (told["to"], told["kept"]) == (far, False)
    (outgoing,) = api.own.told("GET", "/outgoing")["items"]
    assert outgoing["messages"] == 1
    api.own.told("POST", at(outgoing["queue"], "/purge"))


def test_a_full_queue_refuses_and_nothing_moves(api: WithApi) -> None:
    before = dead(api, ORDERS, DEAD, body=b64encode(b"x" * 3000).decode())
    api.own.told("PATCH", at(OTHER), {"quota": 1})
    path = at(DEAD, f"/messages/{before['lookup_identifier']}/requeue")
    answer = api.own.ask("POST", path, {"to": OTHER})
    api.own.told("PATCH", at(OTHER), {"quota": None})
    assert (answer.status, answer.told["name"]) == (507, "MQ_ERROR_INSUFFICIENT_RESOURCES")
    assert [one["identifier"] for one in messages(api, DEAD)] == [before["identifier"]]


def test_a_message_moves_between_queues_as_it_is(api: WithApi) -> None:
    empty(api)
    identifier = sent(api, ORDERS, time_to_be_received=int(limit(600)))
    (message,) = messages(api, ORDERS)
    path = at(ORDERS, f"/messages/{message['lookup_identifier']}/move")
    assert api.own.told("POST", path, {"to": OTHER}) == {"moved": [identifier]}
    (moved,) = messages(api, OTHER)
    assert moved["time_to_be_received"] == message["time_to_be_received"]
    path = at(OTHER, f"/messages/{moved['lookup_identifier']}/move")
    assert api.own.told("POST", path, {"to": f"{OTHER};later"}) == {"moved": [identifier]}
    for to, status in ((LEDGER, 409), (DEAD, 409), ("private$\\none", 404), (f"{OTHER};later", 409)):
        (there,) = messages(api, f"{OTHER};later")
        path = at(f"{OTHER};later", f"/messages/{there['lookup_identifier']}/move")
        assert api.own.ask("POST", path, {"to": to}).status == status
