"""The multicast of a queue manager."""

from __future__ import annotations

from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING

from msmqwire.qm.runtime.multicast import MulticastOnDemand, PgmOptions

if TYPE_CHECKING:
    from msmqwire.qm.runtime.engine_driver import EngineDriver


def multicast_of(driver: EngineDriver, options: PgmOptions) -> MulticastOnDemand:
    """Return the multicast of a queue manager, joined to its engine of SRMP."""
    engine = driver.core.srmp
    return MulticastOnDemand(
        options,
        received=partial(driver.notify, engine.multicast_received),
        sent=lambda request: driver.notify(engine.answered, request, HTTPStatus.OK),
        failed=partial(driver.notify, engine.failed),
        refused=lambda request: driver.notify(engine.answered, request, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    )
