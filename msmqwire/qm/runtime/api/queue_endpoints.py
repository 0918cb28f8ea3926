"""Endpoints of queues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msmqwire.qm.model.elements import Queue, short_name
from msmqwire.qm.runtime import queues
from msmqwire.qm.runtime.api.lists import PAGING, list_schema
from msmqwire.qm.runtime.api.rights import Right
from msmqwire.qm.runtime.api.routes import Call, Parameter, Reply, Route
from msmqwire.qm.runtime.api.values import ref
from msmqwire.qm.runtime.queue_pages import APPLICATION, FIND_MAX, JOURNALS, SYSTEM, group_of, matches

if TYPE_CHECKING:
    from msmqwire.qm.runtime.api.api import Api

_GROUP: Final = Parameter(
    "group",
    {"type": "string", "enum": [APPLICATION, SYSTEM, JOURNALS]},
    "Only private and public queues, queues of the computer, or journals; without it the first two",
)
_FIND: Final = Parameter(
    "find", {"type": "string", "maxLength": FIND_MAX}, "Only queues with this text in their name or label"
)
_TAG: Final = "queues"


class _QueueEndpoints:
    def __init__(self, api: Api) -> None:
        self._api = api

    async def list(self, call: Call) -> Reply:
        core, wanted = self._api.core, call.parameters.get("group")
        find = call.parameters.get("find", "").lower()
        groups = (APPLICATION, SYSTEM) if wanted is None else (wanted,)
        found = [
            queue
            for queue in core.queue_manager.queues.values()
            if group_of(queue) in groups and matches(queue, find)
        ]
        kind = f"queues:{wanted}:{find}"
        show = lambda queue: queues.queue_json(core, queue)  # noqa: E731
        return Reply(self._api.running.read(self._api.lists.page, found, call.parameters, kind, _key, show))


def _key(queue: Queue) -> str:
    return short_name(queue).lower()


def routes(api: Api) -> list[Route]:
    """Return the routes."""
    own = _QueueEndpoints(api)
    return [
        Route(
            "GET",
            "/queues",
            Right.READ,
            "list_queues",
            "Queues of this computer, by name",
            own.list,
            parameters=(*PAGING, _GROUP, _FIND),
            answers={200: list_schema(ref("Queue"))},
            tag=_TAG,
        ),
    ]
