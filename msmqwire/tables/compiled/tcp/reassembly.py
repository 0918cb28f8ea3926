"""TCP segments to events, compiled: what `Reassembler` and `Direction` do with all but the simplest segments.

A step, as a segment or a sweep, is done as a whole; what it brings are events in their order. There must be
room for them, and for the bytes of the segment, before it begins: see `segments`.
"""

from __future__ import annotations

from typing import Any, Final

from msmqwire.capture.direction import FAR, SEGMENT_MAX, START_WINDOW
from msmqwire.capture.direction import FAR_RUN as FAR_RUN_MIN
from msmqwire.capture.eviction import evicted_at_once
from msmqwire.capture.ip import ACK as ACK_FLAG
from msmqwire.capture.ip import FIN, RST, SYN
from msmqwire.capture.tcp import (
    ACKED_BYTES,
    ACKED_NS,
    ACKED_SEGMENTS,
    BUFFERED_PER_FLOW_MAX,
    BUFFERED_TOTAL_MAX,
    CLOCK_BACK_NS,
    GAP_NS_MAX,
    IDLE_NS_MAX,
    IDLE_SWEEPS,
    SEGMENTS_PER_FLOW_MAX,
    START_NS,
    SWEEP_NS,
    TIME_MAX,
)
from msmqwire.tables.compiled.decorators import exported, inlined, jit
from msmqwire.tables.compiled.flow_table import (
    ACKED,
    CHECK_NS,
    CHECK_WAIT,
    ENDED,
    FAR_FROM,
    FAR_NEXT,
    FAR_RUN,
    FIN_SEQ,
    FIRST_SEQ,
    FRAME,
    IN_ORDER,
    IS_FAST,
    IS_SEEN,
    IS_WAITING,
    ISN,
    LAST_NS,
    MIDSTREAM,
    NEXT_CONNECTION,
    NEXT_SEQ,
    NEXT_WAITING,
    NO_SEQ,
    OPEN,
    OPENING,
    OPENING_SEGMENTS,
    OUT_OF_ORDER,
    OUT_OF_ORDER_COST,
    OUT_OF_ORDER_FIRST,
    SEG_FRAME,
    SEG_LOST,
    SEG_NS,
    SEG_POSITION,
    SEG_SIZE,
    SINCE_NS,
    START_KIND,
    TCP_STATE,
    UNKNOWN,
    WAITING_FRAME,
    WAS_RESET,
    find,
)
from msmqwire.tables.compiled.network import ACK, FLAGS, MISSING, SEQ, START, STOP
from msmqwire.tables.compiled.packet import GAP_REASONS
from msmqwire.tables.compiled.pending import store_segment
from msmqwire.tables.compiled.scan_arrays import FlowArrays, ScanArrays
from msmqwire.tables.compiled.state import (
    BUFFERED,
    CONNECTIONS,
    CONNECTIONS_LIMIT,
    DEADLINE,
    EVENTS,
    EVICTED,
    FAR_SEGMENTS,
    FIRST_CONNECTION,
    FIRST_WAITING,
    FRAME_CODE,
    HASH_SEED,
    IDLE_AT,
    LATE_SEGMENTS,
    LOST_BYTES,
    NEVER,
    NOW,
    RECORD_NS,
    REPEATED_BYTES,
    START_SEGMENTS,
    STRAY_RESETS,
    SWEEP_AT,
)
from msmqwire.tables.compiled.tcp.eviction import choose_evicted
from msmqwire.tables.compiled.tcp.flow_lists import add_connection, drop_connection, wait, wait_no_more
from msmqwire.tables.compiled.tcp.segment_list import (
    buffer_segment,
    end_of,
    may_be_probe,
    queue_segment,
    take_first,
)

DATA, GAP, END, FORGOTTEN = range(4)
E_NUMBER, E_KIND, E_SIZE, E_REASON, E_NS, E_FRAME = range(6)
EVENT_FIELDS: Final = 6
"""An event, by index: the number of its flow; what it is; of a gap how many bytes are lost, -1 for an unknown
number, and the index of the reason in GAP_REASONS; of an end the index of the reason in END_REASONS; the time
and the frame that are said of it. The bytes of DATA are those of the first segment that is queued. After
FORGOTTEN nothing more comes of a connection, of which it has the even number."""

