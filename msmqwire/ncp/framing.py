"""NCP over TCP: a byte stream to units, without I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from msmqwire.errors import MalformedPacket
from msmqwire.ncp.headers import (
    NCP_TCP_REPLY,
    NCP_TCP_REQUEST,
    TCP_REPLY_SIGNATURE,
    TCP_REQUEST_SIGNATURE,
)
from msmqwire.schema import Header, Record, head_size

UNIT_SIZE_MAX: Final = 0x1_0000 + 64
"""Bytes of the largest unit that is read: a request of 64 KiB and its headers."""
_SIGNATURES: Final = {
    NCP_TCP_REQUEST: TCP_REQUEST_SIGNATURE.to_bytes(4, "big"),
    NCP_TCP_REPLY: TCP_REPLY_SIGNATURE.to_bytes(4, "big"),
}
_TYPE: Final = 2
_SIGNED: Final = 8
_LENGTH_END: Final = 8


def unit_size(
    preamble: Header, data: bytes | bytearray, start: int = 0, size_max: int = UNIT_SIZE_MAX
) -> int:
    """Return the size of the unit at `start`, its preamble included; 0 if its length is not there yet.

    Raises MalformedPacket for a wrong signature, of which one byte is enough, or an impossible length; its
    offset is counted from the start of the unit.
    """
    left = len(data) - start
    if not left:
        return 0
    signature = _SIGNATURES[preamble]
    if not data.startswith(signature if left >= len(signature) else signature[:left], start):
        raise MalformedPacket(
            "not the signature of NCP over TCP", path=f"{preamble.name}.Signature", offset=0
        )
    if left < _LENGTH_END:
        return 0
    word = int.from_bytes(data[start + 4 : start + _LENGTH_END], "big")
    size, least = word & 0x7FFFFFFF, head_size(preamble) + (_SIGNED if word >> 31 else 0) + _TYPE
    if not least <= size <= size_max:
        why = f"{size} is not in {least}..{size_max}"
        raise MalformedPacket(why, path=f"{preamble.name}.Length", offset=4)
    return size


class NcpUnit(NamedTuple):
    """A unit of a stream: its preamble and the NCP packet in it."""

    preamble: Record
    packet: bytes


class NcpFramer:
    """Splits one direction of a stream into units.

    Args:
        preamble: NCP_TCP_REQUEST or NCP_TCP_REPLY, by the direction.
        size_max: bytes of the largest unit that is accepted.
    """

    def __init__(self, preamble: Header, size_max: int = UNIT_SIZE_MAX) -> None:
        assert preamble in (NCP_TCP_REQUEST, NCP_TCP_REPLY)
        self._preamble, self._size_max = preamble, size_max
        self._buffer = bytearray()

    @property
    def held(self) -> int:
        """Bytes of units that are incomplete, or not returned yet."""
        return len(self._buffer)

    def feed(self, data: bytes) -> list[NcpUnit]:
        """Add bytes; return the units that they complete.

        Raises MalformedPacket as `next_unit`: earlier units are lost then. A caller that needs them, or takes
        units one by one, calls `add` and `next_unit`.
        """
        self.add(data)
        units: list[NcpUnit] = []
        while (unit := self.next_unit()) is not None:
            units.append(unit)
        return units

    def add(self, data: bytes) -> None:
        """Add bytes."""
        self._buffer += data

    def next_unit(self) -> NcpUnit | None:
        """Return the next unit; None if it is not complete.

        Raises MalformedPacket for a wrong signature or an impossible length, its offset counted from the
        start of the unit. The stream is then unreadable: each later call raises the same error.
        """
        size = unit_size(self._preamble, self._buffer, 0, self._size_max)
        if not size or len(self._buffer) < size:
            return None
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        preamble, end = self._preamble.read(data)
        return NcpUnit(preamble, data[end:])


def make_preamble(preamble: Header, packet_size: int, fields: Mapping[str, Any]) -> Record:
    """Return the preamble of a packet of `packet_size` bytes; `fields` go before its own values.

    Raises InvalidValue.
    """
    signed = fields.get("PacketSignature") is not None
    size = head_size(preamble) + (_SIGNED if signed else 0) + packet_size
    length = fields.get("Length", {})
    if isinstance(length, Mapping):
        length = {"Size": size, "Signed": int(signed), **length}
    return preamble.make({**fields, "Length": length})  # type: ignore[no-any-return]


def build_unit(preamble: Header, packet: bytes, **fields: object) -> bytes:
    """Return the unit with a packet, after a `PacketSignature` if one is given. Raises InvalidValue."""
    return make_preamble(preamble, len(packet), fields).to_bytes() + packet
