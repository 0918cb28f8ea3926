"""Remote read at a node in one of its lives: connections of DCE/RPC, and the calls that come over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, Final
from uuid import UUID

from msmqwire.constants import MQ_OK
from msmqwire.errors import RpcRefused
from msmqwire.qm.core import Core
from msmqwire.qm.model.caller import Caller
from msmqwire.qm.model.effects import Effect, RpcAnswer, RpcFault
from msmqwire.qm.model.elements import Queue
from msmqwire.qm.model.enumerations import QueueManagerState
from msmqwire.qm.sim.environment import Environment
from msmqwire.qm.sim.reader_ledger import Hold, ReaderLedger
from msmqwire.qm.sim.rpc_network import RpcEnd, RpcHost
from msmqwire.qm.sim.violation import Invariant
from msmqwire.remote_read.constants import Acknowledge, Opnum
from msmqwire.remote_read.interface import INTERFACE, build_response, parse_request
from msmqwire.rpc.constants import FaultStatus
from msmqwire.rpc.events import Called, Cancelled, Closed, Orphaned
from msmqwire.rpc.groups import AssociationGroups
from msmqwire.rpc.handles import ContextHandle
from msmqwire.rpc.ndr import SYNTAXES, Syntax
from msmqwire.rpc.queue_format import name_of
from msmqwire.rpc.server_association import ServerAssociation
from msmqwire.service.virtual.violation import Violation

_METHODS: Final = max(Opnum) + 1
_OPENS: Final = (Opnum.R_OpenQueue, Opnum.R_OpenQueueForMove)
_READS: Final = (Opnum.R_StartReceive, Opnum.R_StartTransactionalReceive)
_ENDS: Final = (Opnum.R_EndReceive, Opnum.R_EndTransactionalReceive)


@dataclass(slots=True, eq=False)
class _Call:
    """A call that the engine has not answered.

    Attributes:
        end: the server's end of its connection.
        call_id: its number on the connection.
        held: for a call that ends a receive, the number of its caller's position.
    """

    end: _ServerEnd
    call_id: int
    opnum: int
    syntax: Syntax
    arguments: Any
    group: int
    held: int | None = None


class _ServerEnd(RpcEnd):
    """The server's end of a connection."""

    def __init__(
        self, host: RpcHost, number: int, server: RemoteServer, association: ServerAssociation
    ) -> None:
        super().__init__(host, number)
        self._server, self.association = server, association

    def received(self, data: bytes) -> None:
        self._server.received(self, data)

    def disconnected(self) -> None:
        self.close()
        self._server.lost(self)


