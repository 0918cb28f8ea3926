"""Packets of flows that are not in step with them, compiled: what `PacketFinder` does until a break.

A flow comes here when no packet begins where one should, or something else than a packet follows a malformed
or doubtful one, and leaves when all that is known of it is the beginning of a packet again.
"""

from __future__ import annotations

from typing import Any

from msmqwire.analysis.dissection.finder import FRAME_COST
from msmqwire.analysis.dissection.skip_reasons import Why
from msmqwire.capture.segment_buffer import SEGMENT_COST
from msmqwire.headers.base import BASE_HEADER_SIZE, PREFIX_SIZE, SIGNATURE, SIGNATURE_END, VERSION
from msmqwire.tables.compiled.decorators import jit
from msmqwire.tables.compiled.failed_checks import add_failed, admits, any_failed
from msmqwire.tables.compiled.flow_table import (
    AFTER_BAD,
    DELIVERED,
    DOUBTFUL_SIZE,
    IN_DOUBT,
    IS_CHECKED,
    LOSS,
    PACKET_BYTES,
    PACKET_FIRST,
    PACKET_FRAME,
    PACKET_LEAD,
    PACKET_NS,
    PACKET_SEGMENTS,
    PACKET_SIZE,
    REMAINING,
    RUN_FRAMES,
    SEARCHED_TO,
    SEG_FRAME,
    SEG_NEXT,
    SEG_NS,
    SEG_POSITION,
    SEG_SIZE,
    STREAM,
    copy_packet,
    go_back,
    remember,
)
from msmqwire.tables.compiled.memory import copy, u8, u32
from msmqwire.tables.compiled.origins import room_for_frames
from msmqwire.tables.compiled.packet import (
    BAD,
    IMPOSSIBLE_SIZE,
    SIGNATURE_AT,
    SIZE_AT,
    begins_packet,
    find_header,
    has_unexplained_tail,
    is_doubtful,
    packet_length,
    session_packet,
    tail_start,
)
from msmqwire.tables.compiled.pending import extend_packet, extend_run
from msmqwire.tables.compiled.refusal import refuse
from msmqwire.tables.compiled.row_writing import write_row
from msmqwire.tables.compiled.scan_arrays import ScanArrays
from msmqwire.tables.compiled.skipped_run import (
    MALFORMED,
    WHY_BITS,
    joins_malformed,
    show_run,
    skip,
    take_frames,
)
from msmqwire.tables.compiled.state import (
    ARENA,
    ARENA_END,
    FRAMES_BEFORE,
    FRAMES_USED,
    HELD,
    NEED,
    PENDING_BYTES,
    PENDING_SEGMENTS,
    R_FRAME,
    R_FRAMES,
    R_TIME,
    ROWS,
    SPARE_SEGMENTS,
)
from msmqwire.tables.compiled.stop_codes import (
    ARENA_FULL,
    CONTINUE,
    PENDING_FULL,
    ROWS_FULL,
)

NOT_FOUND, FOUND = range(2)
_OTHER_VERSION, _OTHER_SIGNATURE = int(Why.OTHER_VERSION), int(Why.OTHER_SIGNATURE)
_IMPOSSIBLE_SIZE, _NOT_CHECKED, _REST = int(Why.IMPOSSIBLE_SIZE), int(Why.NOT_CHECKED), int(Why.REST)


@jit
def held_by(flow: Any) -> int:
    """Return what a flow counts for in HELD."""
    return flow[PACKET_BYTES] + SEGMENT_COST * flow[PACKET_SEGMENTS] + FRAME_COST * flow[RUN_FRAMES]


@jit
def _certain(arrays: ScanArrays, flow: Any, start: int, stop: int, position: int, r: int) -> int:
    """Return FOUND for a well-formed packet without a doubtful end, or NOT_FOUND: `PacketFinder._certain`."""
    memory, field_offsets = arrays.memory, arrays.field_offsets
    kind = session_packet(memory, start, stop, field_offsets, r)
    if kind != BAD and not has_unexplained_tail(memory, start, kind, field_offsets, r):
        return FOUND
    add_failed(flow, position, stop - start)
    return NOT_FOUND


