"""Gaps that are given up, compiled: `Reassembler._settle` and `Reassembler._expire_gaps`."""

from __future__ import annotations

from typing import Any, Final

from msmqwire.capture.tcp import (
    ACKED_BYTES,
    ACKED_NS,
    ACKED_SEGMENTS,
    BUFFERED_PER_FLOW_MAX,
    BUFFERED_TOTAL_MAX,
    GAP_NS_MAX,
    SEGMENTS_PER_FLOW_MAX,
)
from msmqwire.columnar.compiled.breaks import take_hole
from msmqwire.columnar.compiled.decorators import exported, jit
from msmqwire.columnar.compiled.delivery import is_ncp_port
from msmqwire.columnar.compiled.flow_table import (
    ACKED,
    FRAME,
    GAP_DUE_NS,
    GAP_NS,
    KEY_FIELDS,
    LAST_NS,
    MODE,
    MSMQ,
    NEXT_SEQ,
    OPENING,
    OUT_OF_ORDER,
    OUT_OF_ORDER_COST,
    OUT_OF_ORDER_FIRST,
    SEG_NS,
    SEG_POSITION,
    SEG_SIZE,
    oldest_gap,
)
from msmqwire.columnar.compiled.network import DST_HIGH, DST_LOW, IS_IPV6, PORTS, SRC_HIGH, SRC_LOW
from msmqwire.columnar.compiled.out_of_order import deliver_buffered, has_room_to_deliver, set_gap_deadline
from msmqwire.columnar.compiled.packet import GAP_REASONS
from msmqwire.columnar.compiled.rollback import go_back, remember
from msmqwire.columnar.compiled.scan_arrays import FlowArrays, ScanArrays
from msmqwire.columnar.compiled.state import (
    DEADLINE,
    EVENT_FRAME,
    EVENT_NS,
    FIRST_OPENING,
    FRAME_CODE,
    LOST_BYTES,
    NEED,
    NEVER,
    OUT_OF_ORDER_COST_TOTAL,
    PENDING_BYTES,
    RECORD_NS,
    TRACKER_BUFFERED,
)
from msmqwire.columnar.compiled.stop_codes import CONTINUE, GENERIC_RECORD, PENDING_FULL

_ACKNOWLEDGED: Final = GAP_REASONS.index("acknowledged")
_LIMIT: Final = GAP_REASONS.index("limit")
_TIMEOUT: Final = GAP_REASONS.index("timeout")


@jit
def _is_acknowledged(flow: Any, position: int) -> bool:
    """Whether the receiver has acknowledged data beyond the first gap, which ends at this position."""
    if flow[ACKED] < 0:
        return False
    beyond = ((flow[ACKED] - flow[NEXT_SEQ] + 0x80000000) & 0xFFFFFFFF) - 0x80000000
    return flow[NEXT_SEQ] + beyond >= position


@jit
def skip_gap(arrays: ScanArrays, flow: Any, key: Any, reason: int, frame: int, time_ns: int) -> int:
    """Give up the first gap of a flow with this key, and deliver what follows it: `Direction.skip_gap`.

    ``frame`` has revealed the loss, at this time. Takes all or nothing; returns CONTINUE or a stop code.
    """
    state, header, pending_segments = arrays.state, arrays.header, arrays.pending_segments
    if state[PENDING_BYTES] + flow[OUT_OF_ORDER_COST] > arrays.pending_bytes.size or not has_room_to_deliver(
        state, flow, pending_segments
    ):
        state[NEED] = flow[OUT_OF_ORDER_COST]
        return PENDING_FULL
    for i in range(KEY_FIELDS):
        header[i] = key[i]
    remember(arrays.rollback[0], flow, state)
    event_frame, event_ns = state[EVENT_FRAME], state[EVENT_NS]
    lost = pending_segments[flow[OUT_OF_ORDER_FIRST], SEG_POSITION] - flow[NEXT_SEQ]
    stop_code = CONTINUE
    if flow[MODE] == MSMQ:
        stop_code = take_hole(arrays, flow, lost, reason, frame, time_ns)
    elif is_ncp_port(header[PORTS]):
        stop_code = GENERIC_RECORD  # a gap makes it NCP
    flow[NEXT_SEQ] += lost
    state[LOST_BYTES] += lost
    while stop_code < 0 and flow[OUT_OF_ORDER]:
        segment = pending_segments[flow[OUT_OF_ORDER_FIRST]]
        if segment[SEG_POSITION] > flow[NEXT_SEQ]:
            break
        flow[NEXT_SEQ] += segment[SEG_SIZE]
        stop_code = deliver_buffered(arrays, flow)
    if stop_code >= 0:
        go_back(arrays.rollback[0], flow, state)
    state[EVENT_FRAME], state[EVENT_NS] = event_frame, event_ns
    return stop_code


