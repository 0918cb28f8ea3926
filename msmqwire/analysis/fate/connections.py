"""The first stage: from the packets of each connection, in order, to observations of messages."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

from msmqwire.analysis.dissection.skip_reasons import OTHER_HTTP
from msmqwire.analysis.fate.followers import Follower, followers
from msmqwire.analysis.fate.model import EventKind
from msmqwire.analysis.fate.observations import (
    AboutNumber,
    Claim,
    Numbered,
    Observation,
    Sighting,
    Where,
    correlated,
    identity,
    queue_manager_group,
    sequence_group,
)
from msmqwire.analysis.fate.row_attributes import attributes_of, known
from msmqwire.analysis.fate.rows import Row, session_header
from msmqwire.analysis.fate.session import Session
from msmqwire.constants import MessageClass
from msmqwire.headers.acknowledgements import ACK_BODY_SIZE, FINAL_ACK_BODY, ORDER_ACK_BODY

CONNECTIONS_MAX: Final = 1 << 14
"""Connections that are followed at a time; of more, the one that was silent longest is taken as ended."""
OUTSTANDING_MAX: Final = 1 << 20
"""Messages without a session acknowledgement or a response of HTTP on all of them; of more, connections are
taken as ended.
"""
CLAIMS_MAX: Final = 16
"""Queue managers that claim an address on one connection; of more, the rest are not looked at."""

_FORGOTTEN: Final = "more connections were captured than are followed, so an answer may have been missed"
_STARTS: Final = ("EstablishConnection", "ConnectionParameters")
_MESSAGES: Final = ("UserMessage", "OrderAck", "FinalAck")
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
        self._followers: dict[type[Follower], Follower] = {}  # of protocols that have joined
        self._has_gaps = False
        self._claims: set[tuple[str, str]] = set()
        self.last: Where | None = None

    @property
    def size(self) -> int:
        """The number of messages that it remembers."""
        size = self._session.size
        if self._followers:
            size += sum(follower.size for follower in self._followers.values())
        return size

    def feed(self, row: Row, where: Where) -> list[Sighting]:
        """Take a packet; return its observations of messages."""
        self.last = where
        kind = row.kind
        sightings: list[Sighting] = []
        if kind in _MESSAGES:
            self._message(row, where, sightings)
        elif kind == "EstablishConnection":
            self._session.established(row)
        elif kind == "ConnectionParameters":
            self._session.parameters(row)
        elif kind in ("Malformed", "Skipped"):
            self._session.gap(row)
            self._has_gaps |= kind == "Skipped" and row.error != OTHER_HTTP
            for follower in self._followers.values():
                sightings += follower.unreadable(row, where)
        elif (joined := followers().get(kind)) is not None:
            if joined not in self._followers:
                self._followers[joined] = joined()
            sightings += self._followers[joined].feed(row, where)
        header = session_header(row)
        if header is not None:
            sightings += self._session.header(row, where, header)
        return sightings

    def end(self, *, early: bool = False) -> Iterator[Sighting]:
        """Yield the last observations when no more of the connection is known, or looked at if `early`."""
        if self.last is None:
            return
        forgotten = _FORGOTTEN if early else ""
        yield from self._session.end(self.last, unknown=forgotten)
        for follower in self._followers.values():
            yield from follower.end(self.last, forgotten=forgotten, has_gaps=self._has_gaps)

    # -- messages by [MS-MQQB] ------------------------------------------------------------------------

    def _message(self, row: Row, where: Where, sightings: list[Sighting]) -> None:
        if row.source_qm is None or row.message_id is None:
            self._session.gap(row)
            return
        key = identity(row.source_qm, row.message_id)
        side, other = self._session.message(row, key)
        attributes = attributes_of(row, "tcp")
        sightings.append(
            Observation(key, where, EventKind.SENT, None, side.guid, other.guid, "", True, "", attributes)
        )
        if row.tx_number is not None and row.tx_sequence_timestamp is not None:
            group = sequence_group(row.tx_sequence_timestamp, row.tx_sequence_ordinal or 0)
            to = known(row.destination_qm)
            sightings.append(Numbered(group, row.tx_number, row.source_qm, where, key, False, other.guid, to))
        if not row.hop_count and row.message_class not in ACKNOWLEDGING:
            sightings += self._claim(row, where, key, side.guid)
        if row.kind == "OrderAck":
            sightings += _order_ack(row, where)
        elif row.kind == "FinalAck":
            sightings += _final_ack(row, where, key)
        elif row.message_class in ACKNOWLEDGING:
            about = correlated(row.correlation_id)
            if about is not None:
                observation = Observation(
                    about, where, EventKind.ACKNOWLEDGEMENT, message_class=row.message_class,
                    sender_qm=row.source_qm,
                    acknowledged_by=key,
                )  # fmt: skip
                sightings.append(observation)

    def _claim(self, row: Row, where: Where, key: str, sender_qm: str) -> tuple[Claim, ...]:
        """Return that a queue manager is where a message comes from, if it sends its own: once for each.

        A router has raised the hop count: MQQB-3.1.5.8.2-17.
        """
        source, claims = known(row.source_qm), self._claims
        if not source or sender_qm not in ("", source):
            return ()
        if (source, row.src) in claims or len(claims) >= CLAIMS_MAX:
            return ()
        claims.add((source, row.src))
        return (Claim(queue_manager_group(source), where, key),)


class Connections:
    """All connections of a capture."""

    def __init__(self) -> None:
        self._connections: OrderedDict[int, Connection] = OrderedDict()
        self._size = 0

    def feed(self, row: Row, position: int) -> list[Sighting]:
        """Take the next packet of the capture; return its observations of messages."""
        if row.stream is None:
            return []
        where = where_of(row, position)
        connection = self._connections.get(row.stream)
        if connection is None:
            connection = self._connections[row.stream] = Connection(from_start=is_start(row))
        else:
            self._connections.move_to_end(row.stream)
        before = connection.size
        sightings = connection.feed(row, where)
        self._size += connection.size - before
        while len(self._connections) > CONNECTIONS_MAX or self._size > OUTSTANDING_MAX:
            sightings += self._end(next(iter(self._connections)), early=True)
        return sightings

    def _end(self, stream: int, *, early: bool = False) -> Iterator[Sighting]:
        connection = self._connections.pop(stream)
        self._size -= connection.size
        yield from connection.end(early=early)

    def end(self) -> Iterator[Sighting]:
        """Yield the last observations at the end of the capture."""
        while self._connections:
            yield from self._end(next(iter(self._connections)))


def _order_ack(row: Row, where: Where) -> Iterator[AboutNumber]:
    if row.body is None or len(row.body) < ACK_BODY_SIZE:
        return
    body = ORDER_ACK_BODY.parse(row.body[:ACK_BODY_SIZE])
    group = sequence_group(body.TxSequenceID.TimeStamp, body.TxSequenceID.Ordinal)
    owner = known(row.destination_qm)
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
