"""The sockets of a peer, on one thread of asyncio, and its end when it crashes or hangs."""

from __future__ import annotations

import asyncio
import ipaddress
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, cast
from urllib.parse import urlsplit

from tests.support.broken_peers.manager import Manager
from tests.support.broken_peers.ping import Pings
from tests.support.broken_peers.session import Session
from tests.support.broken_peers.srmp import Srmp
from tests.support.broken_peers.web import Requests
from tests.support.broken_peers.wire import Crash, Hang

Ending = Callable[[BaseException], None]
PORT = 1801
TASKS_MAX = 256
POST_S = 10.0


def hang_for_ever(_: BaseException) -> None:
    """Keep the thread, as a loop without an end does."""
    threading.Event().wait()


class Connection:
    """A connection that may be lost already when something is written."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport

    def write(self, data: bytes) -> None:
        """Send bytes, or drop them: asyncio would complain of each."""
        if not self._transport.is_closing():
            self._transport.write(data)

    def close(self) -> None:
        """End the connection once everything is sent."""
        self._transport.close()


class SessionProtocol(asyncio.Protocol):
    """One connection."""

    def __init__(self, server: Server, *, initiator: bool = False) -> None:
        self._server, self._initiator = server, initiator
        self._session: Session | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin a session, unless the table is full."""
        stream = cast(asyncio.Transport, transport)
        address = str(ipaddress.ip_address(stream.get_extra_info("peername")[0].partition("%")[0]))
        self._session = self._server.manager.accept(Connection(stream), address, initiator=self._initiator)

    def data_received(self, data: bytes) -> None:
        """Take bytes."""
        if self._session is not None:
            self._server.guarded(self._server.manager.receive, self._session, data)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the session."""
        if self._session is not None:
            reset = isinstance(exc, ConnectionError)
            self._server.guarded(lambda: self._server.manager.lost(self._session, reset=reset))


class PingProtocol(asyncio.DatagramProtocol):
    """The ping port."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the socket."""
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[Any, ...]) -> None:
        """Answer a ping."""
        answer = self._server.guarded(self._server.pings.answer, data)
        if answer is not None:
            self._transport.sendto(answer, addr)


class WebProtocol(asyncio.Protocol):
    """One connection of HTTP."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._requests = Requests(server.srmp.take, server.manager.makes)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the connection."""
        self._transport = Connection(cast(asyncio.Transport, transport))

    def data_received(self, data: bytes) -> None:
        """Answer requests."""
        if not self._requests.closed:
            self._transport.write(self._server.guarded(self._requests.receive, data) or b"")
        if self._requests.closed:
            self._transport.close()


class Server:
    """A peer that listens.

    Args:
        manager: the owner of the sockets; made for the running loop.
        crashed: ends the process.
        hung: blocks the process.
        hosts: replacements of addresses to connect to.
    """

    def __init__(
        self,
        manager: Manager,
        *,
        crashed: Ending,
        hung: Ending = hang_for_ever,
        hosts: dict[str, tuple[str, int]] | None = None,
    ) -> None:
        self.manager, self.pings = manager, Pings(manager.guid, manager.makes)
        self._crashed, self._hung = crashed, hung
        self._hosts = hosts or {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.srmp = Srmp(manager)
        self.srmp.post = self._post
        manager.routes.connect = self._connect

    def guarded(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function that a mistake may end."""
        try:
            return function(*args)
        except (Crash, ConnectionResetError) as exc:
            self._crashed(exc)
        except Hang as exc:
            self._hung(exc)
        return None

    async def listen(self, address: str, port: int) -> tuple[str, int]:
        """Accept connections; return where."""
        loop = asyncio.get_running_loop()
        listener = await loop.create_server(lambda: SessionProtocol(self), address, port)
        host, number = listener.sockets[0].getsockname()[:2]
        return host, number

    async def answer_pings(self, address: str, port: int) -> tuple[str, int]:
        """Answer pings; return where."""
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(
            lambda: PingProtocol(self), local_addr=(address, port)
        )
        host, number = transport.get_extra_info("sockname")[:2]
        return host, number

    async def serve_http(self, address: str, port: int) -> tuple[str, int]:
        """Take requests of HTTP; return where."""
        listener = await asyncio.get_running_loop().create_server(lambda: WebProtocol(self), address, port)
        host, number = listener.sockets[0].getsockname()[:2]
        return host, number

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _connect(self, address: str) -> None:
        self._start(self._try(self._hosts.get(address, (address, PORT))))

    async def _try(self, at: tuple[str, int]) -> None:
        loop = asyncio.get_running_loop()
        with suppress(OSError):  # it is tried again later
            await loop.create_connection(lambda: SessionProtocol(self, initiator=True), *at)

    def _post(self, url: str, envelope: bytes) -> None:
        if len(self._tasks) < TASKS_MAX and loopback(url) is not None:
            self._start(self._send(url, envelope))

    async def _send(self, url: str, envelope: bytes) -> None:
        """Post an envelope to a URL of this computer, once."""
        parts, at = urlsplit(url), loopback(url)
        assert at is not None
        head = (
            f"POST {parts.path.lower() or '/'} HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: text/xml\r\n"
            f'Content-Length: {len(envelope)}\r\nSOAPAction: "MSMQMessage"\r\n'
            "Proxy-Accept: NonInteractiveClient\r\n\r\n"
        )
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(POST_S):
                reader, writer = await asyncio.open_connection(*at)
                writer.write(head.encode("latin-1", "replace") + envelope)
                await reader.read(1 << 16)
                writer.close()


def loopback(url: str) -> tuple[str, int] | None:
    """The address and port of a URL; None if it is not of this computer."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or 80
        host = "127.0.0.1" if host == "localhost" else host
        return (host, port) if ipaddress.ip_address(host).is_loopback and parts.scheme == "http" else None
    except ValueError:
        return None
