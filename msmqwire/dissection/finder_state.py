"""The state of a finder of packets, as it goes to another reader and comes back."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final, NamedTuple

from msmqwire.dissection.failed_checks import OVERLAPS_MAX, SIZES
from msmqwire.errors import MalformedPacket
from msmqwire.headers.base import PREFIX_SIZE, SIGNATURE, SIGNATURE_END, VERSION
from msmqwire.packets import packet_length

FAILED_MAX: Final = OVERLAPS_MAX * SIZES
"""Failed checks of a finder that goes to another reader, at most: as many as there can be, but for a few."""


PACKET_MIN: Final = 36
"""Bytes of the smallest well-formed packet, an acknowledgement of a session."""


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
    Why.NOT_CHECKED: "not checked: others were malformed whose sizes cover this one",
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


class FinderState(NamedTuple):
    """What a finder has buffered and found out. Offsets count from the start of the buffer.

    Attributes:
        segments: those buffered: how many of its bytes are before the buffer, the others, frame and time of
            each.
        needed: how many bytes there must be before more can be found; 0 if unknown.
        loss: why it is out of sync with the packets; None if it is in sync.
        remaining: bytes of an incomplete packet that are still to be skipped.
        searched_to: no certain packet begins before this offset.
        failed: checks that have failed: the bits of the size of each, and where it ends.
        checked: whether the packet at the start is known to be malformed or doubtful.
        after_malformed: whether the last packet before the start was malformed.
        run_size: bytes of the run of skipped ones that goes on; 0 for none.
        run_reason: why it is skipped.
        run_frame: the last of its frames, and its time.
        run_frames: how many frames it has.
        run_kept: whether the finder keeps frames of it.
        frames: those of its frames that the finder does not keep, each with its time.
    """

    segments: list[tuple[int, bytes, int, int]]
    needed: int = 0
    loss: SkipReason | None = None
    remaining: int = 0
    searched_to: int = 0
    failed: tuple[tuple[int, int], ...] = ()
    checked: bool = False
    after_malformed: bool = False
    run_size: int = 0
    run_reason: SkipReason | None = None
    run_frame: tuple[int, int] = (0, 0)
    run_frames: int = 0
    run_kept: bool = False
    frames: tuple[tuple[int, int], ...] = ()
