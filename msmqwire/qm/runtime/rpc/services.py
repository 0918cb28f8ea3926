"""Services over DCE/RPC: queues, by [MS-MQRR] and [MS-MQMR]; the endpoint mapper, by [MS-RPCE] 2.2.1.2."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from ipaddress import IPv4Address, ip_address
from typing import Any, Final, NamedTuple

from msmqwire.errors import MalformedPacket, RpcFault
from msmqwire.management import interface as management
from msmqwire.management.constants import Opnum as ManagementOpnum
from msmqwire.qm.model import effects
from msmqwire.qm.model.caller import Caller
from msmqwire.qm.protocols.management.answer_size import size_of_all
from msmqwire.qm.protocols.management.engine import Results
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.qm.runtime.limits import Limits, RpcTraffic
from msmqwire.qm.runtime.rpc.connection import RpcConnection
from msmqwire.qm.runtime.rpc.listener import Acceptors, RpcListener
from msmqwire.qm.runtime.rpc.long_answers import LONG, Build, LongAnswers
from msmqwire.qm.runtime.rpc.management import METHODS as MANAGEMENT_METHODS
from msmqwire.qm.runtime.rpc.management import TRANSFER_SYNTAXES, ManagementCalls
from msmqwire.remote_read.constants import Opnum
from msmqwire.remote_read.interface import INTERFACE, build_response, parse_request
from msmqwire.rpc.constants import AuthLevel, FaultStatus
from msmqwire.rpc.endpoint_mapper import ENDPOINT_MAPPER, ENDPOINT_MAPPER_METHODS, EndpointMapper
from msmqwire.rpc.events import Called
from msmqwire.rpc.ndr import SYNTAXES, Syntax
from msmqwire.rpc.towers import NO_ADDRESS
from msmqwire.service.descriptors import OpenConnections

_METHODS: Final = max(Opnum) + 1
MANAGEMENT: Final = management.INTERFACE


class _Outstanding(NamedTuple):
    """A call that the engine has not answered."""

    connection: RpcConnection
    call: int
    opnum: int
    syntax: Syntax
    build: Callable[[int, Any, Syntax], bytes]


class RemoteReadListener(RpcListener):
    """Passes calls to the engines of remote read and of management, and their answers back."""

    def __init__(
        self,
        driver: EngineDriver,
        limits: Limits,
        traffic: RpcTraffic,
        open_connections: OpenConnections,
        *,
        security: Acceptors | None,
        minimum_level: AuthLevel,
        is_known: Callable[[str], bool],
        manager: ManagementCalls,
    ) -> None:
        """`is_known` returns whether a named caller is one of the users."""
        super().__init__(
            {INTERFACE: _METHODS, MANAGEMENT: MANAGEMENT_METHODS},
            limits,
            traffic,
            open_connections,
            security=security,
            is_known=driver.is_known,
            minimum_level=minimum_level,
            of_interfaces=TRANSFER_SYNTAXES,
        )
        self._manager = manager
        self._driver, self._engine, self._is_known = driver, driver.core.remote_read, is_known
        self._calls: dict[int, _Outstanding] = {}
        self._call_numbers = 0
        self._answered = 0  # of the bytes that the engine has handed out
        self._long = LongAnswers()

    # -- from clients ---------------------------------------------------------------------------------------

    def called(self, connection: RpcConnection, event: Called) -> None:
        """Pass a call to the engine."""
        if self.is_stopping:
            self._refuse(connection, event, FaultStatus.NCA_S_SERVER_TOO_BUSY)
            return
        if event.interface == MANAGEMENT:
            self._manage(connection, event)
            return
        if event.identity and not self._is_known(event.identity):
            connection.report("a caller is not listed", user=event.identity)
            self._refuse(connection, event, FaultStatus.ACCESS_DENIED)
            return
        if event.identity:
            self.proved(connection)
        syntax = SYNTAXES[event.transfer_syntax]
        try:
            # MQRR-2.2-02, MQRR-3.1.4-01
            arguments = parse_request(event.opnum, event.stub, syntax.ordered(big_endian=event.big_endian))
        except MalformedPacket as exc:
            connection.report("the arguments of a call can't be read", opnum=event.opnum, reason=str(exc))
            self._refuse(connection, event, FaultStatus.RPC_X_BAD_STUB_DATA)
            return
        assert connection.association is not None, "it has reported the call"
        number = self._outstanding(connection, event, build_response)
        caller = Caller(event.identity, origin=connection.address)  # MQRR-2.1-06
        group = connection.association.group
        self._driver.notify(self._engine.called, number, group, caller, event.opnum, arguments)

    def _outstanding(
        self, connection: RpcConnection, event: Called, build: Callable[[int, Any, Syntax], bytes]
    ) -> int:
        """Note a call that an engine will answer; return its number."""
        self._call_numbers += 1
        number, syntax = self._call_numbers, SYNTAXES[event.transfer_syntax]
        self._calls[number] = _Outstanding(connection, event.call, event.opnum, syntax, build)
        connection.calls[event.call] = number
        return number

    def _manage(self, connection: RpcConnection, event: Called) -> None:
        """Carry out a call of management. Its callers are refused by a status, not by a fault."""
        self.begin_now()
        if event.identity and self._is_known(event.identity):
            self.proved(connection)
        try:
            arguments = self._manager.arguments(event)
        except RpcFault as exc:
            connection.report("the arguments of a call can't be read", opnum=event.opnum, reason=exc.name)
            self._refuse(connection, event, FaultStatus(exc.status))
            return
        user, peer = event.identity, connection.address
        if event.opnum == ManagementOpnum.R_QMMgmtAction:
            number = self._outstanding(connection, event, management.build_response)
            self._manager.act(number, user, peer, arguments)
            return
        results = self._manager.info(user, peer, arguments)

        def builder(results: Results) -> Build:
            return partial(management.build_response, event.opnum, results, SYNTAXES[event.transfer_syntax])

        answer = partial(self.answer_now, connection, event.call)
        if size_of_all(results["apVar"]) < LONG:
            answer(builder(results)())
        else:
            again = partial(self._manager.results, user, arguments)
            self._long.add(connection, builder(results), lambda: builder(again()), answer)

    def takes_calls(self, connection: RpcConnection) -> bool:
        """Return whether calls are accepted now: not while a long answer to an earlier one is being built."""
        if connection in self._long:
            self.stall(connection)
            return False
        return super().takes_calls(connection)

    async def close(self) -> None:
        """End all connections: see `msmqwire.service.listener.Listener.close`."""
        self._long.close()
        await super().close()

    def _refuse(self, connection: RpcConnection, event: Called, status: FaultStatus) -> None:
        self.fault_call(connection, event.call, status, executed=False)

    def cancelled(self, connection: RpcConnection, call: int) -> None:
        """Ask the engine to end a call early."""
        number = connection.calls.get(call)
        if number is not None and not self.is_stopping:
            self._driver.notify(self._engine.cancelled, number)

    def has_open(self, group: int) -> bool:
        """Return whether a client has queues open."""
        return bool(self._engine.contexts.of(group))

    def gone(self, connection: RpcConnection, group: int, *, last: bool) -> None:
        """Make the engine forget the calls of a connection, and with the last one its client's queues."""
        self._long.forget(connection)
        numbers = list(connection.calls.values())
        connection.calls.clear()
        for number in numbers:
            del self._calls[number]
        if self.is_stopping:
            return
        if last:
            self._driver.notify(self._engine.association_lost, group)
            return
        for number in numbers:
            self._driver.notify(self._engine.cancelled, number)

    # -- from the engine ------------------------------------------------------------------------------------

    def answer(self, effect: effects.RpcAnswer) -> None:
        """Carry out `RpcAnswer`."""
        call, results = effect
        known = self._take(call)
        if known is not None and not known.connection.is_closing:
            stub = known.build(known.opnum, results, known.syntax)
            self.answer_call(known.connection, known.call, stub)

    @property
    def answering(self) -> int:
        """The bytes of messages that the engine has handed out and the driver has not passed on, and of
        answers of management.
        """
        return self._engine.receiving.handed_out - self._answered + self.unsent

    def flush(self) -> None:
        """Send the answers of this turn."""
        self._answered = self._engine.receiving.handed_out
        super().flush()

    def fault(self, effect: effects.RpcFault) -> None:
        """Carry out `RpcFault`."""
        call, status = effect
        known = self._take(call)
        if known is not None:
            self.fault_call(known.connection, known.call, status)

    def _take(self, number: int) -> _Outstanding | None:
        known = self._calls.pop(number, None)
        # A client that has orphaned a call may have used its number again, which has another answer.
        if known is None or known.connection.calls.get(known.call) != number:
            return None
        del known.connection.calls[known.call]
        return known


