"""Decoders that stop between two records of a capture, and go on there in another process.

A checkpoint has all that reading so far has left: connections, packets and fragments that are not whole, the
numbers of frames and streams, the clock. It is a pickle, and as trustworthy as its maker.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from msmqwire.analysis.dissection import Dissection, state_pickle
from msmqwire.capture import pcap, pcapng
from msmqwire.capture.source import Buffer
from msmqwire.capture.splits import is_splittable
from msmqwire.capture.window import Window
from msmqwire.tables.arrow.batch import BatchMaker
from msmqwire.tables.columns import FINDING_IDS, refuse_findings
from msmqwire.tables.compiled import state as entry
from msmqwire.tables.decoder import Decoder
from msmqwire.tables.filters import Filter
from msmqwire.tables.scanning import row_buffer

_COMPRESSION: Final = 1
"""Fast: most of a checkpoint are zeros."""
STATE_MIN: Final = 1 << 20
STATE_SHARE: Final = 16
"""After a state of more than `STATE_MIN` bytes, at least this many times its size follows in the files."""
DUMPED_MIN: Final = 4 << 20
"""A state that has more bytes before it is compressed is followed by about as many of files, so that saving
takes no more than a share of the time."""


class Checkpoint(NamedTuple):
    """A place between two records, and the state of a decoder there.

    Attributes:
        file: the index of the file in the capture.
        offset: that of the next record in the file.
        state: for `ResumableDecoder.resume`.
    """

    file: int
    offset: int
    state: bytes


class ResumableDecoder(Decoder):
    """A decoder of windows that adjoin, from the start of a capture or from a checkpoint.

    Args:
        dissection: the settings of dissecting the capture.
        maker: makes the record batches.
        by_offset: whether the number of a frame is the offset of its record in the (unpacked) file.
    """

    def __init__(self, dissection: Dissection, maker: BatchMaker, *, by_offset: bool = False) -> None:
        if maker.shows_findings:  # a checkpoint has no sessions of a judge
            refuse_findings([FINDING_IDS])
        super().__init__(dissection, maker)
        self._state[entry.BY_OFFSET] = by_offset
        self._form: pcap.Layout | pcapng.Blocks | None = None  # of the file that is being read
        self._dumped = 0  # bytes of the last state that was saved, before they were compressed

    @classmethod
    def resume(cls, state: bytes, maker: BatchMaker) -> ResumableDecoder:
        """Return a decoder that continues from a checkpoint; see `Checkpoint.state`."""
        saved = unpacked(state)
        decoder = cls(saved["dissection"], maker)
        decoder._restore(saved)
        return decoder

    @property
    def dissection(self) -> Dissection:
        """The captures that it decodes; its errors are those of the windows read."""
        return self._dissection

    def read(self, windows: Iterable[Window]) -> Iterator[Any]:
        """Yield the record batches of windows; unfinished connections are left for the next reader.

        Raises:
            OSError: a file can't be read.
        """
        for window in windows:
            yield from self._read_window(window)
        yield from self._flush()

    def finish(self, *, at_end: bool) -> Iterator[Any]:
        """Yield the last batches; at the end of the capture also those of unfinished connections."""
        if at_end:
            yield from self._add_items(self._flows.flush(self))
            self._dissection.decoder.end()
            self._update_counters()
        yield from self._flush()
        yield from self._maker.finish()

    def _read_window(self, window: Window) -> Iterator[Any]:
        with window.open() as source, self._dissection.open_source(source) as stream:
            if self._form is not None and window.start:
                buffer = Buffer.inside(stream, window.path, window.start)
                if isinstance(self._form, pcapng.Blocks):
                    self._form.buffer = buffer
                yield from self._read_records(buffer, self._form)
            else:
                yield from self._read_file(stream)
        self._update_counters()

    def _read_records(self, buffer: Buffer, form: pcap.Layout | pcapng.Blocks) -> Iterator[Any]:
        self._form = form
        yield from super()._read_records(buffer, form)

    def save(self) -> bytes:
        """Return the state between two records; no row must be left."""
        self._flows.compact()
        form = self._form
        blocks = (form.order, form.interfaces, form.number) if isinstance(form, pcapng.Blocks) else None
        saved = {
            "dissection": self._dissection,
            "flows": self._flows,
            "encapsulations": self._encapsulations,
            "state": self._state,
            "interfaces": self._interfaces,
            "form": form if blocks is None else blocks,
            "frames_before": self._frames_before,
        }
        dumped = state_pickle.dumps(saved)
        self._dumped = len(dumped)
        return zlib.compress(dumped, _COMPRESSION)

    def _restore(self, saved: dict[str, Any]) -> None:
        self._flows, self._state = saved["flows"], saved["state"]
        self._flows.show()
        self._encapsulations = saved["encapsulations"]
        self._maker.tunnels = self._encapsulations.texts
        self._interfaces, self._frames_before = saved["interfaces"], saved["frames_before"]
        state, form = self._state, saved["form"]
        state[entry.POS] = state[entry.END] = state[entry.ROWS] = 0
        state[entry.ARENA], state[entry.ARENA_END] = self._chunk, len(self.memory)
        self._form = form
        if form is not None and not isinstance(form, pcap.Layout):
            blocks = pcapng.Blocks(
                Buffer.over(b"", self._dissection.files[-1], 0), self._record_size_max, self._on_damage
            )
            blocks.order, blocks.interfaces, blocks.number = form
            self._form = blocks


def unpacked(state: bytes) -> dict[str, Any]:
    """Return the objects that a state saves."""
    saved: dict[str, Any] = state_pickle.loads(zlib.decompress(state))
    return saved


class Surveyor(ResumableDecoder):
    """Reads a capture without making columns, to find places where other readers can start, each with its
    state.

    Args:
        dissection: the settings of dissecting the capture.
        step: bytes of files between two checkpoints, about; 0 for one at the start of each file. Only files
            that are not compressed have some inside. With a large state there are more bytes.
        by_offset: whether the number of a frame is the offset of its record in the (unpacked) file.
    """

    def __init__(self, dissection: Dissection, step: int, *, by_offset: bool = False) -> None:
        super().__init__(dissection, BatchMaker([], Filter(()), row_buffer.ROWS, None), by_offset=by_offset)
        self.drops_rows = True
        self._step, self._since = step, 0  # bytes since the last checkpoint
        self._due = step  # with this number of them there may be another one
        # The part being read: its index, and the end of possible checkpoints in it.
        self._file, self._end = 0, 0
        self._passed = 0  # offset in the file up to where it counts
        self._taken: list[Checkpoint] = []

    def read_until(self, windows: Sequence[Window], end: tuple[int, int]) -> Checkpoint:
        """Read the windows from the start of the capture to a place, and return the checkpoint there.

        Args:
            windows: the windows.
            end: the index of the file, and the offset in it.

        Raises:
            CaptureError: there is damage in the last one, so it does not end where a record does.
            OSError: a file can't be read.
        """
        for _ in self.read(windows[:-1]):
            pass
        before = len(self._dissection.errors)
        for _ in self.read(windows[-1:]):
            pass
        if end[1] and len(self._dissection.errors) > before:
            raise self._dissection.errors[-1]
        return Checkpoint(*end, self.save())

    def checkpoints(self, files: Sequence[Window], start: tuple[int, int] = (0, 0)) -> Iterator[Checkpoint]:
        """Yield the checkpoints of a capture of these files, except the one at its start.

        Args:
            files: the files, each as one window.
            start: the index of a file, and an offset in it, where `read_until` has ended.

        Raises:
            OSError: a file can't be read.
        """
        for number, window in enumerate(files[start[0] :], start[0]):
            at = start[1] if number == start[0] else 0
            if number > start[0] and self._since >= self._due:
                self._take(number, 0)
            yield from self._in_file(number, replace(window, start=at))

    def _in_file(self, number: int, window: Window) -> Iterator[Checkpoint]:
        """Read a file, or the rest of it, and yield the checkpoints inside it and one taken before."""
        self._file, self._passed = number, window.start
        divided = self._step and is_splittable(window.path, window.storage_options)
        self._end = window.end if divided else 0
        for _ in self._read_window(window):
            yield from self._take_all()
        self._since += window.end - self._passed
        yield from self._take_all()

    def _take(self, file: int, offset: int) -> None:
        state = self.save()
        if len(state) > max(STATE_MIN, self._since // STATE_SHARE):
            self._due = max(STATE_SHARE * len(state), self._dumped - DUMPED_MIN)
            return
        self._taken.append(Checkpoint(file, offset, state))
        self._since, self._due = 0, max(self._step, self._dumped - DUMPED_MIN)

    def _take_all(self) -> list[Checkpoint]:
        taken, self._taken = self._taken, []
        return taken

    def _release_input(self) -> Iterator[Any]:
        yield from super()._release_input()
        offset = int(self._state[entry.MEMORY_AT] + self._state[entry.POS])
        if self._passed < offset < self._end:
            self._since, self._passed = self._since + offset - self._passed, offset
            if self._since >= self._due:
                self._take(self._file, offset)
                yield None  # so that it is handed out now
