"""HTTP and HTTPS requests from other computers, passed on to the engine: [MC-MQSRM] 2.1.1.

The engine answers valid requests for a queue; all other requests are answered here.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from functools import partial
from typing import Final, Protocol, cast

from aiohttp import HttpVersion, StreamReader, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import RawRequestMessage

from msmqwire.errors import InvalidValue
from msmqwire.qm.model.refusals import MEMORY, QUOTA
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.qm.runtime.http.connection import READ_MAX, HttpConnection, HttpRequestHandler, answer
from msmqwire.qm.runtime.http.handshakes import Handshakes
from msmqwire.qm.runtime.http.traffic import HttpTraffic
from msmqwire.qm.runtime.limits import Limits
from msmqwire.service.descriptors import OpenConnections
from msmqwire.service.listener import Listener
from msmqwire.service.logs import log
from msmqwire.srmp.fields import CONTENT_LENGTH, TRANSFER_ENCODING, Field
from msmqwire.srmp.http_message import HEADER_FIELDS, HOST, HTTP_1_1, Chunking, HttpMessage, RequestLine

RETRY_AFTER_S: Final = 5
"""Seconds after which a peer that was turned away may try again."""
_POLL_S: Final = 0.005
_ROOT: Final = "/msmq/"
_CONTENT_ENCODING: Final = "Content-Encoding"
_CHUNKED: Final = "chunked"
_OF_BROWSERS: Final = ("origin", "sec-fetch-site")
"""Fields that browsers send with each POST, and no queue manager sends."""
_POST: Final = "POST"
_ABSOLUTE: Final = re.compile(r"https?://[^/?#]*", re.IGNORECASE)
_HOST: Final = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z\-._~!$&'()*+,;=%]*)(?::[0-9]*)?")
_FOR_ROOM: Final = {413: QUOTA, 503: MEMORY}
"""The reasons in the trace for statuses that report a lack of room."""
_VERSIONS: Final = (HttpVersion(1, 0), HttpVersion(1, 1))


class HttpReceiver(Protocol):
    """The engine, as far as incoming requests go."""

    def requested(self, request: int, http: HttpMessage, address: str, local_address: str) -> None:
        """A request has come in: one `HttpResponse` of this number answers it."""


class _RequestRefused(Exception):
    """A request that the engine does not see."""

    def __init__(self, status: int, field: tuple[str, str] | None = None) -> None:
        super().__init__(status)
        self.status, self.field = status, field


class HttpListener(Listener[HttpConnection]):
    """Receives requests.

    Attributes:
        limits: the limits on peers.
        application: answers requests for aiohttp.
        traffic: counters.
    """

    def __init__(
        self,
        driver: EngineDriver,
        engine: HttpReceiver,
        limits: Limits,
        traffic: HttpTraffic,
        open_connections: OpenConnections,
    ) -> None:
        most = limits.listener(
            limits.http_connections, limits.http_connections_per_peer, limits.http_held_bytes
        )
        super().__init__("HTTP", most, traffic, open_connections, self._too_much_held, driver.is_known)
        self._driver, self._engine = driver, engine
        self.limits, self.traffic = limits, traffic
        self._handshakes: Handshakes[HttpConnection] = Handshakes(
            driver.core.context.settings, driver.core.messages.pool.known,
            limits.tls_handshakes_per_peer, asyncio.get_running_loop().time,
        )  # fmt: skip
        self.application = web.Server(self._answer, request_factory=_request)
        self._waiting_bytes = 0
        self._answers: dict[int, asyncio.Future[int]] = {}
        self._requests = 0

    # -- listening ------------------------------------------------------------------------------------------

    async def bind(self, address: str, port: int, context: ssl.SSLContext | None = None) -> int:
        """Listen at one more address; connections wait for `accept`.

        Returns the port, which the system chooses for 0. Raises OSError.
        """
        return await self.bind_at(address, port, partial(HttpConnection, self, context))

    async def finish(self) -> None:
        """Wait until the requests under way are answered, for at most `Limits.close_s`."""
        try:
            async with asyncio.timeout(self.limits.close_s):
                while any(connection.busy for connection in self):
                    await asyncio.sleep(_POLL_S)
        except TimeoutError:
            log.warning("HTTP requests are left unanswered", extra={"waiting": len(self._answers)})

    async def close(self) -> None:
        """End all connections once their peers have read the answers, or after `Limits.close_s`."""
        self.stop_listening()
        for future in self._answers.values():
            _set(future, 503)
        if self._answers:
            await self.finish()
        await super().close()
        await self.application.shutdown(0)

    def begins_handshake(self, connection: HttpConnection) -> bool:
        """Note a TLS handshake; return False if its origin has caused too much work with keys."""
        if self._handshakes.begin(connection):
            return True
        self.traffic.refused += 1
        log.warning("a TLS handshake is refused: too many of late", extra={"peer": connection.address})
        return False

    def ends_handshake(self, connection: HttpConnection) -> None:
        """A TLS handshake has ended."""
        self._handshakes.end(connection)

    def _too_much_held(self, connection: HttpConnection) -> None:
        self.traffic.turned_away += 1
        self._driver.trace_refused(MEMORY, connection.address, "too many bytes of incomplete requests")

    # -- requests -------------------------------------------------------------------------------------------

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request whose head aiohttp has read."""
        connection = cast(HttpRequestHandler, request.protocol).connection
        connection.begin_request()
        try:
            http = await self._read(request, connection)
            status = await self._ask(http, connection)
            return answer(status, close=self.is_stopping)  # SRMP-2.1.1-01
        except _RequestRefused as refused:
            self.traffic.turned_away += 1
            details = {"peer": connection.address, "status": refused.status}
            log.info("an HTTP request is refused", extra=details)
            if refused.status in _FOR_ROOM:  # other requests are not messages
                self._driver.trace_refused(
                    _FOR_ROOM[refused.status], connection.address, f"HTTP {refused.status}"
                )
            connection.discard()
            return answer(refused.status, close=True, field=refused.field)
        finally:
            connection.begin_answer()

    async def _read(self, request: web.BaseRequest, connection: HttpConnection) -> HttpMessage:
        """Return a complete request. Raises _RequestRefused."""
        start, fields = _head(request)
        _check_target(start)
        values = _checked_values(fields, start.version)
        if self.is_stopping or len(self._answers) >= self.limits.http_requests:
            raise _full()
        most = self.limits.http_request_bytes
        if (request.content_length or 0) > most:
            raise _RequestRefused(413)
        if expected := values.get("expect"):
            if expected[0].lower() != "100-continue":
                raise _RequestRefused(417)
            if start.version == HTTP_1_1 and not request.content.is_eof():
                connection.go_on()
        entity = await self._entity(request, connection, most)
        connection.end_request()
        self.spoke(connection)
        self.held.forget(connection)
        if self._waiting_bytes + len(entity) > self.limits.http_held_bytes:
            raise _full()
        chunked = TRANSFER_ENCODING.lower() in values
        chunking = Chunking((f"{len(entity):x}", "0") if entity else ("0",)) if chunked else None
        return HttpMessage(start, fields, entity, chunking)  # SRMP-2.1.1-01 and SRMP-2.1.2-05

    async def _entity(self, request: web.BaseRequest, connection: HttpConnection, most: int) -> bytes:
        before, chunks, size = connection.held, [], 0
        try:
            while chunk := await request.content.readany():
                chunks.append(chunk)
                size += len(chunk)
                # The lines of small chunks take the most bytes and time.
                if size > most or connection.held - before > most + READ_MAX:
                    raise _RequestRefused(413)
        except web.RequestPayloadError:
            raise _RequestRefused(400) from None
        except OSError:  # the connection has ended
            raise _RequestRefused(408) from None
        return b"".join(chunks)

    async def _ask(self, http: HttpMessage, connection: HttpConnection) -> int:
        """Pass a request to the engine; return its answer."""
        self._requests += 1
        number, future = self._requests, _future()
        self._answers[number] = future
        self._waiting_bytes += len(http.entity)
        self.traffic.requests += 1
        watch = partial(_gone, future)
        connection.gone.add_done_callback(watch)
        try:
            self._driver.notify(
                self._engine.requested, number, http, connection.address, connection.local_address
            )
            return await future
        finally:
            connection.gone.remove_done_callback(watch)
            del self._answers[number]
            self._waiting_bytes -= len(http.entity)

    def respond(self, number: int, status: int) -> None:
        """Answer a request; nothing if its connection is closed by now."""
        future = self._answers.get(number)
        if future is not None:
            _set(future, status)


