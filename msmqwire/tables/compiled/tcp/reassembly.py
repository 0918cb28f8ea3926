"""Connections of TCP, compiled: what `Reassembler` does but for the simplest segments, and without any."""

from __future__ import annotations

from typing import Any, Final

from msmqwire.capture.direction import FAR
from msmqwire.capture.eviction import evicted_at_once
from msmqwire.capture.ip import ACK as ACK_FLAG
from msmqwire.capture.ip import RST, SYN
from msmqwire.capture.tcp import (
    BUFFERED_TOTAL_MAX,
    IDLE_NS_MAX,
    IDLE_SWEEPS,
    SWEEP_NS,
    TIME_MAX,
)
from msmqwire.tables.compiled.decorators import exported, jit
from msmqwire.tables.compiled.flow_table import (
    ACKED,
    CHECK_NS,
    CHECK_WAIT,
    ENDED,
    FRAME,
    IS_SEEN,
    IS_WAITING,
    ISN,
    LAST_NS,
    NEXT_CONNECTION,
    NEXT_SEQ,
    NEXT_WAITING,
    OPEN,
    OPENING,
    OUT_OF_ORDER,
    OUT_OF_ORDER_FIRST,
    SEG_NS,
    TCP_STATE,
    UNKNOWN,
    WAITING_FRAME,
    find,
)
from msmqwire.tables.compiled.network import ACK, FLAGS, SEQ, START, STOP
from msmqwire.tables.compiled.pending import store_segment
from msmqwire.tables.compiled.scan_arrays import FlowArrays, ScanArrays
from msmqwire.tables.compiled.state import (
    BUFFERED,
    CONNECTIONS,
    CONNECTIONS_LIMIT,
    DEADLINE,
    EVICTED,
    FIRST_CONNECTION,
    FIRST_WAITING,
    FRAME_CODE,
    HASH_SEED,
    IDLE_AT,
    LATE_SEGMENTS,
    NEVER,
    NOW,
    RECORD_NS,
    STRAY_RESETS,
    SWEEP_AT,
)
from msmqwire.tables.compiled.tcp.clock import NO_CLOCK, clock_of, next_multiple, set_clock
from msmqwire.tables.compiled.tcp.direction import (
    accepts_isn,
    account,
    distance,
    due_at,
    end_flow,
    is_gap_acknowledged,
    is_left_by,
    open_flow,
    receive,
    set_isn,
    settle,
    skip_gap,
)
from msmqwire.tables.compiled.tcp.events import (
    DATA,
    END_CAPTURE,
    END_IDLE,
    END_REUSED,
    END_RST,
    FORGOTTEN,
    GAP_ACKNOWLEDGED,
    GAP_LIMIT,
    NO_REASON,
    add_event,
)
from msmqwire.tables.compiled.tcp.eviction import choose_evicted
from msmqwire.tables.compiled.tcp.flow_lists import add_connection, drop_connection
from msmqwire.tables.compiled.tcp.segment_list import (
    queue_segment,
)


@jit
def _expire(arrays: ScanArrays, flow_arrays: FlowArrays, first: int) -> None:
    """Start the flows and give up the gaps of a connection that are due: `Reassembler._expire_gaps`."""
    flows = flow_arrays.flows
    while True:
        due, chosen = NEVER, -1
        for number in range(first, first + 2):
            if flows[number, IS_WAITING] and due_at(arrays, flows[number]) < due:
                due, chosen = due_at(arrays, flows[number]), number
        if chosen < 0 or due > arrays.state[NOW]:
            return
        flow = flows[chosen]
        settle(arrays, flow_arrays, chosen, flow[LAST_NS], flow[FRAME], due)


@jit
def _expire_all(arrays: ScanArrays, flow_arrays: FlowArrays) -> None:
    """Apply the timeouts of all flows that wait: `Reassembler._expire_all_gaps`."""
    state, flows, chosen = arrays.state, flow_arrays.flows, flow_arrays.chosen
    if state[NOW] < state[DEADLINE]:
        return
    state[DEADLINE] = NEVER
    count, number = 0, state[FIRST_WAITING]
    while number >= 0:
        due, other = due_at(arrays, flows[number]), number ^ 1
        is_later = False
        if flows[other, IS_WAITING]:
            due = min(due, due_at(arrays, flows[other]))
            # Of two since the same frame the one that stands first in the list.
            is_later = _stands_before(flows, other, number)
        if due > state[NOW]:
            state[DEADLINE] = min(state[DEADLINE], due)
        elif not is_later:
            chosen[count] = number & -2
            count += 1
        number = flows[number, NEXT_WAITING]
    for i in range(count):
        _expire(arrays, flow_arrays, chosen[i])
        for side in range(chosen[i], chosen[i] + 2):
            if flows[side, IS_WAITING]:
                state[DEADLINE] = min(state[DEADLINE], due_at(arrays, flows[side]))


