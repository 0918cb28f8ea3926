"""Endpoints of definitions: all of them are exported and imported at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msmqwire.qm.runtime.api.rights import Right
from msmqwire.qm.runtime.api.routes import Call, Parameter, Reply, Route
from msmqwire.qm.runtime.definitions.text import VERSION, VERSION_NAME

if TYPE_CHECKING:
    from msmqwire.qm.runtime.api.api import Api
    from msmqwire.qm.runtime.api.values import Schema

_TAG: Final = "definitions"
_LIST: Final[Schema] = {"type": "array", "items": {"type": "object"}}
DEFINITIONS: Final[Schema] = {
    "type": "object",
    "properties": {
        VERSION_NAME: {"const": VERSION},
        **dict.fromkeys(
            (
                "queues", "policies", "triggers", "certificates", "routes", "hosts", "settings", "keys",
                "peer_keys",
            ),
            _LIST,
        ),
    },
    "required": [VERSION_NAME],
    "additionalProperties": False,
}  # fmt: skip
"""Definitions. The items of the lists are checked by the import, which names a wrong one."""
CHANGES: Final[Schema] = {
    "type": "object",
    "properties": {
        "changes": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "change": {"enum": ["create", "change"]},
                    "kind": {"type": "string"},
                    "name": {"type": "string"},
                },
                "required": ["change", "kind", "name"],
            },
        }
    },
    "required": ["changes"],
}


class _DefinitionEndpoints:
    def __init__(self, api: Api) -> None:
        self._api = api

    async def export(self, call: Call) -> Reply:
        secrets = call.parameters.get("with_secrets", False)
        return Reply((await self._api.run("definitions_export", secrets=secrets))["definitions"])

    async def import_(self, call: Call) -> Reply:
        dry_run = call.parameters.get("dry_run", False)
        return Reply(await self._api.run("definitions_import", definitions=call.body, dry_run=dry_run))


def routes(api: Api) -> list[Route]:
    """Return the routes."""
    own = _DefinitionEndpoints(api)
    flag: Schema = {"type": "boolean", "default": False}
    return [
        Route(
            "GET", "/definitions", Right.ADMINISTER, "export_definitions",
            "Queues, policies, certificates, hosts, routes and settings", own.export,
            parameters=(Parameter("with_secrets", flag, "Private keys too"),),
            answers={200: DEFINITIONS}, tag=_TAG,
        ),
        Route(
            "POST", "/definitions", Right.ADMINISTER, "import_definitions",
            "Create and change what definitions say, all or nothing", own.import_, body=DEFINITIONS,
            parameters=(Parameter("dry_run", flag, "Change nothing"),), answers={200: CHANGES}, tag=_TAG,
        ),
    ]  # fmt: skip
