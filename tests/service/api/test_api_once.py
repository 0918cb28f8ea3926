"""Requests with an Idempotency-Key: carried out once, over lost answers and kills of the server."""

from __future__ import annotations

import http.client
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.support import running
from tests.support.qm.api_client import ApiClient, WithApi, with_api
from tests.support.qm.console_client import Answer, token_of
from tests.support.qm.killed_before_answer import FLAG
from tests.support.running import ADDRESS, LEDGER, ORDERS, process

KEY = "Idempotency-Key"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WithApi]:
    with with_api(tmp_path_factory.mktemp("once") / "data") as running_server:
        yield running_server


def one(label: str, to: str = ORDERS, **more: Any) -> dict[str, Any]:
    return {"to": to, "messages": [{"label": label, **more}]}


def ask(client: ApiClient, key: str, told: object, path: str = "/messages") -> Answer:
    return client.ask("POST", path, told, headers={KEY: key})


def labels(client: ApiClient, queue: str = ORDERS) -> list[str]:
    told = {"count": 1000}
    got = client.told("POST", f"/queues/{quote(queue, safe='')}/receive", told)["messages"]
    client.told("POST", "/settle", {"done": [message["receipt"] for message in got]})
    return [message["label"] for message in got]


@pytest.mark.parametrize("delivery", ["recoverable", "express"])
def test_a_repeated_request_has_the_same_answer(api: WithApi, delivery: str) -> None:
    told = one("a", delivery=delivery)
    first = ask(api.own, delivery, told)
    again = ask(api.own, delivery, told)
    assert (first.status, again.status, first.told) == (201, 201, again.told)
    assert (first.headers["Idempotency-Replayed"], again.headers["Idempotency-Replayed"]) == (None, "true")
    other = ask(api.own, delivery, one("b", delivery=delivery))
    assert (other.status, other.told["path"]) == (422, KEY)
    assert labels(api.own) == ["a"]


def test_a_refused_request_keeps_no_key(api: WithApi) -> None:
    assert ask(api.own, "refused", one("a", to="private$\\missing")).status == 404
    assert ask(api.own, "refused", one("a", priority=9)).status == 400
    assert ask(api.own, "refused", one("b")).status == 201
    assert labels(api.own) == ["b"]


@pytest.mark.parametrize(
    "key",
    ["k" * 255, '"quoted"', "a\\b../%00;,", "\U0001f600" * 255, "ä" * 255, "x y"],
    ids=["long", "quoted", "marks", "emoji", "umlauts", "space"],
)
def test_a_key_is_taken_as_it_is(api: WithApi, key: str) -> None:
    sent = key.encode().decode("latin-1")  # http.client sends latin-1
    assert ask(api.own, sent, one("a")).status == 201
    assert ask(api.own, sent, one("a")).headers["Idempotency-Replayed"] == "true"
    assert ask(api.own, sent, one("b")).status == 422
    assert labels(api.own) == ["a"]


@pytest.mark.parametrize(
    ("key", "status"),
    [(b"", 400), (b"k" * 256, 400), (b"\xff\xfe", 400), (b"a\tb", 400), (b"\xe2\x80\xa8", 400)],
    ids=["empty", "256", "not UTF-8", "tab", "line separator"],
)
def test_an_unprintable_key_is_a_wrong_value(api: WithApi, key: bytes, status: int) -> None:
    told = b'{"to": "private$\\\\orders", "messages": [{}]}'
    got = raw(api, told, [(KEY, key)])
    assert (got.status, got.told["path"]) == (status, KEY)
    assert labels(api.own) == []


def test_two_keys_are_a_wrong_value(api: WithApi) -> None:
    got = raw(api, b'{"to": "private$\\\\orders", "messages": [{}]}', [(KEY, b"a"), (KEY, b"a")])
    assert (got.status, got.told["path"]) == (400, KEY)


def raw(api: WithApi, body: bytes, fields: list[tuple[str, bytes]]) -> Answer:
    connection = http.client.HTTPConnection(api.own.address, api.own.port, timeout=running.PATIENCE_S)
    try:
        connection.putrequest("POST", "/api/v1/messages")
        for name, value in [
            ("Authorization", f"Bearer {api.own.token}".encode()),
            ("Content-Type", b"application/json"),
            ("Content-Length", str(len(body)).encode()),
            *fields,
        ]:
            connection.putheader(name, value)
        connection.endheaders(body)
        got = connection.getresponse()
        return Answer(got.status, got.headers, got.read())
    finally:
        connection.close()


