"""What the rules want done outside: plain values, carried out by their owner in their order.

None of them may be carried out before the changes of the step that they come from, and of all steps before
it, are durable.
"""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from msmqwire.qm.model.message import Message
from msmqwire.qm.model.positions import MessagePosition


class Resolve(NamedTuple):
    """Find the addresses of a host. Answered with the same request number, an empty list for none."""

    request: int
    host: str


class Connect(NamedTuple):
    """Open a transport connection to TCP 1801 of an address, which bears this number from now on.

    `host` is the name that the address was found for.
    """

    connection: int
    address: str
    host: str


class Send(NamedTuple):
    """Send bytes over a connection. One that is gone by now is passed over."""

    connection: int
    data: bytes


class Disconnect(NamedTuple):
    """Close a connection, once the transport has what was sent over it. No answer is wanted."""

    connection: int


class SendDatagram(NamedTuple):
    """Send a ping packet: a request to UDP 3527 of an address, or a response to where a request came from.

    Responses go out from the ping port, requests from another one, to which the response is to come.
    """

    address: str
    port: int
    data: bytes
    request: bool


class ReadCompleted(NamedTuple):
    """A read that had to wait has ended.

    Attributes:
        request: the number that the read was given when it began to wait.
        status: MQ_OK, or why there is no message.
        message: the message.
        position: its place, which Dequeue Message End wants.
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


class ErrorReport(NamedTuple):
    """Something the administrator is to know."""

    text: str


Effect = Resolve | Connect | Send | Disconnect | SendDatagram | ReadCompleted | TransactionReply | ErrorReport
