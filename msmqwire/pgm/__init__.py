"""Pragmatic General Multicast, the transport of multicast messages: RFC 3208, [MC-MQSRM] 2.1.3.

`parse_pgm` and `build_pgm` are the packets; a source and a receiver without I/O are in `msmqwire.pgm.source`
and `msmqwire.pgm.receiver`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from msmqwire.pgm.layouts import OptionFlags, OptionType, PgmType
    from msmqwire.pgm.packets import build_pgm, checksum_is_right, parse_pgm, read_pgm
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
    "read_pgm",
]

_HOMES: Final = {
    "layouts": ("OptionFlags", "OptionType", "PgmType"),
    "packets": ("build_pgm", "checksum_is_right", "parse_pgm", "read_pgm"),
}
"""The modules of the names; names not listed are in `values`."""


def __getattr__(name: str) -> Any:
    """Import on first use: users of the constants alone should not wait for the rest."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = next((module for module, names in _HOMES.items() if name in names), "values")
    return getattr(import_module(f"{__name__}.{home}"), name)
