"""Reassembly of fragmented IP datagrams: RFC 791 and RFC 8200, 4.5.

If fragments overlap, the byte that arrived first wins.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple, Protocol

from msmqwire.capture.record import NO_TIME
from msmqwire.capture.segment_buffer import Segment, SegmentBuffer

FRAGMENTED_MAX: Final = 1024
"""Incomplete datagrams buffered at a time; the oldest is evicted."""
FRAGMENT_BYTES_MAX: Final = 16 << 20
"""Bytes of memory for fragments at a time; the oldest datagrams are evicted."""
FRAME_COST: Final = 48
"""Bytes of memory that a remembered frame number takes."""
FRAGMENT_NS_MAX: Final = 60_000_000_000
"""Nanoseconds of capture time after which an incomplete datagram is dropped."""
DATAGRAM_MAX: Final = 0xFFFF


class ReassembledDatagram(NamedTuple):
    """A datagram reassembled from its fragments.

    Attributes:
        next_header: the protocol, of the first fragment.
        payload: the bytes up to the first one that was not captured.
        size: the number of bytes of the datagram on the wire.
        frames: the frames that carried the fragments, in the order of their arrival.
    """

    next_header: int
    payload: bytes
    size: int
    frames: tuple[int, ...]


FragmentKey = (
    tuple[bytes, bytes, int, int]
    | tuple[bytes, bytes, bytes]
    | tuple[bytes, bytes, int, int, int]
    | tuple[bytes, bytes, bytes, int]
)
"""The key that the fragments of a datagram have in common: source, destination and, of IPv4, the protocol and
the identification; of IPv6 the identification; then, if any, the network in which they are.
"""


class FragmentStore(Protocol):
    """The incomplete datagrams of a capture."""

    def add(
        self, key: FragmentKey, fragment: Segment, *, more: bool, next_header: int
    ) -> ReassembledDatagram | None:
        """Add a fragment at its offset in the datagram; return the datagram if it is complete."""

    def frames(self) -> int:
        """Return how many frames the incomplete datagrams have."""


class _PartialDatagram:
    __slots__ = ("buffer", "cost", "frames", "next_header", "received", "since_ns", "total")

    def __init__(self, since_ns: int) -> None:
        self.buffer = SegmentBuffer()
        self.total: int | None = None
        self.received = 0
        self.frames: list[int] = []
        self.since_ns = since_ns
        self.cost = 0
        self.next_header = 0

    def payload(self) -> bytes:
        parts = []
        for start, end, data, _, _ in self.buffer.pop(len(self.buffer)):
            parts.append(data)
            if len(data) < end - start:
                break
        return b"".join(parts)


class Fragments:
    """The incomplete datagrams of a capture, in bounded memory.

    Attributes:
        ignored: the number of fragments dropped, by reason; the counter of the caller.
    """

    def __init__(self, ignored: Counter[str]) -> None:
        self.ignored = ignored
        self._partials: dict[object, _PartialDatagram] = {}  # in the order of their first fragments
        self._cost = 0

    def add(
        self,
        key: object,
        fragment: Segment,
        *,
        more: bool,
        next_header: int,
    ) -> ReassembledDatagram | None:
        """Add a fragment at its offset in the datagram; return the datagram if it is complete."""
        while self._partials:
            oldest, partial = next(iter(self._partials.items()))
            if partial.since_ns == NO_TIME:
                partial.since_ns = fragment.time_ns  # it waits from the next fragment with a time on
            if fragment.time_ns - partial.since_ns <= FRAGMENT_NS_MAX:
                break
            self._drop(oldest, "fragment-timeout")
        size = fragment.end - fragment.start
        if (more and (size % 8 or not size)) or fragment.end > DATAGRAM_MAX:
            self.ignored["bad-fragment"] += 1
            return None
        datagram = self._partials.get(key)
        if datagram is None:
            datagram = self._partials[key] = _PartialDatagram(fragment.time_ns)
        datagram.frames.append(fragment.frame)
        if fragment.start == 0:
            datagram.next_header = next_header
        if not more and datagram.total is None:
            datagram.total = fragment.end
        end = max(fragment.end, datagram.buffer[-1].end if len(datagram.buffer) else 0)
        if datagram.total is not None and end > datagram.total:
            self._drop(key, "bad-fragment")
            return None
        datagram.received += datagram.buffer.add(fragment)
        cost = datagram.buffer.cost + FRAME_COST * len(datagram.frames)
        self._cost += cost - datagram.cost
        datagram.cost = cost
        if datagram.received == datagram.total:
            self._forget(key)
            return ReassembledDatagram(
                datagram.next_header, datagram.payload(), datagram.total, tuple(datagram.frames)
            )
        while len(self._partials) > FRAGMENTED_MAX or self._cost > FRAGMENT_BYTES_MAX:
            self._drop(next(iter(self._partials)), "fragment-limit")
        return None

    def frames(self) -> int:
        """Return how many frames the incomplete datagrams have."""
        return sum(len(partial.frames) for partial in self._partials.values())

    def _forget(self, key: object) -> _PartialDatagram:
        partial = self._partials.pop(key)
        self._cost -= partial.cost
        return partial

    def _drop(self, key: object, reason: str) -> None:
        self.ignored[reason] += len(self._forget(key).frames)
