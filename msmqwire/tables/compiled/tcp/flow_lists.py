"""The lists of connections, by age, and of the flows that wait, those first that wait longest; compiled."""

from __future__ import annotations

from typing import Any

from msmqwire.capture.tcp import IDLE_NS_MAX
from msmqwire.tables.compiled.arrays import Bools, Int64s
from msmqwire.tables.compiled.decorators import exported, jit
from msmqwire.tables.compiled.flow_table import (
    ACKED,
    CHECK_WAIT,
    FIN_SEQ,
    FIRST_SEQ,
    FLOW_FIELDS,
    FRAME,
    FREE,
    IS_GONE,
    IS_WAITING,
    ISN,
    MODE,
    MSMQ,
    NEXT_CONNECTION,
    NEXT_WAITING,
    NO_SEQ,
    PREVIOUS_CONNECTION,
    PREVIOUS_WAITING,
    STREAM,
    UNRECOGNISED,
    WAITING_FRAME,
    insert,
    remove,
)
from msmqwire.tables.compiled.network import DST_HIGH, DST_LOW, IS_IPV6, PORTS, SRC_HIGH, SRC_LOW
from msmqwire.tables.compiled.scan_arrays import FlowArrays
from msmqwire.tables.compiled.state import (
    CONNECTIONS,
    FIRST_CONNECTION,
    FIRST_WAITING,
    FREE_NUMBERS,
    HASH_SEED,
    LAST_CONNECTION,
    LAST_WAITING,
    REMOVED,
    STREAMS,
)


@jit
def wait(state: Any, flows: Any, number: int) -> None:
    """List a flow that begins to wait, by its last frame: `WaitingDirections.add`."""
    flow, before, after = flows[number], state[LAST_WAITING], -1
    flow[IS_WAITING], flow[WAITING_FRAME] = 1, flow[FRAME]
    while before >= 0 and flows[before, WAITING_FRAME] > flow[WAITING_FRAME]:
        before, after = flows[before, PREVIOUS_WAITING], before
    flow[PREVIOUS_WAITING], flow[NEXT_WAITING] = before, after
    if before < 0:
        state[FIRST_WAITING] = number
    else:
        flows[before, NEXT_WAITING] = number
    if after < 0:
        state[LAST_WAITING] = number
    else:
        flows[after, PREVIOUS_WAITING] = number


@jit
def _unlink(
    state: Any, flows: Any, number: int, first: int, last: int, previous: int, following: int
) -> None:
    """Remove a flow from a list, given by its ends in the state and the fields of its links."""
    before, after = flows[number, previous], flows[number, following]
    if before < 0:
        state[first] = after
    else:
        flows[before, following] = after
    if after < 0:
        state[last] = before
    else:
        flows[after, previous] = before


@jit
def wait_no_more(state: Any, flows: Any, number: int) -> None:
    """Remove a flow from the list of those that wait."""
    _unlink(state, flows, number, FIRST_WAITING, LAST_WAITING, PREVIOUS_WAITING, NEXT_WAITING)
    flows[number, IS_WAITING] = 0


@exported
@jit
def add_connection(state: Int64s, flow_arrays: FlowArrays, header: Int64s, tcp_ports: Bools) -> int:
    """Add a connection of which nothing has been seen; return the number of its flow with the header's key.

    There must be one that is free.
    """
    state[FREE_NUMBERS] -= 1
    first, flows = flow_arrays.free_numbers[state[FREE_NUMBERS]], flow_arrays.flows
    src_port, dst_port = header[PORTS] >> 16, header[PORTS] & 0xFFFF
    for side in range(2):
        flow, key = flows[first + side], flow_arrays.keys[first + side]
        for i in range(FLOW_FIELDS):
            flow[i] = 0
        flow[MODE] = MSMQ if tcp_ports[src_port] or tcp_ports[dst_port] else UNRECOGNISED
        flow[ACKED], flow[ISN], flow[FIRST_SEQ], flow[FIN_SEQ] = -1, -1, NO_SEQ, NO_SEQ
        flow[STREAM] = state[STREAMS]
        key[SRC_HIGH if side == 0 else DST_HIGH] = header[SRC_HIGH]
        key[SRC_LOW if side == 0 else DST_LOW] = header[SRC_LOW]
        key[DST_HIGH if side == 0 else SRC_HIGH] = header[DST_HIGH]
        key[DST_LOW if side == 0 else SRC_LOW] = header[DST_LOW]
        key[PORTS] = src_port << 16 | dst_port if side == 0 else dst_port << 16 | src_port
        key[IS_IPV6] = header[IS_IPV6]
    for number in range(first, first + 2):  # so that the first is found where both have the same key
        insert(flow_arrays.table, flow_arrays.keys, number, state[HASH_SEED])
    last = state[LAST_CONNECTION]
    flows[first, PREVIOUS_CONNECTION], flows[first, NEXT_CONNECTION] = last, -1
    flows[first, CHECK_WAIT] = IDLE_NS_MAX
    if last < 0:
        state[FIRST_CONNECTION] = first
    else:
        flows[last, NEXT_CONNECTION] = first
    state[LAST_CONNECTION] = first
    state[STREAMS] += 1
    state[CONNECTIONS] += 1
    return first


@jit
def drop_connection(state: Any, flow_arrays: FlowArrays, first: int) -> None:
    """Forget a connection, but for its events; its number stays in use."""
    flows = flow_arrays.flows
    for number in range(first, first + 2):
        remove(flow_arrays.table, flow_arrays.keys, number, state[HASH_SEED])
        flows[number, IS_GONE] = 1
    _unlink(state, flows, first, FIRST_CONNECTION, LAST_CONNECTION, PREVIOUS_CONNECTION, NEXT_CONNECTION)
    state[CONNECTIONS] -= 1
    state[REMOVED] += 2


@jit
def free_connection(state: Any, flow_arrays: FlowArrays, first: int) -> None:
    """Let the number of a connection that was forgotten be used again."""
    for number in range(first, first + 2):
        for i in range(FLOW_FIELDS):
            flow_arrays.flows[number, i] = 0
        flow_arrays.flows[number, MODE] = FREE
    flow_arrays.free_numbers[state[FREE_NUMBERS]] = first
    state[FREE_NUMBERS] += 1
