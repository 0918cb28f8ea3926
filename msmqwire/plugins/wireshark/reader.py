"""Generates the functions of Lua that read the structures of packets: one for each place of a structure.

Each reads field by field as `msmqwire.schema.reference` does, and refuses with the same path and offset. It
is called with the position, the announced end (``huge`` if none is) and the item of the tree to add to (nil
without a tree), and returns the position after the structure, or nothing after ``fail``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msmqwire.plugins.wireshark.fields import Fields, quoted
from msmqwire.plugins.wireshark.value_slots import Place, ValueSlots, bits_of, inner_places, resolve
from msmqwire.schema import Flags, Guid, Header, Packet, Raw, Ref, Text, UInt
from msmqwire.schema.nodes import (
    MORE,
    REST,
    TO_NULL,
    Align,
    Choice,
    Close,
    Fill,
    Length,
    Mark,
    Maybe,
    Part,
    Repeat,
    Sub,
)
from msmqwire.schema.sizes import least_size

_CODES: Final = {8: "B", 16: "I2", 32: "I4"}
GAP_MAX: Final = 8
"""Limit of bytes between two numbers that one call reads."""


class Readers:
    """The functions for the structures of packets, each once for each path."""

    def __init__(self, fields: Fields, kept: ValueSlots) -> None:
        self.fields, self.kept = fields, kept
        self.sources: list[str] = []
        self.runs: list[str] = []
        self._known: dict[tuple[str, str], str] = {}

    def run(self, fields: str) -> str:
        """Return the expression of a run of fields of fixed size: sizes, paths and registered fields."""
        self.runs.append(f"{{{fields}}}")
        return f"C[{len(self.runs)}]"

    def of(self, place: Place, around: tuple[Place, ...] = ()) -> str:
        """Return the expression of the function that reads a structure; `around` are the structures around
        it.
        """
        key = place.path, place.header.key
        if key not in self._known:
            source = _Structure(self, place, around).source()
            self.sources.append(source)
            self._known[key] = f"S[{len(self.sources)}]"
        return self._known[key]


def _size(part: Part) -> int:
    if isinstance(part, Raw):
        assert isinstance(part.length, int)
        return part.length
    assert isinstance(part, UInt | Flags | Guid)
    return part.size


def _opens_packet(header: Header) -> bool:
    return any(isinstance(part, UInt) and part.size_of == "packet" for part in header.parts)


def _origins(header: Header) -> set[str]:
    """Return the names of the structures from whose start padding inside this one is counted."""
    named = {part.of for part in header.parts if isinstance(part, Align) and part.of}
    return named.union(*(_origins(place.header) for place in inner_places(Place(header, ""))))


def _unpacked(numbers: Sequence[tuple[int, UInt | Flags, str]]) -> list[str]:
    """Return the statements that keep numbers at their offsets: nearby ones by one call."""
    lines: list[str] = []
    codes, targets, start, end = "", list[str](), 0, 0
    for offset, part, target in numbers:
        if targets and offset - end > GAP_MAX:
            lines.append(f'{", ".join(targets)} = unpack("<{codes}", D, p + {start + 1})')
            codes, targets = "", []
        codes += "x" * (offset - end) if targets else ""
        start = start if targets else offset
        codes, targets, end = codes + _CODES[part.bits], [*targets, target], offset + part.size
    if targets:
        lines.append(f'{", ".join(targets)} = unpack("<{codes}", D, p + {start + 1})')
    return lines


class _Structure:
    """The source of one function."""

    def __init__(self, readers: Readers, place: Place, around: tuple[Place, ...]) -> None:
        self.readers, self.fields, self.kept = readers, readers.fields, readers.kept
        self.place, self.scopes = place, (*around, place)
        self.lines: list[str] = []
        self.depth = 1
        self.run: list[Part] = []
        self.is_packet = isinstance(place.header, Packet)
        self.size: str | None = None  # the path of the size whose bytes are being read

    def source(self) -> str:
        header = self.place.header
        self.emit("local s, m = p, e < L and e or L")
        if header.name in _origins(header):
            self.emit(f"Z.{header.name} = s")
        if not self.is_packet:
            title = self.fields.of(header, self.place.path)
            self.emit(f"if t then t = add(t, {title}, range(B, p, 0)) end")
        for part in header.parts:
            self.part(part)
        self.flush()
        if self.size is not None:
            self.close()
        if not self.is_packet:
            self.emit("if t then set_len(t, p - s) end")
        self.emit("return p")
        name = f"{self.place.path or header.name}, {header.section}"
        return "\n".join([f"function(p, e, t) -- {name}", *self.lines, "end"])

    def emit(self, line: str) -> None:
        self.lines.append("  " * self.depth + line)

    def refuse(self, path: str, offset: str, why: str) -> str:
        return f"return fail({quoted(path)}, {offset}, {why})"

    # -- fields of fixed size ----------------------------------------------------------------------

    def part(self, part: Part) -> None:
        match part:
            case UInt() | Flags() | Guid() | Raw(length=int()):
                self.run.append(part)
                if isinstance(part, UInt) and (part.must is not None or part.size_of):
                    self.flush()
                    self.judge(part)
            case _:
                self.flush()
                self.variable(part)

    def flush(self) -> None:
        """Emit the run of fields of fixed size: one check and one unpack for all of them."""
        run, self.run = self.run, []
        if not run:
            return
        total = sum(_size(part) for part in run)
        cut: list[str] = []
        numbers: list[tuple[int, UInt | Flags, str]] = []
        shown: list[str] = []
        offset = 0
        for part in run:
            assert isinstance(part, UInt | Flags | Guid | Raw)
            path, size, at = self.place.of(part.name), _size(part), f"p + {offset}" if offset else "p"
            cut.append(f"{{{size}, {quoted(path)}, {self.fields.of(part, path)}}}")
            if path in self.kept and isinstance(part, UInt | Flags):
                numbers.append((offset, part, self.kept.value(path)))
            elif path in self.kept:
                self.emit(f"{self.kept.value(path)}, {self.kept.length(path)} = {at}, {size}")
            if path in self.kept.blamed:
                self.emit(f"{self.kept.offset(path)} = {at}")
            shown += self.shown(part, path, at)
            offset += size
        self.emit(f"if p + {total} > m then return cut(p, e, t, {self.readers.run(', '.join(cut))}) end")
        for line in _unpacked(numbers):
            self.emit(line)
        self.emit("if t then")
        if any(isinstance(part, Flags) for part in run):
            self.emit("  local r, w")
        for line in shown:
            self.emit(f"  {line}")
        self.emit("end")
        self.emit(f"p = p + {total}")

    def shown(self, part: Part, path: str, at: str) -> list[str]:
        """Return the statements that add a field to the tree."""
        assert isinstance(part, UInt | Flags | Guid | Raw)
        name = self.fields.of(part, path)
        if not isinstance(part, Flags):
            return [f"add_le(t, {name}, range(B, {at}, {_size(part)}))"]
        lines = [f"r = range(B, {at}, {part.size}); w = add_le(t, {name}, r)"]
        for bits in part.parts:
            lines.append(f"add_le(w, {self.fields.of(bits, f'{path}.{bits.name}', word=part)}, r)")
        return lines

    def judge(self, part: UInt) -> None:
        """Refuse a value that is not allowed; open the region that a size counts."""
        path = self.place.of(part.name)
        value, at = self.kept.value(path), f"p - {part.size}"
        why = f'{value} .. " is not allowed"'
        if isinstance(part.must, range):
            condition = f"{value} < {part.must.start} or {value} >= {part.must.stop}"
            self.emit(f"if {condition} then {self.refuse(path, at, why)} end")
        elif part.must is not None:
            condition = " and ".join(f"{value} ~= {allowed}" for allowed in sorted(part.must))
            self.emit(f"if {condition} then {self.refuse(path, at, why)} end")
        if part.size_of == "packet":
            self.emit(f"if P + {value} < p then {self.refuse(path, at, quoted('too small'))} end")
            self.emit(f"{self.kept.offset(path)} = {at}")
            self.emit(f"e = P + {value}; PE = e; m = e < L and e or L")
        elif part.size_of == "header":
            least = least_size(self.place.header)
            self.emit(f"local stop = s + {value}")
            condition = f"stop < p or {value} < {least}"
            self.emit(f"if {condition} then {self.refuse(path, at, quoted('too small'))} end")
            self.emit(
                f"if stop > e then {self.refuse(path, at, quoted('more than the bytes left') + ', true')} end"
            )
            self.emit("local outer = e; e = stop; m = e < L and e or L")
            self.size = path

    def close(self) -> None:
        path = self.size
        assert path is not None
        offset = self.kept.offset(path)
        why = quoted("not the size of the data that it counts")
        self.emit(f"if p ~= e then {self.refuse(path, offset, why)} end")
        self.size = None

    # -- parts of variable length ------------------------------------------------------------------

    def variable(self, part: Part) -> None:
        path = self.place.of(part.name)
        match part:
            case Raw():
                blame = self.length(part.length)
                self.take(path, blame)
                self.emit(f"if t and n > 0 then add(t, {self.fields.of(part, path)}, range(B, p, n)) end")
                self.keep(path)
                self.emit("p = p + n")
            case Text():
                self.text(part, path)
            case Align():
                self.align(part, path)
            case Fill():
                self.fill(part, path)
            case Sub():
                self.structure(part.header, path, part.within)
            case Maybe():
                self.maybe(part)
            case Choice():
                self.choice(part, path)
            case Repeat():
                self.repeat(part, path)
            case Close():
                self.close()
                self.emit("e, m = huge, L")
            case _:
                raise TypeError(part)

    def lookup(self, reference: str) -> str:
        """Return the expression of a referenced integer; 0 if its structure is not in the packet."""
        path, bits = resolve(self.scopes, reference)
        here = path.rpartition(".")[0] == self.place.path
        value = self.kept.value(path) if here else f"({self.kept.value(path)} or 0)"
        return value if bits is None else bits_of(value, bits)

    def blamed(self, reference: str) -> tuple[str, str]:
        """Return the path that a refusal names for a reference, and the expression of its offset."""
        path, bits = resolve(self.scopes, reference)
        return path if bits is None else f"{path}.{bits.name}", self.kept.offset(path)

    def length(self, length: Length, name: str = "n") -> tuple[str, str] | None:
        """Emit a variable with a length; return the path to blame if it does not fit."""
        if length is REST:
            self.emit(f"local {name} = (e < huge and e or L) - p; if {name} < 0 then {name} = 0 end")
            return None
        assert isinstance(length, Ref)
        blame = self.blamed(length.path)
        value = self.lookup(length.path)
        if length.over is not None:
            value = f"{value} - {self.lookup(length.over)}"
            self.emit(f"local {name} = {value}; if {name} < 0 then {name} = 0 end")
            return blame
        if length.times != 1:
            value = f"{value} * {length.times}"
        if length.per != 1:
            value = f"ceil({value} / {length.per})"
        self.emit(f"local {name} = {value}{f' + {length.plus}' if length.plus else ''}")
        if length.plus < 0:
            self.emit(f"if {name} < 0 then {self.refuse(*blame, quoted('too small'))} end")
        return blame

    def take(self, path: str, blame: tuple[str, str] | None = None) -> None:
        """Emit the check that `n` bytes can be read."""
        blamed = f"{quoted(blame[0])}, {blame[1]}" if blame else "nil, nil"
        self.emit(f"if p + n > m then return short(p, n, e, {quoted(path)}, {blamed}) end")

    def keep(self, path: str) -> None:
        if path in self.kept:
            self.emit(f"{self.kept.value(path)}, {self.kept.length(path)} = p, n")

    def text(self, part: Text, path: str) -> None:
        if part.padded or isinstance(part.length, int):
            raise TypeError(part)
        if part.length is TO_NULL:
            why = quoted("no null character ends it")
            self.emit(f"local n = find_null(p, m); if not n then {self.refuse(path, 'm', why)} end")
            self.emit("n = n + 2 - p")
        else:
            blame = self.length(part.length)
            if part.otherwise is not None:
                self.length(part.otherwise, "other")
                self.emit("n = chosen(p, n, other, m)")
            self.take(path, blame)
            if part.strict:
                assert blame is not None
                why = quoted("the bytes do not end on a null character")
                self.emit(f"if not ends_on_null(p, n) then {self.refuse(*blame, why)} end")
        fields = f"{self.fields.of(part, path)}, {self.fields.ill_formed(path)}"
        self.emit(f"if t and n > 0 then add_text(t, {fields}, p, n) end")
        self.keep(path)
        self.emit("p = p + n")

    def align(self, part: Align, path: str) -> None:
        outer = [place for place in self.scopes if part.of in (place.header.name, "*")]
        origin = "s" if not outer or outer[0] is self.place else f"Z.{outer[0].header.name}"
        self.emit(f"local stop = p + ({origin} - p) % {part.to}")
        self.emit("local full = stop")
        if part.marker:
            width, marker = len(part.marker), "".join(f"\\{byte:03d}" for byte in part.marker)
            parts = self.place.header.parts
            following = self.place.of(parts[parts.index(part) + 1].name)

            def found(at: str) -> str:
                return f'({at} + {width} <= m and sub(D, {at} + 1, {at} + {width}) == "{marker}")'

            ends = self.refuse(following, "m", quoted("the data ends before it"))
            wrong = self.refuse(following, "stop", quoted("not the value that is expected here"))
            self.emit(f"if not {found('stop')} then")
            self.emit(f"  if not {found('p')} then")
            self.emit(f"    if stop + {width} > m then {ends} end")
            self.emit(f"    {wrong}")
            self.emit("  end")
            self.emit("  stop = p")
            self.emit("end")
        else:
            self.emit("local bound = e < huge and e or L; if stop > bound then stop = bound end")
        self.emit("local n = stop - p")
        self.padding(part, path)

    def fill(self, part: Fill, path: str) -> None:
        self.emit(f"local full = p + (s - p) % {part.to}")
        self.emit(f"local stop = e + (s - e) % {part.to}")
        self.emit("local bound = outer < huge and outer or L")
        self.emit("if stop > bound then stop = bound end; if stop < e then stop = e end")
        self.emit("e = outer; m = e < L and e or L")
        self.emit("local n = stop - p")
        self.size = None
        self.padding(part, path)

    def padding(self, part: Align | Fill, path: str) -> None:
        self.take(path)
        self.emit(f"if t and n > 0 then add(t, {self.fields.of(part, path)}, range(B, p, n)) end")
        if path in self.kept:
            self.keep(path)
            self.emit(f"{self.kept.odd(path)} = stop ~= full")
        self.emit("p = stop")

    # -- structures --------------------------------------------------------------------------------

    def structure(self, header: Header, path: str, within: Ref | None = None) -> None:
        reader = self.readers.of(Place(header, path), self.scopes)
        if within is None:
            self.emit(f"p = {reader}(p, e, t); if not p then return end")
            if self.is_packet and _opens_packet(header):
                self.size = f"{path}.PacketSize"
                self.emit("e = PE; m = e < L and e or L")
            return
        blame = self.length(within)
        assert blame is not None
        self.take(path, blame)
        self.emit("local stop = p + n")
        self.emit(f"p = {reader}(p, stop, t); if not p then return end")
        why = quoted("not the size of the data that it counts")
        self.emit(f"if p ~= stop then {self.refuse(*blame, why)} end")

    def block(self, opening: str, parts: Sequence[Part]) -> None:
        """Emit parts inside a block."""
        self.emit(opening)
        self.depth += 1
        for part in parts:
            self.part(part)
        self.flush()
        self.depth -= 1

    def maybe(self, part: Maybe) -> None:
        if isinstance(part.when, Mark):
            assert part.when is MORE
            condition = "p < m"
        else:
            value = self.lookup(part.when)
            condition = f"{value} ~= 0" if part.equals is None else f"{value} == {part.equals}"
        self.block(f"if {condition} then", [part.node])
        self.emit("end")

    def choice(self, part: Choice, path: str) -> None:
        self.emit(f"local c = {self.lookup(part.by)}")
        word = "if"
        for arm in dict.fromkeys(part.arms.values()):
            numbers = [number for number, a in part.arms.items() if a is arm]
            self.emit(f"{word} {' or '.join(f'c == {number}' for number in numbers)} then")
            word = "elseif"
            if arm is not None:
                self.depth += 1
                self.structure(arm, path, part.within)
                self.depth -= 1
        refused = self.refuse(*self.blamed(part.by), 'c .. " has no layout"')
        self.emit(f"else {refused} end")

    def repeat(self, part: Repeat, path: str) -> None:
        blame = self.blamed(part.count)
        self.emit(f"local c = {self.lookup(part.count)}")
        many = self.refuse(*blame, f'c .. " is more than {part.limit}, our limit"')
        self.emit(f"if c > {part.limit} then {many} end")
        least = self.refuse(*blame, 'c .. " takes more bytes than are left"')
        self.emit(f"if e < huge and c * {least_size(part.item)} > e - p then {least} end")
        reader = self.readers.of(Place(part.item, f"{path}[]"), self.scopes)
        self.emit("for i = 0, c - 1 do")
        self.emit(f"  I = i; p = {reader}(p, e, t); if not p then return end")
        self.emit("end")