@jit
def _cut_segment(arrays: ScanArrays, flow: Any, start: int, stop: int) -> int:
    """Return the next segment that begins with a header of a cut-off packet: `PacketFinder._cut_segment`.

    -1 if none does. The buffer ends at ``stop``, and all of it is in buffered segments.
    """
    memory, pending_segments = arrays.memory, arrays.pending_segments
    number, taken, at = flow[PACKET_FIRST], flow[PACKET_LEAD], stop - flow[PACKET_BYTES]
    for _ in range(flow[PACKET_SEGMENTS]):
        segment = pending_segments[number]
        first = at - segment[SEG_POSITION] - taken
        if first >= start and stop - first >= SIGNATURE_END and begins_packet(memory, first, stop):
            if stop - first < PREFIX_SIZE or first + packet_length(memory, first) > stop:
                return first
        at += segment[SEG_SIZE] - taken
        number, taken = segment[SEG_NEXT], 0
    return -1


@jit
def search(
    arrays: ScanArrays, flow: Any, start: int, stop: int, shift: int, r: int, final: bool
) -> tuple[int, int, int]:
    """Search a packet in memory: `PacketFinder._search`.

    Returns its offset, or that before which none begins; which of the two; and up to where
    there must be bytes before more can be found, 0 if that is unknown. ``shift`` is the distance from offsets
    in the memory to those in the flow; row ``r`` is overwritten. ``final`` says that no bytes will follow.

    The rest of a packet that may not be checked is not waited for. So each wait is for a check, which
    succeeds or is counted, and no byte is looked at again without bound.
    """
    memory = arrays.memory
    at = find_header(memory, max(start, flow[SEARCHED_TO] - shift), stop)
    while at >= 0:
        end, is_admitted = at + PREFIX_SIZE, True
        if end <= stop:
            end = at + packet_length(memory, at)
            is_admitted = admits(flow, at + shift, end - at)
        if is_admitted and end > stop and not final:
            flow[SEARCHED_TO] = at + shift
            return at, NOT_FOUND, end
        if is_admitted and end <= stop:
            result = _certain(arrays, flow, at, end, at + shift, r)
            if result != NOT_FOUND:
                flow[SEARCHED_TO] = at + shift
                return at, result, 0
        at = find_header(memory, at + 1, stop)
    if final:
        flow[SEARCHED_TO] = stop + shift
        at = _cut_segment(arrays, flow, start, stop)
        return (at, FOUND, 0) if at >= 0 else (stop, NOT_FOUND, 0)
    at = max(min(start, stop), stop - PREFIX_SIZE + 1)
    flow[SEARCHED_TO] = at + shift
    return at, NOT_FOUND, 0


@jit
def emit(arrays: ScanArrays, flow: Any, start: int, size: int, kind: int) -> int:
    """Write the row of a packet, whose fields or refusal are there; return CONTINUE or a stop code."""
    stop_code = show_run(arrays, flow)
    if stop_code < 0:
        stop_code = room_for_frames(arrays, flow[PACKET_SEGMENTS] + 1)
    if stop_code >= 0:
        return stop_code
    state, rows, r = arrays.state, arrays.rows, arrays.state[ROWS]
    frames = state[FRAMES_USED]
    frame, time_ns = take_frames(arrays, flow, size, False)
    write_row(rows, r, state, arrays.header, flow[STREAM], kind, start, size)
    rows[r, R_FRAME], rows[r, R_TIME] = frame - state[FRAMES_BEFORE], time_ns
    if state[FRAMES_USED] > frames:
        rows[r, R_FRAMES] = frames
    state[ROWS] += 1
    flow[IS_CHECKED], flow[AFTER_BAD] = 0, kind == BAD
    return CONTINUE


@jit
def _emit_bad(arrays: ScanArrays, flow: Any, start: int, size: int, kind: int) -> int:
    """Write the row of a malformed or doubtful packet, unless it is skipped with the malformed one before.

    Returns CONTINUE or a stop code.
    """
    if joins_malformed(flow, kind, size):
        flow[IS_CHECKED] = 0
        return skip(arrays, flow, size, MALFORMED)
    return emit(arrays, flow, start, size, kind)


