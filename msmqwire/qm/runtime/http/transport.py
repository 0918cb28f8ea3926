"""HTTP and HTTPS as a queue manager registers them."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from typing import Final

from msmqwire.errors import InvalidValue
from msmqwire.qm.protocols.srmp.on_demand import srmp_of
from msmqwire.qm.runtime.addresses import AddressOverrides
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.qm.runtime.http.network import HttpNetwork
from msmqwire.qm.runtime.http.options import HttpOptions
from msmqwire.qm.runtime.joined import Count
from msmqwire.qm.runtime.transport import TcpNetwork
from msmqwire.service import tls
from msmqwire.service.endpoints import Endpoint

_ANY: Final = "0.0.0.0"
_COUNTS: Final = (
    ("accepted", "HTTP connections accepted."),
    ("refused", "HTTP connections refused because of too many, or too many TLS handshakes."),
    ("evicted", "HTTP connections ended to make room for others."),
    ("requests", "HTTP requests passed to the engine."),
    ("turned_away", "HTTP requests refused before they reached the engine."),
    ("sent", "HTTP requests sent."),
    ("send_failed", "HTTP requests sent that had no answer."),
)


class HttpTransport:
    """See `Transport`."""

    def __init__(self, options: HttpOptions | None) -> None:
        """Read certificates and keys. Raises InvalidValue."""
        self._options = options = options or HttpOptions()
        self.configuration = options.srmp
        self._own_context = _own_context(options)
        self._client_context: ssl.SSLContext | None = None
        if options.tls_ca is not None or not options.tls_verify:
            self._client_context = tls.client_context(options.tls_ca, verify=options.tls_verify)

    def carrier(self, driver: EngineDriver, network: TcpNetwork, overrides: AddressOverrides) -> HttpCarrier:
        """Return the carrier for a driver."""
        return HttpCarrier(driver, network, overrides, self._options, self._own_context, self._client_context)


class HttpCarrier(HttpNetwork):
    """The carrier of HTTP and HTTPS, with the addresses that its options name: see `JoinedCarrier`."""

    def __init__(
        self,
        driver: EngineDriver,
        network: TcpNetwork,
        overrides: AddressOverrides,
        options: HttpOptions,
        own_context: ssl.SSLContext | None,
        client_context: ssl.SSLContext | None,
    ) -> None:
        super().__init__(
            driver, lambda: srmp_of(driver.core), network, overrides=overrides, context=client_context
        )
        self._core, self._options, self._own_context = driver.core, options, own_context
        self.endpoints: dict[str, Endpoint] = {}

    async def bind(self) -> None:
        """Listen for requests of HTTP and HTTPS, and report where. Raises OSError."""
        http, https = self._options.http, self._options.https
        if http is not None:
            self.endpoints["http"] = http[0], await self.listen(*http)
        if https is not None:
            self.endpoints["https"] = https[0], await self.listen(*https, self._own_context)
        ports = {scheme: port for scheme, (_, port) in self.endpoints.items()}
        hosts = {address or _ANY for address, _ in self.endpoints.values()}
        srmp_of(self._core).urls.listens(http=ports.get("http"), https=ports.get("https"), hosts=hosts)

    def counts(self) -> Iterator[Count]:
        """Yield the counters of its traffic."""
        for name, meaning in _COUNTS:
            yield Count(f"http_{name}", meaning, getattr(self.traffic, name))


def _own_context(options: HttpOptions) -> ssl.SSLContext | None:
    """Return the context of HTTPS, or None without it. Raises InvalidValue."""
    if options.https is None:
        return None
    if options.tls_cert is None or options.tls_key is None:
        missing = "tls_cert" if options.tls_cert is None else "tls_key"
        raise InvalidValue("HTTPS needs a certificate and its key", path=missing)
    return tls.server_context(options.tls_cert, options.tls_key)
