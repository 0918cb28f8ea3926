"""The arrays of the flows of the scan, which grow."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from msmqwire.capture.tcp import START_SEGMENTS
from msmqwire.tables.compiled import flow_table
from msmqwire.tables.compiled import state as entry
from msmqwire.tables.compiled.flow_table import MODE
from msmqwire.tables.compiled.scan_arrays import FlowArrays
from msmqwire.tables.compiled.tcp.events import EVENT_FIELDS

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
    used = len(arrays.keys)
    if not state[entry.FREE_NUMBERS]:
        # One more than may be tracked: it has a number before an older flow makes room for it.
        size = max(used + 2, min(2 * used, 2 * (int(state[entry.CONNECTIONS_LIMIT]) + 1)))
        keys, flows, free_numbers, chosen = (
            _enlarged(array, rows)
            for array, rows in (
                (arrays.keys, size),
                (arrays.flows, size),
                (arrays.free_numbers, size // 2),
                (arrays.chosen, size),
            )
        )
        count = (size - used) // 2
        free_numbers[:count] = np.arange(size - 2, used - 2, -2, dtype=np.int64)
        state[entry.FREE_NUMBERS] = count
        arrays = arrays._replace(keys=keys, flows=flows, free_numbers=free_numbers, chosen=chosen)
        used = size
    table = np.full(4 << (used - 1).bit_length(), flow_table.EMPTY, np.int32)
    in_use = (arrays.flows[:, MODE] != flow_table.FREE) & (arrays.flows[:, flow_table.IS_GONE] == 0)
    flow_table.rebuild(table, arrays.keys, np.flatnonzero(in_use), state[entry.HASH_SEED])
    state[entry.REMOVED] = 0
    return arrays._replace(table=table)


def _enlarged(array: Any, rows: int) -> Any:
    """Return an array with a number of rows, the new ones zero."""
    larger = np.zeros((rows, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


def with_more_events(arrays: FlowArrays, count: int) -> FlowArrays:
    """Return arrays with room for a number of events."""
    return arrays._replace(events=_enlarged(arrays.events, 2 * count))
