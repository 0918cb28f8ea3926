"""One queue manager without I/O at a desk, opposite a peer whose packets are written and read by hand.

What the peer says comes from `tests.support.handmade`, what it hears is cut and read here by offsets:
nothing of the library's codec is asked. `Desk` has a settable time and writes down every effect.
"""

from __future__ import annotations

import struct
from collections.abc import Collection
from dataclasses import replace
from typing import Any, NamedTuple
from uuid import UUID

from msmqwire.names import parse_format_name
from msmqwire.qm.core import Core
from msmqwire.qm.model.effects import Connect, Disconnect, Effect, Resolve, Send, SendDatagram
from msmqwire.qm.model.elements import OpenQueueDescriptor, OutgoingQueue, Queue, QueueManager
from msmqwire.qm.model.enumerations import DeliveryGuarantee, EnqueueStatus, QueueAccessType
from msmqwire.qm.model.message import NULL_GUID, Message
from msmqwire.qm.model.settings import Settings
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.protocols.binary.session import Session
from msmqwire.qm.protocols.binary.states import SessionState
from msmqwire.qm.protocols.binary.transfer import Transfer
from msmqwire.qm.rules.routing import Routes
from msmqwire.qm.store.memory import MemoryStore
from tests.support import handmade as h

OWN, OTHER = UUID(int=0xA1), UUID(int=0xB2)
THIRD = UUID(int=0xC3)
HERE, THERE = "10.0.0.1", "10.0.0.2"
UTC = 1_700_000_000
DIRECT = rf"DIRECT=TCP:{THERE}\private$\orders"
DM = 0x20
"""UserHeader.Flags: a recoverable message."""
QUOTA = 1 << 40


# -- packets, read by hand ------------------------------------------------------------------------------


class Header(NamedTuple):
    """A SessionHeader: [MS-MQMQ] 2.2.20.4."""

    ack: int
    recoverable_ack: int
    flags: int
    sent: int
    recoverable_sent: int
    window: int
    reserved: int


def base_flags(packet: bytes) -> int:
    return int.from_bytes(packet[2:4], "little")


def internal_flags(packet: bytes) -> int:
    return int.from_bytes(packet[18:20], "little")


def kind(packet: bytes) -> str:
    """EC, CP, SA for packets of the session, UM for all others."""
    if base_flags(packet) & h.IN:
        return {1: "SA", 2: "EC", 3: "CP"}[internal_flags(packet) & 0x0F]
    return "UM"


def header(packet: bytes) -> Header | None:
    """The SessionHeader at the end of a packet; None for a packet without one."""
    if not base_flags(packet) & h.BASE_SH:
        return None
    return Header._make(struct.unpack("<HHLHHHH", packet[-16:]))


def message_id(packet: bytes) -> int:
    return int.from_bytes(packet[56:60], "little")


def is_recoverable(packet: bytes) -> bool:
    return bool(int.from_bytes(packet[60:64], "little") & DM)


def cut(stream: bytes) -> list[bytes]:
    """The packets of a stream: a UserMessage leaves its SessionHeader out of PacketSize."""
    found = []
    while stream:
        size = int.from_bytes(stream[8:12], "little")
        if base_flags(stream) & h.BASE_SH and not base_flags(stream) & h.IN:
            size += 16
        assert 16 <= size <= len(stream), "a packet is sent whole"
        found.append(stream[:size])
        stream = stream[size:]
    return found


# -- the desk -------------------------------------------------------------------------------------------


