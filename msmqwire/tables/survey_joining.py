"""The state after a part of a capture from that before it, and from a survey of the part."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from msmqwire.analysis.dissection import Dissection
from msmqwire.analysis.dissection.tracker import HELD_MAX
from msmqwire.capture import pcapng
from msmqwire.capture.source import Buffer
from msmqwire.capture.tcp import BUFFERED_TOTAL_MAX
from msmqwire.capture.tunnels import encapsulation_of, frame_in_tunnel
from msmqwire.capture.window import Window
from msmqwire.errors import CaptureError
from msmqwire.tables.compiled import state as entry
from msmqwire.tables.compiled.flow_table import KEY_FIELDS, find
from msmqwire.tables.compiled.notes import O_AT, O_NOW, O_STOPS
from msmqwire.tables.compiled.stop_codes import StopCode
from msmqwire.tables.decoder import NO_OMISSIONS
from msmqwire.tables.part_survey import CHUNK_MAX, Clock, Move, PartSurvey
from msmqwire.tables.resumable_decoder import Checkpoint, Surveyor, unpacked
from msmqwire.tables.scanning import settled_flows

_LOG: Final = logging.getLogger(__name__)
_SPARE: Final = 8 * CHUNK_MAX
"""Bytes that may have been held for a while without being seen."""


class _Mismatch(Exception):
    """A connection is not where a survey takes it to be, or there is too much to hold."""


class _JoiningSurveyor(Surveyor):
    """Reads a capture for its states, or takes them from surveys of its parts."""

    def __init__(self, dissection: Dissection, step: int, *, by_offset: bool = False) -> None:
        super().__init__(dissection, step, by_offset=by_offset)
        self._survey: PartSurvey | None = None
        self._moves: Iterator[tuple[Move, ...]] = iter(())
        self._frames = 0  # how many more the number of a frame is than in the survey
        self._most_held = self._most_buffered = 0

    @classmethod
    def after(cls, state: bytes, step: int) -> _JoiningSurveyor:
        """Return a surveyor that continues from a state."""
        saved = unpacked(state)
        surveyor = cls(saved["dissection"], step)
        surveyor._restore(saved)
        return surveyor

    @property
    def progress(self) -> tuple[int, int]:
        """The number of bytes since the last checkpoint, and the number at which the next one is due."""
        return self._since, self._due

    @progress.setter
    def progress(self, value: tuple[int, int]) -> None:
        self._since, self._due = value

    def checkpoint_if_due(self, file: int, offset: int) -> Checkpoint | None:
        """Return a checkpoint between two windows, if there is to be one."""
        if self._since >= self._due - self._step // 8:  # windows are about as large as a step
            self._take(file, offset)
        return next(iter(self._take_all()), None)

    def pass_window(self, window: Window) -> None:
        """Read a window. Raises OSError if the file can't be read."""
        self._end = 0  # no checkpoint inside it
        for _ in self.read([window]):
            pass
        self._since += window.end - window.start

    def rest_of(self, number: int, window: Window) -> Iterator[Checkpoint]:
        """Read the rest of a file; yield the checkpoints inside it."""
        yield from self._in_file(number, window)

    def join(self, survey: PartSurvey) -> None:
        """Read the frames of a window that must be seen.

        Raises:
            _Mismatch: the window has to be read instead, by a reader with the state before it; this one can't
                be used any more.
        """
        state, counters = self._state, self._dissection.tracker.reassembler.counters
        evicted, errors = counters.evicted, len(self._dissection.errors)
        self._survey, self._moves = survey, iter(survey.moves)
        self._omissions = survey.omissions.copy()
        state[entry.NOTES] = state[entry.SKIPPED] = 0
        self._most_held = self._most_buffered = self._end = 0  # no checkpoint inside it
        window = survey.window
        at = window.start if self._form is not None and window.start else 0
        self._omissions[:, O_AT] += at
        for _ in self._read_kept(window, survey.data):
            pass
        self._check_memory()
        is_whole = state[entry.NOTES] == len(self._omissions) and len(self._dissection.errors) == errors
        self._survey, self._omissions = None, NO_OMISSIONS
        state[entry.NOTES] = state[entry.SKIPPED] = 0
        if not is_whole:
            raise _Mismatch("its frames are read otherwise")
        if counters.evicted != evicted:
            raise _Mismatch("connections are evicted")
        self._since += window.end - window.start

    def _read_kept(self, window: Window, data: bytes) -> Iterator[Any]:
        if self._form is not None and window.start:
            buffer = Buffer.over(data, window.path, window.start)
            if isinstance(self._form, pcapng.Blocks):
                self._form.buffer = buffer
            before = 0 if self._state[entry.BY_OFFSET] else int(self._state[entry.FRAME_NO])
            self._frames = self._frames_before + before
            if self._state[entry.BY_OFFSET]:
                self._frames += window.start - len(window.head)
            with self._dissection.open_source(io.BytesIO()):
                yield from self._read_records(buffer, self._form)
        else:
            self._frames = self._dissection.records
            with self._dissection.open_source(_Named(data, window.path)) as stream:
                yield from self._read_file(stream)
        self._update_counters()

    def _make_room(self, stop_code: StopCode) -> Iterator[Any]:
        if stop_code == StopCode.HELD_FULL:
            raise _Mismatch("too much is held of packets that are not whole")
        if stop_code != StopCode.NOTE_DUE:
            yield from super()._make_room(stop_code)
            return
        self._check_memory()
        omission = self._omissions[self._state[entry.NOTES]]
        if omission[O_NOW] > self._state[entry.NOW]:
            yield from self._add_items(self._flows.sweep(self, int(omission[O_NOW])))
        if omission[O_STOPS]:
            self._apply(next(self._moves))
            omission[O_STOPS] = 0

    def _apply(self, moves: Sequence[Move]) -> None:
        """Bring connections to their state at the end of the segments left out of them."""
        arrays, state, numbers = self._flows.arrays, self._state, list[int]()
        clock = Clock._make(state[[entry.NOW, entry.SWEEP_AT, entry.IDLE_AT]].tolist())
        for move in moves:
            if move.clock != clock:
                raise _Mismatch("its clock is another one")
            self._header[:KEY_FIELDS] = move.key
            numbers.append(int(find(arrays.table, arrays.keys, self._header, state[entry.HASH_SEED])))
        if min(numbers) < 0:
            raise _Mismatch("a connection is not known")
        if not settled_flows.are_settled(arrays.flows, arrays.keys, np.array(numbers)).all():
            raise _Mismatch("a connection is not settled")
        rows = settled_flows.rows_of(arrays.flows, np.array(numbers))
        for move, number, row in zip(moves, numbers, rows, strict=True):
            one, other = settled_flows.pair_of(row)
            mine = (other, one) if number & 1 else (one, other)
            why = settled_flows.differs(move.before, mine, move.after)
            if why:
                raise _Mismatch(f"a connection {why}")
            frames = [tuple(map(self._code, of_flow)) for of_flow in move.frames]
            settled_flows.move(
                arrays.flows,
                [number, number ^ 1],
                move.before,
                move.after,
                frames,  # type: ignore[arg-type]
            )

    def _code(self, frame: int) -> int:
        """Return the code here of a frame in the survey."""
        if not frame:
            return 0
        return self._encapsulations.code(frame_in_tunnel(int(frame) + self._frames, encapsulation_of(frame)))

    def _check_memory(self) -> None:
        """Check that no limit of memory can have been reached while frames were left out."""
        survey, state = self._survey, self._state
        if survey is None:
            return
        self._most_held = max(self._most_held, int(state[entry.HELD]))
        self._most_buffered = max(self._most_buffered, int(state[entry.BUFFERED]))
        if (
            self._most_held + survey.held + _SPARE > HELD_MAX
            or self._most_buffered + survey.buffered + _SPARE > BUFFERED_TOTAL_MAX
        ):
            raise _Mismatch("too much is held")


