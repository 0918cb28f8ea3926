"""Ranges of a flow that were checked for a packet in vain: `msmqwire.analysis.dissection.failed_checks`.

A flow has `OVERLAPS_MAX` entries for each class of sizes: the ends of the ranges that end last, counted as
DELIVERED is, 0 for none.
"""

from __future__ import annotations

from typing import Any

from msmqwire.analysis.dissection.failed_checks import OVERLAPS_MAX, SIZES
from msmqwire.tables.compiled.decorators import jit
from msmqwire.tables.compiled.flow_table import FAILED, FLOW_FIELDS


@jit
def _first_entry(size: int) -> int:
    """Return the first of the entries for the class of a size."""
    of_size = 0
    while of_size < SIZES - 1 and size >> 2 * (of_size + 1):
        of_size += 1
    return FAILED + OVERLAPS_MAX * of_size


@jit
def admits(flow: Any, start: int, size: int) -> bool:
    """Whether a range may be checked."""
    first, overlaps = _first_entry(size), 0
    for i in range(first, first + OVERLAPS_MAX):
        overlaps += flow[i] > start
    return overlaps < OVERLAPS_MAX


@jit
def add_failed(flow: Any, start: int, size: int) -> None:
    """Note that a range was checked in vain, in place of the one of its class that ends first."""
    first = _first_entry(size)
    chosen = first
    for i in range(first + 1, first + OVERLAPS_MAX):
        if flow[i] < flow[chosen]:
            chosen = i
    flow[chosen] = max(flow[chosen], start + size)


@jit
def any_failed(flow: Any, start: int) -> bool:
    """Whether any of the ranges ends behind an offset."""
    found = 0
    for i in range(FAILED, FLOW_FIELDS):
        found += flow[i] > start
    return found > 0
