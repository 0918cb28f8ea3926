"""The mutants for a row: mutants of the code about it that its tests cover.

Code is about a row if it cites its id, in a comment, a docstring or an argument, and no closer citation gives
the lines to other rows. Lines that few other tests cover come first.

In functions a line is covered if a test ran it, or the import of a module that it needs; other code that runs
at import (constants, schemas, tables) always is.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path

from tools.mutate.mutants import BLUNT, Mutant, mutants
from tools.mutate.names import Module, Space

_WORD = re.compile(r"[A-Za-z_]\w{2,}|\b0x[0-9A-Fa-f_]+\b")


@dataclass(frozen=True)
class Row:
    """A requirement, and the tests that are asked about it."""

    id: str
    tests: Sequence[str]
    lines: Mapping[Path, set[int]]
    """Lines of functions that the tests run."""
    others: Sequence[Mapping[Path, set[int]]]
    """The code of the other tests in the same files."""
    imported: Mapping[Path, set[int]]
    """Lines of functions that run when the tests are imported."""


class Chooser:
    """Finds the mutants for a row."""

    def __init__(self, root: Path, packages: Iterable[str], excluded: Iterable[str] = ()) -> None:
        self._root = root
        self._packages = tuple(packages)
        self._excluded = tuple(root / each for each in excluded)
        self._space = Space(root, [*self._packages, "tests"])

    def nearby(self, row: str) -> list[tuple[Path, int]]:
        """Return the places that cite the rows next to one in its section, the closest first."""
        section, _, number = row.rpartition("-")
        others = [name for name in self._modules_by_name if name.rpartition("-")[0] == section]
        others.sort(key=lambda name: (abs(int(name.rpartition("-")[2]) - int(number)), name))
        return list(dict.fromkeys(place for name in others for place in self.cited(name)))

    def cited(self, name: str) -> list[tuple[Path, int]]:
        """Return the places of the product that cite a row, by their first lines."""
        return [
            (module.path, first)
            for module in self._modules_by_name.get(name, ())
            for first, _ in module.citations[name]
        ]

    def mutants(self, row: Row, seed: str) -> list[Mutant]:
        """Return the mutants of the code about a row that its tests cover, in the order of their trials."""
        words = self._words(row)
        lines: dict[tuple[Path, int], list[tuple[float, Mutant]]] = {}
        for module in self._modules_by_name.get(row.id, ()):
            share = _shares(module.path, row.lines.get(module.path, ()), row.others)
            imported = row.imported.get(module.path, set())
            for each in mutants(module.path):
                size, ids = module.closest.get(each.line, (0, frozenset()))
                if row.id not in ids:
                    continue
                mutant, cost = each, _cost(each, share)
                if cost is None and not imported.isdisjoint(range(each.first, each.last + 1)):
                    mutant, cost = replace(each, called=False), 1.0  # its module is imported anew
                if cost is not None:
                    cost += size  # a comment on a line is closer than a docstring
                    lines.setdefault((mutant.path, mutant.line), []).append((cost, mutant))
        shared = {place: words & _words_of(*place) for place in lines}
        frequency = Counter(word for some in shared.values() for word in some)
        gains = {place: max((1 / frequency[w] for w in some), default=0) for place, some in shared.items()}
        found = [[(cost - gains[place], mutant) for cost, mutant in some] for place, some in lines.items()]
        return _ordered(found, random.Random(f"{seed} {row.id}"))

    @cached_property
    def _modules_by_name(self) -> dict[str, list[Module]]:
        """The modules of the product by the ids that they cite."""
        found: dict[str, list[Module]] = {}
        for package in self._packages:
            for path in sorted((self._root / package).rglob("*.py")):
                if self._is_product(path):
                    module = self._module(path)
                    for cited in module.citations:
                        found.setdefault(cited, []).append(module)
        return found

    def _module(self, path: Path) -> Module:
        parts = path.relative_to(self._root).with_suffix("").parts
        module = self._space.module(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
        assert module, path
        return module

    def _is_product(self, path: Path) -> bool:
        name = path.relative_to(self._root).parts[0]
        return name in self._packages and not any(path.is_relative_to(each) for each in self._excluded)

    def _words(self, row: Row) -> set[str]:
        """The words of the marked item of a row: a parameter or a test function."""
        found: set[str] = set()
        for test in row.tests:
            path = self._root / test.partition("::")[0]
            module = self._module(path)
            text = path.read_text(encoding="utf-8").splitlines()
            for first, last in module.citations.get(row.id, ()):
                found.update(word for line in text[first - 1 : last] for word in _WORD.findall(line))
        return found


def _shares(path: Path, lines: Iterable[int], others: Sequence[Mapping[Path, set[int]]]) -> dict[int, float]:
    """By line, the share of the other tests that run it too, from 0 to 1."""
    counted = Counter(line for each in others for line in each.get(path, ()))
    return {line: counted[line] / max(1, len(others)) for line in lines}


def _ordered(lines: Iterable[list[tuple[float, Mutant]]], chance: random.Random) -> list[Mutant]:
    """One mutant of each line, the best lines first, then a second one of each, and so on."""
    found = []
    for of_line in lines:
        drawn = [(mutant.subtlety, chance.random(), cost, mutant) for cost, mutant in of_line]
        drawn.sort(key=lambda each: each[:2])
        found += [
            (turn + (subtlety == BLUNT), cost, tie, mutant)
            for turn, (subtlety, tie, cost, mutant) in enumerate(drawn)
        ]
    found.sort(key=lambda each: each[:3])
    return [mutant for *_, mutant in found]


def _cost(mutant: Mutant, share: Mapping[int, float]) -> float | None:
    """The smallest share of other tests that run a line of the changed statement; None if no line was run."""
    if not mutant.called:
        return 0.0
    return min((share[line] for line in range(mutant.first, mutant.last + 1) if line in share), default=None)


@cache
def _words_of_file(path: Path) -> list[frozenset[str]]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [frozenset(_WORD.findall(line)) for line in lines]


def _words_of(path: Path, line: int) -> frozenset[str]:
    return _words_of_file(path)[line - 1]
