"""Finder of the PDUs of DCE/RPC in one direction of a captured connection.

A PDU whose length can be believed is followed by the next one, whatever else is wrong with it. Otherwise, and
in the middle of a stream, the next PDU is the next common header.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final, TypeAlias

from msmqwire.analysis.dissection.rpc_interfaces import interfaces
from msmqwire.analysis.dissection.stream_finder import StreamFinder, StreamRange
from msmqwire.errors import MalformedPacket
from msmqwire.names.printable import agreed, counted
from msmqwire.rpc.constants import FRAGMENT_SIZE, PduType, PfcFlags
from msmqwire.rpc.pdu import (
    PTYPE_OFFSET,
    Pdu,
    has_big_endian,
    parse_header,
    parse_pdu,
    read_header,
    wrong_header,
)
from msmqwire.rpc.pdus import BIG_ENDIAN, COMMON_HEADER, COMMON_HEADER_SIZE, LITTLE_ENDIAN
from msmqwire.schema import Record

RpcRange: TypeAlias = StreamRange[Pdu]

_BIND_MAX: Final = FRAGMENT_SIZE  # bytes in which an interface is looked for
_PROPOSING: Final = (PduType.BIND, PduType.ALTER_CONTEXT)
_DREPS: Final = b"|".join(re.escape(drep.to_bytes(4, "little")) for drep in (LITTLE_ENDIAN, BIG_ENDIAN))
_TYPES: Final = b"".join(re.escape(bytes([kind])) for kind in PduType)
_HEADER: Final = re.compile(rb"\x05[\0\1][" + _TYPES + rb"].(?:" + _DREPS + rb")", re.DOTALL)
_HEADER_START: Final = 8  # bytes that the expression matches
_RESERVED: Final = COMMON_HEADER.bits("pfc_flags.PFC_RESERVED_1").mask
_CALL_ID_USUAL: Final = 0xFF_FFFF  # clients count their calls from 1


@cache
def _identifiers(big_endian: bool) -> tuple[bytes, ...]:
    """Return the identifiers of interfaces as they stand in a PDU."""
    uuids = [each.interface.identifier.uuid for each in interfaces().values()]
    return tuple(uuid.bytes if big_endian else uuid.bytes_le for uuid in uuids)


def may_begin_pdu(data: bytes) -> bool:
    """Return whether bytes begin like a PDU, as far as they reach."""
    if len(data) < _HEADER_START:
        return data[:1] == b"\5"[: len(data)] and (len(data) < 2 or data[1] < 2)
    if _HEADER.match(data) is None:
        return False
    try:
        if len(data) >= COMMON_HEADER_SIZE:
            parse_header(data[:COMMON_HEADER_SIZE])
    except MalformedPacket:
        return False
    return True


def begins_pdu(data: bytes) -> bool | None:
    """Return whether bytes begin with a PDU; None if they are too few to tell."""
    if not may_begin_pdu(data):
        return False
    return True if len(data) >= COMMON_HEADER_SIZE else None


def begins_bind(data: bytes) -> bool | None:
    """Return whether bytes begin with a PDU that proposes an interface that is read; None if that is open."""
    if not may_begin_pdu(data) or (len(data) > PTYPE_OFFSET and data[PTYPE_OFFSET] not in _PROPOSING):
        return False
    if len(data) < COMMON_HEADER_SIZE:
        return None
    header = parse_header(data)
    size = min(int(header.frag_length), _BIND_MAX)
    if any(data.find(name, COMMON_HEADER_SIZE, size) >= 0 for name in _identifiers(has_big_endian(header))):
        return True
    return None if len(data) < size else False


def _is_plausible(header: Record) -> bool:
    """Return whether a header that was found by searching may be a big-endian one.

    Its label is zeroes, which little-endian numbers in a stub have as well.
    """
    flags = header["pfc_flags"]
    return bool(
        flags & PfcFlags.FIRST_FRAG
        and not flags & _RESERVED
        and header["frag_length"] <= FRAGMENT_SIZE
        and 0 < header["call_id"] <= _CALL_ID_USUAL
    )


class RpcFinder(StreamFinder[Pdu]):
    """Finds the PDUs of one direction."""

    __slots__ = ("_header", "_searched")

    _kind = "PDU"

    def __init__(self, *, midstream: bool = False) -> None:
        super().__init__(midstream=midstream)
        self._searched = 0  # no header begins before this offset in the buffer
        self._header: Record | None = None  # that of the PDU at the start, if it is right

    def _message_size(self) -> int:
        if len(self._buffer) < COMMON_HEADER_SIZE:
            return 0
        length = self._length()
        return length if length <= len(self._buffer) else 0

    def _length(self) -> int:
        """Return the length of the PDU at the start. Raises MalformedPacket if it can't be believed."""
        head = bytes(self._buffer[:COMMON_HEADER_SIZE])
        self._header = None
        try:
            self._header = parse_header(head)
            return int(self._header.frag_length)
        except MalformedPacket:
            # Where version and data representation are right, the length is where it should be.
            length = int(read_header(head)["frag_length"])
            if length < COMMON_HEADER_SIZE:
                raise
            return length

    def _take(self, size: int) -> RpcRange:
        try:
            return self._range(size, parse_pdu(bytes(self._buffer[:size]), self._header))
        except MalformedPacket as exc:
            return self._malformed(size, exc.detached())

    def _broken_off(self, size: int) -> MalformedPacket:
        if size < COMMON_HEADER_SIZE:
            why = f"{COMMON_HEADER_SIZE} bytes are needed"
            return MalformedPacket(why, path=COMMON_HEADER.name, offset=size)
        return wrong_header(
            "frag_length", f"{counted(self._length(), 'byte')}, and {agreed(size, 'are')} there"
        )

    def _begin_search(self, offset: int) -> None:
        self._searched = offset - self._start

    def _search(self) -> tuple[int, bool]:
        buffer = self._buffer
        while (found := _HEADER.search(buffer, self._searched)) is not None:
            at = found.start()
            if len(buffer) - at < COMMON_HEADER_SIZE:
                self._searched = at
                return at, False
            try:
                header = parse_header(buffer[at : at + COMMON_HEADER_SIZE])
            except MalformedPacket:
                self._searched = at + 1
                continue
            if has_big_endian(header) and not _is_plausible(header):
                self._searched = at + 1
                continue
            return at, True
        self._searched = max(self._searched, len(buffer) - _HEADER_START + 1)
        return self._searched, False

    def _consumed(self, size: int) -> None:
        self._searched = max(0, self._searched - size)
