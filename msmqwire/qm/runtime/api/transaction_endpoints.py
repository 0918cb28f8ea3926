"""Endpoints of transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msmqwire.qm.runtime.api.once import digest_of
from msmqwire.qm.runtime.api.rights import Right
from msmqwire.qm.runtime.api.routes import Call, Reply, Route
from msmqwire.qm.runtime.api.send_endpoints import IDEMPOTENCY_KEY, REPLAYED, TAG, key_of
from msmqwire.qm.runtime.api.values import Schema

if TYPE_CHECKING:
    from msmqwire.qm.runtime.api.api import Api

WITHIN_S_MAX: Final = 3600
"""The longest time in seconds that a transaction may be left alone."""
_WITHIN_S: Final = 60
_BODY: Final[Schema] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "within_s": {
            "type": "integer",
            "minimum": 1,
            "maximum": WITHIN_S_MAX,
            "default": _WITHIN_S,
            "description": "Seconds after its last use after which it is aborted",
        }
    },
}
_ENDED: Final[Schema] = {
    "type": "object",
    "required": ["transaction"],
    "properties": {"transaction": {"type": "string"}},
}


class _TransactionEndpoints:
    def __init__(self, api: Api) -> None:
        self._api = api

    async def begin(self, call: Call) -> Reply:
        session = self._api.messaging.of(call.sender)
        return Reply({"transaction": await session.begin(call.body.get("within_s", _WITHIN_S))}, 201)

    async def commit(self, call: Call) -> Reply:
        session, transaction = self._api.messaging.of(call.sender), call.parameters["transaction"]
        key, answer = key_of(call), {"transaction": transaction}
        if key is None:
            await session.commit(transaction)
            return Reply(answer)
        once, owner = self._api.messaging.once, call.sender.key
        digest = digest_of("POST", f"/transactions/{transaction}/commit", call.raw)
        if once.find(owner, key, digest) is not None:
            return Reply(answer, headers=REPLAYED)
        with once.carried_out(owner, key, digest) as keep:
            await session.commit(transaction, keep)
        return Reply(answer)

    async def abort(self, call: Call) -> Reply:
        transaction = call.parameters["transaction"]
        await self._api.messaging.of(call.sender).abort(transaction)
        return Reply({"transaction": transaction})


def routes(api: Api) -> list[Route]:
    """Return the routes."""
    own = _TransactionEndpoints(api)
    return [
        Route(
            "POST",
            "/transactions",
            Right.READ_WRITE,
            "begin_transaction",
            "Begin a transaction, in which messages are sent and received",
            own.begin,
            body=_BODY,
            body_required=False,
            answers={201: _ENDED},
            tag=TAG,
        ),
        Route(
            "POST",
            "/transactions/{transaction}/commit",
            Right.READ_WRITE,
            "commit_transaction",
            "Commit a transaction: its messages are sent, and those received in it deleted, all at once",
            own.commit,
            parameters=(IDEMPOTENCY_KEY,),
            answers={200: _ENDED},
            tag=TAG,
        ),
        Route(
            "POST",
            "/transactions/{transaction}/abort",
            Right.READ_WRITE,
            "abort_transaction",
            "Abort a transaction: its messages are not sent, and those received in it are back",
            own.abort,
            answers={200: _ENDED},
            tag=TAG,
        ),
    ]
