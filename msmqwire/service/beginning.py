"""The beginning of a driver: its guest is restored from the store, in the loop or beside it."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager

from msmqwire.service.carrying import Carrying


class Beginning(Carrying):
    """The part of a driver that starts its guest."""

    def begin(self, restore: Callable[[], object]) -> None:
        """Start the guest by a function; its store has been restored when this returns.

        Raises InvalidValue if no packet can hold the time of the clock, the subclasses of StoreError, and
        EngineFailed.
        """
        self._before_restore()
        with without_collections():
            restore()
        self._restored()

    async def begin_beside(self, restore: Callable[[], object], thread: Executor) -> None:
        """Start the guest as `begin` does, by a function that runs in a thread: the loop turns meanwhile.

        Nobody may call the guest before this returns.
        """
        self._before_restore()
        with without_collections():
            await self.loop.run_in_executor(thread, restore)
        await self._commit_in(thread)
        self._restored()

    def _before_restore(self) -> None:
        """Set the guest's clock."""
        raise NotImplementedError

    async def _commit_in(self, thread: Executor) -> None:
        """Commit the changes of the restoring in a thread, unless the disk refuses them for now."""
        raise NotImplementedError

    def _restored(self) -> None:
        """Commit the changes of the restoring, and carry out its effects."""
        raise NotImplementedError


@contextmanager
def without_collections() -> Iterator[None]:
    """Collect no garbage: it would repeatedly scan millions of positions, none of which is garbage."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
