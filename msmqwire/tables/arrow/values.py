"""Conversions from fields of a packet to values of columns."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from msmqwire.analysis.lint.finding import Finding
from msmqwire.schema import Record


def unless_empty(value: bytes) -> bytes | None:
    """Return bytes, or None if they are empty."""
    return value or None


def finding_ids(findings: Sequence[Finding]) -> str | None:
    """Return the ids of findings, each once, in their order, with spaces between; None without any."""
    return " ".join(dict.fromkeys(finding.id for finding in findings)) or None


def sender_id(security: Record) -> str | None:
    """Return the SecurityID: a SID (S-1-...) or a GUID as text, by its type and size; else as hex."""
    data: bytes = security.SecurityData.SecurityID
    if not data:
        return None
    if security.Flags.ST == 1 and len(data) >= 8 and len(data) == 8 + 4 * data[1]:
        authority = int.from_bytes(data[2:8], "big")
        parts = (int.from_bytes(data[i : i + 4], "little") for i in range(8, len(data), 4))
        return "-".join(["S", str(data[0]), str(authority), *map(str, parts)])
    if security.Flags.ST == 2 and len(data) == 16:
        return str(UUID(bytes_le=data))
    return data.hex()
