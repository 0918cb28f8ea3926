"""Segments of a flow that are out of order, in a list by position, compiled: `SegmentBuffer`."""

from __future__ import annotations

from typing import Any

from msmqwire.capture.segment_buffer import SEGMENT_COST
from msmqwire.tables.compiled.decorators import jit
from msmqwire.tables.compiled.flow_table import (
    NEXT_SEQ,
    OUT_OF_ORDER,
    OUT_OF_ORDER_COST,
    OUT_OF_ORDER_FIRST,
    OUT_OF_ORDER_LAST,
    QUEUED,
    QUEUED_FIRST,
    QUEUED_LAST,
    SEG_LOST,
    SEG_NEXT,
    SEG_POSITION,
    SEG_SIZE,
    SEG_START,
)
from msmqwire.tables.compiled.pending import store_segment
from msmqwire.tables.compiled.scan_arrays import ScanArrays
from msmqwire.tables.compiled.state import BUFFERED, BUFFERED_SEGMENTS, CONFLICTING_BYTES


@jit
def end_of(segment: Any) -> int:
    """Return the position after a segment, with what was cut off of it."""
    return segment[SEG_POSITION] + segment[SEG_SIZE] + segment[SEG_LOST]


@jit
def _compare(
    arrays: ScanArrays, segment: Any, start: int, captured: int, position: int, end: int, p: int
) -> int:
    """Count the bytes from ``p`` on that differ from those of a buffered segment; return where it ends."""
    first = segment[SEG_POSITION]
    stop = min(end_of(segment), end, first + segment[SEG_SIZE], position + captured)
    memory, kept, different = arrays.memory, arrays.pending_bytes, 0
    for i in range(p, stop):
        different += memory[start + i - position] != kept[segment[SEG_START] + i - first]
    arrays.state[CONFLICTING_BYTES] += different
    return max(p, end_of(segment))


@jit
def buffer_segment(arrays: ScanArrays, flow: Any, start: int, captured: int, position: int, end: int) -> int:
    """Buffer those bytes of a segment that are not buffered yet; return how many: `SegmentBuffer.add`.

    Of its bytes, from ``position`` to ``end`` in the flow, the first ``captured`` are in memory from
    ``start`` on. There must be space for them, and an entry for each gap that they fill.
    """
    state, pending_segments = arrays.state, arrays.pending_segments
    added, p, previous, number = 0, position, -1, -1
    if flow[OUT_OF_ORDER]:
        if position >= end_of(pending_segments[flow[OUT_OF_ORDER_LAST]]):
            previous = flow[OUT_OF_ORDER_LAST]
        else:
            number = flow[OUT_OF_ORDER_FIRST]
    while p < end:
        if number >= 0 and pending_segments[number, SEG_POSITION] <= p:
            segment = pending_segments[number]
            if end_of(segment) > p:
                p = _compare(arrays, segment, start, captured, position, end, p)
            previous = number
            number = segment[SEG_NEXT] if number != flow[OUT_OF_ORDER_LAST] else -1
            continue
        stop = end if number < 0 else min(end, pending_segments[number, SEG_POSITION])
        size = max(0, min(stop, position + captured) - p)
        new = store_segment(
            state, pending_segments, arrays.pending_bytes, arrays.memory, start + p - position, size, p
        )
        pending_segments[new, SEG_LOST] = stop - p - size
        pending_segments[new, SEG_NEXT] = number
        if number < 0:
            flow[OUT_OF_ORDER_LAST] = new
        if previous < 0:
            flow[OUT_OF_ORDER_FIRST] = new
        else:
            pending_segments[previous, SEG_NEXT] = new
        flow[OUT_OF_ORDER] += 1
        flow[OUT_OF_ORDER_COST] += size + SEGMENT_COST
        state[BUFFERED] += size + SEGMENT_COST
        state[BUFFERED_SEGMENTS] += 1
        added += stop - p
        previous, p = new, stop
    return added


@jit
def take_first(arrays: ScanArrays, flow: Any) -> int:
    """Take the first segment that is buffered out of order; return its number."""
    state, number = arrays.state, flow[OUT_OF_ORDER_FIRST]
    segment = arrays.pending_segments[number]
    flow[OUT_OF_ORDER_FIRST] = segment[SEG_NEXT]
    flow[OUT_OF_ORDER] -= 1
    flow[OUT_OF_ORDER_COST] -= segment[SEG_SIZE] + SEGMENT_COST
    state[BUFFERED] -= segment[SEG_SIZE] + SEGMENT_COST
    state[BUFFERED_SEGMENTS] -= 1
    return number


@jit
def queue_segment(arrays: ScanArrays, flow: Any, number: int) -> None:
    """Queue a segment that is next in order."""
    arrays.pending_segments[number, SEG_NEXT] = -1
    if flow[QUEUED]:
        arrays.pending_segments[flow[QUEUED_LAST], SEG_NEXT] = number
    else:
        flow[QUEUED_FIRST] = number
    flow[QUEUED_LAST] = number
    flow[QUEUED] += 1


@jit
def may_be_probe(arrays: ScanArrays, flow: Any) -> bool:
    """Whether all that a flow has buffered is one byte, its first: `Direction.may_be_probe`."""
    if flow[OUT_OF_ORDER] != 1:
        return False
    segment = arrays.pending_segments[flow[OUT_OF_ORDER_FIRST]]
    return segment[SEG_POSITION] == flow[NEXT_SEQ] and end_of(segment) == flow[NEXT_SEQ] + 1
