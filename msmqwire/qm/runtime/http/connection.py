"""One incoming connection of HTTP: the layer between its socket and aiohttp.

aiohttp parses a request strictly; it waits for one without limit, and buffers the bytes after it. So the head
of a request is held back here until it is complete, further bytes until the previous request is answered, and
each step has a time limit.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Callable, Iterable
from enum import Enum, auto
from typing import Any, Final, Protocol, cast

from aiohttp import web

from msmqwire.qm.runtime.limits import Limits
from msmqwire.service.connection import PeerConnection
from msmqwire.service.logs import log
from msmqwire.service.request_handler import QuietRequestHandler
from msmqwire.srmp.fields import FIELD_COUNT_MAX, HEAD_SIZE_MAX

_HEAD_END: Final = re.compile(rb"\n\r?\n")
"""The end of a head; malformed heads match as well, and aiohttp then refuses them."""
_OVERLAP: Final = len(b"\n\r\n") - 1
READ_MAX: Final = 1 << 18
"""The most bytes that asyncio passes on at once, which may include bytes of the next request."""
_TOO_LARGE: Final = b"413 Content Too Large"
_HEAD_TOO_LARGE: Final = b"431 Request Header Fields Too Large"
_TOO_SLOW: Final = b"408 Request Timeout"
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_EOF_S: Final = 0.1
"""Seconds after the end of a peer's data in which aiohttp has to find a complete request."""
SERVER: Final = "msmqwire"
"""The value of the field Server, which shows no version."""


class HttpConnectionOwner(Protocol):
    """The owner of connections, to which they report."""

    @property
    def limits(self) -> Limits:
        """The limits on peers."""

    @property
    def application(self) -> web.Server:
        """The application that answers the requests."""

    def admit(self, connection: HttpConnection) -> bool:
        """A connection has come in; return False to refuse it."""

    def begins_handshake(self, connection: HttpConnection) -> bool:
        """A connection begins TLS; return False to end it."""

    def ends_handshake(self, connection: HttpConnection) -> None:
        """TLS of a connection is established, or has failed."""

    def holds(self, connection: HttpConnection, received: int) -> None:
        """A connection holds `connection.held` bytes of requests, after `received` more."""

    def remove(self, connection: HttpConnection) -> None:
        """A connection that was admitted is closed."""


class _Stage(Enum):
    HEAD = auto()  # the head of a request is awaited
    BODY = auto()  # the head is passed on, and further bytes as they come
    ANSWER = auto()  # the request is complete, and its answer awaited


