"""Messages peeked at and received: [MS-MQRR] 3.1.4.7 to 3.1.4.9, 3.1.4.13, 3.1.4.15 and 3.1.5.1."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import count
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from msmqwire.constants import MQ_OK, HResult
from msmqwire.constants.ntstatus import NtStatus
from msmqwire.errors import LocatedError
from msmqwire.qm.model.context import Context
from msmqwire.qm.model.effects import ReadCompleted
from msmqwire.qm.model.elements import Cursor
from msmqwire.qm.model.enumerations import MessageSeekAction, QueueAccessType
from msmqwire.qm.model.positions import PRIORITY_SHIFT, MessagePosition, MessagePositionList
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.protocols.remote_read.calls import (
    Call,
    Refused,
    Results,
    answer,
    refuse,
)
from msmqwire.qm.protocols.remote_read.configuration import RemoteReadConfiguration
from msmqwire.qm.protocols.remote_read.contexts import QueueContext, QueueContexts, ReadRequest, cursor_of
from msmqwire.qm.protocols.remote_read.message_sections import MessageSections
from msmqwire.qm.protocols.remote_read.shares import Shares
from msmqwire.qm.rules.lookup import Lookup
from msmqwire.qm.rules.messages import MessageEvents
from msmqwire.qm.rules.read_results import PENDING, ReadOutcome
from msmqwire.qm.rules.transactions import Transactions
from msmqwire.remote_read.constants import Acknowledge, Action
from msmqwire.rpc.constants import FaultStatus

_A: Final = Action
_LOOKUPS: Final[Mapping[int, MessageSeekAction]] = MappingProxyType(
    {
        _A.MQ_LOOKUP_PEEK_CURRENT: MessageSeekAction.SEEK_CURRENT,  # MQRR-3.1.4.7-20, -49, MQRR-3.1.4.13-13
        _A.MQ_LOOKUP_PEEK_NEXT: MessageSeekAction.SEEK_NEXT,  # MQRR-3.1.4.7-20, -49, MQRR-3.1.4.13-13
        _A.MQ_LOOKUP_PEEK_PREV: MessageSeekAction.SEEK_PREVIOUS,  # MQRR-3.1.4.7-20, -49, MQRR-3.1.4.13-13
        _A.MQ_LOOKUP_RECEIVE_CURRENT: MessageSeekAction.SEEK_CURRENT,  # MQRR-3.1.4.7-21, -50
        _A.MQ_LOOKUP_RECEIVE_NEXT: MessageSeekAction.SEEK_NEXT,  # MQRR-3.1.4.7-21, -50
        _A.MQ_LOOKUP_RECEIVE_PREV: MessageSeekAction.SEEK_PREVIOUS,  # MQRR-3.1.4.7-21, -50
    }
)
_ACTIONS: Final = frozenset(_A)
_READS: Final = (QueueAccessType.RECEIVE_ACCESS, QueueAccessType.PEEK_ACCESS)
_SEQUENCE_ID: Final = (1 << PRIORITY_SHIFT) - 1
"""pSequenceId has the low seven bytes of a LookupIdentifier: MQRR-3.1.4.7-29."""
_TIME_STAMP: Final = 0xFFFFFFFF  # MQRR-3.1.1.2-04
_INVALID: Final = HResult.MQ_ERROR_INVALID_PARAMETER
_NOT_FOUND: Final = HResult.MQ_ERROR_MESSAGE_NOT_FOUND
_USAGE: Final = HResult.MQ_ERROR_TRANSACTION_USAGE
_SEQUENCE: Final = HResult.MQ_ERROR_TRANSACTION_SEQUENCE


class RemoteReceiving:
    """The methods that read messages and end reads, and their timers.

    Attributes:
        handed_out: the bytes of messages in all answers so far.
    """

    def __init__(
        self,
        context: Context,
        messages: MessageEvents,
        transactions: Transactions,
        lookup: Lookup,
        configuration: RemoteReadConfiguration,
        contexts: QueueContexts,
        shares: Shares,
    ) -> None:
        self._context, self._messages, self._transactions = context, messages, transactions
        self._message_sections = MessageSections(lookup)
        self.handed_out = 0
        self._cleanup_ms = 1000 * configuration.pending_s
        self._contexts, self._shares = contexts, shares
        self._numbers = count(1)
        self._by_call: dict[int, ReadRequest] = {}

    # -- beginning ----------------------------------------------------------------------------------------

    def start_receive(self, call: Call, arguments: Any) -> None:
        """R_StartReceive: [MS-MQRR] 3.1.4.7."""
        action = _checked(arguments)
        context = self._contexts.find(call, arguments.phContext)
        _check_access(context, action)
        cursor = cursor_of(context, arguments.hCursor) if arguments.hCursor else None  # MQRR-3.1.4.7-42
        self._begin(self._request(call, context, arguments, action), arguments, action, cursor)

    def start_transactional_receive(self, call: Call, arguments: Any) -> None:
        """R_StartTransactionalReceive: [MS-MQRR] 3.1.4.13."""
        identifier = transaction_identifier(arguments.pTransactionId)
        if identifier is None:  # MQRR-3.1.4.13-02, MQRR-3.1.4.13-30
            self.start_receive(call, arguments)
            return
        action = _checked(arguments)
        context = self._contexts.find(call, arguments.phContext)
        if action.receives:
            _check_access(context, action)
        cursor = cursor_of(context, arguments.hCursor) if arguments.hCursor else None  # MQRR-3.1.4.13-32
        queue = context.descriptor.queue
        if queue is None:
            raise Refused(HResult.MQ_ERROR_QUEUE_NOT_AVAILABLE)
        if not queue.transactional or not action.receives:  # MQRR-3.1.4.13-33, MQRR-3.1.4.13-34
            raise Refused(_USAGE)
        transaction = self._context.queue_manager.transactions.get(identifier)
        if transaction is None:
            # The text creates a transaction here (MQRR-3.1.4.13-35). Nobody could ever decide it: its
            # messages would be lost at RR_ACK (against MQRR-3.1.4.15-05), or locked for good.
            raise Refused(HResult.MQ_ERROR_TRANSACTION_ENLIST)
        if transaction.prepared:
            raise Refused(_SEQUENCE)
        request = self._request(call, context, arguments, action)
        request.transaction = transaction  # MQRR-3.1.4.13-38, MQRR-3.1.4.13-39
        self._begin(request, arguments, action, cursor)

    def _request(self, call: Call, context: QueueContext, arguments: Any, action: Action) -> ReadRequest:
        """Return a new request. Raises Refused if its number is in use, or there are too many."""
        # MQRR-3.1.1.2-01, MQRR-3.1.4.7-05, MQRR-3.1.4.13-07
        request_id, destructive = arguments.dwRequestId, action.receives
        if request_id in context.pending or request_id in context.waiting:
            raise Refused(_INVALID)
        if destructive and self._context.queue_manager.draining:
            raise Refused(HResult.MQ_ERROR_OPERATION_CANCELLED)
        if destructive:
            self._shares.pending.take(context.caller.counted_as)
        received = self._context.now & _TIME_STAMP  # MQRR-3.1.1.2-04
        return ReadRequest(
            call,
            context,
            request_id,
            next(self._numbers),
            arguments.dwMaxBodySize,
            arguments.dwMaxCompoundMessageSize,
            received,
            destructive,
        )

    def _begin(self, request: ReadRequest, arguments: Any, action: Action, cursor: Cursor | None) -> None:
        """Read a message, or begin to wait for one."""
        waiting, caller = self._shares.waiting, request.context.caller.counted_as
        timeout: int = arguments.ulTimeout
        if timeout:  # MQRR-3.1.2.1-04
            try:
                waiting.take(caller)
            except Refused:
                self._drop(request)
                raise
        if request.destructive:  # MQRR-3.1.4.7-05
            # MQRR-3.1.4.7-43, MQRR-3.1.4.7-44, MQRR-3.1.4.13-36, MQRR-3.1.4.13-37
            self._enter(request)  # MQRR-4.2-02, MQRR-4.2-01
        read = self._read(request, arguments, action, cursor)
        if read.status == PENDING:
            request.reader = read.request
            request.context.waiting[request.request_id] = request  # MQRR-3.1.1.2-01
            if request.call is not None:
                self._by_call[request.call.number] = request
            # MQRR-3.1.4.7-07, MQRR-3.1.4.13-08, MQRR-3.1.2.1-03
            self._messages.waiting_reads.when_completed(read.request, partial(self._completed, request))
            return
        if timeout:
            waiting.give_back(caller)
        self._hand_out(request, ReadCompleted(0, read.status, read.message, read.position))

    def _read(
        self, request: ReadRequest, arguments: Any, action: Action, cursor: Cursor | None
    ) -> ReadOutcome:
        messages, descriptor = self._messages, request.context.descriptor
        # MQRR-3.1.4.7-07, MQRR-3.1.4.13-08, MQRR-3.1.2.1-03
        timeout, transaction = arguments.ulTimeout, request.transaction
        tag = request.context.handle, request.request_id
        if action in _LOOKUPS:  # MQRR-3.1.4.7-08
            identifier = arguments.LookupId
            if descriptor.queue is not None:
                position = find(descriptor.queue.positions, identifier)
                identifier = identifier if position is None else position.lookup_identifier
            peek = not request.destructive  # MQRR-3.1.4.7-20, -21, -49, -50
            # MQRR-3.1.4.7-50, MQRR-3.1.4.13-39
            return messages.read_by_lookup_identifier(
                descriptor,
                identifier,
                _LOOKUPS[action],
                peek=peek,
                transaction=transaction,
                two_phase=True,
            )
        if action is _A.MQ_ACTION_RECEIVE:  # MQRR-3.1.4.7-09, -10, -17, -45
            return messages.dequeue_begin(  # MQRR-3.1.4.7-45, MQRR-3.1.4.13-38
                descriptor, timeout=timeout, cursor=cursor, transaction=transaction, tag=tag
            )
        if action is _A.MQ_ACTION_PEEK_NEXT and cursor is not None:  # MQRR-3.1.4.7-09, -18, -19, -47, -48
            return messages.peek_next(descriptor, cursor, timeout=timeout, tag=tag)  # MQRR-3.1.4.7-48
        return messages.peek(descriptor, timeout=timeout, cursor=cursor, tag=tag)  # MQRR-3.1.4.7-47

    # -- a read has a result ------------------------------------------------------------------------------

    def _completed(self, request: ReadRequest, read: ReadCompleted) -> None:
        """A read that waited has ended."""
        request.reader = 0
        del request.context.waiting[request.request_id]
        self._shares.waiting.give_back(request.context.caller.counted_as)
        if request.call is not None:
            del self._by_call[request.call.number]
        self._hand_out(request, read)

    def _hand_out(self, request: ReadRequest, read: ReadCompleted) -> None:
        """Answer a call with a message, or with the reason why there is none."""
        call, request.call = request.call, None
        message, position = read.message, read.position
        if message is None or position is None:
            self._leave(request)  # MQRR-3.1.4.7-56, MQRR-3.1.4.8-07
            self._drop(request)
            if call is not None:
                refused = Refused(read.status, fault=request.cancelled)
                # MQRR-3.1.4.7-52, MQRR-3.1.4.7-53, MQRR-3.1.4.7-55, MQRR-3.1.4.7-38, MQRR-3.1.4.13-27
                refuse(self._context, call, refused)
            return
        # MQRR-3.1.4.7-46, MQRR-3.1.1.2-02
        request.position, request.lookup_identifier = position, position.lookup_identifier
        if request.destructive:
            # MQRR-3.1.4.7-51
            self._enter(request)  # started anew: the time begins when the client gets the message
        if call is None:
            return
        try:
            sections = self._message_sections.of(
                message, position, request.max_body, request.max_compound, received=request.destructive
            )
        except LocatedError as exc:
            self._context.trouble("message not readable remotely", str(exc))
            if (
                request.destructive
            ):  # not at once: otherwise the call for each waiting reader would nest in that of the one before
                self._start_cleanup(request, 0)
            refuse(self._context, call, Refused(HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED))
            return
        if request.destructive:
            self._messages.deliveries.handed_out(position)
        self.handed_out += sum(section.SectionSize for section in sections)
        results: Results = {
            "pdwArriveTime": message.arrival_time,  # MQRR-3.1.4.7-27, MQRR-3.1.4.7-28, MQRR-3.1.4.13-19
            "pSequenceId": position.lookup_identifier & _SEQUENCE_ID,  # MQRR-3.1.4.7-29, MQRR-3.1.4.13-19
            "pdwNumberOfSections": len(sections),  # MQRR-3.1.4.7-30, MQRR-3.1.4.13-19
            "ppPacketSections": sections,
        }
        answer(self._context, call, results)

    # -- PendingRequestTable ------------------------------------------------------------------------------

    def _enter(self, request: ReadRequest) -> None:
        """Add an entry with its Pending Request Cleanup Timer, or start its timer anew: MQRR-3.1.2.2-01."""
        request.context.pending[request.request_id] = request  # MQRR-3.1.1.3-01, MQRR-3.1.1.2-03
        self._start_cleanup(request, self._cleanup_ms)

    def _start_cleanup(self, request: ReadRequest, delay: int) -> None:
        # MQRR-3.1.2.2-01
        self._context.timers.start(
            # MQRR-3.1.2-01
            Timer.PENDING_REQUEST_CLEANUP,
            request.number,
            delay,
            lambda: self._clean_up(request),
        )

    def _leave(self, request: ReadRequest) -> None:
        """Remove an entry, if it is there, and cancel its timer."""
        self._context.timers.stop(Timer.PENDING_REQUEST_CLEANUP, request.number)
        if request.context.pending.get(request.request_id) is request:
            del request.context.pending[request.request_id]

    def _drop(self, request: ReadRequest) -> None:
        """Forget a request that has ended."""
        if request.destructive:
            self._shares.pending.give_back(request.context.caller.counted_as)

    def _clean_up(self, request: ReadRequest) -> None:
        """Pending Request Cleanup Timer Event: [MS-MQRR] 3.1.5.1.

        A receive that still waits continues without its entry, which it gets again with its message.
        """
        self._leave(request)  # MQRR-3.1.5.1-02
        if not request.reader:  # MQRR-3.1.5.1-03
            self._release(request)

    def _release(self, request: ReadRequest) -> None:
        """Return the message of a receive that has not ended to its queue, and forget it."""
        position, transaction = request.position, request.transaction
        if transaction is None and position is not None:
            # MQRR-3.1.5.1-01, MQRR-3.1.6.2-04
            self._messages.dequeue_end(request.context.descriptor, position, delete=False)
        elif position is not None and transaction is not None:
            self._transactions.give_back(transaction, position)
        self._drop(request)

    # -- ending -------------------------------------------------------------------------------------------

    def cancel_receive(self, call: Call, arguments: Any) -> Results:
        """R_CancelReceive: [MS-MQRR] 3.1.4.8. Waiting peeks can be cancelled as well: MQRR-3.1.4.8-09."""
        context = self._contexts.find(call, arguments.phContext)
        request = context.waiting.get(arguments.dwRequestId)  # MQRR-3.1.4.8-02, MQRR-3.1.4.8-05
        if request is None:
            raise Refused(NtStatus.STATUS_NOT_FOUND)  # MQRR-3.1.4.8-06
        # MQRR-3.1.4.8-02
        self._stop(request, HResult.MQ_ERROR_OPERATION_CANCELLED)  # MQRR-3.1.4.8-05, MQRR-3.1.4.8-08
        return {}

    def cancelled(self, call: int) -> None:
        """The client's RPC runtime has cancelled a call, or does not wait for it any more."""
        request = self._by_call.get(call)
        if request is not None:
            request.cancelled = True
            self._stop(request, FaultStatus.NCA_S_FAULT_CANCEL)

    def stop_receives(self) -> None:
        """End all receives that wait, of all clients."""
        for context in self._contexts:
            for request in list(context.waiting.values()):
                if request.destructive:
                    self._stop(request, HResult.MQ_ERROR_OPERATION_CANCELLED)

    def stop_all(self, context: QueueContext, *, answers: bool) -> None:
        """End all waiting reads of an open queue; `answers` is whether a client waits for the answers."""
        for request in list(context.waiting.values()):
            if not answers and request.call is not None:
                del self._by_call[request.call.number]
                request.call = None
            self._stop(request, HResult.MQ_ERROR_OPERATION_CANCELLED)

    def _stop(self, request: ReadRequest, status: int) -> None:
        """Cancel Waiting Message Read Request for a known reader: [MS-MQDMPR] 3.1.7.1.17."""
        reader = request.context.descriptor.waiting[request.reader]
        self._messages.waiting_reads.stop(reader, status)

    def release_all(self, context: QueueContext) -> None:
        """Return all messages of an open queue that its client has received and not ended."""
        for request in list(context.pending.values()):
            self._leave(request)
            self._release(request)

    def end_receive(self, call: Call, arguments: Any) -> Results:
        """R_EndReceive: [MS-MQRR] 3.1.4.9."""
        return self._end(call, arguments, transactional=False)

    def end_transactional_receive(self, call: Call, arguments: Any) -> Results:
        """R_EndTransactionalReceive: [MS-MQRR] 3.1.4.15. It may end a receive without a transaction, too."""
        return self._end(call, arguments, transactional=True)

    def _end(self, call: Call, arguments: Any, *, transactional: bool) -> Results:
        context = self._contexts.find(call, arguments.phContext)
        if arguments.dwAck not in iter(Acknowledge):  # MQRR-3.1.4.9-04, MQRR-3.1.4.15-04
            raise Refused(_INVALID)
        if not context.pending:  # MQRR-3.1.4.9-07, MQRR-3.1.4.15-07
            raise Refused(HResult.MQ_ERROR_INVALID_HANDLE)
        request = context.pending.get(arguments.dwRequestId)  # MQRR-4.2-01
        # MQRR-3.1.4.9-08, MQRR-3.1.4.15-08
        if request is None or (request.transaction is not None and not transactional):
            raise Refused(_INVALID)
        self._leave(request)  # MQRR-3.1.4.9-09, MQRR-3.1.4.15-09, MQRR-4.2-02
        # MQRR-3.1.4.9-11
        if request.reader:  # it still waits: there is no message with LookupIdentifier 0
            raise Refused(_NOT_FOUND)
        # MQRR-3.1.4.9-05, MQRR-3.1.4.9-06, MQRR-3.1.4.9-12, MQRR-3.1.4.15-12
        status = self._end_dequeue(request, delete=arguments.dwAck == Acknowledge.RR_ACK)
        self._drop(request)
        if status != MQ_OK:
            raise Refused(status)
        return {}

    def _end_dequeue(self, request: ReadRequest, *, delete: bool) -> int:
        """Dequeue Message End: [MS-MQDMPR] 3.1.7.1.12, as its transaction asks."""
        position, transaction = request.position, request.transaction
        if position is None or not position.listed:  # MQRR-3.1.4.9-11, MQRR-3.1.4.15-11
            return _NOT_FOUND
        if transaction is None:
            # MQRR-3.1.4.9-12
            return self._messages.dequeue_end(request.context.descriptor, position, delete=delete)
        if not self._transactions.takes(
            transaction, position
        ):  # it has ended, and another reader may have it now
            return _SEQUENCE
        if delete:
            # MQRR-3.1.4.15-05
            return MQ_OK  # until the transaction is committed
        return MQ_OK if self._transactions.give_back(transaction, position) else _SEQUENCE  # MQRR-3.1.4.15-06


