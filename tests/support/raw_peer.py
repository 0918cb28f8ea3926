r"""A queue manager written by hand: sockets, bytes and `struct`, and nothing of the library.

It follows the texts of [MS-MQQB] and [MS-MQMQ] and keeps its own counts, so that what a server says of them
is judged by somebody else. `Session` is one connection of it, in either role; `Listener` takes connections.
Whatever a test wants to be wrong it sends with `Session.send`.
"""

from __future__ import annotations

import itertools
import socket
import struct
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

from tests.support import handmade as h
from tests.support.received_packets import RECOVERABLE, ReceivedPacket, SessionHeader, packet_size

PEER = "127.0.0.72"
"""Where the peer connects from and listens, unless told otherwise."""
PATIENCE_S = 120.0
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
    """A MessageID that no other message of this run has."""
    return next(_numbers)


# -- packets that the peer sends ------------------------------------------------------------------------


def direct(name: str) -> tuple[int, bytes]:
    """A queue by a direct format name, without ``DIRECT=``: DQ, AQ or RQ 7."""
    return 7, h.direct_name(name)


def establish(server: bytes = h.NULL_GUID, *, client: bytes = GUID, cs: bool = False, **more: Any) -> bytes:
    """EstablishConnection."""
    told = {"time_stamp": TIME_STAMP, "operating_system": SERVER_CLASS_NOT_PINGED, **more}
    header = h.establish_connection_header(client=client, server=server, **told)
    return h.establish_connection(header, internal=0x12 if cs else 2)


def parameters(*, window: int = 64, ack: int = 45_000, recoverable: int = 1_480, cs: bool = False) -> bytes:
    """ConnectionParameters."""
    header = h.connection_parameters_header(
        recoverable_ack_timeout=recoverable, ack_timeout=ack, window=window
    )
    return h.connection_parameters(header, internal=0x13 if cs else 3)


