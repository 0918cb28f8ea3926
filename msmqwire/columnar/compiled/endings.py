"""Connections that end without a frame of theirs, and what is let go to free memory, compiled.

Many connections are passed at once, so that each costs no call from Python.
"""

from __future__ import annotations

from typing import Any, Final

from msmqwire.columnar.compiled.arrays import Bools, Int64s
from msmqwire.columnar.compiled.breaks import end_packets
from msmqwire.columnar.compiled.decorators import exported, jit
from msmqwire.columnar.compiled.delivery import is_ncp_port
from msmqwire.columnar.compiled.failed_checks import any_failed
from msmqwire.columnar.compiled.finding import held_by
from msmqwire.columnar.compiled.flow_table import (
    ACKED,
    DELIVERED,
    DOUBTFUL_SIZE,
    ENDED,
    FRAME,
    GAP_DUE_NS,
    IN_DOUBT,
    IS_CHECKED,
    KEY_FIELDS,
    LAST_NS,
    LOSS,
    MODE,
    OPENING,
    OUT_OF_ORDER,
    PACKET_BYTES,
    PACKET_FRAME,
    PACKET_LEAD,
    PACKET_SEGMENTS,
    PACKET_SIZE,
    REMAINING,
    SCANNED_BYTES,
    UNRECOGNISED,
    UNSEEN,
    copy_packet,
)
from msmqwire.columnar.compiled.gaps import skip_gap
from msmqwire.columnar.compiled.midstream import start_flow, unlist_opening
from msmqwire.columnar.compiled.network import PORTS
from msmqwire.columnar.compiled.packet import GAP_REASONS, begins_packet, packet_length
from msmqwire.columnar.compiled.rollback import go_back, remember
from msmqwire.columnar.compiled.scan_arrays import FlowArrays, ScanArrays
from msmqwire.columnar.compiled.skipped_run import show_run, skip
from msmqwire.columnar.compiled.state import ARENA, ARENA_END, HELD, NEED
from msmqwire.columnar.compiled.stop_codes import ARENA_FULL, CONTINUE, GENERIC_RECORD
from msmqwire.dissection.finder_state import Why
from msmqwire.headers.base import PREFIX_SIZE

_END: Final = GAP_REASONS.index("end")
_LET_GO, _HELD_TOO_MUCH = int(Why.LET_GO), int(Why.HELD_TOO_MUCH)


@jit
def _end_flow(arrays: ScanArrays, flow_arrays: FlowArrays, number: int, tcp_ports: Any) -> int:
    """End a flow after its last frame: `Direction.end`; return CONTINUE or a stop code.

    Each of its gaps is given up as a whole, so that the rest can be done later.
    """
    flow, key = flow_arrays.flows[number], flow_arrays.keys[number]
    if flow[MODE] == UNSEEN or flow[MODE] == ENDED:
        return CONTINUE
    if flow[MODE] == OPENING:
        stop_code = start_flow(arrays, flow_arrays, number, tcp_ports, flow[GAP_DUE_NS])
        if stop_code >= 0:
            return stop_code
        unlist_opening(arrays.state, flow_arrays.flows, number)
    if flow[MODE] == UNRECOGNISED and flow[ACKED] >= 0 and is_ncp_port(key[PORTS]):
        return GENERIC_RECORD  # if that is beyond its end, it is a gap, which makes it NCP
    while flow[OUT_OF_ORDER]:
        stop_code = skip_gap(arrays, flow, key, _END, flow[FRAME], flow[LAST_NS])
        if stop_code >= 0:
            return stop_code
    if flow[PACKET_BYTES] or flow[IN_DOUBT]:
        for i in range(KEY_FIELDS):
            arrays.header[i] = key[i]
        stop_code = end_packets(arrays, flow)
        if stop_code >= 0:
            return stop_code
    flow[MODE] = ENDED
    return CONTINUE


@exported
@jit
def end_connections(
    arrays: ScanArrays, flow_arrays: FlowArrays, numbers: Int64s, first: int, tcp_ports: Bools
) -> tuple[int, int]:
    """End connections, given by their even numbers, from the one at ``first`` on: `Reassembler._forget`.

    Returns how far that came, and CONTINUE or a stop code.
    """
    for i in range(first, numbers.size):
        for number in range(numbers[i], numbers[i] + 2):
            stop_code = _end_flow(arrays, flow_arrays, number, tcp_ports)
            if stop_code >= 0:
                return i, stop_code
    return numbers.size, CONTINUE


@jit
def _discard(arrays: ScanArrays, flow: Any) -> int:
    """Skip what a flow has buffered: `PacketFinder.discard`; return CONTINUE or a stop code."""
    state, kept, held = arrays.state, flow[PACKET_BYTES], held_by(flow)
    if state[ARENA] + PREFIX_SIZE > state[ARENA_END]:
        state[NEED] = PREFIX_SIZE
        return ARENA_FULL
    remember(arrays.rollback[1], flow, state)
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
        go_back(arrays.rollback[1], flow, state)
        return stop_code
    state[HELD] -= held
    flow[PACKET_BYTES] = flow[PACKET_SEGMENTS] = flow[PACKET_LEAD] = flow[PACKET_FRAME] = 0
    flow[PACKET_SIZE] = flow[SCANNED_BYTES] = flow[DOUBTFUL_SIZE] = flow[IS_CHECKED] = 0
    in_doubt = flow[LOSS] or flow[REMAINING] or any_failed(flow, flow[DELIVERED])
    flow[IN_DOUBT] = 1 if in_doubt else 0
    return CONTINUE


@exported
@jit
def discard_held(
    arrays: ScanArrays, flow_arrays: FlowArrays, numbers: Int64s, first: int, held_max: int
) -> tuple[int, int]:
    """Skip what connections have buffered, given by their even numbers, from the one at ``first`` on.

    That goes on as long as more than ``held_max`` is held. Returns how far it came, and CONTINUE or a stop
    code: GENERIC_RECORD for a connection that holds something in both directions.
    """
    flows, keys = flow_arrays.flows, flow_arrays.keys
    for i in range(first, numbers.size):
        if arrays.state[HELD] <= held_max:
            return i, CONTINUE
        number = numbers[i]
        if held_by(flows[number]) and held_by(flows[number + 1]):
            return i, GENERIC_RECORD
        if held_by(flows[number]) == 0:
            number += 1
        for field in range(KEY_FIELDS):
            arrays.header[field] = keys[number, field]
        stop_code = _discard(arrays, flows[number])
        if stop_code >= 0:
            return i, stop_code
    return numbers.size, CONTINUE
