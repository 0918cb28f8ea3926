"""A client's connection to a file server over TCP."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final, cast

from msmqwire.errors import MsmqError, Unreachable
from msmqwire.ncp.calls import Call
from msmqwire.ncp.packets import CALLS_BY_NAME, NcpReply
from msmqwire.ncp.readings import PROPOSED, Readings
from msmqwire.netware.client.exchange import NcpExchange
from msmqwire.netware.client.refusals import refusal
from msmqwire.schema import Record

ANSWER_S: Final = 20.0
"""Seconds without a byte from the server after which a request has failed."""
WHOLE_ANSWER_S: Final = 300.0
"""Seconds for a whole reply, whatever the server sends meanwhile."""
LEAVING_S: Final = 2.0
"""Seconds that the end of a connection waits for the server."""


class NcpConnection(asyncio.Protocol):
    """A connection. Once it has ended, all calls raise the reason.

    Calls that are made at the same time go to the server one after the other. A call that is cancelled is
    still answered before the next one is sent.

    Attributes:
        server: its name in errors.
        error: the reason for the end of the connection; None before.
        ended: done once it has.
    """

    def __init__(
        self,
        server: str,
        *,
        answer_s: float = ANSWER_S,
        whole_answer_s: float = WHOLE_ANSWER_S,
        readings: Readings = PROPOSED,
    ) -> None:
        self.server = server
        self._answer_s, self._whole_answer_s = answer_s, whole_answer_s
        self._loop = asyncio.get_running_loop()
        self._exchange = NcpExchange(readings=readings)
        self._transport: asyncio.Transport | None = None
        self._turn = asyncio.Lock()
        self._answer: asyncio.Future[NcpReply] = self._loop.create_future()
        self._heard = 0.0
        self.error: MsmqError | None = None
        self.ended: asyncio.Future[None] = self._loop.create_future()

    # -- calls --------------------------------------------------------------------------------------------

    async def attach(self) -> None:
        """Ask for a connection. Raises NcpLoginRefused, and the error that has ended the connection."""
        await asyncio.shield(self._task(self._attach()))

    def begin(self, name: str, **fields: Any) -> asyncio.Task[Record]:
        """Begin a call; see `call`. The call runs to its end even if its task is not awaited."""
        return self._task(self._call(CALLS_BY_NAME[name], fields))

    async def call(self, name: str, **fields: Any) -> Record:
        """Call by the names and fields of `msmqwire.ncp.packets`; return the data of the reply.

        Raises:
            NcpRefused: the completion code is not 0.
            MalformedPacket: the server's answer is wrong; the connection has ended.
            Unreachable: it does not answer at all; the connection has ended.
            InvalidValue: the call has no such field, or the value is invalid.
        """
        return await asyncio.shield(self.begin(name, **fields))

    async def close(self) -> None:
        """End the connection, and close it. Does nothing if it has ended."""
        if self.error is None:
            with suppress(MsmqError, TimeoutError):
                async with asyncio.timeout(LEAVING_S):
                    await asyncio.shield(self._task(self._destroy()))
        self.end(Unreachable("the connection was left"))

    def _task(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = self._loop.create_task(work)
        task.add_done_callback(_look_at)
        return task

    async def _attach(self) -> None:
        async with self._turn:
            reply = await self._roundtrip(self._exchange.attach())
        if reply.header.CompletionCode:
            raise refusal(reply.header.CompletionCode, None)

    async def _call(self, call: Call, fields: dict[str, Any]) -> Record:
        async with self._turn:
            if self.error is not None:
                raise self.error
            reply = await self._roundtrip(self._exchange.request(call, fields))
        if reply.header.CompletionCode:
            raise refusal(reply.header.CompletionCode, call)
        assert reply.data is not None, "the reply to a call that succeeded"
        return reply.data

    async def _destroy(self) -> None:
        async with self._turn:
            if self.error is None and self._exchange.connection is not None:
                await self._roundtrip(self._exchange.destroy())

    async def _roundtrip(self, unit: bytes) -> NcpReply:
        assert self._transport is not None, "it is connected"
        answer: asyncio.Future[NcpReply] = self._loop.create_future()
        self._answer = answer
        self._transport.write(unit)
        started = self._heard = self._loop.time()
        while not answer.done():
            due = min(self._heard + self._answer_s, started + self._whole_answer_s)
            left = due - self._loop.time()
            if left <= 0:
                self.end(Unreachable(f"{self.server} does not answer"))
            else:
                await asyncio.wait([answer], timeout=left)
        return answer.result()

    # -- the connection -----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are not subclasses of it

    def data_received(self, data: bytes) -> None:
        if self.error is not None:
            return
        self._heard = self._loop.time()
        try:
            reply = self._exchange.received(data)
        except Unreachable as exc:
            self.end(Unreachable(f"{self.server}: {exc}"))
        except MsmqError as exc:
            self.end(exc)
        else:
            if reply is not None:
                self._answer.set_result(reply)

    def connection_lost(self, exc: Exception | None) -> None:
        reason = f": {_reason(exc)}" if isinstance(exc, OSError) else ""
        self.end(Unreachable(f"{self.server} has closed the connection{reason}"))

    def end(self, error: MsmqError) -> None:
        """Close the connection; a call without a reply raises `error`. Does nothing if it has ended."""
        if self.error is not None:
            return
        self.error = error
        self.ended.set_result(None)
        if self._transport is not None:
            self._transport.abort()
        if not self._answer.done():
            self._answer.set_exception(error)
            self._answer.exception()  # there may be no call


def _look_at(task: asyncio.Task[Any]) -> None:
    """Retrieve the outcome of a task: its caller may be gone."""
    if not task.cancelled():
        task.exception()


async def open_connection(
    host: str,
    port: int,
    *,
    answer_s: float = ANSWER_S,
    whole_answer_s: float = WHOLE_ANSWER_S,
    readings: Readings = PROPOSED,
) -> NcpConnection:
    """Return a connection to a file server, with a connection number.

    Raises:
        Unreachable: there is no server, or it does not answer.
        NcpLoginRefused: the server has no connection left.
        MalformedPacket: it breaks the protocol.
    """
    server = f"{host} at port {port}"
    connection = NcpConnection(server, answer_s=answer_s, whole_answer_s=whole_answer_s, readings=readings)
    try:
        async with asyncio.timeout(answer_s):
            await asyncio.get_running_loop().create_connection(lambda: connection, host, port)
        await connection.attach()  # QMS-service-01
    except TimeoutError:
        connection.end(Unreachable(f"{server} does not answer"))
    except (OSError, UnicodeError) as exc:
        connection.end(Unreachable(f"{server} can't be reached: {_reason(exc)}"))
    except BaseException:
        connection.end(Unreachable(f"{server} was left"))
        raise
    if connection.error is not None:
        raise connection.error
    return connection


def _reason(exc: OSError | UnicodeError) -> str:
    number = getattr(exc, "errno", None) or 0
    return os.strerror(number) if number > 0 else str(getattr(exc, "strerror", None) or exc)
