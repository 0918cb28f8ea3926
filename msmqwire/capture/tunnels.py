"""Headers of the tunnels in which packets of interest may be: VXLAN, Geneve, GRE, ERSPAN, MPLS, PPPoE, LLC.

Each function reads the headers at the beginning of some bytes, as far as these were captured, and returns
their content, see `Carried`. It reads of the payload only enough to know its kind: a label of MPLS does not
say it, and a port of UDP is not proof. IP in IP needs no function, as nothing is between the two headers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from ipaddress import ip_address
from typing import Any, Final, NamedTuple

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
"""The name of IP in IP by the version of the outer packet and the protocol number of the inner one."""

SEPARATE: Final = frozenset(("vxlan", "geneve", "gre"))
"""Tunnels whose number tells networks apart: the same addresses in two of them are of different hosts. Labels
of MPLS, sessions of ERSPAN and of PPPoE don't: they differ by direction."""

UDP_PORTS: Final = frozenset({*not_read.VXLAN_PORTS, not_read.VXLAN_GPE_PORT, not_read.GENEVE_PORT})
"""Destination ports of UDP of tunnels that are read."""
_VXLAN_NUMBER, _GPE_PROTOCOL, _GPE_OAM, _GPE_VERSION = 0x08, 0x04, 0x01, 0x30  # flags of VXLAN
_GENEVE_OAM: Final = 0x80

_GPE_CONTENTS: Final = {1: _IP_4, 2: _IP_6, 3: ETHERNET_TYPE, 5: MPLS_TYPES[0]}
_PPP_CONTENTS: Final = {0x0021: _IP_4, 0x0057: _IP_6, 0x0281: MPLS_TYPES[0], 0x0283: MPLS_TYPES[1]}
_GRE_CHECKSUM, _GRE_ROUTING, _GRE_KEY, _GRE_SEQUENCE, _GRE_VERSION = 0x8000, 0x4000, 0x2000, 0x1000, 0x0007


class Encapsulation(NamedTuple):
    """The tunnels in which a packet was captured: the columns ``tunnel`` and its like.

    Attributes:
        text: the tunnels from outside in, separated by blanks, each as ``name`` or ``name=number``:
            ``gre=7 mpls=100,200 vxlan=5001``; None without any, as of the other attributes.
        src: the sender of the IP packet next outside the packet's own; None if there is none.
        dst: its receiver.
        number: the innermost number; of a stack of labels the bottom one.
    """

    text: str | None = None
    src: str | None = None
    dst: str | None = None
    number: int | None = None


PLAIN: Final = Encapsulation()
"""The encapsulation of a packet in no tunnel."""


class FrameInTunnel(int):
    """The number of a frame, with the tunnels of the packet in it."""

    encapsulation: Encapsulation = PLAIN

    def __reduce__(self) -> tuple[Any, ...]:
        return frame_in_tunnel, (int(self), self.encapsulation)


def frame_in_tunnel(number: int, encapsulation: Encapsulation) -> int:
    """Return the number of a frame with the tunnels of the packet in it, as it is for none."""
    if encapsulation is PLAIN:
        return number
    frame = FrameInTunnel(number)
    frame.encapsulation = encapsulation
    return frame


def encapsulation_of(frame: int) -> Encapsulation:
    """Return the tunnels of the packet in a frame, by its number as a datagram has it."""
    return frame.encapsulation if isinstance(frame, FrameInTunnel) else PLAIN


class Path(NamedTuple):
    """The tunnels around a packet, from outside in.

    Attributes:
        names: their names.
        numbers: the numbers of each.
        src: the sender of the innermost IP packet outside of it, as bytes; empty without any.
        dst: its receiver.
    """

    names: tuple[str, ...] = ()
    numbers: tuple[tuple[int, ...], ...] = ()
    src: bytes = b""
    dst: bytes = b""

    def within(self, name: str, numbers: tuple[int, ...]) -> Path:
        """Return the path with a further tunnel."""
        return self._replace(names=(*self.names, name), numbers=(*self.numbers, numbers))

    def encapsulation(self) -> Encapsulation:
        """Return its values in rows."""
        parts = [
            f"{name}={','.join(map(str, numbers))}" if numbers else name
            for name, numbers in zip(self.names, self.numbers, strict=True)
        ]
        src, dst = (str(ip_address(address)) if address else None for address in (self.src, self.dst))
        number = next((numbers[-1] for numbers in reversed(self.numbers) if numbers), None)
        return Encapsulation(" ".join(parts), src, dst, number)

    def network(self) -> int:
        """Return a number for the network in which the addresses of the packet are: see `network_of`."""
        pairs = zip(self.names, self.numbers, strict=True)
        return network_of([number for name, of in pairs if name in SEPARATE for number in of])


