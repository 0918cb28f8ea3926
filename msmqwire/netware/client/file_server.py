"""A file server that a client is logged in to: its bindery, as far as queues need it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import Final, NamedTuple

from msmqwire.errors import MalformedPacket, MsmqError, NcpRefused
from msmqwire.ncp.constants import CompletionCode
from msmqwire.ncp.type_names import QUEUE_TYPES, type_number, type_word
from msmqwire.netware.client.connection import LEAVING_S, NcpConnection
from msmqwire.netware.client.job import text_of
from msmqwire.netware.client.queue import Queue
from msmqwire.schema import Record

OBJECTS_MAX: Final = 0x4000
"""Limit of objects of one type read from a server."""
_FIRST: Final = 0xFFFFFFFF


class NamedObject(NamedTuple):
    """An object of the bindery."""

    name: str
    type: int
    id: int


class FileServer:
    """A file server. All calls raise NcpRefused, MalformedPacket and Unreachable.

    Attributes:
        connection: the connection, for calls that have no method here. own: the object that the client is
            logged in as.
    """

    def __init__(self, connection: NcpConnection, own: NamedObject) -> None:
        self.connection, self.own = connection, own
        self._attached: set[int] = set()

    async def object_named(self, name: str, type: str | int = "user") -> NamedObject:
        """Return an object by its name and type. Raises NcpRefused NO_SUCH_OBJECT if there is none."""
        return await find_object(self.connection, name, type_number(type))

    async def object_of_id(self, object_id: int) -> NamedObject:
        """Return an object by its ID. Raises NcpRefused NO_SUCH_OBJECT if there is none."""
        return _object(await self.connection.call("GetBinderyObjectName", ObjectID=object_id))

    async def queues(self, types: Iterable[str | int] = tuple(QUEUE_TYPES)) -> list[Queue]:
        """Return the queues of these types, grouped by type; any client may scan for them."""
        found = []
        for type_ in types:
            found += [self._queue(item) for item in await self._scan(type_number(type_, QUEUE_TYPES))]
        return found

    async def queue(self, name: str, type: str | int = "print") -> Queue:
        """Return a queue by its name and type. Raises NcpRefused NO_SUCH_OBJECT if there is none."""
        return self._queue(await find_object(self.connection, name, type_number(type, QUEUE_TYPES)))

    def _queue(self, found: NamedObject) -> Queue:
        return Queue(self.connection, *found, own_id=self.own.id, attached=self._attached)  # QMS-qobject-03

    async def _scan(self, type_: int) -> list[NamedObject]:
        found: dict[int, NamedObject] = {}
        last = _FIRST
        while True:
            try:
                reply = await self.connection.call(
                    "ScanBinderyObject", LastObjectID=last, ObjectType=type_, ObjectName="*"
                )
            except NcpRefused as exc:
                if exc.code == CompletionCode.NO_SUCH_OBJECT:
                    return list(found.values())
                raise
            item = _object(reply)
            last = item.id
            if last in found or last == _FIRST or len(found) >= OBJECTS_MAX:
                raise MalformedPacket(
                    "objects without end", path="NcpScannedObject.ObjectID", offset=_REPLY_DATA
                )
            found[last] = item

    async def leave(self) -> None:
        """Detach from all queues, and log out.

        Errors are not raised, and the wait for a slow server is short: it does the same when the connection
        ends.
        """
        with suppress(MsmqError, TimeoutError):
            async with asyncio.timeout(LEAVING_S):
                for queue_id in self._attached:
                    await self.connection.call("DetachQueueServerFromQueue", QueueID=queue_id)
                await self.connection.call("Logout")


_REPLY_DATA: Final = 8
"""The offset of the data in a reply."""


async def log_in(connection: NcpConnection, name: str, type_: int, password: str = "") -> FileServer:
    """Log in as an object. Raises NcpLoginRefused, MalformedPacket, Unreachable and InvalidValue.

    The password is sent in clear, in capitals as servers expect it.
    """
    shown = "".join(char.upper() if char.isascii() else char for char in password)
    await connection.call("LoginObject", ObjectType=type_, ObjectName=name, Password=shown)  # QMS-service-01
    return FileServer(connection, await find_object(connection, name, type_))


async def find_object(connection: NcpConnection, name: str, type_: int) -> NamedObject:
    """Return an object by its name and type; see `FileServer.object_named`."""
    try:
        # QMS-createqs-03
        return _object(await connection.call("GetBinderyObjectID", ObjectType=type_, ObjectName=name))
    except NcpRefused as exc:
        if exc.code != CompletionCode.NO_SUCH_OBJECT:
            raise
        why = f"there is no {type_word(type_)} {name!r}: {exc.name} (0x{exc.code:02X})"
        raise NcpRefused(why, exc.code, exc.name) from None


def _object(reply: Record) -> NamedObject:
    name = reply.ObjectName
    return NamedObject(name if isinstance(name, str) else text_of(name), reply.ObjectType, reply.ObjectID)
