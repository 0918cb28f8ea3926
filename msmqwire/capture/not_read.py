"""Frames that were not read though packets of interest may be in them, and why.

Frames of other programs do not count: ARP, ICMP, their TCP and UDP. Those count whose link type is
unknown, that a tunnel or a tag encloses, that are encrypted, or whose headers are cut off or contradictory. A
tunnel over UDP is one by its port and a header that fits.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from msmqwire.capture import links
from msmqwire.errors import CaptureWarning

LINKS_MAX: Final = 8
"""Link types that are named; all other types are one reason, so that a capture with thousands has a short
list.
"""

CUT: Final = "cut short"
CONTRADICTORY: Final = "contradictory headers"
INCOMPLETE: Final = "incomplete datagrams"
TOO_DEEP: Final = "nested deeper than 8 tunnels"
_LINK_TYPE: Final = "link type "
_OTHER_LINKS: Final = "other link types"

REASONS: Final = (
    "tunnelled (MPLS)", "tunnelled (PPPoE)", "tunnelled (TRILL)", "tunnelled (FabricPath)",
    "tagged (802.1ah)", "tagged (802.1BR)", "tagged (VN-Tag)", "tagged (Cisco MetaData)", "tagged (0x9200)",
    "tagged (0x9300)", "encrypted (MACsec)",
    "tunnelled (IP in IP)", "tunnelled (GRE)", "encrypted (ESP)", "tunnelled (EtherIP)",
    "compressed (IPComp)", "tunnelled (L2TP)", "tunnelled (MPLS in IP)",
    "tunnelled (GTP)", "tunnelled (Teredo)", "tunnelled (L2TP)",
)  # fmt: skip
"""The reasons that both readers see in a frame by itself, by its EtherType, the protocol of IP, or the
payload of UDP, in this order. The compiled one counts by index.
"""
(
    MPLS, PPPOE, TRILL, FABRIC_PATH, PROVIDER_BACKBONE, PORT_EXTENSION, VN_TAG, META_DATA, TAG_9200, TAG_9300,
    MACSEC, IP_IN_IP, GRE, ESP, ETHER_IP, IPCOMP, L2TP, MPLS_IN_IP, GTP, TEREDO, L2TP_IN_UDP,
) = range(len(REASONS))  # fmt: skip
FIRST_PROTOCOL, FIRST_UDP = IP_IN_IP, GTP

ETHERTYPES: Final = {
    0x8847: MPLS, 0x8848: MPLS, 0x8864: PPPOE, 0x22F3: TRILL, 0x8903: FABRIC_PATH, 0x88E7: PROVIDER_BACKBONE,
    0x893F: PORT_EXTENSION, 0x8926: VN_TAG, 0x8909: META_DATA, 0x9200: TAG_9200, 0x9300: TAG_9300,
    0x88E5: MACSEC,
}  # fmt: skip
PROTOCOLS: Final = {
    4: IP_IN_IP, 41: IP_IN_IP, 94: IP_IN_IP, 47: GRE, 50: ESP, 97: ETHER_IP, 108: IPCOMP, 115: L2TP,
    137: MPLS_IN_IP,
}  # fmt: skip
PPP_NETWORK_MAX: Final = 0x3FFF
"""The last protocol of PPP that carries packets of a network; those beyond are its own."""
VXLAN_PORTS: Final = (4789, 8472)
"""The port of RFC 7348, and the one that Linux had before."""
GENEVE_PORT, GTP_PORT, TEREDO_PORT, L2TP_PORT = 6081, 2152, 3544, 1701
VXLAN_GPE_PORT: Final = 4790
TUNNEL_PORTS: Final = frozenset({*VXLAN_PORTS, VXLAN_GPE_PORT, GENEVE_PORT, GTP_PORT, TEREDO_PORT, L2TP_PORT})
SOURCE_PORTS: Final = frozenset({TEREDO_PORT, L2TP_PORT})
"""UDP ports of tunnels, as destinations and sources."""
L2TP_HEADER: Final = b"\0\3\0\0"
L2TP_SIZE: Final = 8
"""RFC 3931: the header of data in version 3 over UDP, and its size with the number of the session."""
LENGTHS: Final = 0x600
"""Values below are not EtherTypes: it is the length of a frame of IEEE 802.3."""
IPX_TYPE: Final = 0x8137
_NCP_SOCKET: Final = 0x0451


class NotRead(NamedTuple):
    """Frames that were not read for one reason.

    Attributes:
        reason: why, as ``link type 119``, ``tunnelled (GTP)``, ``cut short``.
        frames: their number.
    """

    reason: str
    frames: int


def link_reason(linktype: int) -> str:
    """Return the reason of frames of a link type that is unknown."""
    return f"{_LINK_TYPE}{linktype}"


def listed(counts: Counter[str]) -> tuple[NotRead, ...]:
    """Return counts by reason, the most frames first; of link types the first ones, then the rest as one."""
    ordered = [NotRead(*one) for one in sorted(counts.items(), key=lambda one: (-one[1], one[0])) if one[1]]
    rest = [one for one in ordered if one.reason.startswith(_LINK_TYPE)][LINKS_MAX:]
    if not rest:
        return tuple(ordered)
    left_out = {one.reason for one in rest}
    others = NotRead(_OTHER_LINKS, sum(one.frames for one in rest))
    return (*(one for one in ordered if one.reason not in left_out), others)


def sentence(not_read: Sequence[NotRead]) -> str:
    """Return a line about the frames not read, for people; nothing if all were."""
    if not not_read:
        return ""
    total = sum(one.frames for one in not_read)
    parts = ", ".join(f"{one.frames:,} {_phrase(one.reason)}" for one in not_read)
    return f"{total:,} {'frame was' if total == 1 else 'frames were'} not read: {parts}"


def to_json(not_read: Iterable[NotRead]) -> list[dict[str, Any]]:
    """Return them as JSON has them."""
    return [one._asdict() for one in not_read]


def warn_of(not_read: tuple[NotRead, ...], *, stacklevel: int) -> None:
    """Warn by a `CaptureWarning` of frames that were not read, if there are any."""
    if not_read:
        warnings.warn(CaptureWarning(sentence(not_read), not_read), stacklevel=stacklevel)


def _phrase(reason: str) -> str:
    if reason == CONTRADICTORY:
        return f"with {reason}"
    is_noun = reason in (_OTHER_LINKS, INCOMPLETE) or reason.startswith((_LINK_TYPE, "NCP"))
    return f"of {reason}" if is_noun else reason


def of_type(ethertype: int, data: bytes, at: int) -> str | None:
    """Return the reason that the payload of an EtherType is not read; None if it is another program's.

    It is at an offset in the frame. IP, and the tunnels that are read, are not judged here.
    """
    if ethertype in links.TAG_TYPES:
        return f"tagged (more than {links.TAGS_MAX} VLAN tags)"
    if ethertype < LENGTHS or ethertype == IPX_TYPE:
        return _of_other_frames(ethertype, data, at)
    reason = ETHERTYPES.get(ethertype)
    return None if reason is None else REASONS[reason]


def _of_other_frames(ethertype: int, data: bytes, at: int) -> str | None:
    """Return why a frame of IEEE 802.2 or of IPX is not read."""
    if ethertype < LENGTHS:
        head = data[at : at + 8]
        inner = int.from_bytes(head[6:8], "big") if head[:6] == b"\xaa\xaa\x03\0\0\0" else 0
        if inner == IPX_TYPE:
            at += 8
        elif head[:3] == b"\xe0\xe0\x03":
            at += 3
        elif head[:2] != b"\xff\xff":  # IPX has no checksum, which tells it from IEEE 802.2
            return None
    sockets = data[at + 16 : at + 18], data[at + 28 : at + 30]
    is_ncp = _NCP_SOCKET.to_bytes(2, "big") in sockets and len(data) >= at + 30
    return "NCP over IPX" if is_ncp else None


def of_udp(src_port: int, dst_port: int, payload: bytes, size: int) -> int | None:
    """Return the index of the tunnel in a UDP datagram that is not read.

    Of its ``size`` bytes these were captured.
    """
    if dst_port == GTP_PORT:
        if len(payload) < 12:
            return None
        # 3GPP TS 29.281: version 1, a packet of a user, all bytes after the first 8; extensions may follow.
        is_packet = payload[0] & 0xF8 == 0x30 and payload[1] == 0xFF and _word(payload, 2) + 8 == size
        if is_packet and payload[0] & 4 and payload[11]:
            return GTP
        at = 12 if payload[0] & 7 else 8
        return GTP if is_packet and _version(payload, at) in (4, 6) else None
    if TEREDO_PORT in (src_port, dst_port) and len(payload) >= 8:
        at = 0 if _word(payload, 0) else 8  # RFC 4380: an origin may be in front of the packet
        fits = _version(payload, at) == 6 and len(payload) >= at + 6
        return TEREDO if fits and at + 40 + _word(payload, at + 4) == size else None
    if L2TP_PORT in (src_port, dst_port) and len(payload) > L2TP_SIZE and any(payload[4:L2TP_SIZE]):
        return L2TP_IN_UDP if payload[:4] == L2TP_HEADER else None
    return None


def _word(data: bytes, at: int) -> int:
    return data[at] << 8 | data[at + 1]


def _version(data: bytes, at: int) -> int:
    """Return the version of the IP packet at an offset; -1 beyond the end."""
    return data[at] >> 4 if at < len(data) else -1
