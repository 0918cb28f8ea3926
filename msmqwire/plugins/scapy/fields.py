"""The parts of a schema as fields of scapy: one walk over the nodes, no layout repeated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import IntEnum
from functools import cache
from typing import Any, Final

from scapy.fields import (
    BitField,
    ByteEnumField,
    ByteField,
    Field,
    IntField,
    LEIntEnumField,
    LEIntField,
    LELongField,
    LEShortEnumField,
    LEShortField,
    LESignedIntField,
    LESignedLongField,
    LESignedShortField,
    PacketField,
    PacketListField,
    ShortEnumField,
    ShortField,
    SignedByteField,
    StrField,
    StrFixedLenField,
    UUIDField,
    XIntField,
    XLEIntField,
    XLEShortField,
)
from scapy.packet import Packet as ScapyPacket
from scapy.volatile import RandBin, RandNum

from msmqwire.constants import (
    QUEUE_FORMAT_TYPE,
    EncryptionAlgorithm,
    HashAlgorithm,
    MessageClass,
    PrivacyLevel,
    ProviderType,
    VarEnum,
)
from msmqwire.schema import (
    SCHEMAS,
    Align,
    Choice,
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
from msmqwire.schema.nodes import inner_headers
from msmqwire.schema.references import deciding
from msmqwire.schema.texts import encode_oem, encode_text

NAMES: Final[dict[str, type[IntEnum | Field] | dict[int, str]]] = {
    "BodyType": VarEnum,
    "EncryptionAlgorithm": EncryptionAlgorithm,
    "HashAlgorithm": HashAlgorithm,
    "MessageClass": MessageClass,
    "PrivacyLevel": PrivacyLevel,
    "ProviderType": ProviderType,
    "FormatType": QUEUE_FORMAT_TYPE,
}
"""Integers whose values have names, by name, or by structure and name with a dot between.

