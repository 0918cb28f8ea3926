"""The kept corpora, from the corpora of runs, and the lines that they reach."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from fuzz.readers.corpora import corpus, keep
from fuzz.readers.registry import Target
from fuzz.readers.tracing import PACKAGE, fewest, lines_of, steps_of
from msmqwire.names.printable import counted

CORPUS_MAX: Final = 20_000
"""Bytes of a kept corpus, twice as many in hexadecimal."""
PARTS: Final = (
    "analysis/dissection", "analysis/lint", "bodies", "capture", "crypto", "framing", "headers", "management",
    "names", "ncp", "packets", "pgm", "remote_read", "rpc", "schema", "srmp",
)  # fmt: skip
"""The parts of msmqwire whose lines are counted."""


def keep_fewest(targets: Sequence[Target], folder: Path) -> None:
    """Make the kept corpora from the folder: the fewest inputs that take the same steps."""
    for target in targets:
        found = [path.read_bytes() for path in (folder / "corpora" / target.name).glob("*")]
        chosen = fewest(target.check, [*found, *corpus(target.name)], CORPUS_MAX)
        keep(target.name, chosen)
        print(
            f"{target.name}: {len(chosen)} of {counted(len(found), 'input')},"
            f" {counted(sum(map(len, chosen)), 'byte')}",
            flush=True,
        )


def reached(targets: Sequence[Target]) -> dict[str, tuple[int, int]]:
    """Return how many lines of functions the kept corpora reach in each part, and how many there are."""
    lines = defaultdict[str, set[int]](set)
    for target in targets:
        for data in (*target.seeds(), *corpus(target.name)):
            for file, line, _ in steps_of(target.check, data):
                lines[file].add(line)
    result = {}
    for part in PARTS:
        files = [*PACKAGE.glob(f"{part}.py"), *(PACKAGE / part).rglob("*.py")]
        there = {path: lines_of(path) for path in files}
        result[part] = (
            sum(len(there[path] & lines[str(path)]) for path in files),
            sum(map(len, there.values())),
        )
    return result


def write_reached(path: Path, parts: dict[str, tuple[int, int]]) -> None:
    """Write the result of `reached`, tab-separated."""
    lines = [f"{part}\t{found}\t{there}\n" for part, (found, there) in parts.items()]
    path.write_text("".join(["part\treached\tlines\n", *lines]))


def read_reached(path: Path) -> dict[str, tuple[int, int]]:
    """Return the bytes written so."""
    _, *lines = path.read_text().splitlines()
    return {part: (int(found), int(there)) for part, found, there in (line.split("\t") for line in lines)}
