"""The compiled scan over TCP segments and pings that are sorted by flow.

A run is the consecutive segments of one flow, or of one chunk of a divided flow. The end of a run of a whole
flow that the scan has followed from the first SYN, and that leaves nothing to report, does not involve
Python, unless rows become items. Where any other run ends, and where a chunk begins, the scan stops.
"""

from __future__ import annotations

from typing import Any, Final

from msmqwire.tables.compiled.arrays import Bools, Bytes, Int64Rows, Int64s
from msmqwire.tables.compiled.decorators import exported, jit
from msmqwire.tables.compiled.flow_table import (
    ACKED,
    EMPTY,
    FOREIGN,
    HAS_PENDING,
    IN_DOUBT,
    MODE,
    NEXT_CONNECTION,
    NEXT_SEQ,
    OPEN,
    OPENING,
    OUT_OF_ORDER,
    PACKET_SEGMENTS,
    TCP_STATE,
)
from msmqwire.tables.compiled.network import HEADER_FIELDS, START, STOP, TCP, UDP
from msmqwire.tables.compiled.scan import take_ping
from msmqwire.tables.compiled.scan_arrays import FlowArrays, ScanArrays
from msmqwire.tables.compiled.state import (
    CONNECTIONS,
    DEADLINE,
    END,
    EVENT_FRAME,
    EVENT_NS,
    FIRST_CONNECTION,
    FRAME_CODE,
    HELD,
    IDLE_AT,
    KEEPS_ORIGINS,
    LAST_CONNECTION,
    NEVER,
    NOW,
    PENDING_BYTES,
    PENDING_SEGMENTS,
    POS,
    R_STREAM,
    RECORD_NS,
    REMOVED,
    ROWS,
    STREAMS,
    SWEEP_AT,
)
from msmqwire.tables.compiled.stop_codes import GENERIC_RECORD, MORE_INPUT, RUN_BEGINS, RUN_ENDS
from msmqwire.tables.compiled.tcp.direction import distance
from msmqwire.tables.compiled.tcp.flow_lists import free_connection
from msmqwire.tables.compiled.tcp.segments import take_segment

SEGMENT_KIND, SEGMENT_FRAME, SEGMENT_NS, SEGMENT_FLOW, SEGMENT_CHUNK, SEGMENT_IS_DIVIDED = range(
    HEADER_FIELDS, HEADER_FIELDS + 6
)
SEGMENT_FIELDS: Final = HEADER_FIELDS + 6
"""A segment, by index: first the header that `network.parse_frame` fills, with START and STOP as offsets in
the array of payloads; then TCP, UDP, or UNDECIDED if it is for the generic reader; a number for its frame
that grows within a run, in place of a frame code; when it was captured, in nanoseconds; its flow; the chunk
of its flow; whether its flow is divided."""

IS_OPEN, FLOW, CHUNK, IS_DIVIDED, RENUMBERED, BASE = range(6)
RUN: Final = 6
"""The current run, by index: whether there is one; its flow and chunk; whether the flow is divided; the first
row whose R_STREAM is not yet the number of its flow. BASE is the offset in the array of payloads of the first
byte in memory."""


@jit
def ends_silently(flows: Any, number: int) -> bool:
    """Whether the end of the capture yields nothing for a connection."""
    for side in range(2):
        flow = flows[number + side]
        if flow[MODE] == FOREIGN or flow[HAS_PENDING] or flow[PACKET_SEGMENTS] or flow[IN_DOUBT]:
            return False
        if flow[OUT_OF_ORDER] or flow[TCP_STATE] == OPENING:
            return False
        if flow[ACKED] >= 0 and flow[TCP_STATE] == OPEN and distance(flow[ACKED], flow[NEXT_SEQ]) > 1:
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
    if run[IS_DIVIDED] or state[KEEPS_ORIGINS]:
        return False
    flows, number = flow_arrays.flows, state[FIRST_CONNECTION]
    while number >= 0:
        if not ends_silently(flows, number):
            return False
        number = flows[number, NEXT_CONNECTION]
    number_rows(state, run, rows)
    number = state[FIRST_CONNECTION]
    while number >= 0:
        following = flows[number, NEXT_CONNECTION]
        free_connection(state, flow_arrays, number)
        number = following
    if state[CONNECTIONS] or state[REMOVED]:
        flow_arrays.table[:] = EMPTY
    state[CONNECTIONS] = state[STREAMS] = state[REMOVED] = 0
    state[FIRST_CONNECTION] = state[LAST_CONNECTION] = -1
    state[PENDING_SEGMENTS] = state[PENDING_BYTES] = state[HELD] = 0
    state[NOW] = state[SWEEP_AT] = state[IDLE_AT] = 0
    state[DEADLINE] = NEVER
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
            run[IS_OPEN] = 1
            run[FLOW], run[CHUNK] = segment[SEGMENT_FLOW], segment[SEGMENT_CHUNK]
            run[IS_DIVIDED] = segment[SEGMENT_IS_DIVIDED]
            if run[IS_DIVIDED]:
                return RUN_BEGINS
        time_ns = segment[SEGMENT_NS]
        for i in range(HEADER_FIELDS):
            header[i] = segment[i]
        header[START] -= run[BASE]
        header[STOP] -= run[BASE]
        state[RECORD_NS] = state[EVENT_NS] = time_ns
        state[EVENT_FRAME] = state[FRAME_CODE] = segment[SEGMENT_FRAME]
        if segment[SEGMENT_KIND] == TCP:
            stop_code = take_segment(arrays, flow_arrays, tcp_ports)
        elif segment[SEGMENT_KIND] == UDP:
            stop_code = take_ping(arrays, udp_ports)
        else:
            stop_code = GENERIC_RECORD
        if stop_code >= 0:
            return stop_code
        state[POS] += 1
    return MORE_INPUT
