"""The modules of endpoints: each adds its routes to the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from msmqwire.qm.runtime.api import (
    console_endpoints,
    definition_endpoints,
    document_endpoint,
    health_endpoints,
    key_endpoints,
    manager_endpoints,
    message_endpoints,
    policy_endpoints,
    queue_endpoints,
    receive_endpoints,
    send_endpoints,
    token_endpoints,
    transaction_endpoints,
    viewing_endpoints,
)
from msmqwire.qm.runtime.api.key_endpoints import KEY_SCHEMAS
from msmqwire.qm.runtime.api.message_schemas import MESSAGE_SCHEMAS
from msmqwire.qm.runtime.api.routes import RouteTable
from msmqwire.qm.runtime.api.schemas import SCHEMAS
from msmqwire.qm.runtime.api.token_endpoints import TOKEN_SCHEMAS

if TYPE_CHECKING:
    from msmqwire.qm.runtime.api.api import Api

_MODULES: Final = (
    console_endpoints,
    definition_endpoints,
    document_endpoint,
    key_endpoints,
    health_endpoints,
    manager_endpoints,
    message_endpoints,
    policy_endpoints,
    queue_endpoints,
    receive_endpoints,
    send_endpoints,
    token_endpoints,
    transaction_endpoints,
    viewing_endpoints,
)


def all_routes(api: Api) -> RouteTable:
    """Return the table of all routes."""
    return RouteTable(
        [route for module in _MODULES for route in module.routes(api)],
        SCHEMAS | MESSAGE_SCHEMAS | TOKEN_SCHEMAS | KEY_SCHEMAS,
    )


class _Nobody:
    """Stands in for the API in a table that answers nothing."""

    def __getattr__(self, name: str) -> _Nobody:
        return self

    def __call__(self, *args: object, **named: object) -> _Nobody:
        return self


def described_routes() -> RouteTable:
    """Return the table of all routes without a server, for the documents that are made of it."""
    return all_routes(cast("Api", _Nobody()))
