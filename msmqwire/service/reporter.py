"""The reports of a service that are due at times of their own."""

from __future__ import annotations

from typing import Protocol


class Reporter(Protocol):
    """Reports that are due in every turn, also while the disk refuses commits.

    Attributes:
        deadline: the time of the next call of `report`, in milliseconds of the driver's clock; None for
            never.
    """

    @property
    def deadline(self) -> int | None: ...

    def report(self, now_ms: int) -> None:
        """Make the reports that are due."""

    def close(self) -> None:
        """Make the last reports."""
