"""Frames with a packet in tunnels that are read, each made by hand from the layout of its specification."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tests.support import captures as c

OUTER, OUTER_DST = "192.0.2.1", "198.51.100.2"
OUTER_6, OUTER_6_DST = "2001:db8::1", "2001:db8::2"
MACS: Final = bytes.fromhex("02000000000a02000000000b")
MACS_LIKE_IP: Final = bytes.fromhex("45000000000a02000000000b")
"""The first byte is that of an IPv4 packet."""
MACS_LIKE_WORD: Final = bytes.fromhex("0000000000aa02000000000b")
"""The first bytes are those of a control word."""
SNAP: Final = b"\xaa\xaa\x03\0\0\0"


def ethertype(packet: bytes) -> bytes:
    return b"\x08\0" if packet[0] >> 4 == 4 else b"\x86\xdd"


def frame(packet: bytes, macs: bytes = MACS) -> bytes:
    return macs + ethertype(packet) + packet


def typed(number: int, content: bytes) -> bytes:
    return MACS + number.to_bytes(2, "big") + content


def over_4(content: bytes, protocol: int) -> bytes:
    return c.ipv4(content, OUTER, OUTER_DST, protocol=protocol)


def over_6(content: bytes, protocol: int) -> bytes:
    return c.ipv6(content, OUTER_6, OUTER_6_DST, protocol=protocol)


def gre(kind: bytes, content: bytes, flags: bytes = b"\0\0", fields: bytes = b"") -> bytes:
    return over_4(flags + kind + fields + content, 47)


def erspan_2(content: bytes, session: int = 100) -> bytes:
    head = b"\x10\x07" + session.to_bytes(2, "big") + b"\0\0\0\5"
    return gre(b"\x88\xbe", head + content, b"\x10\0", b"\0\0\0\7")


def erspan_3(content: bytes, *, frame_type: int = 0, platform: bytes = b"") -> bytes:
    head = b"\x20\x07\0\x64" + bytes(6) + bytes([frame_type << 2, bool(platform)])
    return gre(b"\x22\xeb", head + platform + content, b"\x10\0", b"\0\0\0\7")


def labels(*numbers: int) -> bytes:
    words = [number << 12 | 0x40 for number in numbers]
    words[-1] |= 0x100
    return b"".join(word.to_bytes(4, "big") for word in words)


def ppp(packet: bytes) -> bytes:
    return (b"\0\x21" if packet[0] >> 4 == 4 else b"\0\x57") + packet


def pppoe(packet: bytes, session: int = 7) -> bytes:
    content = ppp(packet)
    return b"\x11\0" + session.to_bytes(2, "big") + len(content).to_bytes(2, "big") + content


Form = Callable[[bytes], bytes]

FORMS: Final[dict[str, tuple[int, Form]]] = {
    "ipip": (1, lambda p: frame(over_4(p, 4 if p[0] >> 4 == 4 else 41))),
    "over IPv6": (1, lambda p: frame(over_6(p, 4 if p[0] >> 4 == 4 else 41))),
    "gre": (1, lambda p: frame(gre(ethertype(p), p))),
    "gre over IPv6": (1, lambda p: frame(over_6(b"\0\0" + ethertype(p) + p, 47))),
    "gre with a checksum and a sequence": (1, lambda p: frame(gre(ethertype(p), p, b"\x90\0", bytes(8)))),
    "gre of Ethernet": (1, lambda p: frame(gre(b"\x65\x58", c.ethernet(p, [7])))),
    "gre of PPP": (1, lambda p: frame(gre(b"\x88\x0b", ppp(p)))),
    "erspan, type I": (1, lambda p: frame(gre(b"\x88\xbe", frame(p)))),
    "erspan, type II": (1, lambda p: frame(erspan_2(frame(p)))),
    "erspan, type III": (1, lambda p: frame(erspan_3(frame(p)))),
    "erspan, type III, platform": (1, lambda p: frame(erspan_3(c.ethernet(p, [9]), platform=bytes(8)))),
    "erspan, type III, IP": (1, lambda p: frame(erspan_3(p, frame_type=2))),
    "mpls": (1, lambda p: typed(0x8847, labels(100, 200) + p)),
    "mpls, multicast, tagged": (1, lambda p: typed(0x8100, b"\0\7\x88\x48" + labels(16) + p)),
    "mpls, pseudowire": (1, lambda p: typed(0x8847, labels(100, 16) + frame(p))),
    "mpls, pseudowire like IP": (1, lambda p: typed(0x8847, labels(16) + frame(p, MACS_LIKE_IP))),
    "mpls, pseudowire like a word": (1, lambda p: typed(0x8847, labels(16) + frame(p, MACS_LIKE_WORD))),
    "mpls, control word": (1, lambda p: typed(0x8847, labels(16) + bytes(4) + c.ethernet(p, [5]))),
    "mpls, SNAP": (
        1, lambda p: typed(0x8847, labels(16) + MACS + b"\0\x40" + SNAP + ethertype(p) + p),
    ),
    "mpls in IP": (1, lambda p: frame(over_4(labels(16) + p, 137))),
    "mpls in gre": (1, lambda p: frame(gre(b"\x88\x47", labels(16) + p))),
    "mpls of SLL": (113, lambda p: c.cooked(p)[:14] + b"\x88\x47" + labels(16) + p),
    "mpls of SLL2": (276, lambda p: b"\x88\x47" + c.cooked_2(p)[2:20] + labels(16) + p),
    "pppoe": (1, lambda p: typed(0x8864, pppoe(p))),
    "pppoe, padded": (1, lambda p: typed(0x8864, pppoe(p)) + bytes(20)),
    "pppoe of SLL": (113, lambda p: c.cooked(p)[:14] + b"\x88\x64" + pppoe(p)),
    "SNAP": (1, lambda p: MACS + (8 + len(p)).to_bytes(2, "big") + SNAP + ethertype(p) + p),
    "SNAP behind a tag": (1, lambda p: typed(0x8100, b"\0\7\0\x60" + SNAP + ethertype(p) + p)),
    "PPP": (9, lambda p: b"\xff\x03" + ppp(p)),
    "PPP, short": (9, lambda p: ppp(p)[1:]),
    "PPP, serial": (50, lambda p: b"\xff\x03" + ppp(p)),
    "Cisco HDLC, serial": (50, lambda p: b"\x0f\0" + ethertype(p) + p),
    "Cisco HDLC": (104, lambda p: b"\x8f\0" + ethertype(p) + p),
    "mpls of Cisco HDLC": (104, lambda p: b"\x0f\0\x88\x47" + labels(16) + p),
    "PPPoE link": (51, pppoe),
    "eight": (1, lambda p: frame(over_4(labels(9) + in_ip(in_ip(in_ip(in_ip(in_ip(in_ip(p)))))), 137))),
    "pppoe, mpls, erspan, gre": (
        1, lambda p: typed(0x8847, labels(3) + erspan_2(typed(0x8864, pppoe(gre(ethertype(p), p))))),
    ),
}  # fmt: skip
"""The link type, and what makes a frame of it of a packet of IP."""


def in_ip(packet: bytes) -> bytes:
    return over_4(packet, 4 if packet[0] >> 4 == 4 else 41)
