"""Why a finder of packets skips bytes."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final, NamedTuple

from msmqwire.errors import MalformedPacket
from msmqwire.headers.base import PREFIX_SIZE, SIGNATURE, SIGNATURE_END, VERSION
from msmqwire.packets import packet_length

PACKET_MIN: Final = 36
"""Bytes of the smallest well-formed packet, an acknowledgement of a session."""

OTHER_HTTP: Final = "HTTP that is not SRMP"
"""Why bytes of a connection with SRMP are skipped that are whole messages."""


class Why(IntEnum):
    """Why bytes are skipped."""

    BEGINS_INSIDE = 1
    OTHER_VERSION = 2
    OTHER_SIGNATURE = 3
    IMPOSSIBLE_SIZE = 4
    HOLE = 5
    LET_GO = 6
    NOT_CHECKED = 7
    REST = 8
    HELD_TOO_MUCH = 9
    MALFORMED = 10


_TEXTS: Final = {
    Why.BEGINS_INSIDE: "the capture begins inside the stream",
    Why.IMPOSSIBLE_SIZE: "after a PacketSize that can't be",
    Why.HOLE: "after a hole in the stream",
    Why.LET_GO: "after bytes that were let go",
    Why.NOT_CHECKED: "not checked: malformed packets were found whose sizes cover this one",
    Why.REST: "the rest of a packet that is not whole",
    Why.MALFORMED: "malformed like the packet before, and smaller than any that is well-formed",
    Why.HELD_TOO_MUCH: "let go, as too much is held of packets that are not whole",
}


class SkipReason(NamedTuple):
    """A reason to skip bytes.

    Attributes:
        why: the kind of reason.
        value: the version or signature where a packet should begin, of the kinds that say so; else 0.
    """

    why: Why
    value: int = 0

    @property
    def text(self) -> str:
        """The reason in words."""
        match self.why:
            case Why.OTHER_VERSION:
                return f"no packet begins here: {_refusal(self.value, SIGNATURE)}"
            case Why.OTHER_SIGNATURE:
                return f"no packet begins here: {_refusal(VERSION, self.value)}"
            case why:
                return _TEXTS[why]

    @classmethod
    def of_prefix(cls, prefix: bytes | bytearray) -> SkipReason:
        """Return why no packet begins with these bytes: another version or signature, as far as they go."""
        version, signature = struct.unpack_from("<B3xI", prefix.ljust(SIGNATURE_END, b"\0"))
        if version != VERSION:
            return cls(Why.OTHER_VERSION, version)
        return cls(Why.OTHER_SIGNATURE, signature)


def _refusal(version: int, signature: int) -> MalformedPacket:
    try:
        packet_length(struct.pack("<B3xI", version, signature).ljust(PREFIX_SIZE, b"\0"))
    except MalformedPacket as exc:
        return exc
    raise AssertionError("PacketSize is 0")
