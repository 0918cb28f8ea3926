"""A hand-made server of remote read with one queue, which a test lets answer honestly or not.

It knows nothing of the queue manager: its answers are made of stubs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import UUID

from msmqwire.constants import HResult
from msmqwire.names import DirectName, parse_format_name
from msmqwire.qm.model.message import Message, ObjectId
from msmqwire.qm.rules.serialization import to_packet
from msmqwire.remote_read.constants import Access, Acknowledge, Action, Opnum
from msmqwire.remote_read.interface import INTERFACE, build_response, parse_request
from msmqwire.remote_read.message_packet import MessageState, message_packet
from msmqwire.remote_read.sections import sections_of
from msmqwire.rpc.constants import AuthLevel
from msmqwire.rpc.events import Called, ServerEvent
from msmqwire.rpc.handles import NULL_HANDLE, ContextHandle
from msmqwire.rpc.ndr import SYNTAXES
from msmqwire.rpc.queue_format import name_of
from msmqwire.rpc.server_association import ServerAssociation
from tests.support.rpc.rpc_server import RpcServer, rpc_server

NAME = r"DIRECT=TCP:127.0.0.1\private$\orders"
SENT, ARRIVED = 1_600_000_000, 1_600_000_007
SOURCE = UUID(int=0xA1)
BREAK, SILENCE = object(), object()
"""Substitutes of an answer: the connection breaks, or no answer comes."""

Twist = Callable[[Callable[[], Any], Any], Any]
"""Answers a call, with what answers it honestly and its arguments: with results, the status of a fault, the
bytes of a stub, BREAK or SILENCE."""


def message(number: int, body: bytes | None = None, **properties: Any) -> Message:
    """A message as it lies in a queue."""
    made = Message(
        body=f"body {number}".encode() if body is None else body,
        label=f"order {number}",
        identifier=ObjectId(SOURCE, number),
        source_machine_identifier=SOURCE,
        sent_time=SENT,
        time_to_reach_queue=3600,
        destination=parse_format_name(NAME),
        **properties,
    )
    made.lookup_identifier, made.arrival_time = (
        (0 if made.transactional else 7 - made.priority) << 56 | number,
        ARRIVED,
    )
    return made


@dataclass(eq=False)
class Locked:
    """A message that a client has received and not ended."""

    message: Message
    association: ServerAssociation


@dataclass(eq=False)
class Waiting:
    """A read that waits."""

    association: ServerAssociation
    call: int
    syntax: Any
    opnum: int


@dataclass
class RemoteQueue:
    """The queue.

    Attributes:
        messages: the messages in it, in order. twists: other answers, by the method.
        calls: the methods that were called, with their arguments.
        rights: the accesses that callers get.
        opened: the names that were opened, by handle.
        callers: the callers, with their levels.
        cursors: the message at each cursor.
        owners: the handles with which the cursors were created.
        breaches: calls that a client must not make.
        by_order: whether neighbours are found for lookup identifiers that no message has.
    """

    messages: list[Message]
    twists: dict[Opnum, Twist] = field(default_factory=dict)
    calls: list[tuple[Opnum, Any]] = field(default_factory=list)
    rights: Sequence[Access] = tuple(Access)
    opened: dict[ContextHandle, str] = field(default_factory=dict)
    locked: dict[tuple[ContextHandle, int], Locked] = field(default_factory=dict)
    waiting: dict[tuple[ContextHandle, int], Waiting] = field(default_factory=dict)
    cursors: dict[int, int] = field(default_factory=dict)
    owners: dict[int, ContextHandle] = field(default_factory=dict)
    moved: list[tuple[int, str]] = field(default_factory=list)
    rejected: list[int] = field(default_factory=list)
    enlisted: list[tuple[UUID, bytes]] = field(default_factory=list)
    callers: set[tuple[str, AuthLevel]] = field(default_factory=set)
    accesses: dict[ContextHandle, int] = field(default_factory=dict)
    breaches: list[tuple[Opnum, str]] = field(default_factory=list)
    port: int = 0
    by_order: bool = False
    _handles: int = 0

    @property
    def bodies(self) -> list[bytes]:
        """The messages in the queue, once ended connections have returned theirs."""
        self._run_down()
        return [message.body for message in self.messages]

    def has_all_back(self) -> bool:
        """Whether ended connections have returned their messages."""
        self._run_down()
        return not self.locked

    def called(self, *opnums: Opnum) -> list[Opnum]:
        """The methods that were called, without all others."""
        return [opnum for opnum, _ in self.calls if not opnums or opnum in opnums]

    def arguments(self, opnum: Opnum) -> list[Any]:
        """The arguments of the calls of a method."""
        return [arguments for called, arguments in self.calls if called == opnum]

    # -- calls --------------------------------------------------------------------------------------------

    def perform(self, association: ServerAssociation, event: ServerEvent) -> None:
        """Carry out a call."""
        if not isinstance(event, Called):
            return
        self._run_down()
        self.callers.add((event.identity, event.level))
        opnum, syntax = Opnum(event.opnum), SYNTAXES[event.transfer_syntax]
        arguments = parse_request(opnum, event.stub, syntax)
        self.calls.append((opnum, arguments))
        self.breaches += [(opnum, breach) for breach in self._breaches(opnum, arguments)]
        twist = self.twists.get(opnum)
        honest = partial(getattr(self, opnum.name), association, event, arguments)
        answer = honest() if twist is None else twist(honest, arguments)
        self.send(association, event.call, opnum, syntax, answer)

    def send(self, association: ServerAssociation, call: int, opnum: int, syntax: Any, answer: Any) -> None:
        """Answer a call."""
        if answer is BREAK:
            association.closed = True
        elif isinstance(answer, bytes):
            association.answer(call, answer)
        elif isinstance(answer, int):
            association.fault(call, answer)
        elif isinstance(answer, Mapping):
            association.answer(call, build_response(opnum, answer, syntax))

    def _breaches(self, opnum: Opnum, arguments: Any) -> Iterator[str]:
        """Yield the breaches of a client about handles, cursors and numbers of requests."""
        names = [name for name in ("phContext", "pphContext", "phContextFrom") if hasattr(arguments, name)]
        if not names:
            return
        handle = getattr(arguments, names[0])
        if handle not in self.opened:
            yield "a handle that is not open"
        elif opnum not in (Opnum.R_CloseQueue, Opnum.R_CreateCursor, Opnum.R_CloseCursor):
            looks = opnum == Opnum.R_CancelReceive
            if opnum == Opnum.R_StartReceive:
                looks = not Action(arguments.ulAction).receives
            if self.accesses[handle] != Access.RECEIVE_ACCESS and not looks:
                yield "a handle that was not opened to receive"
        if getattr(arguments, "hCursor", 0):
            if arguments.hCursor not in self.cursors:
                yield "a cursor that is not open"
            elif self.owners[arguments.hCursor] != handle:
                yield "a cursor of another handle"
        if opnum in (Opnum.R_StartReceive, Opnum.R_StartTransactionalReceive):
            key = handle, arguments.dwRequestId
            if key in self.locked or key in self.waiting:
                yield "a number of a request that is in use"
        to = getattr(arguments, "ullContextTo", None)
        if to is not None and ContextHandle(0, UUID(int=to)) not in self.opened:
            yield "a destination that is not open"

    def _run_down(self) -> None:
        for key, locked in list(self.locked.items()):
            if locked.association.closed:
                self._give_back(key)

    def _give_back(self, key: tuple[ContextHandle, int]) -> None:
        self.messages.append(self.locked.pop(key).message)
        self.messages.sort(key=lambda message: message.lookup_identifier)

    def _handle(self, name: str) -> ContextHandle:
        self._handles += 1
        handle = ContextHandle(0, UUID(int=0xB000 + self._handles - 1))
        self.opened[handle] = name
        return handle

    def R_OpenQueue(self, association: Any, event: Called, arguments: Any) -> Any:
        name = name_of(arguments.pQueueFormat)
        assert isinstance(name, DirectName)
        if name.queue.lower() != "orders":
            return int(HResult.MQ_ERROR_QUEUE_NOT_FOUND)
        if arguments.dwAccess not in self.rights:
            return int(HResult.MQ_ERROR_ACCESS_DENIED)
        handle = self._handle(str(name))
        self.accesses[handle] = arguments.dwAccess
        return {"pphContext": handle}

    def R_OpenQueueForMove(self, association: Any, event: Called, arguments: Any) -> Any:
        handle = self._handle(str(name_of(arguments.pQueueFormat)))
        return {"pMoveContext": handle.uuid.int, "pphContext": handle}

    def R_CloseQueue(self, association: Any, event: Called, arguments: Any) -> Any:
        handle = arguments.pphContext
        for key in [key for key in self.locked if key[0] == handle]:
            self._give_back(key)
        del self.opened[handle]
        return {"pphContext": NULL_HANDLE, "status": 0}

    def R_CreateCursor(self, association: Any, event: Called, arguments: Any) -> Any:
        self.cursors[len(self.cursors) + 1] = 0
        self.owners[len(self.cursors)] = arguments.phContext
        return {"phCursor": len(self.cursors), "status": 0}

    def R_CloseCursor(self, association: Any, event: Called, arguments: Any) -> Any:
        return {"status": 0 if self.cursors.pop(arguments.hCursor, None) is not None else 0xC0000008}

    def R_PurgeQueue(self, association: Any, event: Called, arguments: Any) -> Any:
        self.messages.clear()
        return {"status": 0}

    def R_StartReceive(self, association: Any, event: Called, arguments: Any) -> Any:
        if arguments.phContext not in self.opened:
            return {"status": int(HResult.MQ_ERROR_INVALID_HANDLE)}
        found = self._found(arguments)
        if found is None:
            if arguments.LookupId:
                return {"status": int(HResult.MQ_ERROR_MESSAGE_NOT_FOUND)}
            if not arguments.ulTimeout:
                return {"status": int(HResult.MQ_ERROR_IO_TIMEOUT)}
            self.waiting[arguments.phContext, arguments.dwRequestId] = Waiting(
                association, event.call, SYNTAXES[event.transfer_syntax], event.opnum
            )
            return SILENCE
        if Action(arguments.ulAction).receives:
            self.messages.remove(found)
            self.locked[arguments.phContext, arguments.dwRequestId] = Locked(found, association)
        return received(found, arguments.dwMaxBodySize)

    R_StartTransactionalReceive = R_StartReceive

    def _found(self, arguments: Any) -> Message | None:
        action, messages = Action(arguments.ulAction), self.messages
        if arguments.LookupId:
            by_identifier = {message.lookup_identifier: at for at, message in enumerate(messages)}
            at = by_identifier.get(arguments.LookupId)
            if at is None and self.by_order and action.name.endswith(("NEXT", "PREV")):
                before = [message for message in messages if message.lookup_identifier < arguments.LookupId]
                after = messages[len(before) :]
                beside = after[:1] if action.name.endswith("NEXT") else before[-1:]
                return beside[0] if beside else None
            step = {"CURRENT": 0, "NEXT": 1, "PREV": -1}[action.name.rpartition("_")[2]]
            at = None if at is None or not 0 <= at + step < len(messages) else at + step
            return None if at is None else messages[at]
        if arguments.hCursor:
            self.cursors[arguments.hCursor] += action is Action.MQ_ACTION_PEEK_NEXT
        at = self.cursors[arguments.hCursor] if arguments.hCursor else 0
        return messages[at] if at < len(messages) else None

    def R_CancelReceive(self, association: Any, event: Called, arguments: Any) -> Any:
        waiting = self.waiting.pop((arguments.phContext, arguments.dwRequestId), None)
        if waiting is None:
            return {"status": int(HResult.MQ_ERROR_INVALID_PARAMETER)}
        answer = {"status": int(HResult.MQ_ERROR_OPERATION_CANCELLED)}
        self.send(waiting.association, waiting.call, waiting.opnum, waiting.syntax, answer)
        return {"status": 0}

    def R_EndReceive(self, association: Any, event: Called, arguments: Any) -> Any:
        key = arguments.phContext, arguments.dwRequestId
        if key not in self.locked:
            return {"status": int(HResult.MQ_ERROR_INVALID_PARAMETER)}
        if arguments.dwAck == Acknowledge.RR_ACK:
            del self.locked[key]
        else:
            self._give_back(key)
        return {"status": 0}

    R_EndTransactionalReceive = R_EndReceive

    def R_MoveMessage(self, association: Any, event: Called, arguments: Any) -> Any:
        destination = self.opened.get(ContextHandle(0, UUID(int=arguments.ullContextTo)))
        if destination is None:
            return {"status": int(HResult.MQ_ERROR_INVALID_HANDLE)}
        found = [message for message in self.messages if message.lookup_identifier == arguments.LookupId]
        if not found:
            return {"status": int(HResult.MQ_ERROR_MESSAGE_NOT_FOUND)}
        self.messages.remove(found[0])
        self.moved.append((found[0].identifier.uniquifier, destination))
        return {"status": 0}

    def R_SetUserAcknowledgementClass(self, association: Any, event: Called, arguments: Any) -> Any:
        self.rejected.append(arguments.LookupId)
        return {"status": 0}

    def R_QMEnlistRemoteTransaction(self, association: Any, event: Called, arguments: Any) -> Any:
        identifier = UUID(bytes_le=bytes(arguments.pTransactionId.rgb))
        self.enlisted.append((identifier, bytes(arguments.pbPropagationToken)))
        return {"status": 0}


def received(found: Message, most: int) -> dict[str, Any]:
    """The answer to a read, with `most` bytes of the body."""
    packet = message_packet(to_packet(found), MessageState())
    return {
        "pdwArriveTime": found.arrival_time,
        "pSequenceId": found.lookup_identifier & (1 << 56) - 1,
        "ppPacketSections": sections_of(packet, most, most),
        "status": 0,
    }


@contextmanager
def remote_queue(*messages: Message, **options: Any) -> Iterator[RemoteQueue]:
    """A server with a queue; `options` are of the RPC server. Its connections are `server.connections`."""
    queue = RemoteQueue(list(messages))
    with rpc_server(interfaces={INTERFACE: 16}, perform=queue.perform, **options) as server:
        queue.port = server.port
        queue.server = server  # type: ignore[attr-defined]
        yield queue


def server_of(queue: RemoteQueue) -> RpcServer:
    """The server of a queue."""
    server: RpcServer = queue.server  # type: ignore[attr-defined]
    return server
