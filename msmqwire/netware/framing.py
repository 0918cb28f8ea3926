"""NCP over TCP: a byte stream to units, without I/O."""

from __future__ import annotations

from typing import Final, NamedTuple

from msmqwire.errors import MalformedPacket
from msmqwire.netware.headers import NCP_TCP_REPLY, NCP_TCP_REQUEST
from msmqwire.schema import Header, Record, head_size

UNIT_SIZE_MAX: Final = 0x1_0000 + 64
"""Bytes of the largest unit that is read: a request of 64 KiB and its headers."""
SMALLEST_REPLY: Final = 10
"""Bytes of the smallest unit that clients take for a reply: a preamble and the type."""
_SIGNED: Final = 8


class NcpUnit(NamedTuple):
    """A unit of a stream: its preamble and the NCP packet in it."""

    preamble: Record
    packet: bytes


class NcpFramer:
    """Splits one direction of a stream into units.

    Args:
        preamble: NCP_TCP_REQUEST or NCP_TCP_REPLY, as the direction has it.
        size_max: bytes of the largest unit that is accepted.
    """

    def __init__(self, preamble: Header, size_max: int = UNIT_SIZE_MAX) -> None:
        assert preamble in (NCP_TCP_REQUEST, NCP_TCP_REPLY)
        self._preamble, self._size_max = preamble, size_max
        self._head = head_size(preamble)
        self._buffer = bytearray()

    @property
    def held(self) -> int:
        """Bytes of units that are incomplete, or not taken yet."""
        return len(self._buffer)

    def feed(self, data: bytes) -> list[NcpUnit]:
        """Add bytes; return the units that they complete.

        Raises MalformedPacket as `next_unit`: units before are lost then. A caller that wants them, or that
        takes units as it gets to them, calls `add` and `next_unit`.
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
        start of the unit. The stream can't be read further then.
        """
        size = self._next_size()
        if not size or len(self._buffer) < size:
            return None
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        preamble, end = self._preamble.read(data)
        return NcpUnit(preamble, data[end:])

    def _next_size(self) -> int:
        """Return the size of the next unit; 0 if its length is not there yet."""
        left = len(self._buffer)
        if not left:
            return 0
        signature = self._preamble.part("Signature")
        expected = getattr(signature, "default", 0).to_bytes(4, "big")
        if bytes(self._buffer[:4]) != expected[: min(4, left)]:
            raise MalformedPacket(
                "not the signature of NCP over TCP", path=f"{self._preamble.name}.Signature", offset=0
            )
        if left < 8:
            return 0
        word = int.from_bytes(self._buffer[4:8], "big")
        size, least = word & 0x7FFFFFFF, self._head + (_SIGNED if word >> 31 else 0) + 2
        if not least <= size <= self._size_max:
            why = f"{size} is not in {least}..{self._size_max}"
            raise MalformedPacket(why, path=f"{self._preamble.name}.Length", offset=4)
        return size


def build_unit(preamble: Header, packet: bytes, **fields: object) -> bytes:
    """Return the unit with a packet, behind a `PacketSignature` if one is given. Raises InvalidValue."""
    signed = fields.get("PacketSignature") is not None
    size = head_size(preamble) + (_SIGNED if signed else 0) + len(packet)
    return preamble.build({"Length": {"Size": size, "Signed": int(signed)}, **fields}) + packet
