"""Times: limits of messages are seconds, those of envelopes are dates. [MC-MQSRM] 2.2.1.2, 2.2.5.1.1."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from msmqwire.errors import InvalidValue, MalformedPacket
from msmqwire.qm.model.enumerations import INFINITE

NO_LIMIT: Final = 0x7FFF_FFFF
"""20380119T031407, which says that there is no limit: SRMP-2.2.5.1.1-04."""
_TIME_MAX: Final = 0xFFFF_FFFF
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def date_of(time: int, path: str) -> datetime:
    """Return the date of a time in seconds since 1970. Raises InvalidValue."""
    if not 0 <= time <= _TIME_MAX:
        raise InvalidValue(f"{time} is not a time of 32 bits", path=path)
    return datetime.fromtimestamp(time, UTC)


def time_of(date: datetime) -> int:
    """Return a date in seconds since 1970."""
    return (date - _EPOCH) // timedelta(seconds=1)


def message_time_of(date: datetime, path: str) -> int:
    """Return a date as a message has it. Raises MalformedPacket for one that does not fit into 32 bits."""
    time = time_of(date)
    if not 0 <= time <= _TIME_MAX:
        raise MalformedPacket(f"{date:%Y-%m-%d} is not a time of 32 bits", path=path)
    return time


def limit_of(sent: int, span: int, path: str) -> datetime:
    """Return the date at which so many seconds after `sent` are over. Raises InvalidValue.

    A limit after 2038 can't be told from none, and becomes none.
    """
    if not 0 <= span <= INFINITE:
        raise InvalidValue(f"{span} is not a time of 32 bits", path=path)
    return date_of(NO_LIMIT if span == INFINITE else min(sent + span, NO_LIMIT), path)


def span_of(limit: datetime, sent: int) -> int:
    """Return the seconds from `sent` to a limit; 0 if it was over before."""
    end = time_of(limit)
    return INFINITE if end >= NO_LIMIT else max(0, end - sent)
