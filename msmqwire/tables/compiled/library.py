"""The library of compiled functions that was built ahead of time: where it is, and whether it may be used.

It stands beside the folder of the compiled functions. It is machine code, so it is not loaded if somebody
else can have put it there, and its stamp says from which sources and constants it was built. From an archive,
as Spark ships them to executors, it can't be loaded: it is extracted to a folder that nobody else can write.
"""

from __future__ import annotations

import ctypes
import os
import pkgutil
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from enum import Enum
from hashlib import sha256
from importlib import import_module
from importlib.resources import files
from importlib.resources.abc import Traversable
from operator import itemgetter
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np

from msmqwire.durable import new_content
from msmqwire.tables.compiled.calling import reads_arrays

FOLDER: Final = Path(__file__).resolve().parents[1]
NAME: Final = "_reader" + {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so")
_PACKAGE: Final = __package__
_PACKED: Final = files(_PACKAGE.rpartition(".")[0]) / NAME
"""The library beside the package, or in its archive."""
_OWN: Final = next(path for path in (Path(__file__), *Path(__file__).parents) if path.exists())
"""This module, or the archive that it is in."""
_NOT_STAMPED: Final = frozenset({"engine", "library"})
"""Modules that make no difference to the library."""
_STAMP_SIZE: Final = 64
SYMBOL: Final = "msmqwire_"
"""How the names of what the library exports begin."""


class Refused(Exception):
    """The library is not used; the text says why."""


def modules() -> list[ModuleType]:
    """Return all modules that may have compiled functions, imported."""
    package = import_module(_PACKAGE)
    found = pkgutil.walk_packages(package.__path__, f"{_PACKAGE}.")
    return [import_module(name) for name in sorted(module.name for module in found)]


def stamp() -> str:
    """Return a digest of all on which the library depends.

    These are the sources of the compiled functions, and the constants of their modules, many of which come
    from other modules: that these change otherwise does not matter.
    """
    digest = sha256()
    for name, source in sorted(_sources(files(_PACKAGE)), key=itemgetter(0)):
        content = source.read_bytes().replace(b"\r\n", b"\n")  # as checked out on any system
        digest.update(f"{name} {sha256(content).hexdigest()}\n".encode())
    for module in modules():
        if module.__name__.rpartition(".")[2] in _NOT_STAMPED:
            continue
        for name, value in sorted(vars(module).items()):
            for constant, text in _constants(name, value):
                digest.update(f"{module.__name__} {constant} {text}\n".encode())
    return digest.hexdigest()


def _sources(folder: Traversable, inside: str = "") -> Iterator[tuple[str, Traversable]]:
    """Yield the sources in a folder of the package that are stamped, with their paths in it."""
    for source in folder.iterdir():
        if source.is_dir():
            yield from _sources(source, f"{inside}{source.name}/")
        elif source.name.endswith(".py") and source.name.removesuffix(".py") not in _NOT_STAMPED:
            yield f"{inside}{source.name}", source


def _constants(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield the constants that are in a global of a module, by name: those of a module of ours, or itself."""
    if name.startswith("__"):
        return
    if isinstance(value, ModuleType) and value.__name__.startswith("msmqwire."):
        members = vars(value).items()
        found = [(f"{name}.{inner}", _text(member)) for inner, member in members if inner[:2] != "__"]
    else:
        found = [(name, _text(value))]
    yield from sorted((constant, text) for constant, text in found if text is not None)


def _text(value: Any) -> str | None:
    """Return a constant as text that is the same in each process; None for anything else."""
    if isinstance(value, Enum):
        return _text(value.value)
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return repr(value)
    if isinstance(value, np.generic | np.ndarray):
        return f"{value.dtype}{value.tolist()}"
    if isinstance(value, Mapping):
        pairs = [(_text(key), _text(item)) for key, item in value.items()]
        return None if any(None in pair for pair in pairs) else repr(sorted(map(repr, pairs)))
    if isinstance(value, list | tuple | set | frozenset):
        texts = [_text(item) for item in value]
        if None in texts:
            return None
        return repr(texts if isinstance(value, list | tuple) else sorted(map(repr, texts)))
    return None


def is_there() -> bool:
    """Whether the package has the library, which may be too old or made for another system."""
    return _PACKED.is_file()


def place() -> Path:
    """Return where the library is, or would be; out of an archive it is extracted first. Raises Refused."""
    if FOLDER.is_dir() or not is_there():
        return FOLDER / NAME
    content = _PACKED.read_bytes()
    name = f"{sha256(content).hexdigest()}{NAME}"
    tried = list[str]()
    for folder in _private_folders():
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _check_owners(folder)
            path = folder / name
            if not path.exists():
                with new_content(path) as stream:
                    stream.write(content)
            return path
        except (OSError, Refused) as exc:
            tried.append(str(exc))
    raise Refused(f"it can't be extracted: {'; '.join(tried)}")


def _private_folders() -> Iterator[Path]:
    """Yield the folder of this user's caches, and one for a user without a home."""
    caches = {"darwin": ("", "Library/Caches"), "win32": ("LOCALAPPDATA", "AppData/Local")}
    variable, usual = caches.get(sys.platform, ("XDG_CACHE_HOME", ".cache"))
    with suppress(RuntimeError):  # no home
        yield Path(os.environ.get(variable) or Path.home() / usual) / "msmqwire"
    user = "" if sys.platform == "win32" else f"-{os.geteuid()}"
    yield Path(tempfile.gettempdir()) / f"msmqwire{user}"


def load(path: Path) -> tuple[ctypes.CDLL, ctypes.CDLL]:
    """Load the library, once for calls that let other threads run and once for those that do not.

    Raises Refused.
    """
    try:
        _check_owners(path.parent.resolve(strict=True))  # who can write there can put a link in its place
        path = path.resolve(strict=True)
        _check_owners(path)
        library, keeping = ctypes.CDLL(str(path)), ctypes.PyDLL(str(path))
        built = (ctypes.c_char * _STAMP_SIZE).in_dll(library, f"{SYMBOL}stamp").raw.decode("latin-1")
    except (OSError, ValueError) as exc:
        raise Refused(f"it can't be loaded: {exc}") from exc
    if not library.msmqwire_runs_here():
        raise Refused("it was built for another processor")
    if built != stamp():
        raise Refused("it was built from other sources")
    if not reads_arrays():
        raise Refused("this Python or numpy has other arrays than it can read")
    return library, keeping


def _check_owners(path: Path) -> None:
    """Raise Refused if others than root, this user and the owner of this module can write there."""
    if sys.platform == "win32":
        return
    # Of the same numbers are the groups of one user alone; on macOS the group of administrators may do all.
    trusted = {0, os.geteuid(), _OWN.stat().st_uid}
    groups = trusted | ({80} if sys.platform == "darwin" else set())
    for place in (path, *path.parents):
        status = place.stat()
        is_shared = place != path and status.st_mode & stat.S_ISVTX  # each may remove only what is theirs
        if status.st_uid not in trusted:
            raise Refused(f"others can write {place}")
        by_group = status.st_mode & stat.S_IWGRP and status.st_gid not in groups
        if (by_group or status.st_mode & stat.S_IWOTH) and not is_shared:
            raise Refused(f"others can write {place}")
