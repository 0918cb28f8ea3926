"""References in code: the meaning of its names, through imports, and the places where it cites requirements.

A comment cites for its line or for the statement below it, a docstring for its function or class, an argument
for its call.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

_CITATION = re.compile(r"\b([A-Z]{3,4}-[0-9A-Za-z.]+)-(\d+)((?:,? (?:and |to )?-\d+|, -\d+)*)")
_FURTHER = re.compile(r"(to )?-(\d+)")
_SECTION = re.compile(r"(?<![\w.-])\d+(?:\.\d+)+(?![\w-]|\.\d)")
ROUTINES = (ast.FunctionDef, ast.AsyncFunctionDef)


class Name(NamedTuple):
    """A name in a reference, with its attributes after dots."""

    name: str
    attribute: str | None


@dataclass
class Module:
    """The meaning of a module's names, and its citations."""

    path: Path
    dotted: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.path.read_bytes(), self.path)

    @cached_property
    def definitions(self) -> dict[str, list[ast.stmt]]:
        """The statements at the top that bind each name."""
        found: dict[str, list[ast.stmt]] = {}
        for statement in flat(self.tree.body):
            for name in bound(statement):
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
            if isinstance(routine, ROUTINES)
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
        """Yield the bindings of a name in a module, through imports, with the attribute still to look up."""
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


# -- syntax ---------------------------------------------------------------------------------------------


def flat(statements: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a block and of its conditional parts."""
    for statement in statements:
        if isinstance(statement, ast.If | ast.Try | ast.With | ast.For):
            for blocks in ("body", "orelse", "finalbody"):
                yield from flat(getattr(statement, blocks, ()))
            if isinstance(statement, ast.For):
                yield statement
        else:
            yield statement


def bound(statement: ast.stmt) -> Iterator[str]:
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
    """Lines of a docstring and of its subject."""


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
