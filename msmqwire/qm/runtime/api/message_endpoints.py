"""Endpoints of the messages of a queue: looked at, deleted, moved, put back into their queues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msmqwire.qm.model.elements import Queue
from msmqwire.qm.model.message import Message
from msmqwire.qm.runtime import queues
from msmqwire.qm.runtime.api.changes import change
from msmqwire.qm.runtime.api.lists import LIMIT_DEFAULT, PAGING, list_schema
from msmqwire.qm.runtime.api.message_search import FIND_MAX, Needle, search
from msmqwire.qm.runtime.api.problems import Problem
from msmqwire.qm.runtime.api.rights import Right
from msmqwire.qm.runtime.api.routes import Call, Parameter, Reply, Route
from msmqwire.qm.runtime.api.values import Schema, ref
from msmqwire.qm.runtime.api.viewing_endpoints import lookup_identifier
from msmqwire.qm.runtime.local_names import queue_name
from msmqwire.qm.runtime.message_json import message_json

if TYPE_CHECKING:
    from msmqwire.qm.runtime.api.api import Api

SEARCHES_MAX: Final = 4
"""Limit of searches at once."""
EXAMINED: Final = "X-Examined-Count"
"""The header field with the number of messages that a search has looked at."""
_BODY_MAX: Final = 4 << 20
_FIND: Final = Parameter(
    "find",
    {"type": "string", "minLength": 1, "maxLength": FIND_MAX},
    "Only messages with this text, in any case, in label or body, or of 8 characters and more in identifier "
    "or correlation. A page may have fewer items, or none, and `next`: the search goes on with it",
)
_BODIES: Final = Parameter(
    "body_max",
    {"type": "integer", "minimum": 0, "maximum": _BODY_MAX},
    "Bytes of each body at most; messages have `body_size` then",
)
_TAG: Final = "messages"
_TO: Final[Schema] = {"type": "string", "minLength": 1, "description": "The name of a queue"}


class _MessageEndpoints:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._searches = 0

    def _queue(self, call: Call) -> Queue:
        """Return the queue of a call. Raises QueueError if it does not exist: looking makes no subqueue."""
        return queues.find(self._api.core, call.parameters)

    async def list(self, call: Call) -> Reply:
        if self._searches >= SEARCHES_MAX:
            why = "too many lists of messages are being made: try again in a moment"
            raise Problem(429, why, headers={"Retry-After": "1"})
        api, parameters = self._api, call.parameters
        number = api.running.read(self._queue, call).number
        find, body_max = parameters.get("find", ""), parameters.get("body_max")
        kind = f"messages:{number}:{find}"
        after: Any = api.lists.after(parameters, kind)
        self._searches += 1
        try:
            found = await search(
                api.running,
                lambda: self._queue(call),
                Needle(find),
                after,
                parameters.get("limit", LIMIT_DEFAULT),
                lambda message: _shown(message, body_max),
            )
        finally:
            self._searches -= 1
        following = None if found.last is None else api.lists.make(kind, found.last)
        headers = {EXAMINED: str(found.examined)} if find else {}
        return Reply({"items": found.items, "next": following}, headers=headers)

    async def show(self, call: Call) -> Reply:
        self._api.running.read(self._queue, call)
        request = {**call.parameters, **_identifier(call)}
        found = await self._api.run("peek", **request)
        if not found["messages"]:
            raise _missing()
        message = found["messages"][0]
        return Reply({**message, "lookup_identifier": str(message["lookup_identifier"])})

    async def delete(self, call: Call) -> Reply:
        self._api.running.read(self._queue, call)
        await change(self._api, call, "purge", queue=call.parameters["queue"], **_identifier(call))
        return Reply(status=204)

    async def move(self, call: Call) -> Reply:
        self._api.running.read(self._queue, call)
        to = call.body["to"]
        request = {"queue": call.parameters["queue"], **_identifier(call), "to": to}
        if self._api.running.read(self._is_near, call, to):
            return Reply(await change(self._api, call, "move", **request))
        told = await change(self._api, call, "put_back", whole=True, **request)
        return Reply({"moved": told["sent"]})

    def _is_near(self, call: Call, to: str) -> bool:
        """Return whether a move stays within a queue and its subqueues, which may be missing."""
        source = self._queue(call)
        name = queue_name(to, self._api.core.queue_manager.computer_name)
        target = self._api.core.queues.lookup.find(name)
        if target is None:
            return True  # a subqueue, or an error
        return (target.owner_queue or target) is (source.owner_queue or source)

    async def requeue(self, call: Call) -> Reply:
        """Put a message back: within this computer as it is, else as a new one."""
        self._api.running.read(self._queue, call)
        request = {"queue": call.parameters["queue"], **_identifier(call), **call.body}
        told = await change(self._api, call, "put_back", **request)
        return Reply({"requeued": told["sent"], "to": told["to"], "kept": told["kept"]})


def _identifier(call: Call) -> dict[str, int]:
    name = "lookup_identifier"
    return {name: lookup_identifier(call.parameters[name], name)}


def _missing() -> Problem:
    return Problem(404, "the message is not there any more, or somebody is receiving it")


def _shown(message: Message, body_max: int | None) -> dict[str, Any]:
    shown = message_json(message, body_max)
    return {**shown, "lookup_identifier": str(shown["lookup_identifier"])}


def routes(api: Api) -> list[Route]:
    """Return the routes."""
    own = _MessageEndpoints(api)
    many = "/queues/{queue}/messages"
    one = many + "/{lookup_identifier}"
    to: Schema = {"type": "object", "additionalProperties": False, "properties": {"to": _TO}}
    names: Schema = {"type": "array", "items": {"type": "string"}, "description": "Identifiers"}
    moved: Schema = {"type": "object", "required": ["moved"], "properties": {"moved": names}}
    requeued: Schema = {
        "type": "object",
        "required": ["requeued", "to", "kept"],
        "properties": {
            "requeued": names,
            "to": _TO,
            "kept": {
                "type": "boolean",
                "description": "Whether it is the same message, with identifier and signature; else it was "
                "sent again as a new one, which has label, body and the like",
            },
        },
    }
    return [
        Route(
            "GET", many, Right.READ, "list_messages", "Messages of a queue that can be read, in order",
            own.list, parameters=(*PAGING, _FIND, _BODIES), answers={200: list_schema(ref("Message"))},
            tag=_TAG,
        ),
        Route(
            "GET", one, Right.READ, "show_message", "A message, which stays in its queue", own.show,
            answers={200: ref("Message")}, tag=_TAG,
        ),
        Route(
            "DELETE", one, Right.READ_WRITE, "delete_message",
            "Delete a message; its sender is told if it asked for that", own.delete,
            answers={204: None}, tag=_TAG,
        ),
        Route(
            "POST", one + "/move", Right.READ_WRITE, "move_message",
            "Move a message as it is to another queue here; a subqueue of its own is made if it is missing",
            own.move, body={**to, "required": ["to"]}, answers={200: moved}, tag=_TAG,
        ),
        Route(
            "POST", one + "/requeue", Right.READ_WRITE, "requeue_message",
            "Put a message back into the queue that it was sent to or moved from, or into another one",
            own.requeue, body=to, body_required=False, answers={200: requeued}, tag=_TAG,
        ),
    ]  # fmt: skip
