"""The OpenAPI 3.1 document of the API, made of the route table."""

from __future__ import annotations

from typing import Any, Final

from msmqwire.qm.runtime.api.problems import CONTENT_TYPE
from msmqwire.qm.runtime.api.routes import Route, RouteTable
from msmqwire.qm.runtime.api.values import ref

VERSION: Final = "1"
"""The version of the API; members are added to it, none changes its meaning."""
_NAMES: Final = {
    "queue": "The name of a queue, a subqueue or a format name, percent-encoded as a whole",
    "lookup_identifier": "The lookup identifier of a message",
    "digest": "The digest of a certificate, in hexadecimal",
    "name": "A name",
    "transaction": "A transaction that was begun, and has not ended",
}
"""What the parameters of paths mean."""
_ERRORS: Final = {
    400: "A value or a name that is not valid; `path` says which",
    401: "No token, or one that does not hold",
    403: "The token does not allow it, or the server runs without --console-write",
    404: "Not there",
    405: "Another method",
    409: "Refused by the queue manager",
    413: "The body is too long",
    415: "The body is not JSON",
    421: "The server is not reached by this Host",
    422: "An Idempotency-Key that came with another body before",
    429: "Too many requests",
    503: "The server starts, drains or ends",
    507: "A quota, or the disk, is full",
}
_ABOUT: Final = """\
Everything that the console and the commands can do with a running queue manager.
Requests have a token, `Authorization: Bearer TOKEN` (`msmqwire token create`), or the cookie of the console
with its `Origin` and, for changes, `X-CSRF-Token`. What changes something needs a server with
`--console-write`."""


def document(table: RouteTable) -> dict[str, Any]:
    """Return the document of a table."""
    paths: dict[str, dict[str, Any]] = {}
    for route in table.routes:
        paths.setdefault(route.full_path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "msmqwire",
            "version": VERSION,
            "description": _ABOUT,
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}],
        "tags": [{"name": tag} for tag in dict.fromkeys(route.tag for route in table.routes)],
        "paths": paths,
        "components": {
            "schemas": dict(table.schemas),
            "responses": {_response_name(status): _problem(why) for status, why in _ERRORS.items()},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(route: Route) -> dict[str, Any]:
    parameters = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string"},
            "description": _NAMES[name],
        }
        for name in route.names
    ]
    parameters += [
        {
            "name": one.name,
            "in": one.where,
            "required": one.required,
            "schema": one.schema,
            "description": one.summary,
        }
        for one in route.parameters
    ]
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "tags": [route.tag],
        "responses": _responses(route),
    }
    if parameters:
        operation["parameters"] = parameters
    if route.right is None:
        operation["security"] = []
    else:
        operation["description"] = f"Needs a token with the right `{route.right}`" + (
            " and a server with `--console-write`." if route.changing else "."
        )
        operation["x-right"] = str(route.right)
    if route.body is not None:
        content = {"application/json": {"schema": route.body}}
        operation["requestBody"] = {"required": route.body_required, "content": content}
    return operation


def _responses(route: Route) -> dict[str, Any]:
    responses: dict[str, Any] = {}
    for status, schema in route.answers.items():
        responses[str(status)] = {"description": route.summary}
        if schema is not None:
            responses[str(status)]["content"] = {route.answer_type: {"schema": schema}}
    for status in _ERRORS:
        if str(status) not in responses and _can_be(status, route):
            responses[str(status)] = {"$ref": f"#/components/responses/{_response_name(status)}"}
    return responses


def _response_name(status: int) -> str:
    return f"Problem{status}"


def _problem(why: str) -> dict[str, Any]:
    return {"description": why, "content": {CONTENT_TYPE: {"schema": ref("Problem")}}}


def _can_be(status: int, route: Route) -> bool:
    """Whether a status of an error can be the answer of a route."""
    if status in (401, 429):
        return True  # also without a right: a wrong token is refused everywhere
    if status == 403:
        return route.right is not None
    if status in (409, 507):
        return route.changing
    if status in (413, 415):
        return route.body is not None
    if status == 404:
        return bool(route.names) or route.body is not None
    if status == 422:
        return any(one.name == "Idempotency-Key" for one in route.parameters)
    return True
