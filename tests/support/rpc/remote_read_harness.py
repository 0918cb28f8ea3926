"""A queue manager with remote readers by [MS-MQRR], over an in-memory store, with a clock set by the test.

Its clients make the stub of each request and read that of each answer, alternately in NDR and NDR64.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from msmqwire.constants import HResult
from msmqwire.names import parse_format_name
from msmqwire.qm.model.caller import Caller
from msmqwire.qm.model.effects import Effect, EnlistTransaction, RpcAnswer, RpcFault
from msmqwire.qm.model.elements import Queue
from msmqwire.qm.model.enumerations import PositionState
from msmqwire.qm.model.message import NULL_GUID
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.protocols.remote_read.configuration import RemoteReadConfiguration
from msmqwire.remote_read.constants import Access, Acknowledge, Action, Opnum, ShareMode
from msmqwire.remote_read.procedures import PROCEDURES, XACTUOW
from msmqwire.remote_read.sections import message_of
from msmqwire.rpc.handles import ContextHandle
from msmqwire.rpc.ndr import NDR20, NDR64, build_stub, parse_stub
from msmqwire.rpc.queue_format import queue_format_of
from tests.support.engine_harness import EngineHarness

OK = 0
NO_MESSAGE = HResult.MQ_ERROR_IO_TIMEOUT
CANCELLED = HResult.MQ_ERROR_OPERATION_CANCELLED
INVALID = HResult.MQ_ERROR_INVALID_PARAMETER
BAD_HANDLE = HResult.MQ_ERROR_INVALID_HANDLE
DENIED = HResult.MQ_ERROR_ACCESS_DENIED
FULL = HResult.MQ_ERROR_INSUFFICIENT_RESOURCES
NOT_FOUND = HResult.MQ_ERROR_MESSAGE_NOT_FOUND
AVAILABLE, LOCKED = PositionState.AVAILABLE, PositionState.LOCKED
RR_ACK, RR_NACK = Acknowledge.RR_ACK, Acknowledge.RR_NACK
FOREVER = 0xFFFFFFFF
"""A time-out in milliseconds."""
WHOLE = 0xFFFFFFFF
"""The most bytes of a body."""
ORDERS = r"DIRECT=OS:here\private$\orders"
TX = bytes(range(1, 17))
NO_TX = bytes(16)
ANNE = Caller(r"HOME\anne", origin="10.0.0.7")
BOB = Caller(r"HOME\bob", origin="10.0.0.8")
ANONYMOUS = Caller(origin="10.0.0.9")

_TIMERS = (Timer.PENDING_REQUEST_CLEANUP, Timer.RPC_CALL_TIMEOUT, Timer.WAITING_MESSAGE_READ)


class Fault(Exception):
    """A call has failed with a fault."""

    def __init__(self, status: int) -> None:
        super().__init__(f"{status:#010x}")
        self.status = status


class RemoteReadHarness(EngineHarness):
    """A queue manager named ``here`` with remote readers.

    Attributes:
        answers: the results of calls by their numbers, or the status of a fault.
        enlistments: the requests to enlist in a transaction, in order.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        """Start a queue manager; further options are fields of `RemoteReadConfiguration`."""
        names = RemoteReadConfiguration.__dataclass_fields__
        changed = {name: options.pop(name) for name in list(options) if name in names}
        self._calls = itertools.count(1)
        self._syntaxes = itertools.cycle((NDR20, NDR64))
        super().__init__(*args, remote_read=RemoteReadConfiguration(**changed), **options)

    def _start(self, options: Mapping[str, Any]) -> None:
        self.answers: dict[int, Any] = {}
        self.opnums: dict[int, int] = {}
        self.enlistments: list[EnlistTransaction] = []
        super()._start(options)

    def _perform(self, effect: Effect) -> None:
        match effect:
            case RpcAnswer(call, results):
                self._answered(call, self._over_the_wire(self.opnums[call], results))
            case RpcFault(call, status):
                self._answered(call, status)
            case EnlistTransaction():
                self.enlistments.append(effect)
            case _:
                super()._perform(effect)

    def _answered(self, call: int, answer: Any) -> None:
        assert call not in self.answers, f"call {call} is answered twice"
        self.answers[call] = answer

    def _over_the_wire(self, opnum: int, results: Mapping[str, Any]) -> Any:
        syntax, stub = next(self._syntaxes), PROCEDURES[opnum].response
        return parse_stub(stub, build_stub(stub, results, syntax), syntax)

    def client(self, association: int = 1, caller: Caller = ANNE) -> Client:
        """A client."""
        return Client(self, association, caller)

    def lose(self, association: int = 1) -> None:
        """Let an association end."""
        self.core.remote_read.association_lost(association)
        self.run()

    def call(self, client: Client, opnum: int, parameters: Mapping[str, Any]) -> int:
        """Call a method; return the number of the call."""
        number, syntax = next(self._calls), next(self._syntaxes)
        self.opnums[number] = opnum
        stub = PROCEDURES[opnum].request
        arguments = parse_stub(stub, build_stub(stub, stub.value(**parameters), syntax), syntax)
        self.core.remote_read.called(number, client.association, client.caller, opnum, arguments)
        self.run()
        return number

    def nothing_is_left(self) -> bool:
        """Whether no client has anything, nothing waits, and no timer of remote read runs."""
        engine = self.core.remote_read
        shares = engine.shares
        totals = [
            share.total
            for share in (shares.handles, shares.cursors, shares.waiting, shares.pending, shares.transactions)
        ]
        counted = [share._by_caller for share in (shares.handles, shares.cursors, shares.waiting)]
        timers = [name for name, _ in self.core.context.timers._armed if name in _TIMERS]
        return not (
            any(totals) or any(counted) or len(engine.contexts) or engine.receiving._by_call or timers
            or self.core.messages.waiting_reads._completed
            or any(
                descriptor.user is not None
                for queue in self.core.queue_manager.queues.values()
                for descriptor in queue.descriptors.values()
            )
        )  # fmt: skip


