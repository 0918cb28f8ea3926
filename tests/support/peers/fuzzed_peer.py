"""A small queue manager for tests of the fuzzer: correct by itself, and wrong in one way at a time.

It accepts sessions, puts messages into queues without readers, and sends every kind of acknowledgement; it
stores nothing. `WRONG` names the mistakes that it can be made to make.
"""

from __future__ import annotations

import contextlib
import itertools
import socket
import struct
import threading
import time
from collections.abc import Iterator
from typing import Any, Final
from uuid import UUID, uuid4

from msmqwire.errors import MalformedPacket
from msmqwire.packets import (
    CONNECTION_PARAMETERS,
    ESTABLISH_CONNECTION,
    FINAL_ACK,
    ORDER_ACK,
    SESSION_ACK,
    USER_MESSAGE,
    packet_length,
    parse,
)
from msmqwire.schema import Record
from tests.support.patience import limit
from tests.support.peers.fuzzed_peer_sending import WINDOW, Outgoing

QUEUE, TRANSACTIONAL = "private$\\orders", "private$\\ledger"
INFINITE: Final = 0xFFFFFFFF
ACK_AFTER_S: Final = 0.1
"""Sooner than it has to: tests wait for it."""
_MESSAGES: Final = ("UserMessage", "OrderAck", "FinalAck")


class Ended(Exception):
    """The session is over."""


