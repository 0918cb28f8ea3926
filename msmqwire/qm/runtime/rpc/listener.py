"""Connections of DCE/RPC at one port, bounded in number, memory and time."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from msmqwire.errors import AuthenticationFailed
from msmqwire.qm.runtime.limits import Limits, RpcTraffic
from msmqwire.qm.runtime.rpc.connection import RpcConnection
from msmqwire.rpc.constants import AuthLevel, SyntaxId
from msmqwire.rpc.events import Bound, Called, Cancelled, Closed, Denied, Orphaned, ServerEvent
from msmqwire.rpc.groups import AssociationGroups
from msmqwire.rpc.presentation import NO_SYNTAXES
from msmqwire.rpc.server_association import ServerAssociation
from msmqwire.rpc.server_security import Acceptor
from msmqwire.service.descriptors import OpenConnections
from msmqwire.service.listener import Listener
from msmqwire.service.logs import log

ANSWERS_MAX: Final = 1 << 20
"""Limit of bytes of answers not yet handed to their connections; beyond it no further calls are accepted."""
BUSY_S: Final = 0.02
"""Seconds of a turn of the loop for calls that are answered at once: other protocols have their turn too."""

Acceptors = Callable[[str], Acceptor]
"""By the address of a client: the factory of the server's ends of its security contexts."""


