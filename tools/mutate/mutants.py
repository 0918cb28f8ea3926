"""The mutants of a module: its syntax tree with one small change each.

A change replaces one node of the tree, so that a mutant is compiled from the tree and no file is touched.
Code that no test of behaviour could notice is left unchanged: annotations and what is for type checkers only,
docstrings, `__repr__`, sentences for people and the words of errors, requirement ids, assertions.
"""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType

from tools.mutate.names import IDENTIFIER

SUBTLE, REMOVAL, BLUNT = range(3)
"""The visibility of a change: few tests notice a subtle one; all tests notice a blunt one, or none if it is
in a text. A blunt one may put a value of a nonsensical type in place of another; the others let the program
go another way, or without something.
"""

_COMPARISONS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_NEGATIONS = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)
_ARITHMETIC: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult,
    ast.Mod: ast.Mult, ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitAnd,
}  # fmt: skip
_LOGIC: dict[type[ast.AST], type[ast.AST]] = {ast.And: ast.Or, ast.Or: ast.And}
_SIGNS = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Is: "is",
    ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in", ast.Add: "+", ast.Sub: "-", ast.Mult: "*",
    ast.FloorDiv: "//", ast.Div: "/", ast.Mod: "%", ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&",
    ast.BitOr: "|", ast.BitXor: "^", ast.And: "and", ast.Or: "or",
}  # fmt: skip

_KEPT = {"annotation", "returns", "type_params", "decorator_list", "bases"}
_KEPT_NAMES = {"__all__", "__slots__", "__match_args__"}
_FOR_PEOPLE = {"__repr__", "__rich_repr__", "_repr_html_", "_repr_pretty_"}
_DOCUMENTING = {"req", "order_req", "section", "meaning"}
"""Arguments of schemas that the documentation is made of."""
_TYPES = {"TypeVar", "ParamSpec", "NewType", "Literal", "Annotated"}
"""Calls and subscripts that tell type checkers something."""
_ROUTINES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)

Place = tuple[int, str, int | None]
"""A node of a tree: the number of its parent in `ast.walk`, the parent's field, the position in a list."""


@dataclass(frozen=True)
class Mutant:
    """One change of one module."""

    path: Path
    line: int
    first: int
    last: int
    """The lines of the changed statement; for a compound statement, of its head."""
    called: bool
    """Whether the change is in the body of a function; other code runs when the module is imported."""
    subtlety: int
    text: str
    place: Place
    replacement: ast.AST

    def code(self) -> CodeType:
        """Compile the module with the change."""
        tree = ast.parse(self.path.read_bytes(), self.path)
        number, field, position = self.place
        parent = _numbered(tree)[number]
        if position is None:
            setattr(parent, field, self.replacement)
        else:
            getattr(parent, field)[position] = self.replacement
        return compile(ast.fix_missing_locations(tree), self.path, "exec", dont_inherit=True)

    def exchange(self) -> bool:
        """Give the functions of the imported module the changed code; False if that can't be done."""
        changed: dict[tuple[str, int], list[CodeType]] = {}
        for code in _codes(self.code()):
            changed.setdefault((code.co_qualname, code.co_firstlineno), []).append(code)
        found = False
        gc.unfreeze()  # frozen objects are in no list
        for each in gc.get_objects():
            if isinstance(each, FunctionType) and each.__code__.co_filename == str(self.path):
                old = each.__code__
                new = changed.get((old.co_qualname, old.co_firstlineno), [])
                if len(new) != 1 or new[0].co_freevars != old.co_freevars:
                    return False
                each.__code__ = new[0]
                found = True
        return found


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


@cache
def mutants(path: Path) -> tuple[Mutant, ...]:
    """Return all mutants of a module, in the order of its syntax tree."""
    tree = ast.parse(path.read_bytes(), path)
    return tuple(_Finder(path, tree).in_block(tree, called=False))


def _numbered(tree: ast.AST) -> list[ast.AST]:
    return list(ast.walk(tree))


