"""Policies by the API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.qm.api_client import WithApi, with_api
from tests.support.running import ORDERS

LIMITS: dict[str, Any] = {"pattern": "*orders", "order": 3, "quota": 500, "delivery_limit": 4}
ORDERS_PATH = "/queues?find=orders"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WithApi]:
    with with_api(tmp_path_factory.mktemp("policies") / "data") as running:
        yield running


def holding(api: WithApi) -> tuple[Any, Any]:
    (queue,) = api.own.told("GET", ORDERS_PATH)["items"]
    assert queue["queue"] == ORDERS
    return queue["quota"], queue["policies"]


def test_a_policy_is_made_replaced_and_deleted(api: WithApi) -> None:
    assert api.own.told("GET", "/policies") == {"items": [], "next": None}
    made = api.own.told("POST", "/policies", {"name": "limits", **LIMITS}, 201)
    assert made == {"name": "limits", **LIMITS} == api.own.told("GET", "/policies/limits")
    assert holding(api) == (500, {"delivery_limit": "limits", "quota": "limits"})
    again = api.own.ask("POST", "/policies", {"name": "limits", **LIMITS})
    assert (again.status, again.told["name"]) == (409, "MQ_ERROR_QUEUE_EXISTS")
    changed = api.own.told("PUT", "/policies/limits", {"pattern": "*", "order": 3, "quota": None})
    assert changed == {"name": "limits", "pattern": "*", "order": 3, "quota": None}
    assert holding(api) == (None, {"quota": "limits"})
    assert api.own.told("GET", "/policies") == {"items": [changed], "next": None}
    assert api.own.ask("DELETE", "/policies/limits").status == 204
    assert holding(api) == (None, {})
    assert api.own.ask("GET", "/policies/limits").status == 404
    assert api.own.ask("DELETE", "/policies/limits").status == 404


def test_pages_of_policies_have_each_once(api: WithApi) -> None:
    names = [f"p{number}" for number in range(5)]
    for name in reversed(names):
        api.own.told("PUT", f"/policies/{name}", LIMITS)
    walked: list[str] = []
    cursor = ""
    while cursor is not None:
        page = api.own.told("GET", f"/policies?limit=2{cursor and '&cursor='}{cursor}")
        walked += [policy["name"] for policy in page["items"]]
        cursor = page["next"]
    assert walked == names
    for name in names:
        api.own.told("DELETE", f"/policies/{name}", status=204)


@pytest.mark.parametrize(
    ("changed", "path"),
    [
        ({"order": "1"}, "order"),
        ({"pattern": ""}, "pattern"),
        ({"pattern": "*a" * 4096}, "pattern"),
        ({"quota": -1}, "quota"),
        ({"when_full": "drop"}, "when_full"),
        ({"delivery_limit": 0}, "delivery_limit"),
        ({"label": "x"}, "label"),
        ({"time_to_live": 1.5}, "time_to_live"),
    ],
)
def test_a_wrong_policy_is_400_with_its_path(api: WithApi, changed: dict[str, Any], path: str) -> None:
    answer = api.own.ask("PUT", "/policies/wrong", {**LIMITS, **changed})
    assert (answer.status, answer.told["path"]) == (400, path)
    assert api.own.ask("GET", "/policies/wrong").status == 404


def test_a_policy_without_properties_is_400(api: WithApi) -> None:
    answer = api.own.ask("PUT", "/policies/wrong", {"pattern": "*", "order": 1})
    assert (answer.status, answer.told["path"]) == (400, "policy")
    assert api.own.ask("PUT", "/policies/a%20b", LIMITS).told["path"] == "name"
