"""Rows of several partitions in turn, which wait until a partition has enough of them for a row group.

The rows of a batch are put in order by one copy, which costs far less than one for each partition. A row
group costs as much as some thousand rows do, so partitions with few rows wait for more.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

BYTES_MAX: Final = 256 << 20
"""Bytes of rows that wait."""
ENOUGH_BYTES: Final = 4 << 20
"""Bytes of a partition in a batch that wait for no more."""

Taken = tuple[int, pa.RecordBatch, Any]
"""The number of a partition, rows of it, and their times."""


class MixedRows:
    """Rows that wait, of any partitions."""

    def __init__(self) -> None:
        self._batches: list[_Ordered] = []

    def add(self, rows: pa.RecordBatch, times: Any, numbers: Any) -> Iterator[Taken]:
        """Add rows; yield those that need not wait, by partition and sorted by time.

        Args:
            rows: the rows.
            times: their times.
            numbers: the number of the partition of each.
        """
        order = np.lexsort((times, numbers))
        batch = _Ordered.of(rows.take(pa.array(order)), times[order], numbers[order])
        large = {number for number in batch.places if batch.size(number) >= ENOUGH_BYTES}
        yield from ((number, *batch.rows_of(number)) for number in large)
        self._batches += batch.without(large)
        if sum(batch.bytes for batch in self._batches) > BYTES_MAX:
            yield from self.take(BYTES_MAX // 2)

    def take(self, bytes_left: int = 0) -> Iterator[Taken]:
        """Remove and yield all rows of the largest partitions, until those that wait have so many bytes."""
        sizes, batches = Counter[int](), defaultdict[int, list[_Ordered]](list)
        for batch in self._batches:
            for number in batch.places:
                sizes[number] += batch.size(number)
                batches[number].append(batch)
        left, taken = sizes.total(), set[int]()
        for number, size in sizes.most_common():
            if left <= bytes_left:
                break
            rows, times = zip(*(batch.rows_of(number) for batch in batches[number]), strict=True)
            yield number, pa.concat_batches(rows), np.concatenate(times)
            taken.add(number)
            left -= size
        self._batches = [rest for batch in self._batches for rest in batch.without(taken)]


@dataclass(frozen=True)
class _Ordered:
    """Rows by partition.

    Attributes:
        rows, times: the rows of one partition after those of another.
        numbers: the partition of each.
        places: the start and the end of each partition that is left.
        bytes: of the rows, with those that are not left.
    """

    rows: pa.RecordBatch
    times: Any
    numbers: Any
    places: dict[int, tuple[int, int]]
    bytes: int

    @classmethod
    def of(cls, rows: pa.RecordBatch, times: Any, numbers: Any) -> _Ordered:
        starts = np.flatnonzero(np.diff(numbers, prepend=-1))
        ends = [*starts[1:].tolist(), len(numbers)]
        places = dict(zip(numbers[starts].tolist(), zip(starts.tolist(), ends, strict=True), strict=True))
        return cls(rows, times, numbers, places, rows.nbytes)

    def size(self, number: int) -> int:
        """Bytes of a partition, about."""
        start, end = self.places[number]
        share: int = self.bytes * (end - start) // self.rows.num_rows
        return share

    def rows_of(self, number: int) -> tuple[pa.RecordBatch, Any]:
        start, end = self.places[number]
        return self.rows.slice(start, end - start), self.times[start:end]

    def without(self, removed: set[int]) -> list[_Ordered]:
        """Return what is left without some partitions, nothing if there is none.

        It is copied once that is less than half of the rows, so that these are not kept in memory for it.
        """
        places = {number: place for number, place in self.places.items() if number not in removed}
        left = sum(end - start for start, end in places.values())
        if not left:
            return []
        if left >= self.rows.num_rows // 2:
            return [_Ordered(self.rows, self.times, self.numbers, places, self.bytes)]
        chosen = np.concatenate([np.arange(start, end) for start, end in places.values()])
        return [_Ordered.of(self.rows.take(pa.array(chosen)), self.times[chosen], self.numbers[chosen])]
