"""Finder of the units of NCP in one direction of a captured connection.

A unit whose length can be believed is followed by the next one, whatever else is wrong with it. Otherwise,
and in the middle of a stream, the next unit is the next signature with a length and a type that can be. Until
a signature has been seen, nothing says that the direction is NCP, and its bytes are skipped.
"""

from __future__ import annotations

import re
from typing import Final, TypeAlias

from msmqwire.analysis.dissection.ncp_exchanges import REPLY_TYPES, REQUEST_TYPES
from msmqwire.analysis.dissection.stream_finder import StreamFinder, StreamRange
from msmqwire.errors import MalformedPacket
from msmqwire.names.printable import agreed, counted
from msmqwire.ncp.framing import NcpUnit, unit_size
from msmqwire.ncp.headers import (
    NCP_TCP_REPLY,
    NCP_TCP_REQUEST,
    TCP_REPLY_SIGNATURE,
    TCP_REQUEST_SIGNATURE,
)
from msmqwire.schema import Header, head_size

NcpRange: TypeAlias = StreamRange[NcpUnit]

REQUEST: Final = TCP_REQUEST_SIGNATURE.to_bytes(4, "big")
"""The first bytes of each unit of the client."""
REPLY: Final = TCP_REPLY_SIGNATURE.to_bytes(4, "big")
"""The first bytes of each unit of the server."""

_NO_SIGNATURE: Final = f"no NCP begins here: neither {REQUEST.decode()} nor {REPLY.decode()}"
_SIGNATURE: Final = re.compile(re.escape(REQUEST) + b"|" + re.escape(REPLY))
_KEPT: Final = len(REQUEST) - 1  # bytes at the end that may begin a signature
_SIGNED_AT: Final = 4  # the byte with the bit that tells of a packet signature
_TYPES: Final = {
    NCP_TCP_REQUEST.name: frozenset(kind.to_bytes(2, "big") for kind in REQUEST_TYPES),
    NCP_TCP_REPLY.name: frozenset(kind.to_bytes(2, "big") for kind in REPLY_TYPES),
}


def begins_unit(data: bytes) -> bool | None:
    """Return whether bytes begin with a unit; None if they are too few to tell."""
    for preamble in (NCP_TCP_REQUEST, NCP_TCP_REPLY):
        try:
            return True if unit_size(preamble, data) else None
        except MalformedPacket:
            continue
    return False


def has_unit(data: bytes) -> bool:
    """Return whether a unit begins anywhere in these bytes, as far as they tell."""
    return _find(data, 0)[1]


def _find(buffer: bytes | bytearray, start: int) -> tuple[int, bool]:
    """Return where from `start` on a unit begins, or before where none does, and which it is."""
    while (found := _SIGNATURE.search(buffer, start)) is not None:
        at = found.start()
        begins = _believed(_preamble(buffer, at), buffer, at)
        if begins is not False:
            return at, begins is True
        start = at + 1
    return max(start, len(buffer) - _KEPT, 0), False


def _preamble(buffer: bytes | bytearray, at: int = 0) -> Header:
    return NCP_TCP_REPLY if buffer[at : at + 1] == REPLY[:1] else NCP_TCP_REQUEST


def _believed(preamble: Header, buffer: bytes | bytearray, at: int) -> bool | None:
    """Return whether length and type of a unit can be; None if they are not there yet."""
    try:
        if not unit_size(preamble, buffer, at):
            return None
    except MalformedPacket:
        return False
    start = at + head_size(preamble) + (8 if buffer[at + _SIGNED_AT] >> 7 else 0)
    kind = bytes(buffer[start : start + 2])
    return kind in _TYPES[preamble.name] if len(kind) == 2 else None


class NcpFinder(StreamFinder[NcpUnit]):
    """Finds the units of one direction, requests or replies."""

    __slots__ = ("_expected", "_is_known", "_searched")

    _kind = "unit"

    def __init__(self, *, midstream: bool = False, by_server: bool = False) -> None:
        super().__init__(midstream=midstream)
        self._expected = NCP_TCP_REPLY if by_server else NCP_TCP_REQUEST  # for bytes that are neither
        self._searched = 0  # no unit begins before this offset in the buffer
        self._is_known = False  # whether a signature has been seen

    def _of_others(self) -> str:
        self._is_known = self._is_known or self._buffer[: len(REQUEST)] in (REQUEST, REPLY)
        return "" if self._is_known else _NO_SIGNATURE

    def _message_size(self) -> int:
        size = unit_size(self._preamble(), self._buffer)
        return size if size <= len(self._buffer) else 0

    def _take(self, size: int) -> NcpRange:
        self._is_known = True
        data = bytes(self._buffer[:size])
        preamble, end = _preamble(data).read(data)
        return self._range(size, NcpUnit(preamble, data[end:]))

    def _broken_off(self, size: int) -> MalformedPacket:
        preamble = self._preamble()
        announced = unit_size(preamble, self._buffer[:size])  # the bytes after it are not its own
        if not announced or size < head_size(preamble):
            why = f"{counted(head_size(preamble), 'byte', 'are')} needed"
            return MalformedPacket(why, path=preamble.name, offset=size)
        return MalformedPacket(
            f"{announced}, and {agreed(size, 'are')} there", path=f"{preamble.name}.Length", offset=4
        )

    def _preamble(self) -> Header:
        """Return the preamble of the unit that the buffer begins with."""
        known = self._buffer[:1] in (REQUEST[:1], REPLY[:1])
        return _preamble(self._buffer) if known else self._expected

    def _begin_search(self, offset: int) -> None:
        self._searched = offset - self._start

    def _search(self) -> tuple[int, bool]:
        self._searched, found = _find(self._buffer, self._searched)
        return self._searched, found

    def _consumed(self, size: int) -> None:
        self._searched = max(0, self._searched - size)
