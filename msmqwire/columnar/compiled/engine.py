"""Which engine runs the compiled functions: the library that was built ahead of time, else numba.

The first call of one decides it, for the process. `msmqwire.columnar.compiled.library` says when the library
is used. The variable MSMQWIRE_ENGINE, with the name of an engine, chooses that one.
"""

from __future__ import annotations

import os
from functools import cache
from threading import RLock
from typing import Any, Final, NamedTuple

from msmqwire.columnar.compiled.calling import caller
from msmqwire.columnar.compiled.decorators import EXPORTED, Exported
from msmqwire.columnar.compiled.library import FOLDER, NAME, SYMBOL, Refused, load, modules
from msmqwire.errors import InvalidArgument

LIBRARY: Final = "library"
NUMBA: Final = "numba"
VARIABLE: Final = "MSMQWIRE_ENGINE"


class Engine(NamedTuple):
    """An engine.

    Attributes:
        name: LIBRARY or NUMBA.
        about: what it is, in words.
    """

    name: str
    about: str


_LOCK: Final = RLock()


def chosen() -> Engine:
    """Choose the engine, if that has not been done, and return it.

    Raises InvalidArgument if the variable names no engine, or the library that it asks for can't be used.
    """
    with _LOCK:
        return _choose()


@cache
def _choose() -> Engine:
    import logging

    log = logging.getLogger("msmqwire.columnar")
    wanted = os.environ.get(VARIABLE, "")
    if wanted not in ("", LIBRARY, NUMBA):
        raise InvalidArgument(f"{wanted!r:.40} is no engine: it can be {LIBRARY} or {NUMBA}", path=VARIABLE)
    path = FOLDER / NAME
    engine = None
    if wanted != NUMBA and (wanted == LIBRARY or path.exists()):
        try:
            modules()
            library, keeping = load(path)
            for entry in EXPORTED:
                shared = keeping if entry.options.keeps_lock else library
                _use(entry, getattr(shared, SYMBOL + entry.name))
            engine = Engine(LIBRARY, f"the library {path}")
        except Refused as refused:
            if wanted == LIBRARY:
                raise InvalidArgument(f"{path}: {refused}", path=VARIABLE) from refused
            log.warning("%s is not used: %s; `make native` builds it", path, refused)
    if engine is None:
        from msmqwire.columnar.compiled.with_numba import compile_with_numba

        compile_with_numba(modules())
        engine = Engine(NUMBA, "functions that numba compiles when they are first called")
    log.debug("captures are read by %s", engine.about)
    return engine


def _use(entry: Exported, native: Any) -> None:
    """Have a function of the library called; what calls it is made when it is first called."""

    def call_first(*arguments: Any) -> Any:
        entry.call = caller(entry, native)
        return entry.call(*arguments)

    entry.call = call_first
