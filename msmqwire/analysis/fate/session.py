"""One connection of [MS-MQQB]: the messages on it, and their session acknowledgements."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import groupby
from typing import Final, NamedTuple

from msmqwire.analysis.dissection.msmq_connection import MSMQ_PORT
from msmqwire.analysis.fate.model import EventKind
from msmqwire.analysis.fate.observations import Observation, Several, Where
from msmqwire.analysis.fate.packets import Ends
from msmqwire.analysis.fate.rows import Row, SessionHeader
from msmqwire.analysis.fate.session_counts import COUNTS, Counter
from msmqwire.names.printable import counted

_LOST: Final = "the capture does not have the whole connection, so an acknowledgement may have been missed"
_LOST_STORING: Final = "the capture does not have the whole connection, so its storing may have been missed"
_ONE_SIDED: Final = (
    "nothing that the other side sent was captured, so an acknowledgement may have been missed"
)
EARLY_MAX: Final = 64
"""Acknowledgements kept until the numbers of messages are known; of more, the oldest are forgotten."""


class Acknowledged(NamedTuple):
    """The acknowledgement by a side of the messages that it has received."""

    where: Where
    header: SessionHeader


class Side:
    """One side of a session.

    Attributes:
        all, recoverable: the messages that it has sent.
        guid: its queue manager; empty if unknown.
        window: the number of messages that the other side may send without an acknowledgement; None if
            unknown.
        early: its acknowledgements of messages whose numbers are unknown so far.
        is_heard: whether anything that it has sent is in the capture.
        is_missed: whether something that it has sent since its last count is not in the capture.
    """

    def __init__(self, *, from_start: bool) -> None:
        self.all, self.recoverable = Counter(from_start=from_start), Counter(from_start=from_start)
        self.guid = ""
        self.window: int | None = None
        self.early: deque[Acknowledged] = deque(maxlen=EARLY_MAX)
        self.is_heard = self.is_missed = False

    def gap(self) -> None:
        """Something that it has sent is not in the capture, or can't be read."""
        self.is_missed = True
        self.all.gap()
        self.recoverable.gap()


