"""Findings of whole packets, one in each value of an array: `msmqwire.lint` for many packets.

The compiled judge says which packets of a session may break a rule; only these, pings and malformed values
are given to lint.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from msmqwire.analysis.lint import Finding, lint, lint_packet
from msmqwire.packets import Protocol
from msmqwire.tables.arrow.batch import packet_bytes
from msmqwire.tables.compiled import engine, judging
from msmqwire.tables.compiled.packet import PING_KIND
from msmqwire.tables.compiled.scan_arrays import RowBlock
from msmqwire.tables.compiled.state import (
    ORIGIN_MIDSTREAM,
    R_KIND,
    R_ORIGIN,
    R_STREAM,
)
from msmqwire.tables.packet_array import PacketScan
from msmqwire.tables.row_judge import Suspect, no_sessions, suspects_at

_BEFORE: Final = 1 << 9
"""Sessions for which the judge has room; nobody looks at them."""
_NO_PORTS: Final = np.zeros(1 << 16, np.bool_)


def packet_findings(raw: Any) -> Iterator[list[Finding] | None]:
    """Yield the findings of each value as `msmqwire.lint` returns them; None for a null.

    A value with the size and the signature of a Ping is one if it can be read as such; any other is a packet
    of a session.

    Args:
        raw: a `pyarrow.Array` or `pyarrow.ChunkedArray` of bytes.
    """
    for chunk in raw.chunks if isinstance(raw, pa.ChunkedArray) else [raw]:
        if not len(chunk):
            continue
        scan = PacketScan(chunk)
        for first, block, _ in scan.blocks():
            found = dict(_of_block(block, scan.valid[first : first + len(block.rows)]))
            for r, valid in enumerate(scan.valid[first : first + len(block.rows)].tolist()):
                yield found.get(r, []) if valid else None


def _of_block(block: RowBlock, valid: Any) -> Iterator[tuple[int, list[Finding]]]:
    """Yield the rows that may have findings, with these."""
    kinds = block.rows[:, R_KIND]
    # Interpreted, the judge takes longer than lint.
    judges = engine.chosen().name != engine.PORTABLE
    for r in np.flatnonzero(valid & (kinds >= PING_KIND) if judges else valid).tolist():
        protocol: Protocol = "ping" if kinds[r] == PING_KIND else "session"
        yield r, lint(packet_bytes(block, r), protocol=protocol)
    for r, suspect in _suspects(block) if judges else ():
        yield r, lint_packet(suspect.packet, suspect.raw, suspect.of_fields)


def _suspects(block: RowBlock) -> Iterator[tuple[int, Suspect]]:
    """Yield the packets of sessions that may break a rule.

    Each is judged in a session of its own; what the judge says of that session is not asked for.
    """
    rows, count = block.rows, len(block.rows)
    rows[:, R_ORIGIN] = np.where(rows[:, R_KIND] < PING_KIND, ORIGIN_MIDSTREAM, -1)
    rows[:, R_STREAM] = np.arange(count)
    verdicts, first = np.zeros((count, judging.VERDICT), np.int64), 0
    sessions, before = no_sessions(1), no_sessions(_BEFORE)
    while first < count:
        first = judging.judge_rows(block, sessions, _NO_PORTS, verdicts, before, first)
    chosen = np.flatnonzero(verdicts[:, judging.V_BITS] & judging.OF_PACKET)
    return suspects_at(block, verdicts, chosen)
