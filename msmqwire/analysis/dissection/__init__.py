"""Captures to packets: every MSMQ packet in a capture, named, decoded and linted."""

from __future__ import annotations

import os
import warnings
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import RawIOBase
from numbers import Integral
from typing import Any, BinaryIO

from msmqwire.analysis.dissection import scan
from msmqwire.analysis.dissection.item import Item, format_time
from msmqwire.analysis.dissection.message_security import NOTHING_GIVEN, Examiner, FileContent
from msmqwire.analysis.dissection.msmq_connection import MSMQ_PORT
from msmqwire.analysis.dissection.tracker import Tracker
from msmqwire.analysis.protocols.readings import PROPOSED, NcpReadings
from msmqwire.capture import IpDecoder, open_records
from msmqwire.capture.attempts import Attempts
from msmqwire.capture.folders import PassedOver, captures_of
from msmqwire.capture.not_read import NotRead, listed, warn_of
from msmqwire.capture.paths import open_file
from msmqwire.capture.record import RECORD_SIZE_LIMIT, RECORD_SIZE_MAX
from msmqwire.capture.stores import NO_OPTIONS, StorageOptions
from msmqwire.capture.tcp import START_SEGMENTS
from msmqwire.crypto.readings import DEFAULT, Readings
from msmqwire.errors import CaptureError, CaptureWarning, InvalidArgument
from msmqwire.names.grammar import PORT_MAX

__all__ = ["MSMQ_PORT", "Dissection", "Item", "Tracker", "dissect", "format_time"]

Source = str | os.PathLike[str] | BinaryIO


def dissect(
    sources: Source | Iterable[Source],
    *,
    ports: Collection[int] = (),
    lint: bool = True,
    flush: bool = True,
    warm_up: int = 0,
    successor_ns: int = 0,
    progress: Callable[[int], None] | None = None,
    record_size_max: int = RECORD_SIZE_MAX,
    storage_options: StorageOptions = NO_OPTIONS,
    keys: FileContent | Iterable[FileContent] = (),
    certificates: FileContent | Iterable[FileContent] = (),
    readings: Readings = DEFAULT,
    ncp_readings: NcpReadings = PROPOSED,
) -> Dissection:
    """Dissect captures: iterate over their MSMQ packets, in the order in which they were completed.

    Args:
        sources: one or several capture files, folders, glob patterns, URLs of them in stores (``s3://``,
            ``gs://``, ``abfss://``, ``hdfs://`` and those of fsspec) or binary streams; several are read in
            order, as parts of one capture.
        ports: TCP ports besides 1801 and UDP ports besides 3527 whose traffic is MSMQ, its RPC too, or NCP
            besides port 524. On other ports packets are recognised by their signature, SRMP by its requests,
            remote read by its bind, NCP over TCP by its units.
        lint: whether to lint the packets.
        flush: whether the capture ends with the last source, so that unfinished packets and connections
            are reported.
        warm_up: the number of sources, from the first, that are only read to track connections; their items
            are not reported.
        successor_ns: without `flush`, the time of the first frame that the reader of the next part has.
        progress: called with the number of bytes of the files read since the last call.
        record_size_max: bytes of the largest frame that is read. Larger ones are damage: each is listed in
            `errors`, and skipped if the next frame can be found after it.
        storage_options: arguments of the file systems of URLs, as credentials and endpoints, by name; see
            `msmqwire.capture.stores`.
        keys: private keys of receiving queue managers, to decrypt bodies: paths, or contents of files, in
            PEM or DER.
        certificates: the certificates of senders, to verify signatures; likewise.
        readings: readings of the specification for signatures and session keys.
        ncp_readings: byte orders of the NCP fields that sources dispute.

    A file in a folder that is not a capture is passed over, and named by a `CaptureWarning`.
    Frames that were not read though packets may be in them, as those of unknown link types and in tunnels,
    are counted in `Dissection.frames_not_read`, and reported by a `CaptureWarning` after the last item.

    Raises:
        FileNotFoundError: a path or pattern names no file.
        UnsupportedStore: the store of a URL can't be used.
        OSError: it can't be reached, or, while the items are read, a file of it can't be read.
        InvalidArgument: no such port, or no frame can be so small.
        InvalidValue: something is not a private key, or no certificate.
    """
    check_ports(ports)
    if record_size_max < 1:
        raise InvalidArgument(f"a frame has at least 1 byte, not {record_size_max}", path="record_size_max")
    dissection = Dissection(
        sources,
        ports=ports,
        lint=lint,
        flush=flush,
        warm_up=warm_up,
        successor_ns=successor_ns,
        progress=progress,
        record_size_max=record_size_max,
        storage_options=storage_options,
        examiner=Examiner.from_files(keys, certificates, readings),
        ncp_readings=ncp_readings,
    )
    dissection.warns = True
    for passed in dissection.passed_over:
        warnings.warn(CaptureWarning(str(passed)), stacklevel=2)
    return dissection


