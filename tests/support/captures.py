"""A writer of capture files, for tests: from byte streams to frames, from frames to files.

It shares no code with the reader under test, and does not interpret the bytes. Layers are functions from
bytes to bytes, put into each other: ``ethernet(ipv4(udp(b"...")))``.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_address
from itertools import pairwise

from tests.support.capture_files import START_NS, STEP_NS, Frame, PcapNg, pcap_bytes, pcapng_bytes, timed

__all__ = [
    "ACK", "CLIENT", "CLIENT_6", "FIN", "LINKS", "PSH", "RST", "SERVER", "SERVER_6", "START_NS",
    "STEP_NS", "SYN",
    "Frame", "Link", "PcapNg", "Segment", "TcpConversation", "checksum", "cooked", "cooked_2", "disorder",
    "ethernet", "fragments_4", "fragments_6", "ip", "ipv4", "ipv6", "loop", "merged", "null", "pcap_bytes",
    "pcapng_bytes", "raw", "tcp", "timed", "udp", "udp_packet",
]  # fmt: skip

FIN, SYN, RST, PSH, ACK = 0x01, 0x02, 0x04, 0x08, 0x10
CLIENT, SERVER = "10.0.0.1", "10.0.0.2"
CLIENT_6, SERVER_6 = "fd00::1", "fd00::2"

Link = Callable[[bytes], bytes]


# --- layers ------------------------------------------------------------------------------------------------


def checksum(data: bytes) -> int:
    """The checksum of the internet protocols, RFC 1071."""
    total: int = sum(struct.unpack(f"!{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ethertype(ip: bytes) -> int:
    return 0x0800 if ip[0] >> 4 == 4 else 0x86DD


def ethernet(ip: bytes, vlan: Sequence[int | tuple[int, int]] = (), *, padded: bool = True) -> bytes:
    """An Ethernet frame, padded to its least size; tags are VLAN numbers or (type, number), from outside."""
    tags = b"".join(
        struct.pack("!HH", *(tag if isinstance(tag, tuple) else (0x8100, tag))) for tag in vlan
    )  # fmt: skip
    frame = bytes.fromhex("020000000002020000000001") + tags + struct.pack("!H", ethertype(ip)) + ip
    return frame.ljust(60, b"\xee") if padded else frame


def cooked(ip: bytes) -> bytes:
    """Linux cooked capture, LINKTYPE 113."""
    return struct.pack("!HHH8sH", 0, 1, 6, b"\2\0\0\0\0\1\0\0", ethertype(ip)) + ip


def cooked_2(ip: bytes) -> bytes:
    """Linux cooked capture version 2, LINKTYPE 276."""
    return struct.pack("!HHIHBB8s", ethertype(ip), 0, 1, 1, 0, 6, b"\2\0\0\0\0\1\0\0") + ip


def null(ip: bytes, byteorder: str = "<", family: int | None = None) -> bytes:
    """BSD loopback, LINKTYPE 0; with ``>`` also LOOP, LINKTYPE 108."""
    default = 2 if ip[0] >> 4 == 4 else 30
    return struct.pack(byteorder + "I", default if family is None else family) + ip


def loop(ip: bytes) -> bytes:
    return null(ip, ">")


def raw(ip: bytes) -> bytes:
    return ip


LINKS: dict[int, Link] = {
    1: ethernet, 0: null, 108: loop, 12: raw, 14: raw, 101: raw,
    113: cooked, 276: cooked_2, 228: raw, 229: raw,
}  # fmt: skip
"""The link types, each with the layer that makes its frames (228 is for IPv4 only, 229 for IPv6 only)."""


def ipv4(
    payload: bytes,
    src: str = CLIENT,
    dst: str = SERVER,
    *,
    protocol: int = 6,
    ident: int = 0,
    options: bytes = b"",
    offset: int = 0,
    more: bool = False,
    total: int | None = None,
) -> bytes:
    """An IPv4 packet. ``offset`` is in bytes; ``options`` is a multiple of 4 bytes."""
    size = 20 + len(options)
    head = struct.pack(
        "!BBHHHBBH4s4s", 0x40 | size // 4, 0, size + len(payload) if total is None else total, ident,
        more << 13 | offset // 8, 64, protocol, 0, ip_address(src).packed, ip_address(dst).packed,
    ) + options  # fmt: skip
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + payload


def ipv6(
    payload: bytes,
    src: str = CLIENT_6,
    dst: str = SERVER_6,
    *,
    protocol: int = 6,
    extensions: Sequence[tuple[int, bytes]] = (),
    total: int | None = None,
) -> bytes:
    """An IPv6 packet. An extension is its type and its bytes from the third on, a whole header without the
    next-header field and the length (or reserved) byte, which are filled in."""
    for kind, content in reversed(extensions):
        size = len(content) + 2
        length = {44: 0, 51: size // 4 - 2}.get(kind, size // 8 - 1)
        payload, protocol = bytes([protocol, length]) + content + payload, kind
    length = len(payload) if total is None else total
    return (
        struct.pack("!IHBB", 6 << 28, length, protocol, 64)
        + ip_address(src).packed
        + ip_address(dst).packed
        + payload
    )


def ip(payload: bytes, src: str, dst: str, *, protocol: int, ident: int = 0) -> bytes:
    """An IP packet of the version that the addresses have."""
    if ":" in src:
        return ipv6(payload, src, dst, protocol=protocol)
    return ipv4(payload, src, dst, protocol=protocol, ident=ident)


def fragments_4(packet: bytes, size: int) -> list[bytes]:
    """The fragments of an IPv4 packet without options, with ``size`` bytes each, a multiple of 8."""
    src, dst = (str(ip_address(packet[at : at + 4])) for at in (12, 16))
    ident, payload = int.from_bytes(packet[4:6], "big"), packet[20:]
    return [
        ipv4(
            payload[at : at + size], src, dst, protocol=packet[9], ident=ident, offset=at,
            more=at + size < len(payload),
        )
        for at in range(0, len(payload), size)
    ]  # fmt: skip


def fragments_6(packet: bytes, size: int, ident: int = 1) -> list[bytes]:
    """The fragments of an IPv6 packet without extension headers, with ``size`` bytes each."""
    src, dst = (str(ip_address(packet[at : at + 16])) for at in (8, 24))
    payload = packet[40:]
    return [
        ipv6(
            payload[at : at + size], src, dst, protocol=packet[6],
            extensions=[(44, struct.pack("!HI", at | (at + size < len(payload)), ident))],
        )
        for at in range(0, len(payload), size)
    ]  # fmt: skip


def _pseudo(src: str, dst: str, protocol: int, size: int) -> bytes:
    addresses = ip_address(src).packed + ip_address(dst).packed
    if ":" in src:
        return addresses + struct.pack("!IHBB", size, 0, 0, protocol)
    return addresses + struct.pack("!BBH", 0, protocol, size & 0xFFFF)


def udp(
    payload: bytes, src: str = CLIENT, src_port: int = 3527, dst: str = SERVER, dst_port: int = 3527
) -> bytes:
    """A UDP datagram; the addresses are for its checksum."""
    size = 8 + len(payload)
    head = struct.pack("!HHH", src_port, dst_port, size)
    total = checksum(_pseudo(src, dst, 17, size) + head + b"\0\0" + payload) or 0xFFFF
    return head + struct.pack("!H", total) + payload


def tcp(
    payload: bytes = b"",
    src: str = CLIENT,
    src_port: int = 50_000,
    dst: str = SERVER,
    dst_port: int = 1801,
    *,
    seq: int = 0,
    ack: int = 0,
    flags: int = ACK,
    options: bytes = b"",
    window: int = 0xFFFF,
) -> bytes:
    """A TCP segment; the addresses are for its checksum, ``options`` is a multiple of 4 bytes."""
    head = struct.pack(
        "!HHIIBBHHH", src_port, dst_port, seq & 0xFFFFFFFF, ack & 0xFFFFFFFF,
        (5 + len(options) // 4) << 4, flags, window, 0, 0,
    ) + options  # fmt: skip
    total = checksum(_pseudo(src, dst, 6, len(head) + len(payload)) + head + payload)
    return head[:16] + struct.pack("!H", total) + head[18:] + payload


def udp_packet(
    payload: bytes,
    src: str = CLIENT,
    src_port: int = 3527,
    dst: str = SERVER,
    dst_port: int = 3527,
    *,
    ident: int = 0,
) -> bytes:
    """A UDP datagram in an IP packet."""
    return ip(udp(payload, src, src_port, dst, dst_port), src, dst, protocol=17, ident=ident)


# --- TCP conversations -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Segment:
    """A TCP segment that can be cut, moved and sent again."""

    src: tuple[str, int]
    dst: tuple[str, int]
    seq: int
    ack: int
    flags: int = ACK
    payload: bytes = b""

    def packet(self) -> bytes:
        ack = self.ack if self.flags & ACK else 0
        segment = tcp(self.payload, *self.src, *self.dst, seq=self.seq, ack=ack, flags=self.flags)
        return ip(segment, self.src[0], self.dst[0], protocol=6)

    def part(self, start: int, stop: int) -> Segment:
        """The segment with these bytes of its payload only; a FIN stays with the last one."""
        flags = self.flags if stop >= len(self.payload) else self.flags & ~(FIN | PSH)
        return replace(
            self, seq=(self.seq + start) & 0xFFFFFFFF, payload=self.payload[start:stop], flags=flags
        )  # fmt: skip


class TcpConversation:
    """Two peers that talk; every call appends its frames to ``frames``.

    ``client`` and ``server`` are (address, port), of either version. The streams that were sent are in
    ``sent``: {True: by the client, False: by the server}.
    """

    def __init__(
        self,
        client: tuple[str, int] = (CLIENT, 50_000),
        server: tuple[str, int] = (SERVER, 1801),
        *,
        client_isn: int = 1_000,
        server_isn: int = 9_000,
        mss: int = 1460,
        start_ns: int = START_NS,
        step_ns: int = STEP_NS,
        link: Link = ethernet,
    ) -> None:
        self.frames: list[Frame] = []
        self.sent = {True: b"", False: b""}
        self.mss, self.time_ns, self.step_ns, self.link = mss, start_ns, step_ns, link
        self._ends = {True: client, False: server}
        self._seq = {True: client_isn, False: server_isn}

    def segment(
        self, by_client: bool, payload: bytes = b"", flags: int = ACK, *, seq: int | None = None
    ) -> TcpConversation:
        """Send a segment at the present position of the sender, or at `seq`."""
        position = self._seq[by_client] if seq is None else seq & 0xFFFFFFFF
        ends = self._ends[by_client], self._ends[not by_client]
        segment = Segment(*ends, position, self._seq[not by_client], flags, payload)
        self.frames.append(Frame(self.time_ns, self.link(segment.packet()), segment))
        self.time_ns += self.step_ns
        if seq is None:
            step = len(payload) + bool(flags & SYN) + bool(flags & FIN)
            self._seq[by_client] = (self._seq[by_client] + step) & 0xFFFFFFFF
        return self

    def handshake(self) -> TcpConversation:
        self.segment(True, flags=SYN)
        self.segment(False, flags=SYN | ACK)
        self.segment(True)
        return self

    def send(self, data: bytes, *, by_client: bool = True, acknowledged: bool = True) -> TcpConversation:
        """Send in segments of at most ``mss`` bytes, every second and the last acknowledged."""
        for number, at in enumerate(range(0, len(data), self.mss)):
            last = at + self.mss >= len(data)
            self.segment(by_client, data[at : at + self.mss], ACK | PSH * last)
            if acknowledged and (last or number % 2):
                self.segment(not by_client)
        self.sent[by_client] += data
        return self

    def keep_alive(self, by_client: bool = True, probe: bytes = b"\0") -> TcpConversation:
        """A probe of one byte before the next one (Windows), or of none, and its answer."""
        self.segment(by_client, probe, seq=self._seq[by_client] - 1)
        self.segment(not by_client)
        return self

    def close(self, by_client: bool = True) -> TcpConversation:
        self.segment(by_client, flags=FIN | ACK)
        self.segment(not by_client, flags=FIN | ACK)
        self.segment(by_client)
        return self

    def reset(self, by_client: bool = True) -> TcpConversation:
        self.segment(by_client, flags=RST | ACK)
        return self

    def wait(self, ns: int) -> TcpConversation:
        self.time_ns += ns
        return self


def merged(*conversations: Iterable[Frame]) -> list[Frame]:
    """The frames of several conversations in the order of their times."""
    return sorted((frame for frames in conversations for frame in frames), key=lambda frame: frame.time_ns)


def disorder(
    frames: Iterable[Frame],
    rng: random.Random,
    *,
    reorder: float = 0.0,
    reach: int = 4,
    duplicate: float = 0.0,
    resegment: float = 0.0,
    overlap: float = 0.0,
    drop: float = 0.0,
    keep_control: bool = True,
    behind_acks: bool = True,
    link: Link = ethernet,
) -> list[Frame]:
    """The frames as a bad network or capture would show them, one seed one result.

    Each probability is per frame: ``reorder`` moves it back by up to ``reach`` positions, ``duplicate``
    sends it again within ``reach`` positions, ``resegment`` cuts its payload into several segments,
    ``overlap`` lets a copy follow that joins it with the next segment of its direction, with other
    boundaries, ``drop`` loses it (only segments with data). ``keep_control`` leaves SYN, FIN and RST in
    order. Without ``behind_acks`` no frame is moved after the one that acknowledges it: a capture may show
    that, but some readers mistake it for loss. The times are spread evenly.
    """
    times, order = [], list[tuple[float, Frame]]()
    source = list(frames)

    def movable(frame: Frame) -> bool:
        flags = RST if frame.segment is None else frame.segment.flags
        return not keep_control or not flags & (SYN | FIN | RST)

    def put(frame: Frame, position: float) -> None:
        if movable(frame) and rng.random() < reorder:
            moved = position + rng.randint(1, reach) + 0.5
            if not behind_acks:
                moved = min(moved, _acknowledged(frame, source, int(position)) - 0.25)
            position = moved
        order.append((position, frame))

    for number, frame in enumerate(source):
        times.append(frame.time_ns)
        segment = frame.segment
        if segment is None or not segment.payload or not movable(frame):
            put(frame, number)
            if movable(frame) and rng.random() < duplicate:
                put(frame, number + rng.randint(0, reach))
            continue
        if rng.random() < drop:
            continue
        size = len(segment.payload)
        if size > 1 and rng.random() < resegment:
            cuts = sorted({0, size, *(rng.randrange(1, size) for _ in range(rng.randint(1, 3)))})
            for start, stop in pairwise(cuts):
                put(_framed(segment.part(start, stop), frame, link), number)
        else:
            put(frame, number)
        if rng.random() < duplicate:
            put(frame, number + rng.randint(0, reach))
        following = _following(segment, source[number + 1 :])
        if following is not None and rng.random() < overlap:
            joined = replace(segment, payload=segment.payload + following.payload)
            start, stop = rng.randrange(size), rng.randint(size, len(joined.payload))
            put(_framed(joined.part(start, stop), frame, link), number + rng.randint(0, reach))
    order.sort(key=lambda item: item[0])
    first, step = (times[0], max(1, (times[-1] - times[0]) // max(1, len(order)))) if times else (0, 1)
    return [replace(frame, time_ns=first + number * step) for number, (_, frame) in enumerate(order)]


def _acknowledged(frame: Frame, frames: Sequence[Frame], start: int) -> int:
    """The number of the first frame from ``start`` on that acknowledges the last byte of this one."""
    segment = frame.segment
    assert segment is not None
    end = segment.seq + len(segment.payload)
    for number, other in enumerate(frames[start:], start):
        answer = other.segment
        answers = answer and (answer.src, answer.dst) == (segment.dst, segment.src) and answer.flags & ACK
        if answer and answers and (answer.ack - end) & 0xFFFFFFFF < 1 << 31:
            return number
    return len(frames)


def _framed(segment: Segment, frame: Frame, link: Link) -> Frame:
    return Frame(frame.time_ns, link(segment.packet()), segment)


def _following(segment: Segment, frames: Sequence[Frame]) -> Segment | None:
    position = (segment.seq + len(segment.payload)) & 0xFFFFFFFF
    for frame in frames[:16]:
        other = frame.segment
        if other and other.src == segment.src and other.dst == segment.dst and other.payload:
            return other if other.seq == position and not other.flags & (SYN | FIN | RST) else None
    return None
