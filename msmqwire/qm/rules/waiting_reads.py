"""Reads that wait for a message: [MS-MQDMPR] 3.1.1.10, 3.1.7.1.17, 3.1.7.3.1 and 3.1.7.3.4 to 3.1.7.3.6."""

from __future__ import annotations

from collections.abc import Callable

from msmqwire.constants import MQ_OK, HResult
from msmqwire.constants.ntstatus import NtStatus
from msmqwire.qm.model.context import Context
from msmqwire.qm.model.effects import ReadCompleted
from msmqwire.qm.model.elements import Queue, Transaction, WaitingMessageReadOperation
from msmqwire.qm.model.enumerations import INFINITE
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.rules import cursors
from msmqwire.qm.rules.read_results import PENDING, ReadOutcome
from msmqwire.qm.rules.unreadable import readable


class WaitingReads:
    """The waiting reads of all queues of one queue manager."""

    def __init__(
        self, context: Context, receive: Callable[[MessagePosition, Transaction | None, bool], object]
    ) -> None:
        """Create the collection.

        `receive` receives a message for a destructive read, given its position, its transaction and whether
        the read has two phases.
        """
        self._context, self._receive = context, receive
        self._requests = 0
        self._completed: dict[int, Callable[[ReadCompleted], None]] = {}

    def wait(self, reader: WaitingMessageReadOperation, timeout: int) -> ReadOutcome:
        """Wait For New Message: [MS-MQDMPR] 3.1.7.3.1, and 3.1.7.3.4. `timeout` is milliseconds."""
        if timeout <= 0:  # DMPR-3.1.7.3.1-02
            if reader.cursor is not None:
                cursors.wait_time_expired(reader.cursor)
            return ReadOutcome(HResult.MQ_ERROR_IO_TIMEOUT)
        self._requests += 1
        reader.request = self._requests
        # DMPR-3.1.1.16-12
        reader.descriptor.waiting[reader.request] = reader  # DMPR-3.1.7.3.1-03, DMPR-3.1.1-08, -10
        if timeout != INFINITE:  # DMPR-3.1.2.3-02
            self._context.timers.start(  # DMPR-3.1.7.3.4-01
                Timer.WAITING_MESSAGE_READ, reader.request, timeout,  # DMPR-3.1.2.3-01
                lambda: self.stop(reader, HResult.MQ_ERROR_IO_TIMEOUT),  # DMPR-3.1.2.3-03 and DMPR-3.1.6.3-01
            )  # fmt: skip
        return ReadOutcome(PENDING, request=reader.request)

    def when_completed(self, request: int, completed: Callable[[ReadCompleted], None]) -> None:
        """Make a waiting read end with a call instead of an effect: for a protocol, which learns of it at
        once.
        """
        self._completed[request] = completed

    def offer(self, queue: Queue, position: MessagePosition) -> bool:
        """Give an available message to the waiting reads of its queue, up to the first destructive one.

        Returns whether a destructive read took it, or none can.
        """
        for descriptor in list(queue.descriptors.values()):
            for reader in list(descriptor.waiting.values()):
                if reader.request not in descriptor.waiting:
                    continue
                if reader.transaction is not None and not self._is_active(reader.transaction):
                    self.stop(reader, HResult.MQ_ERROR_TRANSACTION_SEQUENCE)
                    continue
                if readable(self._context, position) is None:
                    return True  # it is for nobody
                self._satisfy(reader, position)  # DMPR-3.1.7.2.2-02
                if reader.destructive:  # DMPR-3.1.7.2.2-03 and -04, DMPR-3.1.7.3.7-01
                    return True
        return False

    def _is_active(self, transaction: Transaction) -> bool:
        return self._context.queue_manager.transactions.get(transaction.identifier) is transaction

    def _satisfy(self, reader: WaitingMessageReadOperation, position: MessagePosition) -> None:
        """Waiting Message Read Satisfied: [MS-MQDMPR] 3.1.7.3.6."""
        self._remove(reader)
        # DMPR-3.1.1.10-03, DMPR-3.1.7.1.10-07, DMPR-3.1.7.1.14-04, DMPR-3.1.7.1.15-04
        if reader.cursor is not None:
            cursors.message_available(reader.cursor, position)
        message = position.message
        if reader.destructive:  # DMPR-3.1.1.10-01
            self._receive(position, reader.transaction, reader.two_phase)
        # DMPR-3.1.7.3.1-05, DMPR-3.1.7.3.6-01
        self._report(ReadCompleted(reader.request, MQ_OK, message, position))

    def stop(self, reader: WaitingMessageReadOperation, status: int) -> None:
        """Waiting Message Read Timer Stop: [MS-MQDMPR] 3.1.7.3.5. The read ends without a message."""
        if self._remove(reader):  # DMPR-3.1.7.3.1-04, DMPR-3.1.7.3.5-01
            if reader.cursor is not None:  # DMPR-3.1.7.1.10-08, DMPR-3.1.7.1.14-05, DMPR-3.1.7.1.15-05
                cursors.wait_time_expired(reader.cursor)
            self._report(ReadCompleted(reader.request, status, None, None))

    def _report(self, read: ReadCompleted) -> None:
        completed = self._completed.pop(read.request, None)
        if completed is None:
            self._context.effects.append(read)
        else:
            completed(read)

    def cancel(self, queue: Queue, tag: object, status: int) -> int:
        """Cancel Waiting Message Read Request: [MS-MQDMPR] 3.1.7.1.17."""
        for descriptor in queue.descriptors.values():
            for reader in descriptor.waiting.values():
                if reader.tag is not None and reader.tag == tag:  # DMPR-3.1.7.1.17-01, DMPR-3.1.1.10-02
                    self.stop(reader, status)
                    return MQ_OK
        return NtStatus.STATUS_NOT_FOUND  # DMPR-3.1.7.1.17-02

    def _remove(self, reader: WaitingMessageReadOperation) -> bool:
        """Remove a read, and stop its timer; return whether it was waiting."""
        self._context.timers.stop(Timer.WAITING_MESSAGE_READ, reader.request)
        return reader.descriptor.waiting.pop(reader.request, None) is not None  # DMPR-3.1.7.3.1-06
