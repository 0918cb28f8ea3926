"""Requests of local clients: creating and changing queues, sending and reading messages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import Any

from msmqwire.constants import HResult
from msmqwire.errors import InvalidName, InvalidValue, LocatedError, QueueError
from msmqwire.names import FormatName
from msmqwire.names.meant import wanted_format_name
from msmqwire.qm.model.elements import OpenQueueDescriptor, OutgoingQueue, Transaction
from msmqwire.qm.model.enumerations import QueueAccessType
from msmqwire.qm.model.message import Message
from msmqwire.qm.rules.read_results import ReadOutcome
from msmqwire.qm.runtime import policies, queue_pages, queue_reports, queues, token_operations
from msmqwire.qm.runtime.activity import activity
from msmqwire.qm.runtime.available import BATCH_BYTES, available_messages, check_read
from msmqwire.qm.runtime.control_frames import answer_of
from msmqwire.qm.runtime.deliveries import TRANSACTIONAL
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.qm.runtime.folder_operations import FolderOperations
from msmqwire.qm.runtime.held_messages import HELD_MAX, HeldMessages
from msmqwire.qm.runtime.local_names import queue_name
from msmqwire.qm.runtime.message_json import (
    flag,
    identifier_text,
    message_from,
    message_json,
    number,
)
from msmqwire.qm.runtime.message_protection import protect
from msmqwire.qm.runtime.reasons import check_sent
from msmqwire.qm.runtime.session_moves import SessionMoves, count_of
from msmqwire.qm.runtime.session_reads import WAIT_MAX_MS, SessionReads, has_waited
from msmqwire.qm.runtime.session_transactions import SessionTransactions, check_transactional
from msmqwire.qm.runtime.subscriptions import Subscriptions
from msmqwire.service.control.server import BATCH_MAX, Sink

Request = Mapping[str, Any]
Answer = dict[str, Any]


class LocalSession:
    """The session of a local client, with the messages it has received and not ended.

    All methods but `close` raise InvalidName and InvalidValue for invalid requests, and QueueError for
    requests that the queue manager refuses.
    """

    def __init__(self, driver: EngineDriver, *, lasting: bool = True, sink: Sink | None = None) -> None:
        """Open a session.

        Args:
            driver: drives the queue manager.
            lasting: whether the queue manager keeps running after this session is closed.
            sink: the receiver of the messages of subscriptions; without one there are none.
        """
        self._driver, self._core, self._lasting = driver, driver.core, lasting
        self._open: dict[tuple[str, QueueAccessType], OpenQueueDescriptor] = {}
        self._untold: set[int] = set()  # descriptors that have come to a damaged message
        self._held = HeldMessages(self._core)
        self._transactions = SessionTransactions(driver, self._held, self._stop_readers)
        self._reads = SessionReads(driver, self._held, self._transactions, self._descriptor)
        self._subscriptions = Subscriptions(driver, self._held, sink, self._descriptor)
        self._moves = SessionMoves(driver, self._transactions, self._descriptor, self._send_messages)
        self._closed = False
        self._drain = driver.drain
        self._operations: dict[str, Callable[[Request], Awaitable[Answer]]] = {
            "status": self._status,
            "create": self._durably(queues.create),
            "delete": self._durably(queues.delete),
            "set": self._durably(queues.change),
            "purge": self._durably(queues.purge),
            "policy_set": self._durably(policies.put),
            "policy_delete": self._durably(policies.delete),
            "policy_list": self._reading(policies.all_of),
            "policy_show": self._reading(policies.shown),
            "list": self._list,
            "queues": self._queues,
            "activity": self._activity,
            "show": self._show,
            "report": self._reading(queue_reports.report),
            "peek": self._peek,
            "receive": self._receive,
            "read": self._reads.read,
            "cancel": self._reads.cancel,
            "open_cursor": self._reads.open_cursor,
            "close_cursor": self._reads.close_cursor,
            "end": self._end,
            "subscribe": self._subscriptions.subscribe,
            "unsubscribe": self._subscriptions.unsubscribe,
            "done": self._subscriptions.done_durably,
            "begin": self._transactions.begin,
            "commit": self._transactions.commit,
            "abort": self._transactions.abort,
            "move": self._moves.move,
            "put_back": self._moves.put_back,
            "send": self._send,
            "resend": self._moves.resend,
            "token_create": self._durably(token_operations.create),
            "token_list": self._tokens,
            "token_revoke": self._durably(token_operations.revoke),
            **FolderOperations(driver).by_name(),
        }
        self._drain.add(self)

    async def run(self, request: Request) -> Answer:
        """Run a request, and return its answer once its changes are durable."""
        name = request.get("op")
        operation = self._operations.get(name) if isinstance(name, str) else None
        if operation is None:
            raise InvalidValue(f"{name!r:.100} is none of {', '.join(self._operations)}", path="op")
        return await operation(request)

    def notify(self, request: Request) -> bool:
        """Carry out a request that has no answer; return False if it is none."""
        if request.get("op") != "done":
            return False
        self._subscriptions.done(request)
        return True

    def stop_waiting(self) -> None:
        """End waiting reads and subscriptions; no read may wait from now on."""
        self._reads.may_wait = False
        self._subscriptions.stop()
        self._driver.notify(self._stop_readers)

    @property
    def held_count(self) -> int:
        """The number of messages that were received and not ended."""
        return len(self._held)

    def drain(self, *, on: bool) -> None:
        """End waiting reads, and begin nothing new, in a call of the driver; or resume: see `Drain`."""
        self._reads.may_wait = not on
        self._subscriptions.drain(on=on)
        if on:
            self._stop_readers()

    def _stop_readers(self, transaction: Transaction | None = None) -> None:
        """End waiting reads: all, or the reads in a transaction."""
        for descriptor in self._open.values():
            for reader in list(descriptor.waiting.values()):
                if transaction is None or reader.transaction is transaction:
                    self._core.messages.waiting_reads.stop(reader, HResult.MQ_ERROR_OPERATION_CANCELLED)

    def close(self) -> None:
        """Return the messages that were received and not ended to their queues, and close the queues.

        Transactions that have not ended are aborted.
        """
        if not self._closed:
            self._closed = True
            self._drain.remove(self)
            self._driver.notify(self._return_all)

    # -- queues -------------------------------------------------------------------------------------------

    async def _status(self, request: Request) -> Answer:
        room = self._driver.room
        disk = {
            "accepts": self._driver.accepts,
            "free": None if room is None else room.free(),
            "min_free": None if room is None else room.least,
        }
        return {**queues.manager_json(self._core), "disk": disk}

    def _durably(self, change: Callable[[Any, Request], Answer]) -> Callable[[Request], Awaitable[Answer]]:
        async def run(request: Request) -> Answer:
            answer = self._driver.call(change, self._core, request)
            await self._driver.durable()
            return answer

        return run

    async def _list(self, request: Request) -> Answer:
        return {"queues": self._driver.read(queues.listed, self._core)}

    async def _tokens(self, request: Request) -> Answer:
        return {"tokens": self._driver.read(token_operations.listed, self._core)}

    async def _queues(self, request: Request) -> Answer:
        """Return some of the queues, with their changing figures."""
        return self._driver.read(queue_pages.page, self._core, request)

    async def _activity(self, request: Request) -> Answer:
        """Return sessions, transactions and counters."""
        return self._driver.read(activity, self._driver, request)

    async def _show(self, request: Request) -> Answer:
        return self._driver.read(lambda: queues.queue_json(self._core, queues.find(self._core, request)))

    def _reading(self, read: Callable[[Any, Request], Answer]) -> Callable[[Request], Awaitable[Answer]]:
        async def run(request: Request) -> Answer:
            return self._driver.read(read, self._core, request)

        return run

    def _descriptor(self, request: Request, access: QueueAccessType) -> OpenQueueDescriptor:
        """Return the open queue of a request; open it if necessary."""
        text = queues.text(request, "queue")
        descriptor = self._open.get((text, access))
        if descriptor is not None and descriptor.queue is not None:
            return descriptor
        return self._open_queue((text, access), queue_name(text, self._core.queue_manager.computer_name))

    def _open_queue(self, key: tuple[str, QueueAccessType], name: FormatName) -> OpenQueueDescriptor:
        status, descriptor = self._core.queues.open(name, key[1])
        if descriptor is None:
            raise queues.refusal(self._core, status, key[0])
        self._open[key] = descriptor
        return descriptor

    # -- reading ------------------------------------------------------------------------------------------

    async def _peek(self, request: Request) -> Answer:
        """Return available messages: from the first one on, after a lookup identifier, or only the message
        with it.

        With ``body_max`` only that number of bytes of each body is returned.
        """
        count, wait, body_max = count_of(request), _wait_ms(request), _body_max(request)
        descriptor = self._driver.call(self._descriptor, request, QueueAccessType.PEEK_ACCESS)
        after = request.get("after")
        wanted = request.get("lookup_identifier")
        messages = self._driver.read(available_messages, self._core.context, descriptor, count, after, wanted)
        if not messages and wait and after is None and wanted is None and self._reads.may_wait:
            peek = self._core.messages.peek
            read = await self._reads.wait(lambda: peek(descriptor, timeout=wait), descriptor)
            messages = [read.message] if read.message is not None else []
        if body_max is None:
            return answer_of(request, [(0, message) for message in messages])
        if request.get("records"):
            raise InvalidValue("not together with a part of the body", path="records")
        return {"messages": [message_json(message, body_max) for message in messages]}

    async def _receive(self, request: Request) -> Answer:
        """Receive messages: they are deleted when they are ended, and return to the queue otherwise; those
        received in a transaction are deleted at its commit.

        Received messages are durable, so that they can't vanish or change in a crash; so is the end of
        messages by this request, unless it is not ``awaited``.
        """
        driver = self._driver
        count, wait = count_of(request), _wait_ms(request)
        done, back = self._held.receipts_of(request)
        if self._held.room() + len(done) + len(back) <= 0:
            raise InvalidValue(f"{HELD_MAX} messages are taken and not ended", path="count")
        awaited = request.get("awaited") is None or flag(request["awaited"], "awaited")
        transaction = self._transactions.of(request)
        descriptor = driver.defer_commit(self._descriptor, request, QueueAccessType.RECEIVE_ACCESS)
        if transaction is not None:
            check_transactional(descriptor.queue, queues.text(request, "queue"))
        if done or back:
            (driver.call if awaited or back else driver.defer_commit)(self._held.end, done, back)
        else:
            self._drain.check()
        durable = driver.settled
        taken = [] if self._drain.on else driver.defer_commit(self._take, descriptor, count, transaction)
        if not taken and wait and self._reads.may_wait:
            begin = partial(self._dequeue, descriptor, wait, transaction)
            read = await self._reads.wait(begin, descriptor, transaction=transaction)
            if read.message is not None and read.position is not None:
                durable = (durable or has_waited(read)) and driver.settled
                taken = [(self._held.hold(descriptor, read.position, transaction), read.message)]
                taken += driver.defer_commit(self._take, descriptor, count - 1, transaction)
        if not durable and (taken or ((done or back) and awaited)):
            await self._held.durable(driver, [receipt for receipt, _ in taken])
        return answer_of(request, taken)

    def _dequeue(
        self, descriptor: OpenQueueDescriptor, wait: int, transaction: Transaction | None
    ) -> ReadOutcome:
        two_phase = transaction is None
        return self._core.messages.dequeue(
            descriptor, timeout=wait, transaction=transaction, two_phase=two_phase
        )

    def _take(
        self, descriptor: OpenQueueDescriptor, count: int, transaction: Transaction | None
    ) -> list[tuple[int, Message]]:
        """Receive available messages without waiting; return them with their receipts."""
        taken: list[tuple[int, Message]] = []
        size = 0
        if descriptor.handle in self._untold:
            self._untold.remove(descriptor.handle)
            check_read(HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED, descriptor.queue)
        while len(taken) < count and size < BATCH_BYTES and self._held.room() > 0:
            read = self._dequeue(descriptor, 0, transaction)
            if read.message is None or read.position is None:
                if taken and read.status == HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED:
                    self._untold.add(descriptor.handle)  # the next request reports it
                elif not taken:
                    check_read(read.status, descriptor.queue)
                break
            size += len(read.message.body)
            taken.append((self._held.hold(descriptor, read.position, transaction), read.message))
        return taken

    async def _end(self, request: Request) -> Answer:
        """End messages: the messages of ``done`` are deleted, the messages of ``back`` return to their
        queues.
        """
        count = self._end_receipts(*self._held.receipts_of(request))
        await self._driver.durable()
        return {"ended": count}

    def _end_receipts(self, done: list[int], back: list[int]) -> int:
        if done or back:
            self._driver.call(self._held.end, done, back)
        return len(done) + len(back)

    def _return_all(self) -> None:
        self._subscriptions.close()
        self._held.return_all()
        self._transactions.abort_all()
        self._stop_readers()
        for descriptor in self._open.values():
            self._core.queues.close(descriptor)
        self._open.clear()

    # -- sending --------------------------------------------------------------------------------------

    async def _send(self, request: Request) -> Answer:
        """Send messages; transactional ones of one request belong to one transaction.

        Messages in a transaction of the session are sent at its commit. If one is refused, those before it
        are sent, unless they are transactional or the request wants them ``whole``.
        """
        answer = self._driver.call(self._send_messages, request)
        await self._driver.durable()
        return answer

    def _send_messages(self, request: Request) -> Answer:
        if request.get("transaction") is None:  # else it belongs to what is under way
            self._drain.check()
        core = self._core
        entries = request.get("messages")
        if not isinstance(entries, list) or not 0 < len(entries) <= BATCH_MAX:
            raise InvalidValue(f"not a list of 1 to {BATCH_MAX} messages", path="messages")
        whole = request.get("whole") is not None and flag(request["whole"], "whole")
        messages = [_message(entry, index, located=whole) for index, entry in enumerate(entries)]
        if not self._lasting and not all(message.recoverable for message in messages):
            raise InvalidValue(
                "an express message would be lost, as no server runs for this folder; send a recoverable one",
                path="delivery",
            )
        transactional = {entry.get("delivery") == TRANSACTIONAL for entry in entries}
        if len(transactional) > 1:
            raise InvalidValue("transactional and other messages do not go together", path="messages")
        text = queues.text(request, "to")
        name = wanted_format_name(text)
        for message, entry in zip(messages, entries, strict=True):
            protect(message, entry, name, transactional=entry.get("delivery") == TRANSACTIONAL)
        key = (text, QueueAccessType.SEND_ACCESS)
        descriptor = self._open.get(key)
        if descriptor is None or (descriptor.queue is None and not descriptor.multiple):
            descriptor = self._open_queue(key, name)
        joined = self._transactions.of(request)
        if joined is not None and transactional != {True}:
            raise InvalidValue("only transactional messages are sent in a transaction", path="transaction")
        transaction = joined
        if transaction is None and (True in transactional or (whole and len(messages) > 1)):
            transaction = core.transactions.create(core.context.new_guid(), plain=True not in transactional)
        before = 0 if transaction is None else len(transaction.operations)
        sent: list[str] = []
        for message in messages:
            try:
                core.protection.check_can_leave(message, _leading_away(descriptor))
                check_sent(core.send(descriptor, message, transaction), text)
            except (InvalidName, InvalidValue, QueueError) as exc:
                if transaction is not None:
                    core.transactions.abort_since(transaction, before)
                    if joined is None:
                        core.transactions.abort(transaction.identifier)
                if transaction is not None or not sent:
                    raise
                return {"sent": sent, "refused": exc.to_json()}
            sent.append(identifier_text(message.identifier))
        if transaction is not None and joined is None:
            core.commit(transaction)
        return {"sent": sent}


def _leading_away(descriptor: OpenQueueDescriptor) -> Iterator[FormatName | None]:
    """Yield the names of an open queue that belong to other computers."""
    for opened in descriptor.children if descriptor.multiple else (descriptor,):
        if opened.queue is None or isinstance(opened.queue, OutgoingQueue):
            yield opened.format_name


def _message(entry: object, index: int, *, located: bool) -> Message:
    """Return a message to send; if `located`, errors say which one is wrong."""
    if not isinstance(entry, Mapping):
        raise InvalidValue("not an object", path=f"messages[{index}]")
    try:
        message = message_from(entry)
    except LocatedError as exc:
        if located:
            exc.path = f"messages[{index}].{exc.path}"
        raise
    if message.acknowledgements_requested and message.administration is None:
        reason = "acknowledgements are asked for, and no queue for them is named"
        raise InvalidValue(reason, path=f"messages[{index}].admin_queue")
    return message


def _body_max(request: Request) -> int | None:
    return None if request.get("body_max") is None else number(request["body_max"], "body_max")


def _wait_ms(request: Request) -> int:
    return number(request.get("wait_ms", 0), "wait_ms", WAIT_MAX_MS)
