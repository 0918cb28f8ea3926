"""The stamp of the compile cache covers every source whose values are compiled in."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from msmqwire.columnar.compiled import compile_cache
from msmqwire.columnar.compiled.compile_cache import archive_stamp, source_stamp, stamped_sources
from tests.support.paths import ROOT
from tests.unit.test_floors import imports

PACKAGE = ROOT / "msmqwire"


def sources_of(path: Path) -> Iterator[Path]:
    """The files of msmqwire that a module imports from; for a name of a package, its ``__init__``."""
    for _, name in imports(path.read_text(encoding="utf-8"), path.relative_to(ROOT)):
        parts = name.split(".")
        for count in range(len(parts) if parts[0] == "msmqwire" else 0, 0, -1):
            base = ROOT.joinpath(*parts[:count])
            if (source := base.with_suffix(".py")).is_file() or (source := base / "__init__.py").is_file():
                yield source
                break


def import_closure() -> set[Path]:
    """All files from which the modules under ``columnar/compiled`` import, directly or not."""
    todo = list((PACKAGE / "columnar" / "compiled").glob("*.py"))
    closure = set(todo)
    while todo:
        imported = set(sources_of(todo.pop())) - closure
        closure |= imported
        todo += imported
    return closure


def test_every_source_of_compiled_code_is_stamped() -> None:
    closure = import_closure()
    assert {PACKAGE / "capture" / "tcp.py", PACKAGE / "headers" / "base.py"} < closure
    missing = closure - set(stamped_sources())
    assert not missing, f"give compile_cache._STAMPED the parts of {sorted(missing)}"


@pytest.mark.parametrize(
    "name",
    ["capture/tcp.py", "dissection/finder.py", "columnar/compiled/scan.py", "ping/__init__.py", "packets.py"],
)
def test_a_changed_source_changes_the_stamp(name: str, tmp_path: Path) -> None:
    copy = shutil.copytree(PACKAGE, tmp_path / "msmqwire", ignore=shutil.ignore_patterns("__pycache__"))
    stamp = source_stamp(stamped_sources(copy))
    path = copy / name
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    later = source_stamp(stamped_sources(copy))
    with path.open("a") as source:
        source.write("\n")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert len({stamp, later, source_stamp(stamped_sources(copy))}) == 3


def pack(archive: Path, folder: str = "", **changed: bytes) -> Path:
    """Pack the package, with other contents of some modules, into an archive."""
    with zipfile.ZipFile(archive, "w") as opened:
        for path in PACKAGE.rglob("*.py"):
            content = changed.get(path.stem, path.read_bytes())
            opened.writestr(f"{folder}msmqwire/{path.relative_to(PACKAGE).as_posix()}", content)
        opened.writestr(f"{folder}msmqwire/notes.txt", changed.get("notes", b""))
    return archive


def test_an_archive_is_known_by_the_sources_in_it(tmp_path: Path) -> None:
    first = archive_stamp(pack(tmp_path / "first.zip"))
    assert archive_stamp(pack(tmp_path / "second.zip")) == first, "its times do not matter"
    assert archive_stamp(pack(tmp_path / "third.zip", notes=b"text", coordinator=b"\n")) == first
    assert archive_stamp(pack(tmp_path / "fourth.zip", packets=b"\n")) != first
    assert archive_stamp(pack(tmp_path / "fifth.zip", finder=b"\n")) != first


@pytest.mark.parametrize("folder", ["", "lib/site-packages/"])
def test_the_sources_of_an_archive_are_those_of_a_tree(folder: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(pack(tmp_path / "package.zip", folder)) as opened:
        found = {name for name in opened.namelist() if compile_cache._SOURCES.search(name)}
    assert found == {f"{folder}msmqwire/{path.relative_to(PACKAGE).as_posix()}" for path in stamped_sources()}


PROGRAM = """
from msmqwire.columnar.compiled.engine import chosen
chosen()
from msmqwire.columnar.compiled.scan import scan
print(scan._cache._impl.locator.get_source_stamp())
"""


def test_compiled_functions_bear_the_stamp(tmp_path: Path) -> None:
    copy = shutil.copytree(PACKAGE, tmp_path / "msmqwire", ignore=shutil.ignore_patterns("__pycache__"))

    def stamp() -> str:
        run = subprocess.run(
            [sys.executable, "-c", PROGRAM], cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(tmp_path), "MSMQWIRE_ENGINE": "numba"},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        return run.stdout

    before = stamp()
    os.utime(copy / "capture" / "tcp.py", ns=(1, 1))
    assert stamp() != before
