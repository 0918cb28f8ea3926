"""Runs of skipped bytes, and the frames of what is found, compiled: `PacketFinder`."""

from __future__ import annotations

from typing import Any, Final

from msmqwire.analysis.dissection.finder import SKIP_SHOWN
from msmqwire.analysis.dissection.skip_reasons import PACKET_MIN, Why
from msmqwire.tables.compiled.decorators import inlined, jit
from msmqwire.tables.compiled.flow_table import (
    AFTER_BAD,
    PACKET_BYTES,
    PACKET_FIRST,
    PACKET_LEAD,
    PACKET_SEGMENTS,
    RUN_BYTES,
    RUN_FIRST,
    RUN_FRAME,
    RUN_FRAMES,
    RUN_LATEST,
    RUN_NS,
    RUN_REASON,
    RUN_SEGMENTS,
    SEG_FRAME,
    SEG_NEXT,
    SEG_NS,
    SEG_SIZE,
    STREAM,
)
from msmqwire.tables.compiled.origins import keep_frames_of_run, room_for_frames
from msmqwire.tables.compiled.packet import BAD, SKIPPED, SKIPPED_FOR
from msmqwire.tables.compiled.refusal import refuse
from msmqwire.tables.compiled.row_writing import write_row
from msmqwire.tables.compiled.scan_arrays import ScanArrays
from msmqwire.tables.compiled.state import (
    EVENT_FRAME,
    EVENT_NS,
    FRAMES_BEFORE,
    FRAMES_USED,
    KEEPS_ORIGINS,
    R_EXTRA,
    R_FRAME,
    R_LENGTH,
    R_TIME,
    REFUSAL_IN_OFFSETS,
    ROWS,
)
from msmqwire.tables.compiled.stop_codes import CONTINUE, ROWS_FULL

WHY_BITS: Final = 8
"""Bits of a reason that say which one; above them is its value."""
_LOOKED_AT: Final = 256
"""Frames of a run that are looked at for one that may have been counted."""
MALFORMED: Final = int(Why.MALFORMED)


@inlined
def joins_malformed(flow: Any, kind: int, size: int) -> bool:
    """Whether a packet is skipped with the malformed one before: `PacketFinder._bad_packet`."""
    return kind == BAD and size < PACKET_MIN and flow[AFTER_BAD] != 0


@jit
def _count_frame(arrays: ScanArrays, flow: Any, frame: int, time_ns: int) -> None:
    """Count a frame of a run, unless it has been, as far as that is looked for."""
    if frame > flow[RUN_FRAME]:
        flow[RUN_FRAME], flow[RUN_NS] = frame, time_ns
    elif frame == flow[RUN_LATEST]:
        return
    else:  # the segments were out of order
        number = flow[RUN_FIRST]
        for _ in range(min(flow[RUN_SEGMENTS], _LOOKED_AT)):
            if arrays.pending_segments[number, SEG_FRAME] == frame:
                flow[RUN_LATEST] = frame
                return
            number = arrays.pending_segments[number, SEG_NEXT]
    flow[RUN_LATEST] = frame
    flow[RUN_FRAMES] += 1


@jit
def take_frames(arrays: ScanArrays, flow: Any, size: int, skips: bool) -> tuple[int, int]:
    """Take the next bytes of the buffer of a flow; return the last frame that carried them, and its time.

    What is left of them behind the buffered segments is of the current one. If the bytes are skipped, their
    frames are counted, and kept otherwise where that is asked for and there are several. PACKET_BYTES are
    those left in the buffered segments.
    """
    state, last, last_ns = arrays.state, -1, 0
    used, kept = state[FRAMES_USED], 0
    while size:
        frame, time_ns, left = state[FRAMES_BEFORE] + state[EVENT_FRAME], state[EVENT_NS], size
        number = flow[PACKET_FIRST]
        buffered = flow[PACKET_SEGMENTS] > 0
        if buffered:
            segment = arrays.pending_segments[number]
            frame, time_ns, left = segment[SEG_FRAME], segment[SEG_NS], segment[SEG_SIZE] - flow[PACKET_LEAD]
        if skips:
            _count_frame(arrays, flow, frame, time_ns)
        elif state[KEEPS_ORIGINS]:
            kept += 1
            arrays.frames[used + kept] = frame
        if frame > last:
            last, last_ns = frame, time_ns
        if buffered and left > size:
            flow[PACKET_LEAD] += size
        elif buffered:
            if skips:
                if flow[RUN_SEGMENTS] == 0:
                    flow[RUN_FIRST] = number
                flow[RUN_SEGMENTS] += 1
            flow[PACKET_FIRST], flow[PACKET_LEAD] = arrays.pending_segments[number, SEG_NEXT], 0
            flow[PACKET_SEGMENTS] -= 1
        taken = min(left, size)
        size -= taken
        if buffered:
            flow[PACKET_BYTES] -= taken
    if kept > 1:
        arrays.frames[used] = kept
        state[FRAMES_USED] += kept + 1
    return last, last_ns


@jit
def show_run(arrays: ScanArrays, flow: Any) -> int:
    """Write the row of the run of skipped bytes, if there is one; return CONTINUE or a stop code."""
    if flow[RUN_FRAMES] == 0:
        return CONTINUE
    state, rows = arrays.state, arrays.rows
    r, reason = state[ROWS], flow[RUN_REASON]
    if r == rows.shape[0]:
        return ROWS_FULL
    stop_code = room_for_frames(arrays, flow[RUN_SEGMENTS] + 1)
    if stop_code >= 0:
        return stop_code
    write_row(rows, r, state, arrays.header, flow[STREAM], SKIPPED, 0, flow[RUN_BYTES])
    refuse(arrays.field_offsets, r, SKIPPED_FOR + (reason & (1 << WHY_BITS) - 1), 0, reason >> WHY_BITS, 0, 0)
    rows[r, R_LENGTH], rows[r, R_EXTRA] = 0, REFUSAL_IN_OFFSETS
    rows[r, R_FRAME], rows[r, R_TIME] = flow[RUN_FRAME] - state[FRAMES_BEFORE], flow[RUN_NS]
    if state[KEEPS_ORIGINS] and flow[RUN_FRAMES] > 1:
        keep_frames_of_run(arrays, flow, r)
    state[ROWS] += 1
    flow[RUN_BYTES] = flow[RUN_FRAMES] = flow[RUN_FRAME] = flow[RUN_LATEST] = flow[RUN_SEGMENTS] = 0
    flow[RUN_REASON] = 0
    return CONTINUE


@jit
def skip(arrays: ScanArrays, flow: Any, size: int, reason: int) -> int:
    """Skip the next bytes of the buffer of a flow; return CONTINUE or a stop code."""
    if size == 0:
        return CONTINUE
    if flow[RUN_REASON] != reason:
        stop_code = show_run(arrays, flow)
        if stop_code >= 0:
            return stop_code
    flow[RUN_REASON] = reason
    if reason != MALFORMED:
        flow[AFTER_BAD] = 0
    take_frames(arrays, flow, size, True)
    flow[RUN_BYTES] += size
    return show_run(arrays, flow) if flow[RUN_BYTES] >= SKIP_SHOWN else CONTINUE
