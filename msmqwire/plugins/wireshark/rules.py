"""Translates rules of lint to conditions in Lua.

A rule is a function of a packet. Its source is read, and its conditions on the packet become expressions over
the values kept during the reading of the packet. Its messages are not translated. Names are resolved as
Python does: in the function, around it, in its module. Code without a counterpart in Lua (regular
expressions, certificates, reading other structures) raises `Untranslatable`, and the rule is not in the
script.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, NamedTuple
from uuid import UUID

from msmqwire.names.printable import counted
from msmqwire.packets import unexplained_tail
from msmqwire.plugins.wireshark.conditions import (
    Constant,
    Number,
    Span,
    Structure,
    Truth,
    Untranslatable,
    Value,
    Word,
    any_of,
    both,
    chosen,
    masked,
    negated,
)
from msmqwire.plugins.wireshark.rule_source import Scope, source_of
from msmqwire.plugins.wireshark.value_slots import ValueSlots, bits_of
from msmqwire.schema import Bits, Flags, Guid, Header, OddPadding, Raw, Text, UInt
from msmqwire.schema.nodes import Align, Choice, Fill, Maybe, Sub, View
from msmqwire.schema.texts import encode_text


class Case(NamedTuple):
    """One way through a rule: the condition, and the field at fault.

    An empty path means that of the rule, None no fault.
    """

    condition: str
    path: str | None


class Translation:
    """Translates the rules of packets of one kind."""

    def __init__(self, packet: Header, kept: ValueSlots) -> None:
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
                cases.append(Case(both(condition, self.truth(value)), ""))
        while cases and cases[-1].path is None:
            cases.pop()
        return [case for case in cases if case.condition != "false"]

    def field(self, path: str, holds: Callable[[Any], Any]) -> str:
        """Return the condition that `holds` refuses a field. Raises Untranslatable."""
        value: Value = Structure((self._packet,), "")
        for name in path.split("."):
            value = self.attribute(value, name)
        return negated(self.truth(self.call(holds, [value])))

    def header(self, name: str) -> str:
        """Return the condition that a header is in the packet, or a part of it is not None."""
        part = self._part(Structure((self._packet,), ""), name)
        return part.present or "true" if isinstance(part, Structure) else "true"

    def unused(self, path: str, parts: Flags, mask: int) -> list[Case]:
        """Return the cases that bits of a mask are set, the lowest first."""
        self._kept.keep(path)
        word = self._kept.value(path)
        return [
            Case(f"{self.masked(word, mask)} == 0", None),
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
        """Return the values of a function with their conditions: the first that holds counts."""
        if not isinstance(function, FunctionType):
            raise Untranslatable(repr(function))
        node = source_of(function.__code__)
        names = [argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)]
        given = {**dict(zip(names, arguments, strict=False)), **(named or {})}
        if len(given) != len(names):
            raise Untranslatable(f"{function.__name__}: {counted(len(given), 'argument')}")
        scope = Scope(self, function, given)
        if isinstance(node, ast.Lambda):
            return [("true", scope.value(node.body))]
        block = scope.block(node.body)
        return [(condition, value) for condition, value in block if condition != "false"]

    def call(self, function: Any, arguments: list[Value], named: Mapping[str, Value] | None = None) -> Value:
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
            truth = chosen(condition, self.truth(value), truth)
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
                return f"{self._kept.value(path)}"
            case Constant(constant):
                return "true" if constant is not None else "false"
            case Number(lua):
                return f"{lua}"
        raise Untranslatable(f"{value} is None")

    def attribute(self, value: Value, name: str) -> Value:
        match value:
            case Structure():
                return self._part(value, name)
            case Word(node, path):
                self._kept.keep(path)
                return Number(f"({bits_of(self._kept.value(path), bits_named(node, name))})")
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
                first = first_integer(header, path)
                self._kept.keep(first)
                return Structure((header,), path, f"{self._kept.value(first)}")
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
        number = self.number(self.attribute(value, bits) if bits else value)
        present = any_of(f"{number} == {by}" for by, arm in node.arms.items() if arm)
        return Structure(tuple(dict.fromkeys(arm for arm in node.arms.values() if arm)), path, present)

    def get(self, value: Structure, name: str, default: Value | None) -> Value:
        """Return the value of ``value.get(name)``: None, or a default, if the structure has no such part."""
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
        """Return the value of ``int.from_bytes(span, "little")``."""
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
        return f'({start} and sub(D, {start} + {span.start + 1}, {start} + {stop}) == "{literal}")'

    def masked(self, number: str, mask: int) -> str:
        """Return the bits of a number under a mask."""
        return masked(number, mask)

    def inside(self, value: Value, container: Value) -> str:
        """Return the condition that a number is in a constant container."""
        if not isinstance(container, Constant):
            raise Untranslatable(f"in {container}")
        number, members = self.number(value), container.value
        if isinstance(members, range):
            return f"({number} >= {members.start} and {number} < {members.stop})"
        return any_of(f"{number} == {int(member)}" for member in sorted(members))


def first_integer(header: Header, path: str) -> str:
    """Return the path of the integer that a structure begins with."""
    first = header.parts[0]
    if isinstance(first, Sub):
        return first_integer(first.header, f"{path}.{first.name}")
    assert isinstance(first, UInt | Flags)
    return f"{path}.{first.name}"


def bits_named(node: Flags, name: str) -> Bits:
    try:
        return node.part(name)
    except KeyError:
        raise Untranslatable(f"{node.name}.{name}") from None
