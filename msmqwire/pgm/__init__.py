"""Pragmatic General Multicast, the transport of multicast messages: RFC 3208, [MC-MQSRM] 2.1.3.

`parse_pgm` and `build_pgm` are the packets; a source and a receiver without I/O are in `msmqwire.pgm.source`
and `msmqwire.pgm.receiver`.
"""

from msmqwire.pgm.layouts import OptionFlags, OptionType, PgmType
from msmqwire.pgm.packets import build_pgm, checksum_is_right, parse_pgm
from msmqwire.pgm.values import (
    Data,
    Nak,
    Nla,
    Opaque,
    OptFin,
    OptFragment,
    Option,
    OptJoin,
    OptLength,
    OptNakList,
    OptRst,
    OptSyn,
    PgmPacket,
    Poll,
    Polr,
    Spm,
    UnknownOption,
)

__all__ = [
    "Data",
    "Nak",
    "Nla",
    "Opaque",
    "OptFin",
    "OptFragment",
    "OptJoin",
    "OptLength",
    "OptNakList",
    "OptRst",
    "OptSyn",
    "Option",
    "OptionFlags",
    "OptionType",
    "PgmPacket",
    "PgmType",
    "Poll",
    "Polr",
    "Spm",
    "UnknownOption",
    "build_pgm",
    "checksum_is_right",
    "parse_pgm",
]
