"""The sockets of a peer, on one thread of asyncio, and its end when it crashes or hangs."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import threading
from collections.abc import Callable
from typing import Any, cast

from tests.support.broken_peers.manager import Manager
from tests.support.broken_peers.ping import Pings
from tests.support.broken_peers.session import Session
from tests.support.broken_peers.wire import Crash, Hang

Ending = Callable[[BaseException], None]
PORT = 1801


def hang_for_ever(_: BaseException) -> None:
    """Keep the thread, as a loop without an end does."""
    threading.Event().wait()


class SessionProtocol(asyncio.Protocol):
    """One connection."""

    def __init__(self, server: Server, *, initiator: bool = False) -> None:
        self._server, self._initiator = server, initiator
        self._session: Session | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin a session, unless the table is full."""
        stream = cast(asyncio.Transport, transport)
        address = str(ipaddress.ip_address(stream.get_extra_info("peername")[0].partition("%")[0]))
        self._session = self._server.manager.accept(stream, address, initiator=self._initiator)

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


class Server:
    """A peer that listens.

    Args:
        manager: whose sockets these are; made for the running loop.
        crashed: ends the process.
        hung: keeps the process from doing anything.
        hosts: where an address is to be connected to instead.
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
        self._connecting: set[asyncio.Task[None]] = set()
        manager.routes.connect = self._connect

    def guarded(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call what a mistake may end."""
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

    def _connect(self, address: str) -> None:
        task = asyncio.get_running_loop().create_task(self._try(self._hosts.get(address, (address, PORT))))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    async def _try(self, at: tuple[str, int]) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.create_connection(
                lambda: SessionProtocol(self, initiator=True), *at, family=socket.AF_UNSPEC
            )
        except OSError:
            return  # it is tried again later
