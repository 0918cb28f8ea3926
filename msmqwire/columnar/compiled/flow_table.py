"""The flows that the scan follows, in arrays: looked up by key, and their buffered segments.

The two flows of a connection have the numbers 2n and 2n + 1. The buffered segments of a flow are two linked
lists: the parts of an incomplete packet, and the segments beyond a gap. Their bytes are in an array of their
own.
"""

from __future__ import annotations

import random
from typing import Any, Final

import numpy as np

from msmqwire.columnar.compiled.arrays import Bytes, Int32s, Int64Rows, Int64s
from msmqwire.columnar.compiled.decorators import exported, inlined, jit
from msmqwire.columnar.compiled.memory import copy
from msmqwire.columnar.compiled.network import (
    DST_HIGH,
    DST_LOW,
    HEADER_FIELDS,
    IS_IPV6,
    PORTS,
    SRC_HIGH,
    SRC_LOW,
)
from msmqwire.columnar.compiled.scan_arrays import FlowArrays
from msmqwire.columnar.compiled.state import FIRST_GAP, LAST_GAP
from msmqwire.dissection.finder_state import FAILED_MAX

TRACKED: Final = 0
MSMQ: Final = 1
UNRECOGNISED: Final = 2
UNSEEN: Final = 3
ENDED: Final = 4
JOINED: Final = 5
OPENING: Final = 6
"""Modes of a flow: the tracker has it; it is MSMQ; nothing in it has been recognised as MSMQ so far; only its
peer has been seen; it has ended with a FIN or a reset, and all of it has been delivered; without a SYN, it
has been seen, but none of its data; its first data is buffered until it is certain where it starts."""

(
    MODE, NEXT_SEQ, ACKED, LAST_NS, FRAME, STREAM, PACKET_BYTES, PACKET_SEGMENTS, PACKET_FIRST, PACKET_LAST,
    PACKET_SIZE, DELIVERED, IGNORED, IGNORED_FRAME, IGNORED_NS, PACKET_FRAME, PACKET_NS, OUT_OF_ORDER,
    OUT_OF_ORDER_FIRST, OUT_OF_ORDER_LAST, OUT_OF_ORDER_COST, OUT_OF_ORDER_FRAME, GAP_NS, GAP_DUE_NS, ISN,
    DOUBTFUL_SIZE, PACKET_LEAD, IN_DOUBT, LOSS, REMAINING, IS_CHECKED, SEARCHED_TO, SCANNED_BYTES, RUN_BYTES,
    RUN_REASON, RUN_FRAMES, RUN_FRAME, RUN_NS, RUN_LATEST, RUN_KEPT, RUN_FIRST, RUN_SEGMENTS, WAS_RESET,
    FIRST_SEQ, OPENING_SEGMENTS, NEXT_OPENING, PREVIOUS_OPENING, FAR_NEXT, FAR_FROM, FAR_RUN, IS_REGISTERED,
    IS_BEGUN, AFTER_BAD, FAILED,
) = range(54)  # fmt: skip
FLOW_FIELDS: Final = FAILED + FAILED_MAX
"""The state of a flow, by index; see `handover.DirectionSnapshot`.

ACKED is what the peer acknowledged last, -1 for nothing. LAST_NS and FRAME are the last segment's.

PACKET_BYTES of an incomplete packet are buffered in PACKET_SEGMENTS entries, from PACKET_FIRST to
PACKET_LAST, without the first PACKET_LEAD bytes of the first entry; its PACKET_SIZE, or how many bytes are
needed before more can be found, is 0 as long as it is unknown; PACKET_FRAME is the highest number of their
frames, with its time. DOUBTFUL_SIZE is that of a complete packet that `packet.is_doubtful` and waits for what
follows it, else 0.

OUT_OF_ORDER segments are buffered beyond a gap: their cost in memory, the frame that brought the first, since
when nothing was delivered, and when the gap may be skipped. ISN is the initial sequence number of a flow
whose SYN was seen, else -1. WAS_RESET says that a reset has ended it. FAR_RUN segments in a row were further
away than any window; FAR_NEXT continues them, and FAR_FROM was NEXT_SEQ when they began. IS_REGISTERED says
that the tracker knows the connection. IS_BEGUN says that a hole has been taken, so that its packets have
begun even if nothing was delivered.

FIRST_SEQ is the sequence number before any data of a flow without a SYN, NO_SEQ if that is unknown. While it
is opening it has received OPENING_SEGMENTS, buffered like those beyond a gap; GAP_NS is when the first came,
and GAP_DUE_NS when it starts. It is then in the list of all that are opening, the oldest first: FIRST_OPENING
and LAST_OPENING of the state, NEXT_OPENING and PREVIOUS_OPENING, -1 at the ends.

IN_DOUBT says that there is more to know of a flow, for `finding`. LOSS is why it is out of sync with its
packets, 0 if it is in sync; REMAINING bytes of an incomplete packet are still to be skipped; IS_CHECKED says
that the packet at the start of the buffer is known to be malformed or doubtful. SEARCHED_TO is an offset in
the flow, counted as DELIVERED is, before which no certain packet begins; SCANNED_BYTES of the buffer have
been scanned. AFTER_BAD says that the last packet was malformed. From FAILED on, there are checks that have
failed: see `failed_checks`.

RUN_BYTES have been skipped since the last row, for one RUN_REASON. They are of RUN_FRAMES frames, of which
RUN_FRAME is the highest number, with its time, and RUN_LATEST was counted last. The frames up to RUN_KEPT,
0 for none, are with the generic reader, the others in RUN_SEGMENTS entries from RUN_FIRST on, of which all
bytes were skipped. The entries of the packet follow them.
"""

