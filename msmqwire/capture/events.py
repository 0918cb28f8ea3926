"""What TCP reassembly tells of the two directions of a connection."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

GapReason = Literal["acknowledged", "timeout", "limit", "cut", "jump", "end"]
"""Why bytes are taken for lost: ``acknowledged`` by the receiver and not captured; awaited for too
long; a limit on what is held was reached; ``cut`` off by the snaplen of the capture; the sequence
numbers ``jump``; the direction ended."""

How = Literal["fin", "rst", "reused", "idle", "capture"]
"""How a direction ended: by FIN; by RST of either side; its ports were used again; nothing came for
too long, or it made room for others; the capture ended."""


class Flow(NamedTuple):
    """One direction of a TCP connection.

    Attributes:
        stream: the number of the connection, from 0 in the order of first sight; the same for both
            directions, and never used again.
        src: the address of the sender.
        src_port: its port.
        dst: the address of the receiver.
        dst_port: its port.
        midstream: the start of the direction was not seen, so that bytes before the first may exist.
    """

    stream: int
    src: str
    src_port: int
    dst: str
    dst_port: int
    midstream: bool


class Data(NamedTuple):
    """The next bytes of a direction, all from one segment.

    Attributes:
        flow: the direction.
        data: the bytes, never empty.
        time_ns: when the segment was captured.
        frame: the number of the frame that brought it.
        completed_ns: when the frame was captured that made them the next, by filling a hole; or by
            showing that it will stay. The same as ``time_ns`` for what came in order.
    """

    flow: Flow
    data: bytes
    time_ns: int
    frame: int
    completed_ns: int


class Gap(NamedTuple):
    """Bytes are known to be lost at this place of the direction.

    Attributes:
        flow: the direction.
        size: how many; None when that can't be told.
        reason: why they are taken for lost.
        time_ns: when that was known.
        frame: the number of the frame by which it was known; where time alone decided, of the last
            one of the direction.
    """

    flow: Flow
    size: int | None
    reason: GapReason
    time_ns: int
    frame: int


class End(NamedTuple):
    """Nothing more comes of this direction.

    Attributes:
        flow: the direction.
        how: how it ended.
        time_ns: when the frame that ended it was captured, or else its last one.
        frame: the number of that frame.
    """

    flow: Flow
    how: How
    time_ns: int
    frame: int


Event = Data | Gap | End


class Moment(NamedTuple):
    """The frame that brings something about, and its time."""

    time_ns: int
    frame: int


MASK: Final = 0xFFFF_FFFF


def distance(seq: int, origin: int) -> int:
    """How far a sequence number is from another, -2^31 to 2^31 - 1; the origin may be unwrapped."""
    return ((seq - origin + 0x8000_0000) & MASK) - 0x8000_0000
