"""Structured logs: one JSON object a line."""

from __future__ import annotations

import json
import logging
import sys
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, TextIO

log: Final = logging.getLogger("msmqwire.qm")
logging.getLogger("msmqwire").addHandler(
    logging.NullHandler()
)  # silent unless the program configures logging
_RECORD_ATTRIBUTES: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}
ASYNCIO: Final = "asyncio"
KINDS_MAX: Final = 256
"""Limit of kinds of events that are counted."""
RECENT_MAX: Final = 1000
"""Limit of log lines that `RecentRecords` keeps."""
_INTERVAL_S: Final = 1.0
_TEXT_MAX: Final = 4000


class JsonLines(logging.Formatter):
    """Formats a record as a line of JSON: time, level, event and the items of `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        return json.dumps(self.entry(record), default=str)

    def entry(self, record: logging.LogRecord) -> dict[str, object]:
        """Return the items of the line of a record."""
        time = datetime.fromtimestamp(record.created, UTC)
        entry: dict[str, object] = {
            "time": time.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        entry.update((key, value) for key, value in vars(record).items() if key not in _RECORD_ATTRIBUTES)
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return entry


@dataclass(slots=True)
class _Kind:
    logged: float
    suppressed: int = 0


class OncePerSecond(logging.Filter):
    """Lets one record of a kind pass in a second, so that no peer can fill the log.

    The next one that passes has the number of suppressed ones, as `suppressed`. All records for debugging
    pass.
    """

    def __init__(self) -> None:
        super().__init__()
        self._kinds: dict[tuple[str, str], _Kind] = {}  # in the order in which they were last logged

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno <= logging.DEBUG:
            return True
        # The texts of asyncio differ from object to object.
        key = record.name, "" if record.name == ASYNCIO else str(record.msg)
        kind = self._kinds.get(key)
        if kind is not None and 0 <= record.created - kind.logged < _INTERVAL_S:
            kind.suppressed += 1
            return False
        if kind is not None and kind.suppressed:
            record.suppressed = kind.suppressed
        self._kinds.pop(key, None)
        self._kinds[key] = _Kind(record.created)
        if len(self._kinds) > KINDS_MAX:
            del self._kinds[next(iter(self._kinds))]
        return True


class RecentRecords(logging.Handler):
    """Keeps the latest lines of the log, for readers of the log through the server.

    Attributes:
        last: the number of the latest line; the first one has 1.
    """

    def __init__(self) -> None:
        super().__init__()
        self._lines = JsonLines()
        self._kept: deque[tuple[int, int, dict[str, object]]] = deque(maxlen=RECENT_MAX)
        self.last = 0
        self.addFilter(OncePerSecond())

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record; its long texts are truncated."""
        entry = {key: _short(value) for key, value in self._lines.entry(record).items()}
        self.last += 1
        self._kept.append((self.last, record.levelno, entry))

    def after(self, number: int, level: int, count: int) -> list[dict[str, object]]:
        """Return the latest lines of a level or above after a line number, in order, at most `count`."""
        found: list[dict[str, object]] = []
        for at, levelno, entry in reversed(self._kept):
            if at <= number or len(found) >= count:
                break
            if levelno >= level:
                found.append({"number": at, **entry})
        return found[::-1]


def _short(value: object) -> object:
    if value is None or isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= _TEXT_MAX else f"{text[:_TEXT_MAX]}…"


def begin(level: str = "info", stream: TextIO | None = None) -> None:
    """Send the logs of msmqwire from a level on (debug, info, warning, error) to standard error.

    Reports of asyncio, such as unhandled errors, go there in the same form.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    handler.addFilter(OncePerSecond())
    for name, least in (("msmqwire", level.upper()), (ASYNCIO, "WARNING")):
        root = logging.getLogger(name)
        root.handlers[:] = [handler]
        root.setLevel(least)
        root.propagate = False
