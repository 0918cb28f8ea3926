"""Frames that are not read though packets may be in them, with the reasons; and frames of other programs."""

from __future__ import annotations

import struct
from typing import Final

from tests.property.tables.test_columnar import PING
from tests.support import captures as c
from tests.support.capture_files import Frame, PcapNg

INNER: Final = c.udp_packet(PING)
"""A packet that is read where nothing encloses it."""
INNER_6: Final = c.udp_packet(PING, c.CLIENT_6, 3527, c.SERVER_6, 3527)
MACS: Final = bytes(6) + b"\x02" * 6


def typed(ethertype: int, content: bytes) -> bytes:
    """An Ethernet frame of any type."""
    return MACS + ethertype.to_bytes(2, "big") + content


def in_ip(protocol: int, content: bytes) -> bytes:
    return c.ethernet(c.ipv4(content, protocol=protocol))


def in_udp(content: bytes, port: int, *, from_port: int = 50_000) -> bytes:
    return c.ethernet(c.udp_packet(content, src_port=from_port, dst_port=port))


def ipx(socket: int) -> bytes:
    return struct.pack("!HHBBI6sHI6sH", 0xFFFF, 30, 0, 17, 1, MACS[:6], socket, 1, MACS[:6], 0x4003)


def nested(depth: int, packet: bytes = INNER) -> bytes:
    """A packet in a number of tunnels of IP in IP."""
    return packet if not depth else c.ipv4(nested(depth - 1, packet), protocol=4)


KEYED_GRE = b"\x20\0\x08\0\0\0\0\1"
VXLAN = b"\x08\0\0\0\0\0\x07\0"
GENEVE = b"\x01\0\x65\x58\0\0\x07\0" + b"\0\0\0\0"
GTP = b"\x30\xff" + len(INNER).to_bytes(2, "big") + b"\0\0\0\1"
GTP_WITH_MORE = b"\x34\xff" + (len(INNER) + 8).to_bytes(2, "big") + b"\0\0\0\1\0\0\0\x85\1\0\0\0"
SNAP = b"\xaa\xaa\x03\0\0\0"

