"""A guest that is made anew from its store, as by a restart, after failures that would end other drivers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Generic, TypeVar

from msmqwire.errors import MsmqError, StoreError, StoreRefused, Unreachable
from msmqwire.service.driver import Driver
from msmqwire.service.guest import Guest
from msmqwire.service.logs import log

GuestT = TypeVar("GuestT", bound=Guest)


class Rebuilding(Generic[GuestT]):
    """Makes the guest of a driver anew, if its whole state is in the store.

    Attributes:
        on_restart: called when a guest has been made in place of another one.
    """

    def __init__(self, driver: Driver[GuestT], make: Callable[[], GuestT], writer: Executor) -> None:
        """`make` returns the guest in the store; the writer calls it, and it may commit."""
        self._driver, self._make, self._writer = driver, make, writer
        self.on_restart: Callable[[], None] | None = None
        self._making: asyncio.Future[MsmqError | None] | None = None
        self._closed = self._restarts = False
        driver.rebuilds, driver.has_guest = True, False

    async def ready(self) -> GuestT:
        """Return the guest, made anew if there is none. Raises StoreError, and Unreachable after `close`."""
        while not self._closed:
            if self._driver.has_guest:
                return self._driver.guest
            if self._making is None:
                self._making = asyncio.ensure_future(self._made())
            making = self._making
            await asyncio.wait((making,))  # which does not cancel it for other waiting tasks
            failure = making.result()
            if isinstance(failure, StoreError):
                raise type(failure)(failure.why, file=failure.file)
            if failure is not None:
                raise failure
        raise Unreachable("the service has ended")

    async def _made(self) -> MsmqError | None:
        """Make a guest; return the reason if that fails."""
        try:
            await self._driver.idle()
            guest = await self._driver.loop.run_in_executor(self._writer, self._make)
        except StoreError as exc:
            self._driver.note_refusal(exc)
            return exc
        except Exception as exc:
            log.critical("a fault of msmqwire itself: the service can't be made anew", exc_info=exc)
            return StoreRefused(f"a fault of msmqwire itself: {exc!r}", file="the store")
        finally:
            self._making = None
        self._driver.replace(guest)
        if self._restarts and self.on_restart is not None:
            self.on_restart()
        self._restarts = True
        return None

    async def close(self) -> None:
        """Make no more guests; wait for the present one."""
        self._closed = True
        if self._making is not None:
            await asyncio.wait((self._making,))
