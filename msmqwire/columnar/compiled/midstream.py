"""Flows without a SYN until they start, compiled: `Direction` and `Reassembler` in UNKNOWN and OPENING.

The first data of such a flow is buffered, as earlier data may have been overtaken. It starts with the lowest
sequence number when enough segments have come, or enough time has passed.
"""

from __future__ import annotations

from typing import Any, Final

from msmqwire.capture.direction import FAR, START_WINDOW
from msmqwire.capture.tcp import ACKED_BYTES, START_NS
from msmqwire.columnar.compiled.arrays import Int64Rows, Int64s
from msmqwire.columnar.compiled.decorators import exported, inlined, jit
from msmqwire.columnar.compiled.flow_table import (
    ACKED,
    FIRST_SEQ,
    FRAME,
    GAP_DUE_NS,
    GAP_NS,
    IN_DOUBT,
    ISN,
    JOINED,
    KEY_FIELDS,
    LAST_NS,
    LOSS,
    MODE,
    MSMQ,
    NEXT_OPENING,
    NEXT_SEQ,
    NO_SEQ,
    NOT_LISTED,
    OPENING,
    OPENING_SEGMENTS,
    OUT_OF_ORDER,
    OUT_OF_ORDER_COST,
    OUT_OF_ORDER_FIRST,
    PREVIOUS_OPENING,
    SEG_SIZE,
    UNRECOGNISED,
    list_gap,
    unlist_gap,
)
from msmqwire.columnar.compiled.gaps import is_over_limit
from msmqwire.columnar.compiled.network import ACK, PORTS, SEQ, START, STOP
from msmqwire.columnar.compiled.out_of_order import (
    buffer_segment,
    clock_after,
    deliver_in_order,
    set_clock,
    set_gap_deadline,
)
from msmqwire.columnar.compiled.pending import follows_buffered
from msmqwire.columnar.compiled.rollback import go_back, remember
from msmqwire.columnar.compiled.scan_arrays import FlowArrays, ScanArrays
from msmqwire.columnar.compiled.state import (
    EVENT_FRAME,
    EVENT_NS,
    FAR_SEGMENTS,
    FIRST_OPENING,
    FRAME_CODE,
    LAST_OPENING,
    RECORD_NS,
    START_SEGMENTS,
)
from msmqwire.columnar.compiled.stop_codes import CONTINUE, GENERIC_RECORD
from msmqwire.dissection.finder_state import Why

_BEGINS_INSIDE: Final = int(Why.BEGINS_INSIDE)


@inlined
def distance(one: int, other: int) -> int:
    """Return how far one sequence number is beyond another."""
    return ((one - other + 0x80000000) & 0xFFFFFFFF) - 0x80000000


@jit
def mode_of(key: Any, tcp_ports: Any) -> int:
    """Return the mode in which a flow with this key starts."""
    return MSMQ if tcp_ports[key[PORTS] >> 16] or tcp_ports[key[PORTS] & 0xFFFF] else UNRECOGNISED


@exported
@jit
def list_opening(state: Int64s, flows: Int64Rows, number: int) -> None:
    """Append a flow to the list of those that are opening."""
    last = state[LAST_OPENING]
    flows[number, PREVIOUS_OPENING], flows[number, NEXT_OPENING] = last, -1
    if last >= 0:
        flows[last, NEXT_OPENING] = number
    else:
        state[FIRST_OPENING] = number
    state[LAST_OPENING] = number


@exported
@jit
def unlist_opening(state: Int64s, flows: Int64Rows, number: int) -> None:
    """Remove a flow from the list of those that are opening."""
    previous, following = flows[number, PREVIOUS_OPENING], flows[number, NEXT_OPENING]
    if previous >= 0:
        flows[previous, NEXT_OPENING] = following
    else:
        state[FIRST_OPENING] = following
    if following >= 0:
        flows[following, PREVIOUS_OPENING] = previous
    else:
        state[LAST_OPENING] = previous


@inlined
def is_start_acknowledged(acked: int, first: int) -> bool:
    """Whether what precedes the first data of a flow is acknowledged: `Direction.is_start_acknowledged`."""
    return acked >= 0 and distance(acked, first) >= 0 and distance(acked, first) < FAR


@jit
def may_be_probe(flow: Any, pending_segments: Any) -> bool:
    """Whether all that a flow has buffered is one byte: `Direction.may_be_probe`."""
    return flow[OUT_OF_ORDER] == 1 and pending_segments[flow[OUT_OF_ORDER_FIRST], SEG_SIZE] == 1


