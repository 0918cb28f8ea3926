"""Where a lake is: a local folder, or a folder of a store.

Paths are those below the lake, with ``/``. What is written is durable once `NewFile.close` and
`Place.sync` have returned.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import Any, BinaryIO, Final, NamedTuple, Protocol

import pyarrow as pa
from pyarrow import fs

from msmqwire import ownership
from msmqwire.capture.paths import local_path
from msmqwire.capture.store_errors import store_errors
from msmqwire.capture.stores import NO_OPTIONS, StorageOptions, Store, is_url, open_store
from msmqwire.errors import InvalidValue, LakeDamaged, LakeMismatch
from msmqwire.tables.lake.delta_options import delta_options, is_lake_store
from msmqwire.tables.lake.entries import LOG, check_entries, check_files
from msmqwire.tables.lake.open_folder import OpenFolder, names_by_folder, opened_folder
from msmqwire.tables.lake.state import FILE_PATH, FOLDER, SIZE_MAX

OLD: Final = "_lake"
"""The folder of the manifest of lakes of earlier versions."""
OLD_MANIFEST: Final = f"{OLD}/manifest.json"
_ESCAPE: Final = re.compile("%[0-9A-Fa-f]{2}")
_BUFFER_BYTES: Final = 65_536
"""Bytes that are written to a file at once; pages of small files have some hundred."""


class NewFile(Protocol):
    """A file that is being written.

    Attributes:
        stream: takes its bytes.
    """

    stream: Any

    def close(self) -> int:
        """Complete the file, which is on disk then; return its size. Raises OSError."""

    def discard(self) -> None:
        """Remove the file."""


class FoundFile(NamedTuple):
    """A file that is there.

    Attributes:
        path: its path below the lake.
        size: its bytes.
        mtime_ns: when it was changed last, in nanoseconds since 1970.
    """

    path: str
    size: int
    mtime_ns: int


class Place(Protocol):
    """The folder of a lake; it can be sent to other processes.

    Attributes:
        shown: its path or URL, for messages.
        uri: its address for the library that writes the log.
        options: the options of that library.
        filesystem: the file system of pyarrow that it is in.
    """

    @property
    def shown(self) -> str: ...
    @property
    def uri(self) -> str: ...
    @property
    def options(self) -> Mapping[str, str]: ...
    @property
    def filesystem(self) -> Any: ...

    def full(self, path: str) -> str:
        """Return a path in the file system."""

    def prepare(self) -> None:
        """Make the folder if it is missing; refuse one that is no lake, and entries that are not ours.

        Raises LakeMismatch, LakeDamaged, OSError.
        """

    def check_files(self, paths: Iterable[str]) -> None:
        """Refuse files that are missing or lead elsewhere. Raises LakeDamaged."""

    def check_log(self) -> None:
        """Refuse a link in place of the log, which its library would follow. Raises LakeDamaged."""

    def has(self, path: str) -> bool:
        """Whether there is an entry of this path. Raises OSError."""

    def read(self, path: str) -> bytes:
        """Return a small file. Raises LakeDamaged, OSError."""

    def write(self, path: str, content: bytes) -> None:
        """Write a new file, which is on disk then. Raises OSError."""

    def create(self, path: str) -> NewFile:
        """Begin a new file. Raises LakeDamaged, OSError."""

    def sync(self, paths: Iterable[str], *, contents: bool = False) -> None:
        """Make durable that files are there, and `contents` that another library wrote. Raises OSError."""

    def remove(self, paths: Iterable[str]) -> None:
        """Remove files; missing ones are no error. Raises OSError."""

    def found(self, folder: str) -> list[FoundFile]:
        """Return the files of a folder, but not those of folders in it; none of a missing one.

        Raises LakeDamaged for a link in its place, OSError.
        """

    def remove_empty(self, folders: Iterable[str]) -> None:
        """Remove folders that are empty, and those above them. Raises OSError."""


def lake_place(path: str | os.PathLike[str], options: StorageOptions = NO_OPTIONS) -> Place:
    """Return where a lake is.

    Raises:
        UnsupportedStore: it is a URL of a store that has no lakes, or an option can't be used.
        LakeMismatch: no lake can have this path.
    """
    text = os.fspath(path) if is_url(path) else os.path.realpath(local_path(os.fspath(path)))
    if escape := _ESCAPE.search(text):
        raise LakeMismatch(
            f"the library of Delta tables takes {escape[0]} in a path for another character: name another"
            " folder",
            file=text,
        )
    if is_url(text):
        is_lake_store(text)
        delta_options(text, options)
        return StorePlace(text.rstrip("/"), dict(options))
    return LocalPlace(Path(text))


def refuse_old(place: Place) -> None:
    """Refuse a lake that an earlier version has made. Raises LakeMismatch."""
    if place.has(OLD_MANIFEST):
        raise LakeMismatch(
            "an earlier version has made the lake: make a table of it, which leaves its files as they are, by"
            f" msmqwire lake --out {quote(place.shown)} --upgrade",
            file=place.shown,
        )


@dataclass(frozen=True)
class LocalPlace:
    """A local folder, by its real path; no link in it is followed."""

    folder: Path

    @property
    def shown(self) -> str:
        return str(self.folder)

    @property
    def uri(self) -> str:
        return str(self.folder)

    @property
    def options(self) -> Mapping[str, str]:
        return {}

    @property
    def filesystem(self) -> Any:
        return fs.LocalFileSystem()

    def full(self, path: str) -> str:
        return str(self.folder / path)

    def prepare(self) -> None:
        folder = self.folder
        # Looked at once: another writer may be making a lake of it just now.
        names = set(os.listdir(folder)) if folder.exists() else set()
        if names and not names & {LOG, OLD, FOLDER}:
            raise LakeMismatch("the folder has files, and is not a lake: name another one", file=self.shown)
        if not self.has(LOG):
            refuse_old(self)
        folder.mkdir(parents=True, exist_ok=True)
        check_entries(folder)
        if not self.has(LOG):
            with opened_folder(folder) as root, root.inside(FOLDER, make=True):
                pass  # by which the next writer knows what a killed one has left

    def check_files(self, paths: Iterable[str]) -> None:
        check_files(self.folder, paths)

    def check_log(self) -> None:
        with opened_folder(self.folder) as root, suppress(FileNotFoundError), root.inside(LOG):
            pass

    def has(self, path: str) -> bool:
        return os.path.lexists(self.folder / path)

    def read(self, path: str) -> bytes:
        try:
            with self._folder_of(path) as (folder, name):
                return ownership.read_own(folder.path / name, SIZE_MAX, None)
        except InvalidValue as exc:
            raise LakeDamaged(exc.why, file=self.full(path)) from None
        except IsADirectoryError:
            raise LakeDamaged(
                "it is a folder, not a plain file: move it away", file=self.full(path)
            ) from None

    def write(self, path: str, content: bytes) -> None:
        file = self.create(path)
        try:
            file.stream.write(content)
            file.close()
        except BaseException:
            file.discard()
            raise
        self.sync([path])

    def create(self, path: str) -> NewFile:
        for is_last in (False, False, True):
            try:
                with self._folder_of(path, make=True) as (folder, name):
                    return _LocalFile(self, path, folder.create(name))
            except FileNotFoundError:  # a vacuum has found the folder empty, and removed it
                if is_last:
                    raise
        raise AssertionError

    def sync(self, paths: Iterable[str], *, contents: bool = False) -> None:
        files = names_by_folder(paths)
        with opened_folder(self.folder) as root:
            for inner in sorted({step for path in files for step in _steps(path)}):
                with root.inside(inner) as folder:
                    for name in files.get(inner, []) if contents else []:
                        folder.sync_file(name)
                    folder.sync()
            root.sync()

    def remove(self, paths: Iterable[str]) -> None:
        files = names_by_folder(paths)
        if not files:
            return
        with opened_folder(self.folder) as root:
            for inner, names in files.items():
                with suppress(FileNotFoundError), root.inside(inner) as folder:
                    for name in names:
                        folder.unlink(name)

    def found(self, folder: str) -> list[FoundFile]:
        with suppress(FileNotFoundError), opened_folder(self.folder) as root, root.inside(folder) as inside:
            return [
                FoundFile(f"{folder}/{name}", status.st_size, status.st_mtime_ns)
                for name, status in inside.plain_files()
            ]
        return []

    def remove_empty(self, folders: Iterable[str]) -> None:
        steps = {step for folder in folders for step in _steps(folder)}
        with opened_folder(self.folder) as root:
            for path in sorted(steps, key=len, reverse=True):
                above, _, name = path.rpartition("/")
                with (
                    suppress(FileNotFoundError),
                    root.inside(above) if above else nullcontext(root) as folder,
                ):
                    folder.remove_if_empty(name)

    @contextmanager
    def _folder_of(self, path: str, *, make: bool = False) -> Iterator[tuple[OpenFolder, str]]:
        inner, _, name = path.rpartition("/")
        with opened_folder(self.folder) as root, root.inside(inner, make=make) as folder:
            yield folder, name


def _steps(folder: str) -> list[str]:
    """A folder below the lake, and those above it."""
    steps = folder.split("/")
    return ["/".join(steps[: n + 1]) for n in range(len(steps))]


class _LocalFile:
    """A new file of a local folder."""

    def __init__(self, place: LocalPlace, path: str, descriptor: int) -> None:
        self._place, self._path = place, path
        self._file: BinaryIO = open(descriptor, "wb", buffering=0)  # noqa: SIM115  # closed below
        self.stream = pa.BufferedOutputStream(pa.PythonFile(self._file, "w"), _BUFFER_BYTES)

    def close(self) -> int:
        self.stream.flush()
        os.fsync(self._file.fileno())
        size = os.fstat(self._file.fileno()).st_size
        self._close()
        return size

    def discard(self) -> None:
        with suppress(OSError):
            self._close()
        with suppress(OSError, LakeDamaged):
            self._place.remove([self._path])

    def _close(self) -> None:
        with suppress(OSError, ValueError):  # what could not be flushed
            self.stream.close()
        self._file.close()


@dataclass(frozen=True)
class StorePlace:
    """A folder of a store."""

    url: str
    storage_options: dict[str, Any] = field(repr=False)

    @property
    def shown(self) -> str:
        return self.url

    @property
    def uri(self) -> str:
        return self.url

    @property
    def options(self) -> Mapping[str, str]:
        return delta_options(self.url, self.storage_options)

    @property
    def _store(self) -> Store:
        return open_store(self.url, self.storage_options)

    @property
    def filesystem(self) -> Any:
        return self._store.filesystem

    def full(self, path: str) -> str:
        return self._store.path(f"{self.url}/{path}")

    def prepare(self) -> None:
        if any(self.has(name) for name in (LOG, OLD, FOLDER)):
            return
        root = self._store.path(self.url)
        entries = self._store.list(root, recursive=True, missing_ok=True)
        paths = [entry.path[len(root) + 1 :] for entry in entries if not entry.is_folder]
        # The hidden ones are of another writer, who is making a lake of it just now.
        if not all(path.startswith((f"{LOG}/", f"{FOLDER}/")) or FILE_PATH.fullmatch(path) for path in paths):
            raise LakeMismatch("the folder has files, and is not a lake: name another one", file=self.url)

    def check_files(self, paths: Iterable[str]) -> None:
        """A store has no links, and to ask for each file would take long."""

    def check_log(self) -> None:
        """A store has no links."""

    def has(self, path: str) -> bool:
        return self._store.info(f"{self.url}/{path}") is not None

    def read(self, path: str) -> bytes:
        url = f"{self.url}/{path}"
        with self._store.open(url) as file:
            content = file.read(SIZE_MAX + 1)
        if len(content) > SIZE_MAX:
            raise LakeDamaged(f"it has more than {SIZE_MAX:,} bytes", file=url)
        return content

    def write(self, path: str, content: bytes) -> None:
        url = f"{self.url}/{path}"
        with store_errors(url, self.storage_options), self._store.create(url) as stream:
            stream.write(content)

    def create(self, path: str) -> NewFile:
        return _StoreFile(self, f"{self.url}/{path}", self._store)

    def sync(self, paths: Iterable[str], *, contents: bool = False) -> None:
        """What a store has taken is there."""

    def remove(self, paths: Iterable[str]) -> None:
        for path in paths:
            with suppress(FileNotFoundError):
                self._store.remove(f"{self.url}/{path}")

    def found(self, folder: str) -> list[FoundFile]:
        url = f"{self.url}/{folder}"
        with store_errors(url, self.storage_options):
            entries = self.filesystem.get_file_info(
                fs.FileSelector(self._store.path(url), allow_not_found=True)
            )
        return [
            FoundFile(f"{folder}/{entry.base_name}", entry.size or 0, entry.mtime_ns or 0)
            for entry in entries
            if entry.type == fs.FileType.File
        ]

    def remove_empty(self, folders: Iterable[str]) -> None:
        """A store has no folders."""


class _StoreFile:
    """A new file of a store."""

    def __init__(self, place: StorePlace, url: str, store: Store) -> None:
        self._place, self._url, self._store = place, url, store
        self.stream = store.create(url)

    def close(self) -> int:
        with store_errors(self._url, self._place.storage_options):
            size: int = self.stream.tell()
            self.stream.close()
            return size

    def discard(self) -> None:
        with suppress(OSError, pa.ArrowException):
            self.stream.close()
        with suppress(OSError):
            self._store.remove(self._url)
