"""Where compiled functions are kept when the library is imported from an archive, as Spark ships it.

The archive has another path on each machine and in each application, so that only its contents tell
whether what was compiled once can be used again.
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


class _Kept(CompileResultCacheImpl):
    _locator_classes: ClassVar[list[Any]] = [_InArchive]  # type: ignore[misc]


class ArchiveCache(FunctionCache):
    """The cache of a function whose source is in an archive; raises RuntimeError for any other."""

    _impl_class = _Kept
