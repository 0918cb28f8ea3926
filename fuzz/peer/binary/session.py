"""One connection with the peer: its traffic, the counts of both sides, and the faults in received packets."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from fuzz.peer.binary import messages
from fuzz.peer.binary.live import Shift, has_shift
from fuzz.peer.channel import Channel
from fuzz.peer.failure import WRONG_ANSWER, PeerFailure
from msmqwire.analysis.lint import BREACHES, Finding, lint_packet
from msmqwire.errors import MalformedPacket
from msmqwire.framing import Framer
from msmqwire.headers import SESSION_HEADER
from msmqwire.headers.session import SESSION_HEADER_SIZE
from msmqwire.names.printable import agreeing, counted
from msmqwire.packets import parse
from msmqwire.schema import Record

MESSAGES: Final = frozenset({"UserMessage", "OrderAck", "FinalAck"})
COUNTS: Final = 0x10000
FLAGS: Final = 32
"""Bits of RecoverableMsgAckFlags."""
OUT_OF_ORDER: Final = "order of packets"
"""The kind of the failure that the peer sends a packet for which it is not the time."""
# Fields at the discretion of a peer that neither signs nor encrypts, and fields that a FinalAck repeats from
# its message.
_TOLERATED: Final = frozenset(
    f"{section}-{number}"
    for section, numbers in {
        "MQMQ-2.2.19.3": ("22", "29", "38", "39"),
        "MQQB-2.2.5.1": ("03", "04"),
    }.items()
    for number in numbers
)
_SESSION_ACK: Final = messages.session_ack().to_bytes()[:-SESSION_HEADER_SIZE]


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
        heard: received packets.
        sent_at, note: the time of the last step, by the monotonic clock, and its description.
        peer: the GUID that it has sent.
        sent, recoverable_sent: messages of ours that count in this session.
        uncounted, recoverable_uncounted: the number of them that the text lets the peer leave out of its
            counts.
        acknowledged: the number of them that the peer has acknowledged.
        saved: the numbers of the recoverable ones that it has acknowledged as stored.
        confused: whether bytes were sent after which the counts are not known.
        may_close: whether the peer may end the session, after the bytes sent.
        holding: whether what comes is not acknowledged.
        received, received_acknowledged: messages of the peer, and those that this side has acknowledged.
        window: the window that the peer has announced; 0 before.
        agreed: WindowSize of the request of this side, and that of the answer; None before.
    """

    def __init__(self, channel: Channel, *, ours: bool) -> None:
        self.channel, self.ours = channel, ours
        self._coming, self._going = Framer(), Framer()
        self.requested = self.open = self.refused = self.confused = self.may_close = self.holding = False
        self.sent_at, self.note, self.heard = 0.0, "", 0
        self.peer: UUID | None = None
        self.window = 0
        self.agreed: tuple[int, int] | None = None
        self.sent = self.recoverable_sent = self.acknowledged = 0
        self.uncounted = self.recoverable_uncounted = 0
        self.saved: set[int] = set()
        self.received = self.received_acknowledged = 0
        self._recoverable_received = self._recoverable_acknowledged = 0
        self._asked: dict[str, Record] = {}

    # -- sending -----------------------------------------------------------------------------------------

    def outgoing(self, data: bytes, *, uncounted: bool = False) -> tuple[bytes, list[Record]]:
        """Count the messages to send, and make the SessionHeaders in them.

        Args:
            data: the bytes; they need not be packets.
            uncounted: whether the text lets the peer leave the messages out of its counts.

        Returns: the bytes to send, and the packets that are complete then.
        """
        if self.confused:
            return data, []
        before = self._going.buffered
        pieces = self._going.feed(data)
        if self._going.error is not None:
            self.confused = self.may_close = True
        packets: list[Record] = []
        for at, piece in enumerate(pieces):
            try:
                packet = parse(piece)
            except MalformedPacket:
                self.confused = self.may_close = True
                break
            packets.append(packet)
            self._note(packet, uncounted=uncounted)
            shift = Shift.of(piece)
            if shift is not None:
                pieces[at] = piece[:-SESSION_HEADER_SIZE] + self._header(shift)
        if before == 0 and has_shift(data):
            size = sum(map(len, pieces))
            data = b"".join(pieces) + data[size:]
        return data, packets

    @property
    def midway(self) -> bool:
        """Whether a packet has been sent in part."""
        return self._going.buffered > 0

    def _note(self, packet: Record, *, uncounted: bool) -> None:
        kind = packet.schema.name
        if kind in MESSAGES:
            self.count(recoverable=is_recoverable(packet))
            if uncounted:
                self.uncounted += 1
                self.recoverable_uncounted += is_recoverable(packet)
        elif kind != "SessionAck":
            self._asked[kind] = packet

    def count(self, *, recoverable: bool) -> None:
        """Count a message that is sent."""
        self.sent += 1
        self.recoverable_sent += recoverable

    @property
    def all_acknowledged(self) -> bool:
        """Whether the peer has acknowledged all messages, and has stored the recoverable ones."""
        return self.has_acknowledged(self.sent, self.recoverable_sent)

    def has_acknowledged(self, messages: int, recoverable: int) -> bool:
        """Return whether the peer has acknowledged a number of messages, and stored a number of recoverable
        ones.
        """
        return (
            self.acknowledged >= messages - self.uncounted
            and len(self.saved) >= recoverable - self.recoverable_uncounted
        )

    def _header(self, shift: Shift) -> bytes:
        """Return the SessionHeader that is right now, shifted."""
        count = min(self._recoverable_received - self._recoverable_acknowledged, FLAGS)
        base = self._recoverable_acknowledged + 1 if count else 0
        self._recoverable_acknowledged += count
        self.received_acknowledged = self.received
        return SESSION_HEADER.build(
            {
                "AckSequenceNumber": (self.received + shift.acknowledged) % COUNTS,
                "RecoverableMsgAckSeqNumber": (base + shift.base) % COUNTS,
                "RecoverableMsgAckFlags": (1 << count) - 1 ^ shift.flags,
                "UserMsgSequenceNumber": (self.sent + shift.sent) % COUNTS,
                "RecoverableMsgSeqNumber": (self.recoverable_sent + shift.recoverable) % COUNTS,
                "WindowSize": shift.window,
            }
        )

    # -- receiving --------------------------------------------------------------------------------------

    def read(self, deadline: float) -> list[Record]:
        """Return the packets that have come, after acknowledging them. Raises PeerFailure."""
        taken: list[Record] = []
        for data in self.channel.pieces():
            if self._coming.error is not None:
                return taken  # reported already
            for packet in self._coming.feed(data):
                taken.append(self._take(packet))
            if self._coming.error is not None:
                raise _malformed(self._coming.error)
        if self.received != self.received_acknowledged and not (self.holding or self.midway):
            self.acknowledge(deadline)
        return taken

    def acknowledge(self, deadline: float) -> None:
        """Acknowledge everything received, with the necessary number of SessionAcks."""
        self.may_close = self.may_close or bool(self.uncounted)  # its counts may differ
        while True:
            if not self.channel.send(_SESSION_ACK + self._header(Shift()), deadline):
                return
            if self._recoverable_received == self._recoverable_acknowledged:
                return

    def _take(self, data: bytes) -> Record:
        try:
            packet = parse(data)
        except MalformedPacket as error:
            raise _malformed(error) from None
        kind = packet.schema.name
        self.heard += 1
        broken = [
            finding
            for finding in lint_packet(packet, data)
            if finding.severity in BREACHES and finding.requirement not in _TOLERATED
        ]
        echo = self.may_close and kind in ("EstablishConnection", "ConnectionParameters")
        if broken and not echo:  # a fault in an echo was in the original
            raise _wrong(kind, broken)
        if kind in MESSAGES:
            if not self.open and not self.confused:
                text = f"the peer sends a {kind} before the session is open"
                raise PeerFailure(("MQQB-2.1.1-01",), text, OUT_OF_ORDER)
            self.received += 1
            self._recoverable_received += is_recoverable(packet)
        elif kind == "EstablishConnection":
            self._established(packet)
        elif kind == "ConnectionParameters":
            self._agreed(packet)
        header = packet.get("SessionHeader")
        if header is not None:
            self._acknowledgement(header, alone=kind == "SessionAck")
        return packet

    def _established(self, packet: Record) -> None:
        header = packet.EstablishConnectionHeader
        if not self.ours:
            self.peer = header.ClientGuid
            return
        asked = self._asked.get("EstablishConnection")
        if self.confused:
            self.requested = True
            return
        if self.requested or asked is None:
            raise PeerFailure(("MQQB-2.1.1-01",), "an EstablishConnection comes unasked", OUT_OF_ORDER)
        self.requested = True
        self.refused = bool(packet.InternalHeader.Flags.CS)
        request = asked.EstablishConnectionHeader
        echoed: list[tuple[str, str, Any, Any]] = [
            ("MQQB-3.1.5.3.1-04", "ClientGuid", request.ClientGuid, header.ClientGuid),
            ("MQQB-3.1.5.3.1-06", "TimeStamp", request.TimeStamp, header.TimeStamp),
            (
                "MQQB-3.1.5.3.1-07",
                "OperatingSystem.SE",
                int(request.OperatingSystem.SE),
                int(header.OperatingSystem.SE),
            ),
        ]
        for requirement, name, right, got in echoed:
            _same("EstablishConnection response", requirement, name, right, got)
        if header.Padding != messages.PADDING:
            text = "the padding of the EstablishConnection response is not all 0x5A"
            raise PeerFailure(("MQQB-2.2.3.1-18",), text, "echo")
        own = header.ServerGuid
        if not self.refused:
            self.peer = own
            if not own.int:
                text = "ServerGuid of the EstablishConnection response is null, not the peer's own"
                raise PeerFailure(("MQQB-3.1.5.3.1-05",), text, "echo")

    def _agreed(self, packet: Record) -> None:
        header = packet.ConnectionParametersHeader
        if not self.ours:
            self.open, self.window = True, header.WindowSize
            return
        asked = self._asked.get("ConnectionParameters")
        if self.confused:
            self.open = True
            return
        if self.open or asked is None:
            raise PeerFailure(("MQQB-2.1.1-01",), "ConnectionParameters come unasked", OUT_OF_ORDER)
        self.open, self.window = True, header.WindowSize
        if packet.InternalHeader.Flags.CS:
            text = "CS is set in the ConnectionParameters response"
            raise PeerFailure(("MQQB-3.1.5.4.1-02",), text, "echo")
        request = asked.ConnectionParametersHeader
        self.agreed = request.WindowSize, header.WindowSize
        for name in ("RecoverableAckTimeout", "AckTimeout"):
            _same(
                "ConnectionParameters response",
                "MQQB-3.1.5.4.1-02",
                name,
                request.get(name),
                header.get(name),
            )

    def _acknowledgement(self, header: Record, *, alone: bool) -> None:
        """Check a SessionHeader of the peer, and take its acknowledgements."""
        if not header.WindowSize:
            raise PeerFailure(("MQMQ-2.2.20.4-14",), "the peer sends a WindowSize of 0", "counts")
        if self.confused:
            return
        back = (self.sent - header.AckSequenceNumber) % COUNTS
        if back > self.sent:
            text = (
                f"AckSequenceNumber is {header.AckSequenceNumber}, but"
                f" {counted(self.sent, 'message', 'were')} sent"
            )
            raise PeerFailure(("MQQB-3.1.6.4-03",), text, "counts")
        if self.sent - back < self.acknowledged:
            text = f"AckSequenceNumber goes back from {self.acknowledged} to {self.sent - back}"
            raise PeerFailure(("MQQB-3.1.6.4-03",), text, "counts")
        self.acknowledged = self.sent - back
        self._stored(header.RecoverableMsgAckSeqNumber, int(header.RecoverableMsgAckFlags))
        claims = (
            ("MQQB-3.1.6.4-04", "UserMsgSequenceNumber", self.received),
            ("MQQB-3.1.6.4-05", "RecoverableMsgSeqNumber", self._recoverable_received),
        )
        for requirement, name, count in claims:
            right = {count % COUNTS} if alone else {count % COUNTS, (count - 1) % COUNTS}
            if header.get(name) not in right:
                text = f"{name} is {header.get(name)}, but the peer has sent {count}"
                raise PeerFailure((requirement,), text, "counts")

    def _stored(self, base: int, flags: int) -> None:
        count = self.recoverable_sent
        if not base and not flags:
            return
        if not base and count < COUNTS:
            text = f"RecoverableMsgAckFlags is {flags:#010x} with a RecoverableMsgAckSeqNumber of 0"
            raise PeerFailure(("MQQB-3.1.6.4-08",), text, "counts")
        first = count - (count - base) % COUNTS
        if first <= 0 or first + flags.bit_length() - 1 > count:
            text = (
                f"RecoverableMsgAckSeqNumber {base} with flags {flags:#x} acknowledges more than"
                f" the {counted(count, 'recoverable message')} that {agreeing(count, 'were')} sent"
            )
            raise PeerFailure(("MQQB-3.1.6.4-08", "MQQB-3.1.6.4-06"), text, "counts")
        self.saved |= {first + bit for bit in range(FLAGS) if flags >> bit & 1}


def _same(what: str, requirement: str, name: str, right: Any, got: Any) -> None:
    if right != got:
        raise PeerFailure((requirement,), f"{name} of the {what} is {got}, not {right}", "echo")


def _malformed(error: MalformedPacket) -> PeerFailure:
    requirement = error.requirement or "MQQB-3.1.5.1.3-01"
    return PeerFailure(
        (requirement,), f"the peer sends bytes that are not a packet: {error}", "malformed answer"
    )


def _wrong(kind: str, findings: list[Finding]) -> PeerFailure:
    ids = tuple(dict.fromkeys(finding.requirement for finding in findings))
    first = findings[0]
    return PeerFailure(ids, f"the peer sends a wrong {kind}: {first.path}: {first.message}", WRONG_ANSWER)
