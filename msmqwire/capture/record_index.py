"""Positions of the records in a capture file, as the readers themselves find them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from io import RawIOBase
from struct import Struct
from typing import BinaryIO, Final, NamedTuple, cast

from msmqwire.capture import pcap, pcapng
from msmqwire.capture.files import open_buffer
from msmqwire.capture.paths import open_file
from msmqwire.capture.record import Record
from msmqwire.capture.source import Buffer
from msmqwire.capture.stores import NO_OPTIONS, StorageOptions
from msmqwire.capture.window import Window, WindowStream
from msmqwire.errors import CaptureError

CHUNK_SIZE: Final = 1 << 20
"""Bytes of a pcap file in memory while its records are located; small enough to stay in a CPU cache."""
HEAD_MAX: Final = 1 << 20
"""Bytes of a head. If the interfaces of a section take more, no window can start in it."""

NextOffset = Callable[[int], int]
"""Maps the offset of a reported record to the next offset from which a record is to be reported."""

Skip = Callable[[pcap.Layout | pcapng.Blocks, bytes | bytearray, int, int, int], tuple[int, int]]
"""Skips records. Arguments: the layout of the file or its blocks, a chunk of the file, the offset of a record
in the chunk, the end of the chunk, and a target offset in the chunk. It stops at the first record that starts
at or after the target, that is incomplete, or that needs the full reader. Returns the offset of that record,
and that of the last one skipped, or -1."""


class RecordPosition(NamedTuple):
    """The position of a record in its file.

    Attributes:
        start: the offset of the record, in pcapng of its block.
        end: the offset after it.
        head: the head of a window that starts with it; None if that is too long.
    """

    start: int
    end: int
    head: bytes | None


def is_splittable(path: str, storage_options: StorageOptions = NO_OPTIONS) -> bool:
    """Whether a file is an uncompressed capture.

    Raises:
        OSError: the file can't be read.
    """
    with open_file(path, storage_options) as file:
        magic = file.read(4)
    return magic in pcap.MAGICS or magic == pcapng.MAGIC


def records_with_offsets(stream: WindowStream) -> Iterator[tuple[int, Record]]:
    """Yield the records of a window, each with its offset in the (uncompressed) file.

    Raises:
        CaptureError: as `open_records` does, with the offset in the file.
    """
    file_offset = stream.window.file_offset
    try:
        buffer, is_pcapng = open_buffer(cast(BinaryIO, stream), stream.name)
        if is_pcapng:
            blocks = pcapng.Blocks(buffer)
            while not buffer.ended():
                start = file_offset(buffer.start + buffer.at)
                record = blocks.read_block()
                if record is not None:
                    yield start, record
        else:
            layout = pcap.layout(buffer)
            start = file_offset(pcap.FILE_HEADER_SIZE)
            for record in pcap.records(buffer, layout):
                yield start, record
                start += layout.header_size + len(record.data)
    except CaptureError as error:
        raise stream.located(error) from None


def pass_over(error: CaptureError) -> None:
    """Pass over a record above the limit: the reader of the window reports it."""


def one_per_step(step: int) -> NextOffset:
    """Report only the first of the records that start in the same step of the file, of ``step`` bytes."""
    return lambda start: (start // step + 1) * step


def skip_none(
    layout: pcap.Layout | pcapng.Blocks, data: bytes | bytearray, at: int, stop: int, target: int
) -> tuple[int, int]:
    """A `Skip` that skips nothing: every record is read."""
    return at, -1


def record_positions(
    window: Window, next_offset: NextOffset | None = None, skip: Skip = skip_none
) -> Iterator[RecordPosition]:
    """Yield the positions of records in a window of a splittable file.

    Args:
        window: the window.
        next_offset: a choice of the records to report: the first, then always the first at or after the
            offset that this returns for the one reported before, and in any case the last of the window. None
            for all.
        skip: skips records that are not reported.

    Raises:
        CaptureError: as `open_records` does, with the offset in the file.
    """
    next_offset = next_offset or one_per_step(1)
    with window.open() as stream:
        try:
            buffer, is_pcapng = open_buffer(cast(BinaryIO, stream), stream.name)
            if is_pcapng:
                yield from _packet_blocks(window, buffer, next_offset, skip)
                return
            layout = pcap.layout(buffer)
        except CaptureError as error:
            raise stream.located(error) from None
    with window.open() as stream:
        head = stream.read(pcap.FILE_HEADER_SIZE) or b""
    at = yield from _pcap_records(window, head, layout, next_offset, skip)
    with replace(window, head=head, start=at).open() as stream:
        for _ in records_with_offsets(stream):  # yields nothing, but raises the error, if any
            break


def _pcap_records(
    window: Window, head: bytes, layout: pcap.Layout, next_offset: NextOffset, skip: Skip
) -> Generator[RecordPosition, None, int]:
    """Yield the positions of the records; return where they end. Only their sizes are read."""
    at, end = window.file_offset(pcap.FILE_HEADER_SIZE), window.end
    size_at, header_size = Struct(layout.order + "8xI").unpack_from, layout.header_size
    limit, declared = layout.limit, layout.declared
    last, reported, target = -1, -1, 0
    chunk = bytearray(CHUNK_SIZE)
    with window.open_file() as file:
        while at + header_size <= end:
            file.seek(at)
            base, count = at, min(file.readinto(chunk) or 0, end - at)
            stop = base + count - header_size
            if stop < base:
                break  # the file has become shorter
            while at <= stop:
                if at < target:
                    stopped, skipped = skip(layout, chunk, at - base, count, target - base)
                    at, last = base + stopped, last if skipped < 0 else base + skipped
                    if at > stop:
                        break
                (size,) = size_at(chunk, at - base)
                following = at + header_size + size
                if size > declared or following > end:
                    end = at
                    break
                if size > limit:
                    at = following
                    continue
                if at >= target:
                    yield RecordPosition(at, following, head)
                    reported, target = at, next_offset(at)
                last, at = at, following
    if last > reported:
        yield RecordPosition(last, at, head)
    return at


def _packet_blocks(
    window: Window, buffer: Buffer, next_offset: NextOffset, skip: Skip
) -> Iterator[RecordPosition]:
    head = _Head(window.head)
    blocks, target = pcapng.Blocks(buffer, on_damage=pass_over), 0
    last: tuple[int, int, _Head, int] | None = None  # start, end, and how many bytes of which head
    damage: CaptureError | None = None
    with window.open_file() as file:
        try:
            while not buffer.ended():
                base = window.file_offset(buffer.start)
                at, skipped = skip(blocks, buffer.data, buffer.at, len(buffer.data), target - base)
                if skipped >= 0:
                    last, buffer.at = (base + skipped, base + at, head, head.size), at
                    continue
                buffer.fill(4)
                is_section = buffer.data[buffer.at : buffer.at + 4] == pcapng.MAGIC
                start, interfaces = window.file_offset(buffer.start + buffer.at), len(blocks.interfaces)
                record = blocks.read_block()
                end = window.file_offset(buffer.start + buffer.at)
                if record is not None:
                    last = start, end, head, head.size
                    if start >= target:
                        yield RecordPosition(start, end, head.first(head.size))
                        last, target = None, next_offset(start)
                elif start >= window.start and (is_section or len(blocks.interfaces) > interfaces):
                    head = _Head() if is_section else head
                    head.append(file, start, end)
        except CaptureError as error:
            damage = error
    if last is not None:
        start, end, head, size = last
        yield RecordPosition(start, end, head.first(size))
    if damage is not None:
        raise damage


class _Head:
    """The head of a section, which grows with each interface and is copied only if a position is reported.

    Attributes:
        size: the number of its bytes; more than `HEAD_MAX` if it is too long.
    """

    def __init__(self, data: bytes = b"") -> None:
        self._data, self._copy = bytearray(data), data
        self.size = len(data)

    def append(self, file: RawIOBase, start: int, end: int) -> None:
        """Append a block of the file, unless the head is or becomes too long."""
        self.size += end - start
        if self.size <= HEAD_MAX:
            file.seek(start)
            self._data += file.read(end - start) or b""

    def first(self, size: int) -> bytes | None:
        """Return the first bytes, None for too many; the same object while nothing is appended."""
        if size > HEAD_MAX:
            return None
        if len(self._copy) != size:
            self._copy = bytes(self._data[:size])
        return self._copy
