"""Tasks of an event loop."""

from __future__ import annotations

import asyncio


async def cancel_other_tasks() -> None:
    """Cancel all tasks of the running loop but the current one, and wait until they have ended."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
