"""Offset of the IP packet in a frame, by the link type of the capture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

ETHERNET: Final = 1
NULL: Final = 0
LOOP: Final = 108
RAW_IP: Final = (12, 14, 101)
COOKED: Final = 113
COOKED_2: Final = 276
IPV4: Final = 228
IPV6: Final = 229
PPP: Final = 9
PPP_SERIAL: Final = 50
PPP_ETHER: Final = 51
CISCO_HDLC: Final = 104
WIFI: Final = 105
RADIOTAP: Final = 127
PPI: Final = 192
WIFI_LINKS: Final = (WIFI, RADIOTAP, PPI)
"""Frames of IEEE 802.11, alone or after a header of the receiver."""

TAGS_MAX: Final = 8
"""VLAN tags (802.1Q, 802.1ad, and the older 0x9100) that a frame may carry."""

NOT_IP: Final = -1
CUT: Final = -2
UNKNOWN_LINK: Final = -3

IP_TYPES: Final = (0x0800, 0x86DD)
TAG_TYPES: Final = (0x8100, 0x88A8, 0x9100)
"""EtherTypes of IP, and of tags of VLANs."""
_IPV4_TYPE, _IPV6_TYPE = (number.to_bytes(2, "big") for number in IP_TYPES)
_TAG_TYPES: Final = tuple(number.to_bytes(2, "big") for number in TAG_TYPES)
_TYPES_AT: Final = {  # and the start of the next header
    ETHERNET: (12, 14), COOKED: (14, 16), COOKED_2: (0, 20), CISCO_HDLC: (2, 4),
}  # fmt: skip
_PPP_TYPE, _PPPOE_TYPE = 0x880B, 0x8864
_HDLC_ADDRESSES: Final = (0x0F, 0x8F)  # unicast and broadcast, which PPP does not begin with
_FAMILIES: Final = {  # the address families of Linux, the BSDs, macOS and Windows
    family.to_bytes(4, "big"): version
    for family, version in ((2, 4), (10, 6), (23, 6), (24, 6), (28, 6), (30, 6))
}


def ip_offset(linktype: int, data: bytes) -> int:
    """Return the offset of the IP packet in a frame, or NOT_IP, CUT or UNKNOWN_LINK.

    The version in the first byte of the packet matches the one that the link header announces.
    """
    link_offset = _LINKS.get(linktype)
    return UNKNOWN_LINK if link_offset is None else link_offset(data)


def is_known(linktype: int) -> bool:
    """Whether frames of a link type are read."""
    return linktype in _LINKS


def type_of(linktype: int, data: bytes) -> tuple[int, int] | None:
    """Return the EtherType after all VLAN tags of a frame, and the offset of its payload.

    None where the link has none, and for a frame that ends before. PPP has that of PPP in a tunnel.
    """
    if linktype == PPP_ETHER:
        return _PPPOE_TYPE, 0
    if linktype in (PPP, PPP_SERIAL):
        if linktype == PPP or data[:1] == b"\xff" or not data or data[0] not in _HDLC_ADDRESSES:
            return _PPP_TYPE, 0
        linktype = CISCO_HDLC
    if linktype not in _TYPES_AT:
        return None
    ethertype, at = type_after(data, *_TYPES_AT[linktype])
    return None if ethertype < 0 else (ethertype, at)


def type_after(data: bytes, where: int, at: int) -> tuple[int, int]:
    """Return an EtherType after all VLAN tags, and the offset of its payload; -1 beyond the end.

    ``where`` is the offset of the first EtherType, ``at`` that of its payload.
    """
    for _ in range(TAGS_MAX + 1):
        ethertype = data[where : where + 2]
        if len(ethertype) < 2:
            return -1, at
        if ethertype not in _TAG_TYPES:
            break
        where, at = at + 2, at + 4
    return int.from_bytes(ethertype, "big"), at


def _of_type(data: bytes, at: int, ethertype: bytes) -> int:
    for _ in range(TAGS_MAX + 1):
        if ethertype == _IPV4_TYPE:
            return _of_version(data, at, 4)
        if ethertype == _IPV6_TYPE:
            return _of_version(data, at, 6)
        if len(ethertype) < 2:
            return CUT
        if ethertype not in _TAG_TYPES:
            return NOT_IP
        ethertype = data[at + 2 : at + 4]
        at += 4
    return NOT_IP


def _of_version(data: bytes, at: int, version: int) -> int:
    if at >= len(data):
        return CUT
    return at if data[at] >> 4 == version else NOT_IP


def _ethernet(data: bytes) -> int:
    return _of_type(data, 14, data[12:14])


def _cooked(data: bytes) -> int:
    return _of_type(data, 16, data[14:16])


def _cooked_2(data: bytes) -> int:
    return _of_type(data, 20, data[:2])


def _cisco_hdlc(data: bytes) -> int:
    return _of_type(data, 4, data[2:4])


def _other(data: bytes) -> int:
    """PPP, PPPoE and Wi-Fi: `type_of` and `wifi.content` return the content, to be read further."""
    return NOT_IP if data else CUT


def _null(data: bytes) -> int:
    # The family is in the byte order of the capturing machine, which is not recorded.
    if len(data) < 4:
        return CUT
    version = _FAMILIES.get(data[:4]) or _FAMILIES.get(data[3::-1])
    return NOT_IP if version is None else _of_version(data, 4, version)


def _loop(data: bytes) -> int:
    if len(data) < 4:
        return CUT
    version = _FAMILIES.get(data[:4])
    return NOT_IP if version is None else _of_version(data, 4, version)


def _raw(data: bytes) -> int:
    if not data:
        return CUT
    return 0 if data[0] >> 4 in (4, 6) else NOT_IP


def _ipv4(data: bytes) -> int:
    return _of_version(data, 0, 4)


def _ipv6(data: bytes) -> int:
    return _of_version(data, 0, 6)


_LINKS: Final[dict[int, Callable[[bytes], int]]] = {
    ETHERNET: _ethernet,
    NULL: _null,
    LOOP: _loop,
    **dict.fromkeys(RAW_IP, _raw),
    COOKED: _cooked,
    COOKED_2: _cooked_2,
    IPV4: _ipv4,
    IPV6: _ipv6,
    CISCO_HDLC: _cisco_hdlc,
    **dict.fromkeys((PPP, PPP_SERIAL, PPP_ETHER, *WIFI_LINKS), _other),
}