class Desk:
    """A queue manager, its store and its clock.

    Attributes:
        log: every effect, with the time in milliseconds at which it came.
        peers: hand-made peers by connection.
    """

    def __init__(
        self,
        store: MemoryStore | None = None,
        *,
        now: int = 5_000,
        utc: int = UTC,
        routes: Routes | None = None,
        directory: Any = None,
        identifier: UUID = OWN,
        name: str = "alpha",
        address: str = HERE,
        start: bool = True,
        **settings: Any,
    ) -> None:
        self.store = MemoryStore() if store is None else store
        self.now, self.began, self.utc_began = now, now, utc
        self._guids = 0
        self.log: list[tuple[int, Effect]] = []
        self._read = 0
        self.peers: dict[int, Peer] = {}
        self.core = Core(
            self.store, new_guid=self._guid, computer_name=name, addresses=[address], routes=routes,
            directory=directory, identifier=identifier, quota=QUOTA, settings=replace(Settings(), **settings),
        )  # fmt: skip
        self.engine = self.core.engine
        self.core.at(self.now, self.utc)
        if start:
            self.core.start()
            self.take()

    def _guid(self) -> UUID:
        self._guids += 1
        return UUID(int=0x5000 + self._guids)

    @property
    def utc(self) -> int:
        return self.utc_began + (self.now - self.began) // 1000

    def restart(self, *, stop: bool = False, **changes: Any) -> Desk:
        """What a new process finds: after a stop in good order, or after a kill."""
        if stop:
            self.core.stop()
            self.take()
        manager = self.core.queue_manager
        return Desk(self.store.copy(), utc=self.utc + 60, name=manager.computer_name, **changes)

    # -- effects

    def take(self) -> list[Effect]:
        """Commit, write down and hand out what the last step wants done."""
        changes, effects = self.core.take()
        self.store.commit(changes)
        for effect in effects:
            self.log.append((self.now, effect))
            if isinstance(effect, Send) and effect.connection in self.peers:
                self.peers[effect.connection].heard(effect.data)
            if isinstance(effect, Disconnect) and effect.connection in self.peers:
                self.peers[effect.connection].closed = True
        return effects

    def news(self) -> list[Effect]:
        """The effects since the last call."""
        self.take()
        found = [effect for _, effect in self.log[self._read :]]
        self._read = len(self.log)
        return found

    def of(self, kind: type[Any]) -> list[Any]:
        """All effects of a kind so far."""
        return [effect for _, effect in self.log if isinstance(effect, kind)]

    def last(self, kind: type[Any]) -> Any:
        return self.of(kind)[-1]

    def advance(self, ms: int) -> None:
        """Let time pass, each timer at its own."""
        end = self.now + ms
        while (deadline := self.core.deadline) is not None and deadline <= end:
            self.now = max(self.now, deadline)
            self.core.at(self.now, self.utc)
            self.take()
        self.now = end
        self.core.at(end, self.utc)
        self.take()

    def left(self, timer: Timer, key: object = None) -> int | None:
        """Milliseconds until a timer expires; None for one that does not run."""
        armed = self.core.context.timers._armed.get((timer, key))  # type: ignore[arg-type]
        return None if armed is None else armed.due - self.core.context.now

    # -- queues and messages

    def queue(self, name: str = "orders", **attributes: Any) -> Queue:
        """A private queue here."""
        wanted = Queue(NULL_GUID)
        self.core.queues.set_defaults(wanted)
        wanted.pathname = f"{self.core.queue_manager.computer_name}\\private$\\{name}"
        for attribute, value in attributes.items():
            setattr(wanted, attribute, value)
        status, queue = self.core.queues.create(wanted)
        assert status == 0
        assert queue is not None
        self.take()
        return queue

    def open(self, name: str = DIRECT) -> OpenQueueDescriptor:
        """A queue to send to."""
        format_name = parse_format_name(name)
        for queue in self.core.queue_manager.queues.values():
            for descriptor in queue.descriptors.values():
                if descriptor.format_name == format_name:
                    return descriptor
        status, descriptor = self.core.queues.open(format_name, QueueAccessType.SEND_ACCESS)
        assert status == 0, hex(status)
        assert descriptor is not None
        return descriptor

    def outgoing(self, name: str = DIRECT) -> OutgoingQueue:
        queue = self.open(name).queue
        assert isinstance(queue, OutgoingQueue)
        return queue

    def transfer(self, name: str = DIRECT) -> Transfer:
        return self.engine.transfer_table.transfer_of(self.outgoing(name))

    def send(
        self, name: str = DIRECT, *, count: int = 1, recoverable: bool = False, transactional: bool = False,
        **attributes: Any,
    ) -> list[Message]:  # fmt: skip
        """Messages of an application; transactional ones in one transaction."""
        descriptor = self.open(name)
        guarantee = DeliveryGuarantee(recoverable or transactional)
        transaction = self.core.transactions.create(self._guid()) if transactional else None
        messages = [
            Message(**{"body": b"m%d" % number, "delivery_guarantee": guarantee} | attributes)
            for number in range(count)
        ]
        for message in messages:
            assert self.core.send(descriptor, message, transaction) is EnqueueStatus.OK
        if transaction is not None:
            assert self.core.commit(transaction) == 0
        self.take()
        return messages

    # -- the transport

    def resolve(self, *addresses: str) -> None:
        """Answer the last question for a name."""
        self.engine.resolved(self.last(Resolve).request, addresses)
        self.take()

    def connect(self) -> Peer:
        """Let the last connection that was asked for succeed."""
        connection = self.last(Connect).connection
        peer = self.peers[connection] = Peer(self, connection)
        self.engine.connected(connection)
        self.take()
        return peer

    def dial(self, name: str = DIRECT, *, addresses: Collection[str] = (THERE,), **message: Any) -> Peer:
        """Send a message and go as far as the EstablishConnection request."""
        self.send(name, **message)
        self.resolve(*addresses)
        return self.connect()

    def dialled(self, name: str = DIRECT, **message: Any) -> Peer:
        """An open session that this side has asked for."""
        peer = self.dial(name, **message)
        peer.accept()
        assert peer.session.state is SessionState.OPEN
        return peer

    def ring(self, address: str = THERE) -> Peer:
        """A connection comes in."""
        connection = self.engine.next_connection()
        self.engine.accepted(connection, address)
        peer = self.peers[connection] = Peer(self, connection)
        self.take()
        return peer

    def rung(self, *, client: UUID = OTHER, server: UUID = OWN, **parameters: Any) -> Peer:
        """An open session that the peer has asked for."""
        peer = self.ring()
        peer.send(peer.establish(client=client, server=server), peer.parameters(**parameters))
        assert peer.session.state is SessionState.OPEN
        peer.packets.clear()
        return peer

    def knows(self, identifier: UUID, host: str) -> None:
        """Whatever the destination, this queue manager is the next hop."""
        found = [QueueManager(identifier, qualified_computer_name=host)]
        self.core.routing.get_next_hops = lambda _: found  # type: ignore[method-assign]

    def datagrams(self) -> list[SendDatagram]:
        return self.of(SendDatagram)