SEG_START, SEG_SIZE, SEG_FRAME, SEG_NS, SEG_NEXT, SEG_POSITION = range(6)
SEG_FIELDS: Final = 6
"""A buffered segment, or a part of one, by index: offset and number of its bytes in `pending_bytes`; the
frame that brought it, and its time; the next entry of the list; for one beyond a gap its position in the
flow, for a part how many bytes of its segment are before it."""
KEY_FIELDS: Final = 6
"""The first fields of a header, which identify a flow."""

EMPTY, _REMOVED = -1, -2
"""Entries of a hash table without a flow."""
NO_SEQ: Final = -(1 << 62)
NOT_LISTED: Final = -2
"""In `FlowArrays.next_gap`: the flow is not in the list."""


def new_seed() -> int:
    """Return a seed for the hashes of a table, so that no capture can be made to fill one slot of it."""
    return random.getrandbits(62)


assert tuple(range(KEY_FIELDS)) == (SRC_HIGH, SRC_LOW, DST_HIGH, DST_LOW, PORTS, IS_IPV6)
assert HEADER_FIELDS > KEY_FIELDS


@inlined
def _slot(key: Any, mask: int, seed: int) -> Any:
    mixed = np.uint64(np.int64(seed))
    for i in range(KEY_FIELDS):
        mixed = (mixed ^ np.uint64(key[i])) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(29)
    return np.int64(mixed & np.uint64(mask))


@exported
@inlined
def find(table: Int32s, keys: Int64Rows, header: Int64s, seed: int) -> int:
    """Return the number of the flow with the key of a header; -1 if there is none."""
    mask = table.size - 1
    slot = _slot(header, mask, seed)
    while table[slot] != EMPTY:
        number = table[slot]
        if number >= 0:
            same = True
            for i in range(KEY_FIELDS):
                if keys[number, i] != header[i]:
                    same = False
                    break
            if same:
                return number
        slot = (slot + 1) & mask
    return -1


@exported
@jit
def insert(table: Int32s, keys: Int64Rows, number: int, seed: int) -> None:
    """Enter the number of a flow under its key."""
    mask = table.size - 1
    slot = _slot(keys[number], mask, seed)
    while table[slot] >= 0:
        slot = (slot + 1) & mask
    table[slot] = number


@jit
def slot_of(table: Any, keys: Any, number: int, seed: int) -> int:
    """Return the slot with the number of a flow; -1 if there is none."""
    mask = table.size - 1
    slot = _slot(keys[number], mask, seed)
    while table[slot] != EMPTY:
        if table[slot] == number:
            return slot
        slot = (slot + 1) & mask
    return -1


@exported
@jit
def remove(table: Int32s, keys: Int64Rows, number: int, seed: int) -> None:
    """Remove the number of a flow."""
    slot = slot_of(table, keys, number, seed)
    if slot >= 0:
        table[slot] = _REMOVED


@exported
@jit
def remove_connections(table: Int32s, keys: Int64Rows, flows: Int64Rows, numbers: Int64s, seed: int) -> None:
    """Remove both flows of connections, given by their even numbers."""
    for i in range(numbers.size):
        for number in range(numbers[i], numbers[i] + 2):
            remove(table, keys, number, seed)
            flows[number, MODE], flows[number, ACKED] = TRACKED, -1


@jit
def swap_sides(table: Any, keys: Any, first: int, seed: int) -> None:
    """Exchange the numbers of the two flows of a connection, of which the even one is given."""
    slot, other = slot_of(table, keys, first, seed), slot_of(table, keys, first + 1, seed)
    table[slot], table[other] = first + 1, first
    for i in range(KEY_FIELDS):
        keys[first, i], keys[first + 1, i] = keys[first + 1, i], keys[first, i]


