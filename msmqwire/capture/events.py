"""Events of TCP reassembly: data, gaps and the end of each direction of a connection."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

GapReason = Literal["acknowledged", "timeout", "limit", "cut", "jump", "end"]
"""Why bytes are considered lost: ``acknowledged`` by the receiver but not captured; not seen before the
``timeout``; a ``limit`` on buffered segments was reached; ``cut`` off by the snaplen of the capture; the
sequence numbers ``jump``; the direction came to its ``end``."""

EndReason = Literal["fin", "rst", "reused", "idle", "capture"]
"""Why a direction ended: ``fin`` or ``rst``, the latter of either side; its ports were ``reused``; it was
``idle`` for too long, or evicted to make room for newer connections; the ``capture`` ended."""


Endpoint: TypeAlias = tuple[str, int]
"""An address and a port."""


class Flow(NamedTuple):
    """One direction of a TCP connection.

    Attributes:
        stream: the number of the connection, from 0 in the order in which connections were first seen;
            the same for both directions, and never reused.
        src: the address of the sender.
        src_port: its port.
        dst: the address of the receiver.
        dst_port: its port.
        midstream: the start of the direction was not seen, so bytes may precede the first ones delivered.
        network: a number for the network in which the addresses are: see `Datagram`.
    """

    stream: int
    src: str
    src_port: int
    dst: str
    dst_port: int
    midstream: bool
    network: int = 0

    @property
    def key(self) -> tuple[str, int, str, int, int]:
        """Both endpoints, and the network in which they are."""
        return self.src, self.src_port, self.dst, self.dst_port, self.network

    @property
    def reverse_key(self) -> tuple[str, int, str, int, int]:
        """The key of the other direction."""
        return self.dst, self.dst_port, self.src, self.src_port, self.network

    @property
    def sender(self) -> Endpoint:
        """Address and port of the sender."""
        return self.src, self.src_port

    @property
    def receiver(self) -> Endpoint:
        """Address and port of the receiver."""
        return self.dst, self.dst_port


class Data(NamedTuple):
    """The next bytes of a direction, all from one segment.

    Attributes:
        flow: the direction.
        data: the bytes, never empty.
        time_ns: when the segment was captured.
        frame: the number of the frame that carried it.
        completed_ns: when the frame was captured that put them next in order, by filling the gap before
            them or by showing that it will not be filled. The same as ``time_ns`` for data in order.
    """

    flow: Flow
    data: bytes
    time_ns: int
    frame: int
    completed_ns: int


class Gap(NamedTuple):
    """Bytes lost at this position of a direction.

    Attributes:
        flow: the direction.
        size: their number; None if unknown.
        reason: why they are considered lost.
        time_ns: when the loss was detected.
        frame: the number of the frame that revealed it; if time alone did, of the last one of the direction.
    """

    flow: Flow
    size: int | None
    reason: GapReason
    time_ns: int
    frame: int


class End(NamedTuple):
    """The end of a direction.

    Attributes:
        flow: the direction.
        reason: why it ended.
        time_ns: when the frame that ended it was captured, or else its last frame.
        frame: the number of that frame.
    """

    flow: Flow
    reason: EndReason
    time_ns: int
    frame: int


Event = Data | Gap | End


class Moment(NamedTuple):
    """The frame that causes an event, and its time."""

    time_ns: int
    frame: int


MASK: Final = 0xFFFF_FFFF


def distance(seq: int, origin: int) -> int:
    """Return how far a sequence number is from another, -2^31 to 2^31 - 1; the origin may be unwrapped."""
    return ((seq - origin + 0x8000_0000) & MASK) - 0x8000_0000
