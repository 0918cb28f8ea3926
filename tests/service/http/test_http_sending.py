"""Requests of HTTP that are sent: exactly what the engine has made, and an end whatever a server does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from msmqwire.srmp.fields import Field
from msmqwire.srmp.http_framer import HttpFramer, parse_http
from msmqwire.srmp.http_message import HttpMessage, RequestLine
from tests.support.paths import ROOT
from tests.support.patience import limit
from tests.support.srmp.http_service import OK, Service, service

VECTORS = ROOT / "tests/vectors/srmp"
HOSTS: dict[str, tuple[str, int | None]] = {"machine2": ("127.0.0.1", 9), "10.9.8.7": ("127.0.0.1", None)}
Script = Callable[[asyncio.StreamWriter], Awaitable[None]]
HELLO = HttpMessage(
    RequestLine("POST", "/msmq/q"), (Field("Host", "machine2"), Field("Content-Length", "5")), b"hello"
)


class Scripted:
    """A server that answers each request as a test wants.

    Attributes:
        port: where it listens.
        requests: the bytes of those that came.
        connections: how many it took.
    """

    def __init__(self, script: Script) -> None:
        self._script = script
        self.port = 0
        self.requests: list[bytes] = []
        self.connections = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        framer, received = HttpFramer(), b""
        with suppress(ConnectionError, asyncio.CancelledError):
            while data := await reader.read(1 << 16):
                received += data
                if framer.feed(data):
                    self.requests.append(received)
                    received = b""
                    await self._script(writer)
        writer.transport.abort()


@asynccontextmanager
async def scripted(script: Script) -> AsyncIterator[Scripted]:
    running = Scripted(script)
    server = await asyncio.start_server(running.serve, "127.0.0.1", 0)
    running.port = server.sockets[0].getsockname()[1]
    try:
        yield running
    finally:
        server.close()


def answers(data: bytes, *, close: bool = False) -> Script:
    """Answer with these bytes."""

    async def script(writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()
        if close:
            writer.close()

    return script


def repeats(start: bytes, more: bytes, pause_s: float = 0.0) -> Script:
    """Answer with bytes that never end."""

    async def script(writer: asyncio.StreamWriter) -> None:
        writer.write(start)
        while True:
            writer.write(more)
            await writer.drain()
            await asyncio.sleep(pause_s)  # the pace of the peer

    return script


async def sent(server: Service, other: Scripted, message: HttpMessage = HELLO, host: str = "machine2") -> Any:
    return await server.send(1, f"http://{host}:{other.port}/msmq/q", message)


@pytest.mark.requirement("SRMP-2.1.1-05", "SRMP-2.1.1-07", "SRMP-2.1.1-08", "SRMP-2.1.1-11")
@pytest.mark.parametrize("name", ["4.2", "4.3-1", "4.3-3", "4.4-4"])
@pytest.mark.parametrize("host", ["machine2", "10.9.8.7"])
def test_a_request_is_sent_byte_for_byte(name: str, host: str) -> None:
    """Also to where --host says, at the port of the URL."""
    request = (VECTORS / f"{name}.http").read_bytes()

    async def run() -> None:
        async with scripted(answers(OK)) as other, service(hosts=HOSTS) as server:
            assert await sent(server, other, parse_http(request), host) == (200, "127.0.0.1")
            assert other.requests == [parse_http(request).to_bytes()]

    asyncio.run(run())


@pytest.mark.requirement("SRMP-2.1.1-04")
@pytest.mark.parametrize(
    "target, on_the_wire",
    [
        ("/msmq/private$/receipts?senderstream=xrntv", "/msmq/private$/receipts?senderstream=xrntv"),
        ("/msmq/a%2fb/%zz//c/../d?", "/msmq/a%2fb/%zz//c/../d?"),
        ("/msmq/a#b?c=d&&e", "/msmq/a#b?c=d&&e"),
        ("/msmq/my queue", "/msmq/my%20queue"),
        ("/msmq/größe", "/msmq/gr%C3%B6%C3%9Fe"),
        ("/msmq/q HTTP/1.1\r\nX: y", "/msmq/q%20HTTP/1.1%0D%0AX:%20y"),
    ],
)
def test_the_target_is_unchanged_except_for_invalid_characters(target: str, on_the_wire: str) -> None:
    async def run() -> None:
        async with scripted(answers(OK)) as other, service(hosts=HOSTS) as server:
            message = HttpMessage(RequestLine("POST", target), HELLO.fields, HELLO.entity)
            assert await sent(server, other, message) == (200, "127.0.0.1")
            assert other.requests[0].startswith(f"POST {on_the_wire} HTTP/1.1\r\nHost: machine2\r\n".encode())

    asyncio.run(run())


@pytest.mark.parametrize("status", [200, 202, 204, 302, 307, 400, 401, 404, 500, 503])
def test_statuses_are_reported_and_redirects_not_followed(status: int) -> None:
    answer = b"HTTP/1.1 %d X\r\nLocation: /other\r\nWWW-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n"

    async def run() -> None:
        async with scripted(answers(answer % status)) as other, service(hosts=HOSTS) as server:
            assert await sent(server, other) == (status, "127.0.0.1")
            assert len(other.requests) == 1

    asyncio.run(run())


def test_connections_are_used_again_and_limited_for_each_host() -> None:
    async def run() -> None:
        async with scripted(answers(OK)) as other, service(hosts=HOSTS, http_out_per_host=3) as server:
            url = f"http://machine2:{other.port}/msmq/q"
            await asyncio.gather(*(server.send(number, url, HELLO) for number in range(30)))
            assert server.engine.results == dict.fromkeys(range(30), (200, "127.0.0.1"))
            assert (len(other.requests), other.connections) == (30, 3)
            await asyncio.gather(*(server.send(number, url, HELLO) for number in range(30, 33)))
            assert other.connections == 3

    asyncio.run(run())


def test_proxies_and_cookies_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1/")
    cookie = OK.replace(b"\r\n\r\n", b"\r\nSet-Cookie: a=b\r\n\r\n")

    async def run() -> None:
        async with scripted(answers(cookie)) as other, service(hosts=HOSTS) as server:
            for number in range(2):
                result = await server.send(number, f"http://machine2:{other.port}/msmq/q", HELLO)
                assert result == (200, "127.0.0.1")
            assert other.requests == [HELLO.to_bytes()] * 2

    asyncio.run(run())


HOSTILE = {
    "interim answers": (repeats(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000), "an answer of more than"),
    "fields": (repeats(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n" * 1000), "Too many headers"),
    "a field": (repeats(b"HTTP/1.1 200 OK\r\nX: ", b"y" * 50_000), "not an HTTP answer"),
    "a line": (repeats(b"HTTP/1.1 200 ", b"y" * 50_000), "not an HTTP answer"),
    "one byte after the other": (repeats(b"HTTP/1.1 200 OK\r\nX: ", b"y", 0.02), "no answer in 0.6 s"),
    "nothing": (repeats(b"", b"", 0.1), "no answer in 0.6 s"),
    "the end": (answers(b"", close=True), "ended before the answer"),
    "half a head": (answers(b"HTTP/1.1 200 OK\r\nX", close=True), "ended before the answer"),
    "another protocol": (answers(b"220 mail ESMTP\r\n\r\n"), "Bad status line"),
    "two lengths": (
        answers(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"),
        "Length",
    ),
    "no status": (answers(b"HTTP/1.1 999 X\r\nContent-Length: 0\r\n\r\n"), "999 is not an HTTP status"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_server_that_does_not_answer_fails_the_request_soon(name: str) -> None:
    script, reason = HOSTILE[name]
    # A busy machine may need longer than 0.6 s until an answer is too long: time ends only what never is.
    patience_s = 0.6 if reason == "no answer in 0.6 s" else 60.0

    async def run() -> None:
        async with scripted(script) as other, service(hosts=HOSTS, http_send_s=patience_s) as server:
            began = time.monotonic()
            result = await sent(server, other)
            assert reason in result
            assert "\n" not in result
            assert time.monotonic() - began < limit(30)

    asyncio.run(run())


@pytest.mark.parametrize(
    "script",
    [
        repeats(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 50_000),
        repeats(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", b"x", 0.02),
        answers(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nx", close=True),
        answers(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc"),
        answers(OK * 3),
    ],
)
def test_only_the_status_of_an_answer_counts(script: Script) -> None:
    """Content is not waited for, and nothing behind an answer is taken for the next one."""

    async def run() -> None:
        async with scripted(script) as other, service(hosts=HOSTS) as server:
            began = time.monotonic()
            assert await sent(server, other) == (200, "127.0.0.1")
            assert time.monotonic() - began < limit(10)
            assert await server.send(2, f"http://machine2:{other.port}/msmq/q", HELLO) == (200, "127.0.0.1")

    asyncio.run(run())


@pytest.mark.parametrize(
    "url, reason",
    [
        ("http://127.0.0.1:1/msmq/q", "nobody listens at 127.0.0.1:1"),
        ("http://nowhere.invalid/msmq/q", "nowhere.invalid has no address"),
        ("ftp://127.0.0.1/msmq/q", "not a URL of HTTP"),
        ("http:///msmq/q", "not a URL of HTTP"),
        ("http://127.0.0.1:99999/msmq/q", "Port"),
    ],
)
def test_the_reason_why_a_request_is_not_sent_is_reported(url: str, reason: str) -> None:
    async def run() -> None:
        async with service() as server:
            assert reason in await server.send(1, url, HELLO)

    asyncio.run(run())
