"""The route table: each endpoint with its right, its parameters, its body and its answers."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qsl, unquote_to_bytes

from aiohttp import web

from msmqwire.constants import HResult
from msmqwire.errors import InvalidName, InvalidValue
from msmqwire.qm.runtime.api.bodies import BodyRoom, json_of
from msmqwire.qm.runtime.api.problems import Problem
from msmqwire.qm.runtime.api.rights import Caller, Right
from msmqwire.qm.runtime.api.values import Checker, Schema

BASE: Final = "/api/v1"
"""What the path of a route begins with, unless it is at the root."""
_FIELDS_MAX: Final = 20
"""Limit of the parameters of a query."""
_NAME: Final = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a route in its query or its header fields; those of the path follow from the path.

    Attributes:
        name: its name.
        schema: its schema; a text, a whole number, or true or false.
        summary: what it means, for the document.
        where: ``query`` or ``header``.
        required: whether it has to be there.
    """

    name: str
    schema: Schema
    summary: str
    where: str = "query"
    required: bool = False


@dataclass(slots=True)
class Call:
    """A request that has passed all checks of its route.

    Attributes:
        parameters: values of the path, the query and the header fields by name; without those not given.
        body: the JSON of the body; None for a route without one.
        caller: who sends it; None for a route without a right.
        request: the request itself.
        raw: the bytes of the body.
    """

    parameters: dict[str, Any]
    body: Any
    caller: Caller | None
    request: web.Request
    raw: bytes = b""

    @property
    def sender(self) -> Caller:
        """Who sends it, for a route with a right."""
        assert self.caller is not None, "the route has a right"
        return self.caller


@dataclass(slots=True)
class Reply:
    """An answer: a value as JSON.

    Attributes:
        json: the value; None for no content.
        status: the status.
        headers: further header fields.
    """

    json: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    def answer(self) -> web.Response:
        """Return the answer."""
        if self.json is None:
            return web.Response(status=self.status, headers=self.headers)
        body = json.dumps(self.json, separators=(",", ":")).encode()
        return web.Response(
            status=self.status, body=body, content_type="application/json", headers=self.headers
        )


