"""A server of HTTP for one page: whoever reaches its port can cost little."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, cast

from msmqwire.qm.runtime.logs import log

if TYPE_CHECKING:
    from aiohttp import web

CONNECTIONS_MAX: Final = 32
"""Limit of connections; further ones are closed at once."""
REQUEST_S: Final = 10.0
"""Seconds that a connection lasts at most: one request, and the reading of its answer."""
_STOP_S: Final = 0.1


class PageServer:
    """Answers GET and HEAD of one path with a page that is made for each request.

    aiohttp waits without end for headers, and for a client that does not read, and takes any number of
    connections; so this limits them.
    """

    def __init__(self, path: str, content_type: str, page: Callable[[], bytes]) -> None:
        self._path, self._type, self._page = path, content_type, page
        self._server: asyncio.Server | None = None
        self._runner: web.AppRunner | None = None
        self._connections: set[_Connection] = set()

    async def start(self, address: str, port: int) -> int:
        """Listen; return the port. Raises OSError."""
        from aiohttp import web

        application = web.Application()
        application.router.add_get(self._path, self._answer)
        self._runner = web.AppRunner(
            application, logger=log, access_log=None, lingering_time=0, shutdown_timeout=_STOP_S
        )
        await self._runner.setup()
        self._server = await asyncio.get_running_loop().create_server(self._connection, address, port)
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Stop listening, and end all connections."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for connection in list(self._connections):
            connection.abort()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def _connection(self) -> asyncio.BaseProtocol:
        handler = self._runner.server() if self._runner is not None and self._runner.server else None
        return _Connection(self._connections, handler)

    async def _answer(self, request: web.Request) -> web.Response:
        from aiohttp import web

        answer = web.Response(body=self._page(), headers={"Content-Type": self._type})
        answer.force_close()
        return answer


class _Connection(asyncio.Protocol):
    """Passes a connection on to aiohttp, for a limited time, unless there are too many."""

    def __init__(self, connections: set[_Connection], handler: web.RequestHandler | None) -> None:
        self._connections, self._handler = connections, handler
        self._transport: asyncio.Transport | None = None
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is not a subclass
        if self._handler is None or len(self._connections) >= CONNECTIONS_MAX:
            self._handler = None
            self._transport.abort()
            return
        self._connections.add(self)
        self._deadline = asyncio.get_running_loop().call_later(REQUEST_S, self.abort)
        self._handler.connection_made(transport)

    def abort(self) -> None:
        """End the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        if self._handler is not None:
            self._handler.data_received(data)

    def eof_received(self) -> None:
        if self._handler is not None:
            self._handler.eof_received()

    def pause_writing(self) -> None:
        if self._handler is not None:
            self._handler.pause_writing()

    def resume_writing(self) -> None:
        if self._handler is not None:
            self._handler.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.discard(self)
        if self._deadline is not None:
            self._deadline.cancel()
        if self._handler is not None:
            self._handler.connection_lost(exc)
