"""Segments out of order and repeated, compiled: `Direction.receive` and `Reassembler._settle`."""

from __future__ import annotations

from typing import Any

from msmqwire.capture.direction import FAR
from msmqwire.capture.direction import FAR_RUN as FAR_RUN_MIN
from msmqwire.capture.segment_buffer import SEGMENT_COST
from msmqwire.capture.tcp import (
    ACKED_NS,
    CLOCK_BACK_NS,
    SWEEP_NS,
)
from msmqwire.columnar.compiled.decorators import jit
from msmqwire.columnar.compiled.delivery import deliver
from msmqwire.columnar.compiled.flow_table import (
    FAR_FROM,
    FAR_NEXT,
    FAR_RUN,
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
from msmqwire.columnar.compiled.memory import copy
from msmqwire.columnar.compiled.network import SEQ, START, STOP
from msmqwire.columnar.compiled.pending import follows_buffered, store_segment
from msmqwire.columnar.compiled.rollback import go_back, remember
from msmqwire.columnar.compiled.scan_arrays import ScanArrays
from msmqwire.columnar.compiled.state import (
    ARENA,
    ARENA_END,
    CONFLICTING_BYTES,
    DEADLINE,
    ENTRIES_TO_DELIVER,
    EVENT_FRAME,
    EVENT_NS,
    FAR_SEGMENTS,
    FRAMES_BEFORE,
    NEED,
    NOW,
    OUT_OF_ORDER_COST_TOTAL,
    PENDING_BYTES,
    PENDING_SEGMENTS,
    RECORD_NS,
    REPEATED_BYTES,
    ROWS,
    SPARE_SEGMENTS,
    SPARE_TO_DELIVER,
    SWEEP_AT,
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
def count_differences(one: Any, at: int, other: Any, offset: int, count: int) -> int:
    """Return how many bytes differ between two ranges of this size."""
    different = 0
    for i in range(count):
        different += one[at + i] != other[offset + i]
    return different


@jit
def count_pieces(arrays: ScanArrays, flow: Any, start: int, position: int, end: int) -> tuple[int, int, int]:
    """Compare bytes with the buffered ones; return their new pieces, the bytes of these, and conflicts."""
    pending_segments, p = arrays.pending_segments, position
    pieces, added, conflicts = 0, 0, 0
    number = flow[OUT_OF_ORDER_FIRST]
    for _ in range(flow[OUT_OF_ORDER]):
        if p >= end:
            break
        segment = pending_segments[number]
        first, last = segment[SEG_POSITION], segment[SEG_POSITION] + segment[SEG_SIZE]
        if last > p:
            if first > p:
                pieces += 1
                added += min(end, first) - p
                p = min(end, first)
            stop = min(end, last)
            if p < stop:
                conflicts += count_differences(
                    arrays.memory, start + p - position,
                    arrays.pending_bytes, segment[SEG_START] + p - first, stop - p,
                )  # fmt: skip
                p = stop
        number = segment[SEG_NEXT]
    if p < end:
        pieces += 1
        added += end - p
    return pieces, added, conflicts


@jit
def insert_pieces(arrays: ScanArrays, flow: Any, start: int, position: int, end: int, append: bool) -> None:
    """Buffer those bytes that are not buffered yet; the caller has checked that there is space."""
    state, pending_segments, p = arrays.state, arrays.pending_segments, position
    left, number, previous = flow[OUT_OF_ORDER], flow[OUT_OF_ORDER_FIRST], -1
    if append:
        previous = flow[OUT_OF_ORDER_LAST] if left else -1
        left = 0
    while p < end:
        stop = end
        if left:
            first = pending_segments[number, SEG_POSITION]
            if first <= p:
                p = max(p, first + pending_segments[number, SEG_SIZE])
                previous, number, left = number, pending_segments[number, SEG_NEXT], left - 1
                continue
            stop = min(end, first)
        new = store_segment(
            state, pending_segments, arrays.pending_bytes, arrays.memory, start + p - position, stop - p, p
        )
        if left:
            pending_segments[new, SEG_NEXT] = number
        else:
            flow[OUT_OF_ORDER_LAST] = new
        if previous < 0:
            flow[OUT_OF_ORDER_FIRST] = new
        else:
            pending_segments[previous, SEG_NEXT] = new
        previous, p = new, stop


@jit
def buffer_segment(arrays: ScanArrays, flow: Any, start: int, size: int, position: int, now: int) -> int:
    """Buffer bytes beyond a gap: `Direction.receive`; return CONTINUE or a stop code."""
    state, pending_segments, pending_bytes = arrays.state, arrays.pending_segments, arrays.pending_bytes
    count, append = flow[OUT_OF_ORDER], follows_buffered(flow, pending_segments, position)
    pieces, added, conflicts = 1, size, 0
    if not append:
        pieces, added, conflicts = count_pieces(arrays, flow, start, position, position + size)
    cost = added + pieces * SEGMENT_COST
    if pieces:
        if (
            state[PENDING_BYTES] + size > pending_bytes.size
            or state[PENDING_SEGMENTS] + pieces + SPARE_SEGMENTS > pending_segments.shape[0]
        ):
            state[NEED] = size + pieces * SEGMENT_COST
            return PENDING_FULL
        insert_pieces(arrays, flow, start, position, position + size, append)
        if count == 0:
            flow[OUT_OF_ORDER_FRAME] = state[FRAMES_BEFORE] + state[EVENT_FRAME]
            flow[GAP_NS] = now
        flow[OUT_OF_ORDER] += pieces
        flow[OUT_OF_ORDER_COST] += cost
        state[OUT_OF_ORDER_COST_TOTAL] += cost
    state[REPEATED_BYTES] += size - added
    state[CONFLICTING_BYTES] += conflicts
    return CONTINUE


@jit
def deliver_buffered(arrays: ScanArrays, flow: Any) -> int:
    """Deliver the first of the buffered segments; return CONTINUE or a stop code.

    On a stop code the caller goes back. EVENT_NS and EVENT_FRAME are its own afterwards.
    """
    state, segment = arrays.state, arrays.pending_segments[flow[OUT_OF_ORDER_FIRST]]
    size, arena, rows = segment[SEG_SIZE], state[ARENA], state[ROWS]
    if arena + size > state[ARENA_END]:
        state[NEED] = size
        return ARENA_FULL
    copy(arrays.pending_bytes, segment[SEG_START], size, arrays.memory, arena)
    state[ARENA] += size
    state[EVENT_NS] = segment[SEG_NS]
    state[EVENT_FRAME] = segment[SEG_FRAME] - state[FRAMES_BEFORE]
    stop_code = deliver(arrays, flow, arena, arena + size)
    if state[ROWS] == rows:
        state[ARENA] = arena
    flow[OUT_OF_ORDER_FIRST] = segment[SEG_NEXT]
    flow[OUT_OF_ORDER] -= 1
    flow[OUT_OF_ORDER_COST] -= size + SEGMENT_COST
    state[OUT_OF_ORDER_COST_TOTAL] -= size + SEGMENT_COST
    return stop_code


@jit
def has_room_to_deliver(state: Any, flow: Any, pending_segments: Any) -> bool:
    """Whether there are entries for all that the segments of a flow beyond a gap may leave when delivered.

    Each of them may leave one, and the bytes between two of them another, besides those that are asked for.
    """
    needed = SPARE_TO_DELIVER + ENTRIES_TO_DELIVER * flow[OUT_OF_ORDER]
    return state[PENDING_SEGMENTS] + needed <= pending_segments.shape[0]


@jit
def deliver_in_order(arrays: ScanArrays, flow: Any, skipped: int, now: int) -> int:
    """Deliver the next bytes, and the buffered ones among them and after them, all or none.

    ``skipped`` bytes of the segment were delivered before. Returns CONTINUE or a stop code.
    """
    state, memory, header = arrays.state, arrays.memory, arrays.header
    pending_segments, pending_bytes = arrays.pending_segments, arrays.pending_bytes
    size = header[STOP] - header[START]
    needed = size + flow[OUT_OF_ORDER_COST]
    if state[PENDING_BYTES] + needed > pending_bytes.size or not has_room_to_deliver(
        state, flow, pending_segments
    ):
        state[NEED] = needed
        return PENDING_FULL
    rollback = arrays.rollback[0]
    remember(rollback, flow, state)
    state[REPEATED_BYTES] += skipped
    frame, time_ns = state[EVENT_FRAME], state[EVENT_NS]
    position = flow[NEXT_SEQ]
    base, end = header[START] + skipped - position, position + size - skipped
    stop_code = CONTINUE
    while stop_code < 0:
        segment = pending_segments[flow[OUT_OF_ORDER_FIRST] if flow[OUT_OF_ORDER] else 0]
        is_buffered = flow[OUT_OF_ORDER] and segment[SEG_POSITION] == position
        if is_buffered:
            count = segment[SEG_SIZE]
            repeated = min(max(end - position, 0), count)
            state[REPEATED_BYTES] += repeated
            state[CONFLICTING_BYTES] += count_differences(
                memory, base + position, pending_bytes, segment[SEG_START], repeated
            )
            stop_code = deliver_buffered(arrays, flow)
        elif position < end:
            count, start = end - position, base + position
            if flow[OUT_OF_ORDER]:
                count = min(count, segment[SEG_POSITION] - position)
            state[EVENT_NS], state[EVENT_FRAME] = time_ns, frame
            stop_code = deliver(arrays, flow, start, start + count)
        else:
            break
        position += count
    if stop_code >= 0:
        go_back(rollback, flow, state)
        return stop_code
    flow[NEXT_SEQ] = position
    if flow[OUT_OF_ORDER]:
        flow[GAP_NS] = now
        set_gap_deadline(state, flow, pending_segments)
    return CONTINUE


@jit
def is_far(offset: int) -> bool:
    """Whether a segment at this distance from the next byte is further away than any window."""
    return offset >= FAR or offset <= -FAR


@jit
def completes_far_run(flow: Any, header: Any) -> bool:
    """Whether a far segment proves that the stream jumped: `Direction._jumps`."""
    consecutive = header[SEQ] == flow[FAR_NEXT] and flow[NEXT_SEQ] == flow[FAR_FROM]
    return header[STOP] > header[START] and consecutive and flow[FAR_RUN] + 1 >= FAR_RUN_MIN


@jit
def ignore_far_segment(state: Any, flow: Any, header: Any) -> None:
    """Ignore a far segment that does not complete a run."""
    size = header[STOP] - header[START]
    if size:
        consecutive = header[SEQ] == flow[FAR_NEXT] and flow[NEXT_SEQ] == flow[FAR_FROM]
        flow[FAR_RUN] = flow[FAR_RUN] + 1 if consecutive else 1
        flow[FAR_NEXT], flow[FAR_FROM] = (header[SEQ] + size) & 0xFFFFFFFF, flow[NEXT_SEQ]
        state[FAR_SEGMENTS] += 1


@jit
def take_out_of_order(arrays: ScanArrays, flow: Any, offset: int, now: int) -> int:
    """Take a segment that is out of order, or of a connection with a gap; return CONTINUE or a stop code.

    ``offset`` is the distance of its first byte from the next one in order, ``now`` the time of the capture
    after the segment.
    """
    state, header = arrays.state, arrays.header
    size = header[STOP] - header[START]
    if is_far(offset) and completes_far_run(flow, header):
        return GENERIC_RECORD
    stop_code = CONTINUE
    if is_far(offset):
        pass  # it is counted when it is certain that the scan takes it
    elif size and offset > 0:
        stop_code = buffer_segment(arrays, flow, header[START], size, flow[NEXT_SEQ] + offset, now)
    elif size and offset + size > 0:
        stop_code = deliver_in_order(arrays, flow, -offset, now)
    else:
        state[REPEATED_BYTES] += size
    if stop_code >= 0:
        return stop_code
    set_clock(state, state[RECORD_NS], now)
    return CONTINUE
