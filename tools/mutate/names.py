"""The places where code cites requirements.

A comment cites for its line or for the statement below it, a docstring for its function or class, an argument
for its call.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

_CITATION = re.compile(
    r"\b([A-Z]{3,4}(?:-[A-Z]{3,5})?-[0-9A-Za-z.]+)-(\d+)" r"((?:,? (?:and |to )?-\d+|, -\d+)*)"
)
IDENTIFIER = re.compile(r"[A-Z]{3,4}-[0-9A-Za-z.]+-[0-9]+")
"""The id of a requirement."""
_FURTHER = re.compile(r"(to )?-(\d+)")


@dataclass(eq=False)
class Module:
    """The citations of a module."""

    path: Path
    dotted: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.path.read_bytes(), self.path)

    @cached_property
    def closest(self) -> dict[int, tuple[int, frozenset[str]]]:
        """By line of code, the ids of its closest citation, and the number of lines that this is about.

        A comment in a function that gives some lines to one row takes them away from the rows of the
        docstring.
        """
        found: dict[int, tuple[int, frozenset[str]]] = {}
        for cited, places in self.citations.items():
            for first, last in places:
                for line in range(first, last + 1):
                    size, ids = found.get(line, (last - first, frozenset()))
                    if last - first <= size:
                        found[line] = last - first, (ids if last - first == size else frozenset()) | {cited}
        return found

    @cached_property
    def citations(self) -> dict[str, list[tuple[int, int]]]:
        """The lines of code by the ids that they cite."""
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


# -- citations ------------------------------------------------------------------------------------------


def _cited(line: str) -> Iterator[str]:
    """The ids that a line names: "A-1.2-03 and -04" two ids, "A-1.2-03 to -05" three."""
    for section, first, further in _CITATION.findall(line):
        yield f"{section}-{first}"
        number = int(first)
        for to, last in _FURTHER.findall(further):
            for each in range(number + 1 if to else int(last), int(last) + 1):
                yield f"{section}-{each:02}"
            number = int(last)


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
            entries = [(key or value, value) for key, value in zip(node.keys, node.values, strict=True)]
            code |= {(first.lineno, last.end_lineno or last.lineno) for first, last in entries}
        elif isinstance(node, ast.Call | ast.stmt):
            first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
            code.add((first, node.end_lineno or node.lineno))
        elif isinstance(node, ast.Tuple | ast.List | ast.Set) and not all(map(_is_id, node.elts)):
            code |= {(each.lineno, each.end_lineno or each.lineno) for each in node.elts}
        for block in [getattr(node, "body", None)]:
            if not isinstance(block, list):
                continue
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and _is_text(block[0]):
                documented.append((*_lines(block[0]), *_lines(node)))
            documented += [(*_lines(b), *_lines(a)) for a, b in pairwise(block) if _is_text(b)]
    return _Spans(sorted(code, key=lambda span: (span[1] - span[0], span)), documented)


def _is_id(node: ast.expr) -> bool:
    """Whether a text is an id: several as one argument cite for the call."""
    return isinstance(node, ast.Constant) and bool(IDENTIFIER.fullmatch(str(node.value)))


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