@jit
def _stands_before(flows: Any, one: int, other: int) -> bool:
    """Whether a flow that waits is listed before another."""
    if flows[one, WAITING_FRAME] != flows[other, WAITING_FRAME]:
        return bool(flows[one, WAITING_FRAME] < flows[other, WAITING_FRAME])
    number = flows[one, NEXT_WAITING]
    while number >= 0 and flows[number, WAITING_FRAME] == flows[one, WAITING_FRAME]:
        if number == other:
            return True
        number = flows[number, NEXT_WAITING]
    return False


@jit
def _last_ns(flows: Any, first: int) -> int:
    """Return when the last segment of a connection was captured."""
    return max(flows[first, LAST_NS], flows[first + 1, LAST_NS])


@jit
def _forget(
    arrays: ScanArrays, flow_arrays: FlowArrays, first: int, reason: int, ns: int, frame: int
) -> None:
    """End both flows of a connection, and forget it; each with its last segment if the frame is below 0."""
    state, flows = arrays.state, flow_arrays.flows
    drop_connection(state, flow_arrays, first)
    for number in range(first, first + 2):
        flow = flows[number]
        if flow[IS_SEEN]:
            at, of = (flow[LAST_NS], flow[FRAME]) if frame < 0 else (ns, frame)
            end_flow(arrays, flow_arrays, number, reason, at, of)
            account(arrays, flow_arrays, number)
    add_event(state, flow_arrays, first, FORGOTTEN, 0, NO_REASON, 0, 0)