class RemoteServer:
    """Passes calls to the engine of a node, and its answers back; the books see both.

    Args:
        environment: the environment of the run. host: the node.
        reader_ledger: records the messages that readers are given, and their ends.
    """

    def __init__(self, environment: Environment, host: RpcHost, reader_ledger: ReaderLedger) -> None:
        self._environment, self._host, self._reader_ledger = environment, host, reader_ledger
        self._groups = AssociationGroups()
        self._calls: dict[int, _Call] = {}
        self._numbers = count(1)
        self._queues: dict[ContextHandle, Queue] = {}

    def accepted(self, number: int, origin: str) -> RpcEnd:
        """Return the server's end of a new connection from an address."""
        association = ServerAssociation({INTERFACE: _METHODS}, groups=self._groups, origin=origin)
        return _ServerEnd(self._host, number, self, association)

    # -- calls of clients --------------------------------------------------------------------------------

    def received(self, end: _ServerEnd, data: bytes) -> None:
        """Take bytes of a client."""
        for event in end.association.received(data):
            match event:
                case Called():
                    self._called(end, event)
                case Cancelled(call_id) | Orphaned(call_id):
                    self._cancelled(end, call_id)
                case Closed(RpcRefused()):  # the group that it would join has ended
                    end.send(end.association.data_to_send())
                    end.close()
                    return
                case Closed(error):
                    raise Violation(Invariant.REFUSED, f"an honest reader is refused: {error}")
        end.send(end.association.data_to_send())

    def _called(self, end: _ServerEnd, event: Called) -> None:
        core = self._host.core
        if core is None or core.queue_manager.state is not QueueManagerState.READY:
            end.association.fault(event.call, FaultStatus.NCA_S_SERVER_TOO_BUSY, executed=False)
            return
        self._environment.counts["remote calls"] += 1
        syntax = SYNTAXES[event.transfer_syntax]
        arguments = parse_request(event.opnum, event.stub, syntax.ordered(big_endian=event.big_endian))
        group, number = end.association.group, next(self._numbers)
        call = self._calls[number] = _Call(end, event.call, event.opnum, syntax, arguments, group)
        self._environment.log(self._host.name, f"is called: {Opnum(event.opnum).name}")
        node = self._host.name
        if event.opnum in _ENDS:
            reader = group, arguments.phContext, arguments.dwRequestId
            call.held = self._reader_ledger.ends(node, reader, arguments.dwAck)
        elif event.opnum == Opnum.R_CloseQueue:
            self._reader_ledger.leaves(node, group, arguments.pphContext)
        caller = Caller(event.identity, origin=end.origin)
        self._host.call(lambda core: core.remote_read.called(number, group, caller, event.opnum, arguments))

    def _cancelled(self, end: _ServerEnd, call_id: int) -> None:
        for number, call in list(self._calls.items()):
            if call.end is end and call.call_id == call_id:
                self._host.call(partial(_cancel, number))

    def lost(self, end: _ServerEnd) -> None:
        """A connection has gone, and with the last one of its group all handles of the client."""
        group = end.association.group
        last = end.association.connection_lost()
        numbers = [number for number, call in self._calls.items() if call.end is end]
        for number in numbers:
            del self._calls[number]
        core = self._host.core
        if core is None or core.queue_manager.state is not QueueManagerState.READY:
            return
        if last:
            self._reader_ledger.leaves(self._host.name, group)
            self._host.call(lambda core: core.remote_read.association_lost(group))
            self._reader_ledger.left(self._host, group)
            return
        for number in numbers:
            self._host.call(partial(_cancel, number))

    # -- answers of the engine ---------------------------------------------------------------------------

    def decided(self, effects: Sequence[Effect], since: int) -> None:
        """Note in the books the answers of the engine in a step that began at a time, not durable yet."""
        if self._calls:
            for effect in effects:
                if isinstance(effect, RpcAnswer) and effect.call in self._calls:
                    self._decided(self._calls[effect.call], effect.results, since)
        self._reader_ledger.check(self._host.name)

    def _decided(self, call: _Call, results: Any, since: int) -> None:
        host, arguments, status = self._host, call.arguments, results.get("status", MQ_OK)
        core = host.core
        assert core is not None, "it has just answered"
        if call.opnum in _OPENS:
            name = name_of(arguments.pQueueFormat)
            queue = None if name is None else core.queues.lookup.find(name)
            assert queue is not None, "it has just been opened"
            self._queues[results["pphContext"]] = queue
        elif call.opnum in _READS:
            transaction = None
            transactional = call.opnum == Opnum.R_StartTransactionalReceive
            if transactional:
                identifier = UUID(bytes_le=bytes(arguments.pTransactionId.rgb))
                transaction = identifier if identifier in self._reader_ledger.transactions else None
            reader = call.group, arguments.phContext, arguments.dwRequestId
            hold = Hold(transaction, reader, since, transactional=transactional)
            queue = self._queues.get(arguments.phContext)
            if queue is not None:
                self._reader_ledger.read(host, queue, arguments, results, hold)
        elif call.opnum in _ENDS:
            self._reader_ledger.ended(host, call.held, arguments.dwAck, status)
        elif call.opnum == Opnum.R_CloseQueue and status == MQ_OK:
            self._reader_ledger.left(host, call.group, arguments.pphContext)

    def perform(self, effect: RpcAnswer | RpcFault) -> None:
        """Carry out an effect: the facts that it reports are durable."""
        call = self._calls.pop(effect.call, None)
        if call is None:
            return
        if isinstance(effect, RpcFault):
            call.end.association.fault(call.call_id, effect.status)
        else:
            status = effect.results.get("status", MQ_OK)
            self._environment.log(self._host.name, f"answers {Opnum(call.opnum).name}: {status:#x}")
            if call.opnum in _ENDS and call.held is not None and call.arguments.dwAck == Acknowledge.RR_ACK:
                self._reader_ledger.accepted(self._host, call.held)
            call.end.association.answer(call.call_id, build_response(call.opnum, effect.results, call.syntax))
        call.end.send(call.end.association.data_to_send())


def _cancel(number: int, core: Core) -> None:
    core.remote_read.cancelled(number)
