"""Decoding of frames to the TCP segments, UDP datagrams and PGM packets they carry, over IPv4 and IPv6.

Of packets in tunnels the inner ones are decoded: see `msmqwire.capture.tunnels`.

Checksums are not verified: a machine that captures its own traffic sees packets before the network card
has filled them in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from ipaddress import IPv4Address, IPv6Address
from struct import Struct
from typing import Final, Literal, NamedTuple

from msmqwire.capture import links, not_read, tunnels, wifi
from msmqwire.capture.fragments import FragmentKey, Fragments, FragmentStore, ReassembledDatagram
from msmqwire.capture.icmp import ICMP, ICMP_6, quoted_segment
from msmqwire.capture.record import Record
from msmqwire.capture.segment_buffer import Segment

ADDRESSES_MAX: Final = 1 << 16
"""Addresses whose text is cached; the cache is cleared when it is full."""
PATHS_MAX: Final = 1 << 12
"""Paths of tunnels whose text is cached; likewise."""
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
"""The transport of a payload over IP: ``pgm`` is protocol 113, not PGM in UDP datagrams."""


FlowKey = tuple[str, int, str, int, int]
"""Source address and port, destination address and port, and the network in which they are."""


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
        missing: the number of bytes of payload that the capture cut off.
        seq: the TCP sequence number; 0 without TCP, like the next two.
        ack: the TCP acknowledgement number.
        flags: the low eight TCP flags: FIN, SYN, RST, PSH, ACK, URG, ECE, CWR from bit 0.
        network: a number for the network in which the addresses are, see `tunnels.network_of`; 0 outside of
            VXLAN, Geneve, and GRE with a key.
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
    network: int = 0

    @property
    def key(self) -> FlowKey:
        """Both endpoints, and the network in which they are."""
        return (*self[1:5], self.network)

    @property
    def encapsulation(self) -> tunnels.Encapsulation:
        """The tunnels in which it was, of the frame that completed it."""
        return tunnels.encapsulation_of(self.frames[-1])


_NO_PATH: Final = tunnels.Path()


class _Layer(NamedTuple):
    """The place of an IP packet in a capture.

    Attributes:
        record: the record of the frame that completed it.
        frames: the frames that carried it.
        path: the tunnels in which it is.
    """

    record: Record
    frames: tuple[int, ...]
    path: tunnels.Path = _NO_PATH

    def within(self, src: bytes, dst: bytes, frames: tuple[int, ...]) -> _Layer:
        """Return where something in the packet of IP is, by the packet's addresses and frames."""
        return _Layer(self.record, frames, self.path._replace(src=src, dst=dst))


