"""Reads the source of a rule of lint: its names, statements and expressions."""

from __future__ import annotations

import ast
import builtins
import inspect
import operator
from collections.abc import Callable, Mapping
from functools import cache
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Final

from msmqwire.plugins.wireshark.conditions import (
    WORD,
    Constant,
    Number,
    Structure,
    Truth,
    Untranslatable,
    Value,
    any_of,
    both,
    chosen,
    negated,
)

if TYPE_CHECKING:
    from msmqwire.plugins.wireshark.rules import Translation

_OPERATORS: Final[Mapping[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
}


class Scope:
    """The names of one function, each bound to its source until it is needed."""

    def __init__(self, translation: Translation, function: FunctionType, names: dict[str, Any]) -> None:
        self.translation, self.function, self.names = translation, function, names

    def inner(self, names: Mapping[str, Any]) -> Scope:
        return Scope(self.translation, self.function, {**self.names, **names})

    def block(self, statements: list[ast.stmt]) -> list[tuple[str, Value]]:
        """Return conditions with their return values, in order: the first that holds counts."""
        scope = self
        outcomes: list[tuple[str, Value]] = []
        for statement in statements:
            match statement:
                case ast.Return(value=node):
                    outcomes += scope.returned(node)
                    return outcomes
                case ast.If(test=test, body=body, orelse=orelse):
                    condition = scope.truth(test)
                    for inner, value in scope.block(body):
                        outcomes.append((both(condition, inner), value))
                    for inner, value in scope.block(orelse):
                        outcomes.append((both(negated(condition), inner), value))
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

    def returned(self, node: ast.expr | None) -> list[tuple[str, Value]]:
        match node:
            case None:
                return [("true", Constant(None))]
            case ast.IfExp(test=test, body=body, orelse=orelse):
                condition = self.truth(test)
                first = [(both(condition, inner), value) for inner, value in self.returned(body)]
                return first + [
                    (both(negated(condition), inner), value) for inner, value in self.returned(orelse)
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
            raise Untranslatable(f"{ast.unparse(node)} is not a constant")
        return value.value

    def name(self, name: str) -> Value:
        if name in self.names:
            found = self.names[name]
            if isinstance(found, tuple) and len(found) == 2 and isinstance(found[1], Scope):
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
                return translation.attribute(self.value(inner), name)
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
                return Truth(negated(self.truth(operand)))
            case ast.UnaryOp(op=ast.Invert(), operand=operand):
                return Constant(~int(self.constant(operand)))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                condition = self.truth(test)
                if condition in ("true", "false"):
                    return self.value(body if condition == "true" else orelse)
                return Truth(f"({chosen(condition, self.truth(body), self.truth(orelse))})")
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
        return translation.call(function.value, [self.value(argument) for argument in node.args], named)

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
                return any_of(f"{self.translation.number(first)} == {number}" for number in numbers)
            second = self.value(node)
            conditions.append(self._compared(first, op, second))
            first = second
        return conditions[0] if len(conditions) == 1 else f"({' and '.join(conditions)})"

    def _compared(self, first: Value, op: ast.cmpop, second: Value) -> str:
        translation = self.translation
        match op:
            case ast.Is() | ast.IsNot() if second == Constant(None):
                present = translation.present(first)
                return present if isinstance(op, ast.IsNot) else negated(present)
            case ast.Eq():
                return translation.equal(first, second)
            case ast.NotEq():
                return negated(translation.equal(first, second))
            case ast.In():
                return translation.inside(first, second)
            case ast.NotIn():
                return negated(translation.inside(first, second))
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
                    return Number(translation.masked(translation.number(left), int(right.value) & WORD))
        raise Untranslatable(ast.dump(op))


def _bound(target: ast.expr, node: ast.expr, scope: Scope) -> dict[str, Any]:
    """Return the names that an assignment binds, each to its source and the names in scope there."""
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


@cache
def _tree(path: str) -> ast.Module:
    with open(path, encoding="utf-8") as file:
        return ast.parse(file.read())


@cache
def source_of(code: CodeType) -> ast.FunctionDef | ast.Lambda:
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