@jit
def _loss_of_prefix(memory: Any, start: int, stop: int) -> int:
    """Return why no packet begins here: `SkipReason.of_prefix`."""
    if memory[start] != VERSION:
        return _OTHER_VERSION | u8(memory, start) << WHY_BITS
    signature = 0
    for i in range(SIGNATURE_AT, min(SIGNATURE_END, stop - start)):
        signature |= u8(memory, start + i) << 8 * (i - SIGNATURE_AT)
    return _OTHER_SIGNATURE | signature << WHY_BITS


@jit
def _scan_packet(
    arrays: ScanArrays, flow: Any, start: int, stop: int, shift: int, final: bool
) -> tuple[int, int, int]:
    """Take the packet at the start of the buffer: `PacketFinder._scan_packet`.

    Returns up to where bytes were taken, CONTINUE or a stop code, and up to where there must be bytes before
    more can be found, 0 if that is unknown. If no bytes were taken and the flow is still in sync, more are
    needed.

    IS_CHECKED of a malformed or doubtful packet is where in it the next one is searched, so that it is not
    read again each time that more bytes have come: of a malformed one behind its BaseHeader.
    """
    memory, field_offsets = arrays.memory, arrays.field_offsets
    if stop - start < PREFIX_SIZE:
        if final and not begins_packet(memory, start, stop):
            flow[LOSS] = _loss_of_prefix(memory, start, stop)
        return start, CONTINUE, 0
    r = arrays.state[ROWS] + (flow[RUN_FRAMES] > 0)  # behind the row of the run, which comes first
    if r + 1 >= arrays.rows.shape[0]:
        return start, ROWS_FULL, 0
    length = packet_length(memory, start)
    if length < 0:
        if memory[start] != VERSION or u32(memory, start + SIGNATURE_AT) != SIGNATURE:
            flow[LOSS] = _loss_of_prefix(memory, start, stop)
            return start, CONTINUE, 0
        if stop - start < BASE_HEADER_SIZE and not final:
            return start, CONTINUE, 0
        size = u32(memory, start + SIZE_AT)
        refuse(field_offsets, r, IMPOSSIBLE_SIZE, SIZE_AT, size, 0, 0)
        flow[LOSS] = _IMPOSSIBLE_SIZE
        end = min(start + BASE_HEADER_SIZE, stop)
        return end, emit(arrays, flow, start, end - start, BAD), 0
    end = start + length
    if end > stop and final:
        return start, CONTINUE, end
    was_checked, kind = flow[IS_CHECKED] != 0, BAD
    if not was_checked:
        if not admits(flow, start + shift, length):
            flow[LOSS] = _NOT_CHECKED
            flow[SEARCHED_TO] = max(flow[SEARCHED_TO], start + shift + 1)
            return start, CONTINUE, 0
        if end > stop:
            return start, CONTINUE, end
        kind = session_packet(memory, start, end, field_offsets, r)
        if not is_doubtful(memory, start, kind, field_offsets, r):
            return end, emit(arrays, flow, start, length, kind), 0
        if kind == BAD:
            add_failed(flow, start + shift, length)
        flow[IS_CHECKED] = BASE_HEADER_SIZE if kind == BAD else tail_start(field_offsets, r)
    if stop - end < PREFIX_SIZE and not final:
        return start, CONTINUE, end + PREFIX_SIZE
    if end < stop and not begins_packet(memory, end, stop):
        first = flow[IS_CHECKED]
        at, result, needed = search(arrays, flow, start + first, stop, shift, r + 1, final)
        if at < end and result == NOT_FOUND and not final:
            return start, CONTINUE, needed
        if at < end and result == FOUND:
            if first != BASE_HEADER_SIZE:
                add_failed(flow, start + shift, length)
            kind = session_packet(memory, start, at, field_offsets, r)
            return at, _emit_bad(arrays, flow, start, at - start, kind), 0
    if was_checked:
        kind = session_packet(memory, start, end, field_offsets, r)
    return end, _emit_bad(arrays, flow, start, length, kind), 0


