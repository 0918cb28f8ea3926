"""The base of the kinds of timers: each protocol has an enumeration of its own."""

from __future__ import annotations

from enum import Enum


class TimerKind(Enum):
    """A base of the kinds of timers. The value of a kind is its name in the specification."""

    __hash__ = object.__hash__  # that of Enum is slow, and timers are keys
