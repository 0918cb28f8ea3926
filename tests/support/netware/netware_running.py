"""NCP over TCP for tests: a listener in a thread, with a service in memory, and connections of raw bytes."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

from msmqwire.errors import StoreError, StoreRefused
from msmqwire.netware.model.files import AnyFile
from msmqwire.netware.rules.service import QueueService
from msmqwire.netware.runtime.limits import NcpLimits
from msmqwire.netware.runtime.ncp_listener import NcpListener
from tests.support.netware.netware_station import CREATE, REQUEST, MemoryServer, be16, be32, named, text
from tests.support.own_addresses import own_loopback
from tests.support.running import PATIENCE_S
from tests.support.socket_ends import has_ended

T = TypeVar("T")
LOOPBACK = own_loopback(1)


class MemoryDriver:
    """Performs operations on a service in memory.

    Attributes:
        held: operations wait while it is not set.
        refuses: whether operations fail as on a full disk, with nothing changed.
        refusals: how many have failed so.
    """

    def __init__(self, server: MemoryServer) -> None:
        self.server = server
        self.held = asyncio.Event()
        self.held.set()
        self.refuses, self.refusals = False, 0
        self._turn = asyncio.Lock()

    async def run(self, operation: Callable[[QueueService], T]) -> T:
        async with self._turn:
            await self.held.wait()
            if self.refuses:
                self.refusals += 1
                raise self._full()
            result = operation(self.server.service)
            self.server.settle()
            return result

    async def read_file(self, file: AnyFile, offset: int, count: int) -> bytes:
        if self.refuses:
            raise self._full()
        return bytes(self.server.files.get(file, b"")[offset : offset + count])

    async def write_file(self, file: AnyFile, offset: int, data: bytes) -> None:
        if self.refuses:
            raise self._full()
        self.server.write(file, offset, data)

    def _full(self) -> StoreError:
        return StoreRefused("no space left on the device", file="memory")


@dataclass
class InMemory:
    """A listener in a thread, whose service is in memory.

    Attributes:
        server: the service; to be changed before clients come, or through `do`.
        failures: contexts of uncaught errors in the loop.
    """

    server: MemoryServer
    driver: MemoryDriver
    listener: NcpListener
    loop: asyncio.AbstractEventLoop
    address: str
    failures: list[dict[str, Any]] = field(default_factory=list)

    @property
    def port(self) -> int:
        return self.listener.port

    def do(self, action: Callable[[], T]) -> T:
        """Call a function in the thread of the listener."""

        async def call() -> T:
            return action()

        return asyncio.run_coroutine_threadsafe(call(), self.loop).result(PATIENCE_S)

    def connect(self, *, attach: bool = True, source: str = "") -> RawNcp:
        """Open a connection, from an address of this machine if one is given."""
        return RawNcp(self.address, self.port, attach=attach, source=source)


@contextmanager
def in_memory(
    server: MemoryServer | None = None, limits: NcpLimits | None = None, address: str = LOOPBACK
) -> Iterator[InMemory]:
    """Serve NCP from memory; an uncaught error in the loop fails the test."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def start() -> InMemory:
        memory = server or MemoryServer()
        driver = MemoryDriver(memory)
        listener = NcpListener(driver, limits, clock=lambda: memory.now)
        await listener.bind(address, 0)
        listener.accept()
        return InMemory(memory, driver, listener, loop, address)

    try:
        running = asyncio.run_coroutine_threadsafe(start(), loop).result(PATIENCE_S)
        loop.set_exception_handler(lambda _, context: running.failures.append(context))
        yield running
        asyncio.run_coroutine_threadsafe(running.listener.close(), loop).result(PATIENCE_S)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE_S)
        loop.close()
    assert running.failures == []


def unit(packet: bytes, room: int = 0x10000, *, signature: bytes = b"") -> bytes:
    """A request on the stream, after a packet signature if one is given."""
    size = 16 + len(signature) + len(packet) | (bool(signature) << 31)
    return b"DmdT" + be32(size, 1, room) + signature + packet


class RawNcp:
    """A connection of NCP by hand.

    Attributes:
        connection: the number of the service connection.
        sequence: of the last request.
    """

    def __init__(self, address: str, port: int, *, attach: bool = True, source: str = "") -> None:
        self.socket = socket.create_connection((address, port), PATIENCE_S, (source, 0) if source else None)
        self.connection, self.sequence = 0xFFFF, 0
        if attach:
            reply = self.exchange(self.packet(CREATE, sequence=0, function=0))
            assert (reply[:3], reply[6:]) == (b"\x33\x33\0", b"\0\0"), reply
            self.connection = reply[3] | reply[5] << 8

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def packet(
        self, type_: int, data: bytes = b"", *, sequence: int | None = None, function: int = 23
    ) -> bytes:
        """A request, with the next sequence number."""
        if sequence is None:
            sequence = self.sequence = (self.sequence + 1) % 256
        head = (sequence, self.connection & 0xFF, 2, self.connection >> 8, function)
        return be16(type_) + bytes(head) + data

    def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        self.socket.sendall(data)

    def reply(self) -> bytes:
        """Read the next reply, from its NCP header on; empty if the connection has ended."""
        head = self._exactly(8)
        if not head:
            return b""
        assert head[:4] == b"tNcP"
        (size,) = struct.unpack(">I", head[4:])
        return self._exactly(size - 8)

    def exchange(self, packet: bytes) -> bytes:
        """Send a packet; return the reply to it."""
        self.send(unit(packet))
        return self.reply()

    def call(self, subfunction: int, data: bytes = b"", *, code: int = 0) -> bytes:
        """Make a call of function 23, which has this completion code; return the data of its reply."""
        reply = self.exchange(self.request(subfunction, data))
        assert (reply[:3], reply[6]) == (be16(0x3333) + bytes((self.sequence,)), code), reply.hex()
        return reply[8:]

    def request(self, subfunction: int, data: bytes = b"") -> bytes:
        """A request of function 23, with the next sequence number."""
        return self.packet(REQUEST, be16(len(data) + 1) + bytes((subfunction,)) + data)

    def login(self, name: str, type_: int = 1) -> Self:
        self.call(20, named(type_, name) + text(""))
        return self

    def has_ended(self) -> bool:
        """Wait for the server to end the connection, whatever it still says."""
        return has_ended(self.socket)

    def close(self) -> None:
        self.socket.close()

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            try:
                more = self.socket.recv(count - len(data))
            except ConnectionError:
                more = b""
            if not more:
                assert not data, "the connection ended inside a unit"
                return b""
            data += more
        return data