UNREAD: Final[dict[str, tuple[int, bytes, str]]] = {
    "Prism": (119, bytes(60), "link type 119"),
    "AVS": (163, bytes(60), "link type 163"),
    "radiotap": (127, bytes(60), "link type 127"),
    "PPI of something else": (192, b"\0\0\x08\0\1\0\0\0" + bytes(60), "link type 192"),
    "802.11, encrypted": (105, b"\x08\x41" + bytes(60), "encrypted (802.11)"),
    "802.11, several packets": (105, b"\x88\1" + bytes(22) + b"\x80" + bytes(60), "aggregated (802.11)"),
    "802.11, a fragment": (105, b"\x08\5" + bytes(60), "fragmented (802.11)"),
    "802.11, cut": (105, b"\x08\1" + bytes(20), "cut short"),
    "MPLS of something else": (1, typed(0x8847, b"\0\1\1\x40" + bytes(40)), "tunnelled (MPLS)"),
    "MPLS, cut": (1, typed(0x8848, b"\0\1\1"), "contradictory headers"),
    "MPLS of a cooked capture": (276, b"\x88\x47" + c.cooked_2(INNER)[2:], "tunnelled (MPLS)"),
    "MPLS with too many labels": (1, typed(0x8847, b"\0\1\0\x40" * 17 + INNER), "tunnelled (MPLS)"),
    "compressed PPP": (1, typed(0x8864, b"\x11\0\0\1\0\x40\0\x2d" + INNER), "tunnelled (PPPoE)"),
    "compressed PPP of a link": (9, b"\xff\x03\0\x2d" + INNER, "link type 9"),
    "PPPoE, cut": (1, typed(0x8864, b"\x11\0\0\1\0"), "cut short"),
    "TRILL": (1, typed(0x22F3, bytes(60)), "tunnelled (TRILL)"),
    "FabricPath": (1, typed(0x8903, bytes(60)), "tunnelled (FabricPath)"),
    "a provider's bridge": (1, typed(0x88E7, bytes(60)), "tagged (802.1ah)"),
    "a port extender": (1, typed(0x893F, bytes(60)), "tagged (802.1BR)"),
    "VN-Tag": (1, typed(0x8926, bytes(60)), "tagged (VN-Tag)"),
    "MetaData": (1, typed(0x8909, bytes(60)), "tagged (Cisco MetaData)"),
    "an old tag": (1, typed(0x9200, bytes(60)), "tagged (0x9200)"),
    "another old tag": (1, typed(0x9300, bytes(60)), "tagged (0x9300)"),
    "nine tags": (1, c.ethernet(INNER, [1] * 9), "tagged (more than 8 VLAN tags)"),
    "MACsec": (1, typed(0x88E5, bytes(60)), "encrypted (MACsec)"),
    "NCP over IPX": (1, typed(0x8137, ipx(0x0451)), "NCP over IPX"),
    "NCP over IPX, raw": (1, typed(30, ipx(0x0451)), "NCP over IPX"),
    "NCP over IPX, 802.2": (1, typed(33, b"\xe0\xe0\x03" + ipx(0x0451)), "NCP over IPX"),
    "NCP over IPX, SNAP": (1, typed(38, SNAP + b"\x81\x37" + ipx(0x0451)), "NCP over IPX"),
    "another version in IP": (1, in_ip(4, INNER_6), "contradictory headers"),
    "GRE of something else": (1, in_ip(47, KEYED_GRE[:2] + b"\x88\x3e" + INNER), "tunnelled (GRE)"),
    "GRE of PPTP": (1, in_ip(47, b"\x20\1\x88\x0b\0\0\0\1" + INNER), "tunnelled (GRE)"),
    "GRE with routes": (1, in_ip(47, b"\x40\0\x08\0" + bytes(8) + INNER), "tunnelled (GRE)"),
    "ERSPAN of another version": (
        1, in_ip(47, b"\x10\0\x88\xbe" + bytes(12) + c.ethernet(INNER)), "tunnelled (GRE)",
    ),
    "nine tunnels": (1, c.ethernet(nested(9)), "nested deeper than 8 tunnels"),
    "ESP": (1, in_ip(50, bytes(60)), "encrypted (ESP)"),
    "EtherIP": (1, in_ip(97, b"\x30\0" + c.ethernet(INNER)), "tunnelled (EtherIP)"),
    "IPComp": (1, in_ip(108, bytes(30)), "compressed (IPComp)"),
    "L2TP": (1, in_ip(115, bytes(30)), "tunnelled (L2TP)"),
    "MPLS in IP of something else": (1, in_ip(137, b"\0\1\1\x40" + bytes(40)), "tunnelled (MPLS)"),
    "nine tunnels, the last of UDP": (
        1, c.ethernet(nested(8, c.udp_packet(VXLAN + c.ethernet(INNER), dst_port=4789))),
        "nested deeper than 8 tunnels",
    ),
    "TRILL in VXLAN": (1, in_udp(VXLAN + typed(0x22F3, bytes(60)), 4789), "tunnelled (TRILL)"),
    "ESP in VXLAN": (1, in_udp(VXLAN + in_ip(50, bytes(60)), 4789), "encrypted (ESP)"),
    "GTP": (1, in_udp(GTP + INNER, 2152), "tunnelled (GTP)"),
    "GTP, extensions": (1, in_udp(GTP_WITH_MORE + INNER, 2152), "tunnelled (GTP)"),
    "Teredo": (1, in_udp(INNER_6, 3544), "tunnelled (Teredo)"),
    "Teredo, from a server": (
        1, in_udp(bytes(8) + INNER_6, 50_000, from_port=3544), "tunnelled (Teredo)",
    ),
    "L2TP in UDP": (1, in_udp(b"\0\3\0\0\0\0\0\1" + INNER, 1701), "tunnelled (L2TP)"),
    "L2TP in UDP, back": (
        1, in_udp(b"\0\3\0\0\0\0\0\1" + INNER, 50_000, from_port=1701), "tunnelled (L2TP)",
    ),
    "cut in Ethernet": (1, c.ethernet(INNER)[:13], "cut short"),
    "cut in IP": (1, c.ethernet(INNER)[:30], "cut short"),
    "cut in UDP": (1, c.ethernet(INNER)[:40], "cut short"),
    "cut in IPv6": (1, c.ethernet(INNER_6)[:50], "cut short"),
    "contradictory lengths": (1, c.ethernet(b"\x41" + INNER[1:]), "contradictory headers"),
    "a version that is another": (1, typed(0x0800, INNER_6), "contradictory headers"),
}  # fmt: skip
"""A link type, a frame of it, and the reason."""

