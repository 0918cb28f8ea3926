"""TCP segments of flows that the scan follows, compiled: from their SYN to their FIN."""

from __future__ import annotations

from typing import Any, Final

from msmqwire.capture.direction import FAR, START_WINDOW
from msmqwire.capture.ip import ACK as ACK_FLAG
from msmqwire.capture.ip import FIN, RST, SYN
from msmqwire.capture.tcp import IDLE_NS_MAX, SWEEP_NS
from msmqwire.columnar.compiled.breaks import end_packets
from msmqwire.columnar.compiled.delivery import deliver
from msmqwire.columnar.compiled.flow_table import (
    ACKED,
    ENDED,
    FLOW_FIELDS,
    FRAME,
    IN_DOUBT,
    ISN,
    LAST_NS,
    MODE,
    MSMQ,
    NEXT_SEQ,
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
)
from msmqwire.columnar.compiled.gaps import expire_all_gaps, expire_gaps, settle_gaps
from msmqwire.columnar.compiled.jit import inlined, jit
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
from msmqwire.columnar.compiled.out_of_order import clock_after, set_clock, take_out_of_order
from msmqwire.columnar.compiled.scan_arrays import FlowArrays, ScanArrays
from msmqwire.columnar.compiled.state import (
    CONNECTIONS,
    CONNECTIONS_LIMIT,
    DEADLINE,
    FRAME_NO,
    FRAMES_BEFORE,
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
    WAITING,
)
from msmqwire.columnar.compiled.stop_codes import CONTINUE, GENERIC_RECORD

_CONTROL: Final = FIN | SYN | RST | ACK_FLAG

SEGMENT_MAX: Final = 1 << 20
"""Bytes of payload of the largest segment that the scan takes: it needs room for the rows of all its packets.
Segmentation offload makes segments of up to 512 KiB."""


@jit
def begin_connection(state: Any, flow_arrays: FlowArrays, header: Any, tcp_ports: Any) -> int:
    """Take the SYN of an unknown connection; return CONTINUE or GENERIC_RECORD."""
    bare_syn = header[FLAGS] & _CONTROL == SYN and header[STOP] == header[START]
    if not bare_syn or state[FREE_NUMBERS] == 0 or state[CONNECTIONS] >= state[CONNECTIONS_LIMIT]:
        return GENERIC_RECORD
    table, keys, flows = flow_arrays.table, flow_arrays.keys, flow_arrays.flows
    state[FREE_NUMBERS] -= 1
    number = flow_arrays.free_numbers[state[FREE_NUMBERS]]
    src_port, dst_port = header[PORTS] >> 16, header[PORTS] & 0xFFFF
    mode = MSMQ if tcp_ports[src_port] or tcp_ports[dst_port] else UNRECOGNISED
    for side in range(2):
        flow, key = flows[number + side], keys[number + side]
        for i in range(FLOW_FIELDS):
            flow[i] = 0
        flow[MODE], flow[ACKED], flow[ISN] = UNSEEN, -1, -1
        flow[STREAM] = state[STREAMS]
        key[SRC_HIGH if side == 0 else DST_HIGH] = header[SRC_HIGH]
        key[SRC_LOW if side == 0 else DST_LOW] = header[SRC_LOW]
        key[DST_HIGH if side == 0 else SRC_HIGH] = header[DST_HIGH]
        key[DST_LOW if side == 0 else SRC_LOW] = header[DST_LOW]
        key[PORTS] = src_port << 16 | dst_port if side == 0 else dst_port << 16 | src_port
        key[IS_IPV6] = header[IS_IPV6]
        insert(table, keys, number + side, state[HASH_SEED])
    open_flow(state, flows[number], header, mode)
    state[STREAMS] += 1
    state[CONNECTIONS] += 1
    flow_arrays.new_connections[state[NEW_CONNECTIONS]] = number
    state[NEW_CONNECTIONS] += 1
    return CONTINUE


@jit
def open_flow(state: Any, flow: Any, header: Any, mode: int) -> None:
    """Begin a flow with its SYN."""
    time_ns = state[RECORD_NS]
    flow[MODE], flow[ISN] = mode, header[SEQ]
    flow[NEXT_SEQ] = (header[SEQ] + 1) & 0xFFFFFFFF
    flow[LAST_NS] = time_ns
    flow[FRAME] = state[FRAMES_BEFORE] + state[FRAME_NO] + 1
    set_clock(state, time_ns, clock_after(state, time_ns))


@inlined
def _distance(one: int, other: int) -> int:
    """Return how far one sequence number is beyond another."""
    return ((one - other + 0x80000000) & 0xFFFFFFFF) - 0x80000000


@jit
def _leaves_nothing(flow: Any, acked: int) -> bool:
    """Whether the end of a flow yields nothing: `Direction.end`; ``acked`` is what its peer acknowledged."""
    if flow[MODE] == UNSEEN or flow[MODE] == ENDED:
        return True
    if flow[MODE] == TRACKED or flow[OUT_OF_ORDER] or flow[IN_DOUBT] or flow[PACKET_BYTES]:
        return False
    return acked < 0 or not 1 < _distance(acked, flow[NEXT_SEQ]) < FAR


