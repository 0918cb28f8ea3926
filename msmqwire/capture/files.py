"""Reading of capture files of any supported format."""

from __future__ import annotations

import errno
import glob
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

from msmqwire.capture import pcap, pcapng
from msmqwire.capture.record import RECORD_SIZE_MAX, Record, ReportDamage
from msmqwire.capture.source import GZIP_MAGIC, ZSTD_MAGIC, ZSTD_SKIPPABLE_MAGICS, Buffer


def open_records(
    path_or_stream: str | os.PathLike[str] | BinaryIO,
    *,
    record_size_max: int = RECORD_SIZE_MAX,
    on_damage: ReportDamage | None = None,
) -> Iterator[Record]:
    """Yield the records of a pcap or pcapng file, uncompressed or compressed with gzip or zstd.

    A stream is read from its current position and left open. A file is opened by the first step of the
    iterator and closed after the last, or when the iterator is closed.

    Args:
        path_or_stream: the file.
        record_size_max: bytes of the largest record that is read, which is to fit into memory several times.
        on_damage: is told of each record over this limit, as of an error. Such a record is skipped if the
            next one can be found after it; the numbers of the records count it. Without this, and if not,
            reading ends there.

    Raises:
        CaptureError: for a file that is cut off or damaged, after every complete record before that; its
            offset is where the first incomplete record starts in the uncompressed bytes. At offset 0 for
            what is not a capture.
        OSError: for a file that can't be opened or read.
    """
    if isinstance(path_or_stream, (str, os.PathLike)):
        name = os.fspath(path_or_stream)
        with open(name, "rb", buffering=0) as stream:
            yield from _records(cast(BinaryIO, stream), name, record_size_max, on_damage)
    else:
        stream_name = getattr(path_or_stream, "name", None)
        name = stream_name if isinstance(stream_name, str) else "<stream>"
        yield from _records(path_or_stream, name, record_size_max, on_damage)


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


def _records(
    stream: BinaryIO, name: str, record_size_max: int, on_damage: ReportDamage | None
) -> Iterator[Record]:
    buffer, is_pcapng = open_buffer(stream, name)
    if is_pcapng:
        return pcapng.records(pcapng.Blocks(buffer, record_size_max, on_damage))
    return pcap.records(buffer, pcap.layout(buffer, record_size_max), on_damage=on_damage)


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


def capture_files(sources: Iterable[str | os.PathLike[str]], *, may_miss: bool = False) -> list[str]:
    """Return the files that paths, patterns and folders name, in their order, as absolute paths.

    A folder stands for its files. The files of a pattern or a folder are sorted; hidden files and those whose
    name starts with ``_`` are skipped, as in Spark.

    Args:
        sources: paths and patterns.
        may_miss: whether a pattern may match nothing.

    Raises:
        FileNotFoundError: a path does not exist, or a pattern matches nothing.
    """
    files: dict[str, None] = {}
    for source in [os.fspath(source) for source in sources]:
        folder = Path(source)
        if folder.is_dir():
            paths = sorted(path for path in folder.iterdir() if path.is_file())
        elif may_miss and set("*?[") & set(source):
            paths = sorted(Path(path) for path in glob.glob(source, recursive=True))
            paths = [path for path in paths if path.is_file()]
        else:
            paths = expand([source])
        visible = [path for path in paths if path.name[0] not in "._" or len(paths) == 1]
        files.update(dict.fromkeys(str(path.absolute()) for path in visible))
    return list(files)