OTHERS: Final[dict[str, tuple[int, bytes]]] = {
    "a beacon": (105, b"\x80\0" + bytes(60)),
    "802.11 without data": (105, b"\x48\1" + bytes(60)),
    "ARP in 802.11": (105, b"\x08\1" + bytes(22) + SNAP + b"\x08\6" + bytes(28)),
    "ARP": (1, typed(0x0806, bytes(46))),
    "LLDP": (1, typed(0x88CC, bytes(46))),
    "spanning tree": (1, typed(38, b"\x42\x42\x03" + bytes(43))),
    "CDP": (1, typed(60, b"\xaa\xaa\x03\0\0\x0c\x20\0" + bytes(52))),
    "IPX of others": (1, typed(0x8137, ipx(0x0452))),
    "a discovery of PPPoE": (1, typed(0x8863, bytes(46))),
    "LCP": (1, typed(0x8864, b"\x11\0\0\1\0\x0a\xc0\x21" + bytes(40))),
    "ICMP": (1, in_ip(1, bytes(40))),
    "IGMP": (1, in_ip(2, bytes(8))),
    "ICMP of version 6": (1, c.ethernet(c.ipv6(bytes(8), protocol=58))),
    "OSPF": (1, in_ip(89, bytes(40))),
    "SCTP": (1, in_ip(132, bytes(40))),
    "DNS": (1, in_udp(bytes(40), 53)),
    "HTTP": (1, c.ethernet(c.ip(c.tcp(b"GET /", c.CLIENT, 9, c.SERVER, 80), c.CLIENT, c.SERVER, protocol=6))),
    "a port of VXLAN": (1, in_udp(bytes(80), 4789)),
    "ARP in VXLAN": (1, in_udp(VXLAN + typed(0x0806, bytes(46)), 4789)),
    "from a port of VXLAN": (1, in_udp(VXLAN + c.ethernet(INNER), 53, from_port=4789)),
    "a short datagram of VXLAN": (1, in_udp(VXLAN, 4789)),
    "a version of Geneve": (1, in_udp(b"\x41" + GENEVE[1:] + c.ethernet(INNER), 6081)),
    "management of VXLAN": (1, in_udp(b"\x0d\0\0\3\0\0\7\0" + c.ethernet(INNER), 4790)),
    "VXLAN without a number": (1, in_udp(b"\0" + VXLAN[1:] + c.ethernet(INNER), 4789)),
    "VXLAN of a packet that is longer": (1, in_udp(VXLAN + c.ethernet(INNER)[:-9], 4789)),
    "a port of GENEVE": (1, in_udp(b"\xff" * 80, 6081)),
    "a port of GTP": (1, in_udp(b"\x30\xff\0\0" + bytes(40), 2152)),
    "an echo of GTP": (1, in_udp(b"\x32\1\0\4\0\0\0\0" + bytes(4), 2152)),
    "a port of L2TP": (1, in_udp(b"\xc8\2\0\x14" + bytes(16), 1701)),
    "control of L2TP": (1, in_udp(b"\xc8\3\0\x14" + bytes(16), 1701)),
    "a port of Teredo": (1, in_udp(b"\x60" + bytes(60), 3544)),
    "a port of GENEVE, which goes before that of Teredo": (1, in_udp(INNER_6, 6081, from_port=3544)),
}
"""Frames of other programs, which do not count."""


def capture_of(frames: list[tuple[int, bytes]]) -> bytes:
    """A pcapng file of frames of any link types, each with an interface of its own."""
    file = PcapNg().section()
    interfaces: dict[int, int] = {}
    for number, (linktype, data) in enumerate(frames):
        if linktype not in interfaces:
            interfaces[linktype] = len(interfaces)
            file.interface(linktype, tsresol=9)
        file.packet(Frame(c.START_NS + number, data), interfaces[linktype])
    return file.data
