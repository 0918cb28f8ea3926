"""The changes that tests notice: docs/conformance/mutants.tsv, a line for each row that was measured.

`mutate.py --record` writes it; the conformance pages show it.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

FILE = "mutants.tsv"
AIM = 0.9
"""The share of rows whose tests are to kill at least four of five mutants."""


class RecordError(Exception):
    """A record that can't be read; the text has the line."""


@dataclass(frozen=True)
class Measured:
    """The mutants of the code about a row."""

    id: str
    killed: int
    tried: int
    """0 for a row without such code."""
    seed: int
    """The seed of the choice of mutants."""
    date: str

    @property
    def is_good(self) -> bool:
        """Whether the tests of the row kill at least four of five mutants; without a mutant they do not."""
        return is_good(self.killed, self.tried)


COLUMNS = [field.name for field in fields(Measured)]


def is_good(killed: int, tried: int) -> bool:
    """Whether these are at least four of five."""
    return tried > 0 and 5 * killed >= 4 * tried


def read(path: Path) -> list[Measured]:
    """Return the rows of a record, none if there is no file."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    header, *rows = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    if header != COLUMNS:
        raise RecordError(f"{path.name}: the first line must name the columns {', '.join(COLUMNS)}")
    found = []
    for number, cells in enumerate(rows, 2):
        try:
            id_, killed, tried, seed, date = cells
            measured = Measured(id_, int(killed), int(tried), int(seed), date)
        except ValueError:
            raise RecordError(f"{path.name}, line {number}: not a measured row") from None
        if not 0 <= measured.killed <= measured.tried:
            raise RecordError(f"{path.name}, line {number}: {killed} killed of {tried} tried")
        found.append(measured)
    return found


def write(path: Path, measured: Iterable[Measured]) -> None:
    """Add rows to the record, in the place of their earlier lines."""
    rows = {each.id: each for each in [*read(path), *measured]}
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter="\t", quoting=csv.QUOTE_NONE, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(astuple(rows[id_]) for id_ in sorted(rows))


def sentence(rows: Sequence[Measured]) -> str:
    """Say in the words of the conformance page what the marks are worth."""
    how = (
        "What the marks are worth is measured by changing the code that cites a row (`make mutate`, see "
        "CONTRIBUTING.md)"
    )
    if not rows:
        return f"{how}; no measurement is recorded."
    with_code = [row for row in rows if row.tried]
    good = sum(row.is_good for row in rows)
    killed, tried = sum(row.killed for row in rows), sum(row.tried for row in rows)
    share, last = 100 * good // len(rows), max(row.date for row in rows)
    return (
        f"{how}. Of {len(rows)} rows (last measured on {last}) {len(with_code)} have "
        f"code that was changed, and the tests of {good} ({share} %; the aim is {100 * AIM:.0f} %) notice at "
        f"least four of five changes there. Together they notice {killed} of {tried}."
    )
