"""Rows of a table that has damaged pages: those before, between and after them.

SQLite stops at a damaged page, and finds the rows after it by their keys. So a range that can't be read is
halved again and again, until what is left of it is damaged.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterator
from contextlib import closing
from heapq import heappop, heappush
from typing import Any, Final

_PROBES: Final = 4_000
"""The limit of the ranges that are halved."""
_DISORDER: Final = 10_000
"""The limit of rows that are out of order: a page that leads back to one above it repeats them."""
_KEY_MAX: Final = (1 << 63) - 1
_PREFIX: Final = 64
"""Bytes of a key that are halved as a number; keys with the same beginning are not distinguished."""

Row = tuple[Any, ...]
Ends = tuple[tuple[str, Any], ...]
"""The conditions of a range: how its keys compare with others."""


def all_rows(db: sqlite3.Connection, table: str, columns: str, *, of_bytes: bool) -> Iterator[Row]:
    """Yield each row of a table that can be read; without damage in the order of the keys.

    Args:
        db: the connection.
        table: the name of the table.
        columns: those of the rows; the first one is `key`.
        of_bytes: whether keys are bytes, not numbers.
    """
    yield from _Reading(db, f'SELECT {columns} FROM "{table}"', of_bytes).rows()


class _Reading:
    def __init__(self, db: sqlite3.Connection, select: str, of_bytes: bool) -> None:
        self._db, self._select, self._of_bytes = db, select, of_bytes
        self._stopped = False  # whether the last range ended at damage
        self._last: Any = None  # the key of the last row of that range
        self._gaps: list[tuple[int, Any, Any]] = []  # a heap: weight, and both ends, which don't belong to it
        self._endless = False
        self._disorder = 0

    def rows(self) -> Iterator[Row]:
        """Yield all of them."""
        yield from self._range()
        if not self._stopped:
            return
        low = self._lowest() if self._last is None else self._last
        yield from self._range((">", low), backward=True)
        if not self._stopped:
            return
        if self._last is not None or self._of_bytes:
            self._add(low, self._key(self._number_max) if self._last is None else self._last)
        else:
            self._add_growing(low)
        for _ in range(_PROBES):
            if not self._gaps:
                return
            yield from self._halves(*heappop(self._gaps)[1:])

    def _range(self, *ends: tuple[str, Any], backward: bool = False) -> Iterator[Row]:
        """Yield the rows of a range, up to its end or to damage."""
        self._stopped, self._last, cursor = False, None, self._rows(ends, backward)
        try:
            for row in cursor:
                if self._goes_on(row[0], backward):
                    self._last = row[0]
                else:
                    self._disorder += 1
                    if self._disorder > _DISORDER:
                        self._stopped = True
                        return
                yield row
        except sqlite3.Error:
            yield from self._singly(ends, backward)
        finally:
            cursor.close()

    def _singly(self, ends: Ends, backward: bool) -> Iterator[Row]:
        """Yield the rest of a range: the module sqlite3 reads ahead and loses the row before damage."""
        try:
            while True:
                after = () if self._last is None else (("<" if backward else ">", self._last),)
                with closing(self._rows((*ends, *after), backward, " LIMIT 1")) as cursor:
                    row = next(cursor, None)
                if row is None:
                    return
                if not self._goes_on(row[0], backward):
                    self._stopped = True
                    return
                self._last = row[0]
                yield row
        except sqlite3.Error:
            self._stopped = True

    def _goes_on(self, key: Any, backward: bool) -> bool:
        """Whether a key follows the last one in order."""
        return self._last is None or bool(key < self._last if backward else key > self._last)

    def _rows(self, ends: Ends, backward: bool, limit: str = "") -> Generator[Row, None, None]:
        where = " AND ".join(f"key {than} ?" for than, _ in ends)
        order = f"{f'WHERE {where}' if where else ''} ORDER BY key {'DESC' if backward else 'ASC'}"
        with closing(self._db.execute(f"{self._select} {order}{limit}", [key for _, key in ends])) as cursor:
            yield from cursor

    def _halves(self, first: Any, last: Any) -> Iterator[Row]:
        middle = self._key((self._number(first) + self._number(last)) // 2)
        yield from self._range((">=", middle), ("<", last))
        if self._stopped:
            self._add(middle if self._last is None else self._last, last)
        yield from self._range((">", first), ("<", middle), backward=True)
        if self._stopped:
            self._add(first, middle if self._last is None else self._last)

    def _add(self, first: Any, last: Any) -> None:
        """Add a gap, unless no key is between its ends. Rows are dense near the start of an endless one."""
        size = self._number(last) - self._number(first)
        if size > 1:
            heappush(self._gaps, (size if self._endless else -size, first, last))

    def _add_growing(self, low: int) -> None:
        self._endless, size = True, 2
        while low + size < _KEY_MAX:
            self._add(low + size // 2 - 1, low + size)
            size *= 2

    def _lowest(self) -> Any:
        return b"" if self._of_bytes else -1

    @property
    def _number_max(self) -> int:
        return (1 << 8 * _PREFIX) - 1

    def _number(self, key: Any) -> int:
        if not self._of_bytes:
            return int(key)
        return int.from_bytes(bytes(key)[:_PREFIX].ljust(_PREFIX, b"\0"), "big")

    def _key(self, number: int) -> Any:
        return number.to_bytes(_PREFIX, "big") if self._of_bytes else number
