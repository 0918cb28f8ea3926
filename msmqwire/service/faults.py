"""Uncaught exceptions: asyncio logs them and continues, a server must not."""

from __future__ import annotations

import asyncio
from typing import Any, Final, Protocol

from msmqwire.errors import MsmqError
from msmqwire.service.logs import log

_PACKAGE: Final = "msmqwire."


class Breakable(Protocol):
    """The part of a server that a fault ends."""

    @property
    def broken(self) -> asyncio.Future[Any]:
        """Done when a failure has ended it."""

    def fail(self, exc: BaseException) -> object:
        """End the part."""


class LoopFaults:
    """The exception handler of the event loop of a server.

    An exception that code of msmqwire has raised or passed on in a callback or a task is a fault of its own:
    an event is lost, and its caller would wait forever. It ends the driver. Refusals of the system (OSError)
    and exceptions within other libraries are logged as one line.
    """

    def __init__(self) -> None:
        self._driver: Breakable | None = None
        self._early: Exception | None = None

    def watch(self, driver: Breakable) -> None:
        """End this driver on faults, including earlier ones."""
        self._driver = driver
        if self._early is not None:
            driver.fail(self._early)

    def handle(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """See `asyncio.loop.set_exception_handler`."""
        exc = context.get("exception")
        if isinstance(exc, MsmqError) and self._driver is not None and self._driver.broken.done():
            return  # it has ended the driver, which has reported it
        if not isinstance(exc, Exception) or isinstance(exc, OSError) or not _is_ours(exc):
            details = {"error": repr(exc)} if exc is not None else {}
            log.error(str(context.get("message", "an error in the event loop")), extra=details)
        elif self._driver is not None:
            self._driver.fail(exc)
        else:
            self._early = self._early or exc


def _is_ours(exc: Exception) -> bool:
    """Whether an exception has come through code of msmqwire."""
    trace = exc.__traceback__
    while trace is not None:
        if str(trace.tb_frame.f_globals.get("__name__", "")).startswith(_PACKAGE):
            return True
        trace = trace.tb_next
    return False
