"""TCP segments of flows that the scan follows, compiled: from their SYN to their FIN."""

from __future__ import annotations

from typing import Any, Final

from msmqwire.capture.direction import FAR, START_WINDOW
from msmqwire.capture.ip import ACK as ACK_FLAG
from msmqwire.capture.ip import FIN, RST, SYN
from msmqwire.capture.tcp import CLOCK_BACK_NS, IDLE_NS_MAX, SWEEP_NS
from msmqwire.columnar.compiled.arrays import Bools
from msmqwire.columnar.compiled.breaks import end_packets
from msmqwire.columnar.compiled.decorators import exported, inlined, jit
from msmqwire.columnar.compiled.delivery import deliver
from msmqwire.columnar.compiled.flow_table import (
    ACKED,
    ENDED,
    FIRST_SEQ,
    FLOW_FIELDS,
    FRAME,
    IN_DOUBT,
    IS_REGISTERED,
    ISN,
    JOINED,
    LAST_NS,
    MODE,
    MSMQ,
    NEXT_SEQ,
    NO_SEQ,
    OPENING,
    OUT_OF_ORDER,
    OUT_OF_ORDER_FRAME,
    PACKET_BYTES,
    STREAM,
    TRACKED,
    UNRECOGNISED,
    UNSEEN,
    WAS_RESET,
    find,
    insert,
    list_gap,
    swap_sides,
)
from msmqwire.columnar.compiled.gaps import any_gap_due, expire_all_gaps, expire_gaps, settle_gaps
from msmqwire.columnar.compiled.midstream import (
    any_opening_due,
    distance,
    mode_of,
    start_acknowledged,
    start_all_due,
    start_due,
    take_midstream,
)
from msmqwire.columnar.compiled.network import (
    ACK,
    DST_HIGH,
    DST_LOW,
    FLAGS,
    IS_IPV6,
    PORTS,
    SEQ,
    SRC_HIGH,
    SRC_LOW,
    START,
    STOP,
)
from msmqwire.columnar.compiled.out_of_order import (
    clock_after,
    ignore_far_segment,
    is_far,
    set_clock,
    take_out_of_order,
)
from msmqwire.columnar.compiled.scan_arrays import FlowArrays, ScanArrays
from msmqwire.columnar.compiled.state import (
    CONFLICTING_BYTES,
    CONNECTIONS,
    CONNECTIONS_LIMIT,
    DEADLINE,
    FIRST_OPENING,
    FRAME_CODE,
    FREE_NUMBERS,
    HASH_SEED,
    IDLE_AT,
    IS_TAKEN,
    NEW_CONNECTIONS,
    NOW,
    RECORD_NS,
    REPEATED_BYTES,
    STREAMS,
    SWEEP_AT,
    TAKEN_ACKED,
    TAKEN_CONFLICTS,
    WAITING,
)
from msmqwire.columnar.compiled.stop_codes import CONTINUE, GENERIC_RECORD

_CONTROL: Final = FIN | SYN | RST | ACK_FLAG

SEGMENT_MAX: Final = 1 << 20
"""Bytes of payload of the largest segment that the scan takes: it needs room for the rows of all its packets.
Segmentation offload makes segments of up to 512 KiB."""


@jit
def describe_connection(state: Any, flow_arrays: FlowArrays, number: int, header: Any) -> None:
    """Describe a connection of which nothing has been seen; the source of the header has the even number."""
    src_port, dst_port = header[PORTS] >> 16, header[PORTS] & 0xFFFF
    for side in range(2):
        flow, key = flow_arrays.flows[number + side], flow_arrays.keys[number + side]
        for i in range(FLOW_FIELDS):
            flow[i] = 0
        flow[MODE], flow[ACKED], flow[ISN], flow[FIRST_SEQ] = UNSEEN, -1, -1, NO_SEQ
        flow[STREAM] = state[STREAMS]
        key[SRC_HIGH if side == 0 else DST_HIGH] = header[SRC_HIGH]
        key[SRC_LOW if side == 0 else DST_LOW] = header[SRC_LOW]
        key[DST_HIGH if side == 0 else SRC_HIGH] = header[DST_HIGH]
        key[DST_LOW if side == 0 else SRC_LOW] = header[DST_LOW]
        key[PORTS] = src_port << 16 | dst_port if side == 0 else dst_port << 16 | src_port
        key[IS_IPV6] = header[IS_IPV6]


