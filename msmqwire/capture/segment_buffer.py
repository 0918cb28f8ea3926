"""Pieces of a run of bytes that arrive in any order, overlap and repeat: the first to come wins."""

from __future__ import annotations

from bisect import bisect_right
from typing import Final, NamedTuple

PIECE_COST: Final = 256
"""Bytes of memory that holding a piece takes besides its content: its objects, generously."""


class Piece(NamedTuple):
    """The bytes from ``start`` to ``end``. Where ``data`` is shorter, the capture cut off the rest."""

    start: int
    end: int
    data: bytes
    time_ns: int
    frame: int


class Pieces:
    """Pieces held in the order of their places, none overlapping another.

    Attributes:
        cost: the bytes of memory they take, about.
        conflicts: how many bytes came again with another value, and were dropped.
    """

    __slots__ = ("_pieces", "_starts", "conflicts", "cost")

    def __init__(self) -> None:
        self.cost = self.conflicts = 0
        self._starts: list[int] = []
        self._pieces: list[Piece] = []

    def __len__(self) -> int:
        return len(self._pieces)

    def __getitem__(self, index: int) -> Piece:
        return self._pieces[index]

    def add(self, new: Piece) -> int:
        """Hold what is not held yet of a piece; how many bytes that is."""
        starts, pieces, added = self._starts, self._pieces, 0
        place = new.start
        index = bisect_right(starts, place)
        if index:
            place = self._compare(pieces[index - 1], new, place)
        while place < new.end:
            stop = min(new.end, starts[index]) if index < len(starts) else new.end
            if place < stop:
                data, part = new.data[place - new.start : stop - new.start], new
                if stop - place < new.end - new.start:
                    part = new._replace(start=place, end=stop, data=data)
                starts.insert(index, place)
                pieces.insert(index, part)
                self.cost += PIECE_COST + len(data)
                added += stop - place
                index += 1
            place = stop
            if place < new.end:
                place = self._compare(pieces[index], new, place)
                index += 1
        return added

    def _compare(self, held: Piece, new: Piece, place: int) -> int:
        """Count where they differ from ``place`` on; where ``held`` ends, but not before ``place``."""
        stop = min(held.end, new.end)
        if place < stop:
            old = held.data[place - held.start : stop - held.start]
            other = new.data[place - new.start : stop - new.start]
            if old != other:
                self.conflicts += sum(a != b for a, b in zip(old, other, strict=False))
        return max(place, held.end)

    def take(self, count: int) -> list[Piece]:
        """Let go of the first ``count`` pieces."""
        taken = self._pieces[:count]
        del self._pieces[:count], self._starts[:count]
        self.cost -= sum(PIECE_COST + len(piece.data) for piece in taken)
        return taken

    def joined(self, place: int) -> int:
        """How many pieces, from the first on, follow each other without a hole from ``place`` on."""
        count = 0
        for piece in self._pieces:
            if piece.start > place:
                break
            place = piece.end
            count += 1
        return count
