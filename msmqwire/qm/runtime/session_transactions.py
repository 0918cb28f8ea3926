"""Transactions of local clients, with messages that they receive, move and send."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final
from uuid import UUID

from msmqwire.constants import MQ_OK, HResult
from msmqwire.errors import InvalidValue, QueueError
from msmqwire.qm.model.elements import Queue, Transaction
from msmqwire.qm.runtime import queues
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.qm.runtime.held_messages import HeldMessages
from msmqwire.qm.runtime.reasons import reason

TRANSACTIONS_MAX: Final = 1000
"""Limit of transactions begun and not ended by one session."""


class SessionTransactions:
    """The transactions of one session. They are aborted when it is closed."""

    def __init__(
        self, driver: EngineDriver, held: HeldMessages, stop_readers: Callable[[Transaction], None]
    ) -> None:
        """`stop_readers` ends the reads that wait for a message in a transaction."""
        self._driver, self._core, self._held = driver, driver.core, held
        self._stop_readers = stop_readers
        self._transactions: dict[UUID, Transaction] = {}

    async def begin(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Begin a transaction."""
        self._driver.drain.check()
        if len(self._transactions) >= TRANSACTIONS_MAX:
            why = f"{TRANSACTIONS_MAX} transactions are begun and not ended"
            raise QueueError(why, HResult.MQ_ERROR_INSUFFICIENT_RESOURCES)
        core = self._core
        transaction = self._driver.call(core.transactions.create, core.context.new_guid())
        self._transactions[transaction.identifier] = transaction
        return {"transaction": str(transaction.identifier)}

    async def commit(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Commit a transaction."""
        transaction = self._named(request)
        status = self._driver.call(self._end, transaction, self._core.commit)
        if status != MQ_OK:
            raise QueueError(reason(status, "the transaction"), status)
        await self._driver.durable()
        return {"transaction": str(transaction.identifier)}

    async def abort(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Abort a transaction: its received messages return to their queues."""
        transaction = self._named(request)
        self._driver.call(self._end, transaction, self._abort)
        await self._driver.durable()
        return {"transaction": str(transaction.identifier)}

    def end(self, identifier: UUID, action: Callable[[Transaction], int]) -> int:
        """End a transaction that has not ended, by an action, in a call of the driver; return its status."""
        return self._end(self._transactions[identifier], action)

    def abort_soon(self, identifier: UUID) -> None:
        """Abort a transaction, without waiting until that is durable, if it has not ended."""
        transaction = self._transactions.get(identifier)
        if transaction is not None:
            self._driver.notify(self._end, transaction, self._abort)

    def __contains__(self, identifier: UUID) -> bool:
        return identifier in self._transactions

    def __len__(self) -> int:
        return len(self._transactions)

    def of(self, request: Mapping[str, Any]) -> Transaction | None:
        """Return the transaction that a request belongs to, if it names one."""
        return None if request.get("transaction") is None else self._named(request)

    def abort_all(self) -> None:
        """Abort the transactions that have not ended."""
        for transaction in list(self._transactions.values()):
            self._end(transaction, self._abort)

    def _named(self, request: Mapping[str, Any]) -> Transaction:
        try:
            identifier = UUID(queues.text(request, "transaction"))
        except ValueError:
            raise InvalidValue("not the GUID of a transaction", path="transaction") from None
        transaction = self._transactions.get(identifier)
        if transaction is None:
            why = f"{identifier}: there is no such transaction, or it has ended"
            raise QueueError(why, HResult.MQ_ERROR_TRANSACTION_SEQUENCE)
        return transaction

    def _end(self, transaction: Transaction, action: Callable[[Transaction], int]) -> int:
        del self._transactions[transaction.identifier]
        self._stop_readers(transaction)
        self._held.forget(transaction)
        return action(transaction)

    def _abort(self, transaction: Transaction) -> int:
        return self._core.transactions.abort(transaction.identifier)


def check_transactional(queue: Queue | None, name: str) -> None:
    """Raise QueueError if a queue is not transactional: MQRR-3.1.4.13-33."""
    if queue is not None and not queue.transactional:
        why = f"{name}: the queue is not transactional"
        raise QueueError(why, HResult.MQ_ERROR_TRANSACTION_USAGE)
