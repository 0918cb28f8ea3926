"""The transactional sequences of a connection: [MS-MQQB] 3.1.1.5, 2.2.4 and 2.2.5."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar
from uuid import UUID

from msmqwire.analysis.lint.finding import Finding
from msmqwire.analysis.lint.registry import FieldOffsets, listed
from msmqwire.schema import Record

SEQUENCES_MAX: Final = 1024
"""Sequences that are remembered; beyond this, the one idle longest is forgotten."""
NUMBERS_MAX: Final = 256
"""Messages of a sequence whose identifiers are remembered."""

NUMBER_GROWS: Final = listed(
    "MQMQ-2.2.20.5-13-GROWS",
    "TxSequenceNumber is not above the one before",
    "TransactionHeader.TxSequenceNumber",
)
NUMBER_TWICE: Final = listed(
    "MQQB-3.1.1.5-01", "Two messages have the same TxSequenceNumber", "TransactionHeader.TxSequenceNumber"
)
PREVIOUS_FITS: Final = listed(
    "MQMQ-2.2.20.5-14-MISSING",
    "A message is missing in the sequence",
    "TransactionHeader.PreviousTxSequenceNumber",
)
STARTS_AT_HEAD: Final = listed(
    "MQQB-3.1.5.8.6-04",
    "A new sequence begins with a previous message",
    "TransactionHeader.PreviousTxSequenceNumber",
)
SEQUENCE_GROWS: Final = listed(
    "MQQB-3.1.1.5-07", "A message is sent on an earlier sequence", "TransactionHeader.TxSequenceID"
)
ORDER_ACK_SENT: Final = listed(
    "MQQB-2.2.4.1-03-SENT", "An OrderAck is for a message that was not sent", "OrderAckBody.TxSequenceNumber"
)
FINAL_ACK_SENT: Final = listed(
    "MQQB-2.2.5.1-03-SENT", "A FinalAck is for a message that was not sent", "FinalAckBody.TxSequenceNumber"
)

_K = TypeVar("_K", bound=Hashable)
_V = TypeVar("_V")


def remember(table: dict[_K, _V], key: _K, value: _V, most: int) -> None:
    """Put a value at the end of a table of limited size."""
    table.pop(key, None)
    table[key] = value
    if len(table) > most:
        del table[next(iter(table))]


def sequence_id(record: Any) -> int:
    """Return a TxSequenceID as the number by which it compares: MQMQ-2.2.18.1.2-03."""
    return int(record.TimeStamp) << 32 | int(record.Ordinal)


@dataclass(slots=True)
class _Sequence:
    """State of a sequence.

    Attributes:
        last: the highest number seen.
        whole: no message after the first seen can have been missed.
        messages: the MessageID by number, of the latest messages.
    """

    last: int
    whole: bool = True
    messages: dict[int, int] = field(default_factory=dict)


class Sequences:
    """The sequences in both directions of a connection."""

    def __init__(self) -> None:
        self._sequences: dict[tuple[bool, UUID, UUID, int], _Sequence] = {}
        self._latest: dict[tuple[bool, UUID, UUID, Hashable], int] = {}
        self._missed: set[tuple[bool, UUID, UUID, Hashable]] = set()  # of these, messages may be
        self._by_id: dict[tuple[bool, int], tuple[bool, UUID, UUID, int]] = {}

    def gap(self) -> None:
        """Note that messages may have been missed."""
        for sequence in self._sequences.values():
            sequence.whole = False
        self._missed = set(self._latest)

    def message(self, initiator: bool, packet: Record, offsets: FieldOffsets) -> Iterator[Finding]:
        """Check a transactional message in one direction."""
        header, user = packet.TransactionHeader, packet.UserHeader
        ident, number = sequence_id(header.TxSequenceID), header.TxSequenceNumber
        previous = header.PreviousTxSequenceNumber
        ends = (initiator, user.SourceQueueManager, user.QueueManagerAddress)
        key, queue = (*ends, ident), (*ends, _queue(user))
        latest = self._latest.get(queue)
        if latest is not None and ident < latest:
            path = "TransactionHeader.TxSequenceID"
            yield SEQUENCE_GROWS.at(path, offsets.of(path), f"{ident:#x} after {latest:#x}")
        else:
            remember(self._latest, queue, ident, SEQUENCES_MAX)
        sequence = self._sequences.get(key)
        if sequence is None:
            has_all = queue not in self._missed
            if has_all and latest is not None and ident > latest and previous and number > previous:
                path = "TransactionHeader.PreviousTxSequenceNumber"
                why = f"{previous}, but the sequence is new after {latest:#x}"
                yield STARTS_AT_HEAD.at(path, offsets.of(path), why)
            sequence = _Sequence(number)
        else:
            yield from self._follows(sequence, packet, offsets)
        self._missed.discard(queue)
        sequence.last = max(sequence.last, number)
        remember(sequence.messages, number, user.MessageID, NUMBERS_MAX)
        remember(self._sequences, key, sequence, SEQUENCES_MAX)
        remember(self._by_id, (initiator, ident), key, SEQUENCES_MAX)

    def _follows(self, sequence: _Sequence, packet: Record, offsets: FieldOffsets) -> Iterator[Finding]:
        header, ident = packet.TransactionHeader, packet.UserHeader.MessageID
        number, previous = header.TxSequenceNumber, header.PreviousTxSequenceNumber
        path = "TransactionHeader.TxSequenceNumber"
        if number in sequence.messages:
            if sequence.messages[number] != ident:
                why = f"{number} is message {sequence.messages[number]}, and now message {ident}"
                yield NUMBER_TWICE.at(path, offsets.of(path), why)
            return  # sent again
        if number <= sequence.last:
            if number and sequence.whole and len(sequence.messages) < NUMBERS_MAX:
                yield NUMBER_GROWS.at(path, offsets.of(path), f"{number} after {sequence.last}")
            return
        if sequence.whole and sequence.last < previous < number:
            path = "TransactionHeader.PreviousTxSequenceNumber"
            yield PREVIOUS_FITS.at(path, offsets.of(path), f"{previous}, but {sequence.last} was the last")

    def acknowledged(self, initiator: bool, packet: Record, offsets: FieldOffsets) -> Iterator[Finding]:
        """Check an OrderAck or FinalAck for a message of the other direction."""
        name = "OrderAckBody" if packet.schema.name == "OrderAck" else "FinalAckBody"
        body = packet[name]
        key = self._by_id.get((not initiator, sequence_id(body.TxSequenceID)))
        sequence = self._sequences.get(key) if key is not None else None
        if sequence is None or not sequence.whole or body.TxSequenceNumber <= sequence.last:
            return
        check = ORDER_ACK_SENT if name == "OrderAckBody" else FINAL_ACK_SENT
        path = f"{name}.TxSequenceNumber"
        why = f"{body.TxSequenceNumber} was not sent, {sequence.last} was the last"
        yield check.at(path, offsets.of(path), why)


def _queue(user: Any) -> Hashable:
    """Return the destination queue as far as it distinguishes sequences."""
    queue = user.DestinationQueue
    if queue is None:
        return None
    return next((queue[name] for name in reversed(queue.schema.fields) if name != "Padding"), None)
