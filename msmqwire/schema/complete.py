"""Completion of partial values, and refusal of those that can't be built.

Given values are respected, even wrong ones; only missing ones are computed: sizes and counts from the
data they count, presence bits from the parts present, padding from the alignment, the rest from the
defaults. Values may be records, mappings or JSON data (bytes as hexadecimal text, GUIDs as text).
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from msmqwire.errors import InvalidValue, MalformedPacket
from msmqwire.names.printable import agreed, counted, with_article
from msmqwire.schema import texts, utf16
from msmqwire.schema.frames import Frame
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
from msmqwire.schema.record import FlagsValue, OddPadding, Record, flags_class

_MISSING: Final = object()
REFERENT: Final = 0x0002_0000
"""The referent id of an omitted pointer that points to something."""


def complete(header: Header, value: Any) -> Record:
    """Return a complete record of `header`. Raises InvalidValue with path and offset."""
    return _Completion(header, {} if value is None else value).result


class _Completion:
    def __init__(self, header: Header, value: Any) -> None:
        self.at = 0
        self.frames: list[Frame] = []
        self.sizes: list[tuple[Frame, str, str]] = []
        self.closed: dict[int, int] = {}
        self.copies: list[tuple[Frame, str, Frame, str]] = []
        root = self.structure(header, value, "" if isinstance(header, Packet) else header.name)
        for frame, name, kind in self.sizes:
            self.size(root, frame, name, kind)
        for frame, name, source, source_name in self.copies:
            frame.values.setdefault(name, source.values.get(source_name, 0))
        if isinstance(header, Packet):
            self.packet_defaults(root, header)
        self.result: Record = self.record(root)

    # -- parts -------------------------------------------------------------------------------

    def path(self, name: str) -> str:
        prefix = self.frames[-1].path
        return f"{prefix}.{name}" if prefix else name

    def refuse(self, why: str, path: str) -> InvalidValue:
        return InvalidValue(why, path=path, offset=self.at)

    def structure(self, header: Header, value: Any, path: str) -> Frame:
        if not _is_mapping(value):
            raise self.refuse(f"{type(value).__name__} is not a {header.name}", path)
        given = {name: value[name] for name in value if name != "_io"}
        for name in given:
            if name not in header.fields:
                raise self.refuse(f"{header.name} has no field {name}", f"{path}.{name}" if path else name)
        if isinstance(header, Packet):
            given = self.with_defaults(header, given)
        frame = Frame(header, path, self.at, given)
        self.frames.append(frame)
        for part in header.parts:
            self.part(part, frame, given.get(part.name, _MISSING))
        self.frames.pop()
        frame.end = self.at
        return frame

    def with_defaults(self, packet: Packet, given: dict[str, Any]) -> dict[str, Any]:
        """Put the views and the packet's own defaults into the headers of the given values."""
        added: dict[str, Any] = {}
        for path, value in packet.defaults.items():
            header, _, name = path.partition(".")
            if "." not in name and name not in _keys(given.get(header)):
                added[path] = value
        optional = [
            (p.name, p.when) for p in packet.parts if isinstance(p, Maybe) and isinstance(p.when, str)
        ]
        present = {when for name, when in optional if given.get(name) is not None}
        for when in present:  # a header that announces a given one is present itself,
            announcing = when.partition(".")[0]
            if given.get(announcing) is None and isinstance(packet.part(announcing), Maybe):
                given[announcing] = {}
        for name, when in optional:  # and so is one that the same bit announces
            if when in present:
                given.setdefault(name, {})
        for part in packet.parts:
            if not isinstance(part, View):
                continue
            header, _, name = part.of.partition(".")
            if given.get(part.name) is not None:
                added[part.of] = part.header.build(given[part.name])
            elif name not in _keys(given.get(header)):
                added[part.of] = part.header.build()
        for path, value in added.items():
            header, _, name = path.partition(".")
            fields = given.get(header, {})
            if _is_mapping(fields):
                given[header] = {**{key: fields[key] for key in fields}, name: value}
        return given

    def part(self, part: Part, frame: Frame, given: Any) -> None:
        match part:
            case UInt():
                self.integer(part, frame, given)
            case Flags():
                frame.words[part.name] = self.word(part, given)
                self.at += part.size
            case Guid():
                frame.values[part.name] = self.guid(part, given)
                self.at += 16
            case Raw():
                self.raw(part, frame, given)
            case Text():
                self.text(part, frame, given)
            case OemText():
                self.oem_text(part, frame, given)
            case Align() | Fill():
                self.padding(part, frame, given)
            case Sub():
                self.sub(part.header, part.name, part.within, frame, {} if given is _MISSING else given)
            case Maybe():
                self.maybe(part, frame, None if given is _MISSING else given)
            case Choice():
                self.choice(part, frame, None if given is _MISSING else given)
            case Repeat():
                self.repeat(part, frame, [] if given is _MISSING else given)
            case Each():
                self.each(part, frame, [] if given is _MISSING else given)
            case View():
                self.view(part, frame, given)
            case Close():
                packet = next(f for f in self.frames if isinstance(f.header, Packet))
                self.closed[id(packet)] = self.at

    def integer(self, part: UInt, frame: Frame, given: Any) -> None:
        path = self.path(part.name)
        if given is not _MISSING:
            low = -(1 << part.bits - 1) if part.signed else 0
            high = (1 << part.bits - (1 if part.signed else 0)) - 1
            if isinstance(given, bool) or not isinstance(given, int):
                raise self.refuse(f"{type(given).__name__} is not an integer", path)
            if not low <= given <= high:
                raise self.refuse(f"{given} is not in {low}..{high}", path)
            frame.values[part.name] = int(given)
        elif part.same_as:
            source = self.find(part.same_as)
            assert source is not None
            self.copies.append((frame, part.name, source[0], source[1][0]))
        elif part.size_of:
            self.sizes.append((frame, part.name, part.size_of))
        self.at += part.size

    def word(self, part: Flags, given: Any) -> dict[str, int]:
        path = self.path(part.name)
        if given is _MISSING:
            return {}
        if isinstance(given, int) and not isinstance(given, bool):
            if not 0 <= given < 1 << part.bits:
                raise self.refuse(f"{given} is not in 0..{(1 << part.bits) - 1}", path)
            return {p.name: (int(given) & p.mask) >> p.shift for p in part.parts}
        if not isinstance(given, Mapping):
            raise self.refuse(f"{type(given).__name__} is not a flag word", path)
        bits: dict[str, int] = {}
        widths = {p.name: p.width for p in part.parts}
        for name, value in given.items():
            if name in ("_io", "..."):
                continue
            if name not in widths:
                raise self.refuse("no such bits", f"{path}.{name}")
            if not isinstance(value, int) or not 0 <= value < 1 << widths[name]:
                raise self.refuse(f"{value!r} does not fit {widths[name]} bits", f"{path}.{name}")
            bits[name] = int(value)
        return bits

    def guid(self, part: Guid, given: Any) -> UUID:
        if given is _MISSING:
            return part.default
        if isinstance(given, UUID):
            return given
        try:
            return UUID(given)
        except (AttributeError, TypeError, ValueError):
            raise self.refuse(f"{given!r} is not a GUID", self.path(part.name)) from None

    def bytes(self, given: Any, name: str) -> bytes:
        if isinstance(given, (bytes, bytearray, memoryview)):
            return bytes(given)
        try:
            return bytes.fromhex(given)
        except (TypeError, ValueError):
            raise self.refuse("neither bytes nor hex text", self.path(name)) from None

    def raw(self, part: Raw, frame: Frame, given: Any) -> None:
        data = part.default if given is _MISSING else self.bytes(given, part.name)
        if isinstance(part.length, int) and len(data) != part.length:
            raise self.refuse(
                f"{counted(len(data), 'byte')}, {agreed(part.length, 'are')} there", self.path(part.name)
            )
        if part.marks and data:
            self.set(part.marks, 1)
        self.refer(part.length, len(data))
        frame.values[part.name] = data
        self.at += len(data)

    def text(self, part: Text, frame: Frame, given: Any) -> None:
        value: Any = "" if part.padded or part.strict or not isinstance(part.length, Ref) else None
        if given is not _MISSING:
            value = self.text_value(part, given)
        try:
            if part.padded:
                assert isinstance(part.length, int)
                data = texts.encode_padded("" if value is None else value, part.length)
                value = utf16.text_padded(data)
            else:
                data = texts.encode_text(value)
                value = utf16.text_exact(data)
            self.refer_to_text(part, data)
        except ValueError as exc:
            raise self.refuse(str(exc), self.path(part.name)) from None
        frame.values[part.name] = value
        self.at += len(data)

    def oem_text(self, part: OemText, frame: Frame, given: Any) -> None:
        if given is _MISSING or given is None:
            given = ""
        elif isinstance(given, Mapping) and set(given) == {texts.OEM_CODE_PAGE}:
            given = self.bytes(given[texts.OEM_CODE_PAGE], part.name)
        elif not isinstance(given, (str, bytes)):
            raise self.refuse(f"{type(given).__name__} is not text", self.path(part.name))
        try:
            data = texts.encode_oem(part, given)
        except ValueError as exc:
            raise self.refuse(str(exc), self.path(part.name)) from None
        frame.values[part.name] = texts.oem_value(part, data)
        self.refer(part.length, len(data))
        self.at += len(data)

    def text_value(self, part: Text, given: Any) -> Any:
        if given is None or isinstance(given, (str, bytes)):
            return given
        if isinstance(given, Mapping) and set(given) == {"utf16le"}:
            return self.bytes(given["utf16le"], part.name)
        raise self.refuse(f"{type(given).__name__} is not text", self.path(part.name))

    def padding(self, part: Align | Fill, frame: Frame, given: Any) -> None:
        start = frame.start
        if isinstance(part, Align) and part.of:
            start = next((f.start for f in self.frames if part.of in (f.header.name, "*")), start)
        count = (start - self.at) % part.to
        data = bytes(count) if given is _MISSING else self.bytes(given, part.name)
        frame.values[part.name] = data if len(data) == count else OddPadding(data)
        self.at += len(data)
        if isinstance(part, Fill):
            self.closed[id(frame)] = self.at

    def sub(self, header: Header, name: str, within: Ref | None, frame: Frame, given: Any) -> None:
        before = self.at
        inner = self.structure(header, given, self.path(name))
        frame.inner[name] = inner
        if within:
            self.refer(within, self.at - before)

    def maybe(self, part: Maybe, frame: Frame, given: Any) -> None:
        if isinstance(part.when, str):
            bits = 1 if "." in part.when else None
            mark = next((m for m in (part.equals, part.mark, bits) if m is not None), None)
            if mark is not None and given is not None:
                self.set(part.when, mark)
        if given is None:
            frame.values[part.name] = None
            return
        if part.marks:
            self.set(part.marks, 1)
        self.part(part.node, frame, given)

    def choice(self, part: Choice, frame: Frame, given: Any) -> None:
        chosen = self.value(part.by, _MISSING)
        if given is None:
            frame.values[part.name] = None
            empty = [value for value, arm in part.arms.items() if arm is None]
            if not empty and chosen is _MISSING:
                forms = " or ".join(dict.fromkeys(arm.name for arm in part.arms.values() if arm))
                raise self.refuse(f"is left out: {forms}", self.path(part.name))
            self.set(part.by, empty[0] if empty else 0)
            return
        names = _keys(given)
        fitting = {v: a for v, a in part.arms.items() if a and _fits(a, given, names)}
        if not fitting:
            forms = " or ".join(sorted({a.name for a in part.arms.values() if a}))
            raise self.refuse(f"is none of {forms}", self.path(part.name))
        number = chosen if chosen in fitting else next(iter(fitting))
        arm = fitting[number]
        assert arm is not None
        self.sub(arm, part.name, part.within, frame, given)
        self.set(part.by, number)

    def repeat(self, part: Repeat, frame: Frame, given: Any) -> None:
        if not isinstance(given, (list, tuple)):
            raise self.refuse(f"{type(given).__name__} is not a list", self.path(part.name))
        frame.values[part.name] = [
            self.structure(part.item, item, self.path(f"{part.name}[{i}]")) for i, item in enumerate(given)
        ]
        if frame.given.get(part.count) is None:
            self.as_long(part, frame, len(given))
        self.set(part.count, len(given))

    def as_long(self, part: Repeat, frame: Frame, count: int) -> None:
        """Refuse a list that is not as long as one before with the same count."""
        for other in frame.header.parts:
            if other is part:
                return
            if isinstance(other, Repeat) and other.count == part.count:
                there = len(frame.values[other.name])
                if there != count:
                    why = f"{counted(count, 'item')}, but {there} of {other.name}"
                    raise self.refuse(why, self.path(part.name))

    def each(self, part: Each, frame: Frame, given: Any) -> None:
        elements = frame.values[part.of]
        if not isinstance(given, (list, tuple)) or len(given) not in (0, len(elements)):
            raise self.refuse(f"not a list with an item for each of {part.of}", self.path(part.name))
        items: list[Frame | None] = []
        for i, item in enumerate(given or [None] * len(elements)):
            path = self.path(f"{part.name}[{i}]")
            element = elements[i]
            by = element.values.get(part.by, 0) if part.by else 0
            pointer, arm, count = part.arms.get(by, ("", None, ""))
            if item is None:
                items.append(None)
                continue
            if arm is None:
                raise self.refuse("nothing is deferred for this element", path)
            pointee = self.structure(arm, item, path)
            items.append(pointee)
            element.set_default(pointer, REFERENT)
            if count:
                element.set_default(count, pointee.values.get("MaximumCount", 0))
        frame.values[part.name] = items

    def view(self, part: View, frame: Frame, given: Any) -> None:
        header, _, name = part.of.partition(".")
        data = frame.inner[header].values[name]
        try:
            frame.values[part.name] = part.header.parse(data)
        except MalformedPacket as exc:
            raise self.refuse(f"is not {with_article(part.header.name)}: {exc}", part.of) from None

    # -- references --------------------------------------------------------------------------

    def find(self, path: str) -> tuple[Frame, list[str]] | None:
        """Return the frame that holds the field of a path, and the rest of the path; None if absent."""
        head, *rest = path.split(".")
        for holder in reversed(self.frames):
            if head not in holder.header.fields:
                continue
            frame, names = holder, [head, *rest]
            while len(names) > 1 and names[0] in frame.inner:
                frame, names = frame.inner[names[0]], names[1:]
            if names[0] in frame.header.fields and names[0] not in frame.words and len(names) > 1:
                return None  # an absent header
            return frame, names
        raise KeyError(path)

    def set(self, path: str, value: int) -> None:
        """Set a field or bits, if omitted."""
        target = self.find(path)
        if target is None:
            return
        frame, names = target
        if len(names) > 1:
            frame.words[names[0]].setdefault(names[1], value)
        else:
            frame.set_computed(names[0], value)

    def value(self, path: str, default: Any) -> Any:
        target = self.find(path)
        if target is None:
            return default
        frame, names = target
        if len(names) > 1:
            return frame.words[names[0]].get(names[1], default)
        return frame.values.get(names[0], default)

    def refer(self, length: Any, count: int) -> None:
        """Set the field that decides the length of a part of `count` bytes, if omitted."""
        if not isinstance(length, Ref):
            return
        if length.over is not None:
            self.set(length.path, self.value(length.over, 0) + count)
        else:
            self.set(length.path, max(0, count - length.plus) * length.per // length.times if count else 0)

    def refer_to_text(self, part: Text, data: builtins.bytes) -> None:
        """Set the field that decides the length of a text, if omitted. Raises ValueError if none fits."""
        length = part.length
        if not isinstance(length, Ref) or (length.times == 1 and part.otherwise is None):
            self.refer(length, len(data))
        elif self.value(length.path, None) is None:
            other = part.otherwise.times if part.otherwise else 0
            self.set(length.path, texts.text_units(data, length.path, length.times, other))

    # -- finishing ---------------------------------------------------------------------------

    def size(self, root: Frame, frame: Frame, name: str, kind: str) -> None:
        if kind == "packet":
            end = self.closed.get(id(root), root.end) if isinstance(root.header, Packet) else frame.end
            value = end - (root.start if isinstance(root.header, Packet) else frame.start)
        elif kind == "header":
            value = self.closed.get(id(frame), frame.end) - frame.start
        elif kind == "after":
            value = root.end - frame.end
        else:
            raise ValueError(f"{name} counts {kind!r}")
        frame.set_computed(name, value)

    def packet_defaults(self, root: Frame, packet: Packet) -> None:
        self.frames = [root]
        for header, defaults in packet.defaults_with.items():
            if header in root.inner:
                for path, value in defaults.items():
                    self.set(path, value)
        for path, value in packet.defaults.items():
            if path.count(".") == 2:  # bits; `with_defaults` has put in the fields
                self.set(path, value)

    def record(self, frame: Frame) -> Record:
        result = frame.header.record()
        for part in frame.header.parts:
            name = part.name
            if isinstance(part, Close):
                continue
            if name in frame.inner:
                value: Any = self.record(frame.inner[name])
            elif isinstance(part, Flags):
                value = _word(frame.header.key, part, frame.words[name])
            elif isinstance(part, Repeat):
                value = [self.record(item) for item in frame.values[name]]
            elif isinstance(part, Each):
                value = [None if item is None else self.record(item) for item in frame.values[name]]
            elif isinstance(part, UInt):
                value = frame.values.get(name, part.default)
            else:
                value = frame.values[name]
            setattr(result, name, value)
        return result


def _is_mapping(given: Any) -> bool:
    return isinstance(given, (Record, Mapping))


def _keys(given: Any) -> set[str]:
    return set(given.keys()) if _is_mapping(given) else set()


def _fits(arm: Header, given: Any, names: set[str]) -> bool:
    if isinstance(given, Record):
        return given.schema is arm
    return names <= set(arm.fields)


def _word(owner: str, part: Flags, bits: Mapping[str, int]) -> FlagsValue:
    value = 0
    for p in part.parts:
        value |= bits.get(p.name, p.default) << p.shift
    return flags_class(owner, part)(value)
