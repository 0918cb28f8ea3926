r"""A queue manager written by hand: sockets, bytes and `struct`, without the library.

It follows [MS-MQQB] and [MS-MQMQ] and keeps its own counts, an independent check of those of a server.
`Session` is one of its connections, in either role; `Listener` accepts connections. A test sends deliberate
errors with `Session.send`.
"""

from __future__ import annotations

import itertools
import socket
import struct
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from tests.support import handmade as h
from tests.support.patience import PATIENCE_S
from tests.support.qm.received_packets import RECOVERABLE, ReceivedPacket, SessionHeader, packet_size
from tests.support.qm.session_counts import SessionCounts

PEER = "127.0.0.72"
"""Default address from which the peer connects, and on which it listens."""
GUID = uuid.UUID("5f9a1f6e-31c5-4f0c-9d1d-0a7b8f2c6d01").bytes_le
OTHER = uuid.UUID("c0ffee00-31c5-4f0c-9d1d-0a7b8f2c6d02").bytes_le
QUEUE = r"OS:alpha\private$\orders"
TX_QUEUE = r"OS:alpha\private$\ledger"
TIME_STAMP = 0xFEDC_BA98
PR, SERVER_CLASS_NOT_PINGED = 3, 0x0310

# UserHeader.Flags and MessagePropertiesHeader.Flags
JN, JP = 0x100, 0x200
ACK_ARRIVAL, ACK_RECEIVE, NACK_ARRIVAL, NACK_RECEIVE = 1, 2, 4, 8

_numbers = itertools.count(1)


def new_id() -> int:
    """Return a MessageID that no other message of this run has."""
    return next(_numbers)


# -- packets that the peer sends ------------------------------------------------------------------------


def direct(name: str) -> tuple[int, bytes]:
    """DQ, AQ or RQ with a direct format name, given without ``DIRECT=``."""
    return 7, h.direct_name(name)


def establish(server: bytes = h.NULL_GUID, *, client: bytes = GUID, cs: bool = False, **more: Any) -> bytes:
    """EstablishConnection."""
    fields = {"time_stamp": TIME_STAMP, "operating_system": SERVER_CLASS_NOT_PINGED, **more}
    header = h.establish_connection_header(client=client, server=server, **fields)
    return h.establish_connection(header, internal=0x12 if cs else 2)


def parameters(*, window: int = 64, ack: int = 45_000, recoverable: int = 1_480, cs: bool = False) -> bytes:
    """ConnectionParameters."""
    header = h.connection_parameters_header(
        recoverable_ack_timeout=recoverable, ack_timeout=ack, window=window
    )
    return h.connection_parameters(header, internal=0x13 if cs else 3)


@dataclass(frozen=True)
class Message:
    """A message that the peer sends; `bytes` returns its UserMessage packet.

    `tx` is the position in a transactional sequence: TimeStamp, Ordinal, TxSequenceNumber and
    PreviousTxSequenceNumber.
    """

    body: bytes = b""
    queue: tuple[int, bytes] = direct(QUEUE)
    recoverable: bool = False
    tx: tuple[int, int, int, int] | None = None
    message_id: int = field(default_factory=new_id)
    source: bytes = GUID
    address: bytes = h.NULL_GUID
    label: str | None = None
    wants: int = 0
    admin: tuple[int, bytes] = (0, b"")
    response: tuple[int, bytes] = (0, b"")
    journal: int = 0
    hops: int = 0
    age: int = 0
    time_to_reach_queue: int = h.INFINITE
    flags: int = 0

    @property
    def saved(self) -> bool:
        """Whether the message counts as recoverable, as transactional ones do."""
        return self.recoverable or self.tx is not None

    def user(self) -> bytes:
        """Its UserHeader."""
        return h.user_header(
            source=self.source,
            address=self.address,
            sent_time=int(time.time()) - self.age,
            message_id=self.message_id,
            flags=self.hops | (RECOVERABLE if self.saved else 0) | self.journal | self.flags,
            destination=self.queue,
            admin=self.admin,
            response=self.response,
        )

    def transaction(self) -> bytes:
        """Its TransactionHeader; empty outside a transaction."""
        if self.tx is None:
            return b""
        stamp, ordinal, number, previous = self.tx
        return h.transaction_header(
            flags=0x1C, ordinal=ordinal, time_stamp=stamp, number=number, previous=previous
        )

    def bytes(self, *, session: bytes = b"") -> bytes:
        """The packet, with a SessionHeader unless that is empty."""
        return h.user_message(
            user=self.user(),
            transaction=self.transaction(),
            properties=h.properties_header(flags=self.wants, label=self.label, body=self.body),
            session=session,
            flags=0 if self.tx is not None else PR,
            time_to_reach_queue=self.time_to_reach_queue,
        )


# -- connections ----------------------------------------------------------------------------------------