class _Finder:
    def __init__(self, path: Path, tree: ast.AST) -> None:
        self._path = path
        self._numbers = {id(node): number for number, node in enumerate(_numbered(tree))}

    def in_block(self, parent: ast.AST, called: bool) -> Iterator[Mutant]:
        """Go through the statements of a block and their contents."""
        for field, position, child in _children(parent):
            if isinstance(child, ast.stmt):
                yield from self._in_statement(parent, field, position, child, called)
            elif isinstance(child, ast.ExceptHandler | ast.match_case):
                yield from self.in_block(child, called)

    def _in_statement(
        self, parent: ast.AST, field: str, position: int | None, node: ast.stmt, called: bool
    ) -> Iterator[Mutant]:
        if _is_kept(node):
            return
        span = _head(node)
        for subtlety, text, new in _instead_of_statement(node):
            place = (self._numbers[id(parent)], field, position)
            yield Mutant(self._path, node.lineno, *span, called, subtlety, text, place, new)
        yield from self._in_expressions(node, span, called, isinstance(node, ast.Raise))
        yield from self.in_block(node, called or isinstance(node, _ROUTINES))

    def _in_expressions(
        self, parent: ast.AST, span: tuple[int, int], called: bool, raised: bool
    ) -> Iterator[Mutant]:
        for field, position, child in _children(parent):
            if isinstance(child, ast.stmt | ast.ExceptHandler):
                continue
            if isinstance(child, ast.match_case):
                yield from self._in_expressions(child, _span(child.pattern), called, raised)
                continue
            if isinstance(child, ast.keyword) and child.arg in _DOCUMENTING:
                continue
            if _is_for_types(parent, field, child):
                continue
            line = getattr(child, "lineno", getattr(parent, "lineno", span[0]))
            place = (self._numbers[id(parent)], field, position)
            for subtlety, text, new in _instead_of(parent, field, child):
                if not (raised and isinstance(child, ast.Constant | ast.Attribute)):
                    at = getattr(new, "lineno", line)
                    yield Mutant(self._path, at, *span, called, subtlety, text, place, new)
            if isinstance(child, ast.JoinedStr):
                continue
            inner, within = called, span
            if isinstance(parent, ast.Lambda) and field == "body":
                inner, within = True, _span(child)
            yield from self._in_expressions(child, within, inner, raised)


def _children(parent: ast.AST) -> Iterator[tuple[str, int | None, ast.AST]]:
    for field, value in ast.iter_fields(parent):
        if field in _KEPT or (isinstance(parent, ast.ClassDef) and field == "keywords"):
            continue
        if isinstance(value, ast.AST):
            yield field, None, value
        elif isinstance(value, list):
            yield from (
                (field, number, item) for number, item in enumerate(value) if isinstance(item, ast.AST)
            )


def _is_kept(node: ast.stmt) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name):
        return node.test.id == "TYPE_CHECKING"
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id in _KEPT_NAMES
    if isinstance(node, ast.FunctionDef):
        return node.name in _FOR_PEOPLE
    return isinstance(node, ast.Assert | ast.Import | ast.ImportFrom)


def _is_for_types(parent: ast.AST, field: str, child: ast.AST) -> bool:
    """Whether an expression tells type checkers something: Literal["a"], the first argument of `cast`."""
    if isinstance(child, ast.Call | ast.Subscript):
        named = child.func if isinstance(child, ast.Call) else child.value
        if isinstance(named, ast.Name) and named.id in _TYPES:
            return True
    return (
        isinstance(parent, ast.Call)
        and isinstance(parent.func, ast.Name)
        and parent.func.id == "cast"
        and field == "args"
        and child is parent.args[0]
    )


def _span(node: ast.AST) -> tuple[int, int]:
    first: int = getattr(node, "lineno")  # noqa: B009 - a node of any kind that has lines
    return first, getattr(node, "end_lineno", None) or first


def _head(node: ast.stmt) -> tuple[int, int]:
    body = getattr(node, "body", None) or getattr(node, "cases", None)
    if not body:
        return _span(node)
    start = body[0].pattern.lineno if isinstance(body[0], ast.match_case) else body[0].lineno
    return node.lineno, max(node.lineno, start - 1)


def _instead_of_statement(node: ast.stmt) -> Iterator[tuple[int, str, ast.AST]]:
    shown = _shown(node)
    match node:
        case ast.Return(value=value) if value and not _is_none(value):
            yield BLUNT, f"{shown} -> return None", ast.Return(ast.Constant(None))
        case (
            ast.Expr(value=ast.Call() | ast.Await() | ast.Yield() | ast.YieldFrom())
            | ast.AugAssign()
            | ast.Raise()
            | ast.Delete()
            | ast.Continue()
            | ast.Break()
        ):
            yield REMOVAL, f"{shown} -> nothing", ast.Pass()
        case ast.Assign(targets=targets) if all(map(_is_place, targets)):
            yield REMOVAL, f"{shown} -> nothing", ast.Pass()


