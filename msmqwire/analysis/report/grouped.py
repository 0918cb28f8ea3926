"""Values with the same key, counted and summed together."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Final

import numpy as np

from msmqwire.capture.record import NO_TIME

_LAST: Final = np.iinfo(np.int64).max


class Grouped:
    """Groups of rows with the same key, in the order of the first row of each.

    Attributes:
        keys: the keys.
        numbers: the number of the group of each row.
        first: the first row of each group.
        counts: the number of rows of each.
    """

    def __init__(self, keys: Sequence[Hashable]) -> None:
        self.keys: list[Any] = list(dict.fromkeys(keys))
        number_of = {key: number for number, key in enumerate(self.keys)}
        self.numbers = np.fromiter(map(number_of.__getitem__, keys), np.int64, len(keys))
        self._order = np.argsort(self.numbers, kind="stable")
        self.counts = np.bincount(self.numbers, minlength=len(self.keys))
        self._starts = np.cumsum(self.counts) - self.counts
        self.first = self._order[self._starts]

    def sum(self, values: Any) -> list[int]:
        """Return the sum of each group."""
        sums: list[int] = np.add.reduceat(values[self._order], self._starts).tolist()
        return sums

    def spans(self, times_ns: Any) -> list[tuple[int | None, int | None]]:
        """Return the earliest and the latest time of each group; None if it has no time."""
        times = times_ns[self._order]
        latest = np.maximum.reduceat(times, self._starts).tolist()  # NO_TIME is before all times
        times[times == NO_TIME] = _LAST
        earliest = np.minimum.reduceat(times, self._starts).tolist()
        return [
            (None, None) if end == NO_TIME else (start, end)
            for start, end in zip(earliest, latest, strict=True)
        ]


def grouped_by(columns: Sequence[Any]) -> Grouped:
    """Return rows grouped by columns of integers."""
    keys = np.column_stack(columns)
    return Grouped(keys.view(f"V{keys.itemsize * keys.shape[1]}")[:, 0].tolist())
