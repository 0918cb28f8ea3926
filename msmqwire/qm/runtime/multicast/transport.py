"""Multicast as a queue manager registers it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from msmqwire.qm.protocols.srmp.on_demand import srmp_of
from msmqwire.qm.runtime.multicast.on_demand import MulticastOnDemand
from msmqwire.qm.runtime.multicast.options import PgmOptions
from msmqwire.service.endpoints import Endpoint

if TYPE_CHECKING:
    from msmqwire.qm.runtime.addresses import AddressOverrides
    from msmqwire.qm.runtime.engine_driver import EngineDriver
    from msmqwire.qm.runtime.joined import Count
    from msmqwire.qm.runtime.transport import TcpNetwork

_NOWHERE: Final[Mapping[str, Endpoint]] = {}


class MulticastTransport:
    """See `Transport`."""

    configuration = None

    def __init__(self, options: PgmOptions | None) -> None:
        self._options = options or PgmOptions()

    def carrier(
        self, driver: EngineDriver, network: TcpNetwork, overrides: AddressOverrides
    ) -> MulticastCarrier:
        """Return the carrier for a driver."""
        return MulticastCarrier(driver, self._options)


class MulticastCarrier(MulticastOnDemand):
    """The multicast of a queue manager, joined to its engine of SRMP once that exists: a `JoinedCarrier`."""

    endpoints = _NOWHERE

    def __init__(self, driver: EngineDriver, options: PgmOptions) -> None:
        notify, core = driver.notify, driver.core
        super().__init__(
            options,
            received=lambda *datagram: notify(srmp_of(core).multicast_received, *datagram),
            sent=lambda request: notify(srmp_of(core).answered, request, HTTPStatus.OK),
            failed=lambda request, reason: notify(srmp_of(core).failed, request, reason),
            refused=lambda request: notify(
                srmp_of(core).answered, request, HTTPStatus.REQUEST_ENTITY_TOO_LARGE
            ),
        )

    async def bind(self) -> None:
        """Take no address: groups are joined once a queue listens to one."""

    def accept(self) -> None:
        """Take what comes to a group as soon as it is joined."""

    def counts(self) -> Iterator[Count]:
        """Return no counters."""
        return iter(())
