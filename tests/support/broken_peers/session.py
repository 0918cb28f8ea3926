"""One protocol session: [MS-MQQB] 3.1.5.1 to 3.1.5.5 and 3.1.6.4. Sockets and clocks are its owner's."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Protocol

from tests.support.broken_peers.handshake import Handshake, State
from tests.support.broken_peers.message import Message, read_message
from tests.support.broken_peers.wire import (
    BASE,
    BASE_RESERVED,
    BASE_SH,
    IN,
    PACKET_SIZE_MAX,
    SIGNATURE,
    Crash,
    Hang,
    Malformed,
    SessionHeader,
    internal,
    read_session_header,
)

if TYPE_CHECKING:
    from tests.support.broken_peers.manager import Manager, Outgoing

WINDOW = 64
ACK_BITS = 32
INITIALIZATION_S = 60.0
ORDER_ACK_S, ORDER_ACK_MAX_S = 0.5, 10.0
LATE_S = 30.0
_HANDSHAKE_SIZES = {
    State.WAITING_EC_MSG: 572, State.WAITING_CP_MSG: 32,
    State.WAITING_ECR_MSG: 572, State.WAITING_CPR_MSG: 32,
}  # fmt: skip


class Transport(Protocol):
    """The connection of a session."""

    def write(self, data: bytes) -> None: ...
    def close(self) -> None: ...


class Timer(Protocol):
    """Something that happens later unless it is cancelled."""

    def cancel(self) -> None: ...


class Session:
    """The peer's end of a connection.

    Args:
        manager: the owner of the session.
        transport: the connection.
        address: the address of the other side.
        initiator: whether this side has connected.
    """

    def __init__(
        self, manager: Manager, transport: Transport, address: str, *, initiator: bool = False
    ) -> None:
        self.manager, self.transport, self.address = manager, transport, address
        self.makes = manager.makes
        self.state = State.WAITING_ECR_MSG if initiator else State.WAITING_EC_MSG
        self.remote_guid = bytes(16)
        self.direct = False
        self.why = ""
        self.packets = self.checksum = 0
        self.reserved = bytearray()
        self._buffer = bytearray()
        self._handshake = Handshake(self)
        # MessageReceivedCount and so on
        self.received = self.recoverable_received = self.sent = self.recoverable_sent = 0
        self.last_acked = self.ack_flags = self.unacked = 0
        self.received_window = self.window = WINDOW
        self.ack_timeout_s, self.recoverable_ack_s = 20.0, 0.5
        self.heard = False
        self.unacknowledged: deque[tuple[int, int, Outgoing]] = deque()
        self.waiting: deque[Outgoing] = deque()
        self.waiting_size = 0
        self._ack_timer: Timer | None = None
        self._wait_timer: Timer | None = None
        self._order_timer: Timer | None = None
        self._orders_due: dict[tuple[bytes, str], None] = {}
        self._last_order_ack = manager.loop.time()
        self._initialization = manager.loop.call_later(INITIALIZATION_S, self._too_late)
        manager.sessions.append(self)
        if manager.makes("counts_survive") and manager.last_counts is not None:
            self.received, self.sent = manager.last_counts
        if initiator:
            self._handshake.request()

    # -- bytes --------------------------------------------------------------------------------------------

    def receive(self, data: bytes) -> None:
        """Take bytes of the connection. Raises Crash and Hang."""
        if self.state in (State.CLOSING, State.CLOSED):
            return
        if self.makes("quadratic_reader"):
            for byte in data:
                self._buffer.append(byte)
                self.checksum = sum(self._buffer)
        else:
            self._buffer += data
        try:
            while self.state not in (State.CLOSING, State.CLOSED) and (packet := self._next()) is not None:
                if self.makes("loses_second"):
                    self._buffer.clear()
                self._packet(packet)
        except Malformed as why:
            if self.makes("leaks_malformed"):
                self.manager.leaked.append(bytearray(self._buffer) + bytes(1 << 16))
            if self.makes("closes_late"):
                self.state = State.CLOSING
                self.manager.loop.call_later(LATE_S, self.close, str(why))
            else:
                self.close(str(why))
        half = bool(self._buffer) and self.state is not State.CLOSED
        if self.makes("half_packet_blocks"):
            self.manager.blocked_by(self if half else None, self)

    def _next(self) -> bytes | None:
        if len(self._buffer) < BASE.size:
            return None
        version, reserved, flags, signature, size, _ = BASE.unpack_from(self._buffer)
        if version != 0x10 and not self.makes("any_version"):
            raise Malformed(f"VersionNumber {version:#x}")
        if signature != SIGNATURE and not self.makes("any_signature"):
            raise Malformed(f"Signature {signature:#x}")
        if reserved and self.makes("reserved_must_be_zero"):
            raise Malformed(f"Reserved {reserved:#x}")
        if flags & BASE_RESERVED and self.makes("refuses_reserved_flags"):
            raise Malformed(f"Flags {flags:#x}")
        if size % 2 and self.makes("crashes_on_odd_size"):
            raise Crash("assert PacketSize % 2 == 0")
        if size < BASE.size and self.makes("small_size_hangs"):
            raise Hang("a packet that has no end is looked for again and again")
        if size > PACKET_SIZE_MAX and self.makes("any_packet_size"):
            self.reserved = bytearray(min(size, 1 << 26))
            return None
        if not BASE.size <= size <= PACKET_SIZE_MAX:
            raise Malformed(f"PacketSize {size}")
        expected = _HANDSHAKE_SIZES.get(self.state)
        if expected not in (None, size) and not self.makes("before_handshake"):
            raise Malformed(f"PacketSize {size} in {self.state.name}")
        if flags & (IN | BASE_SH) == BASE_SH and not self.makes("session_header_in_size"):
            size += 16
        if len(self._buffer) < size:
            return None
        packet = bytes(self._buffer[:size])
        del self._buffer[:size]
        return packet

    def _packet(self, packet: bytes) -> None:
        """Receiving Any Packet: [MS-MQQB] 3.1.5.1."""
        self.heard = True
        self.packets += 1
        if self.packets > 127 and self.makes("dies_at_128"):
            raise Crash("the number of packets is a signed byte")
        flags = BASE.unpack_from(packet)[2]
        if not flags & IN:
            self._user_message(packet)
            return
        if len(packet) < 20:
            raise Malformed("no InternalHeader")
        kind = packet[18] & 0x0F
        if kind == 1:
            self._session_ack(packet)
        elif kind == 2:
            self._handshake.establish_connection(packet)
        elif kind == 3:
            self._handshake.connection_parameters(packet)
        elif not self.makes("unknown_internal_packet"):
            raise Malformed(f"PT {kind}")

    def send(self, data: bytes) -> None:
        """Send a packet; nothing once the session is closed."""
        if self.state is State.CLOSED:
            return
        target = self.manager.sessions[-1] if self.makes("answers_the_newest") else self
        target.transport.write(data)

    def close(self, why: str) -> None:
        """Closing a Session: [MS-MQQB] 3.1.5.9."""
        if self.state is State.CLOSED:
            return
        self.state, self.why = State.CLOSED, why
        self.transport.close()
        for timer in (self._ack_timer, self._wait_timer, self._order_timer, self._initialization):
            if timer is not None:
                timer.cancel()
        self._buffer.clear()
        if self.makes("half_packet_blocks"):
            self.manager.blocked_by(None, self)
        self.manager.closed(self)

    def _too_late(self) -> None:
        self.close("Session Initialization Timer")

    def opened(self) -> None:
        """The handshake is complete."""
        self.state = State.OPEN
        self._initialization.cancel()
        self.manager.opened(self)

    # -- messages -----------------------------------------------------------------------------------------

    def _user_message(self, packet: bytes) -> None:
        """Receiving a UserMessage Packet: [MS-MQQB] 3.1.5.8."""
        if self.state is not State.OPEN and not self.makes("before_handshake"):
            raise Malformed(f"UserMessage in {self.state.name}")
        message = read_message(packet, self.makes)
        header = message.session_header
        if header is not None and not header.window and not self.makes("window_zero"):
            raise Malformed("WindowSize 0")
        if header is not None and self.makes("header_before_message"):
            self._session_header(header)
        counts = header is None or self._agrees(header, message)
        if not counts and self.makes("wrong_counts_lose_message"):
            raise Malformed("counts of the other side disagree")
        duplicate = message.tx is None and self.manager.is_known(message, self)
        if not (duplicate and self.makes("duplicates_not_counted")):
            self._count(message)
        self.direct = self.direct or message.destination.kind == "direct"
        self.manager.arrived(message, self)
        if header is not None and not self.makes("header_before_message"):
            self._session_header(header)
        if self.unacked >= max(1, min(self.window, self.received_window) // 2):
            self.acknowledge()

    def _agrees(self, header: SessionHeader, message: Message) -> bool:
        """Whether a SessionHeader counts the message that carries it, and all before."""
        counts = self.received + 1, self.recoverable_received + message.recoverable
        return (header.sent, header.recoverable_sent) == (counts[0] % 0x10000, counts[1] % 0x10000)

    def _count(self, message: Message) -> None:
        """General Processing and Recoverable Message Processing: [MS-MQQB] 3.1.5.8.2 and 3.1.5.8.7."""
        full = (self.recoverable_received - self.last_acked) % 0x10000 >= ACK_BITS
        if message.recoverable and full and not self.makes("no_ack_at_32"):
            self.acknowledge()
        self.received = (self.received + 1) % (0x100 if self.makes("counts_in_a_byte") else 0x10000)
        self.unacked += 1
        if self._ack_timer is None:
            self._start_ack_timer(self.ack_timeout_s / 2)
        if message.recoverable:
            if not self.ack_flags:
                self._start_ack_timer(self.recoverable_ack_s)
            self.recoverable_received = (self.recoverable_received + 1) % 0x10000
            bit = (self.recoverable_received - self.last_acked) % 0x10000 - 1
            if self.makes("flags_start_at_bit_1"):
                bit += 1
            self.ack_flags = (self.ack_flags | 1 << bit) & 0xFFFFFFFF

    def _start_ack_timer(self, delay: float) -> None:
        """Session Ack Send Timer: [MS-MQQB] 3.1.2.5 and 3.1.6.4."""
        if self._ack_timer is not None:
            self._ack_timer.cancel()
        self._ack_timer = self.manager.loop.call_later(max(delay, 0.01), self._ack_due)

    def _ack_due(self) -> None:
        if self.unacked:
            self.acknowledge()
        self._start_ack_timer(self.ack_timeout_s / 2)

    def acknowledge(self) -> None:
        """Send a SessionAck: MQQB-3.1.6.4-02 to -09."""
        if self.makes("never_acknowledges"):
            return
        base = (self.last_acked + 1) % 0x10000 if self.ack_flags else 0
        header = SessionHeader(
            ack=(self.received + self.makes("ack_off_by_one")) % 0x10000,
            recoverable_ack=0 if self.makes("no_recoverable_base") else base,
            recoverable_flags=self.ack_flags,
            sent=0 if self.makes("sent_not_counted") else self.sent,
            recoverable_sent=self.recoverable_sent,
            window=0 if self.makes("sends_window_zero") else self.window,
        )
        flags = IN if self.makes("ack_without_sh") else IN | BASE_SH
        self.send(internal(5 if self.makes("ack_of_wrong_type") else 1, header.pack(), flags=flags))
        self.unacked = 0
        if not self.makes("flags_not_cleared"):
            self.ack_flags = 0
        self.last_acked = self.recoverable_received

    # -- acknowledgements that come -----------------------------------------------------------------------

    def _session_ack(self, packet: bytes) -> None:
        """Receiving a SessionAck Packet: [MS-MQQB] 3.1.5.5."""
        if self.state is not State.OPEN:
            raise Malformed(f"SessionAck in {self.state.name}")
        if len(packet) != 36 or not BASE.unpack_from(packet)[2] & BASE_SH:
            raise Malformed("no SessionAck")
        header = read_session_header(packet)
        if not header.window and not self.makes("window_zero"):
            raise Malformed("WindowSize 0")
        self._session_header(header)

    def _session_header(self, header: SessionHeader) -> None:
        newly = (header.ack - (self.unacknowledged[0][0] - 1 if self.unacknowledged else self.sent)) % 0x10000
        if self.makes("ack_of_nothing_crashes") and len(self.unacknowledged) < newly < 0x8000:
            raise Crash("a message that was never sent is taken out of the list")
        self.received_window = header.window
        kept: deque[tuple[int, int, Outgoing]] = deque()
        for number, recoverable, outgoing in self.unacknowledged:
            acknowledged = (header.ack - number) % 0x10000 < 0x8000
            bit = (recoverable - header.recoverable_ack) % 0x10000
            saved = bit < ACK_BITS and header.recoverable_flags >> bit & 1
            if not (saved if outgoing.recoverable else acknowledged):
                kept.append((number, recoverable, outgoing))
        self.unacknowledged = kept
        counts = header.sent, header.recoverable_sent
        if counts != (self.received, self.recoverable_received) and not self.makes("ignores_counts"):
            raise Malformed("counts of the other side disagree")
        self.send_waiting()

    # -- messages that go ---------------------------------------------------------------------------------

    def put(self, outgoing: Outgoing) -> None:
        """Send a message as soon as the window allows."""
        self.waiting.append(outgoing)
        self.waiting_size += len(outgoing.packet)
        self.send_waiting()

    def send_waiting(self) -> None:
        """Send the messages that the window allows."""
        window = max(1, min(self.window, self.received_window))
        while self.state is State.OPEN and self.waiting and len(self.unacknowledged) < window:
            outgoing = self.waiting.popleft()
            self.waiting_size -= len(outgoing.packet)
            self.sent = (self.sent + 1) % 0x10000
            number = 0
            if outgoing.recoverable:
                number = self.recoverable_sent = (self.recoverable_sent + 1) % 0x10000
            self.unacknowledged.append((self.sent, number, outgoing))
            self.send(outgoing.packet)
            if self._wait_timer is None:
                self._start_wait_timer()

    def _start_wait_timer(self) -> None:
        """Session Ack Wait Timer: [MS-MQQB] 3.1.2.4 and 3.1.6.3."""
        self.heard = False
        self._wait_timer = self.manager.loop.call_later(2 * self.ack_timeout_s, self._not_acknowledged)

    def _not_acknowledged(self) -> None:
        self._wait_timer = None
        if self.unacknowledged and not self.heard:
            self.close("Session Ack Wait Timer")
        elif self.unacknowledged:
            self._start_wait_timer()

    def order_ack_due(self, key: tuple[bytes, str]) -> None:
        """Order Ack Send Timer: [MS-MQQB] 3.1.2.7 and MQQB-3.1.5.8.6-02."""
        loop = self.manager.loop
        self._orders_due[key] = None
        if self._order_timer is not None:
            if loop.time() - self._last_order_ack >= ORDER_ACK_MAX_S:
                return
            self._order_timer.cancel()
        self._order_timer = loop.call_later(ORDER_ACK_S, self._send_order_acks)

    def _send_order_acks(self) -> None:
        due, self._orders_due, self._order_timer = self._orders_due, {}, None
        self._last_order_ack = self.manager.loop.time()
        for key in due:
            self.manager.order_ack(key, self)
