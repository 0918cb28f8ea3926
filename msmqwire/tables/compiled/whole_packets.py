"""Identifies values that hold one packet each, compiled."""

from __future__ import annotations

from typing import Any, Final

from msmqwire.headers.base import SIGNATURE
from msmqwire.ping import PING_SIGNATURE, PING_SIZE
from msmqwire.tables.compiled.arrays import Bools, Int64s
from msmqwire.tables.compiled.decorators import exported, jit
from msmqwire.tables.compiled.generated import FIELD_SLOTS, ping
from msmqwire.tables.compiled.memory import u16, u32
from msmqwire.tables.compiled.packet import BAD, FOLLOWED_PING, PING_KIND, refuse_base, session_packet
from msmqwire.tables.compiled.refusal import UNSURE, refuse
from msmqwire.tables.compiled.scan_arrays import RowBlock
from msmqwire.tables.compiled.state import (
    NO_EXTRA,
    R_EXTRA,
    R_KIND,
    R_LENGTH,
    R_SIZE,
    R_START,
    REFUSAL_IN_OFFSETS,
)

BY_BYTES, SESSION, PING = -1, 0, 1
"""The protocol of a value: BY_BYTES if its bytes decide; those from 2 on are for the generic reader."""

_PING_SIGNATURE_AT: Final = FIELD_SLOTS["Ping"]["Signature"][1]
_SIGNATURE_AT: Final = FIELD_SLOTS["UserMessage"]["BaseHeader.Signature"][1]


@jit
def is_ping(memory: Any, start: int, stop: int) -> bool:
    """Whether bytes of unknown protocol are a Ping, by size and signature."""
    return (
        stop - start == PING_SIZE
        and u16(memory, start + _PING_SIGNATURE_AT) == PING_SIGNATURE
        and u32(memory, start + _SIGNATURE_AT) != SIGNATURE
    )


@exported
@jit
def identify(
    block: RowBlock, offsets: Int64s, valid: Bools, protocols: Int64s, first: int, bytes_max: int
) -> int:
    """Write rows of the values from ``first`` on, as long as there are rows; return the value after the last.

    R_KIND is UNSURE where only the generic reader can judge; BY_BYTES in ``protocols`` is replaced by the
    protocol.

    Args:
        block: the rows, and the bytes of the values.
        offsets: the offset of each value, and the end of the last.
        valid: for each value whether it is not null.
        protocols: the protocol of each value.
        first: the value of the first row.
        bytes_max: the size of values after which no further one is begun.
    """
    rows, field_offsets, memory = block.rows, block.field_offsets, block.memory
    i, total = first, 0
    while i < valid.size and i - first < rows.shape[0] and total < bytes_max:
        r, start, stop = i - first, offsets[i], offsets[i + 1]
        kind, extra = BAD, NO_EXTRA
        if valid[i]:
            if protocols[i] == BY_BYTES:
                protocols[i] = PING if is_ping(memory, start, stop) else SESSION
            if protocols[i] == PING:
                end = ping(memory, start, stop, field_offsets, r)
                if end == stop:
                    kind = PING_KIND
                elif end >= 0:
                    refuse(field_offsets, r, FOLLOWED_PING, end - start, stop - end, 0, 0)
            elif protocols[i] != SESSION:
                kind = UNSURE
            elif not refuse_base(memory, start, stop, field_offsets, r):
                kind = session_packet(memory, start, stop, field_offsets, r)
            if kind == BAD:
                extra = REFUSAL_IN_OFFSETS
        rows[r, R_KIND], rows[r, R_EXTRA] = kind, extra
        rows[r, R_START], rows[r, R_LENGTH], rows[r, R_SIZE] = start, stop - start, stop - start
        total += stop - start
        i += 1
    return i
