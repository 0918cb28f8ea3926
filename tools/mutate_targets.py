"""Which mutants a row is asked about: those of the code that its tests cover, what is about the row first.

In functions a line is covered if a test ran it. What runs at import (constants, schemas, tables) is covered
if the test, or a function that it ran, refers to it by name, directly or through other such statements.

Code is about a row if it cites its id, and then if it cites its section: a comment cites for its line or for
the statement below it, a docstring for its function or class, an argument for its call. Of the rest, what few
other tests cover comes first.
"""

from __future__ import annotations

import ast
import heapq
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from tools.mutants import BLUNT, Mutant, mutants

_CITATION = re.compile(r"\b([A-Z]{3,4}-[0-9A-Za-z.]+)-(\d+)((?:,? (?:and |to )?-\d+|, -\d+)*)")
_FURTHER = re.compile(r"(to )?-(\d+)")
_SECTION = re.compile(r"(?<![\w.-])\d+(?:\.\d+)+(?![\w-]|\.\d)")
_WORD = re.compile(r"[A-Za-z_]\w{2,}|\b0x[0-9A-Fa-f_]+\b")
_ROUTINES = (ast.FunctionDef, ast.AsyncFunctionDef)
_STEP = 0.15
_FAR = 0.8
"""How far away a statement may be. From a packet by its table, header and field to a constant is 4 steps."""


class Unit(NamedTuple):
    """A statement that runs at import and gives a name its value; of a function its head only."""

    path: Path
    first: int
    last: int


class Name(NamedTuple):
    """A name as code refers to it, with what follows after a dot."""

    name: str
    attribute: str | None


