"""Queues of other computers, read by remote read: the client of [MS-MQRR] 3.2."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID, uuid4

from msmqwire.constants import HResult, MessageClass
from msmqwire.errors import (
    EndUnknown,
    InvalidValue,
    MalformedPacket,
    MsmqError,
    QueueError,
    RpcFault,
    Unreachable,
)
from msmqwire.names import DirectName, FormatName, kind_of
from msmqwire.names.meant import wanted_format_name
from msmqwire.qm.client.reading import Read, new_request
from msmqwire.qm.client.received_message import ReceivedMessage
from msmqwire.qm.client.remote_connection import (
    RemoteConnection,
    cancelled,
    named,
    shared_result,
    shared_task,
)
from msmqwire.qm.client.remote_lookup import PEEK_CURRENT, lookup_spellings
from msmqwire.qm.client.remote_options import RemoteOptions
from msmqwire.qm.model.enumerations import INFINITE
from msmqwire.qm.runtime.local_names import queue_name
from msmqwire.qm.runtime.reasons import reason
from msmqwire.qm.runtime.rpc.client import RpcCall, find_port, open_rpc
from msmqwire.remote_read.constants import Access, Acknowledge, Action, Opnum
from msmqwire.remote_read.interface import INTERFACE
from msmqwire.rpc.handles import ContextHandle
from msmqwire.rpc.queue_format import queue_format_of

_BODY_MAX: Final = 0x40_0000
"""The length that is requested of a body: no packet is longer."""
READS_MAX: Final = 240
"""Limit of reads under way. Servers of this package accept more calls, which leaves room to cancel a read."""
ENLISTED_MAX: Final = 1_024
"""Limit of transactions in which a queue can be read; the oldest one is forgotten. Servers have the same
limit.
"""
_NO_TRANSACTION: Final = bytes(16)


@dataclass(slots=True, eq=False)
class _Pending:
    """A read without an answer yet, or with a message that was received and not ended.

    Attributes:
        request_id: dwRequestId of the call, a new one for each call of a read: MQRR-3.1.4.7-23.
        handle: the handle of the queue; None until the read is sent.
        call: the call, while it has no answer.
        cancelled: whether the read must not be sent any more.
    """

    transaction: UUID | None
    cursor: int
    request_id: int
    link: RemoteConnection | None = None
    handle: ContextHandle | None = None
    call: RpcCall | None = None
    cancelled: bool = False


class RemoteReading:
    """A queue of another computer, for reading: see `msmqwire.qm.client.reading.Reading`.

    It connects on first use, and again after a connection broke. Messages received over a broken connection
    and not ended are back in the queue, cursors are gone.

    Beyond the errors of that interface it raises RpcFault for a call that the server answers with an RPC
    fault, RpcRefused and AuthenticationFailed.

    Attributes:
        name: the name of the queue.
    """

    def __init__(self, name: DirectName, options: RemoteOptions) -> None:
        self.name, self._options = name, options
        # MQRR-3.1.4.2-08, MQRR-3.1.4.11-06
        self._identifier = uuid4()  # the identifier of this client, whose queue manager no peer knows
        self._connecting: asyncio.Task[RemoteConnection] | None = None
        self._pending: dict[int, _Pending] = {}
        self._enlisted: dict[UUID, None] = {}

    # -- reading ------------------------------------------------------------------------------------------

    async def start(self, request: int, read: Read) -> ReceivedMessage:
        pending = self._pending[request] = _Pending(read.transaction, read.cursor, request)
        received = False
        try:
            answer = await self._started(request, read, pending)
            received = read.action.receives
        finally:
            pending.call = None
            if not received:
                self._pending.pop(request, None)
        from msmqwire.qm.client.remote_messages import received_message  # imports the packet readers

        try:
            # MQRR-3.2.4.3-02, MQRR-3.2.4.4.1-05, MQRR-3.2.4.10.1-03
            return received_message(answer.ppPacketSections, answer.pdwArriveTime, answer.pSequenceId)
        except MalformedPacket as exc:
            if received:
                with suppress(MsmqError):  # the server gives it back itself, sooner or later
                    # MQRR-3.2.4.4.1-03, MQRR-3.2.4.4.2-03, MQRR-3.2.4.10.1-02
                    await self.end(request, acknowledge=False)  # 3.2.4.4.1: readAck is RR_NACK
            raise exc.detached() from None

    async def _started(self, request: int, read: Read, pending: _Pending) -> Any:
        """Return the answer to R_StartReceive or R_StartTransactionalReceive."""
        # MQRR-3.1.4.13-10, MQRR-3.1.4.13-11, MQRR-3.1.4.13-12
        if read.transaction is not None and not read.action.receives:
            why = f"{self.name}: a transaction is for receiving"
            raise QueueError(why, HResult.MQ_ERROR_TRANSACTION_USAGE)
        # MQRR-3.2.4.2-01, MQRR-3.2.4.4.2-01, MQRR-3.1.4.12-04, MQRR-3.1.4.13-18
        self._check_enlisted(read.transaction)
        pending.link = link = await self._link()
        pending.handle = handle = await self._handle_for(link, read)
        opnum, unit = Opnum.R_StartReceive, {}  # MQRR-3.2.4.4-01, MQRR-3.2.4.10-01
        arguments: dict[str, Any] = {
            "phContext": handle,  # MQRR-2.2.4-01
            "LookupId": read.lookup_identifier,
            "hCursor": read.cursor,
            "ulAction": int(read.action),
            "ulTimeout": read.timeout_ms,  # MQRR-3.1.4.7-22, MQRR-3.1.4.13-14, MQRR-3.2.2-01
            "dwMaxBodySize": _BODY_MAX,  # MQRR-3.1.4.7-24, MQRR-3.1.4.13-16
            "dwMaxCompoundMessageSize": _BODY_MAX,  # MQRR-3.1.4.7-25, MQRR-3.1.4.13-16
        }
        if read.transaction is not None:  # MQRR-3.2.4.4-01, MQRR-3.2.4.10-01
            opnum = Opnum.R_StartTransactionalReceive
            unit = {"pTransactionId": {"rgb": read.transaction.bytes_le}}
        wait = None if read.timeout_ms == INFINITE else read.timeout_ms / 1000
        current = read.action in (Action.MQ_LOOKUP_PEEK_CURRENT, Action.MQ_LOOKUP_RECEIVE_CURRENT)
        for identifier in lookup_spellings(read.lookup_identifier):
            arguments["LookupId"] = identifier  # MQRR-3.1.4.7-20, MQRR-3.1.4.7-21
            if read.action.by_lookup_identifier and not current:
                # A wrong spelling may find a neighbour on some servers, but of another place.
                answer = await self._read(link, Opnum.R_StartReceive, arguments | PEEK_CURRENT, 0.0, pending)
                if answer.status == HResult.MQ_ERROR_MESSAGE_NOT_FOUND:
                    continue
            try:
                answer = await self._read(link, opnum, arguments | unit, wait, pending)
            except MalformedPacket:
                if read.action.receives:
                    with suppress(MsmqError):  # none was received after all, or the server returns it
                        await self.end(request, acknowledge=False)
                raise
            if not current or answer.status != HResult.MQ_ERROR_MESSAGE_NOT_FOUND:
                break
        link.check(answer)
        return answer

    async def _read(
        self,
        link: RemoteConnection,
        opnum: Opnum,
        arguments: dict[str, Any],
        wait: float | None,
        pending: _Pending,
    ) -> Any:
        """Return the answer to a read, whatever its status."""
        if pending.cancelled:
            raise cancelled(self.name)
        if link.reads >= READS_MAX:
            why = f"{self.name}: {READS_MAX} reads are under way"
            raise QueueError(why, HResult.MQ_ERROR_INSUFFICIENT_RESOURCES)
        if pending.call is not None:
            pending.request_id = new_request()  # MQRR-3.1.4.7-23
        # MQRR-3.1.4.7-23, MQRR-3.1.4.13-15
        pending.call = link.begin(opnum, arguments | {"dwRequestId": pending.request_id}, wait)
        link.reads += 1
        try:
            return await link.answer(opnum, pending.call)
        finally:
            link.reads -= 1

    async def _handle_for(self, link: RemoteConnection, read: Read) -> ContextHandle:
        if not read.cursor:
            receives = read.action.receives or Access.RECEIVE_ACCESS in link.handles
            # MQRR-3.1.4.7-11, MQRR-3.1.4.13-09
            return await link.opened(Access.RECEIVE_ACCESS if receives else Access.PEEK_ACCESS)
        if read.cursor not in link.cursors:
            raise self._gone("the cursor is closed, or its connection was lost")  # MQRR-3.1.4.7-15
        return link.cursors[read.cursor]

    async def end(self, request: int, *, acknowledge: bool) -> None:
        pending = self._pending.pop(request, None)
        if pending is None or pending.link is None:
            raise self._gone("the queue was closed, and the message is back in it")
        if pending.link.client.closed:
            raise Unreachable(f"{self.name}: the connection was lost, and the message is back in its queue")
        transactional = pending.transaction is not None
        # MQRR-3.1.4.9-02, MQRR-3.1.4.15-02
        opnum = Opnum.R_EndTransactionalReceive if transactional else Opnum.R_EndReceive
        # MQRR-3.2.4.4.1-02, MQRR-3.2.4.4.2-03
        ack = Acknowledge.RR_ACK if acknowledge else Acknowledge.RR_NACK
        try:
            # MQRR-3.1.4.9-03, MQRR-3.1.4.15-03, MQRR-3.2.4.4.1-04, MQRR-3.2.4.4.2-04, MQRR-3.2.4.10.1-02
            await pending.link.call(  # MQRR-3.1.4.7-06, MQRR-3.1.4.13-07, MQRR-4.2-01
                opnum, phContext=pending.handle, dwAck=int(ack), dwRequestId=pending.request_id
            )
        except MsmqError as exc:
            if not acknowledge or not pending.link.client.closed:  # MQRR-3.2.4.4.1-06, MQRR-3.2.4.10.1-04
                raise
            raise EndUnknown(f"{exc}, and may have deleted the message that was received") from None

    async def cancel(self, request: int) -> None:
        pending = self._pending.get(request)
        if pending is None or pending.cancelled:
            return
        pending.cancelled = True
        link, call = pending.link, pending.call
        if link is None or call is None or link.client.closed:
            return
        if not link.client.multiplexed:  # the request would wait for the end of the call that it cancels
            link.client.end(Unreachable(f"{self.name}: the connection was left, to cancel a read"))
            return
        try:
            # MQRR-3.1.4.8-03, MQRR-3.1.4.8-10, MQRR-3.2.4.11-01, MQRR-3.1.4.7-06, MQRR-3.1.4.13-07
            await link.call(Opnum.R_CancelReceive, phContext=pending.handle, dwRequestId=pending.request_id)
        except (QueueError, RpcFault):
            pass  # it has ended meanwhile, as a rule
        finally:
            if pending.call is not None:
                link.client.make_due(pending.call)

    # -- cursors ------------------------------------------------------------------------------------------

    async def subscribe(self, window: int, timeout: float | None) -> None:
        """Return None: [MS-MQRR] has no push."""

    async def open_cursor(self) -> int:
        link = await self._link()
        try:
            handle = await link.opened(Access.RECEIVE_ACCESS)
        except QueueError:  # for any reason: MQRR-3.1.4.2-23
            handle = await link.opened(Access.PEEK_ACCESS)  # enough to look at messages
        # MQRR-3.1.4.4-02, MQRR-3.2.4.8-01
        cursor: int = (await link.call(Opnum.R_CreateCursor, phContext=handle)).phCursor
        if not cursor or cursor in link.cursors:
            raise link.wrong(Opnum.R_CreateCursor, f"with the cursor {cursor}")
        link.cursors[cursor] = handle  # MQRR-3.2.1-02, MQRR-3.2.4.8-01
        return cursor

    async def close_cursor(self, cursor: int) -> None:
        link = self._present_link()
        handle = None if link is None else link.cursors.pop(cursor, None)  # MQRR-3.2.4.12-02
        if link is None or handle is None:
            raise self._gone("the cursor is closed, or its connection was lost")
        for request, pending in list(self._pending.items()):
            if pending.link is link and pending.cursor == cursor and pending.call is not None:
                await self.cancel(request)  # MQRR-3.2.4.12-01
        # MQRR-3.1.4.5-02, MQRR-3.1.4.5-03, MQRR-3.2.4.12-02
        await link.call(Opnum.R_CloseCursor, phContext=handle, hCursor=cursor)

    # -- the queue ----------------------------------------------------------------------------------------

    async def purge(self) -> None:
        link = await self._link()
        handle = await link.opened(Access.RECEIVE_ACCESS)
        await link.call(Opnum.R_PurgeQueue, phContext=handle)  # MQRR-3.1.4.6-02, MQRR-3.2.4.7-01

    async def move(self, lookup_identifier: int, to: str, transaction: UUID | None) -> None:
        self._check_enlisted(transaction)
        destination = self._destination(to)
        link = await self._link()
        handle = await link.opened(Access.RECEIVE_ACCESS)
        opnum = Opnum.R_OpenQueueForMove
        # MQRR-3.1.4.11-04
        arguments = link.opening(destination, Access.MQ_MOVE_ACCESS)
        opened = await link.answer(opnum, link.begin(opnum, arguments), destination)
        if opened.pphContext.is_null or not opened.pMoveContext:
            raise link.wrong(opnum, "with no handle")
        try:
            # MQRR-3.1.4.10-05, MQRR-3.1.4.11-02, MQRR-3.2.4.6-03
            await self._move(link, handle, opened.pMoveContext, lookup_identifier, transaction)
        finally:
            with suppress(MsmqError):  # the outcome of the move does not depend on the handle
                await link.call(Opnum.R_CloseQueue, pphContext=opened.pphContext)

    async def _move(
        self,
        link: RemoteConnection,
        handle: ContextHandle,
        to: int,
        identifier: int,
        transaction: UUID | None,
    ) -> None:
        # MQRR-3.1.4.10-07, MQRR-3.2.4.6-02
        unit = _NO_TRANSACTION if transaction is None else transaction.bytes_le
        for spelling in lookup_spellings(identifier):
            arguments = {
                "phContextFrom": handle,  # MQRR-3.1.4.10-04
                "ullContextTo": to,
                "LookupId": spelling,  # MQRR-3.1.4.10-06
                "pTransactionId": {"rgb": unit},
            }
            call = link.begin(Opnum.R_MoveMessage, arguments)
            answer = await link.answer(Opnum.R_MoveMessage, call)
            if answer.status != HResult.MQ_ERROR_MESSAGE_NOT_FOUND:
                break
        link.check(answer)

    async def enlist(self, transaction: UUID, propagation_token: bytes) -> None:
        """Enlist the server in a transaction: R_QMEnlistRemoteTransaction. The queue can be read in it then.

        The token is that of the coordinator of the transaction: [MS-DTCO] 3.3.4.3.
        """
        link = await self._link()
        await link.call(
            Opnum.R_QMEnlistRemoteTransaction,
            pTransactionId={"rgb": transaction.bytes_le},
            cbPropagationToken=len(propagation_token),
            pbPropagationToken=propagation_token,
            pQueueFormat=queue_format_of(self.name),  # MQRR-3.1.4.12-08
        )
        self._enlisted[transaction] = None
        if len(self._enlisted) > ENLISTED_MAX:  # this client is not notified of their outcome
            del self._enlisted[next(iter(self._enlisted))]

    def _check_enlisted(self, transaction: UUID | None) -> None:
        if transaction is not None and transaction not in self._enlisted:
            code = HResult.MQ_ERROR_TRANSACTION_ENLIST
            raise QueueError(reason(code, str(self.name)), code)

    async def reject(self, lookup_identifier: int) -> None:
        """Notify the sender that a message received in a transaction was rejected.

        R_SetUserAcknowledgementClass: [MS-MQRR] 3.2.4.5. Only after `end`: the server returns a message
        that is not ended in time to its queue, and then has nothing to reject.
        """
        link = await self._link()
        handle = await link.opened(Access.RECEIVE_ACCESS)
        await link.call(
            Opnum.R_SetUserAcknowledgementClass,
            phContext=handle,
            LookupId=lookup_identifier,  # MQRR-3.1.4.14-04
            usClass=int(MessageClass.MQMSG_CLASS_NACK_RECEIVE_REJECTED),  # MQRR-3.1.4.14-05, MQRR-3.2.4.5-01
        )

    async def close(self) -> None:
        link, connecting = self._present_link(), self._connecting
        if connecting is not None and not connecting.done():
            connecting.cancel()
        self._connecting = None
        pending, self._pending = self._pending, {}
        for request, read in pending.items():
            if read.call is None:
                read.cancelled = True
            else:
                self._pending[request] = read
        if link is None:
            return
        for request in list(self._pending):
            with suppress(MsmqError):
                await self.cancel(request)  # MQRR-3.2.4.13-01
        with suppress(MsmqError):  # the server closes the remaining handles with the connection
            for cursor, handle in link.cursors.items():
                await link.call(Opnum.R_CloseCursor, phContext=handle, hCursor=cursor)  # MQRR-3.2.4.13-01
            for opened in link.handles.values():
                if opened.done() and not opened.cancelled() and opened.exception() is None:
                    # MQRR-3.2.4.13-02, MQRR-3.1.4.3-02, MQRR-2.2.4-02
                    await link.call(Opnum.R_CloseQueue, pphContext=opened.result())  # MQRR-3.1.4.3-08
        for read in list(self._pending.values()):  # their answers are under way
            if read.call is not None:
                with suppress(MsmqError, asyncio.CancelledError):
                    await asyncio.shield(read.call.answer)
        link.client.end(Unreachable(f"{self.name}: the queue was closed"))

    # -- connection ---------------------------------------------------------------------------------------

    def _present_link(self) -> RemoteConnection | None:
        """Return the connection if there is one."""
        task = self._connecting
        if task is None or not task.done() or task.cancelled() or task.exception() is not None:
            return None
        return None if task.result().client.closed else task.result()

    async def _link(self) -> RemoteConnection:
        """Return the connection, after making it if there is none."""
        task = self._connecting
        if task is None or (task.done() and self._present_link() is None):
            task = self._connecting = shared_task(self._connect())
        return await shared_result(task, self.name)

    async def _connect(self) -> RemoteConnection:
        options = self._options
        port = options.port
        # MQRR-2.1-04
        if port is None:  # MQRR-3.1.4.1-06, MQRR-3.2.4.1-03, MQRR-3.2.4.1-04
            # MQRR-2.1-02, MQRR-2.1-04
            port = await named(find_port(options.host, INTERFACE, options.mapper_port), self.name)
        client = await open_rpc(options.host, port, INTERFACE, options.credentials)
        return RemoteConnection(client, self.name, self._identifier)

    def _destination(self, to: str) -> FormatName:
        """Return the queue that a text names; a name without a computer is on the same one.

        Raises InvalidName, and InvalidValue for a name that is not part of this queue: MQRR-3.1.4.10-03.
        """
        if not isinstance(to, str):
            raise InvalidValue(f"{to!r:.100} is not a text", path="to")
        if kind_of(to) is not None:
            name = wanted_format_name(to)
        else:
            name = queue_name(to, ".")
            if not isinstance(name, DirectName) or name.host != ".":
                raise InvalidValue(f"{to!r:.100} is on another computer", path="to")
            name = replace(name, protocol=self.name.protocol, address=self.name.address, text="")
        if isinstance(name, DirectName) and _queue(name) != _queue(self.name):
            why = f"{to!r:.100} is neither the queue of {self.name} nor one of its subqueues"
            raise InvalidValue(why, path="to")
        return name

    def _gone(self, why: str) -> QueueError:
        return QueueError(f"{self.name}: {why}", HResult.MQ_ERROR_INVALID_HANDLE)


def _queue(name: DirectName) -> tuple[str, bool, bool, str | None]:
    """Return the key of a queue of a computer; its subqueues have the same."""
    return name.queue.lower(), name.private, name.journal, name.system
