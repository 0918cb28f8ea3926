"""The compiled scan over TCP segments and pings that are sorted by flow.

A run is the consecutive segments of one flow, or of one chunk of a divided flow. The end of a run of a whole
flow that the scan has followed from the first SYN, and that leaves nothing to report, does not involve
Python. Where any other run ends, and where a chunk begins, the scan stops.
"""

from __future__ import annotations

from typing import Any, Final

from msmqwire.capture.tcp import IDLE_NS_MAX, SWEEP_NS
from msmqwire.columnar.compiled.arrays import Bools, Bytes, Int64Rows, Int64s
from msmqwire.columnar.compiled.decorators import exported, jit
from msmqwire.columnar.compiled.flow_table import (
    ACKED,
    IN_DOUBT,
    MODE,
    MSMQ,
    NEXT_SEQ,
    OUT_OF_ORDER,
    PACKET_SEGMENTS,
    TRACKED,
    UNRECOGNISED,
)
from msmqwire.columnar.compiled.network import HEADER_FIELDS, START, STOP, TCP, UDP
from msmqwire.columnar.compiled.scan import take_ping
from msmqwire.columnar.compiled.scan_arrays import FlowArrays, ScanArrays
from msmqwire.columnar.compiled.segments import take_segment
from msmqwire.columnar.compiled.state import (
    CONNECTIONS,
    END,
    EVENT_FRAME,
    EVENT_NS,
    FRAME_CODE,
    FREE_NUMBERS,
    HELD,
    IDLE_AT,
    NEW_CONNECTIONS,
    NOW,
    PENDING_BYTES,
    PENDING_SEGMENTS,
    POS,
    R_STREAM,
    RECORD_NS,
    ROWS,
    STREAMS,
    SWEEP_AT,
)
from msmqwire.columnar.compiled.stop_codes import GENERIC_RECORD, MORE_INPUT, RUN_BEGINS, RUN_ENDS

SEGMENT_KIND, SEGMENT_FRAME, SEGMENT_NS, SEGMENT_FLOW, SEGMENT_CHUNK, SEGMENT_IS_DIVIDED = range(
    HEADER_FIELDS, HEADER_FIELDS + 6
)
SEGMENT_FIELDS: Final = HEADER_FIELDS + 6
"""A segment, by index: first the header that `network.parse_frame` fills, with START and STOP as offsets in
the array of payloads; then TCP, UDP, or UNDECIDED if it is for the generic reader; a number for its frame
that grows within a run, in place of a frame code; when it was captured, in nanoseconds; its flow; the chunk
of its flow; whether its flow is divided."""

IS_OPEN, FLOW, CHUNK, IS_DIVIDED, USES_TRACKER, OPENING_LEFT, RENUMBERED, BASE = range(8)
RUN: Final = 8
"""The current run, by index: whether there is one; its flow and chunk; whether the flow is divided; whether
a tracker has seen any of it; how many more segments go to the tracker whatever they are; the first row whose
R_STREAM is not yet the number of its flow. BASE is the offset in the array of payloads of the first byte in
memory."""


@jit
def ends_silently(flows: Any, number: int) -> bool:
    """Whether the end of the capture yields nothing for a connection that the scan has seen begin."""
    for side in range(2):
        flow = flows[number + side]
        if flow[PACKET_SEGMENTS] or flow[OUT_OF_ORDER] or flow[IN_DOUBT]:
            return False
        if flow[ACKED] >= 0 and (flow[MODE] == MSMQ or flow[MODE] == UNRECOGNISED):
            beyond = ((flow[ACKED] - flow[NEXT_SEQ] + 0x80000000) & 0xFFFFFFFF) - 0x80000000
            if beyond > 1:
                return False
    return True


