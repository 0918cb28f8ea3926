"""A small server of DCE/RPC on a loopback port, over the server association, with a few methods to call."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from types import MappingProxyType
from uuid import UUID

from msmqwire.errors import RpcFault
from msmqwire.rpc.constants import AuthLevel, SyntaxId
from msmqwire.rpc.endpoint_mapper import EndpointMapper
from msmqwire.rpc.events import Called, Cancelled, Closed, Denied, ServerEvent
from msmqwire.rpc.groups import AssociationGroups
from msmqwire.rpc.security import SecurityContext
from msmqwire.rpc.server_association import ServerAssociation

REMOTE_READ = SyntaxId(UUID("1a9134dd-7b39-45ba-ad88-44d01ca47f28"), 1)
QUEUE_NOT_FOUND = 0xC00E0003

ECHO, FAIL, WAIT, WHO, BIG, METHODS = range(6)
"""Methods: answers the arguments reversed; fails; answers when cancelled; answers the caller's name and
level; answers as many bytes as the arguments say."""


@dataclass
class Recorded:
    """A connection: the bytes sent on it, in order, and the events."""

    data: list[tuple[bool, bytes]] = field(default_factory=list)
    events: list[ServerEvent] = field(default_factory=list)

    @property
    def ended(self) -> Closed | None:
        """Why the association ended."""
        return next((event for event in self.events if isinstance(event, Closed)), None)

    @property
    def denied(self) -> list[int]:
        """The statuses of the calls that the association itself refused."""
        return [event.status for event in self.events if isinstance(event, Denied)]


class RpcServer:
    """The server; `connections` has one entry for each association so far."""

    def __init__(
        self,
        new_association: Callable[[], ServerAssociation],
        perform: Callable[[ServerAssociation, ServerEvent], None],
    ) -> None:
        self.connections: list[Recorded] = []
        self.port = 0
        self._new_association, self._perform = new_association, perform

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        association, recorded = self._new_association(), Recorded()
        self.connections.append(recorded)
        while not association.closed and (data := await reader.read(4096)):
            recorded.data.append((True, data))
            for event in association.received(data):
                recorded.events.append(event)
                self._perform(association, event)
            if answer := association.data_to_send():
                recorded.data.append((False, answer))
                writer.write(answer)
                await writer.drain()
        association.connection_lost()
        writer.close()


def perform(association: ServerAssociation, event: ServerEvent) -> None:
    """Carry out a call."""
    match event:
        case Called(opnum=0):
            association.answer(event.call, event.stub[::-1])
        case Called(opnum=1):
            association.fault(event.call, QUEUE_NOT_FOUND)
        case Called(opnum=3):
            association.answer(event.call, f"{event.identity} {event.level.name}".encode())
        case Called(opnum=4):
            association.answer(event.call, bytes(range(256)) * (int.from_bytes(event.stub, "little") // 256))
        case Cancelled():
            association.answer(event.call, b"cancelled")


@contextmanager
def rpc_server(
    security: Callable[[int, AuthLevel], SecurityContext | None] | None = None,
    minimum_level: AuthLevel = AuthLevel.NONE,
    *,
    interfaces: Mapping[SyntaxId, int] = MappingProxyType({REMOTE_READ: METHODS}),
    perform: Callable[[ServerAssociation, ServerEvent], None] = perform,
) -> Iterator[RpcServer]:
    """A server in a thread of its own, so that blocking clients can call it."""
    groups = AssociationGroups()

    def new_association() -> ServerAssociation:
        return ServerAssociation(
            interfaces,
            groups=groups,
            origin="127.0.0.1",
            port=server.port,
            security=security,
            minimum_level=minimum_level,
        )

    server = RpcServer(new_association, perform)
    loop = asyncio.new_event_loop()
    listening = loop.run_until_complete(asyncio.start_server(server.serve, "127.0.0.1", 0))
    server.port = listening.sockets[0].getsockname()[1]
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        listening.close()
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()


def map_endpoints(mapper: EndpointMapper) -> Callable[[ServerAssociation, ServerEvent], None]:
    """The behaviour of a server that is an endpoint mapper."""

    def perform(association: ServerAssociation, event: ServerEvent) -> None:
        if isinstance(event, Called):
            address = IPv4Address("127.0.0.1")
            try:
                results = mapper.called(event.opnum, event.stub, event.transfer_syntax, address)
            except RpcFault as fault:
                association.fault(event.call, fault.status)
            else:
                association.answer(event.call, results)

    return perform
