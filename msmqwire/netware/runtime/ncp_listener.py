"""Connections of NCP at one port, bounded in number, memory and time, and their calls."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Final

from msmqwire.errors import EngineFailed, InvalidValue, NcpRefused, StoreError, Unreachable
from msmqwire.ncp.constants import CompletionCode
from msmqwire.ncp.readings import PROPOSED, Readings
from msmqwire.netware.model.caller import Caller
from msmqwire.netware.model.names import SERVER_NAME
from msmqwire.netware.model.passwords import PasswordHashing
from msmqwire.netware.protocol.calls import Fields, Host, Result, ToRead, ToWrite
from msmqwire.netware.protocol.connection_numbers import ConnectionNumbers
from msmqwire.netware.protocol.dispatch import MAY_HASH, perform
from msmqwire.netware.protocol.files import data_read
from msmqwire.netware.protocol.session import GiveUp, NcpSession, Perform
from msmqwire.netware.rules.file_space import ShareUsedUp
from msmqwire.netware.rules.logins import AT_ONCE
from msmqwire.netware.rules.service import QueueService
from msmqwire.netware.runtime.driving import OperationDriver
from msmqwire.netware.runtime.limits import SPARE_CONNECTIONS, NcpLimits, NcpTraffic
from msmqwire.netware.runtime.ncp_connection import NcpServerConnection, report
from msmqwire.netware.runtime.password_hashing import PasswordHasher
from msmqwire.netware.runtime.turns import PeerTurns
from msmqwire.service.descriptors import OpenConnections
from msmqwire.service.listener import Listener
from msmqwire.service.logs import log
from msmqwire.service.places import ListenerLimits

RETRY_S: Final = 1.0
"""Seconds between attempts to give up the jobs of a lost connection, if the disk refuses."""

_FAILURES: Final = (StoreError, EngineFailed, Unreachable)
"""Errors of an operation without effect: the disk refuses, msmqwire has a fault, or it has stopped."""


def utc_now() -> datetime:
    """Return the time of the system's clock."""
    return datetime.now(UTC)