@jit
def reset_connection(state: Any, flow: Any, peer: Any, header: Any) -> int:
    """Take a reset, which ends both flows: `Reassembler._reset`; return CONTINUE or GENERIC_RECORD."""
    control, time_ns = header[FLAGS] & _CONTROL, state[RECORD_NS]
    if control & ~ACK_FLAG != RST or header[STOP] != header[START]:
        return GENERIC_RECORD
    is_open = flow[MODE] != UNSEEN and flow[MODE] != ENDED
    if is_open and not 0 <= _distance(header[SEQ], flow[NEXT_SEQ]) < FAR:
        return GENERIC_RECORD
    acked = header[ACK] if control & ACK_FLAG else peer[ACKED]
    if not (_leaves_nothing(flow, flow[ACKED]) and _leaves_nothing(peer, acked)):
        return GENERIC_RECORD
    peer[ACKED] = acked
    if flow[MODE] != ENDED:
        flow[MODE], flow[WAS_RESET] = ENDED, 1
    if peer[MODE] != ENDED and peer[MODE] != UNSEEN:
        peer[MODE], peer[WAS_RESET] = ENDED, 1
    if time_ns:
        flow[LAST_NS] = time_ns
    flow[FRAME] = state[FRAMES_BEFORE] + state[FRAME_NO] + 1
    set_clock(state, time_ns, clock_after(state, time_ns))
    return CONTINUE


@jit
def take_syn_ack(state: Any, flow: Any, peer: Any, header: Any) -> int:
    """Take the answer to the SYN of a connection; return CONTINUE or GENERIC_RECORD."""
    if header[FLAGS] & RST:
        return reset_connection(state, flow, peer, header)
    if header[FLAGS] & _CONTROL != SYN | ACK_FLAG or header[STOP] != header[START]:
        return GENERIC_RECORD
    if peer[OUT_OF_ORDER] or peer[MODE] == TRACKED or peer[MODE] == ENDED:
        return GENERIC_RECORD
    if flow[ACKED] >= 0:
        start = ((flow[ACKED] - header[SEQ] - 1 + 0x80000000) & 0xFFFFFFFF) - 0x80000000
        if not (start >= 0 and start < START_WINDOW):
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
    time_ns = state[RECORD_NS]
    if time_ns:
        flow[LAST_NS] = time_ns
    flow[FRAME] = state[FRAMES_BEFORE] + state[FRAME_NO] + 1
    set_clock(state, time_ns, clock_after(state, time_ns))
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
        offset = _distance(header[SEQ], flow[NEXT_SEQ])
        stop_code = take_out_of_order(arrays, flow, offset, now)
        if stop_code >= 0:
            return stop_code
        peer[ACKED] = header[ACK]
        if time_ns:
            flow[LAST_NS] = time_ns
        flow[FRAME] = state[FRAMES_BEFORE] + state[FRAME_NO] + 1
        if flow[OUT_OF_ORDER] and flow[OUT_OF_ORDER_FRAME] == flow[FRAME]:
            list_gap(state, flow_arrays, number)
        state[IS_TAKEN] = 1
    stop_code = settle_gaps(arrays, flow_arrays, number, state[NOW])
    if stop_code < 0:
        state[IS_TAKEN] = 0
    elif stop_code == GENERIC_RECORD:  # the generic reader takes the segment once more
        state[IS_TAKEN] = 0
        state[REPEATED_BYTES] -= header[STOP] - header[START]
    return stop_code


@inlined
def take_segment(arrays: ScanArrays, flow_arrays: FlowArrays, tcp_ports: Any) -> int:
    """Take the TCP segment of the current header; return CONTINUE or a stop code."""
    state, header = arrays.state, arrays.header
    time_ns = state[RECORD_NS]
    sweeps = time_ns >= state[SWEEP_AT]
    if sweeps and (state[WAITING] or time_ns >= state[IDLE_AT]):
        return GENERIC_RECORD
    if sweeps and time_ns >= state[DEADLINE]:
        stop_code = expire_all_gaps(arrays, flow_arrays, time_ns)
        if stop_code >= 0:
            return stop_code
    number = find(flow_arrays.table, flow_arrays.keys, header, state[HASH_SEED])
    if number < 0:
        return begin_connection(state, flow_arrays, header, tcp_ports)
    flow, peer = flow_arrays.flows[number], flow_arrays.flows[number ^ 1]
    if flow[MODE] == TRACKED or time_ns - max(flow[LAST_NS], peer[LAST_NS]) >= IDLE_NS_MAX:
        return GENERIC_RECORD
    if flow[MODE] == UNSEEN:
        return take_syn_ack(state, flow, peer, header)
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
    flow[FRAME] = state[FRAMES_BEFORE] + state[FRAME_NO] + 1
    return CONTINUE
