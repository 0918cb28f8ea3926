"""HTTP and HTTPS requests to other computers: [MC-MQSRM] 2.1.1, 3.1.7.2.5.

A request goes out as the engine has made it, and ends with a status or with the reason why there is none.
"""

from __future__ import annotations

import asyncio
import io
import socket
import ssl
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from functools import partial
from ipaddress import ip_address
from typing import Any, Final, Protocol
from urllib.parse import quote

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.payload import BytesIOPayload
from yarl import URL

from msmqwire.names.printable import counted, in_seconds
from msmqwire.qm.runtime.addresses import AddressOverrides, no_connection
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.qm.runtime.http.traffic import HttpTraffic
from msmqwire.qm.runtime.limits import Limits
from msmqwire.qm.runtime.resolver import NameResolver
from msmqwire.service.descriptors import OpenConnections
from msmqwire.service.endpoints import canonical
from msmqwire.service.logs import log
from msmqwire.srmp.http_message import HttpMessage, RequestLine

_KEEP_ALIVE_S: Final = 15.0
"""Seconds that an idle connection is kept: less than servers do, which might end it during a request."""
_DRAIN_S: Final = 1.0
"""Seconds in which the content of an answer has to come; only its end matters."""
_SCHEMES: Final = ("http", "https")
_STATUSES: Final = range(100, 600)
_TARGET_CHARACTERS: Final = "".join(map(chr, range(0x21, 0x7F)))
_REASON_MAX: Final = 300
_OWN_FIELDS: Final = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type", "Content-Disposition")


_PEER: Final[ContextVar[str]] = ContextVar("_PEER", default="")
"""The destination address of a task's request."""
_REQUEST: Final[ContextVar[int]] = ContextVar("_REQUEST")
"""The number of the request of a task."""


class HttpAnswered(Protocol):
    """The engine, as far as outgoing requests go."""

    def reached(self, request: int, address: str) -> None:
        """A request is being sent over a connection to an address."""

    def answered(self, request: int, status: int, address: str, text: str) -> None:
        """A request has an answer from an address: a status and its text."""

    def failed(self, request: int, reason: str) -> None:
        """A request has no answer."""