class NcpListener(Listener[NcpServerConnection]):
    """Takes the connections of clients, and performs their calls.

    Attributes:
        limits: the limits on clients.
        traffic: counters.
        turns: the turns of the peers.
        port: the port that it listens on; 0 before.
    """

    def __init__(
        self,
        driver: OperationDriver,
        limits: NcpLimits | None = None,
        *,
        readings: Readings = PROPOSED,
        clock: Callable[[], datetime] = utc_now,
        name: str = SERVER_NAME,
    ) -> None:
        """Take the connections of a file server of this name; `clock` is its clock."""
        self.limits = limits = limits or NcpLimits()
        self.traffic, self.turns, self.port = NcpTraffic(), PeerTurns(), 0
        reserved = limits.connections * limits.reserved_percent // 100
        most = ListenerLimits(
            limits.connections + SPARE_CONNECTIONS, limits.connections_per_peer, limits.held_bytes,
            limits.close_s, reserved,
        )  # fmt: skip
        super().__init__("NCP", most, self.traffic, OpenConnections(), self._too_much_held)
        self._driver, self._readings, self._clock = driver, readings, clock
        self._numbers = ConnectionNumbers(limits.connections, reserved, self._knows)
        self._host = Host(name, self._numbers)
        self._hasher = PasswordHasher()
        self._endings: set[asyncio.Task[None]] = set()
        self._sessions: set[NcpSession] = set()  # until their jobs are given up
        self._ended: dict[int, Caller] = {}  # service connections that are being given up

    @property
    def service_connections(self) -> int:
        """The number of service connections, including those being given up."""
        return len(self._numbers)

    @property
    def held_bytes(self) -> int:
        """The bytes that `NcpLimits.held_bytes` limits."""
        return sum(connection.held for connection in self)

    async def bind(self, address: str, port: int) -> int:
        """Listen, so that connections wait for `accept`; return the port. Raises OSError."""
        self.port = await self.bind_at(address, port, partial(NcpServerConnection, self))
        return self.port

    async def close(self) -> None:
        """End all connections when the requests being performed are answered, and give up their jobs.

        No client gets more time than `NcpLimits.close_s` to read a reply.
        """
        self._hasher.close()
        await super().close()
        await asyncio.gather(*self._endings, return_exceptions=True)

    def restarted(self) -> None:
        """End all connections: the service was built anew without them."""
        callers = [session.caller for session in self._sessions if session.caller is not None]
        for caller in (*callers, *self._ended.values()):
            caller.object_id, caller.assumed, caller.has_proved = None, None, False
        for connection in self:
            connection.close()

    # -- connections: `NcpConnectionOwner` ------------------------------------------------------------------

    def accepted(self, connection: NcpServerConnection) -> NcpSession | None:
        """Register a connection; return None if there are too many."""
        if not self.admit(connection):
            return None
        session = NcpSession(
            self._numbers, self._readings, connection.peer, partial(self._makes_room, connection)
        )
        self._sessions.add(session)
        return session

    def _makes_room(self, connection: NcpServerConnection) -> None:
        """End a connection whose number another one needs, unless it has ended already."""
        if connection in self:
            self._evict(connection)

    def _too_much_held(self, connection: NcpServerConnection) -> None:
        self.traffic.ended += 1

    def lost(self, connection: NcpServerConnection) -> None:
        """Unregister a connection, and give up its jobs once its request has been performed."""
        self.remove(connection)
        self._hasher.forget(connection)
        ending = asyncio.get_running_loop().create_task(self._end(connection))
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)
        ending.add_done_callback(report)

    async def _end(self, connection: NcpServerConnection) -> None:
        if connection.working is not None:
            await asyncio.wait([connection.working])
        session = connection.session
        assert session is not None
        if (caller := session.caller) is not None:
            session.caller = None
            await self._give_up(caller, connection.peer)
            self._numbers.give_back(caller.connection)
        self._sessions.discard(session)

    # -- calls ----------------------------------------------------------------------------------------------

    async def perform(self, connection: NcpServerConnection, task: Perform | GiveUp) -> bytes:
        """Perform the request of a connection's session; return the reply."""
        self.traffic.requests += 1
        session = connection.session
        assert session is not None
        if isinstance(task, GiveUp):
            await self._give_up(task.caller, connection.peer)
            return session.given_up(task)
        try:
            fields = await self._fields(task, connection)
            if task.caller.object_id is not None:
                self._numbers.logged_in(task.caller.connection)
                (self.proved if task.caller.has_proved else self.spoke)(connection)
            return session.performed(task, fields)
        except NcpRefused as exc:
            self.traffic.calls_refused += 1
            if isinstance(exc, ShareUsedUp):
                self.traffic.refused_for_share += 1
                log.warning(
                    "a share of the room for files is used up",
                    extra={"peer": connection.peer, "reason": exc.why},
                )
            log.debug("a call is refused", extra={"call": task.request.kind, "reason": exc.why})
            return session.refused(task, exc.code)
        except InvalidValue as exc:
            log.warning(
                "a call has an impossible value", extra={"call": task.request.kind, "error": str(exc)}
            )
            return session.refused(task, CompletionCode.FAILURE)
        except _FAILURES as exc:
            log.error("a call can't be stored", extra={"error": str(exc)})
            return session.refused(task, CompletionCode.ERR_Q_IO_FAILURE)

    async def _fields(self, call: Perform, connection: NcpServerConnection) -> Fields:
        peer = connection.peer

        def operation(service: QueueService, hashing: PasswordHashing = AT_ONCE) -> Result:
            with self._spending(peer):
                return perform(service, call, self._clock(), self._host, hashing)

        assert call.request.call is not None
        if call.request.call.name in MAY_HASH:
            result = await self._hasher.run(self._driver, operation, peer=peer, owner=connection)
        else:
            result = await self._driver.run(operation)
        if isinstance(result, ToRead):
            access = result.access
            data = await self._driver.read_file(access.file, access.offset, access.count)
            return data_read(access, data)
        if isinstance(result, ToWrite):
            await self._driver.write_file(result.access.file, result.access.offset, result.data)
            return {}
        return result

    @contextmanager
    def _spending(self, peer: str) -> Iterator[None]:
        """Count the time of the block as the peer's."""
        start = time.monotonic()
        try:
            yield
        finally:
            self.turns.spent(peer, time.monotonic() - start)

    async def _give_up(self, caller: Caller, peer: str) -> None:
        """Give up everything of a service connection; retry while the disk refuses.

        A server that stops does not retry: the next start does the same.
        """
        self._ended[caller.connection] = caller
        self._numbers.leave(caller.connection)
        try:
            while not await self._gives_up(caller, peer) and not self.is_stopping:
                await asyncio.sleep(RETRY_S)
        finally:
            del self._ended[caller.connection]

    async def _gives_up(self, caller: Caller, peer: str) -> bool:
        def operation(service: QueueService) -> None:
            with self._spending(peer):
                service.connection_lost(caller)

        try:
            await self._driver.run(operation)
        except _FAILURES as exc:
            log.error("the end of a connection can't be stored", extra={"error": str(exc)})
            return False
        return True
