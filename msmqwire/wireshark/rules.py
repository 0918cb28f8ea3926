"""Translates rules of lint to conditions in Lua.

A rule is a function of a packet. Its source is read, and what it asks of the packet becomes an expression over
the values that are kept while the packet is read. Its messages are not translated; names are resolved as Python
would: in the function, in what it encloses, in its module. What has no counterpart in Lua (regular expressions,
certificates, reading other structures) raises `Untranslatable`, and the rule is not in the script.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from types import CodeType, FunctionType
from typing import Any, Final, NamedTuple, TypeAlias
from uuid import UUID

from msmqwire.packets import unexplained_tail
from msmqwire.schema import Bits, Flags, Guid, Header, OddPadding, Raw, Text, UInt
from msmqwire.schema.nodes import Align, Choice, Fill, Maybe, Part, Sub, View
from msmqwire.schema.record import encode_text
from msmqwire.wireshark.kept import Kept, bits_of

WORD: Final = 0xFFFF_FFFF
_OPERATORS: Final[Mapping[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
}


class Untranslatable(Exception):
    """A rule asks for something that has no counterpart in Lua."""


@dataclass(frozen=True, slots=True)
class Number:
    """An integer, or a truth that is one."""

    lua: str


@dataclass(frozen=True, slots=True)
class Truth:
    lua: str


@dataclass(frozen=True, slots=True)
class Constant:
    value: Any


@dataclass(frozen=True, slots=True)
class Structure:
    """The packet, or a structure in it: `present` is the condition for it, empty if it is always there."""

    headers: tuple[Header, ...]
    path: str
    present: str = ""


@dataclass(frozen=True, slots=True)
class Word:
    node: Flags
    path: str


@dataclass(frozen=True, slots=True)
class Span:
    """Text, bytes, a GUID or padding, from `start` to `stop` of it."""

    node: Part
    path: str
    start: int = 0
    stop: int | None = None


@dataclass(frozen=True, slots=True)
class Function:
    """A method that is to be called."""

    call: Callable[[list[Value]], Value]


Value: TypeAlias = "Number | Truth | Constant | Structure | Word | Span | Function"


class Case(NamedTuple):
    """One way through a rule: the condition, and the field that it finds fault with.

    An empty path stands for that of the rule, None for no fault.
    """

    condition: str
    path: str | None


class Translation:
    """Translates the rules of packets of one kind."""

    def __init__(self, packet: Header, kept: Kept) -> None:
        self._packet, self._kept = packet, kept

    def rule(self, judge: Callable[[Any], Any]) -> list[Case]:
        """Return the ways through a rule, the first that holds counts. Raises Untranslatable."""
        cases = []
        for condition, value in self._outcomes(judge, [Structure((self._packet,), "")]):
            if isinstance(value, Constant) and value.value is None:
                cases.append(Case(condition, None))
            elif isinstance(value, Constant) and isinstance(value.value, tuple):
                cases.append(Case(condition, str(value.value[0])))
            else:
                cases.append(Case(_both(condition, self.truth(value)), ""))
        while cases and cases[-1].path is None:
            cases.pop()
        return [case for case in cases if case.condition != "false"]

    def field(self, path: str, holds: Callable[[Any], Any]) -> str:
        """Return the condition that `holds` refuses a field. Raises Untranslatable."""
        value: Value = Structure((self._packet,), "")
        for name in path.split("."):
            value = self._attribute(value, name)
        return _not(self.truth(self._call(holds, [value])))

    def header(self, name: str) -> str:
        """Return the condition that a header is in the packet, or a part of it is not None."""
        part = self._part(Structure((self._packet,), ""), name)
        return part.present or "true" if isinstance(part, Structure) else "true"

    def unused(self, path: str, parts: Flags, mask: int) -> list[Case]:
        """Return the cases that bits of a mask are set, the lowest first."""
        self._kept.keep(path)
        word = self._kept.value(path)
        return [
            Case(f"{_masked(word, mask)} == 0", None),
            *(
                Case(f"{bits_of(word, bits)} ~= 0", f"{path}.{bits.name}")
                for bits in parts.parts
                if bits.mask & mask
            ),
        ]

    # -- functions ---------------------------------------------------------------------------------

    def _outcomes(
        self, function: Any, arguments: list[Value], named: Mapping[str, Value] | None = None
    ) -> list[tuple[str, Value]]:
        """Return what a function returns under which conditions: the first that holds counts."""
        if not isinstance(function, FunctionType):
            raise Untranslatable(repr(function))
        node = _source(function.__code__)
        names = [argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)]
        given = {**dict(zip(names, arguments, strict=False)), **(named or {})}
        if len(given) != len(names):
            raise Untranslatable(f"{function.__name__}: {len(given)} arguments")
        scope = _Scope(self, function, given)
        if isinstance(node, ast.Lambda):
            return [("true", scope.value(node.body))]
        return [(condition, value) for condition, value in scope.block(node.body) if condition != "false"]

    def _call(self, function: Any, arguments: list[Value], named: Mapping[str, Value] | None = None) -> Value:
        """Return the value of a call; True or False, or a number, is one expression."""
        if function is bool:
            return Truth(self.truth(arguments[0]))
        if function is unexplained_tail:
            self._kept.keep("TrailingData")
            return Number("unexplained_tail()")
        if function is encode_text:
            return arguments[0]
        if function is len:
            return self._length(arguments[0])
        if function is any:
            return self._any(arguments[0])
        if function is int:
            return arguments[0]
        if function is isinstance:
            return self._isinstance(*arguments)
        outcomes = self._outcomes(function, arguments, named)
        if outcomes[0][0] == "true":
            return outcomes[0][1]
        truth = "false"
        for condition, value in reversed(outcomes):
            truth = _chosen(condition, self.truth(value), truth)
        return Truth(truth)

    # -- values ------------------------------------------------------------------------------------

    def number(self, value: Value) -> str:
        match value:
            case Number(lua):
                return lua
            case Word(_, path):
                self._kept.keep(path)
                return self._kept.value(path)
            case Constant(int() as number):
                return str(int(number))
        raise Untranslatable(f"{value} as a number")

    def truth(self, value: Value) -> str:
        match value:
            case Truth(lua):
                return lua
            case Constant(constant):
                return "true" if constant else "false"
            case Structure(present=present):
                return present or "true"
            case Span():
                return f"{self._size(value)} > 0"
            case Number() | Word():
                return f"{self.number(value)} ~= 0"
        raise Untranslatable(f"{value} as a truth")

    def _size(self, span: Span) -> str:
        if span.start or span.stop is not None:
            raise Untranslatable("the size of a slice")
        self._kept.keep(span.path)
        return f"({self._kept.length(span.path)} or 0)"

    def _length(self, value: Value) -> Value:
        if isinstance(value, Span):
            return Number(self._size(value))
        if isinstance(value, Constant):
            return Constant(len(value.value))
        raise Untranslatable(f"the length of {value}")

    def _any(self, value: Value) -> Value:
        if isinstance(value, Span):
            self._kept.keep(value.path)
            return Truth(f"any_set({self._kept.value(value.path)}, {self._size(value)})")
        raise Untranslatable(f"any of {value}")

    def _isinstance(self, value: Value, kind: Value) -> Value:
        if not isinstance(value, Span) or not isinstance(kind, Constant):
            raise Untranslatable("isinstance")
        self._kept.keep(value.path)
        if kind.value is OddPadding and isinstance(value.node, Align | Fill):
            return Truth(f"{self._kept.odd(value.path)} == true")
        start, size = self._kept.value(value.path), self._size(value)
        if isinstance(value.node, Text) and kind.value in (str, bytes):
            well = f"is_text({start}, {size})"
            return Truth(f"({size} > 0 and {well if kind.value is str else f'not {well}'})")
        raise Untranslatable(f"isinstance of {value.node} {kind}")

    def present(self, value: Value) -> str:
        """Return the condition that a value is not None."""
        match value:
            case Structure(present=present):
                return present or "true"
            case Span(node=Text()):
                return f"{self._size(value)} > 0"
            case Span(node=Guid() | Raw(), path=path):
                self._kept.keep(path)
                return f"{self._kept.value(path)} ~= nil"
            case Constant(constant):
                return "true" if constant is not None else "false"
            case Number(lua):
                return f"{lua} ~= nil"
        raise Untranslatable(f"{value} is None")

    def _attribute(self, value: Value, name: str) -> Value:
        match value:
            case Structure():
                return self._part(value, name)
            case Word(node, path):
                self._kept.keep(path)
                return Number(f"({bits_of(self._kept.value(path), _bits(node, name))})")
            case Constant(constant):
                return Constant(getattr(constant, name))
        raise Untranslatable(f"{name} of {value}")

    def _part(self, value: Structure, name: str) -> Value:
        path = f"{value.path}.{name}" if value.path else name
        parts = [header.part(name) for header in value.headers if name in header.fields]
        if not parts:
            if len(value.headers) > 1 or value.path:
                raise Untranslatable(f"{path} is nowhere")
            return Constant(None)
        match parts[0]:
            case UInt():
                self._kept.keep(path)
                return Number(self._kept.value(path))
            case Flags() as node:
                return Word(node, path)
            case Sub(header=header):
                return Structure((header,), path, value.present)
            case Maybe(node=Sub(header=header)) | View(header=header):
                first = _first_integer(header, path)
                self._kept.keep(first)
                return Structure((header,), path, f"{self._kept.value(first)} ~= nil")
            case Choice() as node:
                return self._choice(value, node, path)
            case Guid() | Raw() | Text() | Align() | Fill() as node:
                return Span(node, path)
            case Maybe(node=Guid() as node):
                return Span(node, path)
        raise Untranslatable(f"{path}")

    def _choice(self, owner: Structure, node: Choice, path: str) -> Structure:
        word, _, bits = node.by.partition(".")
        value = self._part(owner, word)
        number = self.number(self._attribute(value, bits) if bits else value)
        present = _any_of(f"{number} == {by}" for by, arm in node.arms.items() if arm)
        return Structure(tuple(dict.fromkeys(arm for arm in node.arms.values() if arm)), path, present)

    def get(self, value: Structure, name: str, default: Value | None) -> Value:
        """Return what ``value.get(name)`` is: None, or a default, if the structure has no such part."""
        part = self._part(value, name)
        if not isinstance(part, Number):
            return part
        if default is None:
            return part
        return Number(f"({part.lua} or {self.number(default)})")

    def item(self, value: Value, index: Value | slice) -> Value:
        """Return an element or a slice."""
        if isinstance(index, slice):
            if isinstance(value, Span) and isinstance(value.node, Raw) and index.step is None:
                return Span(value.node, value.path, index.start or 0, index.stop)
            raise Untranslatable("a slice")
        if not isinstance(index, Constant):
            raise Untranslatable("an index")
        if isinstance(value, Structure):
            return self._part(value, index.value)
        if isinstance(value, Constant):
            return Constant(value.value[index.value])
        if isinstance(value, Span) and isinstance(value.node, Raw):
            self._kept.keep(value.path)
            return Number(f"(byte(D, {self._kept.value(value.path)} + {index.value + 1}) or 0)")
        raise Untranslatable(f"an element of {value}")

    def number_of_bytes(self, span: Value) -> Value:
        """Return what ``int.from_bytes(span, "little")`` is."""
        if not isinstance(span, Span) or span.stop is None or span.stop - span.start != 4:
            raise Untranslatable("int.from_bytes")
        self._kept.keep(span.path)
        return Number(f"uint32({self._kept.value(span.path)} + {span.start})")

    def equal(self, left: Value, right: Value) -> str:
        if isinstance(left, Constant):
            left, right = right, left
        if isinstance(left, Constant) and isinstance(right, Constant):
            return "true" if left.value == right.value else "false"
        if isinstance(left, Span) and isinstance(right, Constant):
            return self._equal_bytes(left, right.value)
        return f"{self.number(left)} == {self.number(right)}"

    def _equal_bytes(self, span: Span, constant: Any) -> str:
        if isinstance(constant, str) and isinstance(span.node, Text):
            constant = encode_text(constant)
        elif isinstance(constant, UUID) and isinstance(span.node, Guid):
            constant = constant.bytes_le
        if not isinstance(constant, bytes):
            raise Untranslatable(f"{span} == {constant!r}")
        self._kept.keep(span.path)
        start, size = self._kept.value(span.path), self._kept.length(span.path)
        stop = f"min({size}, {span.stop})" if span.stop is not None else size
        literal = "".join(f"\\{byte:03d}" for byte in constant)
        return f'({start} ~= nil and sub(D, {start} + {span.start + 1}, {start} + {stop}) == "{literal}")'

    def inside(self, value: Value, container: Value) -> str:
        """Return the condition that a number is in a constant container."""
        if not isinstance(container, Constant):
            raise Untranslatable(f"in {container}")
        number, members = self.number(value), container.value
        if isinstance(members, range):
            return f"({number} >= {members.start} and {number} < {members.stop})"
        return _any_of(f"{number} == {int(member)}" for member in sorted(members))


class _Scope:
    """The names of one function, each worth its source until it is needed."""

    def __init__(self, translation: Translation, function: FunctionType, names: dict[str, Any]) -> None:
        self.translation, self.function, self.names = translation, function, names

    def inner(self, names: Mapping[str, Any]) -> _Scope:
        return _Scope(self.translation, self.function, {**self.names, **names})

    def block(self, statements: list[ast.stmt]) -> list[tuple[str, Value | None]]:
        """Return conditions and what is returned under them, in order; None goes on with the next."""
        scope = self
        outcomes: list[tuple[str, Value | None]] = []
        for statement in statements:
            match statement:
                case ast.Return(value=node):
                    outcomes += scope.returned(node)
                    return outcomes
                case ast.If(test=test, body=body, orelse=orelse):
                    condition = scope.truth(test)
                    for inner, value in scope.block(body):
                        outcomes.append((_both(condition, inner), value))
                    for inner, value in scope.block(orelse):
                        outcomes.append((_both(_not(condition), inner), value))
                case ast.For(target=ast.Name(id=name), iter=node, body=body, orelse=[]):
                    for element in scope.constant(node):
                        outcomes += scope.inner({name: Constant(element)}).block(body)
                case ast.Assign(targets=[target], value=node):
                    scope = scope.inner(_bound(target, node, scope))
                case ast.AnnAssign(target=target, value=ast.expr() as node):
                    scope = scope.inner(_bound(target, node, scope))
                case ast.Expr(value=ast.Constant()) | ast.Assert():
                    pass
                case _:
                    raise Untranslatable(ast.unparse(statement))
        return outcomes

    def returned(self, node: ast.expr | None) -> list[tuple[str, Value | None]]:
        match node:
            case None:
                return [("true", Constant(None))]
            case ast.IfExp(test=test, body=body, orelse=orelse):
                condition = self.truth(test)
                first = [(_both(condition, inner), value) for inner, value in self.returned(body)]
                return first + [
                    (_both(_not(condition), inner), value) for inner, value in self.returned(orelse)
                ]
            case ast.JoinedStr():
                return [("true", Constant("a message"))]
            case ast.Tuple(elts=[path, ast.JoinedStr() | ast.Constant()]):
                return [("true", Constant((self.constant(path), "a message")))]
            case ast.BoolOp(op=ast.And(), values=[first_value, ast.JoinedStr()]):
                return [("true", Truth(self.truth(first_value)))]
            case _:
                return [("true", self.value(node))]

    def truth(self, node: ast.expr) -> str:
        return self.translation.truth(self.value(node))

    def constant(self, node: ast.expr) -> Any:
        if isinstance(node, ast.JoinedStr):
            return "".join(
                str(self.constant(part.value))
                if isinstance(part, ast.FormattedValue)
                else self.constant(part)
                for part in node.values
            )
        value = self.value(node)
        if not isinstance(value, Constant):
            raise Untranslatable(f"{ast.unparse(node)} is no constant")
        return value.value

    def name(self, name: str) -> Value:
        if name in self.names:
            found = self.names[name]
            if isinstance(found, tuple) and len(found) == 2 and isinstance(found[1], _Scope):
                found = self.names[name] = found[1].value(found[0])
            return found  # type: ignore[no-any-return]
        closed = inspect.getclosurevars(self.function).nonlocals
        for space in (closed, self.function.__globals__, vars(builtins)):
            if name in space:
                return Constant(space[name])
        raise Untranslatable(name)

    def value(self, node: ast.expr) -> Value:
        translation = self.translation
        match node:
            case ast.Constant(value=constant):
                return Constant(constant)
            case ast.Name(id=name):
                return self.name(name)
            case ast.Tuple(elts=elements):
                return Constant(tuple(self.constant(element) for element in elements))
            case ast.Attribute(value=inner, attr=name):
                return translation._attribute(self.value(inner), name)
            case ast.Subscript(value=inner, slice=ast.Slice(lower=lower, upper=upper, step=None)):
                ends = [None if end is None else self.constant(end) for end in (lower, upper)]
                return translation.item(self.value(inner), slice(*ends))
            case ast.Subscript(value=inner, slice=index):
                return translation.item(self.value(inner), self.value(index))
            case ast.Call():
                return self.call(node)
            case ast.BoolOp(op=ast.And(), values=values):
                return Truth(f"({' and '.join(self.truth(one) for one in values)})")
            case ast.BoolOp(op=ast.Or(), values=values):
                return Truth(f"({' or '.join(self.truth(one) for one in values)})")
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return Truth(_not(self.truth(operand)))
            case ast.UnaryOp(op=ast.Invert(), operand=operand):
                return Constant(~int(self.constant(operand)))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                condition = self.truth(test)
                if condition in ("true", "false"):
                    return self.value(body if condition == "true" else orelse)
                return Truth(f"({_chosen(condition, self.truth(body), self.truth(orelse))})")
            case ast.JoinedStr():
                return Constant(self.constant(node))
            case ast.Compare(left=left, ops=ops, comparators=rights):
                return Truth(self.comparison(left, ops, rights))
            case ast.BinOp(left=left, op=op, right=right):
                return self.operation(self.value(left), op, self.value(right))
        raise Untranslatable(ast.unparse(node))

    def call(self, node: ast.Call) -> Value:
        translation = self.translation
        named = {keyword.arg or "**": self.value(keyword.value) for keyword in node.keywords}
        match node:
            case ast.Call(func=ast.Attribute(value=owner, attr="get"), args=[name, *default]):
                value = self.value(owner)
                if isinstance(value, Structure):
                    return translation.get(
                        value, self.constant(name), self.value(default[0]) if default else None
                    )
            case ast.Call(func=ast.Attribute(value=ast.Name(id="int"), attr="from_bytes"), args=[data, _]):
                return translation.number_of_bytes(self.value(data))
            case ast.Call(func=ast.Name(id="any" | "all" as name), args=[ast.GeneratorExp() as generator]):
                return Truth(self.of_all(name, generator))
        function = self.value(node.func)
        if not isinstance(function, Constant):
            raise Untranslatable(ast.unparse(node))
        return translation._call(function.value, [self.value(argument) for argument in node.args], named)

    def of_all(self, name: str, generator: ast.GeneratorExp) -> str:
        (loop,) = generator.generators
        if not isinstance(loop.target, ast.Name) or loop.ifs:
            raise Untranslatable(ast.unparse(generator))
        each = [
            self.inner({loop.target.id: Constant(element)}).truth(generator.elt)
            for element in self.constant(loop.iter)
        ]
        return f"({(' or ' if name == 'any' else ' and ').join(each)})"

    def comparison(self, left: ast.expr, ops: list[ast.cmpop], rights: list[ast.expr]) -> str:
        conditions, first = [], self.value(left)
        for op, node in zip(ops, rights, strict=True):
            if isinstance(op, ast.In) and isinstance(node, ast.Tuple):
                numbers = [self.translation.number(self.value(element)) for element in node.elts]
                return _any_of(f"{self.translation.number(first)} == {number}" for number in numbers)
            second = self.value(node)
            conditions.append(self._compared(first, op, second))
            first = second
        return conditions[0] if len(conditions) == 1 else f"({' and '.join(conditions)})"

    def _compared(self, first: Value, op: ast.cmpop, second: Value) -> str:
        translation = self.translation
        match op:
            case ast.Is() | ast.IsNot() if second == Constant(None):
                present = translation.present(first)
                return present if isinstance(op, ast.IsNot) else _not(present)
            case ast.Eq():
                return translation.equal(first, second)
            case ast.NotEq():
                return _not(translation.equal(first, second))
            case ast.In():
                return translation.inside(first, second)
            case ast.NotIn():
                return _not(translation.inside(first, second))
            case ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE():
                sign = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}[type(op)]
                return f"{translation.number(first)} {sign} {translation.number(second)}"
        raise Untranslatable(ast.dump(op))

    def operation(self, left: Value, op: ast.operator, right: Value) -> Value:
        translation = self.translation
        if isinstance(left, Constant) and isinstance(right, Constant):
            compute = _OPERATORS.get(type(op))
            if compute is None:
                raise Untranslatable(ast.dump(op))
            return Constant(compute(left.value, right.value))
        match op:
            case ast.Add() | ast.Sub() | ast.Mult():
                sign = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}[type(op)]
                return Number(f"({translation.number(left)} {sign} {translation.number(right)})")
            case ast.BitAnd():
                if isinstance(left, Constant):
                    left, right = right, left
                if isinstance(right, Constant):
                    return Number(_masked(translation.number(left), int(right.value) & WORD))
        raise Untranslatable(ast.dump(op))


def _masked(number: str, mask: int) -> str:
    """Return the bits of a number under a mask, as a sum of its runs of bits."""
    runs, shift = [], 0
    while mask >> shift:
        if mask >> shift & 1:
            width = 1
            while mask >> (shift + width) & 1:
                width += 1
            above = number if shift + width == 32 else f"{number} % {1 << shift + width}"
            runs.append(f"{above} - {number} % {1 << shift}" if shift else above)
            shift += width
        else:
            shift += 1
    return f"({' + '.join(runs) or '0'})"


def _first_integer(header: Header, path: str) -> str:
    """Return the path of the integer that a structure begins with."""
    first = header.parts[0]
    if isinstance(first, Sub):
        return _first_integer(first.header, f"{path}.{first.name}")
    assert isinstance(first, UInt | Flags)
    return f"{path}.{first.name}"


def _bits(node: Flags, name: str) -> Bits:
    try:
        return node.part(name)
    except KeyError:
        raise Untranslatable(f"{node.name}.{name}") from None


def _bound(target: ast.expr, node: ast.expr, scope: _Scope) -> dict[str, Any]:
    """Return the names that an assignment binds, each to its source and the names that hold there."""
    match target, node:
        case ast.Name(id=name), _:
            return {name: (node, scope)}
        case ast.Tuple(elts=names), ast.Tuple(elts=values) if len(names) == len(values):
            return {
                name.id: (value, scope)
                for name, value in zip(names, values, strict=True)
                if isinstance(name, ast.Name)
            }
    raise Untranslatable(ast.unparse(target))


def _both(first: str, second: str) -> str:
    if first == "true" or second == "false":
        return second
    return first if second == "true" else f"(({first}) and ({second}))"


def _chosen(condition: str, first: str, second: str) -> str:
    """Return the condition that one of two holds, by another."""
    if condition in ("true", "false"):
        return first if condition == "true" else second
    if first == "true":
        return condition if second == "false" else f"(({condition}) or ({second}))"
    if first == "false":
        return _both(_not(condition), second)
    if second == "false":
        return _both(condition, first)
    return f"(({condition}) and ({first}) or not ({condition}) and ({second}))"


def _not(condition: str) -> str:
    return {"true": "false", "false": "true"}.get(condition, f"not ({condition})")


def _any_of(conditions: Iterable[str]) -> str:
    return f"({' or '.join(conditions) or 'false'})"


@cache
def _tree(path: str) -> ast.Module:
    with open(path, encoding="utf-8") as file:
        return ast.parse(file.read())


@cache
def _source(code: CodeType) -> ast.FunctionDef | ast.Lambda:
    """Return the source of a function. Raises Untranslatable if it can't be found."""
    found: list[ast.FunctionDef | ast.Lambda] = []
    for node in ast.walk(_tree(code.co_filename)):
        if isinstance(node, ast.Lambda) and code.co_name == "<lambda>" and node.lineno == code.co_firstlineno:
            found.append(node)
        elif isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            lines = {node.lineno, *(decorator.lineno for decorator in node.decorator_list)}
            if code.co_firstlineno in lines:
                found.append(node)
    if len(found) != 1:
        raise Untranslatable(f"{code.co_name}, line {code.co_firstlineno}")
    return found[0]
