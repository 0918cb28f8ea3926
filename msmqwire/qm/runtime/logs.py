"""Structured logs: one JSON object a line, or text for people."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Final, TextIO

log: Final = logging.getLogger("msmqwire.qm")
logging.getLogger("msmqwire").addHandler(logging.NullHandler())  # silent unless the program wants it
_PLAIN: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}


class JsonLines(logging.Formatter):
    """Each record as a line of JSON: time, level, event, and what `extra` has."""

    def format(self, record: logging.LogRecord) -> str:
        when = datetime.fromtimestamp(record.created, UTC)
        entry: dict[str, object] = {
            "time": when.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        entry.update((key, value) for key, value in vars(record).items() if key not in _PLAIN)
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)


def begin(level: str = "info", stream: TextIO | None = None) -> None:
    """Send the logs of msmqwire to standard error, from a level on: debug, info, warning or error."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger("msmqwire")
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    root.propagate = False
