"""Deliberate mistakes, for mutation testing: a simulator must detect each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Any, NamedTuple


class Mistake(NamedTuple):
    """A replaced function, its replacement, and the invariants that detect it.

    Attributes:
        owner, attribute: the class or module, and the name of the replaced function.
        replace: returns the replacement of the original function.
        detected_by: invariants, any of which may be the first to fail.
        first: the seed to begin with, if only many seeds detect it.
    """

    owner: Any
    attribute: str
    replace: Callable[[Any], Any]
    detected_by: frozenset[StrEnum]
    first: int = 0


@contextmanager
def injected(mistake: Mistake) -> Iterator[Mistake]:
    """Make a mistake while the block lasts; the code under test is not modified."""
    original = mistake.owner.__dict__[mistake.attribute]
    setattr(mistake.owner, mistake.attribute, mistake.replace(original))
    try:
        yield mistake
    finally:
        setattr(mistake.owner, mistake.attribute, original)


def nothing(_original: Any) -> Any:
    """Replace a function by one that does nothing."""
    return lambda *_args, **_kwargs: None


def true(_original: Any) -> Any:
    """Replace a function by one that returns True."""
    return lambda *_args, **_kwargs: True


def false(_original: Any) -> Any:
    """Replace a function by one that returns False."""
    return lambda *_args, **_kwargs: False
