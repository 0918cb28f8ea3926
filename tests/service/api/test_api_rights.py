"""The rights of tokens: each route of the table with each right, made of the table."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from msmqwire.qm.runtime.api.all_routes import described_routes
from msmqwire.qm.runtime.api.rights import Right
from msmqwire.qm.runtime.api.routes import Route
from tests.support.qm.api_client import ApiClient, WithApi, with_api

STREAMS = {"sample_events"}
"""Routes whose answer has no end."""
FILLED = {"queue": "private%24%5Cnone", "lookup_identifier": "1", "name": "none", "digest": "0" * 32}


ROUTES = [route for route in described_routes().routes if not route.root]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WithApi]:
    with with_api(tmp_path_factory.mktemp("rights") / "data") as running:
        yield running


@pytest.fixture(scope="module")
def tokens(api: WithApi) -> dict[Right, ApiClient]:
    return {
        right: api.client(
            api.own.told("POST", "/tokens", {"name": f"of {right}", "right": str(right)}, 201)["token"]
        )
        for right in Right
    }


def asked(client: ApiClient, route: Route) -> int:
    path = re.sub(r"\{([a-z_]+)\}", lambda found: FILLED.get(found[1], "none"), route.path)
    return client.ask(route.method, path, {} if route.body is not None else None).status


@pytest.mark.parametrize("right", list(Right))
@pytest.mark.parametrize(
    "route", [one for one in ROUTES if one.name not in STREAMS], ids=lambda one: one.name
)
def test_a_token_is_let_in_as_far_as_its_right(
    api: WithApi, tokens: dict[Right, ApiClient], route: Route, right: Right
) -> None:
    """Without a token only routes without a right answer; beyond the right it is 403, within it never."""
    status = asked(tokens[right], route)
    if route.right is None or right.includes(route.right):
        assert status not in (401, 403) or route.name == "log_in"
    else:
        assert status == 403
    if right is Right.READ and route.right is not None:
        assert asked(api.client(), route) == 401


def test_reads_change_nothing_and_changes_need_more() -> None:
    """Operations, point 3: listing, showing and peeking are the right to read."""
    for route in ROUTES:
        if route.right is Right.READ and route.name != "log_out":
            assert route.method == "GET", route.name
        if route.method in ("PATCH", "PUT", "DELETE"):
            assert route.changing, route.name
    administered = {route.path.split("/")[1] for route in ROUTES if route.right is Right.ADMINISTER}
    assert not administered & {"messages", "settle", "transactions", "outgoing", "sessions", "status"}


def test_every_change_is_403_without_console_write(tmp_path_factory: pytest.TempPathFactory) -> None:
    with with_api(tmp_path_factory.mktemp("reads") / "data", write=False) as reads:
        for route in ROUTES:
            if route.changing:
                assert asked(reads.own, route) == 403, route.name
        assert reads.own.ask("GET", "/queues").status == 200
