"""Expectations of a peer: the receipts of messages that it has taken, and the state of its streams."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from fuzz.peer.failure import WRONG_ANSWER, PeerFailure
from msmqwire.analysis.lint import BREACHES, lint_malformed_srmp, lint_srmp
from msmqwire.errors import MalformedPacket
from msmqwire.names.printable import counted
from msmqwire.srmp.content import Content
from msmqwire.srmp.envelope import Envelope
from msmqwire.srmp.http_message import HttpMessage
from msmqwire.srmp.identifiers import MessageIdentifier, StreamIdentifier
from msmqwire.srmp.kinds import EnvelopeKind, kind_of
from msmqwire.srmp.message import SrmpMessage, from_http

NOBODY: Final = MessageIdentifier(1, UUID(int=0))
"""The identifier of every message without Msmq: SRMP-3.1.5.1.1-13."""
ON_REQUEST: Final = "SRMP-2.2.5.2.2-05"
IN_ORDER: Final = "SRMP-3.1.1.3.2-03"
ONCE: Final = "SRMP-3.1.5.1.11-02"


@dataclass(slots=True)
class Delivery:
    """The receipts asked for at one URL.

    Attributes:
        url: the destination of delivery receipts.
        envelope: the envelope of the requesting message.
        ids: the requirements that a peer breaks by sending none.
        sent: the identifiers of the messages, each once unless it may come several times.
        taken: the messages that the peer has reported as accepted.
        got: the messages in received receipts.
    """

    url: str
    envelope: Envelope
    ids: tuple[str, ...] = (ON_REQUEST,)
    sent: list[MessageIdentifier] = field(default_factory=list)
    taken: list[MessageIdentifier] = field(default_factory=list)
    got: list[MessageIdentifier] = field(default_factory=list)


@dataclass(slots=True)
class IncomingStream:
    """The state of a stream at the peer: [MC-MQSRM] 3.1.5.1.6.3.

    Attributes:
        identifier: the identifier of the stream.
        url: the destination of its receipts.
        number: the number of the last message that the peer must have accepted.
        most: the number of the last message that it may have accepted.
        acknowledged: the highest that a receipt had.
        over: whether another stream has taken its place.
        accepted: the requirements that a peer breaks if it does not acknowledge a message, by its number.
    """

    identifier: StreamIdentifier
    url: str
    number: int = 0
    most: int = 0
    acknowledged: int = 0
    over: bool = False
    accepted: dict[int, tuple[str, ...]] = field(default_factory=dict)

    def follows(self, element: Content) -> bool:
        """Return whether a message is accepted in this stream."""
        current, previous = element.current, element.previous
        before = current - 1 if previous is None else previous
        return bool(current == self.number + 1 or (current > self.number >= before))


def identifier_of(envelope: Envelope) -> MessageIdentifier:
    """Return the identifier under which a peer knows a message: SRMP-3.1.5.1.1-12, SRMP-2.2.4.3-05."""
    if envelope.Msmq is None:
        return NOBODY
    return MessageIdentifier(envelope.path.id.uniquifier, envelope.Msmq.SourceQmGuid)


class Expected:
    """The receipts that this side waits for.

    Attributes:
        deliveries: by the URL, in lower case.
        streams: by their identifier.
        uncertain: messages sent that correct peers may or may not accept.
        repeated: whether a message was sent again.
        refused: messages that have to be refused: the bytes, the requirements that a peer breaks if it takes
            them, and a description.
    """

    def __init__(self, identity: UUID) -> None:
        self._identity = str(identity)
        self.deliveries: dict[str, Delivery] = {}
        self.streams: dict[StreamIdentifier, IncomingStream] = {}
        self._current: dict[str, IncomingStream] = {}
        self._first: dict[MessageIdentifier, str] = {}
        self._redirected: dict[tuple[str, MessageIdentifier], Delivery] = {}
        self._spoiled: set[str] = set()
        self._receipts: dict[MessageIdentifier, tuple[Any, ...]] = {}
        self.uncertain: list[bytes] = []
        self.repeated = False
        self.refused: list[tuple[bytes, tuple[str, ...], str]] = []

    # -- sent and accepted -------------------------------------------------------------------------------

    def sent(self, envelope: Envelope, ids: tuple[str, ...]) -> None:
        """Remember a message that goes out."""
        identifier, services = identifier_of(envelope), envelope.services
        asks = services is not None and services.deliveryReceiptRequest is not None
        url = services.deliveryReceiptRequest.sendTo if asks else ""
        if self._first.setdefault(identifier, url) != url and identifier != NOBODY:
            self._spoiled.add(url.lower())
        if not asks:
            return
        delivery = self.deliveries.setdefault(url.lower(), Delivery(url, envelope))
        delivery.ids = ids or delivery.ids
        if identifier == NOBODY or identifier not in delivery.sent:
            delivery.sent.append(identifier)
        else:
            self.repeated = True
        if envelope.stream is not None and envelope.stream.start is not None:
            other = envelope.stream.start.sendReceiptsTo.lower()
            for known in (identifier, envelope.path.id):
                self._redirected[other, known] = delivery

    def _asked(self, to: str, identifier: MessageIdentifier) -> Delivery | None:
        """Return the request for a receipt about a message that comes to a URL.

        By SRMP-2.2.5.4-05 that is sendTo. By SRMP-2.2.5.3.4-04 sendReceiptsTo overwrites it, for the first
        message of a stream: both are right.
        """
        to = to.lower()
        return self.deliveries.get(to) or self._redirected.get((to, identifier))

    def taken(self, envelope: Envelope) -> None:
        """Remember that the peer has taken a message that has to be put into its queue."""
        services, identifier = envelope.services, identifier_of(envelope)
        if services is None or services.deliveryReceiptRequest is None:
            return
        url = services.deliveryReceiptRequest.sendTo.lower()
        if url in self._spoiled:
            return  # another message had its identifier before
        delivery = self.deliveries[url]
        if identifier == NOBODY or identifier not in delivery.taken:
            delivery.taken.append(identifier)

    def in_stream(self, envelope: Envelope, ids: tuple[str, ...]) -> bool:
        """Follow a stream message that goes out; return whether the peer has to accept it."""
        element, to = envelope.stream, envelope.path.to.lower()
        identifier, start = element.streamId, element.start
        current = self._current.get(to)
        if (
            start is not None
            and element.current == 1
            and (current is None or current.identifier != identifier)
        ):
            if current is not None:
                current.over = True
            known = self.streams.get(identifier)
            if known is not None:  # an earlier one: the peer may or may not still have it
                known.most = max(known.most, 1)
                self._current.pop(to, None)
                return False
            current = IncomingStream(identifier, start.sendReceiptsTo)
            self.streams[identifier] = self._current[to] = current
            current.number = current.most = 1
            current.accepted[1] = ids
            return True
        known = self.streams.get(identifier)
        if known is None:
            return False
        if known is not current or known.over:  # a peer may go on with it, or not
            known.most = max(known.most, element.current)
            return False
        if known.follows(element):
            known.number = element.current
            known.most = max(known.most, known.number)
            known.accepted[known.number] = ids
            return True
        return False

    # -- receiving --------------------------------------------------------------------------------------

    @property
    def missing(self) -> PeerFailure | None:
        """The first receipt that has not come yet; None if all have."""
        for delivery in self.deliveries.values():
            lacking = len(delivery.taken) - len(delivery.got)
            if lacking > 0:
                text = (
                    f"no delivery receipt comes to {delivery.url} for {delivery.taken[-1]}, which was taken"
                )
                return PeerFailure(delivery.ids, text, "no receipt")
        for stream in self.streams.values():
            if stream.over or stream.acknowledged >= stream.number:
                continue
            first = min(number for number in stream.accepted if number > stream.acknowledged)
            text = (
                f"message {first} of a stream is not acknowledged; "
                f"the highest lastOrdinal is {stream.acknowledged or 'none'}"
            )
            return PeerFailure(stream.accepted[first] or ("SRMP-3.1.2.3-01",), text, "no receipt")
        return None

    def received(self, http: HttpMessage) -> None:
        """Judge a request of the peer. Raises PeerFailure."""
        try:
            message = from_http(http)
        except MalformedPacket as error:
            found = lint_malformed_srmp(http.to_bytes(), error)
            ids = tuple(
                dict.fromkeys(finding.requirement for finding in found if finding.id.startswith("SRMP"))
            )
            text = f"the peer sends a receipt that is malformed: {error}"
            raise PeerFailure(ids or ("SRMP-3.1.5.1.2-01",), text, "malformed receipt") from None
        envelope = message.envelope
        if envelope is None or self._identity not in http.to_bytes().decode("latin-1").lower():
            return  # for a queue manager that was here before
        self._judge_form(message)
        self._judge_identifier(envelope)
        match kind_of(envelope):
            case EnvelopeKind.DELIVERY_RECEIPT:
                self._delivery(envelope)
            case EnvelopeKind.STREAM_RECEIPT:
                self._stream(envelope)
            case EnvelopeKind.COMMITMENT_RECEIPT:
                self._commitment(envelope)
            case EnvelopeKind.FINAL_STREAM_RECEIPT:
                text = "a final stream receipt comes for a message without DeadLetter"
                raise PeerFailure(("SRMP-3.1.1.3.3-02",), text, "unasked receipt")
            case _:
                text = "the peer sends a request that is not a receipt: its class and elements fit none"
                raise PeerFailure(("SRMP-3.1.5.1.5-03",), text, "wrong receipt")

    def _judge_form(self, message: SrmpMessage) -> None:
        findings = [finding for finding in lint_srmp(message) if finding.severity in BREACHES]
        if findings:
            ids = tuple(dict.fromkeys(finding.requirement for finding in findings))
            text = f"the peer sends a wrong receipt: {findings[0].path}: {findings[0].message}"
            raise PeerFailure(ids, text, WRONG_ANSWER)
        if message.body is not None or message.extension is not None:
            raise PeerFailure(("SRMP-2.2.2-08",), "a receipt has an attachment", "wrong receipt")

    def _judge_identifier(self, envelope: Envelope) -> None:
        """An identifier is of one message among all: [MC-MQSRM] 2.2.4.3."""
        identifier = identifier_of(envelope)
        says = envelope.deliveryReceipt, envelope.streamReceipt, envelope.commitmentReceipt
        if identifier != NOBODY and self._receipts.setdefault(identifier, says) != says:
            text = f"two receipts that differ have the identifier {identifier}"
            raise PeerFailure(("SRMP-2.2.4.3-02",), text, "one identifier")

    def _commitment(self, envelope: Envelope) -> None:
        """The fate of a message in its queue is not known here; its requester is."""
        delivery = self._asked(envelope.path.to, envelope.commitmentReceipt.id)
        if delivery is None:
            return
        asked = delivery.envelope.services.commitmentReceiptRequest
        positive = envelope.commitmentReceipt.decision == "positive"
        if asked is None or not (asked.positiveOnly if positive else asked.negativeOnly):
            text = (
                f"a {envelope.commitmentReceipt.decision} commitment receipt comes that nobody has asked for"
            )
            raise PeerFailure(("SRMP-3.1.1.3.4-04",), text, "unasked receipt")

    def _delivery(self, envelope: Envelope) -> None:
        to, receipt = envelope.path.to, envelope.deliveryReceipt
        delivery = self._asked(to, receipt.id)
        if delivery is None:
            if any(to.encode() in data for data in self.uncertain):
                return
            for data, ids, note in self.refused:
                if to.encode() in data:
                    raise PeerFailure(ids, f"the peer sends a receipt for {note}", "status")
            text = f"a delivery receipt for {receipt.id} goes to {to}, where no message has asked for one"
            raise PeerFailure(("SRMP-2.2.5.4-05",), text, "receipt elsewhere")
        asked = delivery.envelope
        known = {*delivery.sent}
        if asked.Msmq is not None:
            known |= {asked.path.id}
        if receipt.id not in known:
            text = f"id of a delivery receipt is {receipt.id}, that of the message {delivery.sent[0]}"
            raise PeerFailure(("SRMP-2.2.5.4-04",), text, "receipt of another id")
        self._judge_label(asked, envelope)
        correlation = envelope.Msmq.Correlation if envelope.Msmq is not None else None
        rights = {
            item.lineage.bytes_le + (item.uniquifier & 0xFFFF_FFFF).to_bytes(4, "little") for item in known
        }
        if correlation and any(correlation) and correlation not in rights:
            text = f"Correlation of the delivery receipt for {receipt.id} is {correlation.hex()}"
            raise PeerFailure(("SRMP-2.2.5.4-07",), text, "wrong Correlation")
        delivery.got.append(receipt.id)
        if len(delivery.got) > len(delivery.sent):
            text = (
                f"{counted(len(delivery.got), 'delivery receipt', 'come')} for {receipt.id},"
                " which is one message"
            )
            raise PeerFailure((ONCE if delivery.ids == (ONCE,) else ON_REQUEST,), text, "receipt twice")

    def _judge_label(self, asked: Envelope, envelope: Envelope) -> None:
        """A label without ``MSMQ:`` may be repeated, or be none: SRMP-2.2.4.1-04, SRMP-2.2.4.1-05."""
        action = asked.path.action
        rights = {action} if action.startswith("MSMQ:") else {action, "MSMQ:"}
        if envelope.path.action not in rights:
            text = (
                f"action of a receipt is {envelope.path.action[:80]!r}, that of the message {action[:80]!r}"
            )
            raise PeerFailure(("SRMP-2.2.4.1-04",), text, "wrong action")

    def _stream(self, envelope: Envelope) -> None:
        receipt = envelope.streamReceipt
        stream = self.streams.get(receipt.streamId)
        if stream is None:
            text = f"a stream receipt is for {receipt.streamId}, a stream that was not begun"
            raise PeerFailure(("SRMP-2.2.5.6-02",), text, "wrong stream receipt")
        if envelope.path.to.lower() != stream.url.lower():
            text = f"a stream receipt goes to {envelope.path.to}, not to {stream.url}"
            raise PeerFailure(("SRMP-3.1.6.3-05",), text, "receipt elsewhere")
        if receipt.lastOrdinal > stream.most:
            text = (
                f"lastOrdinal is {receipt.lastOrdinal}, and no message after {stream.most} is to be accepted"
            )
            raise PeerFailure((IN_ORDER,), text, "acknowledged too much")
        stream.acknowledged = max(stream.acknowledged, receipt.lastOrdinal)
