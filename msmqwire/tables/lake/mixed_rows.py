"""Rows of several partitions in turn, which wait until a partition has enough of them for a row group.

The rows of a batch are put in order by one copy, which costs far less than one for each partition. A row
group costs as much as some thousand rows do, so partitions with few rows wait for more.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

BYTES_MAX: Final = 256 << 20
"""Bytes of rows that wait."""
ENOUGH_BYTES: Final = 4 << 20
"""Bytes of a partition in a batch that wait for no more."""

Taken = tuple[int, pa.Table, int, Any]
"""The number of a partition, rows of it, their bytes in memory, and their times."""


class MixedRows:
    """Rows that wait, of any partitions."""

    def __init__(self) -> None:
        self._batches: list[_Ordered] = []
        self._nulls: dict[Any, pa.Array] = {}
        self._counts = Counter[int]()

    def add(self, rows: pa.RecordBatch, times: Any, numbers: Any) -> Iterator[Taken]:
        """Add rows; yield those that need not wait, by partition and sorted by time.

        Args:
            rows: the rows.
            times: their times.
            numbers: the number of the partition of each.
        """
        self._counts.update(dict(enumerate(np.bincount(numbers).tolist())))
        are_many = np.isin(numbers, list(self._largest()))
        for chosen in (np.flatnonzero(are_many), np.flatnonzero(~are_many)):
            if len(chosen):
                order = chosen[np.lexsort((times[chosen], numbers[chosen]))]
                batch = _Ordered.of(*self._taken(rows, order), times[order], numbers[order])
                large = {number for number in batch.places if batch.size(number) >= ENOUGH_BYTES}
                yield from _joined((number, [batch]) for number in large)
                self._batches += batch.without(large)
        if sum(batch.bytes for batch in self._batches) > BYTES_MAX:
            yield from self.take(BYTES_MAX // 2)

    def _largest(self) -> set[int]:
        """The largest partitions, which have half of the rows so far.

        They wait apart from other rows, as they are taken before them.
        """
        found, rows = set[int](), 0
        for number, count in self._counts.most_common():
            if rows * 2 >= self._counts.total():
                break
            found.add(number)
            rows += count
        return found

    def _taken(self, rows: pa.RecordBatch, order: Any) -> tuple[pa.RecordBatch, int]:
        """Return rows in an order, and the bytes that they take: columns without values take none."""
        n = len(order)
        names = [
            field.name
            for field, column in zip(rows.schema, rows.columns, strict=True)
            if column.null_count < rows.num_rows
        ]
        taken = _in_order(rows.select(names), order)
        columns = dict(zip(names, taken.columns, strict=True))
        arrays = [
            columns[field.name] if field.name in columns else self._nulls_of(field.type, n)
            for field in rows.schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=rows.schema), taken.nbytes

    def _nulls_of(self, kind: pa.DataType, n: int) -> pa.Array:
        """Nulls of a type; all are parts of one array."""
        if kind not in self._nulls or len(self._nulls[kind]) < n:
            self._nulls[kind] = pa.nulls(n, kind)
        return self._nulls[kind].slice(0, n)

    def take(self, bytes_left: int = 0) -> Iterator[Taken]:
        """Remove and yield all rows of the largest partitions, until those that wait have at most
        `bytes_left` bytes.
        """
        sizes, batches = Counter[int](), defaultdict[int, list[_Ordered]](list)
        for batch in self._batches:
            for number in batch.places:
                sizes[number] += batch.size(number)
                batches[number].append(batch)
        left, taken = sizes.total(), list[int]()
        for number, size in sizes.most_common():
            if left <= bytes_left:
                break
            taken.append(number)
            left -= size
        yield from _joined((number, batches[number]) for number in taken)
        removed = set(taken)
        self._batches = [rest for batch in self._batches for rest in batch.without(removed)]


def _joined(partitions: Iterable[tuple[int, list[_Ordered]]]) -> Iterator[Taken]:
    """Yield the rows of partitions from some batches, one after the other, without copying them."""
    for number, batches in partitions:
        rows, times = zip(*(batch.rows_of(number) for batch in batches), strict=True)
        size = sum(batch.size(number) for batch in batches)
        yield number, pa.Table.from_batches(rows), size, np.concatenate(times)


def _in_order(rows: pa.RecordBatch, order: Any) -> pa.RecordBatch:
    """Copy rows, by their indices."""
    # The pool that Arrow uses otherwise gives memory back at once, and takes new pages for each batch.
    return pc.take(rows, pa.array(order), memory_pool=pa.system_memory_pool())


@dataclass(frozen=True)
class _Ordered:
    """Rows by partition.

    Attributes:
        rows, times: the rows of one partition after those of another.
        numbers: the partition of each.
        places: the start and the end of each partition that is left.
        bytes: the size of the rows, with those that are not left.
    """

    rows: pa.RecordBatch
    times: Any
    numbers: Any
    places: dict[int, tuple[int, int]]
    bytes: int

    @classmethod
    def of(cls, rows: pa.RecordBatch, size: int, times: Any, numbers: Any) -> _Ordered:
        starts = np.flatnonzero(np.diff(numbers, prepend=-1))
        ends = [*starts[1:].tolist(), len(numbers)]
        places = dict(zip(numbers[starts].tolist(), zip(starts.tolist(), ends, strict=True), strict=True))
        return cls(rows, times, numbers, places, size)

    def size(self, number: int) -> int:
        """Bytes of a partition, about."""
        start, end = self.places[number]
        share: int = self.bytes * (end - start) // self.rows.num_rows
        return share

    def rows_of(self, number: int) -> tuple[pa.RecordBatch, Any]:
        start, end = self.places[number]
        return self.rows.slice(start, end - start), self.times[start:end]

    def without(self, removed: set[int]) -> list[_Ordered]:
        """Return the rows without some partitions; none if no rows are left.

        It is copied once that is less than half of the rows, so that these are not kept in memory for it.
        """
        places = {number: place for number, place in self.places.items() if number not in removed}
        left = sum(end - start for start, end in places.values())
        if not left:
            return []
        if left >= self.rows.num_rows // 2:
            return [_Ordered(self.rows, self.times, self.numbers, places, self.bytes)]
        chosen = np.concatenate([np.arange(start, end) for start, end in places.values()])
        rows = _in_order(self.rows, chosen)
        return [
            _Ordered.of(
                rows, self.bytes * left // self.rows.num_rows, self.times[chosen], self.numbers[chosen]
            )
        ]
