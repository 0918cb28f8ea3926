"""Queues, their messages and the queue manager by the API: shown, changed, refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from msmqwire.qm.runtime.local import attach
from tests.support.qm.api_client import WithApi, with_api
from tests.support.running import LEDGER, ORDERS, listed, message, peeked, put, recoverable

POISON = rf"{ORDERS};poison"
TO = r"DIRECT=OS:nowhere.invalid\PRIVATE$\x"


@pytest.fixture
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WithApi]:
    with with_api(tmp_path_factory.mktemp("resources") / "data") as running:
        yield running


def path_of(queue: str, *more: str) -> str:
    return "/".join([f"/queues/{quote(queue, safe='')}", *more])


def fill(api: WithApi, queue: str, *messages: dict[str, Any]) -> None:
    with attach(api.server.data) as local:
        put(local, queue, *messages)


def identifiers(api: WithApi, queue: str) -> list[str]:
    items = api.own.told("GET", path_of(queue, "messages") + "?limit=200&body_max=0")["items"]
    return [one["lookup_identifier"] for one in items]


# -- queues ---------------------------------------------------------------------------------------------


def test_a_queue_is_created_changed_and_deleted(api: WithApi) -> None:
    name = r"private$\new"
    told = {"queue": name, "transactional": True, "label": "ä", "quota": 9, "allow": ["everyone:send"]}
    made = {**api.own.told("POST", "/queues", told, 201), "put": 0, "taken": 0}
    assert (made["queue"], made["label"], made["quota"], made["transactional"]) == (name, "ä", 9, True)
    assert api.own.told("GET", path_of(name)) == made
    changed = api.own.told("PATCH", path_of(name), {"label": "b", "quota": None})
    assert (changed["label"], changed["quota"]) == ("b", None)
    assert listed(api.server.data)[name]["label"] == "b"
    assert api.own.ask("POST", "/queues", told).told["name"] == "MQ_ERROR_QUEUE_EXISTS"
    deleted = api.own.ask("DELETE", path_of(name))
    assert (deleted.status, deleted.body) == (204, b"")
    assert name not in listed(api.server.data)
    missing = api.own.ask("DELETE", path_of(name))
    assert (missing.status, missing.told["name"]) == (404, "MQ_ERROR_QUEUE_NOT_FOUND")


def test_what_was_set_on_a_queue_is_forgotten(api: WithApi) -> None:
    told = {
        "quota": 5,
        "journal": True,
        "when_full": "oldest-to-dead-letters",
        "delivery_limit": 3,
        "label": "x",
    }
    set_ = api.own.told("PATCH", path_of(ORDERS), told)
    assert {name: set_[name] for name in told} == told
    default = {name: "default" for name in told if name != "label"} | {"label": None}
    forgotten = api.own.told("PATCH", path_of(ORDERS), default)
    assert [forgotten[name] for name in told] == [None, False, "refuse", None, ""]


@pytest.mark.parametrize(
    ("told", "path"),
    [
        ({}, ""),
        ({"nothing": 1}, "nothing"),
        ({"label": 1}, "label"),
        ({"label": "x" * 125}, "label"),
        ({"quota": -1}, "quota"),
        ({"quota": 1 << 32}, "quota"),
        ({"quota": True}, "quota"),
        ({"quota": "none"}, "quota"),
        ({"when_full": "never"}, "when_full"),
        ({"privacy": "all"}, "privacy"),
        ({"transactional": True}, "transactional"),
        ({"allow": ["x"] * 101}, "allow"),
        ({"op": "delete"}, "op"),
    ],
)
def test_a_change_that_is_wrong_changes_nothing(api: WithApi, told: dict[str, Any], path: str) -> None:
    before = api.own.told("GET", path_of(ORDERS))
    answer = api.own.ask("PATCH", path_of(ORDERS), told)
    assert (answer.status, answer.told.get("path", "")) == (400, path)
    assert api.own.told("GET", path_of(ORDERS)) == before


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", ["a", "b", "c", "d"]),
        ("&descending=true", ["d", "c", "b", "a"]),
        ("&sort=messages", ["a", "c", "d", "b"]),
        ("&sort=messages&descending=true", ["b", "d", "c", "a"]),
        ("&sort=label", ["d", "c", "b", "a"]),
        ("&sort=label&find=L1", ["c"]),
    ],
)
def test_queues_are_sorted_over_pages(
    tmp_path_factory: pytest.TempPathFactory, query: str, names: list[str]
) -> None:
    queues = [rf"private$\{name}" for name in "abcd"]
    with with_api(tmp_path_factory.mktemp("sorted") / "data", *queues) as api:
        for number, queue in enumerate(queues):
            api.own.told("PATCH", path_of(queue), {"label": f"l{3 - number}"})
            fill(api, queue, *recoverable(*(b"x" for _ in range((1, 4, 2, 2)[number]))))
        walked, cursor = [], ""
        while cursor is not None:
            answer = api.own.ask(
                "GET", f"/queues?group=application&limit=1{query}{cursor and '&cursor='}{cursor}"
            )
            assert answer.headers["X-Total-Count"] == str(len(names))
            walked += [queue["queue"].removeprefix("private$\\") for queue in answer.told["items"]]
            cursor = answer.told["next"]
        assert walked == names


def test_a_cursor_of_another_order_is_refused(api: WithApi) -> None:
    cursor = api.own.told("GET", "/queues?limit=1")["next"]
    for other in ("sort=messages", "descending=true", "find=o", "group=system"):
        answer = api.own.ask("GET", f"/queues?limit=1&{other}&cursor={cursor}")
        assert (answer.status, answer.told["path"]) == (400, "cursor")


def test_a_purge_counts_messages(api: WithApi) -> None:
    fill(api, ORDERS, *recoverable(b"1", b"2"))
    assert api.own.told("POST", path_of(ORDERS, "purge")) == {"purged": 2}
    assert peeked(api.server.data, ORDERS) == []


def test_an_outgoing_queue_is_listed_and_paused(api: WithApi) -> None:
    with attach(api.server.data) as local:
        local.call("send", to=TO, messages=recoverable(b"1"))
    (queue,) = api.own.told("GET", "/outgoing")["items"]
    assert (queue["queue"], queue["kind"], queue["messages"]) == (TO, "outgoing", 1)
    assert api.own.told("PATCH", path_of(TO), {"paused": True})["state"] == "OnHold"
    assert "connection_history" in api.own.told("GET", path_of(TO))


@pytest.mark.parametrize("more", ["", "/messages", "/messages/1", "/samples", "/export"])
def test_looking_makes_no_queue(api: WithApi, more: str) -> None:
    before = set(listed(api.server.data))
    for queue in (POISON, r"DIRECT=OS:beta\private$\x", "DIRECT=HTTP://x/msmq/y"):
        assert api.own.ask("GET", path_of(queue) + more).status == 404
    for queue in ("a\\b\\c\\d", "DIRECT="):
        assert api.own.ask("GET", path_of(queue) + more).status == 400
    assert set(listed(api.server.data)) == before


# -- messages -------------------------------------------------------------------------------------------


def test_messages_by_page_without_those_that_are_held(api: WithApi) -> None:
    fill(api, ORDERS, *(message(b"xyz", label=f"{n}", priority=n % 3) for n in range(25)))
    with attach(api.server.data) as local:
        local.call("receive", queue=ORDERS)
        labels, cursor = [], ""
        while cursor is not None:
            told = api.own.told(
                "GET", path_of(ORDERS, "messages") + f"?limit=10&body_max=2{cursor and '&cursor='}{cursor}"
            )
            assert all((one["body"], one["body_size"]) == ("eHk=", 3) for one in told["items"])
            labels.append([one["label"] for one in told["items"]])
            cursor = told["next"]
    expected = [f"{n}" for priority in (2, 1, 0) for n in range(25) if n % 3 == priority][1:]
    assert labels == [expected[:10], expected[10:20], expected[20:]]


def test_a_cursor_of_another_queue_is_refused(api: WithApi) -> None:
    fill(api, ORDERS, *recoverable(b"1", b"2"))
    cursor = api.own.told("GET", path_of(ORDERS, "messages") + "?limit=1")["next"]
    for other in (path_of(LEDGER, "messages") + "?", path_of(ORDERS, "messages") + "?find=x&", "/queues?"):
        answer = api.own.ask("GET", f"{other}limit=1&cursor={cursor}")
        assert (answer.status, answer.told["path"]) == (400, "cursor")


def test_a_search_ends_a_request_after_bounded_work(api: WithApi) -> None:
    for _ in range(9):
        fill(api, ORDERS, *(message(b"plain", label="no") for _ in range(1000)))
    fill(api, ORDERS, message(b"the needle", label="last"))
    where = path_of(ORDERS, "messages") + "?find=NEEDLE"
    first = api.own.ask("GET", where)
    assert (first.told["items"], first.told["next"] is None) == ([], False)
    assert 1000 < int(first.headers["X-Examined-Count"]) < 9000
    second = api.own.ask("GET", f"{where}&cursor={first.told['next']}")
    assert [one["label"] for one in second.told["items"]] == ["last"]
    assert second.told["next"] is None
    assert int(first.headers["X-Examined-Count"]) + int(second.headers["X-Examined-Count"]) == 9001


def test_a_message_is_shown_deleted_and_gone(api: WithApi) -> None:
    fill(api, ORDERS, *recoverable(b"1", b"2"))
    first, second = identifiers(api, ORDERS)
    assert int(second) < 1 << 64
    shown = api.own.told("GET", path_of(ORDERS, "messages", first))
    assert (shown["lookup_identifier"], shown["body"], shown["deliveries"]) == (first, "MQ==", 0)
    assert api.own.ask("DELETE", path_of(ORDERS, "messages", first)).status == 204
    for method in ("GET", "DELETE"):
        assert api.own.ask(method, path_of(ORDERS, "messages", first)).status == 404
    assert peeked(api.server.data, ORDERS) == [b"2"]


def test_a_message_moves_to_a_subqueue_and_back_as_it_is(api: WithApi) -> None:
    fill(api, ORDERS, *recoverable(b"1", b"2"))
    (first, _) = identifiers(api, ORDERS)
    before = api.own.told("GET", path_of(ORDERS, "messages", first))["identifier"]
    assert api.own.told("POST", path_of(ORDERS, "messages", first, "move"), {"to": POISON}) == {
        "moved": [before]
    }
    assert (peeked(api.server.data, ORDERS), peeked(api.server.data, POISON)) == ([b"2"], [b"1"])
    (moved,) = identifiers(api, POISON)
    told = api.own.told("POST", path_of(POISON, "messages", moved, "requeue"))
    assert told == {"requeued": [before], "to": ORDERS, "kept": True}
    assert sorted(peeked(api.server.data, ORDERS)) == [b"1", b"2"]


def test_a_message_goes_from_a_journal_to_its_queue(api: WithApi) -> None:
    with attach(api.server.data) as local:
        local.call("set", queue=ORDERS, journal=True)
        put(local, ORDERS, *recoverable(b"1"))
        (taken,) = local.call("receive", queue=ORDERS)["messages"]
        local.call("end", done=[taken["receipt"]])
    journal = f"{ORDERS};journal"
    (kept,) = identifiers(api, journal)
    told = api.own.told("POST", path_of(journal, "messages", kept, "requeue"), {})
    assert told["to"].lower().endswith(ORDERS)
    assert (peeked(api.server.data, ORDERS), peeked(api.server.data, journal)) == ([b"1"], [])


def test_a_message_that_is_refused_elsewhere_stays(api: WithApi) -> None:
    fill(api, ORDERS, *recoverable(b"1"))
    (first,) = identifiers(api, ORDERS)
    where = path_of(ORDERS, "messages", first, "requeue")
    assert api.own.ask("POST", where, {"to": r"private$\none"}).told["name"] == "MQ_ERROR_QUEUE_NOT_FOUND"
    assert api.own.ask("POST", where, {"to": ""}).told["path"] == "to"
    assert peeked(api.server.data, ORDERS) == [b"1"]
    assert api.own.ask("POST", where, {"to": LEDGER}).status == 200
    assert (peeked(api.server.data, ORDERS), peeked(api.server.data, LEDGER)) == ([], [b"1"])


# -- the queue manager ----------------------------------------------------------------------------------


def test_the_status_counts_queues_by_group(api: WithApi) -> None:
    fill(api, ORDERS, *recoverable(b"1", b"2"))
    told = api.own.told("GET", "/status")
    assert (told["name"], told["messages"], told["sessions"]) == ("alpha", 2, 0)
    assert told["groups"]["application"]["queues"] == 2
    assert told["disk"]["accepts"] is True


def test_transactions_and_sessions_are_listed(api: WithApi) -> None:
    begun = api.own.told("POST", "/transactions", {"within_s": 60}, 201)["transaction"]
    api.own.told("POST", "/messages", {"to": LEDGER, "messages": [{}], "transaction": begun}, 201)
    (one,) = api.own.told("GET", "/transactions")["items"]
    assert (one["operations"], one["kinds"]) == (1, {"enqueue": 1})
    assert api.own.told("GET", "/sessions") == {"items": [], "next": None}


@pytest.mark.parametrize(
    ("method", "path", "told"),
    [
        ("POST", "/queues", {"queue": r"private$\new"}),
        ("PATCH", path_of(ORDERS), {"label": "x"}),
        ("DELETE", path_of(ORDERS), None),
        ("POST", path_of(ORDERS, "purge"), {}),
        ("DELETE", path_of(ORDERS, "messages", "1"), None),
        ("POST", path_of(ORDERS, "messages", "1", "move"), {"to": POISON}),
        ("POST", path_of(ORDERS, "messages", "1", "requeue"), {}),
    ],
)
def test_without_console_write_nothing_changes(
    tmp_path_factory: pytest.TempPathFactory, method: str, path: str, told: Any
) -> None:
    with with_api(tmp_path_factory.mktemp("reads") / "data", write=False) as api:
        answer = api.own.ask(method, path, told)
        assert (answer.status, "--console-write" in answer.told["detail"]) == (403, True)
