"""Servers for tests with a hand-written peer over sockets, and queries of their queues and sessions."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from msmqwire.qm.runtime.addresses import AddressOverrides
from msmqwire.qm.runtime.limits import Limits
from msmqwire.qm.runtime.local import attach
from msmqwire.qm.runtime.server import SETTINGS, ServerOptions
from tests.support.peers.raw_peer import OTHER, Listener, Message, Session
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
    "LEDGER",
    "ORDERS",
    "SERVER",
    "TO_PEER",
    "alpha",
    "at",
    "bodies",
    "identity",
    "in_queue",
    "message",
    "outgoing",
    "recoverable",
    "send",
    "sending_session",
    "server_options",
    "serves",
    "sessions",
    "until",
]  # fmt: skip


def server_options(
    data: Path, listener: Listener | None = None, *, limits: Limits | None = None, **settings: Any
) -> ServerOptions:
    """Options of a server with two queues, some settings and the address of a listening peer."""
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
    """Run a server with `server_options` in a thread."""
    with served(server_options(data, listener, limits=limits, **settings)) as server:
        yield server


def at(server: InThread) -> tuple[str, int]:
    """The address and port where a server listens."""
    return server.address, server.port


def identity(server: InThread) -> bytes:
    """The Identifier of a server in its packet form."""
    with attach(server.data) as local:
        return uuid.UUID(local.call("status")["identifier"]).bytes_le


def in_queue(server: InThread, queue: str = ORDERS) -> list[bytes]:
    """The bodies of the messages in a queue."""
    return peeked(server.data, queue)


def send(server: InThread, *messages: dict[str, Any], to: str = TO_PEER) -> list[str]:
    """Make the server send messages; return their identifiers."""
    with attach(server.data) as local:
        sent: list[str] = local.call("send", to=to, messages=list(messages))["sent"]
        return sent


def outgoing(server: InThread, queue: str = TO_PEER) -> int:
    """The number of messages in an outgoing queue that wait or are not acknowledged."""
    with attach(server.data) as local:
        queues = local.call("list")["queues"]
    return sum(status["messages"] for status in queues if status["queue"].lower() == queue.lower())


def sessions(server: InThread) -> int:
    """The number of sessions of the engine, half-open ones included."""

    def count(running: Any) -> int:
        return len(running.driver.core.binary.sessions)

    return server.do(count)


def serves(server: InThread) -> None:
    """Check that an honest peer is served: its message is acknowledged as stored and is queued once."""
    body = uuid.uuid4().bytes
    with Session.opened(at(server), address=HONEST, client=OTHER) as peer:
        peer.push(Message(body, recoverable=True, source=OTHER))
        assert peer.until_acknowledged() == []
    assert in_queue(server).count(body) == 1


def sending_session(listener: Listener, server: InThread, *messages: dict[str, Any]) -> Session:
    """Make a server send messages to the listening peer; return the session that it opens for them."""
    send(server, *messages)
    return listener.accept()
