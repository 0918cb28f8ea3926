"""Draws the value of a structure part by part, in the order of the wire, by a walk over its schema."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from fuzz.leaves import BYTES, GUIDS, ITEMS_MAX, Fixed, exactly, integers, texts
from msmqwire.schema import (
    MORE,
    SCHEMAS,
    Align,
    Bits,
    Choice,
    Close,
    Each,
    Fill,
    Flags,
    Guid,
    Header,
    Maybe,
    OddPadding,
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
from msmqwire.schema.nodes import inner_headers, references
from msmqwire.schema.record import chosen_length, encode_text, flags_class


@dataclass(slots=True)
class _Open:
    """A structure that is being drawn; flag words are integers until it is finished."""

    header: Header
    path: str
    start: int
    held: dict[str, Any] = field(default_factory=dict)
    inner: dict[str, _Open] = field(default_factory=dict)

    def finish(self) -> Record:
        done: dict[str, Any] = {}
        for part in self.header.parts:
            if part.name in self.inner:
                done[part.name] = self.inner[part.name].finish()
            elif isinstance(part, Flags):
                done[part.name] = flags_class(self.header.name, part)(self.held[part.name])
            elif isinstance(part, Repeat | Each):
                done[part.name] = [item and item.finish() for item in self.held[part.name]]
            elif not isinstance(part, Close):
                done[part.name] = self.held[part.name]
        return self.header.record(**done)

    def follow(self, path: str) -> tuple[dict[str, Any], str]:
        """Where a field within is held, and its name there."""
        found, names = self, path.split(".")
        while len(names) > 1 and names[0] in found.inner:
            found, names = found.inner[names[0]], names[1:]
        return found.held, names[0]

    def number(self, path: str) -> int:
        """The integer at a path within, 0 when it is not there."""
        held, name = self.follow(path)
        return int(held.get(name, 0))


@dataclass(slots=True)
class _Tail:
    """Padding with nothing behind it so far: it may be cut where the bytes end."""

    owner: _Open
    name: str
    start: int
    to: int
    least: int  # where it may end at the earliest
    stop: int | None = None  # where a Fill ends at the latest, whatever stands there


class _Drawing:
    def __init__(self, draw: st.DrawFn, schema: Header, fixed: Fixed) -> None:
        self.draw, self.fixed = draw, dict(fixed)
        self.at = 0
        self.scopes: list[_Open] = []
        self.settled: set[tuple[int, str]] = set()
        self.tails: list[_Tail] = []
        self.counted: int | None = None
        self.sizes: list[tuple[_Open, str, str]] = []
        self.copies: list[tuple[dict[str, Any], str, list[_Open], str]] = []
        self.ends: dict[int, int] = {}
        self.marker = b""
        self.checks: list[tuple[str, Callable[[bytes, Field, int], bool]]] = []
        self.views = self.draw_views(schema)
        root = self.structure(schema, "" if isinstance(schema, Packet) else schema.name)
        self.cut_tail()
        for owner, name, kind in self.sizes:
            owner.held[name] = self.size(owner, kind)
        for held, name, scopes, path in self.copies:
            self.scopes = scopes
            held[name] = self.look(path) or 0
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
        """Rejects the few values of which a parser would read another form."""
        if self.checks:
            data, fields = self.value.to_bytes(), {found.path: found for found in layout(self.value)}
            end = len(data) if self.counted is None else self.counted
            for path, holds in self.checks:
                assume(holds(data, fields[path], end))

    def size(self, owner: _Open, kind: str) -> int:
        if kind == "packet":
            return self.at if self.counted is None else self.counted
        if kind == "header":
            return self.ends[id(owner)] - owner.start
        return self.at - self.ends[id(owner)]  # "after"

    # -- structures and what they refer to ---------------------------------------------------------

    def structure(self, header: Header, path: str, name: str = "") -> _Open:
        opened = _Open(header, path, self.at)
        if name:
            self.scopes[-1].inner[name] = opened
        self.scopes.append(opened)
        for part in header.parts:
            self.part(part, opened)
        self.scopes.pop()
        self.ends.setdefault(id(opened), self.at)
        return opened

    def path(self, name: str) -> str:
        prefix = self.scopes[-1].path
        return f"{prefix}.{name}" if prefix else name

    def find(self, path: str) -> tuple[_Open, str, Bits | None] | None:
        """Who has the field of a reference, its name and the bits meant; None for an absent header."""
        head, *rest = path.split(".")
        for scope in reversed(self.scopes):
            found, names = scope, [head, *rest]
            while len(names) > 1 and names[0] in found.inner:
                found, names = found.inner[names[0]], names[1:]
            if names[0] in found.held and found.held[names[0]] is not None:
                part = found.header.part(names[0])
                bits = next(b for b in part.parts if b.name == names[1]) if isinstance(part, Flags) else None
                return found, names[0], bits
        return None

    def look(self, path: str) -> int | None:
        found = self.find(path)
        if found is None:
            return None
        owner, name, bits = found
        value: int = owner.held[name]
        return value if bits is None else (value & bits.mask) >> bits.shift

    def settle(self, path: str, value: int) -> None:
        found = self.find(path)
        assert found is not None, path
        owner, name, bits = found
        if bits is not None:
            value = (owner.held[name] & ~bits.mask) | value << bits.shift
        owner.held[name] = value
        self.settled.add((id(owner), path.rpartition(".")[2]))

    def is_settled(self, path: str) -> bool:
        found = self.find(path)
        return found is None or (id(found[0]), path.rpartition(".")[2]) in self.settled

    def widest(self, path: str) -> int:
        """The greatest value that a reference can have."""
        found = self.find(path)
        assert found is not None
        owner, name, bits = found
        if bits is not None:
            return (1 << bits.width) - 1
        part = owner.header.part(name)
        assert isinstance(part, UInt)
        return max(part.must) if part.must else (1 << part.bits) - 1

    def refer(self, length: Any, count: int) -> None:
        """A part took `count` bytes: sets the field that decides its length."""
        if not isinstance(length, Ref) or length.over:
            return
        scaled = (count - length.plus) * length.per
        if length.per > 1 and scaled:
            scaled -= self.draw(st.integers(0, length.per - 1))
        self.settle(length.path, scaled // length.times)

    def fix(self, name: str, otherwise: st.SearchStrategy[Any]) -> Any:
        given = self.fixed.get(self.path(name), otherwise)
        return self.draw(given) if isinstance(given, st.SearchStrategy) else given

    # -- parts -------------------------------------------------------------------------------------

    def part(self, part: Part, owner: _Open) -> None:
        match part:
            case UInt():
                owner.held[part.name] = self.integer(part, owner)
                self.move(part.size)
            case Flags():
                owner.held[part.name] = self.word(part, owner)
                self.move(part.size)
            case Guid():
                owner.held[part.name] = self.fix(part.name, GUIDS)
                self.move(16)
            case Raw():
                owner.held[part.name] = self.raw(part)
            case Text():
                owner.held[part.name] = self.text(part)
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
                owner.held[part.name] = self.views[part.name]
            case Close():
                self.cut_tail()
                self.counted = self.at

    def move(self, count: int) -> None:
        self.at += count
        if count:
            self.tails = []

    def integer(self, part: UInt, owner: _Open) -> int:
        if part.size_of:
            self.sizes.append((owner, part.name, part.size_of))
        if self.marker:
            marker, self.marker = self.marker, b""
            return int.from_bytes(marker, "little")
        if part.same_as:
            self.copies.append((owner.held, part.name, list(self.scopes), part.same_as))
        if part.size_of or part.same_as or part.name in deciding(owner.header):
            return 0
        drawn = integers(part.bits, part.signed) if part.must is None else st.sampled_from(sorted(part.must))
        return int(self.fix(part.name, drawn))

    def word(self, part: Flags, owner: _Open) -> int:
        path = self.path(part.name)
        word = int(self.fix(part.name, integers(part.bits, False)))
        for bits in part.parts:
            if f"{path}.{bits.name}" in self.fixed:
                chosen = int(self.fix(f"{part.name}.{bits.name}", st.nothing()))
                word = word & ~bits.mask | chosen << bits.shift
            elif path not in self.fixed:
                continue
            self.settled.add((id(owner), bits.name))
        return word

    def raw(self, part: Raw) -> bytes:
        if isinstance(part.length, int):
            drawn = exactly(part.length)
            if part.default != bytes(part.length):
                drawn = st.one_of(st.just(part.default), drawn)
            data: bytes = self.fix(part.name, drawn)
        else:
            data = self.fix(part.name, BYTES)
        if isinstance(part.length, Ref) and part.length.over:
            data = self.slack(part.length, data)
        self.refer(part.length, len(data))
        self.move(len(data))
        return data

    def slack(self, length: Ref, data: bytes) -> bytes:
        assert length.over is not None
        over = self.look(length.over) or 0
        if self.draw(st.booleans()):
            data = b""
        least = over if data else self.draw(st.sampled_from([over, over // 2, 0]))
        self.settle(length.path, least + len(data))
        return data

    def text(self, part: Text) -> Any:
        value = self.fix(part.name, texts(part))
        data = encode_text(value)
        if isinstance(part.length, Ref):
            most = self.widest(part.length.path) * part.length.times
            free = most < 1024 and self.path(part.name) not in self.fixed
            if free and self.draw(st.integers(0, 19)) == 19:  # as long as it can be
                value = "x" * (most // 2 - 1)
                data = encode_text(value)
            self.refer_to_text(part, part.length, data)
        size = part.length if isinstance(part.length, int) else len(data)
        self.move(size)
        return value

    def refer_to_text(self, part: Text, length: Ref, data: bytes) -> None:
        if part.otherwise is None:
            self.refer(length, len(data))
            return
        # In the one unit or the other; not where the bytes around would have it read in the other one.
        self.refer(self.draw(st.sampled_from([length, part.otherwise])), len(data))
        units = self.look(length.path) or 0
        lengths = units * length.times, units * part.otherwise.times
        self.checks.append(
            (self.path(part.name), lambda d, f, end: chosen_length(d, f.offset, lengths, end) == f.size)
        )

    def align(self, part: Align, owner: _Open) -> None:
        start = next((s.start for s in self.scopes if part.of in (s.header.name, "*")), owner.start)
        count = (start - self.at) % part.to
        if part.marker:
            self.marker = part.marker
            if count and self.draw(st.booleans()):
                owner.held[part.name] = OddPadding()
                self.checks.append(
                    (self.path(part.name), lambda d, f, end: not d.startswith(part.marker, f.offset + count))
                )
                return
        else:
            self.tails.append(_Tail(owner, part.name, start, part.to, self.at))
        owner.held[part.name] = self.padding(count)
        self.at += count

    def padding(self, count: int) -> bytes:
        return self.draw(st.one_of(st.just(bytes(count)), exactly(count))) if count else b""

    def fill(self, part: Fill, owner: _Open) -> None:
        here = self.at
        size_field = next(p.name for p in owner.header.parts if isinstance(p, UInt) and p.size_of == "header")
        end = here + self.draw(st.sampled_from([0, 0, 0, 1, 2, 3, 4, 9]))
        if self.draw(st.booleans()):
            end += (owner.start - end) % part.to
        stop = end + (owner.start - end) % part.to
        self.sizes.remove((owner, size_field, "header"))
        owner.held[size_field] = end - owner.start
        data = self.padding(stop - here)
        natural = (owner.start - here) % part.to
        owner.held[part.name] = data if len(data) == natural else OddPadding(data)
        self.at = stop
        if end > here:
            self.tails = []
        self.tails.append(_Tail(owner, part.name, owner.start, part.to, end, stop))

    def cut_tail(self) -> None:
        """Bytes may end within their last padding: cuts some of it."""
        if self.tails and self.draw(st.integers(0, 3)) == 3:
            begin = self.at - sum(len(tail.owner.held[tail.name]) for tail in self.tails)
            least = max(begin, *(tail.least for tail in self.tails if tail.stop), 0)
            at, end = begin, self.draw(st.integers(least, self.at))
            for tail in self.tails:
                natural = (tail.start - at) % tail.to
                count = (at + natural if tail.stop is None else tail.stop) - at
                data = (tail.owner.held[tail.name] + bytes(tail.to))[: min(count, end - at)]
                tail.owner.held[tail.name] = data if len(data) == natural else OddPadding(data)
                at += len(data)
            for tail in self.tails:
                if self.ends.get(id(tail.owner), 0) > at:
                    self.ends[id(tail.owner)] = at
            self.at = at
        self.tails = []

    def sub(self, header: Header, name: str, within: Ref | None) -> None:
        before = self.at
        self.structure(header, self.path(name), name)
        if within:
            self.cut_tail()
            self.refer(within, self.at - before)

    def maybe(self, part: Maybe, owner: _Open) -> None:
        node = part.node
        if part.when is MORE:
            there = self.draw(st.booleans())
        else:
            assert isinstance(part.when, str)
            there = self.is_there(part.when, part.equals)
        if there:
            self.part(node, owner)
        else:
            owner.held[part.name] = None

    def is_there(self, when: str, equals: int | None) -> bool:
        if self.is_settled(when):
            value = self.look(when) or 0
            return value != 0 if equals is None else value == equals
        there = self.draw(st.booleans())
        if equals is None:
            self.settle(when, self.draw(st.integers(1, self.widest(when))) if there else 0)
        elif there:
            self.settle(when, equals)
        else:
            self.settle(when, self.draw(st.integers(0, self.widest(when)).filter(lambda n: n != equals)))
        return there

    def choice(self, part: Choice, owner: _Open) -> None:
        if not self.is_settled(part.by):
            self.settle(part.by, self.draw(st.sampled_from(sorted(part.arms))))
        arm = part.arms[self.look(part.by) or 0]
        if arm is None:
            owner.held[part.name] = None
        else:
            self.sub(arm, part.name, part.within)

    def repeat(self, part: Repeat, owner: _Open) -> None:
        count = self.draw(st.integers(0, ITEMS_MAX))
        self.settle(part.count, count)
        owner.held[part.name] = [
            self.structure(part.item, self.path(f"{part.name}[{i}]")) for i in range(count)
        ]

    def each(self, part: Each, owner: _Open) -> None:
        items: list[_Open | None] = []
        for i, element in enumerate(owner.held[part.of]):
            pointer, arm, count = part.arms.get(element.number(part.by) if part.by else 0, ("", None, ""))
            if arm is None or not element.number(pointer):
                items.append(None)
                continue
            item = self.structure(arm, self.path(f"{part.name}[{i}]"))
            items.append(item)
            if count:
                self.copies.append((*element.follow(count), [item], "MaximumCount"))
        owner.held[part.name] = items


@cache
def deciding(header: Header) -> frozenset[str]:
    """What the parts of a structure refer to, and those inside it that refer beyond themselves."""
    paths: set[str] = set()
    for part in header.parts:
        paths.update(references(part))
        for inner in inner_headers(part):
            paths |= _beyond(inner)
    return frozenset(paths)


@cache
def _beyond(header: Header) -> frozenset[str]:
    """What a structure refers to in those around it."""
    return frozenset(path for path in deciding(header) if path.partition(".")[0] not in header.fields)


@cache
def has_integers(schema: Header) -> bool:
    """Whether every value of it has an integer or a flag word."""
    return any(
        isinstance(part, UInt | Flags) or (isinstance(part, Sub) and has_integers(part.header))
        for part in schema.parts
    )


def stands_alone(schema: Header) -> bool:
    """Whether nothing in it refers to a structure around it."""
    return not _beyond(schema)


@st.composite
def _values(draw: st.DrawFn, key: str, fixed: Fixed) -> Record:
    return _Drawing(draw, SCHEMAS[key], fixed).value


def values(schema: Header, fixed: Fixed | None = None) -> st.SearchStrategy[Record]:
    """Complete records of `schema`, as a parser can give them: what is built from one parses to it.

    Every optional part is there or not, every form of a Choice comes, reserved bits and padding hold
    anything; sizes, counts and presence bits agree with the rest. `fixed` narrows fields, by path.
    """
    return _values(schema.key, fixed or {})  # by key: Hypothesis shows what a strategy was made of
