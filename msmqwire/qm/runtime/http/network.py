"""HTTP and HTTPS of a queue manager, both directions: a `Carrier`.

aiohttp, of the extra ``[qm]``, is imported only by a queue manager that listens or sends.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from msmqwire.qm.protocols.srmp.effects import HttpRequest, HttpResponse
from msmqwire.qm.runtime.addresses import AddressOverrides
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.qm.runtime.http.traffic import HttpTraffic
from msmqwire.qm.runtime.transport import TcpNetwork
from msmqwire.service.carrier import Performers
from msmqwire.service.tls import client_context

if TYPE_CHECKING:
    from msmqwire.qm.runtime.http.listener import HttpListener
    from msmqwire.qm.runtime.http.sender import HttpSender
    from msmqwire.srmp.http_message import HttpMessage

_MISSING: Final = "HTTP needs aiohttp: install msmqwire[qm]"


class HttpEngine(Protocol):
    """The engine of SRMP, as its transport sees it."""

    def requested(self, request: int, http: HttpMessage, address: str, local_address: str) -> None:
        """A request has come in from an address, at an address of this computer.

        One `HttpResponse` of this number answers it.
        """

    def reached(self, request: int, address: str) -> None:
        """The request of an `HttpRequest` is being sent over a connection to an address."""

    def answered(self, request: int, status: int, address: str, text: str) -> None:
        """The request of an `HttpRequest` has an answer from an address: a status and its text."""

    def failed(self, request: int, reason: str) -> None:
        """The request of an `HttpRequest` has no answer."""


class HttpNetwork:
    """Listens and sends.

    Attributes:
        traffic: counters.
    """

    def __init__(
        self,
        driver: EngineDriver,
        engine: Callable[[], HttpEngine],
        network: TcpNetwork,
        *,
        overrides: AddressOverrides | None = None,
        context: ssl.SSLContext | None = None,
    ) -> None:
        """`engine` makes the engine on first use; `network` shares its limits, descriptors and resolver;
        `context` is for TLS to servers.
        """
        self._driver, self._engine, self._network = driver, engine, network
        self._overrides, self._context = overrides or AddressOverrides(), context
        self.traffic = HttpTraffic()
        self._listener: HttpListener | None = None
        self._sender: HttpSender | None = None
        self._closed = False

    async def listen(self, address: str, port: int, context: ssl.SSLContext | None = None) -> int:
        """Listen for HTTP requests, with `context` for HTTPS, which wait for `accept`.

        Returns the port. Raises OSError.
        """
        if self._listener is None:
            from msmqwire.qm.runtime.http.listener import HttpListener

            network = self._network
            self._listener = HttpListener(
                self._driver, self._engine(), network.limits, self.traffic, network.open_connections
            )
        return await self._listener.bind(address, port, context)

    def accept(self) -> None:
        """Begin to take requests."""
        if self._listener is not None:
            self._listener.accept()

    @property
    def performers(self) -> Performers:
        return {HttpRequest: self.request, HttpResponse: self.respond}

    def request(self, effect: HttpRequest) -> None:
        """Carry out `HttpRequest`."""
        request, url, message = effect
        if self._closed:
            return
        if self._sender is None:
            try:
                from msmqwire.qm.runtime.http.sender import HttpSender
            except ModuleNotFoundError:
                self._driver.notify(self._engine().failed, request, _MISSING)
                return
            network = self._network
            self._sender = HttpSender(
                self._driver,
                self._engine(),
                network.limits,
                self.traffic,
                network.open_connections,
                network.resolver,
                self._overrides,
                self._context or client_context(),
            )
        self._sender.send(request, url, message)

    def respond(self, effect: HttpResponse) -> None:
        """Carry out `HttpResponse`."""
        if self._listener is not None:
            self._listener.respond(effect.request, effect.status)

    def stop_listening(self) -> None:
        """Accept no more connections and requests."""
        if self._listener is not None:
            self._listener.stop_listening()

    async def finish(self) -> None:
        """Wait for the answers to requests under way, for a limited time; not while the disk refuses."""
        if self._listener is not None and not self._driver.refused:
            await self._listener.finish()

    def abort(self) -> None:
        """End all incoming connections at once."""
        if self._listener is not None:
            self._listener.abort()

    async def close(self) -> None:
        """End all connections."""
        self._closed = True
        if self._listener is not None:
            await self._listener.close()
        if self._sender is not None:
            await self._sender.close()
