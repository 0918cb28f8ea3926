"""The rows of flows in the arrays of the scan, from what a tracker knows of directions and back."""

from __future__ import annotations

from typing import Any

from msmqwire.capture import direction as capture_direction
from msmqwire.capture.segment_buffer import Segment
from msmqwire.capture.tcp import START_NS
from msmqwire.columnar.bridge.encapsulations import Encapsulations
from msmqwire.columnar.bridge.finder_states import release_finder
from msmqwire.columnar.bridge.pending_segments import PendingSegments
from msmqwire.columnar.compiled.flow_table import (
    ACKED,
    DELIVERED,
    ENDED,
    FAR_FROM,
    FAR_NEXT,
    FAR_RUN,
    FIRST_SEQ,
    FRAME,
    GAP_DUE_NS,
    GAP_NS,
    IGNORED,
    IGNORED_FRAME,
    IGNORED_NS,
    ISN,
    JOINED,
    LAST_NS,
    MODE,
    MSMQ,
    NEXT_SEQ,
    NO_SEQ,
    OPENING,
    OPENING_SEGMENTS,
    OUT_OF_ORDER,
    OUT_OF_ORDER_FIRST,
    OUT_OF_ORDER_FRAME,
    STREAM,
    UNRECOGNISED,
    UNSEEN,
    WAS_RESET,
)
from msmqwire.columnar.compiled.midstream import list_opening
from msmqwire.dissection.handover import DirectionSnapshot, DirectionStart


def start_of(flow: Any, encapsulations: Encapsulations) -> DirectionStart | None:
    """Return how a flow was seen; None if it was not."""
    if flow[MODE] == UNSEEN:
        return None
    frame = encapsulations.frame(int(flow[FRAME]))
    return DirectionStart(None if flow[ISN] < 0 else int(flow[ISN]), int(flow[LAST_NS]), frame)


def snapshot_of(flow: Any, pending: PendingSegments) -> DirectionSnapshot:
    """Return what the scan knows of a flow of which something has been seen, with what is buffered."""
    acked, frame_of = int(flow[ACKED]), pending.encapsulations.frame
    is_msmq = bool(flow[MODE] == MSMQ or (flow[MODE] == ENDED and not flow[IGNORED]))
    snapshot = DirectionSnapshot(
        is_msmq,
        int(flow[NEXT_SEQ]),
        None if acked < 0 else acked,
        int(flow[LAST_NS]),
        frame_of(int(flow[FRAME])),
    )
    snapshot.taken = int(flow[DELIVERED])
    snapshot.ignored = int(flow[IGNORED]), frame_of(int(flow[IGNORED_FRAME])), int(flow[IGNORED_NS])
    snapshot.finder = release_finder(flow, pending)
    for position, size, frame, time_ns, data in pending.read(flow[OUT_OF_ORDER_FIRST], flow[OUT_OF_ORDER]):
        snapshot.out_of_order.append(Segment(position, position + size, data, time_ns, frame))
    snapshot.out_of_order_frame = frame_of(int(flow[OUT_OF_ORDER_FRAME]))
    snapshot.since_ns = int(flow[GAP_NS])
    if flow[MODE] == OPENING:
        snapshot.state = capture_direction.OPENING
    elif flow[MODE] == JOINED:
        snapshot.state = capture_direction.UNKNOWN
    snapshot.first_seq = None if flow[FIRST_SEQ] == NO_SEQ else int(flow[FIRST_SEQ])
    snapshot.opening_segments = int(flow[OPENING_SEGMENTS])
    snapshot.far = int(flow[FAR_NEXT]), int(flow[FAR_FROM]), int(flow[FAR_RUN])
    snapshot.ended, snapshot.was_reset = bool(flow[MODE] == ENDED), bool(flow[WAS_RESET])
    return snapshot


def describe_flow(
    flow: Any, stream: int, snapshot: DirectionSnapshot, encapsulations: Encapsulations
) -> None:
    """Describe a flow, but for its mode and what is buffered."""
    flow[:] = 0
    flow[NEXT_SEQ], flow[STREAM] = snapshot.next, stream
    flow[ACKED] = -1 if snapshot.acked is None else snapshot.acked
    flow[LAST_NS], flow[FRAME] = snapshot.last_ns, encapsulations.code(snapshot.frame)
    flow[ISN] = -1 if snapshot.isn is None else snapshot.isn
    flow[FIRST_SEQ] = NO_SEQ if snapshot.first_seq is None else snapshot.first_seq
    flow[FAR_NEXT], flow[FAR_FROM], flow[FAR_RUN] = snapshot.far
    flow[IGNORED], frame, flow[IGNORED_NS] = snapshot.ignored
    flow[IGNORED_FRAME] = encapsulations.code(frame)


def describe_new(
    state: Any,
    flows: Any,
    number: int,
    stream: int,
    snapshot: DirectionSnapshot,
    is_msmq: bool,
    encapsulations: Encapsulations,
) -> None:
    """Describe a connection of which only the first segment was seen, but for what is buffered of it."""
    describe_flow(flows[number], stream, snapshot, encapsulations)
    flows[number + 1] = 0
    flows[number + 1, [MODE, ACKED, ISN, FIRST_SEQ, STREAM]] = UNSEEN, -1, -1, NO_SEQ, stream
    if snapshot.state == capture_direction.OPENING:
        flows[number, MODE], flows[number, OPENING_SEGMENTS] = OPENING, snapshot.opening_segments
        flows[number, GAP_DUE_NS] = snapshot.since_ns + START_NS
        list_opening(state, flows, number)
    elif snapshot.state == capture_direction.UNKNOWN:
        flows[number, MODE] = JOINED
    else:
        flows[number, MODE] = MSMQ if is_msmq else UNRECOGNISED
