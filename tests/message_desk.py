"""A queue manager whose peers are played by hand: their packets are written with `tests.handmade` alone.

`Desk` is one core over a memory store, in a time that is set; `Peer` the other side of one of its sessions,
which says nothing by itself once the session is open. `Net` joins cores with each other.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Collection
from typing import Any
from uuid import UUID

from msmqwire.names import parse_format_name
from msmqwire.packets import parse
from msmqwire.qm.core import Core
from msmqwire.qm.directory.embedded import EmbeddedDirectory
from msmqwire.qm.manager.routing import Routes
from msmqwire.qm.model.effects import Connect, Disconnect, Effect, Resolve, Send
from msmqwire.qm.model.elements import OpenQueueDescriptor, OutgoingQueue, Queue, Transaction
from msmqwire.qm.model.message import NULL_GUID, Message
from msmqwire.qm.model.settings import Settings
from msmqwire.qm.model.values import EnqueueStatus, QueueAccessType
from msmqwire.qm.store.memory import MemoryStore
from msmqwire.schema import Record
from tests import handmade

HERE, THERE, BEHIND = UUID(int=0xA0), UUID(int=0xB0), UUID(int=0xC0)
ADDRESS, PEER_ADDRESS = "10.0.0.1", "10.0.0.9"
UTC = 1_700_000_000
# UserHeader.Flags, MessagePropertiesHeader.Flags
DM, JN, JP = 0x20, 0x100, 0x200
PA, PR, NA, NR = 1, 2, 4, 8


def direct(queue: str = "orders", address: str = ADDRESS) -> tuple[int, bytes]:
    """DQ, AQ or RQ with the direct name of a private queue."""
    return 7, handmade.direct_name(f"TCP:{address}\\private$\\{queue}")


def make_queue(core: Core, name: str, **attributes: Any) -> Queue:
    queue = Queue(NULL_GUID)
    core.queues.set_defaults(queue)
    queue.pathname = f"{core.queue_manager.computer_name}\\private$\\{name}"
    for attribute, value in attributes.items():
        setattr(queue, attribute, value)
    status, made = core.queues.create(queue)
    assert status == 0 and made is not None
    return made


def bodies(queue: Queue | None) -> list[bytes]:
    assert queue is not None
    return [position.message.body for position in queue.positions]


def messages(queue: Queue | None) -> list[Message]:
    assert queue is not None
    return [position.message for position in queue.positions]


class Peer:
    """The other side of one session; `packets` is what has come to it.

    Attributes:
        sent, recoverable: messages sent by this side.
        received, saved: messages received, and recoverable ones.
    """

    def __init__(self, desk: Desk, connection: int, guid: UUID, address: str) -> None:
        self.desk, self.connection, self.guid, self.address = desk, connection, guid, address
        self.packets: list[Record] = []
        self.raw: list[bytes] = []
        self.closed = False
        self.sent = self.recoverable = self.received = self.saved = self._acked = 0
        self.window = 64

    # -- from it --

    def put(self, data: bytes) -> None:
        """Bytes to the queue manager."""
        if not self.closed:
            self.desk.core.engine.received(self.connection, data)
            self.desk.run()

    def send(self, body: bytes = b"x", **how: Any) -> int:
        """A UserMessage; gives its MessageID. `how` is that of `packet`."""
        how.setdefault("message_id", next(self.desk.identifiers))
        header = how.pop("session", None)
        self.sent += 1
        self.recoverable += how.get("recoverable", False) or how.get("tx") is not None
        if header:
            how["session"] = self.header()
        self.put(self.packet(body, **how))
        return int(how["message_id"])

    def packet(
        self,
        body: bytes = b"x",
        *,
        message_id: int = 1,
        tx: tuple[int, int] | tuple[int, int, int] | None = None,
        recoverable: bool = False,
        priority: int = 3,
        acks: int = 0,
        admin: tuple[int, bytes] = (0, b""),
        flags: int = 0,
        destination: tuple[int, bytes] | None = None,
        address: bytes = handmade.NULL_GUID,
        source: UUID | None = None,
        sent_time: int | None = None,
        reach: int = handmade.INFINITE,
        receive: int = handmade.INFINITE,
        trace: UUID | None = None,
        hops: int = 0,
        security: bytes = b"",
        session: bytes = b"",
        label: str | None = None,
        message_class: int = 0,
        privacy: int = 0,
    ) -> bytes:
        """A UserMessage. `tx` is number and previous number, and the ordinal of the sequence (default 1)."""
        transaction = b""
        if tx is not None:
            recoverable, priority = True, 0
            transaction = handmade.transaction_header(
                number=tx[0], previous=tx[1], ordinal=tx[2] if len(tx) == 3 else 1
            )
        return handmade.user_message(
            user=handmade.user_header(
                source=(source or self.guid).bytes_le,
                address=address,
                time_to_be_received=receive,
                sent_time=self.desk.utc if sent_time is None else sent_time,
                message_id=message_id,
                flags=handmade.MP | flags | hops | (DM if recoverable else 0),
                destination=destination or direct(),
                admin=admin,
            ),
            transaction=transaction,
            security=security,
            properties=handmade.properties_header(
                flags=acks, body=body, label=label, message_class=message_class, privacy_level=privacy
            ),
            debug=b"" if trace is None else handmade.debug_header(trace.bytes_le),
            session=session,
            flags=priority | (handmade.TR if trace else 0),
            time_to_reach_queue=reach,
        )

    def header(self, **changed: int) -> bytes:
        """A SessionHeader that acknowledges all that has come."""
        fields = {
            "ack": self.received,
            "recoverable_ack": self._acked + 1 if self.saved > self._acked else 0,
            "recoverable_flags": (1 << (self.saved - self._acked)) - 1,
            "sent": self.sent,
            "recoverable_sent": self.recoverable,
            "window": self.window,
        }
        self._acked = self.saved
        return handmade.session_header(**{**fields, **changed})

    def acknowledge(self, **changed: int) -> None:
        """A SessionAck for all that has come."""
        self.put(handmade.session_ack(self.header(**changed)))

    def order_ack(self, sequence: tuple[int, int], number: int) -> None:
        """An OrderAck; the sequence as (TimeStamp, Ordinal)."""
        self.sent += 1
        time_stamp, ordinal = sequence
        self.put(
            handmade.order_ack(
                handmade.order_ack_body(
                    ordinal=ordinal, time_stamp=time_stamp, number=number, previous=number - 1
                ),
                destination=direct("order_queue$"),
            )
        )

    def final_ack(self, packet: Record, message_class: int = 0x4000) -> None:
        """A FinalAck for a message that came."""
        self.sent, self.recoverable = self.sent + 1, self.recoverable + 1
        header = packet.TransactionHeader
        body = handmade.final_ack_body(
            ordinal=header.TxSequenceID.Ordinal,
            time_stamp=header.TxSequenceID.TimeStamp,
            number=header.TxSequenceNumber,
            previous=header.PreviousTxSequenceNumber,
            source=packet.UserHeader.SourceQueueManager.bytes_le,
            message_id=packet.UserHeader.MessageID,
        )
        self.put(
            handmade.final_ack(body, destination=direct("order_queue$"), message_class=message_class)
        )

    def drop(self) -> None:
        """The connection is lost."""
        if not self.closed:
            self.closed = True
            self.desk.core.engine.disconnected(self.connection)
            self.desk.run()

    # -- to it --

    def take(self, kind: str | None = None) -> list[Record]:
        """The packets that have come since the last call, or those of them of a kind."""
        found, self.packets = self.packets, []
        return [packet for packet in found if kind is None or packet.schema.name == kind]

    def kinds(self) -> list[str]:
        return [packet.schema.name for packet in self.take()]

    def sent_bodies(self) -> list[bytes]:
        """The bodies of the UserMessages that have come since the last call."""
        return [packet.MessagePropertiesHeader.MessageBody for packet in self.take("UserMessage")]

    def came(self, data: bytes) -> None:
        packet = parse(data)
        self.raw.append(data)
        self.packets.append(packet)
        kind = packet.schema.name
        if kind in ("UserMessage", "OrderAck", "FinalAck"):
            self.received += 1
            self.saved += packet.UserHeader.Flags.DM
        elif kind == "EstablishConnection" and self.initiated:
            self.packets.pop()
            self.put(handmade.connection_parameters(self._parameters()))
        elif kind == "EstablishConnection":
            self.packets.pop()
            header = packet.EstablishConnectionHeader
            self.put(
                handmade.establish_connection(
                    handmade.establish_connection_header(
                        client=header.ClientGuid.bytes_le,
                        server=self.guid.bytes_le,
                        time_stamp=header.TimeStamp,
                    )
                )
            )
        elif kind == "ConnectionParameters":
            self.packets.pop()
            if not self.initiated:
                self.put(handmade.connection_parameters(self._parameters()))

    initiated = False

    def begin(self) -> None:
        """Open the session from here."""
        self.initiated = True
        self.put(
            handmade.establish_connection(
                handmade.establish_connection_header(
                    client=self.guid.bytes_le, server=handmade.NULL_GUID, time_stamp=7
                )
            )
        )

    def _parameters(self) -> bytes:
        return handmade.connection_parameters_header(
            recoverable_ack_timeout=500, ack_timeout=20_000, window=self.window
        )


class Desk:
    """One queue manager. `effects` are all that it wanted done, but packets to peers."""

    RECEIVE = QueueAccessType.RECEIVE_ACCESS

    def __init__(
        self,
        *,
        store: MemoryStore | None = None,
        settings: Settings | None = None,
        directory: EmbeddedDirectory | None = None,
        routes: Routes | None = None,
        now: int = 0,
        quota: int = 1 << 40,
    ) -> None:
        self.now, self.start = now, UTC
        self.store = MemoryStore() if store is None else store
        numbers = itertools.count(0x1000)
        self.core = Core(
            self.store, new_guid=lambda: UUID(int=next(numbers) << 64 | now), computer_name="here",
            settings=settings, addresses=[ADDRESS], directory=directory, routes=routes, identifier=HERE,
            quota=quota,
        )  # fmt: skip
        self.how = {"settings": settings, "directory": directory, "routes": routes, "quota": quota}
        self.identifiers = itertools.count(1)
        self.hosts = {PEER_ADDRESS: THERE}
        self.names: dict[str, str] = {}
        self.peers: dict[int, Peer] = {}
        self.called: list[Peer] = []
        self.effects: list[Effect] = []
        self._running = False
        self.core.at(self.now, self.utc)
        self.core.start()
        self.run()

    @property
    def utc(self) -> int:
        return self.start + self.now // 1000

    def run(self) -> None:
        """Carry out what the core wants, in its order, each after its changes are durable."""
        if self._running:
            return
        self._running = True
        while True:
            changes, effects = self.core.take()
            if not changes and not effects:
                break
            self.store.commit(changes)
            self._running = False  # answers to effects may come at once
            for effect in effects:
                self._do(effect)
            self._running = True
        self._running = False

    def _do(self, effect: Effect) -> None:
        engine = self.core.engine
        if isinstance(effect, Send):
            peer = self.peers.get(effect.connection)
            if peer is not None and not peer.closed:
                peer.came(effect.data)
            return
        self.effects.append(effect)
        if isinstance(effect, Resolve):
            address = self.names.get(effect.host, effect.host)
            engine.resolved(effect.request, [address] if address in self.hosts else [])
        elif isinstance(effect, Connect) and effect.address in self.hosts:
            self.peers[effect.connection] = peer = Peer(
                self, effect.connection, self.hosts[effect.address], effect.address
            )
            self.called.append(peer)
            engine.connected(effect.connection)
        elif isinstance(effect, Disconnect):
            peer = self.peers.get(effect.connection)
            if peer is not None:
                peer.closed = True

    def peer(self, guid: UUID = THERE, address: str = PEER_ADDRESS, window: int = 64) -> Peer:
        """A peer that has opened a session."""
        connection = self.core.engine.next_connection()
        self.peers[connection] = peer = Peer(self, connection, guid, address)
        peer.window = window
        self.core.engine.accepted(connection, address)
        peer.begin()
        peer.take()
        return peer

    def passes(self, ms: int) -> None:
        """Time passes; what falls due happens at its time."""
        end = self.now + ms
        while (due := self.core.deadline) is not None and due <= end:
            self.now = max(self.now, due)
            self.core.at(self.now, self.utc)
            self.run()
        self.now = end
        self.core.at(self.now, self.utc)
        self.run()

    def restart(self) -> Desk:
        """What comes up again after a crash, a second later."""
        twin = Desk(store=self.store.copy(), now=self.now + 1000, **self.how)  # type: ignore[arg-type]
        twin.hosts, twin.identifiers, twin.names = self.hosts, self.identifiers, self.names
        return twin

    # -- queues and messages --

    def queue(self, name: str = "orders", **attributes: Any) -> Queue:
        made = make_queue(self.core, name, **attributes)
        self.run()
        return made

    def open(
        self,
        name: str = f"DIRECT=TCP:{PEER_ADDRESS}\\private$\\far",
        access: QueueAccessType = QueueAccessType.SEND_ACCESS,
    ) -> OpenQueueDescriptor:
        status, descriptor = self.core.queues.open(parse_format_name(name), access)
        assert status == 0 and descriptor is not None
        return descriptor

    def outgoing(self, name: str = f"DIRECT=TCP:{PEER_ADDRESS}\\private$\\far") -> OutgoingQueue:
        queue = self.core.queues.lookup.outgoing(parse_format_name(name))
        assert queue is not None
        return queue

    def send(self, *bodies: bytes, to: OpenQueueDescriptor | None = None, **attributes: Any) -> list[Message]:
        """Messages of an application, not in a transaction."""
        to = to or self.open()
        made = [Message(body=body, **attributes) for body in bodies]
        for message in made:
            assert self.core.send(to, message) is EnqueueStatus.OK
        self.run()
        return made

    def send_all(
        self, *bodies: bytes, to: OpenQueueDescriptor | None = None, **attributes: Any
    ) -> list[Message]:
        """Messages of an application in one transaction, committed."""
        to = to or self.open()
        transaction = self.begin()
        made = [Message(body=body, **attributes) for body in bodies]
        for message in made:
            assert self.core.send(to, message, transaction) is EnqueueStatus.OK
        assert self.core.commit(transaction) == 0
        self.run()
        return made

    def begin(self) -> Transaction:
        return self.core.transactions.create(UUID(int=next(self.identifiers) << 32))

    def receive(self, queue: Queue) -> bytes | None:
        """An application takes the next message of a queue."""
        status, descriptor = self.core.queues.open(
            parse_format_name(f"DIRECT=OS:{queue.pathname}"), QueueAccessType.RECEIVE_ACCESS
        )
        assert status == 0 and descriptor is not None
        found = self.core.messages.dequeue(descriptor, timeout=0)
        self.core.queues.close(descriptor)
        self.run()
        return None if found.message is None else found.message.body


def fields_of(packet: bytes) -> tuple[int, ...]:
    """The SessionHeader at the end of a SessionAck."""
    return struct.unpack("<HHLHHHH", packet[-16:])


class Net:
    """Cores that reach each other; `log` is every packet as (from, to, kind, packet)."""

    def __init__(self) -> None:
        self.now = 0
        self.nodes: dict[str, tuple[str, Core, MemoryStore]] = {}
        self.links: dict[tuple[str, int], tuple[str, int]] = {}
        self.log: list[tuple[str, str, str, Record]] = []
        self.loses: Callable[[str, str, Record], bool] = lambda sender, receiver, packet: False
        self.numbers = itertools.count(0x2000)

    def node(
        self, name: str, address: str, identifier: UUID, *, addresses: Collection[str] = (), **how: Any
    ) -> Core:
        store = how.pop("store", None) or MemoryStore()
        core = Core(
            store, new_guid=lambda: UUID(int=next(self.numbers) << 64), computer_name=name,
            addresses=[address, *addresses], identifier=identifier, quota=1 << 40, **how,
        )  # fmt: skip
        core.at(self.now, UTC + self.now // 1000)
        core.start()
        self.nodes[address] = name, core, store
        self.run()
        return core

    def run(self) -> None:
        busy = True
        while busy:
            busy = False
            for address, (name, core, store) in list(self.nodes.items()):
                changes, effects = core.take()
                store.commit(changes)
                for effect in effects:
                    busy = True
                    self._do(address, name, core, effect)

    def _do(self, address: str, name: str, core: Core, effect: Effect) -> None:
        if isinstance(effect, Resolve):
            found = [one for one, (other, _, _) in self.nodes.items() if effect.host in (other, one)]
            core.engine.resolved(effect.request, found)
        elif isinstance(effect, Connect):
            other = self.nodes[effect.address][1]
            connection = other.engine.next_connection()
            self.links[address, effect.connection] = effect.address, connection
            self.links[effect.address, connection] = address, effect.connection
            other.engine.accepted(connection, address)
            core.engine.connected(effect.connection)
        elif isinstance(effect, Send):
            link = self.links.get((address, effect.connection))
            if link is None:
                return
            to, other, _ = self.nodes[link[0]]
            packet = parse(effect.data)
            self.log.append((name, to, packet.schema.name, packet))
            if not self.loses(name, to, packet):
                other.engine.received(link[1], effect.data)
        elif isinstance(effect, Disconnect):
            self.cut(address, effect.connection)

    def cut(self, address: str, connection: int) -> None:
        """A connection is lost."""
        link = self.links.pop((address, connection), None)
        if link is not None and self.links.pop(link, None) is not None:
            self.nodes[link[0]][1].engine.disconnected(link[1])

    def passes(self, ms: int) -> None:
        end = self.now + ms
        while True:
            deadlines = [core.deadline for _, core, _ in self.nodes.values()]
            due = min((one for one in deadlines if one is not None), default=end + 1)
            if due > end:
                break
            self.now = max(self.now, due)
            self._tell()
        self.now = end
        self._tell()

    def _tell(self) -> None:
        for _, core, _ in self.nodes.values():
            core.at(self.now, UTC + self.now // 1000)
        self.run()

    def between(self, sender: str, receiver: str, *kinds: str) -> list[Record]:
        """The packets that went from one to another."""
        return [
            packet
            for one, other, kind, packet in self.log
            if (one, other) == (sender, receiver) and (not kinds or kind in kinds)
        ]


def acks(queue: Queue) -> list[int]:
    """The classes of the acknowledgements in an administration queue."""
    return [message.message_class for message in messages(queue)]