@jit
def _settle(arrays: ScanArrays, flow: Any, key: Any, now: int, frame: int, time_ns: int) -> int:
    """Give up the gaps of a flow that are due; return CONTINUE or a stop code.

    Each is given up as a whole, so that the rest can be given up later. A flow that is opening has none.
    """
    while flow[OUT_OF_ORDER] and flow[MODE] != OPENING:
        first = arrays.pending_segments[flow[OUT_OF_ORDER_FIRST]]
        is_large = flow[OUT_OF_ORDER] > ACKED_SEGMENTS or flow[OUT_OF_ORDER_COST] > ACKED_BYTES
        waited = now - max(first[SEG_NS], flow[GAP_NS])
        if flow[OUT_OF_ORDER_COST] > BUFFERED_PER_FLOW_MAX or flow[OUT_OF_ORDER] > SEGMENTS_PER_FLOW_MAX:
            reason = _LIMIT
        elif (is_large or waited >= ACKED_NS) and _is_acknowledged(flow, first[SEG_POSITION]):
            reason = _ACKNOWLEDGED
        elif waited >= GAP_NS_MAX:
            reason = _TIMEOUT
        else:
            set_gap_deadline(arrays.state, flow, arrays.pending_segments)
            break
        stop_code = skip_gap(arrays, flow, key, reason, frame, time_ns)
        if stop_code >= 0:
            return stop_code
    return CONTINUE


@jit
def settle_gaps(arrays: ScanArrays, flow_arrays: FlowArrays, number: int, now: int) -> int:
    """Give up the gaps of a connection that the current segment lets give up; return CONTINUE or a stop code.

    ``number`` is that of the flow of the segment.
    """
    state, header, flows, keys = arrays.state, arrays.header, flow_arrays.flows, flow_arrays.keys
    frame, stop_code = state[FRAME_CODE], CONTINUE
    for side in range(2):
        if stop_code < 0:
            of_side = number ^ side
            stop_code = _settle(arrays, flows[of_side], keys[of_side], now, frame, state[RECORD_NS])
    while stop_code < 0 and is_over_limit(state):
        if state[TRACKER_BUFFERED] or state[FIRST_OPENING] >= 0:
            stop_code = GENERIC_RECORD  # others may have waited longer
        else:
            stop_code = skip_oldest_gap(arrays, flow_arrays, now, frame, state[RECORD_NS])
    for i in range(KEY_FIELDS):
        header[i] = keys[number, i]
    return stop_code


@jit
def is_over_limit(state: Any) -> bool:
    """Whether too much is buffered beyond gaps."""
    return state[TRACKER_BUFFERED] + state[OUT_OF_ORDER_COST_TOTAL] > BUFFERED_TOTAL_MAX


@jit
def skip_oldest_gap(arrays: ScanArrays, flow_arrays: FlowArrays, now: int, frame: int, time_ns: int) -> int:
    """Give up the gap of the flow that has waited longest, and those that are due behind it.

    ``frame`` lets it be given up, at this time. Returns CONTINUE or a stop code.
    """
    oldest = oldest_gap(arrays.state, flow_arrays)
    flow, key = flow_arrays.flows[oldest], flow_arrays.keys[oldest]
    stop_code = skip_gap(arrays, flow, key, _LIMIT, frame, time_ns)
    return stop_code if stop_code >= 0 else _settle(arrays, flow, key, now, frame, time_ns)