@jit
def scan_buffer(
    arrays: ScanArrays, flow: Any, start: int, stop: int, shift: int, final: bool
) -> tuple[int, int, int]:
    """Find packets as far as the buffer goes: `PacketFinder._scan`.

    Returns up to where bytes were taken, CONTINUE or a stop code, and up to where there must be bytes before
    more can be found, 0 if that is unknown.
    """
    p = start
    while p < stop:
        if flow[REMAINING]:
            size = min(flow[REMAINING], stop - p)
            flow[REMAINING] -= size
            stop_code = skip(arrays, flow, size, _REST)
            if stop_code >= 0:
                return p, stop_code, 0
            p += size
        elif flow[LOSS]:
            r = arrays.state[ROWS]
            if r == arrays.rows.shape[0]:
                return p, ROWS_FULL, 0
            at, result, needed = search(arrays, flow, p, stop, shift, r, final)
            stop_code = skip(arrays, flow, at - p, flow[LOSS])
            p = at
            if stop_code >= 0 or result == NOT_FOUND:
                return p, stop_code, needed
            flow[LOSS] = 0
        else:
            end, stop_code, needed = _scan_packet(arrays, flow, p, stop, shift, final)
            if stop_code >= 0 or (end == p and flow[LOSS] == 0):
                return end, stop_code, needed
            p = end
    return p, CONTINUE, 0


@jit
def _keep_rest(arrays: ScanArrays, flow: Any, start: int, stop: int, taken: int, rest: int) -> None:
    """Keep what is left of the buffer, ``rest`` bytes, and of the segment of which so many were taken."""
    state, pending_segments = arrays.state, arrays.pending_segments
    flow[PACKET_BYTES] = max(0, rest - (stop - start - taken))
    number, flow[PACKET_FRAME] = flow[PACKET_FIRST], 0
    for _ in range(flow[PACKET_SEGMENTS]):
        segment = pending_segments[number]
        if segment[SEG_FRAME] > flow[PACKET_FRAME]:
            flow[PACKET_FRAME], flow[PACKET_NS] = segment[SEG_FRAME], segment[SEG_NS]
        number = segment[SEG_NEXT]
    if taken < stop - start:
        extend_packet(
            state, flow, pending_segments, arrays.pending_bytes, arrays.memory, start + taken,
            stop - start - taken, taken,
        )  # fmt: skip
    elif flow[RUN_FRAMES]:
        extend_run(state, flow, pending_segments, arrays.pending_bytes, arrays.memory, stop - start)


@jit
def find_packets(arrays: ScanArrays, flow: Any, start: int, stop: int) -> int:
    """Take the next bytes of an MSMQ flow, all or none; return CONTINUE or a stop code."""
    state, memory, size, kept = arrays.state, arrays.memory, stop - start, flow[PACKET_BYTES]
    if (
        state[PENDING_BYTES] + size > arrays.pending_bytes.size
        or state[PENDING_SEGMENTS] + SPARE_SEGMENTS > arrays.pending_segments.shape[0]
    ):
        state[NEED] = size
        return PENDING_FULL
    if flow[IN_DOUBT] and kept + size < flow[PACKET_SIZE]:
        extend_packet(state, flow, arrays.pending_segments, arrays.pending_bytes, memory, start, size, 0)
        flow[DELIVERED] += size
        return CONTINUE
    arena, rows = state[ARENA], state[ROWS]
    if kept and arena + kept + size > state[ARENA_END]:
        state[NEED] = kept + size
        return ARENA_FULL
    remember(arrays.rollback, flow, state)
    held = state[HELD] - held_by(flow)
    first = start
    if kept:
        first = arena
        copy_packet(flow, arrays.pending_segments, arrays.pending_bytes, memory, arena, kept)
        copy(memory, start, size, memory, arena + kept)
        state[ARENA] += kept + size
    flow[DOUBTFUL_SIZE] = 0
    shift = flow[DELIVERED] - kept - first
    end = first + kept + size
    p, stop_code, needed = scan_buffer(arrays, flow, first, end, shift, False)
    if stop_code >= 0:
        go_back(arrays.rollback, flow, state)
        return stop_code
    if state[ROWS] == rows:
        state[ARENA] = arena
    flow[PACKET_SIZE] = max(0, needed - p)
    flow[DELIVERED] += size
    _keep_rest(arrays, flow, start, stop, max(0, p - first - kept), end - p)
    state[HELD] = held + held_by(flow)
    in_doubt = flow[LOSS] or flow[REMAINING] or flow[RUN_FRAMES] or flow[IS_CHECKED]
    flow[IN_DOUBT] = 1 if in_doubt or any_failed(flow, p + shift) else 0
    return CONTINUE
