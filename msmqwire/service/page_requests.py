"""The protocol of aiohttp for pages: malformed requests get a short refusal, and one line of the log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from aiohttp import web

from msmqwire.names.printable import cut
from msmqwire.service.logs import log

_KEEP_ALIVE_S: Final = 75.0
_LINE_MAX: Final = 4096
_FIELDS_MAX: Final = 64
_REASON_MAX: Final = 100
"""Limit of characters of aiohttp's text, which repeats some of the bytes received."""


class PageRequestHandler(web.RequestHandler):
    """The requests of one connection.

    Args:
        server: the server of aiohttp with the pages.
        refuse: returns the answer to a request that can't be served, by its status and the reason.
    """

    def __init__(self, server: web.Server, refuse: Callable[[int, str], web.Response]) -> None:
        self._refuse = refuse
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            logger=log,
            access_log=None,  # type: ignore[arg-type]  # its own servers pass it, too
            lingering_time=0,
            keepalive_timeout=_KEEP_ALIVE_S,
            max_line_size=_LINE_MAX,
            max_field_size=_LINE_MAX,
            max_headers=_FIELDS_MAX,
        )

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Return the answer to a malformed request, or to one that failed because of a fault here."""
        if status == web.HTTPBadRequest.status_code:
            details = {"peer": request.remote, "reason": cut(message or str(exc), _REASON_MAX)}
            log.info("not an HTTP request", extra=details)
            response = self._refuse(status, "not an HTTP request")
        else:
            log.error("a request for a page can't be answered", exc_info=exc)
            response = self._refuse(status, "a fault of msmqwire itself: the log has more")
        response.force_close()
        return response
