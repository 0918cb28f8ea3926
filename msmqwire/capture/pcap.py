"""The pcap format, draft-ietf-opsawg-pcap, in both byte orders and all resolutions."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from msmqwire.capture.record import RECORD_SIZE_MAX, Record, ReportDamage, record_limit
from msmqwire.capture.source import Buffer
from msmqwire.names.printable import counted

FILE_HEADER_SIZE: Final = 24

_VARIANTS: Final = {  # by magic number: nanoseconds in a unit of the fraction, bytes of a record header
    0xA1B2C3D4: (1_000, 16),
    0xA1B23C4D: (1, 16),
    0xA1B2CD34: (1_000, 24),  # Alexey Kuznetsov's patch of libpcap: interface, protocol, direction
}
MAGICS: Final = {
    Struct(order + "I").pack(magic): (order, *variant)
    for magic, variant in _VARIANTS.items()
    for order in "<>"
}
"""The byte order for struct and the variant of the format, by the first four bytes of a file."""


class Layout(NamedTuple):
    """The layout of the records, as the file header declares it.

    Attributes:
        order: the byte order, for struct.
        unit: nanoseconds in a unit of the fraction of a second.
        header_size: bytes of a record's header.
        linktype: the link type of the frames.
        limit: the maximum size of a record in bytes that is read.
        declared: that of the records that the file may have by its own header.
    """

    order: str
    unit: int
    header_size: int
    linktype: int
    limit: int
    declared: int


def layout(buffer: Buffer, record_size_max: int = RECORD_SIZE_MAX) -> Layout:
    """Read the header of a file whose magic number was checked. Raises CaptureError."""
    order, unit, header_size = MAGICS[buffer.data[:4]]
    if not buffer.fill(FILE_HEADER_SIZE):
        raise buffer.cut("its header", offset=0)
    major, _, _, _, snaplen, network = Struct(order + "4xHHiIII").unpack_from(buffer.data, 0)
    if major != 2:
        raise buffer.error(f"version {major} of the pcap format is not known", offset=0)
    buffer.at = FILE_HEADER_SIZE
    # The upper bits hold the length of the frame check sequence and flags.
    limit, declared = record_limit(snaplen, record_size_max), record_limit(snaplen, 0xFFFF_FFFF)
    return Layout(order, unit, header_size, network & 0xFFFF, limit, declared)


def records(
    buffer: Buffer, file_layout: Layout, number: int = 0, on_damage: ReportDamage | None = None
) -> Iterator[Record]:
    """Yield the records of a pcap file from the position of the buffer on, numbered from ``number`` + 1.

    A record over the limit that the file may have is passed to ``on_damage``, if there is one, and skipped;
    it has a number too.

    Raises:
        CaptureError: after the last complete record, for a file that is cut off or damaged.
    """
    order, unit, header_size, linktype, limit, declared = file_layout
    unpack = Struct(order + "IIII").unpack_from
    make_record, file = Record._make, buffer.file
    data, at, end = buffer.data, buffer.at, len(buffer.data)
    while True:
        if end - at < header_size:
            buffer.at = at
            if not buffer.fill(header_size):
                break
            data, at, end = buffer.data, 0, len(buffer.data)
        seconds, fraction, size, length = unpack(data, at)
        if size > limit:
            buffer.at = at
            error = buffer.error(f"a record of {counted(size, 'byte')}, over the limit of {limit:,}")
            if on_damage is None or size > declared or not buffer.skip(header_size + size):
                raise error
            on_damage(error)
            number += 1
            data, at, end = buffer.data, buffer.at, len(buffer.data)
            continue
        first = at + header_size
        stop = first + size
        if stop > end:
            buffer.at = at
            if not buffer.fill(header_size + size):
                raise buffer.cut("a record")
            data, end = buffer.data, len(buffer.data)
            first, stop = header_size, header_size + size
        number += 1
        time_ns = seconds * 1_000_000_000 + fraction * unit
        yield make_record((file, number, time_ns, linktype, data[first:stop], length, 0))
        at = stop
    if not buffer.ended():
        raise buffer.cut("the header of a record")
