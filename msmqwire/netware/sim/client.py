"""A client or queue server of the simulation: calls over a connection that may break at any moment."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any, Final

from msmqwire.errors import NcpRefused
from msmqwire.names.printable import counted
from msmqwire.ncp.framing import NcpFramer, build_unit
from msmqwire.ncp.headers import BUSY, NCP_REPLY_HEADER, NCP_TCP_REPLY
from msmqwire.ncp.packets import CALLS_BY_NAME
from msmqwire.netware.client.exchange import NcpExchange
from msmqwire.netware.sim.host import ServerHost
from msmqwire.netware.sim.violation import JobInvariant
from msmqwire.schema import Record
from msmqwire.service.virtual.violation import Violation

ANSWER_S: Final = 120.0
"""Seconds in which every call is answered, or its connection ends."""
_REPEATED: Final = 0.1
"""The fraction of requests that are sent twice."""


class ClientLost(Exception):
    """The connection has ended; the outcome of the last call is unknown."""


class Client:
    """One service connection.

    Attributes:
        host: its server.
        stream: the stream that carries it. when_lost: called at once when the connection ends.
    """

    def __init__(self, host: ServerHost, chance: random.Random) -> None:
        """Raises ClientLost if the server does not listen."""
        self.host, self._chance = host, chance
        self._exchange, self._framer = NcpExchange(), NcpFramer(NCP_TCP_REPLY)
        self._replies: asyncio.Queue[bytes | None] = asyncio.Queue()
        stream = host.connect(self._received, self._broken)
        if stream is None:
            raise ClientLost("nobody listens")
        self.stream = stream
        self.when_lost: Callable[[], None] | None = None
        self._is_lost = False

    def _received(self, data: bytes) -> None:
        for unit in self._framer.feed(data):
            self._replies.put_nowait(unit.packet)

    def _broken(self) -> None:
        self._is_lost = True
        if self.when_lost is not None:
            self.when_lost()
        self._replies.put_nowait(None)

    async def attach(self) -> None:
        """Get a connection number. Raises ClientLost."""
        await self._answered(self._exchange.attach(), 1)

    async def call(self, name: str, **fields: Any) -> Record:
        """Call; return the data of the reply. Raises NcpRefused and Lost."""
        unit = self._exchange.request(CALLS_BY_NAME[name], fields)
        data = await self._answered(unit, 1 + (self._chance.random() < _REPEATED))
        assert data is not None, "a call that succeeded"
        return data

    async def leave(self) -> None:
        """End the connection. Raises ClientLost."""
        await self._answered(self._exchange.destroy(), 1)
        self.stream.cut()

    async def _answered(self, unit: bytes, times: int) -> Record | None:
        if self._is_lost:
            raise ClientLost("it was lost before")
        for _ in range(times):
            self.stream.send(unit)
        packets = [await self._packet() for _ in range(times)]
        final = [packet for packet in packets if NCP_REPLY_HEADER.read(packet)[0].ReplyType != BUSY]
        if len(set(final)) != 1:
            raise Violation(
                JobInvariant.REPEATED, f"{counted(times, 'reply')}: {[packet.hex() for packet in packets]}"
            )
        reply = self._exchange.received(build_unit(NCP_TCP_REPLY, final[0]))
        assert reply is not None
        if reply.header.CompletionCode:
            raise NcpRefused(reply.kind, reply.header.CompletionCode)
        return reply.data

    async def _packet(self) -> bytes:
        try:
            async with asyncio.timeout(ANSWER_S):
                packet = await self._replies.get()
        except TimeoutError:
            raise Violation(JobInvariant.ENDS, f"no answer in {ANSWER_S:.0f} s") from None
        if packet is None:
            self._replies.put_nowait(None)
            raise ClientLost("it is lost")
        return packet
