"""A queue manager whose peers are played by hand: their packets are written with `handmade` alone.

`Desk` is one core over a memory store, in a time that is set; `Peer` the other side of one of its sessions,
which says nothing by itself once the session is open.
"""

from __future__ import annotations

import itertools
import struct
from typing import Any
from uuid import UUID

from msmqwire.names import parse_format_name
from msmqwire.packets import parse
from msmqwire.qm.core import Core
from msmqwire.qm.directory.embedded import EmbeddedDirectory
from msmqwire.qm.model.effects import Connect, Disconnect, Effect, Resolve, Send
from msmqwire.qm.model.elements import OpenQueueDescriptor, OutgoingQueue, Queue, Transaction
from msmqwire.qm.model.enumerations import EnqueueStatus, QueueAccessType
from msmqwire.qm.model.message import NULL_GUID, Message
from msmqwire.qm.model.settings import Settings
from msmqwire.qm.protocols.binary.transfer import Transfer
from msmqwire.qm.rules.routing import Routes
from msmqwire.qm.store.memory import MemoryStore
from msmqwire.schema import Record
from tests.support import handmade

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
    assert status == 0, hex(status)
    assert made is not None
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
        acks: the fields of the SessionHeaders of all SessionAcks that have come.
        raw: all packets that have come, as bytes.
        sent, recoverable: messages sent by this side.
        received, saved: messages received, and recoverable ones.
    """

    def __init__(self, desk: Desk, connection: int, guid: UUID, address: str) -> None:
        self.desk, self.connection, self.guid, self.address = desk, connection, guid, address
        self.packets: list[Record] = []
        self.raw: list[bytes] = []
        self.acks: list[tuple[int, ...]] = []
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
        self.put(handmade.final_ack(body, destination=direct("order_queue$"), message_class=message_class))

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

    def sent_in_order(self) -> list[tuple[bytes, int, int, int]]:
        """Body, ordinal of the sequence, number and previous number of what has come in transactions."""
        return [
            (
                packet.MessagePropertiesHeader.MessageBody,
                packet.TransactionHeader.TxSequenceID.Ordinal,
                packet.TransactionHeader.TxSequenceNumber,
                packet.TransactionHeader.PreviousTxSequenceNumber,
            )
            for packet in self.take("UserMessage")
        ]

    def came(self, data: bytes) -> None:
        packet = parse(data)
        self.raw.append(data)
        self.packets.append(packet)
        kind = packet.schema.name
        if kind == "SessionAck":
            self.acks.append(struct.unpack("<HHLHHHH", data[-16:]))
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
        hosts: dict[str, UUID] | None = None,
        names: dict[str, str] | None = None,
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
        self.hosts = {PEER_ADDRESS: THERE} if hosts is None else hosts
        self.names = names or {}
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
        twin = Desk(
            store=self.store.copy(), now=self.now + 1000, hosts=self.hosts, names=self.names,
            **self.how,  # type: ignore[arg-type]
        )  # fmt: skip
        twin.identifiers = self.identifiers
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
        assert status == 0, hex(status)
        assert descriptor is not None
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

    def transfer(self) -> Transfer:
        """The transfer out of the queue that `send` uses."""
        return self.core.engine.transfers[self.outgoing().number]

    def begin(self) -> Transaction:
        return self.core.transactions.create(UUID(int=next(self.identifiers) << 32))

    def receive(self, queue: Queue) -> bytes | None:
        """An application takes the next message of a queue."""
        status, descriptor = self.core.queues.open(
            parse_format_name(f"DIRECT=OS:{queue.pathname}"), QueueAccessType.RECEIVE_ACCESS
        )
        assert status == 0, hex(status)
        assert descriptor is not None
        found = self.core.messages.dequeue(descriptor, timeout=0)
        self.core.queues.close(descriptor)
        self.run()
        return None if found.message is None else found.message.body


def acks(queue: Queue) -> list[int]:
    """The classes of the acknowledgements in an administration queue."""
    return [message.message_class for message in messages(queue)]
