"""Endpoints of queues: those of this computer, and those on the way to others."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from msmqwire.qm.model.elements import OutgoingQueue, Queue, short_name
from msmqwire.qm.runtime import queues
from msmqwire.qm.runtime.activity import connection_history_json
from msmqwire.qm.runtime.api.changes import change
from msmqwire.qm.runtime.api.lists import PAGING, list_schema
from msmqwire.qm.runtime.api.rights import Right
from msmqwire.qm.runtime.api.routes import Call, Parameter, Reply, Route
from msmqwire.qm.runtime.api.schemas import SETTABLE
from msmqwire.qm.runtime.api.values import Schema, ref
from msmqwire.qm.runtime.queue_pages import (
    APPLICATION,
    FIND_MAX,
    JOURNALS,
    OUTGOING,
    SORTS,
    SYSTEM,
    group_of,
    matches,
)
from msmqwire.qm.runtime.queue_properties import DEFAULT

if TYPE_CHECKING:
    from msmqwire.qm.runtime.api.api import Api

TOTAL: Final = "X-Total-Count"
"""The header field with the number of all items of a list."""
_GROUP: Final = Parameter(
    "group",
    {"type": "string", "enum": [APPLICATION, SYSTEM, JOURNALS]},
    "Only private and public queues, queues of the computer, or journals; without it the first two",
)
_FIND: Final = Parameter(
    "find", {"type": "string", "maxLength": FIND_MAX}, "Only queues with this text in their name or label"
)
_SORT: Final = Parameter(
    "sort",
    {"type": "string", "enum": list(SORTS), "default": "queue"},
    "What they are sorted by. While a walk lasts figures change: only by `queue` each is shown once",
)
_DESCENDING: Final = Parameter("descending", {"type": "boolean", "default": False}, "The largest first")
_TAG: Final = "queues"
_NEW: Final[Schema] = {
    "type": "object",
    "required": ["queue"],
    "additionalProperties": False,
    "properties": {
        "queue": {"type": "string", "minLength": 1, "description": "Its name, as `private$\\orders`"},
        "transactional": {"type": "boolean", "default": False, "description": "It can't be changed later"},
        **SETTABLE,
    },
}


def _or_default(name: str, schema: Schema) -> Schema:
    """Return the schema of a property that may also be forgotten: policies and defaults decide it then."""
    if name == "label":
        return {**schema, "type": ["string", "null"], "description": "null for none"}
    is_any_text = "string" in schema.get("type", "") and "enum" not in schema
    if name in ("allow", "deny") or is_any_text:
        return schema
    return {"oneOf": [schema, {"const": DEFAULT, "description": "Forget what was set on the queue"}]}


_CHANGE: Final[Schema] = {
    "type": "object",
    "minProperties": 1,
    "additionalProperties": False,
    "properties": {
        **{name: _or_default(name, schema) for name, schema in SETTABLE.items()},
        "paused": {"type": "boolean", "description": "Of a queue on the way: whether it is kept back"},
    },
}
_NOTHING: Final[Schema] = {"type": "object", "additionalProperties": False}


_Names = list[tuple[str, Queue]]
"""Queues by their names in lower case, sorted."""


class _QueueEndpoints:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._by_name: dict[tuple[str, ...], _Names] = {}
        self._sorted_at: tuple[int, int | None] = (0, None)

    async def list(self, call: Call) -> Reply:
        wanted = call.parameters.get("group")
        return self._page(call, (APPLICATION, SYSTEM) if wanted is None else (wanted,))

    async def outgoing(self, call: Call) -> Reply:
        return self._page(call, (OUTGOING,))

    def _page(self, call: Call, groups: tuple[str, ...]) -> Reply:
        core, find = self._api.core, call.parameters.get("find", "").lower()
        sort, descending = call.parameters.get("sort", "queue"), call.parameters.get("descending", False)
        kind = f"queues:{groups}:{sort}:{descending}:{find}"
        if sort == "queue" and not find and not descending and OUTGOING not in groups:
            names = self._sorted_by_name(groups)
            told = self._api.running.read(
                lambda: self._api.lists.page_of_sorted(names, call.parameters, kind, self._shown)
            )
            return Reply(told, headers={TOTAL: str(len(names))})
        found = [
            queue
            for queue in core.queue_manager.queues.values()
            if group_of(queue) in groups and matches(queue, find)
        ]

        def key(queue: Queue) -> Any:
            return [SORTS[sort](queue), short_name(queue).lower()]

        told = self._api.running.read(
            lambda: self._api.lists.page(
                found,
                call.parameters,
                kind,
                key,
                self._shown,
                descending=descending,
            )
        )
        return Reply(told, headers={TOTAL: str(len(found))})

    def _sorted_by_name(self, groups: tuple[str, ...]) -> _Names:
        """Return the queues of groups by name, sorted again only after one has come or gone.

        That takes milliseconds with thousands. The numbers of queues are never used again, and no queue of
        these groups changes its name or its group.
        """
        queues_ = self._api.core.queue_manager.queues
        present = (len(queues_), next(reversed(queues_), None))
        if present != self._sorted_at:
            self._by_name, self._sorted_at = {}, present
        names = self._by_name.get(groups)
        if names is None:
            shown = [queue for queue in queues_.values() if group_of(queue) in groups]
            names = sorted(((short_name(queue).lower(), queue) for queue in shown), key=itemgetter(0))
            self._by_name[groups] = names
        return names

    def _shown(self, queue: Queue) -> dict[str, Any]:
        """Return a queue, with how many messages were put into it and have left it since the start."""
        put = queue.positions.inserted
        moves = {"put": put, "taken": put - len(queue.positions)}
        return {**queues.queue_json(self._api.core, queue), **moves}

    async def show(self, call: Call) -> Reply:
        def read() -> dict[str, Any]:
            queue = queues.find(self._api.core, call.parameters)
            shown = self._shown(queue)
            if isinstance(queue, OutgoingQueue):
                shown["connection_history"] = connection_history_json(queue)
            return shown

        return Reply(self._api.running.read(read))

    async def create(self, call: Call) -> Reply:
        return Reply(await change(self._api, call, "create", **call.body), 201)

    async def change(self, call: Call) -> Reply:
        return Reply(await change(self._api, call, "set", **call.body, **call.parameters))

    async def delete(self, call: Call) -> Reply:
        await change(self._api, call, "delete", **call.parameters)
        return Reply(status=204)

    async def purge(self, call: Call) -> Reply:
        told = await change(self._api, call, "purge", **call.parameters)
        return Reply({"purged": told["purged"]})


def routes(api: Api) -> list[Route]:
    """Return the routes."""
    own = _QueueEndpoints(api)
    one = "/queues/{queue}"
    queue, listed = {200: ref("Queue")}, {200: list_schema(ref("Queue"))}
    purged: Schema = {
        "type": "object",
        "required": ["purged"],
        "properties": {"purged": {"type": "integer", "description": "The number of messages"}},
    }
    return [
        Route(
            "GET", "/queues", Right.READ, "list_queues", "Queues of this computer, by name", own.list,
            parameters=(*PAGING, _GROUP, _FIND, _SORT, _DESCENDING), answers=listed, tag=_TAG,
        ),
        Route(
            "POST", "/queues", Right.ADMINISTER, "create_queue", "Create a queue", own.create,
            body=_NEW, answers={201: ref("Queue")}, tag=_TAG,
        ),
        Route(
            "GET", "/outgoing", Right.READ, "list_outgoing", "Queues on the way to other computers",
            own.outgoing, parameters=(*PAGING, _FIND, _SORT, _DESCENDING), answers=listed, tag=_TAG,
        ),
        Route("GET", one, Right.READ, "show_queue", "A queue", own.show, answers=queue, tag=_TAG),
        Route(
            "PATCH", one, Right.ADMINISTER, "change_queue", "Change properties and rights of a queue",
            own.change, body=_CHANGE, answers=queue, tag=_TAG,
        ),
        Route(
            "DELETE", one, Right.ADMINISTER, "delete_queue", "Delete a queue with all its messages",
            own.delete, answers={204: None}, tag=_TAG,
        ),
        Route(
            "POST", one + "/purge", Right.READ_WRITE, "purge_queue",
            "Delete all messages of a queue that can be read", own.purge, body=_NOTHING,
            body_required=False, answers={200: purged}, tag=_TAG,
        ),
    ]  # fmt: skip
