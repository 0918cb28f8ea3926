"""The session of a client of the control channel with a server, also with one that is still starting."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, Final

from msmqwire.constants import HResult
from msmqwire.errors import ManagerStopped
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.qm.runtime.health import Health, Stage
from msmqwire.qm.runtime.operations import LocalSession
from msmqwire.service.control.server import Sink
from msmqwire.service.logs import log

HEALTH: Final = "health"
"""The request that is answered at any time."""
DRAIN: Final = "drain"
_OF_THE_SERVER: Final = (HEALTH, DRAIN)
"""Requests about the server, not about queues."""


class ServedSession:
    """A session that begins before there is a queue manager.

    Requests wait until the store has been restored, and are then carried out in their order.
    """

    def __init__(self, health: Health, sink: Sink) -> None:
        self._health, self._sink = health, sink
        self._session: LocalSession | None = None
        self._stops = False
        self._waiting: set[asyncio.Future[None]] = set()
        if health.stage is not Stage.STARTING:
            self._begin()

    def _begin(self) -> LocalSession:
        assert self._health.driver is not None, "the store has been restored"
        self._session = LocalSession(self._health.driver, sink=self._sink)
        return self._session

    def run(self, request: Mapping[str, Any]) -> Coroutine[Any, Any, dict[str, Any]]:
        """See `ControlSession.run`."""
        if self._session is not None and request.get("op") not in _OF_THE_SERVER:
            return self._session.run(request)
        return self._run(request)

    async def _run(self, request: Mapping[str, Any]) -> dict[str, Any]:
        op = request.get("op")
        if op == HEALTH:
            return self._health.report()
        if self._session is None:
            await self._started()
        session = self._session or self._begin()
        if op != DRAIN:
            return await session.run(request)
        assert self._health.driver is not None, "it has started"
        return drained(self._health.driver, request)

    async def _started(self) -> None:
        """Wait for the end of the start. Raises ManagerStopped if that fails: nothing has been done."""
        waiter = self._health.when_ready()
        self._waiting.add(waiter)
        try:
            if not self._stops:
                await asyncio.wait((waiter,))
        finally:
            self._waiting.discard(waiter)
            waiter.cancel()
        if self._stops or self._health.stage is not Stage.READY:
            why = "the server has not started, or stops: nothing was done"
            raise ManagerStopped(why, HResult.MQ_ERROR_OPERATION_CANCELLED)

    def notify(self, request: Mapping[str, Any]) -> bool:
        """See `ControlSession.notify`."""
        return self._session is not None and self._session.notify(request)

    def stop_waiting(self) -> None:
        """See `ControlSession.stop_waiting`."""
        self._stops = True
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)
        if self._session is not None:
            self._session.stop_waiting()

    def close(self) -> None:
        """See `ControlSession.close`."""
        if self._session is not None:
            self._session.close()


def drained(driver: EngineDriver, request: Mapping[str, Any]) -> dict[str, Any]:
    """Begin to drain, or resume, if a request says so by ``on``; return the state. Raises InvalidValue."""
    before = driver.drain.on
    driver.call(driver.drain.requested, request)
    if driver.drain.on is not before:
        log.info("drains: takes nothing new" if driver.drain.on else "drains no more")
    return driver.drain.state()
