"""Queues by the API."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.qm.api_client import WithApi, with_api
from tests.support.running import LEDGER, ORDERS


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WithApi]:
    with with_api(tmp_path_factory.mktemp("queues") / "data") as running:
        yield running


def test_the_queues_are_listed_by_name(api: WithApi) -> None:
    told = api.own.told("GET", "/queues")
    assert told["next"] is None
    shown = {queue["queue"]: queue["transactional"] for queue in told["items"]}
    assert {ORDERS: False, LEDGER: True}.items() <= shown.items()
    assert list(shown) == sorted(shown, key=str.lower)


def test_pages_of_queues_have_each_queue_once(api: WithApi) -> None:
    whole = [queue["queue"] for queue in api.own.told("GET", "/queues")["items"]]
    walked, cursor = [], ""
    while cursor is not None:
        told = api.own.told("GET", f"/queues?limit=1{cursor and '&cursor='}{cursor}")
        assert len(told["items"]) == 1
        walked.append(told["items"][0]["queue"])
        cursor = told["next"]
    assert walked == whole


def test_queues_are_found_by_a_part_of_their_name(api: WithApi) -> None:
    assert [queue["queue"] for queue in api.own.told("GET", "/queues?find=ORDER")["items"]] == [ORDERS]


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("limit=0", "limit"),
        ("limit=201", "limit"),
        ("limit=x", "limit"),
        ("limit=" + "9" * 4000, "limit"),
        ("limit=", "limit"),
        ("limit=1&limit=1", "limit"),
        ("cursor=x", "cursor"),
        ("cursor=%00", "cursor"),
        ("cursor=", "cursor"),
        ("group=outgoing", "group"),
        ("offset=1", "offset"),
        ("find=%FF", "query"),
    ],
)
def test_a_query_that_is_not_valid_is_400(api: WithApi, query: str, path: str) -> None:
    answer = api.own.ask("GET", f"/queues?{query}")
    assert (answer.status, answer.told["path"], answer.told["name"]) == (400, path, "InvalidValue")


def test_a_cursor_of_another_list_is_400(api: WithApi) -> None:
    cursor = api.own.told("GET", "/queues?limit=1")["next"]
    for query in (f"find=o&cursor={cursor}", f"group=system&cursor={cursor}", f"cursor=A{cursor}"):
        answer = api.own.ask("GET", f"/queues?{query}")
        assert (answer.status, answer.told["path"]) == (400, "cursor")


def test_another_method_is_405(api: WithApi) -> None:
    answer = api.own.ask("TRACE", "/queues")
    assert (answer.status, answer.told["name"]) == (405, "MethodNotAllowed")
    assert "GET" in answer.headers["Allow"]


@pytest.mark.parametrize("path", ["", "/", "/nothing", "/queues/", "//queues", "/queues/../queues"])
def test_a_path_that_is_not_there_is_404(api: WithApi, path: str) -> None:
    answer = api.own.ask("GET", path)
    assert (answer.status, answer.told["name"]) == (404, "NotFound")


def test_queues_that_come_and_go_are_listed_at_once(api: WithApi) -> None:
    """The sorted names are kept from one request to the next."""
    before = [queue["queue"] for queue in api.own.told("GET", "/queues")["items"]]
    first, second = "private$\\aaa", "private$\\zzz"
    api.own.told("POST", "/queues", {"queue": first}, 201)
    assert first in [queue["queue"] for queue in api.own.told("GET", "/queues")["items"]]
    api.own.told("DELETE", "/queues/private%24%5Caaa", status=204)
    api.own.told("POST", "/queues", {"queue": second}, 201)
    after = [queue["queue"] for queue in api.own.told("GET", "/queues")["items"]]
    assert sorted(after) == sorted([*before, second])
    api.own.told("DELETE", "/queues/private%24%5Czzz", status=204)
    assert [queue["queue"] for queue in api.own.told("GET", "/queues")["items"]] == before
