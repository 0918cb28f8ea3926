"""The state of the reference reader: open structures, announced ends and the values read so far.

`msmqwire.schema.reference` has the rules for the path and offset of a refusal.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import Any

from msmqwire.errors import MalformedPacket
from msmqwire.schema import reasons
from msmqwire.schema.nodes import Flags, Header, Ref


@dataclass(slots=True)
class Scope:
    """An open structure: its start and the part read of it."""

    header: Header
    prefix: str
    start: int
    values: dict[str, Any] = field(default_factory=dict)
    offsets: dict[str, int] = field(default_factory=dict)
    bytes: dict[str, bytes] = field(default_factory=dict)
    inner: dict[str, Scope] = field(default_factory=dict)


@dataclass(slots=True)
class Region:
    """A range of bytes with an announced end, and the field that announced it."""

    end: int | None
    scope: Scope | None
    path: str
    offset: int


class Reading(io.BytesIO):
    """The bytes of one top-level structure, with the structures and regions that are open."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.data = data
        self.scopes: list[Scope] = []
        self.regions: list[Region] = []
        self.seen: dict[str, tuple[int, int]] = {}
        self.passed_over: list[MalformedPacket] | None = None

    # -- position --------------------------------------------------------------------------

    @property
    def announced(self) -> int | None:
        """The end of the innermost region, None if it has none."""
        return self.regions[-1].end

    @property
    def end(self) -> int:
        """The offset up to which bytes can be read."""
        return len(self.data) if self.announced is None else min(self.announced, len(self.data))

    def note(self, name: str, offset: int, value: int) -> None:
        """Record an integer for later references."""
        scope = self.scopes[-1]
        scope.values[name], scope.offsets[name] = value, offset
        self.seen[self.path(name)] = offset, value

    @property
    def bound(self) -> int:
        """The limit of padding: the announced end, or that of the data if none is announced."""
        return len(self.data) if self.announced is None else self.announced

    def path(self, name: str) -> str:
        prefix = self.scopes[-1].prefix
        return f"{prefix}.{name}" if prefix else name

    def lookup(self, path: str) -> tuple[int, str, int]:
        """Return the value of a referenced field, its full path and its offset."""
        head, *rest = path.split(".")
        for scope in reversed(self.scopes):
            owner, names = scope, [head, *rest]
            while names[0] in owner.inner and len(names) > 1:
                owner, names = owner.inner[names[0]], names[1:]
            if names[0] not in owner.values:
                if head in scope.header.fields:  # a header that is not in the packet
                    return 0, path, scope.start
                continue
            value = owner.values[names[0]]
            full = ".".join([owner.prefix, *names] if owner.prefix else names)
            offset = owner.offsets[names[0]]
            if len(names) > 1:
                part = owner.header.part(names[0])
                assert isinstance(part, Flags)
                bits = part.part(names[1])
                value = (value & bits.mask) >> bits.shift
            return int(value), full, offset
        raise KeyError(path)

    def length(self, ref: Ref) -> int:
        value, path, offset = self.lookup(ref.path)
        if ref.over is not None:
            return max(0, value - self.lookup(ref.over)[0])
        length = -(-value * ref.times // ref.per) + ref.plus
        if length < 0:
            raise MalformedPacket(f"{value} is less than {-ref.plus}", path=path, offset=offset)
        return length

    # -- refusals --------------------------------------------------------------------------

    def judge(self, error: MalformedPacket) -> None:
        """Refuse an invalid value, or note the refusal and continue if refusals are passed over."""
        if self.passed_over is None:
            raise error
        self.passed_over.append(error)

    def need(self, length: int, name: str, blame: str = "") -> None:
        """Refuse unless `length` bytes can be read; `blame` is the field that asks for them."""
        position = self.tell()
        path = self.path(name)
        if self.announced is not None and position + length > self.announced:
            left = max(0, self.announced - position)
            if blame:
                value, blamed, offset = self.lookup(blame)
                why = reasons.too_long(value, path, length, left)
                raise MalformedPacket(why, path=blamed, offset=offset)
            why = reasons.too_short(length, left)
            raise MalformedPacket(why, path=path, offset=min(self.announced, len(self.data)))
        if position + length > len(self.data):
            why = reasons.cut_off(length, max(0, len(self.data) - position))
            raise MalformedPacket(why, path=path, offset=len(self.data))

    def take(self, length: int, name: str, blame: str = "") -> bytes:
        self.need(length, name, blame)
        return self.read(length)

    def close_region(self) -> None:
        region = self.regions.pop()
        position = self.tell()
        if region.end is not None and position != region.end:
            size = region.end - (region.scope.start if region.scope else 0)
            start = region.scope.start if region.scope else 0
            why = reasons.too_large(size, position - start)
            raise MalformedPacket(why, path=region.path, offset=region.offset)
