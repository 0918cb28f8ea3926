"""The segments that the flows of the scan have buffered: of incomplete packets, and out of order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from msmqwire.capture.segment_buffer import SEGMENT_COST
from msmqwire.tables.compiled import flow_table
from msmqwire.tables.compiled.flow_table import (
    OUT_OF_ORDER,
    OUT_OF_ORDER_COST,
    PACKET_BYTES,
    PACKET_LEAD,
    PACKET_SEGMENTS,
    QUEUED,
    RUN_SEGMENTS,
)
from msmqwire.tables.compiled.state import (
    ENTRIES_TO_DELIVER,
    PENDING_BYTES,
    PENDING_SEGMENTS,
    SPARE_TO_DELIVER,
)
from msmqwire.tables.scanning.encapsulations import Encapsulations


class PendingSegments:
    """Lists of segments in two arrays, which grow, and are compacted when there is no space at their end.

    Attributes:
        segments: the segments, each with the number of the next one of its list; see
            `msmqwire.tables.compiled.flow_table`.
        bytes: their bytes.
        encapsulations: the tunnels of their frames.
    """

    def __init__(self, state: Any, encapsulations: Encapsulations) -> None:
        self._state, self.encapsulations = state, encapsulations
        self.segments = np.zeros((1 << 12, flow_table.SEG_FIELDS), np.int64)
        self.bytes = np.empty(1 << 22, np.uint8)

    def __getstate__(self) -> tuple[Any, ...]:
        """Return the used parts of the arrays, for a pickle."""
        segments, size = int(self._state[PENDING_SEGMENTS]), int(self._state[PENDING_BYTES])
        capacities = len(self.segments), len(self.bytes)
        used = self.segments[:segments].copy(), self.bytes[:size].copy()
        return self._state, self.encapsulations, *used, capacities

    def __setstate__(self, saved: tuple[Any, ...]) -> None:
        self._state, self.encapsulations, segments, used, (rows, size) = saved
        self.segments = np.zeros((rows, flow_table.SEG_FIELDS), np.int64)
        self.segments[: len(segments)] = segments
        self.bytes = np.empty(size, np.uint8)
        self.bytes[: len(used)] = used

    def clear(self) -> None:
        """Forget all segments."""
        self._state[PENDING_SEGMENTS] = self._state[PENDING_BYTES] = 0

    def read(self, number: int, count: int) -> Iterator[tuple[int, int, int, int, bytes]]:
        """Yield position, size, frame, time and bytes of `count` segments of a list from a number on."""
        for _ in range(int(count)):
            start, size, frame, time_ns, following, position, _ = self.segments[number].tolist()
            data = self.bytes[start : start + size].tobytes()
            yield position, size, self.encapsulations.frame(frame), time_ns, data
            number = following

    def reserve(self, size: int, flows: Any) -> None:
        """Make space for a segment of this size: compact those of all flows, or enlarge the arrays.

        Or for segments that take this amount of memory together.
        """
        state = self._state
        has_entries = state[PENDING_SEGMENTS] + _entries(size) <= len(self.segments)
        if has_entries and state[PENDING_BYTES] + size <= len(self.bytes):
            return
        self.compact(size, flows)

    def compact(self, size: int, flows: Any) -> None:
        """Move the segments of all flows together, and make space for one of this size."""
        state = self._state
        counts = flows[:, [PACKET_SEGMENTS, RUN_SEGMENTS, OUT_OF_ORDER, QUEUED]].sum(axis=1)
        numbers = np.flatnonzero(counts)
        holding, count = flows[numbers], int(counts.sum())
        total = int(holding[:, [PACKET_BYTES, PACKET_LEAD, OUT_OF_ORDER_COST]].sum())
        if holding[:, QUEUED].any():
            total = int(state[PENDING_BYTES])
        rows = max(len(self.segments), 2 * (count + _entries(size)))
        segments = np.zeros((rows, flow_table.SEG_FIELDS), np.int64)
        bytes_ = np.empty(max(len(self.bytes), 2 * (total + size)), np.uint8)
        state[PENDING_SEGMENTS], state[PENDING_BYTES] = flow_table.compact(
            flows, numbers, self.segments, self.bytes, segments, bytes_
        )
        self.segments, self.bytes = segments, bytes_


def _entries(size: int) -> int:
    """Return the number of entries that must be free for segments that take an amount of memory together."""
    return SPARE_TO_DELIVER + ENTRIES_TO_DELIVER * (size // SEGMENT_COST)
