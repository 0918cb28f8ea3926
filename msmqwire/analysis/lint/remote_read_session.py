"""The order of the calls of remote read: which handles, cursors and receives exist when a call names them.

[MS-MQRR] 3.1.4. State belongs to the server, so that it is kept by server and handle, for all connections.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from msmqwire.analysis.lint.finding import Finding
from msmqwire.analysis.lint.registry import RPC, Check, listed
from msmqwire.remote_read.constants import RECEIVE_ACTIONS, Access, Opnum
from msmqwire.rpc.handles import ContextHandle
from msmqwire.rpc.rpc_packet import RpcPacket

HANDLES_MAX: Final = 2048
"""Handles of all servers that are followed; of more, the oldest are forgotten."""
EACH_MAX: Final = 128
"""Receives and cursors of a handle that are followed; one with more is no longer judged by them."""

Server: TypeAlias = tuple[str, int]
Problem: TypeAlias = tuple[Check, str, str]


def _rule(id: str, title: str, path: str) -> Check:
    return listed(id, title, path, RPC)


FOREIGN: Final = listed(
    "ATTACK-RPC-HANDLE", "The handle is that of another host, or of nobody", "", RPC, "ATTACK"
)
_HANDLES: Final[dict[int, Check]] = {
    Opnum.R_CloseQueue: _rule("MQRR-3.1.4.3-02", "The handle is not open", "pphContext"),
    Opnum.R_CreateCursor: _rule("MQRR-3.1.4.4-02", "The handle is not open", "phContext"),
    Opnum.R_CloseCursor: _rule("MQRR-3.1.4.5-03", "The handle or the cursor is not open", "phContext"),
    Opnum.R_PurgeQueue: _rule("MQRR-3.1.4.6-02", "The handle is not open, or may not receive", "phContext"),
    Opnum.R_StartReceive: _rule(
        "MQRR-3.1.4.7-11", "The handle is not open, or does not permit the action", "phContext"
    ),
    Opnum.R_CancelReceive: _rule(
        "MQRR-3.1.4.8-03", "The handle or the request is not that of a start", "phContext"
    ),
    Opnum.R_EndReceive: _rule(
        "MQRR-3.1.4.9-03", "The handle or the request is not that of a start", "phContext"
    ),
    Opnum.R_MoveMessage: _rule(
        "MQRR-3.1.4.10-04", "The source handle is not open, or may not receive", "phContextFrom"
    ),
    Opnum.R_StartTransactionalReceive: _rule(
        "MQRR-3.1.4.13-09", "The handle is not open, or may not receive", "phContext"
    ),
    Opnum.R_SetUserAcknowledgementClass: _rule(
        "MQRR-3.1.4.14-04", "The handle is not open, or may not receive", "phContext"
    ),
    Opnum.R_EndTransactionalReceive: _rule(
        "MQRR-3.1.4.15-03", "The handle or the request is not that of a start", "phContext"
    ),
}
_UNIQUE: Final = {
    Opnum.R_StartReceive: _rule("MQRR-3.1.4.7-23", "dwRequestId is one that is in use", "dwRequestId"),
    Opnum.R_StartTransactionalReceive: _rule(
        "MQRR-3.1.4.13-15", "dwRequestId is one that is in use", "dwRequestId"
    ),
}
_CURSORS: Final = {
    Opnum.R_StartReceive: _rule("MQRR-3.1.4.7-15-OPEN", "The cursor is not open", "hCursor"),
    Opnum.R_StartTransactionalReceive: _rule("MQRR-3.1.4.13-11-OPEN", "The cursor is not open", "hCursor"),
    Opnum.R_CloseCursor: _HANDLES[Opnum.R_CloseCursor],
}
_OTHER_END: Final = {
    Opnum.R_EndReceive: _rule(
        "MQRR-3.1.4.9-02", "R_EndReceive ends a receive that another call began", "dwRequestId"
    ),
    Opnum.R_EndTransactionalReceive: _rule(
        "MQRR-3.1.4.15-02",
        "R_EndTransactionalReceive ends a receive that another call began",
        "dwRequestId",
    ),
}
_NEED_RECEIVE: Final = frozenset(
    {
        Opnum.R_PurgeQueue,
        Opnum.R_MoveMessage,
        Opnum.R_StartTransactionalReceive,
        Opnum.R_SetUserAcknowledgementClass,
    }
)
_ENDS: Final = frozenset({Opnum.R_EndReceive, Opnum.R_EndTransactionalReceive, Opnum.R_CancelReceive})


@dataclass(slots=True)
class _Handle:
    """A handle that has been issued.

    Attributes:
        owner: the address of the host that it was issued to.
        access: dwAccess of the call that opened it.
        receives: open receives by request id, and whether each is transactional.
        cursors: those that are open.
        crowded: whether there were too many of either.
    """

    owner: str
    access: int
    closed: bool = False
    receives: dict[int, bool] = field(default_factory=dict)
    cursors: set[int] = field(default_factory=set)
    crowded: bool = False


class RemoteReadLint:
    """Judges calls by those before them, fed with the calls and answers of all connections in order."""

    def __init__(self) -> None:
        self._handles: OrderedDict[tuple[Server, ContextHandle], _Handle] = OrderedDict()

    def packet(
        self, client: str, server: Server, packet: RpcPacket, *, whole: bool, new_group: bool
    ) -> list[Finding]:
        """Return the findings about the place of a call in the order of calls.

        Args:
            client: the address of the host that calls.
            server: address and port.
            packet: a call or an answer.
            whole: whether all of the connection so far was captured, and in the clear.
            new_group: whether it began an association group, so that no handle is older than it.
        """
        if packet.procedure is None:
            return []
        if not packet.is_request:
            self._answer(client, server, packet)
            return []
        if packet.value is None:
            return []
        problems = self._request(client, server, packet, packet.value, whole, whole and new_group)
        return [
            check.at(path, packet.offset(packet.places[path]), message) for check, path, message in problems
        ]

    # -- calls --------------------------------------------------------------------------------------

    def _request(
        self, client: str, server: Server, packet: RpcPacket, value: Any, whole: bool, alone: bool
    ) -> Iterator[Problem]:
        opnum = Opnum(packet.pdu.record.opnum)
        check = _HANDLES.get(opnum)
        if check is None:
            return
        handle: ContextHandle = getattr(value, check.path)
        if handle.is_null:
            yield check, check.path, "the null handle"
            return
        known = self._handles.get((server, handle))
        if known is None:
            if alone:
                yield FOREIGN, check.path, f"{handle.uuid} was issued to nobody"
            return
        if known.owner != client:
            yield FOREIGN, check.path, f"{handle.uuid} was issued to {known.owner}"
        if known.closed:
            if whole:
                yield check, check.path, f"{handle.uuid} is closed"
            return
        if _receives(opnum, value) and known.access != Access.RECEIVE_ACCESS:
            yield check, check.path, f"opened with the access {known.access:#x}"
        yield from self._order(known, opnum, value, judge=whole and not known.crowded)

    def _order(self, known: _Handle, opnum: Opnum, value: Any, *, judge: bool) -> Iterator[Problem]:
        cursor = getattr(value, "hCursor", 0)
        if judge and opnum in _CURSORS and cursor not in known.cursors and (
            cursor or opnum == Opnum.R_CloseCursor
        ):  # fmt: skip
            yield _CURSORS[opnum], "hCursor", f"{cursor:#x} is not a cursor of the handle"
        if opnum in _UNIQUE:
            number = value.dwRequestId
            if judge and number in known.receives:
                yield _UNIQUE[opnum], _UNIQUE[opnum].path, f"{number} has not ended"
            if len(known.receives) < EACH_MAX:
                known.receives[number] = opnum == Opnum.R_StartTransactionalReceive
            else:
                known.crowded = True
        elif judge and opnum in _ENDS:
            number = value.dwRequestId
            transactional = known.receives.get(number)
            if transactional is None:
                yield _HANDLES[opnum], "dwRequestId", f"{number} has not begun"
            elif opnum in _OTHER_END and transactional != (opnum == Opnum.R_EndTransactionalReceive):
                yield _OTHER_END[opnum], _OTHER_END[opnum].path, f"{number} was begun by the other procedure"

    # -- answers ------------------------------------------------------------------------------------

    def _answer(self, client: str, server: Server, packet: RpcPacket) -> None:
        assert packet.procedure is not None
        opnum, arguments, results = packet.procedure.opnum, packet.arguments, packet.value
        if arguments is None:
            return
        if opnum in (Opnum.R_OpenQueue, Opnum.R_OpenQueueForMove):
            if results is not None and not results.pphContext.is_null:
                self._handles[server, results.pphContext] = _Handle(client, arguments.dwAccess)
                if len(self._handles) > HANDLES_MAX:
                    self._handles.popitem(last=False)
            return
        check = _HANDLES.get(opnum)
        known = None if check is None else self._handles.get((server, getattr(arguments, check.path)))
        if known is None:
            return
        done = results is not None and not results.status
        if opnum in _UNIQUE:
            if not done or arguments.ulAction not in RECEIVE_ACTIONS:
                known.receives.pop(arguments.dwRequestId, None)
        elif opnum in _ENDS:
            if done or opnum != Opnum.R_CancelReceive:
                known.receives.pop(arguments.dwRequestId, None)
        elif done and opnum == Opnum.R_CloseQueue:
            known.closed = True
            known.receives.clear()
            known.cursors.clear()
        elif done and opnum == Opnum.R_CreateCursor:
            known.crowded |= len(known.cursors) >= EACH_MAX
            if not known.crowded:
                known.cursors.add(results.phCursor)
        elif done and opnum == Opnum.R_CloseCursor:
            known.cursors.discard(arguments.hCursor)


def _receives(opnum: Opnum, value: Any) -> bool:
    """Whether a call needs a handle that was opened to receive."""
    if opnum == Opnum.R_StartReceive:
        return value.ulAction in RECEIVE_ACTIONS
    return opnum in _NEED_RECEIVE
