"""The endpoints of health, and of draining before a stop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msmqwire.qm.runtime.api.rights import Right
from msmqwire.qm.runtime.api.routes import Call, Reply, Route
from msmqwire.qm.runtime.api.values import ref
from msmqwire.qm.runtime.health_pages import HEALTHZ, READYZ, healthz, readyz
from msmqwire.qm.runtime.served_session import drained

if TYPE_CHECKING:
    from msmqwire.qm.runtime.api.api import Api


def routes(api: Api) -> list[Route]:
    """Return the routes."""

    async def alive(call: Call) -> Reply:
        return healthz()

    async def ready(call: Call) -> Reply:
        return readyz(api.health)

    async def state(call: Call) -> Reply:
        return Reply(api.running.drain.state())

    async def drain(call: Call) -> Reply:
        return Reply(drained(api.running, {"on": True, **call.body}))

    return [
        Route(
            "GET", HEALTHZ, None, "healthz", "Whether the server answers at all", alive,
            answers={200: ref("Healthz")}, tag="health", root=True, while_restoring=True,
        ),
        Route(
            "GET", READYZ, None, "readyz", "Whether the server is ready, with what was checked", ready,
            answers={200: ref("Readiness"), 503: ref("Readiness")}, tag="health", root=True,
            while_restoring=True,
        ),
        Route(
            "GET", "/drain", Right.READ, "drain", "Whether the server drains, and what is held", state,
            answers={200: ref("Drain")}, tag="health",
        ),
        Route(
            "POST", "/drain", Right.ADMINISTER, "set_drain",
            "Take nothing new before a stop, or again; a start forgets it", drain,
            body=ref("DrainRequest"), body_required=False, answers={200: ref("Drain")}, tag="health",
        ),
    ]  # fmt: skip
