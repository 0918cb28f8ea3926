"""The multicast of a queue manager."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from msmqwire.qm.runtime.multicast import MulticastOnDemand, PgmOptions

if TYPE_CHECKING:
    from msmqwire.qm.runtime.engine_driver import EngineDriver


def multicast_of(driver: EngineDriver, options: PgmOptions) -> MulticastOnDemand:
    """Return the multicast of a queue manager, joined to its engine of SRMP once there is any."""
    notify, core = driver.notify, driver.core
    return MulticastOnDemand(
        options,
        received=lambda *datagram: notify(core.srmp.multicast_received, *datagram),
        sent=lambda request: notify(core.srmp.answered, request, HTTPStatus.OK),
        failed=lambda request, reason: notify(core.srmp.failed, request, reason),
        refused=lambda request: notify(core.srmp.answered, request, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    )
