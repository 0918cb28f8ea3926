"""Flows out of sync with their packets, compiled: `PacketFinder` while it only skips bytes, or waits.

It searches for the next header, has found one whose packet is not complete, or skips the rest of a packet.
What it finds, and each run of skipped bytes that becomes a row, is for the generic reader.
"""

from __future__ import annotations

from typing import Any, Final

from msmqwire.capture.segment_buffer import SEGMENT_COST
from msmqwire.columnar.compiled.flow_table import (
    DELIVERED,
    PACKET_BYTES,
    PACKET_FIRST,
    PACKET_FRAME,
    PACKET_LAST,
    PACKET_NS,
    PACKET_SEGMENTS,
    PACKET_SIZE,
    REMAINING,
    SEG_FRAME,
    SEG_NEXT,
    SEG_POSITION,
    SEG_SIZE,
    SEG_START,
    SKIPPED_BYTES,
    SKIPPED_FRAME,
    SKIPPED_SEGMENTS,
    TAIL_FIRST,
)
from msmqwire.columnar.compiled.jit import copy, jit
from msmqwire.columnar.compiled.packet import find_header
from msmqwire.columnar.compiled.pending import store_segment
from msmqwire.columnar.compiled.scan_arrays import ScanArrays
from msmqwire.columnar.compiled.state import (
    ARENA,
    ARENA_END,
    EVENT_FRAME,
    EVENT_NS,
    FRAMES_BEFORE,
    HELD,
    NEED,
    PENDING_BYTES,
    PENDING_SEGMENTS,
    SPARE_SEGMENTS,
)
from msmqwire.columnar.compiled.stop_codes import ARENA_FULL, CONTINUE, GENERIC_RECORD, PENDING_FULL
from msmqwire.dissection.finder import FRAME_COST, SKIP_SHOWN
from msmqwire.dissection.tracker import HELD_MAX
from msmqwire.headers.base import PREFIX_SIZE

_TAIL: Final = PREFIX_SIZE - 1
"""Bytes at the end in which a header may begin that the next segment completes."""


@jit
def count_frame(state: Any, flow: Any, frame: int) -> None:
    """Note that bytes of a frame were skipped."""
    if frame != flow[SKIPPED_FRAME]:
        flow[SKIPPED_FRAME] = frame
        state[HELD] += FRAME_COST


@jit
def skip_tail(state: Any, flow: Any, pending_segments: Any, count: int) -> None:
    """Skip the first bytes of those that were kept; there are at least so many."""
    flow[PACKET_BYTES] -= count
    state[HELD] -= count
    while count:
        segment = pending_segments[flow[TAIL_FIRST]]
        size = min(count, segment[SEG_SIZE])
        segment[SEG_START] += size
        segment[SEG_SIZE] -= size
        segment[SEG_POSITION] += size
        count -= size
        count_frame(state, flow, segment[SEG_FRAME])
        if segment[SEG_SIZE] == 0:
            flow[SKIPPED_SEGMENTS] += 1
            flow[TAIL_FIRST] = segment[SEG_NEXT]
            state[HELD] -= SEGMENT_COST


@jit
def keep(arrays: ScanArrays, flow: Any, start: int, size: int, skipped: int) -> None:
    """Keep the bytes of a segment but for the first ones, which are skipped, perhaps all of them."""
    state, pending_segments = arrays.state, arrays.pending_segments
    number = store_segment(
        state, pending_segments, arrays.pending_bytes, arrays.memory, start + skipped, size - skipped, skipped
    )
    if flow[PACKET_SEGMENTS]:
        pending_segments[flow[PACKET_LAST], SEG_NEXT] = number
    else:
        flow[PACKET_FIRST] = number
    if flow[SKIPPED_SEGMENTS] == flow[PACKET_SEGMENTS]:
        flow[TAIL_FIRST] = number
    flow[PACKET_LAST] = number
    flow[PACKET_SEGMENTS] += 1
    flow[PACKET_BYTES] += size - skipped
    flow[PACKET_FRAME], flow[PACKET_NS] = state[FRAMES_BEFORE] + state[EVENT_FRAME], state[EVENT_NS]
    if skipped:
        count_frame(state, flow, flow[PACKET_FRAME])
    if skipped == size:
        flow[SKIPPED_SEGMENTS] += 1
        flow[TAIL_FIRST] = -1
    else:
        state[HELD] += size - skipped + SEGMENT_COST
    flow[DELIVERED] += size


@jit
def begins_nowhere(arrays: ScanArrays, flow: Any, start: int, stop: int) -> int:
    """Return CONTINUE if no header begins in the bytes kept and in these, else a stop code."""
    state, memory, kept = arrays.state, arrays.memory, flow[PACKET_BYTES]
    if kept:
        arena, size = state[ARENA], min(stop - start, _TAIL)
        if arena + kept + size > state[ARENA_END]:
            state[NEED] = kept + size
            return ARENA_FULL
        number, at = flow[TAIL_FIRST], arena
        while at < arena + kept:
            segment = arrays.pending_segments[number]
            copy(arrays.pending_bytes, segment[SEG_START], segment[SEG_SIZE], memory, at)
            at += segment[SEG_SIZE]
            number = segment[SEG_NEXT]
        copy(memory, start, size, memory, at)
        if find_header(memory, arena, at + size) >= 0:
            return GENERIC_RECORD
    return CONTINUE if find_header(memory, start, stop) < 0 else GENERIC_RECORD


@jit
def skip_on(arrays: ScanArrays, flow: Any, start: int, stop: int) -> int:
    """Take the next bytes of a flow that skips; return CONTINUE or a stop code."""
    state, size = arrays.state, stop - start
    if state[FRAMES_BEFORE] + state[EVENT_FRAME] < flow[PACKET_FRAME]:
        return GENERIC_RECORD  # frames of a run are counted in their order
    if (
        state[PENDING_BYTES] + size > arrays.pending_bytes.size
        or state[PENDING_SEGMENTS] + SPARE_SEGMENTS > arrays.pending_segments.shape[0]
    ):
        state[NEED] = size
        return PENDING_FULL
    if state[HELD] + size + SEGMENT_COST + FRAME_COST > HELD_MAX:
        return GENERIC_RECORD
    if flow[REMAINING]:
        if size >= flow[REMAINING] or flow[SKIPPED_BYTES] + size >= SKIP_SHOWN:
            return GENERIC_RECORD
        flow[REMAINING] -= size
        flow[SKIPPED_BYTES] += size
        keep(arrays, flow, start, size, size)
        return CONTINUE
    if flow[PACKET_SIZE]:
        if flow[PACKET_BYTES] + size >= flow[PACKET_SIZE]:
            return GENERIC_RECORD
        keep(arrays, flow, start, size, 0)
        return CONTINUE
    kept = flow[PACKET_BYTES]
    skipped = max(0, kept + size - _TAIL)
    if flow[SKIPPED_BYTES] + skipped >= SKIP_SHOWN:
        return GENERIC_RECORD
    stop_code = begins_nowhere(arrays, flow, start, stop)
    if stop_code >= 0:
        return stop_code
    flow[SKIPPED_BYTES] += skipped
    skip_tail(state, flow, arrays.pending_segments, min(skipped, kept))
    keep(arrays, flow, start, size, max(0, skipped - kept))
    return CONTINUE