def check_ports(ports: Collection[int]) -> None:
    """Raise InvalidArgument for a number that is not a port of TCP or UDP."""
    for port in ports:
        if not isinstance(port, Integral) or not 0 < port <= PORT_MAX:
            raise InvalidArgument(f"a port is 1 to {PORT_MAX:,}, not {port!r:.80}", path="ports")


class Dissection(Iterator[Item]):
    """Iterator over the items of captures, one at a time, in bounded memory.

    No content of a capture stops it: a packet that can't be parsed is an item with its error, and a file
    that is cut off or damaged is listed in `errors` once its items were returned.

    Attributes:
        sources: the files and streams.
        passed_over: files in folders among the sources that are not captures.
        errors: the files that could not be read to their end.
        records: the number of frames that were read or passed over.
        handed: the number of frames that the columnar decoder passed to the generic reader; 0 without it.
        decoder: decodes frames to datagrams.
        tracker: turns datagrams into items.
        flushes: whether the capture ends with the last source.
        warm_up: the number of sources that are only read to track connections.
        successor_ns: the time of the first frame that the reader of the next part has.
        record_size_max: bytes of the largest frame that is read.
        storage_options: arguments of the file systems of URLs.
        examiner: has the keys and certificates given.
        warns: whether a `CaptureWarning` names, after the last item, the frames not read.
        attempts: finds failed attempts to connect; None unless `follow_attempts` was called.
        choice: the conditions that items are to meet, and whether one does; None if all are wanted.
        left_out: the items that did not meet them.
        numbers_across: whether items have frames that are numbered on from file to file, and as `file` the
            one that is being read.
    """

    def __init__(
        self,
        sources: Source | Iterable[Source],
        *,
        ports: Collection[int] = (),
        lint: bool = True,
        flush: bool = True,
        warm_up: int = 0,
        successor_ns: int = 0,
        progress: Callable[[int], None] | None = None,
        record_size_max: int = RECORD_SIZE_MAX,
        storage_options: StorageOptions = NO_OPTIONS,
        examiner: Examiner = NOTHING_GIVEN,
        ncp_readings: NcpReadings = PROPOSED,
    ) -> None:
        single = isinstance(sources, (str, os.PathLike)) or _is_stream(sources)
        source_list: Any = [sources] if single else sources
        self.sources: list[Any] = []
        self.passed_over: list[PassedOver] = []
        for source in source_list:
            if _is_stream(source):
                self.sources.append(source)
            else:
                self.sources += captures_of(source, self.passed_over.append, storage_options)
        self.errors: list[CaptureError] = []
        self.records = 0
        self.handed = 0
        self._progress = progress
        self._only_findings = False
        self.choice: tuple[Sequence[Any], Callable[[Item], bool]] | None = None
        self.left_out = 0
        self.flushes = flush
        self.warm_up = warm_up
        self.successor_ns = successor_ns
        self.record_size_max = min(record_size_max, RECORD_SIZE_LIMIT)
        self.storage_options = storage_options
        self.numbers_across = self.warns = False
        self.decoder = IpDecoder()
        self.attempts: Attempts | None = None
        self.examiner = examiner
        self.tracker = Tracker(
            ports=ports, lint=lint, locate=self.locate, examiner=examiner, readings=ncp_readings
        )
        # Frames are numbered across all files: these are the numbers before the first frame of each.
        self.files: list[str] = []
        self._before: list[int] = []
        self._items: Iterator[Item] = self._all_items()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state so far, for a pickle: without sources, and the errors met in them."""
        left = ("_items", "_progress", "storage_options", "sources", "passed_over", "errors", "examiner")
        return {name: value for name, value in vars(self).items() if name not in left}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        vars(self).update(saved)
        self.sources, self.passed_over, self.errors, self.examiner = [], [], [], NOTHING_GIVEN
        self.decoder.count_anew()
        self._progress, self.storage_options = None, NO_OPTIONS
        self._items = self._all_items()

    def __next__(self) -> Item:
        return next(self._items)

    @property
    def frames_not_read(self) -> tuple[NotRead, ...]:
        """The frames that were not read so far though packets of interest may be in them, by reason."""
        return listed(self.decoder.frames_not_read())

    @property
    def is_plain(self) -> bool:
        """Whether it has whole captures: no state of others before it or after it, no keys for lint."""
        of_parts = self.warm_up or not self.flushes
        return not of_parts and not (self.tracker.lints and self.examiner.was_given_any)

    def only_findings(self) -> None:
        """Leave out the items without findings; before anything is read."""
        self._only_findings = True

    def choose(self, conditions: Sequence[Any], accepts: Callable[[Item], bool]) -> None:
        """Leave out the items that don't meet conditions, and count these; before anything is read.

        Args:
            conditions: on columns, as `msmqwire.read_capture` takes them.
            accepts: whether an item meets them.
        """
        self.choice = conditions, accepts

    def follow_attempts(self) -> None:
        """Find the attempts to connect to ports of MSMQ that failed; before anything is read.

        `Attempts.failed` returns them once the captures were read, by the items or by the columns.
        """
        self.attempts = Attempts(self.tracker.tcp_ports)
        self.decoder.on_unreachable = self.attempts.unreachable

    def counters(self) -> dict[str, int]:
        """Return the counts of bytes ignored, repeated or lost, by reason."""
        return {**self.decoder.ignored, **self.tracker.reassembler.counters.as_dict()}

    # -- records to events ---------------------------------------------------------------------

    def parts(self) -> Iterator[Any]:
        """Yield the items, in place of iterating over them; where the compiled scan reads them, rows of
        sessions together as `msmqwire.tables.session_rows.SessionRows`, which are valid up to the next part.
        """
        return self._all_items(in_groups=True)

    def _all_items(self, *, in_groups: bool = False) -> Iterator[Any]:
        reader = scan.reader_of(self, only_findings=self._only_findings)
        if reader is not None:
            yield from reader.parts() if in_groups else reader.items()
            if self.warns:
                warn_of(self.frames_not_read, stacklevel=4)
            return
        accepts = None if self.choice is None else self.choice[1]
        for item in self._generic_items():
            if accepts is not None and not accepts(item):
                self.left_out += 1
                continue
            if item.findings or not self._only_findings:
                yield item

    def _generic_items(self) -> Iterator[Item]:
        for number, source in enumerate(self.sources):
            if number == self.warm_up > 0:
                for _ in self.tracker.pause():
                    pass
                self.errors.clear()
                self.decoder.count_anew()
                if self.attempts is not None:
                    self.attempts.count_anew()
            self.begin_source(number)
            for item in self._source_items(source):
                if number >= self.warm_up:
                    yield item
        yield from self.tracker.flush() if self.flushes else self.tracker.pause(self.successor_ns)
        if self.flushes:
            self.decoder.end()
        if self.warns:
            warn_of(self.frames_not_read, stacklevel=5)

    def begin_source(self, number: int) -> int:
        """Prepare to read a source; return after how many segments a direction starts.

        Long before the first item, starts need not be certain.
        """
        long_before = number < self.warm_up - 1
        self.tracker.reassembler.start_segments = 1 if long_before else START_SEGMENTS
        return self.tracker.reassembler.start_segments

    def _source_items(self, source: Any) -> Iterator[Item]:
        attempts = self.attempts
        with self.open_source(source) as stream:
            before = self.records

            def count(file: str, number: int) -> None:
                if self.records == before:
                    self.begin_file(file)
                self.records = before + number

            def pass_over(error: CaptureError) -> None:
                self.errors.append(error)
                count(error.file, self.records - before + 1)

            records = open_records(stream, record_size_max=self.record_size_max, on_damage=pass_over)
            for record in records:
                count(record.file, record.number)
                if before:
                    record = record._replace(number=before + record.number)  # noqa: PLW2901
                for datagram in self.decoder.feed(record):
                    if attempts is not None:
                        attempts.feed(datagram)
                    yield from self.tracker.feed(datagram)

    @contextmanager
    def open_source(self, source: Any) -> Iterator[Any]:
        """Open a source as a stream; a CaptureError in the block is added to `errors`."""
        stream = source if _is_stream(source) else self._opened(source)
        try:
            yield stream
        except CaptureError as exc:
            self.errors.append(exc)
        finally:
            if stream is not source:
                stream.close()

    def _opened(self, path: str | os.PathLike[str]) -> _ProgressFile:
        file = open_file(path, self.storage_options)
        return _ProgressFile(file, os.fspath(path), self._progress)

    def begin_file(self, file: str) -> int:
        """Register the file of the next frames; return its index in `files`."""
        self.files.append(file)
        self._before.append(self.records)
        return len(self.files) - 1

    def forget_file(self) -> None:
        """Take the last file out of `files`: it has no frames."""
        del self.files[-1], self._before[-1]

    def file_of(self, frame: int) -> tuple[int, int]:
        """Return the index of the file of a frame, and how many frames were before that."""
        index = bisect_left(self._before, frame) - 1
        return index, self._before[index]

    def locate(self, frames: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
        """Return the file of the last of some frames, and their numbers in their files."""
        if len(self.files) == 1 or self.numbers_across:
            return self.files[-1], frames
        indices = [bisect_left(self._before, frame) - 1 for frame in frames]
        numbers = tuple(frame - self._before[i] for frame, i in zip(frames, indices, strict=True))
        return self.files[indices[-1]], numbers


def _is_stream(source: Any) -> bool:
    return hasattr(source, "read")


class _ProgressFile:
    """A file that reports how many bytes were read."""

    def __init__(self, stream: RawIOBase, name: str, progress: Callable[[int], None] | None) -> None:
        self._stream = stream
        self._progress = progress
        self.name = name

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size) or b""
        self._report(len(data))
        return data

    def readinto(self, view: memoryview) -> int:
        count = self._stream.readinto(view) or 0
        self._report(count)
        return count

    def _report(self, count: int) -> None:
        if self._progress is not None:
            self._progress(count)

    def close(self) -> None:
        self._stream.close()
