"""The six-byte times of the job structure, targetExecutionTime and jobEntryTime.

The bytes are year, month, day, hour, minute and second. The chapter gives years of two digits, 90 for 1990;
80 to 99 are the 1900s here and 0 to 79 the 2000s. The time zone is that of the file server's clock: UTC.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from msmqwire.errors import InvalidValue
from msmqwire.ncp.constants import AT_ONCE, JOB_TIME_SIZE
from msmqwire.ncp.job_structures import QUEUE_JOB_TIME
from msmqwire.ncp.job_times import moment, out_of_range

_FIRST_YEAR: Final = 1980


def is_time(value: bytes) -> bool:
    """Return whether each byte is within the range of the chapter. AT_ONCE is not a time."""
    return len(value) == JOB_TIME_SIZE and not out_of_range(QUEUE_JOB_TIME.parse(value))


def is_target_time(value: bytes) -> bool:
    """Return whether this can be the target execution time of a job: a time, or AT_ONCE."""
    return value == AT_ONCE or is_time(value)


def from_bytes(value: bytes) -> datetime:
    """Return the time in the bytes, in UTC.

    The ranges allow more than the calendar: hour 24 is the first of the next day, February 30 the second
    day after February 28 or 29.

    Raises:
        InvalidValue: a byte is out of range.
    """
    time = moment(QUEUE_JOB_TIME.parse(value)) if len(value) == JOB_TIME_SIZE else None
    if time is None:
        raise InvalidValue(f"{value.hex()} is not a time")
    return time


def to_bytes(time: datetime) -> bytes:
    """Return the bytes of a time, without its fraction of a second.

    Raises:
        InvalidValue: the time has no zone, or its year is not from 1980 to 2079, the range of two digits.
    """
    if time.tzinfo is None:
        raise InvalidValue("a time without its zone")
    time = time.astimezone(UTC)
    if not _FIRST_YEAR <= time.year < _FIRST_YEAR + 100:
        raise InvalidValue(f"the year {time.year} is not in 1980 to 2079")
    # QMS-jobfields-26
    return bytes((time.year % 100, time.month, time.day, time.hour, time.minute, time.second))
