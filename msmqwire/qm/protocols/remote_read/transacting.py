"""Moves, rejections, and transactions of coordinators: [MS-MQRR] 3.1.4.10, 3.1.4.12 and 3.1.4.14."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import Any
from uuid import UUID

from msmqwire.constants import HResult, MessageClass
from msmqwire.constants.ntstatus import NtStatus
from msmqwire.qm.model.context import Context
from msmqwire.qm.model.effects import EnlistTransaction
from msmqwire.qm.model.elements import Queue
from msmqwire.qm.model.enumerations import PositionState, QueueAccessType
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.protocols.remote_read.calls import Call, Refused, Results, answer, refuse
from msmqwire.qm.protocols.remote_read.configuration import RemoteReadConfiguration
from msmqwire.qm.protocols.remote_read.contexts import QueueContext, QueueContexts
from msmqwire.qm.protocols.remote_read.receiving import find, transaction_identifier
from msmqwire.qm.protocols.remote_read.shares import Shares
from msmqwire.qm.rules.messages import MessageEvents
from msmqwire.qm.rules.transactions import Transactions

_RECEIVE = QueueAccessType.RECEIVE_ACCESS
_ENLIST_FAILED = HResult.MQ_ERROR_TRANSACTION_ENLIST


@dataclass(slots=True, eq=False)
class _Enlisting:
    """A transaction whose coordinator was asked to enlist; `call` is None if no client waits for the
    answer.
    """

    call: Call | None
    caller: str
    transaction: UUID


class Transacting:
    """The methods for transactions and their messages.

    Attributes:
        coordinated: whether the owner carries out `EnlistTransaction`.
    """

    def __init__(
        self,
        context: Context,
        messages: MessageEvents,
        transactions: Transactions,
        configuration: RemoteReadConfiguration,
        contexts: QueueContexts,
        shares: Shares,
    ) -> None:
        self._context, self._messages, self._transactions = context, messages, transactions
        self._timeout_ms = 1000 * configuration.call_timeout_s  # MQRR-3.1.2.1-01, MQRR-3.1.2.1-02
        self._contexts, self._shares = contexts, shares
        self.coordinated = False
        self._requests = count(1)
        self._enlisting: dict[int, _Enlisting] = {}
        self._enlisted: dict[UUID, str] = {}  # the caller, by identifier

    # -- moving -------------------------------------------------------------------------------------------

    def move_message(self, call: Call, arguments: Any) -> Results:
        """R_MoveMessage: [MS-MQRR] 3.1.4.10."""
        source = _readable(self._contexts.find(call, arguments.phContextFrom))  # MQRR-3.1.4.10-15
        target = self._contexts.destination(call, arguments.ullContextTo).descriptor.queue  # MQRR-3.1.4.10-15
        if target is None:
            raise Refused(HResult.MQ_ERROR_INVALID_HANDLE)
        if _main(source) is not _main(target):  # MQRR-3.1.4.10-10, MQRR-3.1.4.10-15
            raise Refused(NtStatus.STATUS_INVALID_PARAMETER)
        identifier = transaction_identifier(arguments.pTransactionId)
        if identifier is not None and not target.transactional:  # MQRR-3.1.4.10-11, MQRR-3.1.4.10-15
            raise Refused(HResult.MQ_ERROR_TRANSACTION_USAGE)
        position = _listed(source, arguments.LookupId)  # MQRR-3.1.4.10-15
        if position.state is not PositionState.AVAILABLE:  # MQRR-3.1.4.10-13, MQRR-3.1.4.10-15
            raise Refused(HResult.MQ_ERROR_MESSAGE_LOCKED_UNDER_TRANSACTION)
        transaction = None
        if identifier is not None:
            transaction = self._context.queue_manager.transactions.get(identifier)
            if transaction is None or transaction.prepared:  # MQRR-3.1.4.10-14, MQRR-3.1.4.10-15
                raise Refused(HResult.MQ_ERROR_TRANSACTION_SEQUENCE)
        self._messages.move(position, target, transaction)  # MQRR-3.1.4.10-16, MQRR-3.1.4.10-17
        return {}

    # -- rejecting ----------------------------------------------------------------------------------------

    def set_user_acknowledgement_class(self, call: Call, arguments: Any) -> Results:
        """R_SetUserAcknowledgementClass: [MS-MQRR] 3.1.4.14."""
        position = _listed(_readable(self._contexts.find(call, arguments.phContext)), arguments.LookupId)
        # MQRR-3.1.4.14-10
        reason = MessageClass.MQMSG_CLASS_NACK_RECEIVE_REJECTED if arguments.usClass else None
        if not self._transactions.rejected(position, reason):
            raise Refused(HResult.MQ_ERROR_TRANSACTION_USAGE)  # MQRR-3.1.4.14-09
        return {}

    # -- enlisting ----------------------------------------------------------------------------------------

    def enlist(self, call: Call, arguments: Any) -> Results | None:
        """R_QMEnlistRemoteTransaction: [MS-MQRR] 3.1.4.12. Returns None if the coordinator has to be asked
        first.
        """
        identifier = transaction_identifier(arguments.pTransactionId)
        token = bytes(arguments.pbPropagationToken)
        if identifier is None or len(token) != arguments.cbPropagationToken:
            raise Refused(HResult.MQ_ERROR_INVALID_PARAMETER)
        if not self.coordinated:
            raise Refused(_ENLIST_FAILED)  # MQRR-3.1.4.12-11
        transactions = self._context.queue_manager.transactions
        self._forget_ended()
        if identifier in transactions:
            if identifier in self._enlisted:  # one call for each queue
                return {}
            raise Refused(_ENLIST_FAILED)  # a transaction of a local application
        caller = call.caller.counted_as
        self._shares.transactions.take(caller)
        request = next(self._requests)
        self._enlisting[request] = _Enlisting(call, caller, identifier)
        self._context.timers.start(
            # MQRR-3.1.2-01
            Timer.RPC_CALL_TIMEOUT,
            request,
            self._timeout_ms,
            lambda: self.enlisted(request, done=False),
        )
        self._context.effects.append(EnlistTransaction(request, identifier, token))
        return None

    def _forget_ended(self) -> None:
        """Stop counting transactions that have been committed or aborted."""
        transactions = self._context.queue_manager.transactions
        for identifier in [known for known in self._enlisted if known not in transactions]:
            self._shares.transactions.give_back(self._enlisted.pop(identifier))

    def enlisted(self, request: int, *, done: bool) -> None:
        """The coordinator has enlisted the queue manager, or has not."""
        enlisting = self._enlisting.pop(request, None)
        if enlisting is None:
            return
        self._context.timers.stop(Timer.RPC_CALL_TIMEOUT, request)
        call, identifier = enlisting.call, enlisting.transaction
        known = identifier in self._context.queue_manager.transactions
        if not done or call is None or known:
            self._shares.transactions.give_back(enlisting.caller)
        else:
            transaction = self._transactions.create(identifier)  # MQRR-3.1.4.12-10
            transaction.single_phase = False  # DMPR-3.1.1.14-03
            self._enlisted[identifier] = enlisting.caller
        if call is None:
            return
        if done and (not known or identifier in self._enlisted):
            answer(self._context, call, {})
        else:
            refuse(self._context, call, Refused(_ENLIST_FAILED))  # MQRR-3.1.4.12-11

    def forget(self, association: int) -> None:
        """No client waits for answers over an association any more."""
        for enlisting in self._enlisting.values():
            if enlisting.call is not None and enlisting.call.association == association:
                enlisting.call = None


def _readable(context: QueueContext) -> Queue:
    """Return a queue that was opened to receive from it. Raises Refused."""
    if context.descriptor.access_type is not _RECEIVE:
        raise Refused(HResult.MQ_ERROR_ACCESS_DENIED)
    if context.descriptor.queue is None:
        raise Refused(HResult.MQ_ERROR_QUEUE_NOT_AVAILABLE)
    return context.descriptor.queue


def _listed(queue: Queue, identifier: int) -> MessagePosition:
    position = find(queue.positions, identifier)
    if position is None:
        raise Refused(HResult.MQ_ERROR_MESSAGE_NOT_FOUND)  # MQRR-3.1.4.10-12, MQRR-3.1.4.14-08
    return position


def _main(queue: Queue) -> Queue:
    """Return the queue that a subqueue belongs to; any other queue, a journal too, is returned itself."""
    owner = queue.owner_queue
    return owner if owner is not None and owner.journal is not queue else queue
