"""Events of flows to rows, compiled, in their order; those for dissectors in Python stop it.

Each event is taken whole or not at all, so that the rest can be taken later, when there is room.
"""

from __future__ import annotations

from typing import Any

from msmqwire.analysis.dissection.skip_reasons import Why
from msmqwire.analysis.dissection.tracker import HELD_MAX
from msmqwire.headers.base import PREFIX_SIZE
from msmqwire.tables.compiled.breaks import end_packets, take_hole
from msmqwire.tables.compiled.decorators import exported, jit
from msmqwire.tables.compiled.delivery import begin_packets, deliver, is_ncp_port
from msmqwire.tables.compiled.failed_checks import any_failed
from msmqwire.tables.compiled.finding import held_by
from msmqwire.tables.compiled.flow_table import (
    ACKED,
    DELIVERED,
    DOUBTFUL_SIZE,
    FIRST_SIDE,
    FOREIGN,
    GAPS,
    HAS_ENDED,
    HAS_PENDING,
    IN_DOUBT,
    IS_CHECKED,
    IS_KNOWN,
    IS_STARTED,
    KEY_FIELDS,
    LOSS,
    MODE,
    MSMQ,
    PACKET_BYTES,
    PACKET_FRAME,
    PACKET_LEAD,
    PACKET_SEGMENTS,
    PACKET_SIZE,
    QUEUED,
    QUEUED_FIRST,
    REMAINING,
    SEG_FRAME,
    SEG_NEXT,
    SEG_NS,
    SEG_SIZE,
    SEG_START,
    TO_COME,
    copy_packet,
    go_back,
    remember,
)
from msmqwire.tables.compiled.memory import copy
from msmqwire.tables.compiled.network import PORTS
from msmqwire.tables.compiled.origins import note_origin
from msmqwire.tables.compiled.packet import begins_packet, packet_length
from msmqwire.tables.compiled.scan_arrays import FlowArrays, ScanArrays
from msmqwire.tables.compiled.skipped_run import show_run, skip
from msmqwire.tables.compiled.state import (
    ARENA,
    ARENA_END,
    EVENT,
    EVENT_FRAME,
    EVENT_NS,
    EVENTS,
    FRAMES_BEFORE,
    HELD,
    IS_FREED,
    IS_TAKEN,
    NEED,
    ROWS,
)
from msmqwire.tables.compiled.stop_codes import ARENA_FULL, CONTINUE, FOREIGN_EVENT, HELD_FULL
from msmqwire.tables.compiled.tcp.events import (
    DATA,
    E_FRAME,
    E_KIND,
    E_NS,
    E_NUMBER,
    E_REASON,
    E_SIZE,
    END,
    END_FIN,
    END_RST,
    GAP,
)
from msmqwire.tables.compiled.tcp.flow_lists import free_connection

_LET_GO, _HELD_TOO_MUCH = int(Why.LET_GO), int(Why.HELD_TOO_MUCH)


@jit
def note_first(flows: Any, number: int) -> None:
    """Note which flow of a connection has delivered first."""
    if flows[number & -2, FIRST_SIDE] == 0:
        flows[number & -2, FIRST_SIDE] = 1 + (number & 1)


@exported
@jit
def deliver_bytes(arrays: ScanArrays, flow_arrays: FlowArrays, number: int, start: int, stop: int) -> int:
    """Take the next bytes of a flow, whose key is in the header; return CONTINUE or a stop code."""
    flow, peer = flow_arrays.flows[number], flow_arrays.flows[number ^ 1]
    note_origin(arrays.state, flow_arrays, number, peer[ACKED])
    if flow[MODE] == MSMQ and not flow[IS_STARTED]:
        stop_code = begin_packets(flow, peer, arrays.memory, start, stop)
        if stop_code >= 0:
            return stop_code
    return deliver(arrays, flow, start, stop)


@jit
def _take_data(arrays: ScanArrays, flow_arrays: FlowArrays, number: int) -> int:
    state, flow = arrays.state, flow_arrays.flows[number]
    if flow[HAS_PENDING]:
        return FOREIGN_EVENT
    segment = arrays.pending_segments[flow[QUEUED_FIRST]]
    size, arena, rows = segment[SEG_SIZE], state[ARENA], state[ROWS]
    if arena + size > state[ARENA_END]:
        state[NEED] = size
        return ARENA_FULL
    copy(arrays.pending_bytes, segment[SEG_START], size, arrays.memory, arena)
    state[ARENA] += size
    state[EVENT_NS], state[EVENT_FRAME] = segment[SEG_NS], segment[SEG_FRAME] - state[FRAMES_BEFORE]
    stop_code = deliver_bytes(arrays, flow_arrays, number, arena, arena + size)
    if state[ROWS] == rows:
        state[ARENA] = arena
    if stop_code < 0:
        pop_queued(arrays, flow)
    return stop_code


@jit
def pop_queued(arrays: ScanArrays, flow: Any) -> None:
    """Remove the first of the queued segments."""
    flow[QUEUED_FIRST] = arrays.pending_segments[flow[QUEUED_FIRST], SEG_NEXT]
    flow[QUEUED] -= 1


@jit
def _take_gap(arrays: ScanArrays, flow_arrays: FlowArrays, number: int, event: Any) -> int:
    flow, peer = flow_arrays.flows[number], flow_arrays.flows[number ^ 1]
    if flow[HAS_PENDING]:
        return FOREIGN_EVENT
    if flow[MODE] != MSMQ:
        return FOREIGN_EVENT if is_ncp_port(arrays.header[PORTS]) else CONTINUE  # a gap makes it NCP
    flow[IS_KNOWN] = peer[IS_KNOWN] = 1
    if not flow[IS_STARTED]:
        stop_code = begin_packets(flow, peer, arrays.memory, 0, 0)
        if stop_code >= 0:
            return stop_code
    gaps = flow_arrays.flows[number & -2]
    gaps[GAPS] += 1
    note_origin(arrays.state, flow_arrays, number, peer[ACKED])
    stop_code = take_hole(arrays, flow, event[E_SIZE], event[E_REASON], event[E_FRAME], event[E_NS])
    if stop_code >= 0:
        gaps[GAPS] -= 1
    return stop_code