RouteHandler = Callable[[Call], Awaitable[Reply | web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Route:
    """An endpoint.

    Attributes:
        method: the method of HTTP.
        path: relative to ``/api/v1``, with parameters in braces: ``/queues/{queue}``.
        right: what a token has to allow; None if no token is needed.
        name: its name in the document (``operationId``).
        summary: what it does, one sentence.
        handler: answers a call.
        parameters: those of the query and the header fields.
        body: the schema of its body; None for none.
        body_required: whether a body has to be sent; without it an absent one counts as ``{}``.
        answers: by status: the schema of the answer, or None for one without content; or, with
            `answer_type`, one that is not JSON.
        answer_type: the type of the content of its answers.
        tag: the group that it is shown in.
        root: whether the path is not below ``/api/v1``.
        changes: whether it changes something: refused without ``--console-write``. By default what needs
            more than the right to read.
        while_restoring: whether it is answered while the store is being restored.
        body_bytes: limit of the body.
    """

    method: str
    path: str
    right: Right | None
    name: str
    summary: str
    handler: RouteHandler
    parameters: tuple[Parameter, ...] = ()
    body: Schema | None = None
    body_required: bool = True
    answers: Mapping[int, Schema | None] = field(default_factory=dict)
    answer_type: str = "application/json"
    tag: str = ""
    root: bool = False
    changes: bool | None = None
    while_restoring: bool = False
    body_bytes: int = 8 << 20

    @property
    def full_path(self) -> str:
        """The path from the root on."""
        return self.path if self.root else BASE + self.path

    @property
    def names(self) -> list[str]:
        """The names of the parameters in the path."""
        return _NAME.findall(self.path)

    @property
    def changing(self) -> bool:
        """Whether it needs ``--console-write``."""
        if self.changes is not None:
            return self.changes
        return self.right is not None and self.right is not Right.READ


class _Segments:
    """A part of the tree of paths: the routes that end here by method, and the following segments."""

    def __init__(self) -> None:
        self.routes: dict[str, Route] = {}
        self.fixed: dict[str, _Segments] = {}
        self.any: _Segments | None = None

    def following(self, segment: str) -> _Segments:
        """Return the part behind a segment of the path of a route; it is made if it is missing."""
        if _NAME.fullmatch(segment) is None:
            return self.fixed.setdefault(segment, _Segments())
        if self.any is None:
            self.any = _Segments()
        return self.any

    def find(self, segments: list[str]) -> tuple[_Segments, list[str]] | None:
        """Return the part that the segments of a request lead to, with those that are parameters."""
        here, values = self, []
        for segment in segments:
            if segment in here.fixed:
                here = here.fixed[segment]
            elif here.any is not None and segment:
                here = here.any
                values.append(segment)
            else:
                return None
        return here, values


class RouteTable:
    """All routes: finds that of a request, and checks the request against it."""

    def __init__(self, routes: list[Route], schemas: Mapping[str, Schema]) -> None:
        """Make a table. Raises ValueError for two routes of one method and path, or of one name."""
        self.routes, self.schemas = routes, schemas
        self.checker = Checker(schemas)
        self._tree = _Segments()
        self._bodies = BodyRoom()
        names: set[str] = set()
        for route in routes:
            end = self._tree
            for segment in route.full_path.split("/")[1:]:
                end = end.following(segment)
            if route.method in end.routes or route.name in names:
                raise ValueError(f"{route.method} {route.path} ({route.name}) is there twice")
            names.add(route.name)
            end.routes[route.method] = route
            for schema in [route.body, *route.answers.values(), *(one.schema for one in route.parameters)]:
                if schema is not None:
                    self.checker.known(schema)
        for schema in schemas.values():
            self.checker.known(schema)

    def find(self, method: str, raw_path: str) -> tuple[Route, dict[str, str]]:
        """Return the route of a request, and the texts in its path by parameter.

        Raises Problem with 404 and 405, and InvalidName for a segment that is not UTF-8.
        """
        found = self._tree.find(raw_path.split("/")[1:])
        if found is None or not found[0].routes:
            raise Problem(404, "the API has no such path: /api/v1/openapi.json lists them")
        end, values = found
        route = end.routes.get(method)
        if route is None:
            allowed = ", ".join(sorted(end.routes))
            raise Problem(405, f"only {allowed} here", headers={"Allow": allowed})
        return route, {name: _decoded(value, name) for name, value in zip(route.names, values, strict=True)}

    async def call(self, route: Route, texts: Mapping[str, str], request: web.Request) -> Call:
        """Return the call of a request that may pass. Raises InvalidValue, InvalidName and Problem."""
        from msmqwire.qm.runtime.api.guard import CALLER

        parameters: dict[str, Any] = dict(texts)
        query = _query(request.rel_url.raw_query_string)
        known = {one.name: one for one in route.parameters if one.where == "query"}
        for name in query:
            if name not in known:
                raise InvalidValue("not a parameter of this path", path=_shown(name))
        for one in route.parameters:
            text = query.get(one.name) if one.where == "query" else request.headers.get(one.name)
            if text is not None:
                parameters[one.name] = self.checker.from_text(one.schema, text, one.name)
            elif one.required:
                raise InvalidValue("missing", path=one.name)
        body, data = None, b""
        caller = request.get(CALLER)
        if route.body is not None:
            key = "" if caller is None else caller.key
            data = await self._bodies.read(request, route.body_bytes, key)
            body = {} if not data and not route.body_required else json_of(request, data)
            self.checker.check(route.body, body, "")
        return Call(parameters, body, caller, request, data)


def _decoded(segment: str, name: str) -> str:
    """Return a segment of a path without its percent signs. Raises InvalidName."""
    try:
        return unquote_to_bytes(segment).decode()
    except UnicodeDecodeError:
        why = "not UTF-8, percent-encoded as a whole"
        raise InvalidName(why, path=name, hresult=HResult.MQ_ERROR_ILLEGAL_FORMATNAME) from None


def _query(raw: str) -> dict[str, str]:
    """Return the parameters of a query. Raises InvalidValue."""
    if not raw:
        return {}
    try:
        pairs = parse_qsl(raw, keep_blank_values=True, errors="strict", max_num_fields=_FIELDS_MAX)
    except ValueError:
        raise InvalidValue(f"not UTF-8, or more than {_FIELDS_MAX} parameters", path="query") from None
    query = dict(pairs)
    if len(query) < len(pairs):
        twice = next(name for at, (name, _) in enumerate(pairs) if name in dict(pairs[:at]))
        raise InvalidValue("there twice", path=_shown(twice))
    return query


def _shown(name: str) -> str:
    return name[:100] if name.isprintable() and name else ascii(name[:100])


def status_text(status: int) -> str:
    """Return the words of a status of HTTP."""
    return HTTPStatus(status).phrase
