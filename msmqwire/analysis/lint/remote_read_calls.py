"""One call or answer of remote read against [MS-MQRR] 3.1.4, and bytes of RPC that can't be read.

| id | pattern |
| --- | --- |
| ATTACK-RPC-COUNT | a stub that ends before the elements that its counts announce |
| ATTACK-RPC-ALLOC | an alloc_hint beyond any stub: a server that believes it takes memory for nothing |
| ATTACK-RPC-FRAGMENT | fragments without a first or a last one, or larger together than any message |
| ATTACK-RPC-AUTH | a verifier that does not fit into its PDU |
| ATTACK-RPC-HANDLE | a context handle that was issued to another host, or to nobody |

ATTACK-TRUNCATED is that of `msmqwire.analysis.lint.attacks`: a PDU that ends before its frag_length. Handles
are judged in `msmqwire.analysis.lint.remote_read_session`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from msmqwire.analysis.lint.attacks import TRUNCATED
from msmqwire.analysis.lint.finding import Finding, Severity
from msmqwire.analysis.lint.packet import lint_packet
from msmqwire.analysis.lint.registry import RPC, Check, listed
from msmqwire.constants import QUEUE_FORMAT_TYPE, MessageClass
from msmqwire.errors import MalformedPacket
from msmqwire.names.printable import counted
from msmqwire.remote_read.constants import Access, Action, Opnum, ShareMode
from msmqwire.remote_read.rpc_packet import RpcPacket, section_offset
from msmqwire.rpc.constants import PduType
from msmqwire.rpc.pdu import FRAG_LENGTH_OFFSET
from msmqwire.rpc.pdus import COMMON_HEADER_SIZE

Problem: TypeAlias = "tuple[Check, str, str]"
"""A rule that is broken, the parameter, and the fault."""

ALLOC_HINT_MAX: Final = 16 << 20
"""Bytes of a stub; a message of 4 MiB makes a smaller one."""
PADDING_MAX: Final = 7
"""Bytes after the last parameter: a stub is padded to a multiple of 8 at most."""

_PFC_OFFSET: Final = 3
_FOR_MOVE: Final[dict[int, bool]] = {Opnum.R_OpenQueue: False, Opnum.R_OpenQueueForMove: True}
_TRANSACTIONAL: Final[dict[int, bool]] = {
    Opnum.R_StartReceive: False,
    Opnum.R_StartTransactionalReceive: True,
}


def _rule(id: str, title: str, path: str = "", severity: Severity = "MUST") -> Check:
    return listed(id, title, path, RPC, severity)


COUNT: Final = _rule("ATTACK-RPC-COUNT", "The stub is too short for its counts", "", "ATTACK")
ALLOC: Final = _rule("ATTACK-RPC-ALLOC", "alloc_hint is beyond any stub", "alloc_hint", "ATTACK")
FRAGMENT: Final = _rule("ATTACK-RPC-FRAGMENT", "Fragments make no stub", "", "ATTACK")
AUTH: Final = _rule("ATTACK-RPC-AUTH", "The verifier does not fit into its PDU", "", "ATTACK")

STRICT: Final = _rule("MQRR-3.1.4-01", "The stub is inconsistent")
PADDING: Final = _rule("MQRR-3.1.4-01-GAPS", "The gaps of the stub are not zero", "", "NOTE")
OPNUM: Final = _rule("MQRR-3.1.4-03", "The opnum is not 0 to 15", "opnum")
UNUSED_OPNUM: Final = _rule("MQRR-3.1.4-04", "Opnum 1 is sent", "opnum")
RESERVED: Final = _rule("MQRR-2.2.3-03", "m_reserved is not 0", "pQueueFormat.m_reserved", "SHOULD")
DIRECT: Final = _rule("MQRR-2.2.3-02", "The direct name is not of TCP or OS", "pQueueFormat.m_pDirectID")
SECTIONS: Final = _rule("MQRR-2.2.6-05", "There are not one or two sections", "ppPacketSections")
SEQUENCE: Final = _rule("MQRR-3.1.4.7-29", "pSequenceId has more than 7 bytes", "pSequenceId")
CURSOR: Final = _rule("MQRR-3.1.4.4-06", "The new cursor is 0", "phCursor")
MOVE_CONTEXT: Final = _rule("MQRR-3.1.4.11-14", "pMoveContext is 0", "pMoveContext")
MOVE_TO: Final = _rule("MQRR-3.1.4.10-05", "ullContextTo is 0", "ullContextTo")
CLASS: Final = _rule("MQRR-3.1.4.14-05", "usClass is not 0 or that of a rejection", "usClass")
_ACKS: Final = {
    "R_EndReceive.dwAck": _rule("MQRR-3.1.4.9-04", "dwAck is not 1 or 2", "dwAck"),
    "R_EndTransactionalReceive.dwAck": _rule("MQRR-3.1.4.15-04", "dwAck is not 1 or 2", "dwAck"),
    "R_QMEnlistRemoteTransaction.cbPropagationToken": _rule(
        "MQRR-3.1.4.12-06", "The propagation token has more than 131072 bytes", "cbPropagationToken"
    ),
}
_OF_MESSAGE: Final = {
    id: _rule(id, title, "ppPacketSections")
    for id, title in {
        "MQRR-2.2.6-06": "SectionSizeAlloc is not the original size",
        "MQRR-2.2.6-07": "The sizes of a whole section differ",
        "MQRR-2.2.6-08": "SectionSizeAlloc is below SectionSize",
        "MQRR-2.2.6-09": "SectionSize is not that of the bytes",
        "MQRR-2.2.7-01": "SectionBufferType is not that of the message",
    }.items()
}


def _pair(receive: str, transactional: str, title: str, path: str) -> dict[bool, Check]:
    return {False: _rule(receive, title, path), True: _rule(transactional, title, path)}


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

_QUEUES: Final = frozenset(
    {
        QUEUE_FORMAT_TYPE.QUEUE_FORMAT_TYPE_PUBLIC,
        QUEUE_FORMAT_TYPE.QUEUE_FORMAT_TYPE_PRIVATE,
        QUEUE_FORMAT_TYPE.QUEUE_FORMAT_TYPE_DIRECT,
        QUEUE_FORMAT_TYPE.QUEUE_FORMAT_TYPE_MACHINE,
        QUEUE_FORMAT_TYPE.QUEUE_FORMAT_TYPE_SUBQUEUE,
    }
)


def lint_rpc(packet: RpcPacket) -> list[Finding]:
    """Return the departures of a call, an answer or another PDU from the specifications, by its bytes."""
    findings = [check.at(path, _offset(packet, path), message) for check, path, message in _problems(packet)]
    findings += _in_message(packet)
    findings.sort(key=lambda finding: finding.offset)
    return findings


def _offset(packet: RpcPacket, path: str) -> int:
    """Return the first byte of a parameter, of a member of pQueueFormat, or of a field of the PDU."""
    name, _, member = path.partition(".")
    if name not in packet.places:
        return {"alloc_hint": COMMON_HEADER_SIZE, "opnum": COMMON_HEADER_SIZE + 6}.get(name, 0)
    return packet.offset(packet.places[name] + 2 * (member == "m_reserved"))


def _problems(packet: RpcPacket) -> Iterator[Problem]:
    record, value, procedure = packet.pdu.record, packet.value, packet.procedure
    hint = record.alloc_hint if packet.parts else 0
    if hint > ALLOC_HINT_MAX:
        yield _found(ALLOC, counted(hint, "byte"))
    if packet.ptype == PduType.REQUEST:
        if packet.remote_read and procedure is None:
            yield _found(OPNUM, f"there is no procedure {record.opnum}")
        if procedure is not None and procedure.opnum == Opnum.Opnum1NotUsedOnWire:
            yield _found(UNUSED_OPNUM, "1 is reserved")
    if value is None or procedure is None:
        return
    yield from _gaps(value)
    if packet.ptype == PduType.REQUEST:
        if procedure.opnum in _FOR_MOVE:
            yield from _open(value, for_move=_FOR_MOVE[procedure.opnum])
        elif procedure.opnum in _TRANSACTIONAL:
            yield from _start(value, transactional=_TRANSACTIONAL[procedure.opnum])
        elif procedure.opnum == Opnum.R_MoveMessage and not value.ullContextTo:
            yield _found(MOVE_TO, "0")
        elif procedure.opnum == Opnum.R_SetUserAcknowledgementClass:
            yield from _rejection(value)
    else:
        yield from _results(value, procedure.opnum)


def _found(check: Check, message: str) -> Problem:
    return check, check.path, message


def _gaps(value: Any) -> Iterator[Problem]:
    wire = value.wire
    if len(wire.rest) > PADDING_MAX:
        yield STRICT, "", f"{counted(len(wire.rest), 'byte')} after the last parameter"
    filled = sum(map(any, wire.paddings)) + any(wire.rest)
    if filled:
        yield PADDING, "", f"{counted(filled, 'gap', 'are')} not zero"


def _open(value: Any, *, for_move: bool) -> Iterator[Problem]:
    form = value.pQueueFormat
    if form.m_qft not in _QUEUES:
        yield _found(_FORMATS[for_move], f"{form.m_qft} is not one of 1 to 4 and 8")
    if form.m_reserved:
        yield _found(RESERVED, f"{form.m_reserved:#06x} is not 0")
    prefixes = _DIRECT_PREFIXES.get(form.m_qft)
    if prefixes and not (isinstance(form.arm, str) and form.arm[:20].upper().startswith(prefixes)):
        yield _found(DIRECT, f"{form.arm!r:.100}")
    accesses = {Access.MQ_MOVE_ACCESS} if for_move else {Access.RECEIVE_ACCESS, Access.PEEK_ACCESS}
    if value.dwAccess not in accesses:
        yield _found(_ACCESS[for_move], f"{value.dwAccess:#x}")
    if value.dwShareMode not in ({ShareMode.MQ_DENY_NONE} if for_move else set(ShareMode)):
        yield _found(_SHARE[for_move], f"{value.dwShareMode:#x}")
    if not value.pClientId.int:
        yield _found(_CLIENT[for_move], "all zero")
    for check, name in ((_ROUTING, "fNonRoutingServer"), (_WORKGROUP, "fWorkgroup")):
        if getattr(value, name) not in (0, 1):
            yield _found(check[for_move], f"{getattr(value, name)} is not 0 or 1")


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
        yield _found(_ACTION[transactional], f"{action:#x} is not an action")
        return
    lookup = Action(action).by_lookup_identifier
    in_transaction = transactional and any(value.pTransactionId.rgb)
    if in_transaction and not Action(action).receives:
        check = _LOOKUP if lookup else _BY_CURSOR if value.hCursor else _NEITHER
        yield check[True], "ulAction", f"{Action(action).name} in a transaction"
    if value.LookupId and not lookup:
        yield _found(_LOOKUP[transactional], f"{Action(action).name} with a LookupId")
    if value.LookupId and value.hCursor:
        yield _found(_BY_CURSOR[transactional], "a cursor and a LookupId")
    if lookup and not value.LookupId:
        yield _found(_NO_LOOKUP[transactional], f"0 with {Action(action).name}")
    if lookup and value.hCursor and not value.LookupId:
        yield _found(_BY_CURSOR[transactional], f"a cursor with {Action(action).name}")
    if action == Action.MQ_ACTION_PEEK_NEXT and not value.hCursor and not value.LookupId:
        yield _found(_NEITHER[transactional], "0 with MQ_ACTION_PEEK_NEXT")
    if (lookup or value.LookupId) and value.ulTimeout:
        yield _found(_TIMEOUT[transactional], f"{value.ulTimeout} ms")


def _rejection(value: Any) -> Iterator[Problem]:
    if value.usClass not in (0, MessageClass.MQMSG_CLASS_NACK_RECEIVE_REJECTED):
        yield _found(CLASS, f"{value.usClass:#06x}")


def _results(value: Any, opnum: int) -> Iterator[Problem]:
    failed = bool(getattr(value, "status", 0))
    if opnum in _TRANSACTIONAL:
        if not failed and value.pdwNumberOfSections not in (1, 2):
            yield _found(SECTIONS, f"{value.pdwNumberOfSections} sections")
        if value.pSequenceId >> 56:
            yield _found(SEQUENCE, f"{value.pSequenceId:#018x}")
    elif opnum == Opnum.R_CreateCursor and not failed and not value.phCursor:
        yield _found(CURSOR, "0")
    elif opnum == Opnum.R_OpenQueueForMove and not value.pMoveContext:
        yield _found(MOVE_CONTEXT, "0")


def _in_message(packet: RpcPacket) -> Iterator[Finding]:
    """Yield the findings about the message of an answer, its fields by their names in the message."""
    if packet.message is None:
        return
    sections = packet.value.ppPacketSections
    start = section_offset(packet.stub, sections)
    last = max(0, len(sections[0].pSectionBuffer or b"") - 1)
    for found in lint_packet(packet.message.whole, packet.message.data):
        offset = packet.offset(start + min(found.offset, last))
        yield Finding(found.id, found.severity, found.path, offset, found.message)


def lint_malformed_rpc(data: bytes, error: MalformedPacket) -> list[Finding]:
    """Return the findings about a PDU or stub that can't be read; `error` says why."""
    offset = error.offset or 0
    check = _OF_MESSAGE.get(error.requirement) or _ACKS.get(error.path)
    if check is None and error.path.startswith(("R_", "Opnum")):
        check = STRICT
    if check is None and error.path.startswith("ppPacketSections"):
        check = _OF_MESSAGE["MQRR-2.2.7-01"]
    findings = [] if check is None else [check.at(error.path, offset, error.why)]
    if check is STRICT and offset >= len(data):
        findings.append(COUNT.at(error.path, offset, error.why))
    elif offset == _PFC_OFFSET and error.path.endswith("pfc_flags"):
        findings.append(FRAGMENT.at(error.path, offset, error.why))
    elif error.path.endswith(("auth_length", "auth_pad_length")):
        findings.append(AUTH.at(error.path, offset, error.why))
    elif offset == FRAG_LENGTH_OFFSET and len(data) >= COMMON_HEADER_SIZE:
        announced = int.from_bytes(data[FRAG_LENGTH_OFFSET : FRAG_LENGTH_OFFSET + 2], "little")
        if announced > len(data):
            findings.append(TRUNCATED.at(error.path, offset, error.why))
    return findings