class Session:
    """The session of a connection.

    Args:
        from_start: whether nothing of it was missed.

    Attributes:
        size: the number of messages that it remembers, a recoverable one twice.
    """

    def __init__(self, *, from_start: bool) -> None:
        self._sides: dict[tuple[str, int], Side] = {}
        self._from_start = from_start
        self._established = False
        self.size = 0

    def sides(self, ends: Row | Ends) -> tuple[Side, Side]:
        """Return the side that has sent a packet, and the other one."""
        return self._side(ends.src, ends.src_port), self._side(ends.dst, ends.dst_port)

    def _side(self, address: str, port: int) -> Side:
        side = self._sides.get((address, port))
        if side is None:
            side = self._sides[address, port] = Side(from_start=self._from_start)
        return side

    def established(self, row: Row) -> None:
        """Take an EstablishConnection: the initiator's, or the acceptor's answer."""
        side, other = self.sides(row)
        answers = self._established or row.src_port == MSMQ_PORT != row.dst_port
        initiator, acceptor = (other, side) if answers else (side, other)
        initiator.guid = initiator.guid if answers and initiator.is_heard else row.client_guid or ""
        acceptor.guid = row.server_guid or ""
        self._established = side.is_heard = True

    def parameters(self, row: Row) -> None:
        """Take ConnectionParameters."""
        side = self.sides(row)[0]
        side.is_heard, side.window = True, row.window_size

    def gap(self, row: Row) -> None:
        """Take bytes that were skipped, or can't be read."""
        self.sides(row)[0].gap()

    def message(self, side: Side, key: str, *, recoverable: bool | None) -> None:
        """Count a message that a side has sent."""
        side.is_heard = True
        self.size += side.all.sent(key)
        if recoverable:
            self.size += side.recoverable.sent(key)

    def settles(self, side: Side, other: Side, header: tuple[int, ...]) -> bool:
        """Take the values of a SessionHeader that a side has sent, if there is nothing that it acknowledges.

        As `header` would; most packets of messages have one that says nothing new.
        """
        if other.all.outstanding or other.recoverable.outstanding or other.early:
            return False
        received, stored, stored_flags, sent, sent_recoverable, side.window = header
        side.is_heard, side.is_missed = True, False
        if side.all.lost:
            side.all.synchronise(sent)
            side.recoverable.synchronise(sent_recoverable)
        other.all.acknowledged = received
        if stored or stored_flags:
            other.recoverable.acknowledge_some(stored, stored_flags)
        return True

    def header(self, side: Side, other: Side, where: Where, header: SessionHeader) -> Iterator[Several]:
        """Take a SessionHeader that a side has sent; yield the messages that it acknowledges."""
        side.window = header.window
        side.is_heard, side.is_missed = True, False
        side.all.synchronise(header.sent)
        side.recoverable.synchronise(header.sent_recoverable)
        if other.early:
            early, other.early = other.early, deque(maxlen=EARLY_MAX)
            for acknowledged in early:
                yield from self._acknowledged(side, other, acknowledged)
        yield from self._acknowledged(other, side, Acknowledged(where, header))

    def _acknowledged(self, sender: Side, receiver: Side, by: Acknowledged) -> Iterator[Several]:
        """Yield the messages that an acknowledgement covers, or keep it until they are known."""
        if sender.all.waits_for_numbers or sender.recoverable.waits_for_numbers:
            receiver.early.append(by)
        received = sender.all.acknowledge(by.header.received)
        stored = sender.recoverable.acknowledge_some(by.header.stored, by.header.stored_flags)
        for covered, what in (received, EventKind.RECEIVED), (stored, EventKind.STORED):
            if covered:
                self.size -= len(covered)
                observation = Observation("", by.where, what, sender_qm=receiver.guid)
                yield Several([key for key, _ in covered], observation)

    def end(self, last: Where, *, unknown: str = "") -> Iterator[Several]:
        """Yield the unacknowledged messages, when no more of the connection is known.

        Args:
            last: the place of its last packet.
            unknown: why that says nothing, if it is so.
        """
        sides = list(self._sides.items())
        for number, (address, side) in enumerate(sides):
            sender_of_acks, other = sides[1 - number] if len(sides) == 2 else (("", 0), None)
            where = last._replace(src=sender_of_acks[0], dst=address[0])
            unreceived: set[str] = set()
            doubt = unknown or _doubt(side, other)
            for counter, what, lost, certain in (
                (side.all, EventKind.UNACKNOWLEDGED, _LOST, _unreceived(side, other)),
                (side.recoverable, EventKind.NOT_STORED, _LOST_STORING, _unsaved(side)),
            ):
                of_all = doubt or (lost if counter.lost else "")
                if what is EventKind.UNACKNOWLEDGED and not of_all:
                    runs = groupby(counter.outstanding, counter.disorder)
                    groups = [(why, list(messages)) for why, messages in runs]
                else:
                    groups = [(of_all, list(counter.outstanding))]
                for why, messages in groups:
                    keys = [message.key for message in messages if message.key not in unreceived]
                    observation = Observation("", where, what, is_certain=not why, detail=why or certain)
                    yield Several(keys, observation)
                if what is EventKind.UNACKNOWLEDGED:
                    unreceived.update(message.key for message in counter.outstanding)


def _doubt(side: Side, other: Side | None) -> str:
    """Return why acknowledgements of a side's messages may have been missed, whatever their numbers.

    Nobody sends a message before the other side has opened the session, nor more than its window lets:
    MQQB-3.1.5.4.2-03, MQQB-3.1.7.1-03.
    """
    if other is None or not other.is_heard:
        return _ONE_SIDED
    if other.is_missed:
        return _LOST
    unacknowledged = ((side.all.count or 0) - (side.all.acknowledged or 0)) % COUNTS
    if not side.all.lost and other.window and unacknowledged > max(other.window, side.window or 0):
        return f"more were sent than the window of {other.window} lets, so acknowledgements were missed"
    return ""


def _unreceived(side: Side, other: Side | None) -> str:
    """Say how far the messages of a side are acknowledged."""
    count, acknowledged = side.all.count or 0, side.all.acknowledged
    if acknowledged is None:
        sent = counted(count, "message", "were")
        return f"no SessionAck came on this connection, on which {sent} sent"
    window = None if other is None else other.window
    closed = window is not None and (count - acknowledged) % COUNTS >= max(1, window)
    words = f"the receiver's SessionAck stopped at {acknowledged} while {count} were sent"
    return words + (f", its window of {window} is closed" if closed else "")


def _unsaved(side: Side) -> str:
    """Say how far the recoverable messages of a side are stored."""
    count, acknowledged = side.recoverable.count or 0, side.recoverable.acknowledged
    if acknowledged is None:
        return f"it has acknowledged storing none of {counted(count, 'recoverable message')}"
    return f"it has acknowledged storing recoverable messages up to {acknowledged} of {count}"