@jit
def start_flow(arrays: ScanArrays, flow_arrays: FlowArrays, number: int, tcp_ports: Any, now: int) -> int:
    """Start a flow with its lowest sequence number so far, all or nothing; return CONTINUE or a stop code."""
    state, header = arrays.state, arrays.header
    flow, key = flow_arrays.flows[number], flow_arrays.keys[number]
    key_0, key_1, key_2, key_3, key_4, key_5 = (
        header[0], header[1], header[2], header[3], header[4], header[5]
    )  # fmt: skip
    start, stop, event_ns, event_frame = header[START], header[STOP], state[EVENT_NS], state[EVENT_FRAME]
    for i in range(KEY_FIELDS):
        header[i] = key[i]
    header[START] = header[STOP] = 0
    first, since, buffered = flow[NEXT_SEQ], flow[GAP_NS], flow[OUT_OF_ORDER]
    flow[MODE] = mode_of(key, tcp_ports)
    if flow[MODE] == MSMQ:
        flow[LOSS], flow[IN_DOUBT] = _BEGINS_INSIDE, 1
    stop_code = deliver_in_order(arrays, flow, 0, now)
    header[0], header[1], header[2], header[3], header[4], header[5] = (
        key_0, key_1, key_2, key_3, key_4, key_5
    )  # fmt: skip
    header[START], header[STOP], state[EVENT_NS], state[EVENT_FRAME] = start, stop, event_ns, event_frame
    if stop_code >= 0:
        flow[MODE], flow[LOSS], flow[IN_DOUBT] = OPENING, 0, 0
        return stop_code
    flow[FIRST_SEQ] = first
    if flow[OUT_OF_ORDER]:
        if flow[OUT_OF_ORDER] == buffered:
            flow[GAP_NS] = since
            set_gap_deadline(state, flow, arrays.pending_segments)
        list_gap(state, flow_arrays, number)
    return CONTINUE


@jit
def start_due(arrays: ScanArrays, flow_arrays: FlowArrays, number: int, tcp_ports: Any, now: int) -> int:
    """Start the due flows of a connection: `Reassembler._expire_gaps`; return CONTINUE or a stop code."""
    state, flows = arrays.state, flow_arrays.flows
    for _ in range(2):
        first, other = number, number ^ 1
        if flows[first, MODE] != OPENING or (
            flows[other, MODE] == OPENING and flows[other, GAP_DUE_NS] < flows[first, GAP_DUE_NS]
        ):
            first, other = other, first
        if flows[first, MODE] != OPENING or flows[first, GAP_DUE_NS] > now:
            return CONTINUE
        if flows[other, OUT_OF_ORDER] and (
            flows[other, MODE] != OPENING or flows[other, GAP_DUE_NS] == flows[first, GAP_DUE_NS]
        ):
            return GENERIC_RECORD
        stop_code = start_flow(arrays, flow_arrays, first, tcp_ports, flows[first, GAP_DUE_NS])
        if stop_code >= 0:
            return stop_code
        unlist_opening(state, flows, first)
        if flows[first, OUT_OF_ORDER] and flows[first, GAP_DUE_NS] <= now:
            return GENERIC_RECORD
    return CONTINUE


@jit
def start_acknowledged(arrays: ScanArrays, flow_arrays: FlowArrays, number: int, tcp_ports: Any) -> int:
    """Start a flow that is opening if the current segment acknowledges what precedes it.

    Returns CONTINUE or a stop code.
    """
    state, header, flow = arrays.state, arrays.header, flow_arrays.flows[number]
    if not is_start_acknowledged(header[ACK], flow[NEXT_SEQ]):
        return CONTINUE
    if may_be_probe(flow, arrays.pending_segments):
        return GENERIC_RECORD
    now = clock_after(state, state[RECORD_NS])
    stop_code = start_flow(arrays, flow_arrays, number, tcp_ports, now)
    if stop_code >= 0:
        return stop_code
    unlist_opening(state, flow_arrays.flows, number)
    return GENERIC_RECORD if flow[OUT_OF_ORDER] else CONTINUE


@exported
@inlined
def any_opening_due(state: Int64s, flows: Int64Rows, now: int) -> bool:
    """Whether any flow starts at this time, however few segments it has."""
    return state[FIRST_OPENING] >= 0 and flows[state[FIRST_OPENING], GAP_DUE_NS] <= now


@jit
def start_all_due(arrays: ScanArrays, flow_arrays: FlowArrays, tcp_ports: Any, now: int) -> int:
    """Start the flows of all connections that are due; return CONTINUE or a stop code."""
    state, flows = arrays.state, flow_arrays.flows
    while any_opening_due(state, flows, now):
        stop_code = start_due(arrays, flow_arrays, state[FIRST_OPENING], tcp_ports, now)
        if stop_code >= 0:
            return stop_code
    return CONTINUE