class IpDecoder:
    """Decodes records, in capture order, to datagrams. Never raises on their content.

    Attributes:
        ignored: the number of records that yielded nothing, by reason: ``unknown-link`` (an unknown link
            type), ``not-ip``, ``cut`` (before the end of the TCP, UDP or PGM header), ``bad-ip``,
            ``bad-tcp``, ``bad-udp``, ``bad-pgm`` (inconsistent headers), ``other-protocol``,
            ``bad-fragment``, ``fragment-timeout`` and ``fragment-limit`` (fragments of a datagram that was
            never completed), ``too-deep`` (in more tunnels than are read). Fragments of a datagram that is
            still incomplete are not counted.
        not_read: the number of frames that were not read though packets of interest may be in them, by
            reason; without those counted in `ignored` too: see `frames_not_read`.
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
        self._paths: dict[tunnels.Path, tuple[tunnels.Encapsulation, int]] = {}
        # The next fragment as far as another reader has put it together.
        self._joined: ReassembledDatagram | None = None

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
                    time_ns, (number,), file, data[start:end], 0, seq, ack, flags, 0,
                ))  # fmt: skip
        layer, size = _Layer(record, (number,)), max(record.length, len(data))
        ip_start = links.ip_offset(linktype, data)
        if ip_start >= 0:
            return self._counted(self._ip(layer, data, ip_start, size))
        if ip_start == links.NOT_IP and linktype in links.WIFI_LINKS:
            return self._counted(self._of_wifi(layer, data, size))
        if ip_start == links.NOT_IP and (found := links.type_of(linktype, data)):
            return self._counted(self._of_type(layer, *found, data, size))
        if ip_start == links.UNKNOWN_LINK:
            self.not_read[not_read.link_reason(linktype)] += 1
        return self._counted(_NO_IP[ip_start])

    def frames_not_read(self) -> Counter[str]:
        """Return how many frames were not read though packets of interest may be in them, by reason."""
        counts = Counter(self.not_read)
        for name, reason in _NOT_READ.items():
            counts[reason] += self.ignored[name] - self._ignored_before[name]
        return +counts

    def count_anew(self) -> None:
        """Forget the frames not read: another reader has counted them."""
        self.not_read.clear()
        self._ignored_before = Counter(self.ignored)

    def end(self) -> None:
        """Count the frames of datagrams that are incomplete at the end of the capture."""
        self.not_read[not_read.INCOMPLETE] += self.fragments.frames()

    def finish(self, record: Record, reassembled: ReassembledDatagram) -> Datagram | None:
        """Return the datagram that a record completes; another has put its outermost fragments together."""
        self._joined = reassembled
        try:
            return self.decode(record)
        finally:
            self._joined = None

    def _add_fragment(
        self, key: FragmentKey, fragment: Segment, *, more: bool, next_header: int
    ) -> ReassembledDatagram | None:
        """Add a fragment; return the datagram if it is complete, or if another has completed it."""
        joined, self._joined = self._joined, None
        return joined or self.fragments.add(key, fragment, more=more, next_header=next_header)

    def _note_unreachable(self, protocol: int, src: bytes, message: bytes) -> None:
        """Tell of the TCP segment that a message quotes, if it is one of ICMP."""
        if protocol != (ICMP if len(src) == 4 else ICMP_6) or self.on_unreachable is None:
            return
        quoted = quoted_segment(protocol, message)
        if quoted is not None:
            ends = self._text(quoted.src), quoted.src_port, self._text(quoted.dst), quoted.dst_port
            self.on_unreachable(ends, quoted.seq)

    def _note(self, reason: str | None, frames: tuple[int, ...]) -> None:
        """Count the frames of a datagram whose content is not read, for a reason."""
        if reason is not None:
            self.not_read[reason] += len(frames)

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

    def _known(self, path: tunnels.Path) -> tuple[tunnels.Encapsulation, int]:
        """Return the values of rows for a path of tunnels, and the network in it."""
        if not path.names:
            return tunnels.PLAIN, 0
        known = self._paths.get(path)
        if known is None:
            if len(self._paths) >= PATHS_MAX:
                self._paths.clear()
            known = self._paths[path] = path.encapsulation(), path.network()
        return known

    def _of_wifi(self, layer: _Layer, data: bytes, size: int) -> Datagram | str | None:
        """Return the datagram in a frame of IEEE 802.11."""
        found = wifi.content(layer.record.linktype, data)
        if isinstance(found, tuple):
            return self._of_type(layer, *found, data, size)
        self._note(found, layer.frames)
        return "unknown-link" if found == not_read.link_reason(layer.record.linktype) else "not-ip"

    # -- tunnels ------------------------------------------------------------------------------------

    def _of_type(
        self, layer: _Layer, ethertype: int, at: int, data: bytes, size: int
    ) -> Datagram | str | None:
        """Return the datagram in the payload of an EtherType, at an offset in bytes that may be cut off.

        A frame of IEEE 802.3 has its length in place of the EtherType.
        """
        if ethertype < not_read.LENGTHS and tunnels.snap(data[at : at + 8]):
            ethertype, at = links.type_after(data, at + 6, at + 8)
        if ethertype in links.IP_TYPES:
            return self._ip(layer, data, at, size, 4 if ethertype == links.IP_TYPES[0] else 6)
        content, size = data[at:], size - at
        if ethertype in tunnels.MPLS_TYPES:
            return self._carried(layer, tunnels.mpls(content, size), content, size)
        if ethertype == tunnels.PPPOE_TYPE:
            return self._carried(layer, tunnels.pppoe(content), content, size)
        if ethertype == tunnels.PPP_TYPE:
            reason = not_read.link_reason(layer.record.linktype)
            if layer.path.names:
                reason = not_read.REASONS[not_read.GRE]
            return self._carried(layer, tunnels.ppp(content, reason), content, size)
        self._note(not_read.of_type(ethertype, data, at), layer.frames)
        return "not-ip"

    def _carried(
        self, layer: _Layer, carried: tunnels.Carried | tunnels.Unread, data: bytes, size: int
    ) -> Datagram | str | None:
        """Return the datagram in the payload of a tunnel, or count the reason if it is not read."""
        if not isinstance(carried, tunnels.Carried):
            self._note(carried, layer.frames)
            return "not-ip"
        ethertype, at, name, numbers = carried
        if name:
            layer = layer._replace(path=layer.path.within(name, numbers))
            if len(layer.path.names) > tunnels.DEPTH_MAX:
                self._note(not_read.TOO_DEEP, layer.frames)
                return "too-deep"
        if ethertype == tunnels.ETHERNET_TYPE:
            if len(data) < at + 14:
                self._note(not_read.CUT if size >= at + 14 else not_read.CONTRADICTORY, layer.frames)
                return "not-ip"
            ethertype, at = links.type_after(data, at + 12, at + 14)
            if ethertype < 0:
                self._note(not_read.CUT, layer.frames)
                return "not-ip"
        return self._of_type(layer, ethertype, at, data, size)

    def _in_ip(
        self, layer: _Layer, protocol: int, address_size: int, data: bytes, size: int
    ) -> Datagram | str | None:
        """Return the datagram in a tunnel that is the payload of an IP packet."""
        if protocol == tunnels.GRE:
            return self._carried(layer, tunnels.gre(data, size), data, size)
        if protocol == tunnels.MPLS:
            return self._carried(layer, tunnels.mpls(data, size), data, size)
        name = tunnels.NAMES[4 if address_size == 4 else 6, protocol]
        ethertype = links.IP_TYPES[protocol == tunnels.IP_6]
        return self._carried(layer, tunnels.Carried(ethertype, 0, name), data, size)

    # -- IP -----------------------------------------------------------------------------------------

    def _ip(
        self, layer: _Layer, data: bytes, at: int, size: int, version: int | None = None
    ) -> Datagram | str | None:
        """Return the datagram in the IP packet at an offset; ``version`` is that of the header before it.

        ``size`` is how many bytes there were, of which ``data`` was captured.
        """
        if at >= len(data):
            self._note(not_read.CUT if at < size else not_read.CONTRADICTORY, layer.frames)
            return "not-ip"
        found = data[at] >> 4
        if found not in (4, 6) or found != (version or found):
            self._note(not_read.CONTRADICTORY, layer.frames)
            return "not-ip"
        return self._ipv4(layer, data, at, size) if found == 4 else self._ipv6(layer, data, at, size)

    def _ipv4(self, layer: _Layer, data: bytes, ip_start: int, available: int) -> Datagram | str | None:
        record = layer.record
        if len(data) < ip_start + 20:
            return "cut"
        version_ihl, total, ident, fragment_field, protocol, src, dst = _IPV4(data, ip_start)
        start = ip_start + (version_ihl & 15) * 4
        # Segmentation offload leaves the total length of sent packets 0.
        end = ip_start + total if total else available
        if start < ip_start + 20 or end < start:
            return "bad-ip"
        payload, size = data[start:end], end - start
        if fragment_field & 0x3FFF:
            offset = (fragment_field & 0x1FFF) * 8
            fragment = Segment(offset, offset + size, payload, record.time_ns, record.number)
            reassembled = self._add_fragment(
                (src, dst, protocol, ident, self._known(layer.path)[1]),
                fragment,
                more=bool(fragment_field & 0x2000),
                next_header=protocol,
            )
            if reassembled is None:
                return None
            return self._of_ipv4(layer, src, dst, reassembled)
        return self._of_ipv4(layer, src, dst, ReassembledDatagram(protocol, payload, size, layer.frames))

    def _of_ipv4(
        self, layer: _Layer, src: bytes, dst: bytes, reassembled: ReassembledDatagram
    ) -> Datagram | str | None:
        """Return the datagram in the payload of a whole IPv4 packet."""
        protocol, payload, size, frames = reassembled
        if protocol == _AH:
            if len(payload) < 12:
                return "cut" if size >= 12 else "bad-ip"
            protocol, skip = payload[0], (payload[1] + 2) * 4
            if skip > size:
                return "bad-ip"
            payload, size = payload[skip:], size - skip
        return self._transport(layer, protocol, src, dst, payload, size, frames)

    def _ipv6(self, layer: _Layer, data: bytes, ip_start: int, available: int) -> Datagram | str | None:
        if len(data) < ip_start + 40:
            return "cut"
        total, header, src, dst = _IPV6(data, ip_start)
        start = ip_start + 40
        # 0 means a jumbogram, or segmentation offload.
        end = start + total if total else available
        whole = ReassembledDatagram(header, data[start:end], end - start, layer.frames)
        return self._of_ipv6(layer, src, dst, whole, 0)

    def _of_ipv6(
        self, layer: _Layer, src: bytes, dst: bytes, reassembled: ReassembledDatagram, passed: int
    ) -> Datagram | str | None:
        """Return the datagram in the payload of an IPv6 packet, after a number of extension headers.

        If there are any, the last one was that of a fragment, and the payload is that of the whole packet.
        """
        header, payload, size, frames = reassembled
        record, offset = layer.record, 0
        for number in range(passed, EXTENSIONS_MAX):
            if header not in _OPTIONS and header not in (_AH, _FRAGMENT):
                return self._transport(layer, header, src, dst, payload[offset:], size - offset, frames)
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
                    network = self._known(layer.path)[1]
                    joined = self._add_fragment(
                        (src, dst, ident, network), fragment, more=bool(word & 1), next_header=next_header
                    )
                    return joined and self._of_ipv6(layer, src, dst, joined, number + 1)
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
        layer: _Layer,
        protocol: int,
        src: bytes,
        dst: bytes,
        data: bytes,
        size: int,
        frames: tuple[int, ...],
    ) -> Datagram | str | None:
        """Return the datagram in an IP payload of ``size`` bytes, of which ``data`` were captured."""
        record = layer.record
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
        elif protocol in tunnels.PROTOCOLS:
            return self._in_ip(layer.within(src, dst, frames), protocol, len(src), data, size)
        else:
            self._note(_name(not_read.PROTOCOLS.get(protocol)), frames)
            if self.on_unreachable is not None and len(frames) == 1:
                self._note_unreachable(protocol, src, data)
            return "other-protocol"
        payload = data[start:end]
        if protocol == _UDP and (dst_port in not_read.TUNNEL_PORTS or src_port in not_read.SOURCE_PORTS):
            if dst_port not in tunnels.UDP_PORTS:
                self._note(_name(not_read.of_udp(src_port, dst_port, payload, end - start)), frames)
            elif carried := tunnels.over_udp(dst_port, payload, end - start):
                return self._carried(layer.within(src, dst, frames), carried, payload, end - start)
        network = 0
        if layer.path.names:
            encapsulation, network = self._known(layer.path)
            frames = (*frames[:-1], tunnels.frame_in_tunnel(frames[-1], encapsulation))
        return Datagram(
            transport, self._text(src), src_port, self._text(dst), dst_port,
            record.time_ns, frames, record.file, payload, end - start - len(payload), seq, ack, flags,
            network,
        )  # fmt: skip


def _name(reason: int | None) -> str | None:
    """Return a reason by its index."""
    return None if reason is None else not_read.REASONS[reason]


_NOT_READ: Final = {
    "cut": not_read.CUT,
    **dict.fromkeys(("bad-ip", "bad-tcp", "bad-udp", "bad-pgm"), not_read.CONTRADICTORY),
    **dict.fromkeys(("bad-fragment", "fragment-timeout", "fragment-limit"), not_read.INCOMPLETE),
}
"""Entries of `IpDecoder.ignored` as reasons."""
_NO_IP: Final = {links.NOT_IP: "not-ip", links.CUT: "cut", links.UNKNOWN_LINK: "unknown-link"}
