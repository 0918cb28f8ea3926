"""``msmqwire lake --compact`` and its like: output, exit statuses, and what is mistyped."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

import msmqwire
from msmqwire.cli import app
from msmqwire.cli.captures import lake_maintenance
from msmqwire.tables.lake import TARGET_SIZE
from tests.support.capture.lakes import all_files, delta_rows, files_of, named_rows, traffic, write_capture

RUNNER = CliRunner()
MESSAGES = "kind == 'UserMessage'"


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A lake of two captures of the same time."""
    captures = [write_capture(tmp_path / f"{n}.pcap", traffic(3, port=50_000 + n)) for n in range(2)]
    for number in range(2):
        msmqwire.write_lake(captures[: number + 1], tmp_path / "lake")
    return tmp_path / "lake"


def run(*arguments: object) -> tuple[int, str, str]:
    result = RUNNER.invoke(app, ["lake", *map(str, arguments)])
    return result.exit_code, result.stdout, result.stderr


def run_json(*arguments: object):
    status, output, errors = run(*arguments, "--json")
    assert (status, errors) == (0, "")
    return json.loads(output)


def error_of(*arguments: object) -> str:
    status, output, errors = run(*arguments)
    assert (status, output) == (2, "")
    assert errors.count("\n") == 1
    return json.loads(errors)["error"]


def test_compact(lake):
    rows, files = named_rows(lake), files_of(lake)
    size = sum(file.size for file in files)
    tried = run_json("--out", lake, "--compact", "--dry-run")
    assert tried == {
        "operation": "compact", "version": 1, "dry_run": True, "rows_deleted": 0, "files_removed": len(files),
        "files_added": 0, "bytes_removed": size, "bytes_added": 0,
    }  # fmt: skip
    assert run("--out", lake, "--compact", "--dry-run")[:2] == (
        0, f"{len(files)} files of {size:,} bytes would be merged\n",
    )  # fmt: skip
    assert files_of(lake) == files
    done = run_json("--out", lake, "--compact")
    (file,) = files_of(lake)
    assert done == {
        **tried, "version": 2, "dry_run": False, "files_added": 1, "bytes_added": file.size,
    }  # fmt: skip
    assert run("--out", lake, "--compact")[:2] == (0, "nothing to do: the lake stays at version 2\n")
    assert named_rows(lake) == delta_rows(lake) == rows


def test_the_target_size(lake):
    assert run_json("--out", lake, "--compact", "--target-size", 1)["files_removed"] == 2
    help_text = run("--help")[1]
    assert str(TARGET_SIZE) in help_text
    assert error_of("--out", lake, "--target-size", 5) == "goes with --compact"
    assert run("--out", lake, "--compact", "--target-size", 0)[0] == 2
    assert run("--out", lake, "--compact", "--target-size", "1MB")[0] == 2


def test_delete_where(lake):
    assert run("--out", lake, "--delete-where", MESSAGES, "--dry-run")[1].startswith(
        "6 rows would be deleted from 2 files of "
    )
    assert sum(named_rows(lake).values()) == 10
    status, output, _ = run("--out", lake, "--delete-where", MESSAGES)
    assert status == 0
    assert output.startswith("6 rows deleted, 2 files of ")
    assert output.endswith(": version 2\n")
    assert sum(named_rows(lake).values()) == 4
    assert run_json("--out", lake, "--delete-where", MESSAGES)["rows_deleted"] == 0


@pytest.mark.parametrize(
    ("where", "why"),
    [
        ("", "it is empty"),
        (" ", "the name of a column is expected instead of the end (at character 1)"),
        ("1; drop table x", "'; drop table' is not understood (at character 2)"),
        ("labl == 'x'", "did you mean label?"),
        ("date == '2023-11-14'", "'date' is not a column"),
    ],
)
def test_a_mistyped_expression(lake, where, why):
    files = all_files(lake)
    assert why in error_of("--out", lake, "--delete-where", where)
    assert all_files(lake) == files


def test_a_column_that_the_lake_has_not(tmp_path):
    capture, lake = write_capture(tmp_path / "0.pcap", traffic(3)), tmp_path / "lake"
    msmqwire.write_lake(capture, lake, columns=["kind", "src"])
    status, _, errors = run("--out", lake, "--delete-where", "label == '1'")
    assert (status, json.loads(errors)["path"]) == (2, "--delete-where")
    assert "'label' is not a column of the lake" in json.loads(errors)["error"]
    status, _, errors = run("--out", lake, "--retain", "1d")
    assert (status, json.loads(errors)["path"]) == (2, "--retain")


