"""A record of a capture file, independent of the file format."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from msmqwire.errors import CaptureError

RECORD_SIZE_MAX: Final = 0x100_0000
"""Bytes of the largest record that is read, 16 MiB, whatever limit the file declares, unless another is asked
for."""

RECORD_SIZE_LIMIT: Final = 0xFFFF_FFFF
"""Bytes of the largest record that a file can have."""

RECORD_SIZE_USUAL: Final = 0x4_0000
"""Bytes that a record may have even if the file declares a smaller limit (its snaplen): some writers
declare less than they write. Wireshark accepts as much."""


NO_TIME: Final = -(1 << 63)
"""In place of a time in nanoseconds since 1970: the file has none, or none that 64 bits can represent."""
_TIME_MAX: Final = (1 << 63) - 1


def time_or_none(time_ns: int) -> int | None:
    """Return a time, or None for `NO_TIME`."""
    return None if time_ns == NO_TIME else time_ns


def representable(time_ns: int) -> int:
    """Return a time that a file gives, or `NO_TIME` for one before 1677 or after 2262."""
    return time_ns if -_TIME_MAX <= time_ns <= _TIME_MAX else NO_TIME


ReportDamage = Callable[[CaptureError], None]
"""A function that is called for a damaged record after which reading goes on."""


class Record(NamedTuple):
    """One captured frame.

    Attributes:
        file: the name of its file.
        number: its number in that file, from 1.
        time_ns: nanoseconds since 1970-01-01 UTC; `NO_TIME` where the file has none (the Simple Packet Blocks
            of pcapng), or one that 64 bits can't represent.
        linktype: the link type of the data, a LINKTYPE_ value of tcpdump.org/linktypes.html.
        data: the bytes captured.
        length: the size of the frame on the wire in bytes; larger than ``data`` if it was cut off.
        interface: the number of the interface in its section of a pcapng file; 0 in a pcap file.
    """

    file: str
    number: int
    time_ns: int
    linktype: int
    data: bytes
    length: int
    interface: int


def record_limit(snaplen: int, record_size_max: int = RECORD_SIZE_MAX) -> int:
    """Return the maximum size of a record in a file, or of an interface, that declares ``snaplen``."""
    return min(max(snaplen, RECORD_SIZE_USUAL), record_size_max) if snaplen else record_size_max
