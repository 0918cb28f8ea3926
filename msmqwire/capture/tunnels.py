"""Headers of the tunnels in which packets of interest may be: MPLS, PPPoE and PPP, GRE and ERSPAN, LLC.

Each function reads the headers at the beginning of some bytes, as far as these were captured, and says what
they carry, see `Carried`. It reads nothing of what is carried but to tell what that is: a label of MPLS does
not say it. IP in IP needs no function, as nothing is between the two headers.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from msmqwire.capture import links, not_read

DEPTH_MAX: Final = 8
"""Tunnels in each other that are read."""
LABELS_MAX: Final = 16
"""Labels of MPLS in a stack that is read."""

ETHERNET_TYPE: Final = 0x6558
"""The EtherType of a whole Ethernet frame: Transparent Ethernet Bridging, RFC 1701."""
PPP_TYPE: Final = 0x880B
MPLS_TYPES: Final = (0x8847, 0x8848)
PPPOE_TYPE: Final = 0x8864
_ARP_TYPE: Final = 0x0806
_IP_4, _IP_6 = links.IP_TYPES
_ERSPAN_TYPE, _ERSPAN_3_TYPE = 0x88BE, 0x22EB
_ERSPAN_OF_IP: Final = 2  # the frame type of ERSPAN III in its header

IP_4, IP_6, GRE, MPLS = 4, 41, 47, 137
PROTOCOLS: Final = frozenset((IP_4, IP_6, GRE, MPLS))
"""The protocols of IP that are read as tunnels."""
NAMES: Final = {(4, IP_4): "ipip", (6, IP_4): "4in6", (4, IP_6): "6in4", (6, IP_6): "6in6"}
"""The name of IP in IP by the version of the outer packet and the protocol that says what is in it."""

_PPP_CONTENTS: Final = {0x0021: _IP_4, 0x0057: _IP_6, 0x0281: MPLS_TYPES[0], 0x0283: MPLS_TYPES[1]}
_GRE_CHECKSUM, _GRE_ROUTING, _GRE_KEY, _GRE_SEQUENCE, _GRE_VERSION = 0x8000, 0x4000, 0x2000, 0x1000, 0x0007


class Carried(NamedTuple):
    """What headers of a tunnel carry.

    Attributes:
        ethertype: what it is, as an EtherType.
        at: where it begins.
        name: the name of the tunnel, with its number if it has one.
    """

    ethertype: int
    at: int
    name: str = ""


Unread = str | None
"""Why what is carried is not read, a reason of `not_read` or ``cut short``; None if it is of no interest."""


def snap(data: bytes) -> int:
    """Return the EtherType in a header of IEEE 802.2 with SNAP, which has 8 bytes; 0 without one."""
    if data[:3] != b"\xaa\xaa\x03" or data[3:6] not in (b"\0\0\0", b"\0\0\xf8"):
        return 0
    return int.from_bytes(data[6:8], "big") if len(data) >= 8 else 0


def ppp(data: bytes, reason: str) -> Carried | Unread:
    """Read a header of PPP, with or without address and control; ``reason`` is that of what is not read."""
    at = 2 if data[:2] == b"\xff\x03" else 0
    if len(data) < at + 1:
        return not_read.CUT
    size = 1 if data[at] & 1 else 2  # the first byte, which is 0, may be left out
    if len(data) < at + size:
        return not_read.CUT
    protocol = int.from_bytes(data[at : at + size], "big")
    if protocol in _PPP_CONTENTS:
        return Carried(_PPP_CONTENTS[protocol], at + size)
    return reason if protocol <= not_read.PPP_NETWORK_MAX else None


def pppoe(data: bytes) -> Carried | Unread:
    """Read the headers of a session of PPPoE and of PPP: RFC 2516."""
    reason = not_read.REASONS[not_read.PPPOE]
    if len(data) < 8:
        return not_read.CUT
    if data[:2] != b"\x11\0":
        return None
    carried = ppp(data[6:], reason)
    if not isinstance(carried, Carried):
        return carried
    return Carried(carried.ethertype, 6 + carried.at, f"pppoe={int.from_bytes(data[2:4], 'big')}")


def mpls(data: bytes, size: int) -> Carried | Unread:
    """Read a stack of labels of MPLS, and tell what follows: IP, or a pseudowire with an Ethernet frame.

    Of the bytes, ``size`` of which there were, nothing says which. What fits best is taken; of two Ethernet
    frames that fit, with a control word (RFC 4448) and without one, that with one.
    """
    labels, at = [], 0
    while True:
        if len(data) < at + 4:
            return not_read.CUT if size >= at + 4 else not_read.CONTRADICTORY
        word = int.from_bytes(data[at : at + 4], "big")
        at += 4
        labels.append(word >> 12)
        if word & 0x100:
            break
        if len(labels) == LABELS_MAX:
            return not_read.REASONS[not_read.MPLS]
    name = "mpls=" + ",".join(map(str, labels))
    if at >= len(data):
        return not_read.CUT if size > at else None
    version = data[at] >> 4
    with_word = _frame_fits(data, at + 4, size) if version == 0 else 0
    without = _frame_fits(data, at, size)
    # An address of Ethernet may look like the first bytes of IP, and an address of IP like an EtherType: the
    # second is rarer, and the checksum of IPv4 tells.
    is_ip = without < 2 or (version == 4 and _is_checksum_right(data, at))
    if version in (4, 6) and is_ip and ip_fits(data, at, size, version):
        return Carried(_IP_4 if version == 4 else _IP_6, at, name)
    if with_word or without:
        return Carried(ETHERNET_TYPE, at + 4 if with_word >= without else at, name)
    if len(data) < size and len(data) < at + 4 + 15:
        return not_read.CUT
    return not_read.REASONS[not_read.MPLS]


def gre(data: bytes, size: int) -> Carried | Unread:
    """Read a header of GRE, RFC 2784 and RFC 2890, and one of ERSPAN behind it.

    Its key tells networks apart, so that what is in one with a key is not read.
    """
    reason = not_read.REASONS[not_read.GRE]
    if len(data) < 4:
        return not_read.CUT if size >= 4 else not_read.CONTRADICTORY
    flags, ethertype = int.from_bytes(data[:2], "big"), int.from_bytes(data[2:4], "big")
    if flags & (_GRE_ROUTING | _GRE_VERSION):
        return reason
    at = 4 + 4 * (flags & (_GRE_CHECKSUM | _GRE_KEY | _GRE_SEQUENCE)).bit_count()
    if ethertype in (_ERSPAN_TYPE, _ERSPAN_3_TYPE):
        return _erspan(data, at, size, ethertype, flags)
    if flags & _GRE_KEY:
        return reason
    if ethertype in (*links.IP_TYPES, ETHERNET_TYPE, *MPLS_TYPES, PPP_TYPE):
        return Carried(ethertype, at, "gre")
    return reason


def _erspan(data: bytes, at: int, size: int, ethertype: int, flags: int) -> Carried | Unread:
    """Read a header of ERSPAN: draft-foschiano-erspan. That of type I has none."""
    if ethertype == _ERSPAN_TYPE and not flags & _GRE_SEQUENCE:
        return Carried(ETHERNET_TYPE, at, "erspan")
    length, version = (8, 1) if ethertype == _ERSPAN_TYPE else (12, 2)
    if len(data) < at + length:
        return not_read.CUT if size >= at + length else not_read.CONTRADICTORY
    if data[at] >> 4 != version:
        return not_read.REASONS[not_read.GRE]
    name = f"erspan={int.from_bytes(data[at + 2 : at + 4], 'big') & 0x3FF}"
    content = ETHERNET_TYPE
    if version == 2:
        frame_type = data[at + 10] >> 2 & 0x1F
        length += 8 * (data[at + 11] & 1)  # a header of the platform
        if frame_type == _ERSPAN_OF_IP and at + length < len(data):
            content = _IP_4 if data[at + length] >> 4 == 4 else _IP_6
        elif frame_type:
            return not_read.REASONS[not_read.GRE]
    return Carried(content, at + length, name)


def ip_fits(data: bytes, at: int, size: int, version: int) -> bool:
    """Whether a header of IP may be at an offset, as far as it was captured, of ``size`` bytes in all."""
    if at >= len(data) or data[at] >> 4 != version:
        return False
    if len(data) < at + 6:
        return len(data) < size
    if version == 4:
        header, total = (data[at] & 15) * 4, int.from_bytes(data[at + 2 : at + 4], "big")
        return header >= 20 and at + header <= size and (not total or header <= total <= size - at)
    total = int.from_bytes(data[at + 4 : at + 6], "big")
    return at + 40 + total <= size


def _is_checksum_right(data: bytes, at: int) -> bool:
    """Whether the header of IPv4 at an offset was captured and has the right checksum: RFC 1071."""
    header = data[at : at + (data[at] & 15) * 4]
    total = sum(int.from_bytes(header[i : i + 2], "big") for i in range(0, len(header), 2))
    return len(header) == (data[at] & 15) * 4 and total > 0 and total % 0xFFFF == 0


def _frame_fits(data: bytes, at: int, size: int) -> int:
    """Return how well an Ethernet frame fits at an offset: 2 with IP in it, 1 with what is often in one."""
    ethertype, start = links.type_behind(data, at + 12, at + 14)
    if ethertype in links.IP_TYPES:
        return 2 if ip_fits(data, start, size, 4 if ethertype == _IP_4 else 6) else 0
    if ethertype < not_read.LENGTHS:
        return 2 if snap(data[start : start + 8]) in links.IP_TYPES else 0
    return int(ethertype == _ARP_TYPE or ethertype in not_read.ETHERTYPES)
