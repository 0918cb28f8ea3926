"""Folders: as input the captures in them, as output where ``packets.parquet`` goes to."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

import msmqwire
from msmqwire.errors import CaptureWarning
from msmqwire.tables.lake import write_lake
from tests.support.paths import EXAMPLES
from tests.support.running import in_process as command

SESSION = EXAMPLES / "session.pcap"
READING = ["dissect", "lint", "fate", "pcap", "report"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two captures and three other files."""
    path = tmp_path / "captures"
    path.mkdir()
    (path / "a.pcap").write_bytes(SESSION.read_bytes())
    (path / "b.gz").write_bytes(gzip.compress(SESSION.read_bytes()))
    (path / "empty").touch()
    (path / "hi").write_text("hi", encoding="utf-8")
    (path / "notes.txt").write_text("notes on captures", encoding="utf-8")
    return path


def _run(name: str, path: Path, out: Path) -> tuple[int, str]:
    options = {"pcap": ["-o", out / "out.pcap"], "report": ["-o", out / "out.html"]}
    done = command(name, path, *options.get(name, ()))
    return done.returncode, done.stderr.decode()


@pytest.mark.parametrize("name", READING)
def test_other_files_are_passed_over_and_named(name: str, folder: Path, tmp_path: Path) -> None:
    status, said = _run(name, folder, tmp_path)
    assert status == 0
    assert f"{folder}: 3 files are not captures and were passed over: empty, hi, notes.txt\n" in said


@pytest.mark.parametrize("name", READING)
def test_a_folder_without_captures_is_missing_input(name: str, tmp_path: Path) -> None:
    path = tmp_path / "none"
    path.mkdir()
    (path / "notes.txt").write_text("notes on captures", encoding="utf-8")
    status, said = _run(name, path, tmp_path)
    passed, error = said.splitlines()
    assert status == 66
    assert passed == f"{path}: 1 file is not a capture and was passed over: notes.txt"
    assert json.loads(error)["error"] == f"{path}: a folder without captures"


PASSED_OVER = "3 files are not captures and were passed over: empty, hi, notes.txt"


def test_a_lake_passes_over_other_files(folder: Path, tmp_path: Path) -> None:
    done = command("lake", folder, "--out", tmp_path / "lake", "--json")
    assert done.returncode == 0
    assert f"{folder}: {PASSED_OVER}\n" in done.stderr.decode()
    assert json.loads(done.stdout)["captures_read"] == 2
    again = command("lake", folder, "--out", tmp_path / "lake", "--json")
    assert (again.returncode, json.loads(again.stdout)["captures_unchanged"]) == (0, 2)


def test_a_lake_of_a_folder_without_captures_is_missing_input(tmp_path: Path) -> None:
    path = tmp_path / "none"
    path.mkdir()
    (path / "notes.txt").write_text("notes on captures", encoding="utf-8")
    done = command("lake", path, "--out", tmp_path / "lake")
    passed, error = done.stderr.decode().splitlines()
    assert done.returncode == 66
    assert passed == f"{path}: 1 file is not a capture and was passed over: notes.txt"
    assert json.loads(error)["error"] == f"{path}: a folder without captures"
    assert not (tmp_path / "lake").exists()


@pytest.mark.parametrize("read", ["dissect", "read_capture", "write_lake"])
def test_programs_are_warned_of_other_files(read: str, folder: Path, tmp_path: Path) -> None:
    def run() -> tuple[int, int]:
        if read == "dissect":
            dissection = msmqwire.dissect(folder)
            return len(list(dissection)), len(dissection.errors)
        if read == "read_capture":
            return msmqwire.read_capture(folder).num_rows, 0
        commit = write_lake(folder, tmp_path / "lake")
        return commit.rows, len(commit.damages)

    with pytest.warns(CaptureWarning) as caught:
        rows = run()
    assert [str(one.message) for one in caught] == [f"{folder}: {PASSED_OVER}"]
    assert rows == (len(list(msmqwire.dissect([folder / "a.pcap", folder / "b.gz"]))), 0)


def test_of_many_files_some_are_named(folder: Path, tmp_path: Path) -> None:
    for number in range(10):
        (folder / f"x{number}").touch()
    assert (
        "13 files are not captures and were passed over: empty, hi, notes.txt, x0, x1 and 8 more\n"
        in _run("dissect", folder, tmp_path)[1]
    )


def test_a_damaged_capture_in_a_folder_is_an_error(folder: Path, tmp_path: Path) -> None:
    packed = (folder / "b.gz").read_bytes()
    (folder / "c.gz").write_bytes(packed[:12])
    (folder / "d.pcap").write_bytes(SESSION.read_bytes()[:-5])
    status, said = _run("dissect", folder, tmp_path)
    assert status == 65
    assert "c.gz" in said
    assert "d.pcap" in said


def test_a_file_that_is_named_is_read(folder: Path, tmp_path: Path) -> None:
    status, said = _run("dissect", folder / "notes.txt", tmp_path)
    assert status == 65
    assert "not a capture file" in said


@pytest.mark.parametrize(
    "name, written",
    [
        ("one.parquet", "one.parquet"),
        ("deep/one.PARQUET", "deep/one.PARQUET"),
        ("out/", "out/packets.parquet"),
        ("out", "out/packets.parquet"),
        ("there.parquet", "there.parquet/packets.parquet"),
    ],
)
def test_a_name_of_parquet_is_a_file_another_a_folder(tmp_path: Path, name: str, written: str) -> None:
    from pyarrow import parquet

    (tmp_path / "there.parquet").mkdir()
    done = command("dissect", SESSION, "--parquet", f"{tmp_path}/{name}")
    assert done.returncode == 0
    assert parquet.read_table(tmp_path / written).num_rows == 8


@pytest.mark.parametrize("content", [b"", b"notes on captures"], ids=["empty", "text"])
def test_other_files_get_no_report(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes"
    path.write_bytes(content)
    status, said = _run("report", path, tmp_path)
    assert status == 65
    assert json.loads(said)["error"].startswith(str(path))
    assert not (tmp_path / "out.html").exists()


def test_there_is_a_report_of_a_damaged_capture(tmp_path: Path) -> None:
    path = tmp_path / "damaged.pcap"
    path.write_bytes(SESSION.read_bytes()[:-5])
    assert _run("report", path, tmp_path)[0] == 65
    assert (tmp_path / "out.html").exists()
