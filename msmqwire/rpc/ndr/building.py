"""Values to stubs.

A value is a stub's or structure's own, or a mapping or any object with its members by name. Counts and
members with a default may be left out; counts that are given are sent, even wrong ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn, TypeAlias
from uuid import UUID

from msmqwire.errors import InvalidValue
from msmqwire.names.printable import counted
from msmqwire.rpc.handles import ContextHandle
from msmqwire.rpc.ndr.compiled import stub_writer
from msmqwire.rpc.ndr.halt import Halt
from msmqwire.rpc.ndr.layout import alignment
from msmqwire.rpc.ndr.parsing import NULL, swapped
from msmqwire.rpc.ndr.types import (
    REQUIRED,
    ConformantArray,
    ConformantBytes,
    ConformantVaryingArray,
    Declaration,
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
from msmqwire.rpc.ndr.wire import FIRST_REFERENT, REFERENT_STEP, Syntax, Wire
from msmqwire.schema.texts import encode_text

Values: TypeAlias = Mapping[str, Any]


def build_stub(stub: Stub, value: Any, syntax: Syntax) -> bytes:
    """Return the bytes of a stub.

    A value from `parse_stub` in the same syntax gets the padding, the referent ids and the trailing bytes
    that it came with; any other value gets zeros, the usual ids and no trailing bytes.

    Raises InvalidValue with the path of the value that does not fit.
    """
    wire = getattr(value, "wire", None)
    kept = wire if isinstance(wire, Wire) and wire.syntax is syntax else None
    compiled = stub_writer(stub, syntax) if kept is None else None
    try:
        members = _members(stub, value)
        if compiled is not None and (data := compiled(members, _members)) is not None:
            return data
    except Halt as halt:
        raise InvalidValue(halt.why, path=halt.under(stub.name).path) from None
    return interpreted(stub, members, kept or Wire(syntax))


def interpreted(
    stub: Stub, members: dict[str, Any], wire: Wire, count_offsets: list[int] | None = None
) -> bytes:
    """Return the bytes of all members of a stub, by its declaration: `build_stub`.

    The offsets of the counts are added to `count_offsets`.
    """
    writer = _Writer(wire.syntax, wire, count_offsets)
    try:
        for member in stub.members:
            try:
                writer.whole(member.type, members[member.name], members)
            except Halt as halt:
                raise halt.under(member.shown) from None
    except Halt as halt:
        raise InvalidValue(halt.why, path=halt.under(stub.name).path) from None
    return bytes(writer.out) + writer.wire.rest


def count_offsets(stub: Stub, value: Any, syntax: Syntax) -> list[int]:
    """Return the offsets of the counts of arrays and texts in the stub of a value, in the order of the wire.

    Raises InvalidValue as `build_stub` does.
    """
    try:
        members = _members(stub, value)
    except Halt as halt:
        raise InvalidValue(halt.why, path=halt.under(stub.name).path) from None
    offsets: list[int] = []
    interpreted(stub, members, Wire(syntax), offsets)
    return offsets


def _members(declaration: Declaration, value: Any) -> dict[str, Any]:
    """Return all members, computing those that are left out."""
    names = declaration.names
    if isinstance(value, Mapping):
        members = {name: value.get(name, REQUIRED) for name in names}
        for name in value:
            if name not in members:
                raise Halt("there is no such member", path=str(name)[:100])
    else:
        members = {name: getattr(value, name, REQUIRED) for name in names}
    if REQUIRED not in members.values():
        return members
    for member in declaration.members:
        if members[member.name] is REQUIRED:
            members[member.name] = _computed(declaration, member, members)
    return members


def _computed(declaration: Declaration, member: Any, members: Values) -> Any:
    for other in declaration.members:
        array = other.type
        while isinstance(array, (Reference, Pointer)):
            array = array.target
        if isinstance(array, (ConformantArray, ConformantBytes)) and array.size_is == member.name:
            content = members[other.name]
            return len(content) if isinstance(content, (bytes, tuple, list)) else 0
        if isinstance(array, ConformantVaryingArray) and array.length_is == member.name:
            content = members[other.name]
            return len(content) if isinstance(content, (tuple, list)) else 0
    if member.default is REQUIRED:
        raise Halt("missing", path=member.name)
    return member.default


def _not(expected: str, value: Any) -> NoReturn:
    raise Halt(f"{value!r:.100} is not {expected}")


class _Writer:
    __slots__ = ("count_offsets", "out", "paddings", "referents", "syntax", "wire")

    def __init__(self, syntax: Syntax, wire: Wire, count_offsets: list[int] | None = None) -> None:
        self.syntax, self.wire, self.count_offsets = syntax, wire, count_offsets
        self.out = bytearray()
        self.paddings, self.referents = 0, 0

    def align(self, to: int) -> None:
        gap = -len(self.out) % to
        if gap:
            kept = self.wire.paddings[self.paddings : self.paddings + 1]
            self.paddings += 1
            self.out += kept[0] if kept and len(kept[0]) == gap else bytes(gap)

    def integer(self, value: int, size: int, signed: bool = False) -> None:
        if len(self.out) % size:
            self.align(size)
        self.out += value.to_bytes(size, self.syntax.byte_order, signed=signed)

    def count(self, count: int) -> None:
        if count > 0xFFFF_FFFF:
            raise Halt(f"{counted(count, 'element', 'are')} too many")
        self.align(self.syntax.word)
        if self.count_offsets is not None:
            self.count_offsets.append(len(self.out))
        self.integer(count, self.syntax.word)

    def whole(self, node: Type, value: Any, siblings: Values) -> None:
        """Write a value that nothing is around: a parameter or a pointee."""
        if isinstance(node, Reference):
            self.whole(node.target, value, siblings)
            return
        completed = self.in_place(node, value, siblings)
        if has_pointers(node):
            self.pointees(node, completed, siblings)

    def in_place(self, node: Type, value: Any, siblings: Values) -> Any:
        """Write the value itself; return the source of its pointees, None without any."""
        return _IN_PLACE[type(node)](self, node, value, siblings)

    def pointees(self, node: Type, value: Any, siblings: Values) -> None:
        match node:
            case Pointer() if value is not None:
                self.whole(node.target, value, siblings)
            case Structure():
                for member in deferring(node):
                    try:
                        self.pointees(member.type, value[member.name], value)
                    except Halt as halt:
                        raise halt.under(member.shown) from None
            case Union():
                arm = node.arms[siblings[node.switch_is]]
                if arm is not None:
                    try:
                        self.pointees(arm.type, value, siblings)
                    except Halt as halt:
                        raise halt.under(arm.shown) from None
            case ConformantArray() | ConformantVaryingArray() if has_pointers(node.element):
                for number, item in enumerate(value):
                    try:
                        self.pointees(node.element, item, siblings)
                    except Halt as halt:
                        raise halt.under(f"[{number}]") from None

    def _integer(self, node: Integer, value: Any, siblings: Values) -> None:
        if not isinstance(value, int) or not node.least <= value <= node.most:
            _not(f"an integer from {node.least} to {node.most}", value)
        self.integer(value, node.size, node.signed)

    def _enum(self, node: Enum, value: Any, siblings: Values) -> None:
        self._integer(Integer(8 * self.syntax.enum), value, siblings)

    def _uuid(self, value: Any) -> None:
        if not isinstance(value, UUID):
            _not("a GUID", value)
        self.out += value.bytes if self.syntax.big_endian else value.bytes_le

    def _guid(self, node: Guid, value: Any, siblings: Values) -> None:
        self.align(4)
        self._uuid(value)

    def _handle(self, node: Handle, value: Any, siblings: Values) -> None:
        if not isinstance(value, ContextHandle):
            _not("a context handle", value)
        self._integer(Integer(32), value.attributes, siblings)
        self._uuid(value.uuid)

    def _fixed_bytes(self, node: FixedBytes, value: Any, siblings: Values) -> None:
        if not isinstance(value, bytes) or len(value) != node.size:
            _not(counted(node.size, "byte"), value)
        self.out += value

    def _bytes(self, node: ConformantBytes, value: Any, siblings: Values) -> None:
        if not isinstance(value, bytes):
            _not("bytes", value)
        self.count(len(value))
        self.out += value

    def _string(self, node: WideString, value: Any, siblings: Values) -> None:
        if not isinstance(value, (str, bytes)):
            _not("a text", value)
        try:
            data = encode_text(value)
        except UnicodeEncodeError:
            _not("UTF-16", value)
        if data[-2:] != b"\0\0" or len(data) & 1:
            _not("UTF-16 with a null at its end", value)
        for count in (len(data) // 2, 0, len(data) // 2):
            self.count(count)
        self.out += swapped(data) if self.syntax.big_endian else data

    def _pointer(self, node: Pointer, value: Any, siblings: Values) -> Any:
        if value is None:
            self.integer(NULL, self.syntax.word)
            return None
        kept = self.wire.referents[self.referents : self.referents + 1]
        usual = FIRST_REFERENT + REFERENT_STEP * self.referents
        self.referents += 1
        self.integer(kept[0] if kept else usual, self.syntax.word)
        return value

    def _array(self, node: ConformantArray, value: Any, siblings: Values) -> list[Any]:
        if not isinstance(value, (tuple, list)):
            _not("a sequence", value)
        self.count(len(value))
        return self._elements(node.element, value, siblings)

    def _elements(self, element: Type, value: Any, siblings: Values) -> list[Any]:
        items = []
        for number, item in enumerate(value):
            try:
                items.append(self._member(element, item, siblings))
            except Halt as halt:
                raise halt.under(f"[{number}]") from None
        return items

    def _varying_array(self, node: ConformantVaryingArray, value: Any, siblings: Values) -> list[Any]:
        if not isinstance(value, (tuple, list)):
            _not("a sequence", value)
        for count in (node.most, 0, len(value)):
            self.count(count)
        return self._elements(node.element, value, siblings)

    def _structure(self, node: Structure, value: Any, siblings: Values) -> dict[str, Any]:
        members = _members(node, value)
        to = alignment(node, self.syntax)
        array = hoisted(node)
        if array is not None:
            content = members[node.members[-1].name]
            if not isinstance(content, bytes):
                _not("bytes", content)
            self.count(len(content))
        self.align(to)
        for member in node.members:
            try:
                if member.type is array:
                    self.out += members[member.name]
                    continue
                members[member.name] = self._member(member.type, members[member.name], members)
            except Halt as halt:
                raise halt.under(member.shown) from None
        if self.syntax.padded:
            self.align(to)
        return members

    def _member(self, node: Type, value: Any, siblings: Values) -> Any:
        """Write a member in its place; return it as `pointees` takes it."""
        completed = self.in_place(node, value, siblings)
        return value if completed is None else completed

    def _union(self, node: Union, value: Any, siblings: Values) -> Any:
        to = alignment(node, self.syntax) if self.syntax.padded else 1
        self.align(to)
        tag = siblings[node.switch_is]
        if tag not in node.arms:
            raise Halt(f"there is no arm for {node.switch_is} {tag!r:.100}")
        self.in_place(node.discriminant, tag, siblings)
        self.align(to)
        arm = node.arms[tag]
        if arm is None:
            return None
        try:
            return self._member(arm.type, value, siblings)
        except Halt as halt:
            raise halt.under(arm.shown) from None


_IN_PLACE: Final[Mapping[type, Callable[[_Writer, Any, Any, Values], Any]]] = {
    Integer: _Writer._integer,
    Enum: _Writer._enum,
    Guid: _Writer._guid,
    Handle: _Writer._handle,
    FixedBytes: _Writer._fixed_bytes,
    ConformantBytes: _Writer._bytes,
    WideString: _Writer._string,
    Pointer: _Writer._pointer,
    ConformantArray: _Writer._array,
    ConformantVaryingArray: _Writer._varying_array,
    Structure: _Writer._structure,
    Union: _Writer._union,
}
