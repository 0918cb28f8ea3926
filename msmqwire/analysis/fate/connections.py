"""The first stage: from the packets of each connection, in order, to observations of messages."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from msmqwire.analysis.dissection.skip_reasons import OTHER_HTTP
from msmqwire.analysis.fate.acknowledging import ACKNOWLEDGING
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
from msmqwire.analysis.fate.packets import Ends, Packets
from msmqwire.analysis.fate.row_attributes import attributes_of, known
from msmqwire.analysis.fate.rows import Row, SessionHeader, session_header
from msmqwire.analysis.fate.session import Session
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


def is_start(row: Row) -> bool:
    """Whether nothing of a connection is missing before this packet, the first one that is captured."""
    return row.kind in _STARTS


def where_of(row: Row, position: int) -> Where:
    """Return where a packet was seen."""
    return Where(position, row.time, row.stream, row.file, row.frame, row.src, row.dst)


class Connection:
    """One connection, of whatever protocol.

    Attributes:
        session: its session.
        last: the place of its last packet.
        last_plain: its number if it is a plain packet of this batch; else None.
        ways: its directions in this batch, by their numbers.
    """

    def __init__(self, *, from_start: bool) -> None:
        self.session = Session(from_start=from_start)
        self._followers: dict[type[Follower], Follower] = {}  # of protocols that have joined
        self._has_gaps = False
        self._claims: set[tuple[str, str]] = set()
        self.last: Where | None = None
        self.last_plain: int | None = None
        self.ways: list[int] = []

    def settle(self, packets: Packets) -> None:
        """Note the place of its last packet, if that is a plain packet of a batch."""
        if self.last_plain is not None:
            self.last, self.last_plain = packets.where(self.last_plain), None

    @property
    def size(self) -> int:
        """The number of messages that it remembers."""
        size = self.session.size
        if self._followers:
            size += sum(follower.size for follower in self._followers.values())
        return size

    def feed(self, row: Row, where: Where) -> list[Sighting]:
        """Take a packet; return its observations of messages."""
        self.last, self.last_plain = where, None
        kind = row.kind
        sightings: list[Sighting] = []
        if kind in _MESSAGES:
            self._message(row, where, sightings)
        elif kind == "EstablishConnection":
            self.session.established(row)
        elif kind == "ConnectionParameters":
            self.session.parameters(row)
        elif kind in ("Malformed", "Skipped"):
            self.session.gap(row)
            self._has_gaps |= kind == "Skipped" and row.error != OTHER_HTTP
            for follower in self._followers.values():
                sightings += follower.unreadable(row, where)
        elif (joined := followers().get(kind)) is not None:
            if joined not in self._followers:
                self._followers[joined] = joined()
            sightings += self._followers[joined].feed(row, where)
        header = session_header(row)
        if header is not None:
            sightings += self.session.header(*self.session.sides(row), where, header)
        return sightings

    def end(self, *, early: bool = False) -> Iterator[Sighting]:
        """Yield the last observations when no more of the connection is known, or looked at if `early`."""
        if self.last is None:
            return
        forgotten = _FORGOTTEN if early else ""
        yield from self.session.end(self.last, unknown=forgotten)
        for follower in self._followers.values():
            yield from follower.end(self.last, forgotten=forgotten, has_gaps=self._has_gaps)

    # -- messages by [MS-MQQB] ------------------------------------------------------------------------

    def _message(self, row: Row, where: Where, sightings: list[Sighting]) -> None:
        if row.source_qm is None or row.message_id is None:
            self.session.gap(row)
            return
        key = identity(row.source_qm, row.message_id)
        side, other = self.session.sides(row)
        self.session.message(side, key, recoverable=row.recoverable)
        attributes = attributes_of(row, "tcp")
        sightings.append(
            Observation(key, where, EventKind.SENT, None, side.guid, other.guid, "", True, "", attributes)
        )
        if row.tx_number is not None and row.tx_sequence_timestamp is not None:
            group = sequence_group(row.tx_sequence_timestamp, row.tx_sequence_ordinal or 0)
            to = known(row.destination_qm)
            sightings.append(Numbered(group, row.tx_number, row.source_qm, where, key, False, other.guid, to))
        source = known(row.source_qm)
        if source and not row.hop_count and row.message_class not in ACKNOWLEDGING:
            sightings += self.claim(source, where, key, side.guid)
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

    def has_claim(self, source_qm: str, src: str) -> bool:
        """Whether a claim of a queue manager for an address says nothing new."""
        return (source_qm, src) in self._claims or len(self._claims) >= CLAIMS_MAX

    def claim(self, source_qm: str, where: Where, key: str, sender_qm: str) -> tuple[Claim, ...]:
        """Return that a queue manager is where a message comes from, if it sends its own: once for each.

        A router has raised the hop count: MQQB-3.1.5.8.2-17.
        """
        if sender_qm not in ("", source_qm) or self.has_claim(source_qm, where.src):
            return ()
        self._claims.add((source_qm, where.src))
        return (Claim(queue_manager_group(source_qm), where, key),)


class _Way:
    """One direction of a connection, in a batch.

    Attributes:
        connection, session, stream: its connection.
        src: the address of the sender.
        side, other: the sides of the session.
        guids: the queue managers of both.
        claimed: the queue managers whose claims say nothing new.
    """

    __slots__ = ("claimed", "connection", "guids", "other", "session", "side", "src", "stream")

    def __init__(self, connection: Connection, ends: Ends) -> None:
        self.connection, self.stream, self.src = connection, ends.stream, ends.src
        self.session = connection.session
        self.side, self.other = connection.session.sides(ends)
        self.guids = (self.side.guid, self.other.guid)
        self.claimed: set[str] = set()


class Connections:
    """All connections of a capture."""

    def __init__(self) -> None:
        self._connections: OrderedDict[int, Connection] = OrderedDict()
        self._size = 0
        self._packets: Packets | None = None  # while they are taken
        self._ways: list[_Way | None] = []

    def take(self, packets: Packets) -> Iterator[Sighting | range]:
        """Take the next batch of the capture; yield its observations of messages.

        Plain packets are a range of their numbers in the block: their messages were sent.
        """
        self._packets, self._ways = packets, [None] * len(packets.ends)
        plain = packets.plain()
        for count, row, position in packets.others():
            if count:
                yield from self._plain(islice(plain, count), packets)
            yield from self.feed(row, position)
        yield from self._plain(plain, packets)
        for way in self._ways:
            if way is not None:
                way.connection.settle(packets)
                way.connection.ways.clear()
        self._packets = None

    def _plain(self, plain: Iterator[tuple[Any, ...]], packets: Packets) -> Iterator[Sighting | range]:
        """Take plain packets that follow each other."""
        guids, touch = packets.block.guids, self._connections.move_to_end
        first = end = len(guids)
        for number, code, key, recoverable, owner, header, tx_number in plain:
            way = self._ways[code]
            if way is None:
                way = self._ways[code] = self._way(code, packets.ends[code])
            touch(way.stream)
            end = number + 1
            connection, session, side, other = way.connection, way.session, way.side, way.other
            connection.last_plain = number
            before = session.size
            if key:
                session.message(side, key, recoverable=recoverable)
            if way.guids[0] is not side.guid or way.guids[1] is not other.guid:
                way.guids = (side.guid, other.guid)
            guids.append(way.guids)
            if tx_number is not None:
                yield _numbered(packets, number, tx_number, other.guid)
            if owner and owner not in way.claimed:
                yield range(first, end)
                first = end
                yield from connection.claim(owner, packets.where(number), key, side.guid)
                if connection.has_claim(owner, way.src):
                    way.claimed.add(owner)
            if header is not None and not session.settles(side, other, header):
                yield range(first, end)
                first = end
                yield from session.header(side, other, packets.where(number), SessionHeader(*header))
            self._size += session.size - before
            if len(self._connections) > CONNECTIONS_MAX or self._size > OUTSTANDING_MAX:
                yield range(first, end)
                first = end
                yield from self._ended_early()
        yield range(first, end)

    def _way(self, code: int, ends: Ends) -> _Way:
        connection = self._connections.get(ends.stream)
        if connection is None:
            connection = self._connections[ends.stream] = Connection(from_start=False)
        connection.ways.append(code)
        return _Way(connection, ends)

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
        sightings += self._ended_early()
        return sightings

    def _ended_early(self) -> Iterator[Sighting]:
        """Take connections as ended while there are too many, or too many messages on them."""
        while len(self._connections) > CONNECTIONS_MAX or self._size > OUTSTANDING_MAX:
            yield from self._end(next(iter(self._connections)), early=True)

    def _end(self, stream: int, *, early: bool = False) -> Iterator[Sighting]:
        connection = self._connections.pop(stream)
        if self._packets is not None:
            connection.settle(self._packets)
            for code in connection.ways:
                self._ways[code] = None
        self._size -= connection.size
        yield from connection.end(early=early)

    def end(self) -> Iterator[Sighting]:
        """Yield the last observations at the end of the capture."""
        while self._connections:
            yield from self._end(next(iter(self._connections)))


def _numbered(packets: Packets, number: int, tx_number: int, receiver_qm: str) -> Numbered:
    """Return the number of a plain message in its sequence."""
    group, to = packets.sequence(number)
    key = packets.block.keys[number]
    owner, _, _ = key.rpartition("\\")
    return Numbered(group, tx_number, owner, packets.where(number), key, False, receiver_qm, to)


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
