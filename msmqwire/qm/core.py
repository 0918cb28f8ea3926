"""A queue manager without I/O: the rules of [MS-MQDMPR], its protocols, and their stored rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from pkgutil import resolve_name
from typing import TYPE_CHECKING
from uuid import UUID

from msmqwire.constants import MQ_OK, HResult
from msmqwire.errors import InvalidValue
from msmqwire.names import FormatName, MulticastName
from msmqwire.names.origins import LOOPBACK_ORIGIN, origin_of
from msmqwire.qm.directory.interface import Directory
from msmqwire.qm.model import access
from msmqwire.qm.model.context import Context
from msmqwire.qm.model.directory_objects import DirectoryObject
from msmqwire.qm.model.effects import Effect
from msmqwire.qm.model.elements import OpenQueueDescriptor, OutgoingQueue, Queue, QueueManager, Transaction
from msmqwire.qm.model.enumerations import EnqueueStatus, QueueManagerState
from msmqwire.qm.model.hand_outs import HandOuts
from msmqwire.qm.model.message import NULL_GUID, Message
from msmqwire.qm.model.settings import KeptSettings, Settings
from msmqwire.qm.model.tables import Table
from msmqwire.qm.protocols.binary.engine import BinaryEngine
from msmqwire.qm.protocols.interface import JoinedProtocol, TransferProtocol
from msmqwire.qm.protocols.registry import registrations
from msmqwire.qm.protocols.remote_read.configuration import RemoteReadConfiguration
from msmqwire.qm.rules import recovery, stored_rows
from msmqwire.qm.rules.api_tokens import ApiTokens
from msmqwire.qm.rules.delivery_outcome import DeliveryOutcome
from msmqwire.qm.rules.directory_events import DirectoryEvents
from msmqwire.qm.rules.dispatch import Dispatch
from msmqwire.qm.rules.history import History
from msmqwire.qm.rules.idempotency import IdempotencyKeys
from msmqwire.qm.rules.identities import Identities
from msmqwire.qm.rules.incoming_sequences import IncomingSequences
from msmqwire.qm.rules.lookup import Lookup
from msmqwire.qm.rules.message_identity import MessageIdentity
from msmqwire.qm.rules.messages import MessageEvents
from msmqwire.qm.rules.own_moves import OwnMoves
from msmqwire.qm.rules.queue_memory import QueueMemory
from msmqwire.qm.rules.queues import Queues
from msmqwire.qm.rules.recovery import Recovery, Stored
from msmqwire.qm.rules.reflection_limits import ReflectionLimits
from msmqwire.qm.rules.relaying import Relaying
from msmqwire.qm.rules.routing import Routes, Routing
from msmqwire.qm.rules.sequence_identity import SequenceIdentity
from msmqwire.qm.rules.system_messages import SystemMessages
from msmqwire.qm.rules.transactions import Transactions
from msmqwire.qm.security.configuration import SecurityConfiguration
from msmqwire.qm.security.protection import Protection
from msmqwire.service.store.changes import Changes

if TYPE_CHECKING:
    from msmqwire.qm.protocols.management.engine import ManagementEngine
    from msmqwire.qm.protocols.remote_read.engine import RemoteReadEngine


class Core:
    """A queue manager that is driven by its owner and does nothing by itself.

    The owner sets the time (`at`), calls the parts, and takes changes and effects (`take`). No effect may be
    carried out before the changes taken with it and all earlier ones are durable; the owner reports when
    they are (`committed`).

    Only sessions, which all queue managers need, are imported with it: a program that sends by one protocol
    does not wait for the import of the others.

    Attributes:
        context: the model, the time and the settings.
        messages, queues, transactions, dispatch, directory, routing: the events of [MS-MQDMPR].
        tokens: the tokens of the API.
        idempotency: the requests of clients that are carried out once.
        protocols: the protocols that transfer messages to and from other queue managers.
        binary: the protocol of [MS-MQQB].
        engines: of the protocols that have joined and that were needed so far, by name.
        outcome: the journals and acknowledgements of messages that are delivered or given up.
        protection: signatures and encryption.
    """

    def __init__(
        self,
        stored: Stored,
        *,
        new_guid: Callable[[], UUID],
        computer_name: str,
        settings: Settings | None = None,
        keep: KeptSettings | None = None,
        addresses: Collection[str] = (),
        directory: Directory | None = None,
        routes: Routes | None = None,
        known_hosts: Collection[str] = (),
        domain: str = "",
        identifier: UUID = NULL_GUID,
        quota: int | None = None,
        configurations: Mapping[str, object] | None = None,
        remote_read: RemoteReadConfiguration | None = None,
        security: SecurityConfiguration | None = None,
        hand_outs: HandOuts | None = None,
    ) -> None:
        """Build a queue manager over a store; nothing happens before `start`.

        Args:
            stored: its rows, empty for a new queue manager.
            new_guid: returns a new GUID.
            computer_name: the name of this computer.
            settings: the settings of the administrator.
            keep: settings to use from now on, at later starts too; they take precedence over `settings`.
            addresses: further names and addresses of this computer.
            directory: None for workgroup mode.
            routes: fixed routes.
            known_hosts: names and addresses of computers to which messages of peers may be forwarded: see
                `Settings.relay`.
            domain: FQDNDomain, the DNS domain of this computer; its last one if it is empty.
            identifier: of the queue manager, for an empty store; a new one by default.
            quota: QueueManagerQuota in bytes; the specification's by default.
            configurations: those of protocols that have joined, by the name of the protocol.
            remote_read: the configuration of the server of remote read.
            security: the keys of the queue manager; without any it can only verify signatures.
            hand_outs: where the messages that programs have are noted; in memory by default.
        """
        kept_before = recovery.kept_settings(stored)
        self.kept_settings = kept = kept_before.changed_by(keep or KeptSettings())
        settings = kept.applied_to(settings or Settings())
        known = recovery.identifier(stored)
        manager = QueueManager(known if known != NULL_GUID else identifier)  # MQQB-3.1.3.2-17
        if manager.identifier == NULL_GUID:
            manager.identifier = new_guid()
        recovery.restore_attributes(manager, stored)
        if not manager.security:
            manager.security = access.default_manager_security()
        if manager.computer_name != computer_name:  # DMPR-3.1.1.1-01
            # DMPR-3.1.1.1-01 and -07
            manager.computer_name, manager.qualified_computer_name = computer_name, computer_name
        if domain:  # DMPR-3.1.3-06, DMPR-3.1.1.1-07
            manager.qualified_computer_name = f"{computer_name}.{domain}"  # DMPR-3.1.1.1-07
        if quota is not None:
            manager.queue_manager_quota = quota
        self._stored = stored
        self.context = context = Context(manager, settings, new_guid)
        if known == NULL_GUID:
            context.changes.put(Table.META, recovery.IDENTIFIER, manager.identifier.bytes)
        if kept != kept_before:
            stored_rows.put_settings(context.changes, kept)
        # DMPR-3.1.7.1-01
        self.directory = DirectoryEvents(manager, directory, context.timers, settings=settings)
        self.routing = Routing(manager, self.directory, context.timers, routes, settings=settings)
        self.messages = MessageEvents(context, hand_outs)  # DMPR-3.1.7.1-01
        # DMPR-3.1.7.1-01
        self.queues = Queues(context, self.messages, self.directory, Lookup(manager, addresses))
        self.own_moves = OwnMoves(context, self.messages, self.queues.poison_queue)
        self.transactions = Transactions(context, self.messages)  # DMPR-3.1.7.1-01
        self.dispatch = Dispatch(context)  # DMPR-3.1.7.1-01
        self.identity = MessageIdentity(context)
        self.sequence_identity = SequenceIdentity(context)
        self.history = History(context, self.messages.pool)
        self.incoming_sequences = IncomingSequences(context, self.messages.pool)
        self.tokens = ApiTokens(context, stored)
        self.idempotency = IdempotencyKeys(context, stored)
        lookup = self.queues.lookup
        self.outcome = DeliveryOutcome(context, self.messages, lookup)
        for host in known_hosts:
            self.know(host)
        self.relaying = Relaying(context, self.directory, self.routing, lookup, known_hosts)
        self.queue_memory = QueueMemory(context, self.messages.pool)
        self.reflection_limits = ReflectionLimits(context, self._leads_back)
        self.system_messages = SystemMessages(
            context, self.messages, self.queues, self.identity, self._may_send_to, self.reflection_limits
        )
        security = security or SecurityConfiguration()
        self.identities = Identities(context, self.directory, security.users)
        self.protection = Protection(
            context, self.directory, self.identities, self.messages.pool.known, security
        )
        self.binary = BinaryEngine(self)
        self._remote_read_configuration = remote_read
        self._remote_read: RemoteReadEngine | None = None
        self._management: ManagementEngine | None = None
        self._joined = {joined.name: joined for joined in registrations() if joined.engine}
        self._configurations = configurations or {}
        self.engines: dict[str, JoinedProtocol] = {}
        self._stand_ins: dict[str, JoinedProtocol] = {
            name: resolve_name(joined.stand_in)(self, partial(self.engine, name))
            for name, joined in self._joined.items()
        }
        self.protocols: list[TransferProtocol] = [self.binary, *self._stand_ins.values()]
        context.subscribers += self.protocols
        self.messages.when_arrived = self.system_messages.arrived_locally
        self.messages.when_removed = self.system_messages.removed

    def know(self, address: str) -> None:
        """Count a computer as known: the administrator or an application of this computer has named it.

        This computer never is: any of its users may send from its addresses. Only the control channel proves
        its owner.
        """
        origin = origin_of(address)
        if origin != LOOPBACK_ORIGIN and not self.queues.lookup.is_local(address):
            self.messages.pool.known.add(origin)

    @property
    def queue_manager(self) -> QueueManager:
        """LocalQueueManager."""
        return self.context.queue_manager  # DMPR-3.1.1-07

    @property
    def arrivals(self) -> int:
        """A number that grows with each message that enters a queue."""
        return self.queue_manager.sequential_id

    @property
    def joined(self) -> list[JoinedProtocol]:
        """The protocols that have joined: their engines, or what stands in for one that was not needed."""
        return [self.engines.get(name, stand_in) for name, stand_in in self._stand_ins.items()]

    def engine(self, name: str) -> JoinedProtocol:
        """Return the engine of a protocol that has joined, made when it is asked for first."""
        engine = self.engines.get(name)
        if engine is None:
            made = resolve_name(self._joined[name].engine)(self, self._configurations.get(name))
            self.engines[name] = engine = made
            stand_in, subscribers = self._stand_ins[name], self.context.subscribers
            self.protocols[self.protocols.index(stand_in)] = engine
            subscribers[subscribers.index(stand_in)] = engine
        return engine

    def make_engines(self) -> None:
        """Make the engines of all protocols that have joined now: what they import takes a while."""
        for name in self._stand_ins:
            self.engine(name)

    @property
    def remote_read(self) -> RemoteReadEngine:
        """The server of [MS-MQRR] for remote readers of the queues, made on first use."""
        if self._remote_read is None:
            from msmqwire.qm.protocols.remote_read.engine import RemoteReadEngine

            self._remote_read = RemoteReadEngine(
                self.context, self.messages, self.queues, self.transactions, self.identities,
                self._remote_read_configuration,
            )  # fmt: skip
        return self._remote_read

    @property
    def management(self) -> ManagementEngine:
        """The server of [MS-MQMR] for administrators at other computers, made on first use."""
        if self._management is None:
            from msmqwire.qm.protocols.management.engine import ManagementEngine

            self._management = ManagementEngine(self)
        return self._management

    def start(self) -> None:
        """Queue Manager Started: [MS-MQDMPR] 3.1.4.1. The time must have been set."""
        manager = self.context.queue_manager
        manager.state = QueueManagerState.INITIALIZING  # DMPR-3.1.4.1-01
        self.directory.updated = self._updated
        self.directory.initialize()
        self.protection.publish()
        restoring = Recovery(self.context, self.messages, self.queues, self._stored)
        restoring.restore()  # DMPR-3.1.3-27
        self.own_moves.restore()
        self.routing.initialize()
        self.identity.restore(self._stored)
        self.sequence_identity.restore(self._stored)
        self.history.restore(self._stored)
        self.incoming_sequences.restore(self._stored)
        self.tokens.restore()
        self.idempotency.restore()
        for protocol in self.protocols:
            protocol.start(self._stored)
        restoring.release()
        self.queues.announce_groups()
        manager.create_time = manager.create_time or self.context.utc  # DMPR-3.1.1.1-08
        self.changed()
        manager.state = QueueManagerState.READY  # DMPR-3.1.1-13

    def _may_send_to(self, name: FormatName, origin: str) -> bool:
        return all(protocol.may_send_to(name, origin) for protocol in self.protocols)

    def _leads_back(self, name: FormatName, origin: str) -> bool:
        return any(protocol.leads_back(name, origin) for protocol in self.protocols)

    def _updated(self, changed: DirectoryObject) -> None:
        """An element has been updated from the directory."""
        if isinstance(changed, Queue) and changed.number in self.queue_manager.queues:
            self.queues.changed(changed)
        elif changed is self.queue_manager:
            self.protection.publish()  # the directory may have had an earlier list
            self.changed()

    def changed(self) -> None:
        """Store the attributes of the queue manager after a change."""
        stored_rows.put_queue_manager(self.context.changes, self.queue_manager)

    def stop(self) -> None:
        """Queue Manager Stopped: [MS-MQDMPR] 3.1.4.2."""
        self.context.queue_manager.state = QueueManagerState.STOPPING  # DMPR-3.1.4.2-01
        if self._remote_read is not None:
            self._remote_read.stop()
        for protocol in self.protocols:
            protocol.stop()
        self.identity.store()
        self.messages.store_sequential_id()
        self.changed()
        self.context.queue_manager.state = QueueManagerState.STOPPED

    def acknowledge_received(self) -> None:
        """Acknowledge everything received so far without waiting for more. The owner calls this before
        `stop`.
        """
        for protocol in self.protocols:
            protocol.acknowledge_received()

    def at(self, now_ms: int, utc: int) -> None:
        """Set the time: milliseconds since start-up, seconds since 1970 UTC. Timers that are due expire."""
        self.context.utc = utc
        self.context.timers.advance(now_ms)

    @property
    def deadline(self) -> int | None:
        """The time of the next call of `at`, in milliseconds since start-up; None if no timer runs."""
        return self.context.timers.deadline

    def take(self) -> tuple[Changes, list[Effect]]:
        """Take the changes, and the effects to carry out once they are durable."""
        self.messages.memory.changes_taken()
        return self.context.take()

    def committed(self) -> None:
        """Report that all changes taken so far are durable."""
        self.messages.memory.changes_durable()

    def throttle(self, *, on: bool) -> None:
        """Begin or end flow control: while it lasts no new message is enqueued."""
        if on:
            self.queues.begin_flow_control()
        else:
            self.queues.end_flow_control()

    @property
    def remote_receives(self) -> int:
        """The number of receives of remote readers that have not ended."""
        return 0 if self._remote_read is None else self._remote_read.shares.pending.total

    def drain(self, *, on: bool) -> None:
        """Take nothing new from peers, who send it again, and end receives of remote readers; or resume.

        Messages that were received can be ended, and what is here is sent on.
        """
        self.queue_manager.draining = on
        if on and self._remote_read is not None:
            self._remote_read.receiving.stop_receives()

    def send(
        self, descriptor: OpenQueueDescriptor, message: Message, transaction: Transaction | None = None
    ) -> EnqueueStatus | HResult:
        """Send a message of an application to an open queue.

        A message to a queue of this queue manager is in it at once, with arrival acknowledgement and source
        journaling as if it had been transferred. Returns MQ_ERROR_TRANSACTION_USAGE for such a queue that is
        not transactional if there is a transaction, or is transactional if there is none.

        Raises:
            InvalidValue, InvalidName: no packet can hold the message, or it has been sent before.
        """
        if message.identifier.uniquifier:
            raise InvalidValue("the message has been sent: make another one", path="UserHeader.MessageID")
        # Only messages by HTTP have them: DMPR-3.1.1.12-74.
        message.soap_envelope, message.soap_compound_message = "", b""
        if message.destination is None and not descriptor.multiple:
            message.destination = descriptor.format_name  # DMPR-3.1.1.16-06
        transactional = transaction is not None and not transaction.plain
        for opened in descriptor.children if descriptor.multiple else (descriptor,):
            local = opened.queue is not None and not isinstance(opened.queue, OutgoingQueue)
            if local and opened.queue.transactional != transactional:  # type: ignore[union-attr]
                return HResult.MQ_ERROR_TRANSACTION_USAGE
            if transactional and isinstance(opened.format_name, MulticastName):
                return HResult.MQ_ERROR_TRANSACTION_USAGE
        self.identity.stamp(message)
        if (refused := self._refused_here(descriptor, message)) is not None:
            return refused
        return self.messages.enqueue_to_open_queue(descriptor, message, transaction)

    def _refused_here(self, descriptor: OpenQueueDescriptor, message: Message) -> HResult | None:
        """Return why a queue of this queue manager refuses a message sent here."""
        message.encrypted = bool(message.symmetric_key)  # by a connector application: DMPR-3.1.1.12-65
        names = tuple(child.format_name for child in descriptor.children)
        for opened in descriptor.children if descriptor.multiple else (descriptor,):
            if opened.queue is None or isinstance(opened.queue, OutgoingQueue):
                continue
            copy = message
            if descriptor.multiple:
                copy = message.copy(destination=opened.format_name, destinations=names)
            refused = self.protection.refusal_here(copy, opened.queue)
            if refused is not None:
                return refused
            # The proved identity, not the claimed one.
            message.authentication_level = copy.authentication_level
            message.signature_type = copy.signature_type
        return None

    def commit(self, transaction: Transaction) -> int:
        """End an internal transaction: [MS-MQDMPR] 3.1.4.3 and 3.1.4.4."""
        status = self.transactions.prepare(transaction.identifier)
        return self.transactions.commit(transaction.identifier) if status == MQ_OK else status
