"""Buffers segments of the flows that the scan follows, compiled."""

from __future__ import annotations

from typing import Any

from msmqwire.capture.segment_buffer import SEGMENT_COST
from msmqwire.tables.compiled.decorators import jit
from msmqwire.tables.compiled.flow_table import (
    PACKET_BYTES,
    PACKET_FIRST,
    PACKET_FRAME,
    PACKET_LAST,
    PACKET_LEAD,
    PACKET_NS,
    PACKET_SEGMENTS,
    RUN_FIRST,
    RUN_SEGMENTS,
    SEG_FRAME,
    SEG_LOST,
    SEG_NEXT,
    SEG_NS,
    SEG_POSITION,
    SEG_SIZE,
    SEG_START,
)
from msmqwire.tables.compiled.memory import copy
from msmqwire.tables.compiled.state import (
    EVENT_FRAME,
    EVENT_NS,
    FRAMES_BEFORE,
    HELD,
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
    segment[SEG_LOST] = 0
    segment[SEG_POSITION] = position
    copy(memory, start, size, pending_bytes, state[PENDING_BYTES])
    state[PENDING_BYTES] += size
    return number


@jit
def extend_packet(
    state: Any,
    flow: Any,
    pending_segments: Any,
    pending_bytes: Any,
    memory: Any,
    start: int,
    size: int,
    lead: int,
) -> None:
    """Buffer bytes of an incomplete packet, before which ``lead`` bytes of their segment were taken.

    The caller has checked that there is space.
    """
    number = store_segment(state, pending_segments, pending_bytes, memory, start, size, lead)
    segment = pending_segments[number]
    if flow[PACKET_SEGMENTS] + flow[RUN_SEGMENTS]:
        pending_segments[flow[PACKET_LAST], SEG_NEXT] = number
    if not flow[PACKET_SEGMENTS]:
        flow[PACKET_FIRST] = number
        flow[PACKET_FRAME] = flow[PACKET_LEAD] = 0
    flow[PACKET_LAST] = number
    flow[PACKET_SEGMENTS] += 1
    flow[PACKET_BYTES] += size
    state[HELD] += size + SEGMENT_COST
    if segment[SEG_FRAME] > flow[PACKET_FRAME]:
        flow[PACKET_FRAME], flow[PACKET_NS] = segment[SEG_FRAME], segment[SEG_NS]


@jit
def extend_run(
    state: Any, flow: Any, pending_segments: Any, pending_bytes: Any, memory: Any, size: int
) -> None:
    """Note the frame of a segment of this size that was skipped; there must be space for an entry."""
    number = store_segment(state, pending_segments, pending_bytes, memory, 0, 0, size)
    if flow[PACKET_SEGMENTS] + flow[RUN_SEGMENTS]:
        pending_segments[flow[PACKET_LAST], SEG_NEXT] = number
    if not flow[RUN_SEGMENTS]:
        flow[RUN_FIRST] = number
    flow[PACKET_LAST] = number
    flow[RUN_SEGMENTS] += 1
