"""Frames with a packet in tunnels that are read, each made by hand from the layout of its specification."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tests.support import captures as c

OUTER, OUTER_DST = "192.0.2.1", "198.51.100.2"
OUTER_6, OUTER_6_DST = "2001:db8::1", "2001:db8::2"
MACS: Final = bytes.fromhex("02000000000a02000000000b")
MACS_LIKE_IP: Final = bytes.fromhex("45000000000a02000000000b")
"""The first byte is that of an IPv4 packet."""
MACS_LIKE_WORD: Final = bytes.fromhex("0000000000aa02000000000b")
"""The first bytes are a control word."""
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


def erspan_3(content: bytes, *, frame_type: int = 0, platform: bytes = b"", session: int = 100) -> bytes:
    head = b"\x20\x07" + session.to_bytes(2, "big") + bytes(6) + bytes([frame_type << 2, bool(platform)])
    return gre(b"\x22\xeb", head + platform + content, b"\x10\0", b"\0\0\0\7")


def labels(*numbers: int) -> bytes:
    words = [number << 12 | 0x40 for number in numbers]
    words[-1] |= 0x100
    return b"".join(word.to_bytes(4, "big") for word in words)


def keyed(content: bytes, kind: bytes, key: int) -> bytes:
    """GRE with a key."""
    return gre(kind, content, b"\x20\0", key.to_bytes(4, "big"))


def vxlan(content: bytes, vni: int = 5001, port: int = 4789) -> bytes:
    """A packet of a tunnel, which has a frame in it."""
    head = b"\x08\0\0\0" + (vni << 8).to_bytes(4, "big")
    return c.udp_packet(head + content, OUTER, 50_123, OUTER_DST, port)


def vxlan_gpe(content: bytes, protocol: int, vni: int = 5001) -> bytes:
    head = b"\x0c\0\0" + bytes([protocol]) + (vni << 8).to_bytes(4, "big")
    return c.udp_packet(head + content, OUTER, 50_123, OUTER_DST, 4790)


def geneve(content: bytes, kind: bytes = b"\x65\x58", vni: int = 6001, options: bytes = b"") -> bytes:
    head = bytes([len(options) // 4, 0]) + kind + (vni << 8).to_bytes(4, "big") + options
    return c.udp_packet(head + content, OUTER, 50_124, OUTER_DST, 6081)


def wifi(packet: bytes, first: int = 0x08, second: int = 1, more: bytes = b"", pad: bytes = b"") -> bytes:
    """A frame of IEEE 802.11 with data, to the distribution system by default."""
    head = bytes([first, second, 0, 0]) + 3 * MACS[:6] + b"\x10\0"
    return head + more + pad + SNAP + ethertype(packet) + packet


def radiotap(frame_: bytes, fields: bytes = b"", present: int = 0, further: bytes = b"") -> bytes:
    size = 8 + len(further) + len(fields)
    return b"\0\0" + size.to_bytes(2, "little") + present.to_bytes(4, "little") + further + fields + frame_


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
    "802.11": (105, wifi),
    "802.11, from and to, QoS, HT": (105, lambda p: wifi(p, 0x88, 0x83, MACS[:6] + bytes(2) + bytes(4))),
    "radiotap": (127, lambda p: radiotap(wifi(p, 0x08, 2))),
    "radiotap, padded": (
        127,
        lambda p: radiotap(
            wifi(p, 0x88, 1, bytes(2), bytes(2)), bytes(4) + bytes(8) + b"\x20", 1 << 31 | 3, bytes(4)
        ),
    ),
    "PPI": (192, lambda p: b"\0\0\x0c\0\x69\0\0\0" + bytes(4) + wifi(p)),
    "gre with a key": (1, lambda p: frame(keyed(p, ethertype(p), 7))),
    "gre with all": (
        1, lambda p: frame(gre(ethertype(p), p, b"\xb0\0", bytes(4) + b"\xff\xff\xff\xff" + bytes(4))),
    ),
    "NVGRE": (1, lambda p: frame(keyed(frame(p), b"\x65\x58", 0x00138907))),
    "vxlan": (1, lambda p: frame(vxlan(frame(p)))),
    "vxlan, tags": (1, lambda p: c.ethernet(vxlan(c.ethernet(p, [5, 6])), [7])),
    "vxlan, the port before": (1, lambda p: frame(vxlan(frame(p), 0xFFFFFF, 8472))),
    "vxlan over IPv6": (1, lambda p: frame(over_6(vxlan(frame(p), 7)[20:], 17))),
    "vxlan, the port of GPE": (1, lambda p: frame(vxlan(frame(p), 9, 4790))),
    "vxlan GPE": (1, lambda p: frame(vxlan_gpe(frame(p), 3))),
    "vxlan GPE, IP": (1, lambda p: frame(vxlan_gpe(p, 1 if p[0] >> 4 == 4 else 2))),
    "vxlan of SLL": (113, lambda p: c.cooked(vxlan(frame(p)))),
    "vxlan of SLL2": (276, lambda p: c.cooked_2(vxlan(frame(p)))),
    "geneve": (1, lambda p: frame(geneve(frame(p)))),
    "geneve with options": (1, lambda p: frame(geneve(frame(p), options=b"\1\2\x80\1" + bytes(60)))),
    "geneve, IP": (1, lambda p: frame(geneve(p, ethertype(p)))),
    "gre, mpls, vxlan": (
        1, lambda p: frame(keyed(labels(100, 200) + vxlan(frame(p)), b"\x88\x47", 7)),
    ),
    "eight": (1, lambda p: frame(over_4(labels(9) + in_ip(in_ip(in_ip(in_ip(in_ip(in_ip(p)))))), 137))),
    "pppoe, mpls, erspan, gre": (
        1, lambda p: typed(0x8847, labels(3) + erspan_2(typed(0x8864, pppoe(gre(ethertype(p), p))))),
    ),
}  # fmt: skip
"""The link type, and the function that makes its frame from an IP packet."""

_OUTSIDE: Final = OUTER, OUTER_DST
_OUTSIDE_6: Final = OUTER_6, OUTER_6_DST
_NOWHERE: Final = None, None

TUNNELS: Final[dict[str, tuple[str | None, str | None, str | None, int | None]]] = {
    "ipip": ("ipip", *_OUTSIDE, None),
    "over IPv6": ("4in6", *_OUTSIDE_6, None),
    **dict.fromkeys(
        ["gre", "gre with a checksum and a sequence", "gre of Ethernet", "gre of PPP"],
        ("gre", *_OUTSIDE, None),
    ),
    "gre over IPv6": ("gre", *_OUTSIDE_6, None),
    "gre with a key": ("gre=7", *_OUTSIDE, 7),
    "gre with all": ("gre=4294967295", *_OUTSIDE, 0xFFFFFFFF),
    "NVGRE": (f"gre={0x00138907}", *_OUTSIDE, 0x00138907),
    "erspan, type I": ("erspan", *_OUTSIDE, None),
    **dict.fromkeys(
        ["erspan, type II", "erspan, type III", "erspan, type III, platform", "erspan, type III, IP"],
        ("erspan=100", *_OUTSIDE, 100),
    ),
    "mpls": ("mpls=100,200", *_NOWHERE, 200),
    "mpls, pseudowire": ("mpls=100,16", *_NOWHERE, 16),
    **dict.fromkeys(
        [
            "mpls, multicast, tagged", "mpls, pseudowire like IP", "mpls, pseudowire like a word",
            "mpls, control word", "mpls, SNAP", "mpls of SLL", "mpls of SLL2", "mpls of Cisco HDLC",
        ],
        ("mpls=16", *_NOWHERE, 16),
    ),
    "mpls in IP": ("mpls=16", *_OUTSIDE, 16),
    "mpls in gre": ("gre mpls=16", *_OUTSIDE, 16),
    **dict.fromkeys(["pppoe", "pppoe, padded", "pppoe of SLL", "PPPoE link"], ("pppoe=7", *_NOWHERE, 7)),
    **dict.fromkeys(
        [
            "SNAP", "SNAP behind a tag", "PPP", "PPP, short", "PPP, serial", "Cisco HDLC, serial",
            "Cisco HDLC", "802.11", "802.11, from and to, QoS, HT", "radiotap", "radiotap, padded", "PPI",
        ],
        (None, *_NOWHERE, None),
    ),
    **dict.fromkeys(
        ["vxlan", "vxlan, tags", "vxlan GPE", "vxlan GPE, IP", "vxlan of SLL", "vxlan of SLL2"],
        ("vxlan=5001", *_OUTSIDE, 5001),
    ),
    "vxlan, the port before": ("vxlan=16777215", *_OUTSIDE, 0xFFFFFF),
    "vxlan over IPv6": ("vxlan=7", *_OUTSIDE_6, 7),
    "vxlan, the port of GPE": ("vxlan=9", *_OUTSIDE, 9),
    **dict.fromkeys(["geneve", "geneve with options", "geneve, IP"], ("geneve=6001", *_OUTSIDE, 6001)),
    "gre, mpls, vxlan": ("gre=7 mpls=100,200 vxlan=5001", *_OUTSIDE, 5001),
    "eight": ("mpls=9 ipip ipip ipip ipip ipip ipip", *_OUTSIDE, 9),
    "pppoe, mpls, erspan, gre": ("mpls=3 erspan=100 pppoe=7 gre", *_OUTSIDE, 7),
}  # fmt: skip
"""The tunnels in rows for a packet of IPv4 in each form."""


def in_ip(packet: bytes) -> bytes:
    return over_4(packet, 4 if packet[0] >> 4 == 4 else 41)


WITHIN: Final[tuple[Form, ...]] = (
    lambda whole: frame(vxlan(whole, 1)),
    lambda whole: frame(vxlan(whole, 2)),
    lambda whole: frame(geneve(whole, vni=3)),
    lambda whole: frame(keyed(whole, b"\x65\x58", 7)),
    lambda whole: frame(erspan_2(whole)),
    lambda whole: frame(erspan_3(whole, session=9)),
    lambda whole: typed(0x8847, labels(100, 16) + bytes(4) + whole),
    lambda whole: frame(over_4(frame(vxlan(whole, 4))[14:], 4)),
    lambda whole: whole,
)
"""The functions that put an Ethernet frame into a tunnel; the last one returns it unchanged."""


def within(frames: Sequence[c.Frame], makes: Sequence[Form]) -> list[c.Frame]:
    """Put frames into tunnels, by turns."""
    return [
        c.Frame(one.time_ns, makes[number % len(makes)](one.data) if makes else one.data, one.segment)
        for number, one in enumerate(frames)
    ]
