"""Reading of capture files of any supported format."""

from __future__ import annotations

import errno
import glob
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

from msmqwire.capture import pcap, pcapng
from msmqwire.capture.record import Record
from msmqwire.capture.source import GZIP_MAGIC, ZSTD_MAGIC, ZSTD_SKIPPABLE_MAGICS, Buffer


def open_records(path_or_stream: str | os.PathLike[str] | BinaryIO) -> Iterator[Record]:
    """Yield the records of a pcap or pcapng file, uncompressed or compressed with gzip or zstd.

    A stream is read from its current position and left open. A file is opened by the first step of the
    iterator and closed after the last, or when the iterator is closed.

    Raises:
        CaptureError: for a file that is cut off or damaged, after every complete record before that; its
            offset is where the first incomplete record starts in the uncompressed bytes. At offset 0 for
            what is not a capture.
        OSError: for a file that can't be opened or read.
    """
    if isinstance(path_or_stream, (str, os.PathLike)):
        name = os.fspath(path_or_stream)
        with open(name, "rb", buffering=0) as stream:
            yield from _records(cast(BinaryIO, stream), name)
    else:
        stream_name = getattr(path_or_stream, "name", None)
        yield from _records(path_or_stream, stream_name if isinstance(stream_name, str) else "<stream>")


def is_capture(head: bytes) -> bool:
    """Whether the first four bytes of a file are those of a capture, or of a compressed file."""
    compressed = (GZIP_MAGIC, ZSTD_MAGIC, *ZSTD_SKIPPABLE_MAGICS)
    return head[:4] in pcap.MAGICS or head.startswith((pcapng.MAGIC, *compressed))


def open_buffer(stream: BinaryIO, name: str) -> tuple[Buffer, bool]:
    """Return the uncompressed bytes of a capture, and whether its format is pcapng. Raises CaptureError."""
    buffer = Buffer(stream, name)
    if not buffer.fill(4):
        raise buffer.cut("the first four bytes", offset=0)
    magic = buffer.data[:4]
    if magic not in pcap.MAGICS and magic != pcapng.MAGIC:
        raise buffer.error(f"not a capture file: it starts with {magic.hex()}", offset=0)
    return buffer, magic == pcapng.MAGIC


def _records(stream: BinaryIO, name: str) -> Iterator[Record]:
    buffer, is_pcapng = open_buffer(stream, name)
    return pcapng.records(pcapng.Blocks(buffer)) if is_pcapng else pcap.records(buffer, pcap.layout(buffer))


def expand(paths: Iterable[str | os.PathLike[str]]) -> list[Path]:
    """Return the files that the paths and patterns (``*``, ``?``, ``[]``, ``**``) name, each once.

    The matches of a pattern are sorted; otherwise the order of the paths is preserved. A path that exists is
    never interpreted as a pattern.

    Raises:
        FileNotFoundError: for a path, or a pattern, that names no file.
    """
    matches: dict[Path, None] = {}
    for path in paths:
        name = os.fspath(path)
        names = [name] if os.path.exists(name) else sorted(glob.glob(name, recursive=True))
        files = [Path(name) for name in names if not os.path.isdir(name)]
        if not files:
            raise FileNotFoundError(errno.ENOENT, "no such file", name)
        matches.update(dict.fromkeys(files))
    return list(matches)
