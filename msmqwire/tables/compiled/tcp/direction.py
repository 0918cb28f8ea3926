"""One direction of a connection, compiled: what `Direction` does with all but the simplest segments."""

from __future__ import annotations

from typing import Any

from msmqwire.capture.direction import FAR, SEGMENT_MAX, START_WINDOW
from msmqwire.capture.direction import FAR_RUN as FAR_RUN_MIN
from msmqwire.capture.ip import ACK as ACK_FLAG
from msmqwire.capture.ip import FIN, RST, SYN
from msmqwire.capture.tcp import (
    ACKED_BYTES,
    ACKED_NS,
    ACKED_SEGMENTS,
    BUFFERED_PER_FLOW_MAX,
    GAP_NS_MAX,
    SEGMENTS_PER_FLOW_MAX,
    START_NS,
)
from msmqwire.tables.compiled.decorators import inlined, jit
from msmqwire.tables.compiled.flow_table import (
    ACKED,
    ENDED,
    FAR_FROM,
    FAR_NEXT,
    FAR_RUN,
    FIN_SEQ,
    FIRST_SEQ,
    IS_FAST,
    IS_SEEN,
    IS_WAITING,
    ISN,
    NEXT_SEQ,
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
    TCP_STATE,
    UNKNOWN,
    WAS_RESET,
)
from msmqwire.tables.compiled.network import ACK, FLAGS, MISSING, SEQ, START, STOP
from msmqwire.tables.compiled.scan_arrays import FlowArrays, ScanArrays
from msmqwire.tables.compiled.state import (
    DEADLINE,
    FAR_SEGMENTS,
    FRAME_CODE,
    LOST_BYTES,
    NOW,
    RECORD_NS,
    REPEATED_BYTES,
    START_SEGMENTS,
)
from msmqwire.tables.compiled.tcp.clock import clock_of
from msmqwire.tables.compiled.tcp.events import (
    DATA,
    END,
    END_FIN,
    END_RST,
    GAP,
    GAP_ACKNOWLEDGED,
    GAP_CUT,
    GAP_END,
    GAP_JUMP,
    GAP_LIMIT,
    GAP_TIMEOUT,
    NO_REASON,
    add_event,
)
from msmqwire.tables.compiled.tcp.flow_lists import wait, wait_no_more
from msmqwire.tables.compiled.tcp.segment_list import (
    buffer_segment,
    end_of,
    may_be_probe,
    queue_segment,
    take_first,
)


@inlined
def distance(one: int, other: int) -> int:
    """Return how far one sequence number is beyond another."""
    return ((one - other + 0x80000000) & 0xFFFFFFFF) - 0x80000000


@jit
def set_isn(flow: Any, isn: int) -> None:
    """Start a flow after its initial sequence number, known from a SYN or the answer to one."""
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
def accepts_isn(flow: Any, isn: int) -> bool:
    """Whether a SYN with this sequence number can be the start of the bytes seen so far."""
    if flow[ISN] >= 0:
        return isn == flow[ISN]
    if flow[TCP_STATE] == OPENING:
        return 0 <= distance(flow[NEXT_SEQ], isn + 1) < START_WINDOW
    if flow[TCP_STATE] == UNKNOWN:
        return flow[ACKED] < 0 or 0 <= distance(flow[ACKED], isn + 1) < START_WINDOW
    return flow[FIRST_SEQ] != NO_SEQ and distance(flow[FIRST_SEQ], isn + 1) == 0


@jit
def is_left_by(flow: Any, peer: Any, header: Any) -> bool:
    """Whether a segment belongs to a new connection on the ports of this one: `Direction.is_left_by`."""
    seq, flags, size = header[SEQ], header[FLAGS], header[STOP] - header[START]
    if flags & RST:
        return False
    if flags & SYN and flags & ACK_FLAG:
        answers = peer[ISN] >= 0 and distance(header[ACK], peer[ISN]) == 1
        return not accepts_isn(flow, seq) and not (answers and flow[ISN] < 0)
    if flags & SYN:
        return flow[WAS_RESET] != 0 or not accepts_isn(flow, seq)
    if flow[WAS_RESET] and size:
        return not -FAR < distance(seq + size, flow[NEXT_SEQ]) <= 0
    return False


@jit
def is_gap_acknowledged(arrays: ScanArrays, flow: Any) -> bool:
    """Whether the receiver has acknowledged data beyond the first gap. There must be one."""
    if flow[ACKED] < 0:
        return False
    first = arrays.pending_segments[flow[OUT_OF_ORDER_FIRST]]
    return flow[NEXT_SEQ] + distance(flow[ACKED], flow[NEXT_SEQ]) >= first[SEG_POSITION]


@jit
def _is_start_acknowledged(arrays: ScanArrays, flow: Any) -> bool:
    ahead = -1 if flow[ACKED] < 0 else distance(flow[ACKED], flow[NEXT_SEQ])
    return 0 <= ahead < FAR and not (ahead == 1 and may_be_probe(arrays, flow))


@jit
def open_flow(flow: Any) -> None:
    """Start a flow, which is opening, with the lowest sequence number so far."""
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
def receive(arrays: ScanArrays, flow_arrays: FlowArrays, number: int, seq: int) -> None:
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
        skip_gap(arrays, flow_arrays, number, GAP_JUMP, ns, frame)
    add_event(state, flow_arrays, number, GAP, -1, GAP_JUMP, ns, frame)
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
            add_event(state, flow_arrays, number, DATA, segment[SEG_SIZE], NO_REASON, ns, frame)
        if lost:
            state[LOST_BYTES] += lost
            add_event(state, flow_arrays, number, GAP, lost, GAP_CUT, ns, frame)
    return any_was


