"""The six-byte times of the job structure, targetExecutionTime and jobEntryTime.

The bytes are year, month, day, hour, minute and second. The chapter gives years of two digits, 90 for 1990;
80 to 99 are the 1900s here and 0 to 79 the 2000s. The time zone is that of the file server's clock: UTC.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from msmqwire.errors import InvalidValue
from msmqwire.netware.constants import AT_ONCE, JOB_TIME_SIZE

_RANGES: Final = ((0, 99), (1, 12), (1, 31), (0, 24), (0, 59), (0, 59))
_FIRST_YEAR: Final = 1980


def is_time(value: bytes) -> bool:
    """Return whether each byte is within the range of the chapter. AT_ONCE is no time."""
    return len(value) == JOB_TIME_SIZE and all(
        low <= byte <= high for byte, (low, high) in zip(value, _RANGES, strict=True)
    )


def is_target_time(value: bytes) -> bool:
    """Return whether this can be the target execution time of a job: a time, or AT_ONCE."""
    return value == AT_ONCE or is_time(value)


def from_bytes(value: bytes) -> datetime:
    """Return the time that the bytes stand for, in UTC.

    The ranges allow more than the calendar: hour 24 is the first of the next day, February 30 the second
    day after February 28 or 29.

    Raises:
        InvalidValue: a byte is out of range.
    """
    if not is_time(value):
        raise InvalidValue(f"{value.hex()} is no time")
    year, month, day, hour, minute, second = value
    century = 1900 if year >= _FIRST_YEAR % 100 else 2000
    first = datetime(century + year, month, 1, tzinfo=UTC)
    return first + timedelta(days=day - 1, hours=hour, minutes=minute, seconds=second)


def to_bytes(time: datetime) -> bytes:
    """Return the bytes of a time, without its fraction of a second.

    Raises:
        InvalidValue: the time has no zone, or two digits of its year can't stand for it: 1980 to 2079 only.
    """
    if time.tzinfo is None:
        raise InvalidValue("a time without its zone")
    time = time.astimezone(UTC)
    if not _FIRST_YEAR <= time.year < _FIRST_YEAR + 100:
        raise InvalidValue(f"the year {time.year} is not in 1980 to 2079")
    return bytes((time.year % 100, time.month, time.day, time.hour, time.minute, time.second))
