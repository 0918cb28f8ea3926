"""The first stage: from the packets of each connection, in order, to observations of messages."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

from msmqwire.analysis.dissection.skip_reasons import OTHER_HTTP
from msmqwire.analysis.fate.model import TEXT_MAX, EventKind
from msmqwire.analysis.fate.observations import (
    NULL_GUID,
    AboutNumber,
    Attributes,
    Claim,
    Numbered,
    Observation,
    Sighting,
    Where,
    correlated,
    identity,
    identity_of_srmp,
    queue_manager_group,
    read_group,
    sequence_group,
)
from msmqwire.analysis.fate.rows import Row, session_header
from msmqwire.analysis.fate.session import Session
from msmqwire.constants import MessageClass
from msmqwire.headers.acknowledgements import ACK_BODY_SIZE, FINAL_ACK_BODY, ORDER_ACK_BODY
from msmqwire.names.printable import cut
from msmqwire.remote_read.constants import RECEIVE_ACTIONS, Acknowledge

CONNECTIONS_MAX: Final = 1 << 14
"""Connections that are followed at a time; of more, the one that was silent longest is taken as ended."""
OUTSTANDING_MAX: Final = 1 << 20
"""Messages without a session acknowledgement on all of them; of more, connections are taken as ended."""
REQUESTS_MAX: Final = 1 << 10
"""Requests of HTTP on a connection that wait for a response; of more, the oldest are forgotten."""
CLAIMS_MAX: Final = 16
"""Queue managers that claim an address on one connection; of more, the rest are not looked at."""

_NO_LIMIT: Final = 0xFFFFFFFF
_ONE_SIDED: Final = "nothing that the other side sent was captured, so an answer may have been missed"
_MISSED: Final = "the capture does not have the whole connection, so an answer may have been missed"
_FORGOTTEN: Final = "more connections were captured than are followed, so an answer may have been missed"
_STARTS: Final = ("EstablishConnection", "ConnectionParameters")
_MESSAGES: Final = ("UserMessage", "OrderAck", "FinalAck")
_RECEIPTS: Final = {
    "delivery receipt": EventKind.DELIVERY_RECEIPT,
    "commitment receipt": EventKind.COMMITMENT_RECEIPT,
    "final stream receipt": EventKind.FINAL_STREAM_RECEIPT,
}
ACKNOWLEDGING: Final = frozenset(MessageClass) - {
    MessageClass.MQMSG_CLASS_NORMAL,
    MessageClass.MQMSG_CLASS_REPORT,
}
"""The classes of acknowledgement messages."""


def is_start(row: Row) -> bool:
    """Whether nothing of a connection is missing before this packet, the first one that is captured."""
    return row.kind in _STARTS


def where_of(row: Row, position: int) -> Where:
    """Return where a packet was seen."""
    return Where(position, row.time, row.stream, row.file, row.frame, row.src, row.dst)


class Connection:
    """One connection, of whatever protocol.

    Attributes:
        last: the place of its last packet.
    """

    def __init__(self, *, from_start: bool) -> None:
        self._session = Session(from_start=from_start)
        self._requests: OrderedDict[int, str] = OrderedDict()  # identities of messages, by exchange
        self._has_gaps, self._is_one_sided = False, False  # of HTTP
        self._claims: set[tuple[str, str]] = set()
        self.last: Where | None = None

    @property
    def size(self) -> int:
        """The number of messages that it remembers."""
        return self._session.size

    def feed(self, row: Row, where: Where) -> Iterator[Sighting]:
        """Take a packet; yield its observations of messages."""
        self.last = where
        kind = row.kind
        if kind in _MESSAGES:
            yield from self._message(row, where)
        elif kind == "EstablishConnection":
            self._session.established(row)
        elif kind == "ConnectionParameters":
            self._session.parameters(row)
        elif kind in ("Malformed", "Skipped"):
            self._session.gap(row)
            self._has_gaps |= kind == "Skipped" and row.error != OTHER_HTTP
            yield from self._unreadable(row, where)
        elif kind == "SrmpMessage":
            yield from self._srmp(row, where)
            return
        elif kind.startswith(("R_StartReceive", "R_StartTransactionalReceive")):
            yield from _handed_out(row, where)
        elif kind.startswith(("R_EndReceive", "R_EndTransactionalReceive")):
            yield from _ended(row, where)
        header = session_header(row)
        if header is not None:
            yield from self._session.header(row, where, header)

    def end(self, *, early: bool = False) -> Iterator[Sighting]:
        """Yield the last observations when no more of the connection is known, or looked at if `early`."""
        if self.last is None:
            return
        yield from self._session.end(self.last, unknown=_FORGOTTEN if early else "")
        unknown = (
            _FORGOTTEN if early else _ONE_SIDED if self._is_one_sided else _MISSED if self._has_gaps else ""
        )
        for key in self._requests.values():
            yield Observation(
                key, self.last, EventKind.UNACKNOWLEDGED,
                is_certain=not unknown, detail=unknown or "the request has no response",
            )  # fmt: skip

    # -- messages by [MS-MQQB] ------------------------------------------------------------------------

    def _message(self, row: Row, where: Where) -> Iterator[Sighting]:
        if row.source_qm is None or row.message_id is None:
            self._session.gap(row)
            return
        key = identity(row.source_qm, row.message_id)
        self._session.message(row, key)
        side, other = self._session.sides(row)
        yield Observation(
            key, where, EventKind.SENT, sender_qm=side.guid, receiver_qm=other.guid,
            message=_attributes(row, "tcp"),
        )  # fmt: skip
        yield from _number(row, where, key, other.guid)
        yield from self._claim(row, where, key, side.guid)
        if row.kind == "OrderAck":
            yield from _order_ack(row, where)
        elif row.kind == "FinalAck":
            yield from _final_ack(row, where, key)
        elif row.message_class in ACKNOWLEDGING:
            about = correlated(row.correlation_id)
            if about is not None:
                yield Observation(
                    about, where, EventKind.ACKNOWLEDGEMENT, message_class=row.message_class,
                    sender_qm=row.source_qm,
                    acknowledged_by=key,
                )  # fmt: skip

    def _claim(self, row: Row, where: Where, key: str, sender_qm: str) -> Iterator[Claim]:
        """Yield that a queue manager is where a message comes from, if it sends its own: once for each.

        A router has raised the hop count: MQQB-3.1.5.8.2-17.
        """
        source, claims = _known(row.source_qm), self._claims
        is_own = source and sender_qm in ("", source)
        if row.hop_count or row.message_class in ACKNOWLEDGING or not is_own:
            return
        if (source, row.src) not in claims and len(claims) < CLAIMS_MAX:
            claims.add((source, row.src))
            yield Claim(queue_manager_group(source), where, key)

    # -- SRMP -----------------------------------------------------------------------------------------

    def _srmp(self, row: Row, where: Where) -> Iterator[Sighting]:
        self._is_one_sided = bool(row.one_sided)
        if row.http_status is not None:
            answered = self._answered(row) if row.http_status >= 200 else None
            if answered is not None:
                accepted = row.http_status < 300
                what = EventKind.ACCEPTED if accepted else EventKind.NOT_ACCEPTED
                yield Observation(answered, where, what, detail=f"HTTP status {row.http_status}")
            return
        if row.srmp_id is None:
            return
        # Receipts name it so, whatever SourceQmGuid is: SRMP-2.2.5.4-04, example 4.4
        key = identity_of_srmp(row.srmp_id)
        if row.exchange is not None:
            self._requests[row.exchange] = key
            if len(self._requests) > REQUESTS_MAX:
                self._requests.popitem(last=False)
        yield Observation(
            key, where, EventKind.SENT, sender_qm=row.source_qm or "", message=_attributes(row, "http")
        )
        stream = _stream(row.srmp_stream)
        if stream is not None and row.tx_number is not None:
            yield Numbered(stream[0], row.tx_number, stream[1], where, key)
        if row.receipt in _RECEIPTS and row.receipt_id is not None:
            yield Observation(
                identity_of_srmp(row.receipt_id), where, _RECEIPTS[row.receipt],
                message_class=row.message_class, sender_qm=row.source_qm or "", acknowledged_by=key,
            )  # fmt: skip
        elif row.receipt is not None and stream is not None and row.receipt_ordinal is not None:
            group, owner = stream
            sender = row.source_qm or ""
            yield AboutNumber(group, row.receipt_ordinal, owner, where, EventKind.STREAM_RECEIPT, sender)

    def _answered(self, row: Row) -> str | None:
        """Return the message whose request this answers: the reader pairs them, for all that ask."""
        return None if row.exchange is None else self._requests.pop(row.exchange, None)

    def _unreadable(self, row: Row, where: Where) -> Iterator[Observation]:
        """Yield that the answer to a request can't be read."""
        answered = self._answered(row)
        if answered is not None:
            why = "its response can't be read"
            yield Observation(answered, where, EventKind.UNACKNOWLEDGED, is_certain=False, detail=why)


