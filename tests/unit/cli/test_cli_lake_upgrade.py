"""``msmqwire lake --upgrade``: output and exit statuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import msmqwire
from msmqwire.cli import app
from tests.support.capture.lakes import expected_rows, named_rows
from tests.support.capture.old_lakes import OldLake, old_lake

RUNNER = CliRunner()


@pytest.fixture
def old(tmp_path: Path) -> OldLake:
    return old_lake(tmp_path, "interrupted")


def run(*arguments: object) -> tuple[int, str, str]:
    result = RUNNER.invoke(app, ["lake", *map(str, arguments)])
    return result.exit_code, result.stdout, result.stderr


def test_it_says_what_was_done(old: OldLake) -> None:
    upgrade = ("--out", old.folder, "--upgrade")
    assert run(*upgrade, "--dry-run") == (0, "a Delta table of 6 files with 28 rows would be made\n", "")
    assert old.manifest.exists()
    (old.folder / "_lake" / "notes").touch()
    status, output, errors = run(*upgrade)
    assert (status, output) == (0, "a Delta table of 6 files with 28 rows was made: version 0\n")
    assert json.loads(errors)["error"].startswith("_lake/notes: not of a lake")
    (old.folder / "_lake" / "notes").unlink()
    assert run(*upgrade) == (0, "nothing to do: the lake is a Delta table, at version 0\n", "")
    assert not (old.folder / "_lake").exists()
    assert named_rows(old.folder) == expected_rows(old.captures)
    done: dict[str, Any] = json.loads(run(*old.captures, "--out", old.folder, "--json")[1])
    assert (done["captures_read"], done["captures_unchanged"]) == (0, 3)


def test_json(old: OldLake) -> None:
    upgrade, figures = ("--out", old.folder, "--upgrade", "--json"), {"rows": 28, "files": 6, "left": []}
    assert json.loads(run(*upgrade, "--dry-run")[1]) == {
        "operation": "upgrade", "upgraded": True, "version": None, "dry_run": True, **figures
    }  # fmt: skip
    assert json.loads(run(*upgrade)[1]) == {
        "operation": "upgrade", "upgraded": True, "version": 0, "dry_run": False, **figures
    }  # fmt: skip
    assert json.loads(run(*upgrade)[1])["upgraded"] is False


@pytest.mark.parametrize("options", [["--history"], ["--compact"], ["--vacuum", "7d"], ["--retain", "1d"]])
def test_other_commands_name_the_upgrade(old: OldLake, options: list[str]) -> None:
    before = old.contents()
    status, output, errors = run("--out", old.folder, *options)
    assert (status, output) == (2, "")
    assert json.loads(errors)["error"].endswith(f"by msmqwire lake --out {old.folder} --upgrade")
    assert old.contents() == before


def test_wrong_usage_and_what_is_no_lake(old: OldLake, tmp_path: Path) -> None:
    for options in ([old.captures[0]], ["--by", "kind"], ["--compact"], ["--every", "3"]):
        assert run("--out", old.folder, "--upgrade", *options)[0] == 2
    assert old.data()["msmqwire_lake"] == 1
    assert run("--out", tmp_path / "none", "--upgrade")[0] == 66
    assert run("--out", "s3://bucket/lake", "--upgrade")[0] == 2
    old.manifest.write_text("{")
    assert run("--out", old.folder, "--upgrade")[0] == 65
    msmqwire.write_lake(old.captures, tmp_path / "new")
    assert run("--out", tmp_path / "new", "--upgrade")[0] == 0