def test_retain(lake):
    assert run("--out", lake, "--retain", "30d", "--dry-run")[1].startswith(
        "10 rows would be deleted from 2 "
    )
    assert run_json("--out", lake, "--retain", "5000w")["rows_deleted"] == 0
    assert run_json("--out", lake, "--retain", "30d")["rows_deleted"] == 10
    assert sum(named_rows(lake).values()) == 0


@pytest.mark.parametrize("option", ["--retain", "--vacuum"])
@pytest.mark.parametrize("age", ["30", "d", "-3d", "3 d", "1e3d", "3y", "0x3d", "٣d", "99999999999d", "nand"])
def test_a_mistyped_age(lake, option, age):
    assert error_of("--out", lake, option, age) == (
        f"{age!r} is not an age: a number with s, m, h, d or w, as 30d or 12h"
    )
    assert error_of("--out", lake, option, "999999999w") == "'999999999w' is too long an age"


def test_ages():
    ages = {"90s": 90, "1.5h": 5400, " 2W ": 1_209_600, "0d": 0, "10m": 600}
    for text, seconds in ages.items():
        assert lake_maintenance.age_of(text, "--retain") == timedelta(seconds=seconds)


def test_vacuum(lake):
    orphan = next(lake.glob("date=*")) / f"part-{'0' * 32}-0.parquet"
    orphan.write_bytes(b"four")
    assert run("--out", lake, "--vacuum", "1h")[1] == "nothing to do: the lake stays at version 1\n"
    os.utime(orphan, (0, 0))
    assert run("--out", lake, "--vacuum", "1h", "--dry-run")[1] == "1 file of 4 bytes would be removed\n"
    done = run_json("--out", lake, "--vacuum", "1h")
    assert (done["files_removed"], done["bytes_removed"], done["version"]) == (1, 4, 1)
    assert not orphan.exists()
    assert "longer than the longest run" in " ".join(run("--help")[1].split())


def test_history(lake):
    run("--out", lake, "--delete-where", "label == '1'")
    versions = run_json("--out", lake, "--history")
    assert [(one["version"], one["operation"]) for one in versions] == [
        (2, "delete"),
        (1, "write"),
        (0, "write"),
    ]
    assert versions[0]["figures"]["rows_deleted"] == 2
    title, *lines = run("--out", lake, "--history")[1].splitlines()
    assert title.split() == ["version", "time", "operation", "figures"]
    assert lines[0].split()[0] == "2"
    assert "rows deleted 2, files removed 2, files added 2" in lines[0]
    log = lake / "_delta_log" / f"{2:020}.json"
    log.write_text(log.read_text().replace('"operation":"delete"', '"operation":"de\\u001b[31mlete"'))
    assert "\x1b" not in run("--out", lake, "--history")[1]


def test_what_goes_with_what(lake, tmp_path):
    capture = tmp_path / "0.pcap"
    assert "takes no captures" in error_of(capture, "--out", lake, "--compact")
    assert "one of them at a time" in error_of("--out", lake, "--compact", "--history")
    assert "one of them at a time" in error_of("--out", lake, "--retain", "3d", "--vacuum", "3d")
    for option in (["--by", "kind"], ["--findings"], ["--follow"], ["--workers", "2"], ["--port", "7"]):
        assert "leave it out with --vacuum" in error_of("--out", lake, "--vacuum", "3d", *option)
    assert "goes with" in error_of(capture, "--out", lake, "--dry-run")
    assert "goes with" in error_of("--out", lake, "--history", "--dry-run")
    assert "it is missing, as in msmqwire lake" in error_of("--out", lake)


@pytest.mark.parametrize(
    "options",
    [["--compact"], ["--delete-where", MESSAGES], ["--retain", "3d"], ["--vacuum", "3d"], ["--history"]],
)
def test_a_folder_without_a_lake(tmp_path, options):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "README").touch()
    for path in (tmp_path / "none", tmp_path / "other"):
        status, output, errors = run("--out", path, *options)
        assert (status, output) == (66, "")
        assert json.loads(errors)["error"].startswith(f"{path}: ")
    assert not (tmp_path / "none").exists()
    assert os.listdir(tmp_path / "other") == ["README"]
    status, _, errors = run("--out", "s3://user:secret@bucket/lake", *options)
    assert (status, "secret" in errors) == (2, False)


def test_a_lake_that_is_broken(lake):
    path = lake / files_of(lake)[0].path
    path.write_bytes(path.read_bytes()[:-100])
    status, _, errors = run("--out", lake, "--compact")
    assert (status, path.name in json.loads(errors)["error"]) == (65, True)
    (lake / "_delta_log" / f"{1:020}.json").write_text("{")
    for options in (["--compact"], ["--history"], ["--vacuum", "3d"]):
        assert run("--out", lake, *options)[0] == 65
