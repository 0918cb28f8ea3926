"""Surveys of parts of a capture, made without the state of a reader before them.

To divide a capture exactly, one reader has to know the state before each part, and read everything. Tasks
spare it that: each surveys a part as if nothing was before it, and reports the frames that must be seen
nevertheless, as those of connections that it does not know yet or that something still waits for, and the
state after the remaining frames. The reader that has the state before the part takes these frames and values,
and has the state after it: `SurveyJoiner`. It trusts only `settled_flows`, for connections in the same place;
where they are not, it reads the part itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final, NamedTuple, cast

import numpy as np

from msmqwire.analysis.dissection import Dissection
from msmqwire.capture import Datagram, Record, pcap, pcapng
from msmqwire.capture.source import Buffer
from msmqwire.capture.tcp import SWEEP_NS
from msmqwire.capture.window import Window
from msmqwire.tables.arrow.batch import BatchMaker
from msmqwire.tables.compiled import state as entry
from msmqwire.tables.compiled.flow_table import (
    FREE,
    ISN,
    KEY_FIELDS,
    MODE,
    STREAM,
    find,
)
from msmqwire.tables.compiled.notes import (
    BREAKS,
    HAS_DATA,
    N_END,
    N_FLOW,
    N_KIND,
    N_NOW,
    N_START,
    N_STREAM,
    NO_STREAM,
    NOTE_FIELDS,
    O_AT,
    O_BYTES,
    O_FRAMES,
    O_NOW,
    O_STOPS,
    OMISSION_FIELDS,
)
from msmqwire.tables.compiled.stop_codes import StopCode
from msmqwire.tables.compiled.tcp.events import E_NUMBER
from msmqwire.tables.decoder import NO_OMISSIONS
from msmqwire.tables.filters import Filter
from msmqwire.tables.resumable_decoder import ResumableDecoder
from msmqwire.tables.scanning import row_buffer, settled_flows
from msmqwire.tables.scanning.courses import DOUBTFUL, KEPT, OMITTED, Courses
from msmqwire.tables.scanning.flow_keys import key_of
from msmqwire.tables.scanning.settled_flows import Pair

CHUNK_MIN: Final = 64 << 10
CHUNK_MAX: Final = 2 << 20
CHUNK_SHARE: Final = 128
"""Bytes that are read at once: this share of the part, within these bounds. Connections are looked at after
each, so that of smaller ones less is left to be seen, but looking takes longer."""
KEPT_MAX: Final = 64 << 20
"""Bytes of frames that a survey keeps. If more must be seen, the part is to be read instead."""
STREAMS_MAX: Final = 1 << 18
STRETCHES_MAX: Final = 1 << 15
"""Connections that a survey remembers, and stretches of their courses: together about 150 MB. Of a part with
more, as in a flood, the reader keeps less."""
_NOTES: Final = 1 << 14
_NONE: Final = np.zeros((0, NOTE_FIELDS), np.int64)


class Clock(NamedTuple):
    """The clock of a reader: its entries of the state of a scan."""

    now: int
    sweep_at: int
    idle_at: int


class Move(NamedTuple):
    """State of a connection at two places between which its segments need not be seen.

    Attributes:
        key: the key of the flow with the even number; see `compiled.flow_table`.
        before, after: the values at both places.
        frames: the frames of the values after, the last one and the last that was ignored, by flow.
        clock: at the first place.
    """

    key: tuple[int, ...]
    before: Pair
    after: Pair
    frames: tuple[tuple[int, int], tuple[int, int]]
    clock: Clock


@dataclass(frozen=True)
class PartSurvey:
    """The state that a window leaves to another reader.

    Attributes:
        window: the window.
        data: the frames that must be seen, as they are in the file.
        omissions: the segments left out of it; see `compiled.notes`. The first moves are for the first
            omission that stops, and so on.
        moves: the connections that go on, for each omission that stops.
        held, buffered: bytes that the reader has held at most, about: HELD and BUFFERED of a scan.
        why_not: why the window has to be read instead; empty if it need not be.
        is_damaged: whether reading the window met damage, or ended inside a record.
    """

    window: Window
    data: bytes = field(default=b"", repr=False)
    omissions: Any = field(default=None, repr=False)
    moves: tuple[tuple[Move, ...], ...] = field(default=(), repr=False)
    held: int = 0
    buffered: int = 0
    why_not: str = ""
    is_damaged: bool = False


def survey(window: Window, dissection: Dissection, *, by_offset: bool = False) -> PartSurvey:
    """Return the survey of a window.

    Args:
        window: the window.
        dissection: the settings of dissecting captures, without sources.
        by_offset: see `ExactPart`.

    Raises:
        OSError: the file can't be read.
    """
    size = (window.end - window.start) // CHUNK_SHARE
    surveyor = _Surveyor(dissection, min(max(size, CHUNK_MIN), CHUNK_MAX), by_offset=by_offset)
    return surveyor.survey(window)


class _Chunk(NamedTuple):
    """Frames that were read at once: their start and end, and those that perhaps need not be seen."""

    start: int
    end: int
    runs: list[tuple[int, bytes]]
    omitted: Any
    doubtful: Any


class _Surveyor(ResumableDecoder):
    def __init__(self, dissection: Dissection, chunk_size: int, *, by_offset: bool) -> None:
        super().__init__(dissection, BatchMaker([], Filter(()), row_buffer.ROWS, None), by_offset=by_offset)
        self.drops_rows = True
        self._set_memory(chunk_size, len(self.memory) - self._chunk)
        self._notes = np.zeros((_NOTES, NOTE_FIELDS), np.int64)
        self._taken: list[Any] = []  # the notes of the chunk so far
        self._broken: dict[int, int] = {}  # streams of which something must be seen, each with its number
        self._chunks: list[_Chunk] = []
        self._courses = Courses()
        self._clocks: list[Clock] = []  # after each chunk
        self._kept_limit = KEPT_MAX // 4
        self._from = self._kept = self._held = self._buffered = self._now = 0
        self._why_not = ""

    def survey(self, window: Window) -> PartSurvey:
        self._from = len(window.head)
        if not window.start:
            self._keep_header(window)
        for _ in self._read_window(window):
            if self._why_not:
                break
        if self._dissection.errors:
            return PartSurvey(window, why_not=str(self._dissection.errors[0]), is_damaged=True)
        self._check_memory()
        if self._dissection.tracker.reassembler.counters.evicted:
            self._why_not = "connections were evicted"
        if self._why_not:
            return PartSurvey(window, why_not=self._why_not)
        data, omissions, moves = self._summary()
        return PartSurvey(window, data, omissions, moves, self._held, self._buffered)

    def _keep_header(self, window: Window) -> None:
        """Keep the header of a pcap file, which is not among the bytes read at once."""
        with window.open() as stream:
            buffer = Buffer(cast(BinaryIO, stream), window.path)
            if buffer.fill(pcap.FILE_HEADER_SIZE) and buffer.data[:4] in pcap.MAGICS:
                header = buffer.data[: pcap.FILE_HEADER_SIZE]
                self._add_chunk(0, len(header), [(0, header)], _joined(_NONE), _NONE)

    # -- reading -----------------------------------------------------------------------------------

    def _make_room(self, stop_code: StopCode) -> Iterator[Any]:
        if stop_code == StopCode.NOTES_FULL:
            self._take_notes()
            return
        if stop_code == StopCode.HELD_FULL:
            self._why_not = "it holds too much of packets that are not whole"
        if stop_code == StopCode.FOREIGN_EVENT:
            self._break(int(self._flows.arrays.events[self._state[entry.EVENT], E_NUMBER]))
        yield from super()._make_room(stop_code)

    def _take_segment(self, datagram: Datagram) -> Iterator[Any]:
        yield from super()._take_segment(datagram)
        arrays = self._flows.arrays
        self._header[:KEY_FIELDS] = key_of(*datagram.key)
        self._break(int(find(arrays.table, arrays.keys, self._header, self._state[entry.HASH_SEED])))

    def _break(self, number: int) -> None:
        if number >= 0:
            self._broken[int(self._flows.arrays.flows[number, STREAM])] = number & -2

    def _generic_records(self, buffer: Buffer, form: pcap.Layout | pcapng.Blocks) -> list[Record] | None:
        state = self._state
        start = buffer.start + buffer.at - int(state[entry.END] - state[entry.POS])
        rest = self.memory[state[entry.POS] : state[entry.END]].tobytes()
        records = super()._generic_records(buffer, form)
        size = 0 if records is None else buffer.start + buffer.at - start
        if size > len(rest):
            self._why_not = "it has records that are larger than one read"
        elif size:
            self._add_chunk(start, start + size, [(start, rest[:size])], _joined(_NONE), _NONE)
        return records

    def _release_input(self) -> Iterator[Any]:
        yield from super()._release_input()
        self._end_chunk()
        if self._why_not:
            yield None

    def _take_notes(self) -> None:
        count, self._state[entry.NOTES] = int(self._state[entry.NOTES]), 0
        self._taken.append(self._notes[:count].copy())

    def _end_chunk(self) -> None:
        """Look at the connections that had something in the chunk, and keep the frames to be seen."""
        state = self._state
        start, end = self._from, int(state[entry.MEMORY_AT] + state[entry.POS])
        if end <= start:
            return
        if state[entry.STREAMS] > STREAMS_MAX or self._courses.count > STRETCHES_MAX:
            self._why_not = "it has too many connections"
        if state[entry.EVICTED]:
            self._why_not = "connections were evicted"
        if self._why_not:
            return
        self._take_notes()
        notes = np.concatenate(self._taken)
        self._taken = []
        self._check_memory()
        clocks = np.concatenate([[self._now], notes[:, N_NOW]])
        if (np.diff(clocks) < 0).any():
            self._why_not = "its clock goes back"
        self._now = int(clocks[-1])
        omitted, doubtful = self._judged(notes)
        omitted = _joined(omitted)
        memory, offset, runs = self.memory, int(state[entry.MEMORY_AT]), []
        at = start
        for first, last in [*omitted[:, [G_START, G_END]].tolist(), (end, end)]:
            if first > at:
                runs.append((at, memory[at - offset : first - offset].tobytes()))
                self._kept += first - at
            at = last
        self._add_chunk(start, end, runs, omitted, doubtful)
        if self._kept > self._kept_limit:
            self._trim()
            self._kept_limit = max(self._kept_limit, min(2 * self._kept, KEPT_MAX))
            if self._kept > KEPT_MAX:
                self._why_not = "too many of its frames must be seen"

    def _add_chunk(
        self, start: int, end: int, runs: list[tuple[int, bytes]], omitted: Any, doubtful: Any
    ) -> None:
        self._chunks.append(_Chunk(start, end, runs, omitted, doubtful))
        clock = self._state[[entry.NOW, entry.SWEEP_AT, entry.IDLE_AT]]
        self._clocks.append(Clock._make(clock.tolist()))
        self._from = end

    def _check_memory(self) -> None:
        self._held = max(self._held, int(self._state[entry.HELD]))
        self._buffered = max(self._buffered, int(self._state[entry.BUFFERED]))

    def _judged(self, notes: Any) -> tuple[Any, Any]:
        """Return the notes whose records need not be seen, and those of which that is not known yet."""
        arrays, of_segments = self._flows.arrays, notes[notes[:, N_STREAM] != NO_STREAM]
        broken = of_segments[of_segments[:, N_KIND] == BREAKS]
        self._broken.update(zip(broken[:, N_STREAM].tolist(), (broken[:, N_FLOW] & -2).tolist(), strict=True))
        self._courses.end(np.array(list(self._broken), np.int64))
        streams = np.concatenate([of_segments[:, N_STREAM], np.array(list(self._broken), np.int64)])
        numbers = np.concatenate([of_segments[:, N_FLOW], np.array(list(self._broken.values()), np.int64)])
        self._broken.clear()
        streams, places = np.unique(streams, return_index=True)
        numbers, flows = numbers[places] & -2, arrays.flows
        there = (flows[numbers, STREAM] == streams) & (flows[numbers, MODE] != FREE)
        settled = settled_flows.are_settled(flows, arrays.keys, numbers) & there
        with_data = of_segments[of_segments[:, N_KIND] == HAS_DATA, N_FLOW]
        segments = np.bincount(with_data, minlength=len(flows))
        whole = (flows[numbers, ISN] >= 0) & (flows[numbers + 1, ISN] >= 0)
        # The fate of the notes of each stream; the last one stands for those without a stream.
        fates = np.full(int(self._state[entry.STREAMS]) + 1, KEPT, np.int8)
        fates[-1] = OMITTED
        fates[streams] = self._courses.look_at(
            len(self._chunks),
            self._now,
            streams,
            numbers,
            settled,
            whole,
            np.stack([segments[numbers], segments[numbers + 1]], axis=1),
            flows,
            arrays.keys,
        )
        of_notes = fates[notes[:, N_STREAM]]
        return notes[of_notes == OMITTED], notes[of_notes == DOUBTFUL]

    # -- results ------------------------------------------------------------------------------------

    def _trim(self) -> None:
        """Leave out parts that need not be read after all, as their connection was settled again."""
        fates = np.full(int(self._state[entry.STREAMS]) + 1, KEPT, np.int8)
        for number, chunk in enumerate(self._chunks):
            if not len(chunk.doubtful):
                continue
            of_notes = chunk.doubtful[:, N_STREAM]
            streams = np.unique(of_notes)
            fates[streams] = [self._courses.fate(stream, number) for stream in streams.tolist()]
            more = _joined(chunk.doubtful[fates[of_notes] == OMITTED])
            doubtful = chunk.doubtful[fates[of_notes] == DOUBTFUL]
            runs, omitted = chunk.runs, chunk.omitted
            if len(more):
                runs, omitted = _without(runs, more), np.concatenate([omitted, more])
                omitted = omitted[np.argsort(omitted[:, G_START])]
            self._chunks[number] = _Chunk(chunk.start, chunk.end, runs, omitted, doubtful)
        self._kept = sum(len(run) for chunk in self._chunks for _, run in chunk.runs)

    def _summary(self) -> tuple[bytes, Any, tuple[tuple[Move, ...], ...]]:
        moves = dict[int, list[Move]]()
        for stretch in self._courses.end_all():
            frames = tuple(
                (self._encapsulations.frame(one.frame), self._encapsulations.frame(one.ignored_frame))
                for one in stretch.after
            )
            key, clock = self._courses.key(stretch.stream), self._clocks[stretch.begun]
            move = Move(key, stretch.before, stretch.after, frames, clock)  # type: ignore[arg-type]
            moves.setdefault(stretch.begun, []).append(move)
        self._trim()
        places = sorted(moves)
        omissions = self._omissions_with_stops(places)
        data = b"".join(run for chunk in self._chunks for _, run in chunk.runs)
        return data, omissions, tuple(tuple(moves[number]) for number in places)

    def _omissions_with_stops(self, places: list[int]) -> Any:
        """Return the omissions of the data, with a stop at the ends of some chunks."""
        if not self._chunks:
            return NO_OMISSIONS
        groups = np.concatenate([chunk.omitted for chunk in self._chunks])
        first = self._chunks[0].start
        left_out = np.concatenate([[0], np.cumsum(groups[:, G_END] - groups[:, G_START])])
        rows = np.zeros((len(groups), 2, OMISSION_FIELDS), np.int64)
        rows[:, :, O_AT] = (groups[:, G_START] - first - left_out[:-1])[:, None]
        rows[:, 0, O_NOW], rows[:, 1, O_NOW] = groups[:, G_FIRST_NOW], groups[:, G_LAST_NOW]
        rows[:, 1, O_BYTES], rows[:, 1, O_FRAMES] = np.diff(left_out), groups[:, G_FRAMES]
        before = np.cumsum([len(chunk.omitted) for chunk in self._chunks])[places]
        stops = np.zeros((len(places), OMISSION_FIELDS), np.int64)
        ends = np.array([self._chunks[number].end for number in places], np.int64)
        stops[:, O_AT] = ends - first - left_out[before]
        stops[:, O_NOW] = [self._clocks[number].now for number in places]
        stops[:, O_STOPS] = 1
        return np.insert(rows.reshape(-1, OMISSION_FIELDS), 2 * before, stops, axis=0)


G_START, G_END, G_FRAMES, G_FIRST_NOW, G_LAST_NOW = range(5)
"""Records that follow each other and need not be seen, by index: their start, end and number, and the clock
after the first and the last, between which no timeouts are applied.
"""


def _joined(notes: Any) -> Any:
    """Return notes with those joined that follow each other."""
    if not len(notes):
        return np.zeros((0, 5), np.int64)
    sweeps = notes[:, N_NOW] // SWEEP_NS
    follows = (notes[1:, N_START] == notes[:-1, N_END]) & (sweeps[1:] == sweeps[:-1])
    firsts = np.concatenate([[0], np.flatnonzero(~follows) + 1])
    lasts = np.concatenate([firsts[1:], [len(notes)]]) - 1
    columns = (notes[firsts, N_START], notes[lasts, N_END], lasts - firsts + 1, notes[firsts, N_NOW],
               notes[lasts, N_NOW])  # fmt: skip
    return np.stack(columns, axis=1)


def _without(runs: list[tuple[int, bytes]], omitted: Any) -> list[tuple[int, bytes]]:
    """Return runs of bytes without those that are omitted after all."""
    left, ranges = list[tuple[int, bytes]](), iter(omitted[:, [G_START, G_END]].tolist())
    start, end = next(ranges, (-1, -1))
    for begin, run in runs:
        at, stop = begin, begin + len(run)
        while 0 <= start < stop:
            if start > at:
                left.append((at, run[at - begin : start - begin]))
            at = end
            start, end = next(ranges, (-1, -1))
        if at < stop:
            left.append((at, run[at - begin :]))
    return left
