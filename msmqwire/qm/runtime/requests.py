"""Requests to the queue manager of a folder from programs with asyncio: many at a time.

`msmqwire.qm.runtime.local` is the synchronous counterpart for commands and other programs.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final, Protocol, TypeVar
from uuid import UUID

from msmqwire.errors import StoreInUse, Unreachable
from msmqwire.qm.runtime.data_folder import DataFolder
from msmqwire.qm.runtime.pushed import Pushed
from msmqwire.qm.runtime.served_requests import NotSent, ServedRequests
from msmqwire.service.control.client import GONE, RETRY_S, STARTING_S, connection_closed

T = TypeVar("T")
_SERVED: Final[set[str]] = set()
"""The folders that this program has reached through a server: their stores are for the next server."""


class Requests(Protocol):
    """A connection to the queue manager of a folder. It is not restored after a loss: see `LastingRequests`.

    Attributes:
        served: whether requests go through a server.
        lost: whether the server has gone, so that no more requests are possible here.
    """

    served: bool

    @property
    def lost(self) -> bool: ...

    async def call(self, op: str, /, **request: Any) -> dict[str, Any]:
        """Run a request of `msmqwire.qm.runtime.operations`, and return its answer.

        If it asks for records, ``records`` are the messages, each as its receipt and record.

        Raises InvalidValue, InvalidName and QueueError; Unreachable if the server has gone, OutcomeUnknown if
        it may have carried out a request that changes something; StoreRefused if no server runs and the disk
        refuses the commit; EngineFailed and RuntimeError for an internal error.
        """

    async def subscribe(self, queue: str, window: int) -> Pushed:
        """Have messages of a queue pushed, up to a window of messages not ended. Raises as `call` does."""

    def done(self, subscription: int, upto: int) -> None:
        """Delete pushed messages up to a receipt, without waiting for it."""

    async def unsubscribe(self, subscription: int, upto: int, back: int = 0) -> None:
        """Delete pushed messages up to a receipt, durably, and return the others to the queue. Raises as
        `call` does.

        `back` is the receipt of the one that the program had and did not end; 0 for none.
        """

    async def close(self) -> None:
        """End the session.

        Reads that wait and subscriptions end with MQ_ERROR_OPERATION_CANCELLED, messages received and not
        ended return to their queues, transactions are aborted.
        """


class LastingRequests:
    """The queue manager of a folder, over restarts of its server.

    The belongings of one connection (messages received and not ended, cursors, transactions, subscriptions)
    are used over it alone, and end with it.

    Attributes:
        name, identifier: name and identifier of the queue manager.
    """

    def __init__(self, folder: DataFolder, connection: Requests, who: tuple[str, UUID]) -> None:
        """Take a connection, and the name and identifier of the queue manager that has answered there."""
        self._folder, self._connection = folder, connection
        self.name, self.identifier = who
        self._connecting = asyncio.Lock()
        self._transactions: dict[UUID, Requests] = {}
        self._closed = False

    @classmethod
    async def of(cls, folder: DataFolder, connection: Requests) -> LastingRequests:
        """Begin with a connection. Raises Unreachable if the other side is not a queue manager."""
        return cls(folder, connection, await _who(connection))

    @property
    def served(self) -> bool:
        """Whether requests go through a server."""
        return self._connection.served

    async def connection(self) -> Requests:
        """Return the present connection, or a new one if it was lost.

        Raises Unreachable while no server runs for the folder: the store is for the next server to open.
        """
        if not self._connection.lost or self._closed:
            return self._connection
        async with self._connecting:
            if self._connection.lost and not self._closed:
                served = await ServedRequests.connect(self._folder)
                if served is None:
                    raise Unreachable(f"{GONE}, and is not back yet: no server runs for {self._folder.path}")
                if await _who(served) != (self.name, self.identifier):
                    await served.close()
                    raise Unreachable(f"another queue manager serves {self._folder.path} now")
                if self._closed:
                    await served.close()
                    raise connection_closed()
                self._connection = served
        return self._connection

    async def use(self, work: Callable[[Requests], Coroutine[Any, Any, T]]) -> tuple[Requests, T]:
        """Do `work`, which is one request, with a connection; return the connection and the result.

        It is repeated on another connection if the server proves to have gone before the request.
        """
        while True:
            connection = await self.connection()
            try:
                return connection, await work(connection)
            except NotSent:
                continue

    async def call(self, op: str, /, **request: Any) -> dict[str, Any]:
        """Run a request on any connection; see `Requests.call`."""
        return (await self.use(lambda connection: connection.call(op, **request)))[1]

    async def begin(self) -> tuple[UUID, Requests]:
        """Begin a transaction; return it and its connection."""
        connection, answer = await self.use(lambda connection: connection.call("begin"))
        identifier = UUID(answer["transaction"])
        self._transactions[identifier] = connection
        return identifier, connection

    def ended(self, transaction: UUID) -> None:
        """Forget a transaction."""
        self._transactions.pop(transaction, None)

    async def connection_of(self, transaction: UUID | None) -> Requests:
        """Return the connection to which a transaction belongs, or the present one."""
        connection = None if transaction is None else self._transactions.get(transaction)
        return connection or await self.connection()

    async def close(self) -> None:
        """End the session; see `Requests.close`."""
        self._closed = True
        await self._connection.close()


async def open_requests(path: str | os.PathLike[str], *, create: bool = False) -> LastingRequests:
    """Open the queues of a folder: through its server, or in its store if none runs.

    A server that starts is waited for. A program that has reached the folder through a server before does not
    open its store: it would keep the server from starting again.

    Raises as `msmqwire.qm.runtime.local.attach` does, and Unreachable if the other side is not a queue
    manager, or the server that was there is not back.
    """
    folder, real = DataFolder(path), os.path.realpath(path)
    until = time.monotonic() + STARTING_S
    while True:
        served = await ServedRequests.connect(folder)
        if served is not None:
            lasting = await LastingRequests.of(folder, served)
            _SERVED.add(real)
            return lasting
        if real in _SERVED:
            why = "this program has used it through one, and leaves its store to the next"
            raise Unreachable(f"no server runs for {folder.path}: {why}")
        from msmqwire.qm.runtime.in_store_requests import InStoreRequests  # imports a whole queue manager

        try:
            return await LastingRequests.of(folder, await InStoreRequests.start(folder, create=create))
        except StoreInUse:
            if time.monotonic() > until:
                raise
            await asyncio.sleep(RETRY_S)


async def _who(connection: Requests) -> tuple[str, UUID]:
    """Return the name and the identifier of the queue manager. Raises Unreachable after closing."""
    try:
        status = await connection.call("status")
        return str(status["name"]), UUID(status["identifier"])
    except (KeyError, ValueError, TypeError, AttributeError):
        await connection.close()
        raise Unreachable("the answer is not that of a queue manager of this version") from None
    except BaseException:
        await connection.close()
        raise
