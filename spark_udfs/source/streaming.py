"""Structured Streaming over a folder of captures that grow and rotate.

The only state between two batches is the offset up to which each file has been read, always at the end of a
complete record. The state of connections that continue from one batch to the next is restored by reading some
bytes before the new ones, as for the splits of a large file.

Files are ordered by name, and the writer is expected to append to the last of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from msmqwire.capture.paths import exists, file_size
from msmqwire.capture.splits import Index, Window, is_splittable
from msmqwire.capture.stores import StorageOptions
from msmqwire.errors import MsmqError
from msmqwire.names.printable import counted
from msmqwire.tables.parts import plan_parts
from spark_udfs.source.options import Options
from spark_udfs.source.packet_reader import PacketReader
from spark_udfs.source.segment_reader import SegmentReader

TRACKED_MAX: Final = 1000
"""Files in an offset. Beyond that, the oldest are forgotten once they are complete."""

Offset = dict[str, Any]
"""``{"files": {path: {"end": bytes read, "complete": whether the writer left it}}, "before": path}``;
files whose names do not come after ``before`` are forgotten."""


class CaptureGone(MsmqError):
    """A capture file has disappeared, or become shorter, before it was read to its end."""


@dataclass
class _TrackedFile:
    """The driver's memory of a file, so that it is not read twice. It can be lost."""

    index: Index
    storage_options: StorageOptions
    size: int = -1

    def refresh(self) -> bool:
        """Read the appended bytes; return whether the size is unchanged since the last call."""
        size = file_size(self.index.path, self.storage_options)
        unchanged, self.size = size == self.size, size
        if not unchanged:
            self.index.refresh()
        return unchanged


class MsmqStreamReader(DataSourceStreamReader):
    """Reads packets or segments of growing captures, batch by batch."""

    def __init__(self, options: Options, reader: PacketReader | SegmentReader) -> None:
        self._options = options
        self._reader = reader
        self._files: dict[str, _TrackedFile] = {}
        self._last = self.initialOffset()

    def initialOffset(self) -> Offset:
        return {"files": {}, "before": ""}

    def latestOffset(self, start: Offset | None = None, limit: object = None) -> Offset:
        """Return how far the files can be read now.

        Args:
            start: the offsets up to which they have been read; Spark 4.0 and 4.1 do not pass it.
            limit: not used: everything available is read.

        Raises:
            CaptureGone: a file that is not complete has disappeared, or one has become shorter.
        """
        start = self._last if start is None else start
        before, entries = start["before"], start["files"]
        paths = [path for path in sorted(self._options.files(may_miss=True)) if path > before]
        for path, entry in entries.items():
            if path not in paths and not entry["complete"]:
                raise CaptureGone(
                    f"{path} has disappeared; {counted(entry['end'], 'byte')} of it had been read"
                )
        files = {
            path: self._entry(path, entries.get(path, {"end": 0, "complete": False}), path == paths[-1])
            for path in paths
        }
        for path in paths[: max(0, len(paths) - TRACKED_MAX)]:
            if not files[path]["complete"]:
                break
            before = path
            del files[path], self._files[path]
        self._last = {"files": files, "before": before}
        return self._last

    def _entry(self, path: str, entry: dict[str, Any], is_newest: bool) -> dict[str, Any]:
        file = self._file(path)
        unchanged = file.refresh()
        if file.size < entry["end"]:
            raise CaptureGone(
                f"{path} has become shorter: {counted(entry['end'], 'byte')} of it had been read"
            )
        if not is_splittable(path, self._options.storage_options) and entry["end"]:
            return {"end": entry["end"], "complete": not is_newest}  # a compressed file is read once
        error = file.index.error
        # The remaining bytes of a truncated record are awaited, unless the writer has moved on to another
        # file.
        is_damaged = error is not None and (not error.cut or (unchanged and not is_newest))
        end = file.size if is_damaged or error is None else max(file.index.end, entry["end"])
        return {"end": end, "complete": not is_newest and end == file.size}

    def _file(self, path: str) -> _TrackedFile:
        file = self._files.get(path)
        if file is None:
            step = max(1, min(self._options.split_size or self._options.overlap, self._options.overlap) // 4)
            options = self._options.storage_options
            file = self._files[path] = _TrackedFile(Index(path, step, options), options)
        return file

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Return the partitions of a batch, the same ones whenever it is repeated.

        Raises:
            CaptureGone: a file of the batch has disappeared.
        """
        self._last = end
        windows, already_read = [], []
        for path in sorted(end["files"]):
            first = start["files"].get(path, {"end": 0})["end"]
            stop = end["files"][path]["end"]
            if not exists(path, self._options.storage_options):
                if stop > first:
                    raise CaptureGone(f"{path} has disappeared; bytes {first} to {stop} are to be read")
                continue
            read = Window(path, b"", 0, first, storage_options=self._options.storage_options)
            windows.append([read] * (first > 0) + self._new_windows(path, first, stop))
            already_read.append(int(first > 0))
        options = self._options
        parts = plan_parts(windows, options.split_size, options.overlap, already_read=already_read)
        return [InputPartition(part) for part in parts]

    def _new_windows(self, path: str, first: int, stop: int) -> list[Window]:
        """The windows of the bytes of a file that are new in a batch."""
        if first == stop:
            return []
        file = self._file(path)
        if file.index.end < stop:
            file.refresh()
        size, windows = self._options.split_size, list[Window]()
        window = file.index.window(first, stop)
        while size and window.end - window.start > size:
            following = file.index.window(window.start + size, stop)
            if not window.start < following.start < stop:
                break
            windows.append(replace(window, end=following.start))
            window = following
        return [*windows, window]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is not None:
            yield from self._reader.read(partition.value)

    def commit(self, end: Offset) -> None:
        """Forget the files that are complete."""
        for path, entry in end["files"].items():
            if entry["complete"]:
                self._files.pop(path, None)