END_REASONS: Final = ("fin", "rst", "reused", "idle", "capture")
_FIN, _RST, _REUSED, _IDLE, _CAPTURE = range(5)
_NO_REASON: Final = -1
_ACKNOWLEDGED, _TIMEOUT, _LIMIT, _CUT, _JUMP, _END = (
    GAP_REASONS.index(reason) for reason in ("acknowledged", "timeout", "limit", "cut", "jump", "end")
)
NO_CLOCK: Final = -TIME_MAX
"""In place of a time that is unknown, or beyond any true one."""


@inlined
def distance(one: int, other: int) -> int:
    """Return how far one sequence number is beyond another."""
    return ((one - other + 0x80000000) & 0xFFFFFFFF) - 0x80000000


@jit
def clock_of(time_ns: int) -> int:
    """Return the time of a segment by which the clock goes."""
    return time_ns if -TIME_MAX < time_ns < TIME_MAX else NO_CLOCK


@jit
def next_multiple(time_ns: int, step_ns: int) -> int:
    """Return the first multiple of a step after a time."""
    return (time_ns // step_ns + 1) * step_ns


@inlined
def set_clock(state: Any, time_ns: int) -> None:
    """Set the clock to the time of a segment if it is the latest one, or far back."""
    if not state[NOW] - CLOCK_BACK_NS < time_ns < state[NOW]:
        state[NOW] = time_ns
        state[SWEEP_AT] = min(state[SWEEP_AT], next_multiple(time_ns, SWEEP_NS))


# --- one flow ----------------------------------------------------------------------------------------------


@jit
def _add_event(
    state: Any, flow_arrays: FlowArrays, number: int, kind: int, size: int, reason: int, ns: int, frame: int
) -> None:
    event = flow_arrays.events[state[EVENTS]]
    event[E_NUMBER], event[E_KIND], event[E_SIZE], event[E_REASON] = number, kind, size, reason
    event[E_NS], event[E_FRAME] = ns, frame
    state[EVENTS] += 1
    flow = flow_arrays.flows[number]
    if flow[START_KIND] == 0 and kind != FORGOTTEN:
        flow[START_KIND] = MIDSTREAM if flow[ISN] < 0 else IN_ORDER


@jit
def _set_isn(flow: Any, isn: int) -> None:
    flow[ISN] = isn
    if flow[TCP_STATE] == UNKNOWN:
        flow[NEXT_SEQ], flow[TCP_STATE] = (isn + 1) & 0xFFFFFFFF, OPEN
    elif flow[TCP_STATE] == OPENING:
        flow[NEXT_SEQ] += distance(isn + 1, flow[NEXT_SEQ])
        flow[TCP_STATE] = OPEN
    _set_fast(flow)


@jit
def _set_fast(flow: Any) -> None:
    simple = flow[IS_SEEN] and not flow[OUT_OF_ORDER] and flow[FIN_SEQ] == NO_SEQ
    flow[IS_FAST] = 1 if simple and flow[TCP_STATE] == OPEN else 0


@jit
def _accepts_isn(flow: Any, isn: int) -> bool:
    if flow[ISN] >= 0:
        return isn == flow[ISN]
    if flow[TCP_STATE] == OPENING:
        return 0 <= distance(flow[NEXT_SEQ], isn + 1) < START_WINDOW
    if flow[TCP_STATE] == UNKNOWN:
        return flow[ACKED] < 0 or 0 <= distance(flow[ACKED], isn + 1) < START_WINDOW
    return flow[FIRST_SEQ] != NO_SEQ and distance(flow[FIRST_SEQ], isn + 1) == 0


@jit
def _is_left_by(flow: Any, peer: Any, header: Any) -> bool:
    """Whether a segment belongs to a new connection on the ports of this one: `Direction.is_left_by`."""
    seq, flags, size = header[SEQ], header[FLAGS], header[STOP] - header[START]
    if flags & RST:
        return False
    if flags & SYN and flags & ACK_FLAG:
        answers = peer[ISN] >= 0 and distance(header[ACK], peer[ISN]) == 1
        return not _accepts_isn(flow, seq) and not (answers and flow[ISN] < 0)
    if flags & SYN:
        return flow[WAS_RESET] != 0 or not _accepts_isn(flow, seq)
    if flow[WAS_RESET] and size:
        return not -FAR < distance(seq + size, flow[NEXT_SEQ]) <= 0
    return False


@jit
def _is_gap_acknowledged(arrays: ScanArrays, flow: Any) -> bool:
    if flow[ACKED] < 0:
        return False
    first = arrays.pending_segments[flow[OUT_OF_ORDER_FIRST]]
    return flow[NEXT_SEQ] + distance(flow[ACKED], flow[NEXT_SEQ]) >= first[SEG_POSITION]


@jit
def _is_start_acknowledged(arrays: ScanArrays, flow: Any) -> bool:
    ahead = -1 if flow[ACKED] < 0 else distance(flow[ACKED], flow[NEXT_SEQ])
    return 0 <= ahead < FAR and not (ahead == 1 and may_be_probe(arrays, flow))


@jit
def _open(flow: Any) -> None:
    flow[TCP_STATE], flow[FIRST_SEQ] = OPEN, flow[NEXT_SEQ]


@jit
def _start_opening(flow: Any, peer: Any, seq: int, now: int) -> None:
    start = seq
    for i in range(2):
        candidate = flow[FIRST_SEQ] if i == 0 else flow[ACKED]
        is_known = flow[FIRST_SEQ] != NO_SEQ if i == 0 else flow[ACKED] >= 0 and peer[ISN] >= 0
        if is_known and 1 < distance(seq, candidate) < START_WINDOW:
            start = min(start, seq - distance(seq, candidate))
    flow[NEXT_SEQ], flow[TCP_STATE], flow[SINCE_NS] = start, OPENING, now


@jit
def _receive(arrays: ScanArrays, flow_arrays: FlowArrays, number: int, seq: int) -> None:
    """Buffer the current segment, whose data starts at ``seq``: `Direction.receive`."""
    state, header = arrays.state, arrays.header
    flow, peer, now = flow_arrays.flows[number], flow_arrays.flows[number ^ 1], state[NOW]
    captured, fin = header[STOP] - header[START], header[FLAGS] & FIN != 0
    size = captured + header[MISSING]
    if flow[TCP_STATE] == UNKNOWN:
        if not size and not fin:
            if flow[FIRST_SEQ] == NO_SEQ:
                flow[FIRST_SEQ] = seq
            return
        if size == 1 and not fin and flow[ACKED] >= 0 and distance(flow[ACKED], seq) == 1:
            return  # a keep-alive probe
        _start_opening(flow, peer, seq, now)
    ahead = distance(seq, flow[NEXT_SEQ])
    if flow[TCP_STATE] == OPENING:
        if not -START_WINDOW < ahead < FAR:
            state[FAR_SEGMENTS] += 1
            return
        flow[OPENING_SEGMENTS] += size > 0
        start = flow[NEXT_SEQ] + ahead
        if size > 1 and ahead == 1 and may_be_probe(arrays, flow):
            take_first(arrays, flow)
            flow[NEXT_SEQ] = start
        if size or fin:
            flow[NEXT_SEQ] = min(flow[NEXT_SEQ], start)
    else:
        if not -FAR < ahead < FAR and not _jumps(arrays, flow_arrays, number, seq, size):
            return
        start = flow[NEXT_SEQ] + distance(seq, flow[NEXT_SEQ])
    end = start + size
    if size and flow[FIN_SEQ] != NO_SEQ and end > flow[FIN_SEQ]:
        flow[FIN_SEQ] = NO_SEQ  # data beyond a FIN: one of the two is wrong, and the data is believed
    if fin and flow[FIN_SEQ] == NO_SEQ and end >= flow[NEXT_SEQ]:
        flow[FIN_SEQ] = end
    if not size:
        return
    if end <= flow[NEXT_SEQ]:
        state[REPEATED_BYTES] += size
        return
    first = header[START]
    if start < flow[NEXT_SEQ]:
        repeated = flow[NEXT_SEQ] - start
        state[REPEATED_BYTES] += repeated
        first, captured, start = first + min(repeated, captured), max(0, captured - repeated), flow[NEXT_SEQ]
    if not flow[OUT_OF_ORDER] and flow[TCP_STATE] == OPEN:
        flow[SINCE_NS] = now
    at = start
    while at < end:
        stop = min(end, at + SEGMENT_MAX)
        of_piece = min(max(0, captured - (at - start)), stop - at)
        state[REPEATED_BYTES] += (
            stop - at - buffer_segment(arrays, flow, first + at - start, of_piece, at, stop)
        )
        at = stop


@jit
def _jumps(arrays: ScanArrays, flow_arrays: FlowArrays, number: int, seq: int, size: int) -> bool:
    """Whether a far segment completes a run that proves that the stream jumped; if so, follow it."""
    state, flow = arrays.state, flow_arrays.flows[number]
    if not size:
        return False
    consecutive = seq == flow[FAR_NEXT] and flow[NEXT_SEQ] == flow[FAR_FROM]
    flow[FAR_RUN] = flow[FAR_RUN] + 1 if consecutive else 1
    flow[FAR_NEXT], flow[FAR_FROM] = (seq + size) & 0xFFFFFFFF, flow[NEXT_SEQ]
    if flow[FAR_RUN] < FAR_RUN_MIN:
        state[FAR_SEGMENTS] += 1
        return False
    ns, frame = state[RECORD_NS], state[FRAME_CODE]
    while flow[OUT_OF_ORDER]:
        _skip_gap(arrays, flow_arrays, number, _JUMP, ns, frame)
    _add_event(state, flow_arrays, number, GAP, -1, _JUMP, ns, frame)
    flow[NEXT_SEQ], flow[FIN_SEQ], flow[FAR_RUN] = seq, NO_SEQ, 0
    return True


@jit
def _deliver(arrays: ScanArrays, flow_arrays: FlowArrays, number: int) -> bool:
    """Queue the buffered segments that are next in order; return whether any were."""
    state, flow, any_was = arrays.state, flow_arrays.flows[number], False
    while flow[OUT_OF_ORDER]:
        segment = arrays.pending_segments[flow[OUT_OF_ORDER_FIRST]]
        if segment[SEG_POSITION] > flow[NEXT_SEQ]:
            break
        any_was = True
        flow[NEXT_SEQ] = end_of(segment)
        lost, ns, frame = segment[SEG_LOST], segment[SEG_NS], segment[SEG_FRAME]
        taken = take_first(arrays, flow)
        if segment[SEG_SIZE]:
            queue_segment(arrays, flow, taken)
            _add_event(state, flow_arrays, number, DATA, segment[SEG_SIZE], _NO_REASON, ns, frame)
        if lost:
            state[LOST_BYTES] += lost
            _add_event(state, flow_arrays, number, GAP, lost, _CUT, ns, frame)
    return any_was


@jit
def _skip_gap(
    arrays: ScanArrays, flow_arrays: FlowArrays, number: int, reason: int, ns: int, frame: int
) -> None:
    """Give up the first gap and deliver what is buffered beyond it."""
    state, flow = arrays.state, flow_arrays.flows[number]
    lost = arrays.pending_segments[flow[OUT_OF_ORDER_FIRST], SEG_POSITION] - flow[NEXT_SEQ]
    if lost > 0:
        state[LOST_BYTES] += lost
        _add_event(state, flow_arrays, number, GAP, lost, reason, ns, frame)
        flow[NEXT_SEQ] += lost
    _deliver(arrays, flow_arrays, number)


@jit
def _end(arrays: ScanArrays, flow_arrays: FlowArrays, number: int, reason: int, ns: int, frame: int) -> None:
    """End a flow: `Direction.end`."""
    state, flow = arrays.state, flow_arrays.flows[number]
    if flow[TCP_STATE] == ENDED or not flow[IS_SEEN]:
        return
    started = flow[TCP_STATE] != UNKNOWN
    while flow[OUT_OF_ORDER]:
        _skip_gap(arrays, flow_arrays, number, _END, ns, frame)
    if flow[FIN_SEQ] != NO_SEQ and flow[FIN_SEQ] >= flow[NEXT_SEQ]:
        reason = _FIN
        lost = flow[FIN_SEQ] - flow[NEXT_SEQ]
        if lost:
            state[LOST_BYTES] += lost
            _add_event(state, flow_arrays, number, GAP, lost, _END, ns, frame)
            flow[NEXT_SEQ] = flow[FIN_SEQ]
    elif started and flow[ACKED] >= 0 and 1 < distance(flow[ACKED], flow[NEXT_SEQ]) < FAR:
        _add_event(state, flow_arrays, number, GAP, -1, _END, ns, frame)
    _add_event(state, flow_arrays, number, END, 0, reason, ns, frame)
    flow[WAS_RESET], flow[TCP_STATE], flow[IS_FAST] = reason == _RST, ENDED, 0


@jit
def _over_limit(flow: Any) -> bool:
    return flow[OUT_OF_ORDER_COST] > BUFFERED_PER_FLOW_MAX or flow[OUT_OF_ORDER] > SEGMENTS_PER_FLOW_MAX


@jit
def _gap_reason(arrays: ScanArrays, flow: Any, now: int) -> int:
    """Return the reason to give up the first gap, or _NO_REASON."""
    first = arrays.pending_segments[flow[OUT_OF_ORDER_FIRST]]
    waited = now - max(clock_of(first[SEG_NS]), flow[SINCE_NS])
    if _over_limit(flow):
        return _LIMIT
    enough = (
        flow[OUT_OF_ORDER] > ACKED_SEGMENTS or flow[OUT_OF_ORDER_COST] > ACKED_BYTES or waited >= ACKED_NS
    )
    if enough and _is_gap_acknowledged(arrays, flow):
        return _ACKNOWLEDGED
    return _TIMEOUT if waited >= GAP_NS_MAX else _NO_REASON


@jit
def _settle(arrays: ScanArrays, flow_arrays: FlowArrays, number: int, ns: int, frame: int, now: int) -> None:
    """Deliver what is in order, give up gaps that are due, and end the flow after its FIN."""
    state, flow = arrays.state, flow_arrays.flows[number]
    if flow[TCP_STATE] == OPENING:
        enough = flow[OPENING_SEGMENTS] >= state[START_SEGMENTS] or now - flow[SINCE_NS] >= START_NS
        if enough or _is_start_acknowledged(arrays, flow) or _over_limit(flow):
            _open(flow)
    if flow[TCP_STATE] == OPEN:
        if _deliver(arrays, flow_arrays, number):
            flow[SINCE_NS] = now
        while flow[OUT_OF_ORDER]:
            reason = _gap_reason(arrays, flow, now)
            if reason == _NO_REASON:
                break
            _skip_gap(arrays, flow_arrays, number, reason, ns, frame)
        if flow[FIN_SEQ] != NO_SEQ and flow[FIN_SEQ] <= flow[NEXT_SEQ] and not flow[OUT_OF_ORDER]:
            _end(arrays, flow_arrays, number, _FIN, ns, frame)
        _set_fast(flow)
    _account(arrays, flow_arrays, number)


@jit
def _account(arrays: ScanArrays, flow_arrays: FlowArrays, number: int) -> None:
    """List a flow that begins to wait, or take it from the list."""
    state, flow = arrays.state, flow_arrays.flows[number]
    waiting = flow[OUT_OF_ORDER] > 0 or flow[TCP_STATE] == OPENING
    if waiting and not flow[IS_WAITING]:
        wait(state, flow_arrays.flows, number)
    elif flow[IS_WAITING] and not waiting:
        wait_no_more(state, flow_arrays.flows, number)
    if waiting:
        state[DEADLINE] = min(state[DEADLINE], _due(arrays, flow))


@jit
def _due(arrays: ScanArrays, flow: Any) -> int:
    """Return the time at which a waiting flow starts or gives up its first gap."""
    if flow[TCP_STATE] == OPENING:
        return flow[SINCE_NS] + START_NS
    first = arrays.pending_segments[flow[OUT_OF_ORDER_FIRST]]
    waits = ACKED_NS if _is_gap_acknowledged(arrays, flow) else GAP_NS_MAX
    return max(clock_of(first[SEG_NS]), flow[SINCE_NS]) + waits


# --- connections -------------------------------------------------------------------------------------------


@jit
def _expire(arrays: ScanArrays, flow_arrays: FlowArrays, first: int) -> None:
    """Start the flows and give up the gaps of a connection that are due: `Reassembler._expire_gaps`."""
    flows = flow_arrays.flows
    while True:
        due, chosen = NEVER, -1
        for number in range(first, first + 2):
            if flows[number, IS_WAITING] and _due(arrays, flows[number]) < due:
                due, chosen = _due(arrays, flows[number]), number
        if chosen < 0 or due > arrays.state[NOW]:
            return
        flow = flows[chosen]
        _settle(arrays, flow_arrays, chosen, flow[LAST_NS], flow[FRAME], due)


@jit
def _expire_all(arrays: ScanArrays, flow_arrays: FlowArrays) -> None:
    """Apply the timeouts of all flows that wait: `Reassembler._expire_all_gaps`."""
    state, flows, chosen = arrays.state, flow_arrays.flows, flow_arrays.chosen
    if state[NOW] < state[DEADLINE]:
        return
    state[DEADLINE] = NEVER
    count, number = 0, state[FIRST_WAITING]
    while number >= 0:
        due, other = _due(arrays, flows[number]), number ^ 1
        is_later = False
        if flows[other, IS_WAITING]:
            due = min(due, _due(arrays, flows[other]))
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
                state[DEADLINE] = min(state[DEADLINE], _due(arrays, flows[side]))


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
            _end(arrays, flow_arrays, number, reason, at, of)
            _account(arrays, flow_arrays, number)
    _add_event(state, flow_arrays, first, FORGOTTEN, 0, _NO_REASON, 0, 0)


@jit
def _connect(arrays: ScanArrays, flow_arrays: FlowArrays, tcp_ports: Any) -> int:
    """Add the connection of the current segment; return the number of its flow."""
    state, chosen = arrays.state, flow_arrays.chosen
    if state[CONNECTIONS] >= state[CONNECTIONS_LIMIT]:
        count = choose_evicted(
            state, flow_arrays.flows, chosen, max(1, state[CONNECTIONS_LIMIT] // _EVICTED_SHARE)
        )
        for i in range(count):
            _forget(arrays, flow_arrays, chosen[i], _IDLE, 0, -1)
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
        _end(arrays, flow_arrays, number ^ side, _RST, state[RECORD_NS], state[FRAME_CODE])
        _account(arrays, flow_arrays, number ^ side)


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
        _forget(arrays, flow_arrays, chosen[i], _IDLE, 0, -1)


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
    _add_event(state, flow_arrays, number, DATA, size, _NO_REASON, ns, frame)
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
            _forget(arrays, flow_arrays, first, _IDLE, 0, -1)
            number = -1
        elif _is_left_by(flows[number], flows[number ^ 1], header):
            _forget(arrays, flow_arrays, first, _REUSED, ns, frame)
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
            _settle(arrays, flow_arrays, number ^ 1, ns, frame, state[NOW])
    if flags & RST:
        _reset(arrays, flow_arrays, number)
        return
    if flags & SYN:
        if flow[ISN] < 0 and flow[TCP_STATE] != ENDED and _accepts_isn(flow, seq):
            _set_isn(flow, seq)
        if flags & ACK_FLAG and peer[ISN] < 0 and peer[TCP_STATE] in (UNKNOWN, OPENING):
            origin = (header[ACK] - 1) & 0xFFFFFFFF
            if _accepts_isn(peer, origin):
                _set_isn(peer, origin)
        seq = (seq + 1) & 0xFFFFFFFF
    if flow[TCP_STATE] == ENDED:
        size = header[STOP] - header[START]
        state[LATE_SEGMENTS] += size > 0 and distance(seq + size, flow[NEXT_SEQ]) > 0
    else:
        _receive(arrays, flow_arrays, number, seq)
    _settle(arrays, flow_arrays, number, ns, frame, state[NOW])
    _settle(arrays, flow_arrays, number ^ 1, ns, frame, state[NOW])
    while state[BUFFERED] > BUFFERED_TOTAL_MAX:
        oldest = state[FIRST_WAITING]
        if flows[oldest, TCP_STATE] == OPENING:
            _open(flows[oldest])
        if flows[oldest, OUT_OF_ORDER]:
            _skip_gap(arrays, flow_arrays, oldest, _LIMIT, ns, frame)
        _settle(arrays, flow_arrays, oldest, ns, frame, state[NOW])


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
        _forget(arrays, flow_arrays, state[FIRST_CONNECTION], _CAPTURE, 0, -1)


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
            _open(flow)
        _settle(arrays, flow_arrays, number, ns, frame, state[NOW])
        while flow[OUT_OF_ORDER] and successor_ns:
            if arrays.pending_segments[flow[OUT_OF_ORDER_FIRST], SEG_NS] >= successor_ns:
                break
            reason = _ACKNOWLEDGED if _is_gap_acknowledged(arrays, flow) else _LIMIT
            _skip_gap(arrays, flow_arrays, number, reason, ns, frame)
        _settle(arrays, flow_arrays, number, ns, frame, state[NOW])
