"""A program that reads the queues of a node by [MS-MQRR], in virtual time.

Its behaviour is a generator, a script: it yields the number of a call to get its results, or a `Pause`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import suppress
from typing import Any, Final, NamedTuple

from msmqwire.constants import MQ_OK, HResult
from msmqwire.errors import RpcRefused
from msmqwire.qm.sim.environment import Environment
from msmqwire.qm.sim.host import Host
from msmqwire.qm.sim.rpc_network import RpcEnd, RpcHost, SimulatedRpcNetwork
from msmqwire.qm.sim.violation import Invariant
from msmqwire.remote_read.interface import INTERFACE, build_request, parse_response
from msmqwire.rpc.client_association import ClientAssociation
from msmqwire.rpc.constants import FaultStatus
from msmqwire.rpc.events import Answered, Bound, Closed, Faulted
from msmqwire.rpc.ndr import SYNTAXES
from msmqwire.service.virtual.violation import Violation

MAY_FAIL: Final = frozenset(
    {
        FaultStatus.NCA_S_SERVER_TOO_BUSY,  # the queue manager stops
        HResult.MQ_ERROR_OPERATION_CANCELLED,
        HResult.MQ_ERROR_INVALID_HANDLE,  # it has stopped; or the time of a receive is over
        HResult.MQ_ERROR_INVALID_PARAMETER,
        HResult.MQ_ERROR_TRANSACTION_ENLIST,
    }
)
"""Failures of calls that are not the caller's fault."""


class Pause(NamedTuple):
    """A wait in a script."""

    ms: int


class ReaderLost(Exception):
    """The connection has broken: a call has no answer, or can't be made."""


class Failed(Exception):
    """A call has failed: with a status other than MQ_OK, or with a fault."""

    def __init__(self, status: int) -> None:
        super().__init__(f"{status:#010x}")
        self.status = status


Script = Generator["int | Pause", Any, None]


class _ClientEnd(RpcEnd):
    """The reader's end of a connection."""

    def __init__(self, host: Host, number: int, reader: RemoteReader, association: ClientAssociation) -> None:
        super().__init__(host, number)
        self._reader, self.association, self.opnums = reader, association, dict[int, int]()

    def connected(self) -> None:
        self.association.bind()
        self.send(self.association.data_to_send())

    def received(self, data: bytes) -> None:
        self._reader.received(self, data)

    def disconnected(self) -> None:
        self.close()
        self._reader.lost(self)


class RemoteReader:
    """A program at a node, with one or more connections of one association group to another node.

    Args:
        environment: the environment of the run. network: the connections of DCE/RPC.
        host: the node on which it runs, and with which it ends.
        server: the node whose queues it reads.
        connections: the number of its connections.

    Attributes:
        finished: whether its script has ended.
    """

    def __init__(
        self,
        environment: Environment,
        network: SimulatedRpcNetwork,
        host: Host,
        server: RpcHost,
        connections: int = 1,
    ) -> None:
        self._environment, self._network = environment, network
        self.host, self.server = host, server
        self._missing = connections
        self._ends: list[_ClientEnd] = []
        self._script: Script | None = None
        self._awaited: tuple[_ClientEnd, int] | None = None
        self._calls: dict[int, tuple[_ClientEnd, int]] = {}
        self._results: dict[tuple[_ClientEnd, int], Any] = {}
        self._last = 0
        self.finished = False

    def run(self, script: Callable[[], Script]) -> None:
        """Connect, and carry out a script."""
        self._script = script()
        self._connect(0)

    def _connect(self, group: int) -> None:
        self._missing -= 1
        association = ClientAssociation(INTERFACE, group=group)
        end = _ClientEnd(self.host, self._network.number(), self, association)
        self._ends.append(end)
        self._network.connect(end, self.server)

    # -- for scripts -------------------------------------------------------------------------------------

    def begin(self, opnum: int, *, connection: int = 0, **arguments: Any) -> int:
        """Call a method; return the number of the call. Raises ReaderLost if the connection has broken."""
        end = self._ends[connection]
        if not (end.open and end.alive):
            raise ReaderLost
        association = end.association
        stub = build_request(opnum, arguments, SYNTAXES[association.transfer_syntax])
        call_id = association.call(opnum, stub)
        end.opnums[call_id] = opnum
        self._last += 1
        self._calls[self._last] = end, call_id
        end.send(association.data_to_send())
        return self._last

    def cancel_call(self, call: int) -> None:
        """Cancel a call, by the RPC runtime."""
        end, call_id = self._calls[call]
        end.association.cancel(call_id)
        end.send(end.association.data_to_send())

    def vanish(self) -> None:
        """End all connections at once."""
        for end in self._ends:
            end.close()

    def kill(self) -> None:
        """End the program at any point, from outside."""
        script, self._script, self.finished = self._script, None, True
        self.vanish()
        if script is not None:
            with suppress(StopIteration, ReaderLost):
                script.throw(ReaderLost())

    # -- events -----------------------------------------------------------------------------------------

    def received(self, end: _ClientEnd, data: bytes) -> None:
        """Take bytes of the server."""
        for event in end.association.received(data):
            match event:
                case Bound(group):
                    if self._missing:
                        self._connect(group)
                    else:
                        self._advance(None)
                case Answered(call_id, syntax, stub):
                    self._take(end, call_id, parse_response(end.opnums[call_id], stub, SYNTAXES[syntax]))
                case Faulted(call_id, status):
                    self._take(end, call_id, Failed(status))
                case Closed(RpcRefused()):
                    self.vanish()
                case Closed(error):
                    raise Violation(Invariant.REFUSED, f"the answers of {self.server.name}: {error}")

    def _take(self, end: _ClientEnd, call_id: int, results: Any) -> None:
        if self._awaited == (end, call_id):
            self._awaited = None
            self._advance(results)
        else:
            self._results[end, call_id] = results

    def lost(self, end: _ClientEnd) -> None:
        """A connection has gone."""
        end.open = False
        if self._awaited is not None and self._awaited[0] is end:
            self._awaited = None
            self._advance(ReaderLost())

    def _advance(self, results: Any) -> None:
        """Continue the script until it has to wait."""
        script = self._script
        while script is not None and self.host.core is not None:
            try:
                if isinstance(results, Exception):
                    wait = script.throw(results)
                elif results is not None and getattr(results, "status", MQ_OK) != MQ_OK:
                    wait = script.throw(Failed(results.status))
                else:
                    wait = script.send(results)
            except (StopIteration, ReaderLost, Failed) as ended:
                self._script, self.finished = None, True
                self.vanish()
                if isinstance(ended, Failed) and ended.status not in MAY_FAIL:
                    why = f"a call of an honest reader fails: {ended}"
                    raise Violation(Invariant.REFUSED, why) from None
                return
            if isinstance(wait, Pause):
                self._environment.after(wait.ms, lambda: self._advance(None))
                return
            awaited = self._calls[wait]
            if awaited in self._results:
                results = self._results.pop(awaited)
            elif not awaited[0].open:
                results = ReaderLost()
            else:
                self._awaited = awaited
                return
