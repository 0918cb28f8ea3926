"""Shortens the input of a failure: fewer cases, fewer steps, fewer segments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from fuzz.peer.steps import Case, Step

T = TypeVar("T")
Cases = tuple[Case, ...]


def shrink(cases: Cases, fails: Callable[[Cases], bool]) -> Cases:
    """Return the shortest cases found that still fail.

    Args:
        cases: the failing cases.
        fails: performs cases, and returns whether the peer fails in the same way; it may return False without
            trying when there is no more time.
    """
    cases = tuple(_fewest(cases, lambda some: fails(tuple(some))))
    for at in reversed(range(len(cases))):
        cases = _shrink_case(cases, at, fails)
    return cases


def _shrink_case(cases: Cases, at: int, fails: Callable[[Cases], bool]) -> Cases:
    """Make one of the cases shorter."""

    def having(steps: Sequence[Step]) -> Cases:
        return (*cases[:at], replace(cases[at], steps=tuple(steps)), *cases[at + 1 :])

    steps = list(_fewest(cases[at].steps, lambda some: fails(having(some))))
    for number, step in enumerate(steps):
        if step.cuts:
            whole = [*steps[:number], replace(step, cuts=()), *steps[number + 1 :]]
            steps = whole if fails(having(whole)) else steps
    return having(steps)


def _fewest(items: Sequence[T], fails: Callable[[Sequence[T]], bool]) -> Sequence[T]:
    """Remove smaller and smaller parts while the remainder fails."""
    size = len(items) // 2
    while size >= 1:
        start = 0
        while start < len(items):
            rest = [*items[:start], *items[start + size :]]
            if rest and fails(rest):
                items = rest
            else:
                start += size
        size //= 2
    return items