class Peer:
    """The other end of one connection.

    Attributes:
        packets: what it has heard and not looked at yet.
        closed: whether the connection was closed by the desk.
        sent, recoverable_sent: messages it has sent.
        got, recoverable_got: messages it has heard, of which `acknowledge` tells.
    """

    def __init__(self, desk: Desk, connection: int) -> None:
        self.desk, self.connection = desk, connection
        self.packets: list[bytes] = []
        self.closed = False
        self.sent = self.recoverable_sent = self.got = self.recoverable_got = 0
        self._acked = 0
        self._session = desk.engine.session_table.by_connection.get(connection)

    @property
    def session(self) -> Session:
        self._session = self.desk.engine.session_table.by_connection.get(self.connection, self._session)
        assert self._session is not None
        return self._session

    @property
    def state(self) -> SessionState:
        return self.session.state

    def heard(self, data: bytes) -> None:
        for packet in cut(data):
            self.packets.append(packet)
            if kind(packet) == "UM":
                self.got = (self.got + 1) % 0x10000
                self.recoverable_got = (self.recoverable_got + is_recoverable(packet)) % 0x10000

    def take(self) -> list[bytes]:
        """What was heard since the last call."""
        found, self.packets = self.packets, []
        return found

    def kinds(self) -> str:
        return " ".join(kind(packet) for packet in self.take())

    def send(self, *packets: bytes) -> None:
        self.desk.engine.received(self.connection, b"".join(packets))
        self.desk.take()

    def drop(self) -> None:
        """The connection breaks."""
        self.desk.engine.disconnected(self.connection)
        self.desk.take()

    # -- what it says

    def establish(
        self, *, client: UUID = OTHER, server: UUID = OWN, internal: int = 2, time_stamp: int = 77,
        operating_system: int = 0x0310,
    ) -> bytes:  # fmt: skip
        fields = h.establish_connection_header(
            client=client.bytes_le,
            server=server.bytes_le,
            time_stamp=time_stamp,
            operating_system=operating_system,
        )
        return h.establish_connection(fields, internal=internal)

    def parameters(
        self, *, recoverable: int = 1_000, ack: int = 30_000, window: int = 64, internal: int = 3
    ) -> bytes:
        fields = h.connection_parameters_header(
            recoverable_ack_timeout=recoverable, ack_timeout=ack, window=window
        )
        return h.connection_parameters(fields, internal=internal)

    def accept(self, *, window: int = 64, after: int = 10, server: UUID = OTHER, forget: bool = True) -> None:
        """Answer the EstablishConnection request after a time, and the ConnectionParameters."""
        request = self.packets[0]
        assert kind(request) == "EC"
        self.desk.advance(after)
        self.send(
            self.establish(
                client=UUID(bytes_le=request[20:36]),
                server=server,
                time_stamp=int.from_bytes(request[52:56], "little"),
            )
        )
        if forget:
            del self.packets[:]
        self.send(self.parameters(window=window))

    def message(
        self, queue: str = "orders", *, recoverable: bool = False, number: int | None = None,
        count: bool = True,
        transaction: bytes = b"", header: dict[str, int] | None = None, body: bytes = b"hello",
        flags: int = 0,
        source: UUID = OTHER, sent_time: int = UTC, **more: Any,
    ) -> bytes:  # fmt: skip
        """A UserMessage for a private queue of the desk by its direct name; `header` is its SessionHeader."""
        recoverable = recoverable or bool(transaction)
        if count:
            self.sent = (self.sent + 1) % 0x10000
            self.recoverable_sent = (self.recoverable_sent + recoverable) % 0x10000
        name = f"OS:{self.desk.core.queue_manager.computer_name}\\private$\\{queue}"
        user = h.user_header(
            source=source.bytes_le,
            message_id=self.sent + 1000 * self.connection if number is None else number,
            sent_time=sent_time,
            flags=h.MP | flags | (DM if recoverable else 0),
            destination=(7, h.direct_name(name)),
        )
        return h.user_message(
            user=user,
            transaction=transaction,
            session=b"" if header is None else self.header(**header),
            properties=h.properties_header(body=body),
            **more,
        )

    def header(self, **fields: int) -> bytes:
        """A SessionHeader that tells what was sent; nothing is acknowledged unless it is said."""
        return h.session_header(**({"sent": self.sent, "recoverable_sent": self.recoverable_sent} | fields))

    def ack(self, **fields: int) -> bytes:
        return h.session_ack(self.header(**fields))

    def acknowledge(self) -> None:
        """Acknowledge all that was heard, saved as well."""
        new = (self.recoverable_got - self._acked) % 0x10000
        base = (self._acked + 1) % 0x10000 if new else 0
        self._acked = self.recoverable_got
        self.send(self.ack(ack=self.got, recoverable_ack=base, recoverable_flags=(1 << min(new, 32)) - 1))
