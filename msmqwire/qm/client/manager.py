"""The small queue manager inside a program that sends messages."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple
from uuid import uuid4
from weakref import WeakValueDictionary

from msmqwire.constants import MQ_OK, HResult, MessageClass, is_negative
from msmqwire.errors import InvalidValue, MsmqError, NotDelivered, QueueError, Unreachable
from msmqwire.names import (
    DirectName,
    FormatName,
    MulticastName,
    MultipleElementName,
    PrivateName,
)
from msmqwire.names.meant import wanted_format_name
from msmqwire.names.origins import speaker_of
from msmqwire.qm.client.protecting import Protecting, peer_of
from msmqwire.qm.client.sent import Acknowledgement, Obstacle, Sent, given_up_reason
from msmqwire.qm.model.effects import ReadCompleted
from msmqwire.qm.model.elements import OpenQueueDescriptor, Transaction
from msmqwire.qm.model.enumerations import (
    AcknowledgementsRequested,
    ConnectionStatus,
    EnqueueStatus,
    QueueAccessType,
    Relay,
)
from msmqwire.qm.model.message import Message, ObjectId
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.model.settings import Settings
from msmqwire.qm.protocols.binary.transfer import SessionTransfer
from msmqwire.qm.rules.queue_states import is_http
from msmqwire.qm.rules.read_results import PENDING
from msmqwire.qm.rules.unreached import failure_words, last_failure
from msmqwire.qm.runtime import queues
from msmqwire.qm.runtime.addresses import AddressOverrides
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.qm.runtime.folder import open_core, stored_name
from msmqwire.qm.runtime.joined import Transports, configurations_of, transports_of
from msmqwire.qm.runtime.local_names import path_of
from msmqwire.qm.runtime.message_json import identifier_from, identifier_text
from msmqwire.qm.runtime.peer_keys import public_keys
from msmqwire.qm.runtime.reasons import reason
from msmqwire.qm.runtime.transport import TcpNetwork
from msmqwire.qm.store import memory_store, open_store
from msmqwire.service.control.client import connection_closed
from msmqwire.service.store import Store

_POSITIVE: Final = (MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE, MessageClass.MQMSG_CLASS_ACK_RECEIVE)
_STOP_S: Final = 10.0
"""Seconds that leaving waits for a disk that refuses commits."""
_CALLS_MAX: Final = 32
"""Calls of one turn that are committed together: half of a session's window."""
_FAILURES_MAX: Final = 10_000
"""Limit of unreported failures that are stored one by one; further ones are only counted."""
_ACKNOWLEDGEMENTS: Final = "private$\\acknowledgements"
_SETTINGS: Final = Settings(
    session_retry_connect_ms=1_000,
    retransmission_timeout_ms=1_000,
    recoverable_ack_delay_ms=0,
    ack_delay_ms=20,
    order_ack_timeout_ms=0,
    maximum_order_ack_delay_s=1,
    relay=Relay.NONE,
    send_md5=True,  # the program asks for each itself
    send_rc2=True,
    send_rc4=True,
)


class UntransferredMessage(NamedTuple):
    """A message that is not transferred yet.

    Attributes:
        stored: whether it is in the file, and will be sent when the file is used again.
        sent: whether it is an express message that was sent and is not acknowledged; such an acknowledgement
            guarantees nothing.
    """

    stored: bool
    sent: bool


class Failures:
    """Messages refused or given up that the program has not been informed of."""

    def __init__(self) -> None:
        self._unreported: dict[ObjectId, int | str | None] = {}
        self._reported: set[ObjectId] = set()
        self._others = 0

    def add(self, identifier: ObjectId, final: int | str | None) -> None:
        """Add a message with the class of its final acknowledgement, or the reason."""
        if identifier in self._reported or identifier in self._unreported:
            return
        if len(self._unreported) < _FAILURES_MAX:
            self._unreported[identifier] = final
        else:
            self._others += 1

    def mark_reported(self, identifier: ObjectId) -> None:
        """Note that the program has been informed, perhaps by a negative acknowledgement before this side
        gives up.
        """
        self._unreported.pop(identifier, None)
        self._reported.add(identifier)

    def error(self) -> NotDelivered | None:
        """Return the exception for failures that the program has not been informed of; None if there are
        none.
        """
        for identifier, final in self._unreported.items():
            others = len(self._unreported) + self._others - 1
            reason = given_up_reason(final) + (f", and {others} more were not delivered" if others else "")
            known = final if isinstance(final, int) else None
            return NotDelivered(reason, identifier=identifier_text(identifier), message_class=known)
        return None


