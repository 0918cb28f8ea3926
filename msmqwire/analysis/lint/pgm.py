"""Packets of PGM in captures against RFC 3208, whichever program has sent them.

Nothing here is a MUST of MSMQ: other programs use PGM too, and a packet may have been damaged on its way.
"""

from __future__ import annotations

from typing import Final

from msmqwire.analysis.lint.finding import Finding
from msmqwire.analysis.lint.registry import Check, listed
from msmqwire.errors import MalformedPacket
from msmqwire.names.printable import counted
from msmqwire.pgm import PgmPacket, build_pgm, checksum_is_right, read_pgm
from msmqwire.pgm.layouts import CHECKSUM_OFFSET, TSDU_LENGTH_OFFSET
from msmqwire.pgm.layouts import TSDU_LENGTH as LENGTH

_PGM: Final = frozenset({"pgm"})


def _rule(name: str, title: str, path: str) -> Check:
    return listed(f"PGM-{name}", title, path, _PGM, "SHOULD")


CHECKSUM: Final = _rule("CHECKSUM", "The checksum of PGM is wrong, or data have none", "Checksum")
TSDU_LENGTH: Final = _rule("TSDU-LENGTH", "TSDULength is not the length of the data", LENGTH)
OPTIONS: Final = _rule("OPTIONS", "The lengths of the options of PGM do not fit", "options")


def lint_pgm(packet: PgmPacket, fault: MalformedPacket | None, data: bytes) -> list[Finding]:
    """Return the findings about a packet of PGM: RFC 3208 sections 8 and 9.

    Args:
        packet: the packet, as far as it could be read.
        fault: why a receiver would refuse it, as `msmqwire.pgm.read_pgm` returns it; None if it would not.
        data: its bytes.
    """
    found = []
    if not checksum_is_right(data):
        why = "wrong, so that a receiver drops the packet" if packet.Checksum else "missing from data"
        found.append(CHECKSUM.at("Checksum", CHECKSUM_OFFSET, f"the checksum is {why}"))
    if fault is not None and fault.path == LENGTH:
        counts_header = ", which counts the header too" if packet.TSDULength == len(data) else ""
        there = counted(len(packet.data) + len(packet.trailing), "byte")
        why = f"{packet.TSDULength}{counts_header}; the data have {there}"
        found.append(TSDU_LENGTH.at(LENGTH, TSDU_LENGTH_OFFSET, why))
    elif fault is not None:
        found.append(OPTIONS.at(fault.path, fault.offset or 0, fault.why))
    return found


def lint_built_pgm(packet: PgmPacket) -> list[Finding]:
    """Return the findings about a packet of PGM as it would be built."""
    built = build_pgm(packet)
    return lint_pgm(*read_pgm(built), built)
