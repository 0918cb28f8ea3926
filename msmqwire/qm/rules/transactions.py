"""Transactions: [MS-MQDMPR] 3.1.4.3 to 3.1.4.11 and 3.1.7.1.8."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from msmqwire.constants import MQ_OK, HResult, MessageClass
from msmqwire.qm.model.context import Context
from msmqwire.qm.model.effects import ErrorReport, TransactionReply
from msmqwire.qm.model.elements import OutgoingQueue, Transaction, TransactionalOperation
from msmqwire.qm.model.enumerations import OperationType, PositionState
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.rules import stored_rows
from msmqwire.qm.rules.messages import MessageEvents
from msmqwire.qm.rules.packet_patch import patch_transaction_flags

PREPARE_DONE: Final = "TXUSER_ENLISTMENT_MTAG_PREPAREREQDONE"
COMMIT_DONE: Final = "TXUSER_ENLISTMENT_MTAG_COMMITREQDONE"
ABORT_DONE: Final = "TXUSER_ENLISTMENT_MTAG_ABORTREQDONE"
_TRANSACTION_NUMBERS: Final = 1 << 20  # values of TransactionHeader.Flags.ID


class Transactions:
    """The transactions that a queue manager takes part in.

    Until a transaction is prepared for a coordinator, its messages are stored as they were before it: a
    queue manager that restarts has aborted it.
    """

    def __init__(self, context: Context, messages: MessageEvents) -> None:
        self._context, self._messages = context, messages

    def create(self, identifier: UUID, *, plain: bool = False) -> Transaction:
        """Create Transaction: [MS-MQDMPR] 3.1.7.1.8; for `plain` see `Transaction`."""
        transaction = Transaction(identifier, plain=plain)
        self._context.queue_manager.transactions[identifier] = transaction  # DMPR-3.1.7.1.8-01, DMPR-3.1.1-08
        return transaction

    def prepare(self, identifier: UUID, *, single_phase: bool = True) -> int:
        """Transaction Prepare: [MS-MQDMPR] 3.1.4.3."""
        transaction = self._context.queue_manager.transactions.get(identifier)
        if transaction is None:
            return HResult.MQ_ERROR_TRANSACTION_SEQUENCE  # DMPR-3.1.4.3-02
        transaction.single_phase = single_phase  # DMPR-3.1.4.3-01
        operations = transaction.operations
        if operations and not transaction.plain:
            operations[0].position.message.first_in_transaction = True  # DMPR-3.1.4.3-03 and DMPR-3.1.1.12-73
            operations[-1].position.message.last_in_transaction = True  # DMPR-3.1.4.3-03 and DMPR-3.1.1.12-73
            number: int | None = None
            for operation in operations:
                if operation.operation_type is OperationType.ENQUEUE:
                    message, packet = operation.position.message, operation.position.message.packet
                    if number is None:  # a separate count would begin anew at each start: MQMQ-2.2.20.5-10
                        number = message.identifier.uniquifier % _TRANSACTION_NUMBERS
                    message.transaction_number, message.packet = number, None
                    if packet is not None and isinstance(operation.position.queue, OutgoingQueue):
                        message.packet = patch_transaction_flags(packet, message)
        if not single_phase and not transaction.prepared:  # DMPR-3.1.3-26
            transaction.prepared = True
            stored_rows.put_transaction(self._context.changes, transaction)
        return MQ_OK

    def commit(self, identifier: UUID) -> int:
        """Transaction Commit: [MS-MQDMPR] 3.1.4.4."""
        transaction = self._remove(identifier)
        if transaction is None:
            return HResult.MQ_ERROR_TRANSACTION_SEQUENCE  # DMPR-3.1.4.4-01
        messages = self._messages
        for operation in transaction.operations:
            position = operation.position
            if operation.operation_type is OperationType.ENQUEUE:
                if position.state is PositionState.PURGE_PENDING:
                    messages.position_deleted(
                        position.queue, position, MessageClass.MQMSG_CLASS_NACK_Q_PURGED
                    )
                elif position.listed:
                    message = position.message
                    messages.position_available(position.queue, position)  # DMPR-3.1.4.4-02
                    messages.arrived(position.queue, message)
            elif operation.operation_type is OperationType.DEQUEUE:
                if position.listed:
                    reason = operation.dequeue_reason
                    assert reason is not None, "DMPR-3.1.1.13-04"
                    messages.position_deleted(position.queue, position, reason)  # DMPR-3.1.4.4-03
            elif position.listed:
                target = operation.target
                if target is not None and target.number in self._context.queue_manager.queues:
                    messages.transfer(position, target)  # DMPR-3.1.4.4-04
                else:  # deleted meanwhile, with all its messages
                    messages.position_deleted(
                        position.queue, position, MessageClass.MQMSG_CLASS_NACK_Q_DELETED
                    )
        transaction.operations.clear()  # DMPR-3.1.4.4-05
        return MQ_OK

    def abort(self, identifier: UUID) -> int:
        """Transaction Abort: [MS-MQDMPR] 3.1.4.5."""
        transaction = self._remove(identifier)
        if transaction is None:
            return HResult.MQ_ERROR_TRANSACTION_SEQUENCE  # DMPR-3.1.4.5-01
        for operation in transaction.operations:
            self._undo(operation)
        transaction.operations.clear()  # DMPR-3.1.4.5-05
        return MQ_OK

    def abort_since(self, transaction: Transaction, operations: int) -> None:
        """Undo what a transaction has done since it had that many operations, the last one first."""
        while len(transaction.operations) > operations:
            self._undo(transaction.operations.pop())

    def takes(self, transaction: Transaction, position: MessagePosition) -> bool:
        """Return whether a transaction that is still open has received a message."""
        active = self._context.queue_manager.transactions.get(transaction.identifier) is transaction
        return active and any(_has_received(operation, position) for operation in transaction.operations)

    def give_back(self, transaction: Transaction, position: MessagePosition) -> bool:
        """Return a message that a transaction has received to its queue, as if it had not been received.

        Returns False if it stays in the transaction, which is prepared, or is not in it any more.
        """
        if transaction.prepared or not self.takes(transaction, position):
            return False
        operations = transaction.operations
        index = next(i for i, operation in enumerate(operations) if _has_received(operation, position))
        self._undo(operations.pop(index))
        return True

    def rejected(self, position: MessagePosition, reason: int | None) -> bool:
        """Make the transaction that has received a message remove it for another reason at its commit.

        Returns False if no transaction has received it. Without `reason` nothing else happens.
        """
        if not position.transaction:
            return False
        for transaction in self._context.queue_manager.transactions.values():
            for operation in transaction.operations:
                if _has_received(operation, position):
                    operation.dequeue_reason = reason or operation.dequeue_reason
                    if transaction.prepared:
                        stored_rows.put_transaction(self._context.changes, transaction)
                    return True
        return False

    def _remove(self, identifier: UUID) -> Transaction | None:
        """Remove a transaction from the collection and the store."""
        transaction = self._context.queue_manager.transactions.pop(identifier, None)
        if transaction is not None:
            stored_rows.delete_transaction(self._context.changes, transaction)
        return transaction

    def _undo(self, operation: TransactionalOperation) -> None:
        position, messages = operation.position, self._messages
        if not position.listed:
            return
        if operation.operation_type is OperationType.ENQUEUE:
            messages.discard(position)  # DMPR-3.1.4.5-04
        elif position.state is PositionState.PURGE_PENDING:
            reason = operation.dequeue_reason or MessageClass.MQMSG_CLASS_NACK_Q_PURGED  # DMPR-3.1.4.5-03
            messages.position_deleted(position.queue, position, reason)
        else:
            message = position.message
            if position.stored and not message.recoverable:  # stored only for the transaction
                stored_rows.delete_message(self._context.changes, position)
                position.keep_in_memory(message)
                position.stored = position.recoverable = False
            messages.deliveries.given_back(position)  # DMPR-3.1.4.5-02

    @property
    def in_doubt(self) -> list[UUID]:
        """The prepared transactions, which only a coordinator can end."""
        transactions = self._context.queue_manager.transactions.values()
        return [transaction.identifier for transaction in transactions if transaction.prepared]

    # -- requests of the coordinator ----------------------------------------------------------------

    def dtc_prepare(self, identifier: UUID, *, single_phase: bool) -> None:
        """DTC Transaction Prepare Event: [MS-MQDMPR] 3.1.4.6."""
        status = self.prepare(identifier, single_phase=False)  # DMPR-3.1.4.6-01
        if status != MQ_OK:  # DMPR-3.1.4.6-04
            self.dtc_abort(identifier)  # DMPR-3.1.4.6-04
        elif single_phase:  # DMPR-3.1.4.6-03
            self.dtc_commit(identifier)
        else:
            self._reply(identifier, PREPARE_DONE)  # DMPR-3.1.4.6-02

    def dtc_commit(self, identifier: UUID) -> None:
        """DTC Transaction Commit Event: [MS-MQDMPR] 3.1.4.7."""
        self.commit(identifier)
        self._reply(identifier, COMMIT_DONE)  # DMPR-3.1.4.7-01

    def dtc_abort(self, identifier: UUID) -> None:
        """DTC Transaction Abort Event: [MS-MQDMPR] 3.1.4.8."""
        self.abort(identifier)
        self._reply(identifier, ABORT_DONE)  # DMPR-3.1.4.8-01

    def dtc_reenlistment_commit(self, identifier: UUID) -> None:
        """DTC Reenlistment Commit Event: [MS-MQDMPR] 3.1.4.9."""
        self.commit(identifier)  # DMPR-3.1.4.9-01

    def dtc_reenlistment_abort(self, identifier: UUID) -> None:
        """DTC Reenlistment Abort Event: [MS-MQDMPR] 3.1.4.10."""
        self.abort(identifier)  # DMPR-3.1.4.10-01

    def dtc_reenlistment_timeout(self) -> None:
        """DTC Reenlistment Timeout Event: [MS-MQDMPR] 3.1.4.11. The owner stops the queue manager."""
        # DMPR-3.1.4.11-01
        self._context.effects.append(ErrorReport("the transaction coordinator does not answer"))

    def _reply(self, identifier: UUID, tag: str) -> None:
        self._context.effects.append(TransactionReply(identifier, tag))


def _has_received(operation: TransactionalOperation, position: MessagePosition) -> bool:
    return operation.position is position and operation.operation_type is OperationType.DEQUEUE
