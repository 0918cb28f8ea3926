"""The directions of TCP connections that are in order, in arrays: looked up, and what they hold.

Two directions of a connection have the numbers 2n and 2n + 1. Pieces of packets that are not whole
are a chain of nodes for each direction; their bytes stand in an array of their own.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from msmqwire.columnar.compiled.jit import copy, inlined, jit
from msmqwire.columnar.compiled.network import DST_HIGH, DST_LOW, HEADS, IS_IPV6, PORTS, SRC_HIGH, SRC_LOW

KEEP: Final = 0
KNOWN: Final = 1
UNKNOWN: Final = 2
FRESH: Final = 3
ENDED: Final = 4
"""Modes: the tracker keeps the direction; it is MSMQ; nothing of it is recognised as MSMQ so far; nothing
of it was seen, only its peer; it has ended with a FIN, and all of it was delivered."""

(
    MODE, NEXT, ACKED, LAST_NS, FRAME, STREAM, PENDING, PIECES, FIRST, LAST, NEEDED, TAKEN, IGNORED,
    IGNORED_FRAME, IGNORED_NS, LATEST, LATEST_NS, AHEAD, AHEAD_FIRST, AHEAD_LAST, AHEAD_COST, AHEAD_FROM,
    SINCE, DUE, ISN,
) = range(25)  # fmt: skip
FIELDS: Final = 25
"""The state of a direction, by index; see `handover.DirectionSnapshot`.

LATEST is the last frame of the bytes held, with its time. AHEAD segments are buffered beyond a gap: their
cost in memory, the frame that brought the first, since when nothing was delivered, and when time may decide
over the gap. ISN is the initial sequence number of a direction whose SYN was seen.
"""

NODE_START, NODE_SIZE, NODE_FRAME, NODE_TIME, NODE_NEXT, NODE_PLACE = range(6)
NODE_FIELDS: Final = 6
KEY_FIELDS: Final = 6

_EMPTY, _REMOVED = -1, -2


@inlined
def _slot(key: Any, mask: int) -> Any:
    mixed = np.uint64(0x9E3779B97F4A7C15)
    for i in range(5):
        mixed = (mixed ^ np.uint64(key[i])) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(29)
    return np.int64(mixed & np.uint64(mask))


@inlined
def find(table: Any, keys: Any, head: Any) -> int:
    """The number of the direction of a datagram's head; -1 when it is not known."""
    mask = table.size - 1
    at = _slot(head, mask)
    while table[at] != _EMPTY:
        number = table[at]
        if number >= 0:
            same = True
            for i in range(KEY_FIELDS):
                if keys[number, i] != head[i]:
                    same = False
                    break
            if same:
                return number
        at = (at + 1) & mask
    return -1


@jit
def insert(table: Any, keys: Any, number: int) -> None:
    """Has a direction found by its key."""
    mask = table.size - 1
    at = _slot(keys[number], mask)
    while table[at] >= 0:
        at = (at + 1) & mask
    table[at] = number


@jit
def remove(table: Any, keys: Any, number: int) -> None:
    """Has a direction not found any more."""
    mask = table.size - 1
    at = _slot(keys[number], mask)
    while table[at] != _EMPTY:
        if table[at] == number:
            table[at] = _REMOVED
            return
        at = (at + 1) & mask


@jit
def rebuild(table: Any, keys: Any, used: Any) -> None:
    """Builds the table anew, from the numbers that are in use."""
    table[:] = _EMPTY
    for i in range(used.size):
        insert(table, keys, used[i])


@jit
def gather(flow: Any, nodes: Any, pend: Any, target: Any, at: int, most: int) -> int:
    """Copies up to ``most`` bytes of what a direction holds; how many there were."""
    node, done = flow[FIRST], 0
    for _ in range(flow[PIECES]):
        if done == most:
            break
        size = min(nodes[node, NODE_SIZE], most - done)
        copy(pend, nodes[node, NODE_START], size, target, at + done)
        done += size
        node = nodes[node, NODE_NEXT]
    return done


assert tuple(range(KEY_FIELDS)) == (SRC_HIGH, SRC_LOW, DST_HIGH, DST_LOW, PORTS, IS_IPV6)
assert HEADS > KEY_FIELDS


@jit
def compact(
    states: Any, numbers: Any, nodes: Any, pend: Any, new_nodes: Any, new_pend: Any
) -> tuple[int, int]:
    """Moves all pieces that are still held to new arrays; how many there are, and how many bytes."""
    count, used = 0, 0
    for i in range(numbers.size):
        flow = states[numbers[i]]
        if flow[MODE] == KEEP:
            continue
        for ahead in range(2):
            first, last = (AHEAD_FIRST, AHEAD_LAST) if ahead else (FIRST, LAST)
            node = flow[first]
            for k in range(flow[AHEAD] if ahead else flow[PIECES]):
                size, following = nodes[node, NODE_SIZE], nodes[node, NODE_NEXT]
                copy(pend, nodes[node, NODE_START], size, new_pend, used)
                for field in range(NODE_FIELDS):
                    new_nodes[count, field] = nodes[node, field]
                new_nodes[count, NODE_START] = used
                new_nodes[count, NODE_NEXT] = count + 1
                if k == 0:
                    flow[first] = count
                flow[last] = count
                node = following
                count += 1
                used += size
    return count, used
