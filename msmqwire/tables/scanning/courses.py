"""The courses of connections in a part: from which chunk on, and up to which, values say all of them."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from msmqwire.capture.tcp import ACKED_NS, ACKED_SEGMENTS, SWEEP_NS
from msmqwire.tables.compiled.flow_table import KEY_FIELDS, UNKNOWN
from msmqwire.tables.scanning import settled_flows
from msmqwire.tables.scanning.settled_flows import Pair, Values

KEPT, OMITTED, DOUBTFUL = range(3)
"""The course of a connection in a chunk: its segments must be seen, need not be, or that is still open."""
_GAP_SEGMENTS: Final = ACKED_SEGMENTS + 1
_GAP_NS: Final = ACKED_NS + SWEEP_NS
"""Segments with data, or nanoseconds, after which an earlier gap that was acknowledged has been given up."""
_ROWS_MAX: Final = 1 << 17
"""Rows of values of which those that are not needed any more are dropped."""
_TCP_STATE: Final = Values._fields.index("tcp_state")


class Stretch(NamedTuple):
    """A stretch of the course of a connection that its values at both ends stand for.

    Attributes:
        stream: the connection.
        begun, last: the chunks at whose ends it begins and ends.
        before, after: the values there.
    """

    stream: int
    begun: int
    last: int
    before: Pair
    after: Pair


class Courses:
    """The courses of the connections of a part, by stream."""

    def __init__(self) -> None:
        self._keys: Any = np.zeros((0, KEY_FIELDS), np.int64)
        self._since: Any = np.zeros(0, np.int64)  # when something of it was first read; -1 if nothing was
        self._segments: Any = np.zeros((0, 2), np.int64)  # with data, by flow
        self._begun: Any = np.zeros(0, np.int64)  # the chunk at whose end it was settled; -1 for none
        self._last: Any = np.zeros(0, np.int64)  # and the last one
        self._rows: Any = np.zeros((0, 2), np.int64)  # of the values at both
        self._values: Any = np.zeros((1 << 10, 2, len(Values._fields)), np.int64)
        self._used = 0
        self._stretches: dict[int, list[Stretch]] = {}
        self._ended = 0  # stretches that have ended

    @property
    def count(self) -> int:
        """The number of stretches, with those that go on."""
        return self._ended + int(np.count_nonzero(self._begun >= 0))

    def key(self, stream: int) -> tuple[int, ...]:
        """Return the key of the flow of a connection with the even number."""
        return tuple(self._keys[stream].tolist())

    def end(self, streams: Any) -> None:
        """Note that later frames of some connections must be read."""
        streams = streams[streams < len(self._begun)]
        streams = streams[self._begun[streams] >= 0]
        for stream in streams[self._last[streams] > self._begun[streams]].tolist():
            before, after = (settled_flows.pair_of(row) for row in self._values[self._rows[stream]])
            begun, last = int(self._begun[stream]), int(self._last[stream])
            self._stretches.setdefault(stream, []).append(Stretch(stream, begun, last, before, after))
            self._ended += 1
        self._begun[streams] = -1

    def end_all(self) -> list[Stretch]:
        """End all courses; return their stretches."""
        self.end(np.flatnonzero(self._begun >= 0))
        return [stretch for of_stream in self._stretches.values() for stretch in of_stream]

    def look_at(
        self,
        chunk: int,
        now: int,
        streams: Any,
        numbers: Any,
        settled: Any,
        whole: Any,
        segments: Any,
        flows: Any,
        keys: Any,
    ) -> Any:
        """Look at connections at the end of a chunk; return for each its course there.

        Args:
            chunk: the number of the chunk.
            now: the clock there.
            streams: the connections that had something.
            numbers: the even numbers of their flows.
            settled: whether they are settled.
            whole: whether all of them was read, from the first segment on.
            segments: the number of segments with data of each flow.
            flows, keys: the flows.
        """
        if not len(streams):
            return np.zeros(0, np.int8)
        self._reserve(int(streams.max()) + 1, int(settled.sum()))
        new = streams[self._since[streams] < 0]
        self._keys[new], self._since[new] = keys[numbers[self._since[streams] < 0]], now
        self._segments[streams] += segments
        at = streams[settled]
        rows = np.arange(self._used, self._used + len(at))
        values = settled_flows.rows_of(flows, numbers[settled])
        self._values[rows] = values
        self._used += len(at)
        goes_on = self._begun[at] >= 0
        goes_on[goes_on] = settled_flows.go_on(self._values[self._rows[at[goes_on], 0]], values[goes_on])
        self.end(at[~goes_on])
        # The rest may be elsewhere for a reader that knows of a gap before the part, until it is given up.
        enough = (self._segments[at] >= _GAP_SEGMENTS) | (values[:, :, _TCP_STATE] == UNKNOWN)
        begins = ~goes_on & (whole[settled] | (now - self._since[at] >= _GAP_NS) | enough.all(axis=1))
        self._begun[at[begins]], self._rows[at[begins], 0] = chunk, rows[begins]
        moved = goes_on | begins
        self._last[at[moved]], self._rows[at[moved], 1] = chunk, rows[moved]
        begun = self._begun[streams]
        fates = np.where(settled, OMITTED, DOUBTFUL)
        return np.where((begun >= 0) & (begun < chunk), fates, KEPT)

    def fate(self, stream: int, chunk: int) -> int:
        """Return the course of a connection in a chunk in which it was not settled."""
        if any(one.begun < chunk <= one.last for one in self._stretches.get(stream, ())):
            return OMITTED
        if not 0 <= self._begun[stream] < chunk:
            return KEPT
        return OMITTED if chunk <= self._last[stream] else DOUBTFUL

    def _reserve(self, streams: int, rows: int) -> None:
        """Make room for streams, and for more rows of values."""
        have = len(self._begun)
        if streams > have:
            more = max(streams, 2 * have) - have
            self._keys = np.concatenate([self._keys, np.zeros((more, KEY_FIELDS), np.int64)])
            self._since = np.concatenate([self._since, np.full(more, -1, np.int64)])
            self._segments = np.concatenate([self._segments, np.zeros((more, 2), np.int64)])
            self._begun = np.concatenate([self._begun, np.full(more, -1, np.int64)])
            self._last = np.concatenate([self._last, np.full(more, -1, np.int64)])
            self._rows = np.concatenate([self._rows, np.zeros((more, 2), np.int64)])
        if self._used + rows <= len(self._values):
            return
        if self._used >= _ROWS_MAX:
            open_ = np.flatnonzero(self._begun >= 0)
            needed = self._rows[open_].reshape(-1)
            self._rows[open_] = np.arange(len(needed)).reshape(-1, 2)
            self._values[: len(needed)] = self._values[needed]
            self._used = len(needed)
        if 2 * (self._used + rows) > len(self._values):
            larger = np.zeros((2 * (self._used + rows), *self._values.shape[1:]), np.int64)
            larger[: self._used] = self._values[: self._used]
            self._values = larger
