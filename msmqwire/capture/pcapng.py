"""The pcapng format, draft-ietf-opsawg-pcapng: sections of either byte order, with any interfaces."""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd
from struct import Struct
from typing import Final, NamedTuple

from msmqwire.capture.record import (
    NO_TIME,
    RECORD_SIZE_MAX,
    Record,
    ReportDamage,
    record_limit,
    representable,
)
from msmqwire.capture.source import Buffer
from msmqwire.names.printable import counted

SECTION_HEADER: Final = 0x0A0D0D0A  # the same in both byte orders
MAGIC: Final = SECTION_HEADER.to_bytes(4, "little")
INTERFACE_DESCRIPTION: Final = 1
PACKET: Final = 2  # obsolete
SIMPLE_PACKET: Final = 3
ENHANCED_PACKET: Final = 6
_READ: Final = {SECTION_HEADER, INTERFACE_DESCRIPTION, PACKET, SIMPLE_PACKET, ENHANCED_PACKET}

_WITH_RECORD: Final = {PACKET, SIMPLE_PACKET, ENHANCED_PACKET}

OPTIONS_SIZE_MAX: Final = 0x1_0000
"""Bytes of the largest block that is read, besides its record. Blocks that are of no use are skipped without
buffering, so their size does not matter."""

INTERFACES_MAX: Final = 0x1_0000
"""Interfaces that a section may describe."""

_IF_TSRESOL, _IF_TSOFFSET = 9, 14
_BYTE_ORDERS: Final = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}


class _Structs:
    """The structures of a section, in its byte order."""

    def __init__(self, order: str) -> None:
        self.block = Struct(order + "II")
        self.uint32 = Struct(order + "I")
        self.int64 = Struct(order + "q")
        self.option = Struct(order + "HH")
        self.version = Struct(order + "12xHH")
        self.interface = Struct(order + "8xHHI")
        self.enhanced = Struct(order + "8xIIIII")
        self.simple = Struct(order + "8xI")
        self.packet = Struct(order + "8xHHIIII")


class Interface(NamedTuple):
    """An interface of a section: the time in ns is ``ticks * multiplier // divisor + offset_ns``."""

    linktype: int
    snaplen: int
    multiplier: int
    divisor: int
    offset_ns: int


_STRUCTS: Final = {order: _Structs(order) for order in "<>"}


