"""The source of the functions that check packets, for `tools/generate/columnar_code.py`."""

from __future__ import annotations

import re
from collections.abc import Collection

from msmqwire.headers import BASE_HEADER
from msmqwire.headers.base import BASE_HEADER_SIZE
from msmqwire.schema.codec_parse import Position, Scope, referenced
from msmqwire.schema.nodes import (
    REST,
    TO_NULL,
    Align,
    Choice,
    Close,
    Fill,
    Flags,
    Guid,
    Header,
    Maybe,
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
from msmqwire.schema.sizes import least_size

EXPORTED = frozenset({"ping"})
"""The functions that interpreted code calls."""


class Source:
    """The function for one kind of packet, and the table of its slots.

    Args:
        packet: the kind.
        fields: the paths of the fields to locate.
        refusals: the refusals of all packets, to which its own are added: form, path and further data of the
            form; see `msmqwire.tables.arrow.refusals`.
    """

    def __init__(self, packet: Packet, fields: Collection[str], refusals: list[tuple[object, ...]]) -> None:
        self.packet, self.fields = packet, fields
        self.refusals = refusals
        self.places: dict[str, tuple[str, Position]] = {}  # by variable the field it holds
        self.lines: list[str] = []
        self.depth = 1
        self.count = 0
        self.here, self.end = Position("p0"), "e0"
        self.limits = {"e0": "e0"}  # up to where there are bytes, by the variable with an announced end
        self.scopes: list[Scope] = []
        self.regions: list[tuple[str, Scope | None, str, str]] = []
        self.run: list[tuple[str, Part, Position]] = []
        self.path: list[str] = []
        has_base = packet.parts[0].name == BASE_HEADER.name
        self.sure = Position("p0", BASE_HEADER_SIZE if has_base else 0)  # all up to here is there
        self.element = ""  # the variable with the number of the element of a list
        self.slots: dict[str, int] = {"p0": 0}
        self.field_slots: dict[str, tuple[int, ...]] = {}
        self.structure(packet)
        self.flush()
        self.emit(f"return {self.here}")

    @property
    def name(self) -> str:
        words = "".join(f"_{c.lower()}" if c.isupper() else c for c in self.packet.name)
        return words.removeprefix("_")

    def text(self) -> str:
        clear = [
            f"    field_offsets[r, {slot}] = {0 if slot == 0 else -1}" for slot in sorted(self.slots.values())
        ]
        about = f'    """{self.packet.name}: {self.packet.section}."""'
        parameters = "memory: Input, p0: int, e0: int, field_offsets: Int32Rows, r: int"
        marks = "@exported\n@jit" if self.name in EXPORTED else "@jit"
        head = f"{marks}\ndef {self.name}({parameters}) -> int:"
        lines = self.lines
        text = "\n".join(lines)
        load = re.compile(r"\s*(v\d+) = u\d+\(")
        used = [
            line
            for line in lines
            if not (match := load.match(line)) or len(re.findall(rf"\b{match[1]}\b", text)) > 1
        ]
        return "\n".join([head, about, *clear, *used])

    # -- emitting ----------------------------------------------------------------------------

    def emit(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def new(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def refuse_if(self, condition: str, refusal: tuple[object, ...], offset: str, *values: str) -> None:
        """Emit a check, and the refusal with its offset and the values that its reason shows."""
        self.emit(f"if {condition}:")
        self.depth += 1
        self.refuse(refusal, offset, *values)
        self.depth -= 1

    def refuse(self, refusal: tuple[object, ...], offset: str, *values: str) -> None:
        assert len(values) <= (2 if self.element else 3)
        shown = ", ".join(
            [offset, *values, *["0"] * (2 - len(values)), *[self.element or "0"][: 3 - len(values)]]
        )
        self.emit(f"return refuse(field_offsets, r, {len(self.refusals)}, {shown})")
        self.refusals.append(refusal)

    @property
    def limit(self) -> str:
        """The variable with the offset up to which bytes can be read."""
        return self.limits[self.end]

    def announce(self, end: str) -> None:
        """Let an announced end count from here on; there may be fewer bytes."""
        limit = self.new("m")
        self.emit(f"{limit} = min({end}, {self.limit})")
        self.limits[end], self.end = limit, end

    def refuse_beyond(
        self, end: str, start: str, path: str, refusal: tuple[object, ...], offset: str, *values: str
    ) -> None:
        """Emit the check that a part is complete: a refusal if it extends beyond its enclosing part, or is
        truncated.
        """
        if self.limit == self.end:
            if refusal:
                self.refuse_if(f"{end} > {self.end}", refusal, offset, *values)
            return
        self.emit(f"if {end} > {self.limit}:")
        self.depth += 1
        if refusal:
            self.refuse_if(f"{end} > {self.end}", refusal, offset, *values)
        self.refuse(("cut short", path), "e0 - p0", f"{end} - ({start})", f"e0 - ({start})")
        self.depth -= 1

    def full(self, name: str) -> str:
        """Return the path of a part of the structure that is being read."""
        return ".".join([*self.path, name])

    def blamed(self, path: str) -> tuple[str, str, str]:
        """Return value, full path and offset of a referenced field."""
        raw, bits = referenced(self.scopes, path)
        field, place = self.places[raw]
        return self.lookup(path), f"{field}.{bits.name}" if bits else field, _distance(place)

    def move(self, expression: str) -> None:
        var = self.new("p")
        self.emit(f"{var} = {expression}")
        self.here = Position(var)

    def slot(self, base: str) -> int:
        """Return the slot of a variable; its first use emits the line that writes it."""
        if base not in self.slots:
            self.slots[base] = len(self.slots)
            self.emit(f"field_offsets[r, {self.slots[base]}] = {base} - p0")
        return self.slots[base]

    def rebase(self) -> None:
        """Use a new variable for the position: the following part is optional."""
        self.move(str(self.here))

    def note(self, name: str, place: Position, size: int) -> None:
        """Note slot, distance and size of a field of fixed size."""
        path = self.full(name)
        if any(other == path or other.startswith(f"{path}.") for other in self.fields):
            self.field_slots[path] = (self.slot(place.base), place.plus, size)

    # -- references --------------------------------------------------------------------------

    def lookup(self, path: str) -> str:
        raw, bits = referenced(self.scopes, path)
        return raw if bits is None else f"({raw} >> {bits.shift} & {(1 << bits.width) - 1:#x})"

    def length(self, ref: Ref) -> str:
        value = self.lookup(ref.path)
        if ref.over is not None:
            return f"max(0, {value} - {self.lookup(ref.over)})"
        assert ref.per == 1, "not implemented"
        assert ref.plus >= 0, "not implemented"
        expression = f"{value} * {ref.times}" if ref.times != 1 else value
        return f"{expression} + {ref.plus}" if ref.plus else expression

    # -- structures --------------------------------------------------------------------------

    def structure(self, header: Header, name: str = "") -> None:
        scope = Scope(header, self.here)
        if self.scopes:
            self.scopes[-1].inner[name] = scope
            self.path.append(name)
        self.scopes.append(scope)
        for part in header.parts:
            self.part(part, scope)
        self.flush()
        while self.regions and self.regions[-1][1] is scope:
            self.close()
        self.scopes.pop()
        if self.scopes:
            self.path.pop()

    def part(self, part: Part, scope: Scope) -> None:
        match part:
            case UInt() | Flags():
                var = scope.raws[part.name] = self.new("v")
                self.places[var] = self.full(part.name), self.here
                self.run.append((var, part, self.here))
                self.note_in_run(part.name, part.size)
                if isinstance(part, UInt) and part.must is not None:
                    self.flush()  # its refusal comes before those of the fields after it
                if isinstance(part, UInt) and part.size_of:
                    self.region(part, scope)
            case Guid():
                self.run.append(("", part, self.here))
                self.note_in_run(part.name, 16)
            case Raw(length=int(n)):
                self.run.append(("", part, self.here))
                self.note_in_run(part.name, n)
            case Close():
                self.flush()
                self.close()
            case _:
                self.flush()
                self.variable(part, scope)

    def note_in_run(self, name: str, size: int) -> None:
        self.note(name, self.here, size)
        self.here = self.here.advanced(size)

    def flush(self) -> None:
        """Emit the bounds check of a run of fixed parts, then its integers and their checks."""
        if not self.run:
            return
        if self.here.base != self.sure.base or self.here.plus > self.sure.plus:
            fields = tuple((self.full(part.name), _size(part)) for _, part, _ in self.run)
            ends = dict.fromkeys((self.end, self.limit))
            left = [f"{end} - ({self.run[0][2]})" for end in ends]
            form = "too short" if self.regions else "cut off"
            self.refuse_if(f"{self.here} > {self.limit}", (form, fields), f"{self.limit} - p0", *left)
        for var, part, place in self.run:
            if not isinstance(part, (UInt, Flags)):
                continue
            self.emit(f"{var} = u{part.bits}(memory, {place})")
            must, path = getattr(part, "must", None), self.full(part.name)
            if isinstance(must, range):
                refusal: tuple[object, ...] = "not between", path, must.start, must.stop - 1
                self.refuse_if(f"not {must.start} <= {var} < {must.stop}", refusal, _distance(place), var)
            elif must is not None:
                unequal = " and ".join(f"{var} != {value:#x}" for value in sorted(must))
                self.refuse_if(unequal, ("none of", path, tuple(sorted(must))), _distance(place), var)
        self.run = []

    def region(self, part: UInt, scope: Scope) -> None:
        self.flush()
        raw, end, owner = scope.raws[part.name], self.new("e"), scope
        if part.size_of == "packet":
            owner = next(s for s in self.scopes if isinstance(s.header, Packet))
            self.emit(f"{end} = {owner.start} + {raw}")
        else:
            path, place = self.places[raw]
            least, left = least_size(scope.header), f"{self.end} - ({owner.start})"
            self.refuse_if(f"{raw} < {least}", ("too small", path), _distance(place), raw)
            self.emit(f"{end} = {owner.start} + {raw}")
            self.refuse_if(f"{end} > {self.end}", ("beyond", path), _distance(place), raw, left)
        self.regions.append((end, owner, self.end, raw))
        self.announce(end)

    def close(self) -> None:
        if self.regions:
            end, owner, outer, raw = self.regions.pop()
            if str(self.here) != end:
                assert owner is not None
                path, place = self.places[raw]
                taken = f"{self.here} - {owner.start}"
                self.refuse_if(f"{self.here} != {end}", ("too large", path), _distance(place), raw, taken)
            self.end = outer

    def condition(self, part: Maybe) -> str:
        assert isinstance(part.when, str)
        value = self.lookup(part.when)
        return f"{value} == {part.equals}" if part.equals is not None else f"{value} != 0"

    # -- parts of variable length ---------------------------------------------------------------

    def variable(self, part: Part, scope: Scope) -> None:
        match part:
            case Raw() | Text():
                self.bytes(part)
            case Align():
                self.align(part)
            case Fill():
                self.fill(part)
            case Repeat():
                self.repeat(part)
            case Sub():
                self.windowed(part.within, part.header, part.name)
            case Maybe():
                self.maybe(part, scope)
            case Choice():
                self.choice(part)
            case View():
                pass
            case _:
                raise TypeError(part)

    def bytes(self, part: Raw | Text) -> None:
        start = self.here
        path = self.full(part.name)
        if part.length is REST:
            self.here = Position(self.end)
            self.refuse_beyond(self.end, str(start), path, (), "")
        elif part.length is TO_NULL:
            null = self.new("p")
            self.emit(f"{null} = find_null(memory, {start}, {self.limit})")
            self.refuse_if(f"{null} < 0", ("no null", path), f"{self.limit} - p0")
            self.here = Position(null, 2)
        else:
            assert isinstance(part.length, Ref)
            length = self.length(part.length)
            if isinstance(part, Text) and part.otherwise:
                lengths, length = f"{length}, {self.length(part.otherwise)}", self.new("n")
                self.emit(f"{length} = chosen_length(memory, {start}, {lengths}, {self.limit})")
            self.move(f"{start} + {length}")
            value, blamed, offset = self.blamed(part.length.path)
            refusal = "too long", blamed, path, part.length.times
            left = f"{self.end} - ({start})"
            self.refuse_beyond(str(self.here), str(start), path, refusal, offset, value, length, left)
        if isinstance(part, Text) and part.strict:
            not_null = f"not ends_on_null(memory, {start}, {self.here})"
            self.refuse_if(not_null, ("not terminated", blamed), offset, f"{self.here} - ({start})")
        if path in self.fields:
            self.field_slots[path] = (self.slot(start.base), start.plus, self.slot(self.here.base), 0)

    def align(self, part: Align) -> None:
        named = [s for s in self.scopes if part.of in (s.header.name, "*")] or self.scopes[-1:]
        start, here, to = named[0].start, self.here, part.to
        if part.marker:
            self.find_marker(part, f"{here} + ({start} - ({here})) % {to}")
            return
        if start.base == here.base:
            count = -(here.plus - start.plus) % to
            if not count:
                return
            padded = str(here.advanced(count))
        else:
            padded = f"{here} + ({start} - ({here})) % {to}"
        self.move(f"min({padded}, {self.end})")
        self.refuse_beyond(str(self.here), str(here), self.full(part.name), (), "")

    def find_marker(self, part: Align, padded: str) -> None:
        """Emit the search for a field by its value: after padding, or at once."""
        parts, here, stop = self.scopes[-1].header.parts, self.here, self.new("p")
        path, value = self.full(parts[parts.index(part) + 1].name), int.from_bytes(part.marker, "little")
        assert len(part.marker) == 2, "not implemented"
        self.emit(f"{stop} = {padded}")
        self.emit(f"if {stop} + 2 > {self.limit} or u16(memory, {stop}) != {value:#x}:")
        self.depth += 1
        self.emit(f"if {here} + 2 > {self.limit} or u16(memory, {here}) != {value:#x}:")
        self.depth += 1
        self.refuse_if(f"{stop} + 2 > {self.limit}", ("nothing left", path), f"{self.limit} - p0")
        self.refuse(("none of", path, (value,)), f"{stop} - p0", f"u16(memory, {stop})")
        self.depth -= 1
        self.emit(f"{stop} = {here}")
        self.depth -= 1
        self.here = Position(stop)

    def fill(self, part: Fill) -> None:
        end, _, self.end, _ = self.regions.pop()
        here = self.here
        self.move(f"min({end} + ({self.scopes[-1].start} - {end}) % {part.to}, {self.end})")
        self.refuse_beyond(str(self.here), str(here), self.full(part.name), (), "")

    def repeat(self, part: Repeat) -> None:
        count, path, offset = self.blamed(part.count)
        size, left = f"{count} * {least_size(part.item)}", f"{self.end} - ({self.here})"
        self.refuse_if(f"{count} > {part.limit}", ("too many", path, part.limit), offset, count)
        self.refuse_if(f"{size} > {left}", ("too few", path), offset, count, size, left)
        at, self.element = self.new("p"), self.new("i")
        self.emit(f"{at} = {self.here}")
        self.emit(f"for {self.element} in range({count}):")
        self.depth += 1
        self.here = Position(at)
        self.structure(part.item, f"{part.name}[#]")
        self.emit(f"{at} = {self.here}")
        self.depth -= 1
        self.here, self.element = Position(at), ""

    def windowed(self, within: Ref | None, header: Header, name: str) -> None:
        if within is None:
            self.structure(header, name)
            return
        outer, end = self.end, self.new("e")
        length = self.length(within)
        self.emit(f"{end} = {self.here} + {length}")
        value, blamed, offset = self.blamed(within.path)
        refusal = "too long", blamed, self.full(name), within.times
        left = f"{outer} - ({self.here})"
        self.refuse_beyond(end, str(self.here), self.full(name), refusal, offset, value, length, left)
        self.end = self.limits[end] = end
        self.regions.append((end, None, outer, ""))
        self.structure(header, name)
        self.regions.pop()
        assert str(self.here) == end, "not implemented"
        self.end = outer

    def maybe(self, part: Maybe, scope: Scope) -> None:
        condition = self.condition(part)
        after, before = self.new("q"), self.here
        self.emit(f"{after} = {before}")
        self.emit(f"if {condition}:")
        self.depth += 1
        self.rebase()
        self.part(part.node, scope)
        self.flush()
        self.emit(f"{after} = {self.here}")
        self.depth -= 1
        self.here = Position(after)

    def choice(self, part: Choice) -> None:
        by, after, before = self.lookup(part.by), self.new("q"), self.here
        path = self.full(part.name)
        if path in self.fields:
            self.field_slots[path] = (self.slot(before.base), before.plus, 0)
        self.emit(f"{after} = {before}")
        word = "if"
        for arm in dict.fromkeys(part.arms.values()):
            numbers = [value for value, a in part.arms.items() if a is arm]
            self.emit(f"{word} {' or '.join(f'{by} == {n}' for n in numbers)}:")
            word = "elif"
            self.depth += 1
            self.here = before
            if arm is None:
                self.emit("pass")
            else:
                self.windowed(part.within, arm, part.name)
                self.emit(f"{after} = {self.here}")
            self.depth -= 1
        _, bits = referenced(self.scopes, part.by)
        if bits is None or len(part.arms) < 1 << bits.width:
            self.emit("else:")
            self.depth += 1
            _, path, offset = self.blamed(part.by)
            self.refuse(("without layout", path), offset, by)
            self.depth -= 1
        self.here = Position(after)


def _size(part: Part) -> int:
    match part:
        case UInt() | Flags():
            return part.size
        case Guid():
            return 16
        case Raw(length=int(size)):
            return size
    raise TypeError(part)


def _distance(place: Position) -> str:
    """Return the distance of a field from the start of the packet."""
    return str(place.plus) if place.base == "p0" else f"{place} - p0"
