"""The mutants for a row: mutants of the code that its tests cover, code about the row first.

In functions a line is covered if a test ran it. Code that runs at import (constants, schemas, tables) is
covered if the test, or a function that it ran, refers to it by name, directly or through other such
statements.

Code is about a row if it cites its id, and then if it cites its section. In the other code, lines that few
other tests cover come first, in turn with any lines that not all of them run.
"""

from __future__ import annotations

import ast
import heapq
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count, zip_longest
from pathlib import Path
from typing import NamedTuple

from tools.mutate.mutants import BLUNT, Mutant, mutants
from tools.mutate.names import ROUTINES, Module, Name, Space, bound, flat, names_in

_WORD = re.compile(r"[A-Za-z_]\w{2,}|\b0x[0-9A-Fa-f_]+\b")
_STEP = 0.15
_FAR = 0.8
"""The greatest distance of a statement. From a packet by its table, header and field to a constant is 4
steps.
"""


class Unit(NamedTuple):
    """A statement that runs at import and gives a name its value; of a function its head only."""

    path: Path
    first: int
    last: int


@dataclass(frozen=True)
class Row:
    """A requirement, and the tests that are asked about it."""

    id: str
    tests: Sequence[str]
    lines: Mapping[Path, set[int]]
    """Lines of functions that the tests run."""
    others: Sequence[Mapping[Path, set[int]]]
    """The code of the other tests in the same files."""


@dataclass(frozen=True)
class Targets:
    """The mutants of a row in the order in which they are tried."""

    about: list[Mutant]
    """The weight of code that cites the row or its section."""
    elsewhere: list[Mutant]


class Chooser:
    """Finds the mutants for a row."""

    def __init__(self, root: Path, packages: Iterable[str], excluded: Iterable[str] = ()) -> None:
        self._root = root
        self._packages = tuple(packages)
        self._excluded = tuple(root / each for each in excluded)
        self._space = Space(root, [*self._packages, "tests"])

    def targets(self, row: Row, seed: str) -> Targets:
        """Return the mutants of the code that the tests of a row cover."""
        found = self._covered(row)
        words = self._words(row)
        frequency: Counter[str] = Counter()
        for path, line in {(mutant.path, mutant.line) for mutant, _ in found}:
            frequency.update(words & _words_of(path, line))
        lines: dict[tuple[Path, int], list[tuple[float, Mutant]]] = {}
        for mutant, cost in found:
            shared = words & _words_of(mutant.path, mutant.line)
            gain = max((1 / frequency[word] for word in shared), default=0)
            lines.setdefault((mutant.path, mutant.line), []).append((cost - gain, mutant))
        by_id, by_section, rest = [], [], []
        chance = random.Random(f"{seed} {row.id}")
        for mutant in _ordered(lines.values(), chance):
            if self._cites(mutant, row.id):
                by_id.append(mutant)
            elif self._cites(mutant, row.id.split("-")[1]):
                by_section.append(mutant)
            else:
                rest.append(mutant)
        own = {mutant for mutant, cost in found if mutant.called and cost < 1}
        return Targets([*by_id, *by_section], _alternating(rest, own, chance))

    def _covered(self, row: Row) -> list[tuple[Mutant, float]]:
        """Return the mutants of covered code with their costs: less for code closer to the row."""
        shares = {path: _shares(path, lines, row.others) for path, lines in row.lines.items()}
        units: dict[Path, list[tuple[Unit, float]]] = {}
        for unit, cost in self._reached(row, shares).items():
            units.setdefault(unit.path, []).append((unit, cost))
        found = []
        for path in sorted({*shares, *units}):
            share, here = shares.get(path, {}), units.get(path, [])
            for mutant in mutants(path):
                if mutant.called:
                    costs = [share[line] for line in range(mutant.first, mutant.last + 1) if line in share]
                else:
                    costs = [cost for unit, cost in here if unit.first <= mutant.line <= unit.last]
                if costs:
                    found.append((mutant, min(costs)))
        return found

    def _cites(self, mutant: Mutant, cited: str) -> bool:
        module = self._module(mutant.path)
        return any(first <= mutant.line <= last for first, last in module.citations.get(cited, ()))

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

    def _reached(self, row: Row, shares: Mapping[Path, Mapping[int, float]]) -> dict[Unit, float]:
        """Return the product's statements that the tests refer to, and how far away each is."""
        reached: dict[Unit, float] = {}
        heap: list[tuple[float, int, Module, Name]] = []
        seen: set[tuple[str, Name]] = set()
        ties = count()

        def look_up(module: Module, node: ast.AST, cost: float) -> None:
            for name in sorted(names_in(node), key=str):
                if cost <= _FAR and (module.dotted, name) not in seen:
                    heapq.heappush(heap, (cost, next(ties), module, name))

        for test in row.tests:
            file, *names = test.split("::")
            module = self._module(self._root / file)
            for node in ast.walk(module.tree):
                if isinstance(node, ROUTINES) and node.name == names[-1]:
                    look_up(module, node, 0.0)
        for path in sorted(shares):
            module = self._module(path)
            for node in module.called:
                share = min((shares[path].get(line, 9) for line in range(*_range(node))), default=9)
                if share <= 1:
                    look_up(module, _without_body(node), _STEP + share / 2)
        while heap:
            cost, _, module, name = heapq.heappop(heap)
            if (module.dotted, name) in seen:
                continue
            seen.add((module.dotted, name))
            for where, statement, attribute in self._space.find(module, name):
                if not self._is_product(where.path):
                    look_up(where, statement, cost)
                    continue
                for part, further in _parts(statement, attribute):
                    unit = Unit(where.path, *_head(part))
                    reached[unit] = min(reached.get(unit, 9.0), cost + further)
                    if not isinstance(part, ROUTINES):
                        look_up(where, part, cost + further + _STEP)
        return reached


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


