"""Steps that must not be left half done when a task is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def finish(work: Coroutine[Any, Any, T]) -> T:
    """Do `work` to its end, even if the task is cancelled meanwhile.

    The first cancellation is delivered at the next ``await`` of the task after that, so that the caller gets
    the result of `work`: a message already taken would be lost otherwise. A second cancellation does not
    wait: `work` may never end.
    """
    task = asyncio.ensure_future(work)
    cancelled = False
    while True:
        try:
            result = await asyncio.shield(task)
            break
        except asyncio.CancelledError:
            if task.cancelled() or cancelled:
                raise
            cancelled = True
    current = asyncio.current_task()
    if cancelled and current is not None:
        asyncio.get_running_loop().call_soon(_cancel_again, current)
    return result


def _cancel_again(task: asyncio.Task[Any]) -> None:
    """Cancel a task whose cancellation was put off, unless it came from a time limit that is over."""
    if task.cancelling():
        task.uncancel()
        task.cancel()