@dataclass
class Module:
    """What the names of a module mean, and which code cites what."""

    path: Path
    dotted: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.path.read_bytes(), self.path)

    @cached_property
    def definitions(self) -> dict[str, list[ast.stmt]]:
        """The statements at the top that bind each name."""
        found: dict[str, list[ast.stmt]] = {}
        for statement in _flat(self.tree.body):
            for name in _bound(statement):
                found.setdefault(name, []).append(statement)
        return found

    @cached_property
    def imports(self) -> dict[str, tuple[str, str | None]]:
        """The module and the name there, or None for the module itself, by the name here."""
        found: dict[str, tuple[str, str | None]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for alias in node.names:
                    found[alias.asname or alias.name] = (node.module, alias.name)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    found[alias.asname or alias.name.partition(".")[0]] = (
                        (alias.name, None) if alias.asname else (alias.name.partition(".")[0], None)
                    )
        return found

    @cached_property
    def called(self) -> list[ast.stmt]:
        """The statements of functions."""
        return [
            statement
            for routine in ast.walk(self.tree)
            if isinstance(routine, _ROUTINES)
            for child in routine.body
            for statement in ast.walk(child)
            if isinstance(statement, ast.stmt)
        ]

    @cached_property
    def citations(self) -> dict[str, list[tuple[int, int]]]:
        """The lines of code by the ids and sections that they cite."""
        found: dict[str, list[tuple[int, int]]] = {}
        lines = self.path.read_text(encoding="utf-8").splitlines()
        spans = _spans(self.tree)
        for number, line in enumerate(lines, 1):
            cited = set(_cited(line))
            if cited and (place := _place_of(number, lines, spans)):
                for each in cited:
                    found.setdefault(each, []).append(place)
        return found


class Space:
    """The modules of a project by their dotted names."""

    def __init__(self, root: Path, folders: Iterable[str]) -> None:
        self.root = root
        self._folders = {*folders}
        self._modules: dict[str, Module | None] = {}

    def module(self, dotted: str) -> Module | None:
        """Return a module of the project; None for a library's."""
        if dotted not in self._modules:
            self._modules[dotted] = None
            base = self.root.joinpath(*dotted.split("."))
            for path in (base.with_suffix(".py"), base / "__init__.py"):
                if dotted.partition(".")[0] in self._folders and path.is_file():
                    self._modules[dotted] = Module(path, dotted)
        return self._modules[dotted]

    def find(self, module: Module, name: Name) -> Iterator[tuple[Module, ast.stmt, str | None]]:
        """Yield what a name in a module is bound to, through imports, with the attribute still to look up."""
        seen: set[tuple[str, Name]] = set()
        todo = [(module, name)]
        while todo:
            module, name = todo.pop()
            if (module.dotted, name) in seen:
                continue
            seen.add((module.dotted, name))
            for statement in module.definitions.get(name.name, ()):
                yield module, statement, name.attribute
            if name.name in module.imports:
                source, original = module.imports[name.name]
                if original and (found := self.module(source)):
                    todo.append((found, Name(original, name.attribute)))
                whole = self.module(f"{source}.{original}" if original else source)
                if whole and name.attribute:
                    todo.append((whole, Name(name.attribute, None)))


@dataclass(frozen=True)
class Row:
    """A requirement, and the tests that are asked about it."""

    id: str
    tests: Sequence[str]
    lines: Mapping[Path, set[int]]
    """Lines of functions that the tests run."""
    others: Sequence[Mapping[Path, set[int]]]
    """The same of the other tests in the same files."""


@dataclass(frozen=True)
class Targets:
    """The mutants of a row in the order in which they are tried."""

    about: list[Mutant]
    """Of code that cites the row or its section."""
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
        for mutant in _ordered(lines.values(), random.Random(f"{seed} {row.id}")):
            if self._cites(mutant, row.id):
                by_id.append(mutant)
            elif self._cites(mutant, row.id.split("-")[1]):
                by_section.append(mutant)
            else:
                rest.append(mutant)
        return Targets([*by_id, *by_section], rest)

    def _covered(self, row: Row) -> list[tuple[Mutant, float]]:
        """Return the mutants of covered code with their costs: less for what is more about the row."""
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
        """The words of what a row's mark is on: its parameter or its test function."""
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

        def look_up(module: Module, node: ast.AST, cost: float) -> None:
            for name in sorted(names_in(node), key=str):
                if cost <= _FAR and (module.dotted, name) not in seen:
                    heapq.heappush(heap, (cost, len(heap) + len(seen) * 1_000_000, module, name))

        for test in row.tests:
            file, *names = test.split("::")
            module = self._module(self._root / file)
            for node in ast.walk(module.tree):
                if isinstance(node, _ROUTINES) and node.name == names[-1]:
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
                    if not isinstance(part, _ROUTINES):
                        look_up(where, part, cost + further + _STEP)
        return reached


def _shares(path: Path, lines: Iterable[int], others: Sequence[Mapping[Path, set[int]]]) -> dict[int, float]:
    """By line, how many of the other tests run it too, from 0 to 1."""
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


# -- syntax ---------------------------------------------------------------------------------------------


def _flat(statements: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a block and of what is conditional in it."""
    for statement in statements:
        if isinstance(statement, ast.If | ast.Try | ast.With | ast.For):
            for blocks in ("body", "orelse", "finalbody"):
                yield from _flat(getattr(statement, blocks, ()))
            if isinstance(statement, ast.For):
                yield statement
        else:
            yield statement


def _bound(statement: ast.stmt) -> Iterator[str]:
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Assign(targets=targets):
            yield from (n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name))
        case ast.AnnAssign(target=target) | ast.AugAssign(target=target):
            yield from (n.id for n in ast.walk(target) if isinstance(n, ast.Name))
        case ast.For(body=body):  # it may fill a table
            yield from (n.id for each in body for n in ast.walk(each) if isinstance(n, ast.Name))
        case ast.Expr(value=ast.Call() as call):  # so may a call
            yield from (n.id for n in ast.walk(call) if isinstance(n, ast.Name))


def _parts(statement: ast.stmt, attribute: str | None) -> Iterator[tuple[ast.stmt, float]]:
    """The statements that make what is referred to, and how much further away each is."""
    if not isinstance(statement, ast.ClassDef):
        yield statement, 0.0
        return
    inside = [each for each in _flat(statement.body) if not isinstance(each, _ROUTINES)]
    named = [each for each in inside if attribute in _bound(each)]
    for each in named or inside:
        if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)):
            yield each, 0.0 if named else 2 * _STEP


def _head(node: ast.stmt) -> tuple[int, int]:
    if isinstance(node, _ROUTINES):
        return node.lineno, max(node.lineno, node.body[0].lineno - 1)
    return node.lineno, node.end_lineno or node.lineno


def _range(node: ast.stmt) -> tuple[int, int]:
    body = getattr(node, "body", None)
    last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
    return node.lineno, max(node.lineno, last) + 1


def _without_body(node: ast.stmt) -> ast.AST:
    """A statement itself, of a compound one what is in its head."""
    if not getattr(node, "body", None):
        return node
    heads = [getattr(node, name) for name in ("test", "iter", "subject") if hasattr(node, name)]
    heads += getattr(node, "items", [])
    return _head_node(tuple(heads))


@cache
def _head_node(heads: tuple[ast.AST, ...]) -> ast.AST:
    return ast.Tuple(list(heads), ast.Load())  # type: ignore[arg-type]


@cache
def names_in(node: ast.AST) -> frozenset[Name]:
    """The names that some code refers to."""
    found = set()
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name):
            found.add(Name(each.value.id, each.attr))
        elif isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load):
            found.add(Name(each.id, None))
        elif isinstance(each, ast.arg):
            found.add(Name(each.arg, None))  # a fixture
    return frozenset(found)


@cache
def _words_of_file(path: Path) -> list[frozenset[str]]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [frozenset(_WORD.findall(line)) for line in lines]


def _words_of(path: Path, line: int) -> frozenset[str]:
    return _words_of_file(path)[line - 1]


# -- citations ------------------------------------------------------------------------------------------


def _cited(line: str) -> Iterator[str]:
    """The ids and sections that a line names: "A-1.2-03 and -04" two ids, "A-1.2-03 to -05" three."""
    for section, first, further in _CITATION.findall(line):
        yield f"{section}-{first}"
        number = int(first)
        for to, last in _FURTHER.findall(further):
            for each in range(number + 1 if to else int(last), int(last) + 1):
                yield f"{section}-{each:02}"
            number = int(last)
    yield from _SECTION.findall(line)


@dataclass(frozen=True)
class _Spans:
    code: list[tuple[int, int]]
    """Lines of statements, calls, entries of tables: the smallest first."""
    documented: list[tuple[int, int, int, int]]
    """Lines of a docstring and of what it is about."""


def _spans(tree: ast.Module) -> _Spans:
    code: set[tuple[int, int]] = set()
    documented = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            code |= {
                (k.lineno, v.end_lineno or v.lineno) for k, v in zip(node.keys, node.values, strict=True) if k
            }
        elif isinstance(node, ast.Call | ast.stmt):
            first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
            code.add((first, node.end_lineno or node.lineno))
        elif isinstance(node, ast.Tuple | ast.List | ast.Set):
            code |= {(each.lineno, each.end_lineno or each.lineno) for each in node.elts}
        for block in [getattr(node, "body", None)]:
            if not isinstance(block, list):
                continue
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and _is_text(block[0]):
                documented.append((*_lines(block[0]), *_lines(node)))
            documented += [(*_lines(b), *_lines(a)) for a, b in pairwise(block) if _is_text(b)]
    return _Spans(sorted(code, key=lambda span: (span[1] - span[0], span)), documented)


def _lines(node: ast.stmt) -> tuple[int, int]:
    return node.lineno, node.end_lineno or node.lineno


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _place_of(number: int, lines: Sequence[str], spans: _Spans) -> tuple[int, int] | None:
    """The lines of code that a citation in a line is about."""
    for first, last, about, end in spans.documented:
        if first <= number <= last:
            return about, end
    while number <= len(lines) and (
        not lines[number - 1].strip() or lines[number - 1].strip().startswith("#")
    ):
        number += 1
    return next(((first, last) for first, last in spans.code if first <= number <= last), None)
