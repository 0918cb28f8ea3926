"""Tokens: made, listed and revoked by the API and by commands; what is kept of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from msmqwire.qm.runtime.local import attach
from tests.support.qm.api_client import WithApi, with_api


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WithApi]:
    with with_api(tmp_path_factory.mktemp("tokens") / "data") as running:
        yield running


def made(api: WithApi, name: str, right: str) -> str:
    created = api.own.told("POST", "/tokens", {"name": name, "right": right}, 201)
    assert created == {"name": name, "right": right, "token": created["token"]}
    assert len(created["token"]) == 43
    return str(created["token"])


def test_a_new_token_has_its_right_and_no_more(api: WithApi) -> None:
    reader = api.client(made(api, "reader", "read"))
    assert reader.ask("GET", "/queues").status == 200
    answer = reader.ask("POST", "/tokens", {"name": "x", "right": "read"})
    assert (answer.status, answer.told["detail"]) == (
        403,
        "the token reader allows read; this needs administer",
    )


def test_tokens_are_listed_without_secrets(api: WithApi) -> None:
    secret = made(api, "listed", "administer")
    answer = api.own.ask("GET", "/tokens?limit=200")
    (told,) = [token for token in answer.told["items"] if token["name"] == "listed"]
    assert told == {"name": "listed", "right": "administer", "created": told["created"]}
    assert secret not in answer.body.decode()


@pytest.mark.parametrize("name", ["taken", "console", "Console"])
def test_a_name_in_use_is_409(api: WithApi, name: str) -> None:
    api.own.ask("POST", "/tokens", {"name": "taken", "right": "read"})
    answer = api.own.ask("POST", "/tokens", {"name": name, "right": "read"})
    assert answer.status == (409 if name == "taken" else 400)
    assert answer.told["path"] == "name"


@pytest.mark.parametrize(
    ("told", "path"),
    [
        ({"name": "", "right": "read"}, "name"),
        ({"name": "x" * 101, "right": "read"}, "name"),
        ({"name": "a\nb", "right": "read"}, "name"),
        ({"name": "\ud800", "right": "read"}, "name"),
        ({"name": "a", "right": "all"}, "right"),
        ({"name": "a"}, "right"),
        ({"name": 7, "right": "read"}, "name"),
        ({"name": "a", "right": "read", "token": "mine"}, "token"),
        ([], ""),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_token_that_can_not_be_is_400(api: WithApi, told: object, path: str) -> None:
    answer = api.own.ask("POST", "/tokens", told)
    assert (answer.status, answer.told.get("path", "")) == (400, path)


def test_revoking_holds_at_once_and_ends_connections(api: WithApi) -> None:
    client = api.client(made(api, "short", "read"))
    idle = api.client(client.token)
    for one in (client, idle):
        assert one.ask("GET", "/queues").status == 200
    assert api.own.ask("DELETE", "/tokens/short").status == 204
    assert client.ask("GET", "/queues").status == 401
    assert idle._connection is not None
    assert idle._connection.sock.recv(1) == b"", "closed by the server"
    assert api.own.ask("DELETE", "/tokens/short").status == 404


def test_a_token_may_revoke_itself(api: WithApi) -> None:
    client = api.client(made(api, "own", "administer"))
    assert client.ask("DELETE", "/tokens/own").status == 204
    assert api.client(client.token).ask("GET", "/queues").status == 401


def test_a_token_outlives_the_server_and_is_a_digest(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with with_api(data) as first:
        secret = made(first, "lasting", "read-write")
    assert not any(secret.encode() in file.read_bytes() for file in data.iterdir() if file.is_file())
    with with_api(data) as again:
        assert again.client(secret).ask("GET", "/queues").status == 200
    with attach(data) as local:
        assert local.call("token_revoke", name="lasting")["revoked"] is True
    with with_api(data) as last:
        assert last.client(secret).ask("GET", "/queues").status == 401


def test_a_command_of_a_running_server_makes_and_revokes(api: WithApi) -> None:
    data = api.server.data
    with attach(data) as local:
        secret = local.call("token_create", name="by command", right="read")["token"]
        assert api.client(secret).ask("GET", "/queues").status == 200
        names = [token["name"] for token in local.call("token_list")["tokens"]]
        assert "by command" in names
        local.call("token_revoke", name="by command")
    assert api.client(secret).ask("GET", "/queues").status == 401
