"""Folders as input: the captures in them are read, other files are passed over with a warning."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, NamedTuple

from msmqwire.capture.files import holds_capture
from msmqwire.capture.paths import capture_files, expand, is_folder
from msmqwire.capture.stores import NO_OPTIONS, StorageOptions, is_url
from msmqwire.names.printable import counted, safe

_NAMED_MAX: Final = 5
"""Files that are passed over by name."""
_ASKED_AT_ONCE: Final = 8
"""Files of a store whose first bytes are asked for at a time, which is mostly waiting."""


class PassedOver(NamedTuple):
    """Files of a folder that are not captures.

    Attributes:
        folder: its path or URL.
        names: the names of the files.
    """

    folder: str
    names: tuple[str, ...]

    def __str__(self) -> str:
        """Say how many they are and the names of the first ones, on one line."""
        count = len(self.names)
        names = ", ".join(map(safe, self.names[:_NAMED_MAX]))
        more = f" and {count - _NAMED_MAX:,} more" if count > _NAMED_MAX else ""
        what = f"{counted(count, 'file', 'are')} not {'a capture' if count == 1 else 'captures'}"
        return f"{safe(self.folder)}: {what} and {'was' if count == 1 else 'were'} passed over: {names}{more}"


def captures_of(
    source: str | os.PathLike[str],
    passed_over: Callable[[PassedOver], None],
    storage_options: StorageOptions = NO_OPTIONS,
) -> list[Path | str]:
    """Return the files that a path, pattern or URL means: of a folder the captures in it.

    Args:
        source: as for `msmqwire.capture.paths.expand`.
        passed_over: called with the other files of the folder, if there are any.
        storage_options: the options of the store of a URL.

    Raises:
        FileNotFoundError: it names no file.
        UnsupportedStore: the store of a URL can't be used.
        OSError: it can't be reached, or a file of the folder can't be read.
    """
    files = expand([source], storage_options)
    if not files or not is_folder(source, storage_options):
        return files
    held = dict(zip(files, _hold_captures(files, storage_options), strict=True))
    others = tuple(os.fspath(file).rpartition("/")[2] for file in files if not held[file])
    if others:
        passed_over(PassedOver(os.fspath(source), others))
    return [file for file in files if held[file]]


def all_captures_of(
    sources: Iterable[str | os.PathLike[str]],
    passed_over: Callable[[PassedOver], None],
    storage_options: StorageOptions = NO_OPTIONS,
) -> list[str]:
    """Return the captures that sources mean, each once: absolute paths, and URLs.

    As `captures_of`, but hidden files that a pattern matches are skipped, as `capture_files` does.
    """
    files: dict[str, None] = {}
    for source in sources:
        if is_folder(source, storage_options):
            found = captures_of(source, passed_over, storage_options)
            files.update(dict.fromkeys(str(f.absolute()) if isinstance(f, Path) else f for f in found))
        else:
            files.update(dict.fromkeys(capture_files([source], storage_options)))
    return list(files)


def _hold_captures(files: list[Path | str], storage_options: StorageOptions) -> list[bool]:
    """Return of each file whether it begins as a capture does."""
    if not is_url(files[0]):
        return [holds_capture(file, storage_options) for file in files]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(_ASKED_AT_ONCE) as pool:
        return list(pool.map(lambda file: holds_capture(file, storage_options), files))
