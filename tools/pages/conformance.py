"""Writes the conformance pages, docs/conformance/*.md: the proof of each requirement by tests.

The requirements are the rows of docs/conformance/*.tsv; tests name the requirements they prove with the
marker ``requirement`` (tests/support/requirements_plugin.py). Further tables are about the rows:

- states.tsv, for each row that is not wholly proved: left out, deviates, proved by setting or by part;
- clauses.tsv, the clauses of rows whose tests name them one by one, as ``MQQB-3.1.5.6-06/a``;
- read/*.tsv, the rows that were compared, clause by clause, with their tests and the code, and the date;
- mutants.tsv, the changes of the code about a row that its tests notice (tools/mutate/mutate.py --record);
- samples.tsv, the random samples of rows that a second reader compared, breaking the code by hand.

Every row has a test or a line of states.tsv.
"""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tools.mutate import record  # noqa: E402
from tools.pages import conformance_samples  # noqa: E402

FOLDER = ROOT / "docs" / "conformance"
STATES, CLAUSES = "states.tsv", "clauses.tsv"
LEFT_OUT, DEVIATES, BY_SETTING, BY_PART = "left out", "deviates", "by setting", "by part"
MEANING = {
    BY_SETTING: "It holds only with a setting that is not the default; with that it was compared.",
    BY_PART: "One clause has no test; the others were compared.",
    DEVIATES: "The product does otherwise; tests, where there are any, prove what it does.",
    LEFT_OUT: "No test proves it.",
}
"""The states of rows that are not wholly proved."""
PROVED, COMPARED, DOUBTFUL, NAMED = "proved", "compared", "doubtful", "named by tests"
EVIDENCE = {
    PROVED: "The row was compared with its tests and the code, clause by clause, and up to five small "
    "changes of the code about it were tried: its tests notice at least four of five.",
    COMPARED: "The row was compared so; no change of the code about it was tried yet. Not each of these rows "
    "is proved in every clause: see the random samples below.",
    DOUBTFUL: "The row was compared so, but its tests notice fewer of the changes, or none could be tried.",
    NAMED: "Tests name it; whether they prove each clause was not reviewed.",
}
"""The states of the other rows with tests."""
_NAMED_BY = {BY_SETTING: "a setting", BY_PART: "a clause"}
"""What the column `of` names in these states; it is empty in the others."""
COLUMNS = ["id", "section", "kind", "role", "strength", "title", "requirement", "values"]
TITLES = {
    "DMPR": "[MS-MQDMPR] Common Data Model and Processing Rules",
    "MQBR": "[MS-MQBR] Binary Reliable Message Routing Algorithm",
    "MQMQ": "[MS-MQMQ] Data Structures",
    "MQMR": "[MS-MQMR] Queue Manager Management Protocol",
    "MQQB": "[MS-MQQB] Binary Protocol",
    "MQRR": "[MS-MQRR] Queue Manager Remote Read Protocol",
    "NBFX": "[MC-NBFX], [MC-NBFS], [MC-NBFSE] .NET Binary Format",
    "NMF": "[MC-NMF] .NET Message Framing Protocol",
    "NRBF": "[MS-NRBF] .NET Remoting: Binary Format Data Structure",
    "QMS": "NetWare Queue Services",
    "SRMP": "[MC-MQSRM] SOAP Reliable Messaging Protocol (SRMP)",
}
NOTE = "<!-- Written by tools/pages/conformance.py (make conformance); changes by hand are lost. -->\n\n"


class ConformanceError(Exception):
    """Invalid tables or markers; the text has the details."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One row of a requirement table."""

    id: str
    section: str
    kind: str
    role: str
    strength: str
    title: str

    @property
    def chapter(self) -> str:
        """The first two numbers of the section (2.2.19.1: 2.2); of "[a] b", a; else the section itself."""
        if self.section[:1].isdigit():
            return ".".join(self.section.split(".")[:2])
        return self.section[1:].partition("]")[0] if self.section.startswith("[") else self.section


Table = dict[str, Requirement]


@dataclass(frozen=True, slots=True)
class State:
    """Why a row is not wholly proved.

    Attributes:
        of: the setting with its value, or the clause without a test; else empty.
    """

    name: str
    of: str
    reason: str


def row_of(mark: str) -> str:
    """The id of the row that a mark names, with the letter of a clause (MQQB-3.1.5.6-06/a) or without."""
    return mark.partition("/")[0]