class FuzzedPeer:
    """The queue manager.

    Args:
        address: the address it listens on. wrong: its mistake; empty for none.
    """

    def __init__(self, address: str, wrong: str = "") -> None:
        self.wrong, self.guid = wrong, uuid4()
        self.listener = socket.create_server((address, 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.lock = threading.RLock()
        self.seen: set[tuple[UUID, int]] = set()
        self.places: dict[UUID, tuple[int, int]] = {}
        self.numbers = itertools.count(1)
        self.outgoing: dict[str, Outgoing] = {}
        self.sockets: list[socket.socket] = [self.listener]
        self.one_at_a_time = threading.Lock()
        self.dead = False

    def run(self) -> None:
        """Accept connections until the listener is closed."""
        while not self.dead:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            self.sockets.append(sock)
            if self.wrong == "serves one connection at a time":
                Incoming(self, sock).serve()
            else:
                threading.Thread(target=Incoming(self, sock).serve, daemon=True).start()

    def crash(self) -> None:
        """End as a process that crashes."""
        self.dead = True
        for outgoing in self.outgoing.values():
            outgoing.dead = True
        for sock in self.sockets:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    # -- messages of its own -----------------------------------------------------------------------------

    def send(self, name: str, schema: Any, fields: dict[str, Any], back: Incoming) -> None:
        """Send a message to a direct name ``TCP:address\\queue``."""
        host = name.partition(":")[2].partition("\\")[0]
        if not name.upper().startswith("TCP:") or host.strip("0123456789."):
            return
        number = next(self.numbers)
        base = {
            "BaseHeader": {"TimeToReachQueue": INFINITE},
            "UserHeader": {
                "SourceQueueManager": self.guid,
                "TimeToBeReceived": INFINITE,
                "SentTime": int(time.time()),
                "MessageID": number,
                "DestinationQueue": {"DirectFormatName": name},
            },
        }
        for header, values in fields.items():
            base[header] = {**base.get(header, {}), **values}  # type: ignore[dict-item]
        if schema is not USER_MESSAGE:
            base["BaseHeader"]["Flags"] = {"PR": 0}
        packet = schema.make(base)
        if self.wrong == "answers over the same session":  # which is not a mistake
            back.write_message(packet)
            return
        with self.lock:
            if host not in self.outgoing or self.outgoing[host].ended:
                self.outgoing[host] = Outgoing(
                    self.guid, host, endless=self.wrong == "does not keep its window"
                )
            self.outgoing[host].put(packet)


class Incoming:
    """A session that another queue manager has opened."""

    def __init__(self, peer: FuzzedPeer, sock: socket.socket) -> None:
        self.peer, self.sock, self.wrong = peer, sock, peer.wrong
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""
        self.state = "WAITING_EC_MSG"
        self.received = self.recoverable = self.acked_recoverable = self.unacked = 0
        self.sent = self.recoverable_sent = 0
        self.due: float | None = None
        self.order_due: float | None = None
        self.source: UUID = UUID(int=0)
        self.window = WINDOW
        self.finals: list[tuple[float, Record]] = []

    def serve(self) -> None:
        """Serve until the session ends."""
        try:
            self.sock.settimeout(0.02)
            while True:
                self.timers()
                with contextlib.suppress(TimeoutError):
                    data = self.sock.recv(1 << 16)
                    if not data:
                        break
                    self.take(data)
        except (Ended, OSError, MalformedPacket):
            pass
        except (IndexError, struct.error, UnicodeError, MemoryError):
            self.peer.crash()
        self.state = "CLOSED"
        self.sock.close()

    def take(self, data: bytes) -> None:
        self.buffer += data
        while len(self.buffer) >= 16:
            if self.wrong == "waits for the rest while nobody else is served":
                with self.peer.one_at_a_time:
                    self.wait_for_rest()
            if self.wrong == "does not look at the signature":
                head = self.buffer[:4] + b"LIOR" + self.buffer[8:16]
                self.buffer = head + self.buffer[16:]
            try:
                size = packet_length(self.buffer)
            except MalformedPacket:
                if self.wrong == "goes on after a wrong size" and self.buffer[4:8] == b"LIOR":
                    self.buffer = b""
                    return
                raise Ended from None
            if len(self.buffer) < size:
                return
            packet, self.buffer = self.buffer[:size], self.buffer[size:]
            if self.wrong == "loses the second packet of a segment":
                self.buffer = b""
            if self.wrong == "forgets what is left of a segment":
                self.buffer = b"" if len(self.buffer) < 16 else self.buffer
            self.packet(packet)

    def wait_for_rest(self) -> None:
        self.sock.settimeout(limit(30))
        while len(self.buffer) < packet_length(self.buffer):
            data = self.sock.recv(1 << 16)
            if not data:
                raise Ended
            self.buffer += data
        self.sock.settimeout(0.02)

    # -- packets -----------------------------------------------------------------------------------------

    def packet(self, data: bytes) -> None:
        try:
            packet = parse(data)
        except MalformedPacket as error:
            if self.wrong == "crashes on a malformed message" and self.state == "OPEN":
                raise IndexError from error
            if self.wrong == "ignores a malformed packet" and self.state == "OPEN":
                return
            if self.wrong == "takes queue types that are not there" and "DQ" in str(error):
                return
            raise Ended from None
        kind = packet.schema.name
        if (
            self.wrong == "takes messages before the handshake"
            and kind == "UserMessage"
            and self.state != "OPEN"
        ):
            return
        if kind == "EstablishConnection":
            self.establish(packet)
        elif kind == "ConnectionParameters":
            self.parameters(packet)
        elif self.state != "OPEN":
            raise Ended
        else:
            if kind in _MESSAGES:
                if self.wrong == "loses messages with wrong counts" and self.miscounted(packet.SessionHeader):
                    raise Ended
                self.message(packet)
            if packet.SessionHeader is not None:
                self.session_header(packet.SessionHeader)

    def miscounted(self, header: Record | None) -> bool:
        return header is not None and header.UserMsgSequenceNumber != self.received + 1 & 0xFFFF

    def establish(self, packet: Record) -> None:
        if self.state != "WAITING_EC_MSG" and self.wrong != "takes EstablishConnection in any state":
            raise Ended
        header = packet.EstablishConnectionHeader
        self.source = header.ClientGuid
        refused = header.ServerGuid not in (UUID(int=0), self.peer.guid)
        if self.wrong == "accepts a foreign ServerGuid":
            refused = False
        answer = {
            "ClientGuid": header.ClientGuid
            if self.wrong != "echoes the wrong ClientGuid"
            else self.peer.guid,
            "ServerGuid": self.peer.guid,
            "TimeStamp": header.TimeStamp if self.wrong != "answers its own TimeStamp" else 77,
            "OperatingSystem": {"SE": int(header.OperatingSystem.SE) if self.wrong != "forgets SE" else 0},
            "Padding": (b"\x5a" if self.wrong != "pads with zeroes" else b"\0") * 512,
        }
        self.write(
            ESTABLISH_CONNECTION.make(
                {"EstablishConnectionHeader": answer, "InternalHeader": {"Flags": {"CS": int(refused)}}}
            )
        )
        self.state = "WAITING_CP_MSG"

    def parameters(self, packet: Record) -> None:
        if self.state != "WAITING_CP_MSG":
            if self.wrong == "takes ConnectionParameters in any state":
                return
            raise Ended
        header = dict(packet.ConnectionParametersHeader)
        header["Reserved"] = 0
        if self.wrong != "answers the WindowSize of the request":
            header["WindowSize"] = WINDOW
        if self.wrong == "answers its own AckTimeout":
            header["AckTimeout"] = 60_000
        self.write(CONNECTION_PARAMETERS.make({"ConnectionParametersHeader": header}))
        self.state = "OPEN"

    def session_header(self, header: Record) -> None:
        if not header.WindowSize and self.wrong != "takes a WindowSize of 0":
            raise Ended
        counts = header.UserMsgSequenceNumber, header.RecoverableMsgSeqNumber
        if counts != (self.received & 0xFFFF, self.recoverable & 0xFFFF):
            if self.wrong == "does not look at counts":
                return
            raise Ended

    # -- messages ----------------------------------------------------------------------------------------

    def message(self, packet: Record) -> None:
        user = packet.UserHeader
        recoverable = bool(user.Flags.DM) or packet.TransactionHeader is not None
        flags = 32 if self.wrong != "forgets messages beyond the flags" else 1000
        if recoverable and self.recoverable - self.acked_recoverable >= flags:
            self.acknowledge()
        self.received += 1
        self.recoverable += recoverable
        self.unacked += 1
        if self.due is None or recoverable:
            self.due = min(self.due or INFINITE, time.monotonic() + ACK_AFTER_S)
        if packet.schema.name == "UserMessage":
            with self.peer.lock:
                self.judge(packet)
        if self.unacked >= WINDOW // 2 and self.wrong != "forgets messages beyond the flags":
            self.acknowledge()

    def judge(self, packet: Record) -> None:
        user, transaction = packet.UserHeader, packet.TransactionHeader
        key = user.SourceQueueManager, user.MessageID
        duplicate = key in self.peer.seen and transaction is None
        if self.wrong == "knows duplicates by MessageID alone":
            duplicate = transaction is None and any(key[1] == number for _, number in self.peer.seen)
        if duplicate and self.wrong != "delivers duplicates":
            return
        self.peer.seen.add(key)
        refusal = self.refusal(packet)
        if transaction is not None and refusal is None:
            if not self.in_order(packet):
                return
            if user.Flags.JN or user.Flags.JP:
                self.final(packet, 0xC002, time.monotonic() + user.TimeToBeReceived)
        if refusal is None:
            self.admin(packet, 2, 1)
            return
        if refusal != 0x8000 or self.wrong == "tells refusals as deleted":
            self.admin(packet, refusal if self.wrong != "tells refusals as deleted" else 0x8001, 4)
        if transaction is not None:
            self.final(packet, refusal, time.monotonic())

    def refusal(self, packet: Record) -> int | None:
        user, transaction = packet.UserHeader, packet.TransactionHeader
        if user.QueueManagerAddress not in (UUID(int=0), self.peer.guid):
            return 0x8005 if user.Flags.RC >= 0x1D else 0x8000
        name = user.DestinationQueue.get("DirectFormatName", "") if user.DestinationQueue else ""
        queue = name.partition("\\")[2].lower() if isinstance(name, str) else ""
        if queue not in (QUEUE, TRANSACTIONAL):
            return None if self.wrong == "takes messages for any queue" else 0x8000
        if transaction is not None and queue == QUEUE:
            return 0x8009
        if transaction is None and queue == TRANSACTIONAL and self.wrong != "takes any message in any queue":
            return 0x800A
        base = packet.BaseHeader
        age = time.time() - user.SentTime
        if base.TimeToReachQueue != INFINITE and age > base.TimeToReachQueue:
            return None if self.wrong == "takes expired messages" else 0x8002
        return None

    def in_order(self, packet: Record) -> bool:
        header = packet.TransactionHeader
        identifier = header.TxSequenceID.TimeStamp << 32 | header.TxSequenceID.Ordinal
        if self.wrong == "compares sequences by Ordinal":
            identifier = header.TxSequenceID.Ordinal << 32 | header.TxSequenceID.TimeStamp
        last, at = self.peer.places.get(packet.UserHeader.SourceQueueManager, (0, 0))
        number, previous = header.TxSequenceNumber, header.PreviousTxSequenceNumber
        if identifier == last:
            accepted = number > at >= previous
            if self.wrong == "accepts gaps":
                accepted = number > at
            if self.wrong == "accepts repeated numbers":
                accepted = number >= at >= previous
        else:
            accepted = identifier > last and (
                previous == 0 or self.wrong == "accepts a sequence in its middle"
            )
        if accepted:
            self.peer.places[packet.UserHeader.SourceQueueManager] = identifier, number
            self.order = (header.TxSequenceID, number, self.source_address())
        elif self.wrong == "acknowledges what it has refused":
            self.order = (header.TxSequenceID, number, self.source_address())
        if hasattr(self, "order") and (accepted or self.wrong != "sends no OrderAck a second time"):
            self.order_due = time.monotonic() + ACK_AFTER_S
        return accepted

    def source_address(self) -> str:
        return str(self.sock.getpeername()[0])

    # -- acknowledgements --------------------------------------------------------------------------------

    def admin(self, packet: Record, number: int, asked: int) -> None:
        user, properties = packet.UserHeader, packet.MessagePropertiesHeader
        if self.wrong == "sends no arrival acknowledgements" and number == 2:
            return
        if self.wrong == "sends no negative acknowledgements" and number != 2:
            return
        wants = int(properties.Flags)
        if self.wrong == "acknowledges arrival unasked" and user.AdminQueue is not None:
            wants |= 1
        if not wants & asked or user.AdminQueue is None:
            return
        name = user.AdminQueue.get("DirectFormatName")
        if not isinstance(name, str):
            return
        source, message_id = user.SourceQueueManager.bytes_le, user.MessageID
        if self.wrong == "puts its own GUID into CorrelationID":
            source = self.peer.guid.bytes_le
        if self.wrong == "writes MessageID in the other byte order":
            message_id = int.from_bytes(message_id.to_bytes(4, "little"), "big")
        fields = {
            "UserHeader": {"Flags": {"DM": user.Flags.DM}},
            "MessagePropertiesHeader": {
                "MessageClass": number,
                "CorrelationID": source + message_id.to_bytes(4, "little"),
            },
        }
        for _ in range(2 if self.wrong == "sends arrival acknowledgements twice" and number == 2 else 1):
            self.peer.send(name, USER_MESSAGE, fields, self)

    def final(self, packet: Record, number: int, at: float) -> None:
        header = packet.TransactionHeader
        previous = header.PreviousTxSequenceNumber
        body = {
            "TxSequenceID": header.TxSequenceID,
            "TxSequenceNumber": header.TxSequenceNumber,
            "TxPreviousSequenceNumber": previous,
            "SourceGUID": packet.UserHeader.SourceQueueManager,
            "MessageID": packet.UserHeader.MessageID,
        }
        if self.wrong == "sends no FinalAck":
            return
        if self.wrong == "puts its own GUID into FinalAcks":
            body["SourceGUID"] = self.peer.guid
        if self.wrong == "tells another class in FinalAcks":
            number = 0xC001
        fields = {"MessagePropertiesHeader": {"MessageClass": number}, "FinalAckBody": body}
        fields["UserHeader"] = {"Flags": {"DM": 1}}
        self.finals.append((at, fields))  # type: ignore[arg-type]

    def timers(self) -> None:
        now = time.monotonic()
        if self.due is not None and now >= self.due:
            self.acknowledge()
        if self.order_due is not None and now >= self.order_due:
            self.order_due = None
            identifier, number, address = self.order
            ordinal = (
                {"Ordinal": 1, "TimeStamp": 1} if self.wrong == "sends its own TxSequenceID" else identifier
            )
            previous = number - 1 if self.wrong != "tells the wrong previous number" else number
            body = {"TxSequenceID": ordinal, "TxSequenceNumber": number, "TxPreviousSequenceNumber": previous}
            if self.wrong != "sends no OrderAck":
                self.peer.send(_order_queue(address), ORDER_ACK, {"OrderAckBody": body}, self)
        for at, fields in list(self.finals):
            if now >= at:
                self.finals.remove((at, fields))
                self.peer.send(_order_queue(self.source_address()), FINAL_ACK, fields, self)  # type: ignore[arg-type]

    def acknowledge(self) -> None:
        """Send a SessionAck."""
        self.due, count = None, self.recoverable - self.acked_recoverable
        if self.wrong == "sends no SessionAck":
            return
        shift = {"acknowledges one too many": 1, "acknowledges one too few": -1}.get(self.wrong, 0)
        flags = (1 << min(count, 32)) - 1
        if self.wrong == "acknowledges express messages as stored":
            flags = (1 << min(self.unacked, 32)) - 1
        base = self.acked_recoverable + 1 if flags else 0
        if self.wrong == "counts flags from bit 1":
            flags <<= 1
        header = {
            "AckSequenceNumber": (self.received + shift) & 0xFFFF,
            "RecoverableMsgAckSeqNumber": base & 0xFFFF,
            "RecoverableMsgAckFlags": flags & 0xFFFFFFFF,
            "UserMsgSequenceNumber": self.sent + (self.wrong == "counts what it never sent"),
            "RecoverableMsgSeqNumber": self.recoverable_sent & 0xFFFF,
            "WindowSize": 0 if self.wrong == "sends a WindowSize of 0" else WINDOW,
        }
        self.acked_recoverable, self.unacked = self.recoverable, 0
        self.write(SESSION_ACK.make({"SessionHeader": header}))

    def write_message(self, packet: Record) -> None:
        """Send a message over this session."""
        self.sent += 1
        self.recoverable_sent += bool(packet.UserHeader.Flags.DM)
        self.write(packet)

    def write(self, packet: Record) -> None:
        self.sock.sendall(packet.to_bytes())


def _order_queue(address: str) -> str:
    return f"TCP:{address}\\PRIVATE$\\order_queue$"


@contextlib.contextmanager
def fuzzed_peer(address: str, wrong: str = "") -> Iterator[FuzzedPeer]:
    """Run a queue manager with a mistake."""
    peer = FuzzedPeer(address, wrong)
    threading.Thread(target=peer.run, daemon=True).start()
    try:
        yield peer
    finally:
        peer.crash()
