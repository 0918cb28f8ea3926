"""Breaks of a flow, compiled: what `PacketFinder` does at a hole, and at the end.

What is buffered can't become more there, so that each byte of it is in a packet, in a malformed one, or
skipped.
"""

from __future__ import annotations

from typing import Any, Final

from msmqwire.analysis.dissection.skip_reasons import Why
from msmqwire.headers.base import BASE_HEADER_SIZE, PREFIX_SIZE
from msmqwire.tables.compiled.decorators import jit
from msmqwire.tables.compiled.failed_checks import add_failed, admits, any_failed
from msmqwire.tables.compiled.finding import FOUND, emit, held_by, scan_buffer, search
from msmqwire.tables.compiled.flow_table import (
    AFTER_BAD,
    DELIVERED,
    DOUBTFUL_SIZE,
    FAILED,
    FLOW_FIELDS,
    IN_DOUBT,
    IS_CHECKED,
    LOSS,
    PACKET_BYTES,
    PACKET_FRAME,
    PACKET_LEAD,
    PACKET_SEGMENTS,
    PACKET_SIZE,
    REMAINING,
    RUN_FRAMES,
    STREAM,
    copy_packet,
    go_back,
    remember,
)
from msmqwire.tables.compiled.generated import REFUSALS
from msmqwire.tables.compiled.packet import (
    BAD,
    NOT_CAPTURED,
    SKIPPED,
    packet_length,
    refuse_base,
    session_packet,
)
from msmqwire.tables.compiled.refusal import NUMBER, OFFSET, SECOND, refuse
from msmqwire.tables.compiled.row_writing import write_row
from msmqwire.tables.compiled.scan_arrays import ScanArrays
from msmqwire.tables.compiled.skipped_run import show_run
from msmqwire.tables.compiled.state import (
    ARENA,
    ARENA_END,
    FRAMES_BEFORE,
    HELD,
    NEED,
    ORIGIN_CUT,
    R_EXTRA,
    R_FRAME,
    R_LENGTH,
    R_ORIGIN,
    R_TIME,
    REFUSAL_IN_OFFSETS,
    ROWS,
)
from msmqwire.tables.compiled.stop_codes import ARENA_FULL, CONTINUE, ROWS_FULL

_CUT_TAIL: Final = REFUSALS.index(("cut short", "TrailingData"))
_HOLE: Final = int(Why.HOLE)


@jit
def _refuse_cut(arrays: ScanArrays, start: int, stop: int, r: int) -> None:
    """Refuse the beginning of a packet: `msmqwire.analysis.dissection.finder.parse_error`."""
    if not refuse_base(arrays.memory, start, stop, arrays.field_offsets, r):
        session_packet(arrays.memory, start, stop, arrays.field_offsets, r)


@jit
def _prefix_size(arrays: ScanArrays, flow: Any, start: int, stop: int, shift: int, r: int) -> int:
    """Return how many bytes are surely of the packet that is cut off: `PacketFinder._prefix_end`.

    Its refusal is written.
    """
    size = stop - start
    _refuse_cut(arrays, start, stop, r)
    if not admits(flow, start + shift, size):
        return min(BASE_HEADER_SIZE, size)
    refusal = arrays.field_offsets[r]
    if refusal[OFFSET] == size and refusal[NUMBER] != _CUT_TAIL:
        return size
    add_failed(flow, start + shift, size)
    return size - refusal[SECOND] if refusal[OFFSET] == size else min(BASE_HEADER_SIZE, size)


@jit
def _flush(arrays: ScanArrays, flow: Any, start: int, stop: int, shift: int, cut: bool) -> tuple[int, int]:
    """Take all that is buffered: `PacketFinder._flush_buffer`.

    Returns CONTINUE or a stop code, and how many bytes the last packet lacks, or below 0. ``cut`` says that
    its rest is missing from the capture.
    """
    p = start
    while True:
        p, stop_code, _ = scan_buffer(arrays, flow, p, stop, shift, True)
        if stop_code >= 0:
            return stop_code, 0
        if p == stop:
            return CONTINUE, flow[REMAINING] if flow[REMAINING] else -1
        r = arrays.state[ROWS] + (flow[RUN_FRAMES] > 0)  # behind the row of the run, which comes first
        if r + 1 >= arrays.rows.shape[0]:
            return ROWS_FULL, 0
        length = packet_length(arrays.memory, p) if stop - p >= PREFIX_SIZE else 0
        prefix = _prefix_size(arrays, flow, p, stop, shift, r)
        at, result = stop, FOUND
        if p + prefix < stop:
            at, result, _ = search(arrays, flow, p + prefix, stop, shift, r + 1, True)
        if at == stop or result != FOUND:
            stop_code, r = emit(arrays, flow, p, stop - p, BAD), arrays.state[ROWS] - 1
            if cut and stop_code < 0:
                arrays.rows[r, R_ORIGIN] |= ORIGIN_CUT
            return stop_code, length - (stop - p)
        _refuse_cut(arrays, p, at, r)
        stop_code = emit(arrays, flow, p, at - p, BAD)
        if stop_code >= 0:
            return stop_code, 0
        p = at


