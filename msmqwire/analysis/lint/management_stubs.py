"""Stubs of queue management that can't be read, and their transfer syntaxes: [MS-MQMR] 2.2 and 3.1.4."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msmqwire.analysis.lint.finding import Finding
from msmqwire.analysis.lint.registry import Check
from msmqwire.analysis.lint.rpc import rpc_rule
from msmqwire.errors import MalformedPacket
from msmqwire.management.constants import Opnum
from msmqwire.rpc.constants import PduType, SyntaxId
from msmqwire.rpc.ndr import NDR64
from msmqwire.rpc.pdus import COMMON_HEADER_SIZE
from msmqwire.rpc.rpc_packet import RpcPacket

STRICT: Final = rpc_rule("MQMR-3.1.4-01", "The stub is inconsistent")
PADDING: Final = rpc_rule("MQMR-3.1.4-01-GAPS", "The gaps of the stub are not zero", "", "NOTE")
OPNUM: Final = rpc_rule("MQMR-3.1.4-04", "The opnum is not 0 or 1", "opnum")
SYNTAX: Final = rpc_rule("MQMR-2.2-01", "NDR64 is offered or accepted")

_OF_VALUE: Final = {
    id: rpc_rule(id, title, path)
    for id, title, path in (
        ("MQMR-2.2.1.2-04", "type is not 1, 2 or 3", "pObjectFormat"),
        ("MQMR-2.2.1.2-05", "The discriminant of the object is not its type", "pObjectFormat"),
        ("MQMR-2.2.3-04", "vt is not a type that the union has", "apVar"),
        ("MQMR-2.2.3-05", "The discriminant of a value is not its vt", "apVar"),
        ("MQMR-2.2.3-09", "Variants nest too deep", "apVar"),
    )
}
"""By the requirement of the error."""
_OF_PATH: Final = tuple(
    (re.compile(pattern), rpc_rule(id, title, path))
    for pattern, id, title, path in (
        (r"R_QMMgmtGetInfo\.cp", "MQMR-3.1.4.1-03", "cp is not 1 to 128", "cp"),
        (r"R_QMMgmtGetInfo\.(aProp|apVar)", "MQMR-3.1.4.1-04", "An array has not cp elements", ""),
        (
            r"R_QMMgmtAction\.lpwszAction",
            "MQMR-3.1.4.2-05",
            "The action is no text with a NUL",
            "lpwszAction",
        ),
        (
            r"R_QMMgmt.*\.pObjectFormat\.pQueueFormat",
            "MQMR-2.2.1.5-01",
            "m_qft is not 0 to 8",
            "pObjectFormat",
        ),
        (r".*\.(pElems|pBlobData)", "MQMR-2.2.3-06", "A count is not that of its array", "apVar"),
        (r".*\.pwszVal|.*\.pElems\[\d+\]", "MQMR-2.2.3-08", "A string is no text with a NUL", "apVar"),
    )
)
"""By the path of the error, which is the whole of it."""
_NAMES: Final = frozenset(Opnum.__members__)


def rule_of_stub(data: bytes, error: MalformedPacket) -> Check | None:
    """Return the rule that a stub breaks that can't be read; None for a stub of another protocol.

    A stub that ends too early breaks that of strict checks, whatever is missing.
    """
    if error.path.partition(".")[0] not in _NAMES:
        return None
    if error.offset is None or error.offset >= len(data):
        return STRICT
    if (check := _OF_VALUE.get(error.requirement)) is not None:
        return check
    return next((rule for pattern, rule in _OF_PATH if pattern.fullmatch(error.path)), STRICT)


def lint_syntaxes(packet: RpcPacket, syntaxes: Sequence[SyntaxId]) -> list[Finding]:
    """Return the findings about the transfer syntaxes that a PDU offers or accepts."""
    if NDR64.identifier not in syntaxes:
        return []
    offers = packet.ptype in (PduType.BIND, PduType.ALTER_CONTEXT)
    path, message = ("p_context_elem", "offered") if offers else ("p_results", "accepted")
    return [SYNTAX.at(path, COMMON_HEADER_SIZE, f"NDR64 is {message} for qmmgmt, which has NDR alone")]
