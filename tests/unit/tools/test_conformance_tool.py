"""The marker ``requirement`` and the pages generated from it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tools.pages.conformance import (
    COLUMNS,
    ConformanceError,
    Pages,
    Requirement,
    problems,
    read_not_proved,
    read_tables,
)

KNOWN, OTHER, THIRD = "MQQB-4.1.1-01", "MQQB-4.1.2-01", "MQQB-4.1.2-02"
XDIST = pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])


def run_pytest(folder: Path, source: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_sample.py").write_text(f"import pytest\n{source}")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.support.requirements_plugin",
        "-p",
        "no:cacheprovider",
    ]
    command += ["-c", str(folder / "pytest.ini"), f"--requirements-json={folder / 'out.json'}"]
    return subprocess.run(
        [*command, *arguments, folder], cwd=ROOT, capture_output=True, text=True, check=False
    )


@XDIST
@pytest.mark.parametrize(
    ("mark", "message"),
    [
        ("requirement('MQQB-9.9-99')", "no table in docs/conformance has the requirement 'MQQB-9.9-99'"),
        ("requirement()", "the marker requirement takes one or more ids"),
    ],
)
def test_a_wrong_id_ends_the_run(tmp_path: Path, mark: str, message: str, workers: tuple[str, ...]) -> None:
    run = run_pytest(tmp_path, f"@pytest.mark.{mark}\ndef test_a(): pass\ndef test_b(): pass\n", *workers)
    assert run.returncode in {pytest.ExitCode.INTERRUPTED, pytest.ExitCode.TESTS_FAILED}
    assert f"test_sample.py::test_a: {message}" in run.stdout
    assert "passed" not in run.stdout


@XDIST
def test_outcomes_by_id(tmp_path: Path, workers: tuple[str, ...]) -> None:
    source = f"""
@pytest.mark.requirement({KNOWN!r})
@pytest.mark.parametrize("x", [1, pytest.param(2, marks=pytest.mark.requirement({OTHER!r}))])
def test_a(x):
    assert x == 1
@pytest.mark.requirement({THIRD!r})
class TestB:
    def test_c(self): pass
    @pytest.mark.skip
    def test_d(self): pass
"""
    run = run_pytest(tmp_path, source, *workers)
    assert "requirements: 1 passed of 3 that these tests name" in run.stdout
    assert json.loads((tmp_path / "out.json").read_text()) == {
        "tests": {
            KNOWN: ["test_sample.py::test_a"],
            OTHER: ["test_sample.py::test_a"],
            THIRD: ["test_sample.py::TestB::test_c", "test_sample.py::TestB::test_d"],
        },
        "outcomes": {KNOWN: "failed", OTHER: "failed", THIRD: "passed"},
    }


def test_a_collection_knows_the_same_tests(tmp_path: Path) -> None:
    run = run_pytest(
        tmp_path, f"@pytest.mark.requirement({KNOWN!r})\ndef test_a(): assert 0\n", "--collect-only"
    )
    assert run.returncode == 0
    assert json.loads((tmp_path / "out.json").read_text()) == {
        "tests": {KNOWN: ["test_sample.py::test_a"]},
        "outcomes": {},
    }


def a_table(*ids: str) -> dict[str, dict[str, Requirement]]:
    return {"X": {id_: Requirement(id_, "2.1", "rule", "any", "MUST", "A <b>|title") for id_ in ids}}


def test_pages_tell_proved_left_out_and_missing() -> None:
    pages = Pages(a_table("X-1", "X-2", "X-3"), {"X-1": ["t.py::test_a"]}, {"X-2": "needs a domain"}).render()
    assert "| 2.1 | 3 | 1 | 1 | 33 % |" in pages["index.md"]
    proved, rest = pages["X.md"].split("## Left out")
    left_out, without = rest.split("## Without a test")
    assert "| X-1 | A \\<b\\>\\|title | `t.py::test_a` |" in proved
    assert "| X-2 | A \\<b\\>\\|title | needs a domain |" in left_out
    assert "| X-3 | MUST | rule | A \\<b\\>\\|title |" in without


def test_reasons_must_fit_tables_and_tests() -> None:
    tables, tests = a_table("X-1", "X-2"), {"X-1": ["t.py::test_a"]}
    assert problems(tables, tests, {"X-2": "why"}) == []
    assert problems(tables, tests, {"X-1": "why", "X-9": "why"}) == [
        "not-proved.tsv: no table has X-9",
        "not-proved.tsv: X-1 is proved, by t.py::test_a",
        "X.tsv: X-2 has neither a test nor a reason in not-proved.tsv",
    ]


def test_every_row_has_a_test_or_a_reason() -> None:
    table = a_table("X-1", "X-2", "X-3")["X"]
    tests, reasons = {"X-1": ["t.py::test_a"]}, {"X-2": "why"}
    assert problems({"MQQB": table}, tests, reasons) == [
        "MQQB.tsv: X-3 has neither a test nor a reason in not-proved.tsv"
    ]


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([["X-1", "1", "rule", "any", "MUST", "a", "b", "c"]] * 2, "X-1 is there twice"),
        ([["Y-1", "1", "rule", "any", "MUST", "a", "b", "c"]], "'Y-1' does not start with X-"),
        ([["X-1", "1"]], "line 2: 2 columns"),
    ],
)
def test_a_broken_table_is_refused(tmp_path: Path, rows: list[list[str]], why: str) -> None:
    (tmp_path / "X.tsv").write_text("".join("\t".join(row) + "\n" for row in [COLUMNS, *rows]))
    with pytest.raises(ConformanceError, match=why):
        read_tables(tmp_path)


def test_a_reason_must_be_given(tmp_path: Path) -> None:
    (tmp_path / "not-proved.tsv").write_text("id\treason\nX-1\t \n")
    with pytest.raises(ConformanceError, match="X-1 has no reason"):
        read_not_proved(tmp_path)
