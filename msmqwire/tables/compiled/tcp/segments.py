"""TCP segments, compiled: the next one of its direction at once, any other by the rules of `reassembly`."""

from __future__ import annotations

from typing import Any, Final

from msmqwire.analysis.dissection.tracker import HELD_MAX
from msmqwire.capture.direction import SEGMENT_MAX
from msmqwire.capture.ip import ACK as ACK_FLAG
from msmqwire.capture.ip import FIN, RST, SYN
from msmqwire.capture.tcp import IDLE_NS_MAX, TIME_MAX
from msmqwire.tables.compiled.arrays import Bools
from msmqwire.tables.compiled.decorators import exported, inlined, jit
from msmqwire.tables.compiled.delivery import deliver
from msmqwire.tables.compiled.flow_events import note_first, take_events
from msmqwire.tables.compiled.flow_table import (
    ACKED,
    FRAME,
    HAS_PENDING,
    IN_ORDER,
    IS_FAST,
    IS_STARTED,
    IS_WAITING,
    ISN,
    LAST_NS,
    MIDSTREAM,
    MODE,
    MSMQ,
    NEXT_SEQ,
    OUT_OF_ORDER,
    START_KIND,
    UNRECOGNISED,
    find,
)
from msmqwire.tables.compiled.network import ACK, FLAGS, MISSING, SEQ, START, STOP
from msmqwire.tables.compiled.origins import note_origin
from msmqwire.tables.compiled.scan_arrays import FlowArrays, ScanArrays
from msmqwire.tables.compiled.state import (
    BUFFERED_SEGMENTS,
    CONNECTIONS,
    CONNECTIONS_LIMIT,
    FRAME_CODE,
    FREE_NUMBERS,
    HASH_SEED,
    HELD,
    IDLE_AT,
    IS_FREED,
    IS_TAKEN,
    NEED,
    PENDING_BYTES,
    PENDING_SEGMENTS,
    RECORD_NS,
    REMOVED,
    SPARE_SEGMENTS,
    SWEEP_AT,
)
from msmqwire.tables.compiled.stop_codes import (
    CONTINUE,
    EVENTS_FULL,
    FLOWS_FULL,
    FOREIGN_EVENT,
    HELD_FULL,
    PENDING_FULL,
)
from msmqwire.tables.compiled.tcp.clock import clock_of, set_clock
from msmqwire.tables.compiled.tcp.reassembly import receive_next, receive_segment, sweep

_CONTROL: Final = FIN | SYN | RST | ACK_FLAG
EVENTS_PER_SEGMENT, EVENTS_PER_CONNECTION, EVENTS_SPARE = 3, 5, 64
"""Events of a step at most: for each segment that is buffered its bytes, a gap before them, and what was cut
off; for each connection a gap and an end of both flows, and that it is forgotten; and for the segment
itself."""
_BYTES_PER_ENTRY: Final = 64
"""Bytes to ask for so that there is an entry for a segment; see `PendingSegments.reserve`."""


@jit
def _room_for_step(arrays: ScanArrays, flow_arrays: FlowArrays, number: int) -> int:
    """Return CONTINUE if there is room for whatever the current segment may bring, or a stop code."""
    state, header = arrays.state, arrays.header
    if state[FREE_NUMBERS] == 0 or 4 * state[REMOVED] > flow_arrays.table.size:
        return FLOWS_FULL
    pieces = (header[STOP] - header[START] + header[MISSING]) // SEGMENT_MAX
    needed = EVENTS_PER_SEGMENT * (state[BUFFERED_SEGMENTS] + pieces) + EVENTS_SPARE
    is_full = number < 0 and state[CONNECTIONS] >= state[CONNECTIONS_LIMIT]
    if is_full or state[RECORD_NS] >= state[IDLE_AT]:
        needed += EVENTS_PER_CONNECTION * state[CONNECTIONS]
    if needed > flow_arrays.events.shape[0]:
        state[NEED] = needed
        return EVENTS_FULL
    size = header[STOP] - header[START]
    entries = SPARE_SEGMENTS + pieces
    if number >= 0:
        entries += flow_arrays.flows[number, OUT_OF_ORDER]
    if (
        state[PENDING_BYTES] + size > arrays.pending_bytes.size
        or state[PENDING_SEGMENTS] + entries > arrays.pending_segments.shape[0]
    ):
        state[NEED] = size + _BYTES_PER_ENTRY * entries
        return PENDING_FULL
    return CONTINUE