class HttpSender:
    """Sends requests, several to one host at once, over reused connections.

    Redirects are answers like any other, and the environment's proxies are not used.
    """

    def __init__(
        self,
        driver: EngineDriver,
        engine: HttpAnswered,
        limits: Limits,
        traffic: HttpTraffic,
        open_connections: OpenConnections,
        resolver: NameResolver,
        overrides: AddressOverrides,
        context: ssl.SSLContext,
    ) -> None:
        self._driver, self._engine, self._limits, self._traffic = driver, engine, limits, traffic
        self._overrides = overrides
        self._tasks: set[asyncio.Task[None]] = set()
        self._most = min(limits.http_out_connections, open_connections.quarter)
        open_connections.add(self._count)
        connector = _Connector(
            limits.http_response_bytes,
            lambda request: driver.notify(engine.reached, request, _PEER.get()),
            resolver=_Resolver(resolver, overrides),
            use_dns_cache=False,
            ssl=context,
            limit=self._most,
            limit_per_host=limits.http_out_per_host,
            keepalive_timeout=_KEEP_ALIVE_S,
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            timeout=aiohttp.ClientTimeout(total=limits.http_send_s, sock_connect=limits.connect_s),
        )

    def send(self, request: int, url: str, message: HttpMessage) -> None:
        """Send a request to the server of `url`; its answer is reported to the engine."""
        task = asyncio.get_running_loop().create_task(self._send(request, url, message))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """End all connections; requests under way get no answer."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._session.close()
        await asyncio.sleep(0)  # transports close their sockets in the next turn

    def _count(self) -> tuple[int, int]:
        """Return the limits of incoming and outgoing connections."""
        return 0, self._most

    async def _send(self, request: int, url: str, message: HttpMessage) -> None:
        self._traffic.sent += 1
        _REQUEST.set(request)
        try:
            await self._exchange(request, url, message)
        except TimeoutError:
            reason = f"no answer in {in_seconds(self._limits.http_send_s)}"
        except (aiohttp.ClientError, OSError, ValueError) as exc:
            reason = _reason(exc)
        except Exception as exc:  # no answer of a peer may end this
            log.error("a fault in sending by HTTP", exc_info=exc, extra={"url": url})
            reason = repr(exc)
        else:
            return
        self._traffic.send_failed += 1
        log.info("an HTTP request has no answer", extra={"url": url, "error": reason})
        self._driver.notify(self._engine.failed, request, reason)

    async def _exchange(self, request: int, url: str, message: HttpMessage) -> None:
        start = message.start
        if not isinstance(start, RequestLine):
            raise ValueError("not a request")
        place, name = self._place(URL(url, encoded=True))
        if place.scheme not in _SCHEMES or not place.raw_host:
            raise ValueError(f"{url!r:.200} is not a URL of HTTP")
        # The target is sent as it is, not normalised as a URL, except for invalid characters.
        path = quote(start.target, safe=_TARGET_CHARACTERS)
        # SRMP-2.1.1-02
        target = URL.build(scheme=place.scheme, host=place.raw_host, port=place.port, path=path, encoded=True)
        async with self._session.request(
            start.method,  # SRMP-2.1.1-01
            target,
            data=BytesIOPayload(io.BytesIO(message.entity)),
            headers=[(field.name, field.value) for field in message.fields],
            skip_auto_headers=_OWN_FIELDS,
            allow_redirects=False,
            server_hostname=name,
        ) as response:
            if response.status not in _STATUSES:
                raise ValueError(f"{response.status} is not an HTTP status")
            text = response.reason or ""
            self._driver.notify(self._engine.answered, request, response.status, _PEER.get(), text)
            log.debug("sent by HTTP", extra={"url": url, "status": response.status})
            await _drain(response)

    def _place(self, url: URL) -> tuple[URL, str | None]:
        """Return the address to connect to, and the name in the certificate if it differs."""
        host = url.raw_host or ""
        override = self._overrides.hosts.get(host.lower())
        if override is None or not _is_address(host):
            return url, None  # names are resolved later
        return url.with_host(override[0]), host if url.scheme == "https" else None


async def _drain(response: aiohttp.ClientResponse) -> None:
    """Read the content of an answer, so that its connection can be used again; else it is closed."""
    if response.content.at_eof():
        return
    try:
        async with asyncio.timeout(_DRAIN_S):
            async for _ in response.content.iter_any():
                pass
    except (aiohttp.ClientError, TimeoutError, OSError) as exc:
        log.debug("the content of an answer is not read", extra={"error": str(exc) or type(exc).__name__})
        response.close()


def _reason(exc: Exception) -> str:
    """Return the reason for a missing answer in one line."""
    match exc:
        case aiohttp.ClientConnectorCertificateError():
            text = f"its certificate is not accepted: {exc.certificate_error}"
        case aiohttp.ServerDisconnectedError():
            text = "the connection was ended before the answer"
        case aiohttp.ClientConnectorError():
            text = no_connection(exc.os_error, exc.host, exc.port or 0, exc.host)
        case aiohttp.ClientResponseError():
            text = f"not an HTTP answer: {exc.message}"
        case _:
            text = str(exc)
    return " ".join((text or type(exc).__name__).split())[:_REASON_MAX]


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


class _Resolver(AbstractResolver):
    """Resolves names for aiohttp."""

    def __init__(self, resolver: NameResolver, overrides: AddressOverrides) -> None:
        self._resolver, self._overrides = resolver, overrides

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the addresses of a host. Raises OSError if there are none."""
        name = self._overrides.hosts.get(host.lower(), (host, None))[0]
        addresses: Iterable[str] = (name,)
        if not _is_address(name):
            found: asyncio.Future[list[str]] = asyncio.get_running_loop().create_future()
            self._resolver.resolve(name, partial(_set, found), local=False)
            addresses = await found
        results = [_result(host, address, port) for address in addresses]
        if not results:
            raise OSError(f"{host} has no address")
        return [result for result in results if family in (socket.AF_UNSPEC, result["family"])]

    async def close(self) -> None:
        """Nothing is open."""


def _set(found: asyncio.Future[list[str]], addresses: list[str]) -> None:
    if not found.done():
        found.set_result(addresses)


def _result(host: str, address: str, port: int) -> ResolveResult:
    family = socket.AF_INET if ip_address(address).version == 4 else socket.AF_INET6
    return ResolveResult(
        hostname=host, host=address, port=port, family=family, proto=0,
        flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
    )  # fmt: skip


class _Connector(aiohttp.TCPConnector):
    """Opens connections with a limit on the bytes of an answer."""

    def __init__(self, response_bytes: int, reached: Callable[[int], None], **options: Any) -> None:
        super().__init__(**options)
        self._reached = reached
        self._factory = partial(_Response, response_bytes, self._loop)  # type: ignore[assignment]

    async def connect(self, req: aiohttp.ClientRequest, *rest: Any, **options: Any) -> Connection:
        """Return a connection for a request; note its address, and report it."""
        connection = await super().connect(req, *rest, **options)
        peer = connection.transport.get_extra_info("peername") if connection.transport else None
        _PEER.set(canonical(peer[0]) if peer else "")
        self._reached(_REQUEST.get())
        return connection


class _Response(ResponseHandler):
    """One connection: aiohttp would accept interim answers, and content, without limit."""

    def __init__(self, most: int, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._most, self._received = most, 0

    def set_response_params(self, **options: Any) -> None:
        self._received = 0
        super().set_response_params(**options)

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        if self._received > self._most and self.transport is not None:
            self.set_exception(
                aiohttp.ClientPayloadError(f"an answer of more than {counted(self._most, 'byte')}")
            )
            self.transport.abort()
            return
        super().data_received(data)
