"""The lengths and counts of a structure, found in its declaration, and the numbers there is room for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from msmqwire.schema import (
    Choice,
    Close,
    Each,
    Guid,
    Header,
    Maybe,
    OemText,
    Packet,
    Part,
    Raw,
    Record,
    Ref,
    Repeat,
    Sub,
    Text,
    UInt,
    View,
)
from msmqwire.schema.layout import Field, layout
from msmqwire.schema.sizes import fixed_size

_TEXT: Final = "msmqwire"
_GUID: Final = UUID("6d736d71-7769-7265-b66f-756e64617279")


def near(right: int, *rooms: int) -> list[int]:
    """Return the numbers to try: what there is room for and what is right, and one more and less of each."""
    numbers = {base + more for base in (right, *rooms) for more in (-1, 0, 1)}
    return sorted(number for number in numbers - {right} if number >= 0)


@dataclass(frozen=True, slots=True)
class Boundary:
    """A length or count in a value, and the greatest number that its container has room for.

    Attributes:
        field: its place, its present value and its declaration.
        available: the greatest number whose bytes are still in the enclosing structure.
        strict: whether any greater number is a lie; otherwise the counted bytes may be left unread.
    """

    field: Field
    available: int
    strict: bool = True

    @property
    def path(self) -> str:
        """The path of the field."""
        return self.field.path

    @property
    def name(self) -> str:
        """The path without its first part, for people; the whole path of a field of the first level."""
        return self.path.rpartition(".")[2] if self.path.count(".") < 2 else self.path.partition(".")[2]

    @property
    def requirements(self) -> tuple[str, ...]:
        """The requirements that the declaration of the field names."""
        return self.field.node.req

    @property
    def bounds(self) -> bool:
        """Whether it counts the structure around it, and not a part after it."""
        return isinstance(self.field.node, UInt) and bool(self.field.node.size_of)

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers to try: what there is room for and what is right, and one more and less of each."""
        tried = near(int(self.field.value), self.available)
        return tuple(number for number in tried if number < 1 << 8 * self.field.size)

    def goes_beyond(self, number: int) -> bool:
        """Return whether a number counts bytes that are not there, so that no right peer takes it."""
        return self.strict and number > self.available

    def put(self, data: bytes, number: int) -> bytes:
        """Return the bytes of the value with another number, and nothing else adapted to it."""
        field = self.field
        assert isinstance(field.node, UInt)
        changed = number.to_bytes(field.size, "big" if field.node.big_endian else "little")
        return data[: field.offset] + changed + data[field.offset + field.size :]


def boundaries(value: Record) -> list[Boundary]:
    """Return the lengths and counts of a complete record in wire order.

    A field that counts several parts has the boundary of the one with the least room.
    """
    walk = _Walk(value)
    found: dict[str, Boundary] = {}
    for boundary in walk.found:
        known = found.get(boundary.path)
        if known is None or (not boundary.strict, boundary.available) < (not known.strict, known.available):
            found[boundary.path] = boundary
    return sorted(found.values(), key=lambda boundary: boundary.field.offset)


@dataclass(slots=True)
class _Scope:
    """A structure around a part: its record, its path, and where it ends."""

    record: Record
    prefix: str
    end: int

    def path(self, name: str) -> str:
        return f"{self.prefix}.{name}" if self.prefix else name


