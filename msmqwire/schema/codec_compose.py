"""Generates the composing half of a codec: flat functions that write a structure of plain values.

Sizes, counts, presence bits and padding, which `make` computes, are not given but computed there. So nothing
is collected in a record first, and no layout is written by hand where packets must be built fast.

The arguments are the values of the parts that are left, in the order of the wire; those of a structure inside
are a tuple of the same form, or None where it is absent. Of flag words, all bits are given, but a single bit
that says that a part is present is set by the part as well. Names of queues and further structures of several
forms, and structures with lists in them, are given as their bytes: they recur, and have been built already.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from msmqwire.schema.codec_build import FixedRun
from msmqwire.schema.codec_parts import Constants, identifier
from msmqwire.schema.nodes import (
    Align,
    Choice,
    Close,
    Each,
    Fill,
    Flags,
    Guid,
    Header,
    Maybe,
    OemText,
    Packet,
    Part,
    Raw,
    Ref,
    Repeat,
    Sub,
    Text,
    UInt,
    View,
)
from msmqwire.schema.recompute import decided_fields
from msmqwire.schema.references import stands_alone

_COMPUTED: Final = (Align, Fill, Close)
_LISTS: Final = (Repeat, Each, View)


def given_parts(header: Header) -> tuple[Part, ...]:
    """Return the parts of a structure whose values a composer takes, in their order."""
    decided = decided_fields(header)
    return tuple(
        part
        for part in header.parts
        if not isinstance(part, _COMPUTED)
        and not (isinstance(part, UInt) and (part.name in decided or part.size_of or part.same_as))
    )


@cache
def is_composed(header: Header) -> bool:
    """Return whether the parts of a structure can be composed: it has no lists."""
    return not any(
        isinstance(part, _LISTS) or (isinstance(part, UInt) and part.same_as) for part in header.parts
    )


@dataclass(frozen=True, slots=True)
class _Place:
    """A position: the bytes of the parts before it, as names of their lengths and a number."""

    lengths: tuple[str, ...] = ()
    plus: int = 0

    def after(self, *lengths: str, plus: int = 0) -> _Place:
        return _Place((*self.lengths, *lengths), self.plus + plus)

    def since(self, start: _Place) -> _Place:
        return _Place(self.lengths[len(start.lengths) :], self.plus - start.plus)

    def __str__(self) -> str:
        plus = [str(self.plus)] if self.plus or not self.lengths else []
        return " + ".join([*plus, *self.lengths])


@dataclass(eq=False)
class _Open:
    """A structure that is being composed.

    Attributes:
        header, path: the structure and its path.
        start: its first position.
        depth: the depth of the blocks that it is in.
        values: the Python of its integers and flag words, once they are known.
        inner: the structures in it, by name.
        unset: those of its integers that only parts which may be absent decide.
        before: lines at its beginning.
        aligned: the last positions at a multiple of a number from its start.
        end: the position after it, once that is known.
        closed: the position after the bytes that its size counts, if that is another.
    """

    header: Header
    path: str
    start: _Place
    depth: int
    before: list[str]
    values: dict[str, str] = field(default_factory=dict)
    unset: set[str] = field(default_factory=set)
    inner: dict[str, _Open] = field(default_factory=dict)
    aligned: dict[int, _Place] = field(default_factory=dict)
    end: _Place | None = None
    closed: _Place | None = None


class ComposerSource:
    """The source of ``compose_NAME(values...) -> bytes``; it adds the constants it uses.

    First all lengths and presence bits are computed, then everything is written.

    Attributes:
        decided: the paths of the bits that parts set by their presence.
    """

    verb: Final = "compose"

    def __init__(self, header: Header, constants: Constants) -> None:
        if not is_composed(header):
            raise TypeError(f"{header.name} has lists, or fields that repeat further fields")
        self.constants = constants
        self.lines: list[str | list[str]] = []
        self.depth, self.count = 1, 0
        self.at = _Place()
        self.open: list[_Open] = []
        self.decided: set[str] = set()
        self.run = FixedRun(constants)
        self.writing: list[Callable[[], None]] = []
        self.puts: list[str] = []
        self.begun = False
        arguments = [part.name for part in given_parts(header)]
        self.check_together(header)
        self.root = self.structure(header, "", arguments)
        for write in self.writing:
            write()
        self.flush()
        result = "b''.join(out)" if self.begun else f"b''.join(({', '.join([*self.puts, ''])}))"
        self.emit(f"return {result}")
        signature = (
            f"def compose_{identifier(header.key)}({', '.join(f'{a}: Any' for a in arguments)}) -> bytes:"
        )
        lines = [line for entry in self.lines for line in ([entry] if isinstance(entry, str) else entry)]
        self.source = "\n".join([signature, *lines]) + "\n"

    # -- lines -----------------------------------------------------------------------------------------

    def emit(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def name(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def put(self, expression: str) -> None:
        """Write bytes, after the integers before them."""
        if packed := self.run.taken():
            self.puts.append(packed)
        self.puts.append(expression)

    def flush(self) -> None:
        """Emit the parts to be written so far, unless they are all."""
        if packed := self.run.taken():
            self.puts.append(packed)
        if self.puts and (self.begun or self.depth > 1):
            self.emit(f"out += ({', '.join([*self.puts, ''])})")
            self.puts = []

    def later(self, write: Callable[..., None], *arguments: Any) -> None:
        self.writing.append(lambda: write(*arguments))

    # -- structures ------------------------------------------------------------------------------------

    def structure(self, header: Header, path: str, arguments: Sequence[str]) -> _Open:
        before: list[str] = []
        self.lines.append(before)
        this = _Open(header, path, self.at, self.depth, before)
        self.open.append(this)
        values = iter(arguments)
        given = given_parts(header)
        for part in header.parts:
            self.part(part, this, next(values) if part in given else "")
        self.open.pop()
        this.end = self.at
        return this

    def check_together(self, header: Header) -> None:
        """Refuse headers without another one that the same bit announces: `make` adds that."""
        optional: dict[str, list[str]] = {}
        for part in header.parts:
            if isinstance(header, Packet) and isinstance(part, Maybe) and isinstance(part.when, str):
                optional.setdefault(part.when, []).append(part.name)
        for first, *others in optional.values():
            for other in others:
                self.emit(f"if ({first} is None) is not ({other} is None): raise Refused")

    def part(self, part: Part, this: _Open, value: str) -> None:
        match part:
            case UInt():
                if value:
                    this.values[part.name] = value
                self.later(self.write_integer, part, this)
                self.at = self.at.after(plus=part.size)
            case Flags():
                this.values[part.name] = value
                self.later(self.write_integer, part, this)
                self.at = self.at.after(plus=part.size)
            case Guid():
                self.fixed("16s", f"guid_bytes({value})", 16)
            case Raw(length=int(size)):
                self.emit(f"if len({value}) != {size}: raise Refused")
                self.fixed(f"{size}s", value, size)
            case Raw():
                length = self.variable(value)
                self.refer(part.length, length)
                self.mark(part.marks, length)
            case Text(padded=True, length=int(size)):
                self.fixed(f"{size}s", f"encode_padded({value}, {size})", size)
            case Text():
                self.text(f"encode_text({value})", part.length, part.otherwise)
            case OemText():
                self.text(f"encode_oem({self.constants.part(this.header, part)}, {value})", part.length)
            case Align() | Fill():
                self.padding(part, this)
            case Close():
                this.closed = self.at
            case Choice():
                length = self.variable(value)
                self.refer(part.within, length)
            case Sub():
                self.sub(part, this, value)
            case Maybe():
                self.maybe(part, this, value)
            case _:
                raise TypeError(part)

    def sub(self, part: Sub, this: _Open, value: str) -> None:
        before = self.at
        if is_composed(part.header):
            path = f"{this.path}.{part.name}".lstrip(".")
            names = [self.name("v") for _ in given_parts(part.header)]
            self.emit(f"({', '.join([*names, ''])}) = {value}")
            this.inner[part.name] = self.structure(part.header, path, names)
        elif stands_alone(part.header):
            self.variable(value)
        else:
            raise TypeError(f"{this.header.name} has fields that {part.name} decides")
        if part.within:
            self.refer(part.within, f"({self.at.since(before)})")

    def maybe(self, part: Maybe, this: _Open, value: str) -> None:
        before, length = self.at, self.name("n")
        self.emit(f"{length} = 0")
        self.emit(f"if {value} is not None:")
        self.depth += 1
        outside, self.writing = self.writing, []
        if isinstance(part.when, str):
            bit = 1 if "." in part.when else None
            mark = next((m for m in (part.equals, part.mark, bit) if m is not None), None)
            if mark is not None:
                self.set(part.when, mark)
        self.mark(part.marks)
        self.part(part.node, this, value)
        if isinstance(part.node, Sub):
            this.inner.pop(part.name, None)  # no reference to a field that may be absent
        self.emit(f"{length} = {self.at.since(before)}")
        self.depth -= 1
        self.at = before.after(length)
        inside, self.writing = self.writing, outside
        self.later(self.write_if, value, inside)

    # -- parts -----------------------------------------------------------------------------------------

    def fixed(self, code: str, value: str, size: int) -> None:
        self.later(self.run.add, code, value)
        self.at = self.at.after(plus=size)

    def variable(self, value: str) -> str:
        """Compose bytes; return the name of their length."""
        length = self.name("n")
        self.emit(f"{length} = len({value})")
        self.later(self.put, value)
        self.at = self.at.after(length)
        return length

    def text(self, encoded: str, length: Any, otherwise: Ref | None = None) -> None:
        data = self.name("d")
        self.emit(f"{data} = {encoded}")
        if isinstance(length, int):
            self.fixed(f"{length}s", data, length)
            return
        size = self.variable(data)
        if otherwise:
            count = self.name("n")
            self.emit(f"{count} = text_units({data}, {length.path!r}, {length.times}, {otherwise.times})")
            self.set(length.path, count)
            return
        if isinstance(length, Ref) and length.times > 1:  # bytes of half a character are in no length
            self.emit(f"if {size} % {length.times}: raise Refused")
        self.refer(length, size)

    def padding(self, part: Align | Fill, this: _Open) -> None:
        whose = this
        if isinstance(part, Align) and part.of:
            whose = next((outer for outer in self.open if part.of in (outer.header.name, "*")), this)
        distance = self.at.since(this.aligned.get(part.to, whose.start) if whose is this else whose.start)
        if distance.lengths:
            length = self.name("n")
            self.emit(f"{length} = -({distance}) % {part.to}")
            nulls = self.constants.name(f"nulls_{part.to}", f"tuple(map(bytes, range({part.to})))")
            self.later(self.put, f"{nulls}[{length}]")
            self.at = self.at.after(length)
        elif count := -distance.plus % part.to:
            self.later(self.run.skip, count)
            self.at = self.at.after(plus=count)
        if whose is this:
            this.aligned[part.to] = self.at
        if isinstance(part, Fill):
            this.closed = self.at

    # -- references ------------------------------------------------------------------------------------

    def find(self, path: str) -> tuple[_Open, str, str]:
        """Return the structure that has the field of a path, its name, and that of bits of it or nothing."""
        head, *rest = path.split(".")
        for holder in reversed(self.open):
            if head not in holder.header.fields:
                continue
            there, names = holder, [head, *rest]
            while len(names) > 1 and names[0] in there.inner:
                there, names = there.inner[names[0]], names[1:]
            return there, names[0], ".".join(names[1:])
        raise TypeError(f"{path} is outside the structure")

    def set(self, path: str, value: int | str) -> None:
        """Set a field or bits, if that is not done yet."""
        there, name, bits = self.find(path)
        part = there.header.part(name)
        if isinstance(part, Flags):
            assert isinstance(value, int)
            self.set_bits(there, part, bits, value)
            return
        if not isinstance(part, UInt) or bits:
            raise TypeError(f"{path} may be absent")
        if name in there.values:
            if name in there.unset:
                raise TypeError(f"{path} is decided by several parts")
            return
        expression = str(value)
        if self.depth > there.depth:
            variable = self.name("c")
            there.unset.add(name)
            there.before.append(f"{'    ' * there.depth}{variable} = {part.default}")
            self.emit(f"{variable} = {expression}")
            expression = variable
        there.values[name] = expression
        if part.must is not None:
            allowed = (
                f"{part.must.start} <= {expression} < {part.must.stop}"
                if isinstance(part.must, range) and part.must.step == 1
                else f"{expression} in {sorted(part.must)}"
            )
            self.emit(f"if not {allowed}: raise Refused")

    def set_bits(self, there: _Open, part: Flags, name: str, value: int) -> None:
        bits, word = part.part(name), there.values[part.name]
        self.decided.add(f"{there.path}.{part.name}.{name}".lstrip("."))
        if bits.default:
            raise TypeError(f"{name} is set even where nothing sets it")
        if bits.width == 1:
            self.emit(f"{word} |= {bits.mask:#x}")
        else:
            self.emit(f"if not {word} & {bits.mask:#x}: {word} |= {value << bits.shift:#x}")

    def mark(self, path: str, length: str = "") -> None:
        """Set the single bit that says that a part is present: if it has a length, unless that is 0."""
        if not path:
            return
        there, name, bits = self.find(path)
        part = there.header.part(name)
        if not isinstance(part, Flags):
            raise TypeError(f"{path} is not a bit")
        if part.part(bits).width > 1:
            return  # it tells more than that
        if length:
            self.emit(f"if {length}:")
        self.depth += bool(length)
        self.set_bits(there, part, bits, 1)
        self.depth -= bool(length)

    def refer(self, length: Any, count: str) -> None:
        """Set the field that decides the length of a part."""
        if not isinstance(length, Ref):
            return
        if length.over is not None:
            there, name, _ = self.find(length.over)
            self.set(length.path, f"{there.values.get(name, '0')} + {count}")
            return
        counted = f"max(0, {count} - {length.plus})" if length.plus else count
        counted = f"{counted} * {length.per}" if length.per > 1 else counted
        counted = f"{counted} // {length.times}" if length.times > 1 else counted
        self.set(length.path, f"({counted} if {count} else 0)" if length.plus else counted)

    # -- writing ---------------------------------------------------------------------------------------

    def write_if(self, value: str, writing: Sequence[Callable[[], None]]) -> None:
        if packed := self.run.taken():
            self.puts.append(packed)
        if not self.begun:
            self.begun = True
            self.emit(f"out: list[Any] = [{', '.join(self.puts)}]")
            self.puts = []
        self.flush()
        self.emit(f"if {value} is not None:")
        self.depth += 1
        lines = len(self.lines)
        for write in writing:
            write()
        self.flush()
        if len(self.lines) == lines:
            self.emit("pass")
        self.depth -= 1

    def write_integer(self, part: UInt | Flags, this: _Open) -> None:
        if packed := self.run.add_integer(part, self.value(part, this)):
            self.puts.append(packed)

    def value(self, part: UInt | Flags, this: _Open) -> str:
        """Return the Python of the value of an integer, now that all lengths are known."""
        if part.name in this.values:
            return this.values[part.name]
        assert isinstance(part, UInt)
        assert this.end is not None
        match part.size_of:
            case "packet" if isinstance(self.root.header, Packet):
                return str(self.root.closed or self.at)
            case "packet":
                return str(this.end.since(this.start))
            case "header":
                return str((this.closed or this.end).since(this.start))
            case "after":
                return str(self.at.since(this.end))
            case _:
                return str(part.default)