class Session(SessionCounts):
    """One connection of the peer with its counts.

    Attributes:
        acked: the last AckSequenceNumber received.
        saved: recoverable sequence numbers that the other side has acknowledged as stored.
    """

    def __init__(self, sock: socket.socket) -> None:
        super().__init__()
        sock.settimeout(PATIENCE_S)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = sock
        self._buffer = bytearray()
        self.acked = 0
        self.saved: set[int] = set()

    @classmethod
    def connect(cls, at: tuple[str, int], *, address: str = PEER) -> Session:
        """Connect to a server."""
        return cls(socket.create_connection(at, PATIENCE_S, (address, 0)))

    @classmethod
    def opened(
        cls, at: tuple[str, int], *, address: str = PEER, client: bytes = GUID, **more: Any
    ) -> Session:
        """Open a session; `more` are fields of the ConnectionParameters of the peer."""
        session = cls.connect(at, address=address)
        session.send(establish(client=client))
        assert (answer := session.take()).kind == "EstablishConnection"
        assert not answer.CS
        session.send(parameters(**more))
        assert session.take().kind == "ConnectionParameters"
        return session

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection."""
        self.socket.close()

    def finish(self) -> None:
        """Stop sending, and discard further bytes until the other side ends the connection as well."""
        try:
            self.socket.shutdown(socket.SHUT_WR)
            while self.socket.recv(1 << 16):
                pass
        except TimeoutError:
            raise
        except OSError:
            return  # reset now or before

    def reset(self) -> None:
        """End the connection with a RST."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    # -- sending

    def send(self, *packets: bytes) -> None:
        """Send bytes without counting them."""
        self.socket.sendall(b"".join(packets))

    def push(self, *messages: Message) -> None:
        """Send messages and count them."""
        self.send(*(message.bytes() for message in messages))
        self.count(*messages)

    def count(self, *messages: Message) -> None:
        """Count messages as sent."""
        for message in messages:
            self.count_sent(recoverable=message.saved)

    def acknowledge(self, **wrong: int) -> None:
        """Acknowledge all messages received, with the necessary number of SessionAcks."""
        self.send(*self.session_acks(**wrong))

    # -- receiving

    def packet(self) -> ReceivedPacket:
        """Read the next packet. Raises EOFError when the other side has ended the connection."""
        buffer = self._buffer
        while True:
            size = packet_size(buffer)
            if size is not None and len(buffer) >= size:
                packet = ReceivedPacket(buffer[:size])
                del buffer[:size]
                return packet
            try:
                data = self.socket.recv(1 << 16)
            except (ConnectionResetError, BrokenPipeError):
                data = b""
            if not data:
                raise EOFError(f"ended with {len(buffer)} bytes of a packet")
            buffer += data

    def take(self) -> ReceivedPacket:
        """Read and count the next packet; assert that its counts are right."""
        packet = self.packet()
        self.count_received(packet)
        if packet.session_header is not None:
            self._check_header(packet.session_header)
        return packet

    def _check_header(self, header: SessionHeader) -> None:
        counts = header.sent, header.recoverable_sent
        assert counts == (self.received, self.recoverable_received), "the other side counts what it sends"
        assert self.acked <= header.ack <= self.sent
        self.acked = header.ack
        base, flags = header.recoverable_ack, header.recoverable_flags
        new = {base + bit for bit in range(32) if flags >> bit & 1}
        assert bool(base) == bool(new)
        assert not self.saved & new, "each is acknowledged once"
        self.saved |= new
        assert max(self.saved, default=0) <= self.recoverable_sent

    def until_acknowledged(self) -> list[ReceivedPacket]:
        """Take packets until all messages sent are acknowledged; return all but SessionAcks."""
        others = []
        while self.acked < self.sent or len(self.saved) < self.recoverable_sent:
            packet = self.take()
            if packet.kind != "SessionAck":
                others.append(packet)
        return others

    def until(self, kind: str) -> ReceivedPacket:
        """Take packets until one of a kind comes, skipping correct SessionAcks."""
        while (packet := self.take()).kind != kind:
            assert packet.kind == "SessionAck", packet
        return packet

    def fence(self) -> list[ReceivedPacket]:
        """Send a message and take packets until it is acknowledged; return the packets that the server sent
        before.
        """
        self.push(Message(b"fence", queue=direct(r"OS:alpha\private$\fence")))
        return self.until_acknowledged()

    def ended(self) -> list[ReceivedPacket]:
        """Wait until the other side ends the connection; return the packets that came before."""
        packets = []
        while True:
            try:
                packets.append(self.take())
            except EOFError:
                return packets


class Listener:
    """The peer in the role of the acceptor."""

    def __init__(self, address: str = PEER) -> None:
        self._socket = socket.create_server((address, 0))
        self._socket.settimeout(PATIENCE_S)
        self.at: tuple[str, int] = self._socket.getsockname()

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def stop(self) -> None:
        """Listen no longer; whoever waits for a connection gets an OSError."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def ring(self) -> Session:
        """Accept the next connection."""
        return Session(self._socket.accept()[0])

    def accept(self, *, guid: bytes = GUID, window: int = 64) -> Session:
        """Accept the next session, with the parameters that the server asks for."""
        session = self.ring()
        request = session.take()
        assert request.kind == "EstablishConnection"
        session.send(answer(request, guid=guid))
        asked = session.take()
        assert asked.kind == "ConnectionParameters"
        session.window = window
        session.send(parameters(window=window, ack=asked.AckTimeout, recoverable=asked.RecoverableAckTimeout))
        return session


def answer(request: ReceivedPacket, *, guid: bytes = GUID, **wrong: Any) -> bytes:
    """The EstablishConnection response to a request, apart from the fields that are to be wrong."""
    fields = {
        "client": request.ClientGuid,
        "server": guid,
        "time_stamp": request.TimeStamp,
        "operating_system": request.OperatingSystem & 0x100 | 0x210,
    }
    return establish(**{**fields, **wrong})


__all__ = [
    "ACK_ARRIVAL",
    "ACK_RECEIVE",
    "GUID",
    "JN",
    "JP",
    "NACK_ARRIVAL",
    "NACK_RECEIVE",
    "OTHER",
    "PEER",
    "QUEUE",
    "RECOVERABLE",
    "TIME_STAMP",
    "TX_QUEUE",
    "Listener",
    "Message",
    "ReceivedPacket",
    "Session",
    "answer",
    "direct",
    "establish",
    "new_id",
    "parameters",
]  # fmt: skip
