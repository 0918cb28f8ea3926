"""The incomplete datagrams of the compiled scan, which the generic reader shares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from msmqwire.capture import fragments as limits
from msmqwire.capture.fragments import FRAME_COST, FragmentKey, ReassembledDatagram
from msmqwire.capture.segment_buffer import Segment
from msmqwire.tables.compiled import fragments as compiled
from msmqwire.tables.compiled.flow_table import EMPTY, KEY_FIELDS, new_seed
from msmqwire.tables.compiled.fragments import (
    COST,
    FIRST_FRAME,
    FRAMES,
    IS_CUT,
    JOINED,
    LAST_END,
    LOW_BITS,
    NEXT_HEADER,
    SIZE,
    SLOT_BYTES,
    UNIT,
    UNITS,
    FragmentArrays,
)
from msmqwire.tables.compiled.network import (
    DST_HIGH,
    DST_LOW,
    FRAGMENT_END,
    FRAGMENT_FLAGS,
    FRAGMENT_START,
    HEADER_FIELDS,
    IS_IPV6,
    MORE_FRAGMENTS,
    PORTS,
    SRC_HIGH,
    SRC_LOW,
    START,
    STOP,
)
from msmqwire.tables.compiled.state import TUNNEL_BITS

_DROPPED: Final = {
    compiled.BAD: "bad-fragment",
    compiled.TIMED_OUT: "fragment-timeout",
    compiled.EVICTED: "fragment-limit",
}


class FragmentTable:
    """The incomplete datagrams of a capture, in arrays: the work of `Fragments`, for the scan as well.

    Attributes:
        arrays: the arrays. Used slots take memory; the rest is only reserved.
    """

    def __init__(self, ignored: Counter[str]) -> None:
        self._ignored = ignored
        slots = limits.FRAGMENTED_MAX + 1  # one more before the oldest is evicted
        frames = limits.FRAGMENT_BYTES_MAX // FRAME_COST + 2
        totals = np.zeros(compiled.TOTALS, np.int64)
        totals[[compiled.OLDEST, compiled.NEWEST, JOINED]] = -1
        totals[compiled.COUNT_MAX], totals[compiled.COST_MAX] = slots - 1, limits.FRAGMENT_BYTES_MAX
        totals[compiled.FREE_SLOTS], totals[compiled.SEED] = slots, new_seed()
        totals[compiled.FREE_FRAME] = 1
        self.arrays = FragmentArrays(
            totals,
            np.zeros((slots, compiled.PARTIAL), np.int64),
            np.full(4 << slots.bit_length(), EMPTY, np.int32),
            np.zeros((slots, KEY_FIELDS), np.int64),
            np.arange(slots)[::-1].copy(),
            np.zeros((1 + frames, 2), np.int64),  # never used: memory that is not touched costs nothing
            np.zeros(slots * UNITS, np.uint8),
            np.empty(slots * SLOT_BYTES, np.uint8),
        )

    def add(
        self, key: FragmentKey, fragment: Segment, *, more: bool, next_header: int
    ) -> ReassembledDatagram | None:
        """Add a fragment at its offset in the datagram; return the datagram if it is complete."""
        header = _header_of(key)
        header[START], header[STOP] = 0, len(fragment.data)
        header[FRAGMENT_START], header[FRAGMENT_END] = fragment.start, fragment.end
        header[FRAGMENT_FLAGS] = next_header << 1 | (MORE_FRAGMENTS if more else 0)
        high, low = fragment.time_ns >> LOW_BITS, fragment.time_ns & (1 << LOW_BITS) - 1
        data = np.frombuffer(fragment.data, np.uint8)
        code = fragment.frame << TUNNEL_BITS  # in which tunnels it was is asked of the last one only
        slot = compiled.add_fragment(self.arrays, header, data, high, low, code)
        self.arrays.totals[JOINED] = slot
        return self.take_joined()

    def take_joined(self) -> ReassembledDatagram | None:
        """Remove and return the datagram that the last fragment has completed; None if it has not."""
        totals = self.arrays.totals
        slot, totals[JOINED] = int(totals[JOINED]), -1
        if slot < 0:
            return None
        partial = self.arrays.partials[slot]
        size = int(partial[SIZE])
        end = self._captured_until(slot, size) if partial[IS_CUT] else size
        first = slot * SLOT_BYTES
        payload = self.arrays.bytes[first : first + end].tobytes()
        datagram = ReassembledDatagram(int(partial[NEXT_HEADER]), payload, size, tuple(self._frames(slot)))
        compiled.free(self.arrays, slot)
        return datagram

    def frames(self) -> int:
        """Return how many frames the incomplete datagrams have."""
        count, slot = 0, int(self.arrays.totals[compiled.OLDEST])
        while slot >= 0:
            count += int(self.arrays.partials[slot, FRAMES])
            slot = int(self.arrays.partials[slot, compiled.NEWER])
        return count

    def update_counters(self) -> None:
        """Count the fragments dropped since it was last called."""
        for index, reason in _DROPPED.items():
            if count := int(self.arrays.totals[index]):
                self._ignored[reason] += count
                self.arrays.totals[index] = 0

    def _captured_until(self, slot: int, size: int) -> int:
        """Return how many bytes of a complete datagram, from the first on, were captured."""
        first = slot * UNITS
        captured = self.arrays.units[first : first + (size + UNIT - 1) // UNIT] >> 4
        cut = int(np.argmax(captured < UNIT))
        return cut * UNIT + int(captured[cut])

    def _frames(self, slot: int) -> Iterator[int]:
        partial, frames = self.arrays.partials[slot], self.arrays.frames
        entry = partial[FIRST_FRAME]
        for _ in range(partial[FRAMES]):
            yield int(frames[entry, 0]) >> TUNNEL_BITS
            entry = frames[entry, 1]

    # -- pickles ------------------------------------------------------------------------------------

    def __getstate__(self) -> tuple[Any, ...]:
        """Return the datagrams, from the oldest on, without the unused part of the arrays."""
        self.update_counters()
        return self._ignored, list(self._saved())

    def __setstate__(self, saved: tuple[Any, ...]) -> None:
        ignored, datagrams = saved
        self.__init__(ignored)  # type: ignore[misc]
        for datagram in datagrams:
            self._restore(*datagram)

    def _saved(self) -> Iterator[tuple[Any, ...]]:
        arrays, slot = self.arrays, int(self.arrays.totals[compiled.OLDEST])
        while slot >= 0:
            partial, end = arrays.partials[slot], int(arrays.partials[slot, LAST_END])
            units = arrays.units[slot * UNITS :][: (end + UNIT - 1) // UNIT]
            is_captured = np.arange(UNIT) < (units >> 4)[:, None]
            data = arrays.bytes[slot * SLOT_BYTES :][: len(units) * UNIT] * is_captured.ravel()
            known = partial[:FRAMES].copy(), int(partial[IS_CUT])
            yield arrays.keys[slot].copy(), known, list(self._frames(slot)), units.copy(), data
            slot = int(partial[compiled.NEWER])

    def _restore(self, key: Any, known: tuple[Any, int], frames: list[int], units: Any, data: Any) -> None:
        arrays, fields = self.arrays, known[0]
        slot = compiled.begin(arrays, key, fields[compiled.SINCE_HIGH], fields[compiled.SINCE_LOW])
        partial = arrays.partials[slot]
        partial[:FRAMES], partial[IS_CUT] = known
        for frame in frames:
            compiled.add_frame(arrays, partial, frame << TUNNEL_BITS)
        arrays.totals[compiled.TOTAL_COST] += partial[COST]
        arrays.units[slot * UNITS :][: len(units)] = units
        arrays.bytes[slot * SLOT_BYTES :][: len(data)] = data


def _header_of(key: FragmentKey) -> Any:
    """Return a header with the key of a datagram, as `network.parse_frame` fills it."""
    header = np.zeros(HEADER_FIELDS, np.int64)
    src, dst = key[:2]
    rest: tuple[Any, ...] = key[2:]
    header[SRC_HIGH], header[SRC_LOW] = _halves(src)
    header[DST_HIGH], header[DST_LOW] = _halves(dst)
    match rest:
        case int(protocol), int(ident), *network:
            header[PORTS], header[IS_IPV6] = ident << 8 | protocol, sum(network) << 1
        case bytes(ident), *network:
            header[PORTS], header[IS_IPV6] = int.from_bytes(ident, "big"), sum(network) << 1 | 1
    return header


def _halves(address: bytes) -> tuple[int, int]:
    """Return both halves of an address as signed integers."""
    high, low = address[:-8], address[-8:]
    return int.from_bytes(high, "big", signed=True), int.from_bytes(low, "big", signed=len(address) > 8)
