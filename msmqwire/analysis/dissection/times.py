"""Times as users write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECONDS: Final = re.compile(r"[0-9]{1,15}(\.[0-9]+)?")
_FRACTION: Final = re.compile(r"(?<=:\d\d)[.,](\d{1,9})\d*")


def parse_time(text: str) -> int:
    """Parse ISO 8601 text (UTC by default) or seconds since 1970; return nanoseconds since 1970.

    Raises ValueError.
    """
    if _SECONDS.fullmatch(text):
        whole, _, part = text.partition(".")
        return int(whole) * 1_000_000_000 + int(part[:9].ljust(9, "0"))
    fraction = _FRACTION.search(text)  # parsed apart, as datetime supports fewer digits
    moment = datetime.fromisoformat(_FRACTION.sub("", text))
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    seconds = (moment - _EPOCH) // timedelta(seconds=1)
    return seconds * 1_000_000_000 + (int(fraction[1].ljust(9, "0")) if fraction else 0)
