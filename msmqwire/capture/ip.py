"""Decoding of frames to the TCP segments, UDP datagrams and PGM packets they carry, over IPv4 and IPv6.

Checksums are not verified: a machine that captures its own traffic sees packets before the network card
has filled them in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from ipaddress import IPv4Address, IPv6Address
from struct import Struct
from typing import Final, Literal, NamedTuple

from msmqwire.capture import links, not_read
from msmqwire.capture.fragments import Fragments, FragmentStore, ReassembledDatagram
from msmqwire.capture.icmp import ICMP, ICMP_6, quoted_segment
from msmqwire.capture.record import Record
from msmqwire.capture.segment_buffer import Segment

ADDRESSES_MAX: Final = 1 << 16
"""Addresses whose text is cached; the cache is cleared when it is full."""
EXTENSIONS_MAX: Final = 16
"""Extension headers of an IPv6 packet that are skipped to reach its payload."""

FIN, SYN, RST, PSH, ACK, URG = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20

_TCP, _UDP, _PGM, _AH, _FRAGMENT = 6, 17, 113, 51, 44
_PGM_HEADER_SIZE: Final = 16  # RFC 3208 section 8
_OPTIONS: Final = (0, 43, 60, 135, 139, 140)  # hop-by-hop, routing, destination, mobility, HIP, shim6
_IPV4_TCP: Final = Struct("!BxHHHxBxx4s4sHHIIBB").unpack_from
_IPV4: Final = Struct("!BxHHHxBxx4s4s").unpack_from
_IPV6: Final = Struct("!4xHBx16s16s").unpack_from
_TCP_HEADER: Final = Struct("!HHIIBB").unpack_from
_UDP_HEADER: Final = Struct("!HHH").unpack_from
_PORTS: Final = Struct("!HH").unpack_from

Transport = Literal["tcp", "udp", "pgm"]
"""How a payload travels over IP: ``pgm`` is protocol 113, not PGM in UDP datagrams."""


class Datagram(NamedTuple):
    """A TCP segment, a UDP datagram or a PGM packet.

    Attributes:
        transport: ``tcp``, ``udp`` or ``pgm``.
        src: the source address, as text (IPv6 in its shortest form).
        src_port: the source port.
        dst: the destination address.
        dst_port: the destination port.
        time_ns: when it was captured, nanoseconds since 1970-01-01 UTC; of the fragment that
            completed it, if it was fragmented.
        frames: the numbers of the frames that carried it.
        file: the name of their file.
        payload: the bytes after the TCP or UDP header, as far as they were captured; with PGM, where the
            ports stand in the same place, the whole packet.
        missing: how many more bytes of payload the capture cut off.
        seq: the TCP sequence number; 0 without TCP, like the next two.
        ack: the TCP acknowledgement number.
        flags: the low eight TCP flags: FIN, SYN, RST, PSH, ACK, URG, ECE, CWR from bit 0.
    """

    transport: Transport
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
    """Decodes records, in capture order, to datagrams. Never raises on their content.

    Attributes:
        ignored: how many records yielded nothing, by reason: ``unknown-link`` (an unknown link type),
            ``not-ip``, ``cut`` (before the end of the TCP, UDP or PGM header), ``bad-ip``, ``bad-tcp``,
            ``bad-udp``, ``bad-pgm`` (inconsistent headers), ``other-protocol``, ``bad-fragment``,
            ``fragment-timeout`` and ``fragment-limit`` (fragments of a datagram that was never completed).
            Fragments of a datagram that is still incomplete are not counted.
        not_read: how many frames were not read though packets of interest may be in them, by reason; without
            those counted in `ignored` too: see `frames_not_read`.
        fragments: the incomplete datagrams.
        on_unreachable: called with the endpoints and the sequence number of each TCP segment that ICMP says
            could not be delivered; None if nobody asks.
    """

    def __init__(self) -> None:
        self.ignored: Counter[str] = Counter()
        self.not_read: Counter[str] = Counter()
        self._ignored_before: Counter[str] = Counter()
        self.fragments: FragmentStore = Fragments(self.ignored)
        self.on_unreachable: Callable[[tuple[str, int, str, int], int], None] | None = None
        self._texts: dict[bytes, str] = {}

    def feed(self, record: Record) -> Iterator[Datagram]:
        """Yield the datagram that a record completes, if any."""
        datagram = self.decode(record)
        return iter(()) if datagram is None else iter((datagram,))

    def decode(self, record: Record) -> Datagram | None:
        """Return the datagram that a record completes, if any: a faster ``feed``."""
        file, number, time_ns, linktype, data, _, _ = record
        if linktype == 1 and data[12:15] == b"\x08\x00\x45" and len(data) >= 54:
            # Fast path: IPv4 without options on Ethernet without tags.
            (
                _, total, _, fragment_field, protocol, src, dst, src_port, dst_port, seq, ack, header, flags
            ) = _IPV4_TCP(data, 14)  # fmt: skip
            start, end = 34 + (header >> 4) * 4, 14 + total
            if protocol == _TCP and not fragment_field & 0x3FFF and 54 <= start <= end <= len(data):
                texts = self._texts
                source, target = texts.get(src) or self._text(src), texts.get(dst) or self._text(dst)
                return Datagram._make((
                    "tcp", source, src_port, target, dst_port,
                    time_ns, (number,), file, data[start:end], 0, seq, ack, flags,
                ))  # fmt: skip
        ip_start = links.ip_offset(linktype, data)
        if ip_start < 0:
            result: Datagram | str | None = _NO_IP[ip_start]
            self._note_no_ip(ip_start, linktype, data)
        elif data[ip_start] >> 4 == 4:
            result = self._ipv4(record, ip_start)
        else:
            result = self._ipv6(record, ip_start)
        return self._counted(result)

    def frames_not_read(self) -> Counter[str]:
        """Return how many frames were not read though packets of interest may be in them, by reason."""
        counts = Counter(self.not_read)
        for name, reason in _NOT_READ.items():
            counts[reason] += self.ignored[name] - self._ignored_before[name]
        return +counts

    def count_anew(self) -> None:
        """Forget what was not read: another reader has counted it."""
        self.not_read.clear()
        self._ignored_before = Counter(self.ignored)

    def end(self) -> None:
        """Count the frames of datagrams that are incomplete at the end of the capture."""
        self.not_read[not_read.INCOMPLETE] += self.fragments.frames()

    def finish(self, record: Record, reassembled: ReassembledDatagram) -> Datagram | None:
        """Return the datagram that a record completes, whose fragments another has put together.

        Only options may be between the IP header and what is IPv4's payload, and nothing before the fragment
        header of IPv6.
        """
        ip_start = links.ip_offset(record.linktype, record.data)
        if record.data[ip_start] >> 4 == 4:
            *_, src, dst = _IPV4(record.data, ip_start)
            return self._counted(self._of_ipv4(record, src, dst, reassembled))
        *_, src, dst = _IPV6(record.data, ip_start)
        return self._counted(self._of_ipv6(record, src, dst, reassembled, 1))

    def _note_no_ip(self, ip_start: int, linktype: int, data: bytes) -> None:
        """Count a frame in which there is no IP, unless it is another program's."""
        if ip_start == links.UNKNOWN_LINK:
            self.not_read[not_read.link_reason(linktype)] += 1
        elif ip_start == links.NOT_IP and (reason := not_read.of_frame(linktype, data)):
            self.not_read[reason] += 1

    def _note_unreachable(self, protocol: int, src: bytes, message: bytes) -> None:
        """Tell of the TCP segment that a message quotes, if it is one of ICMP."""
        if protocol != (ICMP if len(src) == 4 else ICMP_6) or self.on_unreachable is None:
            return
        quoted = quoted_segment(protocol, message)
        if quoted is not None:
            ends = self._text(quoted.src), quoted.src_port, self._text(quoted.dst), quoted.dst_port
            self.on_unreachable(ends, quoted.seq)

    def _note(self, reason: int | None, frames: tuple[int, ...]) -> None:
        """Count the frames of a datagram whose content is not read, for a reason by its index."""
        if reason is not None:
            self.not_read[not_read.REASONS[reason]] += len(frames)

    def _counted(self, result: Datagram | str | None) -> Datagram | None:
        """Return a datagram, or count the reason to ignore its record."""
        if isinstance(result, str):
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

    def _ipv4(self, record: Record, ip_start: int) -> Datagram | str | None:
        data = record.data
        if len(data) < ip_start + 20:
            return "cut"
        version_ihl, total, ident, fragment_field, protocol, src, dst = _IPV4(data, ip_start)
        start = ip_start + (version_ihl & 15) * 4
        # Segmentation offload leaves the total length of sent packets 0.
        end = ip_start + total if total else max(record.length, len(data))
        if start < ip_start + 20 or end < start:
            return "bad-ip"
        payload, size = data[start:end], end - start
        frames: tuple[int, ...] = (record.number,)
        if fragment_field & 0x3FFF:
            offset = (fragment_field & 0x1FFF) * 8
            fragment = Segment(offset, offset + size, payload, record.time_ns, record.number)
            reassembled = self.fragments.add(
                (src, dst, protocol, ident),
                fragment,
                more=bool(fragment_field & 0x2000),
                next_header=protocol,
            )
            if reassembled is None:
                return None
            return self._of_ipv4(record, src, dst, reassembled)
        return self._of_ipv4(record, src, dst, ReassembledDatagram(protocol, payload, size, frames))

    def _of_ipv4(
        self, record: Record, src: bytes, dst: bytes, reassembled: ReassembledDatagram
    ) -> Datagram | str:
        """Return the datagram in the payload of a whole IPv4 packet."""
        protocol, payload, size, frames = reassembled
        if protocol == _AH:
            if len(payload) < 12:
                return "cut" if size >= 12 else "bad-ip"
            protocol, skip = payload[0], (payload[1] + 2) * 4
            if skip > size:
                return "bad-ip"
            payload, size = payload[skip:], size - skip
        return self._transport(record, protocol, src, dst, payload, size, frames)

    def _ipv6(self, record: Record, ip_start: int) -> Datagram | str | None:
        data = record.data
        if len(data) < ip_start + 40:
            return "cut"
        total, header, src, dst = _IPV6(data, ip_start)
        start = ip_start + 40
        # 0 means a jumbogram, or segmentation offload.
        end = start + total if total else max(record.length, len(data))
        whole = ReassembledDatagram(header, data[start:end], end - start, (record.number,))
        return self._of_ipv6(record, src, dst, whole, 0)

    def _of_ipv6(
        self, record: Record, src: bytes, dst: bytes, reassembled: ReassembledDatagram, passed: int
    ) -> Datagram | str | None:
        """Return the datagram in the payload of an IPv6 packet, behind so many extension headers.

        If there are any, the last one was that of a fragment, and the payload is that of the whole packet.
        """
        header, payload, size, frames = reassembled
        offset = 0
        for number in range(passed, EXTENSIONS_MAX):
            if header not in _OPTIONS and header not in (_AH, _FRAGMENT):
                return self._transport(record, header, src, dst, payload[offset:], size - offset, frames)
            if offset + 8 > len(payload):
                return "cut" if offset + 8 <= size else "bad-ip"
            next_header, word = payload[offset], int.from_bytes(payload[offset + 2 : offset + 4], "big")
            if header == _FRAGMENT:
                ident = payload[offset + 4 : offset + 8]
                offset += 8
                if word & 0xFFF9:  # otherwise an atomic fragment, a complete datagram, RFC 6946
                    if passed:
                        return "bad-ip"
                    start, end = word & 0xFFF8, (word & 0xFFF8) + size - offset
                    fragment = Segment(start, end, payload[offset:], record.time_ns, record.number)
                    joined = self.fragments.add(
                        (src, dst, ident), fragment, more=bool(word & 1), next_header=next_header
                    )
                    return joined and self._of_ipv6(record, src, dst, joined, number + 1)
            elif header == _AH:
                offset += (payload[offset + 1] + 2) * 4
            else:
                offset += (payload[offset + 1] + 1) * 8
            header = next_header
            if offset > size:
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
        """Return the datagram in an IP payload of ``size`` bytes, of which ``data`` were captured."""
        if protocol == _TCP:
            if len(data) < 14:
                return "cut" if size >= 20 else "bad-tcp"
            src_port, dst_port, seq, ack, header, flags = _TCP_HEADER(data, 0)
            start, end = (header >> 4) * 4, size
            if start < 20 or start > size:
                return "bad-tcp"
            transport: Transport = "tcp"
        elif protocol == _UDP:
            if len(data) < 8:
                return "cut" if size >= 8 else "bad-udp"
            src_port, dst_port, end = _UDP_HEADER(data, 0)
            start, end = 8, end or size
            if end < 8 or end > size:
                return "bad-udp"
            transport, seq, ack, flags = "udp", 0, 0, 0
        elif protocol == _PGM:
            if len(data) < _PGM_HEADER_SIZE:
                return "cut" if size >= _PGM_HEADER_SIZE else "bad-pgm"
            src_port, dst_port = _PORTS(data, 0)
            start, end = 0, size
            transport, seq, ack, flags = "pgm", 0, 0, 0
        else:
            self._note(not_read.PROTOCOLS.get(protocol), frames)
            if self.on_unreachable is not None and len(frames) == 1:
                self._note_unreachable(protocol, src, data)
            return "other-protocol"
        payload = data[start:end]
        if protocol == _UDP and (dst_port in not_read.TUNNEL_PORTS or src_port == not_read.TEREDO_PORT):
            self._note(not_read.of_udp(src_port, dst_port, payload, end - start), frames)
        return Datagram(
            transport, self._text(src), src_port, self._text(dst), dst_port,
            record.time_ns, frames, record.file, payload, end - start - len(payload), seq, ack, flags,
        )  # fmt: skip


_NOT_READ: Final = {
    "cut": not_read.CUT,
    **dict.fromkeys(("bad-ip", "bad-tcp", "bad-udp", "bad-pgm"), not_read.CONTRADICTORY),
    **dict.fromkeys(("bad-fragment", "fragment-timeout", "fragment-limit"), not_read.INCOMPLETE),
}
"""Entries of `IpDecoder.ignored` as reasons."""
_NO_IP: Final = {links.NOT_IP: "not-ip", links.CUT: "cut", links.UNKNOWN_LINK: "unknown-link"}
