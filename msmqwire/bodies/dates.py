"""Dates in bodies: text with nine digits of a second, and the zone as it was written.

The times of .NET and of Windows count 100 ns, which `datetime` has not.
"""

from __future__ import annotations

import re
from datetime import date
from typing import Final

SECOND: Final = 10_000_000
"""Units of 100 ns, as .NET's ticks."""
DAY: Final = 86_400 * SECOND
TICKS_MAX: Final = 3_652_059 * DAY - 1
"""The end of the year 9999, from the start of the year 1."""
OLE_EPOCH: Final = (date(1899, 12, 30).toordinal() - 1) * DAY
FILETIME_EPOCH: Final = (date(1601, 1, 1).toordinal() - 1) * DAY

_DATE: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})(?:T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,12}))?)?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})?"
)


def of_ticks(ticks: int, zone: str = "") -> str:
    """Return a time counted in 100 ns from the start of the year 1, 0 to `TICKS_MAX`."""
    days, rest = divmod(ticks, DAY)
    seconds, fraction = divmod(rest, SECOND)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    day = date.fromordinal(days + 1).isoformat()
    return f"{day}T{hour:02}:{minute:02}:{second:02}.{fraction:07}00{zone}"


def of_text(text: str) -> str | None:
    """Return a date of XML or JSON with nine digits and its zone as written; None if it is none."""
    parts = _DATE.fullmatch(text)
    if parts is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = parts.groups()
    if not _is_day(year, month, day) or (zone and not _is_zone(zone)):
        return None
    if hour is None:
        return text
    if int(hour) > 23 or int(minute) > 59 or int(second) > 59:
        return None
    return f"{year}-{month}-{day}T{hour}:{minute}:{second}.{(fraction or '')[:9]:0<9}{zone or ''}"


def to_ticks(text: str) -> tuple[int, str] | None:
    """Return the ticks of a date and its zone as written, ``""`` for none; None if it is not a date."""
    whole = of_text(text)
    if whole is None:
        return None
    if "T" not in whole:
        whole = f"{whole[:10]}T00:00:00.000000000{whole[10:]}"
    days = date.fromisoformat(whole[:10]).toordinal() - 1
    seconds = int(whole[11:13]) * 3600 + int(whole[14:16]) * 60 + int(whole[17:19])
    return days * DAY + seconds * SECOND + int(whole[20:27]), whole[29:]


def offset(zone: str) -> int:
    """Return the ticks that a zone is ahead of UTC."""
    if zone in ("", "Z"):
        return 0
    minutes = int(zone[1:3]) * 60 + int(zone[4:6])
    return (-minutes if zone[0] == "-" else minutes) * 60 * SECOND


def _is_day(year: str, month: str, day: str) -> bool:
    try:
        date(int(year), int(month), int(day))
    except ValueError:
        return False
    return True


def _is_zone(zone: str) -> bool:
    return zone == "Z" or (int(zone[1:3]) <= 14 and int(zone[4:6]) <= 59)
