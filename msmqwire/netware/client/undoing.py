"""Calls whose effect must not persist if their caller does not wait any more."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from msmqwire.errors import MsmqError

T = TypeVar("T")


async def result_or_undone(task: asyncio.Task[T], undo: Callable[[T], Awaitable[object]]) -> T:
    """Return the result of a call; if the wait is cancelled, wait for the call's end and undo it.

    Raises as the call does.
    """
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        with suppress(MsmqError):
            await undo(await task)
        raise
