"""The messages that the tokens of the API hold: a session a token, with limits for all of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from uuid import UUID

from msmqwire.names.printable import counted
from msmqwire.qm.runtime.api.deadlines import Deadlines
from msmqwire.qm.runtime.api.messaging_limits import MessagingLimits
from msmqwire.qm.runtime.api.once import Once
from msmqwire.qm.runtime.api.problems import RETRY, Problem, too_many
from msmqwire.qm.runtime.api.rights import Caller
from msmqwire.qm.runtime.api.token_session import TokenSession
from msmqwire.qm.runtime.engine_driver import EngineDriver


class MessageSessions:
    """The sessions of all tokens.

    Attributes:
        driver: runs the queue manager.
        limits: the limits.
        once: the requests with an Idempotency-Key.
        receipts: when receipts expire, by session and receipt.
        transactions: when transactions that nobody uses are aborted, by session and identifier.
        held: the number of receipts that are good.
        streams: the number of open streams.
        unread: bytes of messages that clients have not read yet.
    """

    def __init__(self, driver: EngineDriver, limits: MessagingLimits | None = None) -> None:
        self.driver, self.limits = driver, limits or MessagingLimits()
        self.once = Once(driver)
        self.receipts: Deadlines[tuple[TokenSession, str]] = Deadlines(driver.loop, self._expired)
        self.transactions: Deadlines[tuple[TokenSession, UUID]] = Deadlines(driver.loop, self._unused)
        self._idle: Deadlines[TokenSession] = Deadlines(driver.loop, self._close_idle)
        self._sessions: dict[str, TokenSession] = {}
        self.held = self.streams = self.unread = 0
        self._closed = False
        self._waiting: list[Callable[[], None]] = []  # for room

    def __len__(self) -> int:
        return len(self._sessions)

    def of(self, caller: Caller) -> TokenSession:
        """Return the session of a token; it is opened by its first use. Raises Problem after the end."""
        session = self._sessions.get(caller.key)
        if session is None:
            if self._closed:
                raise Problem(503, "the server ends")
            self._sessions[caller.key] = session = TokenSession(self, caller.key)
        return session

    def check_receiving(self) -> None:
        """Raise Problem if no more messages may be received now."""
        if self.held >= self.limits.held:
            raise too_many(f"{counted(self.held, 'message', 'are')} received and not settled")
        if not self.has_room:
            why = "clients do not read the messages that they have received"
            raise Problem(503, why, headers=RETRY)

    @property
    def has_room(self) -> bool:
        """Whether clients have read enough for further messages to be sent."""
        return self.unread < self.limits.unread_bytes

    def when_room(self, action: Callable[[], None]) -> None:
        """Call `action` once there is room again, or soon."""
        if self.has_room:
            self.driver.loop.call_soon(action)
        else:
            self._waiting.append(action)

    def read(self, size: int) -> None:
        """Note that bytes counted as unread have been read, or given up."""
        self.unread -= size
        if self._waiting and self.has_room:
            waiting, self._waiting = self._waiting, []
            for action in waiting:
                self.driver.loop.call_soon(action)

    def used(self, session: TokenSession) -> None:
        """Note that a session is in use."""
        self._idle.discard(session)

    def unused(self, session: TokenSession) -> None:
        """Note that a session is not in use, and holds nothing."""
        self._idle.add(session, self.limits.idle_s)

    def revoked(self, caller: Caller) -> None:
        """End the session of a token that does not hold any more, and forget its keys."""
        session = self._sessions.get(caller.key)
        if session is not None:
            self._end(session, Problem(401, "the token does not hold any more"))
        self.driver.notify(self.driver.core.idempotency.forget_owner, caller.key)

    def close(self) -> None:
        """End all sessions: what they hold returns to its queues."""
        self._closed = True
        for session in list(self._sessions.values()):
            self._end(session, Problem(503, "the server stops"))
        for deadlines in (self.receipts, self.transactions, self._idle):
            deadlines.close()

    def _end(self, session: TokenSession, problem: Problem) -> None:
        self._sessions.pop(session.key, None)
        self._idle.discard(session)
        session.close(problem)

    def _expired(self, due: list[tuple[TokenSession, str]]) -> None:
        by_session = defaultdict[TokenSession, list[str]](list)
        for session, receipt in due:
            by_session[session].append(receipt)
        for session, receipts in by_session.items():
            session.expired(receipts)

    @staticmethod
    def _unused(due: list[tuple[TokenSession, UUID]]) -> None:
        for session, identifier in due:
            session.abort_unused(identifier)

    def _close_idle(self, due: list[TokenSession]) -> None:
        for session in due:
            self._end(session, Problem(401, "the session has ended"))