def _request(
    message: RawRequestMessage,
    payload: StreamReader,
    protocol: web.RequestHandler,
    writer: AbstractStreamWriter,
    task: asyncio.Task[None],
) -> web.BaseRequest:
    """Return a request as aiohttp makes it, except that its answer has a supported version."""
    other = message.version not in _VERSIONS
    if other:
        message = message._replace(version=_VERSIONS[1])
    cast(HttpRequestHandler, protocol).other_version = other
    return web.BaseRequest(message, payload, protocol, writer, task, asyncio.get_running_loop())


def _future() -> asyncio.Future[int]:
    return asyncio.get_running_loop().create_future()


def _set(future: asyncio.Future[int], status: int) -> None:
    if not future.done():
        future.set_result(status)


def _gone(future: asyncio.Future[int], _: asyncio.Future[None]) -> None:
    _set(future, 503)


def _full() -> _RequestRefused:
    return _RequestRefused(503, ("Retry-After", str(RETRY_AFTER_S)))


def _head(request: web.BaseRequest) -> tuple[RequestLine, tuple[Field, ...]]:
    """Return the head as it was sent, except for blanks around values. Raises _RequestRefused for a malformed
    one.
    """
    version = request.version
    if cast(HttpRequestHandler, request.protocol).other_version:
        raise _RequestRefused(505)
    start = RequestLine(request.method, request.raw_path, f"HTTP/{version.major}.{version.minor}")
    fields = tuple(
        Field(name.decode("latin-1"), value.decode("latin-1")) for name, value in request.raw_headers
    )
    try:
        start.to_bytes()
        for field in fields:
            field.to_bytes(HEADER_FIELDS)
    except InvalidValue:
        raise _RequestRefused(400) from None
    return start, fields


