"""Changes of captures since a lake was written: new ones, grown ones, and those that were replaced."""

from __future__ import annotations

import enum
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from hashlib import blake2b
from typing import Final

from msmqwire.capture.splits import whole_file
from msmqwire.capture.stores import NO_OPTIONS, StorageOptions, is_url
from msmqwire.tables.lake.state import CaptureEntry
from msmqwire.tables.parts import PLANNED_AT_ONCE

SAMPLES: Final = 64
SAMPLE_SIZE: Final = 4096


class Change(enum.Enum):
    """The difference between a capture and the lake's entry for it."""

    NONE = enum.auto()
    NEW = enum.auto()
    GROWN = enum.auto()
    REPLACED = enum.auto()


def examine_all(
    paths: Sequence[str], known: Mapping[str, CaptureEntry], storage_options: StorageOptions = NO_OPTIONS
) -> list[tuple[CaptureEntry, Change]]:
    """Return captures as they are now, and how they have changed: see `examine`.

    Those in stores are asked for several at a time, as that is mostly waiting.

    Args:
        paths: absolute paths and URLs.
        known: the lake's entries, by path.
        storage_options: the options of the stores of URLs.

    Raises:
        OSError: one can't be read.
    """
    with ThreadPoolExecutor(PLANNED_AT_ONCE if any(map(is_url, paths)) else 1) as pool:
        return list(pool.map(lambda path: examine(path, known.get(path), storage_options), paths))


def examine(
    path: str, known: CaptureEntry | None, storage_options: StorageOptions = NO_OPTIONS
) -> tuple[CaptureEntry, Change]:
    """Return a capture as it is now, and how it has changed.

    A file of the same size and time is the same if it has the same inode too, or the same samples. A longer
    one has grown if the samples of its beginning are the same; any other was replaced. The file of a URL
    is the same if its size and version are; it does not grow.

    Args:
        path: its absolute path, or its URL.
        known: the lake's entry for it.
        storage_options: the options of the store of a URL.

    Raises:
        OSError: it can't be read.
    """
    since = 0 if known is None else known.since
    if is_url(path):
        whole = whole_file(path, storage_options)
        entry = CaptureEntry(path, whole.end, 0, 0, "", whole.version, since)
        if known is None:
            return entry, Change.NEW
        return entry, Change.NONE if entry == known else Change.REPLACED
    with open(path, "rb", buffering=0) as file:
        status = os.fstat(file.fileno())
        size, mtime_ns, inode = status.st_size, status.st_mtime_ns, status.st_ino
        if known is not None and (known.size, known.mtime_ns, known.inode) == (size, mtime_ns, inode):
            return known, Change.NONE
        entry = CaptureEntry(path, size, mtime_ns, inode, _digest(file.fileno(), size), "", since)
        if known is None:
            return entry, Change.NEW
        if size == known.size:
            same = mtime_ns == known.mtime_ns and entry.digest == known.digest
            return entry, Change.NONE if same else Change.REPLACED
        if size > known.size and _digest(file.fileno(), known.size) == known.digest:
            return entry, Change.GROWN
        return entry, Change.REPLACED


def entry_of_beginning(entry: CaptureEntry, size: int) -> CaptureEntry:
    """Return the entry of a local capture of which only the first bytes count. Raises OSError."""
    with open(entry.path, "rb", buffering=0) as file:
        return replace(entry, size=size, digest=_digest(file.fileno(), size))


def _digest(descriptor: int, size: int) -> str:
    """The digest of samples of the first `size` bytes, the first and the last of them included."""
    last = max(size - SAMPLE_SIZE, 0)
    digest = blake2b(digest_size=16)
    for offset in sorted({last * number // (SAMPLES - 1) for number in range(SAMPLES)}):
        os.lseek(descriptor, offset, os.SEEK_SET)
        digest.update(os.read(descriptor, min(SAMPLE_SIZE, size - offset)))
    return digest.hexdigest()