def _checked(arguments: Any) -> Action:
    """Return the action of a read. Raises Refused for incompatible arguments: MQRR-3.1.4.7-40."""
    if arguments.ulAction not in _ACTIONS:
        raise Refused(_INVALID)  # MQRR-3.1.4.7-38, MQRR-3.1.4.13-27, MQRR-3.1.4.13-29
    action = Action(arguments.ulAction)
    if action in _LOOKUPS:
        # MQRR-3.1.4.7-13, MQRR-3.1.4.7-14, MQRR-3.1.4.7-22, MQRR-3.1.4.13-10, MQRR-3.1.4.13-14
        valid = arguments.LookupId and not arguments.hCursor and not arguments.ulTimeout
    else:
        # MQRR-3.1.4.7-15, MQRR-3.1.4.7-16, MQRR-3.1.4.13-11, MQRR-3.1.4.13-12
        valid = not arguments.LookupId and (arguments.hCursor or action is not _A.MQ_ACTION_PEEK_NEXT)
    if not valid:
        raise Refused(_INVALID)  # MQRR-3.1.4.7-38, MQRR-3.1.4.13-27, MQRR-3.1.4.13-29
    return action


def _check_access(context: QueueContext, action: Action) -> None:
    """Raise Refused if a queue was not opened for an action: MQRR-3.1.4.7-12."""
    opened_for = context.descriptor.access_type
    if opened_for not in _READS or (action.receives and opened_for is not QueueAccessType.RECEIVE_ACCESS):
        raise Refused(HResult.MQ_ERROR_ACCESS_DENIED)


def transaction_identifier(unit_of_work: Any) -> UUID | None:
    """Return the identifier in an XACTUOW; None if it is all zeroes, which means no transaction."""
    identifier = UUID(bytes_le=bytes(unit_of_work.rgb))
    return identifier if identifier.int else None


def find(positions: MessagePositionList, identifier: int) -> MessagePosition | None:
    """Return the position with a LookupIdentifier, or with a pSequenceId.

    A client that has peeked at a message only knows the low seven bytes, which are unique in this queue
    manager.
    """
    position = positions.find(identifier)
    if position is None and not identifier >> PRIORITY_SHIFT:
        for priority in range(1, 8):
            position = positions.find(priority << PRIORITY_SHIFT | identifier)
            if position is not None:
                break
    return position
