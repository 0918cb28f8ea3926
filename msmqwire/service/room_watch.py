"""Repeated checks of the room on the disk: other programs write to it as well."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial

from msmqwire.errors import StoreError
from msmqwire.service.disk import Room
from msmqwire.service.event_loop import EventLoop, Handle
from msmqwire.service.logs import log


class RoomWatch:
    """Checks the room of a driver from time to time.

    With a `writer` the room is measured in its thread, and `measured` is called afterwards. Without one
    `look` measures it.
    """

    def __init__(
        self,
        loop: EventLoop,
        writer: Executor | None,
        *,
        look: Callable[[], None],
        measured: Callable[[], None],
        fail: Callable[[BaseException], object],
    ) -> None:
        self._loop, self._writer = loop, writer
        self._look, self._measured, self._fail = look, measured, fail
        self._room: Room | None = None
        self._poll_s = 0.0
        self._timer: Handle | None = None
        self._ended = False
        self._unknown = ""

    def start(self, room: Room, poll_s: float) -> None:
        """Check a room now, and `poll_s` seconds after each check."""
        self._room, self._poll_s = room, poll_s
        self._check()

    def cancel(self) -> None:
        """Check no more: the driver ends."""
        self._ended = True
        if self._timer is not None:
            self._timer.cancel()

    def _check(self) -> None:
        if self._room is None or self._ended:
            return
        if self._writer is not None:
            look = self._loop.run_in_executor(self._writer, partial(self._room.look, tidy=True))
            look.add_done_callback(self._looked)
            return
        try:
            self._look()
        except Exception as exc:
            self._fail(exc)
        else:
            self._timer = self._loop.call_later(self._poll_s, self._check)

    def _looked(self, look: asyncio.Future[None]) -> None:
        """The writer has measured the room."""
        if self._ended or look.cancelled():
            return
        failure = look.exception()
        if isinstance(failure, StoreError):
            if str(failure) != self._unknown:
                self._unknown = str(failure)
                log.warning("the room on the disk is unknown", extra={"error": str(failure)})
        elif failure is not None:
            self._fail(failure)
        else:
            self._measured()
        self._timer = self._loop.call_later(self._poll_s, self._check)
