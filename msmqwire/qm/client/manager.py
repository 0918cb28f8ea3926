"""The small queue manager inside a program that sends."""

from __future__ import annotations

import os
from typing import Final, NamedTuple
from uuid import UUID, uuid4

from msmqwire.constants import MQ_OK, HResult
from msmqwire.errors import InvalidValue, QueueError, Unreachable
from msmqwire.names import DirectName, FormatName, PrivateName, parse_format_name
from msmqwire.qm.client.sent import Acknowledgement, Sent
from msmqwire.qm.manager.reads import PENDING
from msmqwire.qm.model.effects import ReadCompleted
from msmqwire.qm.model.elements import OpenQueueDescriptor, OutgoingQueue, Transaction
from msmqwire.qm.model.message import Message, ObjectId
from msmqwire.qm.model.settings import Settings
from msmqwire.qm.model.values import ConnectionStatus, EnqueueStatus, QueueAccessType
from msmqwire.qm.service import queues
from msmqwire.qm.service.carrier import Carrier
from msmqwire.qm.service.folder import open_core, stored_name
from msmqwire.qm.service.messages import identifier_text
from msmqwire.qm.service.names import path_of
from msmqwire.qm.service.network import TcpNetwork, Ways
from msmqwire.qm.service.queues import reason
from msmqwire.qm.store import Store
from msmqwire.qm.store.memory import MemoryStore
from msmqwire.qm.store.sqlite import SqliteStore

_ACKNOWLEDGEMENTS: Final = "private$\\acknowledgements"
_SETTINGS: Final = Settings(
    session_retry_connect_ms=1_000,
    recoverable_ack_delay_ms=1,
    ack_delay_ms=20,
    order_ack_timeout_ms=20,
    maximum_order_ack_delay_s=1,
)


class Waiting(NamedTuple):
    """A message that is not transferred yet.

    Attributes:
        kept: whether it is in the file, and will be sent when that is used again.
        gone: whether it was sent, and only its acknowledgement is missing, which promises nothing: an express
            one.
    """

    kept: bool
    gone: bool


