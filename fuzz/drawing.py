"""Draws the value of a structure part by part, in the order of the wire, by a walk over its schema."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from hypothesis import assume
from hypothesis import strategies as st

from fuzz.leaves import BYTES, GUIDS, ITEMS_MAX, Fixed, exactly, integers, oem_texts, paddings, texts
from fuzz.scopes import OpenStructure, Scopes
from msmqwire.schema import (
    MORE,
    REST,
    SCHEMAS,
    Align,
    Choice,
    Close,
    Each,
    Fill,
    Flags,
    Guid,
    Header,
    Maybe,
    OddPadding,
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
from msmqwire.schema.references import deciding
from msmqwire.schema.texts import encode_oem, encode_text
from msmqwire.schema.utf16 import chosen_length


@dataclass(slots=True)
class _Padding:
    """Trailing padding, which may be truncated where the bytes end.

    Attributes:
        owner: the structure that has it.
        name: the name of the field. start: the offset from which alignment counts.
        to: the alignment.
        least: the smallest offset at which it may end.
        stop: the latest end of a Fill, whatever follows; None for an Align.
    """

    owner: OpenStructure
    name: str
    start: int
    to: int
    least: int
    stop: int | None = None


class _Size(NamedTuple):
    """A size field to set at the end: of the packet, of its header or of the part after the header."""

    owner: OpenStructure
    name: str
    kind: str


class _Copy(NamedTuple):
    """A field to set at the end to the value that a reference resolves to.

    Attributes:
        values: the values of the field's structure.
        name: the name of the field.
        scopes: the scopes in which the reference is resolved.
        path: the reference.
    """

    values: dict[str, Any]
    name: str
    scopes: Scopes
    path: str


class _Check(NamedTuple):
    """A condition on the bytes of a field, without which a parser would read another form.

    Attributes:
        path: the field.
        holds: takes the data, the field of the layout, and the end of the counted bytes.
    """

    path: str
    holds: Callable[[bytes, Field, int], bool]


class _Drawing:
    """The drawing of one value.

    Attributes:
        value: the record.
    """

    def __init__(self, draw: st.DrawFn, schema: Header, fixed: Fixed) -> None:
        self.draw, self.fixed = draw, dict(fixed)
        self.offset = 0
        self.scopes = Scopes([], set())
        self.trailing: list[_Padding] = []
        self.counted: int | None = None  # the bytes that the packet's size counts, once closed
        self.sizes: list[_Size] = []
        self.copies: list[_Copy] = []
        self.ends: dict[int, int] = {}  # by the id of a structure
        self.marker = b""
        self.checks: list[_Check] = []
        self.views = self.draw_views(schema)
        root = self.structure(schema, "" if isinstance(schema, Packet) else schema.name)
        self.truncate_padding()
        for size in self.sizes:
            size.owner.values[size.name] = self.size(size)
        for copy in self.copies:
            copy.values[copy.name] = copy.scopes.value(copy.path) or 0
        self.value = root.finish()
        self.check()

    def draw_views(self, schema: Header) -> dict[str, Record]:
        views: dict[str, Record] = {}
        for part in schema.parts:
            if isinstance(part, View):
                views[part.name] = self.draw(values(part.header))
                self.fixed[part.of] = views[part.name].to_bytes()
        return views

    def check(self) -> None:
        """Reject the few values that a parser would read as another form."""
        if self.checks:
            data, fields = self.value.to_bytes(), {field.path: field for field in layout(self.value)}
            end = len(data) if self.counted is None else self.counted
            for path, holds in self.checks:
                assume(holds(data, fields[path], end))

    def size(self, size: _Size) -> int:
        match size.kind:
            case "packet":
                return self.offset if self.counted is None else self.counted
            case "header":
                return self.ends[id(size.owner)] - size.owner.start
            case _:  # "after"
                return self.offset - self.ends[id(size.owner)]

    # -- structures and their references ----------------------------------------------------------

    def structure(self, header: Header, path: str, name: str = "") -> OpenStructure:
        structure = OpenStructure(header, path, self.offset)
        if name:
            self.scopes.open[-1].inner[name] = structure
        self.scopes.open.append(structure)
        for part in header.parts:
            self.part(part, structure)
        self.scopes.open.pop()
        self.ends.setdefault(id(structure), self.offset)
        return structure

    def refer(self, length: Any, count: int) -> None:
        """Set the field that decides the length of a part, which took `count` bytes."""
        if not isinstance(length, Ref) or length.over:
            return
        scaled = (count - length.plus) * length.per
        if length.per > 1 and scaled:
            scaled -= self.draw(st.integers(0, length.per - 1))
        self.scopes.settle(length.path, scaled // length.times)

    def fix(self, name: str, otherwise: st.SearchStrategy[Any]) -> Any:
        value = self.fixed.get(self.scopes.path(name), otherwise)
        return self.draw(value) if isinstance(value, st.SearchStrategy) else value

    # -- parts -------------------------------------------------------------------------------------

    def part(self, part: Part, owner: OpenStructure) -> None:
        match part:
            case UInt():
                owner.values[part.name] = self.integer(part, owner)
                self.move(part.size)
            case Flags():
                owner.values[part.name] = self.word(part, owner)
                self.move(part.size)
            case Guid():
                owner.values[part.name] = self.fix(part.name, GUIDS)
                self.move(16)
            case Raw():
                owner.values[part.name] = self.raw(part)
            case Text():
                owner.values[part.name] = self.text(part)
            case OemText():
                owner.values[part.name] = self.oem_text(part)
            case Align():
                self.align(part, owner)
            case Fill():
                self.fill(part, owner)
            case Sub():
                self.sub(part.header, part.name, part.within)
            case Maybe():
                self.maybe(part, owner)
            case Choice():
                self.choice(part, owner)
            case Repeat():
                self.repeat(part, owner)
            case Each():
                self.each(part, owner)
            case View():
                owner.values[part.name] = self.views[part.name]
            case Close():
                self.truncate_padding()
                self.counted = self.offset

    def move(self, count: int) -> None:
        self.offset += count
        if count:
            self.trailing = []

    def integer(self, part: UInt, owner: OpenStructure) -> int:
        if part.size_of:
            self.sizes.append(_Size(owner, part.name, part.size_of))
        if self.marker:
            marker, self.marker = self.marker, b""
            return int.from_bytes(marker, "little")
        if part.same_as:
            self.copies.append(_Copy(owner.values, part.name, self.scopes.snapshot(), part.same_as))
        if part.size_of or part.same_as or part.name in deciding(owner.header):
            return 0
        drawn = integers(part.bits, part.signed) if part.must is None else st.sampled_from(sorted(part.must))
        return int(self.fix(part.name, drawn))

    def word(self, part: Flags, owner: OpenStructure) -> int:
        path = self.scopes.path(part.name)
        word = int(self.fix(part.name, integers(part.bits, False)))
        for bits in part.parts:
            if f"{path}.{bits.name}" in self.fixed:
                value = int(self.fix(f"{part.name}.{bits.name}", st.nothing()))
                word = word & ~bits.mask | value << bits.shift
            elif path not in self.fixed:
                continue
            self.scopes.settle_bits(owner, bits)
        return word

    def raw(self, part: Raw) -> bytes:
        if isinstance(part.length, int):
            drawn = exactly(part.length)
            if part.default != bytes(part.length):
                drawn = st.one_of(st.just(part.default), drawn)
            data: bytes = self.fix(part.name, drawn)
        elif (
            part.length is REST
            and isinstance(self.scopes.open[-1].header, Packet)
            and self.draw(st.integers(0, 3))
        ):
            data = self.fix(part.name, st.just(b""))  # bytes after the headers of a packet are rare
        else:
            data = self.fix(part.name, BYTES)
        if isinstance(part.length, Ref) and part.length.over:
            data = self.slack(part.length, data)
        self.refer(part.length, len(data))
        self.move(len(data))
        return data

    def slack(self, length: Ref, data: bytes) -> bytes:
        assert length.over is not None
        over = self.scopes.value(length.over) or 0
        if self.draw(st.booleans()):
            data = b""
        least = over if data else self.draw(st.sampled_from([over, over // 2, 0]))
        self.scopes.settle(length.path, least + len(data))
        return data

    def text(self, part: Text) -> Any:
        value = self.fix(part.name, texts(part))
        data = encode_text(value)
        if isinstance(part.length, Ref):
            most = self.scopes.widest(part.length.path) * part.length.times
            free = most < 1024 and self.scopes.path(part.name) not in self.fixed
            if free and self.draw(st.integers(0, 19)) == 19:  # as long as it can be
                value = "x" * (most // 2 - 1)
                data = encode_text(value)
            self.refer_to_text(part, part.length, data)
        size = part.length if isinstance(part.length, int) else len(data)
        self.move(size)
        return value

    def oem_text(self, part: OemText) -> Any:
        value = self.fix(part.name, oem_texts(part))
        data = encode_oem(part, value)
        self.refer(part.length, len(data))
        self.move(len(data))
        return value

    def refer_to_text(self, part: Text, length: Ref, data: bytes) -> None:
        if part.otherwise is None:
            self.refer(length, len(data))
            return
        # In either unit, unless the surrounding bytes would make a parser take the other one.
        self.refer(self.draw(st.sampled_from([length, part.otherwise])), len(data))
        units = self.scopes.value(length.path) or 0
        lengths = units * length.times, units * part.otherwise.times
        path = self.scopes.path(part.name)
        self.checks.append(_Check(path, lambda d, f, end: chosen_length(d, f.offset, lengths, end) == f.size))

    def align(self, part: Align, owner: OpenStructure) -> None:
        enclosing = (scope.start for scope in self.scopes.open if part.of in (scope.header.name, "*"))
        start = next(enclosing, owner.start)
        count = (start - self.offset) % part.to
        if part.marker:
            self.marker = part.marker
            if count and self.draw(st.booleans()):
                owner.values[part.name] = OddPadding()
                path = self.scopes.path(part.name)
                self.checks.append(
                    _Check(path, lambda d, f, end: not d.startswith(part.marker, f.offset + count))
                )
                return
        else:
            self.trailing.append(_Padding(owner, part.name, start, part.to, self.offset))
        owner.values[part.name] = self.padding(count)
        self.offset += count

    def padding(self, count: int) -> bytes:
        return self.draw(paddings(count)) if count else b""

    def fill(self, part: Fill, owner: OpenStructure) -> None:
        begin = self.offset
        size_field = next(p.name for p in owner.header.parts if isinstance(p, UInt) and p.size_of == "header")
        end = begin + self.draw(st.sampled_from([0, 0, 0, 1, 2, 3, 4, 9]))
        if self.draw(st.booleans()):
            end += (owner.start - end) % part.to
        stop = end + (owner.start - end) % part.to
        self.sizes.remove(_Size(owner, size_field, "header"))
        owner.values[size_field] = end - owner.start
        data = self.padding(stop - begin)
        natural = (owner.start - begin) % part.to
        owner.values[part.name] = data if len(data) == natural else OddPadding(data)
        self.offset = stop
        if end > begin:
            self.trailing = []
        self.trailing.append(_Padding(owner, part.name, owner.start, part.to, end, stop))

    def truncate_padding(self) -> None:
        """Cut off some of the trailing padding, at times: bytes may end within it."""
        if self.trailing and self.draw(st.integers(0, 3)) == 3:
            sizes = [len(padding.owner.values[padding.name]) for padding in self.trailing]
            begin = self.offset - sum(sizes)
            least = max(begin, *(padding.least for padding in self.trailing if padding.stop), 0)
            offset, end = begin, self.draw(st.integers(least, self.offset))
            for padding in self.trailing:
                natural = (padding.start - offset) % padding.to
                count = (offset + natural if padding.stop is None else padding.stop) - offset
                data = (padding.owner.values[padding.name] + bytes(padding.to))[: min(count, end - offset)]
                padding.owner.values[padding.name] = data if len(data) == natural else OddPadding(data)
                offset += len(data)
            for padding in self.trailing:
                if self.ends.get(id(padding.owner), 0) > offset:
                    self.ends[id(padding.owner)] = offset
            self.offset = offset
        self.trailing = []

    def sub(self, header: Header, name: str, within: Ref | None) -> None:
        begin = self.offset
        self.structure(header, self.scopes.path(name), name)
        if within:
            self.truncate_padding()
            self.refer(within, self.offset - begin)

    def maybe(self, part: Maybe, owner: OpenStructure) -> None:
        if part.when is MORE:
            is_present = self.draw(st.booleans())
        else:
            assert isinstance(part.when, str)
            is_present = self.is_present(part.when, part.equals)
        if is_present:
            self.part(part.node, owner)
        else:
            owner.values[part.name] = None

    def is_present(self, when: str, equals: int | None) -> bool:
        scopes = self.scopes
        if scopes.is_settled(when):
            value = scopes.value(when) or 0
            return value != 0 if equals is None else value == equals
        is_present = self.draw(st.booleans())
        if equals is None:
            scopes.settle(when, self.draw(st.integers(1, scopes.widest(when))) if is_present else 0)
        elif is_present:
            scopes.settle(when, equals)
        else:
            values = st.integers(0, scopes.widest(when)).filter(lambda value: value != equals)
            scopes.settle(when, self.draw(values))
        return is_present

    def choice(self, part: Choice, owner: OpenStructure) -> None:
        if not self.scopes.is_settled(part.by):
            self.scopes.settle(part.by, self.draw(st.sampled_from(sorted(part.arms))))
        arm = part.arms[self.scopes.value(part.by) or 0]
        if arm is None:
            owner.values[part.name] = None
        else:
            self.sub(arm, part.name, part.within)

    def repeat(self, part: Repeat, owner: OpenStructure) -> None:
        if self.scopes.is_settled(part.count):  # by another list of the same length
            count = self.scopes.value(part.count) or 0
        else:
            count = self.draw(st.integers(0, ITEMS_MAX))
            self.scopes.settle(part.count, count)
        owner.values[part.name] = [
            self.structure(part.item, self.scopes.path(f"{part.name}[{i}]")) for i in range(count)
        ]

    def each(self, part: Each, owner: OpenStructure) -> None:
        items: list[OpenStructure | None] = []
        for i, element in enumerate(owner.values[part.of]):
            pointer, arm, count = part.arms.get(element.number(part.by) if part.by else 0, ("", None, ""))
            if arm is None or not element.number(pointer):
                items.append(None)
                continue
            item = self.structure(arm, self.scopes.path(f"{part.name}[{i}]"))
            items.append(item)
            if count:
                counter, names = element.descend(count)
                self.copies.append(_Copy(counter.values, names[0], Scopes([item], set()), "MaximumCount"))
        owner.values[part.name] = items


@st.composite
def _values(draw: st.DrawFn, key: str, fixed: Fixed) -> Record:
    return _Drawing(draw, SCHEMAS[key], fixed).value


def values(schema: Header, fixed: Fixed | None = None) -> st.SearchStrategy[Record]:
    """Return a strategy for complete records of `schema` as a parser can return them.

    The bytes built from a record parse to it. Every optional part may be absent, every form of a Choice
    occurs, reserved bits and padding hold anything; sizes, counts and presence bits agree with the other
    fields. `fixed` narrows fields, by path.
    """
    return _values(schema.key, fixed or {})  # by key, which Hypothesis prints