@jit
def _connect(arrays: ScanArrays, flow_arrays: FlowArrays, tcp_ports: Any) -> int:
    """Add the connection of the current segment; return the number of its flow."""
    state, chosen = arrays.state, flow_arrays.chosen
    if state[CONNECTIONS] >= state[CONNECTIONS_LIMIT]:
        count = choose_evicted(
            state, flow_arrays.flows, chosen, max(1, state[CONNECTIONS_LIMIT] // _EVICTED_SHARE)
        )
        for i in range(count):
            _forget(arrays, flow_arrays, chosen[i], END_IDLE, 0, -1)
            state[EVICTED] += 1
    return add_connection(state, flow_arrays, arrays.header, tcp_ports)


_EVICTED_SHARE: Final = 1024 // evicted_at_once(1024)


@jit
def _reset(arrays: ScanArrays, flow_arrays: FlowArrays, number: int) -> None:
    state, flow = arrays.state, flow_arrays.flows[number]
    if flow[TCP_STATE] == OPEN and not 0 <= distance(arrays.header[SEQ], flow[NEXT_SEQ]) < FAR:
        state[STRAY_RESETS] += 1
        return
    for side in range(2):
        end_flow(arrays, flow_arrays, number ^ side, END_RST, state[RECORD_NS], state[FRAME_CODE])
        account(arrays, flow_arrays, number ^ side)


@exported
@jit
def sweep(arrays: ScanArrays, flow_arrays: FlowArrays, time_ns: int) -> None:
    """Apply all timeouts: of openings, gaps and idle connections: `Reassembler._sweep`."""
    state, flows, chosen = arrays.state, flow_arrays.flows, flow_arrays.chosen
    state[NOW], state[SWEEP_AT] = time_ns, next_multiple(time_ns, SWEEP_NS)
    _expire_all(arrays, flow_arrays)
    if time_ns < state[IDLE_AT]:
        return
    state[IDLE_AT] = next_multiple(time_ns, IDLE_NS_MAX // IDLE_SWEEPS)
    count, number = 0, state[FIRST_CONNECTION]
    while number >= 0:
        flow, last = flows[number], _last_ns(flows, number)
        while flow[CHECK_NS] <= time_ns:
            if last <= 0:
                flow[CHECK_NS], flow[CHECK_WAIT] = (
                    time_ns + flow[CHECK_WAIT],
                    2 * min(flow[CHECK_WAIT], TIME_MAX // 2),
                )
            elif time_ns - last >= IDLE_NS_MAX:
                chosen[count] = number
                count += 1
                break
            else:
                flow[CHECK_NS], flow[CHECK_WAIT] = last + IDLE_NS_MAX, IDLE_NS_MAX
        number = flow[NEXT_CONNECTION]
    for i in range(count):
        _forget(arrays, flow_arrays, chosen[i], END_IDLE, 0, -1)


@jit
def receive_next(arrays: ScanArrays, flow_arrays: FlowArrays, number: int) -> None:
    """Process the current segment, the next of a flow whose connection does not wait: `Reassembler.feed`."""
    state, header, flow = arrays.state, arrays.header, flow_arrays.flows[number]
    size, ns, frame = header[STOP] - header[START], state[RECORD_NS], state[FRAME_CODE]
    segment = store_segment(
        state,
        arrays.pending_segments,
        arrays.pending_bytes,
        arrays.memory,
        header[START],
        size,
        flow[NEXT_SEQ],
    )
    queue_segment(arrays, flow, segment)
    add_event(state, flow_arrays, number, DATA, size, NO_REASON, ns, frame)
    flow[NEXT_SEQ] += size
    flow_arrays.flows[number ^ 1, ACKED] = header[ACK]
    flow[FRAME] = frame
    if ns:
        set_clock(state, ns)
        flow[LAST_NS] = ns


@jit
def receive_segment(arrays: ScanArrays, flow_arrays: FlowArrays, tcp_ports: Any) -> None:
    """Process the current segment by all the rules: `Reassembler._segment`."""
    state, header, flows = arrays.state, arrays.header, flow_arrays.flows
    ns, frame, flags, seq = state[RECORD_NS], state[FRAME_CODE], header[FLAGS], header[SEQ]
    time_ns = clock_of(ns)
    has_time = time_ns not in (0, NO_CLOCK)
    if has_time:
        set_clock(state, time_ns)
    number = find(flow_arrays.table, flow_arrays.keys, header, state[HASH_SEED])
    if number >= 0:
        first = number & -2
        _expire(arrays, flow_arrays, first)
        last = _last_ns(flows, first)
        if last > 0 and time_ns - last >= IDLE_NS_MAX:
            _forget(arrays, flow_arrays, first, END_IDLE, 0, -1)
            number = -1
        elif is_left_by(flows[number], flows[number ^ 1], header):
            _forget(arrays, flow_arrays, first, END_REUSED, ns, frame)
            number = -1
    if number < 0:
        number = _connect(arrays, flow_arrays, tcp_ports)
    flow, peer = flows[number], flows[number ^ 1]
    flow[IS_SEEN], flow[FRAME] = 1, frame
    if has_time:
        flow[LAST_NS] = time_ns
    if flags & ACK_FLAG:
        peer[ACKED] = header[ACK]
        if peer[TCP_STATE] == OPENING:
            settle(arrays, flow_arrays, number ^ 1, ns, frame, state[NOW])
    if flags & RST:
        _reset(arrays, flow_arrays, number)
        return
    if flags & SYN:
        if flow[ISN] < 0 and flow[TCP_STATE] != ENDED and accepts_isn(flow, seq):
            set_isn(flow, seq)
        if flags & ACK_FLAG and peer[ISN] < 0 and peer[TCP_STATE] in (UNKNOWN, OPENING):
            origin = (header[ACK] - 1) & 0xFFFFFFFF
            if accepts_isn(peer, origin):
                set_isn(peer, origin)
        seq = (seq + 1) & 0xFFFFFFFF
    if flow[TCP_STATE] == ENDED:
        size = header[STOP] - header[START]
        state[LATE_SEGMENTS] += size > 0 and distance(seq + size, flow[NEXT_SEQ]) > 0
    else:
        receive(arrays, flow_arrays, number, seq)
    settle(arrays, flow_arrays, number, ns, frame, state[NOW])
    settle(arrays, flow_arrays, number ^ 1, ns, frame, state[NOW])
    while state[BUFFERED] > BUFFERED_TOTAL_MAX:
        oldest = state[FIRST_WAITING]
        if flows[oldest, TCP_STATE] == OPENING:
            open_flow(flows[oldest])
        if flows[oldest, OUT_OF_ORDER]:
            skip_gap(arrays, flow_arrays, oldest, GAP_LIMIT, ns, frame)
        settle(arrays, flow_arrays, oldest, ns, frame, state[NOW])


# --- without a segment -------------------------------------------------------------------------------------


@exported
@jit
def expire_at_end(arrays: ScanArrays, flow_arrays: FlowArrays, time_ns: int) -> None:
    """Give up the gaps that are due when the capture ends, at this time or that of the last segment."""
    state, flows = arrays.state, flow_arrays.flows
    now, number = max(state[NOW], time_ns), state[FIRST_CONNECTION]
    while number >= 0:
        now = max(now, _last_ns(flows, number))
        number = flows[number, NEXT_CONNECTION]
    state[NOW] = now
    _expire_all(arrays, flow_arrays)


@exported
@jit
def end_all(arrays: ScanArrays, flow_arrays: FlowArrays) -> None:
    """End every connection with the capture, in their order."""
    state = arrays.state
    while state[FIRST_CONNECTION] >= 0:
        _forget(arrays, flow_arrays, state[FIRST_CONNECTION], END_CAPTURE, 0, -1)


@exported
@jit
def pause(arrays: ScanArrays, flow_arrays: FlowArrays, successor_ns: int) -> None:
    """Settle what only this reader can: `Reassembler.pause`."""
    state, flows, chosen = arrays.state, flow_arrays.flows, flow_arrays.chosen
    count, number = 0, state[FIRST_WAITING]
    while number >= 0:
        chosen[count] = number
        count += 1
        number = flows[number, NEXT_WAITING]
    for i in range(count):
        number = chosen[i]
        flow = flows[number]
        ns, frame = flow[LAST_NS], flow[FRAME]
        if flow[TCP_STATE] == OPENING:
            open_flow(flow)
        settle(arrays, flow_arrays, number, ns, frame, state[NOW])
        while flow[OUT_OF_ORDER] and successor_ns:
            if arrays.pending_segments[flow[OUT_OF_ORDER_FIRST], SEG_NS] >= successor_ns:
                break
            reason = GAP_ACKNOWLEDGED if is_gap_acknowledged(arrays, flow) else GAP_LIMIT
            skip_gap(arrays, flow_arrays, number, reason, ns, frame)
        settle(arrays, flow_arrays, number, ns, frame, state[NOW])
