"""Hostile clients of the console and the metrics: an honest one is served beside them."""

from __future__ import annotations

import gzip
import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from msmqwire.qm.runtime.console import ConsoleOptions
from msmqwire.qm.runtime.limits import Limits
from msmqwire.service.page_guard import HEADERS
from tests.support.many_computers import many_computers
from tests.support.patience import limit
from tests.support.qm.console_client import Browser, token_of
from tests.support.running import ADDRESS, ORDERS, InThread, options, served, until

pytestmark = pytest.mark.uvloop

pytest.importorskip("prometheus_client")
PAGES = ("console", "metrics")
ATTACKER, OWNER = "127.0.0.77", "127.0.0.78"
PATHS = {"console": "/", "metrics": "/metrics"}


class Running:
    """A server with both pages."""

    def __init__(self, server: InThread) -> None:
        self.server = server

    def port(self, page: str) -> int:
        return self.server.do(lambda server: getattr(server, f"_{page}").port)

    def traffic(self, page: str, name: str) -> int:
        return self.server.do(
            lambda server: getattr(_pages(server, page).connections.traffic, name),
        )

    def open(self, page: str) -> int:
        return self.server.do(lambda server: len(_pages(server, page).connections))

    def connect(self, page: str, source: str) -> socket.socket:
        return socket.create_connection((ADDRESS, self.port(page)), limit(60), source_address=(source, 0))

    def ask(
        self, page: str, source: str, *, host: str = "localhost", target: str = "", more: str = ""
    ) -> bytes:
        """The answer to a request for the page; nothing if it was refused."""
        head = f"GET {target or PATHS[page]} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n"
        return self.send(page, source, head.encode())

    def send(self, page: str, source: str, request: bytes) -> bytes:
        with suppress(ConnectionError), self.connect(page, source) as client:
            client.sendall(request)
            return rest(client)
        return b""


def _pages(server: Any, page: str) -> Any:
    return server._console.pages if page == "console" else server._metrics.server


def rest(client: socket.socket) -> bytes:
    """What comes until the other side ends the connection."""
    received = b""
    with suppress(ConnectionResetError):
        while chunk := client.recv(65536):
            received += chunk
    return received


def status(answer: bytes) -> int:
    return int(answer.split()[1]) if answer else 0


@contextmanager
def running(data: Path, **limits: Any) -> Iterator[Running]:
    console = ConsoleOptions((ADDRESS, 0), names=("Queues.Example",))
    chosen = options(
        data, ORDERS, console=console, metrics=(ADDRESS, 0), metrics_names=("Scraped.Example",),
        limits=Limits(**limits),
    )  # fmt: skip
    with many_computers(), served(chosen) as server:
        yield Running(server)


@pytest.mark.parametrize("page", PAGES)
def test_silent_connections_make_room_for_any_origin(tmp_path: Path, page: str) -> None:
    limits = {"page_connections": 6, "page_connections_per_peer": 3, "page_read_s": 600}
    with running(tmp_path / "data", **limits) as own, ExitStack() as stack:
        silent = [stack.enter_context(own.connect(page, ATTACKER)) for _ in range(3)]
        silent += [stack.enter_context(own.connect(page, f"127.0.0.{n}")) for n in (71, 71, 72)]
        until(lambda: own.open(page) == 6, "all places are taken")
        assert status(own.ask(page, OWNER)) == 200, "another origin"
        assert status(own.ask(page, ATTACKER)) == 200, "the same one"
        assert rest(silent[0]) == b"", "the oldest of the origin that has most has made room"
        assert own.traffic(page, "evicted") >= 1


@pytest.mark.parametrize("page", PAGES)
def test_a_flood_of_one_origin_leaves_the_rate_of_others(tmp_path: Path, page: str) -> None:
    with running(tmp_path / "data", page_accepts_per_peer=5) as own:
        for _ in range(100):
            own.ask(page, ATTACKER)
            if own.traffic(page, "refused") > 5:
                break
        assert own.traffic(page, "refused") > 5
        assert status(own.ask(page, OWNER)) == 200, "at once"
        until(lambda: status(own.ask(page, ATTACKER)) == 200, "the same origin in the next second")


