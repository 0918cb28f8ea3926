"""Frames of IEEE 802.11: the payload of data frames, and the reasons that other frames are not read.

Most are encrypted. Captures have them with a header of the receiver in front: radiotap, or that of PPI.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from msmqwire.capture import links, not_read

ENCRYPTED: Final = "encrypted (802.11)"
AGGREGATED: Final = "aggregated (802.11)"
FRAGMENTED: Final = "fragmented (802.11)"

_LLC: Final = 0
"""In place of an EtherType: a header of IEEE 802.2 names the next protocol."""
_DATA, _TYPE, _VERSION = 0x08, 0x0C, 0x03  # of the first byte of a frame
_QOS, _NO_DATA = 0x80, 0x40
_TO_AND_FROM_DS, _MORE_FRAGMENTS, _PROTECTED, _ORDER = 0x03, 0x04, 0x40, 0x80  # of the second one
_AMSDU: Final = 0x80
_RADIOTAP_SIZE, _PPI_SIZE, _HEADER_SIZE = 8, 8, 24
_EXTENDED, _TSFT, _FLAGS = 1 << 31, 1 << 0, 1 << 1  # of the fields that a radiotap header says to be present
_PADDED: Final = 0x20
_WORD: Final = Struct("<I").unpack_from
_HALF: Final = Struct("<H").unpack_from


def content(linktype: int, data: bytes) -> tuple[int, int] | str | None:
    """Return the content of a frame, as an EtherType and the offset of its payload.

    Of a frame whose content is not read the reason is returned; None if it is of no interest.
    """
    at, is_padded = 0, False
    if linktype == links.RADIOTAP:
        if len(data) < _RADIOTAP_SIZE:
            return not_read.CUT
        at, is_padded = _HALF(data, 2)[0], _is_padded(data)
        if data[0] or at < _RADIOTAP_SIZE:
            return not_read.link_reason(linktype)
    elif linktype == links.PPI:
        if len(data) < _PPI_SIZE:
            return not_read.CUT
        at = _HALF(data, 2)[0]
        if data[0] or at < _PPI_SIZE or _WORD(data, 4)[0] != links.WIFI:
            return not_read.link_reason(linktype)
    return _of_frame(data, at, is_padded)


def _is_padded(data: bytes) -> bool:
    """Whether a radiotap header says that the header after it is padded to a multiple of four bytes."""
    (present,) = words = _WORD(data, 4)
    at = 8
    while words[0] & _EXTENDED:
        if len(data) < at + 4:
            return False
        words, at = _WORD(data, at), at + 4
    if not present & _FLAGS:
        return False
    if present & _TSFT:
        at += -at % 8 + 8
    return len(data) > at and bool(data[at] & _PADDED)


def _of_frame(data: bytes, at: int, is_padded: bool) -> tuple[int, int] | str | None:
    if len(data) < at + 2:
        return not_read.CUT
    first, second = data[at], data[at + 1]
    if first & _VERSION or first & _TYPE != _DATA or first & _NO_DATA:
        return None
    if second & _PROTECTED:
        return ENCRYPTED
    size = _HEADER_SIZE + (6 if second & _TO_AND_FROM_DS == _TO_AND_FROM_DS else 0)
    qos_at = at + size
    if first & _QOS:
        size += 2 + (4 if second & _ORDER else 0)
    if len(data) < at + size:
        return not_read.CUT
    if first & _QOS and data[qos_at] & _AMSDU:
        return AGGREGATED
    if second & _MORE_FRAGMENTS or data[at + 22] & 0x0F:
        return FRAGMENTED
    return _LLC, at + size + (-size % 4 if is_padded else 0)
