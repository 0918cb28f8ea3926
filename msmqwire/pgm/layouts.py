"""Layouts of Pragmatic General Multicast, big-endian: RFC 3208 sections 8 and 9.

The vocabulary of `msmqwire.schema` is little-endian throughout; these are construct schemas of their own.
Names are those of the diagrams of the RFC. What varies in size stands after what decides it, so each
schema here is fixed: its size is compared with the bytes there are before it is read.
"""

from enum import IntEnum, IntFlag
from typing import Any, Final

from construct import Bytes, Int8ub, Int16ub, Int32ub, Struct

GSI_SIZE: Final = 6


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

COMMON_HEADER: Final[Any] = Struct(
    "SourcePort" / Int16ub,
    "DestinationPort" / Int16ub,
    "Type" / Int8ub,
    "Options" / Int8ub,
    "Checksum" / Int16ub,
    "GSI" / Bytes(GSI_SIZE),
    "TSDULength" / Int16ub,
)
COMMON_HEADER_SIZE: Final = 16
CHECKSUM_OFFSET: Final = 6
TSDU_LENGTH_OFFSET: Final = 14

NLA_HEAD: Final[Any] = Struct("AFI" / Int16ub, "Reserved" / Int16ub)
NLA_SIZES: Final = {1: 4, 2: 16}
"""The bytes of an address, by its AFI: IPv4, IPv6."""

OPTION_HEAD: Final[Any] = Struct("OptionType" / Int8ub, "OptionLength" / Int8ub)
OPTION_HEAD_SIZE: Final = 2

# Each but OPT_LENGTH begins with an octet of five reserved bits, F and OPX, and one of U and what the option
# makes of it: kept as numbers, so that nothing is lost.
OPTIONS: Final[dict[int, Any]] = {
    OptionType.OPT_LENGTH: Struct("TotalLength" / Int16ub),
    OptionType.OPT_FRAGMENT: Struct(
        "Reserved" / Int8ub,
        "U" / Int8ub,
        "FirstSequenceNumber" / Int32ub,
        "Offset" / Int32ub,
        "Length" / Int32ub,
    ),
    OptionType.OPT_JOIN: Struct("Reserved" / Int8ub, "U" / Int8ub, "MinimumSequenceNumber" / Int32ub),
    OptionType.OPT_SYN: Struct("Reserved" / Int8ub, "U" / Int8ub),
    OptionType.OPT_FIN: Struct("Reserved" / Int8ub, "U" / Int8ub),
    OptionType.OPT_RST: Struct("Reserved" / Int8ub, "U" / Int8ub),
}
NAK_LIST_HEAD: Final[Any] = Struct("Reserved" / Int8ub, "U" / Int8ub)
NAK_LIST_MAX: Final = 62
"""More sequence numbers do not fit: an option has at most 255 octets, and the RFC allows 62."""

SEQUENCE_NUMBER: Final[Any] = Int32ub
HALF_WORD: Final[Any] = Int16ub
