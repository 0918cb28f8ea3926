"""A connection to the queue manager of another computer, and the state there: [MS-MQRR] 3.2.1."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, TypeVar
from uuid import UUID

from msmqwire.constants import MQ_OK, HResult
from msmqwire.errors import MalformedPacket, MsmqError, QueueError, RpcFault, Unreachable
from msmqwire.names import DirectName, FormatName
from msmqwire.qm.runtime.reasons import reason
from msmqwire.qm.runtime.rpc.client import RpcCall, RpcClient
from msmqwire.remote_read.constants import Access, Opnum, ShareMode
from msmqwire.remote_read.interface import build_request, parse_response
from msmqwire.rpc.constants import FaultStatus
from msmqwire.rpc.handles import ContextHandle
from msmqwire.rpc.ndr import SYNTAXES
from msmqwire.rpc.queue_format import queue_format_of

# MQRR-3.1.4.2-13, MQRR-3.1.4.2-14, MQRR-3.1.4.2-15, MQRR-3.1.4.11-10
_VERSION: Final = {"Major": 6, "Minor": 1, "BuildNumber": 0}
_MQ_FACILITY: Final = 0xC00E

T = TypeVar("T")


class RemoteConnection:
    """A connection for one queue.

    Attributes:
        client: the association.
        handles: the handles of the queue, by the access for which it was opened.
        cursors: the handle to which each cursor belongs.
        reads: the number under way.
    """

    def __init__(self, client: RpcClient, name: DirectName, identifier: UUID) -> None:
        """Take the name of the queue, and the identifier of this client."""
        self.client, self._name, self._identifier = client, name, identifier
        self.handles: dict[Access, asyncio.Task[ContextHandle]] = {}
        self.cursors: dict[int, ContextHandle] = {}
        self.reads = 0

    # -- handles ------------------------------------------------------------------------------------------

    async def opened(self, access: Access) -> ContextHandle:
        """Return the handle of the queue; open it if it is not open for this access.

        Raises QueueError, and Unreachable if the connection is gone.
        """
        task = self.handles.get(access)
        if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
            task = shared_task(self._open(access))
            self.handles[access] = task  # MQRR-3.2.1-01, MQRR-3.2.4.1-07, MQRR-3.1.4.2-03
        try:
            return await shared_result(task, self._name)
        except MsmqError:
            if self.handles.get(access) is task:
                del self.handles[access]
            raise

    async def _open(self, access: Access) -> ContextHandle:
        opnum = Opnum.R_OpenQueue
        answer = await self.answer(opnum, self.begin(opnum, self.opening(self._name, access)))
        handle: ContextHandle = answer.pphContext
        if handle.is_null:
            raise self.wrong(opnum, "with no handle")
        return handle

    def opening(self, name: FormatName, access: Access) -> dict[str, Any]:
        """Return the arguments of R_OpenQueue and R_OpenQueueForMove: [MS-MQRR] 3.1.4.2 and 3.1.4.11."""
        return {
            "pQueueFormat": queue_format_of(name),  # MQRR-3.1.4.2-04, MQRR-3.1.4.11-03, MQRR-3.2.4.1-05
            "dwAccess": int(access),  # MQRR-3.1.4.2-05, MQRR-3.1.4.11-04, MQRR-3.2.4.1-05
            "dwShareMode": ShareMode.MQ_DENY_NONE.value,  # MQRR-3.1.4.11-05, MQRR-3.2.4.1-05
            "pClientId": self._identifier,
            "fNonRoutingServer": 1,  # MQRR-3.1.4.2-11, MQRR-3.1.4.11-09
            "fWorkgroup": 1,  # MQRR-3.1.4.2-17, MQRR-3.1.4.11-12
            **_VERSION,
        }

    # -- calls --------------------------------------------------------------------------------------------

    async def call(self, opnum: Opnum, **arguments: Any) -> Any:
        """Call a method that answers at once, and return its results if it has succeeded.

        Raises QueueError with the code of the queue manager, and what `answer` raises.
        """
        answer = await self.answer(opnum, self.begin(opnum, arguments))
        self.check(answer)
        return answer

    def begin(self, opnum: Opnum, arguments: dict[str, Any], wait: float | None = 0.0) -> RpcCall:
        """Call a method, see `RpcClient.begin`; `answer` returns its results."""
        stub = build_request(opnum, arguments, SYNTAXES[self.client.transfer_syntax])
        return self.client.begin(opnum, stub, wait=wait)

    async def answer(self, opnum: Opnum, call: RpcCall, name: FormatName | None = None) -> Any:
        """Return the results of a call; `name` is its queue, if that is another one.

        Raises Unreachable, RpcFault, QueueError for a fault with a code of MSMQ, and MalformedPacket for
        unreadable results: a message may have been received.
        """
        try:
            answered = await named(self.client.answer(call), name or self._name)
        except RpcFault as fault:
            if fault.status == FaultStatus.NCA_S_FAULT_CONTEXT_MISMATCH:  # it has forgotten its own handle
                why = f"{self._name}: the server does not know its handle any more"
                self.client.end(Unreachable(why))
            raise
        try:
            syntax = SYNTAXES[answered.transfer_syntax].ordered(big_endian=answered.big_endian)
            return parse_response(opnum, answered.stub, syntax)
        except MalformedPacket as exc:
            if opnum in (Opnum.R_StartReceive, Opnum.R_StartTransactionalReceive):
                raise exc.detached() from None
            raise self.wrong(opnum, f"wrongly: {exc}") from None

    def check(self, answer: Any) -> None:
        """Raise QueueError for results of a failure."""
        # MQRR-3.1.4.4-05, MQRR-3.1.4.5-06, MQRR-3.1.4.6-06, MQRR-3.1.4.9-13, MQRR-3.1.4.12-11
        # MQRR-3.1.4.14-11, MQRR-3.1.4.15-13, MQRR-2.2.1-01
        if answer.status != MQ_OK:
            raise QueueError(reason(answer.status, str(self._name)), answer.status)

    def wrong(self, opnum: Opnum, how: str) -> Unreachable:
        """Leave a server that does not keep to the protocol, and return the exception for it."""
        error = Unreachable(f"{self._name}: the server answers {opnum.name} {how}")
        self.client.end(error)
        return error


async def named(work: Coroutine[Any, Any, T], name: FormatName) -> T:
    """Await `work`; a fault with a code of MSMQ is raised as the queue manager's refusal, with the name."""
    try:
        return await work
    except RpcFault as fault:
        # MQRR-3.1.4.2-22, MQRR-3.1.4.2-23, MQRR-3.1.4.11-18, MQRR-3.1.4.11-19
        if fault.status >> 16 == _MQ_FACILITY:
            raise QueueError(reason(fault.status, str(name)), fault.status) from None
        raise  # MQRR-3.1.4.10-02, MQRR-3.1.4.13-06, MQRR-3.1.4.14-02


def cancelled(name: FormatName) -> QueueError:
    """Return the exception of a read of this queue that was cancelled."""
    code = HResult.MQ_ERROR_OPERATION_CANCELLED
    return QueueError(reason(code, str(name)), code)


def shared_task(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Return a task that several tasks may wait for, and whose exception may stay unread."""
    task = asyncio.ensure_future(work)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return task


async def shared_result(task: asyncio.Task[T], name: FormatName) -> T:
    """Return the result of a task that other tasks wait for, too; if it is cancelled, raise `cancelled`."""
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if task.cancelled():
            raise cancelled(name) from None
        raise
