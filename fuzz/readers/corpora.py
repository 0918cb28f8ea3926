"""Corpora of fuzzing: small sets of inputs, and the inputs of fixed faults, as hexadecimal text.

A corpus is a file with an input a line, shortest first; a regression is a separate file, named after the
fault. Both are replayed by the tests.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fuzz.readers.inputs import VECTORS

CORPORA: Final = VECTORS / "corpora"
REGRESSIONS: Final = VECTORS / "regressions"


def corpus(name: str) -> list[bytes]:
    """Return the kept corpus of a target; none if there is none."""
    path = CORPORA / f"{name}.hex"
    return [bytes.fromhex(line) for line in path.read_text().splitlines()] if path.exists() else []


def keep(name: str, inputs: Iterable[bytes]) -> None:
    """Write the corpus of a target anew."""
    CORPORA.mkdir(parents=True, exist_ok=True)
    lines = sorted({data.hex() for data in inputs if data}, key=lambda line: (len(line), line))
    (CORPORA / f"{name}.hex").write_text("".join(f"{line}\n" for line in lines))


def regressions(name: str) -> dict[str, bytes]:
    """Return the inputs of the faults that a target found, by their names."""
    return {path.stem: bytes.fromhex(path.read_text()) for path in sorted((REGRESSIONS / name).glob("*.hex"))}