@jit
def _take_end(arrays: ScanArrays, flow_arrays: FlowArrays, number: int, reason: int) -> int:
    flow = flow_arrays.flows[number]
    if flow[HAS_PENDING]:
        return FOREIGN_EVENT
    if flow[MODE] == MSMQ and (flow[PACKET_BYTES] or flow[IN_DOUBT]):
        note_origin(arrays.state, flow_arrays, number, flow_arrays.flows[number ^ 1, ACKED])
        stop_code = end_packets(arrays, flow, reason != END_FIN and reason != END_RST)
        if stop_code >= 0:
            return stop_code
    flow[HAS_ENDED] = 1
    return CONTINUE


@jit
def _take_event(arrays: ScanArrays, flow_arrays: FlowArrays, event: Any) -> int:
    """Take an event, all or nothing; return CONTINUE or a stop code."""
    number, kind = event[E_NUMBER], event[E_KIND]
    flows = flow_arrays.flows
    if kind == DATA or kind == GAP:
        note_first(flows, number)
    if flows[number, MODE] == FOREIGN:
        return FOREIGN_EVENT
    for i in range(KEY_FIELDS):
        arrays.header[i] = flow_arrays.keys[number, i]
    if kind == DATA:
        return _take_data(arrays, flow_arrays, number)
    if kind == GAP:
        return _take_gap(arrays, flow_arrays, number, event)
    if kind == END:
        return _take_end(arrays, flow_arrays, number, event[E_REASON])
    if flows[number, HAS_PENDING] or flows[number + 1, HAS_PENDING]:
        return FOREIGN_EVENT
    free_connection(arrays.state, flow_arrays, number)
    return CONTINUE


@jit
def pass_event(flow_arrays: FlowArrays, event: Any) -> None:
    """Count an event as taken."""
    if event[E_KIND] == DATA or event[E_KIND] == GAP:
        flow_arrays.flows[event[E_NUMBER], TO_COME] -= 1


@exported
@jit
def discard(arrays: ScanArrays, flow_arrays: FlowArrays, number: int) -> int:
    """Skip what a flow has buffered: `PacketFinder.discard`; return CONTINUE or a stop code."""
    state, flow = arrays.state, flow_arrays.flows[number]
    kept, held = flow[PACKET_BYTES], held_by(flow)
    for i in range(KEY_FIELDS):
        arrays.header[i] = flow_arrays.keys[number, i]
    if state[ARENA] + PREFIX_SIZE > state[ARENA_END]:
        state[NEED] = PREFIX_SIZE
        return ARENA_FULL
    remember(arrays.rollback, flow, state)
    note_origin(state, flow_arrays, number, flow_arrays.flows[number ^ 1, ACKED])
    stop_code = CONTINUE
    if kept:
        start = state[ARENA]
        copy_packet(flow, arrays.pending_segments, arrays.pending_bytes, arrays.memory, start, PREFIX_SIZE)
        in_sync = flow[LOSS] == 0 and kept >= PREFIX_SIZE
        if in_sync and begins_packet(arrays.memory, start, start + PREFIX_SIZE):
            flow[REMAINING] = max(0, packet_length(arrays.memory, start) - kept)
        if flow[REMAINING] == 0:
            flow[LOSS] = _LET_GO
        stop_code = skip(arrays, flow, kept, _HELD_TOO_MUCH)
    if stop_code < 0:
        stop_code = show_run(arrays, flow)
    if stop_code >= 0:
        go_back(arrays.rollback, flow, state)
        return stop_code
    state[HELD] -= held
    flow[PACKET_BYTES] = flow[PACKET_SEGMENTS] = flow[PACKET_LEAD] = flow[PACKET_FRAME] = 0
    flow[PACKET_SIZE] = flow[DOUBTFUL_SIZE] = flow[IS_CHECKED] = 0
    in_doubt = flow[LOSS] or flow[REMAINING] or any_failed(flow, flow[DELIVERED])
    flow[IN_DOUBT] = 1 if in_doubt else 0
    return CONTINUE


@exported
@jit
def take_events(arrays: ScanArrays, flow_arrays: FlowArrays) -> int:
    """Take the events of a step; return CONTINUE when there are none left, or a stop code."""
    state, header = arrays.state, arrays.header
    key_0, key_1, key_2, key_3, key_4, key_5 = (
        header[0], header[1], header[2], header[3], header[4], header[5]
    )  # fmt: skip
    stop_code = CONTINUE
    while stop_code < 0:
        if state[HELD] > HELD_MAX and not state[IS_FREED]:
            stop_code = HELD_FULL
        elif state[EVENT] == state[EVENTS]:
            state[EVENT] = state[EVENTS] = state[IS_TAKEN] = 0
            break
        else:
            event = flow_arrays.events[state[EVENT]]
            stop_code = _take_event(arrays, flow_arrays, event)
            if stop_code < 0:
                pass_event(flow_arrays, event)
                state[EVENT] += 1
                state[IS_FREED] = 0
    header[0], header[1], header[2], header[3], header[4], header[5] = (
        key_0, key_1, key_2, key_3, key_4, key_5
    )  # fmt: skip
    return stop_code