@exported
@jit
def number_rows(state: Int64s, run: Int64s, rows: Int64Rows) -> None:
    """Replace the number of the connection in the rows of the run by that of its flow."""
    for r in range(run[RENUMBERED], state[ROWS]):
        if rows[r, R_STREAM] >= 0:
            rows[r, R_STREAM] = run[FLOW]
    run[RENUMBERED] = state[ROWS]


@jit
def end_run(state: Any, run: Any, rows: Any, flow_arrays: FlowArrays) -> bool:
    """Forget the current run; return False if Python must be informed of its end instead."""
    if run[USES_TRACKER] or run[IS_DIVIDED]:
        return False
    flows, new_connections = flow_arrays.flows, flow_arrays.new_connections
    for i in range(state[NEW_CONNECTIONS]):
        if not ends_silently(flows, new_connections[i]):
            return False
    number_rows(state, run, rows)
    for i in range(state[NEW_CONNECTIONS]):
        number = new_connections[i]
        flows[number, MODE] = flows[number + 1, MODE] = TRACKED
        flows[number, ACKED] = flows[number + 1, ACKED] = -1
        flow_arrays.free_numbers[state[FREE_NUMBERS]] = number
        state[FREE_NUMBERS] += 1
    if state[NEW_CONNECTIONS]:
        flow_arrays.table[:] = -1
    state[NEW_CONNECTIONS] = state[CONNECTIONS] = state[STREAMS] = 0
    state[PENDING_SEGMENTS] = state[PENDING_BYTES] = state[HELD] = 0
    state[NOW] = state[SWEEP_AT] = state[IDLE_AT] = 0
    run[IS_OPEN] = 0
    return True


@exported
@jit
def scan_segments(
    arrays: ScanArrays,
    flow_arrays: FlowArrays,
    run: Int64s,
    segments: Int64Rows,
    tcp_ports: Bools,
    udp_ports: Bytes,
) -> int:
    """Scan segment by segment up to that of number END; return the stop code.

    MORE_INPUT is returned at END. ``run`` is the current run, and ``segments`` has a row for each segment.
    """
    state, header = arrays.state, arrays.header
    while state[POS] < state[END]:
        segment = segments[state[POS]]
        if run[IS_OPEN] and (segment[SEGMENT_FLOW] != run[FLOW] or segment[SEGMENT_CHUNK] != run[CHUNK]):
            if not end_run(state, run, arrays.rows, flow_arrays):
                return RUN_ENDS
        if not run[IS_OPEN]:
            run[IS_OPEN], run[USES_TRACKER] = 1, 0
            run[FLOW], run[CHUNK] = segment[SEGMENT_FLOW], segment[SEGMENT_CHUNK]
            run[IS_DIVIDED] = segment[SEGMENT_IS_DIVIDED]
            if run[IS_DIVIDED]:
                return RUN_BEGINS
        if run[OPENING_LEFT]:
            return GENERIC_RECORD
        time_ns = segment[SEGMENT_NS]
        for i in range(HEADER_FIELDS):
            header[i] = segment[i]
        header[START] -= run[BASE]
        header[STOP] -= run[BASE]
        state[RECORD_NS] = state[EVENT_NS] = time_ns
        state[EVENT_FRAME] = state[FRAME_CODE] = segment[SEGMENT_FRAME]
        if segment[SEGMENT_KIND] == TCP:
            if not run[USES_TRACKER] and state[IDLE_AT] == 0 and state[CONNECTIONS] == 0 and time_ns >= 0:
                # The clock of a tracker that has seen no connection yet: see `Reassembler`.
                state[NOW], state[SWEEP_AT] = time_ns, time_ns + SWEEP_NS
                state[IDLE_AT] = time_ns + IDLE_NS_MAX // 8
            stop_code = take_segment(arrays, flow_arrays, tcp_ports)
        elif segment[SEGMENT_KIND] == UDP:
            stop_code = take_ping(arrays, udp_ports)
        else:
            stop_code = GENERIC_RECORD
        if stop_code >= 0:
            return stop_code
        state[POS] += 1
    return MORE_INPUT
