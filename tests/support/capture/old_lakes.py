"""Lakes that an earlier version has made, with a manifest in place of a log."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

from msmqwire.tables.lake.manifest import FORMAT
from tests.support.paths import VECTORS

NAMES = ("by_date", "by_queue", "exact", "interrupted")
SPLIT = 4000
"""The bytes of a part when they were made."""


class OldLake(NamedTuple):
    """A lake of an earlier version.

    Attributes:
        folder: where it is.
        captures: its captures.
        options: the settings of a run of it.
    """

    folder: Path
    captures: list[Path]
    options: dict[str, Any]

    @property
    def manifest(self) -> Path:
        return self.folder / "_lake" / "manifest.json"

    def data(self) -> Any:
        """The JSON of the manifest."""
        return json.loads(self.manifest.read_text())

    def contents(self) -> dict[str, tuple[bytes, int]]:
        """All files with their contents and modes."""
        return {
            str(path.relative_to(self.folder)): (path.read_bytes(), path.stat().st_mode)
            for path in self.folder.rglob("*")
            if path.is_file()
        }


def old_lake(folder: Path, name: str, lake_name: str = "lake") -> OldLake:
    """Unpack one of `NAMES` into a folder, with its captures."""
    lake, captures = folder / lake_name, folder / "captures"
    for archive, target in (("captures", captures), (name, lake)):
        with zipfile.ZipFile(VECTORS / "lakes" / f"{archive}.zip") as packed:
            packed.extractall(target)
    manifest = lake / "_lake" / "manifest.json"
    data = json.loads(manifest.read_text().replace('"/captures/', json.dumps(f"{captures}/")[:-1]))
    assert data["msmqwire_lake"] == FORMAT
    manifest.write_text(json.dumps(data))
    for capture in data["captures"]:
        os.utime(capture["path"], ns=(capture["mtime_ns"],) * 2)
    options: dict[str, Any] = {"split_size": SPLIT}
    options |= {"by": "destination"} if name == "by_queue" else {}
    options |= {"splits": "exact"} if name == "exact" else {}
    return OldLake(lake, [Path(capture["path"]) for capture in data["captures"]], options)
