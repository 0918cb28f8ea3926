"""Writes the conformance pages, docs/conformance/*.md: the proof of each requirement by tests.

The requirements are the rows of docs/conformance/*.tsv; tests name the requirements they prove with the
marker ``requirement`` (tests/support/requirements_plugin.py). docs/conformance/not-proved.tsv has the reasons
for rows without a test. Every row has one or the other.
"""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "conformance"
NOT_PROVED = "not-proved.tsv"
COLUMNS = ["id", "section", "kind", "role", "strength", "title", "requirement", "values"]
TITLES = {
    "DMPR": "[MS-MQDMPR] Common Data Model and Processing Rules",
    "MQMQ": "[MS-MQMQ] Data Structures",
    "MQQB": "[MS-MQQB] Binary Protocol",
    "MQRR": "[MS-MQRR] Queue Manager Remote Read Protocol",
    "NBFX": "[MC-NBFX], [MC-NBFS], [MC-NBFSE] .NET Binary Format",
    "NMF": "[MC-NMF] .NET Message Framing Protocol",
    "NRBF": "[MS-NRBF] .NET Remoting: Binary Format Data Structure",
    "QMS": "NetWare Queue Services",
    "SRMP": "[MC-MQSRM] SOAP Reliable Messaging Protocol (SRMP)",
}
NOTE = "<!-- Written by tools/pages/conformance.py (make conformance); changes by hand are lost. -->\n\n"
EARNED = (
    "What the marks are worth is tried by changing the code that a row's tests cover (`make mutate`, see "
    "CONTRIBUTING.md): of the 300 rows of `tools/mutate/mutate.py --rows 300 --seed 10` the tests of 299 "
    "noticed a change, those of the last one with more mutants.\n\n"
)


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
        if path.name == NOT_PROVED:
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


def read_not_proved(folder: Path = FOLDER) -> dict[str, str]:
    """Return the reasons for requirements without a test, by id."""
    path = folder / NOT_PROVED
    reasons: dict[str, str] = {}
    for id_, reason in _rows(path, ["id", "reason"]) if path.exists() else ():
        if id_ in reasons or not reason.strip():
            raise ConformanceError(
                f"{NOT_PROVED}: {id_} " + ("is there twice" if id_ in reasons else "has no reason")
            )
        reasons[id_] = reason
    return reasons


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
    tables: Mapping[str, Table], tests: Mapping[str, list[str]], reasons: Mapping[str, str]
) -> list[str]:
    """Return the faults of tables, markers and reasons, which prevent writing pages."""
    known = {id_ for table in tables.values() for id_ in table}
    return [
        *(f"{', '.join(tests[id_])}: no table has {id_}" for id_ in sorted(tests.keys() - known)),
        *(f"{NOT_PROVED}: no table has {id_}" for id_ in sorted(reasons.keys() - known)),
        *(
            f"{NOT_PROVED}: {id_} is proved, by {', '.join(tests[id_])}"
            for id_ in sorted(reasons.keys() & tests.keys())
        ),
        *(
            f"{spec}.tsv: {id_} has neither a test nor a reason in {NOT_PROVED}"
            for spec, table in tables.items()
            for id_ in table
            if id_ not in tests and id_ not in reasons
        ),
    ]


@dataclass(slots=True)
class Count:
    """A line of a coverage table."""

    all: int = 0
    proved: int = 0
    left_out: int = 0

    def row(self, *names: str) -> str:
        share = f"{100 * self.proved // self.all} %" if self.all else "-"
        return _row(*names, str(self.all), str(self.proved), str(self.left_out), share)


@dataclass(frozen=True)
class Pages:
    """The pages as text, from the tables, the tests by id and the reasons by id."""

    tables: Mapping[str, Table]
    tests: Mapping[str, list[str]]
    reasons: Mapping[str, str] = field(default_factory=dict)

    def render(self) -> dict[str, str]:
        """Return all pages by file name."""
        return {"index.md": self.index()} | {f"{spec}.md": self.specification(spec) for spec in self.tables}

    def index(self) -> str:
        everything = [row for table in self.tables.values() for row in table.values()]
        parts = [
            NOTE,
            "# Conformance\n\n",
            "Every testable requirement of the specifications has an id and a row in a table. A requirement "
            "counts as proved when a test names its id; `make test` runs those tests.\n\n",
            EARNED,
            _head("specification", "table", *_COUNTS, right=4),
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

    def specification(self, spec: str) -> str:
        rows = list(self.tables[spec].values())
        proved = [row for row in rows if row.id in self.tests]
        without = [row for row in rows if row.id not in self.tests and row.id not in self.reasons]
        left_out = [row for row in rows if row.id in self.reasons]
        parts = [
            NOTE,
            f"# {_text(_title(spec))}\n\n",
            f"{len(rows)} requirements ([{spec}.tsv]({spec}.tsv)): {len(proved)} proved, "
            f"{len(left_out)} left out with a reason, {len(without)} without a test.\n",
        ]
        if proved:
            parts += ["\n## Proved\n"]
        for chapter in dict.fromkeys(row.chapter for row in proved):
            group = [row for row in proved if row.chapter == chapter]
            parts += [f"\n### {_chapter(chapter)}\n\n", _head("id", "requirement", "tests")]
            parts += [
                _row(row.id, _text(row.title), "<br>".join(map(_test, self.tests[row.id]))) for row in group
            ]
        if left_out:
            parts += ["\n## Left out\n\n", _head("id", "requirement", "reason")]
            parts += [_row(row.id, _text(row.title), _text(self.reasons[row.id])) for row in left_out]
        if without:
            parts += ["\n## Without a test\n\n", _head("id", "strength", "kind", "requirement")]
            parts += [_row(row.id, row.strength, row.kind, _text(row.title)) for row in without]
        return "".join(parts)

    def _count(self, rows: Iterable[Requirement]) -> Count:
        count = Count()
        for row in rows:
            count.all += 1
            count.proved += row.id in self.tests
            count.left_out += row.id in self.reasons
        return count

    def _counted(
        self, name: str, rows: list[Requirement], key: Callable[[Requirement], str]
    ) -> Iterator[str]:
        yield "\n" + _head(name, *_COUNTS, right=4)
        for value in dict.fromkeys(key(row) for row in rows):
            yield self._count(row for row in rows if key(row) == value).row(_text(value))


_COUNTS = ("requirements", "proved", "left out", "share")


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
        tables, reasons, tests = read_tables(), read_not_proved(), collect_markers()
        if contradictions := problems(tables, tests, reasons):
            raise ConformanceError("\n".join(contradictions))
    except ConformanceError as exc:
        print(exc, file=sys.stderr)
        return 1
    pages = Pages(tables, tests, reasons).render()
    for path in FOLDER.glob("*.md"):
        if path.name not in pages:
            path.unlink()
    for name, text in pages.items():
        (FOLDER / name).write_text(text, encoding="utf-8", newline="\n")
    named = sum(len(table.keys() & tests.keys()) for table in tables.values())
    print(f"{named} of {sum(map(len, tables.values()))} requirements are proved by a test")
    return 0


if __name__ == "__main__":
    sys.exit(main())
