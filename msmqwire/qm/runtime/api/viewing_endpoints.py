"""Endpoints for people who look at a queue: its samples, its messages as a file, a message as text."""

from __future__ import annotations

import asyncio
import json
import time
from base64 import b64decode
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web

from msmqwire.errors import InvalidValue, QueueError
from msmqwire.qm.model.elements import Queue
from msmqwire.qm.model.message import Message
from msmqwire.qm.runtime import queues
from msmqwire.qm.runtime.api.message_search import FIND_MAX, Needle, search
from msmqwire.qm.runtime.api.problems import Problem
from msmqwire.qm.runtime.api.queue_samples import COLUMNS
from msmqwire.qm.runtime.api.rights import Right
from msmqwire.qm.runtime.api.routes import Call, Parameter, Reply, Route
from msmqwire.qm.runtime.api.values import Schema
from msmqwire.qm.runtime.console.preview import TEXT_BYTES, with_preview
from msmqwire.qm.runtime.message_json import message_json

if TYPE_CHECKING:
    from msmqwire.qm.runtime.api.api import Api

EXPORTS_MAX: Final = 2
"""Limit of exports at once."""
_AT_ONCE: Final = 50
"""Messages of an export that are made JSON at once."""
_WRITE_S: Final = 60.0
"""Seconds after which an export ends whose reader reads nothing."""
_DIGITS_MAX: Final = 20
_TAG: Final = "queues"
_SAMPLES: Final[Schema] = {
    "type": "object",
    "required": ["seconds", "queues_max", *COLUMNS],
    "properties": {
        "seconds": {"type": "number", "description": "From one sample to the next"},
        "queues_max": {"type": "integer", "description": "The most queues with samples"},
        **{name: {"type": "array", "items": {"type": "number"}} for name in COLUMNS},
    },
}


class _ViewingEndpoints:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._exports = 0

    def _queue(self, call: Call) -> Queue:
        """Return the queue of a call. Raises QueueError if it does not exist: looking makes no subqueue."""
        return queues.find(self._api.core, call.parameters)

    async def samples(self, call: Call) -> Reply:
        queue = self._api.running.read(self._queue, call)
        return Reply(self._api.samples.queues.columns(queue, round(time.time(), 3)))

    async def preview(self, call: Call) -> Reply:
        message = await self._message(call, TEXT_BYTES)
        return Reply(with_preview({**message, "lookup_identifier": str(message["lookup_identifier"])}))

    async def body(self, call: Call) -> web.StreamResponse:
        message = await self._message(call, None)
        headers = {"Content-Disposition": 'attachment; filename="body.bin"'}
        body = b64decode(message["body"])
        return web.Response(body=body, content_type="application/octet-stream", headers=headers)

    async def _message(self, call: Call, body_max: int | None) -> dict[str, Any]:
        self._api.running.read(self._queue, call)
        identifier = lookup_identifier(call.parameters["lookup_identifier"], "lookup_identifier")
        found = await self._api.run(
            "peek", queue=call.parameters["queue"], lookup_identifier=identifier, body_max=body_max
        )
        if not found["messages"]:
            raise Problem(404, "the message is not there any more, or somebody is receiving it")
        message: dict[str, Any] = found["messages"][0]
        return message

    async def export(self, call: Call) -> web.StreamResponse:
        """Answer with messages as lines of JSON, as long as the token holds and the reader reads."""
        self._api.running.read(self._queue, call)
        if self._exports >= EXPORTS_MAX:
            why = f"{EXPORTS_MAX} exports are under way: try again when one has ended"
            raise Problem(429, why, headers={"Retry-After": "10"})
        self._exports += 1
        try:
            return await self._export(call)
        finally:
            self._exports -= 1

    async def _export(self, call: Call) -> web.StreamResponse:
        response = web.StreamResponse(
            headers={
                "Content-Type": "application/x-ndjson",
                "Content-Disposition": 'attachment; filename="messages.jsonl"',
            }
        )
        response.force_close()
        await response.prepare(call.request)
        needle = Needle(call.parameters.get("find", ""))
        left, after = call.parameters.get("limit"), call.parameters.get("after")
        last = None if after is None else lookup_identifier(after, "after")
        while left is None or left > 0:
            self._api.last(call.request, 2 * _WRITE_S)
            count = _AT_ONCE if left is None else min(left, _AT_ONCE)
            try:
                find = lambda: self._queue(call)  # noqa: E731
                found = await search(self._api.running, find, needle, last, count, _line)
            except QueueError:
                break  # the queue was deleted meanwhile
            left = None if left is None else left - len(found.items)
            try:
                async with asyncio.timeout(_WRITE_S):
                    await response.write("".join(found.items).encode())
            except (TimeoutError, ConnectionError):
                if call.request.transport is not None:
                    call.request.transport.abort()
                break
            if found.last is None:
                break
            last = found.last
        return response


def lookup_identifier(text: str, path: str) -> int:
    """Return the lookup identifier that a text stands for. Raises InvalidValue."""
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX):
        raise InvalidValue(f"{text!r:.100} is not a lookup identifier", path=path)
    return int(text)


def _line(message: Message) -> str:
    shown = message_json(message)
    return json.dumps({**shown, "lookup_identifier": str(shown["lookup_identifier"])}) + "\n"


def routes(api: Api) -> list[Route]:
    """Return the routes."""
    own = _ViewingEndpoints(api)
    one = "/queues/{queue}/messages/{lookup_identifier}"
    identifier: Schema = {"type": "string", "pattern": "^[0-9]{1,20}$"}
    find = Parameter(
        "find", {"type": "string", "maxLength": FIND_MAX}, "Only messages with this text, in any case"
    )
    limit = Parameter("limit", {"type": "integer", "minimum": 1, "maximum": 1 << 32}, "The most messages")
    after = Parameter("after", identifier, "Only messages behind that with this lookup identifier")
    return [
        Route(
            "GET", "/queues/{queue}/samples", Right.READ, "queue_samples",
            "Samples of a queue of the last half hour, from when messages moved in it or it was looked at",
            own.samples, answers={200: _SAMPLES}, tag=_TAG,
        ),
        Route(
            "GET", f"{one}/preview", Right.READ, "preview_message",
            "A message with the beginning of its body as text, decoded, and as bytes",
            own.preview, answers={200: {"type": "object"}}, tag="messages",
        ),
        Route(
            "GET", f"{one}/body", Right.READ, "message_body", "The whole body of a message as it is",
            own.body, answers={200: {"type": "string"}}, answer_type="application/octet-stream",
            tag="messages",
        ),
        Route(
            "GET", "/queues/{queue}/export", Right.READ, "export_messages",
            "Messages of a queue with their bodies, a line of JSON each", own.export,
            parameters=(find, limit, after), answers={200: {"type": "string"}},
            answer_type="application/x-ndjson", tag="messages",
        ),
    ]  # fmt: skip
