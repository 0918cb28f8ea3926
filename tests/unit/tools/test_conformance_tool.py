"""The marker ``requirement`` and the pages generated from it."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from msmqwire.qm.model.settings import Settings
from msmqwire.qm.runtime.server import SETTINGS
from tests.support.paths import ROOT
from tools.mutate import record
from tools.pages import conformance_samples
from tools.pages.conformance import (
    BY_PART,
    BY_SETTING,
    COLUMNS,
    DEVIATES,
    FOLDER,
    LEFT_OUT,
    ConformanceError,
    Pages,
    Requirement,
    State,
    known_marks,
    problems,
    read_clauses,
    read_reviews,
    read_states,
    read_tables,
)

SPECIFIED = ROOT.parent / "shared" / "spec" / "requirements"
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


TESTS = {id_: [f"t.py::test_{id_[-1]}"] for id_ in ("X-1", "X-2", "X-3", "X-4")}
STATES = {
    "X-2": State(BY_SETTING, "relay = all", "closed by default"),
    "X-3": State(BY_PART, "its second half", "no clock"),
    "X-4": State(DEVIATES, "", "a peer's way"),
    "X-5": State(LEFT_OUT, "", "needs a domain"),
}


def noticed(*counts: tuple[str, int, int]) -> list[record.Measured]:
    return [record.Measured(*count, 7, "2026-11-30") for count in counts]


def test_pages_show_each_state_in_a_section() -> None:
    tables = a_table("X-1", "X-2", "X-3", "X-4", "X-5", "X-6", "X-7", "X-8", "X-9")
    tests = TESTS | {f"X-{each}": [f"t.py::test_{each}"] for each in (7, 8, 9)}
    measured = noticed(("X-1", 4, 5), ("X-2", 3, 3), ("X-7", 3, 3), ("X-8", 3, 4))
    reviewed = {"X-1", "X-2", "X-8", "X-9"}
    page = Pages(tables, tests, STATES, reviewed=reviewed, measured=measured).render()["X.md"]
    sections = {part.partition("\n")[0]: part for part in page.split("\n## ")[1:]}
    title = "A \\<b\\>\\|title"
    rows = {
        "Proved": [f"| X-1 | {title} | `t.py::test_1` | 4 of 5 |"],
        "Compared": [f"| X-9 | {title} | `t.py::test_9` |  |"],
        "Doubtful": [f"| X-8 | {title} | `t.py::test_8` | 3 of 4 |"],
        "Named by tests": [f"| X-7 | {title} | `t.py::test_7` | 3 of 3 |"],
        "By setting": [f"| X-2 | {title} | relay = all | closed by default | `t.py::test_2` |"],
        "By part": [f"| X-3 | {title} | its second half | no clock | `t.py::test_3` |"],
        "Deviates": [f"| X-4 | {title} | a peer's way | `t.py::test_4` |"],
        "Left out": [f"| X-5 | {title} | needs a domain |"],
        "Without a test": [f"| X-6 | MUST | rule | {title} |"],
    }
    assert list(sections) == list(rows)
    for name, expected in rows.items():
        assert [line for line in sections[name].splitlines() if line.startswith("| X-")] == expected


def test_rows_are_counted_by_state() -> None:
    rows, tests = (
        [f"X-{number}" for number in range(1, 10)],
        TESTS | {f"X-{each}": ["t"] for each in (6, 7, 8, 9)},
    )
    measured = noticed(("X-1", 5, 5), ("X-4", 5, 5), ("X-6", 5, 5), ("X-8", 3, 5))
    pages = Pages(a_table(*rows), tests, STATES, reviewed={"X-1", "X-4", "X-8", "X-9"}, measured=measured)
    assert "| 2.1 | 9 | 1 | 1 | 1 | 2 | 1 | 1 | 1 | 1 |" in pages.render()["index.md"]
    assert pages.summary() == (
        "9 requirements: 1 proved, 1 compared, 1 doubtful, 2 named by tests, 1 by setting, 1 by part, "
        "1 deviates, 1 left out"
    )
    assert (
        "9 requirements ([X.tsv](X.tsv)): 1 proved, 1 compared, 1 doubtful, 2 named by tests"
        in pages.render()["X.md"]
    )


def test_the_tests_of_a_clause_stand_beside_its_words() -> None:
    tests = {"X-1/a": ["t.py::test_a"], "X-1/b": ["t.py::test_a", "t.py::test_b"]}
    clauses = {"X-1/a": "one", "X-1/b": "two"}
    pages = Pages(a_table("X-1"), tests, {}, clauses).render()
    words = "*one*:<br>`t.py::test_a`<br>*two*:<br>`t.py::test_a`<br>`t.py::test_b`"
    assert f"| X-1 | A \\<b\\>\\|title | {words} |  |" in pages["X.md"]
    assert "| 2.1 | 1 | 0 | 0 | 0 | 1 | 0 | 0 | 0 | 0 |" in pages["index.md"]


def test_the_index_says_what_the_marks_are_worth(tmp_path):
    record.write(tmp_path / record.FILE, noticed(("X-1", 4, 5), ("X-2", 3, 5)))
    assert read_tables(tmp_path) == {}
    measured = record.read(tmp_path / record.FILE)
    index = Pages(a_table("X-1", "X-2"), TESTS, STATES, measured=measured).render()["index.md"]
    assert "Of 2 rows (last measured on 2026-11-30)" in index
    assert "the tests of 1 (50 %;" in index


def test_the_index_says_what_the_last_sample_found(tmp_path):
    path = tmp_path / conformance_samples.FILE
    assert conformance_samples.read(path) == []
    path.write_text("date\tseed\trows\twhole\tlabelled\n2026-11-01\t1\t60\t30\t1\n2026-11-30\t2\t60\t50\t7\n")
    samples = conformance_samples.read(path)
    assert read_tables(tmp_path) == {}
    index = Pages(a_table("X-1"), TESTS, STATES, samples=samples).render()["index.md"]
    sentence = (
        "(2026-11-30, 60 of all rows, seed 2) 50 rows were wholly proved, 7 honestly labelled, and 3 not"
    )
    assert sentence in index
    assert "seed 1)" not in index


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("date\tseed\n", "the first line must name the columns date, seed, rows, whole, labelled"),
        ("date\tseed\trows\twhole\tlabelled\n2026-11-01\t1\t60\t30\n", "line 2: not a sample"),
        ("date\tseed\trows\twhole\tlabelled\n2026-11-01\t1\t60\tx\t1\n", "line 2: not a sample"),
        ("date\tseed\trows\twhole\tlabelled\n2026-11-01\t1\t60\t58\t3\n", "line 2: more rows with a verdict"),
    ],
)
def test_a_wrong_line_of_the_samples(tmp_path, text, why):
    (tmp_path / conformance_samples.FILE).write_text(text)
    with pytest.raises(conformance_samples.SampleError, match=why):
        conformance_samples.read(tmp_path / conformance_samples.FILE)


def test_states_must_fit_tables_and_tests() -> None:
    tables = a_table("X-1", "X-2", "X-3", "X-4", "X-5")
    assert problems(tables, TESTS, STATES) == []
    left_out, by_part = State(LEFT_OUT, "", "why"), State(BY_PART, "half", "why")
    wrong = {"X-1": left_out, "X-5": by_part, "X-9": left_out}
    assert problems(tables, TESTS, wrong) == [
        "states.tsv: no table has X-9",
        "states.tsv: X-1 is left out, and proved by t.py::test_1",
        "states.tsv: X-5 is proved by part, by no test",
    ]


def test_reviews_must_fit_the_tables(tmp_path: Path) -> None:
    (tmp_path / "read").mkdir()
    path = tmp_path / "read" / "X.tsv"
    path.write_text("id\tdate\nX-1\t2026-11-30\nX-2\t2026-11-30\n")
    assert (reviewed := read_reviews(tmp_path)) == {"X-1", "X-2"}
    assert problems(a_table("X-1"), {"X-1": ["t.py"]}, {}, {}, reviewed) == ["read: no table has X-2"]
    for line, why in (
        ("Y-1\t2026-11-30", "Y-1 must be a row of X.tsv, once"),
        ("X-1\t2026-11-30", "X-1 must be a row of X.tsv, once"),
        ("X-3\tyesterday", "X-3: 'yesterday' is not a date"),
    ):
        path.write_text(f"id\tdate\nX-1\t2026-11-30\n{line}\n")
        with pytest.raises(ConformanceError, match=why):
            read_reviews(tmp_path)


def test_a_deviation_needs_no_test() -> None:
    assert problems(a_table("X-1"), {}, {"X-1": State(DEVIATES, "", "why")}) == []


def test_clauses_must_fit_tables_and_tests() -> None:
    tables, clauses = a_table("X-1", "X-2"), {"X-1/a": "one", "X-1/b": "two", "X-9/a": "none"}
    tests = {"X-1/a": ["t.py::test_a"], "X-1": ["t.py::test_b"], "X-2/a": ["t.py::test_c"]}
    assert problems(tables, tests, {}, clauses) == [
        "t.py::test_c: clauses.tsv has no clause X-2/a",
        "t.py::test_b: X-1 has clauses; name those that the test proves",
        "clauses.tsv: no table has X-9",
        "clauses.tsv: no test names X-1/b",
        "clauses.tsv: no test names X-9/a",
    ]


def test_every_row_has_a_test_or_a_reason() -> None:
    table = a_table("X-1", "X-2", "X-3")["X"]
    tests, states = {"X-1": ["t.py::test_a"]}, {"X-2": State(LEFT_OUT, "", "why")}
    assert problems({"MQQB": table}, tests, states) == [
        "MQQB.tsv: X-3 has neither a test nor a line in states.tsv"
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


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("X-1\tleft out\t\t ", "X-1 has no reason"),
        ("X-1\tdoubtful\t\twhy", "'doubtful' is none of by setting, by part, deviates, left out"),
        ("X-1\tby setting\t\twhy", "'by setting' names a setting"),
        ("X-1\tby part\t\twhy", "'by part' names a clause"),
        ("X-1\tdeviates\trelay\twhy", "'deviates' leaves the column `of` empty"),
        ("X-1\tleft out\t\twhy\nX-1\tdeviates\t\twhy", "X-1 is there twice"),
    ],
    ids=["reason", "state", "setting", "clause", "of", "twice"],
)
def test_a_wrong_line_of_states_is_refused(tmp_path: Path, line: str, why: str) -> None:
    (tmp_path / "states.tsv").write_text(f"id\tstate\tof\treason\n{line}\n")
    with pytest.raises(ConformanceError, match=why):
        read_states(tmp_path)


@pytest.mark.parametrize("line", ["X-1\tone", "X-1/A\tone", "X-1/a\t ", "X-1/a\tone\nX-1/a\ttwo"])
def test_a_wrong_clause_is_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "clauses.tsv").write_text(f"id\tclause\n{line}\n")
    with pytest.raises(ConformanceError, match="must be an id with a letter"):
        read_clauses(tmp_path)


def test_a_row_with_clauses_is_named_by_these(tmp_path: Path) -> None:
    rows = [[f"X-{number}", "1", "rule", "any", "MUST", "a", "b", "c"] for number in (1, 2)]
    (tmp_path / "X.tsv").write_text("".join("\t".join(row) + "\n" for row in [COLUMNS, *rows]))
    (tmp_path / "clauses.tsv").write_text("id\tclause\nX-1/a\tone\nX-1/b\ttwo\n")
    assert known_marks(tmp_path) == {"X-1/a", "X-1/b", "X-2"}


def test_the_settings_of_states_are_no_defaults() -> None:
    """Those of a server, which differ from those of the specifications."""
    defaults = {option.name: getattr(SETTINGS, option.name) for option in fields(Settings)}
    for id_, state in read_states().items():
        for setting in state.of.split(", ") if state.name == BY_SETTING else ():
            name, _, value = setting.partition(" = ")
            assert name in defaults, id_
            assert json.loads(value) != defaults[name], id_


@pytest.mark.skipif(
    not SPECIFIED.is_dir(), reason="the tables of the specifications are not beside the project"
)
def test_the_tables_are_those_of_the_specifications() -> None:
    """No row is reworded towards the product; a deviation is a line of states.tsv."""
    compared = 0
    for path in sorted(SPECIFIED.glob("*.tsv")):
        ours = FOLDER / path.name
        if ours.exists():
            compared += 1
            lines = path.read_text(encoding="utf-8").splitlines()
            changed = set(lines) ^ set(ours.read_text(encoding="utf-8").splitlines())
            assert {line.split("\t")[0] for line in changed} == set(), path.name
    assert compared
