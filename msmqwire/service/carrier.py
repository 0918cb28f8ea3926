"""Carriers of the effects of a guest: each protocol registers its own with the driver."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

Performers = Mapping[type, Callable[[Any], None]]
"""The functions that carry out effects, by the kind of effect."""


class Carrier(Protocol):
    """Carries out some kinds of effects, which leave the process or reach a program in it.

    A carrier that queues its output until the end of a turn registers for that with `Driver.flush_by`. A stop
    calls `stop_listening`, `finish` while changes are still made durable, and `close` at the end; `abort`
    comes before `close` after a fault of msmqwire itself, when queued output may be wrong.
    """

    @property
    def performers(self) -> Performers:
        """The carrier of each kind of effect. No two carriers of a driver share one."""

    def stop_listening(self) -> None:
        """Accept no more work."""

    async def finish(self) -> None:
        """Wait for a limited time until the work under way has ended."""

    def abort(self) -> None:
        """End all connections at once."""

    async def close(self) -> None:
        """End all connections once their peers have read all sent data, or their time is over."""
