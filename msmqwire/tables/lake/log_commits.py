"""The commits that the log of a lake still has, each with what it says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from msmqwire.errors import LakeDamaged
from msmqwire.tables.lake.entries import LOG
from msmqwire.tables.lake.place import Place

_NAME: Final = re.compile(r"[0-9]{20}\.json")


class LogCommit(NamedTuple):
    """A commit.

    Attributes:
        version: the version that it has made.
        time_ms: when it was made, in milliseconds since 1970: as it says, else by its file.
        info: what it says of itself; empty if it says nothing.
        removed: the paths, as the log writes them, of the files that it has removed.
    """

    version: int
    time_ms: int
    info: dict[str, Any]
    removed: list[str]


def log_commits(place: Place, *, since_ms: int | None = None) -> Iterator[LogCommit]:
    """Yield the commits of a lake that are files of their own in its log, the last one first.

    Args:
        place: where the lake is.
        since_ms: leave out those whose files are older, and the paths of removed files of all if it is None.

    Raises:
        LakeDamaged: the log is broken.
        OSError: it can't be read.
    """
    found = sorted((file for file in place.found(LOG) if _NAME.fullmatch(_name(file.path))), reverse=True)
    for file in found:
        if since_ms is not None and file.mtime_ns // 1_000_000 < since_ms:
            continue
        info, removed = dict[str, Any](), list[str]()
        for line in place.read(file.path).splitlines():
            # Lines of files that were added are most of a log, and need no look.
            if b'"commitInfo"' in line[:16]:
                info = _member(line, "commitInfo", place.full(file.path))
            elif since_ms is not None and b'"remove"' in line[:16]:
                path = _member(line, "remove", place.full(file.path)).get("path")
                removed += [path] if isinstance(path, str) else []
        time_ms = info.get("timestamp")
        if not isinstance(time_ms, int) or not 0 <= time_ms < 1 << 47:
            time_ms = file.mtime_ns // 1_000_000
        yield LogCommit(int(_name(file.path)[:20]), time_ms, info, removed)


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _member(line: bytes, name: str, file: str) -> dict[str, Any]:
    try:
        value = json.loads(line)[name]
    except (ValueError, KeyError, TypeError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise LakeDamaged(f"the log is damaged: no {name}", file=file)
    return value
