"""Where the records of a capture file stand, told by the readers themselves."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from io import FileIO
from struct import Struct
from typing import BinaryIO, Final, NamedTuple, cast

from msmqwire.capture import pcap, pcapng
from msmqwire.capture.files import open_buffer
from msmqwire.capture.record import Record
from msmqwire.capture.source import Buffer
from msmqwire.capture.window import Window, WindowStream
from msmqwire.errors import CaptureError

CHUNK_SIZE: Final = 1 << 20
"""Bytes of a pcap file that are held while its records are counted off; small enough to stay in a cache."""
HEAD_MAX: Final = 1 << 20
"""Bytes of a head. Where a section has described more, no window can start."""


After = Callable[[int], int]
"""The next place of interest in a file behind a record that was told, by the byte at which that starts."""

Skip = Callable[[pcap.Layout | pcapng.Blocks, bytes | bytearray, int, int, int], tuple[int, int]]
"""Passes over records. Given are what is known of the file, bytes of it, where a record starts in them,
where they end, and a place in them. It stops at the first record that starts at or behind the place, that is
not whole, or that is not a plain one; it tells where that starts, and the last one passed over, or -1."""


class Mark(NamedTuple):
    """The place of a record.

    Attributes:
        start: the byte of the file at which it starts, in pcapng its block.
        end: the byte after it.
        head: what a window that starts with it needs for a head; None where that is too long.
    """

    start: int
    end: int
    head: bytes | None


def can_be_cut(path: str) -> bool:
    """Whether a file is a plain capture: not compressed, and nothing else.

    Raises:
        OSError: the file can't be read.
    """
    with open(path, "rb") as file:
        magic = file.read(4)
    return magic in pcap.MAGICS or magic == pcapng.MAGIC


def located_records(stream: WindowStream) -> Iterator[tuple[int, Record]]:
    """The records of a window, each with the byte of the (unpacked) file at which it starts.

    Raises:
        CaptureError: as `open_records` does, with the place in the file.
    """
    place = stream.window.place
    try:
        buffer, is_pcapng = open_buffer(cast(BinaryIO, stream), stream.name)
        if is_pcapng:
            blocks = pcapng.Blocks(buffer)
            while not buffer.ended():
                start = place(buffer.start + buffer.at)
                block = blocks.block()
                if block is not None:
                    yield start, block
        else:
            form = pcap.layout(buffer)
            start = place(pcap.FILE_HEADER_SIZE)
            for record in pcap.records(buffer, form):
                yield start, record
                start += form.header_size + len(record.data)
    except CaptureError as error:
        raise stream.located(error) from None


def every(step: int) -> After:
    """Of the records that start in the same step of a file, so many bytes, only the first is of interest."""
    return lambda start: (start // step + 1) * step


def stay(
    form: pcap.Layout | pcapng.Blocks, data: bytes | bytearray, at: int, stop: int, cut: int
) -> tuple[int, int]:
    """Passes over nothing: each record is read."""
    return at, -1


def marks(window: Window, after: After | None = None, skip: Skip = stay) -> Iterator[Mark]:
    """The places of records of a window of a file that can be cut.

    Args:
        window: the window.
        after: told are the first record, the first at or behind each place that this gives for the one told
            before it, and in any case the last of the window; all records for None.
        skip: what passes over records that are not told.

    Raises:
        CaptureError: as `open_records` does, with the place in the file.
    """
    after = after or every(1)
    with window.open() as stream:
        try:
            buffer, is_pcapng = open_buffer(cast(BinaryIO, stream), stream.name)
            if is_pcapng:
                yield from _packet_blocks(window, buffer, after, skip)
                return
            form = pcap.layout(buffer)
        except CaptureError as error:
            raise stream.located(error) from None
    with window.open() as stream:
        head = stream.read(pcap.FILE_HEADER_SIZE) or b""
    at = yield from _pcap_records(window, head, form, after, skip)
    with Window(window.path, head, at, window.end).open() as stream:
        for _ in located_records(stream):  # none, but the error, if there is one
            break


def _pcap_records(
    window: Window, head: bytes, form: pcap.Layout, after: After, skip: Skip
) -> Generator[Mark, None, int]:
    """The places of the records; where they end. Only their sizes are looked at."""
    at, end = window.place(pcap.FILE_HEADER_SIZE), window.end
    size_at, header_size, limit = Struct(form.order + "8xI").unpack_from, form.header_size, form.limit
    last, told, cut = -1, -1, 0
    data = bytearray(CHUNK_SIZE)
    with open(window.path, "rb", buffering=0) as file:
        while at + header_size <= end:
            file.seek(at)
            base, count = at, min(file.readinto(data), end - at)
            stop = base + count - header_size
            if stop < base:
                break  # the file has become shorter
            while at <= stop:
                if at < cut:
                    passed, before = skip(form, data, at - base, count, cut - base)
                    at, last = base + passed, last if before < 0 else base + before
                    if at > stop:
                        break
                (size,) = size_at(data, at - base)
                following = at + header_size + size
                if size > limit or following > end:
                    end = at
                    break
                if at >= cut:
                    yield Mark(at, following, head)
                    told, cut = at, after(at)
                last, at = at, following
    if last > told:
        yield Mark(last, at, head)
    return at


def _packet_blocks(window: Window, buffer: Buffer, after: After, skip: Skip) -> Iterator[Mark]:
    head: bytes | None = window.head
    blocks, cut = pcapng.Blocks(buffer), 0
    last: Mark | None = None
    broken: CaptureError | None = None
    with open(window.path, "rb", buffering=0) as file:
        try:
            while not buffer.ended():
                base = window.place(buffer.start)
                at, before = skip(blocks, buffer.data, buffer.at, len(buffer.data), cut - base)
                if before >= 0:
                    last, buffer.at = Mark(base + before, base + at, head), at
                    continue
                buffer.fill(4)
                section = buffer.data[buffer.at : buffer.at + 4] == pcapng.MAGIC
                start, described = window.place(buffer.start + buffer.at), len(blocks.interfaces)
                record = blocks.block()
                end = window.place(buffer.start + buffer.at)
                if record is not None:
                    last = Mark(start, end, head)
                    if start >= cut:
                        yield last
                        last, cut = None, after(start)
                elif start >= window.start and (section or len(blocks.interfaces) > described):
                    head = _with_block(b"" if section else head, file, start, end)
        except CaptureError as error:
            broken = error
    if last is not None:
        yield last
    if broken is not None:
        raise broken


def _with_block(head: bytes | None, file: FileIO, start: int, end: int) -> bytes | None:
    if head is None or len(head) + end - start > HEAD_MAX:
        return None
    file.seek(start)
    return head + file.read(end - start)
