"""Samples of the conformance pages: docs/conformance/samples.tsv, a line for each random sample of rows.

Somebody who did not write the tests reads each row of a sample against its text, tests and code, and breaks
the code by hand in the clause that looks worst covered.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, fields
from pathlib import Path

FILE = "samples.tsv"


class SampleError(Exception):
    """A line that can't be read; the text has it."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The verdicts of a sample, before the rows that failed were mended.

    Attributes:
        seed: that of the draw: ``random.Random(seed).sample`` of all ids, sorted.
        rows: the number of rows drawn.
        whole: rows that their tests prove in each clause.
        labelled: rows of which states.tsv tells what is not proved.
    """

    date: str
    seed: int
    rows: int
    whole: int
    labelled: int

    def sentence(self) -> str:
        """Say in the words of the conformance page what a comparison is worth."""
        rest = self.rows - self.whole - self.labelled
        return (
            "What a comparison is worth is measured by random samples, read by somebody else who breaks the "
            f"code by hand. Of the last one ({self.date}, {self.rows} of all rows, seed {self.seed}) "
            f"{self.whole} rows were wholly proved, {self.labelled} honestly labelled, and {rest} not; "
            "those are mended."
        )


_COLUMNS = [field.name for field in fields(Sample)]


def read(path: Path) -> list[Sample]:
    """Return the samples of a file, the earliest first; none if there is no file."""
    if not path.exists():
        return []
    header, *lines = csv.reader(path.read_text(encoding="utf-8").splitlines(), delimiter="\t")
    if header != _COLUMNS:
        raise SampleError(f"{path.name}: the first line must name the columns {', '.join(_COLUMNS)}")
    samples = []
    for number, cells in enumerate(lines, 2):
        try:
            date, *counts = cells
            sample = Sample(date, *map(int, counts))
        except (TypeError, ValueError):
            raise SampleError(f"{path.name}, line {number}: not a sample") from None
        if min(sample.whole, sample.labelled) < 0 or sample.whole + sample.labelled > sample.rows:
            raise SampleError(f"{path.name}, line {number}: more rows with a verdict than rows")
        samples.append(sample)
    return samples
