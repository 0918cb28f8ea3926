"""Capture files split into windows that can be read independently, by different processes.

The records of all windows of a file, in order, are the records of the file, and an error in the file is an
error of the last window. A record above the limit of `open_records`, which is passed over, is in one of them.

Reading the file once locates its records, and any damage. For pcap files too large for that,
``search=True`` finds a record near each offset at which a window is to start.

Compressed files cannot be read from the middle and are one window each.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace
from io import BufferedReader
from typing import BinaryIO, cast

from msmqwire.capture import pcap
from msmqwire.capture.files import open_records
from msmqwire.capture.paths import file_size
from msmqwire.capture.pcap_search import find_record
from msmqwire.capture.record_index import (
    RecordPosition,
    Skip,
    is_splittable,
    one_per_step,
    pass_over,
    record_positions,
    records_with_offsets,
    skip_none,
)
from msmqwire.capture.stores import NO_OPTIONS, StorageOptions, is_url, open_store
from msmqwire.capture.window import Window
from msmqwire.errors import CaptureError, MsmqError

__all__ = [
    "Index",
    "RecordPosition",
    "Window",
    "is_splittable",
    "last_part",
    "plan",
    "records_with_offsets",
]


def plan(
    path: str,
    split_size: int,
    *,
    search: bool = False,
    tails: Sequence[int] = (),
    skip: Skip = skip_none,
    storage_options: StorageOptions = NO_OPTIONS,
) -> list[Window]:
    """Plan the windows of a file, of about `split_size` bytes each; all but the first start with a record.

    Args:
        path: the file.
        split_size: bytes; 0 for one window.
        search: only search for the records of a pcap file near the splits, instead of reading it once.
            The windows are as exact if the file is intact or ends too early. Those after a damaged
            range may contain records again, which a reader of the whole file does not reach. A pcap file in
            a store is always searched: reading it once would fetch all of it.
        tails: sizes in bytes of last parts of the windows that will be needed: their offsets are stored in
            the windows if the file is read once.
        skip: skips records whose positions are not needed.
        storage_options: the options of the store of a URL.

    Raises:
        UnsupportedStore: the store of a URL can't be used.
        OSError: the file can't be read.
    """
    return divide(whole_file(path, storage_options), split_size, search=search, tails=tails, skip=skip)


def divide(
    whole: Window, split_size: int, *, search: bool = False, tails: Sequence[int] = (), skip: Skip = skip_none
) -> list[Window]:
    """Plan the windows of a file that is given by the window of all of it; see `plan`.

    Raises:
        OSError: the file can't be read.
    """
    if not split_size or whole.end <= split_size or not is_splittable(whole.path, whole.storage_options):
        return [whole]
    starts = _search(whole, split_size) if search or is_url(whole.path) else None
    return _scan(whole, split_size, tails, skip) if starts is None else _adjoining(whole, starts)


def whole_file(path: str, storage_options: StorageOptions = NO_OPTIONS) -> Window:
    """Return the window of a whole file, as it is now: of a URL, with the version of its content.

    Raises:
        UnsupportedStore: the store of a URL can't be used.
        OSError: the file can't be read.
    """
    if not is_url(path):
        return Window(path, b"", 0, file_size(path))
    with open_store(path, storage_options).open(path) as file:
        return Window(path, b"", 0, file.size, storage_options=storage_options, version=file.version)


def _adjoining(whole: Window, starts: Sequence[tuple[int, bytes]]) -> list[Window]:
    """Return adjoining windows from the start of a file and from these offsets, with these heads."""
    starts = [(0, b""), *starts]
    ends = [start for start, _ in starts[1:]] + [whole.end]
    return [
        replace(whole, head=head, start=start, end=end)
        for (start, head), end in zip(starts, ends, strict=True)
    ]


def _scan(whole: Window, split_size: int, tails: Sequence[int], skip: Skip) -> list[Window]:
    """Plan the windows of a file by reading it."""
    size = whole.end
    starts, tail_starts = list[tuple[int, bytes]](), list[tuple[int, bytes]]()
    splits = [*range(split_size, size, split_size), size]
    targets = sorted({split - tail for split in splits for tail in (0, *tails)})
    split = split_size

    def next_offset(start: int) -> int:
        number = bisect_right(targets, start)
        return targets[number] if number < len(targets) else size

    try:
        for start, _, head in record_positions(whole, next_offset, skip):
            if head is None:
                continue
            if start >= split:
                starts.append((start, head))
                split = (start // split_size + 1) * split_size
            elif tails:
                tail_starts.append((start, head))
    except CaptureError:
        pass  # a reader of the last window gets it
    offsets = [start for start, _ in tail_starts]
    return [
        replace(
            window,
            tails=tuple(tail_starts[bisect_right(offsets, window.start) : bisect_left(offsets, window.end)]),
        )
        for window in _adjoining(whole, starts)
    ]


def _search(whole: Window, split_size: int) -> list[tuple[int, bytes]] | None:
    """Return the offsets and heads of windows; None if the file has to be read."""
    with BufferedReader(whole.open_file()) as file:
        head = file.read(pcap.FILE_HEADER_SIZE)
        if head[:4] not in pcap.MAGICS or len(head) < pcap.FILE_HEADER_SIZE:
            return None
        offsets = (find_record(file, head, at) for at in range(split_size, whole.end, split_size))
        return [(start, head) for start in sorted({start for start in offsets if start is not None})]


def last_part(window: Window, size: int, skip: Skip = skip_none) -> Window:
    """Return the last `size` bytes of a window, or somewhat less, starting with a record.

    It is the whole window if that is not much larger, if the file can't be split, or if no record can be
    located after damage.

    Args:
        window: the window.
        size: bytes.
        skip: skips records whose positions are not needed.

    Raises:
        OSError: the file can't be read.
    """
    target = window.end - size
    if target - window.start <= size // 4:
        return window
    for start, head in window.tails:
        if abs(start - target) <= size // 4:
            return replace(window, head=head, start=start)
    if not is_splittable(window.path, window.storage_options):
        return window
    part = _search_part(window, target)
    if part is not None:
        return part
    part = window
    try:
        for position in record_positions(window, one_per_step(max(size // 4, 1)), skip):
            if position.head is not None:
                part = replace(window, head=position.head, start=position.start)
            if position.start >= target:
                break
    except CaptureError:
        pass  # a reader of the window gets it
    return part


def _search_part(window: Window, target: int) -> Window | None:
    """Return the part of a pcap window from the first record after an offset, if one is certain."""
    with BufferedReader(window.open_file()) as file:
        head = file.read(pcap.FILE_HEADER_SIZE)
        if head[:4] not in pcap.MAGICS or len(head) < pcap.FILE_HEADER_SIZE:
            return None
        start = find_record(file, head, target)
    if start is None or not window.start < start < window.end:
        return None
    return replace(window, head=head, start=start)


class Index:
    """Index of the records of a growing file: bytes that were read are not read again.

    Attributes:
        path: the file.
        end: the offset after its last complete record; for a file that can't be split, its size once it can
            be read to its end, and 0 before.
        error: the error that ended reading, with the offset in the file; None at a proper end; ``cut`` if
            more bytes may follow.
    """

    def __init__(
        self, path: str, step: int, storage_options: StorageOptions = NO_OPTIONS, skip: Skip = skip_none
    ) -> None:
        """Create an index with an entry every `step` bytes; nothing is read before `refresh`.

        `skip` skips records between the entries.
        """
        self.path, self._step, self._options, self._skip = path, max(step, 1), storage_options, skip
        self.end = 0
        self.error: CaptureError | None = None
        self._entries: list[Window] = []
        self._last = self._window(b"", 0, 0)

    def _window(self, head: bytes, start: int, end: int) -> Window:
        """A window of any version: the file of a store grows by being replaced."""
        return Window(self.path, head, start, end, storage_options=self._options)

    def refresh(self, end: int | None = None) -> None:
        """Read the appended bytes, up to an offset or to the end of the file.

        Raises:
            OSError: the file can't be read.
        """
        window = replace(self._last, end=file_size(self.path, self._options) if end is None else end)
        if not is_splittable(self.path, self._options):
            self._read_whole(window)
            return
        self.error = None
        try:
            for position in record_positions(window, one_per_step(self._step), self._skip):
                self.end = position.end
                if position.head is None:
                    continue
                self._last = self._window(position.head, position.start, position.end)
                if not self._entries or position.start >= self._entries[-1].start + self._step:
                    self._entries.append(self._last)
        except CaptureError as error:
            self.error = error

    def _read_whole(self, window: Window) -> None:
        if window.end == self.end:
            return
        self.error, self.end = None, window.end
        with window.open() as stream:
            try:
                for _ in open_records(cast(BinaryIO, stream), on_damage=pass_over):
                    pass
            except CaptureError as error:
                self.error, self.end = error, 0

    def window(self, start: int, end: int) -> Window:
        """Return the window from the first record at or after `start` to `end`.

        It starts at 0 for 0, and for a file that can't be split; it is empty if no such record exists.

        Raises:
            MsmqError: no window can start there: the section has described too many interfaces.
        """
        if start <= 0 or not self._entries:
            return self._window(b"", 0, end)
        entry = self._entries[max(bisect_right(self._entries, start, key=lambda entry: entry.start) - 1, 0)]
        try:
            for position in record_positions(replace(entry, end=end), lambda _: start):
                if position.start < start:
                    continue
                if position.head is None:
                    raise MsmqError(f"{self.path}: a section describes too many interfaces to be cut")
                return self._window(position.head, position.start, end)
        except CaptureError:
            pass  # no records are located after damage
        return self._window(b"", end, end)