@exported
@jit
def rebuild(table: Int32s, keys: Int64Rows, numbers: Int64s, seed: int) -> None:
    """Rebuild the table from the numbers in use."""
    table[:] = EMPTY
    for i in range(numbers.size):
        insert(table, keys, numbers[i], seed)


@jit
def unlist_gap(state: Any, flow_arrays: FlowArrays, number: int) -> None:
    """Remove a flow from the list of those that have a gap."""
    next_gap, previous_gap = flow_arrays.next_gap, flow_arrays.previous_gap
    before, after = previous_gap[number], next_gap[number]
    if before < 0:
        state[FIRST_GAP] = after
    else:
        next_gap[before] = after
    if after < 0:
        state[LAST_GAP] = before
    else:
        previous_gap[after] = before
    next_gap[number] = NOT_LISTED


@exported
@jit
def list_gap(state: Int64s, flow_arrays: FlowArrays, number: int) -> None:
    """List a flow that has a gap, in the order of the frames since which they wait."""
    flows, next_gap, previous_gap = flow_arrays.flows, flow_arrays.next_gap, flow_arrays.previous_gap
    if next_gap[number] != NOT_LISTED:
        unlist_gap(state, flow_arrays, number)
    before, after = state[LAST_GAP], -1
    while before >= 0:
        if flows[before, OUT_OF_ORDER] == 0:
            unlist_gap(state, flow_arrays, before)
        elif flows[before, OUT_OF_ORDER_FRAME] <= flows[number, OUT_OF_ORDER_FRAME]:
            break
        else:
            after = before
        before = state[LAST_GAP] if after < 0 else previous_gap[after]
    next_gap[number], previous_gap[number] = after, before
    if before < 0:
        state[FIRST_GAP] = number
    else:
        next_gap[before] = number
    if after < 0:
        state[LAST_GAP] = number
    else:
        previous_gap[after] = number


@jit
def oldest_gap(state: Any, flow_arrays: FlowArrays) -> int:
    """Return the flow that has waited longest for a gap to be filled; -1 if none waits."""
    while state[FIRST_GAP] >= 0 and flow_arrays.flows[state[FIRST_GAP], OUT_OF_ORDER] == 0:
        unlist_gap(state, flow_arrays, state[FIRST_GAP])
    return state[FIRST_GAP]


@jit
def copy_packet(
    flow: Any, pending_segments: Any, pending_bytes: Any, target: Any, offset: int, size_max: int
) -> int:
    """Copy up to ``size_max`` bytes of the incomplete packet of a flow; return how many there were."""
    number, copied, lead = flow[PACKET_FIRST], 0, flow[PACKET_LEAD]
    for _ in range(flow[PACKET_SEGMENTS]):
        if copied == size_max:
            break
        segment = pending_segments[number]
        size = min(segment[SEG_SIZE] - lead, size_max - copied)
        copy(pending_bytes, segment[SEG_START] + lead, size, target, offset + copied)
        copied += size
        number, lead = segment[SEG_NEXT], 0
    return copied


@exported
@jit
def compact(
    flows: Int64Rows,
    numbers: Int64s,
    pending_segments: Int64Rows,
    pending_bytes: Bytes,
    new_segments: Int64Rows,
    new_bytes: Bytes,
) -> tuple[int, int]:
    """Move the buffered segments of some flows to new arrays; return how many they are, and their bytes."""
    count, used = 0, 0
    for i in range(numbers.size):
        flow = flows[numbers[i]]
        if flow[MODE] == TRACKED:
            continue
        for first, length, last in (
            (RUN_FIRST, RUN_SEGMENTS, PACKET_LAST),
            (PACKET_FIRST, PACKET_SEGMENTS, PACKET_LAST),
            (OUT_OF_ORDER_FIRST, OUT_OF_ORDER, OUT_OF_ORDER_LAST),
        ):
            number = flow[first]
            for k in range(flow[length]):
                segment = pending_segments[number]
                size = 0 if first == RUN_FIRST else segment[SEG_SIZE]
                copy(pending_bytes, segment[SEG_START], size, new_bytes, used)
                for field in range(SEG_FIELDS):
                    new_segments[count, field] = segment[field]
                new_segments[count, SEG_START] = used
                new_segments[count, SEG_SIZE] = size
                new_segments[count, SEG_NEXT] = count + 1
                if k == 0:
                    flow[first] = count
                flow[last] = count
                number = segment[SEG_NEXT]
                count += 1
                used += size
    return count, used
