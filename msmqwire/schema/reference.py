"""The reference reader: every schema as a construct object.

It reads field by field, slowly, and gives each refusal a path, an offset and a reason; the generated
codec consults it whenever it refuses bytes itself. The objects are ordinary constructs: they parse to
Containers, build from mappings (omitted values are filled in) and nest inside other constructs.

Refusals follow three rules. Bytes that end before the announced size: the offset is where they end, the path
the field that could not be read. A part whose length or count comes from a field and runs past its container:
path and offset are that field's. An invalid value: path and offset of the field.
"""

from __future__ import annotations

from typing import Any, Final

import construct as cs

from msmqwire.errors import MalformedPacket
from msmqwire.names.printable import counted
from msmqwire.schema import reasons
from msmqwire.schema.nodes import (
    MORE,
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
    follow,
)
from msmqwire.schema.reading import Reading, Region, Scope
from msmqwire.schema.reference_fields import (
    AlignReader,
    FillReader,
    FlagsReader,
    GuidReader,
    IntReader,
    OemTextReader,
    PartReader,
    RawReader,
    TextReader,
)
from msmqwire.schema.sizes import least_size


class _ViewReader(PartReader):
    node: View

    def _parse(self, stream: Reading, context: Any, path: Any) -> Any:
        *above, name = self.node.of.split(".")
        scope = stream.scopes[-1]
        for inner in above:
            scope = scope.inner[inner]
        data, offset, part = scope.bytes[name], scope.offsets[name], scope.header.part(name)
        size = self.node.header.size
        assert size is not None
        if len(data) != size:
            assert isinstance(part, Raw)
            assert isinstance(part.length, Ref)
            blamed = part.length.path
            why = reasons.unlike_view(len(data), stream.path(self.node.name), size)
            raise MalformedPacket(why, path=f"{scope.prefix}.{blamed}", offset=scope.offsets[blamed])
        try:
            return read(self.node.header, data)[0]
        except MalformedPacket as exc:
            raise MalformedPacket(exc.why, path=exc.path, offset=offset + (exc.offset or 0)) from None

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> None:
        return None


class _CloseReader(PartReader):
    def _parse(self, stream: Reading, context: Any, path: Any) -> None:
        if stream.regions[-1].scope is not None:
            stream.close_region()

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> None:
        return None


class _SubReader(PartReader):
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
        why = f"{counted(length, 'byte')}, but {stream.path(name)} takes {length - end + stream.tell()}"
        raise MalformedPacket(why, path=blamed, offset=offset)
    return value


class _MaybeReader(PartReader):
    node: Maybe

    def __init__(self, node: Maybe) -> None:
        super().__init__(node)
        self.subcon = _part_of(node.node)

    def _parse(self, stream: Reading, context: Any, path: Any) -> Any:
        node = self.node
        if isinstance(node.when, Mark):
            assert node.when is MORE
            present = stream.tell() < stream.end
        else:
            value = stream.lookup(node.when)[0]
            present = value != 0 if node.equals is None else value == node.equals
        return self.subcon._parsereport(stream, context, path) if present else None

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> Any:
        return None if obj is None else self.subcon._build(obj, stream, context, path)


class _ChoiceReader(PartReader):
    node: Choice

    def __init__(self, node: Choice) -> None:
        super().__init__(node)
        self.arms = {value: _Struct(arm) if arm else None for value, arm in node.arms.items()}
        self.by_name = {arm.name: _Struct(arm) for arm in node.arms.values() if arm}

    def _parse(self, stream: Reading, context: Any, path: Any) -> Any:
        value, by, offset = stream.lookup(self.node.by)
        if value not in self.arms:
            raise MalformedPacket(reasons.without_layout(value), path=by, offset=offset)
        arm = self.arms[value]
        if arm is None:
            return None
        return _windowed(stream, self.node.within, self.node.name, arm, context, path)

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> Any:
        return None if obj is None else self.by_name[obj.schema.name]._build(obj, stream, context, path)


class _RepeatReader(PartReader):
    node: Repeat

    def __init__(self, node: Repeat) -> None:
        super().__init__(node)
        self.subcon = _Struct(node.item)

    def _parse(self, stream: Reading, context: Any, path: Any) -> Any:
        count, by, offset = stream.lookup(self.node.count)
        left, limit = stream.announced, self.node.limit
        if count > limit:
            raise MalformedPacket(reasons.too_many(count, limit), path=by, offset=offset)
        least = count * least_size(self.node.item)
        if left is not None and least > left - stream.tell():
            why = reasons.too_few(count, least, left - stream.tell())
            raise MalformedPacket(why, path=by, offset=offset)
        name = self.node.name
        return cs.ListContainer(
            self.subcon.parse_as(stream, f"{name}[{i}]", context, path) for i in range(count)
        )

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> Any:
        for item in obj:
            self.subcon._build(item, stream, context, path)
        return obj


class _EachReader(PartReader):
    node: Each

    def __init__(self, node: Each) -> None:
        super().__init__(node)
        self.arms = {value: (field, _Struct(arm)) for value, (field, arm, _) in node.arms.items()}

    def _parse(self, stream: Reading, context: Any, path: Any) -> Any:
        items = cs.ListContainer()
        for i, element in enumerate(context[self.node.of]):
            by = follow(element, self.node.by) if self.node.by else 0
            field, arm = self.arms.get(by, ("", None))
            present = arm is not None and bool(follow(element, field))
            name = f"{self.node.name}[{i}]"
            items.append(arm.parse_as(stream, name, context, path) if arm and present else None)
            if items[-1] is not None and self.node.arms[by][2]:
                self._check_count(stream, name, follow(element, self.node.arms[by][2]))
        return items

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
    """The parts of a structure, read in a scope of their own."""

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


_PARTS: Final[dict[type[Any], type[PartReader]]] = {
    UInt: IntReader,
    Flags: FlagsReader,
    Guid: GuidReader,
    Raw: RawReader,
    Text: TextReader,
    OemText: OemTextReader,
    Align: AlignReader,
    Fill: FillReader,
    Sub: _SubReader,
    Maybe: _MaybeReader,
    Choice: _ChoiceReader,
    Repeat: _RepeatReader,
    Each: _EachReader,
    View: _ViewReader,
    Close: _CloseReader,
}


def _part_of(part: Part) -> PartReader:
    return _PARTS[type(part)](part)


def construct_of(header: Header) -> SchemaConstruct:
    """Return a construct object for a schema."""
    return SchemaConstruct(header)


def read(header: Header, data: bytes, offset: int = 0) -> tuple[Any, int]:
    """Read like `Header.read`, by construct; return a Container and the offset after it."""
    inner = Reading(data[offset:])
    value = header.construct.parse_inner(inner)
    return value, offset + inner.tell()


def fields_before_error(
    header: Header, data: bytes
) -> tuple[dict[str, tuple[int, Any]], MalformedPacket | None]:
    """Return the readable integers and flag words, by path as (offset, value), and the first refusal.

    Reading continues past a refused value as long as the offset of the next field is clear.
    """
    inner = Reading(data)
    inner.passed_over = refusals = []
    try:
        header.construct.parse_inner(inner)
    except MalformedPacket as exc:
        refusals.append(exc)
    return inner.seen, refusals[0] if refusals else None