@exported
@jit
def any_gap_due(arrays: ScanArrays, flow_arrays: FlowArrays, now: int) -> bool:
    """Whether any flow gives up a gap at this time."""
    number, flows = oldest_gap(arrays.state, flow_arrays), flow_arrays.flows
    while number >= 0:
        if flows[number, OUT_OF_ORDER] and _due(arrays, flows[number]) <= now:
            return True
        number = flow_arrays.next_gap[number]
    return False


@jit
def _due(arrays: ScanArrays, flow: Any) -> int:
    """Return the time at which a flow starts, or gives up its first gap: `Reassembler._due`."""
    if flow[MODE] == OPENING:
        return flow[GAP_DUE_NS]
    first = arrays.pending_segments[flow[OUT_OF_ORDER_FIRST]]
    wait = ACKED_NS if _is_acknowledged(flow, first[SEG_POSITION]) else GAP_NS_MAX
    return max(first[SEG_NS], flow[GAP_NS]) + wait


@jit
def expire_gaps(arrays: ScanArrays, flow_arrays: FlowArrays, number: int, now: int) -> int:
    """Give up the gaps of a connection that were due before its current segment: `Reassembler._expire_gaps`.

    ``number`` is that of the flow of the segment. Returns CONTINUE or a stop code.
    """
    header, flows, keys = arrays.header, flow_arrays.flows, flow_arrays.keys
    first, stop_code = number & -2, CONTINUE  # the first number is that of the flow first seen
    while stop_code < 0:
        due, chosen = now + 1, -1
        for side in range(2):
            flow = flows[first + side]
            if flow[OUT_OF_ORDER] and now >= flow[GAP_DUE_NS] and _due(arrays, flow) < due:
                due, chosen = _due(arrays, flow), first + side
        if chosen < 0:
            break
        flow = flows[chosen]
        if flow[MODE] == OPENING:
            stop_code = GENERIC_RECORD
            break
        stop_code = _settle(arrays, flow, keys[chosen], due, flow[FRAME], flow[LAST_NS])
    for i in range(KEY_FIELDS):
        header[i] = keys[number, i]
    return stop_code


@jit
def expire_all_gaps(arrays: ScanArrays, flow_arrays: FlowArrays, now: int) -> int:
    """Give up all gaps that are due, and set DEADLINE for the others: `Reassembler._expire_all_gaps`.

    Returns CONTINUE or a stop code, after which the rest can be done later.
    """
    state, header, flows = arrays.state, arrays.header, flow_arrays.flows
    src_high, src_low, dst_high = header[SRC_HIGH], header[SRC_LOW], header[DST_HIGH]
    dst_low, ports, is_ipv6 = header[DST_LOW], header[PORTS], header[IS_IPV6]
    number, deadline, stop_code = oldest_gap(state, flow_arrays), NEVER, CONTINUE
    while number >= 0 and stop_code < 0:
        due = NEVER
        for side in range(2):
            if flows[number ^ side, OUT_OF_ORDER]:
                due = min(due, _due(arrays, flows[number ^ side]))
        if flows[number, OUT_OF_ORDER] and due <= now:
            stop_code = expire_gaps(arrays, flow_arrays, number, now)
        if flows[number, OUT_OF_ORDER]:
            deadline = min(deadline, _due(arrays, flows[number]))
        number = flow_arrays.next_gap[number]
    if stop_code < 0:
        state[DEADLINE] = deadline
    header[SRC_HIGH], header[SRC_LOW], header[DST_HIGH] = src_high, src_low, dst_high
    header[DST_LOW], header[PORTS], header[IS_IPV6] = dst_low, ports, is_ipv6
    return stop_code
