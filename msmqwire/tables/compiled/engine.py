"""Which engine reads captures: the library that was built ahead of time, else Python.

Without the library the compiled functions are called as they are, which is slow, and whole captures are read
packet by packet: see `msmqwire.tables.portable`. The rows are the same.

The first call of one decides it, for the process. `msmqwire.tables.compiled.library` says when the library
is used. The variable MSMQWIRE_ENGINE, with the name of an engine, chooses that one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from threading import RLock
from typing import Any, Final, NamedTuple

import numpy as np

from msmqwire.errors import InvalidArgument
from msmqwire.tables.compiled.calling import Checked, CheckedEachTime, caller
from msmqwire.tables.compiled.decorators import EXPORTED, Exported
from msmqwire.tables.compiled.library import FOLDER, NAME, SYMBOL, Refused, is_there, load, modules, place

LIBRARY: Final = "library"
PORTABLE: Final = "portable"
INTERPRETED: Final = "interpreted"
"""As PORTABLE, but whole captures too are read by the compiled functions as they are: for tests, since each
index is checked."""
_IN_PYTHON: Final = {
    PORTABLE: "the portable reader, in Python",
    INTERPRETED: "the compiled functions, interpreted",
}
_ALL: Final = (LIBRARY, PORTABLE, INTERPRETED)
VARIABLE: Final = "MSMQWIRE_ENGINE"
MANY_ROWS: Final = 10_000
"""About two seconds of the portable reader."""
SLOW: Final = (
    "captures are read by the portable reader; the compiled one is 20 to 50 times as fast: "
    "`make native` builds it in a checkout, and platform wheels have it"
)


class Engine(NamedTuple):
    """An engine.

    Attributes:
        name: LIBRARY, PORTABLE or INTERPRETED.
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

    log = logging.getLogger("msmqwire.tables")
    wanted = os.environ.get(VARIABLE, "")
    if wanted not in ("", *_ALL):
        raise InvalidArgument(f"{wanted!r:.40} is no engine: it can be {', '.join(_ALL)}", path=VARIABLE)
    path, engine = FOLDER / NAME, None
    modules()
    if wanted == LIBRARY or (wanted == "" and is_there()):
        try:
            path = place()
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
        for entry in EXPORTED:
            _interpret(entry)
        name = INTERPRETED if wanted == INTERPRETED else PORTABLE
        engine = Engine(name, _IN_PYTHON[name])
    log.debug("captures are read by %s", engine.about)
    return engine


def _interpret(entry: Exported) -> None:
    """Have a function called as it is."""
    entry.call = np.errstate(over="ignore")(entry.function)  # products of hashes wrap around
    entry.repeated = lambda: entry.call


def _use(entry: Exported, native: Any) -> None:
    """Have a function of the library called; what calls it is made when it is first needed."""

    @cache
    def maker() -> Callable[[Checked], Callable[..., Any]]:
        return caller(entry, native)

    def call_first(*arguments: Any) -> Any:
        entry.call = maker()(CheckedEachTime())
        return entry.call(*arguments)

    entry.call = call_first
    entry.repeated = lambda: maker()(Checked())


class SlowReading:
    """Says once in a process, when much has been read by the portable reader, that there is a faster one."""

    def __init__(self) -> None:
        self._rows, self._is_said = 0, False

    def add(self, rows: int) -> None:
        """Count rows that have been read."""
        self._rows += rows
        if self._rows >= MANY_ROWS and not self._is_said and chosen().name == PORTABLE:
            import logging

            self._is_said = True
            logging.getLogger("msmqwire.tables").warning(SLOW)


slow_reading: Final = SlowReading()
