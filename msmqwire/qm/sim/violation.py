"""What a run is ended by when an invariant does not hold."""

from __future__ import annotations


class Violated(Exception):
    """An invariant does not hold.

    Attributes:
        invariant: which one.
        what: what was found instead.
    """

    def __init__(self, invariant: str, what: str) -> None:
        super().__init__(f"{invariant}: {what}")
        self.invariant, self.what = invariant, what

    def __reduce__(self) -> tuple[type[Violated], tuple[str, str]]:
        return Violated, (self.invariant, self.what)
