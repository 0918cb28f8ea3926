"""The flows of the compiled scan by their numbers: where they stand in its arrays."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from msmqwire.capture.direction import Direction
from msmqwire.capture.ip import FlowKey
from msmqwire.columnar.bridge.flow_keys import key_of
from msmqwire.columnar.compiled import flow_table
from msmqwire.columnar.compiled.flow_table import ACKED, MODE, OUT_OF_ORDER, TRACKED
from msmqwire.columnar.compiled.scan_arrays import FlowArrays
from msmqwire.columnar.compiled.state import (
    FIRST_GAP,
    FIRST_OPENING,
    FREE_NUMBERS,
    HASH_SEED,
    LAST_GAP,
    LAST_OPENING,
    NEW_CONNECTIONS,
)
from msmqwire.dissection.tracker import CONNECTIONS_MAX

_INITIAL_FLOWS: Final = 1 << 10
"""Flows for which there is space at first."""


class FlowNumbers:
    """The arrays of the flows, and the numbers of those that the tracker knows.

    The two directions of a connection have an even number and the next one.

    Attributes:
        arrays: the flows of the scan.
        by_direction: the number of each direction of the tracker.
        directions: those directions by number.
        unregistered: connections that the scan has seen begin, and of which the tracker has not heard.
    """

    def __init__(self, state: Any) -> None:
        self._state = state
        self.arrays = _empty_flow_arrays()
        self.restart()

    def restart(self) -> None:
        """Forget all flows."""
        state = self._state
        self.by_direction: dict[Direction, int] = {}
        self.directions: dict[int, Direction] = {}
        self.unregistered: set[int] = set()
        self._removed = 0
        if len(self.arrays.keys) != _INITIAL_FLOWS:
            self.arrays = _empty_flow_arrays()
        table, _, flows, free_numbers, _, next_gap, _ = self.arrays
        table[:], next_gap[:] = -1, flow_table.NOT_LISTED
        flows[:], flows[:, ACKED] = 0, -1
        free_numbers[:] = np.arange(_INITIAL_FLOWS - 2, -1, -2)
        state[NEW_CONNECTIONS], state[FREE_NUMBERS] = 0, len(free_numbers)
        state[FIRST_OPENING] = state[LAST_OPENING] = -1
        state[FIRST_GAP] = state[LAST_GAP] = -1
        state[HASH_SEED] = flow_table.new_seed()

    def add(self, direction: Direction) -> None:
        """Give numbers to a direction and its peer."""
        if not self._state[FREE_NUMBERS]:
            self._grow()
        table, keys, flows, free_numbers, *_ = self.arrays
        self._state[FREE_NUMBERS] -= 1
        first = int(free_numbers[self._state[FREE_NUMBERS]])
        self.register(direction, first)
        for side, number in ((direction, first), (direction.peer, first + 1)):
            keys[number] = key_of(*side.key)
            flows[number, MODE], flows[number, ACKED] = TRACKED, -1
            flow_table.insert(table, keys, number, self._state[HASH_SEED])

    def register(self, direction: Direction, first: int) -> None:
        """Note a direction and its peer as those of a connection that has numbers already."""
        for side, number in ((direction, first), (direction.peer, first + 1)):
            self.by_direction[side] = number
            self.directions[number] = side

    def unregister(self, direction: Direction) -> None:
        """Note that the tracker has forgotten a connection, of which the scan has the numbers still."""
        first = self.by_direction[direction]
        for side in (direction, direction.peer):
            del self.directions[self.by_direction.pop(side)]
        self.unregistered.add(first)

    def find(self, key: FlowKey) -> int:
        """Return the number of a flow by its addresses and ports; below 0 if there is none."""
        table, keys = self.arrays[:2]
        wanted = np.array(key_of(*key), np.int64)
        return int(flow_table.find(table, keys, wanted, self._state[HASH_SEED]))

    def remove(self, direction: Direction, *, reusable: bool) -> int | None:
        """Free the numbers of a direction and its peer; return the even one, None if they have none."""
        number = self.by_direction.get(direction)
        if number is None:
            return None
        first = number & -2
        table, keys, flows, free_numbers, *_ = self.arrays
        for side in (direction, direction.peer):
            number = self.by_direction.pop(side)
            del self.directions[number]
            flow_table.remove(table, keys, number, self._state[HASH_SEED])
            flows[number, MODE] = TRACKED
        free_numbers[self._state[FREE_NUMBERS]] = first
        self._state[FREE_NUMBERS] += reusable
        self._removed += 2
        if self._removed > len(table) // 4:
            self._rebuild()
        return first

    def drop(self, numbers: Any) -> None:
        """Free the numbers of unregistered connections."""
        table, keys, flows, free_numbers, *_ = self.arrays
        self.unregistered.difference_update(numbers.tolist())
        flow_table.remove_connections(table, keys, flows, numbers, self._state[HASH_SEED])
        count = int(self._state[FREE_NUMBERS])
        free_numbers[count : count + numbers.size] = numbers
        self._state[FREE_NUMBERS] += numbers.size
        self._removed += 2 * numbers.size
        if self._removed > len(table) // 4:
            self._rebuild()

    def take_gaps(self) -> list[int]:
        """Empty the list of flows that may have a gap; return the numbers of those that have."""
        flows, next_gap = self.arrays.flows, self.arrays.next_gap
        numbers, number = list[int](), int(self._state[FIRST_GAP])
        while number >= 0:
            if flows[number, OUT_OF_ORDER]:
                numbers.append(number)
            next_gap[number], number = flow_table.NOT_LISTED, int(next_gap[number])
        self._state[FIRST_GAP] = self._state[LAST_GAP] = -1
        return sorted(numbers)

    def _grow(self) -> None:
        table, keys, flows, free_numbers, new_connections, next_gap, previous_gap = self.arrays
        used = len(keys)
        next_gap = np.concatenate([next_gap, np.full_like(next_gap, flow_table.NOT_LISTED)])
        keys, flows, free_numbers, previous_gap = (
            np.concatenate([array, np.zeros_like(array)])
            for array in (keys, flows, free_numbers, previous_gap)
        )
        free_numbers[: used // 2] = np.arange(len(keys) - 2, used - 2, -2, dtype=np.int64)
        self._state[FREE_NUMBERS] = used // 2
        self.arrays = FlowArrays(table, keys, flows, free_numbers, new_connections, next_gap, previous_gap)
        self._rebuild()

    def _rebuild(self) -> None:
        """Rebuild the hash table, without the removed entries."""
        table = np.full(4 * len(self.arrays.keys), -1, np.int32)
        flow_table.rebuild(table, self.arrays.keys, self._all(), self._state[HASH_SEED])
        self.arrays = self.arrays._replace(table=table)
        self._removed = 0

    def _all(self) -> Any:
        """Return the numbers of all flows."""
        new_connections = self.arrays.new_connections[: self._state[NEW_CONNECTIONS]]
        unregistered = [*self.unregistered, *map(int, new_connections)]
        flows = [number + side for number in unregistered for side in (0, 1)]
        return np.array(sorted([*self.directions, *flows]), np.int64)


def _empty_flow_arrays() -> FlowArrays:
    return FlowArrays(
        np.empty(4 * _INITIAL_FLOWS, np.int32),
        np.zeros((_INITIAL_FLOWS, flow_table.KEY_FIELDS), np.int64),
        np.empty((_INITIAL_FLOWS, flow_table.FLOW_FIELDS), np.int64),
        np.empty(_INITIAL_FLOWS // 2, np.int64),
        np.zeros(CONNECTIONS_MAX, np.int64),
        np.full(_INITIAL_FLOWS, flow_table.NOT_LISTED, np.int64),
        np.zeros(_INITIAL_FLOWS, np.int64),
    )
