"""Rows of the scan, but for the fields of their packets, compiled."""

from __future__ import annotations

from typing import Any

from msmqwire.tables.compiled.decorators import inlined
from msmqwire.tables.compiled.network import DST_HIGH, DST_LOW, IS_IPV6, PORTS, SRC_HIGH, SRC_LOW
from msmqwire.tables.compiled.packet import BAD
from msmqwire.tables.compiled.state import (
    EVENT_FRAME,
    EVENT_NS,
    EVENT_ORIGIN,
    FILE,
    NO_EXTRA,
    R_DST_HIGH,
    R_DST_LOW,
    R_EXTRA,
    R_FILE,
    R_FRAME,
    R_FRAMES,
    R_IPV6,
    R_KIND,
    R_LENGTH,
    R_ORIGIN,
    R_PORTS,
    R_SIZE,
    R_SRC_HIGH,
    R_SRC_LOW,
    R_START,
    R_STREAM,
    R_TIME,
    REFUSAL_IN_OFFSETS,
)


@inlined
def write_row(
    rows: Any, r: int, state: Any, header: Any, stream: int, kind: int, start: int, size: int
) -> None:
    """Write what is known of a packet besides its fields."""
    rows[r, R_TIME] = state[EVENT_NS]
    rows[r, R_FRAME] = state[EVENT_FRAME]
    rows[r, R_STREAM] = stream
    rows[r, R_SRC_HIGH] = header[SRC_HIGH]
    rows[r, R_SRC_LOW] = header[SRC_LOW]
    rows[r, R_DST_HIGH] = header[DST_HIGH]
    rows[r, R_DST_LOW] = header[DST_LOW]
    rows[r, R_PORTS] = header[PORTS]
    rows[r, R_IPV6] = header[IS_IPV6] & 1
    rows[r, R_KIND] = kind
    rows[r, R_SIZE] = size
    rows[r, R_START] = start
    rows[r, R_LENGTH] = size
    rows[r, R_EXTRA] = REFUSAL_IN_OFFSETS if kind == BAD else NO_EXTRA
    rows[r, R_FILE] = state[FILE]
    rows[r, R_ORIGIN] = state[EVENT_ORIGIN]
    rows[r, R_FRAMES] = -1