def _instead_of(parent: ast.AST, field: str, child: ast.AST) -> Iterator[tuple[int, str, ast.AST]]:
    kind = type(child)
    for swaps in (_COMPARISONS, _ARITHMETIC, _LOGIC):
        if kind in swaps:
            yield SUBTLE, f"{_SIGNS[kind]} -> {_SIGNS[swaps[kind]]}", swaps[kind]()
    if isinstance(child, ast.expr) and _is_condition(parent, field) and not _swaps_to_its_negation(child):
        negated = ast.copy_location(ast.UnaryOp(ast.Not(), child), child)
        yield SUBTLE, f"{_shown(child)} -> not ...", negated
    if isinstance(child, ast.Attribute) and isinstance(child.ctx, ast.Load) and field in ("args", "elts"):
        yield BLUNT, f"{_shown(child)} -> 0", ast.copy_location(ast.Constant(0), child)
    match child:
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield SUBTLE, f"{_shown(child)} -> {_shown(operand)}", operand
        case ast.Constant():
            for value in _other_values(child.value):
                subtlety = BLUNT if isinstance(value, str) else SUBTLE
                yield subtlety, f"{child.value!r} -> {value!r}", ast.copy_location(ast.Constant(value), child)
        case ast.Dict(keys=keys, values=values) if len(keys) > 1:
            for number, key in enumerate(keys):
                rest = ast.Dict(
                    [*keys[:number], *keys[number + 1 :]], [*values[:number], *values[number + 1 :]]
                )
                at = key or values[number]
                yield REMOVAL, f"{_shown(at)}: ... -> nothing", ast.copy_location(rest, at)
                if other := _another(values[number], values):
                    exchanged = ast.Dict(keys, [*values[:number], other, *values[number + 1 :]])
                    yield SUBTLE, f"{_shown(at)}: ... -> {_shown(other)}", ast.copy_location(exchanged, at)
        case ast.List(elts=elements) | ast.Set(elts=elements) | ast.Tuple(elts=elements):
            if len(elements) > 1 and (
                kind is not ast.Tuple or all(isinstance(e, ast.Call) for e in elements)
            ):
                for number, element in enumerate(elements):
                    rest_of = [*elements[:number], *elements[number + 1 :]]
                    shorter = ast.Set(rest_of) if kind is ast.Set else kind(rest_of, ast.Load())
                    yield REMOVAL, f"{_shown(element)} -> nothing", ast.copy_location(shorter, element)
        case ast.Call(func=func, args=arguments, keywords=keywords):
            for number, keyword in enumerate(keywords):
                if keyword.arg not in {None, *_DOCUMENTING} and not isinstance(keyword.value, ast.Constant):
                    call = ast.Call(func, arguments, [*keywords[:number], *keywords[number + 1 :]])
                    yield BLUNT, f"{_shown(keyword)} -> nothing", ast.copy_location(call, keyword)


def _another(value: ast.expr, values: list[ast.expr]) -> ast.expr | None:
    """Another member of the same class among the values of a table, such as a state."""
    if not isinstance(value, ast.Attribute):
        return None
    return next(
        (
            each
            for each in values
            if isinstance(each, ast.Attribute)
            and each.attr != value.attr
            and ast.dump(each.value) == ast.dump(value.value)
        ),
        None,
    )


def _is_place(target: ast.expr) -> bool:
    """Whether an assignment to a target can be left out without a name being unknown."""
    if isinstance(target, ast.Tuple):
        return all(map(_is_place, target.elts))
    return isinstance(target, ast.Attribute | ast.Subscript)


def _is_condition(parent: ast.AST, field: str) -> bool:
    return (isinstance(parent, ast.If | ast.While | ast.IfExp) and field == "test") or (
        isinstance(parent, ast.comprehension | ast.match_case) and field in ("ifs", "guard")
    )


def _swaps_to_its_negation(node: ast.AST) -> bool:
    """Whether the change of its operator already negates a condition."""
    if isinstance(node, ast.Compare):
        return len(node.ops) == 1 and isinstance(node.ops[0], _NEGATIONS)
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)


def _other_values(value: object) -> Iterator[bool | int | float | str | bytes]:
    match value:
        case bool():
            yield not value
        case int() | float():
            yield value + 1
        case str() if not any(map(str.isspace, value)) and not IDENTIFIER.match(value):
            # a text with spaces is a sentence for people
            yield f"{value}x"
        case bytes():
            yield value[:-1] + bytes([value[-1] ^ 1]) if value else b"x"


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _shown(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
