"""The reference reader: every schema as a construct object.

It reads field by field, slowly, and knows for each refusal the path, the offset and the reason;
the generated codec asks it why whenever it refuses bytes itself. The objects are ordinary construct
ones: they parse to Containers, build from mappings (what is left out is filled in) and can be put
inside other constructs.

Refusals follow three rules. Bytes that end before the announced size: the offset is where they end,
the path the field that could not be read. A part whose length or count comes from a field and runs
past what encloses it: path and offset are that field's. A value that can't be: path and offset of
the field.
"""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

import construct as cs

from msmqwire.errors import MalformedPacket
from msmqwire.schema import record
from msmqwire.schema.nodes import (
    MORE,
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
    Packet,
    Part,
    Raw,
    Ref,
    Repeat,
    Sub,
    Text,
    UInt,
    View,
    follow,
    least_size,
)
from msmqwire.schema.reading import Reading, Region, Scope

_INTEGERS: Final = {
    (8, False): cs.Int8ul,
    (16, False): cs.Int16ul,
    (32, False): cs.Int32ul,
    (64, False): cs.Int64ul,
    (8, True): cs.Int8sl,
    (16, True): cs.Int16sl,
    (32, True): cs.Int32sl,
    (64, True): cs.Int64sl,
}


class _Part(cs.Construct):  # type: ignore[misc]
    """A part of a structure; the common behaviour of all below."""

    def __init__(self, node: Part) -> None:
        super().__init__()
        self.node = node
        self.name = node.name or None
        self.flagbuildnone = True

    def _sizeof(self, context: Any, path: Any) -> int:
        size = getattr(self.node, "size", None)
        length = getattr(self.node, "length", None)
        for known in (size, length):
            if isinstance(known, int):
                return known
        raise cs.SizeofError(f"{self.node.name} has no fixed size", path=path)


class _Int(_Part):
    node: UInt

    def __init__(self, node: UInt) -> None:
        super().__init__(node)
        self.subcon = _INTEGERS[node.bits, node.signed]

    def _parse(self, stream: Reading, context: Any, path: Any) -> int:
        node, offset = self.node, stream.tell()
        stream.need(node.size, node.name)
        value = int(self.subcon._parsereport(stream, context, path))
        stream.note(node.name, offset, value)
        if node.must is not None and value not in node.must:
            shown = value if isinstance(node.must, range) else f"{value:#06x}"
            why = f"{shown} {_allowed(node)}"
            stream.judge(MalformedPacket(why, path=stream.path(node.name), offset=offset))
        if node.same_as and value != stream.lookup(node.same_as)[0]:
            why = f"{value} is not {node.same_as}, {stream.lookup(node.same_as)[0]}"
            stream.judge(MalformedPacket(why, path=stream.path(node.name), offset=offset))
        self._open_region(stream, value, offset)
        return value

    def _open_region(self, stream: Reading, value: int, offset: int) -> None:
        kind = self.node.size_of
        scope = next((s for s in reversed(stream.scopes) if isinstance(s.header, Packet)), None)
        if kind == "header":
            scope = stream.scopes[-1]
        if kind not in ("packet", "header") or scope is None:
            return
        path, end = stream.path(self.node.name), scope.start + value
        least = least_size(scope.header) if kind == "header" else 0
        if end < stream.tell() or value < least:
            raise MalformedPacket(f"{value} is too small", path=path, offset=offset)
        if stream.announced is not None and end > stream.announced:
            left = stream.announced - scope.start
            raise MalformedPacket(f"{value}, but {left} bytes are left", path=path, offset=offset)
        stream.regions.append(Region(end, scope, path, offset))

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> Any:
        return self.subcon._build(obj, stream, context, path)


def _allowed(node: UInt) -> str:
    must = node.must
    if isinstance(must, range):
        return f"is not in {must.start}..{must.stop - 1}"
    return "is not " + " or ".join(f"{v:#06x}" for v in sorted(must or ()))


class _FlagWord(_Part):
    node: Flags

    def __init__(self, node: Flags) -> None:
        super().__init__(node)
        self.subcon = _INTEGERS[node.bits, False]

    def _parse(self, stream: Reading, context: Any, path: Any) -> Any:
        offset = stream.tell()
        stream.need(self.node.size, self.node.name)
        value = int(self.subcon._parsereport(stream, context, path))
        stream.note(self.node.name, offset, value)
        return cs.Container(
            (p.name, (v != 0) if p.width == 1 else v)
            for p in self.node.parts
            for v in [(value & p.mask) >> p.shift]
        )

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> Any:
        self.subcon._build(int(obj), stream, context, path)
        return obj


