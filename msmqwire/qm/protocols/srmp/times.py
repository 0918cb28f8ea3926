"""Times: limits are seconds in messages, dates in envelopes. [MC-MQSRM] 2.2.1.2, 2.2.5.1.1."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from msmqwire.errors import InvalidValue, MalformedPacket
from msmqwire.qm.model.enumerations import INFINITE
from msmqwire.srmp.times import NO_LIMIT, time_of

_TIME_MAX: Final = 0xFFFF_FFFF


def date_of(time: int, path: str) -> datetime:
    """Return the date of a time in seconds since 1970. Raises InvalidValue."""
    if not 0 <= time <= _TIME_MAX:
        raise InvalidValue(f"{time} is not a time of 32 bits", path=path)
    return datetime.fromtimestamp(time, UTC)


def message_time_of(date: datetime, path: str) -> int:
    """Return a date in the form of a message. Raises MalformedPacket if it does not fit into 32 bits."""
    time = time_of(date)
    if not 0 <= time <= _TIME_MAX:
        raise MalformedPacket(f"{date:%Y-%m-%d} is not a time of 32 bits", path=path)
    return time


def limit_of(sent: int, span: int, path: str) -> datetime:
    """Return the date a number of seconds after `sent`. Raises InvalidValue.

    A limit after 2038 can't be distinguished from none, and becomes none.
    """
    if not 0 <= span <= INFINITE:
        raise InvalidValue(f"{span} is not a time of 32 bits", path=path)
    return date_of(NO_LIMIT if span == INFINITE else min(sent + span, NO_LIMIT), path)


def is_past(limit: datetime, utc: int) -> bool:
    """Whether a limit is over."""
    return time_of(limit) < min(utc, NO_LIMIT)
