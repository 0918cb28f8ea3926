"""Progress of a run."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Protocol

PATIENCE_S: Final = 2.0
"""The time after which people want to know the reason of a wait."""


class Watcher(Protocol):
    """An observer of the events of a run."""

    def line(self, text: str) -> None:
        """Something happened that people want to know."""

    def tick(self, seconds: float, packets: int, failures: int) -> None:
        """The run has taken `seconds`, with the packets sent and the failures found."""


class Silent:
    """Forgets everything."""

    def line(self, text: str) -> None:
        """Forget it."""

    def tick(self, seconds: float, packets: int, failures: int) -> None:
        """Forget it."""


@dataclass(slots=True)
class Notice:
    """The reason of a wait.

    Attributes:
        noticed: whether it took so long that it was reported.
    """

    noticed: bool = False


@contextmanager
def noticing(watcher: Watcher, text: str) -> Iterator[Notice]:
    """Report the reason of a wait, once it takes longer than `PATIENCE_S`."""
    notice = Notice()

    def report() -> None:
        notice.noticed = True
        watcher.line(text)

    timer = threading.Timer(PATIENCE_S, report)
    timer.daemon = True
    timer.start()
    try:
        yield notice
    finally:
        timer.cancel()
        timer.join()
