"""Writing of capture files: pcapng, or pcap in nanoseconds where one link type is enough."""

from __future__ import annotations

from struct import Struct
from typing import BinaryIO, Final

from msmqwire.capture.pcapng import ENHANCED_PACKET, INTERFACE_DESCRIPTION, SECTION_HEADER
from msmqwire.capture.record import NO_TIME, RECORD_SIZE_USUAL, Record
from msmqwire.errors import InvalidValue

ETHERNET: Final = 1
"""LINKTYPE_ETHERNET."""
_PCAP_NANOSECONDS: Final = 0xA1B23C4D
_PCAP_TIMES: Final = 1_000_000_000 << 32
_PCAPNG_LAST: Final = (1 << 64) - 1
_PCAP_HEADER: Final = Struct("<IHHiIII")
_PCAP_RECORD: Final = Struct("<IIII")
_SECTION: Final = Struct("<IIIHHqI")
_INTERFACE: Final = Struct("<IIHHIHHB3xHHqII")
_ENHANCED: Final = Struct("<IIIIIII")
_UINT32: Final = Struct("<I")
_BYTE_ORDER_MAGIC: Final = 0x1A2B3C4D
_IF_TSRESOL: Final = 9
_IF_TSOFFSET: Final = 14
_NANOSECONDS: Final = 9
"""The value of if_tsresol for units of 10^-9 seconds."""
_EARLIEST_S: Final = NO_TIME // 1_000_000_000
"""The value of if_tsoffset for times before 1970: no time is earlier."""


def pcap_header(linktype: int = ETHERNET) -> bytes:
    """Return the header of a pcap file with times in nanoseconds."""
    return _PCAP_HEADER.pack(_PCAP_NANOSECONDS, 2, 4, 0, 0, RECORD_SIZE_USUAL, linktype)


def pcap_record(time_ns: int, data: bytes, length: int) -> bytes:
    """Return a frame as a record of such a file; its time is before 2106, and not before 1970."""
    seconds, nanoseconds = divmod(time_ns, 1_000_000_000)
    return _PCAP_RECORD.pack(seconds, nanoseconds, len(data), length) + data


class PcapngWriter:
    """Writes frames to a pcapng file, with an interface for each link type that comes, one more before 1970.

    Args:
        file: the file to write the blocks to; it is not closed.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._interfaces: dict[tuple[int, int], int] = {}
        size = _SECTION.size
        file.write(_SECTION.pack(SECTION_HEADER, size, _BYTE_ORDER_MAGIC, 1, 0, -1, size))

    def write(self, record: Record) -> None:
        """Write a frame."""
        # The last time of the format stands for none: it is beyond those that are read.
        time_ns = _PCAPNG_LAST if record.time_ns == NO_TIME else record.time_ns
        offset_s = _EARLIEST_S if time_ns < 0 else 0
        interface = self._interfaces.get((record.linktype, offset_s))
        if interface is None:
            interface = self._interfaces[record.linktype, offset_s] = len(self._interfaces)
            self._describe(record.linktype, offset_s)
        padding = -len(record.data) % 4
        size = _ENHANCED.size + len(record.data) + padding + 4
        high, low = divmod(time_ns - offset_s * 1_000_000_000, 1 << 32)
        head = _ENHANCED.pack(ENHANCED_PACKET, size, interface, high, low, len(record.data), record.length)
        self._file.write(b"".join((head, record.data, bytes(padding), _UINT32.pack(size))))

    def _describe(self, linktype: int, offset_s: int) -> None:
        size, no_limit, end_of_options = _INTERFACE.size, 0, 0
        self._file.write(
            _INTERFACE.pack(
                INTERFACE_DESCRIPTION, size, linktype, 0, no_limit,
                _IF_TSRESOL, 1, _NANOSECONDS, _IF_TSOFFSET, 8, offset_s, end_of_options, size,
            )
        )  # fmt: skip


class PcapWriter:
    """Writes frames of one link type to a pcap file, with times in nanoseconds.

    Args:
        file: the file to write the records to; it is not closed.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._linktype: int | None = None

    def write(self, record: Record) -> None:
        """Write a frame. Raises InvalidValue for another link type than the first, or an unfit time."""
        if self._linktype is None:
            self._begin(record.linktype)
        if record.linktype != self._linktype:
            raise InvalidValue(
                f"frame {record.number} has link type {record.linktype}, the ones before {self._linktype}: "
                "a pcap file has one, a pcapng file many"
            )
        if not 0 <= record.time_ns < _PCAP_TIMES:
            raise InvalidValue(f"frame {record.number} has a time that pcap can't represent; pcapng may")
        self._file.write(pcap_record(record.time_ns, record.data, record.length))

    def close(self) -> None:
        """Write the header of a file without frames, as of Ethernet."""
        if self._linktype is None:
            self._begin(ETHERNET)

    def _begin(self, linktype: int) -> None:
        self._linktype = linktype
        self._file.write(pcap_header(linktype))
