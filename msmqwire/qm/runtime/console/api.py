"""The data of the console's pages: JSON of the operations of the control channel, a page at a time."""

from __future__ import annotations

import json
import logging
from base64 import b64decode
from collections.abc import Callable, Mapping
from typing import Any, Final

from aiohttp import web

from msmqwire.errors import InvalidValue, QueueError
from msmqwire.qm.model.elements import OutgoingQueue
from msmqwire.qm.runtime import queues
from msmqwire.qm.runtime.activity import connection_history_json
from msmqwire.qm.runtime.api.guard import SESSION, Guard, Handler, refusal
from msmqwire.qm.runtime.api.logins import BrowserSession
from msmqwire.qm.runtime.console.preview import TEXT_BYTES, with_preview
from msmqwire.qm.runtime.console.samples import Samples
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.qm.runtime.operations import LocalSession
from msmqwire.service.logs import RecentRecords, log

MESSAGES_MAX: Final = 100
"""Limit of messages on a page."""
LOG_MAX: Final = 200
_DIGITS_MAX: Final = 20
_LOGGED_MAX: Final = 300
_LEVELS: Final = ("debug", "info", "warning", "error")
_WRITES: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "purge": ("purge", ("queue",)),
    "delete": ("purge", ("queue", "lookup_identifier")),
    "move": ("move", ("queue", "lookup_identifier", "to")),
    "resend": ("resend", ("queue", "lookup_identifier", "to")),
    "pause": ("set", ("queue", "paused")),
}
"""The operation of the control channel and its arguments, by the name of a change that a page may make."""