class Blocks:
    """The blocks of a pcapng file that is known to start with a Section Header Block.

    Args:
        buffer: its bytes.
        record_size_max: bytes of the largest record that is read.
        on_damage: called for each record over this limit, which is skipped; without it, reading ends there.

    Attributes:
        buffer: its bytes.
        number: the number of records read.
        order: the byte order of the section, for struct.
        interfaces: the interfaces that the section has described so far.
        record_size_max: bytes of the largest record that is read.
    """

    def __init__(
        self,
        buffer: Buffer,
        record_size_max: int = RECORD_SIZE_MAX,
        on_damage: ReportDamage | None = None,
    ) -> None:
        self.buffer = buffer
        self.record_size_max, self._on_damage = record_size_max, on_damage
        self.number = 0
        self.order = "<"
        self.interfaces: list[Interface] = []

    @property
    def block_size_max(self) -> int:
        """Bytes of the largest block that is read."""
        return self.record_size_max + OPTIONS_SIZE_MAX

    def read_block(self) -> Record | None:
        """Read the next block, which must exist; return its record, or None for other blocks.

        Raises:
            CaptureError: the block is cut off or damaged.
        """
        buffer, structs, interfaces = self.buffer, _STRUCTS[self.order], self.interfaces
        if not buffer.fill(12):
            raise buffer.cut("a block")
        if buffer.data[buffer.at : buffer.at + 4] == MAGIC:
            order = _BYTE_ORDERS.get(buffer.data[buffer.at + 8 : buffer.at + 12])
            if order is None:
                raise buffer.error("a section header without a byte-order magic")
            structs, interfaces = _STRUCTS[order], []
            self.order, self.interfaces = order, interfaces
        kind, size = structs.block.unpack_from(buffer.data, buffer.at)
        if size % 4 or size < 12:
            raise buffer.error(f"a block with the length {size}")
        if kind not in _READ:
            _skip(buffer, structs, size)
            return None
        if size > self.block_size_max:
            error = buffer.error(
                f"a block of {counted(size, 'byte')}, over the limit of {self.block_size_max:,}"
            )
            if self._on_damage is None or kind not in _WITH_RECORD:
                raise error
            _skip(buffer, structs, size)
            self._on_damage(error)
            self.number += 1
            return None
        if not buffer.fill(size):
            raise buffer.cut("a block")
        data, at = buffer.data, buffer.at
        end = at + size - 4
        if structs.uint32.unpack_from(data, end)[0] != size:
            raise buffer.error("a block whose two lengths differ")
        if kind == ENHANCED_PACKET and size >= 32:
            interface, high, low, captured, length = structs.enhanced.unpack_from(data, at)
            at += 28
        elif kind == PACKET and size >= 32:
            interface, _, high, low, captured, length = structs.packet.unpack_from(data, at)
            at += 28
        elif kind == SIMPLE_PACKET and size >= 16:
            interface = high = low = 0
            (length,) = structs.simple.unpack_from(data, at)
            at += 12
            captured = min(length, end - at, (interfaces[0].snaplen or length) if interfaces else length)
        elif kind == SECTION_HEADER and size >= 28:
            if (major := structs.version.unpack_from(data, at)[0]) != 1:
                raise buffer.error(f"version {major} of the pcapng format is not known")
            buffer.at += size
            return None
        elif kind == INTERFACE_DESCRIPTION and size >= 20:
            if len(interfaces) == INTERFACES_MAX:
                raise buffer.error(f"more than {INTERFACES_MAX} interfaces in a section")
            interfaces.append(_interface(data[at:end], structs))
            buffer.at += size
            return None
        else:
            raise buffer.error(f"a block of type {kind} with the length {size}")
        if interface >= len(interfaces):
            raise buffer.error(f"a packet of interface {interface}, which is not described")
        linktype, snaplen, multiplier, divisor, offset_ns = interfaces[interface]
        if captured > end - at or captured > record_limit(snaplen, self.record_size_max):
            error = buffer.error(f"a packet of {counted(captured, 'byte')} in a block of {size:,}")
            if self._on_damage is None or captured <= self.record_size_max:
                raise error
            self._on_damage(error)
            self.number += 1
            buffer.at += size
            return None
        self.number += 1
        if kind == SIMPLE_PACKET:
            time_ns = NO_TIME
        else:
            time_ns = representable((high << 32 | low) * multiplier // divisor + offset_ns)
        buffer.at += size
        return Record(
            buffer.file, self.number, time_ns, linktype, data[at : at + captured], length, interface
        )


def records(blocks: Blocks) -> Iterator[Record]:
    """Yield the records of a pcapng file from the position of its buffer on.

    Raises:
        CaptureError: after the last complete record, for a file that is cut off or damaged.
    """
    while not blocks.buffer.ended():
        record = blocks.read_block()
        if record is not None:
            yield record


def _skip(buffer: Buffer, structs: _Structs, size: int) -> None:
    start = buffer.start + buffer.at
    if not buffer.skip(size - 4) or not buffer.fill(4):
        raise buffer.cut("a block", offset=start)
    if structs.uint32.unpack_from(buffer.data, buffer.at)[0] != size:
        raise buffer.error("a block whose two lengths differ", offset=start)
    buffer.at += 4


def _interface(block: bytes, structs: _Structs) -> Interface:
    linktype, _, snaplen = structs.interface.unpack_from(block, 0)
    resolution, offset, at = 6, 0, 16
    while at + 4 <= len(block):
        code, size = structs.option.unpack_from(block, at)
        value = block[at + 4 : at + 4 + size]
        at += 4 + size + -size % 4
        if code == _IF_TSRESOL and len(value) == 1:
            resolution = value[0]
        elif code == _IF_TSOFFSET and len(value) == 8:
            (offset,) = structs.int64.unpack(value)
        elif code == 0:
            break
    divisor = 1 << (resolution & 0x7F) if resolution & 0x80 else 10**resolution
    common = gcd(1_000_000_000, divisor)
    return Interface(linktype, snaplen, 1_000_000_000 // common, divisor // common, offset * 1_000_000_000)