class _GuidBytes(_Part):
    node: Guid

    def _parse(self, stream: Reading, context: Any, path: Any) -> UUID:
        return UUID(bytes_le=stream.take(16, self.node.name))

    def _build(self, obj: UUID, stream: Any, context: Any, path: Any) -> Any:
        stream.write(obj.bytes_le)
        return obj


def _measure(stream: Reading, length: Any, name: str) -> tuple[int, str]:
    """The length of a part and the field to blame when it does not fit."""
    if isinstance(length, int):
        return length, ""
    if isinstance(length, Ref):
        return stream.length(length), length.path
    return stream.end - stream.tell(), ""


class _Bytes(_Part):
    node: Raw

    def _parse(self, stream: Reading, context: Any, path: Any) -> bytes:
        length, blame = _measure(stream, self.node.length, self.node.name)
        offset, scope = stream.tell(), stream.scopes[-1]
        data = stream.take(length, self.node.name, blame)
        scope.bytes[self.node.name], scope.offsets[self.node.name] = data, offset
        return data

    def _build(self, obj: bytes, stream: Any, context: Any, path: Any) -> Any:
        stream.write(obj)
        return obj


class _Characters(_Part):
    node: Text

    def _parse(self, stream: Reading, context: Any, path: Any) -> Any:
        node = self.node
        if node.length is TO_NULL:
            return self._to_null(stream)
        length, blame = _measure(stream, node.length, node.name)
        here = stream.tell()
        if node.otherwise:
            other = stream.length(node.otherwise)
            length = record.chosen_length(stream.data, here, (length, other), stream.end)
        data = stream.take(length, node.name, blame)
        if node.padded:
            return record.text_padded(data)
        if node.strict and not record.ends_on_null(data, 0, len(data), len(data)):
            _, blamed, offset = stream.lookup(blame)
            why = f"{len(data)} bytes that do not end on a null character"
            stream.judge(MalformedPacket(why, path=blamed, offset=offset))
        return record.text_exact(data)

    def _to_null(self, stream: Reading) -> Any:
        here = stream.tell()
        null = record.find_null(stream.data, here, stream.end)
        if null < 0:
            why = "no null character ends it"
            raise MalformedPacket(why, path=stream.path(self.node.name), offset=stream.end)
        return record.text_exact(stream.read(null + 2 - here))

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> Any:
        if self.node.padded:
            assert isinstance(self.node.length, int)
            stream.write(record.encode_padded(obj, self.node.length))
        else:
            stream.write(record.encode_text(obj))
        return obj


def _up_to(here: int, start: int, to: int) -> int:
    return here + (start - here) % to


class _Padding(_Part):
    node: Align

    def _parse(self, stream: Reading, context: Any, path: Any) -> bytes:
        node, here = self.node, stream.tell()
        named = [s for s in stream.scopes if node.of in (s.header.name, "*")] or stream.scopes[-1:]
        full = stop = _up_to(here, named[0].start, node.to)
        if node.marker:
            width = len(node.marker)
            if not (stop + width <= stream.end and stream.data[stop : stop + width] == node.marker):
                if here + width > stream.end or stream.data[here : here + width] != node.marker:
                    raise self._without_marker(stream, stop)
                stop = here
        else:
            stop = min(stop, stream.bound)
        data = stream.take(stop - here, node.name)
        return data if stop == full else record.OddPadding(data)

    def _without_marker(self, stream: Reading, stop: int) -> MalformedPacket:
        """The marker stands at neither place: the field behind the padding is cut off, or wrong."""
        parts, width = stream.scopes[-1].header.parts, len(self.node.marker)
        path = stream.path(parts[parts.index(self.node) + 1].name)
        if stop + width > stream.end:
            return MalformedPacket("the data ends before it", path=path, offset=stream.end)
        found = int.from_bytes(stream.data[stop : stop + width], "little")
        expected = int.from_bytes(self.node.marker, "little")
        return MalformedPacket(f"{found:#06x} is not {expected:#06x}", path=path, offset=stop)

    def _build(self, obj: bytes, stream: Any, context: Any, path: Any) -> Any:
        stream.write(obj)
        return obj


class _Filling(_Part):
    node: Fill

    def _parse(self, stream: Reading, context: Any, path: Any) -> bytes:
        region = stream.regions.pop()
        assert region.end is not None
        here, start = stream.tell(), stream.scopes[-1].start
        stop = _up_to(region.end, start, self.node.to)
        stop = max(region.end, min(stop, stream.bound))
        data = stream.take(stop - here, self.node.name)
        return data if stop == _up_to(here, start, self.node.to) else record.OddPadding(data)

    def _build(self, obj: bytes, stream: Any, context: Any, path: Any) -> Any:
        stream.write(obj)
        return obj