class MapperListener(RpcListener):
    """Returns the port at which the queues are served to every caller.

    Windows asks anonymously, unless a policy (Enable RPC Endpoint Mapper Client Authentication) makes it
    authenticate here too. Users can; without users, bind_nak says that no provider is known.
    """

    def __init__(
        self,
        port: int,
        limits: Limits,
        traffic: RpcTraffic,
        open_connections: OpenConnections,
        *,
        security: Acceptors | None,
        is_known: Callable[[str], bool],
    ) -> None:
        interfaces = {ENDPOINT_MAPPER: ENDPOINT_MAPPER_METHODS}
        super().__init__(interfaces, limits, traffic, open_connections, security=security, is_known=is_known)
        self._mapper = EndpointMapper({INTERFACE: port, MANAGEMENT: port}, TRANSFER_SYNTAXES)  # MQMR-2.1-02

    def called(self, connection: RpcConnection, event: Called) -> None:
        """Answer at once."""
        address = ip_address(connection.local_address)
        at = address if isinstance(address, IPv4Address) else NO_ADDRESS
        try:
            stub = self._mapper.called(
                event.opnum, event.stub, event.transfer_syntax, at, big_endian=event.big_endian
            )
        except RpcFault as exc:
            self.fault_call(connection, event.call, exc.status, executed=False)
        else:
            self.answer_call(connection, event.call, stub)

    def cancelled(self, connection: RpcConnection, call: int) -> None:
        """No call waits here."""

    def has_open(self, group: int) -> bool:
        """This service has no open handles."""
        return False

    def gone(self, connection: RpcConnection, group: int, *, last: bool) -> None:
        """No answer is left."""
