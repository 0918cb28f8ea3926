"""The functions that test files ran in earlier runs: build/near/map.json."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

FOLDER = "build/near"
MAP = f"{FOLDER}/map.json"
IMPORTS = f"{FOLDER}/imports.json"


@dataclass
class Record:
    """A run of all tests of a file."""

    seconds: float = 0.0
    stamp: list[int] = field(default_factory=list)
    """The time and the size of the test file when it was run."""
    functions: dict[str, int] = field(default_factory=dict)
    """The number of functions run, by source file."""

    @property
    def total(self) -> int:
        """The total number of functions run."""
        return sum(self.functions.values())


def stamp_of(path: Path) -> list[int]:
    """The properties that change when a file is written."""
    stat = path.stat()
    return [stat.st_mtime_ns, stat.st_size]


def load(root: Path) -> dict[str, Record]:
    """The records of test files that have not changed since."""
    found = {}
    for test, kept in _kept(root).items():
        path = root / test
        if path.is_file() and kept["stamp"] == stamp_of(path):
            found[test] = Record(**kept)
    return found


def add(root: Path, records: Mapping[str, Record]) -> None:
    """Keep records together with those of other test files."""
    kept = {test: one for test, one in _kept(root).items() if (root / test).is_file()}
    kept |= {test: asdict(record) for test, record in records.items()}
    path = root / MAP
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(kept, sort_keys=True), encoding="utf-8")
    part.replace(path)


def _kept(root: Path) -> dict[str, dict]:
    path = root / MAP
    if path.is_file():
        with suppress(ValueError):  # another version's: as if there were none
            return dict(json.loads(path.read_text(encoding="utf-8")))
    return {}
