"""Endpoints for the console's pages: logins, samples of the counters, the log."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web

from msmqwire.qm.runtime.api.guard import SESSION
from msmqwire.qm.runtime.api.logins import BrowserSession
from msmqwire.qm.runtime.api.problems import Problem
from msmqwire.qm.runtime.api.rights import Right
from msmqwire.qm.runtime.api.routes import Call, Parameter, Reply, Route
from msmqwire.qm.runtime.api.sample_stream import SampleStream
from msmqwire.qm.runtime.api.tokens import TOKEN_MAX
from msmqwire.qm.runtime.api.values import Schema
from msmqwire.qm.runtime.console.samples import COLUMNS
from msmqwire.service.logs import log
from msmqwire.service.page_guard import PageGuard

if TYPE_CHECKING:
    from msmqwire.qm.runtime.api.api import Api

LOG_MAX: Final = 200
"""Limit of lines of an answer with the log."""
_LEVELS: Final = ("debug", "info", "warning", "error")
_NUMBER_MAX: Final = (1 << 53) - 1
_LOGIN: Final[Schema] = {
    "type": "object",
    "description": "What a login may do; `{}` without one",
    "properties": {
        "csrf": {"type": "string", "description": "For `X-CSRF-Token` of each change"},
        "write": {"type": "boolean", "description": "Whether the server has `--console-write`"},
        "name": {"type": "string", "description": "The name of the token"},
        "right": {"type": "string", "enum": [str(right) for right in Right]},
        "computer": {"type": "string"},
        "identifier": {"type": "string"},
        "sample_s": {"type": "number", "description": "Seconds between samples"},
    },
}
_SAMPLES: Final[Schema] = {
    "type": "object",
    "description": "By figure: its values, the latest last; `time` in seconds since 1970-01-01 UTC",
    "properties": {name: {"type": "array", "items": {"type": "number"}} for name in COLUMNS},
}
_LINES: Final[Schema] = {
    "type": "object",
    "required": ["lines", "last"],
    "properties": {
        "lines": {"type": "array", "items": {"type": "object"}, "maxItems": LOG_MAX},
        "last": {"type": "integer", "description": "The number of the latest line of any level"},
    },
}
_TAG: Final = "console"


class _ConsoleEndpoints:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._stream = SampleStream(api.guard, api.samples, api.records, api.limits)

    async def login(self, call: Call) -> Reply:
        """Answer with the rights of a page; before a login there are none, which is not an error."""
        session = call.request.get(SESSION)
        return Reply({} if session is None else self._about(session))

    async def log_in(self, call: Call) -> web.StreamResponse:
        guard, request = self._api.guard, call.request
        PageGuard.check_origin(request)
        begun = guard.logins.log_in(request.remote or "", call.body["token"])
        if begun is None:
            await guard.delay()
            why = "that is neither the token in the file console-token nor one of msmqwire token list"
            raise Problem(401, why)
        identifier, session = begun
        log.info("a login to the console", extra={"peer": request.remote, "token": session.caller.name})
        response = Reply(self._about(session)).answer()
        response.set_cookie(
            guard.cookie,
            identifier,
            httponly=True,
            samesite="Strict",
            path="/",
            max_age=int(guard.logins.limits.session_s),
            secure=request.headers.get("Origin", "").startswith("https:"),
        )
        return response

    async def log_out(self, call: Call) -> web.StreamResponse:
        guard, session = self._api.guard, call.request.get(SESSION)
        if session is None:
            raise Problem(409, "a token has no login that could end: msmqwire token revoke ends the token")
        guard.logins.end(session)
        response = Reply({}).answer()
        response.del_cookie(guard.cookie, path="/", httponly=True, samesite="Strict")
        return response

    def _about(self, session: BrowserSession) -> dict[str, Any]:
        manager = self._api.core.queue_manager
        return {
            "csrf": session.csrf,
            "write": self._api.guard.write,
            "name": session.caller.name,
            "right": session.caller.right,
            "computer": manager.computer_name,
            "identifier": str(manager.identifier),
            "sample_s": self._api.samples.seconds,
        }

    async def samples(self, call: Call) -> Reply:
        return Reply(self._api.samples.columns())

    async def stream(self, call: Call) -> web.StreamResponse:
        self._api.last(call.request, self._api.limits.session_s)
        return await self._stream.stream(call.request)

    async def log(self, call: Call) -> Reply:
        level = logging.getLevelName(call.parameters.get("level", "info").upper())
        records = self._api.records
        lines = records.after(call.parameters.get("after", 0), level, LOG_MAX)
        return Reply({"lines": lines, "last": records.last})


def routes(api: Api) -> list[Route]:
    """Return the routes."""
    own = _ConsoleEndpoints(api)
    body: Schema = {
        "type": "object",
        "required": ["token"],
        "additionalProperties": False,
        "properties": {"token": {"type": "string", "maxLength": TOKEN_MAX}},
    }
    level = Parameter(
        "level", {"type": "string", "enum": list(_LEVELS), "default": "info"}, "This level and above"
    )
    number: Schema = {"type": "integer", "minimum": 0, "maximum": _NUMBER_MAX, "default": 0}
    after = Parameter("after", number, "Only lines with a greater number")
    return [
        Route(
            "GET", "/login", None, "login", "What the login of a browser may do", own.login,
            answers={200: _LOGIN}, tag=_TAG,
        ),
        Route(
            "POST", "/login", None, "log_in", "Log a browser in by a token: the answer sets a cookie",
            own.log_in, body=body, answers={200: _LOGIN}, tag=_TAG, body_bytes=4096,
        ),
        Route(
            "POST", "/logout", Right.READ, "log_out", "End the login of a browser", own.log_out,
            body={"type": "object", "additionalProperties": False}, body_required=False,
            answers={200: {"type": "object"}}, tag=_TAG, changes=False, body_bytes=4096,
        ),
        Route(
            "GET", "/samples", Right.READ, "samples", "Samples of the counters of the last half hour",
            own.samples, answers={200: _SAMPLES}, tag=_TAG,
        ),
        Route(
            "GET", "/samples/events", Right.READ, "sample_events",
            "Each sample as an event `sample`, as soon as it is taken",
            own.stream, answers={200: {"type": "string"}}, answer_type="text/event-stream", tag=_TAG,
        ),
        Route(
            "GET", "/log", Right.READ, "log", "The latest lines of the log", own.log,
            parameters=(level, after), answers={200: _LINES}, tag=_TAG,
        ),
    ]  # fmt: skip
