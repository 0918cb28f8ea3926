"""The vocabulary in which every wire structure is declared, once.

A schema is a value: a tree of the nodes below. Every reader traverses that tree: the construct objects
(`reference`), the generated codec (`codec`), the completion of partial values (`complete`), JSON
(`jsonform`), the tables and diagrams of the documentation, the Hypothesis strategies. Integers are
little-endian ([MS-MQMQ] 2.2.18) unless they are declared big-endian, as some of NetWare's are.

References are paths of names, resolved from the innermost structure outwards: ``LabelLength``
(a sibling), ``Flags.DQ`` (bits of a sibling), ``BaseHeader.Flags.SH`` (bits in another header).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from uuid import UUID

if TYPE_CHECKING:
    from msmqwire.schema.codec import Codec
    from msmqwire.schema.record import Record

NULL_GUID: Final = UUID(int=0)


@dataclass(frozen=True, slots=True)
class Ref:
    """A length in bytes that a field decides: ``field * times / per + plus``, rounded up.

    With `over` it is the excess of `path` over `over`, at least 0 (the slack of AllocationBodySize over
    MessageSize). A negative result makes the packet malformed.
    """

    path: str
    times: int = 1
    plus: int = 0
    over: str | None = None
    per: int = 1


class Mark:
    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


REST: Final = Mark("REST")
"""A length: the rest of the structure or window."""
TO_NULL: Final = Mark("TO_NULL")
"""A length: up to and including the first null character."""
MORE: Final = Mark("MORE")
"""A condition: bytes are left."""

Length: TypeAlias = "int | Ref | Mark"
Values: TypeAlias = "frozenset[int] | range | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """The base of all nodes: the requirement ids that a node implements, and its meaning in one line."""

    req: tuple[str, ...] = ()
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class Bits:
    """Named bits of an integer: `width` bits from bit `shift` up (bit 0 is the lowest)."""

    name: str
    shift: int
    width: int = 1
    default: int = 0
    req: tuple[str, ...] = ()
    meaning: str = ""
    reserved: bool = False

    @property
    def mask(self) -> int:
        """The bits in place."""
        return ((1 << self.width) - 1) << self.shift  # MQMQ-2.2.19-01


@dataclass(frozen=True, slots=True)
class UInt(Node):
    """An integer.

    Attributes:
        big_endian: whether the most significant byte comes first.
        must: the allowed values; any other makes the packet malformed. Further limits are checked by lint.
        size_of: ``"packet"`` or ``"header"``: it counts the bytes of the enclosing Packet or Header from its
            start and bounds the fields after it (up to a `Close`, a `Fill` or the end of the structure);
            ``"after"``: the bytes that follow this header in the packet.
        same_as: a field whose value it repeats; a different value makes the bytes malformed.
    """

    name: str
    bits: int
    signed: bool = False
    default: int = 0
    unit: str = ""
    must: Values = None
    size_of: str = ""
    same_as: str = ""
    big_endian: bool = False

    def __post_init__(self) -> None:
        if self.bits % 8:
            raise ValueError(f"{self.name}: {self.bits} bits are not whole bytes")

    @property
    def size(self) -> int:
        return self.bits // 8


@dataclass(frozen=True, slots=True)
class Flags(Node):
    """An integer with a name for every bit, reserved ones included, so that nothing is lost."""

    name: str
    bits: int
    parts: tuple[Bits, ...] = ()
    big_endian: bool = False

    def __post_init__(self) -> None:
        covered = 0
        for part in self.parts:
            if covered & part.mask:
                raise ValueError(f"{self.name}.{part.name} overlaps")
            covered |= part.mask
        if covered != (1 << self.bits) - 1:
            raise ValueError(f"{self.name}: bits without a name, {covered:#x}")

    @property
    def size(self) -> int:
        return self.bits // 8

    @property
    def default(self) -> int:
        value = 0
        for part in self.parts:
            value |= part.default << part.shift
        return value

    def part(self, name: str) -> Bits:
        """Return the bits of that name. Raises KeyError."""
        for part in self.parts:
            if part.name == name:
                return part
        raise KeyError(name)


@dataclass(frozen=True, slots=True)
class Guid(Node):
    """16 bytes in the packet form of [MS-DTYP] 2.3.4: a `uuid.UUID`."""

    name: str
    default: UUID = NULL_GUID
    size: int = 16  # MQMQ-2.2.19-02, DMPR-2-01


@dataclass(frozen=True, slots=True)
class Raw(Node):
    """Bytes. `marks` names a bit that building sets, if omitted, when the bytes are not empty."""

    name: str
    length: Length
    default: bytes = b""
    marks: str = ""


@dataclass(frozen=True, slots=True)
class Text(Node):
    """UTF-16 text; its value is the text without its final null.

    None stands for a length of 0. Text that is not well-formed UTF-16, has nulls inside or lacks
    the final one keeps its bytes as its value.

    Attributes:
        otherwise: an alternative length, used if the first does not end on a null character and this
            one does (a length field whose unit the specification leaves open).
        strict: without a final null the packet is malformed.
        padded: a field of fixed length, padded with nulls.
    """

    name: str
    length: Length
    otherwise: Ref | None = None
    strict: bool = False
    padded: bool = False


@dataclass(frozen=True, slots=True)
class OemText(Node):
    """Text of one byte a character, in code page 437, which gives every byte a character.

    Attributes:
        length: in bytes. Text of another length than a fixed one is text as it stands.
        counted: a field of fixed length that begins with a byte which counts the characters; nulls follow.

    A field of fixed length is filled up with nulls: its value is the text before them, or its bytes if
    something else follows the first null, if there is none, or if the count is another.
    """

    name: str
    length: Length
    counted: bool = False


@dataclass(frozen=True, slots=True)
class Align(Node):
    """Padding up to a multiple of `to`, counted from the start of the structure named by `of`.

    `of` is the name of an enclosing structure, by default the innermost one; ``*`` is the outermost.
    Padding may hold anything; at the end of the packet it may be missing. With `marker`, padding is
    taken only if the marker follows it, and none if the marker is at the current position.
    """

    name: str
    to: int = 4
    of: str = ""
    marker: bytes = b""


@dataclass(frozen=True, slots=True)
class Fill(Node):
    """The rest of the header up to its size, rounded up to a multiple of `to`."""

    name: str
    to: int = 4


@dataclass(frozen=True, slots=True)
class Sub(Node):
    """A structure inside another. With `within` it takes exactly that many bytes."""

    name: str
    header: Header
    within: Ref | None = None


@dataclass(frozen=True, slots=True)
class Maybe(Node):
    """A part that is present only if the field `when` is not 0 (or has the value `equals`).

    `mark` is the value that building gives an omitted `when` if the part is present and no other part
    decides it: by default 1 for bits, and `equals` where that is set. `marks` names one more bit that
    building then sets.
    """

    when: str | Mark
    node: Guid | Sub | Raw
    equals: int | None = None
    mark: int | None = None
    marks: str = ""

    @property
    def name(self) -> str:
        return self.node.name


@dataclass(frozen=True, slots=True)
class Choice(Node):
    """One of several structures, by the value of a field; None stands for no bytes.

    A value without an arm makes the packet malformed.
    """

    name: str
    by: str
    arms: Mapping[int, Header | None] = field(default_factory=dict)
    within: Ref | None = None


@dataclass(frozen=True, slots=True)
class Repeat(Node):
    """`count` structures, one after the other: a list.

    More than `limit` make the bytes malformed: a refusal must stay cheap.
    """

    name: str
    count: str
    item: Header
    limit: int = 0x4000


@dataclass(frozen=True, slots=True)
class Each(Node):
    """A structure or None for each element of the list `of`, as its field `by` requires.

    `arms` maps a value of `by` (0 if `by` is empty) to three things: the field of the element that
    must not be 0, the structure, and the field of the element that repeats its MaximumCount (or an
    empty string). This is how NDR defers the pointees of an array.
    """

    name: str
    of: str
    by: str
    arms: Mapping[int, tuple[str, Header, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class View(Node):
    """The parsed bytes of another field; it takes none of its own.

    When building, a given view replaces the field it shows.
    """

    name: str
    of: str
    header: Header


@dataclass(frozen=True, slots=True)
class Close(Node):
    """The end of the bytes that a size field counts."""

    name: str = ""


Part: TypeAlias = (
    "UInt | Flags | Guid | Raw | Text | OemText | Align | Fill | Sub | Maybe | Choice | Repeat | Each | View"
    " | Close"
)
Leaf: TypeAlias = "UInt | Flags | Guid | Raw | Text | OemText | Align | Fill"


@dataclass(frozen=True, eq=False)
class Header:
    """A structure: named parts, one after the other.

    One whose parts refer to a field outside it (SecurityData) is read and built only inside that.

    Attributes:
        name: the specification's name.
        section: its section in the specification, for instance ``[MS-MQMQ] 2.2.19.1``.
        size: the fixed size in bytes, checked against the parts; None if it varies.
        variant: its difference from another structure of the same name.
    """

    name: str
    section: str
    parts: tuple[Part, ...]
    meaning: str = ""
    size: int | None = None
    req: tuple[str, ...] = ()
    variant: str = ""

    def __post_init__(self) -> None:
        from msmqwire.schema.sizes import fixed_size

        names = [part.name for part in self.parts if part.name]
        if len(set(names)) != len(names):
            raise ValueError(f"{self.name}: a name twice")
        fixed = fixed_size(self)
        if self.size is not None and self.size != fixed:
            raise ValueError(f"{self.name} has {fixed} bytes, not {self.size}")
        if self.key in SCHEMAS:
            raise ValueError(f"{self.key} is declared twice")
        SCHEMAS[self.key] = self

    def __reduce__(self) -> tuple[Any, ...]:
        return _declared, (self.key,)

    @property
    def key(self) -> str:
        """The key in `SCHEMAS`."""
        return self.name + self.variant

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The names of the parts that have a value, in wire order."""
        return tuple(part.name for part in self.parts if not isinstance(part, Close))

    def part(self, name: str) -> Part:
        """Return the part of that name. Raises KeyError."""
        for part in self.parts:
            if part.name == name:
                return part
        raise KeyError(name)

    def bits(self, path: str) -> Bits:
        """Return the bits of a flag word, named as ``Flags.IN``. Raises KeyError."""
        word, _, name = path.partition(".")
        part = self.part(word)
        if not isinstance(part, Flags):
            raise KeyError(path)
        return part.part(name)

    @cached_property
    def record(self) -> type[Record]:
        """The class of its parsed values."""
        from msmqwire.schema.record import record_class

        return record_class(self)

    @cached_property
    def construct(self) -> Any:
        """The construct object: the reference reader."""
        from msmqwire.schema.reference import construct_of

        return construct_of(self)

    @cached_property
    def codec(self) -> Codec:
        """The generated reader and writer."""
        from msmqwire.schema.codec import Codec

        return Codec(self)

    def parse(self, data: bytes) -> Any:
        """Return the `Record` that takes exactly these bytes. Raises MalformedPacket with path and offset."""
        return self.codec.parse(data)

    def read(self, data: bytes, offset: int = 0) -> tuple[Any, int]:
        """Return the structure at `offset` and the offset after it. Raises MalformedPacket."""
        return self.codec.read(data, offset)

    def build(self, value: Any = None) -> bytes:
        """Return the bytes of a record or mapping; computable fields may be omitted.

        Raises InvalidValue with path and offset.
        """
        return self.codec.build(value)

    def make(self, value: Any = None, **fields: Any) -> Any:
        """Return a complete record from a partial one, a mapping or fields. Raises InvalidValue."""
        from msmqwire.schema.complete import complete

        return complete(self, fields if value is None else value)


@dataclass(frozen=True, eq=False)
class Packet(Header):
    """A whole packet: headers one after the other; paths start at its headers.

    Attributes:
        defaults: values of fields, by path, where this packet differs from the header's own.
        defaults_with: the same, by the optional header with which they apply.
    """

    defaults: Mapping[str, Any] = field(default_factory=dict)
    defaults_with: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


SCHEMAS: Final[dict[str, Header]] = {}
"""Every declared structure by its key."""


def _declared(key: str) -> Header:
    return SCHEMAS[key]


def inner_headers(part: Part) -> list[Header]:
    """Return the structures that a part may hold."""
    match part:
        case Sub() | View():
            return [part.header]
        case Maybe(node=Sub() as node):
            return [node.header]
        case Choice():
            return [arm for arm in part.arms.values() if arm]
        case Repeat():
            return [part.item]
        case Each():
            return [arm for _, arm, _ in part.arms.values()]
        case _:
            return []


def follow(value: Any, path: str) -> Any:
    """Return the field of a record or container that a path names; None if a structure is absent."""
    for name in path.split("."):
        value = None if value is None else value[name]
    return value
