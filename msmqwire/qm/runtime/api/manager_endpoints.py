"""Endpoints of the queue manager: its state, its sessions, its transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msmqwire.qm.runtime.activity import session_json, transaction_json
from msmqwire.qm.runtime.api.lists import PAGING, list_schema
from msmqwire.qm.runtime.api.queue_endpoints import TOTAL
from msmqwire.qm.runtime.api.rights import Right
from msmqwire.qm.runtime.api.routes import Call, Reply, Route

if TYPE_CHECKING:
    from msmqwire.qm.runtime.api.api import Api

_TAG: Final = "manager"


class _ManagerEndpoints:
    def __init__(self, api: Api) -> None:
        self._api = api

    async def status(self, call: Call) -> Reply:
        told = await self._api.run("status")
        groups = (await self._api.run("queues", count=1))["groups"]
        sessions = len(told["sessions"])  # there may be thousands
        latest = self._api.samples.latest()
        return Reply({**told, "sessions": sessions, "groups": groups, "latest": latest})

    async def sessions(self, call: Call) -> Reply:
        sessions = self._api.core.binary.sessions
        told = self._api.lists.page(
            sessions.values(), call.parameters, "sessions", lambda one: one.number, session_json
        )
        return Reply(told, headers={TOTAL: str(len(sessions))})

    async def transactions(self, call: Call) -> Reply:
        found: Any = self._api.core.queue_manager.transactions
        told = self._api.lists.page(
            found.values(), call.parameters, "transactions", lambda one: str(one.identifier), transaction_json
        )
        return Reply(told, headers={TOTAL: str(len(found))})


def routes(api: Api) -> list[Route]:
    """Return the routes."""
    own = _ManagerEndpoints(api)
    listed = {200: list_schema({"type": "object"})}
    return [
        Route(
            "GET", "/status", Right.READ, "status", "The state of the queue manager", own.status,
            answers={200: {"type": "object"}}, tag=_TAG,
        ),
        Route(
            "GET", "/sessions", Right.READ, "list_sessions", "Sessions with other queue managers",
            own.sessions, parameters=PAGING, answers=listed, tag=_TAG,
        ),
        Route(
            "GET", "/transactions", Right.READ, "list_transactions", "Transactions that have not ended",
            own.transactions, parameters=PAGING, answers=listed, tag=_TAG,
        ),
    ]  # fmt: skip