@jit
def begin_connection(arrays: ScanArrays, flow_arrays: FlowArrays, tcp_ports: Any) -> int:
    """Take the first segment of an unknown connection; return CONTINUE or a stop code."""
    state, header, flows = arrays.state, arrays.header, flow_arrays.flows
    control = header[FLAGS] & _CONTROL
    is_reset = control & ~ACK_FLAG == RST
    bare_syn = control == SYN and header[STOP] == header[START]
    if not bare_syn and not is_reset and control != ACK_FLAG:
        return GENERIC_RECORD
    if state[FREE_NUMBERS] == 0 or state[CONNECTIONS] >= state[CONNECTIONS_LIMIT]:
        return GENERIC_RECORD
    number = flow_arrays.free_numbers[state[FREE_NUMBERS] - 1]
    describe_connection(state, flow_arrays, number, header)
    stop_code = CONTINUE
    if bare_syn:
        open_flow(state, flows[number], header, mode_of(header, tcp_ports))
    elif is_reset:
        stop_code = reset_connection(state, flows[number], flows[number + 1], header)
    else:
        stop_code = take_midstream(arrays, flow_arrays, number, tcp_ports)
    if stop_code >= 0:
        flows[number, MODE] = flows[number + 1, MODE] = TRACKED
        return stop_code
    state[FREE_NUMBERS] -= 1
    for side in range(2):
        insert(flow_arrays.table, flow_arrays.keys, number + side, state[HASH_SEED])
    state[STREAMS] += 1
    state[CONNECTIONS] += 1
    flow_arrays.new_connections[state[NEW_CONNECTIONS]] = number
    state[NEW_CONNECTIONS] += 1
    return CONTINUE


@jit
def open_flow(state: Any, flow: Any, header: Any, mode: int) -> None:
    """Begin a flow with its SYN."""
    flow[MODE], flow[ISN] = mode, header[SEQ]
    flow[NEXT_SEQ] = (header[SEQ] + 1) & 0xFFFFFFFF
    note_segment(state, flow)


@jit
def note_segment(state: Any, flow: Any) -> None:
    """Note the time and the frame of a segment that is not simply the next."""
    time_ns = state[RECORD_NS]
    if time_ns:
        flow[LAST_NS] = time_ns
    flow[FRAME] = state[FRAME_CODE]
    set_clock(state, time_ns, clock_after(state, time_ns))


@inlined
def may_begin(flow: Any, seq: int) -> bool:
    """Whether a SYN may be the start of what was seen of a flow: `Direction.accepts_isn`."""
    if flow[ISN] >= 0:
        return seq == flow[ISN]
    if flow[MODE] == UNSEEN or flow[MODE] == JOINED:
        start = distance(flow[ACKED], seq + 1)
        return flow[ACKED] < 0 or (start >= 0 and start < START_WINDOW)
    return flow[FIRST_SEQ] != NO_SEQ and distance(flow[FIRST_SEQ], seq + 1) == 0