class ClientManager:
    """A queue manager without queues for others but one, in which acknowledgements arrive.

    Attributes:
        stored: whether it has a file for what is recoverable.
    """

    def __init__(
        self, state: str | os.PathLike[str] | None, ways: Ways, listen: tuple[str, int] | None
    ) -> None:
        """Raises the subclasses of StoreError."""
        self.stored = state is not None
        self._store: Store = MemoryStore() if state is None else SqliteStore(state)
        self._ways, self._listen = ways, listen
        self._sent: dict[ObjectId, Sent] = {}
        self._acknowledged: OpenQueueDescriptor | None = None
        self.carrier: Carrier
        self._network: TcpNetwork

    async def start(self) -> None:
        """Start, in the running loop. Raises OSError where it can't listen."""
        name = stored_name(self._store) or f"c{uuid4().hex[:14]}"
        core = open_core(self._store, name, settings=_SETTINGS)
        core.queues.lookup.addresses.clear()  # `localhost` is another queue manager than this one
        self.carrier = Carrier(core, self._store)
        self._network = self.carrier.network = TcpNetwork(self.carrier, ways=self._ways)
        core.engine.when_sent = self._told
        self.carrier.start()
        if self._listen is not None:
            self._listen = self._listen[0], await self._network.listen(*self._listen)
            core.queues.lookup.addresses.add(self._listen[0])

    async def stop(self) -> None:
        """Stop in good order. What is recoverable and not transferred stays in the file, if there is one."""
        for sent in self._sent.values():
            sent.end(Unreachable("the connection was left"))
        self.carrier.call(self.carrier.core.engine.acknowledge_received)
        await self.carrier.durable()
        await self.carrier.stop()
        await self._network.close()
        self.close_store()

    def close_store(self) -> None:
        """Let others have the file."""
        self._store.close()

    # -- sending --------------------------------------------------------------------------------------------

    def open(self, format_name: str) -> OpenQueueDescriptor:
        """A queue to send to. Raises InvalidName and QueueError."""
        name = parse_format_name(format_name)
        status, found = self.carrier.core.queues.open(name, QueueAccessType.SEND_ACCESS)
        if found is None:
            raise QueueError(reason(status, format_name), status)
        return found

    def send(
        self, descriptor: OpenQueueDescriptor, message: Message, transaction: Transaction | None = None
    ) -> Sent:
        """Send a message; it is durable after `Carrier.durable`. Raises InvalidValue and QueueError."""
        core = self.carrier.core
        if message.acknowledgements_requested and message.administration is None:
            message.administration = self._acknowledgements()
        status = self.carrier.call(core.send, descriptor, message, transaction)
        if status == EnqueueStatus.TIMED_OUT:
            raise InvalidValue("its time is over before it is sent", path="time_to_reach_queue")
        if isinstance(status, HResult):
            raise QueueError(reason(status, str(descriptor.format_name)), status)
        if status:
            code = HResult.MQ_ERROR_INSUFFICIENT_RESOURCES
            raise QueueError("no room for it: too much waits to be transferred, or the disk is full", code)
        copies = max(1, len(descriptor.children))
        wished = message.acknowledgements_requested
        sent = Sent(identifier_text(message.identifier), wished, copies, self.obstacle)
        self._sent[message.identifier] = sent
        return sent

    def begin(self) -> Transaction:
        """A transaction."""
        core = self.carrier.core
        return core.transactions.create(core.context.new_guid())

    def commit(self, transaction: Transaction) -> None:
        """Send what the transaction has, all or nothing, in this order."""
        status = self.carrier.call(self.carrier.core.commit, transaction)
        if status != MQ_OK:
            raise QueueError(reason(status, "the transaction"), status)

    def abort(self, transaction: Transaction) -> None:
        """Send nothing of it."""
        for operation in transaction.operations:
            self._sent.pop(operation.position.message.identifier, None)
        self.carrier.call(self.carrier.core.transactions.abort, transaction.identifier)

    def waiting(self) -> list[Waiting]:
        """What is not transferred yet."""
        core = self.carrier.core
        found: list[Waiting] = []
        for queue in core.queue_manager.queues.values():
            transfer = core.engine.transfers.get(queue.number)
            if transfer is None or transfer.queue.acknowledged_peer is not None:
                continue
            for one in transfer.table.values():
                kept = self.stored and one.position.recoverable
                found.append(Waiting(kept, one.transmitted and not one.recoverable))
        return found

    def obstacle(self) -> str:
        """What became of the last attempt to connect: `` (SocketConnectFailure at 10.0.0.5)``, or nothing."""
        for queue in self.carrier.core.queue_manager.queues.values():
            if isinstance(queue, OutgoingQueue) and queue.connection_history:
                last = queue.connection_history[-1]
                if last.status is not ConnectionStatus.ESTABLISHED:
                    places = ", ".join(one.partition("=")[2] for one in last.addresses)
                    return f" ({last.status.value}{f' at {places}' if places else ''})"
        return ""

    def _told(self, identifier: ObjectId, delivered: bool) -> None:
        sent = self._sent.get(identifier)
        if sent is not None:
            sent.told(delivered)
            self._forget(identifier, sent)

    def _forget(self, identifier: ObjectId, sent: Sent) -> None:
        """What is settled is known to the program, if it wants to know."""
        if sent.settled:
            self._sent.pop(identifier, None)

    # -- acknowledgements --------------------------------------------------------------------------------

    def _acknowledgements(self) -> FormatName:
        """The name of the queue of acknowledgements, which is made and read from now on."""
        core = self.carrier.core
        if self._acknowledged is None:
            own = core.queue_manager
            self.carrier.call(queues.create, core, {"queue": _ACKNOWLEDGEMENTS, "missing": True})
            found = core.queues.lookup.path(path_of(_ACKNOWLEDGEMENTS, own.computer_name))
            assert found is not None, "it is made"
            name = PrivateName(own.identifier, found.private_queue_number)
            self._acknowledged = core.queues.open(name, QueueAccessType.RECEIVE_ACCESS)[1]
            self._read()
        assert self._acknowledged is not None, "its owner may open it"
        if self._listen is not None:
            return DirectName("TCP", self._listen[0], _ACKNOWLEDGEMENTS.partition("\\")[2], private=True)
        return self._acknowledged.format_name

    def _read(self) -> None:
        """Take what has come, and wait for more."""
        messages, descriptor = self.carrier.core.messages, self._acknowledged
        assert descriptor is not None, "it is open"
        while True:
            read = self.carrier.call(lambda: messages.dequeue(descriptor))
            if read.status == PENDING:
                self.carrier.on_read(read.request, self._has_come)
                return
            if read.message is None:
                return
            self._acknowledge(read.message)

    def _has_come(self, read: ReadCompleted) -> None:
        if read.message is not None:
            self._acknowledge(read.message)
            self._read()

    def _acknowledge(self, message: Message) -> None:
        data = message.correlation_identifier
        identifier = ObjectId(UUID(bytes_le=data[:16]), int.from_bytes(data[16:], "little"))
        sent = self._sent.get(identifier)
        if sent is not None:
            sent.acknowledge(Acknowledgement(message.message_class, message.sent_time))
            self._forget(identifier, sent)