@jit
def _take_step(arrays: ScanArrays, flow_arrays: FlowArrays, number: int, tcp_ports: Any) -> int:
    """Take the current segment by all the rules; return CONTINUE or a stop code."""
    state = arrays.state
    if not state[IS_TAKEN]:
        stop_code = _room_for_step(arrays, flow_arrays, number)
        if stop_code >= 0:
            return stop_code
        time_ns = clock_of(state[RECORD_NS])
        if time_ns >= state[SWEEP_AT]:
            sweep(arrays, flow_arrays, time_ns)
        receive_segment(arrays, flow_arrays, tcp_ports)
        state[IS_TAKEN] = 1
    return take_events(arrays, flow_arrays)


@jit
def _take_next(arrays: ScanArrays, flow_arrays: FlowArrays, number: int) -> int:
    """Take the current segment, the next of its flow, as an event; return a stop code or CONTINUE."""
    stop_code = _room_for_step(arrays, flow_arrays, number)
    if stop_code >= 0:
        return stop_code
    receive_next(arrays, flow_arrays, number)
    arrays.state[IS_TAKEN] = 1
    return take_events(arrays, flow_arrays)


@exported
@inlined
def take_segment(arrays: ScanArrays, flow_arrays: FlowArrays, tcp_ports: Bools) -> int:
    """Take the TCP segment of the current header; return CONTINUE or a stop code.

    After a stop code it is to be taken again, when what that asks for is done.
    """
    state, header = arrays.state, arrays.header
    time_ns = state[RECORD_NS]
    if state[IS_TAKEN]:
        return _take_step(arrays, flow_arrays, -1, tcp_ports)
    number = find(flow_arrays.table, flow_arrays.keys, header, state[HASH_SEED])
    if number < 0 or time_ns >= state[SWEEP_AT] or not -TIME_MAX < time_ns < TIME_MAX:
        return _take_step(arrays, flow_arrays, number, tcp_ports)
    flow, peer = flow_arrays.flows[number], flow_arrays.flows[number ^ 1]
    size = header[STOP] - header[START]
    if (
        not flow[IS_FAST]
        or (header[SEQ] - flow[NEXT_SEQ]) & 0xFFFFFFFF
        or header[FLAGS] & _CONTROL != ACK_FLAG
        or peer[IS_WAITING]
        or header[MISSING]
        or size > SEGMENT_MAX
        or time_ns - flow[LAST_NS] >= IDLE_NS_MAX
    ):
        return _take_step(arrays, flow_arrays, number, tcp_ports)
    if size:
        stop_code = FOREIGN_EVENT
        if flow[MODE] == UNRECOGNISED or (flow[MODE] == MSMQ and flow[IS_STARTED]):
            if not flow[HAS_PENDING]:
                note_origin(state, flow_arrays, number, header[ACK])
                stop_code = deliver(arrays, flow, header[START], header[STOP])
        if stop_code == FOREIGN_EVENT:
            return _take_next(arrays, flow_arrays, number)
        if stop_code >= 0:
            return stop_code
        flow[NEXT_SEQ] += size
        if flow[MODE] == UNRECOGNISED:
            begin_ignored(flow_arrays.flows, number)
    peer[ACKED] = header[ACK]
    if time_ns:
        set_clock(state, time_ns)
        flow[LAST_NS] = time_ns
    flow[FRAME] = state[FRAME_CODE]
    if state[HELD] > HELD_MAX:
        state[IS_TAKEN], state[IS_FREED] = 1, 0
        return HELD_FULL
    return CONTINUE


@inlined
def begin_ignored(flows: Any, number: int) -> None:
    """Note that a flow has delivered something that nobody looks at."""
    note_first(flows, number)
    if flows[number, START_KIND] == 0:
        flows[number, START_KIND] = MIDSTREAM if flows[number, ISN] < 0 else IN_ORDER
