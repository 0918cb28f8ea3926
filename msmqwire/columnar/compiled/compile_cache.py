"""The on-disk cache of compiled functions, and the stamp that invalidates it.

A compiled function contains the functions that it calls and the constants that it uses, from other files too:
a cached one is valid as long as none of these sources has changed. An archive, as Spark ships it, has another
path on each machine and in each application, so it is identified by the contents of these sources.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Final, Self
from zipfile import ZipFile
from zipimport import zipimporter

from numba.core import config
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.misc.appdirs import AppDirs

_NAME: Final = "msmqwire"
_ROOT: Final = Path(__file__).resolve().parents[2]
_STAMPED: Final = (
    "capture",
    "columnar/compiled",
    "constants",
    "crypto",
    "display",
    "dissection",
    "headers",
    "lint",
    "names",
    "netware",
    "pgm",
    "ping",
    "remote_read",
    "rpc",
    "schema",
    "srmp",
)
"""The parts from which compiled functions take code or constants, directly or through what those import;
besides them the modules of the package itself."""
_SOURCES: Final = re.compile(rf"(?:^|/){_NAME}/(?:[^/]+|(?:{'|'.join(_STAMPED)})/.+)\.py$")
"""The names of such sources in an archive, which may have the package in a folder."""


def archive_stamp(archive: str | Path) -> str:
    """Return a digest of the sources in an archive on which compiled functions depend, whatever their times.

    Raises zipfile.BadZipFile and OSError.
    """
    digest = sha256()
    with ZipFile(archive) as opened:
        for entry in sorted(opened.infolist(), key=lambda entry: entry.filename):
            if _SOURCES.search(entry.filename):
                digest.update(f"{entry.filename} {entry.CRC} {entry.file_size}\n".encode())
    return digest.hexdigest()


@cache
def _archive_folder(archive: str) -> tuple[str, str] | None:
    """Return the cache folder for an archive and the digest of its sources; None if none can be written.

    The folder is in NUMBA_CACHE_DIR, else in the user's cache, else beside the archive.
    """
    digest = archive_stamp(archive)
    dirs: Any = AppDirs
    user = config.CACHE_DIR or dirs(appname="numba", appauthor=False).user_cache_dir  # type: ignore[attr-defined]
    for parent in (user, os.path.dirname(archive)):
        folder = os.path.join(parent, f"{_NAME}-{digest[:32]}")
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return folder, digest
    return None


class _ArchiveLocator(_CacheLocator):
    """The cache location of a function whose source is in an archive."""

    def __init__(self, function: Callable[..., Any], folder: str, digest: str) -> None:
        self._folder, self._digest = folder, digest
        self._function = f"{function.__module__}-{function.__code__.co_firstlineno}"

    def get_cache_path(self) -> str:
        return self._folder

    def get_source_stamp(self) -> str:
        return self._digest

    def get_disambiguator(self) -> str:
        return self._function

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> Self | None:
        loader = getattr(sys.modules.get(py_func.__module__), "__loader__", None)
        if not isinstance(loader, zipimporter):
            return None
        location = _archive_folder(loader.archive)
        return None if location is None else cls(py_func, *location)


def stamped_sources(root: Path = _ROOT) -> list[Path]:
    """Return the source files on which compiled functions depend."""
    return sorted([*root.glob("*.py"), *(path for part in _STAMPED for path in root.glob(f"{part}/**/*.py"))])


def source_stamp(paths: Iterable[Path]) -> str:
    """Return a digest of the paths, times and sizes of files."""
    digest = sha256()
    for path in paths:
        status = path.stat()
        digest.update(f"{path} {status.st_mtime_ns} {status.st_size}\n".encode())
    return digest.hexdigest()


@cache
def _package_stamp() -> str:
    return source_stamp(stamped_sources())


class _SourceLocator:
    """Mixin that stamps a cache file with the state of all sources, not only that of the function."""

    def get_source_stamp(self) -> str:
        return _package_stamp()


class _StampedImpl(CompileResultCacheImpl):
    _locator_classes: ClassVar[list[Any]] = [  # type: ignore[misc]
        _ArchiveLocator,
        *(
            type(locator.__name__, (_SourceLocator, locator), {})
            for locator in CompileResultCacheImpl._locator_classes
        ),
    ]


class StampedCache(FunctionCache):
    """The on-disk cache of a compiled function; raises RuntimeError if no folder can be written."""

    _impl_class = _StampedImpl
