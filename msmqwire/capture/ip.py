"""Frames to the TCP segments and UDP datagrams they carry, over IPv4 and IPv6.

Checksums are not verified: a machine that captures its own traffic sees them before the network
card has filled them in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address
from struct import Struct
from typing import Final, Literal, NamedTuple

from msmqwire.capture import links
from msmqwire.capture.fragments import Fragments
from msmqwire.capture.record import Record
from msmqwire.capture.segment_buffer import Piece

ADDRESSES_MAX: Final = 1 << 16
"""Addresses whose text is remembered; the memory starts afresh when it is full."""
EXTENSIONS_MAX: Final = 16
"""Extension headers of an IPv6 packet that are passed on the way to its payload."""

FIN, SYN, RST, PSH, ACK, URG = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20

_TCP, _UDP, _AH, _FRAGMENT = 6, 17, 51, 44
_OPTIONS: Final = (0, 43, 60, 135, 139, 140)  # hop-by-hop, routing, destination, mobility, HIP, shim6
_IPV4_TCP: Final = Struct("!BxHHHxBxx4s4sHHIIBB").unpack_from
_IPV4: Final = Struct("!BxHHHxBxx4s4s").unpack_from
_IPV6: Final = Struct("!4xHBx16s16s").unpack_from
_TCP_HEADER: Final = Struct("!HHIIBB").unpack_from
_UDP_HEADER: Final = Struct("!HHH").unpack_from


class Datagram(NamedTuple):
    """A TCP segment or a UDP datagram.

    Attributes:
        transport: which of the two.
        src: the address it came from, as text (IPv6 in its shortest form).
        src_port: the port it came from.
        dst: the address it went to.
        dst_port: the port it went to.
        time_ns: when it was captured, nanoseconds since 1970-01-01 UTC; of the fragment that
            completed it, if it came in fragments.
        frames: the numbers of the frames it came in.
        file: the name of the file they stand in.
        payload: the bytes after the TCP or UDP header, as far as they were captured.
        missing: how many bytes of payload follow that the capture cut off.
        seq: the sequence number of TCP; 0 for UDP, as what follows.
        ack: the acknowledgement number of TCP.
        flags: the low eight flags of TCP: FIN, SYN, RST, PSH, ACK, URG, ECE, CWR from bit 0.
    """

    transport: Literal["tcp", "udp"]
    src: str
    src_port: int
    dst: str
    dst_port: int
    time_ns: int
    frames: tuple[int, ...]
    file: str
    payload: bytes
    missing: int
    seq: int
    ack: int
    flags: int


class IpDecoder:
    """Takes records in the order of the capture, gives datagrams, and never raises on their content.

    Attributes:
        ignored: how many records brought nothing, by reason: ``unknown-link`` (a link type that is
            not known), ``not-ip``, ``cut`` (before the end of the TCP or UDP header), ``bad-ip``,
            ``bad-tcp``, ``bad-udp`` (headers that contradict themselves), ``other-protocol``, and
            ``bad-fragment``, ``fragment-timeout``, ``fragment-limit`` (fragments whose datagram was
            never completed). Records with a fragment that still waits are in no count.
    """

    def __init__(self) -> None:
        self.ignored: Counter[str] = Counter()
        self._fragments = Fragments(self.ignored)
        self._texts: dict[bytes, str] = {}

    def feed(self, record: Record) -> Iterator[Datagram]:
        """The datagrams that the record completes: none or one."""
        datagram = self.decode(record)
        return iter(()) if datagram is None else iter((datagram,))

    def decode(self, record: Record) -> Datagram | None:
        """The datagram that the record completes, if any: ``feed`` for who wants it fast."""
        file, number, time_ns, linktype, data, _, _ = record
        if linktype == 1 and data[12:15] == b"\x08\x00\x45" and len(data) >= 54:
            # The common case, of IPv4 without options on Ethernet without tags, in one go.
            (
                _, total, _, part, protocol, src, dst, src_port, dst_port, seq, ack, header, flags
            ) = _IPV4_TCP(data, 14)  # fmt: skip
            start, end = 34 + (header >> 4) * 4, 14 + total
            if protocol == _TCP and not part & 0x3FFF and 54 <= start <= end <= len(data):
                texts = self._texts
                source, target = texts.get(src) or self._text(src), texts.get(dst) or self._text(dst)
                return Datagram._make((
                    "tcp", source, src_port, target, dst_port,
                    time_ns, (number,), file, data[start:end], 0, seq, ack, flags,
                ))  # fmt: skip
        at = links.ip_offset(linktype, data)
        if at < 0:
            result: Datagram | str | None = _NO_IP[at]
        elif data[at] >> 4 == 4:
            result = self._ipv4(record, at)
        else:
            result = self._ipv6(record, at)
        if isinstance(result, str):  # the reason why there is none
            self.ignored[result] += 1
            return None
        return result

    def _text(self, address: bytes) -> str:
        text = self._texts.get(address)
        if text is None:
            if len(self._texts) >= ADDRESSES_MAX:
                self._texts.clear()
            text = str(IPv4Address(address) if len(address) == 4 else IPv6Address(address))
            self._texts[address] = text
        return text

    def _ipv4(self, record: Record, at: int) -> Datagram | str | None:
        data = record.data
        if len(data) < at + 20:
            return "cut"
        first, total, ident, part, protocol, src, dst = _IPV4(data, at)
        start = at + (first & 15) * 4
        # Segmentation offload leaves 0 in the total length of what is sent.
        end = at + total if total else max(record.length, len(data))
        if start < at + 20 or end < start:
            return "bad-ip"
        payload, size = data[start:end], end - start
        frames: tuple[int, ...] = (record.number,)
        if part & 0x3FFF:
            place = (part & 0x1FFF) * 8
            piece = Piece(place, place + size, payload, record.time_ns, record.number)
            whole = self._fragments.add(
                (src, dst, protocol, ident), piece, more=bool(part & 0x2000), next_header=protocol
            )
            if whole is None:
                return None
            _, payload, size, frames = whole
        if protocol == _AH:
            if len(payload) < 12:
                return "cut" if size >= 12 else "bad-ip"
            protocol, skip = payload[0], (payload[1] + 2) * 4
            if skip > size:
                return "bad-ip"
            payload, size = payload[skip:], size - skip
        return self._transport(record, protocol, src, dst, payload, size, frames)

    def _ipv6(self, record: Record, at: int) -> Datagram | str | None:
        data = record.data
        if len(data) < at + 40:
            return "cut"
        total, header, src, dst = _IPV6(data, at)
        start = at + 40
        # 0 stands for a jumbogram, or for segmentation offload.
        end = start + total if total else max(record.length, len(data))
        payload, size = data[start:end], end - start
        frames: tuple[int, ...] = (record.number,)
        place, fragmented = 0, False
        for _ in range(EXTENSIONS_MAX):
            if header not in _OPTIONS and header not in (_AH, _FRAGMENT):
                return self._transport(record, header, src, dst, payload[place:], size - place, frames)
            if place + 8 > len(payload):
                return "cut" if place + 8 <= size else "bad-ip"
            following, word = payload[place], int.from_bytes(payload[place + 2 : place + 4], "big")
            if header == _FRAGMENT:
                ident = payload[place + 4 : place + 8]
                place += 8
                if word & 0xFFF9:  # else a whole datagram in an atomic fragment, RFC 6946
                    if fragmented:
                        return "bad-ip"
                    start, end = word & 0xFFF8, (word & 0xFFF8) + size - place
                    piece = Piece(start, end, payload[place:], record.time_ns, record.number)
                    whole = self._fragments.add(
                        (src, dst, ident), piece, more=bool(word & 1), next_header=following
                    )
                    if whole is None:
                        return None
                    following, payload, size, frames = whole
                    place, fragmented = 0, True
            elif header == _AH:
                place += (payload[place + 1] + 2) * 4
            else:
                place += (payload[place + 1] + 1) * 8
            header = following
            if place > size:
                return "bad-ip"
        return "bad-ip"

    def _transport(
        self,
        record: Record,
        protocol: int,
        src: bytes,
        dst: bytes,
        data: bytes,
        size: int,
        frames: tuple[int, ...],
    ) -> Datagram | str:
        """The datagram in an IP payload that had ``size`` bytes, of which there are ``data``."""
        if protocol == _TCP:
            if len(data) < 14:
                return "cut" if size >= 20 else "bad-tcp"
            src_port, dst_port, seq, ack, header, flags = _TCP_HEADER(data, 0)
            start, end = (header >> 4) * 4, size
            if start < 20 or start > size:
                return "bad-tcp"
            transport: Literal["tcp", "udp"] = "tcp"
        elif protocol == _UDP:
            if len(data) < 8:
                return "cut" if size >= 8 else "bad-udp"
            src_port, dst_port, end = _UDP_HEADER(data, 0)
            start, end = 8, end or size
            if end < 8 or end > size:
                return "bad-udp"
            transport, seq, ack, flags = "udp", 0, 0, 0
        else:
            return "other-protocol"
        payload = data[start:end]
        return Datagram(
            transport, self._text(src), src_port, self._text(dst), dst_port,
            record.time_ns, frames, record.file, payload, end - start - len(payload), seq, ack, flags,
        )  # fmt: skip


_NO_IP: Final = {links.NOT_IP: "not-ip", links.CUT: "cut", links.UNKNOWN_LINK: "unknown-link"}
