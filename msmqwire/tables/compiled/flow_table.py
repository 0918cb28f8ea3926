"""The flows that the scan follows, in arrays: looked up by key, and their buffered segments.

The two flows of a connection have the numbers 2n and 2n + 1. The buffered segments of a flow are two linked
lists: the parts of an incomplete packet, and the segments beyond a gap. Their bytes are in an array of their
own.
"""

from __future__ import annotations

import random
from typing import Any, Final

import numpy as np

from msmqwire.analysis.dissection.failed_checks import FAILED_MAX
from msmqwire.capture import direction
from msmqwire.tables.compiled.arrays import Bytes, Int32s, Int64Rows, Int64s
from msmqwire.tables.compiled.decorators import exported, inlined, jit
from msmqwire.tables.compiled.memory import copy
from msmqwire.tables.compiled.network import (
    DST_HIGH,
    DST_LOW,
    HEADER_FIELDS,
    IS_IPV6,
    PORTS,
    SRC_HIGH,
    SRC_LOW,
)
from msmqwire.tables.compiled.state import NEED, STATE

FREE: Final = 0
MSMQ: Final = 1
UNRECOGNISED: Final = 2
FOREIGN: Final = 3
"""Modes of a flow: its number is not in use; it is MSMQ, or will be unless its first bytes say otherwise;
nothing in its connection has been recognised so far; its events are for a dissector in Python."""

UNKNOWN, OPENING, OPEN, ENDED = direction.UNKNOWN, direction.OPENING, direction.OPEN, direction.ENDED

(
    MODE, NEXT_SEQ, ACKED, LAST_NS, FRAME, STREAM, PACKET_BYTES, PACKET_SEGMENTS, PACKET_FIRST, PACKET_LAST,
    PACKET_SIZE, DELIVERED, IGNORED, IGNORED_FRAME, IGNORED_NS, PACKET_FRAME, PACKET_NS, OUT_OF_ORDER,
    OUT_OF_ORDER_FIRST, OUT_OF_ORDER_LAST, OUT_OF_ORDER_COST, SINCE_NS, ISN, DOUBTFUL_SIZE, PACKET_LEAD,
    IN_DOUBT, LOSS, REMAINING, IS_CHECKED, SEARCHED_TO, RUN_BYTES, RUN_REASON, RUN_FRAMES,
    RUN_FRAME, RUN_NS, RUN_LATEST, RUN_FIRST, RUN_SEGMENTS, FIRST_SEQ, OPENING_SEGMENTS, FAR_NEXT, FAR_FROM,
    FAR_RUN, IS_STARTED, AFTER_BAD, TCP_STATE, IS_SEEN, IS_FAST, FIN_SEQ, WAS_RESET, START_KIND, IS_WAITING,
    WAITING_FRAME, NEXT_WAITING, PREVIOUS_WAITING, QUEUED, QUEUED_FIRST, QUEUED_LAST, IS_KNOWN, HAS_PENDING,
    BEGINS_INSIDE, HAS_ENDED, IS_GONE, FIRST_SIDE, CHECK_NS, CHECK_WAIT, NEXT_CONNECTION, PREVIOUS_CONNECTION,
    GAPS, TO_COME, FAILED,
) = range(71)  # fmt: skip
FLOW_FIELDS: Final = FAILED + FAILED_MAX
"""The state of a flow, by index: that of a `Direction`, and of the finder of its packets.

ACKED is what the peer acknowledged last, -1 for nothing. LAST_NS and FRAME are the last segment's. TCP_STATE
is that of the direction, and ISN its initial sequence number, else -1; FIN_SEQ is that of its FIN, NO_SEQ
without one; WAS_RESET says that a reset has ended it. FIRST_SEQ is the sequence number before any data of a
flow without a SYN, NO_SEQ if that is unknown. While it is opening it has received OPENING_SEGMENTS, buffered
like those beyond a gap. SINCE_NS is when it began to, or the last progress of a flow with a gap. START_KIND
is 0 before anything is delivered, and then IN_ORDER or MIDSTREAM. FAR_RUN segments in a row were further away
than any window; FAR_NEXT continues them, and FAR_FROM was NEXT_SEQ when they began. A flow that IS_FAST takes
the segment that is next without further checks.

OUT_OF_ORDER segments are buffered, and cost memory. IS_WAITING says that the flow is in the list of those
that have any or are opening, since WAITING_FRAME; the first one waits longest. QUEUED segments are next in
order, and still to be taken as the events say.

CHECK_NS, CHECK_WAIT and the links of the list of connections are in the flow with the even number: when to
look whether the connection is idle, and how much later if it has no time. FIRST_SIDE is 1 or 2 once its first
or second flow has delivered. IS_GONE says that a connection is forgotten but for its events. The flow with
the even number has also the GAPS of the connection so far; TO_COME events of a flow are known and not taken
yet, ends apart.

IS_KNOWN says that a connection is MSMQ whatever follows, HAS_PENDING that a dissector waits for more bytes of
a flow, BEGINS_INSIDE that a flow need not begin with a packet, IS_STARTED that its packets have begun,
HAS_ENDED that its end was taken.

PACKET_BYTES of an incomplete packet are buffered in PACKET_SEGMENTS entries, from PACKET_FIRST to
PACKET_LAST, without the first PACKET_LEAD bytes of the first entry; its PACKET_SIZE, or how many bytes are
needed before more can be found, is 0 as long as it is unknown; PACKET_FRAME is the highest number of their
frames, with its time. DOUBTFUL_SIZE is that of a complete packet that `packet.is_doubtful` and waits for what
follows it, else 0.

IN_DOUBT says that there is more to know of a flow, for `finding`. LOSS is why it is out of sync with its
packets, 0 if it is in sync; REMAINING bytes of an incomplete packet are still to be skipped; IS_CHECKED is
not 0 if the packet at the start of the buffer is known to be malformed or doubtful: where in it the search
for another goes on. SEARCHED_TO is an offset in the flow, counted as DELIVERED is, before which no certain
packet begins; AFTER_BAD says that the last packet was malformed. From FAILED on, there are checks that have
failed: see `failed_checks`.

RUN_BYTES have been skipped since the last row, for one RUN_REASON. They are of RUN_FRAMES frames, of which
RUN_FRAME is the highest number, with its time, and RUN_LATEST was counted last. They are in RUN_SEGMENTS
entries from RUN_FIRST on, of which all bytes were skipped. The entries of the packet follow them.
"""

