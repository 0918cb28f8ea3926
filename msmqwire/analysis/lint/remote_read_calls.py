"""One call or answer of remote read against [MS-MQRR] 3.1.4.

Handles are judged in `msmqwire.analysis.lint.remote_read_session`, where the attack ATTACK-RPC-HANDLE is: a
context handle that was issued to another host, or to nobody.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from msmqwire.analysis.lint.finding import Finding
from msmqwire.analysis.lint.packet import lint_packet
from msmqwire.analysis.lint.registry import Check
from msmqwire.analysis.lint.rpc import Problem, found, gaps, judged, rpc_rule
from msmqwire.constants import QUEUE_FORMAT_TYPE, MessageClass
from msmqwire.errors import MalformedPacket
from msmqwire.remote_read.constants import Access, Action, Opnum, ShareMode
from msmqwire.remote_read.remote_read_packet import RemoteReadPacket, section_offset

_FOR_MOVE: Final[dict[int, bool]] = {Opnum.R_OpenQueue: False, Opnum.R_OpenQueueForMove: True}
_TRANSACTIONAL: Final[dict[int, bool]] = {
    Opnum.R_StartReceive: False,
    Opnum.R_StartTransactionalReceive: True,
}


STRICT: Final = rpc_rule("MQRR-3.1.4-01", "The stub is inconsistent")
PADDING: Final = rpc_rule("MQRR-3.1.4-01-GAPS", "The gaps of the stub are not zero", "", "NOTE")
OPNUM: Final = rpc_rule("MQRR-3.1.4-03", "The opnum is not 0 to 15", "opnum")
UNUSED_OPNUM: Final = rpc_rule("MQRR-3.1.4-04", "Opnum 1 is sent", "opnum")
RESERVED: Final = rpc_rule("MQRR-2.2.3-03", "m_reserved is not 0", "pQueueFormat.m_reserved", "SHOULD")
DIRECT: Final = rpc_rule("MQRR-2.2.3-02", "The direct name is not of TCP or OS", "pQueueFormat.m_pDirectID")
SECTIONS: Final = rpc_rule("MQRR-2.2.6-05", "There are not one or two sections", "ppPacketSections")
SEQUENCE: Final = rpc_rule("MQRR-3.1.4.7-29", "pSequenceId has more than 7 bytes", "pSequenceId")
CURSOR: Final = rpc_rule("MQRR-3.1.4.4-06", "The new cursor is 0", "phCursor")
MOVE_CONTEXT: Final = rpc_rule("MQRR-3.1.4.11-14", "pMoveContext is 0", "pMoveContext")
MOVE_TO: Final = rpc_rule("MQRR-3.1.4.10-05", "ullContextTo is 0", "ullContextTo")
CLASS: Final = rpc_rule("MQRR-3.1.4.14-05", "usClass is not 0 or that of a rejection", "usClass")
_ACKS: Final = {
    "R_EndReceive.dwAck": rpc_rule("MQRR-3.1.4.9-04", "dwAck is not 1 or 2", "dwAck"),
    "R_EndTransactionalReceive.dwAck": rpc_rule("MQRR-3.1.4.15-04", "dwAck is not 1 or 2", "dwAck"),
    "R_QMEnlistRemoteTransaction.cbPropagationToken": rpc_rule(
        "MQRR-3.1.4.12-06", "The propagation token has more than 131072 bytes", "cbPropagationToken"
    ),
}
_OF_MESSAGE: Final = {
    id: rpc_rule(id, title, "ppPacketSections")
    for id, title in {
        "MQRR-2.2.6-06": "SectionSizeAlloc is not the original size",
        "MQRR-2.2.6-07": "The sizes of a whole section differ",
        "MQRR-2.2.6-08": "SectionSizeAlloc is below SectionSize",
        "MQRR-2.2.6-09": "SectionSize is not that of the bytes",
        "MQRR-2.2.7-01": "SectionBufferType is not that of the message",
    }.items()
}


def _pair(receive: str, transactional: str, title: str, path: str) -> dict[bool, Check]:
    return {False: rpc_rule(receive, title, path), True: rpc_rule(transactional, title, path)}


_FORMATS: Final = _pair(
    "MQRR-3.1.4.2-04", "MQRR-3.1.4.11-03", "m_qft is not that of one queue", "pQueueFormat.m_qft"
)
_ACCESS: Final = _pair("MQRR-3.1.4.2-05", "MQRR-3.1.4.11-04", "dwAccess is not one of the call", "dwAccess")
_SHARE: Final = _pair(
    "MQRR-3.1.4.2-07", "MQRR-3.1.4.11-05", "dwShareMode is not a share mode of the call", "dwShareMode"
)
_CLIENT: Final = _pair("MQRR-3.1.4.2-08", "MQRR-3.1.4.11-06", "pClientId is zero", "pClientId")
_ROUTING: Final = _pair(
    "MQRR-3.1.4.2-11", "MQRR-3.1.4.11-09", "fNonRoutingServer is not 0 or 1", "fNonRoutingServer"
)
_WORKGROUP: Final = _pair("MQRR-3.1.4.2-17", "MQRR-3.1.4.11-12", "fWorkgroup is not 0 or 1", "fWorkgroup")
_ACTION: Final = _pair("MQRR-3.1.4.7-17", "MQRR-3.1.4.13-13", "ulAction is not an action", "ulAction")
_LOOKUP: Final = _pair(
    "MQRR-3.1.4.7-13",
    "MQRR-3.1.4.13-10",
    "The action does not go with a LookupId, or with a transaction",
    "ulAction",
)
_NO_LOOKUP: Final = _pair(
    "MQRR-3.1.4.7-14", "MQRR-3.1.4.13-10-NONE", "A lookup action has no LookupId", "LookupId"
)
_BY_CURSOR: Final = _pair(
    "MQRR-3.1.4.7-15",
    "MQRR-3.1.4.13-11",
    "A cursor comes with a LookupId, or with an action that has none",
    "hCursor",
)
_NEITHER: Final = _pair("MQRR-3.1.4.7-16", "MQRR-3.1.4.13-12", "MQ_ACTION_PEEK_NEXT has no cursor", "hCursor")
_TIMEOUT: Final = _pair(
    "MQRR-3.1.4.7-22",
    "MQRR-3.1.4.13-14",
    "ulTimeout is not 0, and the message is named by LookupId",
    "ulTimeout",
)

_NAMES: Final = frozenset(Opnum.__members__)
_QUEUES: Final = frozenset(
    {
        QUEUE_FORMAT_TYPE.QUEUE_FORMAT_TYPE_PUBLIC,
        QUEUE_FORMAT_TYPE.QUEUE_FORMAT_TYPE_PRIVATE,
        QUEUE_FORMAT_TYPE.QUEUE_FORMAT_TYPE_DIRECT,
        QUEUE_FORMAT_TYPE.QUEUE_FORMAT_TYPE_MACHINE,
        QUEUE_FORMAT_TYPE.QUEUE_FORMAT_TYPE_SUBQUEUE,
    }
)


def lint_remote_read(packet: RemoteReadPacket) -> list[Finding]:
    """Return the departures of a call or an answer from the specifications, by its bytes."""
    return judged(packet, _problems(packet), _in_message(packet))


def _problems(packet: RemoteReadPacket) -> Iterator[Problem]:
    value, procedure = packet.value, packet.procedure
    if packet.is_request:
        if procedure is None:
            yield found(OPNUM, f"there is no procedure {packet.opnum}")
        elif procedure.opnum == Opnum.Opnum1NotUsedOnWire:
            yield found(UNUSED_OPNUM, "1 is reserved")
    if value is None or procedure is None:
        return
    yield from gaps(value, STRICT, PADDING)
    if packet.is_request:
        if procedure.opnum in _FOR_MOVE:
            yield from _open(value, for_move=_FOR_MOVE[procedure.opnum])
        elif procedure.opnum in _TRANSACTIONAL:
            yield from _start(value, transactional=_TRANSACTIONAL[procedure.opnum])
        elif procedure.opnum == Opnum.R_MoveMessage and not value.ullContextTo:
            yield found(MOVE_TO, "0")
        elif procedure.opnum == Opnum.R_SetUserAcknowledgementClass:
            yield from _rejection(value)
    else:
        yield from _results(value, procedure.opnum)


def _open(value: Any, *, for_move: bool) -> Iterator[Problem]:
    form = value.pQueueFormat
    if form.m_qft not in _QUEUES:
        yield found(_FORMATS[for_move], f"{form.m_qft} is not one of 1 to 4 and 8")
    if form.m_reserved:
        yield found(RESERVED, f"{form.m_reserved:#06x} is not 0")
    prefixes = _DIRECT_PREFIXES.get(form.m_qft)
    if prefixes and not (isinstance(form.arm, str) and form.arm[:20].upper().startswith(prefixes)):
        yield found(DIRECT, f"{form.arm!r:.100}")
    accesses = {Access.MQ_MOVE_ACCESS} if for_move else {Access.RECEIVE_ACCESS, Access.PEEK_ACCESS}
    if value.dwAccess not in accesses:
        yield found(_ACCESS[for_move], f"{value.dwAccess:#x}")
    if value.dwShareMode not in ({ShareMode.MQ_DENY_NONE} if for_move else set(ShareMode)):
        yield found(_SHARE[for_move], f"{value.dwShareMode:#x}")
    if not value.pClientId.int:
        yield found(_CLIENT[for_move], "all zero")
    for check, name in ((_ROUTING, "fNonRoutingServer"), (_WORKGROUP, "fWorkgroup")):
        if getattr(value, name) not in (0, 1):
            yield found(check[for_move], f"{getattr(value, name)} is not 0 or 1")


_DIRECT_PREFIXES: Final[Mapping[int, tuple[str, ...]]] = MappingProxyType(
    {
        QUEUE_FORMAT_TYPE.QUEUE_FORMAT_TYPE_DIRECT: ("TCP:", "OS:"),
        # Names of subqueues come with "DIRECT=" and without it.
        QUEUE_FORMAT_TYPE.QUEUE_FORMAT_TYPE_SUBQUEUE: ("TCP:", "OS:", "DIRECT=TCP:", "DIRECT=OS:"),
    }
)


def _start(value: Any, *, transactional: bool) -> Iterator[Problem]:
    """Check which message is asked for, and how."""
    action = value.ulAction
    if action not in set(Action):
        yield found(_ACTION[transactional], f"{action:#x} is not an action")
        return
    lookup = Action(action).by_lookup_identifier
    in_transaction = transactional and any(value.pTransactionId.rgb)
    if in_transaction and not Action(action).receives:
        check = _LOOKUP if lookup else _BY_CURSOR if value.hCursor else _NEITHER
        yield check[True], "ulAction", f"{Action(action).name} in a transaction"
    if value.LookupId and not lookup:
        yield found(_LOOKUP[transactional], f"{Action(action).name} with a LookupId")
    if value.LookupId and value.hCursor:
        yield found(_BY_CURSOR[transactional], "a cursor and a LookupId")
    if lookup and not value.LookupId:
        yield found(_NO_LOOKUP[transactional], f"0 with {Action(action).name}")
    if lookup and value.hCursor and not value.LookupId:
        yield found(_BY_CURSOR[transactional], f"a cursor with {Action(action).name}")
    if action == Action.MQ_ACTION_PEEK_NEXT and not value.hCursor and not value.LookupId:
        yield found(_NEITHER[transactional], "0 with MQ_ACTION_PEEK_NEXT")
    if (lookup or value.LookupId) and value.ulTimeout:
        yield found(_TIMEOUT[transactional], f"{value.ulTimeout} ms")


def _rejection(value: Any) -> Iterator[Problem]:
    if value.usClass not in (0, MessageClass.MQMSG_CLASS_NACK_RECEIVE_REJECTED):
        yield found(CLASS, f"{value.usClass:#06x}")


def _results(value: Any, opnum: int) -> Iterator[Problem]:
    failed = bool(getattr(value, "status", 0))
    if opnum in _TRANSACTIONAL:
        if not failed and value.pdwNumberOfSections not in (1, 2):
            yield found(SECTIONS, f"{value.pdwNumberOfSections} sections")
        if value.pSequenceId >> 56:
            yield found(SEQUENCE, f"{value.pSequenceId:#018x}")
    elif opnum == Opnum.R_CreateCursor and not failed and not value.phCursor:
        yield found(CURSOR, "0")
    elif opnum == Opnum.R_OpenQueueForMove and not value.pMoveContext:
        yield found(MOVE_CONTEXT, "0")


def _in_message(packet: RemoteReadPacket) -> Iterator[Finding]:
    """Yield the findings about the message of an answer, its fields by their names in the message."""
    if packet.message is None:
        return
    sections = packet.value.ppPacketSections
    start = section_offset(packet.stub, sections)
    last = max(0, len(sections[0].pSectionBuffer or b"") - 1)
    for inner in lint_packet(packet.message.whole, packet.message.data):
        offset = packet.offset(start + min(inner.offset, last))
        yield Finding(inner.id, inner.severity, inner.path, offset, inner.message)


def rule_of_stub(_data: bytes, error: MalformedPacket) -> Check | None:
    """Return the rule that a stub breaks that can't be read; None for a stub of another protocol."""
    check = _OF_MESSAGE.get(error.requirement) or _ACKS.get(error.path)
    if check is not None:
        return check
    if error.path.startswith("ppPacketSections"):
        return _OF_MESSAGE["MQRR-2.2.7-01"]
    return STRICT if error.path.partition(".")[0] in _NAMES else None
