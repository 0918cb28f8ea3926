"""The requests of a connection for pages: a fault of a page is answered and logged, and serving goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from aiohttp import web

from msmqwire.service.limited_connection import LimitedConnection
from msmqwire.service.logs import log
from msmqwire.service.request_handler import QuietRequestHandler

_KEEP_ALIVE_S: Final = 75.0
_LINE_MAX: Final = 4096
_FIELDS_MAX: Final = 64


class PageRequestHandler(QuietRequestHandler):
    """The requests of one connection.

    Attributes:
        connection: its connection.
    """

    connection: LimitedConnection

    def __init__(
        self,
        connection: LimitedConnection,
        server: web.Server,
        refusal: Callable[[int, str], web.Response],
    ) -> None:
        """Handle the requests of a connection.

        Args:
            connection: the connection.
            server: the server of aiohttp with the pages.
            refusal: returns the answer to a request that can't be served, by its status and the reason.
        """
        super().__init__(
            connection, server, keep_alive_s=_KEEP_ALIVE_S, line_max=_LINE_MAX, fields_max=_FIELDS_MAX
        )
        self._refusal = refusal

    def refusal(self, status: int) -> web.Response:
        """See `QuietRequestHandler.refusal`."""
        if status == web.HTTPBadRequest.status_code:
            return self._refusal(status, "not an HTTP request")
        return self._refusal(status, "a fault of msmqwire itself: the log has more")

    def failed(self, exc: BaseException | None) -> None:
        """See `QuietRequestHandler.failed`."""
        log.error("a request for a page can't be answered", exc_info=exc)