class ClientManager:
    """A queue manager with a single queue of its own, for acknowledgements.

    Attributes:
        stored: whether it stores recoverable messages in a file.
        failures: messages that were not delivered.
    """

    def __init__(
        self,
        state: str | os.PathLike[str] | None,
        overrides: AddressOverrides,
        listen: tuple[str, int] | None,
        transports: Transports | None = None,
    ) -> None:
        """`transports` are of the protocols that have joined. Raises the subclasses of StoreError."""
        self.stored = state is not None
        self._store: Store = memory_store() if state is None else _store_of(state)
        self._overrides, self._listen = overrides, listen
        self._transports = transports_of({}) if transports is None else transports
        self._pending: dict[ObjectId, Sent] = {}  # messages whose outcome is not known yet
        # Only messages that the program still references: nothing else can ask for their acknowledgements.
        self._asking: WeakValueDictionary[ObjectId, Sent] = WeakValueDictionary()
        self.failures = Failures()
        self._acknowledged: OpenQueueDescriptor | None = None
        self._closed = False
        self._driver: EngineDriver
        self._started = False

    async def start(self) -> None:
        """Start in the running loop. Raises Unreachable if it can't listen."""
        name = stored_name(self._store) or f"c{uuid4().hex[:14]}"
        core = open_core(
            self._store,
            name,
            settings=_SETTINGS,
            configurations=configurations_of(self._transports),
            routes=self._overrides.routes,
        )
        core.queues.lookup.addresses.clear()  # `localhost` is another queue manager than this one
        self._driver = driver = EngineDriver(core, self._store)
        self._started = True
        driver.calls_max = _CALLS_MAX
        network = TcpNetwork(driver, overrides=self._overrides)
        driver.register(network)
        for transport in self._transports.values():
            driver.register(transport.carrier(driver, network, self._overrides))
        core.outcome.when_sent, core.outcome.when_transmitted = self._outcome, self._transmitted
        driver.broken.add_done_callback(self._broken)
        driver.start()
        if self._listen is not None:
            try:
                self._listen = self._listen[0], await network.listen(*self._listen)
            except (OSError, UnicodeError) as exc:
                address, reason = ":".join(map(str, self._listen)), getattr(exc, "strerror", None) or exc
                raise Unreachable(f"can't listen at {address}: {reason}") from None
            core.queues.lookup.addresses.add(self._listen[0])

    def _broken(self, broken: asyncio.Future[MsmqError]) -> None:
        """Wake the tasks that wait for a driver that has ended."""
        if not broken.cancelled():
            self._end_all(broken.result)

    def _end_all(self, error: Callable[[], MsmqError]) -> None:
        """Wake the tasks that wait for the outcome of messages."""
        for sent in (*self._pending.values(), *self._asking.values()):
            sent.end(error)

    @property
    def driver(self) -> EngineDriver:
        """The driver of its core. Raises InvalidValue once it has stopped."""
        if self._closed:
            raise connection_closed()
        return self._driver

    async def stop(self) -> None:
        """Stop in good order. Recoverable messages not transferred yet stay in the file, if there is one."""
        self._closed = True
        self._end_all(_left_error)
        try:
            if self._started:
                await self._end(self._driver)
        finally:
            self._store.close()

    async def _end(self, driver: EngineDriver) -> None:
        try:
            await driver.finish_carriers()
            await driver.finish(_STOP_S)
        except TimeoutError:  # the disk refuses commits; earlier ones are durable
            raise Unreachable("the file does not take what has changed last") from None
        finally:
            driver.abandon()
            await driver.close_carriers()

    # -- sending --------------------------------------------------------------------------------------------

    def open(self, format_name: str) -> OpenQueueDescriptor:
        """Return a queue to send to. Raises InvalidName and QueueError."""
        name = wanted_format_name(format_name)
        for element in name.elements if isinstance(name, MultipleElementName) else (name,):
            if element.is_read_only:
                code = HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION
                raise QueueError(f"{element}: it can be read only", code)
        status, descriptor = self.driver.core.queues.open(name, QueueAccessType.SEND_ACCESS)
        if descriptor is None:
            raise QueueError(reason(status, format_name), status)
        return descriptor

    def send(
        self,
        descriptor: OpenQueueDescriptor,
        message: Message,
        transaction: Transaction | None = None,
        protecting: Protecting | None = None,
    ) -> Sent:
        """Send a message; it is durable after `EngineDriver.durable`. Raises InvalidValue and QueueError."""
        core = self.driver.core
        requested, elsewhere = message.acknowledgements_requested, message.administration is not None
        if _any(is_http, descriptor.format_name) and transaction is not None:
            why = "its receipts come by HTTP: send it through a queue manager that listens"
            raise InvalidValue(why, path="transactional")
        if requested and not is_http(message.administration) and _any(is_one_way, descriptor.format_name):
            # It would be sent by a request of the other side, which can't reach this one.
            raise InvalidValue("receipts by HTTP need an admin_queue DIRECT=HTTP://...", path="acknowledge")
        if requested and not elsewhere:
            message.administration = self._acknowledgements()
        if protecting is not None:
            self._protect(descriptor, message, protecting, transactional=transaction is not None)
        status = self.driver.call(core.send, descriptor, message, transaction)
        if status == EnqueueStatus.TIMED_OUT:
            raise InvalidValue("its time is over before it is sent", path="time_to_reach_queue")
        if isinstance(status, HResult):
            raise QueueError(reason(status, str(descriptor.format_name)), status)
        if status:
            code = HResult.MQ_ERROR_INSUFFICIENT_RESOURCES
            raise QueueError("no room for it: too much waits to be transferred, or the disk is full", code)
        queues = {child.queue.number for child in descriptor.children if child.queue is not None}
        sent = Sent(
            identifier_text(message.identifier),
            AcknowledgementsRequested.NONE if elsewhere else requested,
            max(1, len(queues)),
            self.obstacle,
            self._mark_reported,
            "confirmed" if _all(is_http, descriptor.format_name) else "transferred",
        )
        self._pending[message.identifier] = sent
        if requested and not elsewhere:
            self._asking[message.identifier] = sent
        return sent

    def _protect(
        self,
        descriptor: OpenQueueDescriptor,
        message: Message,
        protecting: Protecting,
        *,
        transactional: bool,
    ) -> None:
        core, name = self.driver.core, descriptor.format_name
        protecting.protect(message, name, core.queue_manager.identifier, transactional=transactional)
        core.protection.check_can_leave(
            message, name.elements if isinstance(name, MultipleElementName) else (name,)
        )
        if protecting.peer_keys is not None:
            identifier, configuration = peer_of(name), core.protection.configuration
            keys = {**configuration.peer_keys, identifier: public_keys(protecting.peer_keys)}
            if keys != configuration.peer_keys:
                self.driver.call(core.protection.configure, replace(configuration, peer_keys=keys))

    def begin(self) -> Transaction:
        """Begin a transaction."""
        core = self.driver.core
        return self.driver.call(core.transactions.create, core.context.new_guid())

    def commit(self, transaction: Transaction) -> None:
        """Send the messages of a transaction in their order, all or none."""
        status = self.driver.call(self.driver.core.commit, transaction)
        if status != MQ_OK:
            raise QueueError(reason(status, "the transaction"), status)

    def abort(self, transaction: Transaction) -> None:
        """Drop the messages of a transaction."""
        for operation in transaction.operations:
            sent = self._pending.pop(operation.position.message.identifier, None)
            if sent is not None:
                sent.end(partial(NotDelivered, "its transaction was aborted", identifier=sent.identifier))
        if not self._closed:  # stopping has dropped what was not committed
            self.driver.call(self.driver.core.transactions.abort, transaction.identifier)

    @property
    def has_waiting(self) -> bool:
        """Whether messages are not transferred yet."""
        return bool(self.transfers()) or next(self._untransferred(), None) is not None

    def waiting(self) -> Iterator[UntransferredMessage]:
        """Yield the messages that are not transferred yet."""
        for position in self._untransferred():
            yield UntransferredMessage(self.stored and position.recoverable, sent=False)
        for transfer in self.transfers():
            for entry in transfer.table.values():
                stored = self.stored and entry.position.recoverable
                yield UntransferredMessage(stored, entry.transmitted and not entry.recoverable)

    def _untransferred(self) -> Iterator[MessagePosition]:
        """Yield the messages that other protocols than sessions have not transferred yet."""
        for protocol in self._driver.core.joined:
            yield from protocol.untransferred()

    def transfers(self) -> list[SessionTransfer]:
        """Return the transfers by sessions that have messages of the program.

        Transfers of session acknowledgements are left out.
        """
        transfers = self._driver.core.binary.transfers.values()
        return [
            transfer for transfer in transfers if transfer.table and transfer.queue.acknowledged_peer is None
        ]

    def obstacle(self) -> Obstacle:
        """Return why messages are not transferred."""
        for transfer in self.transfers():
            return _obstacle(transfer)
        for protocol in self._driver.core.joined:
            if (obstacle := protocol.obstacle()) is not None:
                return Obstacle(*obstacle)
        return Obstacle("")

    def _mark_reported(self, identifier: str) -> None:
        self.failures.mark_reported(identifier_from(identifier))

    def _transmitted(self, identifier: ObjectId, queue: int, address: str) -> None:
        sent = self._pending.get(identifier)
        if sent is not None:
            sent.set_transmitted(queue, speaker_of(address))

    def _outcome(self, identifier: ObjectId, delivered: bool, final: int | str | None) -> None:
        if not delivered:
            self.failures.add(identifier, final)
        sent = self._pending.get(identifier)
        if sent is None:
            return
        if delivered and sent.copies > 1 and self._waits(identifier):
            return  # a copy for another queue is not transferred yet
        del self._pending[identifier]
        sent.set_outcome(delivered, final)

    def _waits(self, identifier: ObjectId) -> bool:
        """Whether a copy of a message is not transferred yet."""
        positions = [entry.position for transfer in self.transfers() for entry in transfer.table.values()]
        positions += self._untransferred()
        return any(position.message.identifier == identifier for position in positions)

    # -- acknowledgements --------------------------------------------------------------------------------

    def _acknowledgements(self) -> FormatName:
        """Return the name of the queue for acknowledgements; create it and begin to read it on first use."""
        core = self._driver.core
        if self._acknowledged is None:
            manager = core.queue_manager
            self._driver.call(queues.create, core, {"queue": _ACKNOWLEDGEMENTS, "missing": True})
            queue = core.queues.lookup.path(path_of(_ACKNOWLEDGEMENTS, manager.computer_name))
            assert queue is not None, "it was created"
            name = PrivateName(manager.identifier, queue.private_queue_number)
            self._acknowledged = core.queues.open(name, QueueAccessType.RECEIVE_ACCESS)[1]
            self._read()
        assert self._acknowledged is not None, "its owner may open it"
        if self._listen is not None:
            return DirectName("TCP", self._listen[0], _ACKNOWLEDGEMENTS.partition("\\")[2], private=True)
        return self._acknowledged.format_name

    def _read(self) -> None:
        """Receive the acknowledgements that have arrived, and wait for more."""
        messages, descriptor = self._driver.core.messages, self._acknowledged
        assert descriptor is not None, "it is open"
        while True:
            read = self._driver.call(lambda: messages.dequeue(descriptor))
            if read.status == PENDING:
                self._driver.on_read(read.request, self._read_completed)
                return
            if read.message is None:
                return
            self._acknowledge(read.message)

    def _read_completed(self, read: ReadCompleted) -> None:
        if read.message is not None:
            self._acknowledge(read.message)
            self._read()

    def _acknowledge(self, message: Message) -> None:
        """Record an acknowledgement; ignore any other message that a peer sends to this queue."""
        about = message.message_class
        sent = self._asking.get(ObjectId.from_bytes(message.correlation_identifier))
        if sent is not None and (is_negative(about) or about in _POSITIVE):
            speaker = speaker_of(message.peer or message.origin)
            sent.acknowledge(Acknowledgement(about, message.sent_time, speaker))


