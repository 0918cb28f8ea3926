"""The types of the parameters of remote calls, as frozen values: [C706] 14, [MS-RPCE] 2.2.4 and 2.2.5.

A vocabulary of its own beside `msmqwire.schema`, because a declaration there is one layout of bytes, and here
it is none: the same parameters travel as NDR (the 32-bit transfer syntax) or as NDR64, with other sizes,
alignment and padding, in the byte order of the sender. The target of a pointer does not stand where the
pointer is declared but after the outermost structure or array around it, and a count stands before its array
although a field elsewhere decides it. The names in a declaration are those of the IDL.

Readers of these types: `parsing`, `building`, `jsonform`, and the strategies of the tests.
"""

from __future__ import annotations

from dataclasses import dataclass, field, make_dataclass
from functools import cache, cached_property
from typing import Any, Final, TypeAlias

from msmqwire.rpc.ndr.wire import Wire

REQUIRED: Final = object()
"""The default of a member that has none."""


@dataclass(frozen=True, slots=True, eq=False)
class Integer:
    """An integer, aligned to its size.

    Attributes:
        values: the values that the range attribute of the IDL allows; parsing refuses any other.
        size: its bytes.
        least, most: the numbers that it holds.
    """

    bits: int
    signed: bool = False
    values: range | None = None
    size: int = field(init=False, repr=False)
    least: int = field(init=False, repr=False)
    most: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", self.bits // 8)
        object.__setattr__(self, "least", -(1 << (self.bits - 1)) if self.signed else 0)
        object.__setattr__(self, "most", (1 << (self.bits - self.signed)) - 1)


@dataclass(frozen=True, slots=True, eq=False)
class Enum:
    """An enum without v1_enum: 16 bits in NDR, 32 in NDR64. Values beyond its members are kept."""


@dataclass(frozen=True, slots=True, eq=False)
class Guid:
    """A GUID structure: a `uuid.UUID`, aligned to 4."""


@dataclass(frozen=True, slots=True, eq=False)
class Handle:
    """A context handle: a `msmqwire.rpc.handles.ContextHandle`, aligned to 4."""


@dataclass(frozen=True, slots=True, eq=False)
class FixedBytes:
    """A fixed array of bytes."""

    size: int


@dataclass(frozen=True, slots=True, eq=False)
class ConformantBytes:
    """An array of bytes with size_is, `size_is` being the sibling with its length: bytes.

    As the last member of a structure it makes that a conformant one: the count stands before the structure.
    """

    size_is: str


@dataclass(frozen=True, slots=True, eq=False)
class WideString:
    """``[string] wchar_t``: maximum count, offset, actual count, UTF-16 with its null; a `str` without it.

    Text that is not well-formed UTF-16 or has nulls inside is kept as the bytes of its little-endian form,
    final null included.
    """


@dataclass(frozen=True, slots=True, eq=False)
class ConformantArray:
    """An array with size_is, `size_is` being the sibling with its length: a tuple.

    An empty `size_is` stands for a parameter of the other direction: the caller compares the length with it.
    """

    element: Type
    size_is: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class ConformantVaryingArray:
    """An array with size_is and length_is: a tuple of the elements that are sent, from the first on.

    Attributes:
        most: the maximum count; a parameter of the other direction decides it, so it is known beforehand.
        length_is: the sibling with the number of elements.
    """

    element: Type
    most: int
    length_is: str


@dataclass(frozen=True, slots=True, eq=False)
class Pointer:
    """A unique pointer: a referent id, 0 for null, and its target; None or the value of the target.

    As a parameter, or below one, it is followed by its pointee at once; inside a structure or array the
    pointee follows the outermost one of them.
    """

    target: Type


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """A ref pointer as a parameter: not seen on the wire, its value is that of its pointee."""

    target: Type


@dataclass(frozen=True, slots=True, eq=False)
class Union:
    """A non-encapsulated union: the discriminant once more, then the arm for it; the value is the arm's.

    Attributes:
        discriminant: the type of the discriminant.
        switch_is: the sibling that it repeats.
        arms: for each value of it the arm, None for an empty one (value None).
        refused: for values without an arm, the reason.
        unequal: the requirement that a discriminant breaks which differs from the sibling.
        unknown: that which a value without an arm breaks.
        forbidden: that which a value in `refused` breaks.
    """

    discriminant: Integer | Enum
    switch_is: str
    arms: dict[int, Member | None]
    refused: dict[int, str] = field(default_factory=dict)
    unequal: str = ""
    unknown: str = ""
    forbidden: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """A member of a structure, an arm of a union, or a parameter.

    Attributes:
        meaning: one line.
        default: its value if it is left out when building; a count that is left out is computed.
        req: ids of the requirements that it implements.
    """

    name: str
    type: Type
    meaning: str = ""
    default: Any = REQUIRED
    req: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """Its name in paths and JSON: none for a union, which the IDL does not name."""
        return "" if isinstance(self.type, Union) else self.name


@dataclass(frozen=True, eq=False, repr=False)
class Declaration:
    """Members under a name; the values are frozen, with an attribute for each member."""

    name: str
    section: str
    members: tuple[Member, ...]
    meaning: str = ""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(member.name for member in self.members)

    @cached_property
    def value(self) -> Any:
        """The class of the values."""
        return _value_class(self)


class Structure(Declaration):
    """A structure."""

    def with_members(self, members: tuple[Member, ...]) -> Structure:
        """Return it with other members under the same names: its values are of the same class."""
        other = Structure(self.name, self.section, members, self.meaning)
        other.__dict__["value"] = self.value
        return other


class Stub(Declaration):
    """The parameters of one direction of a procedure, which stand for themselves, not in a structure.

    Its values also have `wire`, the choice of the sender.
    """

    @cached_property
    def value(self) -> Any:
        """The class of the values."""
        return _value_class(self, ("wire", Wire | None, field(default=None, compare=False, repr=False)))


Type: TypeAlias = (
    Integer
    | Enum
    | Guid
    | Handle
    | FixedBytes
    | ConformantBytes
    | WideString
    | ConformantArray
    | ConformantVaryingArray
    | Pointer
    | Reference
    | Union
    | Structure
)


def _value_class(declaration: Declaration, *more: tuple[str, Any, Any]) -> type[Any]:
    fields: list[tuple[str, Any, Any]] = []
    for member in declaration.members:
        default = field() if member.default is REQUIRED else field(default=member.default)
        fields.append((member.name, Any, default))
    cls = make_dataclass(declaration.name, [*fields, *more], frozen=True, slots=True, kw_only=True)
    cls.__doc__ = f"{declaration.meaning or declaration.name}\n\n{declaration.section}"
    cls.__module__ = __name__
    return cls


@cache
def has_pointers(node: Type) -> bool:
    """Return whether a part of it is deferred when it stands in a structure or array."""
    match node:
        case Pointer():
            return True
        case Structure():
            return any(has_pointers(member.type) for member in node.members)
        case Union():
            return any(arm is not None and has_pointers(arm.type) for arm in node.arms.values())
        case ConformantArray() | ConformantVaryingArray():
            return has_pointers(node.element)
    return False


@cache
def deferring(node: Structure) -> tuple[Member, ...]:
    """Return the members of a structure of which a part is deferred, in their order."""
    return tuple(member for member in node.members if has_pointers(member.type))


@cache
def hoisted(node: Structure) -> ConformantBytes | None:
    """Return the array whose count stands before a conformant structure; None for another structure."""
    last = node.members[-1].type if node.members else None
    return last if isinstance(last, ConformantBytes) else None
