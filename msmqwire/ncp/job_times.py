"""The six-byte times in job structures, as their fields: ranges, and their moment in time.

A file server's clock has no zone; it counts as UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from msmqwire.schema import Record

RANGES: Final[Mapping[str, tuple[int, int]]] = {
    "Year": (0, 99), "Month": (1, 12), "Day": (1, 31), "Hour": (0, 24), "Minute": (0, 59), "Second": (0, 59),
}  # fmt: skip
"""The least and the greatest value of each byte."""
_FIRST_YEAR: Final = 80
_NONE: Final = 0xFF


def is_none(time: Record) -> bool:
    """Return whether it is six bytes of 0xFF: the first opportunity."""
    return all(time[name] == _NONE for name in RANGES)


def out_of_range(time: Record) -> list[str]:
    """Return the names of the bytes that are out of their ranges."""
    return [name for name, (least, most) in RANGES.items() if not least <= time[name] <= most]


def moment(time: Record) -> datetime | None:
    """Return the moment in UTC; None for a time with a byte out of its range.

    Years from 80 on are in the 1900s, lower ones in the 2000s. Hour 24 is hour 0 of the next day, and a day
    beyond the end of its month is in the next month.
    """
    if out_of_range(time):
        return None
    year = time.Year + (1900 if time.Year >= _FIRST_YEAR else 2000)
    days = timedelta(days=time.Day - 1, hours=time.Hour, minutes=time.Minute, seconds=time.Second)
    return datetime(year, time.Month, 1, tzinfo=UTC) + days
