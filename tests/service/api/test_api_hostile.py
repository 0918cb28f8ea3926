"""What hostile programs send to the API: answered with a problem, and the next one is served."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest

from msmqwire.qm.runtime.console.options import ConsoleLimits
from tests.support.qm.api_client import WithApi, with_api
from tests.support.running import PATIENCE_S

MIB = 1 << 20


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WithApi]:
    with with_api(tmp_path_factory.mktemp("hostile") / "data") as running:
        yield running


BODIES = {
    "deep": b"[" * 100_000,
    "deep objects": b'{"queue":' * 50_000,
    "huge number": b'{"queue": ' + b"9" * 100_000 + b"}",
    "huge exponent": b'{"queue": 1e999999}',
    "not a number": b'{"queue": NaN}',
    "infinity": b'{"queue": -Infinity}',
    "not UTF-8": b'{"queue": "\xff"}',
    "UTF-16": '{"queue": "a"}'.encode("utf-16"),
    "cut": b'{"queue": ',
    "nothing": b"",
    "two": b"{}{}",
    "a list": b"[]",
    "null": b"null",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_body_that_is_no_request_is_400(api: WithApi, body: bytes) -> None:
    answer = api.own.ask("POST", "/queues", data=body)
    assert (answer.status, answer.told["name"]) == (400, "InvalidValue")
    assert len(answer.body) < 1000
    assert api.own.ask("GET", "/queues").status == 200


def start(api: WithApi) -> str:
    """The beginning of a request with a token."""
    fields = {"Host": api.own.address, "Authorization": f"Bearer {api.own.token}"}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"POST /api/v1/queues HTTP/1.1\r\n{lines}"


def test_a_body_above_8_mib_is_413_unread(api: WithApi) -> None:
    headers = {"Content-Length": str(8 * MIB + 1)}
    connection = socket.create_connection((api.own.address, api.own.port), PATIENCE_S)
    head = start(api)
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    connection.sendall(f"{head}Content-Type: application/json\r\n{lines}\r\n".encode())
    assert connection.recv(100).startswith(b"HTTP/1.1 413 ")
    connection.close()


def test_a_body_without_an_end_is_cut_off(api: WithApi) -> None:
    connection = socket.create_connection((api.own.address, api.own.port), PATIENCE_S)
    head = start(api)
    more = "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    connection.sendall(f"{head}{more}".encode())
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    with suppress(OSError):  # closed by the server in the middle
        for _ in range(10 * MIB // 0x10000):
            connection.sendall(chunk)
        connection.shutdown(socket.SHUT_WR)
    with suppress(ConnectionError):
        assert not connection.recv(100).startswith(b"HTTP/1.1 201 ")
    connection.close()
    assert api.own.ask("GET", "/queues").status == 200


def test_a_body_of_8_mib_on_a_new_connection_is_read(api: WithApi) -> None:
    told = json.dumps({"queue": "x" * (8 * MIB - 100)}).encode()
    answer = api.client(api.own.token).ask("POST", "/queues", data=told)
    assert answer.status == 400


@pytest.mark.parametrize("size", [0, 100, 100_000])
def test_a_body_without_a_token_is_never_read(api: WithApi, size: int) -> None:
    connection = socket.create_connection((api.own.address, api.own.port), PATIENCE_S)
    head = f"POST /api/v1/queues HTTP/1.1\r\nHost: {api.own.address}\r\nContent-Length: {16 * MIB}\r\n\r\n"
    connection.sendall(head.encode() + b" " * size)
    assert connection.recv(100).startswith(b"HTTP/1.1 401 ")
    connection.close()


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "application/xml", ""])
def test_another_type_of_content_is_415(api: WithApi, kind: str) -> None:
    answer = api.own.ask("POST", "/queues", data=b"{}", headers={"Content-Type": kind})
    assert answer.status == 415


NAMES = {
    "slash": "private%24%2Forders",
    "NUL": "private%24%5Ca%00b",
    "surrogate": "private%24%5C%ED%A0%80",
    "not UTF-8": "%FF%FE",
    "half": "private%24%5C%",
    "dots": "..%2F..%2Fetc",
    "lines": "private%24%5Ca%0D%0Ab",
    "long": "x" * 3000,
    "format name": "DIRECT%3DTCP%3A192.0.2.1%5Cprivate%24%5Cx",
    "http": "DIRECT%3Dhttp%3A%2F%2Fexample%2Fmsmq%2Fx",
    "multicast": "MULTICAST%3D234.1.1.1%3A8001",
    "empty parts": "%5C%5C%5C",
    "space": "%20",
    "subqueue": "private%24%5Corders%3B%3B%3B",
}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
@pytest.mark.parametrize("rest", ["", "/messages", "/messages/1"])
def test_a_strange_name_is_400_or_404(api: WithApi, name: str, rest: str) -> None:
    answer = api.own.ask("GET", f"/queues/{name}{rest}")
    assert answer.status in (400, 404)
    assert answer.told["status"] == answer.status


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_looking_at_a_strange_name_makes_no_queue(api: WithApi, name: str) -> None:
    before = api.own.told("GET", "/status")["queues"]
    for method, rest in (("DELETE", ""), ("POST", "/purge"), ("DELETE", "/messages/1")):
        assert api.own.ask(method, f"/queues/{name}{rest}").status in (400, 404)
    assert api.own.told("GET", "/status")["queues"] == before


@pytest.mark.parametrize("number", ["-1", "x", "9" * 30, "1e3", "%31%00", "18446744073709551616", "٣"])
def test_a_number_that_is_none_is_refused(api: WithApi, number: str) -> None:
    name = quote("private$\\orders", safe="")
    segment = quote(number, safe="%")
    assert api.own.ask("GET", f"/queues/{name}/messages/{segment}").status in (400, 404)


def test_connections_of_one_token_do_not_pile_up(tmp_path: Path) -> None:
    """A token has its number of connections; beyond it its own oldest one ends, and others are served."""
    peers = {"api_connections_per_login": 5}
    with with_api(tmp_path / "data", peers=peers, limits=replace(ConsoleLimits(), wrong_token_s=0.0)) as own:
        other = own.client(own.own.told("POST", "/tokens", {"name": "other", "right": "read"}, 201)["token"])
        assert other.ask("GET", "/queues").status == 200
        many = [own.client(own.own.token) for _ in range(20)]
        for client in many:
            assert client.ask("GET", "/queues").status == 200
        server = own.server.server
        assert server._console is not None
        assert len(server._console.pages.connections) <= 5 + 1
        assert other._connection is not None
        assert other.ask("GET", "/queues").status == 200
        for client in (*many, other):
            client.close()