IN_ORDER, MIDSTREAM = 1, 2

SEG_START, SEG_SIZE, SEG_FRAME, SEG_NS, SEG_NEXT, SEG_POSITION, SEG_LOST = range(7)
SEG_FIELDS: Final = 7
"""A buffered segment, or a part of one, by index: offset and number of its bytes in `pending_bytes`; the
frame that brought it, and its time; the next entry of the list; for one beyond a gap its position in the
flow, for a part how many bytes of its segment are before it; how many bytes after it were cut off."""
KEY_FIELDS: Final = 6
"""The first fields of a header, which identify a flow."""

EMPTY, _REMOVED = -1, -2
"""Entries of a hash table without a flow."""
NO_SEQ: Final = -(1 << 62)


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


@jit
def remove(table: Any, keys: Any, number: int, seed: int) -> None:
    """Remove the number of a flow."""
    slot = slot_of(table, keys, number, seed)
    if slot >= 0:
        table[slot] = _REMOVED


@exported
@jit
def rebuild(table: Int32s, keys: Int64Rows, numbers: Int64s, seed: int) -> None:
    """Rebuild the table from the numbers in use."""
    table[:] = EMPTY
    for i in range(numbers.size):
        insert(table, keys, numbers[i], seed)


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
        for first, length, last in (
            (RUN_FIRST, RUN_SEGMENTS, PACKET_LAST),
            (PACKET_FIRST, PACKET_SEGMENTS, PACKET_LAST),
            (QUEUED_FIRST, QUEUED, QUEUED_LAST),
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


@jit
def remember(rollback: Any, flow: Any, state: Any) -> None:
    """Copy a flow and the state, for steps that take all bytes of a segment or none."""
    for i in range(FLOW_FIELDS):
        rollback[i] = flow[i]
    for i in range(STATE):
        rollback[FLOW_FIELDS + i] = state[i]


@jit
def go_back(rollback: Any, flow: Any, state: Any) -> None:
    """Restore a flow and the state, but for what a stop code asks for."""
    needed = state[NEED]
    for i in range(FLOW_FIELDS):
        flow[i] = rollback[i]
    for i in range(STATE):
        state[i] = rollback[FLOW_FIELDS + i]
    state[NEED] = needed
