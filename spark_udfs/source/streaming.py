"""Structured Streaming over a folder of captures that grow and rotate.

The state between two batches is the offset alone: how far each file has been read, always up to a
complete record. What connections carry over from one batch to the next is known again by reading some
bytes before the new ones, as for the splits of a large file.

Files count in the order of their names, and the writer is taken to append to the last of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from msmqwire.capture.splits import Index, Window, is_splittable
from msmqwire.errors import MsmqError
from spark_udfs.source.options import Options
from spark_udfs.source.packet_reader import PacketReader
from spark_udfs.source.parts import Part, parts
from spark_udfs.source.segment_reader import SegmentReader

TRACKED_MAX: Final = 1000
"""Files in an offset. Of more, the oldest are forgotten once they are complete."""

Offset = dict[str, Any]
"""``{"files": {path: {"end": bytes read, "complete": whether it was left behind}}, "before": path}``;
files whose names do not come after ``before`` are forgotten."""


class CaptureGone(MsmqError):
    """A capture file has disappeared, or become shorter, before it was read to its end."""


@dataclass
class _File:
    """What the driver remembers of a file, so that it need not read it twice. It can be lost."""

    index: Index
    size: int = -1

    def refresh(self) -> bool:
        """Read what has come; whether the file is as long as at the last look."""
        size = os.path.getsize(self.index.path)
        same, self.size = size == self.size, size
        if not same:
            self.index.refresh()
        return same


class MsmqStreamReader(DataSourceStreamReader):
    """Reads packets or segments of growing captures, batch by batch."""

    def __init__(self, options: Options, rows: PacketReader | SegmentReader) -> None:
        self._options = options
        self._rows = rows
        self._files: dict[str, _File] = {}
        self._last = self.initialOffset()

    def initialOffset(self) -> Offset:
        return {"files": {}, "before": ""}

    def latestOffset(self, start: Offset | None = None, limit: object = None) -> Offset:
        """How far the files can be read now.

        Args:
            start: how far they have been read; Spark 4.0 and 4.1 do not tell it.
            limit: not used: all that is there is read.

        Raises:
            CaptureGone: a file that is not complete has disappeared, or one has become shorter.
        """
        start = self._last if start is None else start
        before, known = start["before"], start["files"]
        paths = [path for path in sorted(self._options.files(may_miss=True)) if path > before]
        for path, entry in known.items():
            if path not in paths and not entry["complete"]:
                raise CaptureGone(f"{path} has disappeared; {entry['end']} bytes of it had been read")
        files = {
            path: self._entry(path, known.get(path, {"end": 0, "complete": False}), path == paths[-1])
            for path in paths
        }
        for path in paths[: max(0, len(paths) - TRACKED_MAX)]:
            if not files[path]["complete"]:
                break
            before = path
            del files[path], self._files[path]
        self._last = {"files": files, "before": before}
        return self._last

    def _entry(self, path: str, entry: dict[str, Any], newest: bool) -> dict[str, Any]:
        file = self._file(path)
        unchanged = file.refresh()
        if file.size < entry["end"]:
            raise CaptureGone(f"{path} has become shorter: {entry['end']} bytes of it had been read")
        if not is_splittable(path) and entry["end"]:
            return {"end": entry["end"], "complete": not newest}  # a packed file is read once
        error = file.index.error
        # A record that is cut off is awaited, unless the writer has gone on to another file.
        told = error is not None and (not error.cut or (unchanged and not newest))
        end = file.size if told or error is None else max(file.index.end, entry["end"])
        return {"end": end, "complete": not newest and end == file.size}

    def _file(self, path: str) -> _File:
        found = self._files.get(path)
        if found is None:
            step = max(1, min(self._options.split_size or self._options.overlap, self._options.overlap) // 4)
            found = self._files[path] = _File(Index(path, step))
        return found

    def partitions(self, start: Offset, end: Offset) -> Sequence[Part]:
        """The parts of a batch, the same ones whenever it is done again.

        Raises:
            CaptureGone: a file of the batch has disappeared.
        """
        self._last = end
        windows, old = [], []
        for path in sorted(end["files"]):
            read = start["files"].get(path, {"end": 0})["end"]
            until = end["files"][path]["end"]
            if not os.path.exists(path):
                if until > read:
                    raise CaptureGone(f"{path} has disappeared; bytes {read} to {until} are to be read")
                continue
            windows.append([Window(path, b"", 0, read)] * (read > 0) + self._new(path, read, until))
            old.append(int(read > 0))
        return parts(windows, self._options.split_size, self._options.overlap, old=old)

    def _new(self, path: str, read: int, until: int) -> list[Window]:
        """The windows of the bytes of a file that came in a batch."""
        if read == until:
            return []
        file = self._file(path)
        if file.index.end < until:
            file.refresh()
        size, found = self._options.split_size, list[Window]()
        window = file.index.window(read, until)
        while size and window.end - window.start > size:
            following = file.index.window(window.start + size, until)
            if not window.start < following.start < until:
                break
            found.append(Window(path, window.head, window.start, following.start))
            window = following
        return [*found, window]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, Part):
            yield from self._rows.read(partition)

    def commit(self, end: Offset) -> None:
        """Forget what is needed for complete files only."""
        for path, entry in end["files"].items():
            if entry["complete"]:
                self._files.pop(path, None)