@jit
def take_syn(state: Any, flow_arrays: FlowArrays, number: int, header: Any, tcp_ports: Any) -> int:
    """Take a SYN, or an answer to one, of a known connection; return CONTINUE or GENERIC_RECORD."""
    flow, peer = flow_arrays.flows[number], flow_arrays.flows[number ^ 1]
    control = header[FLAGS] & _CONTROL
    if header[STOP] != header[START] or flow[OUT_OF_ORDER] or peer[OUT_OF_ORDER] or peer[MODE] == TRACKED:
        return GENERIC_RECORD
    was_reset = flow[MODE] == ENDED and flow[WAS_RESET]
    if control == SYN and (was_reset or not may_begin(flow, header[SEQ])):
        return renew_connection(state, flow_arrays, number, header, tcp_ports)
    if flow[ISN] != header[SEQ] or (control != SYN and control != SYN | ACK_FLAG):
        return GENERIC_RECORD
    if control != SYN:
        if peer[ISN] < 0 and peer[MODE] != ENDED:
            return GENERIC_RECORD  # it tells where the peer begins
        peer[ACKED] = header[ACK]
    note_segment(state, flow)
    return CONTINUE


@jit
def renew_connection(state: Any, flow_arrays: FlowArrays, number: int, header: Any, tcp_ports: Any) -> int:
    """Begin another connection on the ports of one that only the scan knows and whose end yields nothing.

    Returns CONTINUE or GENERIC_RECORD.
    """
    flow, peer = flow_arrays.flows[number], flow_arrays.flows[number ^ 1]
    if flow[IS_REGISTERED] or not (_leaves_nothing(flow, flow[ACKED]) and _leaves_nothing(peer, peer[ACKED])):
        return GENERIC_RECORD
    first = number & -2
    if number != first:
        swap_sides(flow_arrays.table, flow_arrays.keys, first, state[HASH_SEED])
    describe_connection(state, flow_arrays, first, header)
    open_flow(state, flow_arrays.flows[first], header, mode_of(header, tcp_ports))
    state[STREAMS] += 1
    return CONTINUE


@jit
def _leaves_nothing(flow: Any, acked: int) -> bool:
    """Whether the end of a flow yields nothing: `Direction.end`; ``acked`` is what its peer acknowledged."""
    if flow[MODE] == UNSEEN or flow[MODE] == ENDED or flow[MODE] == JOINED:
        return True
    if flow[MODE] == TRACKED or flow[OUT_OF_ORDER] or flow[IN_DOUBT] or flow[PACKET_BYTES]:
        return False
    return acked < 0 or not 1 < distance(acked, flow[NEXT_SEQ]) < FAR


@jit
def reset_connection(state: Any, flow: Any, peer: Any, header: Any) -> int:
    """Take a reset, which ends both flows: `Reassembler._reset`; return CONTINUE or GENERIC_RECORD."""
    control = header[FLAGS] & _CONTROL
    if control & ~ACK_FLAG != RST or header[STOP] != header[START]:
        return GENERIC_RECORD
    is_open = flow[MODE] == MSMQ or flow[MODE] == UNRECOGNISED
    if is_open and not 0 <= distance(header[SEQ], flow[NEXT_SEQ]) < FAR:
        return GENERIC_RECORD
    acked = header[ACK] if control & ACK_FLAG else peer[ACKED]
    if not (_leaves_nothing(flow, flow[ACKED]) and _leaves_nothing(peer, acked)):
        return GENERIC_RECORD
    peer[ACKED] = acked
    if flow[MODE] != ENDED:
        flow[MODE], flow[WAS_RESET] = ENDED, 1
    if peer[MODE] != ENDED and peer[MODE] != UNSEEN:
        peer[MODE], peer[WAS_RESET] = ENDED, 1
    note_segment(state, flow)
    return CONTINUE


@jit
def take_syn_ack(state: Any, flow: Any, peer: Any, header: Any) -> int:
    """Take the answer to the SYN of a connection, or a reset; return CONTINUE or GENERIC_RECORD."""
    if header[FLAGS] & RST:
        return reset_connection(state, flow, peer, header)
    if header[FLAGS] & _CONTROL != SYN | ACK_FLAG or header[STOP] != header[START]:
        return GENERIC_RECORD
    is_open = peer[MODE] == MSMQ or peer[MODE] == UNRECOGNISED
    if flow[MODE] != UNSEEN or peer[OUT_OF_ORDER] or not is_open or peer[ISN] < 0:
        return GENERIC_RECORD
    if not may_begin(flow, header[SEQ]):
        return GENERIC_RECORD
    open_flow(state, flow, header, peer[MODE])
    peer[ACKED] = header[ACK]
    return CONTINUE


