"""Where compiled functions are kept, and when what was kept can be used again.

A compiled function has in it what it calls and the numbers that it uses, from other files too: it is good as
long as none of these sources has changed. An archive, as Spark ships it, has another path on each machine
and in each application, so that only its contents tell that.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Final, Self
from zipimport import zipimporter

from numba.core import config
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.misc.appdirs import AppDirs

_NAME: Final = "msmqwire"
_COMPILED: Final = ("columnar", "constants", "headers", "names", "ping", "schema")
"""The parts whose code or numbers get into compiled functions, beside the modules of the package itself."""


@cache
def _place_of(archive: str) -> tuple[str, str] | None:
    """A folder for what is compiled from an archive, and the digest of its contents; None where no
    folder can be written.

    It is in the folder NUMBA_CACHE_DIR, in the user's cache, or beside the archive.
    """
    digest = sha256(Path(archive).read_bytes()).hexdigest()
    dirs: Any = AppDirs
    user = config.CACHE_DIR or dirs(appname="numba", appauthor=False).user_cache_dir  # type: ignore[attr-defined]
    for folder in (user, os.path.dirname(archive)):
        place = os.path.join(folder, f"{_NAME}-{digest[:32]}")
        try:
            os.makedirs(place, mode=0o700, exist_ok=True)
        except OSError:
            continue
        if os.access(place, os.W_OK):
            return place, digest
    return None


class _InArchive(_CacheLocator):
    """The place for a function whose source is in an archive."""

    def __init__(self, function: Callable[..., Any], place: str, digest: str) -> None:
        self._place, self._digest = place, digest
        self._function = f"{function.__module__}-{function.__code__.co_firstlineno}"

    def get_cache_path(self) -> str:
        return self._place

    def get_source_stamp(self) -> str:
        return self._digest

    def get_disambiguator(self) -> str:
        return self._function

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> Self | None:
        loader = getattr(sys.modules.get(py_func.__module__), "__loader__", None)
        if not isinstance(loader, zipimporter):
            return None
        place = _place_of(loader.archive)
        return None if place is None else cls(py_func, *place)


@cache
def _sources() -> str:
    """What tells one state of the sources that are compiled from another."""
    digest = sha256()
    root = Path(__file__).resolve().parents[2]
    paths = [*root.glob("*.py"), *(path for part in _COMPILED for path in root.glob(f"{part}/**/*.py"))]
    for path in sorted(paths):
        found = path.stat()
        digest.update(f"{path} {found.st_mtime_ns} {found.st_size}\n".encode())
    return digest.hexdigest()


class _BesideSource:
    """A place that numba has for a function whose source is a file, with the stamp of all sources."""

    def get_source_stamp(self) -> str:
        return _sources()


class _Kept(CompileResultCacheImpl):
    _locator_classes: ClassVar[list[Any]] = [  # type: ignore[misc]
        _InArchive,
        *(type(one.__name__, (_BesideSource, one), {}) for one in CompileResultCacheImpl._locator_classes),
    ]


class KeptCache(FunctionCache):
    """The cache of a compiled function; raises RuntimeError where there is no place to keep it."""

    _impl_class = _Kept