class _Viewed(_Part):
    node: View

    def _parse(self, stream: Reading, context: Any, path: Any) -> Any:
        *above, name = self.node.of.split(".")
        scope = stream.scopes[-1]
        for inner in above:
            scope = scope.inner[inner]
        data, offset, part = scope.bytes[name], scope.offsets[name], scope.header.part(name)
        size = self.node.header.size
        if len(data) != size:
            assert isinstance(part, Raw)
            assert isinstance(part.length, Ref)
            blamed = part.length.path
            why = f"{len(data)}, but {stream.path(self.node.name)} takes {size} bytes"
            raise MalformedPacket(why, path=f"{scope.prefix}.{blamed}", offset=scope.offsets[blamed])
        try:
            return read(self.node.header, data)[0]
        except MalformedPacket as exc:
            raise MalformedPacket(exc.why, path=exc.path, offset=offset + (exc.offset or 0)) from None

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> None:
        return None


class _End(_Part):
    def _parse(self, stream: Reading, context: Any, path: Any) -> None:
        if stream.regions[-1].scope is not None:
            stream.close_region()

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> None:
        return None


class _Nested(_Part):
    node: Sub

    def __init__(self, node: Sub) -> None:
        super().__init__(node)
        self.subcon = _Struct(node.header)

    def _parse(self, stream: Reading, context: Any, path: Any) -> Any:
        return _windowed(stream, self.node.within, self.node.name, self.subcon, context, path)

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> Any:
        return self.subcon._build(obj, stream, context, path)

    def _sizeof(self, context: Any, path: Any) -> int:
        return int(self.subcon._sizeof(context, path))


def _windowed(
    stream: Reading, within: Ref | None, name: str, subcon: _Struct, context: Any, path: Any
) -> Any:
    if within is None:
        return subcon.parse_as(stream, name, context, path)
    length = stream.length(within)
    stream.need(length, name, within.path)
    _, blamed, offset = stream.lookup(within.path)
    end = stream.tell() + length
    stream.regions.append(Region(end, None, blamed, offset))
    value = subcon.parse_as(stream, name, context, path)
    stream.regions.pop()
    if stream.tell() != end:
        why = f"{length} bytes, but {stream.path(name)} takes {length - end + stream.tell()}"
        raise MalformedPacket(why, path=blamed, offset=offset)
    return value


class _Optional(_Part):
    node: Maybe

    def __init__(self, node: Maybe) -> None:
        super().__init__(node)
        self.subcon = _part_of(node.node)

    def _parse(self, stream: Reading, context: Any, path: Any) -> Any:
        node = self.node
        if isinstance(node.when, Mark):
            assert node.when is MORE
            there = stream.tell() < stream.end
        else:
            value = stream.lookup(node.when)[0]
            there = value != 0 if node.equals is None else value == node.equals
        return self.subcon._parsereport(stream, context, path) if there else None

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> Any:
        return None if obj is None else self.subcon._build(obj, stream, context, path)


class _Switch(_Part):
    node: Choice

    def __init__(self, node: Choice) -> None:
        super().__init__(node)
        self.arms = {value: _Struct(arm) if arm else None for value, arm in node.arms.items()}
        self.by_name = {arm.name: _Struct(arm) for arm in node.arms.values() if arm}

    def _parse(self, stream: Reading, context: Any, path: Any) -> Any:
        value, by, offset = stream.lookup(self.node.by)
        if value not in self.arms:
            raise MalformedPacket(f"{value:#x} has no layout", path=by, offset=offset)
        arm = self.arms[value]
        if arm is None:
            return None
        return _windowed(stream, self.node.within, self.node.name, arm, context, path)

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> Any:
        return None if obj is None else self.by_name[obj.schema.name]._build(obj, stream, context, path)


class _List(_Part):
    node: Repeat

    def __init__(self, node: Repeat) -> None:
        super().__init__(node)
        self.subcon = _Struct(node.item)

    def _parse(self, stream: Reading, context: Any, path: Any) -> Any:
        count, by, offset = stream.lookup(self.node.count)
        left, limit = stream.announced, self.node.limit
        if count > limit:
            raise MalformedPacket(f"{count} is more than {limit}, our limit", path=by, offset=offset)
        least = count * least_size(self.node.item)
        if left is not None and least > left - stream.tell():
            why = f"{count}: {least} bytes at least, and {left - stream.tell()} are left"
            raise MalformedPacket(why, path=by, offset=offset)
        name = self.node.name
        return cs.ListContainer(
            self.subcon.parse_as(stream, f"{name}[{i}]", context, path) for i in range(count)
        )

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> Any:
        for item in obj:
            self.subcon._build(item, stream, context, path)
        return obj


