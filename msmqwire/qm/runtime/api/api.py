"""The API of a running queue manager: its parts, and the way of a request through the route table."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web

from msmqwire.qm.runtime.api.all_routes import all_routes
from msmqwire.qm.runtime.api.document import document
from msmqwire.qm.runtime.api.guard import CALLER, Guard, not_authorized
from msmqwire.qm.runtime.api.lists import Cursors
from msmqwire.qm.runtime.api.message_sessions import MessageSessions
from msmqwire.qm.runtime.api.problems import Problem
from msmqwire.qm.runtime.api.routes import BASE, Reply, Route
from msmqwire.qm.runtime.api.tokens import Tokens
from msmqwire.qm.runtime.console.options import ConsoleLimits
from msmqwire.qm.runtime.console.samples import Samples
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.qm.runtime.health import Health
from msmqwire.qm.runtime.operations import LocalSession
from msmqwire.service.logs import RecentRecords
from msmqwire.service.page_server import PageServer

if TYPE_CHECKING:
    from msmqwire.qm.core import Core

KNOWN_S: Final = 120.0
"""Seconds that a connection with a token or a login lasts after its last request."""


class Api:
    """What the endpoints share.

    Attributes:
        driver: runs the queue manager; None while the store is being restored.
        guard: checks requests.
        tokens: the tokens that hold.
        samples: samples of the counters.
        records: the latest lines of the log.
        limits: limits on clients.
        health: the health of the server.
        lists: makes pages of lists.
        table: the routes; set by `mount`.
        document: the bytes of the OpenAPI document.
    """

    def __init__(
        self,
        driver: EngineDriver | None,
        guard: Guard,
        samples: Samples,
        records: RecentRecords,
        limits: ConsoleLimits,
        health: Health,
    ) -> None:
        self.driver, self.guard, self.samples, self.records = driver, guard, samples, records
        self.limits, self.health = limits, health
        self.lists = Cursors()
        self._messaging: MessageSessions | None = None
        self.table = all_routes(self)
        self.document = json.dumps(document(self.table), separators=(",", ":")).encode()

    @property
    def tokens(self) -> Tokens:
        """The tokens that hold."""
        return self.guard.tokens

    @property
    def running(self) -> EngineDriver:
        """The driver of the queue manager. Raises Problem while the store is being restored."""
        if self.driver is None:
            why = "the store is being restored: try again in a moment"
            raise Problem(503, why, headers={"Retry-After": "1"})
        return self.driver

    @property
    def core(self) -> Core:
        """The queue manager. Raises Problem while the store is being restored."""
        return self.running.core

    @property
    def messaging(self) -> MessageSessions:
        """The messages that tokens hold. Raises Problem while the store is being restored."""
        if self._messaging is None:
            self._messaging = MessageSessions(self.running, self.limits.messaging)
            self.tokens.on_revoked.append(self._messaging.revoked)
        return self._messaging

    def close(self) -> None:
        """End what tokens hold: it returns to its queues."""
        if self._messaging is not None:
            self._messaging.close()

    async def run(self, op: str, **request: Any) -> dict[str, Any]:
        """Run an operation of the control channel in a session of its own, which leaves nothing open.

        Raises as `LocalSession` does.
        """
        session = LocalSession(self.running)
        try:
            return await session.run({"op": op, **request})
        finally:
            session.close()

    def mount(self, application: web.Application) -> None:
        """Add the routes to an application of aiohttp."""
        application.router.add_route("*", BASE, self.handle)
        application.router.add_route("*", BASE + "/{rest:.*}", self.handle)
        for path in {route.path for route in self.table.routes if route.root}:
            application.router.add_route("*", path, self.handle)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer a request that the guard has let pass."""
        caller = request.get(CALLER)
        if caller is not None:
            self.last(request, KNOWN_S)
        route, texts = self.table.find(request.method, request.rel_url.raw_path)
        self._check_right(route, request)
        if not route.while_restoring:
            _ = self.running
        reply = await route.handler(await self.table.call(route, texts, request))
        return reply.answer() if isinstance(reply, Reply) else reply

    def _check_right(self, route: Route, request: web.Request) -> None:
        """Raise Problem if the token of a request does not allow a route."""
        caller = request.get(CALLER)
        if route.right is not None:
            if caller is None:
                raise not_authorized("a token is missing: Authorization: Bearer TOKEN")
            if not caller.right.includes(route.right):
                why = f"the token {caller.name} allows {caller.right}; this needs {route.right}"
                raise Problem(403, why)
        if route.changing and not self.guard.write:
            raise Problem(403, "the server is read-only: serve --console-write lets it change something")

    @staticmethod
    def last(request: web.Request, seconds: float) -> None:
        """Let the connection of a request with a token last for a number of seconds from now."""
        PageServer.logged_in(request, seconds, request[CALLER].key)