class Connections:
    """All connections of a capture."""

    def __init__(self) -> None:
        self._connections: OrderedDict[int, Connection] = OrderedDict()
        self._size = 0

    def feed(self, row: Row, position: int) -> Iterator[Sighting]:
        """Take the next packet of the capture; yield its observations of messages."""
        if row.stream is None:
            return
        where = where_of(row, position)
        connection = self._connections.get(row.stream)
        if connection is None:
            connection = self._connections[row.stream] = Connection(from_start=is_start(row))
        else:
            self._connections.move_to_end(row.stream)
        before = connection.size
        yield from connection.feed(row, where)
        self._size += connection.size - before
        while len(self._connections) > CONNECTIONS_MAX or self._size > OUTSTANDING_MAX:
            yield from self._end(next(iter(self._connections)), early=True)

    def _end(self, stream: int, *, early: bool = False) -> Iterator[Sighting]:
        connection = self._connections.pop(stream)
        self._size -= connection.size
        yield from connection.end(early=early)

    def end(self) -> Iterator[Sighting]:
        """Yield the last observations at the end of the capture."""
        while self._connections:
            yield from self._end(next(iter(self._connections)))


def _attributes(row: Row, transport: str) -> Attributes:
    return Attributes(
        label=_cut(row.label),
        destination=_cut(row.destination),
        destination_qm=_known(row.destination_qm) or None,
        admin_queue=_cut(row.admin_queue),
        transport=transport,
        message_class=row.message_class or 0,
        class_name=row.class_name or "NORMAL",
        body_size=row.body_size,
        recoverable=bool(row.recoverable),
        transactional=row.tx_number is not None,
        ack_flags=row.ack_flags or 0,
        journal_negative=bool(row.journal_negative),
        sent_time=row.sent_time,
        time_to_reach_queue=_limit(row.time_to_reach_queue),
        time_to_be_received=_limit(row.time_to_be_received),
        hop_count=row.hop_count or 0,
        beginning=None if row.encrypted else row.body,
    )


