"""The supervisor that has started this process, as systemd: readiness, states and the watchdog.

The protocol is that of sd_notify(3): datagrams with lines ``NAME=VALUE`` to the Unix socket that the
environment names. Without one nothing is sent.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, MutableMapping
from typing import Final

from msmqwire.service.logs import log

_SOCKET: Final = "NOTIFY_SOCKET"
_WATCHDOG: Final = "WATCHDOG_USEC"
_WATCHDOG_PID: Final = "WATCHDOG_PID"
_ABSTRACT: Final = "@"
_PINGS: Final = 2
"""Pings of the watchdog in its time, as sd_watchdog_enabled(3) recommends."""
_DIGITS_MAX: Final = 18
_STATUS_MAX: Final = 500
"""Limit of characters of a state."""
TURN_S: Final = 1.0
"""Seconds between two looks at the state, if the watchdog asks for none that are more frequent."""
EXTENSION_S: Final = 30
"""Seconds by which a start under way asks for more time, anew in each turn."""


class Supervisor:
    """Tells the supervisor of this process what it does.

    Attributes:
        watchdog_s: seconds without a ping after which the supervisor ends this process; None for no watchdog.
    """

    def __init__(self, environment: MutableMapping[str, str] = os.environ) -> None:
        """Read the socket and the watchdog from the environment, and take them out of it.

        Programs that this one starts are not what the supervisor supervises.
        """
        self._address = _address(environment.pop(_SOCKET, ""))
        usec, pid = environment.pop(_WATCHDOG, ""), environment.pop(_WATCHDOG_PID, "")
        mine = pid in ("", str(os.getpid()))
        self.watchdog_s = _seconds(usec) if mine and self._address is not None else None
        self._status = ""
        self._untold = ""  # a line that has to arrive
        self._state: Callable[[], str] = str
        self._starts: Callable[[], bool] = bool
        self._turning: asyncio.Task[None] | None = None

    def ready(self) -> None:
        """The service is ready: programs that need it are started."""
        self._untold = "" if self._send("READY=1") else "READY=1"

    def stopping(self) -> None:
        """The service has begun to stop."""
        self._untold = "" if self._send("STOPPING=1") else "STOPPING=1"

    def status(self, text: str) -> None:
        """Tell the state in words, if it has changed."""
        words = " ".join(text.split())[:_STATUS_MAX]
        if words != self._status:
            self._status = words
            self._send(f"STATUS={words}")

    def watch(self, state: Callable[[], str], starts: Callable[[], bool]) -> None:
        """Tell the state from now on, in place of an earlier one, and ping the watchdog, in the running loop.

        A loop that does not turn sends no ping. While the service `starts`, and goes on with that, it asks
        for more time instead.
        """
        self._state, self._starts = state, starts
        if self._address is not None and self._turning is None:
            self._turning = asyncio.get_running_loop().create_task(self._turn())
            self._turning.add_done_callback(_report)

    def end(self) -> None:
        """Tell no more."""
        if self._turning is not None:
            self._turning.cancel()
            self._turning = None

    async def _turn(self) -> None:
        pause = TURN_S if self.watchdog_s is None else min(TURN_S, self.watchdog_s / _PINGS)
        while True:
            self.status(self._state())
            if self._untold and self._send(self._untold):
                self._untold = ""
            if self._starts():
                self._send(f"EXTEND_TIMEOUT_USEC={EXTENSION_S * 1_000_000}")
            if self.watchdog_s is not None:
                self._send("WATCHDOG=1")
            await asyncio.sleep(pause)

    def _send(self, line: str) -> bool:
        """Send a line; return False if the supervisor does not take it now: nobody waits for it."""
        if self._address is None:
            return True
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
                sock.setblocking(False)
                sock.sendto(line.encode(), self._address)
        except OSError as exc:
            log.warning("the supervisor can't be told", extra={"error": exc.strerror or str(exc)})
            return False
        return True


def _report(turning: asyncio.Task[None]) -> None:
    exc = None if turning.cancelled() else turning.exception()
    if exc is not None:
        context = {"message": "the supervisor is told no more", "exception": exc, "task": turning}
        turning.get_loop().call_exception_handler(context)


def _address(text: str) -> str | bytes | None:
    """Return the address of a socket: a path, or a name in the abstract namespace; None if it is neither."""
    if not hasattr(socket, "AF_UNIX"):
        return None
    if text.startswith(_ABSTRACT):
        return b"\0" + os.fsencode(text[1:])
    return text if text.startswith("/") else None


def _seconds(usec: str) -> float | None:
    """Return the time of the watchdog; None for none, or one that is no number."""
    is_number = 0 < len(usec) <= _DIGITS_MAX and usec.isascii() and usec.isdigit()
    return int(usec) / 1e6 if is_number and int(usec) else None