class RpcListener(Listener[RpcConnection], ABC):
    """Takes the calls of clients; subclasses carry them out.

    Attributes:
        limits: the limits on peers.
        traffic: counters.
        port: the port that it listens on; 0 before.
    """

    def __init__(
        self,
        interfaces: Mapping[SyntaxId, int],
        limits: Limits,
        traffic: RpcTraffic,
        open_connections: OpenConnections,
        *,
        security: Acceptors | None = None,
        is_known: Callable[[str], bool],
        minimum_level: AuthLevel = AuthLevel.NONE,
        of_interfaces: Mapping[SyntaxId, Sequence[SyntaxId]] = NO_SYNTAXES,
    ) -> None:
        """See `ServerAssociation` for interfaces, security and level, `Places` for `is_known`."""
        most = limits.listener(limits.rpc_connections, limits.rpc_connections_per_peer, limits.rpc_held_bytes)
        super().__init__("RPC", most, traffic, open_connections, self._too_much_held, is_known)
        self._interfaces = interfaces
        self._security, self._minimum_level = security, minimum_level
        self._of_interfaces = of_interfaces
        self.limits, self.traffic, self.port = limits, traffic, 0
        self._groups = AssociationGroups()
        self._unflushed: dict[RpcConnection, None] = {}
        self._unflushed_bytes = 0
        self._stalled: dict[RpcConnection, None] = {}
        self._now_bytes, self._now_until = 0, 0.0

    async def bind(self, address: str, port: int) -> int:
        """Listen, so that connections wait for `accept`; return the port. Raises OSError."""
        self.port = await self.bind_at(address, port, partial(RpcConnection, self))
        return self.port

    # -- calls of clients ----------------------------------------------------------------------------------

    @abstractmethod
    def called(self, connection: RpcConnection, event: Called) -> None:
        """A client calls a method; `answer` or `fault` answers it, now or later."""

    @abstractmethod
    def cancelled(self, connection: RpcConnection, call: int) -> None:
        """A client has cancelled or orphaned a call."""

    @abstractmethod
    def has_open(self, group: int) -> bool:
        """Return whether an association group without calls has open handles."""

    @abstractmethod
    def gone(self, connection: RpcConnection, group: int, *, last: bool) -> None:
        """A connection has ended, and the wait for its calls; `last` is whether its group ends with it."""

    @property
    def answering(self) -> int:
        """The bytes of answers not yet handed to their connections."""
        return 0

    @property
    def unsent(self) -> int:
        """The bytes of answers of `answer_now` in this turn of the loop."""
        return self._now_bytes

    # -- connections: `RpcConnectionOwner` ------------------------------------------------------------------

    def accepted(self, connection: RpcConnection) -> ServerAssociation | None:
        """Register a connection; return None if there are too many."""
        if not self.admit(connection):
            return None
        return ServerAssociation(
            self._interfaces,
            groups=self._groups,
            origin=connection.address,
            port=self.port,
            security=None if self._security is None else self._security(connection.address),
            minimum_level=self._minimum_level,
            of_interfaces=self._of_interfaces,
            stub_max=self.limits.rpc_request_bytes,
            calls_max=self.limits.rpc_calls,
        )

    def happened(self, connection: RpcConnection, event: ServerEvent) -> None:
        """Pass on the calls of a client."""
        match event:
            case Called():
                self.traffic.calls += 1
                self.spoke(connection)
                self.called(connection, event)
            case Denied(_, status):
                self.traffic.calls += 1
                self.traffic.faults += 1
                connection.report("a call is denied", status=f"{status:#x}")
            case Cancelled(call) | Orphaned(call):
                self.cancelled(connection, call)
            case Bound() | Closed():
                pass

    def takes_calls(self, connection: RpcConnection) -> bool:
        """Return whether the answers under way leave room for more; if not, `go_on` follows `flush`."""
        if self.answering <= ANSWERS_MAX and not self._is_busy:
            return True
        self.stall(connection)
        return False

    def stall(self, connection: RpcConnection) -> None:
        """Let a connection go on after the next answers."""
        self._stalled[connection] = None

    def keeps(self, connection: RpcConnection) -> bool:
        """Return whether the client has open handles."""
        return connection.association is not None and self.has_open(connection.association.group)

    def ended(self, connection: RpcConnection) -> None:
        """Take a connection out of its group, and give up its calls."""
        association = connection.association
        if association is not None:
            group = association.group
            self.gone(connection, group, last=association.connection_lost())

    def lost(self, connection: RpcConnection) -> None:
        """Unregister a connection."""
        self.remove(connection)
        self._unflushed.pop(connection, None)
        self._stalled.pop(connection, None)

    def _too_much_held(self, connection: RpcConnection) -> None:
        self.traffic.ended += 1

    # -- answers --------------------------------------------------------------------------------------------

    def answer_call(self, connection: RpcConnection, call: int, stub: bytes) -> None:
        """Send the results of a call, with the next `flush`, or now if many have accumulated."""
        association = connection.association
        if association is None or association.closed or connection.is_closing:
            return
        try:
            association.answer(call, stub)
        except AuthenticationFailed as exc:
            log.warning("an answer can't be protected", extra={"peer": connection.address, "error": str(exc)})
            connection.abort()
        self._unflushed[connection] = None
        self._unflushed_bytes += len(stub)
        if self._unflushed_bytes > ANSWERS_MAX:
            self._send_answers()

    def answer_now(self, connection: RpcConnection, call: int, stub: bytes) -> None:
        """Send the results of a call in this turn of the loop, whether or not the driver ends a turn.

        Such calls may take `BUSY_S` of a turn, or `ANSWERS_MAX` bytes; further ones wait for the next one.
        """
        self.begin_now()
        self._now_bytes += len(stub)
        self.answer_call(connection, call, stub)

    def begin_now(self) -> None:
        """Begin with a call that is answered at once: its time counts."""
        if not self._now_until:
            loop = asyncio.get_running_loop()
            self._now_until = loop.time() + BUSY_S
            loop.call_soon(self._end_now)

    @property
    def _is_busy(self) -> bool:
        """Whether calls that are answered at once have had their time of this turn."""
        return bool(self._now_until) and asyncio.get_running_loop().time() > self._now_until

    def _end_now(self) -> None:
        self._now_bytes, self._now_until = 0, 0.0
        self._send_answers()
        self._go_on()

    def fault_call(self, connection: RpcConnection, call: int, status: int, *, executed: bool = True) -> None:
        """Let a call fail, with the next `flush`."""
        self.traffic.faults += 1
        if connection.association is not None:
            connection.association.fault(call, status, executed=executed)
            self._unflushed[connection] = None

    def flush(self) -> None:
        """Send all answers so far, and take the calls that have waited for that."""
        self._send_answers()
        self._go_on()

    def _go_on(self) -> None:
        """Take the calls that have waited, beginning with the connection after the one that was first."""
        waiting, self._stalled = list(self._stalled), {}
        for connection in waiting[1:] + waiting[:1]:
            asyncio.get_running_loop().call_soon(connection.go_on)

    def _send_answers(self) -> None:
        unflushed, self._unflushed = self._unflushed, {}
        self._unflushed_bytes = 0
        for connection in unflushed:
            connection.flush()
            if connection in self:
                self.holds(connection, 0)
