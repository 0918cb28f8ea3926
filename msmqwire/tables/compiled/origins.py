"""The origin of rows that become items, compiled: their flow, and what judges ask about its connection.

See R_ORIGIN and R_FRAMES in `state`. Readers that make columns alone do not ask for them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from msmqwire.capture.direction import FAR
from msmqwire.tables.compiled.decorators import inlined, jit
from msmqwire.tables.compiled.flow_table import (
    FIRST_SIDE,
    GAPS,
    IS_GONE,
    IS_SEEN,
    MIDSTREAM,
    NEXT_SEQ,
    OPEN,
    OPENING,
    PACKET_FIRST,
    PACKET_SEGMENTS,
    RUN_FIRST,
    RUN_LATEST,
    RUN_SEGMENTS,
    SEG_FRAME,
    SEG_NEXT,
    START_KIND,
    TCP_STATE,
    TO_COME,
)
from msmqwire.tables.compiled.scan_arrays import FlowArrays, ScanArrays
from msmqwire.tables.compiled.state import (
    EVENT_FRAME,
    EVENT_ORIGIN,
    FRAMES_BEFORE,
    FRAMES_USED,
    KEEPS_ORIGINS,
    NEED,
    ORIGIN_BEHIND,
    ORIGIN_GAPS,
    ORIGIN_GAPS_MASK,
    ORIGIN_MIDSTREAM,
    ORIGIN_NUMBER,
    R_FRAMES,
)
from msmqwire.tables.compiled.stop_codes import CONTINUE, FRAMES_FULL
from msmqwire.tables.compiled.tcp.direction import distance


@jit
def is_behind(flow_arrays: FlowArrays, number: int, acked: int) -> bool:
    """Whether the sender of a flow has received bytes not captured, or not in order: `Tracker.is_behind`.

    ``acked`` is what it has acknowledged last, -1 for nothing.
    """
    other = flow_arrays.flows[number ^ 1]
    if not other[IS_SEEN]:
        return True
    if other[IS_GONE]:
        return False
    if other[TO_COME] > 0:
        return True
    if acked < 0:
        return False
    return other[TCP_STATE] == OPENING or (
        other[TCP_STATE] == OPEN and 1 < distance(acked, other[NEXT_SEQ]) < FAR
    )


@jit
def origin(flow_arrays: FlowArrays, number: int, acked: int) -> int:
    """Return the R_ORIGIN of rows of a flow; ``acked`` is what its sender has acknowledged last."""
    flows, first = flow_arrays.flows, number & -2
    found: Any = np.int64(number) << ORIGIN_NUMBER | (flows[first, GAPS] & ORIGIN_GAPS_MASK) << ORIGIN_GAPS
    if is_behind(flow_arrays, number, acked):
        found |= ORIGIN_BEHIND
    side = max(flows[first, FIRST_SIDE] - 1, 0)
    if flows[first + side, START_KIND] == MIDSTREAM:
        found |= ORIGIN_MIDSTREAM
    return found


@inlined
def note_origin(state: Any, flow_arrays: FlowArrays, number: int, acked: int) -> None:
    """Note the origin of the rows of an event that is about to be taken."""
    if state[KEEPS_ORIGINS]:
        state[EVENT_ORIGIN] = origin(flow_arrays, number, acked)


@jit
def room_for_frames(arrays: ScanArrays, count: int) -> int:
    """Return CONTINUE if there is room for the frames of a row, or a stop code."""
    state = arrays.state
    if state[KEEPS_ORIGINS] and state[FRAMES_USED] + count + 1 > arrays.frames.size:
        state[NEED] = count + 1
        return FRAMES_FULL
    return CONTINUE


@jit
def keep_frames(arrays: ScanArrays, flow: Any, r: int, used: int) -> int:
    """Keep the frames of a packet that the buffered segments and the current one carried.

    ``used`` entries of the array of frames are in use; returns how many are then.
    """
    frames, count, number = arrays.frames, 0, flow[PACKET_FIRST]
    for _ in range(flow[PACKET_SEGMENTS]):
        count += 1
        frames[used + count] = arrays.pending_segments[number, SEG_FRAME]
        number = arrays.pending_segments[number, SEG_NEXT]
    count += 1
    frames[used + count] = arrays.state[FRAMES_BEFORE] + arrays.state[EVENT_FRAME]
    frames[used] = count
    arrays.rows[r, R_FRAMES] = used
    return used + count + 1


@jit
def keep_frames_of_run(arrays: ScanArrays, flow: Any, r: int) -> None:
    """Keep the frames of the run of skipped bytes; there is room for them."""
    state, frames, number = arrays.state, arrays.frames, flow[RUN_FIRST]
    used, count = state[FRAMES_USED], 0
    for _ in range(flow[RUN_SEGMENTS]):
        count += 1
        frames[used + count] = arrays.pending_segments[number, SEG_FRAME]
        number = arrays.pending_segments[number, SEG_NEXT]
    count += 1
    frames[used + count] = flow[RUN_LATEST]
    frames[used] = count
    arrays.rows[r, R_FRAMES] = used
    state[FRAMES_USED] += count + 1
