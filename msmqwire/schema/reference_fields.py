"""The fields of the reference reader: parts that hold bytes and no structure, as construct objects.

`msmqwire.schema.reference` makes structures of them.
"""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

import construct as cs

from msmqwire.errors import MalformedPacket
from msmqwire.schema import reasons, record, texts, utf16
from msmqwire.schema.codec_parts import CODES
from msmqwire.schema.nodes import (
    TO_NULL,
    Align,
    Fill,
    Flags,
    Guid,
    OemText,
    Packet,
    Part,
    Raw,
    Ref,
    Text,
    UInt,
)
from msmqwire.schema.reading import Reading, Region
from msmqwire.schema.sizes import least_size

_INTEGERS: Final = {
    (bits, signed, big_endian): getattr(cs, f"Int{bits}{'s' if signed else 'u'}{'b' if big_endian else 'l'}")
    for bits in CODES
    for signed in (False, True)
    for big_endian in (False, True)
}


class PartReader(cs.Construct):  # type: ignore[misc]
    """The base of all parts. By default a value is written as its bytes."""

    def __init__(self, node: Part) -> None:
        super().__init__()
        self.node = node
        self.name = node.name or None
        self.flagbuildnone = True

    def _sizeof(self, context: Any, path: Any) -> int:
        size = getattr(self.node, "size", None)
        length = getattr(self.node, "length", None)
        for fixed in (size, length):
            if isinstance(fixed, int):
                return fixed
        raise cs.SizeofError(f"{self.node.name} has no fixed size", path=path)

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> Any:
        stream.write(obj)
        return obj


class IntReader(PartReader):
    node: UInt

    def __init__(self, node: UInt) -> None:
        super().__init__(node)
        self.subcon = _INTEGERS[node.bits, node.signed, node.big_endian]

    def _parse(self, stream: Reading, context: Any, path: Any) -> int:
        node, offset = self.node, stream.tell()
        stream.need(node.size, node.name)
        value = int(self.subcon._parsereport(stream, context, path))
        stream.note(node.name, offset, value)
        if node.must is not None and value not in node.must:
            why = _not_allowed(value, node.must)
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
            raise MalformedPacket(reasons.too_small(value), path=path, offset=offset)
        if stream.announced is not None and end > stream.announced:
            left = stream.announced - scope.start
            raise MalformedPacket(reasons.beyond(value, left), path=path, offset=offset)
        stream.regions.append(Region(end, scope, path, offset))

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> Any:
        return self.subcon._build(obj, stream, context, path)


def _not_allowed(value: int, must: range | frozenset[int]) -> str:
    if isinstance(must, range):
        return reasons.not_between(value, must.start, must.stop - 1)
    return reasons.none_of(value, must)


class FlagsReader(PartReader):
    node: Flags

    def __init__(self, node: Flags) -> None:
        super().__init__(node)
        self.subcon = _INTEGERS[node.bits, False, node.big_endian]

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


class GuidReader(PartReader):
    node: Guid

    def _parse(self, stream: Reading, context: Any, path: Any) -> UUID:
        return UUID(bytes_le=stream.take(16, self.node.name))

    def _build(self, obj: UUID, stream: Any, context: Any, path: Any) -> Any:
        stream.write(obj.bytes_le)
        return obj


def _measure(stream: Reading, length: Any, name: str) -> tuple[int, str]:
    """Return the length of a part, and the field to blame if it does not fit."""
    if isinstance(length, int):
        return length, ""
    if isinstance(length, Ref):
        return stream.length(length), length.path
    return max(0, stream.bound - stream.tell()), ""


class RawReader(PartReader):
    node: Raw

    def _parse(self, stream: Reading, context: Any, path: Any) -> bytes:
        length, blame = _measure(stream, self.node.length, self.node.name)
        offset, scope = stream.tell(), stream.scopes[-1]
        data = stream.take(length, self.node.name, blame)
        scope.bytes[self.node.name], scope.offsets[self.node.name] = data, offset
        return data


class OemTextReader(PartReader):
    node: OemText

    def _parse(self, stream: Reading, context: Any, path: Any) -> Any:
        node = self.node
        length, blame = _measure(stream, node.length, node.name)
        data = stream.take(length, node.name, blame)
        return texts.oem_value(node, data)

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> Any:
        stream.write(texts.encode_oem(self.node, obj))
        return obj


class TextReader(PartReader):
    node: Text

    def _parse(self, stream: Reading, context: Any, path: Any) -> Any:
        node = self.node
        if node.length is TO_NULL:
            return self._to_null(stream)
        length, blame = _measure(stream, node.length, node.name)
        here = stream.tell()
        if node.otherwise:
            other = stream.length(node.otherwise)
            length = utf16.chosen_length(stream.data, here, (length, other), stream.end)
        data = stream.take(length, node.name, blame)
        if node.padded:
            return utf16.text_padded(data)
        if node.strict and not utf16.ends_on_null(data, 0, len(data), len(data)):
            _, blamed, offset = stream.lookup(blame)
            why = reasons.not_terminated(len(data))
            stream.judge(MalformedPacket(why, path=blamed, offset=offset))
        return utf16.text_exact(data)

    def _to_null(self, stream: Reading) -> Any:
        here = stream.tell()
        null = utf16.find_null(stream.data, here, stream.end)
        if null < 0:
            path = stream.path(self.node.name)
            raise MalformedPacket(reasons.NO_NULL, path=path, offset=stream.end)
        return utf16.text_exact(stream.read(null + 2 - here))

    def _build(self, obj: Any, stream: Any, context: Any, path: Any) -> Any:
        if self.node.padded:
            assert isinstance(self.node.length, int)
            stream.write(texts.encode_padded(obj, self.node.length))
        else:
            stream.write(texts.encode_text(obj))
        return obj


def _up_to(here: int, start: int, to: int) -> int:
    return here + (start - here) % to


class AlignReader(PartReader):
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
        """Explain a marker at neither offset: the field after the padding is truncated or wrong."""
        parts, width = stream.scopes[-1].header.parts, len(self.node.marker)
        path = stream.path(parts[parts.index(self.node) + 1].name)
        if stop + width > stream.end:
            return MalformedPacket(reasons.NOTHING_LEFT, path=path, offset=stream.end)
        value = int.from_bytes(stream.data[stop : stop + width], "little")
        expected = int.from_bytes(self.node.marker, "little")
        return MalformedPacket(reasons.none_of(value, (expected,)), path=path, offset=stop)


class FillReader(PartReader):
    node: Fill

    def _parse(self, stream: Reading, context: Any, path: Any) -> bytes:
        region = stream.regions.pop()
        assert region.end is not None
        here, start = stream.tell(), stream.scopes[-1].start
        stop = _up_to(region.end, start, self.node.to)
        stop = max(region.end, min(stop, stream.bound))
        data = stream.take(stop - here, self.node.name)
        return data if stop == _up_to(here, start, self.node.to) else record.OddPadding(data)
