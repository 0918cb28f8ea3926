"""A record of a capture file, whatever the file's format."""

from __future__ import annotations

from typing import Final, NamedTuple

RECORD_SIZE_MAX: Final = 0x1000_0000
"""Bytes of the largest record that is read, 256 MiB, whatever the file declares."""

RECORD_SIZE_USUAL: Final = 0x4_0000
"""Bytes that a record may have even when the file declares a smaller limit (its snaplen): some
writers declare less than they write. Wireshark accepts as much."""


class Record(NamedTuple):
    """One frame as it was captured.

    Attributes:
        file: the name of the file it stands in.
        number: its number in that file, from 1.
        time_ns: nanoseconds since 1970-01-01 UTC; 0 where the file does not say (the Simple Packet
            Blocks of pcapng).
        linktype: what the data starts with, a LINKTYPE_ value of tcpdump.org/linktypes.html.
        data: the bytes captured.
        length: how many bytes the frame had on the wire; more than ``data`` has when it was cut.
        interface: the number of the interface in its section of a pcapng file; 0 in a pcap file.
    """

    file: str
    number: int
    time_ns: int
    linktype: int
    data: bytes
    length: int
    interface: int


def record_limit(snaplen: int) -> int:
    """The bytes that a record may have in a file, or of an interface, that declares ``snaplen``."""
    return min(max(snaplen, RECORD_SIZE_USUAL), RECORD_SIZE_MAX) if snaplen else RECORD_SIZE_MAX
