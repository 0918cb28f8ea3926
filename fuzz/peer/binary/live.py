"""Placeholders in the bytes of steps, filled when they are sent: the counts of the session, the time, a
GUID.
"""

from __future__ import annotations

import struct
import time
from typing import Final
from uuid import UUID

from fuzz.peer.binary.messages import NOW, PEER, WINDOW
from msmqwire.headers.session import SESSION_HEADER_SIZE

_MARK: Final = b"\xf1COUN\xf1"
_LAYOUT: Final = struct.Struct("<6s4bIH")
_NOW: Final = NOW.to_bytes(4, "little")


class Shift:
    """Differences of a SessionHeader from the right one.

    Attributes:
        acknowledged, base, sent, recoverable: the numbers added to AckSequenceNumber,
            RecoverableMsgAckSeqNumber, UserMsgSequenceNumber and RecoverableMsgSeqNumber.
        flags: bits of RecoverableMsgAckFlags that are turned over.
        window: WindowSize.
    """

    def __init__(
        self,
        *,
        acknowledged: int = 0,
        base: int = 0,
        sent: int = 0,
        recoverable: int = 0,
        flags: int = 0,
        window: int = WINDOW,
    ) -> None:
        self.acknowledged, self.base, self.sent, self.recoverable = acknowledged, base, sent, recoverable
        self.flags, self.window = flags, window

    def to_bytes(self) -> bytes:
        """Return the placeholder of the SessionHeader in the bytes of a step; it has its size."""
        return _LAYOUT.pack(
            _MARK, self.acknowledged, self.base, self.sent, self.recoverable, self.flags, self.window
        )

    @classmethod
    def of(cls, packet: bytes) -> Shift | None:
        """Return the placeholder at the end of a packet for its SessionHeader; None for none."""
        tail = packet[-SESSION_HEADER_SIZE:]
        if not tail.startswith(_MARK):
            return None
        _, acknowledged, base, sent, recoverable, flags, window = _LAYOUT.unpack(tail)
        return cls(
            acknowledged=acknowledged,
            base=base,
            sent=sent,
            recoverable=recoverable,
            flags=flags,
            window=window,
        )


def has_shift(data: bytes) -> bool:
    """Return whether a SessionHeader in some bytes is still to be made."""
    return _MARK in data


def with_counts(packet: bytes, shift: Shift | None = None) -> bytes:
    """Return a packet that ends in a SessionHeader with one that is made when it is sent."""
    return packet[:-SESSION_HEADER_SIZE] + (shift or Shift()).to_bytes()


def dated(data: bytes, peer: UUID | None) -> bytes:
    """Return the bytes of a step with the time of now, and the GUID of the peer if that is known."""
    if _NOW in data:
        data = data.replace(_NOW, int(time.time()).to_bytes(4, "little"))
    if peer is not None:
        data = data.replace(PEER.bytes_le, peer.bytes_le)
    return data
