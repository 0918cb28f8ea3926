"""Transfer syntaxes, and the choices of a sender in a stub beyond its values: [C706] 14, [MS-RPCE] 2.2.5."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple

from msmqwire.rpc import constants
from msmqwire.rpc.constants import SyntaxId

FIRST_REFERENT: Final = 0x20000
REFERENT_STEP: Final = 4
"""The first referent id in a stub, and how far the next one is from it, as Windows has them."""


@dataclass(frozen=True, slots=True, eq=False)
class Syntax:
    """A transfer syntax in one byte order; there is one object for each.

    Attributes:
        identifier: the identifier by which a bind names it.
        word: bytes of a referent id and of a count, which are aligned to them.
        enum: bytes of an enum without v1_enum.
        padded: a structure is padded to a multiple of its alignment, and a union aligned as its widest arm.
        byte_order: from the data representation label of the PDU.
    """

    name: str
    identifier: SyntaxId
    word: int
    enum: int
    padded: bool
    byte_order: Literal["little", "big"] = "little"

    @property
    def big_endian(self) -> bool:
        return self.byte_order == "big"

    def ordered(self, *, big_endian: bool) -> Syntax:
        """Return it with this byte order."""
        return _BY_ORDER[self.identifier, big_endian]

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickle has its name: what is read from it is this object, not another one."""
        return _named, (self.identifier, self.big_endian)


def _named(identifier: SyntaxId, big_endian: bool) -> Syntax:
    return _BY_ORDER[identifier, big_endian]


NDR20: Final = Syntax("NDR", constants.NDR20, word=4, enum=2, padded=False)  # MQRR-2.2.6-02
NDR64: Final = Syntax("NDR64", constants.NDR64, word=8, enum=4, padded=True)  # MQRR-2.2.6-03
_BY_ORDER: Final = {
    (syntax.identifier, syntax.big_endian): syntax
    for little in (NDR20, NDR64)
    for syntax in (little, replace(little, byte_order="big"))
}
SYNTAXES: Final = {syntax.identifier: syntax for syntax in (NDR20, NDR64)}
"""The transfer syntaxes by their names in a bind."""


class Wire(NamedTuple):
    """The content of a stub beyond its values, so that building gives the same bytes again.

    Attributes:
        syntax: in which it was written.
        paddings: the bytes of each gap, in order.
        referents: the id of each pointer that is not null, in order.
        rest: the bytes after the last parameter, the padding of a PDU as a rule.
    """

    syntax: Syntax
    paddings: tuple[bytes, ...] = ()
    referents: tuple[int, ...] = ()
    rest: bytes = b""
