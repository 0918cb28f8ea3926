"""Open queues and the requests that their clients have begun: [MS-MQRR] 2.2.4, 3.1.1.2 and 3.1.1.3."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from msmqwire.constants import HResult
from msmqwire.constants.ntstatus import NtStatus
from msmqwire.qm.model.caller import Caller
from msmqwire.qm.model.elements import Cursor, OpenQueueDescriptor, Transaction
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.protocols.remote_read.calls import Call, Refused
from msmqwire.rpc.constants import FaultStatus
from msmqwire.rpc.handles import ContextHandle

_MOVE_CONTEXTS: Final = 1 << 64


@dataclass(slots=True, eq=False)
class ReadRequest:
    """A peek or receive that a client has begun; a receive that is in `QueueContext.pending` is a
    PendingRequestEntry, [MS-MQRR] 3.1.1.2.

    Attributes:
        call: the call that began it, to be answered while it waits; None if no client waits for the answer.
        context: QueueContextHandle.
        request_id: RequestId, which the client has chosen.
        number: its unique number. max_body, max_compound: limits of the returned body and
            CompoundMessageHeader, in bytes.
        time_stamp: milliseconds since the system started, modulo 2^32.
        destructive: whether it is a receive.
        transaction: its transaction; None for none.
        lookup_identifier: the LookupIdentifier of its message; 0 while there is none.
        position: the position of its message.
        reader: its number among the waiting reads; 0 if it does not wait.
        cancelled: whether its call was cancelled by the RPC runtime.
    """

    call: Call | None
    context: QueueContext
    request_id: int
    number: int
    max_body: int
    max_compound: int
    time_stamp: int
    destructive: bool
    transaction: Transaction | None = None
    lookup_identifier: int = 0  # MQRR-3.1.1.2-02
    position: MessagePosition | None = None
    reader: int = 0
    cancelled: bool = False


@dataclass(slots=True, eq=False)
class QueueContext:
    """An open queue of a client.

    Attributes:
        handle: its handle, which the client uses.
        association: the association over which it was opened.
        caller: the caller that opened it.
        descriptor: the open queue.
        move_context: its handle for R_MoveMessage; 0 if it can't be a destination.
        cursors: its cursors, by the client's number.
        pending: PendingRequestTable of this handle, by RequestId.
        waiting: the reads that wait for a message, by RequestId.
    """

    handle: ContextHandle
    association: int
    caller: Caller
    descriptor: OpenQueueDescriptor
    move_context: int = 0
    cursors: dict[int, Cursor] = field(default_factory=dict)
    pending: dict[int, ReadRequest] = field(default_factory=dict)  # MQRR-3.1.1.3-01
    waiting: dict[int, ReadRequest] = field(default_factory=dict)


class QueueContexts:
    """The open queues of all clients. A handle is valid for its caller only, over its association."""

    def __init__(self, new_guid: Callable[[], UUID]) -> None:
        self._new_guid = new_guid
        self._by_handle: dict[ContextHandle, QueueContext] = {}
        self._by_association: dict[int, dict[ContextHandle, QueueContext]] = {}
        self._by_move_context: dict[int, QueueContext] = {}

    def __iter__(self) -> Iterator[QueueContext]:
        return iter(list(self._by_handle.values()))

    def __len__(self) -> int:
        return len(self._by_handle)

    def of(self, association: int) -> list[QueueContext]:
        """Return the open queues of an association."""
        return list(self._by_association.get(association, {}).values())

    def add(self, call: Call, descriptor: OpenQueueDescriptor, *, for_move: bool = False) -> QueueContext:
        """Add an open queue under a new handle."""
        handle = ContextHandle(0, self._new_guid())  # MQRR-3.1.4.2-21, MQRR-3.1.4.11-15
        # MQRR-3.1.4.2-09, -12, -16, MQRR-3.1.4.11-07, -08, -11: the caller, not the client it says it is
        context = QueueContext(handle, call.association, call.caller, descriptor)
        self._by_handle[handle] = context
        self._by_association.setdefault(call.association, {})[handle] = context
        if for_move:
            number = 0
            while not number or number in self._by_move_context:  # MQRR-3.1.4.11-14
                number = self._new_guid().int % _MOVE_CONTEXTS
            context.move_context = number
            self._by_move_context[number] = context
        return context

    def remove(self, context: QueueContext) -> None:
        """Forget an open queue."""
        del self._by_handle[context.handle]
        its = self._by_association[context.association]
        del its[context.handle]
        if not its:
            del self._by_association[context.association]
        self._by_move_context.pop(context.move_context, None)  # MQRR-3.1.4.11-15

    def find(self, call: Call, handle: ContextHandle) -> QueueContext:
        """Return the open queue that a call names.

        Raises Refused with MQ_ERROR_INVALID_HANDLE for a handle that does not exist, and with a fault for
        another client's handle: MQRR-2.2.4.1-02.
        """
        context = self._by_handle.get(handle)
        if context is None:
            # MQRR-3.1.4.3-03, MQRR-3.1.4.4-03, MQRR-3.1.4.6-03, MQRR-3.1.4.8-04, MQRR-3.1.4.9-10
            # MQRR-3.1.4.10-08, MQRR-3.1.4.14-07, MQRR-3.1.4.15-10
            # MQRR-3.1.4.7-38, MQRR-3.1.4.7-41, MQRR-3.1.4.13-27, MQRR-3.1.4.13-31
            raise Refused(HResult.MQ_ERROR_INVALID_HANDLE)
        if not _owns(call, context):
            raise Refused(FaultStatus.NCA_S_FAULT_CONTEXT_MISMATCH, fault=True)  # MQRR-2.2.4.2-02
        return context

    def destination(self, call: Call, number: int) -> QueueContext:
        """Return the open queue that R_MoveMessage names. Raises Refused: MQRR-3.1.4.10-09."""
        context = self._by_move_context.get(number)
        if context is None or not _owns(call, context):
            raise Refused(HResult.MQ_ERROR_INVALID_HANDLE)
        return context


def _owns(call: Call, context: QueueContext) -> bool:
    return context.association == call.association and context.caller.identity == call.caller.identity


def cursor_of(context: QueueContext, number: int) -> Cursor:
    """Return a cursor of an open queue. Raises Refused: MQRR-3.1.4.5-04, MQRR-3.1.4.7-42.

    A cursor of another open queue is not accepted: it would lead to messages of another queue.
    """
    cursor = context.cursors.get(number)
    if cursor is None:
        raise Refused(NtStatus.STATUS_INVALID_HANDLE)
    return cursor
