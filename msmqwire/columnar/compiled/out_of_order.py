"""Segments out of order, compiled: the simple cases of `Direction.take` and `Reassembler._settle`."""

from __future__ import annotations

from typing import Any

from msmqwire.capture.direction import FAR
from msmqwire.capture.segment_buffer import SEGMENT_COST
from msmqwire.capture.tcp import (
    ACKED_BYTES,
    ACKED_NS,
    ACKED_SEGMENTS,
    BUFFERED_TOTAL_MAX,
    CLOCK_BACK_NS,
    SWEEP_NS,
)
from msmqwire.columnar.compiled.delivery import deliver, store_segment
from msmqwire.columnar.compiled.flow_table import (
    FLOW_FIELDS,
    GAP_DUE_NS,
    GAP_NS,
    NEXT_SEQ,
    OUT_OF_ORDER,
    OUT_OF_ORDER_COST,
    OUT_OF_ORDER_FIRST,
    OUT_OF_ORDER_FRAME,
    OUT_OF_ORDER_LAST,
    SEG_FRAME,
    SEG_NEXT,
    SEG_NS,
    SEG_POSITION,
    SEG_SIZE,
    SEG_START,
)
from msmqwire.columnar.compiled.jit import copy, jit
from msmqwire.columnar.compiled.network import START, STOP
from msmqwire.columnar.compiled.scan_arrays import ScanArrays
from msmqwire.columnar.compiled.state import (
    ARENA,
    ARENA_END,
    DEADLINE,
    EVENT_FRAME,
    EVENT_NS,
    FRAMES_BEFORE,
    NEED,
    NOW,
    OUT_OF_ORDER_COST_TOTAL,
    PENDING_BYTES,
    PENDING_SEGMENTS,
    RECORD_NS,
    REPEATED_BYTES,
    SPARE_SEGMENTS,
    STATE,
    SWEEP_AT,
    TRACKER_BUFFERED,
)
from msmqwire.columnar.compiled.stop_codes import ARENA_FULL, CONTINUE, GENERIC_RECORD, PENDING_FULL


@jit
def clock_after(state: Any, time_ns: int) -> int:
    """Return the time of the capture after a segment that is not simply the next: `Reassembler._segment`."""
    now = state[NOW]
    if time_ns >= state[SWEEP_AT] or (time_ns and not (now - CLOCK_BACK_NS < time_ns < now)):
        return time_ns
    return now


@jit
def set_clock(state: Any, time_ns: int, now: int) -> None:
    """Set the time of the capture, and the time of the next sweep."""
    if time_ns >= state[SWEEP_AT]:
        state[SWEEP_AT] = time_ns + SWEEP_NS
    elif now != state[NOW]:
        state[SWEEP_AT] = min(state[SWEEP_AT], time_ns + SWEEP_NS)
    state[NOW] = now


@jit
def set_gap_deadline(state: Any, flow: Any, pending_segments: Any) -> None:
    """Set when the first gap of a flow may be skipped: its receiver may have acknowledged it by then."""
    first = pending_segments[flow[OUT_OF_ORDER_FIRST]]
    flow[GAP_DUE_NS] = max(first[SEG_NS], flow[GAP_NS]) + ACKED_NS
    state[DEADLINE] = min(state[DEADLINE], flow[GAP_DUE_NS])


@jit
def buffer_segment(arrays: ScanArrays, flow: Any, start: int, size: int, position: int, now: int) -> int:
    """Buffer bytes beyond a gap: `Direction.take`; return CONTINUE or a stop code."""
    state, pending_segments, pending_bytes = arrays.state, arrays.pending_segments, arrays.pending_bytes
    cost = size + SEGMENT_COST
    if flow[OUT_OF_ORDER] == ACKED_SEGMENTS or flow[OUT_OF_ORDER_COST] + cost > ACKED_BYTES:
        return GENERIC_RECORD
    if state[TRACKER_BUFFERED] + state[OUT_OF_ORDER_COST_TOTAL] + cost > BUFFERED_TOTAL_MAX:
        return GENERIC_RECORD
    if (
        state[PENDING_BYTES] + size > pending_bytes.size
        or state[PENDING_SEGMENTS] + SPARE_SEGMENTS > pending_segments.shape[0]
    ):
        state[NEED] = size
        return PENDING_FULL
    first, last = flow[OUT_OF_ORDER_FIRST], flow[OUT_OF_ORDER_LAST]
    append = (
        flow[OUT_OF_ORDER] == 0
        or position >= pending_segments[last, SEG_POSITION] + pending_segments[last, SEG_SIZE]
    )
    if not append and position + size > pending_segments[first, SEG_POSITION]:
        return GENERIC_RECORD
    number = store_segment(state, pending_segments, pending_bytes, arrays.memory, start, size, position)
    if flow[OUT_OF_ORDER] == 0:
        flow[OUT_OF_ORDER_FIRST] = number
        flow[OUT_OF_ORDER_FRAME] = state[FRAMES_BEFORE] + state[EVENT_FRAME]
        flow[GAP_NS] = now
    elif append:
        pending_segments[last, SEG_NEXT] = number
    else:
        pending_segments[number, SEG_NEXT] = first
        flow[OUT_OF_ORDER_FIRST] = number
    if append:
        flow[OUT_OF_ORDER_LAST] = number
    flow[OUT_OF_ORDER] += 1
    flow[OUT_OF_ORDER_COST] += cost
    state[OUT_OF_ORDER_COST_TOTAL] += cost
    set_gap_deadline(state, flow, pending_segments)
    return CONTINUE


