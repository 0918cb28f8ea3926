"""The exception that ends a run in which an invariant does not hold."""

from __future__ import annotations

from enum import StrEnum


class Violation(Exception):
    """An invariant does not hold.

    Attributes:
        invariant: the invariant.
        details: the details of the violation.
    """

    def __init__(self, invariant: StrEnum, details: str) -> None:
        super().__init__(f"{invariant}: {details}")
        self.invariant, self.details = invariant, details

    def __reduce__(self) -> tuple[type[Violation], tuple[StrEnum, str]]:
        return Violation, (self.invariant, self.details)
