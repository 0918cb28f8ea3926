"""Endpoints that receive messages and settle them."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web

from msmqwire.qm.runtime import queues
from msmqwire.qm.runtime.api.message_schemas import RECEIPT
from msmqwire.qm.runtime.api.message_stream import MessageStream, watched
from msmqwire.qm.runtime.api.rights import Right
from msmqwire.qm.runtime.api.routes import Call, Parameter, Reply, Route
from msmqwire.qm.runtime.api.send_endpoints import TAG, TRANSACTION
from msmqwire.qm.runtime.api.token_session import TokenSession
from msmqwire.qm.runtime.api.values import Schema, ref
from msmqwire.qm.runtime.held_messages import HELD_MAX
from msmqwire.service.control.server import BATCH_MAX, WINDOW_MAX
from msmqwire.service.page_requests import PageRequestHandler

if TYPE_CHECKING:
    from msmqwire.qm.runtime.api.api import Api

WAIT_S_MAX: Final = 60
"""The longest time in seconds that a receive waits for a message."""
SETTLE_S_MAX: Final = 3600
"""The longest time in seconds within which a message is to be settled."""
_SETTLE_S: Final = 30
_WINDOW: Final = 10
_READ_S: Final = 120.0
"""Seconds in which an answer is read."""
_STREAM_S: Final = 7 * 24 * 3600.0
_SETTLE_WITHIN_S: Final[Schema] = {
    "type": "integer",
    "minimum": 1,
    "maximum": SETTLE_S_MAX,
    "default": _SETTLE_S,
    "description": "Seconds after which a message that is not settled is back, with one delivery more",
}
_RECEIVE: Final[Schema] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "count": {"type": "integer", "minimum": 1, "maximum": BATCH_MAX, "default": 1},
        "wait_s": {
            "type": "number",
            "minimum": 0,
            "maximum": WAIT_S_MAX,
            "default": 0,
            "description": "Seconds to wait for the first message",
        },
        "settle_within_s": _SETTLE_WITHIN_S,
        "transaction": TRANSACTION,
    },
}
_RECEIVED: Final[Schema] = {
    "type": "object",
    "required": ["messages"],
    "properties": {
        "messages": {"type": "array", "items": ref("ReceivedMessage"), "description": "Empty if none came"}
    },
}
_RECEIPTS: Final[Schema] = {"type": "array", "items": RECEIPT, "maxItems": HELD_MAX, "default": []}
_SETTLE: Final[Schema] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "done": {**_RECEIPTS, "description": "Receipts of messages that are deleted"},
        "back": {**_RECEIPTS, "description": "Receipts of messages that go back to their queues"},
    },
}
_SETTLED: Final[Schema] = {
    "type": "object",
    "required": ["done", "back"],
    "properties": {"done": {"type": "integer"}, "back": {"type": "integer"}},
}


class _ReceiveEndpoints:
    def __init__(self, api: Api) -> None:
        self._api = api

    async def receive(self, call: Call) -> Reply | web.StreamResponse:
        told, request = call.body, call.request
        queue = self._existing(call)
        session, wait_s = self._api.messaging.of(call.sender), told.get("wait_s", 0)
        self._api.last(request, wait_s + _READ_S)
        settle_s = told.get("settle_within_s", _SETTLE_S)
        arguments = queue, told.get("count", 1), wait_s, settle_s, told.get("transaction")
        try:
            messages = await session.receive(*arguments, _gone(request))
        except ConnectionError:  # nobody reads this
            return web.Response(status=503)
        if not messages:
            return Reply({"messages": []})
        return await self._handed_over(request, session, messages)

    async def _handed_over(
        self, request: web.Request, session: TokenSession, messages: list[dict[str, Any]]
    ) -> web.StreamResponse:
        """Write an answer with messages; they are back at once if it can't be written."""
        body = json.dumps({"messages": messages}, separators=(",", ":")).encode()
        response = web.Response(body=body, content_type="application/json")
        messaging, written = self._api.messaging, False
        messaging.unread += len(body)
        try:
            with watched(request, messaging.limits.stall_s):
                await response.prepare(request)
                await response.write_eof()
                await request.writer.drain()
            written = not _gone(request).done()
        except ConnectionError:
            pass
        finally:
            messaging.read(len(body))
            if not written:
                session.withdraw([message["receipt"] for message in messages])
        return response

    async def settle(self, call: Call) -> Reply:
        done, back = call.body.get("done", []), call.body.get("back", [])
        await self._api.messaging.of(call.sender).settle(done, back)
        return Reply({"done": len(done), "back": len(back)})

    async def events(self, call: Call) -> web.StreamResponse:
        queue, request = self._existing(call), call.request
        messaging = self._api.messaging
        session = messaging.of(call.sender)
        window = call.parameters.get("window", _WINDOW)
        settle_s = call.parameters.get("settle_within_s", _SETTLE_S)
        self._api.last(request, _STREAM_S)
        return await MessageStream(messaging, session, window, settle_s).run(request, queue, _gone(request))

    def _existing(self, call: Call) -> str:
        """Return the queue of a call.

        Raises QueueError if it does not exist: opening a missing subqueue would create it.
        """
        name: str = call.parameters["queue"]
        self._api.running.read(queues.find, self._api.core, {"queue": name})
        return name


def _gone(request: web.Request) -> asyncio.Future[None]:
    """Return what is done when the connection of a request has ended."""
    assert isinstance(request.protocol, PageRequestHandler), "a connection of the console"
    return request.protocol.connection.gone


def routes(api: Api) -> list[Route]:
    """Return the routes."""
    own = _ReceiveEndpoints(api)
    return [
        Route(
            "POST",
            "/queues/{queue}/receive",
            Right.READ_WRITE,
            "receive_messages",
            "Receive messages; each is deleted once it is settled",
            own.receive,
            body=_RECEIVE,
            body_required=False,
            answers={200: _RECEIVED},
            tag=TAG,
        ),
        Route(
            "POST",
            "/settle",
            Right.READ_WRITE,
            "settle_messages",
            "Delete messages that were received, and return others to their queues: all or none",
            own.settle,
            body=_SETTLE,
            answers={200: _SETTLED},
            tag=TAG,
        ),
        Route(
            "GET",
            "/queues/{queue}/events",
            Right.READ_WRITE,
            "stream_messages",
            "Receive messages as server-sent events, until the client or the server ends the stream",
            own.events,
            parameters=(
                Parameter(
                    "window",
                    {"type": "integer", "minimum": 1, "maximum": WINDOW_MAX, "default": _WINDOW},
                    "The most messages that are sent and not settled",
                ),
                Parameter(
                    "settle_within_s",
                    {"type": "integer", "minimum": 1, "maximum": SETTLE_S_MAX, "default": _SETTLE_S},
                    "Seconds that receipts are good after the end of the stream",
                ),
            ),
            answers={200: {"type": "string"}},
            answer_type="text/event-stream",
            tag=TAG,
        ),
    ]
