"""Ranges of a flow that were checked for a packet in vain: `msmqwire.analysis.dissection.failed_checks`.

Each entry of a flow has the end of a range, counted as DELIVERED is, above six bits for the class of its
size.
"""

from __future__ import annotations

from typing import Any, Final

from msmqwire.analysis.dissection.failed_checks import OVERLAPS_MAX
from msmqwire.tables.compiled.decorators import jit
from msmqwire.tables.compiled.flow_table import FAILED, FLOW_FIELDS

END_SHIFT: Final = 6
CLASS_MASK: Final = (1 << END_SHIFT) - 1


@jit
def _size_class(size: int) -> int:
    found = 0
    while size >> 2 * found:
        found += 1
    return found


@jit
def admits(flow: Any, start: int, size: int) -> bool:
    """Whether a range may be checked. It should not start before the one checked last."""
    of_size, overlaps = _size_class(size), 0
    for i in range(FAILED, FLOW_FIELDS):
        overlaps += flow[i] & CLASS_MASK == of_size and flow[i] >> END_SHIFT > start
    return overlaps < OVERLAPS_MAX


@jit
def add_failed(flow: Any, start: int, size: int) -> None:
    """Note that a range was checked in vain; if there are too many, in place of the one that ends first."""
    chosen = FAILED
    for i in range(FAILED, FLOW_FIELDS):
        if flow[i] == 0 or flow[i] >> END_SHIFT <= start:
            chosen = i
            break
        if flow[i] < flow[chosen]:
            chosen = i
    flow[chosen] = start + size << END_SHIFT | _size_class(size)


@jit
def any_failed(flow: Any, start: int) -> bool:
    """Whether any of the ranges ends behind an offset."""
    found = 0
    for i in range(FAILED, FLOW_FIELDS):
        found += flow[i] != 0 and flow[i] >> END_SHIFT > start
    return found > 0
