"""Which connections make room for others, compiled: `msmqwire.capture.eviction`."""

from __future__ import annotations

from typing import Any

from msmqwire.tables.compiled.decorators import jit
from msmqwire.tables.compiled.flow_table import ENDED, IS_SEEN, LAST_NS, NEXT_CONNECTION, STREAM, TCP_STATE
from msmqwire.tables.compiled.state import FIRST_CONNECTION


@jit
def _goes_after(flows: Any, one: int, other: int) -> bool:
    """Whether a connection makes room after another: `eviction_rank`."""
    lasts, other_lasts = _lasts(flows, one), _lasts(flows, other)
    if lasts != other_lasts:
        return bool(lasts)
    last_ns = max(flows[one, LAST_NS], flows[one + 1, LAST_NS])
    other_ns = max(flows[other, LAST_NS], flows[other + 1, LAST_NS])
    if last_ns != other_ns:
        return bool(last_ns > other_ns)
    return bool(flows[one, STREAM] > flows[other, STREAM])


@jit
def _lasts(flows: Any, first: int) -> bool:
    ended = flows[first + 1, TCP_STATE] == ENDED or flows[first + 1, IS_SEEN] == 0
    return not (flows[first, TCP_STATE] == ENDED and ended)


@jit
def _sink(flows: Any, heap: Any, at: int, count: int) -> None:
    """Restore a heap, the one that goes last at its top, below an entry."""
    while True:
        last = at
        for child in range(2 * at + 1, min(2 * at + 3, count)):
            if _goes_after(flows, heap[child], heap[last]):
                last = child
        if last == at:
            return
        heap[at], heap[last] = heap[last], heap[at]
        at = last


@jit
def choose_evicted(state: Any, flows: Any, chosen: Any, count: int) -> int:
    """Choose the connections that make room first, up to so many, in their order; return their number."""
    size, number = 0, state[FIRST_CONNECTION]
    while number >= 0:
        if size < count:
            chosen[size] = number
            size += 1
            if size == count:
                for at in range(size // 2, -1, -1):
                    _sink(flows, chosen, at, size)
        elif _goes_after(flows, chosen[0], number):
            chosen[0] = number
            _sink(flows, chosen, 0, size)
        number = flows[number, NEXT_CONNECTION]
    if size < count:
        for at in range(size // 2, -1, -1):
            _sink(flows, chosen, at, size)
    for last in range(size - 1, 0, -1):
        chosen[0], chosen[last] = chosen[last], chosen[0]
        _sink(flows, chosen, 0, last)
    return size