@jit
def deliver_in_order(arrays: ScanArrays, flow: Any, now: int) -> int:
    """Deliver the next bytes, and the buffered ones that follow them, all or none.

    Returns CONTINUE or a stop code. NEXT_SEQ is left for the caller to advance by the size of the segment.
    """
    state, memory, header, rollback = arrays.state, arrays.memory, arrays.header, arrays.rollback
    pending_segments, pending_bytes = arrays.pending_segments, arrays.pending_bytes
    size = header[STOP] - header[START]
    if (
        flow[OUT_OF_ORDER]
        and flow[NEXT_SEQ] + size > pending_segments[flow[OUT_OF_ORDER_FIRST], SEG_POSITION]
    ):
        return GENERIC_RECORD
    needed = size + flow[OUT_OF_ORDER_COST]
    if (
        state[PENDING_BYTES] + needed > pending_bytes.size
        or state[PENDING_SEGMENTS] + 2 * SPARE_SEGMENTS > pending_segments.shape[0]
    ):
        state[NEED] = needed
        return PENDING_FULL
    for i in range(FLOW_FIELDS):
        rollback[i] = flow[i]
    for i in range(STATE):
        rollback[FLOW_FIELDS + i] = state[i]
    stop_code = deliver(arrays, flow, header[START], header[STOP])
    position = flow[NEXT_SEQ] + size
    while (
        stop_code < 0
        and flow[OUT_OF_ORDER]
        and pending_segments[flow[OUT_OF_ORDER_FIRST], SEG_POSITION] == position
    ):
        segment = pending_segments[flow[OUT_OF_ORDER_FIRST]]
        count, arena = segment[SEG_SIZE], state[ARENA]
        if arena + count > state[ARENA_END]:
            state[NEED] = count
            stop_code = ARENA_FULL
            break
        copy(pending_bytes, segment[SEG_START], count, memory, arena)
        state[ARENA] += count
        state[EVENT_NS] = segment[SEG_NS]
        state[EVENT_FRAME] = segment[SEG_FRAME] - state[FRAMES_BEFORE]
        stop_code = deliver(arrays, flow, arena, arena + count)
        flow[OUT_OF_ORDER_FIRST] = segment[SEG_NEXT]
        flow[OUT_OF_ORDER] -= 1
        flow[OUT_OF_ORDER_COST] -= count + SEGMENT_COST
        state[OUT_OF_ORDER_COST_TOTAL] -= count + SEGMENT_COST
        position += count
    if stop_code >= 0:
        needed = state[NEED]
        for i in range(FLOW_FIELDS):
            flow[i] = rollback[i]
        for i in range(STATE):
            state[i] = rollback[FLOW_FIELDS + i]
        state[NEED] = needed
        return stop_code
    flow[NEXT_SEQ] = position - size
    if flow[OUT_OF_ORDER]:
        flow[GAP_NS] = now
        set_gap_deadline(state, flow, pending_segments)
    return CONTINUE


@jit
def take_out_of_order(arrays: ScanArrays, flow: Any, peer: Any, offset: int) -> int:
    """Take a segment that is out of order, or of a connection with a gap; return CONTINUE or a stop code.

    ``offset`` is the distance of its first byte from the next one in order.
    """
    state, header = arrays.state, arrays.header
    time_ns, size = state[RECORD_NS], header[STOP] - header[START]
    now = clock_after(state, time_ns)
    if (flow[OUT_OF_ORDER] and now >= flow[GAP_DUE_NS]) or (peer[OUT_OF_ORDER] and now >= peer[GAP_DUE_NS]):
        return GENERIC_RECORD
    if offset >= FAR or offset <= -FAR:
        return GENERIC_RECORD
    stop_code = CONTINUE
    if size and offset < 0:
        if offset + size > 0:
            return GENERIC_RECORD
        state[REPEATED_BYTES] += size
    elif size and offset > 0:
        stop_code = buffer_segment(arrays, flow, header[START], size, flow[NEXT_SEQ] + offset, now)
    elif size:
        stop_code = deliver_in_order(arrays, flow, now)
    if stop_code >= 0:
        return stop_code
    set_clock(state, time_ns, now)
    if size and offset == 0:
        flow[NEXT_SEQ] += size
    return CONTINUE
