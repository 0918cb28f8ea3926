"""The messages that tokens of the API hold, in virtual time and without HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar, cast

from msmqwire.qm.runtime import queues
from msmqwire.qm.runtime.api.message_sessions import MessageSessions
from msmqwire.qm.runtime.api.messaging_limits import MessagingLimits
from msmqwire.qm.runtime.api.rights import Caller, Right
from msmqwire.qm.runtime.api.token_session import TokenSession
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.qm.runtime.folder import open_core
from msmqwire.qm.store import memory_store
from msmqwire.service.virtual.clock import VirtualClock
from msmqwire.service.virtual.loop import VirtualLoop
from tests.support.running import LEDGER, ORDERS

T = TypeVar("T")
BEGIN = 1_700_000_000


class VirtualTokens:
    """A queue manager with a plain and a transactional queue, and the sessions of its tokens.

    Attributes:
        loop: the virtual loop.
        driver: runs the queue manager.
        sessions: the sessions.
        ann, bob: two tokens.
    """

    def __init__(self, limits: MessagingLimits | None = None) -> None:
        self.loop = VirtualLoop()
        self.ann, self.bob = (Caller(name, Right.READ_WRITE, f"key of {name}") for name in ("ann", "bob"))
        self._limits = limits
        self.run(self._start())

    async def _start(self) -> None:
        store = memory_store()
        clock = VirtualClock(self.loop, lambda: BEGIN + self.loop.now_ms // 1000)
        self.core = open_core(store, "alpha")
        loop = cast(Any, self.loop)
        self.driver = EngineDriver(self.core, store, loop=loop, clock=clock)
        self.driver.start()
        for name, transactional in ((ORDERS, False), (LEDGER, True)):
            told = {"queue": name, "transactional": transactional}
            self.driver.call(queues.create, self.core, told)
        await self.driver.durable()
        self.sessions = MessageSessions(self.driver, self._limits)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end, and return its result."""
        result: T = self.loop.run_until_complete(work)
        return result

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.loop.run_until(self.loop.time() + seconds)

    def of(self, caller: Caller) -> TokenSession:
        """Return the session of a token."""
        return self.sessions.of(caller)

    def gone(self) -> asyncio.Future[None]:
        """Return a connection that lasts until the future is done."""
        return self.loop.create_future()

    def send(self, caller: Caller, queue: str, *labels: str, transaction: str | None = None) -> None:
        """Send messages with labels."""
        delivery = "transactional" if queue == LEDGER else "recoverable"
        messages = [{"label": label, "delivery": delivery} for label in labels]
        request: dict[str, Any] = {"to": f"DIRECT=OS:.\\{queue}", "messages": messages}
        if transaction is not None:
            request["transaction"] = transaction
        self.run(self.of(caller).send(request))

    def receive(
        self,
        caller: Caller,
        queue: str,
        count: int = 1,
        *,
        settle_s: int = 30,
        transaction: str | None = None,
    ) -> list[dict[str, Any]]:
        """Receive messages without waiting."""
        work = self.of(caller).receive(queue, count, 0, settle_s, transaction, self.gone())
        return self.run(work)

    def labels(self, queue: str) -> list[str]:
        """Return the labels of the messages of a queue that can be received."""
        found = queues.find(self.core, {"queue": queue})
        positions = found.positions
        return [one.message.label for one in positions if one.state.name == "AVAILABLE"]

    def held(self, queue: str) -> int:
        """Return the number of messages of a queue that somebody has."""
        found = queues.find(self.core, {"queue": queue})
        return len(found.positions) - len(self.labels(queue))
