"""Effects of the rules on the outside: values that the owner carries out in order.

No effect may be carried out before the changes of its step, and of all earlier steps, are durable.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from uuid import UUID

from msmqwire.qm.model.message import Message
from msmqwire.qm.model.positions import MessagePosition


class Resolve(NamedTuple):
    """Find the addresses of a host. Answered with the same request number, an empty list for none.

    `local` is whether a local application sends there: no remote sender may keep it waiting.
    """

    request: int
    host: str
    local: bool = False


class Connect(NamedTuple):
    """Open a transport connection to TCP 1801 of an address, identified by this number.

    `host` is the name that was resolved to the address.
    """

    connection: int
    address: str
    host: str


class Send(NamedTuple):
    """Send bytes over a connection. Ignored if the connection is closed by now."""

    connection: int
    data: bytes


class Disconnect(NamedTuple):
    """Close a connection after passing all sent bytes to the transport. No answer is expected."""

    connection: int


class SendDatagram(NamedTuple):
    """Send a ping packet: a request to UDP 3527 of an address, or a response to the source of a request.

    Responses are sent from the ping port, requests from another port, which receives the response.
    """

    address: str
    port: int
    data: bytes
    request: bool


class MulticastGroups(NamedTuple):
    """The groups, as pairs of address and port, whose messages are to be received from now on."""

    groups: frozenset[tuple[str, int]]


class Multicast(NamedTuple):
    """Send an HTTP request to a multicast group, by PGM. Answered with the same number once it is sent."""

    request: int
    address: str
    port: int
    data: bytes


class ReadCompleted(NamedTuple):
    """A read that had to wait has ended.

    Attributes:
        request: the number of the waiting read.
        status: MQ_OK, or an error.
        message: the message.
        position: its position, which Dequeue Message End needs.
    """

    request: int
    status: int
    message: Message | None
    position: MessagePosition | None


class TransactionReply(NamedTuple):
    """An answer to the coordinator of distributed transactions: [MS-MQDMPR] 3.1.4.6 to 3.1.4.8.

    Attributes:
        transaction: its Identifier.
        tag: PREPAREREQDONE, COMMITREQDONE or ABORTREQDONE.
    """

    transaction: UUID
    tag: str


class RpcAnswer(NamedTuple):
    """Answer a remote procedure call. Ignored if its association is gone by now.

    `results` are its out parameters by their names in the IDL, and its return value as ``status``.
    """

    call: int
    results: Mapping[str, Any]


class RpcFault(NamedTuple):
    """Let a remote procedure call fail with the status of a fault. Ignored if its association is gone."""

    call: int
    status: int


class EnlistTransaction(NamedTuple):
    """Enlist the queue manager in a distributed transaction: [MS-DTCO] 3.5.4.3.

    Answered with the same number: whether it succeeded.

    Attributes:
        transaction: its Identifier.
        token: the propagation token, [MS-DTCO] 2.2.5.4, which identifies its coordinator.
    """

    request: int
    transaction: UUID
    token: bytes


class TidyStore(NamedTuple):
    """Free the room of deleted messages on the disk, as far as that can be done at once."""


class ErrorReport(NamedTuple):
    """A report for the administrator. `warning` is whether everything still works as it should."""

    text: str
    warning: bool = False


Effect = (
    Resolve
    | Connect
    | Send
    | Disconnect
    | SendDatagram
    | MulticastGroups
    | Multicast
    | ReadCompleted
    | TransactionReply
    | RpcAnswer
    | RpcFault
    | EnlistTransaction
    | TidyStore
    | ErrorReport
    | tuple[Any, ...]  # those of protocols that have joined
)
