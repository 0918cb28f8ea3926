"""Layouts of Pragmatic General Multicast, big-endian: RFC 3208 sections 8 and 9.

The vocabulary of `msmqwire.schema` is little-endian throughout; these are layouts of their own, and plain
ones, since every packet that anybody sends to a group is read. Names are those of the diagrams of the RFC.
What varies in size stands after what decides it, so each layout here is fixed: its size is compared with the
bytes there are before it is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, IntFlag
from struct import Struct
from struct import error as StructError
from typing import Any, Final

from msmqwire.errors import InvalidValue

GSI_SIZE: Final = 6


class Layout:
    """Fields of fixed size, one behind the other, with their codes of Python's `struct`.

    Attributes:
        names: of the fields.
        codes: of the fields, by name.
        size: in bytes.
    """

    def __init__(self, **fields: str) -> None:
        self.names = tuple(fields)
        self.codes, self._struct = fields, Struct(">" + "".join(fields.values()))
        self.size = self._struct.size

    def parse(self, data: bytes) -> dict[str, Any]:
        """Return the fields of exactly `size` bytes."""
        return dict(zip(self.names, self._struct.unpack(data), strict=True))

    def build(self, values: Mapping[str, Any], path: str = "") -> bytes:
        """Return the bytes of the fields. Raises InvalidValue."""
        try:
            return self._struct.pack(*[values[name] for name in self.names])
        except StructError:
            for name, code in self.codes.items():
                try:
                    Struct(">" + code).pack(values[name])
                except StructError:
                    field = ".".join(filter(None, (path, name)))
                    raise InvalidValue(f"the value does not fit: {values[name]!r}", path=field) from None
            raise


class PgmType(IntEnum):
    """The types of packets: RFC 3208 section 8. The high bits, version and reserved, are 0."""

    SPM = 0x00
    POLL = 0x01
    POLR = 0x02
    ODATA = 0x04
    RDATA = 0x05
    NAK = 0x08
    NNAK = 0x09
    NCF = 0x0A


class OptionFlags(IntFlag):
    """The field Options of the common header; other bits are kept."""

    E = 0x01  # option extensions are present
    N = 0x02  # one of them is significant to network elements
    T = 0x40  # OPT_VAR_PKTLEN: parity of packets of varying size
    P = 0x80  # OPT_PARITY: a parity packet


class OptionType(IntEnum):
    """The option extensions that are read; others are kept as they came."""

    OPT_LENGTH = 0x00
    OPT_FRAGMENT = 0x01
    OPT_NAK_LIST = 0x02
    OPT_JOIN = 0x03
    OPT_SYN = 0x0D
    OPT_FIN = 0x0E
    OPT_RST = 0x0F


OPTION_END: Final = 0x80  # the E bit of Option Type: the last option

COMMON_HEADER: Final = Layout(
    SourcePort="H",
    DestinationPort="H",
    Type="B",
    Options="B",
    Checksum="H",
    GSI="6s",
    TSDULength="H",
)
COMMON_HEADER_SIZE: Final = COMMON_HEADER.size
CHECKSUM_OFFSET: Final = 6
TSDU_LENGTH: Final = "TSDULength"
TSDU_LENGTH_OFFSET: Final = 14

NLA_HEAD: Final = Layout(AFI="H", Reserved="H")
NLA_SIZES: Final = {1: 4, 2: 16}
"""The bytes of an address, by its AFI: IPv4, IPv6."""

OPTION_HEAD: Final = Layout(OptionType="B", OptionLength="B")
OPTION_HEAD_SIZE: Final = 2

# Each but OPT_LENGTH begins with an octet of five reserved bits, F and OPX, and one of U and what the option
# makes of it: kept as numbers, so that nothing is lost.
OPTIONS: Final[dict[int, Layout]] = {
    OptionType.OPT_LENGTH: Layout(TotalLength="H"),
    OptionType.OPT_FRAGMENT: Layout(
        Reserved="B",
        U="B",
        FirstSequenceNumber="I",
        Offset="I",
        Length="I",
    ),
    OptionType.OPT_JOIN: Layout(Reserved="B", U="B", MinimumSequenceNumber="I"),
    OptionType.OPT_SYN: Layout(Reserved="B", U="B"),
    OptionType.OPT_FIN: Layout(Reserved="B", U="B"),
    OptionType.OPT_RST: Layout(Reserved="B", U="B"),
}
NAK_LIST_HEAD: Final = Layout(Reserved="B", U="B")
NAK_LIST_MAX: Final = 62
"""More sequence numbers do not fit: an option has at most 255 octets, and the RFC allows 62."""
