"""The table of all that was ever tried, from which the documentation is made.

Tab-separated: target, executions over all runs, the most edges and features that one reached, and how many
faults the target has found.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Final

from fuzz.readers.runner import Result

HEAD: Final = ("target", "executions", "edges", "features", "faults")


@dataclass(frozen=True)
class Tally:
    """A row."""

    target: str
    executions: int = 0
    edges: int = 0
    features: int = 0
    faults: int = 0


def read(path: Path) -> dict[str, Tally]:
    """Return the rows by target."""
    if not path.exists():
        return {}
    _, *lines = path.read_text().splitlines()
    rows = (line.split("\t") for line in lines)
    return {name: Tally(name, *map(int, numbers)) for name, *numbers in rows}


def write(path: Path, rows: dict[str, Tally]) -> None:
    """Write the rows, sorted by target."""
    lines = [HEAD, *(tuple(map(str, astuple(row))) for _, row in sorted(rows.items()))]
    path.write_text("".join("\t".join(line) + "\n" for line in lines))


def add(path: Path, result: Result) -> None:
    """Add a result to the table. Faults are counted by hand: not every finding is one of its own."""
    rows = read(path)
    row = rows.get(result.target, Tally(result.target))
    rows[result.target] = replace(
        row,
        executions=row.executions + result.executions,
        edges=max(row.edges, result.edges),
        features=max(row.features, result.features),
    )
    write(path, rows)
