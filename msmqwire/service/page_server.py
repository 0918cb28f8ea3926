"""An HTTP server for one page, which limits the cost of any client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from msmqwire.service.limited_connection import LimitedConnection
from msmqwire.service.listening_sockets import ListeningSockets
from msmqwire.service.logs import log

if TYPE_CHECKING:
    from aiohttp import web

CONNECTIONS_MAX: Final = 32
"""Limit of connections; further ones are closed at once."""
REQUEST_S: Final = 10.0
"""The longest time of a connection in seconds: one request, and the reading of its answer."""
_STOP_S: Final = 0.1


class PageServer:
    """Answers GET and HEAD of one path with a page that is made for each request.

    aiohttp waits without limit for headers, and for a client that does not read, and accepts any number of
    connections; this class sets the limits.
    """

    def __init__(self, path: str, content_type: str, page: Callable[[], bytes]) -> None:
        self._path, self._type, self._page = path, content_type, page
        self._sockets = ListeningSockets()
        self._runner: web.AppRunner | None = None
        self._connections: set[LimitedConnection] = set()

    async def start(self, address: str, port: int) -> int:
        """Listen; return the port. Raises OSError."""
        from aiohttp import web

        application = web.Application()
        application.router.add_get(self._path, self._answer)
        self._runner = web.AppRunner(application, logger=log, access_log=None, shutdown_timeout=_STOP_S)
        await self._runner.setup()
        port = await self._sockets.bind(address, port, self._connection)
        self._sockets.accept()
        return port

    async def stop(self) -> None:
        """Stop listening, and end all connections."""
        self._sockets.close()
        await self._sockets.wait_closed()
        for connection in list(self._connections):
            connection.abort()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def _connection(self) -> asyncio.BaseProtocol:
        from msmqwire.service.page_requests import PageRequestHandler

        server = None if self._runner is None else self._runner.server
        handler = None if server is None else PageRequestHandler(server, _refusal)
        return LimitedConnection(self, handler, REQUEST_S)

    def admit(self, connection: LimitedConnection) -> bool:
        """See `msmqwire.service.limited_connection.ConnectionAdmission`."""
        if len(self._connections) >= CONNECTIONS_MAX:
            return False
        self._connections.add(connection)
        return True

    def forget(self, connection: LimitedConnection) -> None:
        """See `msmqwire.service.limited_connection.ConnectionAdmission`."""
        self._connections.discard(connection)

    async def _answer(self, request: web.Request) -> web.Response:
        from aiohttp import web

        answer = web.Response(body=self._page(), headers={"Content-Type": self._type})
        answer.force_close()
        return answer


def _refusal(status: int, reason: str) -> web.Response:
    from aiohttp import web

    return web.Response(status=status, text=f"{reason}\n")
