"""Endpoints of policies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msmqwire.qm.runtime import policies
from msmqwire.qm.runtime.api.lists import PAGING, list_schema
from msmqwire.qm.runtime.api.policy_schemas import POLICY_WITHOUT_NAME
from msmqwire.qm.runtime.api.rights import Right
from msmqwire.qm.runtime.api.routes import Call, Reply, Route
from msmqwire.qm.runtime.api.values import ref

if TYPE_CHECKING:
    from msmqwire.qm.runtime.api.api import Api

_TAG: Final = "policies"


class _PolicyEndpoints:
    def __init__(self, api: Api) -> None:
        self._api = api

    async def list(self, call: Call) -> Reply:
        found = self._api.running.read(policies.listed, self._api.core)
        return Reply(self._api.lists.page(found, call.parameters, _TAG, _key, dict))

    async def show(self, call: Call) -> Reply:
        return Reply(await self._api.run("policy_show", **call.parameters))

    async def create(self, call: Call) -> Reply:
        return Reply(await self._api.run("policy_set", **call.body, missing=True), status=201)

    async def put(self, call: Call) -> Reply:
        return Reply(await self._api.run("policy_set", **{**call.body, **call.parameters}))

    async def delete(self, call: Call) -> Reply:
        await self._api.run("policy_delete", **call.parameters)
        return Reply(status=204)


def _key(policy: dict[str, Any]) -> str:
    name: str = policy["name"]
    return name


def routes(api: Api) -> list[Route]:
    """Return the routes."""
    own, one = _PolicyEndpoints(api), "/policies/{name}"
    policy = ref("Policy")
    return [
        Route(
            "GET", "/policies", Right.READ, "list_policies", "Policies, by name", own.list, parameters=PAGING,
            answers={200: list_schema(policy)}, tag=_TAG,
        ),
        Route(
            "POST", "/policies", Right.ADMINISTER, "create_policy", "Add a policy with a new name",
            own.create, body=policy, answers={201: policy}, tag=_TAG,
        ),
        Route(
            "GET", one, Right.READ, "show_policy", "A policy", own.show, answers={200: policy}, tag=_TAG,
        ),
        Route(
            "PUT", one, Right.ADMINISTER, "set_policy", "Add a policy, or replace the one of this name",
            own.put, body=POLICY_WITHOUT_NAME, answers={200: policy}, tag=_TAG,
        ),
        Route(
            "DELETE", one, Right.ADMINISTER, "delete_policy", "Delete a policy", own.delete,
            answers={204: None}, tag=_TAG,
        ),
    ]  # fmt: skip
