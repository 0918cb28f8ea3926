"""The connections of a server of pages: bounded in number, rate, time and bytes, in all and by origin."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from msmqwire.names.origins import origin_of
from msmqwire.service.crowd import Crowd
from msmqwire.service.limited_connection import LimitedConnection
from msmqwire.service.logs import log
from msmqwire.service.origin_rate import OriginRate


@dataclass(frozen=True, slots=True)
class PageLimits:
    """Limits on the connections of a server of pages that have no login.

    Attributes:
        connections: open connections without a login.
        per_origin: the same, from one IPv4 address or one IPv6 network of 64 bits.
        accepts: connections accepted in a second.
        accepts_per_origin: the same, from one origin.
        seconds: the longest time of a connection: one request, and the reading of its answer.
        request_bytes: bytes that it may send.
        bytes_per_s: bytes that all may send in a second.
        bytes_per_s_per_origin: the same, from one origin.
        with_login: open connections with a login, besides.
        per_login: the same, with one login.
    """

    connections: int = 128
    per_origin: int = 64
    accepts: int = 1000
    accepts_per_origin: int = 250
    seconds: float = 10.0
    request_bytes: int = 8192
    bytes_per_s: int = 1 << 20
    bytes_per_s_per_origin: int = 1 << 18
    with_login: int = 1024
    per_login: int = 512


@dataclass(slots=True)
class PageTraffic:
    """Counters of the connections of a server of pages."""

    accepted: int = 0
    refused: int = 0
    evicted: int = 0


class PageConnections:
    """The open connections of a server of pages.

    A new connection is never refused for want of a place: the oldest one without a login makes room, of the
    same origin if that has its share, else of the origin that has most. So silent ones keep nobody out.

    Attributes:
        traffic: the counters.
    """

    def __init__(self, page: str, limits: PageLimits, is_known: Callable[[str], bool]) -> None:
        """Bound connections.

        Args:
            page: the name of the page, for logs.
            limits: the limits.
            is_known: whether an origin has a login, so that the accept limit of all does not keep it out.
        """
        self._page, self._limits, self._is_known = page, limits, is_known
        self._rate = OriginRate(limits.accepts, limits.accepts_per_origin)
        self._bytes = OriginRate(limits.bytes_per_s, limits.bytes_per_s_per_origin)
        self._without_login: Crowd[LimitedConnection] = Crowd()
        self._login_of: dict[LimitedConnection, str] = {}  # the one used least recently first
        self._of_login: dict[str, dict[LimitedConnection, None]] = {}  # in the same order
        self.traffic = PageTraffic()

    def __len__(self) -> int:
        return len(self._without_login) + len(self._login_of)

    def accepts(self, address: str) -> bool:
        """Return whether the rates allow one more connection from an address."""
        if self._admits(self._rate, address, 1):
            return True
        self.traffic.refused += 1
        log.warning(f"too many connections to the {self._page} in a second", extra={"peer": address})
        return False

    def receives(self, connection: LimitedConnection, size: int) -> bool:
        """Return whether the rates allow bytes from a connection without a login: each costs some work."""
        if self._admits(self._bytes, connection.address, size):
            return True
        self.traffic.refused += 1
        log.warning(f"too many bytes for the {self._page} in a second", extra={"peer": connection.address})
        return False

    def _admits(self, rate: OriginRate, address: str, amount: int) -> bool:
        now = asyncio.get_running_loop().time()
        return rate.admits(address, now, amount, known=self._is_known(origin_of(address)))

    def admit(self, connection: LimitedConnection) -> None:
        """Register an established connection, in place of another one if there are too many."""
        origin, crowd = origin_of(connection.address), self._without_login
        if crowd.of(origin) >= self._limits.per_origin:
            self._evict(crowd.oldest_of(origin))
        elif len(crowd) >= self._limits.connections:
            self._evict(crowd.oldest())
        self.traffic.accepted += 1
        crowd.add(connection, origin)

    def _evict(self, oldest: LimitedConnection | None) -> None:
        if oldest is not None:
            self.traffic.evicted += 1
            self.forget(oldest)  # now: its end is reported later
            oldest.abort()

    def logged_in(self, connection: LimitedConnection, login: str) -> None:
        """Note a request with a login: its connection makes room for no connection without one.

        Beyond a limit the connection used least recently ends, of the same login or of all.
        """
        if not self._forget_login(connection) and not self._without_login.discard(connection):
            return  # it has ended
        self._login_of[connection] = login
        own = self._of_login.setdefault(login, {})
        own[connection] = None
        for several, most in ((own, self._limits.per_login), (self._login_of, self._limits.with_login)):
            if len(several) > most:
                unused = next(iter(several))
                self._forget_login(unused)
                unused.abort()

    def _forget_login(self, connection: LimitedConnection) -> bool:
        """Forget that a connection has a login; return whether it had one."""
        login = self._login_of.pop(connection, None)
        if login is None:
            return False
        own = self._of_login[login]
        del own[connection]
        if not own:
            del self._of_login[login]
        return True

    def end_login(self, login: str) -> None:
        """End all connections of a login at once."""
        for connection in list(self._of_login.get(login, ())):
            self._forget_login(connection)
            connection.abort()

    def forget(self, connection: LimitedConnection) -> None:
        """Forget a connection that has ended."""
        self._forget_login(connection)
        self._without_login.discard(connection)

    def abort(self) -> None:
        """End all connections at once."""
        for connection in [*self._without_login, *self._login_of]:
            connection.abort()