class HttpRequestHandler(QuietRequestHandler):
    """The protocol of aiohttp, with answers that carry only their status.

    Attributes:
        connection: its connection.
        other_version: whether the request has an unsupported HTTP version.
    """

    connection: HttpConnection

    def __init__(self, connection: HttpConnection, application: web.Server, limits: Limits) -> None:
        super().__init__(
            connection,
            application,
            # Our own time limits are shorter: these would not apply to a head that is held back.
            keep_alive_s=2 * (limits.http_idle_s + limits.http_read_s),
            line_max=HEAD_SIZE_MAX,
            fields_max=FIELD_COUNT_MAX,
        )
        self.other_version = False

    def refusal(self, status: int) -> web.Response:
        """See `QuietRequestHandler.refusal`."""
        return answer(status)

    def failed(self, exc: BaseException | None) -> None:
        """See `QuietRequestHandler.failed`: it ends the server."""
        context = {"message": "an HTTP request can't be answered", "exception": exc}
        asyncio.get_running_loop().call_exception_handler(context)

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Write an answer; then the connection continues."""
        try:
            return await super().finish_response(request, resp, start_time)
        finally:
            self.connection.answered()


def answer(status: int, *, close: bool = False, field: tuple[str, str] | None = None) -> web.Response:
    """Return an answer without content. `close` ends the connection after it."""
    fields = [("Content-Length", "0"), ("Server", SERVER)]  # SRMP-2.1.1-12
    response = web.Response(status=status, headers=[*fields, field] if field else fields)
    if close:
        response.force_close()
    return response


class HttpConnection(PeerConnection):
    """An incoming connection.

    Attributes:
        held: bytes of requests that were received and not answered.
        busy: whether a request is being read or answered.
    """

    def __init__(self, owner: HttpConnectionOwner, context: ssl.SSLContext | None) -> None:
        """`context` is for TLS with HTTPS, None for HTTP."""
        super().__init__()
        self._owner, self._context = owner, context
        self.held = 0
        self._unwanted_max = owner.limits.unwanted_bytes
        self._held_max = owner.limits.http_request_bytes + HEAD_SIZE_MAX + 2 * READ_MAX
        self._flow: _Flow | None = None
        self._handler: HttpRequestHandler | None = None
        self._handshake: asyncio.Task[None] | None = None
        self._stage = _Stage.HEAD
        self._ahead = bytearray()  # held back
        self._scanned = 0  # bytes of it without the end of a head
        self._passed = b""  # the last bytes not searched
        self._discards = self._eof = False
        self.busy = False

    # -- beginning and end ----------------------------------------------------------------------------------

    def _begin(self, transport: asyncio.Transport) -> bool:
        if not self._owner.admit(self):
            return False
        if self._context is None:  # SRMP-2.1.1-02
            self._begin_http(transport)
        else:
            transport.pause_reading()  # until TLS takes over
            shake = self._start_tls(transport, self._context)
            self._handshake = asyncio.get_running_loop().create_task(shake)
        return True

    async def _start_tls(self, transport: asyncio.Transport, context: ssl.SSLContext) -> None:
        limits, loop = self._owner.limits, asyncio.get_running_loop()
        try:
            if not self._owner.begins_handshake(self):
                transport.abort()
                return
            secured = await loop.start_tls(
                transport, self, context, server_side=True,
                ssl_handshake_timeout=limits.tls_handshake_s, ssl_shutdown_timeout=limits.close_s,
            )  # fmt: skip
        except OSError as exc:
            log.info("no TLS", extra={"peer": self.address, "error": str(exc) or type(exc).__name__})
            self._end_without_tls(transport)
        else:
            if secured is None or transport.is_closing():
                self._end_without_tls(transport)
            elif not self.gone.done():
                self._begin_http(secured)
        finally:
            self._owner.ends_handshake(self)

    def _end_without_tls(self, transport: asyncio.Transport) -> None:
        """End a connection whose handshake has ended early: asyncio may report the end to TLS alone."""
        transport.abort()
        self.connection_lost(None)

    def _begin_http(self, transport: asyncio.Transport) -> None:
        self._flow = _Flow(transport, self.close)
        self._handler = HttpRequestHandler(self, self._owner.application, self._owner.limits)
        self._handler.connection_made(cast(asyncio.Transport, self._flow))
        if self.held:  # it came together with the end of the handshake
            self._look_for_head()
        else:
            self._wait(self._owner.limits.http_idle_s)

    def _lost(self, reason: Exception | None) -> None:
        if self._handler is not None:
            self._handler.connection_lost(reason)
        self._ahead.clear()
        if self._admitted:
            self._owner.remove(self)

    def close(self) -> None:
        """End the connection once the peer has read all written data, or after `Limits.close_s`."""
        flow = self._flow
        if flow is None:
            self.abort()
            return
        if self._is_ending:
            return
        self._is_ending = flow.ended = True
        self._ahead.clear()
        self._wait(self._owner.limits.close_s)
        if self._eof or not flow.transport.can_write_eof():  # TLS can't close one direction alone
            flow.transport.close()
            return
        flow.hold(False)
        self._send_end(flow.transport)

    def _wait(self, seconds: float) -> None:
        """Set the time after which the connection ends."""
        if not self.gone.done():
            self._after(seconds, self._time_is_over)

    def _time_is_over(self) -> None:
        if self._eof and self._stage is _Stage.HEAD and not self._is_ending:
            self.close()
            return
        if not self.held or self._is_ending:
            self.abort()
            return
        log.info("an HTTP request takes too long", extra={"peer": self.address, "bytes": self.held})
        self._refuse(_TOO_SLOW)

    # -- requests -------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        if self._is_ending or self._discards:
            self._drop(data, self._unwanted_max)
            return
        if not self.held:
            self._wait(self._owner.limits.http_read_s)
        self.held += len(data)
        self._owner.holds(self, len(data))
        if self._stage is _Stage.BODY:
            if self.held > self._held_max:
                self._end_endless()
            else:
                self._pass_on(data)
            return
        self._ahead += data
        if self._stage is _Stage.HEAD:
            self._look_for_head()
        elif self._flow is not None:
            self._flow.hold(True)

    def _end_endless(self) -> None:
        """End a request whose lines go on and on: aiohttp reads chunk extensions and trailers of any length,
        and passes on none of their bytes. No honest peer has to be given time for the rest of it.
        """
        self._unwanted_max = READ_MAX
        log.info("an HTTP request is too long", extra={"peer": self.address, "bytes": self.held})
        self._refuse(_TOO_LARGE)

    def _look_for_head(self) -> None:
        """Pass the head on once it is complete, and further bytes."""
        if self._handler is None:
            return  # the handshake has not quite ended
        # A part of the head may have been passed on together with the request before it.
        start = max(0, self._scanned - _OVERLAP)
        before = self._passed[-_OVERLAP:] if not start else b""
        found = None
        for match in _HEAD_END.finditer(before + self._ahead[start:]):
            if match.end() > len(before):
                found = start - len(before) + match.end()
                break
        self._scanned = len(self._ahead)
        if (found or self._scanned) > HEAD_SIZE_MAX:
            log.info("the head of an HTTP request is too long", extra={"peer": self.address})
            self._refuse(_HEAD_TOO_LARGE)
        elif found is not None:
            self._stage = _Stage.BODY
            self._release()

    def _release(self) -> None:
        data = bytes(self._ahead)
        self._ahead.clear()
        self._scanned = 0
        if data:
            self._pass_on(data)

    def _pass_on(self, data: bytes) -> None:
        self._passed = (self._passed + data)[-_OVERLAP:]
        if self._handler is not None:
            self._handler.data_received(data)

    def _refuse(self, status: bytes) -> None:
        """Send an answer past aiohttp, and end the connection."""
        if self._flow is not None:
            self._flow.write(b"HTTP/1.1 %b\r\nContent-Length: 0\r\nConnection: close\r\n\r\n" % status)
        self.close()

    def begin_request(self) -> None:
        """aiohttp has read the head of a request."""
        self.busy = True
        if self._stage is _Stage.HEAD:  # it came together with the request before it
            self._wait(self._owner.limits.http_read_s)
            self._stage = _Stage.BODY
            self._release()

    def go_on(self) -> None:
        """Let the peer continue its request: RFC 9110 10.1.1."""
        if self._flow is not None:
            self._flow.write(_CONTINUE)

    def end_request(self) -> None:
        """The last byte of a request was read: the bytes of the next one have to wait."""
        self._stage = _Stage.ANSWER
        self._cancel_timer()

    def discard(self) -> None:
        """A request is refused, and the connection ends after the answer: discard all further bytes."""
        self._discards = True
        self._ahead.clear()

    def begin_answer(self) -> None:
        """A request has its answer, and the peer has to read it."""
        self._wait(self._owner.limits.http_idle_s)

    def answered(self) -> None:
        """An answer is written; the next request may come."""
        self.busy = False
        if self.gone.done() or self._is_ending:
            return
        limits = self._owner.limits
        self._stage, self.held = _Stage.HEAD, len(self._ahead)
        self._owner.holds(self, 0)
        self._wait(_EOF_S if self._eof else limits.http_read_s if self.held else limits.http_idle_s)
        if self._flow is not None:
            self._flow.hold(False)
        if self.held:
            self._look_for_head()

    def eof_received(self) -> bool:
        """Return whether the connection stays open: a peer that has sent all may still read the answers."""
        if self._is_ending or self._flow is None or not self._flow.transport.can_write_eof():
            return False
        self._eof = True
        if self._stage is not _Stage.ANSWER:
            self._wait(_EOF_S)
        return True

    def pause_writing(self) -> None:
        if self._handler is not None:
            self._handler.pause_writing()

    def resume_writing(self) -> None:
        if self._handler is not None:
            self._handler.resume_writing()


class _Flow:
    """The transport that aiohttp sees.

    Reading pauses while aiohttp or the connection asks for it; `close` is that of the connection.
    """

    def __init__(self, transport: asyncio.Transport, close: Callable[[], None]) -> None:
        self.transport, self.close = transport, close
        self.ended = False
        self._held = self._paused = False

    def write(self, data: bytes) -> None:
        """See `asyncio.WriteTransport.write`; nothing is written after the end."""
        if not self.ended:
            self.transport.write(data)

    def writelines(self, chunks: Iterable[bytes]) -> None:
        """See `asyncio.WriteTransport.writelines`."""
        self.write(b"".join(chunks))

    def hold(self, held: bool) -> None:
        """Stop or resume reading, for the connection."""
        self._held = held
        self._update()

    def pause_reading(self) -> None:
        """See `asyncio.ReadTransport.pause_reading`, for aiohttp."""
        self._paused = True
        self._update()

    def resume_reading(self) -> None:
        """See `asyncio.ReadTransport.resume_reading`, for aiohttp."""
        self._paused = False
        self._update()

    def _update(self) -> None:
        if self._held or self._paused:
            self.transport.pause_reading()
        elif not self.transport.is_closing():
            self.transport.resume_reading()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.transport, name)
