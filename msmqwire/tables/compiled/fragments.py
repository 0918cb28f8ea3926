"""Fragmented IP datagrams, compiled: what `msmqwire.capture.fragments` does, in arrays.

Each incomplete datagram has a slot, with room for the largest one. Fragments begin at multiples of 8 bytes,
so that of each 8 bytes of a datagram those that have arrived are the first ones; and so are those that were
captured as well, as far as they count.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from msmqwire.capture.fragments import DATAGRAM_MAX, FRAGMENT_NS_MAX, FRAME_COST
from msmqwire.capture.record import NO_TIME
from msmqwire.capture.segment_buffer import SEGMENT_COST
from msmqwire.tables.compiled.arrays import Bytes, Input, Int32s, Int64Rows, Int64s
from msmqwire.tables.compiled.decorators import exported, inlined, jit
from msmqwire.tables.compiled.flow_table import EMPTY, KEY_FIELDS, find, insert, remove
from msmqwire.tables.compiled.memory import copy, u64
from msmqwire.tables.compiled.network import (
    FRAGMENT_END,
    FRAGMENT_FLAGS,
    FRAGMENT_START,
    MORE_FRAGMENTS,
    START,
    STOP,
)

SLOT_BYTES: Final = DATAGRAM_MAX + 1
UNIT: Final = 8
UNITS: Final = SLOT_BYTES // UNIT
"""Room of a slot: its bytes, and one byte for every 8 of them: how many of these have arrived, and, times 16,
how many from the first on were captured."""

(
    OLDEST, NEWEST, COUNT, TOTAL_COST, COUNT_MAX, COST_MAX, FREE_SLOTS, FREE_FRAME, REMOVED, JOINED,
    BAD, TIMED_OUT, EVICTED, SEED,
) = range(14)  # fmt: skip
TOTALS: Final = 14
"""All datagrams together, by index: the slots of the oldest and the newest one, -1 for none; how many there
are, and the memory that they count for, with the limits on both; the slots that are free, as many as of
``free_slots``; the first entry of ``frames`` that is free; entries removed from the table since it was
rebuilt; the slot of the datagram that the last fragment has completed, -1 for none; the fragments dropped,
by reason; the seed of the hashes."""

(
    SINCE_HIGH, SINCE_LOW, SIZE, RECEIVED, LAST_END, COST, NEXT_HEADER, FRAMES, FIRST_FRAME, LAST_FRAME,
    OLDER, NEWER, IS_CUT,
) = range(13)  # fmt: skip
PARTIAL: Final = 13
"""A datagram, by index: the time of its first fragment, see LOW_BITS; its size, -1 if that is unknown;
the bytes that have arrived, and where the last of them ends; the memory that it counts for; the protocol;
how many frames it has, and the first and last of them in ``frames``; the slots of its neighbours by age; and
whether the capture has cut off some of its bytes."""

LOW_BITS: Final = 40
"""A time is given as what is above so many bits of its nanoseconds, and these: so it may be of any size."""
_NO_TIME_HIGH: Final = NO_TIME >> LOW_BITS
NEVER_USED: Final = 0
"""The next entry of one of ``frames`` that was never used: the one behind it. Entry 0 is none."""
_ALL_HERE: Final = np.uint64(0x0808080808080808)
_ARRIVED: Final = np.uint64(0x0F0F0F0F0F0F0F0F)
_REMOVED_MAX: Final = 1024


class FragmentArrays(NamedTuple):
    """The incomplete datagrams of a scan.

    Attributes:
        totals: what is known of them together.
        partials: what is known of each, by slot.
        table: a hash table that finds the slot of a datagram by its key.
        keys: the key of each: the first fields of a header, with what `network.parse_frame` has for PORTS.
        free_slots: slots that are not in use.
        frames: the numbers of the frames of all datagrams, each with the next of its list, see NEVER_USED.
        units: for every 8 bytes of each slot how many have arrived, and were captured.
        bytes: the bytes of all slots.
    """

    totals: Int64s
    partials: Int64Rows
    table: Int32s
    keys: Int64Rows
    free_slots: Int64s
    frames: Int64Rows
    units: Bytes
    bytes: Bytes


@inlined
def _exceeds(high: int, low: int, since_high: int, since_low: int) -> bool:
    """Whether a time is so much later than another that a datagram is dropped; see LOW_BITS."""
    beyond = high - since_high
    if beyond < 0 or beyond > 1:
        return beyond > 1
    return (beyond << LOW_BITS) + low - since_low > FRAGMENT_NS_MAX


@exported
@jit
def free(arrays: FragmentArrays, slot: int) -> None:
    """Forget a datagram."""
    totals, partials, table, frames = arrays.totals, arrays.partials, arrays.table, arrays.frames
    partial = partials[slot]
    older, newer = partial[OLDER], partial[NEWER]
    if older < 0:
        totals[OLDEST] = newer
    else:
        partials[older, NEWER] = newer
    if newer < 0:
        totals[NEWEST] = older
    else:
        partials[newer, OLDER] = older
    frames[partial[LAST_FRAME], 1] = totals[FREE_FRAME]
    totals[FREE_FRAME] = partial[FIRST_FRAME]
    arrays.free_slots[totals[FREE_SLOTS]] = slot
    totals[FREE_SLOTS] += 1
    totals[COUNT] -= 1
    totals[TOTAL_COST] -= partial[COST]
    first = slot * UNITS
    arrays.units[first : first + (partial[LAST_END] + UNIT - 1) // UNIT] = 0
    remove(table, arrays.keys, slot, totals[SEED])
    totals[REMOVED] += 1
    if totals[REMOVED] >= min(_REMOVED_MAX, table.size // 4):
        totals[REMOVED] = 0
        table[:] = EMPTY
        other = totals[OLDEST]
        while other >= 0:
            insert(table, arrays.keys, other, totals[SEED])
            other = partials[other, NEWER]


@inlined
def _drop(arrays: FragmentArrays, slot: int, reason: int) -> None:
    arrays.totals[reason] += arrays.partials[slot, FRAMES]
    free(arrays, slot)


@exported
@inlined
def begin(arrays: FragmentArrays, header: Int64s, high: int, low: int) -> int:
    """Add a datagram with the key of a header; return its slot."""
    totals, partials = arrays.totals, arrays.partials
    totals[FREE_SLOTS] -= 1
    slot: int = arrays.free_slots[totals[FREE_SLOTS]]
    partial = partials[slot]
    for i in range(PARTIAL):
        partial[i] = 0
    for i in range(KEY_FIELDS):
        arrays.keys[slot, i] = header[i]
    insert(arrays.table, arrays.keys, slot, totals[SEED])
    partial[SINCE_HIGH], partial[SINCE_LOW], partial[SIZE] = high, low, -1
    partial[OLDER], partial[NEWER] = totals[NEWEST], -1
    if totals[NEWEST] < 0:
        totals[OLDEST] = slot
    else:
        partials[totals[NEWEST], NEWER] = slot
    totals[NEWEST] = slot
    totals[COUNT] += 1
    return slot


@exported
@inlined
def add_frame(arrays: FragmentArrays, partial: Int64s, frame: int) -> None:
    """Add the number of a frame to a datagram."""
    totals, frames = arrays.totals, arrays.frames
    entry = totals[FREE_FRAME]
    following = frames[entry, 1]
    totals[FREE_FRAME] = following if following != NEVER_USED else entry + 1
    frames[entry, 0], frames[entry, 1] = frame, -1
    if partial[FRAMES]:
        frames[partial[LAST_FRAME], 1] = entry
    else:
        partial[FIRST_FRAME] = entry
    partial[LAST_FRAME] = entry
    partial[FRAMES] += 1


@inlined
def _mark(units: Any, number: int, arrived: int, captured: int) -> None:
    """Note how many of 8 bytes have arrived and were captured, the first of which may have before."""
    before: Any = np.int64(units[number])
    if before >> 4 != before & 15:
        captured = before >> 4
    units[number] = captured << 4 | arrived


@inlined
def _put(units: Any, first: int, start: int, stop: int, captured: int) -> None:
    """Note that the bytes from start to stop have arrived, of which those before ``captured`` were captured.

    ``first`` is the first unit of the slot. Others of the first and the last 8 bytes may be there already.
    """
    begin, last = start // UNIT, (stop - 1) // UNIT
    cut = min(max(captured // UNIT, begin + 1), last)
    units[first + begin + 1 : first + cut] = UNIT << 4 | UNIT
    units[first + cut : first + last] = UNIT
    if begin < captured // UNIT < last:
        units[first + cut] = captured % UNIT << 4 | UNIT
    arrived = min(stop - begin * UNIT, UNIT)
    _mark(units, first + begin, arrived, min(max(captured - begin * UNIT, 0), arrived))
    if last > begin:
        arrived = stop - last * UNIT
        _mark(units, first + last, arrived, min(max(captured - last * UNIT, 0), arrived))


@inlined
def _add_bytes(
    arrays: FragmentArrays, slot: int, source: Any, at: int, start: int, end: int, captured: int
) -> None:
    """Add the bytes of a fragment that have not arrived yet: `SegmentBuffer.add`.

    Args:
        arrays: the datagrams.
        slot: that of the datagram.
        source: where the bytes are, from the offset ``at`` on.
        at: see there.
        start: the offset of the fragment in the datagram.
        end: where it ends.
        captured: where what was captured of it ends.
    """
    partial, units, first = arrays.partials[slot], arrays.units, slot * UNITS
    offset = start
    while offset < end:
        number = first + offset // UNIT
        arrived: Any = np.int64(units[number]) & 15
        if arrived > offset % UNIT:
            if arrived == UNIT and offset % (UNIT * UNIT) == 0 and u64(units, number) & _ARRIVED == _ALL_HERE:
                offset += UNIT * UNIT
            else:
                offset += arrived - offset % UNIT
            continue
        stop = offset - offset % UNIT + UNIT
        while stop < end:
            if stop % (UNIT * UNIT) == 0 and u64(units, first + stop // UNIT) == 0:
                stop += UNIT * UNIT
            elif units[first + stop // UNIT] == 0:
                stop += UNIT
            else:
                break
        stop = min(stop, end)
        there = min(max(captured, offset), stop)
        copy(source, at + offset - start, there - offset, arrays.bytes, slot * SLOT_BYTES + offset)
        _put(units, first, offset, stop, there)
        partial[RECEIVED] += stop - offset
        partial[COST] += SEGMENT_COST + there - offset
        arrays.totals[TOTAL_COST] += SEGMENT_COST + there - offset
        if there < stop:
            partial[IS_CUT] = 1
        offset = stop
    if end > start:
        partial[LAST_END] = max(partial[LAST_END], end)


@exported
@jit
def add_fragment(
    arrays: FragmentArrays, header: Int64s, source: Input, high: int, low: int, frame: int
) -> int:
    """Add the fragment of a header; return the slot of the datagram if it is complete, else -1.

    It is `Fragments.add`, but a datagram that is complete stays until it is freed.

    Args:
        arrays: the datagrams.
        header: as `network.parse_frame` fills it.
        source: the bytes to which START and STOP of the header refer.
        high: with ``low`` the time; see LOW_BITS.
        low: see there.
        frame: the number of the frame.
    """
    totals, partials = arrays.totals, arrays.partials
    while totals[COUNT]:
        oldest = partials[totals[OLDEST]]
        if oldest[SINCE_HIGH] == _NO_TIME_HIGH and oldest[SINCE_LOW] == 0:
            oldest[SINCE_HIGH], oldest[SINCE_LOW] = high, low
        if not _exceeds(high, low, oldest[SINCE_HIGH], oldest[SINCE_LOW]):
            break
        _drop(arrays, totals[OLDEST], TIMED_OUT)
    start, end = header[FRAGMENT_START], header[FRAGMENT_END]
    more = header[FRAGMENT_FLAGS] & MORE_FRAGMENTS
    if (more and ((end - start) % UNIT or end == start)) or end > DATAGRAM_MAX:
        totals[BAD] += 1
        return -1
    slot: int = find(arrays.table, arrays.keys, header, totals[SEED])
    if slot < 0:
        slot = begin(arrays, header, high, low)
    partial = partials[slot]
    add_frame(arrays, partial, frame)
    if start == 0:
        partial[NEXT_HEADER] = header[FRAGMENT_FLAGS] >> 1
    if not more and partial[SIZE] < 0:
        partial[SIZE] = end
    if partial[SIZE] >= 0 and max(end, partial[LAST_END]) > partial[SIZE]:
        _drop(arrays, slot, BAD)
        return -1
    captured = start + header[STOP] - header[START]
    _add_bytes(arrays, slot, source, header[START], start, end, captured)
    partial[COST] += FRAME_COST
    totals[TOTAL_COST] += FRAME_COST
    if partial[RECEIVED] == partial[SIZE]:
        return slot
    while totals[COUNT] > totals[COUNT_MAX] or totals[TOTAL_COST] > totals[COST_MAX]:
        _drop(arrays, totals[OLDEST], EVICTED)
    return -1
