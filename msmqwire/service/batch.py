"""The changes that a driver commits together, and the waiters for that commit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from msmqwire.errors import MsmqError
from msmqwire.service.guest import Pending


class Batch:
    """Changes that are committed together.

    Attributes:
        changes: the guest's changes; None for none.
        effects: effects to carry out once the changes are durable.
        waiting: the futures of tasks that wait for the commit.
        actions: functions to call after the effects.
    """

    __slots__ = ("actions", "changes", "effects", "waiting")

    def __init__(self) -> None:
        self.changes: Pending | None = None
        self.effects: list[Any] = []
        self.waiting: list[asyncio.Future[None]] = []
        self.actions: list[Callable[[], None]] = []

    def add(self, changes: Pending, effects: list[Any]) -> None:
        """Add the changes of later calls."""
        if self.changes is None:
            self.changes = changes
        else:
            self.changes.add(changes)
        if self.effects:
            self.effects += effects
        else:
            self.effects = effects

    def wake(self, failure: MsmqError | None = None) -> None:
        """Wake the waiting tasks, with or without a failure."""
        waiting, self.waiting = self.waiting, []
        for future in waiting:
            if future.done():
                continue
            if failure is None:
                future.set_result(None)
            else:
                future.set_exception(failure)
