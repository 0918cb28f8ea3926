"""Captures to packets: every MSMQ packet in a capture, named, decoded and judged."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from msmqwire.capture import IpDecoder, expand, open_records
from msmqwire.capture.tcp import START_SEGMENTS
from msmqwire.dissection.item import Item, format_time
from msmqwire.dissection.tracker import MSMQ_PORT, Tracker
from msmqwire.errors import CaptureError

__all__ = ["MSMQ_PORT", "Dissection", "Item", "Tracker", "dissect", "format_time"]

Source = str | os.PathLike[str] | BinaryIO


def dissect(
    sources: Source | Iterable[Source],
    *,
    ports: Collection[int] = (),
    lint: bool = True,
    flush: bool = True,
    warm_up: int = 0,
    joined_ns: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Dissection:
    """All MSMQ packets of captures, in the order in which they were completed.

    Args:
        sources: capture files, glob patterns or binary streams, one or several; several are read
            one after the other as parts of one capture.
        ports: TCP ports besides 1801 and UDP ports besides 3527 whose traffic is MSMQ. Packets on
            other ports are recognised by their signature.
        lint: whether to judge the packets.
        flush: whether the capture ends with the last source, so that what its connections leave
            unfinished is told.
        warm_up: the first so many sources only make connections known: nothing that comes out while
            they are read is told.
        joined_ns: without `flush`, the time of the first frame that the reader of what follows knows.
        progress: called with the number of bytes of the files read since the last call.

    Raises:
        FileNotFoundError: a path or pattern names no file.
    """
    return Dissection(
        sources, ports=ports, lint=lint, flush=flush, warm_up=warm_up, joined_ns=joined_ns, progress=progress
    )


class Dissection(Iterator[Item]):
    """The items of captures, one at a time, in bounded memory.

    Nothing in a capture stops it: a packet that can't be read is an item with its error, and a file
    that is cut off or damaged has its place in `errors` once its items were handed out.

    Attributes:
        sources: the files and streams.
        errors: the files that could not be read to their end.
        records: how many frames were read.
        handed: how many of them the columnar decoder handed to the generic reader; 0 without it.
        decoder: from frames to datagrams.
        tracker: from datagrams to items.
        flushes: whether the capture ends with the last source.
        warm_up: how many sources only make connections known.
        joined_ns: when the reader of what follows joins in.
    """

    def __init__(
        self,
        sources: Source | Iterable[Source],
        *,
        ports: Collection[int] = (),
        lint: bool = True,
        flush: bool = True,
        warm_up: int = 0,
        joined_ns: int = 0,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        single = isinstance(sources, (str, os.PathLike)) or _is_stream(sources)
        listed: Any = [sources] if single else sources
        self.sources: list[Any] = []
        for source in listed:
            self.sources += [source] if _is_stream(source) else expand([source])
        self.errors: list[CaptureError] = []
        self.records = 0
        self.handed = 0
        self._progress = progress
        self.flushes = flush
        self.warm_up = warm_up
        self.joined_ns = joined_ns
        self.decoder = IpDecoder()
        self.tracker = Tracker(ports=ports, lint=lint, place=self._place)
        # Frames are numbered through all files while they are read: these are the first numbers.
        self.files: list[str] = []
        self._before: list[int] = []
        self._items = self._all()

    def __next__(self) -> Item:
        return next(self._items)

    def counters(self) -> dict[str, int]:
        """What did not come out as it came in, by reason: frames passed over, bytes in conflict."""
        return {**self.decoder.ignored, **self.tracker.reassembler.counters.as_dict()}

    # -- records to events ---------------------------------------------------------------------

    def _all(self) -> Iterator[Item]:
        for number, source in enumerate(self.sources):
            if number == self.warm_up > 0:
                for _ in self.tracker.pause():
                    pass
                self.errors.clear()
            self.approach(number)
            for item in self._one(source):
                if number >= self.warm_up:
                    yield item
        yield from self.tracker.flush() if self.flushes else self.tracker.pause(self.joined_ns)

    def approach(self, number: int) -> None:
        """The source of this number is read next: long before the first row, starts need not be certain."""
        long_before = number < self.warm_up - 1
        self.tracker.reassembler.start_segments = 1 if long_before else START_SEGMENTS

    def _one(self, source: Any) -> Iterator[Item]:
        with self.reading(source) as stream:
            before = self.records
            for record in open_records(stream):
                if self.records == before:
                    self.begins(record.file)
                self.records += 1
                if before:
                    record = record._replace(number=before + record.number)  # noqa: PLW2901
                for datagram in self.decoder.feed(record):
                    yield from self.tracker.feed(datagram)

    @contextmanager
    def reading(self, source: Any) -> Iterator[Any]:
        """A source as a stream; what is wrong with it is noted in `errors`."""
        stream = source if _is_stream(source) else _File(source, self._progress)
        try:
            yield stream
        except CaptureError as exc:
            self.errors.append(exc)
        finally:
            if stream is not source:
                stream.close()

    def begins(self, file: str) -> int:
        """The next frames are of this file; its place among the files."""
        self.files.append(file)
        self._before.append(self.records)
        return len(self.files) - 1

    def _place(self, frames: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
        """The file of the last of some frames, and their numbers in their files."""
        if len(self.files) == 1:
            return self.files[0], frames
        places = [bisect_left(self._before, frame) - 1 for frame in frames]
        numbers = tuple(f - self._before[place] for f, place in zip(frames, places, strict=True))
        return self.files[places[-1]], numbers


def _is_stream(source: Any) -> bool:
    return hasattr(source, "read")


class _File:
    """A file that tells how much of it was read."""

    def __init__(self, path: os.PathLike[str], progress: Callable[[int], None] | None) -> None:
        self._stream = open(path, "rb", buffering=0)  # noqa: SIM115 - closed by close()
        self._progress = progress
        self.name = os.fspath(path)

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size) or b""
        self._tell(len(data))
        return data

    def readinto(self, view: memoryview) -> int:
        count = self._stream.readinto(view) or 0
        self._tell(count)
        return count

    def _tell(self, count: int) -> None:
        if self._progress is not None:
            self._progress(count)

    def close(self) -> None:
        self._stream.close()
