"""One connection with the peer: what passed, the counts of both sides, and what is wrong in what came."""

from __future__ import annotations

from typing import Final

from fuzz.peer.binary import messages
from fuzz.peer.channel import Channel
from fuzz.peer.failure import WRONG_ANSWER, PeerFailure
from msmqwire.errors import MalformedPacket
from msmqwire.framing import Framer
from msmqwire.lint import Finding, SessionLint, lint_packet
from msmqwire.packets import parse
from msmqwire.schema import Record

MESSAGES: Final = frozenset({"UserMessage", "OrderAck", "FinalAck"})
_COUNTS: Final = 0x10000
_FLAGS: Final = 32


def is_recoverable(packet: Record) -> bool:
    """Return whether a message counts as recoverable: also when it is transactional."""
    return bool(packet.UserHeader.Flags.DM) or packet.TransactionHeader is not None


class PeerSession:
    """A connection and the session on it.

    Attributes:
        channel: the connection.
        ours: whether this side opened it.
        requested, open: whether the peer has answered EstablishConnection, and ConnectionParameters.
        refused: whether it has refused the session.
        sent, recoverable_sent: messages of ours that count in this session.
        acknowledged: how many of them the peer has acknowledged.
        saved: the numbers of the recoverable ones that it has acknowledged as stored.
        packets: what has come.
        confused: whether something was sent after which the counts are not known.
    """

    def __init__(self, channel: Channel, *, ours: bool) -> None:
        self.channel, self.ours = channel, ours
        self._framer, self._lint = Framer(), SessionLint()
        self.requested = self.open = self.refused = self.confused = False
        self.sent = self.recoverable_sent = self.acknowledged = 0
        self.saved: set[int] = set()
        self.packets: list[Record] = []
        self._received = self._recoverable_received = self._recoverable_acknowledged = 0

    # -- what is sent ------------------------------------------------------------------------------------

    def note_sent(self, data: bytes) -> None:
        """Count what was sent; the bytes need not be packets."""
        framer = Framer()
        packets = framer.feed(data)
        if framer.error is not None or framer.buffered:
            self.confused = True
        for packet in packets:
            try:
                self._count(parse(packet))
            except MalformedPacket:
                self.confused = True

    def _count(self, packet: Record) -> None:
        self._lint.packet(self.ours, packet)
        if packet.schema.name in MESSAGES:
            self.sent += 1
            self.recoverable_sent += is_recoverable(packet)

    @property
    def all_acknowledged(self) -> bool:
        """Whether the peer has acknowledged all messages, and has stored the recoverable ones."""
        return self.acknowledged >= self.sent and len(self.saved) >= self.recoverable_sent

    # -- what comes --------------------------------------------------------------------------------------

    def read(self, deadline: float) -> list[Record]:
        """Return the packets that have come, after acknowledging them. Raises PeerFailure."""
        taken: list[Record] = []
        while data := self.channel.read():
            try:
                packets = self._framer.feed(data)
            except MalformedPacket:
                return taken  # told already
            for packet in packets:
                taken.append(self._take(packet))
            if self._framer.error is not None:
                raise _malformed(self._framer.error)
        if any(packet.schema.name in MESSAGES for packet in taken):
            self._acknowledge(deadline)
        return taken

    def _take(self, data: bytes) -> Record:
        try:
            packet = parse(data)
        except MalformedPacket as error:
            raise _malformed(error) from None
        self.packets.append(packet)
        kind = packet.schema.name
        findings = lint_packet(packet, data) + self._lint.packet(not self.ours, packet, data)
        broken = [finding for finding in findings if finding.severity != "SHOULD"]
        if broken and not self.confused:
            raise _wrong(kind, broken)
        self._progress(kind, packet)
        return packet

    def _progress(self, kind: str, packet: Record) -> None:
        if kind in MESSAGES:
            self._received += 1
            self._recoverable_received += is_recoverable(packet)
        elif kind == "EstablishConnection":
            self.requested = True
            self.refused = self.refused or bool(packet.InternalHeader.Flags.CS)
        elif kind == "ConnectionParameters":
            self.open = True
        header = packet.get("SessionHeader")
        if header is not None:
            back = (self.sent - header.AckSequenceNumber) % _COUNTS
            if back <= self.sent:
                self.acknowledged = max(self.acknowledged, self.sent - back)
            base = header.RecoverableMsgAckSeqNumber
            self.saved |= {
                base + bit for bit in range(_FLAGS) if base and header.RecoverableMsgAckFlags >> bit & 1
            }

    def _acknowledge(self, deadline: float) -> None:
        """Acknowledge all that has come, with as many SessionAcks as that takes."""
        while True:
            count = min(self._recoverable_received - self._recoverable_acknowledged, _FLAGS)
            ack = messages.session_ack(
                AckSequenceNumber=self._received % _COUNTS,
                RecoverableMsgAckSeqNumber=(self._recoverable_acknowledged + 1) % _COUNTS if count else 0,
                RecoverableMsgAckFlags=(1 << count) - 1,
                UserMsgSequenceNumber=self.sent % _COUNTS,
                RecoverableMsgSeqNumber=self.recoverable_sent % _COUNTS,
            )
            self._recoverable_acknowledged += count
            self._count(ack)
            if not self.channel.send(ack.to_bytes(), deadline):
                return
            if self._recoverable_received == self._recoverable_acknowledged:
                return


def _malformed(error: MalformedPacket) -> PeerFailure:
    requirement = error.requirement or "MQQB-3.1.5.1.3-01"
    return PeerFailure((requirement,), f"the peer sends what is no packet: {error}", "malformed answer")


def _wrong(kind: str, findings: list[Finding]) -> PeerFailure:
    ids = tuple(dict.fromkeys(finding.id for finding in findings))
    first = findings[0]
    return PeerFailure(ids, f"the peer sends a wrong {kind}: {first.path}: {first.message}", WRONG_ANSWER)
