"""The other end of a connection of a harness, written by hand: [MS-MQQB] 2.2 and 3.1.

The peer builds its packets with `handmade` alone and reads received ones by offsets, without the library's
codec.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from msmqwire.qm.protocols.binary.session import Session
from msmqwire.qm.protocols.binary.states import SessionState
from tests.support import handmade as h
from tests.support.qm.received_packets import ReceivedPacket, SessionHeader, cut
from tests.support.qm.session_counts import SessionCounts

if TYPE_CHECKING:
    from tests.support.engine_harness import EngineHarness

# UserHeader.Flags
DM, JN, JP = 0x20, 0x100, 0x200
# MessagePropertiesHeader.Flags
PA, PR, NA, NR = 1, 2, 4, 8


def direct(queue: str = "orders", address: str = "10.0.0.1") -> tuple[int, bytes]:
    """DQ, AQ or RQ with the direct name of a private queue."""
    return 7, h.direct_name(f"TCP:{address}\\private$\\{queue}")


class HandwrittenPeer(SessionCounts):
    """The other end of one connection.

    Attributes:
        identifier: the identifier of the queue manager it plays.
        answers: whether it answers the packets that establish a session automatically.
        packets: the packets received that the test has not taken yet.
        all_packets: all packets received.
        acks: the headers of all SessionAcks received.
        closed: whether the connection has ended.
    """

    def __init__(
        self, harness: EngineHarness, connection: int, identifier: UUID, *, answers: bool = False
    ) -> None:
        super().__init__()
        self.harness, self.connection = harness, connection
        self.identifier, self.answers = identifier, answers
        self.packets: list[ReceivedPacket] = []
        self.all_packets: list[ReceivedPacket] = []
        self.acks: list[SessionHeader] = []
        self.closed = False
        self._session = harness.engine.session_table.by_connection.get(connection)
        harness.peers[connection] = self

    @property
    def session(self) -> Session:
        """The session of the queue manager over this connection, or the last one."""
        self._session = self.harness.engine.session_table.by_connection.get(self.connection, self._session)
        assert self._session is not None
        return self._session

    @property
    def state(self) -> SessionState:
        return self.session.state

    # -- receiving

    def hear(self, data: bytes) -> None:
        """Receive the packets of the queue manager."""
        for packet in cut(data):
            self.packets.append(packet)
            self.all_packets.append(packet)
            self.count_received(packet)
            if packet.base_flags & h.IN:
                self._hear_internal(packet)

    def _hear_internal(self, packet: ReceivedPacket) -> None:
        if packet.kind == "SessionAck":
            assert packet.session_header is not None
            self.acks.append(packet.session_header)
        elif self.answers:
            self.packets.pop()
            if packet.kind == "EstablishConnection":
                self.send(self.answer(packet))
            else:
                self.send(self.parameters())

    def take(self, kind: str | None = None) -> list[ReceivedPacket]:
        """Return the packets received since the last call: all, or those of a kind."""
        packets, self.packets = self.packets, []
        return [packet for packet in packets if kind is None or packet.kind == kind]

    def kinds(self) -> list[str]:
        """Take the packets and return their kinds."""
        return [packet.kind for packet in self.take()]

    def bodies(self) -> list[bytes]:
        """Take the packets and return the bodies of the UserMessages."""
        return [packet.body for packet in self.take("UserMessage")]

    def sequenced_bodies(self) -> list[tuple[bytes, int, int, int]]:
        """Take the packets; return body, ordinal, number and previous number of transactional messages."""
        return [(packet.body, *packet.tx[1:]) for packet in self.take("UserMessage")]

    # -- sending

    def send(self, *packets: bytes) -> None:
        """Send raw bytes."""
        if not self.closed:
            self.harness.engine.received(self.connection, b"".join(packets))
            self.harness.run()

    def disconnect(self) -> None:
        """Lose the connection."""
        if not self.closed:
            self.closed = True
            self.harness.engine.disconnected(self.connection)
            self.harness.run()

    def establish(
        self, *, client: UUID | None = None, server: UUID | None = None, internal: int = 2,
        time_stamp: int = 77, operating_system: int = 0x0310,
    ) -> bytes:  # fmt: skip
        """An EstablishConnection packet."""
        manager = self.harness.core.queue_manager
        header = h.establish_connection_header(
            client=(self.identifier if client is None else client).bytes_le,
            server=(manager.identifier if server is None else server).bytes_le,
            time_stamp=time_stamp,
            operating_system=operating_system,
        )
        return h.establish_connection(header, internal=internal)

    def answer(self, request: ReceivedPacket, server: UUID | None = None) -> bytes:
        """The EstablishConnection response to a request."""
        return self.establish(
            client=UUID(bytes_le=request.ClientGuid),
            server=self.identifier if server is None else server,
            time_stamp=request.TimeStamp,
        )

    def parameters(
        self, *, recoverable: int = 500, ack: int = 20_000, window: int | None = None, internal: int = 3
    ) -> bytes:
        """A ConnectionParameters packet with its timeouts in milliseconds."""
        header = h.connection_parameters_header(
            recoverable_ack_timeout=recoverable,
            ack_timeout=ack,
            window=self.window if window is None else window,
        )
        return h.connection_parameters(header, internal=internal)

    def answer_handshake(
        self, *, window: int = 64, after: int = 10, server: UUID | None = None, forget: bool = True
    ) -> None:
        """Answer the EstablishConnection request after some milliseconds, then ConnectionParameters.

        The timeouts in the response differ from those in the request, which apply.
        """
        request = self.packets[0]
        assert request.kind == "EstablishConnection"
        self.harness.advance(after)
        self.send(self.answer(request, server))
        if forget:
            self.packets.clear()
        self.send(self.parameters(window=window, recoverable=1_000, ack=30_000))

    def message(
        self,
        body: bytes = b"hello",
        *,
        queue: str = "orders",
        destination: tuple[int, bytes] | None = None,
        message_id: int | None = None,
        recoverable: bool = False,
        tx: tuple[int, int] | tuple[int, int, int] | None = None,
        transaction: bytes = b"",
        count: bool = True,
        header: dict[str, int] | None = None,
        session: bool = False,
        priority: int = 3,
        acks: int = 0,
        admin: tuple[int, bytes] = (0, b""),
        response: tuple[int, bytes] = (0, b""),
        flags: int = 0,
        address: bytes = h.NULL_GUID,
        source: UUID | None = None,
        sent_time: int | None = None,
        time_to_be_received: int = h.INFINITE,
        trace: UUID | None = None,
        hops: int = 0,
        label: str | None = None,
        message_class: int = 0,
        privacy: int = 0,
        algorithm: int = 0x6610,
        hash_algorithm: int = 0x800E,
        extension: bytes = b"",
        **packet: Any,
    ) -> bytes:
        """A UserMessage to a private queue of the harness by its direct name.

        Args:
            body: MessageBody.
            queue: the destination, unless `destination` has DQ and the name.
            message_id: a new one by default.
            recoverable: DM.
            tx: number, previous number and optionally ordinal (default 1) of a TransactionHeader.
            transaction: a TransactionHeader with other fields.
            count: whether the message counts as sent.
            header: fields of a SessionHeader, see `header`.
            session: whether to add a SessionHeader that acknowledges everything received.
            priority, acks, admin, response, flags, address, source, sent_time, time_to_be_received, hops,
                label, message_class, privacy, algorithm, hash_algorithm, extension: fields of the headers.
            trace: the queue of a DebugHeader.
            packet: further arguments of `handmade.user_message`.
        """
        if tx is not None:
            priority = 0
            transaction = h.transaction_header(
                number=tx[0], previous=tx[1], ordinal=tx[2] if len(tx) == 3 else 1
            )
        recoverable = recoverable or bool(transaction)
        if count:
            self.count_sent(recoverable=recoverable)
        session_header = self.acknowledging_header() if session else b""
        return h.user_message(
            user=h.user_header(
                source=(source or self.identifier).bytes_le,
                address=address,
                time_to_be_received=time_to_be_received,
                sent_time=self.harness.utc if sent_time is None else sent_time,
                message_id=next(self.harness.message_ids) if message_id is None else message_id,
                flags=h.MP | flags | hops | (DM if recoverable else 0),
                destination=destination or direct(queue),
                admin=admin,
                response=response,
            ),
            transaction=transaction,
            properties=h.properties_header(
                flags=acks,
                body=body,
                label=label,
                message_class=message_class,
                privacy_level=privacy,
                encryption_algorithm=algorithm,
                hash_algorithm=hash_algorithm,
                extension=extension,
            ),
            debug=b"" if trace is None else h.debug_header(trace.bytes_le),
            session=session_header if header is None else self.header(**header),
            flags=priority | (h.TR if trace else 0),
            **packet,
        )

    def send_message(self, body: bytes = b"x", **fields: Any) -> int:
        """Send a UserMessage with the fields of `message`; return its MessageID."""
        fields.setdefault("message_id", next(self.harness.message_ids))
        self.send(self.message(body, **fields))
        return int(fields["message_id"])

    def ack(self, **fields: int) -> bytes:
        """A SessionAck with `header`."""
        return h.session_ack(self.header(**fields))

    def acknowledge(self, **fields: int) -> None:
        """Send a SessionAck for everything received."""
        self.send(*self.session_acks(**fields))

    def send_order_ack(self, sequence: tuple[int, int], number: int) -> None:
        """Send an OrderAck; the sequence as (TimeStamp, Ordinal)."""
        self.count_sent(recoverable=False)
        time_stamp, ordinal = sequence
        previous = max(number - 1, 0)
        body = h.order_ack_body(ordinal=ordinal, time_stamp=time_stamp, number=number, previous=previous)
        self.send(h.order_ack(body, destination=direct("order_queue$")))

    def send_final_ack(self, packet: ReceivedPacket, message_class: int = 0x4000, **fields: int) -> None:
        """Send a FinalAck for a received message, with other `fields` of its body."""
        self.count_sent(recoverable=True)
        time_stamp, ordinal, number, previous = packet.tx
        body = {
            "ordinal": ordinal,
            "time_stamp": time_stamp,
            "number": number,
            "previous": previous,
            "message_id": packet.MessageID,
        }
        packed = h.final_ack_body(source=packet.SourceQueueManager, **(body | fields))
        self.send(h.final_ack(packed, destination=direct("order_queue$"), message_class=message_class))