def test_a_key_in_a_transaction_ends_with_it(api: WithApi) -> None:
    for ending in ("abort", "commit"):
        transaction = api.own.told("POST", "/transactions", status=201)["transaction"]
        told = {**one(ending, LEDGER), "transaction": transaction}
        assert ask(api.own, "within", told).status == 201
        assert ask(api.own, "within", told).headers["Idempotency-Replayed"] == "true"
        api.own.told("POST", f"/transactions/{transaction}/{ending}")
        assert ask(api.own, "within", told).status == 404
    assert labels(api.own, LEDGER) == ["commit"]
    assert ask(api.own, "within", one("c")).status == 201
    assert labels(api.own) == ["c"]


def test_a_repeated_commit_is_answered_after_the_end(api: WithApi) -> None:
    transaction = api.own.told("POST", "/transactions", status=201)["transaction"]
    api.own.told("POST", "/messages", {**one("a", LEDGER), "transaction": transaction}, 201)
    path = f"/transactions/{transaction}/commit"
    answers = [ask(api.own, "commit", None, path) for _ in range(3)]
    assert [answer.status for answer in answers] == [200, 200, 200]
    assert [answer.headers["Idempotency-Replayed"] for answer in answers] == [None, "true", "true"]
    assert ask(api.own, "other", None, path).status == 404
    assert labels(api.own, LEDGER) == ["a"]


def test_a_kill_before_the_answer_sends_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit has the key: the repeated request finds its answer, and a commit that was not made none."""
    flag = tmp_path / "dies"
    monkeypatch.setenv(FLAG, str(flag))
    module = "tests.support.qm.killed_before_answer"
    monkeypatch.setattr(
        running, "command_line", lambda *told: [sys.executable, "-m", module, *map(str, told)]
    )
    data = tmp_path / "data"
    told = {"to": LEDGER, "messages": [{"label": "a"}, {"label": "b"}]}

    def served() -> Any:
        queue = f"{LEDGER};transactional"
        return process(data, "--console", f"{ADDRESS}:0", "--console-write", "--queue", queue)

    with served() as server:
        own = ApiClient(ADDRESS, server.console_port, token_of(data))
        token = own.told("POST", "/tokens", {"name": "test", "right": "read-write"}, 201)["token"]
        client = ApiClient(ADDRESS, server.console_port, token)
        transaction = client.told("POST", "/transactions", status=201)["transaction"]
        commit = f"/transactions/{transaction}/commit"
        client.told("POST", "/messages", {**one("c", LEDGER), "transaction": transaction}, 201)
        flag.touch()
        with pytest.raises((ConnectionError, http.client.HTTPException)):
            ask(client, "send", told)
        assert server.process.wait(running.PATIENCE_S) == 9
    flag.unlink()
    with served() as server:
        client = ApiClient(ADDRESS, server.console_port, token)
        again = ask(client, "send", told)
        assert (again.status, again.headers["Idempotency-Replayed"]) == (201, "true")
        assert ask(client, "commit", None, commit).status == 404  # aborted by the restart
        got = client.told("POST", f"/queues/{quote(LEDGER, safe='')}/receive", {"count": 10})["messages"]
        assert [message["label"] for message in got] == ["a", "b"]
        assert [message["identifier"] for message in got] == again.told["sent"]
        transaction = client.told("POST", "/transactions", status=201)["transaction"]
        commit = f"/transactions/{transaction}/commit"
        client.told("POST", "/messages", {**one("d", LEDGER), "transaction": transaction}, 201)
        flag.touch()
        with pytest.raises((ConnectionError, http.client.HTTPException)):
            ask(client, "commit", None, commit)
        assert server.process.wait(running.PATIENCE_S) == 9
    flag.unlink()
    with served() as server:
        client = ApiClient(ADDRESS, server.console_port, token)
        assert ask(client, "commit", None, commit).headers["Idempotency-Replayed"] == "true"
        assert labels(client, LEDGER) == ["a", "b", "d"]
        client.close()
