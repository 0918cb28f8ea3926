"""TLS handshakes under way, limited by origin: a few bytes of a peer cost us work with a key."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Final, Generic, TypeVar

from msmqwire.names.origins import origin_of
from msmqwire.qm.model.settings import Settings
from msmqwire.qm.security.work_limits import TooMuchWork, WorkLimits
from msmqwire.service.crowd import Crowd
from msmqwire.service.listener import IncomingConnection

HANDSHAKE_MS: Final = 3.0
"""Approximate milliseconds of a handshake with an RSA key of 2,048 bits, its connection included."""

ConnectionT = TypeVar("ConnectionT", bound=IncomingConnection)


class _Clock:
    """The settings of `WorkLimits` with the time of the event loop."""

    def __init__(self, settings: Settings, seconds: Callable[[], float]) -> None:
        self.settings, self._seconds = settings, seconds

    @property
    def now(self) -> int:
        return int(self._seconds() * 1_000)


class Handshakes(Generic[ConnectionT]):
    """The handshakes of one listener.

    Args:
        settings: those for work with keys: handshakes have an account of their own with the same limits.
        known: origins whose work has no limit.
        per_origin: handshakes of one origin at once; beyond it the oldest ends.
        seconds: returns the time.
    """

    def __init__(
        self, settings: Settings, known: Container[str], per_origin: int, seconds: Callable[[], float]
    ) -> None:
        self._work = WorkLimits(_Clock(settings, seconds), known)
        self._per_origin = per_origin
        self._under_way: Crowd[ConnectionT] = Crowd()

    def __len__(self) -> int:
        return len(self._under_way)

    def begin(self, connection: ConnectionT) -> bool:
        """Note a handshake, whose `end` has to follow; return False, and note nothing, to refuse it."""
        origin = origin_of(connection.address)
        try:
            self._work.check(origin)
        except TooMuchWork:
            return False
        if self._under_way.of(origin) >= self._per_origin:
            oldest = self._under_way.oldest_of(origin)
            assert oldest is not None
            self.end(oldest)
            oldest.abort()
        self._under_way.add(connection, origin)
        self._work.spend(origin, HANDSHAKE_MS)
        return True

    def end(self, connection: ConnectionT) -> None:
        """A handshake has ended; a second call does nothing."""
        self._under_way.discard(connection)
