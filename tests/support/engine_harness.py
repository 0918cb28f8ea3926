"""A queue manager without I/O: the driver that ships, over an in-memory store, with a clock set by the test.

`EngineHarness` records every effect and has shortcuts for the queue manager's queues, messages, timers and
connections. The other ends of its connections are played by `HandwrittenPeer`s, or by other harnesses in a
`HarnessNetwork`.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Self, get_args
from uuid import UUID

from msmqwire.constants import MQ_OK
from msmqwire.errors import EngineFailed, MsmqError
from msmqwire.names import FormatName, parse_format_name
from msmqwire.qm.core import Core
from msmqwire.qm.model.effects import Connect, Disconnect, Effect, ErrorReport, ReadCompleted, Resolve, Send
from msmqwire.qm.model.elements import OpenQueueDescriptor, OutgoingQueue, Queue, QueueManager, Transaction
from msmqwire.qm.model.enumerations import (
    DeliveryGuarantee,
    EnqueueStatus,
    QueueAccessType,
    QueueShareMode,
)
from msmqwire.qm.model.message import NULL_GUID, Message
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.model.settings import Settings
from msmqwire.qm.model.tables import Table
from msmqwire.qm.model.timer_kind import TimerKind
from msmqwire.qm.protocols import registry
from msmqwire.qm.protocols.binary.engine import BinaryEngine
from msmqwire.qm.protocols.binary.states import SessionState
from msmqwire.qm.protocols.binary.transfer import SessionTransfer
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.qm.store import memory_store
from msmqwire.service.store.memory import MemoryStore
from msmqwire.service.virtual.clock import VirtualClock
from msmqwire.service.virtual.loop import VirtualLoop
from tests.support.peers.handwritten_peer import HandwrittenPeer
from tests.support.qm.event_recorder import EventRecorder

OWN_ID, PEER_ID, THIRD_ID = UUID(int=0xA1), UUID(int=0xB2), UUID(int=0xC3)
OWN_ADDRESS, PEER_ADDRESS = "10.0.0.1", "10.0.0.2"
START_UTC = 1_700_000_000
"""Seconds since 1970 at which a harness starts."""
PEER_QUEUE = rf"DIRECT=TCP:{PEER_ADDRESS}\private$\orders"
"""The default destination of messages."""
RECEIVE, PEEK, SEND = (
    QueueAccessType.RECEIVE_ACCESS,
    QueueAccessType.PEEK_ACCESS,
    QueueAccessType.SEND_ACCESS,
)
RECOVERABLE = DeliveryGuarantee.RECOVERABLE


class EngineHarness:
    """A queue manager named ``here``, its store and its clock.

    Tests may call the core without its driver: `run` ends such a turn.

    Attributes:
        store: the committed changes.
        loop: the event loop, in virtual time.
        utc_start: seconds since 1970 at which the clock started.
        effect_log: every effect, with its time in milliseconds.
        hosts: queue managers by the address where a `HandwrittenPeer` answers for them; None if the test
            resolves names and opens connections itself.
        names: addresses by host name, for `hosts`.
        peers: handwritten peers by connection.
        called: the peers that the queue manager has connected to, in order.
    """

    def __init__(
        self,
        store: MemoryStore | None = None,
        *,
        now: int = 0,
        utc: int = START_UTC,
        loop: VirtualLoop | None = None,
        hosts: Mapping[str, UUID] | None = None,
        names: Mapping[str, str] | None = None,
        settings: Settings | None = None,
        **options: Any,
    ) -> None:
        """Start a queue manager over a store.

        Args:
            store: the store of an earlier queue manager; empty by default.
            now: milliseconds of the clock.
            utc: seconds since 1970 at that time.
            loop: the loop of other harnesses, whose clock it shares; a separate one by default.
            hosts: see `EngineHarness`.
            names: see `EngineHarness`.
            settings: the administrator's settings.
            options: fields of `Settings` to change, and arguments of `Core`; both also apply to restarts.
        """
        self.store = memory_store() if store is None else store
        self.loop = loop or _loop_at(now)
        self._clock_start = self.now
        self.utc_start = utc
        self.hosts = None if hosts is None else dict(hosts)
        self.names = dict(names or {})
        self.message_ids: Iterator[int] = itertools.count(1)
        self._guids = itertools.count(0x1000)
        self._settings = settings or Settings()
        self._core_options: dict[str, Any] = {
            "computer_name": "here", "identifier": OWN_ID, "quota": 1 << 40, "addresses": [OWN_ADDRESS],
        }  # fmt: skip
        self._start(options)

    # -- life cycle

    def _start(self, options: Mapping[str, Any]) -> None:
        changed = {name: value for name, value in options.items() if hasattr(self._settings, name)}
        self._settings = replace(self._settings, **changed)
        self._core_options |= {name: value for name, value in options.items() if name not in changed}
        self.effect_log: list[tuple[int, Effect]] = []
        self._seen = 0
        self.peers: dict[int, HandwrittenPeer] = {}
        self.called: list[HandwrittenPeer] = []
        self.core = Core(self.store, new_guid=self.guid, settings=self._settings, **self._core_options)
        clock = VirtualClock(self.loop, lambda: self.utc)
        self.driver = driver = EngineDriver(self.core, self.store, loop=self.loop, clock=clock)
        driver.reporter = None  # tests look at the refusals themselves
        driver.broken.add_done_callback(_raise_fault)
        kinds = [kind for kind in get_args(Effect) if isinstance(kind, type)]
        for kind in (*kinds, *registry.effects()):
            if kind not in (ReadCompleted, ErrorReport):  # which the driver carries out
                driver.perform_by(kind, self._perform)
        performers = driver._performers
        for kind, perform in performers.items():
            performers[kind] = partial(self._recorded, self.effect_log, perform)
        driver.start()
        self.run()

    def _recorded(
        self, log: list[tuple[int, Effect]], perform: Callable[[Any], None], effect: Effect
    ) -> None:
        log.append((self.now, effect))
        perform(effect)

    def restart(self, **options: Any) -> None:
        """Kill the process and start another over the committed changes."""
        self.driver.abandon()
        self._start(options)

    def restarted(self, *, stop: bool = False, **options: Any) -> Self:
        """Return a harness for a new process over a copy of the store, a second later.

        The old process was killed, or stopped in an orderly way.
        """
        if stop:
            self.stop()
        twin = type(self).__new__(type(self))
        vars(twin).update(vars(self))
        twin.store, twin.loop = self.store.copy(), _loop_at(self.now + 1_000)
        twin._core_options = dict(self._core_options)
        twin._start(options)
        return twin

    def stop(self) -> None:
        """Stop in an orderly way."""
        self.core.stop()
        self.run()

    def run(self) -> list[Effect]:
        """End this turn and the turns of its effects; return the effects.

        While an effect is carried out this only asks for another turn. Raises the exceptions of the core.
        """
        self.driver.notify(lambda: None)  # it may not know that the core has been called
        return [] if self.loop.is_running() else self.set_clock(self.now)

    def _perform(self, effect: Effect) -> None:
        match effect:
            case Send(connection, data) if connection in self.peers:
                self.peers[connection].hear(data)
            case Disconnect(connection) if connection in self.peers:
                self.peers[connection].closed = True
            case Resolve(request, host) if self.hosts is not None:
                address = self.names.get(host, host)
                addresses = [address] if address in self.hosts else []
                self.driver.notify(self.engine.resolved, request, addresses)
            case Connect(connection, address, _) if self.hosts is not None and address in self.hosts:
                peer = HandwrittenPeer(self, connection, self.hosts[address], answers=True)
                self.called.append(peer)
                self.driver.notify(self.engine.connected, connection)

    # -- time

    @property
    def now(self) -> int:
        """Milliseconds of the clock."""
        return self.loop.now_ms

    @property
    def utc(self) -> int:
        """Seconds since 1970."""
        return self.utc_start + (self.now - self._clock_start) // 1000

    def set_clock(self, now: int) -> list[Effect]:
        """Set the clock in milliseconds, with each timer expiring when due; return the effects."""
        before = len(self.effect_log)
        self.loop.run_until(now / 1000)
        return self._effects_from(before)

    def advance(self, milliseconds: int) -> list[Effect]:
        """Let time pass, with each timer expiring when due; return the effects."""
        return self.run() + self.set_clock(self.now + milliseconds) + self.run()

    def time_left(self, timer: TimerKind, key: object = None) -> int | None:
        """Milliseconds until a timer expires, or None if it is not running."""
        armed = self.core.context.timers._armed.get((timer, key))  # type: ignore[arg-type]
        return None if armed is None else armed.due - self.core.context.now

    # -- effects

    @property
    def effects(self) -> list[Effect]:
        """All effects so far."""
        return self._effects_from(0)

    def _effects_from(self, place: int) -> list[Effect]:
        return [effect for _, effect in self.effect_log[place:]]

    def new_effects(self) -> list[Effect]:
        """The effects since the last call."""
        self.run()
        effects = self._effects_from(self._seen)
        self._seen = len(self.effect_log)
        return effects

    def effects_of(self, kind: type[Any]) -> list[Any]:
        """All effects of a kind so far."""
        return [effect for effect in self.effects if isinstance(effect, kind)]

    def last_effect(self, kind: type[Any]) -> Any:
        return self.effects_of(kind)[-1]

    def forget_effects(self) -> None:
        self.effect_log.clear()
        self._seen = 0

    # -- queues

    def guid(self) -> UUID:
        """A new GUID."""
        return UUID(int=next(self._guids))

    def _pathname(self, name: str, public: bool) -> str:
        folder = "" if public or "\\" in name else "private$\\"
        return f"{self.core.queue_manager.computer_name}\\{folder}{name}"

    def queue_template(self, name: str = "orders", *, public: bool = False, **attributes: Any) -> Queue:
        """A queue to pass to Create Queue, private unless `public`."""
        queue = Queue(NULL_GUID)
        self.core.queues.set_defaults(queue)
        queue.pathname = self._pathname(name, public)
        for attribute, value in attributes.items():
            setattr(queue, attribute, value)
        return queue

    def queue(self, name: str = "orders", *, public: bool = False, **attributes: Any) -> Queue:
        """Create a queue."""
        status, queue = self.core.queues.create(self.queue_template(name, public=public, **attributes))
        assert status == MQ_OK, hex(status)
        assert queue is not None
        self.run()
        return queue

    def find_queue(self, name: str = "orders", *, public: bool = False) -> Queue:
        """Return an existing queue, or subqueue ``queue;subqueue``."""
        name, _, subqueue = name.partition(";")
        queue = self.core.queues.lookup.path(self._pathname(name, public))
        assert queue is not None
        return queue.subqueues[subqueue] if subqueue else queue

    def open(
        self,
        queue: Queue | FormatName | str,
        access: QueueAccessType = RECEIVE,
        share: QueueShareMode = QueueShareMode.DENY_NONE,
    ) -> OpenQueueDescriptor:
        """Open a queue."""
        status, descriptor = self.core.queues.open(format_name(queue), access, share)
        assert status == MQ_OK, hex(status)
        assert descriptor is not None
        return descriptor

    def open_to_send(self, name: FormatName | str = PEER_QUEUE) -> OpenQueueDescriptor:
        """Return a queue open for sending, opening it if necessary."""
        name = format_name(name)
        for queue in self.core.queue_manager.queues.values():
            for descriptor in queue.descriptors.values():
                if descriptor.format_name == name and descriptor.access_type is SEND:
                    return descriptor
        return self.open(name, SEND)

    def outgoing(self, name: str = PEER_QUEUE) -> OutgoingQueue:
        """Return the outgoing queue to a destination, opening it if necessary."""
        queue = self.core.queues.lookup.outgoing(format_name(name)) or self.open(name, SEND).queue
        assert isinstance(queue, OutgoingQueue)
        return queue

    def transfer(self, name: str = PEER_QUEUE) -> SessionTransfer:
        """The transfer out of an outgoing queue."""
        return self.engine.transfer_table.transfer_of(self.outgoing(name))

    # -- messages

    def begin(self) -> Transaction:
        """Begin a transaction."""
        return self.core.transactions.create(self.guid())

    def send(
        self,
        *bodies: bytes,
        to: OpenQueueDescriptor | str = PEER_QUEUE,
        count: int = 1,
        recoverable: bool = False,
        transactional: bool = False,
        **attributes: Any,
    ) -> list[Message]:
        """Send application messages with these `bodies`, or `count` numbered ones.

        Transactional messages are sent in a single transaction, which is committed.
        """
        descriptor = self.open_to_send(to) if isinstance(to, str) else to
        transaction = self.begin() if transactional else None
        if recoverable:
            attributes["delivery_guarantee"] = RECOVERABLE
        if not bodies:
            bodies = tuple(b"m%d" % number for number in range(count))
        messages = [Message(**{"body": body} | attributes) for body in bodies]
        for message in messages:
            assert self.core.send(descriptor, message, transaction) is EnqueueStatus.OK
        if transaction is not None:
            assert self.core.commit(transaction) == MQ_OK
        self.run()
        return messages

    def enqueue(
        self, queue: Queue, body: bytes = b"", transaction: Transaction | None = None, **attributes: Any
    ) -> MessagePosition:
        """Put a message into a queue where it stays; return its position."""
        message = self.enqueue_message(queue, body, transaction, **attributes)
        position = queue.positions.find(message.lookup_identifier)
        assert position is not None
        return position

    def enqueue_message(
        self, queue: Queue, body: bytes = b"", transaction: Transaction | None = None, **attributes: Any
    ) -> Message:
        """Put a message into a queue, from which a waiting read may remove it at once."""
        message = Message(body=body, **attributes)
        assert self.core.messages.enqueue(queue, message, transaction) is EnqueueStatus.OK
        return message

    def receive(self, queue: Queue | str) -> bytes | None:
        """Receive the next message of a queue; return its body, or None if the queue is empty."""
        descriptor = self.open(queue)
        read = self.core.messages.dequeue(descriptor, timeout=0)
        self.core.queues.close(descriptor)
        self.run()
        return None if read.message is None else read.message.body

    def record_events(self) -> EventRecorder:
        """Record message and queue events from now on."""
        recorder = EventRecorder()
        self.core.context.subscribers.append(recorder)
        return recorder

    def rows(self, table: Table) -> dict[Any, bytes]:
        """The committed rows of a table."""
        return dict(self.store.rows(table))

    # -- connections

    @property
    def engine(self) -> BinaryEngine:
        return self.core.binary

    def route_to(self, identifier: UUID, host: str) -> None:
        """Make a queue manager the next hop to all destinations."""
        hops = [QueueManager(identifier, qualified_computer_name=host)]
        self.core.routing.get_next_hops = lambda _: hops  # type: ignore[method-assign]

    def resolve(self, *addresses: str) -> None:
        """Answer the last request to resolve a name."""
        self.engine.resolved(self.last_effect(Resolve).request, addresses)
        self.run()

    def connect(self) -> HandwrittenPeer:
        """Let the last attempt to connect succeed."""
        peer = HandwrittenPeer(self, self.last_effect(Connect).connection, PEER_ID)
        self.engine.connected(peer.connection)
        self.run()
        return peer

    def request_session(
        self, *, to: str = PEER_QUEUE, addresses: Collection[str] = (PEER_ADDRESS,), **message: Any
    ) -> HandwrittenPeer:
        """Send messages and proceed as far as the EstablishConnection request."""
        self.send(to=to, **message)
        self.resolve(*addresses)
        return self.connect()

    def open_session(self, *, to: str = PEER_QUEUE, **message: Any) -> HandwrittenPeer:
        """Send messages over a new session that the queue manager initiates."""
        peer = self.request_session(to=to, **message)
        peer.answer_handshake()
        assert peer.session.state is SessionState.OPEN
        return peer

    def accept_connection(self, address: str = PEER_ADDRESS, client: UUID = PEER_ID) -> HandwrittenPeer:
        """Accept a connection."""
        connection = self.engine.next_connection()
        self.engine.accepted(connection, address)
        peer = HandwrittenPeer(self, connection, client)
        self.run()
        return peer

    def accept_session(
        self,
        *,
        client: UUID = PEER_ID,
        server: UUID = OWN_ID,
        address: str = PEER_ADDRESS,
        window: int = 64,
        **parameters: Any,
    ) -> HandwrittenPeer:
        """Accept a session that a peer initiates."""
        peer = self.accept_connection(address, client)
        peer.window = window
        peer.send(peer.establish(server=server), peer.parameters(window=window, **parameters))
        assert peer.session.state is SessionState.OPEN
        peer.take()
        return peer


def _loop_at(now: int) -> VirtualLoop:
    loop = VirtualLoop()
    loop.run_until(now / 1000)
    return loop


def _raise_fault(broken: asyncio.Future[MsmqError]) -> None:
    failure = broken.result()
    raise failure.why if isinstance(failure, EngineFailed) else failure


def harness_with_peer(**options: Any) -> EngineHarness:
    """A harness whose peer answers at PEER_ADDRESS."""
    return EngineHarness(hosts={PEER_ADDRESS: PEER_ID}, **options)


def format_name(queue: Queue | FormatName | str) -> FormatName:
    """The format name of a queue; a direct one for a queue element."""
    if isinstance(queue, Queue):
        queue = f"DIRECT=OS:{queue.pathname}"
    return parse_format_name(queue) if isinstance(queue, str) else queue
