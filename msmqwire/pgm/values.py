"""The packets of PGM as values: RFC 3208 sections 8, 9 and 14.

Fields have the names of the diagrams. Fields that building can work out may be None; parsed ones never are.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import ClassVar, TypeAlias

from msmqwire.names.printable import counted
from msmqwire.pgm import layouts
from msmqwire.pgm.layouts import OptionFlags, OptionType, PgmType
from msmqwire.schema import Header

# --- bodies ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Nla:
    """A network-layer address with the AFI that its version has: section 8."""

    Address: IPv4Address | IPv6Address
    Reserved: int = 0


@dataclass(frozen=True, slots=True)
class Spm:
    """A source path message: section 8.1."""

    layout: ClassVar[Header] = layouts.SPM
    SPMSequenceNumber: int
    TrailingEdgeSequenceNumber: int
    LeadingEdgeSequenceNumber: int
    PathNLA: Nla


@dataclass(frozen=True, slots=True)
class Data:
    """The fields of ODATA and RDATA before their options: section 8.2."""

    layout: ClassVar[Header] = layouts.DATA
    DataPacketSequenceNumber: int
    TrailingEdgeSequenceNumber: int


@dataclass(frozen=True, slots=True)
class Nak:
    """The fields of NAK, NNAK and NCF: section 8.3."""

    layout: ClassVar[Header] = layouts.NAK
    RequestedSequenceNumber: int
    SourceNLA: Nla
    MulticastGroupNLA: Nla


@dataclass(frozen=True, slots=True)
class Poll:
    """A poll request: section 14."""

    layout: ClassVar[Header] = layouts.POLL
    POLLSequenceNumber: int
    POLLRound: int
    POLLSubType: int
    PathNLA: Nla
    POLLBackoffInterval: int
    RandomString: int
    MatchingBitMask: int


@dataclass(frozen=True, slots=True)
class Polr:
    """A poll response: section 14."""

    layout: ClassVar[Header] = layouts.POLR
    POLRSequenceNumber: int
    POLRRound: int
    Reserved: int = 0


@dataclass(frozen=True, slots=True)
class Opaque:
    """All that follows the common header of a packet of another type, options and data included."""

    content: bytes


Body: TypeAlias = Spm | Data | Nak | Poll | Polr | Opaque

BODIES: dict[int, type[Spm | Data | Nak | Poll | Polr]] = {
    PgmType.SPM: Spm,
    PgmType.POLL: Poll,
    PgmType.POLR: Polr,
    PgmType.ODATA: Data,
    PgmType.RDATA: Data,
    PgmType.NAK: Nak,
    PgmType.NNAK: Nak,
    PgmType.NCF: Nak,
}

# --- options -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class PgmOption:
    """The common fields of options: section 9.

    Attributes:
        E: whether it is the last one; None lets building decide.
        OptionLength: its octets; None lets building count them.
    """

    E: bool | None = None
    OptionLength: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtendedOption(PgmOption):
    """An option with the octets that most have: reserved bits, F and OPX, and U with seven more."""

    Reserved: int = 0
    U: int = 0


@dataclass(frozen=True, slots=True)
class OptLength(PgmOption):
    """The octets of all options, its own included: section 9.1. Building adds it where it is left out."""

    kind: ClassVar[int] = OptionType.OPT_LENGTH
    TotalLength: int | None = None


@dataclass(frozen=True, slots=True)
class OptFragment(ExtendedOption):
    """The part of an APDU that a data packet carries: section 9.2."""

    kind: ClassVar[int] = OptionType.OPT_FRAGMENT
    FirstSequenceNumber: int
    Offset: int
    Length: int


@dataclass(frozen=True, slots=True)
class OptNakList(ExtendedOption):
    """Further sequence numbers that a NAK or NCF is for: section 9.3."""

    kind: ClassVar[int] = OptionType.OPT_NAK_LIST
    SequenceNumbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class OptJoin(ExtendedOption):
    """The first sequence number that a late joiner may ask for: section 9.4."""

    kind: ClassVar[int] = OptionType.OPT_JOIN
    MinimumSequenceNumber: int


@dataclass(frozen=True, slots=True)
class OptSyn(ExtendedOption):
    """The first data packet of a session: section 9.6."""

    kind: ClassVar[int] = OptionType.OPT_SYN


@dataclass(frozen=True, slots=True)
class OptFin(ExtendedOption):
    """No data follow: section 9.7."""

    kind: ClassVar[int] = OptionType.OPT_FIN


@dataclass(frozen=True, slots=True)
class OptRst(ExtendedOption):
    """The source ends the session at once: section 9.8. U has the N bit (0x40) and the error code as well."""

    kind: ClassVar[int] = OptionType.OPT_RST

    @property
    def error_code(self) -> int:
        """The reason, 6 bits; 0 for an unknown one."""
        return self.U & 0x3F


@dataclass(frozen=True, slots=True)
class UnknownOption(PgmOption):
    """An option of another type, kept as it came; `content` is the rest after its length."""

    kind: int
    content: bytes


Option: TypeAlias = OptLength | OptFragment | OptNakList | OptJoin | OptSyn | OptFin | OptRst | UnknownOption

# --- packets -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class PgmPacket:
    """A packet: the common header of section 8, the body of its type, options, data.

    `Options`, `Checksum` and `TSDULength` that are None are worked out by building; given ones stay, even
    wrong ones. `trailing` has the bytes after the data, or options that can't be read; a packet without a
    fault has none.
    """

    Type: int
    SourcePort: int
    DestinationPort: int
    GSI: bytes
    body: Body
    options: tuple[Option, ...] = ()
    data: bytes = b""
    Options: OptionFlags | None = None
    Checksum: int | None = None
    TSDULength: int | None = None
    trailing: bytes = b""

    def __repr__(self) -> str:
        options = f", {counted(len(self.options), 'option')}" if self.options else ""
        body = f"{type(self.body).__name__} {self.Type:#x}"
        ports = f"{self.SourcePort} > {self.DestinationPort}"
        return f"<PgmPacket {body} {ports} of {self.GSI.hex()}{options}, {counted(len(self.data), 'byte')}>"
