"""Damage to the write-ahead log that SQLite mistakes for the end of the log.

SQLite ends a log at the first frame whose checksum is wrong: it may belong to the last transaction, cut off
by a power failure before that was reported as durable. But a transaction begins only when the one before is
on disk. Where one ends at or after the wrong frame and another begins, durable transactions have been lost.

The format of the log: https://www.sqlite.org/fileformat2.html#the_write_ahead_log
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from operator import mul
from pathlib import Path
from struct import Struct
from typing import BinaryIO, Final

_HEADER: Final = Struct(">8I")  # magic, version, page size, checkpoints, two salts, two checksums
_FRAME: Final = Struct(">6I")  # page, size of the file after a commit or 0, two salts, two checksums
_MAGIC: Final = 0x377F0682  # its lowest bit says that checksums are over big-endian words
_PAGE_SIZES: Final = frozenset(1 << shift for shift in range(9, 17))
_WORD: Final = 0xFFFFFFFF

Checksum = tuple[int, int]


def lost_transactions(path: Path, page_size: int) -> int:
    """Return the number of durable transactions that a log has lost; 0 for an intact or missing one.

    Transactions after the damage are counted as far as they can be recognised. Raises OSError.
    """
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return 0
    with file:
        commits = wrong = last = 0
        for number, (is_commit, is_right) in enumerate(_frames(file, page_size), 1):
            wrong = wrong or (0 if is_right else number)
            if wrong and is_commit:
                commits, last = commits + 1, number
        # the transaction that ends last need not have been durable
        return commits if commits and last < number else max(0, commits - 1)


def _frames(file: BinaryIO, page_size: int) -> Iterator[tuple[bool, bool]]:
    """Yield for each frame of the log whether it ends a transaction, and whether its checksum is right.

    Frames of earlier logs, which the file has after the present one, have other salts.
    """
    header = file.read(_HEADER.size)
    if len(header) < _HEADER.size:
        return
    magic, _, size, _, *salts, first, second = _HEADER.unpack(header)
    order = ">" if magic & 1 else "<"
    state: Checksum = (first, second)
    is_right = size in _PAGE_SIZES and (magic & ~1, checksum((0, 0), header[:24], order)) == (_MAGIC, state)
    if not is_right:
        size = page_size
        start = file.read(_FRAME.size)
        file.seek(_HEADER.size)
        if len(start) == _FRAME.size:
            salts = list(_FRAME.unpack(start)[2:4])  # the first frame identifies the log
    behind = 0  # frames of other logs, until one of this log follows
    while len(frame := file.read(_FRAME.size + size)) == _FRAME.size + size:
        _, pages, *frame_salts, first, second = _FRAME.unpack_from(frame)
        if frame_salts != salts:
            behind, is_right = behind + 1, False
            continue
        yield from ((False, False) for _ in range(behind))
        behind = 0
        if is_right:
            state = checksum(checksum(state, frame[:8], order), frame[_FRAME.size :], order)
            is_right = state == (first, second)
        yield pages != 0, is_right


@cache
def _coefficients(words: int) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, int, int, int]]:
    """Return the addend of each of `words` words in both sums, and the matrix that multiplies the seed.

    For each pair of words SQLite computes first += one + second; second += other + first.
    """
    a, b, c, d = 1, 0, 0, 1  # the matrix of the following pairs
    first: list[int] = []
    second: list[int] = []
    for _ in range(words // 2):
        first += [b, a + b]
        second += [d, c + d]
        a, b, c, d = (a + b) & _WORD, (a + 2 * b) & _WORD, (c + d) & _WORD, (c + 2 * d) & _WORD
    return tuple(reversed(first)), tuple(reversed(second)), (a, b, c, d)


def checksum(seed: Checksum, data: bytes, order: str) -> Checksum:
    """Return the checksum of SQLite's log over data of whole pairs of words."""
    words = Struct(f"{order}{len(data) // 4}I").unpack(data)
    first, second, (a, b, c, d) = _coefficients(len(words))
    return (
        (a * seed[0] + b * seed[1] + sum(map(mul, first, words))) & _WORD,
        (c * seed[0] + d * seed[1] + sum(map(mul, second, words))) & _WORD,
    )
