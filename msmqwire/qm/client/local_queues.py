"""Queues of this computer, reached by the requests of local clients."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final, NamedTuple
from uuid import UUID

from msmqwire.constants import HResult
from msmqwire.errors import (
    ChangeWaits,
    EndUnknown,
    InvalidName,
    InvalidValue,
    ManagerStopped,
    MsmqError,
    OutcomeUnknown,
    QueueError,
    TransactionAborted,
    Unreachable,
)
from msmqwire.names.meant import wanted_format_name
from msmqwire.qm.client.finishing import finish
from msmqwire.qm.client.properties import Properties, as_request, to_message
from msmqwire.qm.client.protecting import peer_of, protecting_of
from msmqwire.qm.client.pushed_messages import PushedMessages
from msmqwire.qm.client.reading import Read, new_request
from msmqwire.qm.client.received_message import ReceivedMessage
from msmqwire.qm.client.sending import Unit, of_another
from msmqwire.qm.client.sent import Obstacle, Sent
from msmqwire.qm.model.enumerations import INFINITE, AcknowledgementsRequested
from msmqwire.qm.runtime.local_names import queue_name
from msmqwire.qm.runtime.message_protection import protection_request
from msmqwire.qm.runtime.peer_keys import peer_keys_request
from msmqwire.qm.runtime.reasons import reason
from msmqwire.qm.runtime.requests import LastingRequests, Requests
from msmqwire.remote_read.constants import Action
from msmqwire.service.control.client import GONE

_ACTIONS: Final[Mapping[Action, Mapping[str, str]]] = {
    Action.MQ_ACTION_RECEIVE: {"action": "receive"},
    Action.MQ_ACTION_PEEK_CURRENT: {"action": "peek"},
    Action.MQ_ACTION_PEEK_NEXT: {"action": "peek_next"},
    Action.MQ_LOOKUP_PEEK_CURRENT: {"action": "peek", "seek": "current"},
    Action.MQ_LOOKUP_PEEK_NEXT: {"action": "peek", "seek": "next"},
    Action.MQ_LOOKUP_PEEK_PREV: {"action": "peek", "seek": "previous"},
    Action.MQ_LOOKUP_RECEIVE_CURRENT: {"action": "receive", "seek": "current"},
    Action.MQ_LOOKUP_RECEIVE_NEXT: {"action": "receive", "seek": "next"},
    Action.MQ_LOOKUP_RECEIVE_PREV: {"action": "receive", "seek": "previous"},
}
_PATHS: Final = {"delivery": "recoverable"}
"""The property that programs and requests name differently."""


class LocalReading:
    """A queue of this computer, for reading: see `msmqwire.qm.client.reading.Reading`."""

    def __init__(self, requests: LastingRequests, format_name: str, computer: str) -> None:
        self._requests, self._queue, self._computer = requests, format_name, computer
        # With their connections, messages received and not ended, by request number, and cursors.
        self._receipts: dict[int, tuple[Requests, int, bool]] = {}  # and whether in a transaction
        self._cursors: dict[int, tuple[Requests, int]] = {}
        self._messages: set[PushedMessages] = set()
        self._started: dict[int, Requests | None] = {}  # the positions of requests without an answer yet
        self._cancelled: set[int] = set()  # requests that must not be made

    async def start(self, request: int, read: Read) -> ReceivedMessage:
        optional: dict[str, Any] = {}
        if read.lookup_identifier:
            optional["lookup_identifier"] = read.lookup_identifier
        if read.transaction is not None:
            optional["transaction"] = str(read.transaction)
        only_at: Requests | None = None
        if read.cursor:
            only_at, optional["cursor"] = self._cursor(read.cursor)

        async def ask(connection: Requests) -> dict[str, Any]:
            if request in self._cancelled:
                code = HResult.MQ_ERROR_OPERATION_CANCELLED
                raise QueueError(reason(code, self._queue), code)
            self._started[request] = connection
            return await connection.call(
                "read",
                queue=self._queue,
                wait_ms=None if read.timeout_ms == INFINITE else read.timeout_ms,
                tag=request,
                records=True,
                **_ACTIONS[read.action],
                **optional,
            )

        self._started[request] = None
        try:
            if read.transaction is not None:
                with _in_transaction():
                    connection = await self._requests.connection_of(read.transaction)
                    if only_at is not None and not connection.lost:
                        connection = only_at
                    answer = await ask(connection)
            elif only_at is not None:
                connection, answer = only_at, await ask(only_at)
            else:
                connection, answer = await self._requests.use(ask)
        finally:
            del self._started[request]
            self._cancelled.discard(request)
        receipt, record = answer["records"][0]
        if receipt:
            self._receipts[request] = connection, receipt, read.transaction is not None
        return ReceivedMessage.from_record(record)

    async def end(self, request: int, *, acknowledge: bool) -> None:
        connection, receipt, in_transaction = self._receipts.pop(request, (None, 0, False))
        if connection is None:
            why = f"{self._queue}: the queue was closed, and the message is back in it"
            raise QueueError(why, HResult.MQ_ERROR_INVALID_HANDLE)
        try:
            await connection.call("end", **{"done" if acknowledge else "back": [receipt]})
        except Unreachable as exc:
            if in_transaction:
                raise _aborted(GONE) from None
            if isinstance(exc, OutcomeUnknown):
                why = f"{GONE}, and may have deleted the message that was received"
                raise EndUnknown(str(exc) if isinstance(exc, ChangeWaits) else why) from None
            raise Unreachable(f"{self._queue}: {exc}, and the message is back in its queue") from None

    async def cancel(self, request: int) -> None:
        if request in self._started:
            connection = self._started[request]
            if connection is None:
                self._cancelled.add(request)
            elif not connection.lost:
                await connection.call("cancel", tag=request)

    async def subscribe(self, window: int, timeout: float | None) -> PushedMessages:
        connection, pushed = await self._requests.use(lambda at: at.subscribe(self._queue, window))
        messages = PushedMessages(connection, pushed, window, timeout, self._messages.discard)
        self._messages.add(messages)
        return messages

    async def open_cursor(self) -> int:
        connection, answer = await self._requests.use(lambda at: at.call("open_cursor", queue=self._queue))
        handle = new_request()
        self._cursors[handle] = connection, answer["cursor"]
        return handle

    def _cursor(self, handle: int) -> tuple[Requests, int]:
        connection, cursor = self._cursors.get(handle, (None, 0))
        if connection is None or connection.lost:
            why = f"{self._queue}: the cursor is closed, or its connection was lost"
            raise QueueError(why, HResult.MQ_ERROR_INVALID_HANDLE)
        return connection, cursor

    async def close_cursor(self, cursor: int) -> None:
        try:
            connection, handle = self._cursor(cursor)
        finally:
            self._cursors.pop(cursor, None)
        await connection.call("close_cursor", cursor=handle)

    async def purge(self) -> None:
        await self._requests.call("purge", queue=self._queue)

    async def move(self, lookup_identifier: int, to: str, transaction: UUID | None) -> None:
        if not isinstance(to, str):
            raise InvalidValue(f"{to!r:.100} is not a text", path="to")
        request = {
            "queue": self._queue,
            "to": str(queue_name(to, self._computer)),
            "lookup_identifier": lookup_identifier,
        }
        if transaction is None:
            await self._requests.call("move", **request)
            return
        with _in_transaction():
            connection = await self._requests.connection_of(transaction)
            await connection.call("move", **request, transaction=str(transaction))

    async def close(self) -> None:
        for request in sorted(self._started):
            await self.cancel(request)
        held, self._receipts = list(self._receipts.values()), {}
        for connection in {connection for connection, _, _ in held if not connection.lost}:
            await connection.call("end", back=[receipt for at, receipt, _ in held if at is connection])
        for messages in list(self._messages):
            await messages.close()


class Outgoing(NamedTuple):
    """A message in the form of requests.

    Attributes:
        to: the format name of its queue.
        message: an entry of the request ``send``.
        peer_keys: the request that returns the keys for encryption; None for none.
    """

    to: str
    message: dict[str, Any]
    peer_keys: dict[str, Any] | None


def outgoing(
    to: str, body: bytes | str, properties: Properties, queue_manager: UUID, *, transactional: bool
) -> Outgoing:
    """Return a message for the queue manager that sends it, signed here if a signature is asked for.

    Raises InvalidValue and InvalidName with the name of the property.
    """
    message = to_message(body, properties)  # wrong properties are reported with the names that programs use
    request = as_request(properties, transactional=transactional)
    request |= {"body": b64encode(message.body).decode(), "body_type": message.body_type}
    protecting = protecting_of(properties)
    if protecting is None:
        return Outgoing(to, request, None)
    name, keys = wanted_format_name(to), None
    if protecting.peer_keys is not None:
        keys = peer_keys_request(peer_of(name), protecting.peer_keys)
    protecting.protect(message, name, queue_manager, transactional=transactional)
    return Outgoing(to, request | protection_request(message), keys)


class LocalUnit:
    """A transaction of the queue manager of a folder. Its messages go there with its commit."""

    def __init__(self, requests: LastingRequests, connection: Requests, identifier: UUID) -> None:
        """Take the transaction of a connection; it ends with the connection."""
        self._requests, self._connection, self.identifier = requests, connection, identifier
        self._outgoing: list[tuple[Outgoing, Sent]] = []

    def add(self, requests: LastingRequests, outgoing: Outgoing) -> Sent:
        """Add a message.

        Raises InvalidValue for a queue of another folder, TransactionAborted if the connection was lost.
        """
        if requests is not self._requests:
            raise of_another()
        if self._connection.lost:
            raise _aborted(GONE)
        sent = _sent("")
        self._outgoing.append((outgoing, sent))
        return sent

    async def commit(self) -> None:
        await finish(self._commit())

    async def _commit(self) -> None:
        transaction, connection = str(self.identifier), self._connection
        with _in_transaction():
            try:
                for outgoing, sent in self._outgoing:
                    sent.identifier = await _send(connection, outgoing, transaction)
            except BaseException:
                await self._abort()
                raise
            self._requests.ended(self.identifier)
            await connection.call("commit", transaction=transaction)
        for _, sent in self._outgoing:
            sent.set_outcome(True)

    async def abort(self) -> None:
        await finish(self._abort())

    async def _abort(self) -> None:
        self._requests.ended(self.identifier)
        with suppress(MsmqError):  # a queue manager that is gone, or was left, has aborted it itself
            await self._connection.call("abort", transaction=str(self.identifier))


class LocalSending:
    """A queue to which the queue manager of a folder sends: see `Sending`."""

    def __init__(self, requests: LastingRequests, format_name: str, queue_manager: UUID) -> None:
        self._requests, self.format_name, self._queue_manager = requests, format_name, queue_manager

    async def send(self, body: bytes | str, properties: Properties) -> Sent:
        sent = _sent(await _send(self._requests, self._outgoing(body, properties, transactional=False), None))
        sent.set_outcome(True)
        return sent

    async def begin(self) -> Unit:
        identifier, connection = await finish(self._requests.begin())  # otherwise nothing could abort it
        return LocalUnit(self._requests, connection, identifier)

    def add(self, unit: Unit, body: bytes | str, properties: Properties) -> Sent:
        if not isinstance(unit, LocalUnit):
            raise of_another()
        return unit.add(self._requests, self._outgoing(body, properties, transactional=True))

    def _outgoing(self, body: bytes | str, properties: Properties, *, transactional: bool) -> Outgoing:
        return outgoing(self.format_name, body, properties, self._queue_manager, transactional=transactional)


@contextmanager
def _in_transaction() -> Iterator[None]:
    """Raise TransactionAborted if the connection is lost, or OutcomeUnknown if it may be committed."""
    try:
        yield
    except (OutcomeUnknown, ManagerStopped):
        raise
    except Unreachable as exc:
        raise _aborted(str(exc)) from None


def _aborted(why: str) -> TransactionAborted:
    return TransactionAborted(
        f"{why}: the transaction is over, and nothing of it was done; begin another one"
    )


async def _send(requests: Requests | LastingRequests, outgoing: Outgoing, transaction: str | None) -> str:
    """Send a message and return its identifier. The path of an error is the name of the property."""
    if outgoing.peer_keys is not None:
        await requests.call("keep_peer_keys", **outgoing.peer_keys)
    to, message = outgoing.to, outgoing.message
    try:
        answer = await requests.call("send", to=to, messages=[message], transaction=transaction)
    except InvalidValue as exc:
        path = exc.path.removeprefix("messages[0].")
        raise InvalidValue(exc.why, path=_PATHS.get(path, path), offset=exc.offset) from None
    except InvalidName as exc:
        path = exc.path.removeprefix("messages[0].")
        raise InvalidName(exc.why, path=path, offset=exc.offset, hresult=exc.hresult) from None
    identifier: str = answer["sent"][0]
    return identifier


def _sent(identifier: str) -> Sent:
    """Return the `Sent` of a message that the queue manager of this computer has taken."""
    return Sent(identifier, AcknowledgementsRequested.NONE, 1, lambda: Obstacle(""), lambda _: None, "stored")
