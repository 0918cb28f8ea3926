"""Frames to capture files, for tests: pcap and pcapng in all their variants."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.support.installed import library

if TYPE_CHECKING:
    from tests.support.captures import Segment

START_NS = 1_700_000_000_123_456_789
STEP_NS = 1_000_000


@dataclass(frozen=True)
class Frame:
    """A frame as on the wire, with its time in ns since the epoch, and its TCP segment."""

    time_ns: int
    data: bytes
    segment: Segment | None = None


def timed(frames: Iterable[Frame | bytes]) -> Iterator[Frame]:
    """Frames with a time each: bytes alone get the next millisecond from START_NS on."""
    for number, frame in enumerate(frames):
        yield Frame(START_NS + number * STEP_NS, frame) if isinstance(frame, bytes) else frame


def pcap_bytes(
    frames: Iterable[Frame | bytes],
    *,
    byteorder: str = "<",
    nanoseconds: bool = False,
    modified: bool = False,
    linktype: int = 1,
    snaplen: int = 0x40000,
) -> bytes:
    """A pcap file; frames longer than the snaplen are cut. ``modified`` is Kuznetsov's variant."""
    magic = 0xA1B23C4D if nanoseconds else 0xA1B2CD34 if modified else 0xA1B2C3D4
    parts = [struct.pack(byteorder + "IHHiIII", magic, 2, 4, 0, 0, snaplen, linktype)]
    for frame in timed(frames):
        seconds, rest = divmod(frame.time_ns, 1_000_000_000)
        data = frame.data[:snaplen]
        fraction = rest if nanoseconds else rest // 1000
        parts.append(struct.pack(byteorder + "IIII", seconds, fraction, len(data), len(frame.data)))
        parts.append(struct.pack(byteorder + "IHBx", 1, 0x0800, 0) if modified else b"")
        parts.append(data)
    return b"".join(parts)


@dataclass
class PcapNg:
    """Blocks of a pcapng file in one byte order: ``PcapNg(">").section().interface().packet(frame).data``."""

    byteorder: str = "<"
    data: bytes = b""
    interfaces: list[tuple[int, int, int]] = field(default_factory=list)  # tsresol, tsoffset, snaplen

    def block(self, kind: int, body: bytes) -> PcapNg:
        body = body.ljust(len(body) + -len(body) % 4, b"\0")
        size = struct.pack(self.byteorder + "I", len(body) + 12)
        self.data += struct.pack(self.byteorder + "I", kind) + size + body + size
        return self

    def option(self, code: int, value: bytes) -> bytes:
        return struct.pack(self.byteorder + "HH", code, len(value)) + value.ljust(
            len(value) + -len(value) % 4, b"\0"
        )  # fmt: skip

    def section(self) -> PcapNg:
        self.interfaces = []
        return self.block(0x0A0D0D0A, struct.pack(self.byteorder + "IHHq", 0x1A2B3C4D, 1, 0, -1))

    def interface(
        self, linktype: int = 1, *, tsresol: int = 6, tsoffset: int = 0, snaplen: int = 0
    ) -> PcapNg:
        """``tsresol`` is the byte of the option: digits, or 0x80 and bits; ``tsoffset`` is in seconds."""
        self.interfaces.append((tsresol, tsoffset, snaplen))
        options = self.option(2, b"eth0")
        if tsresol != 6:
            options += self.option(9, bytes([tsresol]))
        if tsoffset:
            options += self.option(14, struct.pack(self.byteorder + "q", tsoffset))
        head = struct.pack(self.byteorder + "HHI", linktype, 0, snaplen)
        return self.block(1, head + options + self.option(0, b""))

    def _ticks(self, frame: Frame, interface: int) -> tuple[int, int]:
        tsresol, tsoffset, _ = self.interfaces[interface]
        per_second = 1 << (tsresol & 0x7F) if tsresol & 0x80 else 10**tsresol
        ticks = (frame.time_ns - tsoffset * 1_000_000_000) * per_second // 1_000_000_000
        return ticks >> 32, ticks & 0xFFFFFFFF

    def _cut(self, frame: Frame, interface: int) -> bytes:
        snaplen = self.interfaces[interface][2]
        return frame.data[:snaplen] if snaplen else frame.data

    def packet(self, frame: Frame, interface: int = 0, options: bytes = b"") -> PcapNg:
        """An Enhanced Packet Block."""
        data = self._cut(frame, interface)
        head = (interface, *self._ticks(frame, interface), len(data), len(frame.data))
        padded = data.ljust(len(data) + -len(data) % 4, b"\0")
        return self.block(6, struct.pack(self.byteorder + "IIIII", *head) + padded + options)

    def simple_packet(self, frame: Frame) -> PcapNg:
        """A Simple Packet Block, which has no time and belongs to interface 0."""
        return self.block(3, struct.pack(self.byteorder + "I", len(frame.data)) + self._cut(frame, 0))

    def old_packet(self, frame: Frame, interface: int = 0) -> PcapNg:
        """An obsolete Packet Block."""
        data = self._cut(frame, interface)
        head = (interface, 0, *self._ticks(frame, interface), len(data), len(frame.data))
        return self.block(2, struct.pack(self.byteorder + "HHIIII", *head) + data)


def pcapng_bytes(
    frames: Iterable[Frame | bytes],
    *,
    byteorder: str = "<",
    linktype: int = 1,
    tsresol: int = 9,
    tsoffset: int = 0,
    snaplen: int = 0,
) -> bytes:
    """A pcapng file of one section with one interface; frames longer than a snaplen other than 0 are cut."""
    file = PcapNg(byteorder).section()
    file.interface(linktype, tsresol=tsresol, tsoffset=tsoffset, snaplen=snaplen)
    blocks = [file.data]
    for frame in timed(frames):
        file.data = b""
        blocks.append(file.packet(frame).data)
    return b"".join(blocks)


def zstd(data: bytes, **options: bool) -> bytes:
    """Pack with zstandard, where it is installed."""
    packed: bytes = library("zstandard").ZstdCompressor(**options).compress(data)
    return packed