def _check_target(start: RequestLine) -> None:
    """Raise _RequestRefused for anything but a POST to a queue."""
    target = start.target
    absolute = _ABSOLUTE.match(target)  # RFC 9112 3.2.2: it must be accepted
    path = target[absolute.end() :] if absolute else target
    if not path.lower().startswith(_ROOT):
        raise _RequestRefused(404)
    if start.method != _POST:
        raise _RequestRefused(405, ("Allow", _POST))


def _checked_values(fields: tuple[Field, ...], version: str) -> dict[str, list[str]]:
    """Return the values of the fields by their names in lower case.

    Raises _RequestRefused for fields that the parsers of aiohttp accept, or would act on themselves.
    """
    values: dict[str, list[str]] = {}
    for field in fields:
        values.setdefault(field.name.lower(), []).append(field.value)
    hosts, lengths, codings = (
        values.get(name.lower(), []) for name in (HOST, CONTENT_LENGTH, TRANSFER_ENCODING)
    )
    if len(hosts) > 1 or len(lengths) > 1 or len(codings) > 1:
        raise _RequestRefused(400)
    if not hosts and version == HTTP_1_1:  # RFC 9112 3.2
        raise _RequestRefused(400)
    if hosts and not _HOST.fullmatch(hosts[0]):
        raise _RequestRefused(400)
    if codings:  # RFC 9112 6.1
        codings = [text.strip(" \t").lower() for text in codings[0].split(",")]
        if version != HTTP_1_1 or lengths:
            raise _RequestRefused(400)
        if codings[-1] != _CHUNKED or codings.count(_CHUNKED) > 1:
            raise _RequestRefused(400)
        if len(codings) > 1:
            raise _RequestRefused(501)
    if any(name in values for name in _OF_BROWSERS):
        # A page whose name was made to lead here would reach a port that its author can't.
        raise _RequestRefused(403)
    for coding in values.get(_CONTENT_ENCODING.lower(), ()):
        if coding.lower() not in ("", "identity"):
            raise _RequestRefused(415)
    return values
