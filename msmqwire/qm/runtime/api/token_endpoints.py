"""Endpoints of tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msmqwire.errors import InvalidValue
from msmqwire.qm.rules.api_tokens import NAME_MAX
from msmqwire.qm.runtime.api.changes import change
from msmqwire.qm.runtime.api.lists import PAGING, list_schema
from msmqwire.qm.runtime.api.problems import Problem
from msmqwire.qm.runtime.api.rights import Right
from msmqwire.qm.runtime.api.routes import Call, Reply, Route
from msmqwire.qm.runtime.api.values import Schema, ref
from msmqwire.qm.runtime.token_operations import token_json

if TYPE_CHECKING:
    from msmqwire.qm.runtime.api.api import Api

_TAG: Final = "tokens"
_NAME: Final[Schema] = {"type": "string", "minLength": 1, "maxLength": NAME_MAX}
_RIGHT: Final[Schema] = {"type": "string", "enum": [str(right) for right in Right]}
TOKEN_SCHEMAS: Final[dict[str, Schema]] = {
    "Token": {
        "type": "object",
        "required": ["name", "right", "created"],
        "properties": {
            "name": _NAME,
            "right": _RIGHT,
            "created": {"type": "string", "format": "date-time"},
        },
    },
    "NewToken": {
        "type": "object",
        "required": ["name", "right", "token"],
        "properties": {
            "name": _NAME,
            "right": _RIGHT,
            "token": {"type": "string", "description": "The secret, shown this once"},
        },
    },
}


class _TokenEndpoints:
    def __init__(self, api: Api) -> None:
        self._api = api

    async def list(self, call: Call) -> Reply:
        tokens = self._api.core.tokens.all()
        lists = self._api.lists
        return Reply(lists.page(tokens, call.parameters, "tokens", lambda token: token.name, token_json))

    async def create(self, call: Call) -> Reply:
        name = call.body["name"]
        try:
            return Reply(await change(self._api, call, "token_create", **call.body), 201)
        except InvalidValue as exc:
            if self._api.core.tokens.named(name) is None:
                raise
            raise Problem(409, exc.why, name="InvalidValue", path="name") from None

    async def revoke(self, call: Call) -> Reply:
        name = call.parameters["name"]
        if self._api.core.tokens.named(name) is None:
            raise Problem(404, f"no token is named {name!r:.200}")
        await change(self._api, call, "token_revoke", name=name)
        return Reply(status=204)


def routes(api: Api) -> list[Route]:
    """Return the routes."""
    own = _TokenEndpoints(api)
    new: Schema = {
        "type": "object",
        "required": ["name", "right"],
        "additionalProperties": False,
        "properties": {"name": _NAME, "right": _RIGHT},
    }
    return [
        Route(
            "GET", "/tokens", Right.READ, "list_tokens", "The tokens by name, without their secrets",
            own.list, parameters=PAGING, answers={200: list_schema(ref("Token"))}, tag=_TAG,
        ),
        Route(
            "POST", "/tokens", Right.ADMINISTER, "create_token", "Create a token",
            own.create, body=new, answers={201: ref("NewToken")}, tag=_TAG,
        ),
        Route(
            "DELETE", "/tokens/{name}", Right.ADMINISTER, "revoke_token",
            "Revoke a token: it does not hold any more, and its streams end",
            own.revoke, answers={204: None}, tag=_TAG,
        ),
    ]  # fmt: skip
