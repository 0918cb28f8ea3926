"""Reading of capture files of any supported format."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import BinaryIO, cast

from msmqwire.capture import pcap, pcapng
from msmqwire.capture.paths import open_file
from msmqwire.capture.record import RECORD_SIZE_MAX, Record, ReportDamage
from msmqwire.capture.source import GZIP_MAGIC, ZSTD_MAGIC, ZSTD_SKIPPABLE_MAGICS, Buffer
from msmqwire.capture.stores import NO_OPTIONS, StorageOptions


def open_records(
    path_or_stream: str | os.PathLike[str] | BinaryIO,
    *,
    record_size_max: int = RECORD_SIZE_MAX,
    on_damage: ReportDamage | None = None,
    storage_options: StorageOptions = NO_OPTIONS,
) -> Iterator[Record]:
    """Yield the records of a pcap or pcapng file, uncompressed or compressed with gzip or zstd.

    A stream is read from its current position and left open. A file is opened by the first step of the
    iterator and closed after the last, or when the iterator is closed.

    Args:
        path_or_stream: the file: a path, a URL, or a stream.
        record_size_max: bytes of the largest record that is read, which is to fit into memory several times.
        on_damage: called for each record over this limit, as for an error. Such a record is skipped if the
            next one can be found after it; the numbers of the records count it. Without this, and if not,
            reading ends there.
        storage_options: the options of the store of a URL; see `msmqwire.capture.stores`.

    Raises:
        CaptureError: for a file that is cut off or damaged, after every complete record before that; its
            offset is where the first incomplete record starts in the uncompressed bytes. At offset 0 for a
            file that is not a capture.
        UnsupportedStore: the store of a URL can't be used.
        OSError: for a file that can't be opened or read.
    """
    if isinstance(path_or_stream, (str, os.PathLike)):
        name = os.fspath(path_or_stream)
        with open_file(name, storage_options) as stream:
            yield from _records(cast(BinaryIO, stream), name, record_size_max, on_damage)
    else:
        stream_name = getattr(path_or_stream, "name", None)
        name = stream_name if isinstance(stream_name, str) else "<stream>"
        yield from _records(path_or_stream, name, record_size_max, on_damage)


def is_capture(head: bytes) -> bool:
    """Whether the first four bytes of a file are those of a capture, or of a compressed file."""
    compressed = (GZIP_MAGIC, ZSTD_MAGIC, *ZSTD_SKIPPABLE_MAGICS)
    return head[:4] in pcap.MAGICS or head.startswith((pcapng.MAGIC, *compressed))


def holds_capture(path: str | os.PathLike[str], storage_options: StorageOptions = NO_OPTIONS) -> bool:
    """Whether a file begins as a capture does; damaged compressed bytes may be those of one.

    Raises UnsupportedStore and OSError.
    """
    with open_file(path, storage_options) as stream:
        buffer = Buffer(cast(BinaryIO, stream), os.fspath(path))
        if not buffer.fill(4):
            return buffer.is_damaged
        return _has_magic(buffer)


def open_buffer(stream: BinaryIO, name: str) -> tuple[Buffer, bool]:
    """Return the uncompressed bytes of a capture, and whether its format is pcapng. Raises CaptureError."""
    buffer = Buffer(stream, name)
    if not buffer.fill(4):
        raise buffer.cut("the first four bytes", offset=0)
    if not _has_magic(buffer):
        raise buffer.error(f"not a capture file: it starts with {buffer.data[:4].hex()}", offset=0)
    return buffer, buffer.data[:4] == pcapng.MAGIC


def _has_magic(buffer: Buffer) -> bool:
    return buffer.data[:4] in pcap.MAGICS or buffer.data[:4] == pcapng.MAGIC


def _records(
    stream: BinaryIO, name: str, record_size_max: int, on_damage: ReportDamage | None
) -> Iterator[Record]:
    buffer, is_pcapng = open_buffer(stream, name)
    if is_pcapng:
        return pcapng.records(pcapng.Blocks(buffer, record_size_max, on_damage))
    return pcap.records(buffer, pcap.layout(buffer, record_size_max), on_damage=on_damage)