@jit
def _break_off(arrays: ScanArrays, flow: Any, cut: bool) -> tuple[int, int]:
    """Take all that is buffered of the packets of a flow, and end its run of skipped bytes.

    Takes ``cut`` and returns as `_flush`. On a stop code, the caller goes back.
    """
    state, kept, rows = arrays.state, flow[PACKET_BYTES], arrays.state[ROWS]
    arena, held = state[ARENA], held_by(flow)
    if arena + kept > state[ARENA_END]:
        state[NEED] = kept
        return ARENA_FULL, 0
    copy_packet(flow, arrays.pending_segments, arrays.pending_bytes, arrays.memory, arena, kept)
    state[ARENA] += kept
    flow[DOUBTFUL_SIZE] = 0
    shift = flow[DELIVERED] - kept - arena
    stop_code, lacking = _flush(arrays, flow, arena, arena + kept, shift, cut)
    if stop_code < 0:
        stop_code = show_run(arrays, flow)
    if stop_code >= 0:
        return stop_code, 0
    if state[ROWS] == rows:
        state[ARENA] = arena
    state[HELD] -= held
    flow[PACKET_BYTES] = flow[PACKET_SEGMENTS] = flow[PACKET_LEAD] = flow[PACKET_FRAME] = 0
    flow[PACKET_SIZE] = flow[IS_CHECKED] = 0
    return CONTINUE, lacking


@jit
def take_hole(arrays: ScanArrays, flow: Any, size: int, reason: int, frame: int, time_ns: int) -> int:
    """Take a hole in an MSMQ flow, all or nothing: `PacketFinder.gap`; return CONTINUE or a stop code.

    Args:
        size: its bytes, -1 for an unknown number.
        reason: the place of the reason in `packet.GAP_REASONS`.
        frame: what has revealed it.
        time_ns: the time of that.
    """
    state, rows = arrays.state, arrays.rows
    remember(arrays.rollback, flow, state)
    stop_code, lacking = _break_off(arrays, flow, True)
    r = state[ROWS]
    if stop_code < 0 and r == rows.shape[0]:
        stop_code = ROWS_FULL
    if stop_code >= 0:
        go_back(arrays.rollback, flow, state)
        return stop_code
    if 0 <= size <= lacking:
        flow[REMAINING] = lacking - size
    else:
        flow[REMAINING], flow[LOSS] = 0, _HOLE
    if size > 0:
        write_row(rows, r, state, arrays.header, flow[STREAM], SKIPPED, 0, size)
        refuse(arrays.field_offsets, r, NOT_CAPTURED + reason, 0, 0, 0, 0)
        rows[r, R_LENGTH], rows[r, R_EXTRA] = 0, REFUSAL_IN_OFFSETS
        rows[r, R_FRAME], rows[r, R_TIME] = frame - state[FRAMES_BEFORE], time_ns
        state[ROWS] += 1
    in_doubt = flow[LOSS] or flow[REMAINING] or any_failed(flow, flow[DELIVERED])
    flow[IN_DOUBT] = 1 if in_doubt else 0
    flow[AFTER_BAD] = 0
    return CONTINUE


@jit
def end_packets(arrays: ScanArrays, flow: Any, cut: bool) -> int:
    """End the packets of an MSMQ flow, all or none: `PacketFinder.end`; return CONTINUE or a stop code."""
    remember(arrays.rollback, flow, arrays.state)
    stop_code, _ = _break_off(arrays, flow, cut)
    if stop_code >= 0:
        go_back(arrays.rollback, flow, arrays.state)
        return stop_code
    flow[LOSS] = flow[REMAINING] = flow[IN_DOUBT] = flow[AFTER_BAD] = 0
    for i in range(FAILED, FLOW_FIELDS):
        flow[i] = 0
    return CONTINUE
