"""The history of a lake: its versions, and what has made each of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from msmqwire.capture.stores import NO_OPTIONS, StorageOptions
from msmqwire.tables.lake.log_commits import LogCommit, log_commits
from msmqwire.tables.lake.place import lake_place
from msmqwire.tables.lake.table import open_table

_OURS: Final = "msmqwire"
_UNKNOWN: Final = "unknown"


@dataclass(frozen=True, slots=True)
class LakeVersion:
    """A version of a lake.

    Attributes:
        version: its number.
        time: when it was made.
        operation: what has made it: ``write``, ``compact``, ``delete`` and so on, or the operation of another
            program in its own word, as ``OPTIMIZE``.
        figures: how much that was: numbers by name.
    """

    version: int
    time: datetime
    operation: str
    figures: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values by name."""
        time = self.time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return {
            "version": self.version,
            "time": time,
            "operation": self.operation,
            "figures": dict(self.figures),
        }


def lake_history(
    path: str | os.PathLike[str], *, storage_options: StorageOptions = NO_OPTIONS
) -> list[LakeVersion]:
    """Return the versions of a lake that its log has, the last one first: those of some 30 days.

    Args:
        path: the folder, or its URL.
        storage_options: as for `msmqwire.dissect`.

    Raises:
        LakeMissing: the folder is not a lake.
        LakeMismatch: an earlier or a later version has made it.
        LakeDamaged: the log is broken.
        UnsupportedStore: the store can't be used.
        OSError: it can't be read.
    """
    place = lake_place(path, storage_options)
    place.check_files([])
    last = open_table(place).version
    return [_version(commit) for commit in log_commits(place) if commit.version <= last]


def _version(commit: LogCommit) -> LakeVersion:
    time = datetime.fromtimestamp(commit.time_ms / 1000, UTC)
    ours = commit.info.get(_OURS)
    if isinstance(ours, dict) and isinstance(ours.get("operation"), str):
        figures = {name: value for name, value in ours.items() if name != "operation"}
        return LakeVersion(commit.version, time, ours["operation"], figures)
    operation, metrics = commit.info.get("operation"), commit.info.get("operationMetrics")
    return LakeVersion(
        commit.version,
        time,
        operation if isinstance(operation, str) else _UNKNOWN,
        metrics if isinstance(metrics, dict) else {},
    )
