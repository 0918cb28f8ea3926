"""Fragments of IP datagrams put together: RFC 791 and RFC 8200, 4.5.

Where fragments overlap, the byte that came first wins.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

from msmqwire.capture.segment_buffer import Piece, Pieces

FRAGMENTED_MAX: Final = 1024
"""Datagrams of which fragments are held at a time; the oldest makes room."""
FRAGMENT_BYTES_MAX: Final = 16 << 20
"""Bytes of memory for fragments at a time; the oldest datagrams make room."""
FRAME_COST: Final = 48
"""Bytes that remembering the number of a frame takes."""
FRAGMENT_NS_MAX: Final = 60_000_000_000
"""Nanoseconds of capture time after which the rest of a datagram is no longer awaited."""
DATAGRAM_MAX: Final = 0xFFFF


class Whole(NamedTuple):
    """A datagram put together.

    Attributes:
        next_header: the protocol, of the first fragment.
        payload: the bytes up to the first one that was not captured.
        size: how many bytes there were on the wire.
        frames: the frames that brought them, in the order of their arrival.
    """

    next_header: int
    payload: bytes
    size: int
    frames: tuple[int, ...]


class _Partial:
    __slots__ = ("cost", "frames", "held", "next_header", "pieces", "since", "total")

    def __init__(self, since: int) -> None:
        self.pieces = Pieces()
        self.total: int | None = None
        self.held = 0
        self.frames: list[int] = []
        self.since = since
        self.cost = 0
        self.next_header = 0

    def payload(self) -> bytes:
        parts = []
        for start, end, data, _, _ in self.pieces.take(len(self.pieces)):
            parts.append(data)
            if len(data) < end - start:
                break
        return b"".join(parts)


class Fragments:
    """The datagrams of which fragments have come, in bounded memory.

    Attributes:
        ignored: how many fragments were dropped, by reason; counted into what the owner gives.
    """

    def __init__(self, ignored: Counter[str]) -> None:
        self.ignored = ignored
        self._partials: dict[object, _Partial] = {}  # in the order of their first fragments
        self._cost = 0

    def add(
        self,
        key: object,
        piece: Piece,
        *,
        more: bool,
        next_header: int,
    ) -> Whole | None:
        """Take a fragment by its place in the datagram; the datagram it completes."""
        while self._partials:
            oldest, partial = next(iter(self._partials.items()))
            if piece.time_ns - partial.since <= FRAGMENT_NS_MAX:
                break
            self._drop(oldest, "fragment-timeout")
        size = piece.end - piece.start
        if (more and (size % 8 or not size)) or piece.end > DATAGRAM_MAX:
            self.ignored["bad-fragment"] += 1
            return None
        found = self._partials.get(key)
        if found is None:
            found = self._partials[key] = _Partial(piece.time_ns)
        found.frames.append(piece.frame)
        if piece.start == 0:
            found.next_header = next_header
        if not more and found.total is None:
            found.total = piece.end
        end = max(piece.end, found.pieces[-1].end if len(found.pieces) else 0)
        if found.total is not None and end > found.total:
            self._drop(key, "bad-fragment")
            return None
        found.held += found.pieces.add(piece)
        cost = found.pieces.cost + FRAME_COST * len(found.frames)
        self._cost += cost - found.cost
        found.cost = cost
        if found.held == found.total:
            self._forget(key)
            return Whole(found.next_header, found.payload(), found.total, tuple(found.frames))
        while len(self._partials) > FRAGMENTED_MAX or self._cost > FRAGMENT_BYTES_MAX:
            self._drop(next(iter(self._partials)), "fragment-limit")
        return None

    def _forget(self, key: object) -> _Partial:
        partial = self._partials.pop(key)
        self._cost -= partial.cost
        return partial

    def _drop(self, key: object, reason: str) -> None:
        self.ignored[reason] += len(self._forget(key).frames)
