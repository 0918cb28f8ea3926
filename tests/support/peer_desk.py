"""Servers for the tests with the hand-written peer, and what is looked at in them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from msmqwire.qm.runtime.local import attach
from msmqwire.qm.runtime.server import SETTINGS, ServerOptions
from msmqwire.qm.runtime.transport import AddressOverrides, Limits
from tests.support.raw_peer import OTHER, Listener, Message, Session
from tests.support.running import (
    LEDGER,
    ORDERS,
    InThread,
    bodies,
    message,
    options,
    peeked,
    recoverable,
    served,
    until,
)

SERVER = "127.0.0.71"
HONEST = "127.0.0.79"
TO_PEER = r"DIRECT=OS:peer\private$\inbox"

__all__ = [
    "LEDGER", "ORDERS", "SERVER", "TO_PEER", "alpha", "at", "bodies", "desk_options", "identity", "in_queue",
    "message", "outgoing", "recoverable", "rung", "send", "serves", "sessions", "until",
]  # fmt: skip


def desk_options(
    data: Path, listener: Listener | None = None, *, limits: Limits | None = None, **settings: Any
) -> ServerOptions:
    """Of a server with two queues, settings of its own, and a way to a listening peer."""
    hosts = {} if listener is None else dict.fromkeys(("peer", listener.at[0]), listener.at)
    settings = {"session_retry_connect_ms": 20, **settings}
    return options(
        data, ORDERS, f"{LEDGER};transactional", address=SERVER,
        settings=replace(SETTINGS, **settings), limits=limits or Limits(),
        overrides=AddressOverrides(hosts=hosts),
    )  # fmt: skip


@contextmanager
def alpha(
    data: Path, listener: Listener | None = None, *, limits: Limits | None = None, **settings: Any
) -> Iterator[InThread]:
    """A server in a thread, see `desk_options`."""
    with served(desk_options(data, listener, limits=limits, **settings)) as found:
        yield found


def at(server: InThread) -> tuple[str, int]:
    """Where a server listens."""
    return server.address, server.port


def identity(server: InThread) -> bytes:
    """The Identifier of a server, as packets have it."""
    with attach(server.data) as local:
        return uuid.UUID(local.call("status")["identifier"]).bytes_le


def in_queue(server: InThread, queue: str = ORDERS) -> list[bytes]:
    """The bodies of the messages in a queue."""
    return peeked(server.data, queue)


def send(server: InThread, *messages: dict[str, Any], to: str = TO_PEER) -> list[str]:
    """Have the server send messages; gives their identifiers."""
    with attach(server.data) as local:
        sent: list[str] = local.call("send", to=to, messages=list(messages))["sent"]
        return sent


def outgoing(server: InThread, queue: str = TO_PEER) -> int:
    """How many messages wait in an outgoing queue or are not acknowledged."""
    with attach(server.data) as local:
        queues = local.call("list")["queues"]
    return sum(one["messages"] for one in queues if one["queue"].lower() == queue.lower())


def sessions(server: InThread) -> int:
    """How many sessions the engine knows, half-open ones among them."""

    def count(found: Any) -> int:
        return len(found.driver.core.engine.sessions)

    return server.do(count)


def serves(server: InThread) -> None:
    """An honest peer is served: its message is acknowledged as saved, and is in the queue once."""
    body = uuid.uuid4().bytes
    with Session.opened(at(server), address=HONEST, client=OTHER) as peer:
        peer.push(Message(body, recoverable=True, source=OTHER))
        assert peer.until_acknowledged() == []
    assert in_queue(server).count(body) == 1


def rung(listener: Listener, server: InThread, *messages: dict[str, Any]) -> Session:
    """The session over which a server begins to send messages to the listening peer."""
    send(server, *messages)
    return listener.accept()