class _Walk:
    """Follows the parts of a record through its bytes."""

    def __init__(self, value: Record) -> None:
        fields = list(layout(value))
        self.found: list[Boundary] = []
        self._fields = {field.path: field for field in fields}
        self._whole = sum(field.size for field in fields)
        self._at = 0
        sized = [field for field in fields if isinstance(field.node, UInt) and field.node.size_of == "packet"]
        end = self._whole
        for field in sized:
            end = int(field.value)
            self.found.append(Boundary(field, end))
        prefix = "" if isinstance(value.schema, Packet) else value.schema.name
        self._structure(value, prefix, end, ())

    def _structure(self, record: Record, prefix: str, end: int, around: tuple[_Scope, ...]) -> None:
        start, scope = self._at, _Scope(record, prefix, end)
        scopes = (*around, scope)
        after: Field | None = None
        for part in record.schema.parts:
            if isinstance(part, Close):
                scope.end = around[-1].end if around else self._whole
                continue
            if isinstance(part, View):
                continue
            field = self._fields.get(scope.path(part.name))
            if isinstance(part, UInt) and field is not None and part.size_of == "header":
                self.found.append(Boundary(field, scope.end - start))
                scope.end = start + int(field.value)
            elif isinstance(part, UInt) and part.size_of == "after":
                after = field
            self._part(part, record[part.name], scopes)
        if after is not None:
            self.found.append(Boundary(after, end - self._at))

    def _part(self, part: Part, value: Any, scopes: tuple[_Scope, ...]) -> None:
        scope, node = scopes[-1], part.node if isinstance(part, Maybe) else part
        if value is None and isinstance(part, Maybe | Choice):
            return
        path, end = scope.path(part.name), scope.end
        match node:
            case Raw(length=Ref() as ref) | OemText(length=Ref() as ref):
                self._counted([ref], scopes)
            case Text(length=Ref() as ref):
                self._counted([ref, *([node.otherwise] if node.otherwise else [])], scopes)
            case Sub(within=Ref() as ref) | Choice(within=Ref() as ref):
                field = self._counted([ref], scopes)
                end = end if field is None else self._at + _size(ref, int(field.value))
            case _:
                pass
        match node:
            case Sub() | Choice():
                self._structure(value, path, end, scopes)
            case Repeat() | Each():
                for number, item in enumerate(value):
                    if item is not None:
                        self._structure(item, f"{path}[{number}]", end, scopes)
                if isinstance(node, Repeat):
                    self._elements(node, value, scopes)
            case _:
                self._at += self._fields[path].size

    def _counted(self, refs: list[Ref], scopes: tuple[_Scope, ...]) -> Field | None:
        """Note the field that counts the bytes from here on, in any of the units that it may have."""
        room = scopes[-1].end - self._at
        field = self._resolve(refs[0].path, scopes)
        if field is None:
            return None
        base = 0
        if refs[0].over is not None:
            other = self._resolve(refs[0].over, scopes)
            base = 0 if other is None else int(other.value)
        available = max((room - ref.plus) * ref.per // ref.times for ref in refs) + base
        self.found.append(Boundary(field, available, strict=refs[0].over is None))
        return field

    def _elements(self, part: Repeat, items: list[Any], scopes: tuple[_Scope, ...]) -> None:
        field = self._resolve(part.count, scopes)
        if field is not None:
            room = max(0, scopes[-1].end - self._at)
            more = room // (fixed_size(part.item) or _least(part.item))
            self.found.append(Boundary(field, len(items) + more))

    def _resolve(self, path: str, scopes: tuple[_Scope, ...]) -> Field | None:
        """Return the integer that a path names, looked for from the innermost structure outwards."""
        name = path.partition(".")[0]
        for scope in reversed(scopes):
            if name in scope.record.schema.fields:
                field = self._fields.get(scope.path(path))
                return field if field is not None and isinstance(field.node, UInt) else None
        return None


def _size(ref: Ref, number: int) -> int:
    """Return the bytes that a field counts."""
    return -(-number * ref.times // ref.per) + ref.plus


def _least(header: Header) -> int:
    """Return a number of bytes that no value of a structure of varying size is shorter than."""
    return max(1, sum(part.size for part in header.parts if isinstance(part, UInt)))


# -- values with one counted part --------------------------------------------------------------------


def filled(header: Header) -> Iterator[dict[str, Any]]:
    """Yield the fields of a structure in which one counted part is filled, for each of these in turn.

    The part is then the last that holds anything, so that its length is just what there is room for.
    """
    for part in header.parts:
        node = part.node if isinstance(part, Maybe) else part
        match node:
            case (
                Raw(length=Ref()) | Text(length=Ref()) | OemText(length=Ref()) | Repeat() | Sub(within=Ref())
            ):
                yield {part.name: _content(node)}
            case Sub():
                for fields in filled(node.header):
                    yield {part.name: fields}
            case Choice():
                for arm in node.arms.values():
                    for fields in filled(arm) if arm is not None else ():
                        yield {part.name: fields}
            case _:
                pass


def _content(part: Part) -> Any:
    """Return a short value of a part."""
    match part:
        case Raw(length=int(size)):
            return bytes(size)
        case Raw():
            return _TEXT.encode()
        case Text() | OemText():
            return _TEXT
        case Repeat():
            return [_sample(part.item)]
        case Sub():
            return _sample(part.header)
        case Guid():
            return _GUID
        case _:
            return 0


def _sample(header: Header) -> dict[str, Any]:
    """Return fields of a structure: all of its parts that nothing else decides."""
    fields: dict[str, Any] = {}
    for part in header.parts:
        match part:
            case Choice():
                number, arm = next((number, arm) for number, arm in part.arms.items() if arm is not None)
                fields |= {part.by: number, part.name: _sample(arm)}
            case Raw() | Text() | OemText() | Repeat() | Sub() | Guid():
                fields[part.name] = _content(part)
            case _:
                pass
    return fields
