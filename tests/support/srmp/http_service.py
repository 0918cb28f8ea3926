"""The HTTP transport of a queue manager with a recorder in place of the engine, and a client of raw bytes."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

from msmqwire.qm.core import Core
from msmqwire.qm.protocols.srmp.effects import HttpRequest, HttpResponse
from msmqwire.qm.runtime.addresses import AddressOverrides
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.qm.runtime.folder import open_core
from msmqwire.qm.runtime.http.connection import HttpConnection
from msmqwire.qm.runtime.http.network import HttpNetwork
from msmqwire.qm.runtime.limits import Limits
from msmqwire.qm.runtime.transport import TcpNetwork
from msmqwire.qm.store import memory_store
from msmqwire.srmp.http_message import HttpMessage
from tests.support.patience import happens, limit

PATIENCE_S = limit(5.0)
HEAD = b"POST /msmq/private$/q HTTP/1.1\r\nHost: alpha\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


def post(entity: bytes = b"hello", *fields: bytes, head: bytes = HEAD) -> bytes:
    """A sound request."""
    lines = b"".join(field + b"\r\n" for field in (*fields, b"Content-Length: %d" % len(entity)))
    return head + lines + b"\r\n" + entity


class Recorder:
    """In place of the engine.

    Attributes:
        requested_ones: incoming requests, with the addresses of the peers.
        reached_ones: numbers of requests that had a connection.
        results: the status, or the reason, of each request that was sent, by its number.
        status: the answer to requests; None to wait.
        waiting: numbers of the requests without an answer.
    """

    def __init__(self, core: Core) -> None:
        self._context = core.context
        self.requested_ones: list[tuple[HttpMessage, str]] = []
        self.results: dict[int, Any] = {}
        self.reached_ones: list[int] = []
        self.status: int | None = 200
        self.waiting: list[int] = []

    def requested(self, request: int, http: HttpMessage, address: str, local_address: str) -> None:
        self.requested_ones.append((http, address))
        self.waiting.append(request)
        if self.status is not None:
            self.answer(self.status)

    def answer(self, status: int) -> None:
        """Answer the requests that wait."""
        self._context.effects += [HttpResponse(number, status) for number in self.waiting]
        self.waiting.clear()

    def reached(self, request: int, address: str) -> None:
        self.reached_ones.append(request)

    def answered(self, request: int, status: int, address: str, text: str) -> None:
        self.results[request] = status, address

    def failed(self, request: int, reason: str) -> None:
        self.results[request] = reason


class Service:
    """A running transport.

    Attributes:
        engine: the recorder.
        http: the transport.
        port: the port it listens on.
        faults: the faults reported to the event loop.
    """

    def __init__(self, http: HttpNetwork, driver: EngineDriver, engine: Recorder, port: int) -> None:
        self.http, self.driver, self.engine, self.port = http, driver, engine, port
        self.faults: list[dict[str, Any]] = []

    @property
    def entities(self) -> list[bytes]:
        """The entities of the requests that have come in."""
        return [http.entity for http, _ in self.engine.requested_ones]

    @property
    def connections(self) -> list[HttpConnection]:
        """The connections of clients."""
        assert self.http._listener is not None
        return list(self.http._listener)

    async def send(self, number: int, url: str, message: HttpMessage) -> Any:
        """Send a request; return its status and address, or the reason of its failure."""
        self.http.request(HttpRequest(number, url, message))
        await happens(lambda: number in self.engine.results, "the result of a request")
        return self.engine.results[number]

    async def serves(self) -> None:
        """Check that an honest peer is served."""
        status, _ = await ask(self.port, post(b"honest", b"Connection: close"), address="127.0.0.79")
        assert status == 200


@asynccontextmanager
async def service(
    *,
    context: ssl.SSLContext | None = None,
    client_context: ssl.SSLContext | None = None,
    hosts: dict[str, tuple[str, int | None]] | None = None,
    **limits: Any,
) -> AsyncIterator[Service]:
    """Run a transport that listens at the loopback."""
    store = memory_store()
    core = open_core(store, "alpha")
    driver = EngineDriver(core, store)
    overrides = AddressOverrides(hosts=hosts or {})
    network = TcpNetwork(driver, limits=replace(Limits(close_s=0.5), **limits), overrides=overrides)
    engine = Recorder(core)
    http = HttpNetwork(driver, lambda: engine, network, overrides=overrides, context=client_context)
    driver.register(network)
    driver.register(http)
    driver.start()
    running = Service(http, driver, engine, await http.listen("127.0.0.1", 0, context))
    http.accept()
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, fault: running.faults.append(fault))
    try:
        yield running
        assert not driver.broken.done()
        assert not running.faults
    finally:
        driver.abandon()
        await driver.close_carriers()


class Peer:
    """A connection of a client that sends the bytes of a test."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def connect(
        cls, port: int, address: str = "127.0.0.1", context: ssl.SSLContext | None = None
    ) -> Peer:
        """Connect from an address of the loopback."""
        name = "alpha" if context is not None else None
        return cls(
            *await asyncio.open_connection(
                "127.0.0.1", port, local_addr=(address, 0), ssl=context, server_hostname=name
            )
        )

    async def send(self, data: bytes) -> None:
        """Send bytes; the other side may have ended the connection."""
        with suppress(ConnectionError):
            self.writer.write(data)
            await self.writer.drain()

    async def head(self) -> bytes:
        """Return the next head of an answer; the bytes received if the connection ends before."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await self.reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError as exc:
            return exc.partial
        except ConnectionError:
            return b""

    async def ended(self) -> bytes:
        """Return the bytes up to the end of the connection."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await self.reader.read()
        except ConnectionError:
            return b""

    async def close(self) -> None:
        """End the connection at once."""
        self.writer.transport.abort()
        with suppress(OSError):
            await self.writer.wait_closed()


@asynccontextmanager
async def peer(port: int, **options: Any) -> AsyncIterator[Peer]:
    """Connect, and end the connection."""
    connected = await Peer.connect(port, **options)
    try:
        yield connected
    finally:
        await connected.close()


async def ask(port: int, data: bytes, **options: Any) -> tuple[int, bytes]:
    """Send bytes on a connection of their own, up to its end; return the status, 0 for none, and all."""
    async with peer(port, **options) as connection:
        await connection.send(data)
        answer = await connection.ended()
    return status_of(answer), answer


def status_of(answer: bytes) -> int:
    """Return the status of an answer; 0 for none."""
    return int(answer.split(b" ")[1]) if answer.startswith(b"HTTP/1.") else 0