def network_of(numbers: Sequence[int]) -> int:
    """Return a number of 62 bits for a network, by the numbers of its tunnels, outermost first; 0 for none.

    Two networks have the same with the probability of random numbers.
    """
    if not numbers:
        return 0
    text = " ".join(map(str, numbers)).encode()
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big") >> 2


def network_of_text(text: str | None) -> int:
    """Return the network of a packet by the `Encapsulation.text` of its tunnels."""
    return 0 if text is None else _network_of_text(text)


@lru_cache(1 << 12)
def _network_of_text(text: str) -> int:
    tunnels = [part.partition("=") for part in text.split()]
    return network_of([int(number) for name, _, number in tunnels if name in SEPARATE and number])


class Carried(NamedTuple):
    """The payload of the headers of a tunnel.

    Attributes:
        ethertype: its kind, as an EtherType.
        at: its beginning.
        name: the name of the tunnel, empty for headers that are none.
        numbers: the numbers of the tunnel; those of a stack of labels are several.
    """

    ethertype: int
    at: int
    name: str = ""
    numbers: tuple[int, ...] = ()


Unread = str | None
"""The reason that the payload is not read, a reason of `not_read` or ``cut short``; None if it is of no
interest.
"""


def snap(data: bytes) -> int:
    """Return the EtherType in a header of IEEE 802.2 with SNAP, which has 8 bytes; 0 without one."""
    if data[:3] != b"\xaa\xaa\x03" or data[3:6] not in (b"\0\0\0", b"\0\0\xf8"):
        return 0
    return int.from_bytes(data[6:8], "big") if len(data) >= 8 else 0


def ppp(data: bytes, reason: str) -> Carried | Unread:
    """Read a header of PPP, with or without address and control; ``reason`` is the one for a payload that is
    not read.
    """
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
    return Carried(carried.ethertype, 6 + carried.at, "pppoe", (int.from_bytes(data[2:4], "big"),))


