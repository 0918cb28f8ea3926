"""Generates the reading half of a codec: one flat function for each schema."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from msmqwire.schema.codec_parts import (
    CODES,
    INTEGER_CODES,
    Constants,
    Position,
    Scope,
    byte_order,
    identifier,
    referenced,
)
from msmqwire.schema.nodes import (
    MORE,
    REST,
    TO_NULL,
    Align,
    Choice,
    Close,
    Each,
    Fill,
    Flags,
    Guid,
    Header,
    Mark,
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
    inner_headers,
)
from msmqwire.schema.references import references
from msmqwire.schema.sizes import least_size


@dataclass
class _Region:
    end: str
    scope: Scope | None
    outer: str  # the variable of the enclosing end


class ParserSource:
    """The source of ``read_NAME(data, p0, e0) -> (record, end)``; it adds the constants it uses."""

    verb: Final = "read"

    def __init__(self, header: Header, constants: Constants) -> None:
        self.lines: list[str] = []
        self.constants = constants
        self.declared: set[str] = set()
        self.flag_words = frozenset(_flag_words(header))
        self.depth = 1
        self.count = 0
        self.position = Position("p0")
        self.end = "e0"
        self.scopes: list[Scope] = []
        self.regions: list[_Region] = []
        self.run: list[tuple[str, str]] = []  # struct codes and targets, not yet emitted
        self.run_start = self.position
        self.run_order = "<"
        self.after: list[str] = []
        result = self.structure(header)
        self.flush()
        self.emit(f"return {result}, {self.position}")
        self.source = "\n".join([self.signature(header), *self.lines]) + "\n"

    # -- emitting ----------------------------------------------------------------------------

    def signature(self, header: Header) -> str:
        return f"def {self.verb}_{identifier(header.key)}(data: bytes, p0: int, e0: int) -> tuple[Any, int]:"

    def emit(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def name(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def first(self, name: str, kind: str) -> str:
        """Return a variable as the target of an assignment, with its type at the first one."""
        if name in self.declared:
            return name
        self.declared.add(name)
        return f"{name}: {kind}"

    def refuse_if(self, condition: str) -> None:
        self.emit(f"if {condition}: raise Refused")

    def fixed(self, code: str, size: int, target: str, order: str = "") -> None:
        """Add a part to the fixed run that starts at `run_start`; all its integers have one byte order."""
        if order and order != self.run_order:
            if any(earlier in INTEGER_CODES for earlier, _ in self.run):
                self.flush()
            self.run_order = order
        if not self.run:
            self.run_start = self.position
        self.run.append((code, target))
        self.position = self.position.advanced(size)

    def flush(self) -> None:
        """Emit the fixed run: one check and one unpack for all its parts."""
        if self.run:
            codes = self.run_order + "".join(code for code, _ in self.run)
            unpack = self.constants.packing("unpack_from", codes)
            targets = ", ".join(target for _, target in self.run)
            self.refuse_if(f"{self.position} > {self.end}")
            self.emit(f"{targets}, = {unpack}(data, {self.run_start})")
            self.run = []
        for line in self.after:
            self.emit(line)
        self.after = []

    def move(self, expression: str) -> None:
        """Continue at a computed position."""
        var = self.name("p")
        self.emit(f"{self.first(var, 'int')} = {expression}")
        self.position = Position(var)

    # -- references --------------------------------------------------------------------------

    def lookup(self, path: str) -> str:
        """Return the expression of a referenced integer."""
        raw, bits = referenced(self.scopes, path)
        if bits is None:
            return raw
        if bits.width == 1:
            return f"({raw} & {bits.mask:#x} != 0)"
        return f"({raw} >> {bits.shift} & {(1 << bits.width) - 1:#x})"

    def length(self, ref: Ref) -> str:
        """Emit a variable with the length that a reference gives, checked not to be negative; return it."""
        value = self.lookup(ref.path)
        if ref.over is not None:
            expression = f"max(0, {value} - {self.lookup(ref.over)})"
        elif ref.times == ref.per == 1 and not ref.plus:
            return value
        else:
            expression = (
                f"{value} * {ref.times}" if ref.per == 1 else f"-(-{value} * {ref.times} // {ref.per})"
            )
            expression += f" + {ref.plus}" if ref.plus else ""
        var = self.name("n")
        self.emit(f"{self.first(var, 'int')} = {expression}")
        if ref.plus < 0:
            self.refuse_if(f"{var} < 0")
        return var

    # -- structures --------------------------------------------------------------------------

    def structure(self, header: Header, name: str = "") -> str:
        scope = Scope(header, self.position)
        if self.scopes:
            self.scopes[-1].inner[name] = scope
        self.scopes.append(scope)
        for part in header.parts:
            self.part(part, scope)
        self.flush()
        while self.regions and self.regions[-1].scope is scope:
            self.close()
        self.scopes.pop()
        record = self.name("r")
        self.emit(f"{record} = {self.constants.maker(header)}()")
        for field_name in header.fields:
            self.emit(f"{record}.{field_name} = {scope.outs[field_name]}")
        return record

    def part(self, part: Part, scope: Scope) -> None:
        out: str | None = None
        match part:
            case UInt():
                out = self.integer(part, scope)
            case Flags():
                raw = self.name("v")
                self.fixed(CODES[part.bits], part.size, raw, byte_order(part))
                scope.raws[part.name] = raw
                if part.name in self.flag_words:
                    scope.raws[part.name] = word = self.name("n")
                    self.after.append(f"{self.first(word, 'int')} = {raw}")
                out = f"{self.constants.flags(scope.header, part)}({raw})"
            case Guid():
                raw = self.name("v")
                self.fixed("16s", 16, raw)
                out = f"guid({raw})"
            case Raw(length=int(n)):
                out = self.name("v")
                self.fixed(f"{n}s", n, out)
            case Text(length=int(n)):
                raw = self.name("v")
                self.fixed(f"{n}s", n, raw)
                out = f"{'text_padded' if part.padded else 'text_exact'}({raw})"
            case OemText(length=int(n)):
                raw = self.name("v")
                self.fixed(f"{n}s", n, raw)
                out = f"{'oem_counted' if part.counted else 'oem_padded'}({raw})"
            case Close():
                self.flush()
                self.close()
            case _:
                self.flush()
                out = self.variable(part)
        if out is not None:
            scope.outs[part.name] = out

    def variable(self, part: Part) -> str:
        match part:
            case Raw():
                return self.bytes(part)
            case OemText():
                return f"oem_exact({self.bytes(part)})"
            case Text():
                return self.text(part)
            case Align():
                return self.align(part)
            case Fill():
                return self.fill(part)
            case Sub(within=None):
                return self.structure(part.header, part.name)
            case Sub():
                return self.windowed(part.within, part.header, part.name)
            case Maybe():
                return self.maybe(part)
            case Choice():
                return self.choice(part)
            case Repeat():
                return self.repeat(part)
            case Each():
                return self.each(part)
            case View():
                return self.view(part)
        raise TypeError(part)

    def integer(self, part: UInt, scope: Scope) -> str:
        var = self.name("v")
        code = CODES[part.bits]
        self.fixed(code.lower() if part.signed else code, part.size, var, byte_order(part))
        scope.raws[part.name] = var
        if isinstance(part.must, range):
            low, high = part.must.start, part.must.stop
            self.after.append(f"if not {low} <= {var} < {high}: raise Refused")
        elif part.must is not None:
            self.after.append(f"if {var} not in {tuple(sorted(part.must))}: raise Refused")
        if part.same_as:
            self.after.append(f"if {var} != {self.lookup(part.same_as)}: raise Refused")
        owner = scope if part.size_of == "header" else None
        if part.size_of == "packet":
            owner = next((s for s in self.scopes if isinstance(s.header, Packet)), None)
        if owner is not None:
            self.flush()
            end = self.name("e")
            self.emit(f"{self.first(end, 'int')} = {owner.start}+{var}")
            self.refuse_if(f"not {self.position} <= {end} <= {self.end}")
            if part.size_of == "header":
                self.refuse_if(f"{var} < {least_size(scope.header)}")
            self.regions.append(_Region(end, owner, self.end))
            self.end = end
        return var

    def close(self) -> None:
        if self.regions:
            region = self.regions.pop()
            if str(self.position) != region.end:
                self.refuse_if(f"{self.position} != {region.end}")
            self.end = region.outer

    # -- parts of variable length ---------------------------------------------------------------

    def slice(self, length: str) -> tuple[str, str]:
        """Advance by `length`, checked; return the expressions of both ends."""
        start = str(self.position)
        self.move(f"{self.position}+{length}")
        self.refuse_if(f"{self.position} > {self.end}")
        return start, str(self.position)

    def bytes(self, part: Raw | OemText) -> str:
        if part.length is REST:
            start = str(self.position)
            self.position = Position(self.end)
            self.refuse_if(f"{start} > {self.end}")
        else:
            assert isinstance(part.length, Ref)
            start, _ = self.slice(self.length(part.length))
        var = self.name("v")
        self.emit(f"{var} = data[{start}:{self.position}]")
        return var

    def text(self, part: Text) -> str:
        var = self.name("v")
        if part.length is TO_NULL:
            start, null = str(self.position), self.name("n")
            self.emit(f"{self.first(null, 'int')} = find_null(data, {start}, {self.end})")
            self.refuse_if(f"{null} < 0")
            self.move(f"{null}+2")
            self.emit(f"{var} = text_exact(data[{start}:{self.position}])")
            return var
        if part.length is REST:
            length = f"({self.end} - ({self.position}))"
        else:
            assert isinstance(part.length, Ref)
            length = self.length(part.length)
        if part.otherwise:
            chosen, other = self.name("n"), self.length(part.otherwise)
            lengths = f"({length}, {other})"
            choose = f"chosen_length(data, {self.position}, {lengths}, {self.end})"
            self.emit(f"{self.first(chosen, 'int')} = {choose}")
            length = chosen
        start, stop = self.slice(length)
        if part.strict:
            self.refuse_if(f"not ends_on_null(data, {start}, {length}, {stop})")
        self.emit(f"{var} = text_exact(data[{start}:{stop}])")
        return var

    def align(self, part: Align) -> str:
        named = [s for s in self.scopes if part.of in (s.header.name, "*")] or self.scopes[-1:]
        origin, begin, to, var = named[0].start, self.position, part.to, self.name("v")
        if origin.base == begin.base and not part.marker:
            count = -(begin.plus - origin.plus) % to
            if not count:
                return "b''"
            stop = str(begin.advanced(count))
        else:
            stop = f"{begin} + ({origin}-({begin})) % {to}"
        self.move(stop)
        if part.marker:
            marker, width = repr(part.marker), len(part.marker)
            at = "not ({0}+{1} <= {2} and data[{0}:{0}+{1}] == {3})".format
            self.emit(f"if {at(self.position, width, self.end, marker)}:")
            self.emit(f"    if {at(begin, width, self.end, marker)}: raise Refused")
            missing = f"OddPadding() if {self.position} > {begin} else b''"
            self.emit(f"    {self.first(var, 'bytes')} = {missing}; {self.position} = {begin}")
            self.emit(f"else: {var} = data[{begin}:{self.position}]")
            return var
        self.emit(f"{self.first(var, 'bytes')} = data[{begin}:{self.position}]")
        cut = f"{var} = OddPadding(data[{begin}:{self.end}]); {self.position} = {self.end}"
        self.emit(f"if {self.position} > {self.end}: {cut}")
        return var

    def fill(self, part: Fill) -> str:
        region = self.regions.pop()
        origin, begin, var, to = self.scopes[-1].start, self.position, self.name("v"), part.to
        self.end = region.outer
        self.move(f"min({region.end} + ({origin}-{region.end}) % {to}, {self.end})")
        self.emit(f"{self.first(var, 'bytes')} = data[{begin}:{self.position}]")
        self.emit(f"if {self.position} != {begin} + ({origin}-({begin})) % {to}: {var} = OddPadding({var})")
        return var

    def windowed(self, within: Ref | None, header: Header, name: str) -> str:
        if within is None:
            return self.structure(header, name)
        outer, end = self.end, self.name("e")
        length = self.length(within)
        self.emit(f"{self.first(end, 'int')} = {self.position}+{length}")
        self.refuse_if(f"{end} > {outer}")
        self.end = end
        self.regions.append(_Region(end, None, outer))
        record = self.structure(header, name)
        self.regions.pop()
        self.refuse_if(f"{self.position} != {end}")
        self.end = outer
        return record

    def maybe(self, part: Maybe) -> str:
        if isinstance(part.when, Mark):
            assert part.when is MORE
            condition = f"{self.position} < {self.end}"
        elif part.equals is not None:
            condition = f"{self.lookup(part.when)} == {part.equals}"
        else:
            condition = self.lookup(part.when)
        var, scope = self.name("v"), self.scopes[-1]
        before = self.position
        self.emit(f"if {condition}:")
        self.depth += 1
        self.part(part.node, scope)
        self.flush()
        self.emit(f"{self.first(var, 'Any')} = {scope.outs[part.name]}")
        after = self.name("p")
        self.emit(f"{self.first(after, 'int')} = {self.position}")
        self.depth -= 1
        unread = "".join(f"{raw} = " for raw in _raws(scope.inner.get(part.name)))
        self.emit("else:")
        self.emit(f"    {var} = None; {after} = {before}")
        if unread:
            self.emit(f"    {unread}0")
        self.position = Position(after)
        return var

    def choice(self, part: Choice) -> str:
        by, var, after, before = self.name("n"), self.name("v"), self.name("p"), self.position
        self.emit(f"{self.first(by, 'int')} = {self.lookup(part.by)}")
        word = "if"
        for arm in dict.fromkeys(part.arms.values()):
            numbers = [value for value, a in part.arms.items() if a is arm]
            test = f"== {numbers[0]}" if len(numbers) == 1 else f"in {tuple(numbers)}"
            self.emit(f"{word} {by} {test}:")
            word = "elif"
            self.depth += 1
            self.position = before
            record = self.windowed(part.within, arm, part.name) if arm else "None"
            self.emit(f"{self.first(var, 'Any')} = {record}")
            self.emit(f"{self.first(after, 'int')} = {self.position}")
            self.depth -= 1
        self.emit("else: raise Refused")
        self.position = Position(after)
        return var

    def each(self, part: Each) -> str:
        var, at, element, by, item = (self.name(letter) for letter in "vpxnv")
        self.emit(f"{self.first(var, 'list[Any]')} = []")
        self.emit(f"{self.first(at, 'int')} = {self.position}")
        self.emit(f"for {element} in {self.scopes[-1].outs[part.of]}:")
        self.depth += 1
        self.emit(f"{self.first(by, 'int')} = {f'{element}.{part.by}' if part.by else 0}")
        self.emit(f"{self.first(item, 'Any')} = None")
        word = "if"
        for value, (path, arm, count) in part.arms.items():
            self.emit(f"{word} {by} == {value}:")
            word = "elif"
            self.depth += 1
            self.emit(f"if {element}.{path}:")
            self.depth += 1
            self.position = Position(at)
            record = self.structure(arm, part.name)
            self.emit(f"{item} = {record}")
            self.emit(f"{at} = {self.position}")
            if count:
                self.refuse_if(f"{item}.MaximumCount != {element}.{count}")
            self.depth -= 2
        self.emit(f"{var}.append({item})")
        self.depth -= 1
        self.position = Position(at)
        return var

    def view(self, part: View) -> str:
        *above, name = part.of.split(".")
        scope, var = self.scopes[-1], self.name("v")
        for inner in above:
            scope = scope.inner[inner]
        key = part.header.key
        shown, read = scope.outs[name], self.constants.name(f"read_of_{key}", f"reader_of({key!r})")
        self.refuse_if(f"len({shown}) != {part.header.size}")
        self.emit(f"{var}, _ = {read}({shown}, 0, {part.header.size})")
        return var

    def repeat(self, part: Repeat) -> str:
        count, var, at = self.lookup(part.count), self.name("v"), self.name("p")
        least = least_size(part.item)
        self.refuse_if(f"{count} > {part.limit} or {count} * {least} > {self.end} - ({self.position})")
        self.emit(f"{self.first(var, 'list[Any]')} = []")
        self.emit(f"{self.first(at, 'int')} = {self.position}")
        self.emit(f"for _ in range({count}):")
        self.depth += 1
        self.position = Position(at)
        record = self.structure(part.item, part.name)
        self.emit(f"{var}.append({record})")
        self.emit(f"{at} = {self.position}")
        self.depth -= 1
        self.position = Position(at)
        return var


def _raws(scope: Scope | None) -> list[str]:
    if scope is None:
        return []
    return [*scope.raws.values(), *(raw for inner in scope.inner.values() for raw in _raws(inner))]


def _flag_words(header: Header) -> Iterator[str]:
    """Yield the names of flag words to whose bits a part refers, here or in inner structures."""
    for part in header.parts:
        yield from (path.split(".")[-2] for path in references(part) if "." in path)
        for inner in inner_headers(part):
            yield from _flag_words(inner)
