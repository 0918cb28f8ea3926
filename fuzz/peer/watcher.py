"""Progress of a run."""

from __future__ import annotations

from typing import Protocol


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
