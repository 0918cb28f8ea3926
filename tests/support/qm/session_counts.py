"""The counts that one end of a session keeps for its SessionHeaders: [MS-MQMQ] 2.2.20.4."""

from __future__ import annotations

from tests.support import handmade as h
from tests.support.qm.received_packets import ReceivedPacket

SEQUENCE_NUMBERS = 0x10000
FLAGS = 32
"""Recoverable messages that one SessionHeader can acknowledge."""


class SessionCounts:
    """The counts of one end, which wrap after 0xFFFF.

    Attributes:
        sent, recoverable_sent: messages sent by this end.
        received, recoverable_received: messages that have come.
        recoverable_acked: recoverable messages that this end has acknowledged.
        window: WindowSize of this end.
    """

    def __init__(self) -> None:
        self.sent = self.recoverable_sent = self.received = self.recoverable_received = 0
        self.recoverable_acked = 0
        self.window = 64

    def count_sent(self, *, recoverable: bool) -> None:
        """Count a message that this end sends."""
        self.sent = (self.sent + 1) % SEQUENCE_NUMBERS
        self.recoverable_sent = (self.recoverable_sent + recoverable) % SEQUENCE_NUMBERS

    def count_received(self, packet: ReceivedPacket) -> None:
        """Count a message that has come; packets of the session itself do not count."""
        if not packet.base_flags & h.IN:
            self.received = (self.received + 1) % SEQUENCE_NUMBERS
            recoverable = self.recoverable_received + packet.is_recoverable
            self.recoverable_received = recoverable % SEQUENCE_NUMBERS

    @property
    def unacknowledged(self) -> int:
        """Recoverable messages that have come and that this end has not acknowledged."""
        return (self.recoverable_received - self.recoverable_acked) % SEQUENCE_NUMBERS

    def header(self, **fields: int) -> bytes:
        """A SessionHeader with these counts; by default it acknowledges nothing."""
        counts = {"sent": self.sent, "recoverable_sent": self.recoverable_sent, "window": self.window}
        return h.session_header(**(counts | fields))

    def acknowledging_header(self, **fields: int) -> bytes:
        """A SessionHeader that acknowledges everything received, recoverable messages as far as it has
        room.
        """
        count = min(self.unacknowledged, FLAGS)
        acknowledged = {
            "ack": self.received,
            "recoverable_ack": (self.recoverable_acked + 1) % SEQUENCE_NUMBERS if count else 0,
            "recoverable_flags": (1 << count) - 1,
        }
        self.recoverable_acked = (self.recoverable_acked + count) % SEQUENCE_NUMBERS
        return self.header(**(acknowledged | fields))

    def session_acks(self, **fields: int) -> list[bytes]:
        """SessionAcks for all that has come: one, or several where one does not have room."""
        packets = [h.session_ack(self.acknowledging_header(**fields))]
        while self.unacknowledged:
            packets.append(h.session_ack(self.acknowledging_header(**fields)))
        return packets
