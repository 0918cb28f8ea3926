"""The state of the finder of a flow, from the generic reader to the scan and back."""

from __future__ import annotations

from typing import Any

from msmqwire.columnar.bridge.pending_segments import PendingSegments
from msmqwire.columnar.compiled.failed_checks import CLASS_MASK, END_SHIFT
from msmqwire.columnar.compiled.flow_table import (
    AFTER_BAD,
    DELIVERED,
    FAILED,
    FLOW_FIELDS,
    IN_DOUBT,
    IS_CHECKED,
    LOSS,
    PACKET_BYTES,
    PACKET_FIRST,
    PACKET_FRAME,
    PACKET_LAST,
    PACKET_LEAD,
    PACKET_NS,
    PACKET_SEGMENTS,
    PACKET_SIZE,
    REMAINING,
    RUN_BYTES,
    RUN_FIRST,
    RUN_FRAME,
    RUN_FRAMES,
    RUN_KEPT,
    RUN_LATEST,
    RUN_NS,
    RUN_REASON,
    RUN_SEGMENTS,
    SEARCHED_TO,
)
from msmqwire.columnar.compiled.skipped_run import WHY_BITS
from msmqwire.dissection.finder_state import FinderState, SkipReason, Why


def acquire_finder(flows: Any, number: int, pending: PendingSegments, state: FinderState) -> None:
    """Let the scan go on with the flow of this number."""
    flow, code_of = flows[number], pending.encapsulations.code
    for lead, data, frame, time_ns in state.segments:
        pending.reserve(len(data), flows)
        pending.append(flow, (PACKET_FIRST, PACKET_LAST, PACKET_SEGMENTS), data, frame, time_ns, lead)
        flow[PACKET_BYTES] += len(data)
        if code_of(frame) > flow[PACKET_FRAME]:
            flow[PACKET_FRAME], flow[PACKET_NS] = code_of(frame), time_ns
    start = -int(flow[PACKET_BYTES])
    flow[PACKET_SIZE], flow[LOSS], flow[REMAINING] = state.needed, _code_of(state.loss), state.remaining
    flow[SEARCHED_TO] = start + state.searched_to
    for i, (size, end) in enumerate(state.failed):
        flow[FAILED + i] = start + end << END_SHIFT | size
    flow[RUN_BYTES], flow[RUN_REASON], flow[RUN_FRAMES] = (
        state.run_size, _code_of(state.run_reason), state.run_frames
    )  # fmt: skip
    flow[RUN_NS] = state.run_frame[1]
    flow[RUN_FRAME] = flow[RUN_LATEST] = flow[RUN_KEPT] = code_of(state.run_frame[0])
    flow[AFTER_BAD] = state.after_malformed
    flow[IN_DOUBT] = bool(state.loss or state.remaining or state.run_frames or state.failed)


def release_finder(flow: Any, pending: PendingSegments) -> FinderState:
    """Return what the scan knows of a flow, with what is buffered."""
    start = int(flow[DELIVERED] - flow[PACKET_BYTES])
    segments, frames = [], []
    for _, _, frame, time_ns, _ in pending.read(flow[RUN_FIRST], flow[RUN_SEGMENTS]):
        frames.append((frame, time_ns))
    taken = int(flow[PACKET_LEAD])
    for lead, _, frame, time_ns, data in pending.read(flow[PACKET_FIRST], flow[PACKET_SEGMENTS]):
        segments.append((lead + taken, data[taken:], frame, time_ns))
        taken = 0
    runs = bool(flow[RUN_FRAMES])
    if runs and segments and segments[0][0]:  # what is before the buffer was skipped
        frames.append(segments[0][2:])
    failed = []
    for i in range(FAILED, FLOW_FIELDS):
        end = (int(flow[i]) >> END_SHIFT) - start
        if flow[i] and end > 0:
            failed.append((int(flow[i]) & CLASS_MASK, end))
    return FinderState(
        segments, 0, _reason_of(flow[LOSS]), int(flow[REMAINING]), int(flow[SEARCHED_TO]) - start,
        tuple(failed), bool(flow[IS_CHECKED]), bool(flow[AFTER_BAD]), int(flow[RUN_BYTES]),
        _reason_of(flow[RUN_REASON]) if runs else None, run_kept=bool(flow[RUN_KEPT]), frames=tuple(frames),
    )  # fmt: skip


def _code_of(reason: SkipReason | None) -> int:
    return 0 if reason is None else reason.why | reason.value << WHY_BITS


def _reason_of(code: int) -> SkipReason | None:
    value, why = divmod(int(code), 1 << WHY_BITS)
    return SkipReason(Why(why), value) if code else None
