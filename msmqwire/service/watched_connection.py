"""A connection of requests and answers, with a time limit for each step of its peer, and flow control."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from enum import Enum, auto
from typing import Final

from msmqwire.service.connection import PeerConnection
from msmqwire.service.logs import log

QUIET_S: Final = 0.25
"""Seconds without a byte after which a peer without a request counts as having read its last answer."""


class Wait(Enum):
    """The step of its peer that a connection waits for."""

    BEGIN = auto()  # the beginning of its protocol
    REST = auto()  # the rest of a request
    REQUEST = auto()
    READ = auto()  # reading its answers


class WatchedConnection(PeerConnection, ABC):
    """A connection whose peer has a limited time for each step that is awaited from it.

    A subclass writes with `_write` and returns the peer's next step from `_awaited`. Once `_is_ending` is
    set, the timer is that of the end, and no more requests are accepted.
    """

    def __init__(self, protocol: str) -> None:
        """Take the name of the protocol, for logs."""
        super().__init__()
        self._protocol = protocol
        self._wait: tuple[Wait, int] | None = None
        self._paused = False  # the peer does not read
        self._reads = True
        self._written = self._taken = 0  # bytes, and the count that the peer had read when it was watched
        self._last_used = 0.0  # the time of the last bytes, on the clock of the loop

    @abstractmethod
    def _awaited(self) -> tuple[Wait, int] | None:
        """Return the step awaited from the peer, with a number that changes when it has done something."""

    @abstractmethod
    def _seconds_for(self, wait: Wait) -> float:
        """Return the seconds that the peer may take."""

    @abstractmethod
    def _let_read(self) -> None:
        """Read from the peer, or pause: see `_set_reading`."""

    @abstractmethod
    def _is_over(self, wait: Wait) -> None:
        """End the connection: the peer has taken too long."""

    def _used(self) -> None:
        """Bytes have come or gone."""
        self._last_used = asyncio.get_running_loop().time()

    @property
    def _is_quiet(self) -> bool:
        """Whether no byte has come or gone for a while."""
        return asyncio.get_running_loop().time() - self._last_used >= QUIET_S

    # -- flow control ---------------------------------------------------------------------------------------

    def _write(self, transport: asyncio.Transport, data: bytes) -> None:
        self._written += len(data)
        self._used()
        transport.write(data)

    def _set_reading(self, reads: bool) -> None:
        transport = self._transport
        if transport is None or reads == self._reads or transport.is_closing():
            return
        self._reads = reads
        if reads:
            transport.resume_reading()
        else:
            transport.pause_reading()

    def pause_writing(self) -> None:
        if self._transport is None or self._is_ending:
            return
        self._paused = True
        self._taken = self._read_by_peer(self._transport)
        self._let_read()
        self._watch()

    def _read_by_peer(self, transport: asyncio.Transport) -> int:
        """Return the number of bytes that the transport has passed on."""
        return self._written - transport.get_write_buffer_size()

    # -- time -----------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Start the timer of the awaited step, unless it runs already."""
        wait = self._awaited()
        if wait == self._wait or self._is_ending:
            return
        self._cancel_timer()
        self._wait = wait
        if wait is not None:
            self._after(self._seconds_for(wait[0]), self._too_late)

    def _too_late(self) -> None:
        wait, self._wait, self._timer = self._wait, None, None
        if wait is None or self._transport is None:
            return
        taken, self._taken = self._taken, self._read_by_peer(self._transport)
        if wait[0] is Wait.READ and self._taken > taken:
            self._watch()
            return
        self._is_over(wait[0])

    def _report_too_late(self, wait: Wait) -> None:
        level = log.debug if wait is Wait.REQUEST else log.info
        level(
            f"a connection of {self._protocol} has waited too long",
            extra={"peer": self.address, "for": wait.name.lower()},
        )