class _Named(io.BytesIO):
    """Bytes with the name of their file."""

    def __init__(self, data: bytes, name: str) -> None:
        super().__init__(data)
        self.name = name


class SurveyJoiner:
    """Finds the states at the starts of parts from surveys of them.

    Frames that a survey is not certain of are read here.

    Args:
        dissection: the settings of dissecting the capture, without sources.
        step: as for `Surveyor`.
        by_offset: see `ExactPart`.

    Attributes:
        read_again: bytes of windows that had to be read here.
    """

    def __init__(self, dissection: Dissection, step: int, *, by_offset: bool = False) -> None:
        self._reader = _JoiningSurveyor(dissection, step, by_offset=by_offset)
        self._step = step
        self._state = self._reader.save()
        self._passed: list[Window] = []  # since that state
        self.read_again = 0

    @property
    def errors(self) -> list[CaptureError]:
        """The errors in the windows read here."""
        return self._reader.dissection.errors

    def save(self, file: int, offset: int) -> Checkpoint:
        """Return the checkpoint at a place where reading is."""
        self._state, self._passed = self._reader.save(), []
        self._reader.progress = 0, self._step
        return Checkpoint(file, offset, self._state)

    def checkpoints(self, number: int, file: Window, surveys: Iterable[PartSurvey]) -> Iterator[Checkpoint]:
        """Yield the checkpoints at the start of a file and inside it, but for its last part.

        Args:
            number: the index of the file.
            file: the windows to read of it.
            surveys: the surveys of its windows, which adjoin.

        Raises:
            OSError: the file can't be read.
        """
        windows = iter(surveys)
        for survey in windows:
            window = replace(survey.window, head=b"", tails=())
            if number or window.start:
                found = self._reader.checkpoint_if_due(number, window.start)
                if found is not None:
                    self._state, self._passed = found.state, []
                    yield found
            if survey.is_damaged:
                rest = replace(window, end=file.end)
                self.read_again += rest.end - rest.start
                for found in self._reader.rest_of(number, rest):
                    self._state, self._passed = found.state, []
                    rest = replace(rest, start=found.offset)
                    yield found
                self._passed.append(rest)
                break
            self._pass(window, survey)
        for _ in windows:
            pass

    def _pass(self, window: Window, survey: PartSurvey) -> None:
        size, why = window.end - window.start, survey.why_not
        if not why:
            since = self._reader.progress
            try:
                self._reader.join(survey)
            except _Mismatch as mismatch:
                why = str(mismatch)
                self._reader = _JoiningSurveyor.after(self._state, self._step)
                for passed in self._passed:
                    self._reader.pass_window(passed)
                self._reader.progress = since
        if why:
            self.read_again += size
            _LOG.debug("%s: %d bytes from %d on are read again: %s", window.path, size, window.start, why)
            self._reader.pass_window(window)
        self._passed.append(window)