@jit
def end_flow(arrays: ScanArrays, flow: Any, peer: Any) -> int:
    """Take a segment without data that ends a flow, or follows its end; return CONTINUE or a stop code."""
    state, header = arrays.state, arrays.header
    if header[FLAGS] & RST:
        return reset_connection(state, flow, peer, header)
    if header[STOP] != header[START] or flow[OUT_OF_ORDER] or peer[OUT_OF_ORDER] or peer[MODE] == TRACKED:
        return GENERIC_RECORD
    control = header[FLAGS] & _CONTROL
    if flow[MODE] == ENDED:
        if control != ACK_FLAG:
            return GENERIC_RECORD
    elif control != FIN | ACK_FLAG or (header[SEQ] - flow[NEXT_SEQ]) & 0xFFFFFFFF:
        return GENERIC_RECORD
    elif flow[PACKET_BYTES] or flow[IN_DOUBT]:
        stop_code = end_packets(arrays, flow)
        if stop_code >= 0:
            return stop_code
    flow[MODE] = ENDED
    peer[ACKED] = header[ACK]
    note_segment(state, flow)
    return CONTINUE


@jit
def take_beside_gaps(arrays: ScanArrays, flow_arrays: FlowArrays, number: int) -> int:
    """Take a segment that is out of order, or of a connection with a gap; return CONTINUE or a stop code.

    What it lets give up may need more room than there is. Then the segment itself has been taken, and the
    scan comes back here for the rest of the gaps.
    """
    state, header = arrays.state, arrays.header
    flow, peer = flow_arrays.flows[number], flow_arrays.flows[number ^ 1]
    if peer[MODE] == TRACKED:
        return GENERIC_RECORD
    time_ns = state[RECORD_NS]
    if not state[IS_TAKEN]:
        now = clock_after(state, time_ns)
        stop_code = expire_gaps(arrays, flow_arrays, number, now)
        if stop_code >= 0:
            return stop_code
        offset, conflicts = distance(header[SEQ], flow[NEXT_SEQ]), state[CONFLICTING_BYTES]
        stop_code = take_out_of_order(arrays, flow, offset, now)
        if stop_code >= 0:
            return stop_code
        state[TAKEN_ACKED], peer[ACKED] = peer[ACKED], header[ACK]
        if time_ns:
            flow[LAST_NS] = time_ns
        flow[FRAME] = state[FRAME_CODE]
        if flow[OUT_OF_ORDER] and flow[OUT_OF_ORDER_FRAME] == flow[FRAME]:
            list_gap(state, flow_arrays, number)
        state[IS_TAKEN], state[TAKEN_CONFLICTS] = 1, state[CONFLICTING_BYTES] - conflicts
    stop_code = settle_gaps(arrays, flow_arrays, number, state[NOW])
    far = is_far(distance(header[SEQ], flow[NEXT_SEQ]))
    if stop_code < 0:
        state[IS_TAKEN] = 0
        if far:
            ignore_far_segment(state, flow, header)
    elif stop_code == GENERIC_RECORD:  # the generic reader takes the segment once more
        state[IS_TAKEN] = 0
        peer[ACKED] = state[TAKEN_ACKED]  # or it would find gaps that were due before the segment
        if not far:
            state[REPEATED_BYTES] -= header[STOP] - header[START]
        if distance(header[SEQ], flow[NEXT_SEQ]) > 0:  # and compares it with what is buffered
            state[CONFLICTING_BYTES] -= state[TAKEN_CONFLICTS]
    return stop_code