class Client:
    """A client of remote read; methods return the status, or the subject of the test, and raise `Fault`."""

    def __init__(self, harness: RemoteReadHarness, association: int, caller: Caller) -> None:
        self.harness, self.association, self.caller = harness, association, caller
        self._requests = itertools.count(100)

    def begin(self, opnum: int, **parameters: Any) -> int:
        """Call a method that may wait; return the number of the call."""
        return self.harness.call(self, opnum, parameters)

    def answer(self, call: int) -> Any:
        """Return the results of a call, None while there are none."""
        answer = self.harness.answers.get(call)
        if isinstance(answer, int):
            raise Fault(answer)
        return answer

    def call(self, opnum: int, **parameters: Any) -> Any:
        """Call a method that is answered at once; return its results."""
        answer = self.answer(self.begin(opnum, **parameters))
        assert answer is not None, "the call waits"
        return answer

    # -- queues

    def open(
        self,
        queue: str | Any = ORDERS,
        access: int = Access.RECEIVE_ACCESS,
        share: int = ShareMode.MQ_DENY_NONE,
        **changed: Any,
    ) -> ContextHandle:
        """Open a queue by its format name or QUEUE_FORMAT."""
        parameters = self._open_parameters(queue, access, share, changed)
        handle: ContextHandle = self.call(Opnum.R_OpenQueue, **parameters).pphContext
        return handle

    def open_for_move(self, queue: str | Any, **changed: Any) -> tuple[int, ContextHandle]:
        """Open a queue as the destination of moves; return pMoveContext and the handle."""
        parameters = self._open_parameters(queue, Access.MQ_MOVE_ACCESS, 0, changed)
        results = self.call(Opnum.R_OpenQueueForMove, **parameters)
        return results.pMoveContext, results.pphContext

    def _open_parameters(
        self, queue: str | Any, access: int, share: int, changed: Mapping[str, Any]
    ) -> dict[str, Any]:
        form = queue_format_of(parse_format_name(queue)) if isinstance(queue, str) else queue
        return {
            "pQueueFormat": form, "dwAccess": access, "dwShareMode": share, "pClientId": NULL_GUID,
            "fNonRoutingServer": 1, "Major": 6, "Minor": 1, "BuildNumber": 7600, "fWorkgroup": 1, **changed,
        }  # fmt: skip

    def close(self, handle: ContextHandle) -> tuple[int, ContextHandle]:
        """Close a queue; return the status and the handle as it comes back."""
        results = self.call(Opnum.R_CloseQueue, pphContext=handle)
        return results.status, results.pphContext

    def purge(self, handle: ContextHandle) -> int:
        return int(self.call(Opnum.R_PurgeQueue, phContext=handle).status)

    def create_cursor(self, handle: ContextHandle) -> int:
        """Create a cursor."""
        results = self.call(Opnum.R_CreateCursor, phContext=handle)
        assert results.status == OK
        return int(results.phCursor)

    def close_cursor(self, handle: ContextHandle, cursor: int) -> int:
        return int(self.call(Opnum.R_CloseCursor, phContext=handle, hCursor=cursor).status)

    # -- reading

    def start(
        self,
        handle: ContextHandle,
        action: int = Action.MQ_ACTION_RECEIVE,
        *,
        request: int | None = None,
        lookup: int = 0,
        cursor: int = 0,
        timeout: int = 0,
        body: int = WHOLE,
        compound: int = WHOLE,
        tx: bytes | None = None,
    ) -> int:
        """Begin to read; return the number of the call. With `tx` by R_StartTransactionalReceive."""
        parameters: dict[str, Any] = {
            "phContext": handle, "LookupId": lookup, "hCursor": cursor, "ulAction": action,
            "ulTimeout": timeout, "dwRequestId": next(self._requests) if request is None else request,
            "dwMaxBodySize": body, "dwMaxCompoundMessageSize": compound,
        }  # fmt: skip
        if tx is None:
            return self.begin(Opnum.R_StartReceive, **parameters)
        unit = XACTUOW.value(rgb=tx)
        return self.begin(Opnum.R_StartTransactionalReceive, **parameters, pTransactionId=unit)

    def read(self, handle: ContextHandle, action: int = Action.MQ_ACTION_RECEIVE, **options: Any) -> Any:
        """Read the available message: its body, or the status of the failure."""
        return self.result(self.start(handle, action, **options))

    def result(self, call: int) -> Any:
        """The body that a read has given, the status of its failure, None while it waits."""
        answer = self.answer(call)
        if answer is None:
            return None
        if answer.status != OK:
            assert answer.ppPacketSections is None
            return answer.status
        assert answer.pdwNumberOfSections == len(answer.ppPacketSections)
        return message_of(answer.ppPacketSections).body

    def cancel(self, handle: ContextHandle, request: int) -> int:
        results = self.call(Opnum.R_CancelReceive, phContext=handle, dwRequestId=request)
        return int(results.status)

    def end(
        self,
        handle: ContextHandle,
        request: int,
        ack: int = Acknowledge.RR_ACK,
        *,
        transactional: bool = False,
    ) -> int:
        """End a receive."""
        opnum = Opnum.R_EndTransactionalReceive if transactional else Opnum.R_EndReceive
        return int(self.call(opnum, phContext=handle, dwAck=ack, dwRequestId=request).status)

    # -- transactions

    def enlist(self, tx: bytes = TX, token: bytes = b"token") -> int:
        """Begin to enlist the queue manager in a transaction; return the number of the call."""
        return self.begin(
            Opnum.R_QMEnlistRemoteTransaction,
            pTransactionId=XACTUOW.value(rgb=tx),
            cbPropagationToken=len(token),
            pbPropagationToken=token,
            pQueueFormat=queue_format_of(parse_format_name(ORDERS)),
        )

    def enlisted(self, tx: bytes = TX) -> None:
        """Enlist the queue manager in a transaction, with a coordinator that does so."""
        engine = self.harness.core.remote_read
        engine.transacting.coordinated = True
        call = self.enlist(tx)
        engine.enlisted(self.harness.enlistments[-1].request, done=True)
        self.harness.run()
        assert self.answer(call).status == OK

    def move(self, source: ContextHandle, target: int, lookup: int, tx: bytes = NO_TX) -> int:
        results = self.call(
            Opnum.R_MoveMessage,
            phContextFrom=source,
            ullContextTo=target,
            LookupId=lookup,
            pTransactionId=XACTUOW.value(rgb=tx),
        )
        return int(results.status)

    def reject(self, handle: ContextHandle, lookup: int, message_class: int = 0xC004) -> int:
        results = self.call(
            Opnum.R_SetUserAcknowledgementClass, phContext=handle, LookupId=lookup, usClass=message_class
        )
        return int(results.status)


def lookup_identifiers(queue: Queue) -> list[int]:
    """The lookup identifiers of the messages of a queue, in their order."""
    return [position.lookup_identifier for position in queue.positions]
