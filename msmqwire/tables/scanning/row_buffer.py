"""The rows of a scan and of the generic reader, buffered until their columns are made."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final

import numpy as np

from msmqwire.analysis.dissection import Item, Tracker
from msmqwire.analysis.protocols import datagram_ports
from msmqwire.capture import Datagram
from msmqwire.capture.record import NO_TIME
from msmqwire.capture.tunnels import frame_in_tunnel
from msmqwire.ping import PING_PORT
from msmqwire.schema import Record
from msmqwire.tables.arrow.batch import BatchMaker
from msmqwire.tables.compiled import state as entry
from msmqwire.tables.compiled.engine import slow_reading
from msmqwire.tables.compiled.flow_table import FLOW_FIELDS, KEY_FIELDS
from msmqwire.tables.compiled.generated import SLOTS, ping
from msmqwire.tables.compiled.network import ACK, FLAGS, HEADER_FIELDS, MISSING, SEQ, START, STOP
from msmqwire.tables.compiled.packet import KINDS, PGM_PACKET, PING_KIND, session_packet
from msmqwire.tables.compiled.scan import OTHER_DATAGRAMS, PINGS
from msmqwire.tables.compiled.scan_arrays import RowBlock, ScanArrays
from msmqwire.tables.compiled.stop_codes import CONTINUE, StopCode
from msmqwire.tables.compiled.tcp.segments import take_segment
from msmqwire.tables.scanning.encapsulations import Encapsulations
from msmqwire.tables.scanning.flow_events import FlowTable
from msmqwire.tables.scanning.flow_keys import key_of

CHUNK: Final = 4 << 20
"""Bytes of the input in memory."""
ARENA: Final = 8 << 20
"""Bytes of memory for packets that came in several segments, or from the generic reader."""
ROWS: Final = 1 << 13
"""Rows that are buffered before their columns are made."""
_NO_STREAM: Final = {"udp": -1, "pgm": -2}
_NUMBERS: Final = {kind: number for number, kind in enumerate(KINDS)}


class RowBuffer:
    """Rows, and the memory with their bytes: first a chunk of the input, then the arena.

    Attributes:
        memory: the bytes.
        rows: the rows; see `msmqwire.tables.compiled.state`.
        field_offsets: for each row where the fields of its packet stand.
        drops_rows: whether rows are dropped instead of made into columns.
        tcp_ports: for each port of TCP whether it is one of MSMQ.
    """

    def __init__(
        self, maker: BatchMaker, tracker: Tracker, encapsulations: Encapsulations | None = None
    ) -> None:
        self._maker = maker
        self._state = np.zeros(entry.STATE, np.int64)
        self._state[entry.EMPTY_LINK] = -1
        self._encapsulations = encapsulations or Encapsulations()
        self._flows = FlowTable(tracker, self._state, self._encapsulations)
        self.memory: Any = np.empty(CHUNK + ARENA, np.uint8)
        self._chunk = CHUNK
        self._state[entry.ARENA], self._state[entry.ARENA_END] = CHUNK, CHUNK + ARENA
        self.rows = np.zeros((ROWS, entry.ROW), np.int64)
        self.field_offsets = np.zeros((ROWS, SLOTS), np.int32)
        self.drops_rows = False
        self._extras: list[Any] = []
        self._rollback = np.zeros(FLOW_FIELDS + entry.STATE, np.int64)
        self._frame_lists = np.zeros(0, np.int64)
        self._header = np.zeros(HEADER_FIELDS, np.int64)
        self.tcp_ports = np.zeros(1 << 16, np.bool_)
        self.tcp_ports[_in_range(tracker.tcp_ports)] = True
        self._udp_ports = np.zeros(1 << 16, np.uint8)
        self._udp_ports[_in_range({PING_PORT, *tracker.ports})] = PINGS
        self._udp_ports[_in_range(set(datagram_ports()))] = OTHER_DATAGRAMS

    def scan_arrays(self) -> ScanArrays:
        """Return the arrays for the scan, as they are until one of them is enlarged."""
        pending = self._flows.pending
        return ScanArrays(
            self._state, self.memory, self._header, pending.segments, pending.bytes,
            self.rows, self.field_offsets, self._rollback, self._frame_lists,
        )  # fmt: skip

    def _file_of(self, item: Item) -> int:
        """Return the number of the file of an item."""
        return 0

    def _add_items(self, items: Iterable[Item | StopCode]) -> Iterator[Any]:
        """Add the rows of items, and make room where a stop code among them asks for it."""
        for item in items:
            if isinstance(item, StopCode):
                yield from self._make_room(item)
                continue
            if self.drops_rows:
                continue
            if self._state[entry.ROWS] == len(self.rows):
                yield from self._flush()
            if self._state[entry.ARENA] + len(item.raw) > self._state[entry.ARENA_END]:
                yield from self.reserve_arena(len(item.raw))
            self._add_item(item)

    def _add_item(self, item: Item) -> None:
        state, row = self._state, int(self._state[entry.ROWS])
        kind, start, size = _NUMBERS[item.kind], int(state[entry.ARENA]), len(item.raw)
        memoryview(self.memory)[start : start + size] = item.raw
        extra = entry.NO_EXTRA
        if isinstance(item.packet, Record) and self._maker.needs_fields:
            identify = ping if kind == PING_KIND else session_packet
            result = identify(self.memory, start, start + size, self.field_offsets, row)
            assert result == (start + size if kind == PING_KIND else kind), (
                f"{item.kind} of frame {item.frames}"
            )
        if self._maker.keeps_items or not self._is_in_its_bytes(item):
            extra = len(self._extras)
            self._extras.append(self._maker.extra(item))
        self.rows[row] = (
            NO_TIME if item.time_ns is None else item.time_ns,
            self._frame_code(item) if item.frames else -1,
            _NO_STREAM[item.transport] if item.stream is None else item.stream,
            *key_of(item.src, item.src_port, item.dst, item.dst_port),
            kind, item.size, start, size, extra, self._file_of(item), self._flows.origin, -1,
        )  # fmt: skip
        self._flows.origin = -1
        state[entry.ROWS], state[entry.ARENA] = row + 1, start + size

    @staticmethod
    def _is_in_its_bytes(item: Item) -> bool:
        """Whether compiled code finds all of an item in its bytes."""
        return isinstance(item.packet, Record) or _NUMBERS[item.kind] == PGM_PACKET

    def _frame_code(self, item: Item) -> int:
        """Return the code of the frame that completed an item."""
        return self._encapsulations.code(frame_in_tunnel(item.frames[-1], item.encapsulation))

    def _take_segment(self, datagram: Datagram) -> Iterator[Any]:
        """Let the scan take a segment that Python has read."""
        state, header, size = self._state, self._header, len(datagram.payload)
        code, stop_code = self._encapsulations.code(datagram.frames[-1]), int(StopCode.ARENA_FULL)
        while stop_code != CONTINUE:
            if not state[entry.IS_TAKEN]:
                yield from self.reserve_arena(size)
            arrays, start, rows = self.scan_arrays(), int(state[entry.ARENA]), state[entry.ROWS]
            if not state[entry.IS_TAKEN]:
                self.memory[start : start + size] = np.frombuffer(datagram.payload, np.uint8)
                state[entry.ARENA] += size
            header[:KEY_FIELDS] = key_of(*datagram.key)
            header[SEQ], header[ACK], header[FLAGS] = datagram.seq, datagram.ack, datagram.flags
            header[START], header[STOP], header[MISSING] = start, start + size, datagram.missing
            state[entry.RECORD_NS] = state[entry.EVENT_NS] = datagram.time_ns
            state[entry.FRAME_CODE] = code
            state[entry.EVENT_FRAME] = code - state[entry.FRAMES_BEFORE]
            stop_code = take_segment(arrays, self._flows.arrays, self.tcp_ports)
            if not state[entry.IS_TAKEN] and state[entry.ROWS] == rows:
                state[entry.ARENA] = start  # its bytes are in rows, or elsewhere
            if stop_code != CONTINUE:
                yield from self._make_room(StopCode(stop_code))

    # -- room ---------------------------------------------------------------------------------------

    def _make_room(self, stop_code: StopCode) -> Iterator[Any]:
        """Make room so that the scan can resume."""
        state = self._state
        if stop_code in (StopCode.PENDING_FULL, StopCode.EVENTS_FULL, StopCode.FLOWS_FULL):
            self._flows.make_room(stop_code)
        elif stop_code == StopCode.FOREIGN_EVENT:
            yield from self._add_items(self._flows.take_event(self))
        elif stop_code == StopCode.HELD_FULL:
            yield from self._add_items(self._flows.free_memory(self))
        elif stop_code == StopCode.ARENA_FULL:
            yield from self._grow_arena(int(state[entry.NEED]))
        elif stop_code == StopCode.FRAMES_FULL:
            yield from self._grow_frames(int(state[entry.NEED]))
        else:
            if not state[entry.ROWS]:
                self._grow_rows()
            yield from self._flush()

    def _flush(self) -> Iterator[Any]:
        """Make columns of the buffered rows, and empty the buffer."""
        state, count = self._state, int(self._state[entry.ROWS])
        if count and not self.drops_rows:
            slow_reading.add(count)
            block = RowBlock(self.rows[:count], self.field_offsets[:count], self.memory)
            yield from self._make_columns(block)
        state[entry.ROWS], state[entry.ARENA], state[entry.FRAMES_USED] = 0, self._chunk, 0
        self._extras = []

    def _make_columns(self, block: RowBlock) -> Iterator[Any]:
        """Make columns of a block of rows, in the arrays of this buffer; yield the batches that it fills."""
        yield from self._maker.add(block, self._extras)

    def reserve_arena(self, size: int) -> Iterator[Any]:
        """Make room for a number of bytes in the arena."""
        state = self._state
        if state[entry.ARENA] + size > state[entry.ARENA_END]:
            yield from self._flush()
        if state[entry.ARENA] + size > state[entry.ARENA_END]:
            self._set_memory(self._chunk, 2 * size)

    def _grow_arena(self, size: int) -> Iterator[Any]:
        """Empty the arena, or enlarge it if it is empty."""
        if self._state[entry.ROWS] or self._state[entry.ARENA] > self._chunk:
            yield from self._flush()
        else:
            self._set_memory(self._chunk, 2 * (len(self.memory) - self._chunk) + size)

    def _grow_frames(self, count: int) -> Iterator[Any]:
        """Make room for the frames of a row: empty their array, or enlarge it if it is empty."""
        if self._state[entry.FRAMES_USED]:
            yield from self._flush()
        else:  # an event may need more than one row does
            self._frame_lists = np.zeros(2 * len(self._frame_lists) + count, np.int64)

    def _set_memory(self, chunk: int, arena: int) -> None:
        """Replace the memory, to which no row refers; the input in it stays."""
        memory = np.empty(chunk + arena, np.uint8)
        size = min(self._chunk, chunk)
        memory[:size] = self.memory[:size]
        self.memory, self._chunk = memory, chunk
        self._state[entry.ARENA], self._state[entry.ARENA_END] = chunk, chunk + arena

    def _grow_rows(self) -> None:
        self.rows = np.zeros((2 * len(self.rows), entry.ROW), np.int64)
        self.field_offsets = np.zeros((len(self.rows), SLOTS), np.int32)


def _in_range(ports: Collection[int]) -> list[int]:
    return [number for number in ports if 0 <= number < 1 << 16]