@exported
@jit
def apply_timeouts(arrays: ScanArrays, flow_arrays: FlowArrays, tcp_ports: Bools, now: int) -> int:
    """Start the flows and give up the gaps that are due in any connection; return CONTINUE or a stop code."""
    state = arrays.state
    if now >= state[DEADLINE]:
        if any_opening_due(state, flow_arrays.flows, now) and any_gap_due(arrays, flow_arrays, now):
            return GENERIC_RECORD  # they are due in one order, by age
        stop_code = expire_all_gaps(arrays, flow_arrays, now)
        if stop_code >= 0:
            return stop_code
    return start_all_due(arrays, flow_arrays, tcp_ports, now)


@exported
@inlined
def take_segment(arrays: ScanArrays, flow_arrays: FlowArrays, tcp_ports: Bools) -> int:
    """Take the TCP segment of the current header; return CONTINUE or a stop code."""
    state, header = arrays.state, arrays.header
    time_ns = state[RECORD_NS]
    sweeps = time_ns >= state[SWEEP_AT]
    if sweeps and (state[WAITING] or time_ns >= state[IDLE_AT]):
        return GENERIC_RECORD
    if state[FIRST_OPENING] >= 0 and time_ns and time_ns <= state[NOW] - CLOCK_BACK_NS:
        return GENERIC_RECORD
    if sweeps:
        stop_code = apply_timeouts(arrays, flow_arrays, tcp_ports, time_ns)
        if stop_code >= 0:
            return stop_code
    number = find(flow_arrays.table, flow_arrays.keys, header, state[HASH_SEED])
    if number < 0:
        return begin_connection(arrays, flow_arrays, tcp_ports)
    flow, peer = flow_arrays.flows[number], flow_arrays.flows[number ^ 1]
    if flow[MODE] == TRACKED or time_ns - max(flow[LAST_NS], peer[LAST_NS]) >= IDLE_NS_MAX:
        return GENERIC_RECORD
    if flow[MODE] == OPENING or peer[MODE] == OPENING:
        stop_code = start_due(arrays, flow_arrays, number, tcp_ports, clock_after(state, time_ns))
        if stop_code >= 0:
            return stop_code
        if peer[MODE] == OPENING and header[FLAGS] & _CONTROL == ACK_FLAG:
            stop_code = start_acknowledged(arrays, flow_arrays, number ^ 1, tcp_ports)
            if stop_code >= 0:
                return stop_code
    if flow[MODE] == UNSEEN or flow[MODE] == JOINED or flow[MODE] == OPENING:
        if header[FLAGS] & _CONTROL != ACK_FLAG:
            return take_syn_ack(state, flow, peer, header)
        if peer[MODE] == TRACKED:
            return GENERIC_RECORD
        return take_midstream(arrays, flow_arrays, number, tcp_ports)
    if header[FLAGS] & (SYN | RST) == SYN:
        return take_syn(state, flow_arrays, number, header, tcp_ports)
    if flow[MODE] == ENDED or header[FLAGS] & _CONTROL != ACK_FLAG:
        return end_flow(arrays, flow, peer)
    if header[STOP] - header[START] > SEGMENT_MAX:
        return GENERIC_RECORD
    offset = ((header[SEQ] - flow[NEXT_SEQ] + 0x80000000) & 0xFFFFFFFF) - 0x80000000
    if offset or flow[OUT_OF_ORDER] or peer[OUT_OF_ORDER] or state[IS_TAKEN]:
        return take_beside_gaps(arrays, flow_arrays, number)
    size = header[STOP] - header[START]
    if size:
        stop_code = deliver(arrays, flow, header[START], header[STOP])
        if stop_code >= 0:
            return stop_code
    if sweeps:
        state[NOW] = time_ns
        state[SWEEP_AT] = time_ns + SWEEP_NS
    flow[NEXT_SEQ] += size
    peer[ACKED] = header[ACK]
    if time_ns:
        flow[LAST_NS] = time_ns
    flow[FRAME] = state[FRAME_CODE]
    return CONTINUE
