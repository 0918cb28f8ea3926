"""Logins, samples and the log by the API: what the console's pages use beside queues and messages."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from msmqwire.qm.runtime.console.options import ConsoleLimits
from tests.support.qm.api_client import WithApi, with_api
from tests.support.qm.console_client import Browser
from tests.support.running import PATIENCE_S

FAST = replace(ConsoleLimits(), sample_s=0.05, streams=1, wrong_token_s=0.0)


@pytest.fixture
def api(tmp_path: Path) -> Iterator[WithApi]:
    with with_api(tmp_path / "data", limits=FAST) as running:
        yield running


def test_a_login_by_the_api_reads_and_ends(api: WithApi) -> None:
    browser = Browser(api.own.address, api.own.port)
    assert browser.ask("GET", "/api/v1/login").told == {}
    begun = browser.ask("POST", "/api/v1/login", {"token": api.own.token})
    assert begun.status == 200
    browser.cookie = str(begun.headers["Set-Cookie"]).partition(";")[0]
    browser.csrf = begun.told["csrf"]
    assert (begun.told["name"], begun.told["right"], begun.told["write"]) == ("console", "administer", True)
    assert browser.ask("GET", "/api/v1/login").told == begun.told
    assert browser.ask("GET", "/api/v1/samples").status == 200
    assert browser.ask("POST", "/api/v1/logout").status == 200
    assert browser.ask("GET", "/api/v1/samples").status == 401


@pytest.mark.parametrize(
    ("told", "headers", "status"),
    [
        ({"token": "x"}, {}, 401),
        ({"token": 1}, {}, 400),
        ({"token": "x", "more": 1}, {}, 400),
        ({"token": "right"}, {"Origin": None}, 403),
        ({"token": "right"}, {"Origin": "http://evil.example"}, 403),
    ],
)
def test_a_login_that_is_refused(
    api: WithApi, told: dict[str, object], headers: dict[str, str | None], status: int
) -> None:
    """Also with the right token a page of another site can't begin a login."""
    sent = {**told, "token": api.own.token} if told["token"] == "right" else told
    answer = Browser(api.own.address, api.own.port).ask("POST", "/api/v1/login", sent, headers)
    assert (answer.status, answer.headers["Set-Cookie"]) == (status, None)


def test_a_token_has_one_stream_of_samples_here(api: WithApi) -> None:
    connection = http.client.HTTPConnection(api.own.address, api.own.port, timeout=PATIENCE_S)
    connection.request("GET", "/api/v1/samples/events", headers={"Authorization": f"Bearer {api.own.token}"})
    stream = connection.getresponse()
    for _ in range(3):
        assert stream.readline() == b"event: sample\n"
        assert stream.readline().startswith(b'data: {"time": ')
        assert stream.readline() == b"\n"
    second = api.own.ask("GET", "/samples/events")
    assert (second.status, second.told["name"]) == (429, "TooManyRequests")
    stream.close()
    connection.close()


def test_the_log_by_level_and_number(api: WithApi) -> None:
    assert api.client("wrong").ask("GET", "/queues").status == 401
    (line,) = [
        one for one in api.own.told("GET", "/log?level=warning")["lines"] if "wrong token" in one["event"]
    ]
    assert api.own.told("GET", f"/log?after={line['number']}&level=warning")["lines"] == []
    assert api.own.ask("GET", "/log?level=loud").told["path"] == "level"