def _rows(path: Path, columns: list[str]) -> Iterator[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        if next(reader, None) != columns:
            raise ConformanceError(f"{path.name}: the first line must name the columns {', '.join(columns)}")
        for row in reader:
            if len(row) != len(columns):
                raise ConformanceError(
                    f"{path.name}, line {reader.line_num}: {len(row)} columns, not {len(columns)}"
                )
            yield row


def read_tables(folder: Path = FOLDER) -> dict[str, Table]:
    """Return the requirement tables by file name, each by id in file order."""
    tables: dict[str, Table] = {}
    for path in sorted(folder.glob("*.tsv")):
        if path.name in (STATES, CLAUSES, record.FILE, conformance_samples.FILE):
            continue
        table = tables[path.stem] = {}
        for row in _rows(path, COLUMNS):
            requirement = Requirement(*row[:6])
            if not requirement.id.startswith(f"{path.stem}-"):
                raise ConformanceError(f"{path.name}: {requirement.id!r} does not start with {path.stem}-")
            if requirement.id in table:
                raise ConformanceError(f"{path.name}: {requirement.id} is there twice")
            table[requirement.id] = requirement
    return tables


def read_states(folder: Path = FOLDER) -> dict[str, State]:
    """Return the states of the rows that are not wholly proved, by id."""
    path = folder / STATES
    states: dict[str, State] = {}
    for id_, name, of, reason in _rows(path, ["id", "state", "of", "reason"]) if path.exists() else ():
        if id_ in states:
            raise ConformanceError(f"{STATES}: {id_} is there twice")
        if name not in MEANING:
            raise ConformanceError(f"{STATES}: {id_}: {name!r} is none of {', '.join(MEANING)}")
        if not reason.strip():
            raise ConformanceError(f"{STATES}: {id_} has no reason")
        if bool(of.strip()) != (name in _NAMED_BY):
            wanted = f"names {_NAMED_BY[name]}" if name in _NAMED_BY else "leaves the column `of` empty"
            raise ConformanceError(f"{STATES}: {id_}: {name!r} {wanted}")
        states[id_] = State(name, of, reason)
    return states


def read_clauses(folder: Path = FOLDER) -> dict[str, str]:
    """Return the clauses that tests name one by one, by id and letter: MQQB-3.1.5.6-06/a."""
    path = folder / CLAUSES
    clauses: dict[str, str] = {}
    for mark, text in _rows(path, ["id", "clause"]) if path.exists() else ():
        if not re.fullmatch(r"[^/]+/[a-z]", mark) or not text.strip() or mark in clauses:
            raise ConformanceError(f"{CLAUSES}: {mark} must be an id with a letter, once, with its words")
        clauses[mark] = text
    return clauses


def read_reviews(folder: Path = FOLDER) -> frozenset[str]:
    """Return the ids of the rows that were compared with their tests and the code, clause by clause."""
    found: set[str] = set()
    for path in sorted((folder / "read").glob("*.tsv")):
        for id_, date in _rows(path, ["id", "date"]):
            if not id_.startswith(f"{path.stem}-") or id_ in found:
                raise ConformanceError(f"read/{path.name}: {id_} must be a row of {path.name}, once")
            if not re.fullmatch(r"\d{4}-\d\d-\d\d", date):
                raise ConformanceError(f"read/{path.name}: {id_}: {date!r} is not a date")
            found.add(id_)
    return frozenset(found)


def known_marks(folder: Path = FOLDER) -> set[str]:
    """Return what a test may name: each row, and instead of a row with clauses those."""
    clauses = read_clauses(folder)
    rows = {id_ for table in read_tables(folder).values() for id_ in table}
    return (rows - {row_of(mark) for mark in clauses}) | clauses.keys()


def collect_markers() -> dict[str, list[str]]:
    """Return the tests by the requirement ids of their markers, as collected by pytest."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    with tempfile.TemporaryDirectory() as folder:
        dump = Path(folder, "requirements.json")
        command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
        run = subprocess.run(
            [*command, f"--requirements-json={dump}"],
            cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if run.returncode:
            raise ConformanceError(f"pytest could not collect the tests:\n{run.stdout}{run.stderr}")
        tests: dict[str, list[str]] = json.loads(dump.read_text(encoding="utf-8"))["tests"]
    return tests


def problems(
    tables: Mapping[str, Table],
    tests: Mapping[str, list[str]],
    states: Mapping[str, State],
    clauses: Mapping[str, str] | None = None,
    reviewed: Iterable[str] = (),
) -> list[str]:
    """Return the faults of tables, marks, states, clauses and reviews, which prevent writing pages."""
    clauses = clauses or {}
    known = {id_ for table in tables.values() for id_ in table}
    divided = {row_of(mark) for mark in clauses}
    named = tests_by_row(tests)
    return [
        *(
            f"{', '.join(tests[mark])}: no table has {mark}"
            for mark in sorted(tests)
            if row_of(mark) not in known
        ),
        *(
            f"{', '.join(tests[mark])}: {CLAUSES} has no clause {mark}"
            for mark in sorted(tests)
            if "/" in mark and mark not in clauses and row_of(mark) in known
        ),
        *(
            f"{', '.join(tests[id_])}: {id_} has clauses; name those that the test proves"
            for id_ in sorted(divided & tests.keys())
        ),
        *(f"{CLAUSES}: no table has {id_}" for id_ in sorted(divided - known)),
        *(f"{CLAUSES}: no test names {mark}" for mark in sorted(clauses.keys() - tests.keys())),
        *(f"{STATES}: no table has {id_}" for id_ in sorted(states.keys() - known)),
        *(f"read: no table has {id_}" for id_ in sorted({*reviewed} - known)),
        *(
            f"{STATES}: {id_} is left out, and proved by {', '.join(named[id_])}"
            for id_ in sorted(states.keys() & named.keys())
            if states[id_].name == LEFT_OUT
        ),
        *(
            f"{STATES}: {id_} is proved {state.name}, by no test"
            for id_, state in sorted(states.items())
            if state.name in _NAMED_BY and id_ not in named
        ),
        *(
            f"{spec}.tsv: {id_} has neither a test nor a line in {STATES}"
            for spec, table in tables.items()
            for id_ in table
            if id_ not in named and id_ not in states
        ),
    ]


def tests_by_row(tests: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Return the tests of each row, those of all its clauses together, from the tests by mark."""
    rows: dict[str, set[str]] = {}
    for mark, found in tests.items():
        rows.setdefault(row_of(mark), set()).update(found)
    return {id_: sorted(found) for id_, found in rows.items()}


@dataclass(slots=True)
class Count:
    """A line of a coverage table."""

    all: int = 0
    states: dict[str, int] = field(default_factory=lambda: dict.fromkeys([*EVIDENCE, *MEANING], 0))

    def in_words(self) -> str:
        """The rows in each state."""
        return ", ".join(f"{number} {name}" for name, number in self.states.items())

    def row(self, *names: str) -> str:
        return _row(*names, str(self.all), *map(str, self.states.values()))


@dataclass(frozen=True)
class Pages:
    """The pages as text, from the tables, the tests by mark, the states by id and the clauses by mark."""

    tables: Mapping[str, Table]
    tests: Mapping[str, list[str]]
    states: Mapping[str, State] = field(default_factory=dict)
    clauses: Mapping[str, str] = field(default_factory=dict)
    reviewed: Set[str] = frozenset()
    """The rows that were compared with their tests."""
    measured: Sequence[record.Measured] = ()
    """The rows the code about which was changed."""
    samples: Sequence[conformance_samples.Sample] = ()
    """The samples, the latest last."""

    @cached_property
    def _named(self) -> set[str]:
        return {row_of(mark) for mark in self.tests}

    @cached_property
    def _changes(self) -> dict[str, record.Measured]:
        return {each.id: each for each in self.measured}

    def _state(self, row: Requirement) -> str | None:
        """The name of a row's state; None without a test and a line of states.tsv."""
        if row.id in self.states:
            return self.states[row.id].name
        if row.id not in self._named:
            return None
        if row.id not in self.reviewed:
            return NAMED
        if row.id not in self._changes:
            return COMPARED
        return PROVED if self._changes[row.id].is_good else DOUBTFUL

    def render(self) -> dict[str, str]:
        """Return all pages by file name."""
        return {"index.md": self.index()} | {f"{spec}.md": self.specification(spec) for spec in self.tables}

    def index(self) -> str:
        everything = [row for table in self.tables.values() for row in table.values()]
        parts = [
            NOTE,
            "# Conformance\n\n",
            "Every testable requirement of the specifications has an id and a row in a table. Tests name the "
            "ids; `make test` runs them. A row has one state:\n\n",
            *(f"- *{name}*: {meaning}\n" for name, meaning in {**EVIDENCE, **MEANING}.items()),
            f"\nThe reasons of the last four are in [{STATES}]({STATES}).\n\n",
            f"{record.sentence(self.measured)}\n\n",
            *(f"{sample.sentence()}\n\n" for sample in self.samples[-1:]),
            _head("specification", "table", *_COUNTS, right=len(_COUNTS)),
            *(
                self._count(table.values()).row(
                    f"[{_text(_title(spec))}]({spec}.md)", f"[{spec}.tsv]({spec}.tsv)"
                )
                for spec, table in self.tables.items()
            ),
            self._count(everything).row("**all**", ""),
        ]
        for spec, table in self.tables.items():
            rows = list(table.values())
            parts += [f"\n## {_text(_title(spec))}\n", *self._counted("kind", rows, lambda row: row.kind)]
            parts += self._counted("chapter", rows, lambda row: row.chapter)
        return "".join(parts)

    def summary(self) -> str:
        """The counts of all rows in one line."""
        count = self._count(row for table in self.tables.values() for row in table.values())
        return f"{count.all} requirements: {count.in_words()}"

    def specification(self, spec: str) -> str:
        rows = list(self.tables[spec].values())
        count = self._count(rows)
        without = [row for row in rows if self._state(row) is None]
        parts = [
            NOTE,
            f"# {_text(_title(spec))}\n\n",
            f"{count.all} requirements ([{spec}.tsv]({spec}.tsv)): {count.in_words()}.\n",
        ]
        for name, meaning in EVIDENCE.items():
            some = [row for row in rows if self._state(row) == name]
            parts += [f"\n## {name.capitalize()}\n\n{meaning}\n"] if some else []
            for chapter in dict.fromkeys(row.chapter for row in some):
                parts += [
                    f"\n### {_chapter(chapter)}\n\n",
                    _head("id", "requirement", "tests", "changes noticed"),
                ]
                parts += [
                    _row(row.id, _text(row.title), self._proof(row), self._noticed(row))
                    for row in some
                    if row.chapter == chapter
                ]
        for name, meaning in MEANING.items():
            if group := [row for row in rows if (state := self.states.get(row.id)) and state.name == name]:
                parts += [f"\n## {name.capitalize()}\n\n{meaning}\n\n", *self._section(name, group)]
        if without:
            parts += ["\n## Without a test\n\n", _head("id", "strength", "kind", "requirement")]
            parts += [_row(row.id, row.strength, row.kind, _text(row.title)) for row in without]
        return "".join(parts)

    def _section(self, name: str, rows: Iterable[Requirement]) -> Iterator[str]:
        of = [_NAMED_BY[name].split()[-1]] if name in _NAMED_BY else []
        yield _head("id", "requirement", *of, "reason", *([] if name == LEFT_OUT else ["tests"]))
        for row in rows:
            state = self.states[row.id]
            cells = [row.id, _text(row.title), *([_text(state.of)] if of else []), _text(state.reason)]
            yield _row(*cells, *([] if name == LEFT_OUT else [self._proof(row)]))

    def _proof(self, row: Requirement) -> str:
        """The tests of a row, after the words of their clause where it has clauses."""
        marks = [mark for mark in self.clauses if row_of(mark) == row.id]
        if not marks:
            return "<br>".join(map(_test, self.tests.get(row.id, ())))
        return "<br>".join(
            "<br>".join([f"*{_text(self.clauses[mark])}*:", *map(_test, self.tests.get(mark, ()))])
            for mark in marks
        )

    def _noticed(self, row: Requirement) -> str:
        """How many changes of the code about a row its tests notice, as "4 of 5"."""
        changes = self._changes.get(row.id)
        return f"{changes.killed} of {changes.tried}" if changes else ""

    def _count(self, rows: Iterable[Requirement]) -> Count:
        count = Count()
        for row in rows:
            count.all += 1
            if state := self._state(row):
                count.states[state] += 1
        return count

    def _counted(
        self, name: str, rows: list[Requirement], key: Callable[[Requirement], str]
    ) -> Iterator[str]:
        yield "\n" + _head(name, *_COUNTS, right=len(_COUNTS))
        for value in dict.fromkeys(key(row) for row in rows):
            yield self._count(row for row in rows if key(row) == value).row(_text(value))


_COUNTS = ("requirements", *EVIDENCE, *MEANING)


def _title(spec: str) -> str:
    return TITLES.get(spec, spec)


def _chapter(chapter: str) -> str:
    return f"Section {chapter}" if chapter[:1].isdigit() else _text(chapter)


def _row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |\n"


def _head(*names: str, right: int = 0) -> str:
    left = len(names) - right
    return _row(*names) + _row(*["---"] * left, *["---:"] * right)


def _text(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>|#$~^])", r"\\\1", text)


def _test(node: str) -> str:
    return f"`{node}`"


def main() -> int:
    try:
        tables, states, clauses, tests = read_tables(), read_states(), read_clauses(), collect_markers()
        reviewed, measured = read_reviews(), record.read(FOLDER / record.FILE)
        samples = conformance_samples.read(FOLDER / conformance_samples.FILE)
        if contradictions := problems(tables, tests, states, clauses, reviewed):
            raise ConformanceError("\n".join(contradictions))
    except (ConformanceError, record.RecordError, conformance_samples.SampleError) as exc:
        print(exc, file=sys.stderr)
        return 1
    all_pages = Pages(tables, tests, states, clauses, reviewed, measured, samples)
    pages = all_pages.render()
    for path in FOLDER.glob("*.md"):
        if path.name not in pages:
            path.unlink()
    for name, text in pages.items():
        (FOLDER / name).write_text(text, encoding="utf-8", newline="\n")
    print(all_pages.summary())
    return 0


if __name__ == "__main__":
    sys.exit(main())
