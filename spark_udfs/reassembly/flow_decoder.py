"""Segments that stand flow by flow to packets: the compiled walk, and a tracker for what it can't judge.

All runs go through the same arrays, one after the other. What comes of each is what a tracker of its own
would give: nothing of a run is left when the next begins, neither connections nor time nor memory held.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final

import numpy as np

from msmqwire.capture import Datagram
from msmqwire.capture.ip import SYN
from msmqwire.capture.tcp import IDLE_NS_MAX
from msmqwire.columnar.arrow.batch import BatchMaker
from msmqwire.columnar.bridge import row_buffer
from msmqwire.columnar.bridge.row_buffer import RowBuffer
from msmqwire.columnar.compiled import grouped_scan
from msmqwire.columnar.compiled import state as w
from msmqwire.columnar.compiled.stop_codes import StopCode
from msmqwire.columnar.filters import Filter
from msmqwire.dissection import Tracker
from spark_udfs.reassembly.segment_order import OFFSET_BITS, Cuts
from spark_udfs.reassembly.segment_tables import Table, Tables

OPENING_MAX: Final = 64
"""Segments at the beginning of a run without a SYN that a tracker gets, at the most: most are for it as long
as not both directions are open."""
FILES_MAX: Final = 4096
"""Files that rows of a batch refer to, about: then their numbers start afresh."""


class FlowDecoder(RowBuffer):
    """Decodes segments that stand flow by flow, in place of a tracker for each.

    ``stream`` is the number of the flow, and ``frame`` the offset of the frame in its file. Memory is that
    of two batches, and of what is out of order or not whole in one run.

    Args:
        maker: makes the record batches.
        ports: as for `msmqwire.dissect`.
        end_ns: when the last TCP segment of the whole capture was captured.
        cuts: where flows are cut.

    Attributes:
        handed: how many segments went to the tracker.
    """

    def __init__(
        self, maker: BatchMaker, *, ports: Collection[int] = (), end_ns: int = 0, cuts: Cuts | None = None
    ) -> None:
        self._ports, self._end_ns, self._cuts = ports, end_ns, cuts or {}
        self._tracker = self._new_tracker()
        super().__init__(maker, self._tracker)
        self._tables = Tables(self._cuts)
        self._run = np.zeros(grouped_scan.RUN, np.int64)
        self._files: dict[int, int] = {}  # by index in the capture, their numbers in rows
        self.handed = 0

    def batches(self, batches: Iterable[Any]) -> Iterator[Any]:
        """The record batches of all rows; of batches of segments as for `packets.items`."""
        for batch in batches:
            if batch.num_rows:
                yield from self._table(self._tables.table(batch))
        if self._run[grouped_scan.IS_OPEN]:
            yield from self._end_run()
        yield from self._flush()
        yield from self._maker.finish()

    def _new_tracker(self) -> Tracker:
        return Tracker(ports=self._ports, lint=False, place=lambda frames: ("", frames))

    def _table(self, table: Table) -> Iterator[Any]:
        state, offsets, first = self._state, table.offsets, 0
        while first < len(table.rows):
            stop = int(np.searchsorted(offsets, offsets[first] + row_buffer.CHUNK, side="right")) - 1
            stop = max(stop, first + 1)
            size = int(offsets[stop] - offsets[first])
            yield from self._flush()  # rows refer to the memory
            if size > self._chunk:
                self._set_memory(size, len(self.memory) - self._chunk)
            self.memory[:size] = table.payloads[offsets[first] : offsets[stop]]
            state[w.POS], state[w.END], self._run[grouped_scan.BASE] = first, stop, offsets[first]
            yield from self._walk(table)
            first = stop

    def _walk(self, table: Table) -> Iterator[Any]:
        state, own = self._state, self._connections
        while True:
            own.have_room(0)
            stop_code = grouped_scan.walk_segments(
                state, self._run, table.rows, self.memory, self._ping_ports, own.table, own.keys, own.states,
                own.nodes, own.pend, self._head, self.rows, self.places, self._undo, self._tcp_ports,
                own.free, own.born,
            )  # fmt: skip
            if stop_code == StopCode.MORE_INPUT:
                return
            if stop_code == StopCode.GENERIC_RECORD:
                row = int(state[w.POS])
                yield from self._hand(table.datagram(row))
                state[w.POS] = row + 1
            elif stop_code == StopCode.RUN_BEGINS:
                self._begin_piece()
            elif stop_code == StopCode.RUN_ENDS:
                yield from self._end_run()
            else:
                yield from self._make_room(StopCode(stop_code))

    def _hand(self, datagram: Datagram) -> Iterator[Any]:
        self.handed += 1
        run, own = self._run, self._connections
        if not (run[grouped_scan.HANDED] or self._state[w.FLOWS] or datagram.flags & SYN):
            run[grouped_scan.OPENING] = OPENING_MAX
        self._ask()
        if not run[grouped_scan.OPENING]:
            yield from self._items(own.feed(datagram, self))
            return
        yield from self._items(self._tracker.feed(datagram))
        run[grouped_scan.OPENING] -= 1
        if all(one.fast_path and one.peer.fast_path for one in self._tracker.reassembler.in_order()):
            run[grouped_scan.OPENING] = 0
        if not run[grouped_scan.OPENING]:
            own.join()

    def _ask(self) -> None:
        """The tracker is to be asked about the run: it knows the time of the first segment then."""
        idle_at = int(self._state[w.IDLE_AT])
        if not self._run[grouped_scan.HANDED] and idle_at:
            # Of a datagram that is no segment a reassembler learns the time alone.
            time_ns = idle_at - IDLE_NS_MAX // 8
            self._tracker.reassembler.feed(Datagram("udp", "", 0, "", 0, time_ns, (), "", b"", 0, 0, 0, 0))
        self._run[grouped_scan.HANDED] = 1

    # -- runs ---------------------------------------------------------------------------------------

    def _begin_piece(self) -> None:
        flow, number = int(self._run[grouped_scan.FLOW]), int(self._run[grouped_scan.PIECE])
        if number:
            self._tracker.resume(self._cuts[flow][number - 1].saved)
            self._connections.join()
            self._run[grouped_scan.HANDED] = 1

    def _end_run(self) -> Iterator[Any]:
        self._ask()
        if self._run[grouped_scan.OPENING]:
            self._connections.read_clock()
        flow, number = int(self._run[grouped_scan.FLOW]), int(self._run[grouped_scan.PIECE])
        yield from self._ended(flow, number)
        grouped_scan.name_rows(self._state, self._run, self.rows)
        self._tracker = self._new_tracker()
        self._connections.restart(self._tracker)
        self._run[grouped_scan.IS_OPEN] = self._run[grouped_scan.OPENING] = 0

    def _ended(self, flow: int, number: int) -> Iterator[Any]:
        """What the end of a run brings; the flow may go on in another piece."""
        if number == len(self._cuts.get(flow, ())):
            yield from self._items(self._connections.flush(self._end_ns))

    # -- rows ---------------------------------------------------------------------------------------

    def _flush(self) -> Iterator[Any]:
        if len(self._files) > FILES_MAX:
            yield from self._maker.finish()
            self._files, self._maker.files = {}, []
        grouped_scan.name_rows(self._state, self._run, self.rows)
        rows = self.rows[: self._state[w.ROWS]]
        indices = rows[:, w.R_FRAME] >> OFFSET_BITS
        for index in np.unique(indices).tolist():
            rows[indices == index, w.R_FILE] = self._file(index)
        rows[:, w.R_FRAME] &= (1 << OFFSET_BITS) - 1
        yield from super()._flush()
        self._run[grouped_scan.MARK] = 0

    def _file(self, index: int) -> int:
        """The number in rows of the file with this index in the capture."""
        if index not in self._files:
            self._files[index] = len(self._files)
            self._maker.files.append(self._tables.files[index])
        return self._files[index]


class PieceChecker(FlowDecoder):
    """Tells of each piece that is not the last of its flow whether it ends as the next begins.

    Attributes:
        checked: flow, number of the piece, and whether it does.
    """

    def __init__(self, *, ports: Collection[int], cuts: Cuts) -> None:
        super().__init__(BatchMaker([], Filter(()), 1, None), ports=ports, cuts=cuts)
        self.quiet = True
        self.checked: list[tuple[int, int, bool]] = []

    def _ended(self, flow: int, number: int) -> Iterator[Any]:
        places = self._cuts.get(flow, ())
        if number < len(places):
            self.checked.append((flow, number, self._connections.save() == places[number].saved))
        yield from ()