@pytest.mark.parametrize("page", PAGES)
def test_foreign_names_read_nothing(tmp_path: Path, page: str) -> None:
    """A page whose name was made to lead here has our origin for the browser."""
    given = {"console": "Queues.Example", "metrics": "Scraped.Example"}
    with running(tmp_path / "data") as own:
        for host in ("evil.example", "evil.example:9101", "localhost@evil.example", ""):
            answer = own.ask(page, OWNER, host=host)
            assert status(answer) == 421
            assert f"--{page}-name NAME allows it".encode() in answer
        assert status(own.ask(page, OWNER, target=f"http://evil.example{PATHS[page]}")) == 421
        assert status(own.ask(page, OWNER, more="Host: evil.example\r\n")) == 400
        for host in (
            "127.0.0.1",
            "10.1.2.3:9101",
            "[fd00::1]:80",
            "LOCALHOST",
            given[page],
            f"{given[page]}.:1",
        ):
            assert status(own.ask(page, OWNER, host=host)) == 200
        assert status(own.send(page, OWNER, f"GET {PATHS[page]} HTTP/1.0\r\n\r\n".encode())) == 200


def test_pages_of_other_sites_read_no_metrics(tmp_path: Path) -> None:
    with running(tmp_path / "data") as own:
        for more in ("Origin: http://evil.example\r\n", "Sec-Fetch-Site: cross-site\r\n"):
            assert status(own.ask("metrics", OWNER, more=more)) == 403
        head = own.ask("metrics", OWNER).partition(b"\r\n\r\n")[0].decode()
        fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:])
        assert {name: fields[name] for name in HEADERS} == HEADERS
        assert not any(name.lower().startswith("access-control") for name in fields)
        assert (
            status(own.send("metrics", OWNER, b"OPTIONS /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")) == 405
        )


def test_wrong_tokens_of_a_proxy_keep_nobody_out(tmp_path: Path) -> None:
    """The right token comes from the address of the wrong ones, while they come."""
    with (
        running(tmp_path / "data", page_accepts_per_peer=10_000, page_accepts=10_000) as own,
        ExitStack() as stack,
    ):
        browser = Browser(ADDRESS, own.port("console"))
        token = token_of(own.server.data)
        body = b'{"token": "' + b"x" * len(token) + b'"}'
        wrong = (
            f"POST /api/v1/login HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        ).encode() + body
        for _ in range(50):
            client = stack.enter_context(socket.create_connection((ADDRESS, browser.port), limit(60)))
            client.sendall(wrong)
        assert browser.log_in(token).status == 200
        assert browser.get("status").status == 200
        client = stack.enter_context(own.connect("console", OWNER))
        client.sendall(wrong)
        assert status(rest(client)) == 401


@pytest.mark.parametrize("page", PAGES)
def test_long_requests_of_one_origin_leave_the_work_of_others(tmp_path: Path, page: str) -> None:
    long = f"X: {'y' * 4000}\r\n"
    with running(tmp_path / "data", page_bytes_per_s_per_peer=16_000) as own:
        for _ in range(100):
            own.ask(page, ATTACKER, more=long)
            if own.traffic(page, "refused"):
                break
        assert own.traffic(page, "refused")
        assert status(own.ask(page, OWNER, more=long)) == 200, "at once"
        until(lambda: status(own.ask(page, ATTACKER, more=long)) == 200, "the same origin in a second")


def test_thousands_of_cookies_are_not_made_to_objects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """aiohttp takes five milliseconds for the cookies of one head."""
    monkeypatch.delattr("aiohttp.web.BaseRequest.cookies")
    with running(tmp_path / "data") as own:
        browser = Browser(ADDRESS, own.port("console"))
        assert browser.log_in(token_of(own.server.data)).status == 200
        browser.cookie = "x " * 1500 + f";a=1; {browser.cookie} ;b"
        assert browser.get("status").status == 200
        browser.cookie = browser.cookie.replace("msmqwire-", "msmqwire_")
        assert browser.get("status").status == 401


def test_compressed_requests_stay_as_they_are(tmp_path: Path) -> None:
    with running(tmp_path / "data") as own:
        browser = Browser(ADDRESS, own.port("console"))
        token = json.dumps({"token": token_of(own.server.data)}).encode()
        for data, expected in ((token, 200), (gzip.compress(token), 400)):
            answer = browser.ask("POST", "/api/v1/login", data=data, headers={"Content-Encoding": "gzip"})
            assert answer.status == expected
