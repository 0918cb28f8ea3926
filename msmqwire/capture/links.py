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

TAGS_MAX: Final = 8
"""VLAN tags (802.1Q, 802.1ad, and the older 0x9100) that a frame may carry."""

NOT_IP: Final = -1
CUT: Final = -2
UNKNOWN_LINK: Final = -3

_IPV4_TYPE, _IPV6_TYPE = b"\x08\x00", b"\x86\xdd"
_TAG_TYPES: Final = (b"\x81\x00", b"\x88\xa8", b"\x91\x00")
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
}