A field has them instead if they depend on other layers. A protocol adds its integers before it makes layers.
"""

_INTEGERS: Final[dict[tuple[int, bool], type[Field]]] = {
    (8, False): ByteField,
    (16, False): LEShortField,
    (32, False): LEIntField,
    (64, False): LELongField,
    (8, True): SignedByteField,
    (16, True): LESignedShortField,
    (32, True): LESignedIntField,
    (64, True): LESignedLongField,
}
_BIG_ENDIAN: Final[dict[int, type[Field]]] = {16: ShortField, 32: IntField}
_IDS: Final = ("ID", "IDNumber", "Signature")
"""Endings of the names of big-endian integers that are shown in hexadecimal digits."""
_NAME_MAX: Final = 255
"""Bytes of a random name, whose length is a byte."""
_RANDOM_MAX: Final = 1200
"""Bytes of a random text, as scapy uses for other strings."""
_CONSTANTS: Final[dict[int, type[Field]]] = {16: XLEShortField, 32: XLEIntField}
_ENUMERATED: Final[dict[int, type[Field]]] = {8: ByteEnumField, 16: LEShortEnumField, 32: LEIntEnumField}


class _EvenNumber(RandNum):
    """Random sizes of whole characters: no length in characters counts half of one."""

    def _fix(self) -> int:
        return int(super()._fix()) & ~1


class GuidField(UUIDField):
    """A GUID in the packet form of [MS-DTYP] 2.3.4: a `uuid.UUID`."""

    def __init__(self, name: str, default: Any) -> None:
        super().__init__(name, default, UUIDField.FORMAT_LE)

    def i2repr(self, pkt: ScapyPacket | None, x: Any) -> str:
        return str(x)


class TextField(StrField):
    """UTF-16 text in the form of `msmqwire.schema.Text`: a `str` without its null, bytes as they are, or
    None.
    """

    __slots__ = ("size",)

    def __init__(self, name: str, default: str | None, size: int | None = None) -> None:
        super().__init__(name, default)
        self.size = size

    def randval(self) -> Any:
        return RandBin(self.size or _EvenNumber(0, _RANDOM_MAX))

    def any2i(self, pkt: ScapyPacket | None, x: Any) -> Any:
        return x

    def i2m(self, pkt: ScapyPacket | None, x: Any) -> bytes:
        return encode_text(x)

    def i2len(self, pkt: ScapyPacket | None, x: Any) -> int:
        return len(encode_text(x))


class OemTextField(StrField):
    """Text of one byte a character, in the form of `msmqwire.schema.OemText`."""

    __slots__ = ("node",)

    def __init__(self, node: OemText) -> None:
        super().__init__(node.name, "")
        self.node = node

    def randval(self) -> Any:
        size = self.node.length
        return RandBin(size if isinstance(size, int) else RandNum(0, _NAME_MAX))

    def any2i(self, pkt: ScapyPacket | None, x: Any) -> Any:
        return x

    def i2m(self, pkt: ScapyPacket | None, x: Any) -> bytes:
        return encode_oem(self.node, x)

    def i2len(self, pkt: ScapyPacket | None, x: Any) -> int:
        return len(encode_oem(self.node, x))


class BodyField(StrField):
    """Bytes, or a layer in their place: the body of an OrderAck or FinalAck."""

    holds_packets = 1

    def i2m(self, pkt: ScapyPacket | None, x: Any) -> bytes:
        return bytes(x or b"")

    def i2len(self, pkt: ScapyPacket | None, x: Any) -> int:
        return len(bytes(x or b""))


class ChoiceField(PacketField):
    """One of several structures, or None."""


class ItemsField(PacketListField):
    """Structures, one after the other; NoPayload for an absent one."""


def bit_names(node: Flags) -> list[str]:
    """Return the names of the fields of a flag word, highest bit first, as scapy packs them."""
    return [part.name for part in sorted(node.parts, key=lambda part: -part.shift)]


def scapy_fields(header: Header, layer_of: Callable[[Header], type[ScapyPacket]]) -> list[Field]:
    """Return the fields of a structure; `layer_of` returns the layers of structures inside it.

    Fields that building computes have the default None.
    """
    fields: list[Field] = []
    for part in header.parts:
        fields.extend(_fields(header, part, layer_of))
    return fields


def _fields(header: Header, part: Part, layer_of: Callable[[Header], type[ScapyPacket]]) -> Iterator[Field]:
    computed = computed_names(header)
    match part:
        case UInt():
            names = NAMES.get(f"{header.name}.{part.name}", NAMES.get(part.name))
            yield _integer(part, None if part.name in computed else part.default, names)
        case Flags():
            yield from _word(part, computed)
        case Guid():
            yield GuidField(part.name, part.default)
        case Raw(length=int(length)):
            yield StrFixedLenField(part.name, part.default, length)
        case Raw() if f"{header.name}.{part.name}" in _viewed():
            yield BodyField(part.name, part.default)
        case Raw():
            yield StrField(part.name, part.default)
        case Text():
            size = part.length if isinstance(part.length, int) else None
            yield TextField(part.name, None if may_be_omitted(part) else "", size)
        case OemText():
            yield OemTextField(part)
        case Align() | Fill():
            yield StrField(part.name, None)
        case Sub():
            cls = layer_of(part.header)
            yield PacketField(part.name, cls(), cls)
        case Maybe(node=Sub(header=inner)):
            yield PacketField(part.name, None, layer_of(inner))
        case Maybe(node=Guid()):
            yield GuidField(part.name, None)
        case Maybe():
            yield StrField(part.name, None)
        case Choice():
            arms = [layer_of(arm) for arm in inner_headers(part)]
            yield ChoiceField(part.name, None if None in part.arms.values() else arms[0](), arms[0])
        case Repeat() | Each():
            yield ItemsField(part.name, [], layer_of(inner_headers(part)[0]))


def may_be_omitted(node: Text) -> bool:
    """Return whether building treats a missing text as absent, not as empty."""
    return isinstance(node.length, Ref) and not (node.strict or node.padded)


def _integer(node: UInt, default: int | None, names: Any) -> Field:
    if isinstance(names, type) and issubclass(names, Field):
        return names(node.name, default)
    if node.big_endian and names is not None:
        return ShortEnumField(node.name, default, names)
    if node.big_endian:
        field = XIntField if node.bits == 32 and node.name.endswith(_IDS) else _BIG_ENDIAN[node.bits]
        return field(node.name, default)
    if names is not None and node.bits in _ENUMERATED:
        return _ENUMERATED[node.bits](node.name, default, names)
    if isinstance(node.must, frozenset) and node.bits in _CONSTANTS:
        return _CONSTANTS[node.bits](node.name, default)
    return _INTEGERS[node.bits, node.signed](node.name, default)


def _word(node: Flags, computed: frozenset[str]) -> Iterator[Field]:
    """The bits of a word, so that each can be left out; scapy packs a little-endian word so."""
    names = bit_names(node)
    for name in names:
        part = node.part(name)
        little_endian = -node.size if node.size > 1 and not node.big_endian else 0
        yield BitField(
            name,
            None if name in computed else part.default,
            part.width,
            tot_size=little_endian if name == names[0] else 0,
            end_tot_size=little_endian if name == names[-1] else 0,
        )


@cache
def computed_names(header: Header) -> frozenset[str]:
    """Return the fields of a structure, bits by their own name, that building computes if they are None."""
    paths = set(deciding(header)) | _marks(header)
    names = {path.rpartition(".")[2] for path in paths if path.partition(".")[0] in header.fields}
    names |= {p.name for p in header.parts if isinstance(p, UInt) and (p.size_of or p.same_as)}
    return frozenset(names | {name for owner, name in _decided_by_packets() if owner == header.name})


def _marks(header: Header) -> set[str]:
    marks = {part.marks for part in header.parts if isinstance(part, Raw | Maybe) and part.marks}
    return marks.union(*(_marks(inner) for part in header.parts for inner in inner_headers(part)))


@cache
def _decided_by_packets() -> frozenset[tuple[str, str]]:
    """Structure and name of the fields that a packet decides: presence bits, and its own defaults."""
    paths: set[str] = set()
    for packet in _packets():
        paths |= deciding(packet) | set(packet.defaults)
        for defaults in packet.defaults_with.values():
            paths |= set(defaults)
    return frozenset((path.partition(".")[0], path.rpartition(".")[2]) for path in paths)


@cache
def _viewed() -> frozenset[str]:
    return frozenset(part.of for packet in _packets() for part in packet.parts if isinstance(part, View))


def _packets() -> list[Packet]:
    return [schema for schema in SCHEMAS.values() if isinstance(schema, Packet)]