def mpls(data: bytes, size: int) -> Carried | Unread:
    """Read a stack of labels of MPLS, and recognise its payload: IP, or a pseudowire with an Ethernet frame.

    Of the bytes, ``size`` of which there were, nothing says which. The best fit is taken; of two Ethernet
    frames that fit, with a control word (RFC 4448) and without one, the one with it.
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
    if at >= len(data):
        return not_read.CUT if size > at else None
    version = data[at] >> 4
    with_word = _frame_fits(data, at + 4, size) if version == 0 else 0
    without = _frame_fits(data, at, size)
    # An address of Ethernet may look like the first bytes of IP, and an address of IP like an EtherType: the
    # second is rarer, and the checksum of IPv4 tells.
    is_ip = without < 2 or (version == 4 and _is_checksum_right(data, at))
    if version in (4, 6) and is_ip and ip_fits(data, at, size, version):
        return Carried(_IP_4 if version == 4 else _IP_6, at, "mpls", tuple(labels))
    if with_word or without:
        return Carried(ETHERNET_TYPE, at + 4 if with_word >= without else at, "mpls", tuple(labels))
    if len(data) < size and len(data) < at + 4 + 15:
        return not_read.CUT
    return not_read.REASONS[not_read.MPLS]


def gre(data: bytes, size: int) -> Carried | Unread:
    """Read a header of GRE, RFC 2784 and RFC 2890, and one of ERSPAN after it."""
    reason = not_read.REASONS[not_read.GRE]
    if len(data) < 4:
        return not_read.CUT if size >= 4 else not_read.CONTRADICTORY
    flags, ethertype = int.from_bytes(data[:2], "big"), int.from_bytes(data[2:4], "big")
    if flags & (_GRE_ROUTING | _GRE_VERSION):
        return reason
    at = 4 + 4 * (flags & (_GRE_CHECKSUM | _GRE_KEY | _GRE_SEQUENCE)).bit_count()
    if ethertype in (_ERSPAN_TYPE, _ERSPAN_3_TYPE):
        return _erspan(data, at, size, ethertype, flags)
    if ethertype not in (*links.IP_TYPES, ETHERNET_TYPE, *MPLS_TYPES, PPP_TYPE):
        return reason
    if len(data) < at:
        return not_read.CUT if size >= at else not_read.CONTRADICTORY
    if not flags & _GRE_KEY:
        return Carried(ethertype, at, "gre")
    key = 8 if flags & _GRE_CHECKSUM else 4
    return Carried(ethertype, at, "gre", (int.from_bytes(data[key : key + 4], "big"),))


def _erspan(data: bytes, at: int, size: int, ethertype: int, flags: int) -> Carried | Unread:
    """Read a header of ERSPAN: draft-foschiano-erspan. That of type I has none."""
    if ethertype == _ERSPAN_TYPE and not flags & _GRE_SEQUENCE:
        return Carried(ETHERNET_TYPE, at, "erspan")
    length, version = (8, 1) if ethertype == _ERSPAN_TYPE else (12, 2)
    if len(data) < at + length:
        return not_read.CUT if size >= at + length else not_read.CONTRADICTORY
    if data[at] >> 4 != version:
        return not_read.REASONS[not_read.GRE]
    session = int.from_bytes(data[at + 2 : at + 4], "big") & 0x3FF
    content = ETHERNET_TYPE
    if version == 2:
        frame_type = data[at + 10] >> 2 & 0x1F
        length += 8 * (data[at + 11] & 1)  # a header of the platform
        if frame_type == _ERSPAN_OF_IP and at + length < len(data):
            content = _IP_4 if data[at + length] >> 4 == 4 else _IP_6
        elif frame_type:
            return not_read.REASONS[not_read.GRE]
    return Carried(content, at + length, "erspan", (session,))


def over_udp(dst_port: int, data: bytes, size: int) -> Carried | None:
    """Read a header of VXLAN or Geneve in a datagram; None for one that is not a tunnel.

    A port is not proof: the header must be valid, and followed by a frame or a packet, of ``size`` bytes in
    all.
    """
    if len(data) < 8:
        return None
    carried = _geneve(data) if dst_port == not_read.GENEVE_PORT else _vxlan(data, dst_port)
    if carried is None or not _content_fits(carried, data, size):
        return None
    return carried


def _vxlan(data: bytes, dst_port: int) -> Carried | None:
    """Read a header of VXLAN, RFC 7348, or of its Generic Protocol Extension, draft-ietf-nvo3-vxlan-gpe."""
    flags = data[0]
    numbers = (int.from_bytes(data[4:7], "big"),) if flags & _VXLAN_NUMBER else ()
    if dst_port == not_read.VXLAN_GPE_PORT and flags & _GPE_PROTOCOL:
        if flags & (_GPE_OAM | _GPE_VERSION) or data[3] not in _GPE_CONTENTS:
            return None
        return Carried(_GPE_CONTENTS[data[3]], 8, "vxlan", numbers)
    return Carried(ETHERNET_TYPE, 8, "vxlan", numbers) if numbers and not data[7] else None


def _geneve(data: bytes) -> Carried | None:
    """Read a header of Geneve with its options: RFC 8926."""
    ethertype = int.from_bytes(data[2:4], "big")
    if data[0] >> 6 or data[1] & _GENEVE_OAM or ethertype not in (ETHERNET_TYPE, *links.IP_TYPES):
        return None
    number = int.from_bytes(data[4:7], "big")
    return Carried(ethertype, 8 + 4 * data[0], "geneve", (number,))


def _content_fits(carried: Carried, data: bytes, size: int) -> bool:
    """Whether the content of headers, as far as it was captured, is of the protocol that they name."""
    ethertype, at = carried.ethertype, carried.at
    if ethertype == ETHERNET_TYPE:
        return _frame_fits(data, at, size) > 0
    if ethertype in MPLS_TYPES:
        return isinstance(mpls(data[at:], size - at), Carried)
    return ip_fits(data, at, size, 4 if ethertype == _IP_4 else 6)


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
    """Return the fit of an Ethernet frame at an offset: 2 with IP in it, 1 with another common EtherType."""
    ethertype, start = links.type_after(data, at + 12, at + 14)
    if ethertype in links.IP_TYPES:
        return 2 if ip_fits(data, start, size, 4 if ethertype == _IP_4 else 6) else 0
    if ethertype < not_read.LENGTHS:
        return 2 if snap(data[start : start + 8]) in links.IP_TYPES else 0
    return int(ethertype == _ARP_TYPE or ethertype in not_read.ETHERTYPES)
