"""Captures to record batches, by the compiled scan and the generic reader."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any, Final

import numpy as np

from msmqwire.analysis.dissection import Dissection, Item
from msmqwire.capture import Record
from msmqwire.capture.fragments import Fragments
from msmqwire.capture.record import ReportDamage
from msmqwire.errors import CaptureError
from msmqwire.tables.arrow.batch import BatchMaker
from msmqwire.tables.compiled import state as entry
from msmqwire.tables.compiled.decorators import repeated
from msmqwire.tables.compiled.notes import NOTE_FIELDS, OMISSION_FIELDS
from msmqwire.tables.compiled.scan import HANDSHAKE_FIELDS, scan
from msmqwire.tables.compiled.scan_arrays import RowBlock
from msmqwire.tables.compiled.stop_codes import StopCode
from msmqwire.tables.row_findings import RowFindings
from msmqwire.tables.scanning.flow_keys import ends_of
from msmqwire.tables.scanning.fragment_table import FragmentTable
from msmqwire.tables.scanning.frames import FileScanner, no_counts, no_interfaces
from msmqwire.tables.scanning.row_buffer import RowBuffer

FRAMES: Final = 1 << 14
"""Frames of packets that came in several for which there is room at first, where they are kept."""
HANDSHAKES: Final = 1024
"""Segments by which connections begin or fail that the scan notes before they are looked at."""
NO_NOTES: Final = np.zeros((0, NOTE_FIELDS), np.int64)
NO_OMISSIONS: Final = np.zeros((0, OMISSION_FIELDS), np.int64)
_COUNTED: Final = (
    (entry.NOT_IP_COUNT, "not-ip"),
    (entry.OTHER_COUNT, "other-protocol"),
    (entry.EMPTY_COUNT, "cut"),
)
"""Counts of the scan, each with its entry in `IpDecoder.ignored`."""


class Decoder(RowBuffer, FileScanner):
    """Decodes the captures of a dissection, in place of iterating over it.

    The rows, and `Dissection.errors`, are the same. It uses memory for a chunk of the file, for a batch, and
    for segments that are out of order or incomplete packets.
    """

    def __init__(self, dissection: Dissection, maker: BatchMaker) -> None:
        super().__init__(maker, dissection.tracker)
        self._dissection = dissection
        self._record_size_max = dissection.record_size_max
        fragments = dissection.decoder.fragments
        if not isinstance(fragments, FragmentTable):
            fragments = FragmentTable(dissection.decoder.ignored)
        self._fragments = dissection.decoder.fragments = fragments
        maker.files, maker.tunnels = dissection.files, self._encapsulations.texts
        self._interfaces, self._not_read = no_interfaces(), no_counts()
        self._attempts = dissection.attempts
        watched = bytearray(1) if self._attempts is None else self._attempts.watched
        self._watched: Any = np.frombuffer(watched, np.uint8)
        rows = 0 if self._attempts is None else HANDSHAKES
        self._handshakes: Any = np.zeros((rows, HANDSHAKE_FIELDS), np.int64)
        self._notes, self._omissions = NO_NOTES, NO_OMISSIONS  # see `compiled.notes`
        self._frames_before = 0  # of the file
        self._scan_frames = repeated(scan)
        self._findings: RowFindings | None = None
        if maker.shows_findings:
            self._findings = RowFindings(self.tcp_ports, dissection.files)
            self._state[entry.KEEPS_ORIGINS] = 1
            self._frame_lists = np.zeros(FRAMES, np.int64)

    def batches(self) -> Generator[Any, None, None]:
        """Yield the record batches of all rows; the large arrays are freed then."""
        try:
            yield from self._batches()
        finally:
            self._flows.hide()
            self._dissection.decoder.fragments = Fragments(self._dissection.decoder.ignored)

    def _batches(self) -> Iterator[Any]:
        dissection = self._dissection
        for number, source in enumerate(dissection.sources):
            if number == dissection.warm_up > 0:
                yield from self._add_items(self._flows.pause(self))
                yield from self._flush()
                dissection.errors.clear()
                dissection.decoder.count_anew()
                if self._attempts is not None:
                    self._attempts.count_anew()
            self._state[entry.START_SEGMENTS] = dissection.begin_source(number)
            self.drops_rows = number < dissection.warm_up
            files = len(dissection.files)
            with dissection.open_source(source) as stream:
                yield from self._read_file(stream)
            if len(dissection.files) > files and not self._state[entry.FRAME_NO]:
                dissection.forget_file()
            self._update_counters()
        if dissection.flushes:
            yield from self._add_items(self._flows.flush(self))
            dissection.decoder.end()
        else:
            yield from self._add_items(self._flows.pause(self, dissection.successor_ns))
        self._update_counters()
        yield from self._flush()
        yield from self._finish_columns()

    def _finish_columns(self) -> Iterator[Any]:
        """Yield the last batches."""
        yield from self._maker.finish()

    def _add_item(self, item: Item) -> None:
        if self._findings is not None:
            self._findings.note(int(self._state[entry.ROWS]), item)
        super()._add_item(item)

    def _make_columns(self, block: RowBlock) -> Iterator[Any]:
        yield from self._maker.add(block, self._extras, self._found_in(block))

    def _found_in(self, block: RowBlock) -> Sequence[str]:
        """Return the cells of the column of findings for `BatchMaker.add`; none without that column."""
        return () if self._findings is None else self._findings.cells(block)

    # -- a file -------------------------------------------------------------------------------------

    def _begin_file(self, file: str) -> None:
        self._frames_before = self._dissection.records
        self._state[entry.FRAMES_BEFORE] = self._frames_before << entry.TUNNEL_BITS
        self._state[entry.FILE] = self._dissection.begin_file(file)

    def _scan(self, start: int) -> StopCode:
        self._flows.reserve(0)
        stop_code = self._scan_frames(
            self.scan_arrays(), self._flows.arrays, self._fragments.arrays, self._encapsulations.arrays,
            self._interfaces, self.tcp_ports, self._udp_ports, self._not_read, self._watched,
            self._handshakes, self._notes, self._omissions,
        )  # fmt: skip
        self._dissection.records = self._frames_before + int(self._state[entry.FRAME_NO])
        return StopCode(stop_code)

    def _take_handshakes(self) -> None:
        """Pass on the notes of the scan on connections that begin, in the order of the capture."""
        count, self._state[entry.HANDSHAKES] = int(self._state[entry.HANDSHAKES]), 0
        if self._attempts is None:
            return
        for *key, seq, ack, flags in self._handshakes[:count].tolist():
            src, src_port, dst, dst_port, _ = ends_of(key)
            self._attempts.segment((src, src_port, dst, dst_port), seq, ack, flags)

    def _make_room(self, stop_code: StopCode) -> Iterator[Any]:
        if stop_code == StopCode.HANDSHAKES_FULL:
            self._take_handshakes()
            return
        self._dissection.handed += stop_code == StopCode.FOREIGN_EVENT
        yield from super()._make_room(stop_code)

    def _take_record(self, record: Record) -> Iterator[Any]:
        self._take_handshakes()
        self._dissection.handed += 1
        self._dissection.records = self._frames_before + record.number
        if self._frames_before:
            record = record._replace(number=self._frames_before + record.number)
        decoder, joined = self._dissection.decoder, self._fragments.take_joined()
        datagram = decoder.decode(record) if joined is None else decoder.finish(record, joined)
        if datagram is None:
            self._note_link(decoder, record.linktype)
            if not record.data:
                self._note_empty(record.linktype)
        else:
            self._encapsulations.note_path(self._header, datagram)
            if self._attempts is not None:
                self._attempts.feed(datagram)
        if datagram is None:
            return
        if datagram.transport == "tcp":
            yield from self._take_segment(datagram)
        else:
            yield from self._add_items(self._dissection.tracker.feed(datagram))

    @property
    def _on_damage(self) -> ReportDamage:
        return self._pass_over  # kept, it would be a cycle, in which the memory of the columns stays too

    def _pass_over(self, error: CaptureError) -> None:
        """Count a record that is too large to be read: the frames after it have later numbers."""
        self._dissection.errors.append(error)
        self._state[entry.FRAME_NO] += 1
        self._dissection.records = self._frames_before + int(self._state[entry.FRAME_NO])

    def _flush(self) -> Iterator[Any]:
        self._find_files()
        yield from super()._flush()

    def _find_files(self) -> None:
        """Find the file of each row whose frame is in one before the current file, and its number there."""
        if not self._frames_before:
            return
        rows, before = self.rows[: self._state[entry.ROWS]], self._frames_before
        earlier = (rows[:, entry.R_FRAME] < 1 << entry.TUNNEL_BITS) & (rows[:, entry.R_FRAME] != -1)
        for r in np.flatnonzero(earlier & (rows[:, entry.R_FILE] == self._state[entry.FILE])):
            file, of_file = self._dissection.file_of(
                before + (int(rows[r, entry.R_FRAME]) >> entry.TUNNEL_BITS)
            )
            rows[r, entry.R_FILE] = file
            rows[r, entry.R_FRAME] += before - of_file << entry.TUNNEL_BITS

    def _release_input(self) -> Iterator[Any]:
        yield from self._flush()

    def _enlarge_input(self, size: int) -> None:
        self._set_memory(size, len(self.memory) - self._chunk)

    def _update_counters(self) -> None:
        """Update the counters of the dissection."""
        self._take_handshakes()
        self._fragments.update_counters()
        self._move_counts(self._dissection.decoder)
        ignored = self._dissection.decoder.ignored
        for index, reason in _COUNTED:
            if self._state[index]:
                ignored[reason] += int(self._state[index])
                self._state[index] = 0
        counters = self._dissection.tracker.reassembler.counters
        counters.repeated_bytes += int(self._state[entry.REPEATED_BYTES])
        counters.conflicting_bytes += int(self._state[entry.CONFLICTING_BYTES])
        counters.lost_bytes += int(self._state[entry.LOST_BYTES])
        counters.far_segments += int(self._state[entry.FAR_SEGMENTS])
        counters.late_segments += int(self._state[entry.LATE_SEGMENTS])
        counters.stray_resets += int(self._state[entry.STRAY_RESETS])
        counters.evicted += int(self._state[entry.EVICTED])
        self._state[entry.REPEATED_BYTES] = self._state[entry.CONFLICTING_BYTES] = 0
        self._state[entry.LOST_BYTES] = self._state[entry.FAR_SEGMENTS] = 0
        self._state[entry.LATE_SEGMENTS] = self._state[entry.STRAY_RESETS] = self._state[entry.EVICTED] = 0

    def _file_of(self, item: Item) -> int:
        return self._dissection.files.index(item.file)
