"""The message counts of both sides of a session, checked against their SessionHeaders.

[MS-MQMQ] 2.2.20.4, [MS-MQQB] 3.1.1.4, 3.1.1.6.1 and 3.1.7.1. Numbers are 16 bits wide and wrap.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from msmqwire.analysis.lint.finding import Finding
from msmqwire.analysis.lint.registry import FieldOffsets, listed
from msmqwire.names.printable import counted
from msmqwire.schema import Record

MASK: Final = 0xFFFF
HALF: Final = 0x8000
"""The furthest that a number can lag if the start of counting is unknown."""

_HEADER = "SessionHeader"
SENT_COUNT: Final = listed(
    "MQMQ-2.2.20.4-10",
    "UserMsgSequenceNumber is not the count of messages sent",
    f"{_HEADER}.UserMsgSequenceNumber",
    severity="SHOULD",
)
RECOVERABLE_COUNT: Final = listed(
    "MQMQ-2.2.20.4-13",
    "RecoverableMsgSeqNumber is not the count of recoverable messages sent",
    f"{_HEADER}.RecoverableMsgSeqNumber",
)
ACK_SENT: Final = listed(
    "MQMQ-2.2.20.4-06",
    "AckSequenceNumber acknowledges messages that were not sent",
    f"{_HEADER}.AckSequenceNumber",
)
ACK_GROWS: Final = listed("MQQB-3.1.1.6.1-02", "AckSequenceNumber goes back", f"{_HEADER}.AckSequenceNumber")
RECOVERABLE_SENT: Final = listed(
    "MQMQ-2.2.20.4-07",
    "RecoverableMsgAckSeqNumber acknowledges a message that was not sent",
    f"{_HEADER}.RecoverableMsgAckSeqNumber",
)
FLAGS_SENT: Final = listed(
    "MQMQ-2.2.20.4-09-SENT",
    "RecoverableMsgAckFlags acknowledges messages that were not sent",
    f"{_HEADER}.RecoverableMsgAckFlags",
)
OWN_WINDOW: Final = listed(
    "MQQB-3.1.7.1-03", "A message is sent while the sender's own window is full", "UserHeader.MessageID"
)
PEER_WINDOW: Final = listed(
    "MQQB-3.1.7.1-03-PEER",
    "A message is sent while the peer's window is full",
    "UserHeader.MessageID",
    severity="SHOULD",
)


@dataclass(slots=True)
class Side:
    """The counts of the messages that one side has sent.

    Attributes:
        sent, recoverable: messages of this session; None if not yet known. Learned numbers lie above
            65536, so that they can be compared backwards.
        acked: the number of them that the peer has acknowledged.
        whole: counted from the start of the session.
        drift, recoverable_drift: known deviation of this side's own count.
        surplus: the number of messages that the peer has acknowledged beyond those sent.
        window: the largest window that this side has announced.
        full: its messages exceed a window, and that was reported.
    """

    sent: int | None = 0
    recoverable: int | None = 0
    acked: int | None = 0
    whole: bool = True
    drift: int = 0
    recoverable_drift: int = 0
    surplus: int = 0
    window: int = 0
    full: bool = False

    def forget(self) -> None:
        self.sent = self.recoverable = self.acked = None
        self.whole = self.full = False
        self.drift = self.recoverable_drift = self.surplus = 0


class Counters:
    """The counts of both directions; True is that of the initiator."""

    def __init__(self, *, known: bool) -> None:
        self._sides = {True: Side(), False: Side()}
        if not known:
            self.forget()

    @classmethod
    def resumed(cls, initiator: Side, acceptor: Side) -> Counters:
        """Return counters that go on from these."""
        counters = cls(known=True)
        counters._sides = {True: initiator, False: acceptor}
        return counters

    def forget(self) -> None:
        """Forget everything but the windows."""
        for side in self._sides.values():
            side.forget()

    def fall_behind(self, initiator: bool) -> None:
        """Note that a side has received messages that were not captured, and may have sent acknowledgements
        for it.
        """
        self._sides[initiator].acked = self._sides[not initiator].acked = None

    def restart(self) -> None:
        """Begin a session in which nothing was sent."""
        for initiator, side in self._sides.items():
            self._sides[initiator] = Side(window=side.window)

    def window(self, initiator: bool, size: int) -> None:
        """Note the window that a side announces."""
        side = self._sides[initiator]
        side.window = max(side.window, size)

    def waiting(self, initiator: bool) -> bool:
        """Return whether messages of a side are known to be unacknowledged."""
        side = self._sides[initiator]
        return side.sent is not None and side.acked is not None and side.sent > side.acked

    def message(self, initiator: bool, packet: Record, offsets: FieldOffsets) -> Iterator[Finding]:
        """Count a message, OrderAcks and FinalAcks included."""
        side = self._sides[initiator]
        if side.sent is not None:
            side.sent += 1
        # MQQB-3.1.1.4-04: a transactional message is recoverable, whatever its DM says.
        transactional = packet.TransactionHeader is not None
        recoverable = transactional or packet.UserHeader.Flags.DM == 1
        if side.recoverable is not None and recoverable:
            side.recoverable += 1
        if side.sent is None or side.acked is None:
            return
        waiting = side.sent - side.acked
        own, peer = side.window, self._sides[not initiator].window
        least = min((size for size in (own, peer) if size), default=0)
        if not least or waiting <= least:
            side.full = False
        elif not side.full:
            side.full = True
            check, of = (OWN_WINDOW, own) if own and waiting > own else (PEER_WINDOW, peer)
            why = f"{counted(waiting, 'message', 'are')} not acknowledged, with a window of {of}"
            yield check.at(check.path, offsets.of(check.path), why)

    def header(
        self, initiator: bool, packet: Record, offsets: FieldOffsets, *, is_behind: bool = False
    ) -> Iterator[Finding]:
        """Check a SessionHeader, alone or at the end of a message already counted.

        Its acknowledgements are not judged if the side has received messages that were not captured.
        """
        header = packet.SessionHeader
        yield from self._claims(self._sides[initiator], header, offsets)
        peer = self._sides[not initiator]
        if not is_behind:
            yield from self._acknowledges(peer, header, offsets)
            yield from self._stored(peer, header, offsets)
        self.window(initiator, header.WindowSize)

    def _claims(self, side: Side, header: Any, offsets: FieldOffsets) -> Iterator[Finding]:
        claimed = header.UserMsgSequenceNumber
        if side.sent is None:
            side.sent = claimed + MASK + 1
        elif claimed != (side.sent + side.drift) & MASK:
            why = f"{claimed}, but {counted((side.sent + side.drift) & MASK, 'message', 'were')} sent"
            yield SENT_COUNT.at(SENT_COUNT.path, offsets.of(SENT_COUNT.path), why)
            side.drift = claimed - side.sent
        claimed = header.RecoverableMsgSeqNumber
        if side.recoverable is None:
            side.recoverable = claimed + MASK + 1
        elif claimed != (side.recoverable + side.recoverable_drift) & MASK:
            count = (side.recoverable + side.recoverable_drift) & MASK
            why = f"{claimed}, but {counted(count, 'recoverable message', 'were')} sent"
            yield RECOVERABLE_COUNT.at(RECOVERABLE_COUNT.path, offsets.of(RECOVERABLE_COUNT.path), why)
            side.recoverable_drift = claimed - side.recoverable

    def _acknowledges(self, side: Side, header: Any, offsets: FieldOffsets) -> Iterator[Finding]:
        if side.sent is None:
            return
        claimed, sent = header.AckSequenceNumber, side.sent + side.surplus
        behind = (sent - claimed) & MASK  # messages that it leaves unacknowledged
        if side.acked is None:
            most = HALF - 1
        else:
            most = sent - side.acked
        if behind <= most:
            side.acked = sent - behind
            return
        ahead = (claimed - sent) & MASK
        path = ACK_SENT.path
        if side.acked is not None and behind - most <= ahead and sent >= behind:
            why = f"{claimed} after {side.acked & MASK}"
            yield ACK_GROWS.at(path, offsets.of(path), why)
            return
        yield ACK_SENT.at(path, offsets.of(path), f"{claimed}, but {side.sent & MASK} messages were sent")
        side.surplus += ahead
        side.acked = sent + ahead

    def _stored(self, side: Side, header: Any, offsets: FieldOffsets) -> Iterator[Finding]:
        if side.recoverable is None:
            return
        count = side.recoverable
        most = min(count, HALF) if side.whole else HALF
        number, flags = header.RecoverableMsgAckSeqNumber, int(header.RecoverableMsgAckFlags)
        if number and (count - number) & MASK >= most:
            path = RECOVERABLE_SENT.path
            why = f"{number}, but {counted(count & MASK, 'recoverable message', 'were')} sent"
            yield RECOVERABLE_SENT.at(path, offsets.of(path), why)
            return
        if not flags:
            return
        highest = number + flags.bit_length() - 1
        path = FLAGS_SENT.path
        if not number and side.whole and count <= MASK:
            yield FLAGS_SENT.at(path, offsets.of(path), f"{flags:#010x}, but no message has number 0")
        elif (count - highest) & MASK >= most:
            sent = counted(count & MASK, "recoverable message", "were")
            why = f"{highest & MASK} acknowledged, but {sent} sent"
            yield FLAGS_SENT.at(path, offsets.of(path), why)
