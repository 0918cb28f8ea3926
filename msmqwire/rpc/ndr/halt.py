"""A halt of parsing or building, before the stub is known."""

from __future__ import annotations

from typing import Self


class Halt(Exception):
    """The fault, and its path, which grows on the way out.

    Attributes:
        offset: the byte in the stub; None when building.
        requirement: the requirement that is broken, where the declaration names it.
    """

    def __init__(self, why: str, offset: int | None = None, *, path: str = "", requirement: str = "") -> None:
        super().__init__(why)
        self.why, self.offset, self.path, self.requirement = why, offset, path, requirement

    def under(self, name: str) -> Self:
        """Put a name in front of the path; none for a union, which has no name."""
        if name:
            dot = "." if self.path and not self.path.startswith("[") else ""
            self.path = f"{name}{dot}{self.path}"
        return self
