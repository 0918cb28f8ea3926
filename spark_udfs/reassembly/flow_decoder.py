"""Segments sorted by flow to packets, by the compiled scan and the dissectors of a tracker.

All runs use the same arrays, one after the other. Each yields the same as a separate tracker: no state of a
run is left when the next begins, neither connections nor time nor memory in use.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, ClassVar, Final

import numpy as np

from msmqwire.analysis.dissection import Tracker
from msmqwire.analysis.protocols.readings import PROPOSED, NcpReadings
from msmqwire.capture import Datagram
from msmqwire.tables.arrow.batch import BatchMaker
from msmqwire.tables.compiled import grouped_scan
from msmqwire.tables.compiled import state as entry
from msmqwire.tables.compiled.stop_codes import StopCode
from msmqwire.tables.filters import Filter
from msmqwire.tables.scanning import flow_checkpoints, row_buffer
from msmqwire.tables.scanning.encapsulations import Positions
from msmqwire.tables.scanning.row_buffer import RowBuffer
from spark_udfs.reassembly.chunks import OFFSET_BITS, ChunkBoundaries
from spark_udfs.reassembly.segment_tables import Table, Tables

FILES_MAX: Final = 4096
"""Files with a number, about: then the batch ends and numbers are given anew."""


class FlowDecoder(RowBuffer):
    """Decodes segments that are sorted by flow.

    ``stream`` is the number of the flow, and ``frame`` the offset of the frame in its file. It uses memory
    for two batches, and for the segments of one run that are out of order or in incomplete packets.

    Args:
        maker: makes the record batches.
        ports: as for `msmqwire.dissect`.
        end_ns: the time of the last TCP segment of the whole capture.
        boundaries: the boundaries between chunks of divided flows.
        ncp_readings: as for `msmqwire.dissect`.

    Attributes:
        handed: the number of segments that Python has examined first.
    """

    def __init__(
        self,
        maker: BatchMaker,
        *,
        ports: Collection[int] = (),
        end_ns: int = 0,
        boundaries: ChunkBoundaries | None = None,
        ncp_readings: NcpReadings = PROPOSED,
    ) -> None:
        self._ports, self._end_ns, self._boundaries = ports, end_ns, boundaries or {}
        self._ncp_readings = ncp_readings
        self._tracker = self._new_tracker()
        super().__init__(maker, self._tracker, Positions())
        maker.tunnels = self._encapsulations.texts
        self._tunnelled: list[tuple[Any, Any]] = []  # positions, and the numbers of their tunnels
        self._tables = Tables(self._boundaries)
        self._run = np.zeros(grouped_scan.RUN, np.int64)
        self._files: dict[int, int] = {}  # number in rows by index in the capture
        self.handed = 0

    def batches(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the record batches of all rows, from batches of segments as for `packets.packet_batches`."""
        for batch in batches:
            if batch.num_rows:
                yield from self._table(self._tables.table(batch))
        if self._run[grouped_scan.IS_OPEN]:
            yield from self._end_run()
        yield from self._flush()
        yield from self._maker.finish()

    _lints: ClassVar[bool] = False
    """Whether packets are judged that the scan does not read."""

    def _new_tracker(self) -> Tracker:
        return Tracker(ports=self._ports, lint=self._lints, locate=self._locate, readings=self._ncp_readings)

    def _locate(self, positions: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
        """Return the file of the last of some frames, and their numbers: their positions stay."""
        return "", positions

    def _table(self, table: Table) -> Iterator[Any]:
        state, offsets, first = self._state, table.offsets, 0
        if self._tunnelled and not self._run[grouped_scan.IS_OPEN]:
            yield from self._flush()
            self._tunnelled.clear()
        tunnels = table.tunnels
        if tunnels.codes is not None:
            numbers = np.array([self._encapsulations.number(one) for one in tunnels.distinct], np.int64)
            positions = table.rows[:, grouped_scan.SEGMENT_FRAME].copy()
            self._tunnelled.append((positions, numbers[tunnels.codes]))
        while first < len(table.rows):
            stop = int(np.searchsorted(offsets, offsets[first] + row_buffer.CHUNK, side="right")) - 1
            stop = max(stop, first + 1)
            size = int(offsets[stop] - offsets[first])
            yield from self._flush()  # rows refer to the memory
            if size > self._chunk:
                self._set_memory(size, len(self.memory) - self._chunk)
            self.memory[:size] = table.payloads[offsets[first] : offsets[stop]]
            state[entry.POS], state[entry.END], self._run[grouped_scan.BASE] = first, stop, offsets[first]
            yield from self._scan(table)
            first = stop

    def _scan(self, table: Table) -> Iterator[Any]:
        state = self._state
        while True:
            self._flows.reserve(0)
            stop_code = grouped_scan.scan_segments(
                self.scan_arrays(), self._flows.arrays, self._run, table.rows, self.tcp_ports,
                self._udp_ports,
            )  # fmt: skip
            if stop_code == StopCode.MORE_INPUT:
                return
            if stop_code == StopCode.GENERIC_RECORD:
                row = int(state[entry.POS])
                yield from self._take_datagram(table.datagram(row))
                state[entry.POS] = row + 1
            elif stop_code == StopCode.RUN_BEGINS:
                self._begin_chunk()
            elif stop_code == StopCode.RUN_ENDS:
                yield from self._end_run()
            else:
                yield from self._make_room(StopCode(stop_code))

    def _take_datagram(self, datagram: Datagram) -> Iterator[Any]:
        """Take a segment or ping that Python has read."""
        self.handed += 1
        if datagram.transport == "tcp":
            yield from self._take_segment(datagram)
        else:
            yield from self._add_items(self._tracker.feed(datagram))

    # -- runs ---------------------------------------------------------------------------------------

    def _begin_chunk(self) -> None:
        flow, number = int(self._run[grouped_scan.FLOW]), int(self._run[grouped_scan.CHUNK])
        if number:
            checkpoint = self._boundaries[flow][number - 1].checkpoint
            flow_checkpoints.resume(self._flows, self._state, self.tcp_ports, checkpoint)

    def _end_run(self) -> Iterator[Any]:
        flow, number = int(self._run[grouped_scan.FLOW]), int(self._run[grouped_scan.CHUNK])
        yield from self._finish_chunk(flow, number)
        self._number_rows()
        self._tracker = self._new_tracker()
        self._flows.restart(self._tracker)
        self._run[grouped_scan.IS_OPEN] = 0

    def _finish_chunk(self, flow: int, number: int) -> Iterator[Any]:
        """Yield the rows at the end of a run, unless the flow continues in another chunk."""
        if number == len(self._boundaries.get(flow, ())):
            yield from self._add_items(self._flows.flush(self, self._end_ns))

    # -- rows ---------------------------------------------------------------------------------------

    def _flush(self) -> Iterator[Any]:
        if len(self._files) > FILES_MAX:
            yield from self._maker.finish()
            self._files, self._maker.files = {}, []
        self._number_rows()
        rows = self.rows[: self._state[entry.ROWS]]
        indices = rows[:, entry.R_FRAME] >> OFFSET_BITS
        for index in np.unique(indices).tolist():
            rows[indices == index, entry.R_FILE] = self._file_number(index)
        offsets = rows[:, entry.R_FRAME] & (1 << OFFSET_BITS) - 1
        rows[:, entry.R_FRAME] = offsets << entry.TUNNEL_BITS | self._tunnels_at(rows[:, entry.R_FRAME])
        yield from super()._flush()
        self._run[grouped_scan.RENUMBERED] = 0

    def _number_rows(self) -> None:
        """Replace the numbers of connections in the new rows of the run by that of its flow."""
        grouped_scan.number_rows(self._state, self._run, self.rows)

    def _tunnels_at(self, positions: Any) -> Any:
        """Return the numbers of the tunnels in which the frames at some positions were; 0 for none."""
        if not self._tunnelled:
            return 0
        known, numbers = (np.concatenate(arrays) for arrays in zip(*self._tunnelled, strict=True))
        order = np.argsort(known, kind="stable")
        found = order[np.searchsorted(known, positions, sorter=order) % len(known)]
        return np.where(known[found] == positions, numbers[found], 0)

    def _file_number(self, index: int) -> int:
        """Return the number in rows of the file with this index in the capture."""
        if index not in self._files:
            self._files[index] = len(self._files)
            self._maker.files.append(self._tables.files[index])
        return self._files[index]


class ChunkChecker(FlowDecoder):
    """Checks for each chunk but the last of a flow whether it ends in the state with which the next begins.

    Attributes:
        checked: flow, number of the chunk, and whether it does.
    """

    def __init__(self, *, ports: Collection[int], boundaries: ChunkBoundaries) -> None:
        super().__init__(BatchMaker([], Filter(()), 1, None), ports=ports, boundaries=boundaries)
        self.drops_rows = True
        self.checked: list[tuple[int, int, bool]] = []

    def _finish_chunk(self, flow: int, number: int) -> Iterator[Any]:
        boundaries = self._boundaries.get(flow, ())
        if number < len(boundaries):
            saved = flow_checkpoints.save(self._flows, self._state)
            self.checked.append((flow, number, saved == boundaries[number].checkpoint))
        yield from ()
