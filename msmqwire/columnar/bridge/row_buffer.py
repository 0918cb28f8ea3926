"""Rows that a walk or the generic reader has found, gathered until their columns are made."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final

import numpy as np

from msmqwire.columnar.arrow.batch import NO_TIME, BatchMaker, Extra
from msmqwire.columnar.arrow.rows import INT64_MAX
from msmqwire.columnar.bridge.connection_table import ConnectionTable, key_of
from msmqwire.columnar.compiled import state as w
from msmqwire.columnar.compiled.flow_table import FIELDS
from msmqwire.columnar.compiled.generated import SLOTS, ping
from msmqwire.columnar.compiled.network import HEADS
from msmqwire.columnar.compiled.packet import BAD, KINDS, PING_KIND, SKIPPED, session_packet
from msmqwire.columnar.compiled.stop_codes import StopCode
from msmqwire.dissection import Item, Tracker

CHUNK: Final = 1 << 20
"""Bytes of the input that are looked at together."""
ARENA: Final = 8 << 20
"""Bytes set aside for packets that came in several segments, or from the generic reader."""
ROWS: Final = 1 << 13
"""Rows that are found before their columns are made."""


class RowBuffer:
    """Rows, and the memory with their bytes: first the input, up to `chunk`, then the arena.

    Attributes:
        memory: the bytes.
        rows: what is known of each row.
        places: where the fields of each stand.
        quiet: whether rows are dropped.
    """

    def __init__(self, maker: BatchMaker, tracker: Tracker) -> None:
        self._maker = maker
        self._state = np.zeros(w.STATE, np.int64)
        self._connections = ConnectionTable(tracker, self._state)
        self.memory: Any = np.empty(CHUNK + ARENA, np.uint8)
        self._chunk = CHUNK
        self._state[w.ARENA], self._state[w.ARENA_END] = CHUNK, CHUNK + ARENA
        self.rows = np.zeros((ROWS, w.ROW), np.int64)
        self.places = np.zeros((ROWS, SLOTS), np.int32)
        self.quiet = False
        self._extras: list[Extra] = []
        self._undo = np.zeros(FIELDS + w.STATE, np.int64)
        self._head = np.zeros(HEADS, np.int64)
        self._tcp_ports = _ports(tracker.tcp_ports)
        self._ping_ports = _ports(tracker.ping_ports)

    def _file_of(self, item: Item) -> int:
        """The number of the file of an item."""
        return 0

    def _items(self, items: Iterable[Item]) -> Iterator[Any]:
        for item in items:
            if self.quiet:
                continue
            if self._state[w.ROWS] == len(self.rows):
                yield from self._flush()
            yield from self._have_arena(len(item.raw))
            self._add(item)

    def _add(self, item: Item) -> None:
        state, row = self._state, int(self._state[w.ROWS])
        kind, start, size = KINDS.index(item.kind), int(state[w.ARENA]), len(item.raw)
        self.memory[start : start + size] = np.frombuffer(item.raw, np.uint8)
        if item.packet is not None:
            judge = ping if kind == PING_KIND else session_packet
            found = judge(self.memory, start, start + size, self.places, row, True)
            assert found == (start + size if kind == PING_KIND else kind), (
                f"{item.kind} of frame {item.frames}"
            )
        extra = -1
        if kind in (BAD, SKIPPED):
            extra = len(self._extras)
            error = item.error
            self._extras.append((error.why, error.path, error.offset) if error else (item.reason, None, None))
        cells = self.rows[row]
        cells[w.R_TIME] = item.time_ns if abs(item.time_ns) <= INT64_MAX else NO_TIME
        cells[w.R_FRAME] = item.frames[-1] if item.frames else -1
        cells[w.R_STREAM] = -1 if item.stream is None else item.stream
        cells[w.R_SRC_HIGH : w.R_IPV6 + 1] = key_of(item.src, item.src_port, item.dst, item.dst_port)
        cells[w.R_KIND], cells[w.R_SIZE] = kind, item.size
        cells[w.R_START], cells[w.R_LENGTH] = start, size
        cells[w.R_EXTRA] = extra
        cells[w.R_FILE] = self._file_of(item)
        state[w.ROWS] += 1
        state[w.ARENA] += size

    # -- room ---------------------------------------------------------------------------------------

    def _make_room(self, stop_code: StopCode) -> Iterator[Any]:
        """Has a walk go on that stopped for want of room."""
        state = self._state
        if stop_code == StopCode.PENDING_FULL:
            self._connections.have_room(int(state[w.NEED]))
        elif stop_code == StopCode.ARENA_FULL:
            yield from self._more_arena(int(state[w.NEED]))
        else:
            if not state[w.ROWS]:
                self._more_rows()
            yield from self._flush()

    def _flush(self) -> Iterator[Any]:
        """Makes columns of the rows that were found."""
        state, count = self._state, int(self._state[w.ROWS])
        if count and not self.quiet:
            yield from self._maker.add(self.rows[:count], self.places[:count], self.memory, self._extras)
        state[w.ROWS], state[w.ARENA] = 0, self._chunk
        self._extras = []

    def _have_arena(self, size: int) -> Iterator[Any]:
        state = self._state
        if state[w.ARENA] + size > state[w.ARENA_END]:
            yield from self._flush()
        if state[w.ARENA] + size > state[w.ARENA_END]:
            self._set_memory(self._chunk, 2 * size)

    def _more_arena(self, size: int) -> Iterator[Any]:
        """More room for whole packets than there is."""
        if self._state[w.ROWS] or self._state[w.ARENA] > self._chunk:
            yield from self._flush()
        else:
            self._set_memory(self._chunk, 2 * (len(self.memory) - self._chunk) + size)

    def _set_memory(self, chunk: int, arena: int) -> None:
        """Larger memory, while no rows refer to it; the input in it stays."""
        memory = np.empty(chunk + arena, np.uint8)
        kept = min(self._chunk, chunk)
        memory[:kept] = self.memory[:kept]
        self.memory, self._chunk = memory, chunk
        self._state[w.ARENA], self._state[w.ARENA_END] = chunk, chunk + arena

    def _more_rows(self) -> None:
        self.rows = np.zeros((2 * len(self.rows), w.ROW), np.int64)
        self.places = np.zeros((len(self.rows), SLOTS), np.int32)


def _ports(numbers: Collection[int]) -> Any:
    found = np.zeros(1 << 16, np.bool_)
    found[[number for number in numbers if 0 <= number < 1 << 16]] = True
    return found
