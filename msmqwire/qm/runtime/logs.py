"""Structured logs: one JSON object a line."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Final, TextIO

log: Final = logging.getLogger("msmqwire.qm")
logging.getLogger("msmqwire").addHandler(
    logging.NullHandler()
)  # silent unless the program configures logging
_RECORD_ATTRIBUTES: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}


class JsonLines(logging.Formatter):
    """Formats a record as a line of JSON: time, level, event and the items of `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC)
        entry: dict[str, object] = {
            "time": time.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        entry.update((key, value) for key, value in vars(record).items() if key not in _RECORD_ATTRIBUTES)
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)


def begin(level: str = "info", stream: TextIO | None = None) -> None:
    """Send the logs of msmqwire from a level on (debug, info, warning, error) to standard error."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger("msmqwire")
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    root.propagate = False