@jit
def skip_gap(
    arrays: ScanArrays, flow_arrays: FlowArrays, number: int, reason: int, ns: int, frame: int
) -> None:
    """Give up the first gap and deliver what is buffered beyond it."""
    state, flow = arrays.state, flow_arrays.flows[number]
    lost = arrays.pending_segments[flow[OUT_OF_ORDER_FIRST], SEG_POSITION] - flow[NEXT_SEQ]
    if lost > 0:
        state[LOST_BYTES] += lost
        add_event(state, flow_arrays, number, GAP, lost, reason, ns, frame)
        flow[NEXT_SEQ] += lost
    _deliver(arrays, flow_arrays, number)


@jit
def end_flow(
    arrays: ScanArrays, flow_arrays: FlowArrays, number: int, reason: int, ns: int, frame: int
) -> None:
    """End a flow: `Direction.end`."""
    state, flow = arrays.state, flow_arrays.flows[number]
    if flow[TCP_STATE] == ENDED or not flow[IS_SEEN]:
        return
    started = flow[TCP_STATE] != UNKNOWN
    while flow[OUT_OF_ORDER]:
        skip_gap(arrays, flow_arrays, number, GAP_END, ns, frame)
    if flow[FIN_SEQ] != NO_SEQ and flow[FIN_SEQ] >= flow[NEXT_SEQ]:
        reason = END_FIN
        lost = flow[FIN_SEQ] - flow[NEXT_SEQ]
        if lost:
            state[LOST_BYTES] += lost
            add_event(state, flow_arrays, number, GAP, lost, GAP_END, ns, frame)
            flow[NEXT_SEQ] = flow[FIN_SEQ]
    elif started and flow[ACKED] >= 0 and 1 < distance(flow[ACKED], flow[NEXT_SEQ]) < FAR:
        add_event(state, flow_arrays, number, GAP, -1, GAP_END, ns, frame)
    add_event(state, flow_arrays, number, END, 0, reason, ns, frame)
    flow[WAS_RESET], flow[TCP_STATE], flow[IS_FAST] = reason == END_RST, ENDED, 0


@jit
def _over_limit(flow: Any) -> bool:
    return flow[OUT_OF_ORDER_COST] > BUFFERED_PER_FLOW_MAX or flow[OUT_OF_ORDER] > SEGMENTS_PER_FLOW_MAX


@jit
def _gap_reason(arrays: ScanArrays, flow: Any, now: int) -> int:
    """Return the reason to give up the first gap, or NO_REASON."""
    first = arrays.pending_segments[flow[OUT_OF_ORDER_FIRST]]
    waited = now - max(clock_of(first[SEG_NS]), flow[SINCE_NS])
    if _over_limit(flow):
        return GAP_LIMIT
    enough = (
        flow[OUT_OF_ORDER] > ACKED_SEGMENTS or flow[OUT_OF_ORDER_COST] > ACKED_BYTES or waited >= ACKED_NS
    )
    if enough and is_gap_acknowledged(arrays, flow):
        return GAP_ACKNOWLEDGED
    return GAP_TIMEOUT if waited >= GAP_NS_MAX else NO_REASON


@jit
def settle(arrays: ScanArrays, flow_arrays: FlowArrays, number: int, ns: int, frame: int, now: int) -> None:
    """Deliver what is in order, give up gaps that are due, and end the flow after its FIN."""
    state, flow = arrays.state, flow_arrays.flows[number]
    if flow[TCP_STATE] == OPENING:
        enough = flow[OPENING_SEGMENTS] >= state[START_SEGMENTS] or now - flow[SINCE_NS] >= START_NS
        if enough or _is_start_acknowledged(arrays, flow) or _over_limit(flow):
            open_flow(flow)
    if flow[TCP_STATE] == OPEN:
        if _deliver(arrays, flow_arrays, number):
            flow[SINCE_NS] = now
        while flow[OUT_OF_ORDER]:
            reason = _gap_reason(arrays, flow, now)
            if reason == NO_REASON:
                break
            skip_gap(arrays, flow_arrays, number, reason, ns, frame)
        if flow[FIN_SEQ] != NO_SEQ and flow[FIN_SEQ] <= flow[NEXT_SEQ] and not flow[OUT_OF_ORDER]:
            end_flow(arrays, flow_arrays, number, END_FIN, ns, frame)
        _set_fast(flow)
    account(arrays, flow_arrays, number)


@jit
def account(arrays: ScanArrays, flow_arrays: FlowArrays, number: int) -> None:
    """List a flow that begins to wait, or take it from the list."""
    state, flow = arrays.state, flow_arrays.flows[number]
    waiting = flow[OUT_OF_ORDER] > 0 or flow[TCP_STATE] == OPENING
    if waiting and not flow[IS_WAITING]:
        wait(state, flow_arrays.flows, number)
    elif flow[IS_WAITING] and not waiting:
        wait_no_more(state, flow_arrays.flows, number)
    if waiting:
        state[DEADLINE] = min(state[DEADLINE], due_at(arrays, flow))


@jit
def due_at(arrays: ScanArrays, flow: Any) -> int:
    """Return the time at which a waiting flow starts or gives up its first gap."""
    if flow[TCP_STATE] == OPENING:
        return flow[SINCE_NS] + START_NS
    first = arrays.pending_segments[flow[OUT_OF_ORDER_FIRST]]
    waits = ACKED_NS if is_gap_acknowledged(arrays, flow) else GAP_NS_MAX
    return max(clock_of(first[SEG_NS]), flow[SINCE_NS]) + waits
