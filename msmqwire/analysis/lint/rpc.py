"""PDUs of DCE/RPC, and bytes of RPC that can't be read, whatever interface they are for.

| id | pattern |
| --- | --- |
| ATTACK-RPC-COUNT | a stub that ends before the elements that its counts announce |
| ATTACK-RPC-ALLOC | an alloc_hint beyond any stub: a server that believes it takes memory for nothing |
| ATTACK-RPC-FRAGMENT | fragments without a first or a last one, or larger together than any message |
| ATTACK-RPC-AUTH | a verifier that does not fit into its PDU |

ATTACK-TRUNCATED is that of `msmqwire.analysis.lint.attacks`: a PDU that ends before its frag_length.
Protocols judge their calls in modules of their own, with the functions here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pkgutil import resolve_name
from typing import Any, Final, TypeAlias

from msmqwire.analysis.lint.attacks import TRUNCATED
from msmqwire.analysis.lint.finding import Finding, Severity
from msmqwire.analysis.lint.registry import RPC, Check, listed
from msmqwire.analysis.protocols import protocol_of, protocols
from msmqwire.errors import MalformedPacket
from msmqwire.names.printable import counted
from msmqwire.rpc.pdu import FRAG_LENGTH_OFFSET
from msmqwire.rpc.pdus import COMMON_HEADER_SIZE
from msmqwire.rpc.rpc_packet import RpcPacket

Problem: TypeAlias = "tuple[Check, str, str]"
"""A rule that is broken, the parameter, and the fault."""

ALLOC_HINT_MAX: Final = 16 << 20
"""Bytes of a stub; a message of 4 MiB makes a smaller one."""
PADDING_MAX: Final = 7
"""Bytes after the last parameter: a stub is padded to a multiple of 8 at most."""

_PFC_OFFSET: Final = 3
_OF_PDU: Final = {"alloc_hint": COMMON_HEADER_SIZE, "opnum": COMMON_HEADER_SIZE + 6}


def rpc_rule(id: str, title: str, path: str = "", severity: Severity = "MUST") -> Check:
    """Register a check of calls and answers."""
    return listed(id, title, path, RPC, severity)


COUNT: Final = rpc_rule("ATTACK-RPC-COUNT", "The stub is too short for its counts", "", "ATTACK")
ALLOC: Final = rpc_rule("ATTACK-RPC-ALLOC", "alloc_hint is beyond any stub", "alloc_hint", "ATTACK")
FRAGMENT: Final = rpc_rule("ATTACK-RPC-FRAGMENT", "Fragments make no stub", "", "ATTACK")
AUTH: Final = rpc_rule("ATTACK-RPC-AUTH", "The verifier does not fit into its PDU", "", "ATTACK")


def lint_rpc(packet: RpcPacket) -> list[Finding]:
    """Return the departures of a call, an answer or another PDU from the specifications, by its bytes."""
    protocol = protocol_of(packet)
    if protocol is not None and type(packet) is not RpcPacket:
        found: list[Finding] = resolve_name(protocol.judging.judge)(packet)
        return found
    return judged(packet, ())


def judged(packet: RpcPacket, problems: Iterable[Problem], more: Iterable[Finding] = ()) -> list[Finding]:
    """Return the findings about a packet, in the order of its bytes: those of its PDU, and these."""
    found = [*_of_pdu(packet), *problems]
    findings = [check.at(path, _offset(packet, path), message) for check, path, message in found]
    findings += more
    findings.sort(key=lambda finding: finding.offset)
    return findings


def found(check: Check, message: str) -> Problem:
    """Return the problem at the parameter that a check is about."""
    return check, check.path, message


def gaps(value: Any, strict: Check, padding: Check) -> Iterator[Problem]:
    """Judge the bytes of a stub that belong to no parameter: those after the last one, and the gaps."""
    wire = value.wire
    if len(wire.rest) > PADDING_MAX:
        yield strict, "", f"{counted(len(wire.rest), 'byte')} after the last parameter"
    filled = sum(map(any, wire.paddings)) + any(wire.rest)
    if filled:
        yield padding, "", f"{counted(filled, 'gap', 'are')} not zero"


def _of_pdu(packet: RpcPacket) -> Iterator[Problem]:
    hint = packet.pdu.record.alloc_hint if packet.parts else 0
    if hint > ALLOC_HINT_MAX:
        yield found(ALLOC, counted(hint, "byte"))


def _offset(packet: RpcPacket, path: str) -> int:
    """Return the first byte of a parameter, of a member of pQueueFormat, or of a field of the PDU."""
    name, _, member = path.partition(".")
    if name not in packet.places:
        return _OF_PDU.get(name, 0)
    return packet.offset(packet.places[name] + 2 * (member == "m_reserved"))


def lint_malformed_rpc(data: bytes, error: MalformedPacket) -> list[Finding]:
    """Return the findings about a PDU or stub that can't be read; `error` says why."""
    offset = error.offset or 0
    check = _rule_of_stub(data, error)
    findings = [] if check is None else [check.at(error.path, offset, error.why)]
    if check is not None and error.path.startswith("R_") and offset >= len(data):
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


def _rule_of_stub(data: bytes, error: MalformedPacket) -> Check | None:
    """Return the rule of a protocol that a stub breaks; None for other bytes."""
    for protocol in protocols():
        if protocol.judging.judge_stub:
            check: Check | None = resolve_name(protocol.judging.judge_stub)(data, error)
            if check is not None:
                return check
    return None