class PagesApi:
    """The endpoints below ``/api``.

    All but ``login`` need a login, and changes need ``--console-write``.
    """

    def __init__(self, driver: EngineDriver, guard: Guard, samples: Samples, records: RecentRecords) -> None:
        self._driver, self._guard, self._samples, self._records = driver, guard, samples, records

    def routes(self) -> list[web.RouteDef]:
        """Return the endpoints."""
        reads: dict[str, Handler] = {
            "login": self._login,
            "status": self._status,
            "queues": self._queues,
            "queue": self._queue,
            "messages": self._messages,
            "message": self._message,
            "body": self._body,
            "activity": self._activity,
            "samples": self._all_samples,
            "log": self._log,
        }
        writes = [web.post(f"/api/{name}", self._changes(name)) for name in _WRITES]
        return [
            web.post("/api/login", self._log_in),
            web.post("/api/logout", self._log_out),
            *(web.get(f"/api/{name}", handler, allow_head=False) for name, handler in reads.items()),
            *writes,
        ]

    # -- logins -------------------------------------------------------------------------------------------

    async def _log_in(self, request: web.Request) -> web.Response:
        told = await _object(request)
        begun = self._guard.logins.log_in(request.remote or "", told.get("token"))
        if begun is None:
            await self._guard.delay()
            return refusal(401, "that is not the token in the file")
        identifier, session = begun
        log.info("a login to the console", extra={"peer": request.remote})
        response = web.json_response(self._about(session))
        response.set_cookie(
            self._guard.cookie,
            identifier,
            httponly=True,
            samesite="Strict",
            path="/",
            max_age=int(self._guard.logins.limits.session_s),
            secure=request.headers.get("Origin", "").startswith("https:"),
        )
        return response

    async def _log_out(self, request: web.Request) -> web.Response:
        self._guard.logins.end(request[SESSION])
        response = web.json_response({})
        response.del_cookie(self._guard.cookie, path="/", httponly=True, samesite="Strict")
        return response

    async def _login(self, request: web.Request) -> web.Response:
        """Answer with the rights of a page; before a login there are none, which is not an error."""
        return web.json_response(self._about(request[SESSION]) if SESSION in request else {})

    def _about(self, session: BrowserSession) -> dict[str, Any]:
        manager = self._driver.core.queue_manager
        return {
            "csrf": session.csrf,
            "write": self._guard.write,
            "computer": manager.computer_name,
            "identifier": str(manager.identifier),
            "sample_s": self._samples.seconds,
        }

    # -- reading ------------------------------------------------------------------------------------------

    async def _run(self, op: str, **request: Any) -> dict[str, Any]:
        """Run an operation in a separate session, which leaves nothing open."""
        session = LocalSession(self._driver)
        try:
            return await session.run({"op": op, **request})
        finally:
            session.close()

    async def _status(self, request: web.Request) -> web.Response:
        status = await self._run("status")
        sessions = len(status.pop("sessions"))  # there may be thousands
        groups = (await self._run("queues", count=1))["groups"]
        return web.json_response(
            {**status, "sessions": sessions, "groups": groups, "latest": self._samples.latest()}
        )

    async def _queues(self, request: web.Request) -> web.Response:
        query = request.query
        told: dict[str, Any] = {name: query[name] for name in ("group", "find", "sort") if name in query}
        told |= {name: _number(request, name) for name in ("offset", "count") if name in query}
        told["descending"] = query.get("descending") == "true"
        return web.json_response(await self._run("queues", **told))

    async def _queue(self, request: web.Request) -> web.Response:
        def read() -> dict[str, Any]:
            core = self._driver.core
            queue = queues.find(core, request.query)
            shown = queues.queue_json(core, queue)
            if isinstance(queue, OutgoingQueue):
                shown["connection_history"] = connection_history_json(queue)
            return shown

        return web.json_response(self._driver.read(read))

    async def _messages(self, request: web.Request) -> web.Response:
        """Answer with messages without bodies; ``more`` is whether further ones follow."""
        count = _number(request, "count") if "count" in request.query else MESSAGES_MAX // 2
        if not 0 < count <= MESSAGES_MAX:
            raise InvalidValue(f"not 1 to {MESSAGES_MAX}", path="count")
        after = _number(request, "after") if request.query.get("after") else None
        queue = self._existing(request)
        found = await self._run("peek", queue=queue, count=count + 1, after=after, body_max=0)
        messages = [_with_text_identifier(message) for message in found["messages"]]
        # Fewer may be returned than requested because bodies are large: further ones can still follow.
        known = self._driver.read(queues.find, self._driver.core, request.query)
        more = len(messages) > count or (
            bool(messages) and int(messages[-1]["lookup_identifier"]) < known.positions.tail.lookup_identifier
        )
        return web.json_response({"messages": messages[:count], "more": more, "total": len(known.positions)})

    async def _message(self, request: web.Request) -> web.Response:
        message = await self._one(request, TEXT_BYTES)
        return web.json_response(_with_text_identifier(with_preview(message)))

    async def _body(self, request: web.Request) -> web.Response:
        message = await self._one(request, None)
        headers = {"Content-Disposition": 'attachment; filename="body.bin"'}
        body = b64decode(message["body"])
        return web.Response(body=body, content_type="application/octet-stream", headers=headers)

    async def _one(self, request: web.Request, body_max: int | None) -> dict[str, Any]:
        wanted = _number(request, "lookup_identifier")
        queue = self._existing(request)
        found = await self._run("peek", queue=queue, lookup_identifier=wanted, body_max=body_max)
        if not found["messages"]:
            raise web.HTTPNotFound(text="the message is not there any more, or somebody is receiving it")
        message: dict[str, Any] = found["messages"][0]
        return message

    def _existing(self, request: web.Request) -> str:
        """Return the queue that a request names.

        Raises QueueError if it does not exist: opening a missing subqueue would create it.
        """
        self._driver.read(queues.find, self._driver.core, request.query)
        return request.query["queue"]

    async def _activity(self, request: web.Request) -> web.Response:
        told = {name: _number(request, name) for name in ("offset", "count") if name in request.query}
        return web.json_response(await self._run("activity", **told))

    async def _all_samples(self, request: web.Request) -> web.Response:
        return web.json_response(self._samples.columns())

    async def _log(self, request: web.Request) -> web.Response:
        after = _number(request, "after") if "after" in request.query else 0
        level = request.query.get("level", "info")
        if level not in _LEVELS:
            raise InvalidValue(f"{level!r:.100} is none of {', '.join(_LEVELS)}", path="level")
        lines = self._records.after(after, logging.getLevelName(level.upper()), LOG_MAX)
        return web.json_response({"lines": lines, "last": self._records.last})

    # -- changing -----------------------------------------------------------------------------------------

    def _changes(self, name: str) -> Callable[[web.Request], Any]:
        op, parameters = _WRITES[name]

        async def change(request: web.Request) -> web.Response:
            self._guard.check_write()
            told = await _object(request)
            if set(told) != set(parameters):
                raise InvalidValue(f"not {', '.join(parameters)}", path=name)
            if "lookup_identifier" in told:
                told["lookup_identifier"] = _whole(told["lookup_identifier"], "lookup_identifier")
            try:
                answer = await self._run(op, **told)
            except (InvalidValue, QueueError) as exc:
                log.warning(f"console: {name} refused", extra={**_logged(request, told), "error": str(exc)})
                raise
            log.info(f"console: {name}", extra=_logged(request, told))
            return web.json_response(answer)

        return change


def _logged(request: web.Request, told: Mapping[str, Any]) -> dict[str, Any]:
    return {"peer": request.remote, **{name: str(value)[:_LOGGED_MAX] for name, value in told.items()}}


def _with_text_identifier(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message for JavaScript, whose numbers are too small for a lookup identifier."""
    return {**message, "lookup_identifier": str(message["lookup_identifier"])}


async def _object(request: web.Request) -> dict[str, Any]:
    """Return the JSON object of a request in any charset. Raises InvalidValue."""
    if request.content_type != "application/json":
        raise web.HTTPUnsupportedMediaType(text="not application/json")
    try:
        told = json.loads(await request.read())
    except (ValueError, RecursionError, web.RequestPayloadError, ConnectionError):
        told = None  # also if the client disconnects before it has sent all of it
    if not isinstance(told, dict):
        raise InvalidValue("not an object of JSON", path="request")
    return told


def _number(request: web.Request, name: str) -> int:
    return _whole(request.query.get(name), name)


def _whole(value: object, path: str) -> int:
    """Return a number that is given as text. Raises InvalidValue."""
    if not isinstance(value, str) or not (value.isascii() and value.isdigit() and len(value) <= _DIGITS_MAX):
        raise InvalidValue("not a whole number", path=path)
    return int(value)
