"""Capture files named by paths, patterns, folders and URLs."""

from __future__ import annotations

import errno
import fnmatch
import glob
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from io import RawIOBase
from pathlib import Path
from urllib.parse import unquote, urlsplit

from msmqwire.capture.stores import NO_OPTIONS, StorageOptions, Store, is_url, open_store
from msmqwire.errors import UnsupportedStore

_MAGIC = re.compile(r"[*?\[]")


def open_file(
    path: str | os.PathLike[str],
    options: StorageOptions = NO_OPTIONS,
    *,
    stop: int | None = None,
    version: str = "",
) -> RawIOBase:
    """Open a local file, or the file of a URL, as an unbuffered binary stream that can be positioned.

    Args:
        path: the path or URL.
        options: storage options of a URL.
        stop: the offset up to which the file of a URL is read ahead; by default its end.
        version: the version of the content that the file of a URL must have; by default the present one.

    Raises:
        UnsupportedStore: the store of the URL can't be used.
        FileChanged: the file of a URL has changed.
        OSError: the file can't be opened.
    """
    if is_url(path):
        url = os.fspath(path)
        return open_store(url, options).open(url, stop=stop, version=version)
    return open(local_path(os.fspath(path)), "rb", buffering=0)


def file_size(path: str | os.PathLike[str], options: StorageOptions = NO_OPTIONS) -> int:
    """Return the bytes of a local file or of the file of a URL. Raises UnsupportedStore, OSError."""
    if not is_url(path):
        return os.path.getsize(local_path(os.fspath(path)))
    url = os.fspath(path)
    entry = open_store(url, options).info(url)
    if entry is None or entry.is_folder:
        raise FileNotFoundError(errno.ENOENT, "no such file", url)
    return entry.size


def is_folder(path: str | os.PathLike[str], options: StorageOptions = NO_OPTIONS) -> bool:
    """Whether a path or URL is that of a folder. Raises UnsupportedStore, OSError."""
    if not is_url(path):
        return os.path.isdir(local_path(os.fspath(path)))
    url = os.fspath(path)
    try:
        entry = open_store(url, options).info(url)
    except FileNotFoundError:  # the bucket is missing too
        return False
    return entry is not None and entry.is_folder


def exists(path: str | os.PathLike[str], options: StorageOptions = NO_OPTIONS) -> bool:
    """Whether a file or folder exists. Raises UnsupportedStore, OSError."""
    if not is_url(path):
        return os.path.exists(local_path(os.fspath(path)))
    url = os.fspath(path)
    try:
        return open_store(url, options).info(url) is not None
    except FileNotFoundError:  # the bucket is missing too
        return False


def local_path(path: str) -> str:
    """Return a local path, which a ``file:`` URL may name. Raises UnsupportedStore for another computer's."""
    if not path.lower().startswith("file:"):
        return path
    url = urlsplit(path)
    if url.netloc not in ("", "localhost"):
        raise UnsupportedStore(f"{path}: a file of another computer")
    return unquote(url.path)


def expand(
    paths: Iterable[str | os.PathLike[str]], options: StorageOptions = NO_OPTIONS, *, may_miss: bool = False
) -> list[Path | str]:
    """Return the files that the paths and patterns (``*``, ``?``, ``[]``, ``**``) name, each once.

    A folder stands for the files in it, without those whose name starts with ``.`` or ``_``. They are sorted,
    and so are the matches of a pattern; otherwise the order of the paths is preserved. A path that exists is
    never interpreted as a pattern. Files of URLs are URLs.

    Args:
        paths: local paths and URLs.
        options: storage options of the URLs.
        may_miss: whether a pattern may match nothing, and the folder of a URL may not be there: in most
            stores a folder is only a common beginning of names.

    Raises:
        FileNotFoundError: for a path that does not exist, or a pattern that matches no file.
        UnsupportedStore: the store of a URL can't be used.
        OSError: it can't be reached.
    """
    matches: dict[Path | str, None] = {}
    for path in paths:
        name = os.fspath(path)
        files = _files_of_url(name, options) if is_url(name) else _local_files(local_path(name))
        if files is None:
            if not (may_miss and (is_url(name) or _MAGIC.search(name))):
                raise FileNotFoundError(errno.ENOENT, "no such file", name)
            continue
        matches.update(dict.fromkeys(files))
    return list(matches)


