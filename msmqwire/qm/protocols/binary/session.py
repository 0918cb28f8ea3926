"""One session: its counts and acknowledgements, [MS-MQQB] 3.1.1.3.1, 3.1.3.2 and 3.1.5.5."""

from __future__ import annotations

from collections import deque
from typing import Final
from uuid import UUID

from msmqwire.framing import Framer
from msmqwire.headers.base import PACKET_SIZE_MAX
from msmqwire.names.origins import UNKNOWN_ORIGIN, origin_of
from msmqwire.qm.model.elements import IncomingTransactionalTransferInfo
from msmqwire.qm.model.message import NULL_GUID
from msmqwire.qm.protocols.binary.send_order import SendOrder
from msmqwire.qm.protocols.binary.states import SESSION, SessionEvent, SessionRole, SessionState
from msmqwire.qm.protocols.binary.transfer import OutgoingMessagePosition, Peer, SessionTransfer
from msmqwire.qm.security.encryption import RemoteKeys

COUNTS: Final = 0x10000
"""Counts of a session are 16 bits wide and wrap."""
_HALF: Final = COUNTS >> 1
ACK_FLAGS: Final = 32
"""Bits of RecoverableMsgAckFlags."""
_PLACE_MAX: Final = 200
NO_TIMEOUT: Final = 0xFFFFFFFF


class NextHop:
    """An address on the route to a queue manager: [MS-MQQB] 3.1.1.3.1.3."""

    __slots__ = ("address", "host_name", "qm_guid")

    def __init__(self, qm_guid: UUID, host_name: str, address: str) -> None:
        self.qm_guid, self.host_name, self.address = qm_guid, host_name, address


