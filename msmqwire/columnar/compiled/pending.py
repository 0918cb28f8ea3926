"""Buffers segments of the flows that the scan follows, compiled."""

from __future__ import annotations

from typing import Any

from msmqwire.columnar.compiled.flow_table import (
    SEG_FRAME,
    SEG_NEXT,
    SEG_NS,
    SEG_POSITION,
    SEG_SIZE,
    SEG_START,
)
from msmqwire.columnar.compiled.jit import copy, jit
from msmqwire.columnar.compiled.state import (
    EVENT_FRAME,
    EVENT_NS,
    FRAMES_BEFORE,
    PENDING_BYTES,
    PENDING_SEGMENTS,
)


@jit
def store_segment(
    state: Any, pending_segments: Any, pending_bytes: Any, memory: Any, start: int, size: int, position: int
) -> int:
    """Buffer bytes and return the number of their entry; the caller has checked that there is space."""
    number = state[PENDING_SEGMENTS]
    state[PENDING_SEGMENTS] += 1
    segment = pending_segments[number]
    segment[SEG_START] = state[PENDING_BYTES]
    segment[SEG_SIZE] = size
    segment[SEG_FRAME] = state[FRAMES_BEFORE] + state[EVENT_FRAME]
    segment[SEG_NS] = state[EVENT_NS]
    segment[SEG_NEXT] = -1
    segment[SEG_POSITION] = position
    copy(memory, start, size, pending_bytes, state[PENDING_BYTES])
    state[PENDING_BYTES] += size
    return number