def capture_files(
    sources: Iterable[str | os.PathLike[str]], options: StorageOptions = NO_OPTIONS, *, may_miss: bool = False
) -> list[str]:
    """Return the files that paths, patterns and folders name, in their order: absolute paths, and URLs.

    As `expand`, but hidden files that a pattern matches are skipped too, as in Spark.

    Args:
        sources: local paths and URLs.
        options: storage options of the URLs.
        may_miss: as for `expand`.

    Raises:
        FileNotFoundError: a path does not exist, or a pattern matches nothing.
        UnsupportedStore: the store of a URL can't be used.
        OSError: it can't be reached.
    """
    files: dict[str, None] = {}
    for source in sources:
        paths = expand([source], options, may_miss=may_miss)
        visible = [path for path in paths if len(paths) == 1 or not is_hidden(path)]
        files.update(dict.fromkeys(str(p.absolute()) if isinstance(p, Path) else p for p in visible))
    return list(files)


def is_hidden(path: str | os.PathLike[str]) -> bool:
    """Whether a file in a folder is not meant: its name starts with ``.`` or ``_``."""
    return (
        os.fspath(path).rpartition("/")[2][:1] in (".", "_") if is_url(path) else Path(path).name[0] in "._"
    )


def _local_files(name: str) -> list[Path] | None:
    """The files of a local path or pattern; None if there are none."""
    if os.path.isdir(name):
        return sorted(path for path in Path(name).iterdir() if path.is_file() and not is_hidden(path))
    names = [name] if os.path.exists(name) else sorted(glob.glob(name, recursive=True))
    return [Path(name) for name in names if not os.path.isdir(name)] or None


def _files_of_url(url: str, options: StorageOptions) -> list[str] | None:
    """The files of a URL or a pattern of URLs; None if there are none."""
    store = open_store(url, options)
    entry = store.info(url)
    if entry is not None and not entry.is_folder:
        return [url]
    if entry is not None:
        files = [store.url(entry.path) for entry in store.list(store.path(url)) if not entry.is_folder]
        return sorted(file for file in files if not is_hidden(file))
    if not _MAGIC.search(url):
        return None
    return sorted(store.url(path) for path in _matches(store, store.path(url))) or None


def _matches(store: Store, pattern: str) -> Iterator[str]:
    """Yield the paths of the files that match a pattern; only folders that it may match are listed."""
    parts = pattern.split("/")
    fixed = next(number for number, part in enumerate(parts) if _MAGIC.search(part))
    yield from _below(store, "/".join(parts[:fixed]) or "/", parts[fixed:])


def _below(store: Store, folder: str, parts: Sequence[str]) -> Iterator[str]:
    """Yield the paths of the files in a folder that match the parts of a pattern."""
    if parts[0] == "**":
        prefix = folder.rstrip("/") + "/"
        for entry in store.list(folder, recursive=True):
            if not entry.is_folder and _match(entry.path.removeprefix(prefix).split("/"), parts):
                yield entry.path
        return
    for entry in store.list(folder):
        name = entry.path.rstrip("/").rpartition("/")[2]
        if entry.is_folder == (len(parts) > 1) and _match([name], parts[:1]):
            if entry.is_folder:
                yield from _below(store, entry.path, parts[1:])
            else:
                yield entry.path


def _match(names: Sequence[str], parts: Sequence[str]) -> bool:
    """Whether the names of a path match the parts of a pattern, of which ``**`` is any number of names."""
    if not parts:
        return not names
    if parts[0] == "**":
        return _match(names, parts[1:]) or (
            bool(names) and not names[0].startswith(".") and _match(names[1:], parts)
        )
    return (
        bool(names)
        and fnmatch.fnmatchcase(names[0], parts[0])
        and (not names[0].startswith(".") or parts[0].startswith("."))
        and _match(names[1:], parts[1:])
    )
