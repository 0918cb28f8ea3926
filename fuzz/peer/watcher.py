"""What a run tells while it goes on."""

from __future__ import annotations

from typing import Protocol


class Watcher(Protocol):
    """Is told what happens in a run."""

    def line(self, text: str) -> None:
        """Something happened that people want to know."""

    def tick(self, seconds: float, packets: int, failures: int) -> None:
        """The run has gone on for so long, has sent so many packets and found so many failures."""


class Silent:
    """Forgets everything."""

    def line(self, text: str) -> None:
        """Forget it."""

    def tick(self, seconds: float, packets: int, failures: int) -> None:
        """Forget it."""
