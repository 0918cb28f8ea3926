"""An HTTP server for pages, which limits the cost of any client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from msmqwire.service.limited_connection import LimitedConnection
from msmqwire.service.listening_sockets import ListeningSockets
from msmqwire.service.logs import log
from msmqwire.service.page_connections import PageConnections, PageLimits

if TYPE_CHECKING:
    from aiohttp import web

    from msmqwire.service.request_handler import QuietRequestHandler

_STOP_S: Final = 0.1


class PageServer:
    """Serves an application of aiohttp.

    aiohttp waits without limit for headers, and for a client that does not read, and accepts any number of
    connections; this class sets the limits.

    Attributes:
        connections: its connections.
    """

    def __init__(
        self,
        page: str,
        application: web.Application,
        refusal: Callable[[int, str], web.Response],
        limits: PageLimits,
        is_known: Callable[[str], bool] = lambda origin: False,
        *,
        cancels: bool = False,
    ) -> None:
        """Make a server without a socket.

        Args:
            page: the name of the pages, for logs.
            application: answers requests.
            refusal: returns the answer to a request that can't be served, by its status and the reason.
            limits: limits on connections without a login.
            is_known: whether an origin has a login.
            cancels: whether the work for a request ends with its connection: for pages that take long.
        """
        self._application, self._refusal, self._limits = application, refusal, limits
        self._cancels, self._is_known = cancels, is_known
        self.connections = PageConnections(page, limits, self._knows)
        self._sockets = ListeningSockets(self.connections.accepts)
        self._runner: web.AppRunner | None = None

    async def bind(self, address: str, port: int) -> int:
        """Listen; connections wait for `accept`. Returns the port. Raises OSError."""
        self._runner = await self._runner_of(self._application)
        return await self._sockets.bind(address, port, self._connection)

    async def replace(
        self,
        application: web.Application,
        refusal: Callable[[int, str], web.Response],
        is_known: Callable[[str], bool] = lambda origin: False,
    ) -> None:
        """Serve another application from now on, see the constructor; the earlier one ends its answers."""
        before, runner = self._runner, await self._runner_of(application)
        self._application, self._refusal, self._is_known = application, refusal, is_known
        self._runner = runner
        if before is not None:
            await before.cleanup()

    async def _runner_of(self, application: web.Application) -> web.AppRunner:
        from aiohttp import web

        runner = web.AppRunner(
            application,
            logger=log,
            access_log=None,
            shutdown_timeout=_STOP_S,
            handler_cancellation=self._cancels,
        )
        await runner.setup()
        return runner

    def _knows(self, origin: str) -> bool:
        return self._is_known(origin)

    def accept(self) -> None:
        """Begin to accept connections."""
        self._sockets.accept()

    async def stop(self) -> None:
        """Stop listening, and end all connections. A second call does nothing."""
        self._sockets.close()
        await self._sockets.wait_closed()
        self.connections.abort()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def _connection(self) -> asyncio.BaseProtocol:
        return LimitedConnection(
            self.connections, self._handler, self._limits.seconds, self._limits.request_bytes
        )

    def _handler(self, connection: LimitedConnection) -> QuietRequestHandler | None:
        from msmqwire.service.page_requests import PageRequestHandler

        server = None if self._runner is None else self._runner.server
        return None if server is None else PageRequestHandler(connection, server, self._refusal)

    @staticmethod
    def extend(request: web.BaseRequest, seconds: float) -> None:
        """Let the connection of a request last for a number of seconds from now: its answer takes long."""
        from msmqwire.service.page_requests import PageRequestHandler

        if isinstance(request.protocol, PageRequestHandler):
            request.protocol.connection.last(seconds)

    @staticmethod
    def logged_in(request: web.BaseRequest, seconds: float, login: str) -> None:
        """Let the connection of a request with a login last for a number of seconds from now."""
        from msmqwire.service.page_requests import PageRequestHandler

        handler = request.protocol
        if isinstance(handler, PageRequestHandler):
            handler.connection.logged_in(seconds, login)
