"""The endpoint that sends messages."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from msmqwire.errors import InvalidValue
from msmqwire.names import FormatName
from msmqwire.qm.model.elements import OutgoingQueue
from msmqwire.qm.runtime.api.once import digest_of, unpacked
from msmqwire.qm.runtime.api.rights import Right
from msmqwire.qm.runtime.api.routes import Call, Parameter, Reply, Route
from msmqwire.qm.runtime.api.values import Schema, ref
from msmqwire.qm.runtime.deliveries import RECOVERABLE, TRANSACTIONAL
from msmqwire.qm.runtime.local_names import queue_name
from msmqwire.service.control.server import BATCH_MAX

if TYPE_CHECKING:
    from msmqwire.qm.runtime.api.api import Api

KEY: Final = "Idempotency-Key"
KEY_MAX: Final = 255
"""Limit of characters of an Idempotency-Key."""
REPLAYED: Final = {"Idempotency-Replayed": "true"}
"""The header field of an answer to a request that was carried out before."""
IDEMPOTENCY_KEY: Final = Parameter(
    KEY,
    {"type": "string", "minLength": 1, "maxLength": KEY_MAX},
    "Printable characters that belong to this request alone: a repeated one has the same answer, with "
    "`Idempotency-Replayed: true`, and changes nothing",
    where="header",
)
TRANSACTION: Final[Schema] = {"type": "string", "minLength": 1, "maxLength": 64}
"""The name of a transaction, as clients send it."""
TAG: Final = "messages"
_BODY: Final[Schema] = {
    "type": "object",
    "required": ["to", "messages"],
    "additionalProperties": False,
    "properties": {
        "to": {
            "type": "string",
            "minLength": 1,
            "maxLength": 4096,
            "description": "A queue of this computer, as `private$\\orders`, or a format name",
        },
        "messages": {
            "type": "array",
            "minItems": 1,
            "maxItems": BATCH_MAX,
            "items": ref("MessageToSend"),
        },
        "transaction": TRANSACTION,
    },
}
_SENT: Final[Schema] = {
    "type": "object",
    "required": ["sent"],
    "properties": {
        "sent": {"type": "array", "items": {"type": "string"}, "description": "The identifiers, in order"}
    },
}


def key_of(call: Call) -> str | None:
    """Return the Idempotency-Key of a call; None if it has none. Raises InvalidValue."""
    key: str | None = call.parameters.get(KEY)
    if key is not None:
        if len(call.request.headers.getall(KEY)) > 1:
            raise InvalidValue("there twice", path=KEY)
        if not key.isprintable():  # nor UTF-8, which would have surrogates
            raise InvalidValue("not printable", path=KEY)
    return key


class _SendEndpoint:
    def __init__(self, api: Api) -> None:
        self._api = api

    async def send(self, call: Call) -> Reply:
        session, key = self._api.messaging.of(call.sender), key_of(call)
        request = self._request(call.body)
        if key is None:
            return _reply(await session.send(request))
        once, owner = self._api.messaging.once, call.sender.key
        digest = digest_of("POST", "/messages", call.raw)
        before = once.find(owner, key, digest)
        if before is not None:
            return Reply({"sent": unpacked(before)}, 201, REPLAYED)
        with once.carried_out(owner, key, digest) as keep:
            return _reply(await session.send(request, key, keep))

    def _request(self, told: dict[str, Any]) -> dict[str, Any]:
        """Return the operation of the control channel."""
        core = self._api.core
        name = _name(told["to"], core.queue_manager.computer_name)
        entries = told["messages"]
        if any("delivery" not in entry for entry in entries):
            transactional = "transaction" in told
            if not transactional:
                found = core.queues.lookup.find(name)
                known = found is not None and not isinstance(found, OutgoingQueue)
                transactional = known and found.transactional  # type: ignore[union-attr]
            default = TRANSACTIONAL if transactional else RECOVERABLE
            entries = [{"delivery": default, **entry} for entry in entries]
        request = {"op": "send", "to": str(name), "messages": entries}
        if "transaction" in told:
            request["transaction"] = told["transaction"]
        return request


@lru_cache(maxsize=256)
def _name(to: str, computer: str) -> FormatName:
    return queue_name(to, computer)


def _reply(sent: list[str]) -> Reply:
    return Reply({"sent": sent}, 201)


def routes(api: Api) -> list[Route]:
    """Return the routes."""
    return [
        Route(
            "POST",
            "/messages",
            Right.READ_WRITE,
            "send_messages",
            "Send 1 to 1,000 messages to one queue, all or none",
            _SendEndpoint(api).send,
            parameters=(IDEMPOTENCY_KEY,),
            body=_BODY,
            answers={201: _SENT},
            tag=TAG,
        ),
    ]