def _any(test: Callable[[FormatName], bool], name: FormatName) -> bool:
    """Return whether a test is true of a name, or of one of its elements."""
    return any(map(test, name.elements)) if isinstance(name, MultipleElementName) else test(name)


def _all(test: Callable[[FormatName], bool], name: FormatName) -> bool:
    """Return whether a test is true of a name, or of all of its elements."""
    return all(map(test, name.elements)) if isinstance(name, MultipleElementName) else test(name)


def _store_of(state: str | os.PathLike[str]) -> Store:

    return open_store(state)


def _obstacle(transfer: SessionTransfer) -> Obstacle:
    """Return why the messages of a transfer by sessions are not transferred."""
    session, failure = transfer.session, last_failure(transfer.queue)
    peer = session.remote_address if session is not None else ""
    peer = peer or transfer.host or str(transfer.queue.destination)
    if failure is not None:
        refuses = failure.status is ConnectionStatus.CONNECTION_REFUSED
        return Obstacle(failure_words(failure, peer), refuses)
    if transfer.ended_unacknowledged:
        refuses = transfer.ended_unacknowledged > 1
        when = "each time it gets the message" if refuses else "before it has acknowledged the message"
        why = "its quota may be used up, or its disk full"
        return Obstacle(f"{peer} ends the session {when}: {why}", refuses)
    if session is not None and session.is_open:
        return Obstacle(f"not acknowledged by {peer}")
    return Obstacle(f"no answer from {peer}")


def is_one_way(name: FormatName) -> bool:
    """Return whether a queue is reached by HTTP or multicast, which carry no acknowledgements back."""
    return is_http(name) or isinstance(name, MulticastName)


def _left_error() -> MsmqError:
    return Unreachable("the connection was left")
