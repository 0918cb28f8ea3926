"""docs/lake.md: its examples run, and print what the page shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import msmqwire
from tests.support.installed import library
from tests.support.paths import ROOT
from tests.support.patience import limit

PAGE = (ROOT / "docs" / "lake.md").read_text(encoding="utf-8")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def blocks(language: str) -> list[str]:
    """The examples in a language, without those that take a session of Spark."""
    found = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return [block for block in found if "spark" not in block]


def run(folder: Path, *command: str) -> str:
    """What a command prints on both streams."""
    ran = subprocess.run(
        command, cwd=folder, env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=limit(600), check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout
    return ran.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the sessions of the page have been typed, in their order."""
    folder = tmp_path_factory.mktemp("docs")
    (folder / "examples").symlink_to(ROOT / "examples")
    for session in blocks("console"):
        for step in session.removeprefix("$ ").split("\n$ "):
            command, _, output = step.strip().partition("\n")
            typed = re.sub("^msmqwire ", f"'{sys.executable}' -m msmqwire ", command)
            assert run(folder, "sh", "-c", typed).strip() == output, command
    return folder


def example(*words: str) -> str:
    """The one example of Python with these words."""
    (found,) = (block for block in blocks("python") if all(word in block for word in words))
    return found


def test_sessions(folder: Path) -> None:
    assert {path.name for path in folder.iterdir()} == {"captures", "exact", "examples", "judged", "lake"}


def test_a_program_that_writes(folder: Path) -> None:
    (folder / "program.py").write_text(example("write_lake"))
    assert run(folder, sys.executable, "program.py") == "70 ()\n"
    assert msmqwire.read_lake(folder / "by-kind").count_rows() == 70


def test_readers_of_this_environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    names = ["time", "label"]
    assert last_value(example("pyarrow.dataset.field")).column_names == names
    library("pandas")
    frame = last_value(example("to_pandas"))
    assert (list(frame.columns), len(frame)) == (names, kinds(folder, None).total())


@pytest.fixture(params=["kind", "destination"])
def partitioned(request: pytest.FixtureRequest, folder: Path, tmp_path: Path) -> Path:
    """A folder with a lake that is partitioned by this column too."""
    msmqwire.write_lake(folder / "captures", tmp_path / "lake", by=request.param)
    return tmp_path


def test_duckdb(folder: Path, partitioned: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library("duckdb")
    monkeypatch.chdir(partitioned)
    assert dict(last_value(example("duckdb.sql")).fetchall()) == kinds(folder)


def test_polars(folder: Path, partitioned: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library("polars")
    monkeypatch.chdir(partitioned)
    rows = last_value(example("scan_delta"))
    assert set(rows["kind"]) == {"UserMessage"}
    assert rows.height == kinds(folder, None)["UserMessage"]


def test_deltalake(folder: Path, partitioned: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(partitioned)
    rows = pa.table(last_value(example("QueryBuilder")).read_all())
    assert dict(zip(*(column.to_pylist() for column in rows.columns), strict=True)) == kinds(folder, None)


def kinds(folder: Path, day: str | None = "2026-03-01") -> Counter[str]:
    """How many packets of each kind the captures have, on a day."""
    table = msmqwire.read_capture(folder / "captures", columns=["time", "kind"])
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return Counter(kind for time, kind in rows if day in (None, f"{time:%Y-%m-%d}"))


def last_value(source: str) -> Any:
    """Run an example; return the value of its last line."""
    *statements, last = source.strip().splitlines()
    names: dict[str, Any] = {}
    exec("\n".join(statements), names)
    return eval(last, names)