class Session:
    """A session with another queue manager: [MS-MQQB] 3.1.1.3.1.

    An initiator's session outlives its connections; an acceptor's ends with its connection.

    Attributes:
        number: unique in the engine.
        role: whether this side opened the connection or accepted it.
        state: SessionState.
        connection: the transport connection; None without one.
        peer: the destination of an initiator's session.
        transfers: outgoing queues served by it.
        send_order: the transfers that have messages to send.
        hops, hop: NextHopCollection and the index of the current one.
        remote_address, remote_host_name, remote_guid: RemoteQMAddress, RemoteQMHostName, RemoteQMGuid.
        asked, unanswered: while names are resolved, the next hops by request, and the open requests.
        resolves_locally: whether names are resolved for a local application.
        may_ping, pinged: whether a ping may precede a connection, and whether one preceded this one.
        in_flight: messages sent without session acknowledgement, with their sequence numbers, in order;
            a transactional message that was resent is in it twice.
        unsaved: recoverable messages sent, until RecoverableMsgAckFlags says that they are saved.
        order_acks_due: the incoming sequences for which an order acknowledgement is due.
        asked_locally: whether a local application has asked for one of its transfers; otherwise only messages
            of peers have.
        failures: the count of failed attempts since it was last open.
        remote_public_keys: RemoteQMPublicKey, read from the directory when the first message is encrypted,
            for each queue manager beyond the session that messages are encrypted for.
    """

    def __init__(self, number: int, role: SessionRole, peer: Peer | None) -> None:
        self.number, self.role, self.peer = number, role, peer
        self.state = SessionState.CLOSED
        self.connection: int | None = None
        self.transfers: list[SessionTransfer] = []
        self.send_order = SendOrder()
        self.hops: list[NextHop] = []
        self.hop = 0
        self.remote_address = self.remote_host_name = ""
        self.remote_guid: UUID = NULL_GUID
        self.may_ping = self.pinged = self.resolves_locally = False
        self.asked: dict[int, list[NextHop]] = {}
        self.unanswered: set[int] = set()
        self.asked_locally = False
        self.failures = 0
        self.initialize(64, 20_000, 0)

    def initialize(
        self, window_size: int, ack_wait_timeout: int, utc: int, packet_size_max: int = PACKET_SIZE_MAX
    ) -> None:
        """Set the initial state of every connection: [MS-MQQB] 3.1.3.2."""
        self.framer = Framer(packet_size_max)
        # MQQB-3.1.1.3.1-01, MQQB-3.1.1.4-01
        self.message_sent_count = self.recoverable_message_sent_count = 0  # MQQB-3.1.1.3.1-06
        # MQQB-3.1.1.3.1-01, MQQB-3.1.1.4-01
        self.message_received_count = self.recoverable_message_received_count = 0  # MQQB-3.1.3.2-01
        self.last_acked_recoverable = 0
        self.recoverable_ack_flags = 0  # MQQB-3.1.1.3.1-01
        self.unacked_received_count = 0
        self.unacked_message_count = self.unacked_bytes = 0  # MQQB-3.1.3.2-07
        self.window_size = self.received_window_size = window_size
        self.session_active = self.received_ack = False  # MQQB-3.1.3.2-09
        self.ack_wait_timeout = ack_wait_timeout
        self.recoverable_ack_send_timeout = NO_TIMEOUT  # MQQB-3.1.3.2-15
        self.direct_format_session = False  # MQQB-3.1.3.2-12
        self.last_order_ack_send_time = utc
        self.remote_public_keys: dict[UUID, RemoteKeys] = {}  # MQQB-3.1.3.2-16, MQQB-3.1.1.3.1-04
        self.in_flight: deque[tuple[int, OutgoingMessagePosition]] = deque()
        self.unsaved: deque[OutgoingMessagePosition] = deque()
        self.order_acks_due: dict[IncomingTransactionalTransferInfo, None] = {}

    def step(self, event: SessionEvent) -> bool:
        """Take the transition of an event; return False if there is none and the session is to be closed."""
        following = SESSION.get((self.role, self.state, event))
        if following is None:
            return False
        self.state = following
        return True

    @property
    def remote_address(self) -> str:
        """RemoteQMAddress; `origin` is its key for limits and bindings."""
        return self._remote_address

    @remote_address.setter
    def remote_address(self, address: str) -> None:
        self._remote_address, self.origin = address, origin_of(address)

    @property
    def asked_by(self) -> str:
        """The origin of the message that the session was first needed for; empty for an application."""
        if self.asked_locally or not self.transfers:
            return ""
        return self.transfers[0].queue.asked_by or UNKNOWN_ORIGIN

    @property
    def place(self) -> str:
        """The destination of the session, for log lines: a host, or the queue that needs it; truncated if
        long.
        """
        if self.remote_host_name or not self.transfers:
            return (self.remote_host_name or self.remote_address)[:_PLACE_MAX]
        return str(self.transfers[0].queue.destination)[:_PLACE_MAX]

    @property
    def is_open(self) -> bool:
        """Return whether messages may be sent."""
        return self.state is SessionState.OPEN

    @property
    def window(self) -> int:
        """The limit of unacknowledged messages: the smaller of both windows, at least one."""
        return max(1, min(self.window_size, self.received_window_size))  # MQQB-3.1.1.3.1-19

    # -- received --------------------------------------------------------------------------

    def count_received(self) -> None:
        """Count a received message: MQQB-3.1.5.8.2-02."""
        # MQMQ-2.2.20.4-02, MQMQ-2.2.20.4-19
        # MQQB-3.1.5.8.7-02, MQQB-3.1.6.4-03
        self.message_received_count = (self.message_received_count + 1) % COUNTS  # MQQB-3.1.1.3.1-07
        self.unacked_received_count += 1  # MQQB-3.1.1.3.1-11

    @property
    def recoverable_unacked(self) -> int:
        """Recoverable messages received since the last acknowledgement."""
        return (self.recoverable_message_received_count - self.last_acked_recoverable) % COUNTS

    def count_recoverable_received(self) -> bool:
        """Count a recoverable message that will be saved: [MS-MQQB] 3.1.5.8.7.

        Returns whether it is the first since the last acknowledgement.
        """
        # MQQB-3.1.5.8.7-04
        # MQQB-3.1.1.3.1-08
        # MQQB-3.1.5.8.2-15, MQQB-3.1.5.8.2-20
        self.recoverable_message_received_count = (self.recoverable_message_received_count + 1) % COUNTS
        first = not self.recoverable_ack_flags  # MQQB-3.1.5.8.7-05
        # MQQB-3.1.1.3.1-10, MQMQ-2.2.20.4-09
        # MQQB-3.1.5.8.7-06, MQQB-3.1.6.4-06
        self.recoverable_ack_flags |= 1 << (self.recoverable_unacked - 1)
        return first

    def header(self, window_size: int | None = None) -> tuple[int, int, int, int, int, int]:
        """Return the fields of a SessionHeader that acknowledges everything received: [MS-MQQB] 3.1.6.4.

        AckSequenceNumber, RecoverableMsgAckSeqNumber, RecoverableMsgAckFlags, UserMsgSequenceNumber,
        RecoverableMsgSeqNumber and WindowSize.
        """
        flags = self.recoverable_ack_flags  # MQQB-3.1.7.11-03
        # MQQB-3.1.6.4-08, MQQB-3.1.7.1.3-09
        # MQQB-3.1.7.11-03, MQMQ-2.2.20.4-07, -08
        base = (self.last_acked_recoverable + 1) % COUNTS if flags else 0  # MQQB-3.1.1.6.1-04 and -06
        fields = (
            # MQQB-3.1.6.4-03, MQQB-3.1.6.4-04, MQQB-3.1.6.4-06
            # MQQB-2.2.6-03, MQQB-3.1.1.4-05
            # MQQB-3.1.1.6.1-01 and -02
            self.message_received_count, base, flags, self.message_sent_count,  # MQQB-3.1.5.8.7-02
            # MQQB-3.1.6.4-05, MQQB-3.1.6.4-07, MQQB-3.1.7.1.3-10
            self.recoverable_message_sent_count, self.window_size if window_size is None else window_size,
        )  # fmt: skip
        # MQQB-3.1.6.4-09, MQQB-3.1.7.1.3-11, MQMQ-2.2.20.4-08
        self.recoverable_ack_flags = self.unacked_received_count = 0  # MQQB-3.1.5.8.7-01, MQQB-3.1.5.8.7-03
        # MQQB-3.1.1.3.1-09
        # MQQB-3.1.6.4-09, MQQB-3.1.7.1.3-11, MQMQ-2.2.20.4-07
        self.last_acked_recoverable = self.recoverable_message_received_count  # MQQB-3.1.5.8.7-03
        return fields

    def ended_by_peer(self) -> None:
        """The peer has ended the connection: count that for transfers with messages left unacknowledged."""
        for transfer in {outgoing.transfer for _, outgoing in self.in_flight}:
            transfer.ended_unacknowledged += 1

    # -- sent ------------------------------------------------------------------------------

    def count_sent(self, outgoing: OutgoingMessagePosition, *, recoverable: bool) -> None:
        """Count a message that is being sent: [MS-MQQB] 3.1.7.1.3."""
        # MQQB-3.1.1.3.1-05, MQQB-3.1.1.4-02, MQMQ-2.2.20.4-02, MQMQ-2.2.20.4-03, MQMQ-2.2.20.4-19
        # MQQB-3.1.6.4-04
        self.message_sent_count = (self.message_sent_count + 1) % COUNTS  # MQQB-3.1.7.1.3-06
        outgoing.sequence_number = self.message_sent_count  # MQQB-3.1.1.3.1.2-02
        outgoing.recoverable_sequence_number = 0
        outgoing.recoverable = recoverable
        self.in_flight.append((self.message_sent_count, outgoing))
        if recoverable:
            # MQQB-3.1.1.3.1-06, MQMQ-2.2.20.4-13
            self.recoverable_message_sent_count = (self.recoverable_message_sent_count + 1) % COUNTS
            # MQQB-3.1.1.3.1.2-03, MQQB-3.1.1.4-03, MQMQ-2.2.20.4-04, MQMQ-2.2.20.4-05
            outgoing.recoverable_sequence_number = self.recoverable_message_sent_count  # MQQB-3.1.7.1.3-07
            self.unsaved.append(outgoing)
        self.unacked_message_count += 1  # MQQB-3.1.7.1.3-08, MQQB-3.1.1.3.1-28
        self.unacked_bytes += outgoing.position.size
        outgoing.session = self  # MQQB-3.1.7.1.3-12
        self.session_active = True

    def acknowledge(self, sequence_number: int) -> list[OutgoingMessagePosition]:
        """Return the messages that AckSequenceNumber covers for the first time: [MS-MQQB] 3.1.5.5.1.

        Numbers wrap: a number less than half the range ahead is new, any other is old.
        """
        in_flight = self.in_flight
        if not in_flight:
            return []
        ahead = (sequence_number - in_flight[0][0]) % COUNTS
        if ahead >= _HALF:  # MQQB-3.1.5.5.1-01
            return []
        count = min(ahead + 1, len(in_flight))
        self.unacked_message_count -= count  # MQQB-3.1.5.5.1-02
        covered = [in_flight.popleft() for _ in range(count)]
        self.unacked_bytes -= sum(outgoing.position.size for _, outgoing in covered)
        return [outgoing for number, outgoing in covered if outgoing.sequence_number == number]

    def saved(self, base: int, flags: int) -> list[OutgoingMessagePosition]:
        """Return the messages saved by RecoverableMsgAckSeqNumber and -Flags: [MS-MQQB] 3.1.5.5.3."""
        if not base and not flags:  # a base of 0 alone is valid: every 65,536th message has number 0
            return []
        saved: list[OutgoingMessagePosition] = []
        unsaved: deque[OutgoingMessagePosition] = deque()
        for outgoing in self.unsaved:
            distance = (outgoing.recoverable_sequence_number - base) % COUNTS
            before = distance >= _HALF
            # MQQB-3.1.5.5.3-01, MQQB-3.1.5.5.3-02
            # MQQB-3.1.1.6-01
            covered = before or distance == 0 or (distance < ACK_FLAGS and flags >> distance & 1)
            (saved if covered and outgoing.received_session_ack else unsaved).append(outgoing)
        self.unsaved = unsaved
        return saved

    @property
    def awaits_acks(self) -> bool:
        """Return whether any sent message lacks a session acknowledgement."""
        return bool(self.in_flight)
