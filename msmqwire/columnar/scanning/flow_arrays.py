"""The arrays of the flows of the scan, which grow."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from msmqwire.capture.tcp import START_SEGMENTS
from msmqwire.columnar.compiled import flow_table
from msmqwire.columnar.compiled import state as entry
from msmqwire.columnar.compiled.flow_table import MODE
from msmqwire.columnar.compiled.reassembly import EVENT_FIELDS
from msmqwire.columnar.compiled.scan_arrays import FlowArrays

_INITIAL_FLOWS: Final = 1 << 10
"""Flows for which there is space at first."""
_INITIAL_EVENTS: Final = 1 << 12
"""Events for which there is space at first."""


def new_flow_arrays(state: Any) -> FlowArrays:
    """Return arrays without any flow, and set the entries of a state that belong to them."""
    state[entry.FREE_NUMBERS], state[entry.HASH_SEED] = _INITIAL_FLOWS // 2, flow_table.new_seed()
    state[entry.FIRST_WAITING] = state[entry.LAST_WAITING] = -1
    state[entry.FIRST_CONNECTION] = state[entry.LAST_CONNECTION] = -1
    state[entry.CONNECTIONS] = state[entry.STREAMS] = state[entry.REMOVED] = 0
    state[entry.EVENT] = state[entry.EVENTS] = state[entry.IS_TAKEN] = state[entry.IS_FREED] = 0
    state[entry.BUFFERED] = state[entry.BUFFERED_SEGMENTS] = state[entry.HELD] = 0
    state[entry.NOW] = state[entry.SWEEP_AT] = state[entry.IDLE_AT] = 0
    state[entry.DEADLINE], state[entry.START_SEGMENTS] = entry.NEVER, START_SEGMENTS
    return FlowArrays(
        np.full(4 * _INITIAL_FLOWS, flow_table.EMPTY, np.int32),
        np.zeros((_INITIAL_FLOWS, flow_table.KEY_FIELDS), np.int64),
        np.zeros((_INITIAL_FLOWS, flow_table.FLOW_FIELDS), np.int64),
        np.arange(_INITIAL_FLOWS - 2, -1, -2, dtype=np.int64),
        np.zeros(_INITIAL_FLOWS, np.int64),
        np.zeros((_INITIAL_EVENTS, EVENT_FIELDS), np.int64),
    )


def with_more_flows(arrays: FlowArrays, state: Any) -> FlowArrays:
    """Return arrays with a number for another connection, and without removed entries in the table."""
    if not state[entry.FREE_NUMBERS]:
        used = len(arrays.keys)
        keys, flows, free_numbers, chosen = (
            np.concatenate([array, np.zeros_like(array)])
            for array in (arrays.keys, arrays.flows, arrays.free_numbers, arrays.chosen)
        )
        free_numbers[: used // 2] = np.arange(2 * used - 2, used - 2, -2, dtype=np.int64)
        state[entry.FREE_NUMBERS] = used // 2
        arrays = arrays._replace(keys=keys, flows=flows, free_numbers=free_numbers, chosen=chosen)
    table = np.full(4 * len(arrays.keys), flow_table.EMPTY, np.int32)
    in_use = (arrays.flows[:, MODE] != flow_table.FREE) & (arrays.flows[:, flow_table.IS_GONE] == 0)
    flow_table.rebuild(table, arrays.keys, np.flatnonzero(in_use), state[entry.HASH_SEED])
    state[entry.REMOVED] = 0
    return arrays._replace(table=table)


def with_more_events(arrays: FlowArrays, count: int) -> FlowArrays:
    """Return arrays with room for so many events."""
    events = np.zeros((2 * count, EVENT_FIELDS), np.int64)
    events[: len(arrays.events)] = arrays.events
    return arrays._replace(events=events)
