"""A queue elsewhere to send to, for programs that use asyncio."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, TypedDict

from msmqwire.errors import InvalidValue
from msmqwire.qm.client.manager import ClientManager
from msmqwire.qm.client.sent import Sent
from msmqwire.qm.model.elements import OpenQueueDescriptor, Transaction
from msmqwire.qm.model.message import Message
from msmqwire.qm.runtime.message_json import RECOVERABLE, TRANSACTIONAL, message_from

if TYPE_CHECKING:
    from typing import Unpack

VT_BSTR: Final = 8
_BYTES: Final = (bytes, bytearray, memoryview)


class Properties(TypedDict, total=False):
    r"""What may be said of a message that is sent.

    Attributes:
        label: up to 249 characters.
        recoverable: it survives failures of both sides.
        acknowledge: acknowledgements asked for: ``full_reach_queue``, ``full_receive``, ``nack_receive``, or
            ``pos_arrival``, ``pos_receive``, ``neg_arrival``, ``neg_receive`` one by one.
        admin_queue: format name of a queue for them; without one they come back to this object.
        response_queue: format name of a queue for answers.
        correlation: the identifier (``guid\number``) of another message, or 20 bytes.
        priority: 0 to 7, 3 when left out; of messages that are not transactional.
        body_type: VARENUM of the body; when left out 0 for bytes, and 8, VT_BSTR, for a text.
        message_class: a class that an application may set.
        application: a number of the application.
        extension: more bytes beside the body.
        journal: keep a copy in the journal of this side.
        dead_letter: keep it in the dead-letter queue of this side when it can't be delivered.
        time_to_reach_queue, time_to_be_received: seconds from now.
    """

    label: str
    recoverable: bool
    acknowledge: str | Iterable[str]
    admin_queue: str
    response_queue: str
    correlation: str | bytes
    priority: int
    body_type: int
    message_class: int
    application: int
    extension: bytes
    journal: bool
    dead_letter: bool
    time_to_reach_queue: int
    time_to_be_received: int


def as_request(properties: Properties, *, transactional: bool = False) -> dict[str, Any]:
    """The same in the names of `service.messages.message_from`, which go over a control channel."""
    given: dict[str, Any] = dict(properties)
    for name in given:
        if name not in Properties.__annotations__:
            raise InvalidValue("not a property of a message that is sent", path=name)
    recoverable = given.pop("recoverable", False)
    if not isinstance(recoverable, bool):
        raise InvalidValue(f"{recoverable!r:.100} is neither true nor false", path="recoverable")
    if transactional or recoverable:
        given["delivery"] = TRANSACTIONAL if transactional else RECOVERABLE
    if isinstance(given.get("correlation"), bytes):
        given["correlation"] = given["correlation"].hex()
    if isinstance(given.get("acknowledge"), Iterable) and not isinstance(given["acknowledge"], str):
        given["acknowledge"] = list(given["acknowledge"])
    if "message_class" in given:
        given["class"] = given.pop("message_class")
    extension = given.get("extension")
    if extension is not None:
        if not isinstance(extension, _BYTES):
            raise InvalidValue(f"{extension!r:.100} is no bytes", path="extension")
        given["extension"] = b64encode(extension).decode()
    return given


def to_message(body: bytes | str, properties: Properties) -> Message:
    """The message that is meant. Raises InvalidValue and InvalidName with the name of the property."""
    given = as_request(properties)
    try:
        message = message_from(given)
    except InvalidValue as exc:
        if exc.path != "class":
            raise
        raise InvalidValue(exc.why, path="message_class") from None
    if isinstance(body, str):
        message.body = body.encode("utf-16-le", "surrogatepass")
        if properties.get("body_type") is None:
            message.body_type = VT_BSTR
    elif isinstance(body, _BYTES):
        message.body = bytes(body)
    else:
        raise InvalidValue(f"{body!r:.100} is neither bytes nor a text", path="body")
    return message


class Transactional:
    """Messages of one transaction, which are sent when it is left.

    Attributes:
        ended: whether it was left.
    """

    def __init__(
        self, manager: ClientManager, descriptor: OpenQueueDescriptor, transaction: Transaction
    ) -> None:
        self._manager, self._descriptor, self._transaction = manager, descriptor, transaction
        self.ended = False

    def send(self, body: bytes | str = b"", **properties: Unpack[Properties]) -> Sent:
        """One more message. Raises what `Queue.send` raises."""
        if self.ended:
            raise InvalidValue("it has ended: begin another one", path="transaction")
        return self._manager.send(self._descriptor, to_message(body, properties), self._transaction)


class Queue:
    """A queue elsewhere.

    Attributes:
        format_name: its name.
    """

    def __init__(self, manager: ClientManager, descriptor: OpenQueueDescriptor) -> None:
        self._manager, self._descriptor = manager, descriptor
        self.format_name = str(descriptor.format_name)

    async def send(
        self, body: bytes | str = b"", *, transactional: bool = False, **properties: Unpack[Properties]
    ) -> Sent:
        """Send a message: it is kept from now on, and what it gives tells what becomes of it.

        Args:
            body: bytes, or a text, which is sent as UTF-16 with the body type VT_BSTR.
            transactional: it comes exactly once and in order; the queue must be transactional.
            properties: see `Properties`.

        Raises:
            InvalidValue, InvalidName: with the property as the path.
            QueueError: it is not taken.
        """
        if not isinstance(transactional, bool):
            raise InvalidValue(f"{transactional!r:.100} is neither true nor false", path="transactional")
        if not transactional:
            sent = self._manager.send(self._descriptor, to_message(body, properties))
            await self._manager.driver.durable()
            return sent
        async with self.transaction() as transaction:
            return transaction.send(body, **properties)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transactional]:
        """Several messages that arrive all or not at all, in this order; an exception inside sends none."""
        manager = self._manager
        transaction = manager.begin()
        transactional = Transactional(manager, self._descriptor, transaction)
        try:
            yield transactional
        except BaseException:
            manager.abort(transaction)
            raise
        finally:
            transactional.ended = True
        manager.commit(transaction)
        await manager.driver.durable()
