"""A page that is made anew for each request, as long as that takes a small part of the time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

SHARE: Final = 0.2
"""The part of the time in which a page is made; in the rest requests get the latest one."""
BURST_S: Final = 2.0
"""Seconds of work that may come at once."""


class BoundedPage:
    """The latest content of a page: a flood of requests costs a share of the time, whatever the page costs.

    Args:
        make: makes the page.
        clock: returns seconds. A processor that others use as well makes each page take more of them.
    """

    def __init__(self, make: Callable[[], bytes], clock: Callable[[], float] = time.monotonic) -> None:
        self._make, self._clock = make, clock
        self._left, self._counted = BURST_S, clock()
        self._latest: bytes | None = None

    def content(self) -> bytes:
        """Return the page: made now if there is time for it."""
        now = self._clock()
        self._left = min(BURST_S, self._left + (now - self._counted) * SHARE)
        self._counted = now
        if self._latest is None or self._left > 0:
            self._latest = self._make()
            self._left -= self._clock() - now
        return self._latest
