"""Addresses of other queue managers: their ports and their forms."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from msmqwire.names.printable import format_endpoint
from msmqwire.ping import PING_PORT

TCP_PORT: Final = 1801  # MQQB-1.9-01, MQQB-2.1.1-05 and -07, MQQB-2.1.1-04


@dataclass(frozen=True, slots=True)
class AddressOverrides:
    """The addresses of computers that are reached elsewhere than at their name and TCP 1801.

    Attributes:
        port: TCP port of other queue managers.
        ping_port: UDP port of other queue managers.
        hosts: by name or address as in format names, or identifier of a queue manager, in lower case: an
            address, and a port or None.
    """

    port: int = TCP_PORT
    ping_port: int = PING_PORT
    hosts: Mapping[str, tuple[str, int | None]] = field(default_factory=dict)

    @property
    def known_hosts(self) -> set[str]:
        """The names of `hosts`, and their addresses."""
        return {*self.hosts, *(address for address, _ in self.hosts.values())}

    @property
    def routes(self) -> dict[UUID | None, tuple[str, ...]]:
        """The fixed routes to the queue managers among `hosts` that are named by their identifiers.

        Names ``PRIVATE=`` reach them without a directory.
        """
        routes: dict[UUID | None, tuple[str, ...]] = {}
        for name in self.hosts:
            with suppress(ValueError):
                routes[UUID(name)] = (name,)
        return routes


def no_connection(error: Exception, host: str, port: int, address: str) -> str:
    """Return in words why a connection to a host at this address could not be opened."""
    place = format_endpoint(host or address, port)
    if host and host != address:
        place += f" ({address})"
    if isinstance(error, ConnectionRefusedError):
        return f"nobody listens at {place}"
    if isinstance(error, TimeoutError):
        return f"no answer from {place}"
    reason = error.strerror if isinstance(error, OSError) else None
    return f"no connection to {place}: {reason or error}"
