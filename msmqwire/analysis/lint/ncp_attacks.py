"""Checks of bytes that can't be read as NCP.

| id | pattern |
| --- | --- |
| ATTACK-NCP-LENGTH | a length that can't be: of a unit, beyond the limit or below its headers; of a request, other than the bytes that follow; of a name, past the end |
| ATTACK-NCP-COUNT | a count that announces more jobs, queue servers or forms than there is room for |

ATTACK-TRUNCATED is that of `msmqwire.analysis.lint.attacks`: the bytes end before the announced size.
"""  # noqa: E501

from __future__ import annotations

from typing import Final

from msmqwire.analysis.lint.attacks import TRUNCATED
from msmqwire.analysis.lint.finding import Finding
from msmqwire.analysis.lint.registry import listed
from msmqwire.errors import MalformedPacket
from msmqwire.ncp.framing import unit_size
from msmqwire.ncp.headers import NCP_TCP_REPLY, NCP_TCP_REQUEST

NCP: Final = frozenset({"ncp"})
"""The inputs of the checks of NCP: its packets, and bytes that are none."""

LENGTH: Final = listed("ATTACK-NCP-LENGTH", "A length can't be", "", NCP, "ATTACK")
COUNT: Final = listed("ATTACK-NCP-COUNT", "A count announces more than there is room for", "", NCP, "ATTACK")

_TYPES: Final = ("RequestType", "ReplyType", "Signature")


def lint_malformed_ncp(data: bytes, error: MalformedPacket) -> list[Finding]:
    """Return the findings about bytes that are not a packet of NCP; `error` says why."""
    offset = min(error.offset or 0, len(data))
    structure, _, field = error.path.rpartition(".")
    if field in _TYPES:
        return []
    check = TRUNCATED
    if field.endswith("Count"):
        check = COUNT
    elif field.endswith("Length") and not (field == "Length" and _can_be(structure, data)):
        check = LENGTH
    return [check.at(error.path, offset, error.why)]


def _can_be(preamble: str, data: bytes) -> bool:
    """Return whether the length of a unit can be."""
    try:
        unit_size(NCP_TCP_REPLY if preamble == NCP_TCP_REPLY.name else NCP_TCP_REQUEST, data)
    except MalformedPacket:
        return False
    return True
