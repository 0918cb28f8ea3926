"""The structures of Pragmatic General Multicast, big-endian: RFC 3208 sections 8, 9 and 14.

Names are those of the diagrams of the RFC. A part of variable size stands after the field that decides it:
the options and the data of a packet are read one by one, each compared with the bytes there are.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag
from typing import Final

from msmqwire.schema import Header, Part, choice, field_offset, raw, sub, uint

GSI_SIZE: Final = 6


def _numbers(bits: int, names: str) -> tuple[Part, ...]:
    return tuple(uint(bits, name, big_endian=True) for name in names.split())


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
    """The option extensions that are read; unknown ones are kept as they came."""

    OPT_LENGTH = 0x00
    OPT_FRAGMENT = 0x01
    OPT_NAK_LIST = 0x02
    OPT_JOIN = 0x03
    OPT_SYN = 0x0D
    OPT_FIN = 0x0E
    OPT_RST = 0x0F


OPTION_END: Final = 0x80  # the E bit of Option Type: the last option

COMMON_HEADER: Final = Header(
    "PgmHeader",
    "[RFC3208] 8",
    (
        *_numbers(16, "SourcePort DestinationPort"),
        *_numbers(8, "Type Options"),
        *_numbers(16, "Checksum"),
        raw("GSI", GSI_SIZE, "Global Source ID."),
        *_numbers(16, "TSDULength"),
    ),
    "The common header of every packet.",
    size=16,
)
COMMON_HEADER_SIZE: Final = 16
CHECKSUM_OFFSET: Final = field_offset(COMMON_HEADER, "Checksum")
TSDU_LENGTH: Final = "TSDULength"
TSDU_LENGTH_OFFSET: Final = field_offset(COMMON_HEADER, TSDU_LENGTH)

IPV4_NLA: Final = Header("PgmIpv4", "[RFC3208] 8", (raw("Address", 4),), "An address of IPv4.", size=4)
IPV6_NLA: Final = Header("PgmIpv6", "[RFC3208] 8", (raw("Address", 16),), "An address of IPv6.", size=16)
NLA: Final = Header(
    "PgmNla",
    "[RFC3208] 8",
    (*_numbers(16, "AFI Reserved"), choice("NLA", "AFI", {1: IPV4_NLA, 2: IPV6_NLA})),
    "A network-layer address, of the family that its AFI names.",
)

SPM: Final = Header(
    "PgmSpm",
    "[RFC3208] 8.1",
    (
        *_numbers(32, "SPMSequenceNumber TrailingEdgeSequenceNumber LeadingEdgeSequenceNumber"),
        sub(NLA, "PathNLA"),
    ),
    "The body of a source path message.",
)
DATA: Final = Header(
    "PgmData",
    "[RFC3208] 8.2",
    _numbers(32, "DataPacketSequenceNumber TrailingEdgeSequenceNumber"),
    "The fields of ODATA and RDATA before their options.",
    size=8,
)
NAK: Final = Header(
    "PgmNak",
    "[RFC3208] 8.3",
    (*_numbers(32, "RequestedSequenceNumber"), sub(NLA, "SourceNLA"), sub(NLA, "MulticastGroupNLA")),
    "The body of NAK, NNAK and NCF.",
)
POLL: Final = Header(
    "PgmPoll",
    "[RFC3208] 14.7.1",
    (
        *_numbers(32, "POLLSequenceNumber"),
        *_numbers(16, "POLLRound POLLSubType"),
        sub(NLA, "PathNLA"),
        *_numbers(32, "POLLBackoffInterval RandomString MatchingBitMask"),
    ),
    "The body of a poll request.",
)
POLR: Final = Header(
    "PgmPolr",
    "[RFC3208] 14.7.2",
    (*_numbers(32, "POLRSequenceNumber"), *_numbers(16, "POLRRound Reserved")),
    "The body of a poll response.",
    size=8,
)

OPTION_HEAD_SIZE: Final = 2
OPTION_HEAD: Final = Header(
    "PgmOption",
    "[RFC3208] 9",
    _numbers(8, "OptionType OptionLength"),
    "The header that every option begins with.",
    size=OPTION_HEAD_SIZE,
)

# Each but OPT_LENGTH begins with an octet of five reserved bits, F and OPX, and one of U and bits that the
# option makes of it: kept as numbers, so that nothing is lost.
_EXTENDED: Final = _numbers(8, "Reserved U")
OPT_LENGTH: Final = Header(
    "PgmOptLength", "[RFC3208] 9.1", _numbers(16, "TotalLength"), "The octets of all options.", size=2
)
OPT_FRAGMENT: Final = Header(
    "PgmOptFragment",
    "[RFC3208] 9.2",
    (*_EXTENDED, *_numbers(32, "FirstSequenceNumber Offset Length")),
    "The part of an APDU that a data packet carries.",
    size=14,
)
OPT_JOIN: Final = Header(
    "PgmOptJoin",
    "[RFC3208] 9.4",
    (*_EXTENDED, *_numbers(32, "MinimumSequenceNumber")),
    "The first sequence number that a late joiner may ask for.",
    size=6,
)
OPT_SYN: Final = Header(
    "PgmOptSyn", "[RFC3208] 9.6", _EXTENDED, "The first data packet of a session.", size=2
)
OPT_FIN: Final = Header("PgmOptFin", "[RFC3208] 9.7", _EXTENDED, "No data follow.", size=2)
OPT_RST: Final = Header(
    "PgmOptRst", "[RFC3208] 9.8", _EXTENDED, "The source ends the session at once.", size=2
)
OPTIONS: Final[dict[int, Header]] = {
    OptionType.OPT_LENGTH: OPT_LENGTH,
    OptionType.OPT_FRAGMENT: OPT_FRAGMENT,
    OptionType.OPT_JOIN: OPT_JOIN,
    OptionType.OPT_SYN: OPT_SYN,
    OptionType.OPT_FIN: OPT_FIN,
    OptionType.OPT_RST: OPT_RST,
}
"""The options of fixed size, by type."""
NAK_LIST_HEAD: Final = Header(
    "PgmOptNakList",
    "[RFC3208] 9.3",
    _EXTENDED,
    "The header of a list of sequence numbers in a NAK or NCF.",
    size=2,
)
NAK_LIST_ITEM: Final = Header(
    "PgmNakListItem",
    "[RFC3208] 9.3",
    _numbers(32, "SequenceNumbers"),
    "One of these sequence numbers.",
    size=4,
)
NAK_LIST_MAX: Final = 62
"""More sequence numbers do not fit: an option has at most 255 octets, and the RFC allows 62."""
