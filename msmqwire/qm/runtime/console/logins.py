"""Logins: the token, sessions of browsers, and their limits."""

from __future__ import annotations

import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from msmqwire.names.origins import origin_of
from msmqwire.qm.runtime.console.options import ConsoleLimits
from msmqwire.service.logs import log

TOKEN_BYTES: Final = 32
TOKEN_MAX: Final = 256
"""The most characters of a token: longer ones are not checked."""
_BURST: Final = 3.0


@dataclass(slots=True, eq=False)
class BrowserSession:
    """A login of a browser.

    Attributes:
        origin: the origin of its last request.
        csrf: the token that each request for a change has to send.
        begun, used: the times of its beginning and last use, in seconds of the clock.
        streams: its open streams of events.
        allowance, counted: the number of requests that it may make at once, and the time of that count.
    """

    origin: str
    csrf: str
    begun: float
    used: float
    allowance: float
    counted: float
    streams: int = 0


class ConsoleLogins:
    """The sessions of browsers that have shown the token.

    Attributes:
        limits: limits on them.
    """

    def __init__(
        self, token: str, limits: ConsoleLimits, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._token, self.limits, self._clock = _digest(token), limits, clock
        self._sessions: OrderedDict[bytes, BrowserSession] = OrderedDict()  # by the digest of the identifier

    def log_in(self, address: str, token: object) -> tuple[str, BrowserSession] | None:
        """Return the identifier of a new session and the session; None for a wrong token.

        Nobody finds out 256 bits by trying: any number of wrong tokens keeps the right one from nothing.
        """
        text = token.strip() if isinstance(token, str) and len(token) <= TOKEN_MAX else ""
        if not hmac.compare_digest(_digest(text), self._token):
            log.warning("a wrong token for the console", extra={"peer": address})
            return None
        identifier, now = secrets.token_urlsafe(TOKEN_BYTES), self._clock()
        session = BrowserSession(
            origin_of(address),
            secrets.token_urlsafe(TOKEN_BYTES),
            now,
            now,
            self.limits.requests_per_s * _BURST,
            now,
        )
        self._sessions[_digest(identifier)] = session
        while len(self._sessions) > self.limits.sessions:
            self._sessions.popitem(last=False)
        return identifier, session

    def is_known(self, origin: str) -> bool:
        """Return whether a session that has not ended was used from an origin last."""
        return any(
            session.origin == origin and not self._is_over(session) for session in self._sessions.values()
        )

    def find(self, identifier: str, address: str) -> BrowserSession | None:
        """Return the session with an identifier, and count it as used; None if it has ended."""
        key = _digest(identifier)
        session = self._sessions.get(key)
        if session is None:
            return None
        if not self.is_valid(session):
            del self._sessions[key]
            return None
        session.used, session.origin = self._clock(), origin_of(address)
        self._sessions.move_to_end(key)
        return session

    def is_valid(self, session: BrowserSession) -> bool:
        """Whether a session has not ended."""
        return not self._is_over(session) and any(one is session for one in self._sessions.values())

    def _is_over(self, session: BrowserSession) -> bool:
        """Whether the time of a session is over."""
        now, limits = self._clock(), self.limits
        return now - session.begun > limits.session_s or now - session.used > limits.idle_s

    def end(self, session: BrowserSession) -> None:
        """End a session."""
        for key, one in list(self._sessions.items()):
            if one is session:
                del self._sessions[key]

    def allows_request(self, session: BrowserSession) -> bool:
        """Count a request of a session; return False if it makes too many."""
        rate, now = self.limits.requests_per_s, self._clock()
        session.allowance = min(rate * _BURST, session.allowance + (now - session.counted) * rate)
        session.counted = now
        if session.allowance < 1:
            return False
        session.allowance -= 1
        return True


def _digest(secret: str) -> bytes:
    """Return what is compared in place of a secret, so that the time reveals nothing about it."""
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()
