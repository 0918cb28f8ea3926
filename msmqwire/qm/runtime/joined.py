"""The transports of protocols that have joined the queue manager by a `Registration`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from msmqwire.qm.protocols.registry import registered
from msmqwire.qm.runtime.addresses import AddressOverrides
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.qm.runtime.transport import TcpNetwork
from msmqwire.service.carrier import Carrier
from msmqwire.service.endpoints import Endpoint


class Count(NamedTuple):
    """A number that only grows, for metrics: its name, its meaning, its value now."""

    name: str
    meaning: str
    value: float


class JoinedCarrier(Carrier, Protocol):
    """The carrier of a protocol in a running queue manager. One in a program that sends never listens."""

    @property
    def endpoints(self) -> Mapping[str, Endpoint]:
        """Where it listens, by name, with the ports that the system has chosen."""

    async def bind(self) -> None:
        """Take the addresses at which it is to listen, and report them to its engine. Raises OSError."""

    def accept(self) -> None:
        """Begin to take requests."""

    def counts(self) -> Iterable[Count]:
        """Return the counters of its traffic."""


class Transport(Protocol):
    """What a protocol is configured to do, checked before anything is opened.

    Attributes:
        configuration: of its engine; None for the defaults.
    """

    configuration: object

    def carrier(
        self, driver: EngineDriver, network: TcpNetwork, overrides: AddressOverrides
    ) -> JoinedCarrier:
        """Return its carrier for a driver.

        `network` shares its limits, descriptors and resolver.
        """


Transports = Mapping[str, Transport]
"""The transports of all protocols that have joined, by the name of the protocol."""


def transports_of(options: Mapping[str, object]) -> Transports:
    """Return the transports with these options, by the name of the protocol. Raises InvalidValue."""
    return {name: transport(options.get(name)) for name, transport in registered("transport")}


def client_transports(arguments: Mapping[str, Any]) -> Transports:
    """Return the transports of a program that sends, from arguments by name. Raises InvalidValue."""
    return transports_of({name: options(arguments) for name, options in registered("client_options")})


def configurations_of(transports: Transports) -> dict[str, object]:
    """Return the configurations of the engines, by the name of the protocol."""
    return {name: transport.configuration for name, transport in transports.items()}
