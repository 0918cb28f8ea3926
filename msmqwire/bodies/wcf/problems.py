"""Faults of a body after which reading goes on."""

from __future__ import annotations

from typing import Final

from msmqwire.bodies.body import Problem

PROBLEMS_MAX: Final = 32


class Problems:
    """Faults of a body, the first ones of many.

    Attributes:
        base: the offset in the body of the bytes that are read now; None when they are none of its bytes.
    """

    __slots__ = ("base", "found", "more")

    def __init__(self) -> None:
        self.found: list[Problem] = []
        self.base: int | None = 0
        self.more = 0

    def add(self, error: str, offset: int | None, path: str = "") -> None:
        """Add a fault at a byte of those that are read now."""
        if len(self.found) >= PROBLEMS_MAX:
            self.more += 1
            return
        if offset is not None:
            offset = None if self.base is None else self.base + offset
        self.found.append(Problem(error, path, offset))

    def all(self) -> tuple[Problem, ...]:
        """Return the faults; the last one says how many are not reported."""
        if not self.more:
            return tuple(self.found)
        return (*self.found, Problem(f"{self.more} more problems of this kind are not reported"))