def _alternating(mutants: list[Mutant], own: set[Mutant], chance: random.Random) -> list[Mutant]:
    """In turn the best one and any one of a function, except code that all tests run, such as an engine's
    start.
    """
    any_ones = [mutant for mutant in mutants if mutant in own]
    chance.shuffle(any_ones)
    pairs = zip_longest(mutants, any_ones)
    return list(dict.fromkeys(mutant for pair in pairs for mutant in pair if mutant))


# -- syntax ---------------------------------------------------------------------------------------------


def _parts(statement: ast.stmt, attribute: str | None) -> Iterator[tuple[ast.stmt, float]]:
    """The statements that define a reference, and the additional distance of each."""
    if not isinstance(statement, ast.ClassDef):
        yield statement, 0.0
        return
    inside = [each for each in flat(statement.body) if not isinstance(each, ROUTINES)]
    named = [each for each in inside if attribute in bound(each)]
    for each in named or inside:
        if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)):
            yield each, 0.0 if named else 2 * _STEP


def _head(node: ast.stmt) -> tuple[int, int]:
    if isinstance(node, ROUTINES):
        return node.lineno, max(node.lineno, node.body[0].lineno - 1)
    return node.lineno, node.end_lineno or node.lineno


def _range(node: ast.stmt) -> tuple[int, int]:
    body = getattr(node, "body", None)
    last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
    return node.lineno, max(node.lineno, last) + 1


def _without_body(node: ast.stmt) -> ast.AST:
    """A statement itself, or the head of a compound one."""
    if not getattr(node, "body", None):
        return node
    heads = [getattr(node, name) for name in ("test", "iter", "subject") if hasattr(node, name)]
    heads += getattr(node, "items", [])
    return _head_node(tuple(heads))


@cache
def _head_node(heads: tuple[ast.AST, ...]) -> ast.AST:
    return ast.Tuple(list(heads), ast.Load())  # type: ignore[arg-type]


@cache
def _words_of_file(path: Path) -> list[frozenset[str]]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [frozenset(_WORD.findall(line)) for line in lines]


def _words_of(path: Path, line: int) -> frozenset[str]:
    return _words_of_file(path)[line - 1]
