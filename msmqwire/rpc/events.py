"""Events that an association reports to its owner: [C706] 9.3 and 12.6."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias
from uuid import UUID

from msmqwire.errors import MsmqError
from msmqwire.rpc.constants import AuthLevel, SyntaxId


@dataclass(frozen=True, slots=True)
class Bound:
    """The association is there, or has changed: calls can be made.

    A server tells it for each bind and alter_context, also while a handshake is not over.

    Attributes:
        group: the association group, which is the scope of context handles ([MS-RPCE] 3.3.1.4.1).
        transfer_syntaxes: the accepted transfer syntaxes by interface.
    """

    group: int
    transfer_syntaxes: dict[SyntaxId, SyntaxId]


@dataclass(frozen=True, slots=True)
class Called:
    """A client calls a method: all its arguments are there.

    Attributes:
        call: names the call for `ServerAssociation.answer` and `fault`.
        level: the protection of the call.
        identity: the caller, ``DOMAIN\\user``; empty for an anonymous one.
        big_endian: whether the integers of the stub are big-endian.
    """

    call: int
    interface: SyntaxId
    opnum: int
    transfer_syntax: SyntaxId
    stub: bytes
    object: UUID | None
    level: AuthLevel
    identity: str
    big_endian: bool = False


@dataclass(frozen=True, slots=True)
class Denied:
    """A call that the association itself has answered with a fault."""

    call: int
    status: int


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The client wants a call to end early. It is still to be answered."""

    call: int


@dataclass(frozen=True, slots=True)
class Orphaned:
    """The client has abandoned a call. An answer is discarded."""

    call: int


@dataclass(frozen=True, slots=True)
class Answered:
    """The results of a call are there.

    Attributes:
        big_endian: whether the integers of the stub are big-endian.
    """

    call: int
    transfer_syntax: SyntaxId
    stub: bytes
    big_endian: bool = False


@dataclass(frozen=True, slots=True)
class Faulted:
    """A call failed.

    Attributes:
        executed: whether the method may have been executed.
    """

    call: int
    status: int
    executed: bool


@dataclass(frozen=True, slots=True)
class ShutdownAsked:
    """The server wants the connection closed once nothing is outstanding: [C706] 12.6.4.11."""


@dataclass(frozen=True, slots=True)
class Closed:
    """The association has ended: the bytes to send are its last, and the connection is to be closed.

    Attributes:
        error: why: `MalformedPacket`, `AuthenticationFailed` or `RpcRefused`.
    """

    error: MsmqError


ServerEvent: TypeAlias = Bound | Called | Denied | Cancelled | Orphaned | Closed
ClientEvent: TypeAlias = Bound | Answered | Faulted | ShutdownAsked | Closed