@jit
def first_position(flow: Any, peer: Any, seq: int) -> int:
    """Return the sequence number from which on a flow is expected: `Direction.start_opening`."""
    start = seq
    if flow[FIRST_SEQ] != NO_SEQ:
        beyond = distance(seq, flow[FIRST_SEQ])
        if beyond > 1 and beyond < START_WINDOW:
            start = min(start, seq - beyond)
    if flow[ACKED] >= 0 and peer[ISN] >= 0:
        beyond = distance(seq, flow[ACKED])
        if beyond > 1 and beyond < START_WINDOW:
            start = min(start, seq - beyond)
    return start


@jit
def open_with_data(arrays: ScanArrays, flow_arrays: FlowArrays, number: int, tcp_ports: Any, now: int) -> int:
    """Buffer the next data of a flow that has not started, and start it if that is enough.

    All or nothing; returns CONTINUE or a stop code.
    """
    state, header, flows = arrays.state, arrays.header, flow_arrays.flows
    flow, rollback = flows[number], arrays.rollback[2]
    size, mode = header[STOP] - header[START], flow[MODE]
    remember(rollback, flow, state)
    if mode != OPENING:
        flow[NEXT_SEQ] = first_position(flow, flows[number ^ 1], header[SEQ])
        flow[MODE], flow[OPENING_SEGMENTS], flow[GAP_DUE_NS] = OPENING, 0, now + START_NS
    position = flow[NEXT_SEQ] + distance(header[SEQ], flow[NEXT_SEQ])
    starts = flow[OPENING_SEGMENTS] + 1 >= state[START_SEGMENTS] or is_start_acknowledged(
        flow[ACKED], min(flow[NEXT_SEQ], position)
    )
    if mode == OPENING and may_be_probe(flow, arrays.pending_segments):
        stop_code = GENERIC_RECORD
    elif starts and not follows_buffered(flow, arrays.pending_segments, position):
        stop_code = GENERIC_RECORD  # what is between others could not be taken back
    else:
        stop_code = buffer_segment(arrays, flow, header[START], size, position, now)
    if stop_code < 0 and (flow[OUT_OF_ORDER_COST] > ACKED_BYTES or is_over_limit(state)):
        stop_code = GENERIC_RECORD
    if stop_code < 0:
        flow[OPENING_SEGMENTS] += 1
        flow[NEXT_SEQ] = min(flow[NEXT_SEQ], position)
        if starts:
            stop_code = start_flow(arrays, flow_arrays, number, tcp_ports, now)
    if stop_code >= 0:
        go_back(rollback, flow, state)
        return stop_code
    if mode == OPENING and starts:
        unlist_opening(state, flows, number)
    elif mode != OPENING and not starts:
        if flow_arrays.next_gap[number] != NOT_LISTED:  # of a connection that had the number before
            unlist_gap(state, flow_arrays, number)
        list_opening(state, flows, number)
    return CONTINUE


@jit
def take_midstream(arrays: ScanArrays, flow_arrays: FlowArrays, number: int, tcp_ports: Any) -> int:
    """Take a segment with no flag but ACK of a flow that has not started; return CONTINUE or a stop code.

    What was due in its connection has been started.
    """
    state, header = arrays.state, arrays.header
    flow, peer = flow_arrays.flows[number], flow_arrays.flows[number ^ 1]
    time_ns, size, seq = state[RECORD_NS], header[STOP] - header[START], header[SEQ]
    now = clock_after(state, time_ns)
    if peer[OUT_OF_ORDER] and peer[MODE] != OPENING and now >= peer[GAP_DUE_NS]:
        return GENERIC_RECORD
    ahead = distance(seq, flow[NEXT_SEQ])
    if flow[MODE] == OPENING and not (ahead > -START_WINDOW and ahead < FAR):
        state[FAR_SEGMENTS] += 1
    elif flow[MODE] != OPENING and not size:
        if flow[FIRST_SEQ] == NO_SEQ:
            flow[FIRST_SEQ] = seq
        flow[MODE] = JOINED
    elif flow[MODE] != OPENING and size == 1 and flow[ACKED] >= 0 and distance(flow[ACKED], seq) == 1:
        flow[MODE] = JOINED  # a keep-alive probe
    elif size:
        stop_code = open_with_data(arrays, flow_arrays, number, tcp_ports, now)
        if stop_code >= 0:
            return stop_code
    peer[ACKED] = header[ACK]
    if time_ns:
        flow[LAST_NS] = time_ns
    flow[FRAME] = state[FRAME_CODE]
    set_clock(state, time_ns, now)
    return CONTINUE
