"""Capture files cut into windows that can be read apart from each other, by different processes.

The records of all windows of a file, one window after the other, are the records of the file, and an
error in the file is an error of the last window.

Where records start is told by reading the file once, which also tells where it is damaged. For pcap
files too large for that, ``search=True`` finds a record near each place where a window is to start.

Compressed files cannot be read from the middle and are one window each.
"""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace

from msmqwire.capture import pcap
from msmqwire.capture.pcap_search import find_record
from msmqwire.capture.record_index import Mark, Skip, can_be_cut, every, located_records, marks, stay
from msmqwire.capture.window import Window
from msmqwire.errors import CaptureError, MsmqError

__all__ = ["Index", "Mark", "Window", "can_be_cut", "last_part", "located_records", "plan"]


def plan(
    path: str, split_size: int, *, search: bool = False, tails: Sequence[int] = (), skip: Skip = stay
) -> list[Window]:
    """The windows of a file, of about `split_size` bytes each; all but the first start with a record.

    Args:
        path: the file.
        split_size: bytes; 0 for one window.
        search: find the records of a pcap file near the cuts only, instead of reading it once. The
            windows are exact too where the file is intact or ends too early. Those that follow a
            damaged place may hold records again, which no reader of the whole file gives.
        tails: sizes of last parts of the windows that will be asked for: where they start is noted in
            the windows when the file is read once.
        skip: what passes over records that nobody asks for.

    Raises:
        OSError: the file can't be read.
    """
    size = os.path.getsize(path)
    if not split_size or size <= split_size or not can_be_cut(path):
        return [Window(path, b"", 0, size)]
    found = _searched(path, size, split_size) if search else None
    return _walked(path, size, split_size, tails, skip) if found is None else _adjoining(path, size, found)


def _adjoining(path: str, size: int, starts: Sequence[tuple[int, bytes]]) -> list[Window]:
    """The windows that start at the start of a file and at these places, with these heads."""
    starts = [(0, b""), *starts]
    ends = [start for start, _ in starts[1:]] + [size]
    return [Window(path, head, start, end) for (start, head), end in zip(starts, ends, strict=True)]


def _walked(path: str, size: int, split_size: int, tails: Sequence[int], skip: Skip) -> list[Window]:
    """The windows of a file, told by reading it."""
    starts, noted = list[tuple[int, bytes]](), list[tuple[int, bytes]]()
    cuts = [*range(split_size, size, split_size), size]
    places = sorted({cut - tail for cut in cuts for tail in (0, *tails)})
    cut = split_size

    def after(start: int) -> int:
        number = bisect_right(places, start)
        return places[number] if number < len(places) else size

    try:
        for start, _, head in marks(Window(path, b"", 0, size), after, skip):
            if head is None:
                continue
            if start >= cut:
                starts.append((start, head))
                cut = (start // split_size + 1) * split_size
            elif tails:
                noted.append((start, head))
    except CaptureError:
        pass  # the last window has it
    edges = [start for start, _ in noted]
    return [
        replace(
            window,
            tails=tuple(noted[bisect_right(edges, window.start) : bisect_left(edges, window.end)]),
        )
        for window in _adjoining(path, size, starts)
    ]


def _searched(path: str, size: int, split_size: int) -> list[tuple[int, bytes]] | None:
    """Where windows start and their heads; None for a file that has to be read."""
    with open(path, "rb") as file:
        head = file.read(pcap.FILE_HEADER_SIZE)
        if head[:4] not in pcap.MAGICS or len(head) < pcap.FILE_HEADER_SIZE:
            return None
        places = (find_record(file, head, at) for at in range(split_size, size, split_size))
        return [(place, head) for place in sorted({place for place in places if place is not None})]


def last_part(window: Window, size: int, skip: Skip = stay) -> Window:
    """The last `size` bytes of a window, or somewhat less, starting with a record.

    It is the whole window where that is not much more, where the file can't be cut, and where nothing
    tells a record behind a damaged place.

    Args:
        window: the window.
        size: bytes.
        skip: what passes over records that nobody asks for.

    Raises:
        OSError: the file can't be read.
    """
    place = window.end - size
    if place - window.start <= size // 4:
        return window
    for start, head in window.tails:
        if abs(start - place) <= size // 4:
            return replace(window, head=head, start=start)
    if not can_be_cut(window.path):
        return window
    near = _near(window, place)
    if near is not None:
        return near
    found = window
    try:
        for mark in marks(window, every(max(size // 4, 1)), skip):
            if mark.head is not None:
                found = replace(window, head=mark.head, start=mark.start)
            if mark.start >= place:
                break
    except CaptureError:
        pass  # who reads the window will be told
    return found


def _near(window: Window, place: int) -> Window | None:
    """What of a window of a pcap file follows a place, from the next record on, where one is certain."""
    with open(window.path, "rb") as file:
        head = file.read(pcap.FILE_HEADER_SIZE)
        if head[:4] not in pcap.MAGICS or len(head) < pcap.FILE_HEADER_SIZE:
            return None
        start = find_record(file, head, place)
    if start is None or not window.start < start < window.end:
        return None
    return replace(window, head=head, start=start)


class Index:
    """Where records of a file stand, for a file that grows: what was read once is not read again.

    Attributes:
        path: the file.
        end: the byte after its last complete record; for a file that can't be cut, its size once it
            can be read to its end, and 0 before.
        error: what ended reading, with the place in the file; None at a proper end; it is
            ``cut`` where more may come.
    """

    def __init__(self, path: str, step: int) -> None:
        """An index that keeps one mark every `step` bytes; nothing is read before `refresh`."""
        self.path, self._step = path, max(step, 1)
        self.end = 0
        self.error: CaptureError | None = None
        self._kept: list[Window] = []
        self._last = Window(path, b"", 0, 0)

    def refresh(self) -> None:
        """Read what has come.

        Raises:
            OSError: the file can't be read.
        """
        window = replace(self._last, end=os.path.getsize(self.path))
        if not can_be_cut(self.path):
            self._read_whole(window)
            return
        self.error = None
        try:
            for mark in marks(window, every(self._step)):
                self.end = mark.end
                if mark.head is None:
                    continue
                self._last = Window(self.path, mark.head, mark.start, mark.end)
                if not self._kept or mark.start >= self._kept[-1].start + self._step:
                    self._kept.append(self._last)
        except CaptureError as error:
            self.error = error

    def _read_whole(self, window: Window) -> None:
        if window.end == self.end:
            return
        self.error, self.end = None, window.end
        with window.open() as stream:
            try:
                for _ in located_records(stream):
                    pass
            except CaptureError as error:
                self.error, self.end = error, 0

    def window(self, start: int, end: int) -> Window:
        """The window from the first record at or after `start` to `end`.

        It starts at 0 for 0, and for a file that can't be cut; it is empty when there is no such record.

        Raises:
            MsmqError: no window can start there: the section has described too many interfaces.
        """
        if start <= 0 or not self._kept:
            return Window(self.path, b"", 0, end)
        near = self._kept[max(bisect_right(self._kept, start, key=lambda kept: kept.start) - 1, 0)]
        try:
            for mark in marks(replace(near, end=end)):
                if mark.start < start:
                    continue
                if mark.head is None:
                    raise MsmqError(f"{self.path}: a section describes too many interfaces to be cut")
                return Window(self.path, mark.head, mark.start, end)
        except CaptureError:
            pass  # behind a damaged place there is no record
        return Window(self.path, b"", end, end)
