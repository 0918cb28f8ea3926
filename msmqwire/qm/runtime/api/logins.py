"""Logins: the token, sessions of browsers, and their limits."""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from msmqwire.names.origins import origin_of
from msmqwire.qm.runtime.api.allowances import Allowance
from msmqwire.qm.runtime.api.rights import Caller
from msmqwire.qm.runtime.api.tokens import Tokens, digest, new_token
from msmqwire.qm.runtime.console.options import ConsoleLimits
from msmqwire.service.logs import log


@dataclass(slots=True, eq=False)
class BrowserSession:
    """A login of a browser.

    Attributes:
        key: the digest of its identifier.
        caller: whose token began it.
        origin: the origin of its last request.
        csrf: the token that each request for a change has to send.
        begun, used: the times of its beginning and last use, in seconds of the clock.
        allowance: the requests that it may make.
        streams: its open streams of events.
    """

    key: bytes
    caller: Caller
    origin: str
    csrf: str
    begun: float
    used: float
    allowance: Allowance
    streams: int = field(default=0)


class ConsoleLogins:
    """The sessions of browsers that have shown a token; no operation takes longer with more of them.

    Attributes:
        limits: limits on them.
    """

    def __init__(
        self, tokens: Tokens, limits: ConsoleLimits, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._tokens, self.limits, self._clock = tokens, limits, clock
        self._sessions: OrderedDict[bytes, BrowserSession] = OrderedDict()  # that used least recently first
        self._origins: Counter[str] = Counter()  # of the sessions
        tokens.on_revoked.append(self._revoked)

    def log_in(self, address: str, token: object) -> tuple[str, BrowserSession] | None:
        """Return the identifier of a new session and the session; None for a wrong token.

        Nobody finds out 256 bits by trying: any number of wrong tokens keeps the right one from nothing.
        """
        caller = self._tokens.find(token)
        if caller is None:
            log.warning("a wrong token for the console", extra={"peer": address})
            return None
        identifier, now, rate = new_token(), self._clock(), self.limits.requests_per_s
        session = BrowserSession(
            digest(identifier), caller, origin_of(address), new_token(), now, now, Allowance(rate, now)
        )
        self._sessions[session.key] = session
        self._origins[session.origin] += 1
        while len(self._sessions) > self.limits.sessions:
            self.end(next(iter(self._sessions.values())))
        return identifier, session

    def is_known(self, origin: str) -> bool:
        """Return whether a session that has not ended was used from an origin last."""
        while self._sessions and not self.is_valid(unused := next(iter(self._sessions.values()))):
            self.end(unused)
        return origin in self._origins

    def find(self, identifier: str, address: str) -> BrowserSession | None:
        """Return the session with an identifier, and count it as used; None if it has ended."""
        session = self._sessions.get(digest(identifier))
        if session is None:
            return None
        if not self.is_valid(session):
            self.end(session)
            return None
        self._forget_origin(session)
        session.used, session.origin = self._clock(), origin_of(address)
        self._origins[session.origin] += 1
        self._sessions.move_to_end(session.key)
        return session

    def is_valid(self, session: BrowserSession) -> bool:
        """Whether a session has not ended."""
        now, limits = self._clock(), self.limits
        is_over = now - session.begun > limits.session_s or now - session.used > limits.idle_s
        return not is_over and self._sessions.get(session.key) is session

    def end(self, session: BrowserSession) -> None:
        """End a session."""
        if self._sessions.pop(session.key, None) is not None:
            self._forget_origin(session)

    def _forget_origin(self, session: BrowserSession) -> None:
        self._origins[session.origin] -= 1
        if not self._origins[session.origin]:
            del self._origins[session.origin]

    def _revoked(self, caller: Caller) -> None:
        for session in [one for one in self._sessions.values() if one.caller.key == caller.key]:
            self.end(session)

    def allows_request(self, session: BrowserSession) -> bool:
        """Count a request of a session; return False if it makes too many."""
        return session.allowance.takes(self._clock())
