"""Stubs to values.

Strict, as [MS-RPCE] 3 has it for target level 6.0: counts agree with the fields that decide them, ranges are
kept, a null pointer to an array goes with the length 0. Each count is compared with the bytes that are left
before anything is allocated for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn, TypeAlias
from uuid import UUID

from msmqwire.errors import MalformedPacket
from msmqwire.names.printable import agreed, counted
from msmqwire.rpc.handles import ContextHandle
from msmqwire.rpc.ndr.compiled import stub_reader
from msmqwire.rpc.ndr.halt import Halt
from msmqwire.rpc.ndr.layout import GUID_SIZE, alignment, least_size
from msmqwire.rpc.ndr.types import (
    ConformantArray,
    ConformantBytes,
    ConformantVaryingArray,
    Enum,
    FixedBytes,
    Guid,
    Handle,
    Integer,
    Pointer,
    Reference,
    Structure,
    Stub,
    Type,
    Union,
    WideString,
    deferring,
    has_pointers,
    hoisted,
)
from msmqwire.rpc.ndr.wire import Syntax, Wire
from msmqwire.schema.utf16 import text_exact

Siblings: TypeAlias = Mapping[str, Any]

NULL: Final = 0


def parse_stub(stub: Stub, data: bytes, syntax: Syntax, places: dict[str, int] | None = None) -> Any:
    """Return the value of a stub: the parameters by their names, and `wire`.

    `places` gets the offset of each parameter, as far as they can be read. Raises MalformedPacket with the
    path and offset of the fault.
    """
    compiled = stub_reader(stub, syntax) if places is None else None
    value = None if compiled is None else compiled(data)
    return interpreted(stub, data, syntax, places) if value is None else value


def interpreted(stub: Stub, data: bytes, syntax: Syntax, places: dict[str, int] | None = None) -> Any:
    """Return the value of a stub, by its declaration: `parse_stub`."""
    reader = _Reader(data, syntax)
    members: dict[str, Any] = {}
    for member in stub.members:
        if places is not None:
            at = reader.position
            places[member.name] = at + -at % alignment(member.type, syntax)
        try:
            members[member.name] = reader.whole(member.type, members)
        except Halt as halt:
            path = halt.under(member.shown).under(stub.name).path
            raise MalformedPacket(
                halt.why, path=path, offset=halt.offset, requirement=halt.requirement
            ) from None
    rest = data[reader.position :]
    return stub.value(**members, wire=Wire(syntax, tuple(reader.paddings), tuple(reader.referents), rest))


class _Reader:
    __slots__ = ("data", "paddings", "position", "referents", "syntax")

    def __init__(self, data: bytes, syntax: Syntax) -> None:
        self.data, self.syntax, self.position = data, syntax, 0
        self.paddings: list[bytes] = []
        self.referents: list[int] = []

    def take(self, length: int) -> bytes:
        end = self.position + length
        if end > len(self.data):
            left = len(self.data) - self.position
            raise Halt(f"{counted(left, 'byte', 'are')} left, {agreed(length, 'are')} needed", len(self.data))
        taken = self.data[self.position : end]
        self.position = end
        return taken

    def align(self, to: int) -> None:
        gap = -self.position % to
        if gap:
            self.paddings.append(self.take(gap))

    def integer(self, size: int, signed: bool = False) -> int:
        if self.position % size:
            self.align(size)
        end = self.position + size
        if end > len(self.data):
            self.take(size)  # which raises
        taken = self.data[self.position : end]
        self.position = end
        return int.from_bytes(taken, self.syntax.byte_order, signed=signed)

    def count(self, size_is: str, siblings: Siblings, least: int) -> int:
        """Return the maximum count of an array with size_is, its elements taking `least` bytes or more."""
        count = self.integer(self.syntax.word)
        if size_is and count != siblings[size_is]:
            self.fail(f"the maximum count is {count}, {size_is} {siblings[size_is]}", self.syntax.word)
        self.room(count, least)
        return count

    def room(self, count: int, least: int) -> None:
        left = len(self.data) - self.position
        if count * least > left:
            raise Halt(
                f"{counted(left, 'byte', 'are')} left, {agreed(count * least, 'are')} needed", len(self.data)
            )

    def fail(self, why: str, back: int, requirement: str = "") -> NoReturn:
        raise Halt(why, self.position - back, requirement=requirement)

    # A value is read in two steps: the value itself, then the pointees, which stand after the outermost
    # structure or array.

    def whole(self, node: Type, siblings: Siblings) -> Any:
        """Return a value that nothing is around: a parameter or a pointee."""
        if isinstance(node, Reference):
            return self.whole(node.target, siblings)
        raw = self.in_place(node, siblings)
        return self.pointees(node, raw, siblings) if has_pointers(node) else raw

    def in_place(self, node: Type, siblings: Siblings) -> Any:
        return _IN_PLACE[type(node)](self, node, siblings)

    def pointees(self, node: Type, raw: Any, siblings: Siblings) -> Any:
        """Return the finished value of the data that `in_place` has read."""
        match node:
            case Pointer():
                return None if raw == NULL else self.whole(node.target, siblings)
            case Structure() if has_pointers(node):
                for member in deferring(node):
                    try:
                        raw[member.name] = self.pointees(member.type, raw[member.name], raw)
                    except Halt as halt:
                        raise halt.under(member.shown) from None
                return node.value(**raw)
            case Union():
                arm = node.arms[siblings[node.switch_is]]
                try:
                    return None if arm is None else self.pointees(arm.type, raw, siblings)
                except Halt as halt:
                    raise halt.under(arm.shown if arm else "") from None
            case ConformantArray() | ConformantVaryingArray() if has_pointers(node.element):
                for number, item in enumerate(raw):
                    try:
                        raw[number] = self.pointees(node.element, item, siblings)
                    except Halt as halt:
                        raise halt.under(f"[{number}]") from None
                return tuple(raw)
        return raw

    def _integer(self, node: Integer, siblings: Siblings) -> int:
        value = self.integer(node.size, node.signed)
        if node.values is not None and value not in node.values:
            self.fail(f"{value} is not in {node.values[0]}..{node.values[-1]}", node.size)
        return value

    def _enum(self, node: Enum, siblings: Siblings) -> int:
        return self.integer(self.syntax.enum)

    def _uuid(self) -> UUID:
        data = self.take(GUID_SIZE)
        return UUID(bytes=data) if self.syntax.big_endian else UUID(bytes_le=data)

    def _guid(self, node: Guid, siblings: Siblings) -> UUID:
        self.align(4)
        return self._uuid()

    def _handle(self, node: Handle, siblings: Siblings) -> ContextHandle:
        return ContextHandle(self.integer(4), self._uuid())

    def _fixed_bytes(self, node: FixedBytes, siblings: Siblings) -> bytes:
        return self.take(node.size)

    def _bytes(self, node: ConformantBytes, siblings: Siblings) -> bytes:
        return self.take(self.count(node.size_is, siblings, 1))

    def _string(self, node: WideString, siblings: Siblings) -> str | bytes:
        word = self.syntax.word
        most, offset, count = (self.integer(word) for _ in range(3))
        if offset:
            self.fail(f"the offset of the text is {offset}, not 0", 2 * word)
        if most != count:
            self.fail(f"the actual count is {count}, the maximum count {most}", word)
        self.room(count, 2)
        data = self.take(2 * count)
        if self.syntax.big_endian:
            data = swapped(data)
        if data[-2:] != b"\0\0":
            self.fail("the text does not end on a null", 2 * min(count, 1))
        return text_exact(data) or ""

    def _pointer(self, node: Pointer, siblings: Siblings) -> int:
        referent = self.integer(self.syntax.word)
        if referent != NULL:
            self.referents.append(referent)
        # MQRR-3.1.4-02
        elif (
            isinstance(node.target, (ConformantBytes, ConformantArray))
            and (size_is := node.target.size_is)
            and siblings[size_is]
        ):
            self.fail(f"a null pointer, {size_is} is {siblings[size_is]}", self.syntax.word)  # MQRR-3.1.4-02
        return referent

    def _array(self, node: ConformantArray, siblings: Siblings) -> Any:
        count = self.count(node.size_is, siblings, least_size(node.element, self.syntax))
        return self._elements(node.element, count, siblings)

    def _elements(self, element: Type, count: int, siblings: Siblings) -> Any:
        items = []
        for number in range(count):
            try:
                items.append(self.in_place(element, siblings))
            except Halt as halt:
                raise halt.under(f"[{number}]") from None
        return items if has_pointers(element) else tuple(items)

    def _varying_array(self, node: ConformantVaryingArray, siblings: Siblings) -> Any:
        word = self.syntax.word
        most, offset, count = (self.integer(word) for _ in range(3))
        if most != node.most or offset or count > most:
            self.fail(
                f"{count} of {counted(most, 'element')} from {offset} on, {node.most} are the most", 3 * word
            )
        if count != siblings[node.length_is]:
            self.fail(f"the actual count is {count}, {node.length_is} {siblings[node.length_is]}", word)
        self.room(count, least_size(node.element, self.syntax))
        return self._elements(node.element, count, siblings)

    def _structure(self, node: Structure, siblings: Siblings) -> Any:
        to = alignment(node, self.syntax)
        array = hoisted(node)
        most = self.integer(self.syntax.word) if array else 0
        self.align(to)
        members: dict[str, Any] = {}
        for member in node.members:
            try:
                if member.type is array:
                    members[member.name] = self._hoisted(array, most, members)
                else:
                    members[member.name] = self.in_place(member.type, members)
            except Halt as halt:
                raise halt.under(member.shown) from None
        if self.syntax.padded:
            self.align(to)
        return members if has_pointers(node) else node.value(**members)

    def _hoisted(self, node: ConformantBytes, most: int, siblings: Siblings) -> bytes:
        if most != siblings[node.size_is]:
            self.fail(f"the maximum count is {most}, {node.size_is} {siblings[node.size_is]}", 0)
        return self.take(most)

    def _union(self, node: Union, siblings: Siblings) -> Any:
        to = alignment(node, self.syntax) if self.syntax.padded else 1
        self.align(to)
        size, expected = least_size(node.discriminant, self.syntax), siblings[node.switch_is]
        value = self.in_place(node.discriminant, siblings)
        if value != expected:
            self.fail(f"the discriminant is {value}, {node.switch_is} {expected}", size, node.unequal)
        if value in node.refused:
            self.fail(node.refused[value], size, node.forbidden)
        if value not in node.arms:
            self.fail(f"there is no arm for {value}", size, node.unknown)
        self.align(to)
        arm = node.arms[value]
        try:
            return None if arm is None else self.in_place(arm.type, siblings)
        except Halt as halt:
            raise halt.under(arm.shown if arm else "") from None


_IN_PLACE: Final[Mapping[type, Callable[[_Reader, Any, Siblings], Any]]] = {
    Integer: _Reader._integer,
    Enum: _Reader._enum,
    Guid: _Reader._guid,
    Handle: _Reader._handle,
    FixedBytes: _Reader._fixed_bytes,
    ConformantBytes: _Reader._bytes,
    WideString: _Reader._string,
    Pointer: _Reader._pointer,
    ConformantArray: _Reader._array,
    ConformantVaryingArray: _Reader._varying_array,
    Structure: _Reader._structure,
    Union: _Reader._union,
}


def swapped(data: bytes) -> bytes:
    """Return 16-bit units in the other byte order."""
    turned = bytearray(data)
    turned[0::2], turned[1::2] = data[1::2], data[0::2]
    return bytes(turned)