class _Deferred(_Part):
    node: Each

    def __init__(self, node: Each) -> None:
        super().__init__(node)
        self.arms = {value: (field, _Struct(arm)) for value, (field, arm, _) in node.arms.items()}

    def _parse(self, stream: Reading, context: Any, path: Any) -> Any:
        found = cs.ListContainer()
        for i, element in enumerate(context[self.node.of]):
            by = follow(element, self.node.by) if self.node.by else 0
            field, arm = self.arms.get(by, ("", None))
            there = arm is not None and bool(follow(element, field))
            name = f"{self.node.name}[{i}]"
            found.append(arm.parse_as(stream, name, context, path) if arm and there else None)
            if found[-1] is not None and self.node.arms[by][2]:
                self._check_count(stream, name, follow(element, self.node.arms[by][2]))
        return found

    def _check_count(self, stream: Reading, name: str, counted: int) -> None:
        path = f"{stream.path(name)}.MaximumCount"
        offset, value = stream.seen[path]
        if value != counted:
            raise MalformedPacket(f"{value}, but the element counts {counted}", path=path, offset=offset)

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> Any:
        for item in obj:
            if item is not None:
                _Struct(item.schema)._build(item, stream, context, path)
        return obj


class _Struct(cs.Struct):  # type: ignore[misc]
    """The parts of a structure, with a scope around them."""

    def __init__(self, header: Header) -> None:
        super().__init__(*(_part_of(part) for part in header.parts))
        self.header = header

    def parse_as(self, stream: Reading, name: str, context: Any, path: Any) -> Any:
        top = not stream.scopes
        prefix = name if top else stream.path(name)
        scope = Scope(self.header, prefix, stream.tell())
        if not top:
            stream.scopes[-1].inner[name] = scope
        stream.scopes.append(scope)
        value = super()._parse(stream, context, path)
        while stream.regions[-1].scope is scope:
            stream.close_region()
        stream.scopes.pop()
        return value

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> Any:
        return super()._build(dict(obj), stream, context, path)


class SchemaConstruct(cs.Construct):  # type: ignore[misc]
    """A schema as a construct object. Parsing raises MalformedPacket, building InvalidValue."""

    def __init__(self, header: Header) -> None:
        super().__init__()
        self.header = header
        self.subcon = _Struct(header)
        self.flagbuildnone = True

    def _parse(self, stream: Any, context: Any, path: Any) -> Any:
        start = stream.tell()
        inner = Reading(stream.read())
        value = self.parse_inner(inner)
        stream.seek(start + inner.tell())
        return value

    def parse_inner(self, inner: Reading) -> Any:
        packet = isinstance(self.header, Packet)
        inner.regions.append(Region(None if packet else len(inner.data), None, "", 0))
        context = cs.Container(_parsing=True, _building=False, _sizing=False, _params={}, _root=None)
        return self.subcon.parse_as(inner, "" if packet else self.header.name, context, "(parsing)")

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> Any:
        full = self.header.make(obj)
        self.subcon._build(full, stream, context, path)
        return full

    def _sizeof(self, context: Any, path: Any) -> int:
        return int(self.subcon._sizeof(context, path))


_PARTS: Final[dict[type[Any], type[_Part]]] = {
    UInt: _Int,
    Flags: _FlagWord,
    Guid: _GuidBytes,
    Raw: _Bytes,
    Text: _Characters,
    Align: _Padding,
    Fill: _Filling,
    Sub: _Nested,
    Maybe: _Optional,
    Choice: _Switch,
    Repeat: _List,
    Each: _Deferred,
    View: _Viewed,
    Close: _End,
}


def _part_of(part: Part) -> _Part:
    return _PARTS[type(part)](part)


def construct_of(header: Header) -> SchemaConstruct:
    """The construct object of a schema."""
    return SchemaConstruct(header)


def read(header: Header, data: bytes, offset: int = 0) -> tuple[Any, int]:
    """Like `Header.read`, by construct: a Container and the offset behind it."""
    inner = Reading(data[offset:])
    value = header.construct.parse_inner(inner)
    return value, offset + inner.tell()


def fields_before_error(
    header: Header, data: bytes
) -> tuple[dict[str, tuple[int, Any]], MalformedPacket | None]:
    """The integers and flag words that can be read, by path with offset and value, and the refusal.

    Reading goes on behind values that are refused but leave the place of what follows clear.
    """
    inner = Reading(data)
    inner.passed_over = refusals = []
    try:
        header.construct.parse_inner(inner)
    except MalformedPacket as exc:
        refusals.append(exc)
    return inner.seen, refusals[0] if refusals else None
