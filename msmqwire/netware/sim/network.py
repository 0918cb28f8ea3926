"""The network between clients and the server: streams that deliver bytes later, in pieces, and break."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any, Final

from msmqwire.netware.runtime.ncp_connection import NcpServerConnection

DELAY_S: Final = 0.02
"""The most seconds that bytes are under way."""
_APART_S: Final = 1e-6
"""Seconds between two pieces: pieces due at the same time come in any order."""
_ADDRESS: Final = ("192.0.2.1", 1024)


class NcpStream(asyncio.Transport):
    """One TCP connection, as the transport of the server's end; `send` and `cut` are the client's end.

    Args:
        protocol: the server's protocol. receive: called with the bytes that reach the client.
        broken: called once when the client learns that the connection has ended.
    """

    def __init__(
        self,
        protocol: NcpServerConnection,
        chance: random.Random,
        receive: Callable[[bytes], None],
        broken: Callable[[], None],
    ) -> None:
        super().__init__()
        self._loop = asyncio.get_running_loop()
        self._protocol, self._chance = protocol, chance
        self._receive, self._broken = receive, broken
        self._last: dict[bool, float] = {True: 0.0, False: 0.0}
        self._inbound: list[bytes] = []
        self._reads = True
        self._is_open = True
        self._protocol.connection_made(self)

    # -- the client's end -----------------------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        """Send bytes to the server, in one piece or two."""
        cut = self._chance.choice((len(data), self._chance.randrange(1, len(data))))
        for piece in (data[:cut], data[cut:]):
            if piece:
                self._later(True, self._deliver, piece)

    def cut(self) -> None:
        """Break the connection: bytes on their way are lost."""
        if self._is_open:
            self._is_open = False
            self._broken()
            self._loop.call_later(self._delay(), self._protocol.connection_lost, None)

    def vanish(self) -> None:
        """The server is dead: no byte reaches its end any more."""
        if self._is_open:
            self._is_open = False
            self._loop.call_later(self._delay(), self._broken)

    def _delay(self) -> float:
        return self._chance.random() * DELAY_S

    def _later(self, to_server: bool, deliver: Callable[[bytes], None], data: bytes) -> None:
        at = max(self._last[to_server] + _APART_S, self._loop.time() + self._delay())
        self._last[to_server] = at
        self._loop.call_at(at, deliver, data)

    def _deliver(self, data: bytes) -> None:
        self._inbound.append(data)
        self._drain()

    def _drain(self) -> None:
        while self._inbound and self._reads and self._is_open:
            self._protocol.data_received(self._inbound.pop(0))

    def _reply(self, data: bytes) -> None:
        if self._is_open:
            self._receive(data)

    # -- the server's end: `asyncio.Transport` --------------------------------------------------------------

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return _ADDRESS if name == "peername" else default

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """There is always room."""

    def get_write_buffer_size(self) -> int:
        return 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._is_open:
            self._later(False, self._reply, bytes(data))

    def write_eof(self) -> None:
        self._later(False, lambda _: self.cut(), b"")

    def close(self) -> None:
        self.write_eof()

    def abort(self) -> None:
        self.cut()

    def is_closing(self) -> bool:
        return not self._is_open

    def pause_reading(self) -> None:
        self._reads = False

    def resume_reading(self) -> None:
        self._reads = True
        self._loop.call_soon(self._drain)
