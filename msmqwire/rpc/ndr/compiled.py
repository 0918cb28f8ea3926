"""Stubs that are read and written by generated functions: those of receives, of which a server has thousands.

A function is generated for a declaration and a little-endian transfer syntax, where all types are known here:
integers, handles, GUIDs, fixed bytes, and pointers to arrays of structures of integers and bytes. Members of
fixed size are read and written at once, by `struct`. A function leaves unusual values to `parsing` or
`building`, which report the fault: it returns None.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import Any, Final
from uuid import UUID

from msmqwire.rpc.handles import ContextHandle
from msmqwire.rpc.ndr.halt import Halt
from msmqwire.rpc.ndr.layout import alignment, least_size
from msmqwire.rpc.ndr.types import (
    ConformantArray,
    ConformantBytes,
    Enum,
    FixedBytes,
    Guid,
    Handle,
    Integer,
    Member,
    Pointer,
    Reference,
    Structure,
    Stub,
    Type,
)
from msmqwire.rpc.ndr.wire import FIRST_REFERENT, REFERENT_STEP, Syntax, Wire

_FORMATS: Final = {1: "B", 2: "H", 4: "I", 8: "Q"}
_ALIGNED: Final = 8
"""The largest alignment; a stub begins at a multiple of it."""


class _Unknown(Exception):
    """A type is not known here."""


@cache
def stub_reader(stub: Stub, syntax: Syntax) -> Callable[[bytes], Any] | None:
    """Return a function that returns the value of a stub, or None for bytes that it does not take."""
    return None if syntax.big_endian else _generated(_Reading(syntax), stub)


@cache
def stub_writer(stub: Stub, syntax: Syntax) -> Callable[[dict[str, Any], Any], bytes | None] | None:
    """Return a function that returns the bytes of a stub, or None for members that it does not take.

    It is given all members by their names, and a function that returns those of a structure.
    """
    return None if syntax.big_endian else _generated(_Writing(syntax), stub)


def _generated(source: _Reading | _Writing, stub: Stub) -> Callable[..., Any] | None:
    try:
        if not stub.members:
            raise _Unknown
        text = source.function(stub)
    except _Unknown:
        return None
    exec(compile(text, f"<generated {stub.name}>", "exec"), source.space)
    function: Callable[..., Any] = source.space["function"]
    return function


class _Source:
    """Lines of a function in which members of fixed size wait for one call of `struct`.

    Attributes:
        space: the names that the function uses.
    """

    def __init__(self, syntax: Syntax) -> None:
        self.syntax = syntax
        self.space: dict[str, Any] = {"UUID": UUID, "ContextHandle": ContextHandle, "Wire": Wire}
        self.lines: list[str] = []
        self.indent = 1
        self.aligned, self.offset = _ALIGNED, 0  # the position is a multiple of the first, plus the second
        self.format, self.fields = "", list[str]()
        self.numbers = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    def name(self, value: Any = None) -> str:
        """Return a new name, of a value that the function uses if there is one."""
        self.numbers += 1
        name = f"v{self.numbers}"
        if value is not None:
            self.space[name] = value
        return name

    def add(self, code: str, field: str | None) -> None:
        """Read or write a member with the other members of fixed size."""
        self.format += code
        if field is not None:
            self.fields.append(field)
        self.offset += struct.calcsize("<" + code)

    def align(self, to: int) -> None:
        """Go on at a multiple of `to`."""
        if to > self.aligned:
            self.flush()
            self.pad(to)
            self.aligned, self.offset = to, 0
        elif gap := -self.offset % to:
            self.gap(gap)

    def forget_position(self) -> None:
        """Go on at a position of which nothing is known."""
        self.aligned, self.offset = 1, 0

    def pad(self, to: int) -> None:
        raise NotImplementedError

    def gap(self, size: int) -> None:
        raise NotImplementedError

    def flush(self) -> None:
        raise NotImplementedError

    def integer_code(self, node: Integer | Enum) -> str:
        size = node.size if isinstance(node, Integer) else self.syntax.enum
        code = _FORMATS[size]
        return code.lower() if isinstance(node, Integer) and node.signed else code

    def array(self, node: Type) -> tuple[ConformantArray, Structure]:
        if not isinstance(node, ConformantArray) or not isinstance(node.element, Structure):
            raise _Unknown
        return node, node.element


def _bytes_of(member: Member) -> ConformantBytes | None:
    """Return the bytes that a member of a structure points to; None for an integer."""
    node = member.type
    if isinstance(node, (Integer, Enum)):
        return None
    if isinstance(node, Pointer) and isinstance(node.target, ConformantBytes):
        return node.target
    raise _Unknown


class _Reading(_Source):
    """The source of a function that reads a stub.

    Attributes:
        after: lines about the members that `struct` is to read.
    """

    def __init__(self, syntax: Syntax) -> None:
        super().__init__(syntax)
        self.after: list[str] = []

    def function(self, stub: Stub) -> str:
        self.space |= {"Value": stub.value, "syntax": self.syntax, "Wrong": struct.error}
        self.line("p = 0; paddings = []; referents = []")
        self.line("try:")
        self.indent += 1
        names: dict[str, str] = {}
        for member in stub.members:
            names[member.name] = self.whole(member.type, names)
        self.flush()
        self.indent -= 1
        self.line("except Wrong:")
        self.line("    return None")
        members = ", ".join(f"{name}={value}" for name, value in names.items())
        wire = "wire=Wire(syntax, tuple(paddings), tuple(referents), data[p:])"
        self.line(f"return Value({members}{', ' * bool(members)}{wire})")
        return "\n".join(["def function(data):", *self.lines])

    def gap(self, size: int) -> None:
        name = self.name()
        self.add(f"{size}s", name)
        self.after.append(f"paddings.append({name})")

    def pad(self, to: int) -> None:
        self.line(f"gap = -p & {to - 1}")
        self.line("if gap:")
        self.line("    paddings.append(data[p:p + gap]); p += gap")

    def flush(self) -> None:
        if self.format:
            unpack = self.name(struct.Struct("<" + self.format))
            self.line(f"{', '.join(self.fields)}, = {unpack}.unpack_from(data, p); p += {unpack}.size")
            self.format, self.fields = "", []
        for text in self.after:
            self.line(text)
        self.after.clear()

    def fixed(self, code: str, to: int) -> str:
        self.align(to)
        name = self.name()
        self.add(code, name)
        return name

    def whole(self, node: Type, names: dict[str, str]) -> str:
        """Return the expression of a parameter or pointee."""
        match node:
            case Reference():
                return self.whole(node.target, names)
            case Integer() | Enum():
                name = self.fixed(self.integer_code(node), alignment(node, self.syntax))
                if isinstance(node, Integer) and node.values is not None:
                    low, high = node.values[0], node.values[-1]
                    self.after.append(f"if not {low} <= {name} <= {high}: return None")
                return name
            case Guid():
                return f"UUID(bytes_le={self.fixed('16s', 4)})"
            case Handle():
                attributes, uuid = self.fixed("I", 4), self.fixed("16s", 4)
                return f"ContextHandle({attributes}, UUID(bytes_le={uuid}))"
            case FixedBytes():
                return self.fixed(f"{node.size}s", 1)
            case Pointer():
                array, element = self.array(node.target)
                return self.pointer(array, element, names[array.size_is])
        raise _Unknown

    def pointer(self, array: ConformantArray, element: Structure, size: str) -> str:
        word, value = self.syntax.word, self.name()
        referent = self.fixed(_FORMATS[word], word)
        self.flush()
        self.line(f"{value} = None")
        self.line(f"if not {referent} and {size}: return None")
        self.line(f"if {referent}:")
        self.indent += 1
        self.line(f"referents.append({referent})")
        count = self.fixed(_FORMATS[word], word)
        self.flush()
        least = least_size(element, self.syntax)
        self.line(f"if {count} != {size} or {count} * {least} > len(data) - p: return None")
        items = self.elements(element, count)
        self.line(f"{value} = tuple({items})")
        self.indent -= 1
        self.forget_position()
        return value

    def elements(self, element: Structure, count: str) -> str:
        """Read the elements of an array, and then their pointees."""
        to, raw, items = alignment(element, self.syntax), self.name(), self.name()
        self.line(f"{raw} = []; {items} = []")
        self.line(f"for _ in range({count}):")
        self.indent += 1
        self.forget_position()
        self.align(to)
        names: dict[str, str] = {}
        for member in element.members:
            pointed = _bytes_of(member)
            node = Integer(8 * self.syntax.word) if pointed else member.type
            name = names[member.name] = self.whole(node, names)
            if pointed:
                self.after.append(f"if {name}: referents.append({name})")
        if self.syntax.padded:
            self.align(to)
        self.flush()
        fields = ", ".join(names.values())
        self.line(f"{raw}.append(({fields},))")
        self.indent -= 1
        self.line(f"for {fields}, in {raw}:")
        self.indent += 1
        for member in element.members:
            pointed = _bytes_of(member)
            if pointed is not None:
                self.pointee(names[member.name], names[pointed.size_is])
        value = self.name(element.value)
        members = ", ".join(f"{name}={text}" for name, text in names.items())
        self.line(f"{items}.append({value}({members}))")
        self.indent -= 1
        return items

    def pointee(self, name: str, size: str) -> None:
        """Replace a referent by the bytes that it stands for."""
        self.line(f"if not {name}:")
        self.line(f"    if {size}: return None")
        self.line(f"    {name} = None")
        self.line("else:")
        self.indent += 1
        self.forget_position()
        count = self.fixed(_FORMATS[self.syntax.word], self.syntax.word)
        self.flush()
        self.line(f"if {count} != {size} or {count} > len(data) - p: return None")
        self.line(f"{name} = data[p:p + {count}]; p += {count}")
        self.indent -= 1
        self.forget_position()


class _Writing(_Source):
    """The source of a function that writes a stub."""

    def function(self, stub: Stub) -> str:
        self.space |= {"Wrong": (struct.error, AttributeError, Halt)}
        self.line("out = b''; referents = 0")
        self.line("try:")
        self.indent += 1
        for member in stub.members:
            self.whole(member.type, f"members[{member.name!r}]")
        self.flush()
        self.line("return bytes(out)")
        self.indent -= 1
        self.line("except Wrong:")
        self.line("    return None")
        return "\n".join(["def function(members, members_of):", *self.lines])

    def gap(self, size: int) -> None:
        self.add(f"{size}x", None)

    def pad(self, to: int) -> None:
        self.line(f"out += bytes(-len(out) & {to - 1})")

    def flush(self) -> None:
        if self.format:
            pack = self.name(struct.Struct("<" + self.format).pack)
            self.line(f"out += {pack}({', '.join(self.fields)})")
            self.format, self.fields = "", []

    def refuse(self, condition: str) -> None:
        self.line(f"if {condition}: return None")

    def whole(self, node: Type, value: str) -> None:
        """Write a parameter or pointee, given as an expression."""
        match node:
            case Reference():
                self.whole(node.target, value)
            case Integer() | Enum():
                self.align(alignment(node, self.syntax))
                self.add(self.integer_code(node), value)
            case Guid():
                self.refuse(f"not isinstance({value}, UUID)")
                self.align(4)
                self.add("16s", f"{value}.bytes_le")
            case Handle():
                self.refuse(f"not isinstance({value}, ContextHandle)")
                self.align(4)
                self.add("I", f"{value}.attributes")
                self.add("16s", f"{value}.uuid.bytes_le")
            case FixedBytes():
                self.refuse(f"not isinstance({value}, bytes) or len({value}) != {node.size}")
                self.add(f"{node.size}s", value)
            case Pointer():
                _, element = self.array(node.target)
                self.pointer(element, value)
            case _:
                raise _Unknown

    def pointer(self, element: Structure, value: str) -> None:
        self.refuse(f"not isinstance({value}, (tuple, list, type(None)))")
        word = self.syntax.word
        self.align(word)
        self.add(_FORMATS[word], f"0 if {value} is None else {FIRST_REFERENT}")
        self.flush()
        self.line(f"if {value} is not None:")
        self.indent += 1
        self.line("referents += 1")
        self.align(word)
        self.add(_FORMATS[word], f"len({value})")
        self.flush()
        self.elements(element, value)
        self.indent -= 1
        self.forget_position()

    def elements(self, element: Structure, value: str) -> None:
        """Write the elements of an array, and then their pointees."""
        to, word, items, item = alignment(element, self.syntax), self.syntax.word, self.name(), self.name()
        kind = self.name(element)
        self.line(f"{items} = [members_of({kind}, {item}) for {item} in {value}]")
        self.line(f"for {item} in {items}:")
        self.indent += 1
        self.forget_position()
        self.align(to)
        for member in element.members:
            field = f"{item}[{member.name!r}]"
            if _bytes_of(member) is None:
                self.whole(member.type, field)
                continue
            self.refuse(f"not isinstance({field}, (bytes, type(None)))")
            self.flush()
            self.align(word)
            self.add(
                _FORMATS[word], f"0 if {field} is None else {FIRST_REFERENT} + {REFERENT_STEP} * referents"
            )
            self.flush()
            self.line(f"referents += {field} is not None")
        if self.syntax.padded:
            self.align(to)
        self.flush()
        self.indent -= 1
        self.line(f"for {item} in {items}:")
        self.indent += 1
        for member in element.members:
            if _bytes_of(member) is not None:
                field = f"{item}[{member.name!r}]"
                self.line(f"if {field} is not None:")
                self.indent += 1
                self.forget_position()
                self.align(word)
                self.add(_FORMATS[word], f"len({field})")
                self.flush()
                self.line(f"out += {field}")
                self.indent -= 1
        self.indent -= 1