@dataclass(frozen=True)
class Message:
    """A message that the peer sends; `bytes` makes its UserMessage packet.

    `tx` is the place in a transactional sequence: TimeStamp, Ordinal, TxSequenceNumber and
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
    journal: int = 0
    hops: int = 0
    age: int = 0
    time_to_reach_queue: int = h.INFINITE
    flags: int = 0

    @property
    def saved(self) -> bool:
        """Whether it counts as recoverable: a transactional one does."""
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
        )

    def transaction(self) -> bytes:
        """Its TransactionHeader, or nothing."""
        if self.tx is None:
            return b""
        stamp, ordinal, number, previous = self.tx
        return h.transaction_header(
            flags=0x1C, ordinal=ordinal, time_stamp=stamp, number=number, previous=previous
        )

    def bytes(self, *, session: bytes = b"") -> bytes:
        """The packet, with a SessionHeader if one is given."""
        return h.user_message(
            user=self.user(),
            transaction=self.transaction(),
            properties=h.properties_header(flags=self.wants, label=self.label, body=self.body),
            session=session,
            flags=0 if self.tx is not None else PR,
            time_to_reach_queue=self.time_to_reach_queue,
        )


# -- connections ----------------------------------------------------------------------------------------


class Session:
    """One connection of the peer with its counts, as [MS-MQMQ] 2.2.20.4 has them.

    Attributes:
        sent, recoverable_sent: messages that the peer has sent.
        received, recoverable_received: messages that have come.
        window: WindowSize that the peer tells.
        acked: AckSequenceNumber that came last.
        saved: recoverable sequence numbers that the other side has said to be saved.
    """

    def __init__(self, sock: socket.socket) -> None:
        sock.settimeout(PATIENCE_S)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = sock
        self._buffer = bytearray()
        self.sent = self.recoverable_sent = self.received = self.recoverable_received = 0
        self.window, self.acked = 64, 0
        self.saved: set[int] = set()
        self._unacknowledged = 0  # recoverable ones that came since the last SessionAck of the peer

    @classmethod
    def connect(cls, at: tuple[str, int], *, address: str = PEER) -> Session:
        """A connection to a server."""
        return cls(socket.create_connection(at, PATIENCE_S, (address, 0)))

    @classmethod
    def opened(
        cls, at: tuple[str, int], *, address: str = PEER, client: bytes = GUID, **more: Any
    ) -> Session:
        """An open session, asked for by the peer; `more` goes into its ConnectionParameters."""
        found = cls.connect(at, address=address)
        found.send(establish(client=client))
        assert (answer := found.take()).kind == "EstablishConnection"
        assert not answer.CS
        found.send(parameters(**more))
        assert found.take().kind == "ConnectionParameters"
        return found

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection."""
        self.socket.close()

    def finish(self) -> None:
        """Send no more, and take in whatever comes until the other side has ended the connection as well."""
        try:
            self.socket.shutdown(socket.SHUT_WR)
            while self.socket.recv(1 << 16):
                pass
        except TimeoutError:
            raise
        except OSError:
            return  # it is reset, or has been before

    def reset(self) -> None:
        """End the connection by a RST."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    # -- sending

    def send(self, *packets: bytes) -> None:
        """Send bytes; they count as nothing."""
        self.socket.sendall(b"".join(packets))

    def push(self, *messages: Message) -> None:
        """Send messages, and count them."""
        self.send(*(one.bytes() for one in messages))
        self.count(*messages)

    def count(self, *messages: Message) -> None:
        """Messages have been sent."""
        self.sent += len(messages)
        self.recoverable_sent += sum(one.saved for one in messages)

    def header(self, **wrong: int) -> bytes:
        """A SessionHeader that acknowledges what has come, but for what is to be wrong in it.

        It has room for 32 recoverable messages.
        """
        first = self.recoverable_received - self._unacknowledged + 1
        count = min(self._unacknowledged, 32)
        self._unacknowledged -= count
        told = {
            "ack": self.received,
            "recoverable_ack": first if count else 0,
            "recoverable_flags": (1 << count) - 1,
            "sent": self.sent,
            "recoverable_sent": self.recoverable_sent,
            "window": self.window,
        }
        return h.session_header(**{**told, **wrong})

    def acknowledge(self, **wrong: int) -> None:
        """Send a SessionAck, or several if one does not have room for all that has come."""
        self.send(h.session_ack(self.header(**wrong)))
        while self._unacknowledged:
            self.send(h.session_ack(self.header(**wrong)))

    # -- receiving

    def packet(self) -> ReceivedPacket:
        """The next packet. Raises EOFError when the other side has ended the connection."""
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
        """The next packet, counted; what it says of the counts has to be right."""
        packet = self.packet()
        if packet.kind in ("UserMessage", "OrderAck", "FinalAck"):
            self.received += 1
            self.recoverable_received += packet.is_recoverable
            self._unacknowledged += packet.is_recoverable
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
        """Take packets until all that was sent is acknowledged; gives those that are no SessionAck."""
        others = []
        while self.acked < self.sent or len(self.saved) < self.recoverable_sent:
            found = self.take()
            if found.kind != "SessionAck":
                others.append(found)
        return others

    def until(self, kind: str) -> ReceivedPacket:
        """Take packets until one of a kind comes; SessionAcks between are as they should be."""
        while (found := self.take()).kind != kind:
            assert found.kind == "SessionAck", found
        return found

    def fence(self) -> list[ReceivedPacket]:
        """What the server has to say up to now: a message is sent, and all taken until it is acknowledged."""
        self.push(Message(b"fence", queue=direct(r"OS:alpha\private$\fence")))
        return self.until_acknowledged()

    def ended(self) -> list[ReceivedPacket]:
        """Wait until the other side ends the connection; gives the packets that came before that."""
        found = []
        while True:
            try:
                found.append(self.take())
            except EOFError:
                return found


class Listener:
    """The peer as one that is connected to."""

    def __init__(self, address: str = PEER) -> None:
        self._socket = socket.create_server((address, 0))
        self._socket.settimeout(PATIENCE_S)
        self.at: tuple[str, int] = self._socket.getsockname()

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ring(self) -> Session:
        """The next connection, as it comes in."""
        return Session(self._socket.accept()[0])

    def accept(self, *, guid: bytes = GUID, window: int = 64) -> Session:
        """The next session, opened as the server asks for."""
        found = self.ring()
        request = found.take()
        assert request.kind == "EstablishConnection"
        found.send(answer(request, guid=guid))
        asked = found.take()
        assert asked.kind == "ConnectionParameters"
        found.window = window
        found.send(parameters(window=window, ack=asked.AckTimeout, recoverable=asked.RecoverableAckTimeout))
        return found


def answer(request: ReceivedPacket, *, guid: bytes = GUID, **wrong: Any) -> bytes:
    """The EstablishConnection response to a request, but for what is to be wrong in it."""
    told = {
        "client": request.ClientGuid,
        "server": guid,
        "time_stamp": request.TimeStamp,
        "operating_system": request.OperatingSystem & 0x100 | 0x210,
    }
    return establish(**{**told, **wrong})


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