def _cut(text: str | None) -> str | None:
    return None if text is None else cut(text, TEXT_MAX)


def _known(guid: str | None) -> str:
    return "" if guid is None or guid == NULL_GUID else guid


def _limit(seconds: int | None) -> int | None:
    return None if seconds is None or seconds >= _NO_LIMIT else seconds


def _number(row: Row, where: Where, key: str, receiver_qm: str = "") -> Iterator[Numbered]:
    """Yield the number of a message in its transactional sequence."""
    if row.tx_number is not None and row.tx_sequence_timestamp is not None:
        group = sequence_group(row.tx_sequence_timestamp, row.tx_sequence_ordinal or 0)
        owner = row.source_qm or ""
        yield Numbered(
            group, row.tx_number, owner, where, key, False, receiver_qm, _known(row.destination_qm)
        )


def _stream(text: str | None) -> tuple[str, str] | None:
    """Return the group and the owner of a stream of SRMP."""
    if text is None:
        return None
    owner, _, number = text.removeprefix("uid:").rpartition("\\")
    return sequence_group(int(number) >> 32, int(number) & 0xFFFFFFFF), owner


def _order_ack(row: Row, where: Where) -> Iterator[AboutNumber]:
    if row.body is None or len(row.body) < ACK_BODY_SIZE:
        return
    body = ORDER_ACK_BODY.parse(row.body[:ACK_BODY_SIZE])
    group = sequence_group(body.TxSequenceID.TimeStamp, body.TxSequenceID.Ordinal)
    owner = _known(row.destination_qm)
    yield AboutNumber(group, body.TxSequenceNumber, owner, where, EventKind.ORDER_ACK, row.source_qm or "")


def _final_ack(row: Row, where: Where, key: str) -> Iterator[Observation]:
    if row.body is None or len(row.body) < ACK_BODY_SIZE:
        return
    body = FINAL_ACK_BODY.parse(row.body[:ACK_BODY_SIZE])
    yield Observation(
        identity(str(body.SourceGUID), body.MessageID), where, EventKind.FINAL_ACK,
        message_class=row.message_class, sender_qm=row.source_qm or "",
        acknowledged_by=key,
    )  # fmt: skip


def _handed_out(row: Row, where: Where) -> Iterator[Sighting]:
    """Yield the message in an answer of remote read."""
    if row.source_qm is None or row.message_id is None:
        return
    key = identity(row.source_qm, row.message_id)
    receives = row.receive_action in RECEIVE_ACTIONS
    yield Observation(
        key, where, EventKind.HANDED_OUT if receives else EventKind.PEEKED,
        detail=_cut(row.read_queue) or "", message=_attributes(row, "remote read"),
    )  # fmt: skip
    if receives and row.queue_handle is not None and row.request_id is not None:
        yield Numbered(read_group(where.src, row.queue_handle), row.request_id, "", where, key, True)


def _ended(row: Row, where: Where) -> Iterator[AboutNumber]:
    """Yield the observations of the answer to the end of a receive: the server has done as asked."""
    if row.call_status != 0 or row.receive_ack is None or row.queue_handle is None or row.request_id is None:
        return
    what = EventKind.GIVEN_BACK
    if row.receive_ack == Acknowledge.RR_ACK:
        transactional = row.kind.startswith("R_EndTransactional")
        what = EventKind.TAKEN_IN_TRANSACTION if transactional else EventKind.TAKEN
    yield AboutNumber(read_group(where.src, row.queue_handle), row.request_id, "", where, what)
