"""The protocol of aiohttp for all servers: a malformed request gets a short refusal and a line of the log."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import Final

from aiohttp import web

from msmqwire.names.printable import cut
from msmqwire.service.connection import PeerConnection
from msmqwire.service.logs import log

_REASON_MAX: Final = 100
"""Limit of characters of aiohttp's text, which repeats some of the bytes received."""


class QuietRequestHandler(web.RequestHandler, ABC):
    """The requests of one connection.

    The handler of aiohttp logs a traceback for each malformed request, and its answer repeats some of it.

    Attributes:
        connection: its connection.
    """

    def __init__(
        self,
        connection: PeerConnection,
        server: web.Server,
        *,
        keep_alive_s: float,
        line_max: int,
        fields_max: int,
    ) -> None:
        """Handle the requests of a connection.

        Args:
            connection: the connection.
            server: the server of aiohttp that answers them.
            keep_alive_s: seconds that the connection may have no request.
            line_max: bytes of a line of a head.
            fields_max: the number of fields of a head.
        """
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            keepalive_timeout=keep_alive_s,
            logger=log,
            access_log=None,  # type: ignore[arg-type]  # its own servers pass it, too
            max_line_size=line_max,
            max_field_size=line_max,
            max_headers=fields_max,
            lingering_time=0,  # the connection has its own end
            auto_decompress=False,  # no client compresses, and a few bytes could become many
        )
        self.connection = connection

    @abstractmethod
    def refusal(self, status: int) -> web.Response:
        """Return the answer to a request that can't be served."""

    @abstractmethod
    def failed(self, exc: BaseException | None) -> None:
        """Report a request that failed because of a fault here."""

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Return the answer to a malformed request, or to one that failed because of a fault here."""
        if status == web.HTTPBadRequest.status_code:
            details = {"peer": self.connection.address, "reason": cut(message or str(exc), _REASON_MAX)}
            log.info("not an HTTP request", extra=details)
        else:
            self.failed(exc)
        if request.writer is not None and request.writer.output_size > 0:
            raise ConnectionError("an answer has begun")
        response = self.refusal(status)
        response.force_close()
        return response
