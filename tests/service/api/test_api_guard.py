"""Who may use the API: tokens, names, origins, cookies, limits."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from msmqwire.qm.runtime.console.options import ConsoleLimits
from tests.support.qm.api_client import WithApi, with_api
from tests.support.qm.console_client import Browser

PROBLEM = "application/problem+json"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WithApi]:
    with with_api(tmp_path_factory.mktemp("guard") / "data") as running:
        yield running


def test_queues_need_a_token(api: WithApi) -> None:
    answer = api.client().ask("GET", "/queues")
    assert answer.status == 401
    assert answer.told == {
        "type": "about:blank",
        "title": "Unauthorized",
        "status": 401,
        "detail": "a token is missing: Authorization: Bearer TOKEN",
        "name": "Unauthorized",
    }
    assert answer.headers["Content-Type"] == PROBLEM
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="msmqwire"'
    assert answer.headers["Connection"] == "close"


@pytest.mark.parametrize("token", ["x", "x" * 43, "x" * 300, "\xff"], ids=["short", "like", "long", "latin"])
def test_a_wrong_token_is_401_everywhere(api: WithApi, token: str) -> None:
    for path in ("/queues", "/openapi.json", "/nothing"):
        answer = api.client(token).ask("GET", path)
        assert (answer.status, answer.headers["Content-Type"]) == (401, PROBLEM)
        assert "no token that holds" in answer.told["detail"]


@pytest.mark.parametrize("value", ["Basic Y29uc29sZTp4", "Bearer", "Token x", ""])
def test_another_scheme_than_bearer_is_401(api: WithApi, value: str) -> None:
    assert api.client().ask("GET", "/queues", headers={"Authorization": value}).status == 401


def test_wrong_tokens_keep_the_right_one_from_nothing(tmp_path: Path) -> None:
    """All of them from one address: each waits for its own answer only."""
    slow = 1.0
    with with_api(tmp_path / "data", limits=replace(ConsoleLimits(), wrong_token_s=slow)) as own:
        with ThreadPoolExecutor(20) as pool:
            began = time.monotonic()
            guesses = [
                pool.submit(own.client(f"guess {number}").ask, "GET", "/queues") for number in range(20)
            ]
            assert own.own.ask("GET", "/queues").status == 200
            assert not any(guess.done() for guess in guesses)
            assert {guess.result().status for guess in guesses} == {401}
        assert time.monotonic() - began >= slow


def test_another_pages_origin_is_refused(api: WithApi) -> None:
    own = f"http://{api.own.address}:{api.own.port}"
    for origin, status in ((own, 200), ("http://evil.example", 403), ("null", 403)):
        assert api.own.ask("GET", "/queues", headers={"Origin": origin}).status == status
    assert api.own.ask("GET", "/queues", headers={"Sec-Fetch-Site": "cross-site"}).status == 403


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "[::1%25lo]"])
def test_a_forged_host_is_421(api: WithApi, host: str) -> None:
    answer = api.own.ask("GET", "/openapi.json", headers={"Host": host})
    assert (answer.status, answer.told["name"]) == (421, "MisdirectedRequest")


def test_the_cookie_of_the_console_reads(api: WithApi) -> None:
    browser = Browser(api.own.address, api.own.port)
    assert browser.log_in(api.own.token).status == 200
    assert browser.ask("GET", "/api/v1/queues").status == 200
    assert browser.ask("GET", "/api/v1/queues", headers={"Origin": "http://evil.example"}).status == 403


def test_a_connection_stays_open_with_a_token(api: WithApi) -> None:
    for _ in range(3):
        assert "Connection" not in api.own.ask("GET", "/queues").headers


def test_a_token_has_a_rate(tmp_path: Path) -> None:
    limits = replace(ConsoleLimits(), token_requests_per_s=2.0)
    with with_api(tmp_path / "data", limits=limits) as own:
        answers = [own.own.ask("GET", "/queues") for _ in range(12)]
    assert [answer.status for answer in answers[:6]] == [200] * 6
    assert answers[-1].status == 429
    assert answers[-1].headers["Retry-After"] == "1"
