"""Dates of envelopes as the limits that messages have: [MC-MQSRM] 2.2.1.2, 2.2.5.1.1."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

NO_LIMIT: Final = 0x7FFF_FFFF
"""20380119T031407, which says that there is no limit: SRMP-2.2.5.1.1-04."""
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_INFINITE: Final = 0xFFFF_FFFF


def time_of(date: datetime) -> int:
    """Return a date in seconds since 1970."""
    return (date - EPOCH) // timedelta(seconds=1)


def span_of(limit: datetime, sent: int) -> int:
    """Return the seconds from `sent` to a limit; 0 if it was over before, 0xFFFFFFFF for no limit."""
    end = time_of(limit)
    return _INFINITE if end >= NO_LIMIT else max(0, end - sent)
