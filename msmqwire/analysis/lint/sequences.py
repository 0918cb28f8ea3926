"""The transactional sequences of a connection: [MS-MQQB] 3.1.1.5, 2.2.4 and 2.2.5."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from msmqwire.analysis.lint.finding import Finding
from msmqwire.analysis.lint.registry import Check, FieldOffsets, listed
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


class TransactionalMessage(NamedTuple):
    """A transactional message, as far as sequences go.

    Attributes:
        source: its SourceQueueManager and QueueManagerAddress.
        destination: its destination queue, as far as it distinguishes sequences.
        ident: its MessageID.
        sequence: the TxSequenceID, see `sequence_id`.
        number, previous: TxSequenceNumber and PreviousTxSequenceNumber.
    """

    source: Hashable
    destination: Hashable
    ident: int
    sequence: int
    number: int
    previous: int


Fault: TypeAlias = tuple[Check, str, str]
"""A rule that is broken, the path of the field and the message."""


class Sequences:
    """The sequences in both directions of a connection."""

    def __init__(self) -> None:
        self._sequences: dict[tuple[bool, Hashable, int], _Sequence] = {}
        self._latest: dict[tuple[bool, Hashable, Hashable], int] = {}
        self._missed: set[tuple[bool, Hashable, Hashable]] = set()  # of these, messages may be
        self._by_id: dict[tuple[bool, int], tuple[bool, Hashable, int]] = {}
        self._recent: tuple[bool, Hashable, Hashable, int] | None = None
        self._recent_sequence = _Sequence(0)

    def gap(self) -> None:
        """Note that messages may have been missed."""
        self._recent = None
        for sequence in self._sequences.values():
            sequence.whole = False
        self._missed = set(self._latest)

    def message(self, initiator: bool, packet: Record, offsets: FieldOffsets) -> Iterator[Finding]:
        """Check a transactional message in one direction."""
        header, user = packet.TransactionHeader, packet.UserHeader
        message = TransactionalMessage(
            (user.SourceQueueManager, user.QueueManagerAddress), _queue(user), user.MessageID,
            sequence_id(header.TxSequenceID), header.TxSequenceNumber, header.PreviousTxSequenceNumber,
        )  # fmt: skip
        for check, path, why in self.take(initiator, message):
            yield check.at(path, offsets.of(path), why)

    def take(self, initiator: bool, message: TransactionalMessage) -> list[Fault]:
        """Take the next transactional message of a direction; return its faults."""
        source, destination, message_id, ident, number, previous = message
        recent = self._recent_sequence
        is_next = recent.last < number and not (recent.whole and recent.last < previous)
        if is_next and self._recent == (initiator, source, destination, ident):
            recent.last = number  # as below, in less time: most messages follow the last one
            messages = recent.messages
            messages[number] = message_id  # at the end: it is above all others
            if len(messages) > NUMBERS_MAX:
                del messages[next(iter(messages))]
            return []
        key, queue = (initiator, source, ident), (initiator, source, destination)
        faults: list[Fault] = []
        latest = self._latest.get(queue)
        if latest is not None and ident < latest:
            path = "TransactionHeader.TxSequenceID"
            faults.append((SEQUENCE_GROWS, path, f"{ident:#x} after {latest:#x}"))
        else:
            remember(self._latest, queue, ident, SEQUENCES_MAX)
        sequence = self._sequences.get(key)
        if sequence is None:
            has_all = queue not in self._missed
            if has_all and latest is not None and ident > latest and previous and number > previous:
                why = f"{previous}, but the sequence is new after {latest:#x}"
                faults.append((STARTS_AT_HEAD, STARTS_AT_HEAD.path, why))
            sequence = _Sequence(number)
        elif (fault := _follows(sequence, message)) is not None:
            faults.append(fault)
        self._missed.discard(queue)
        sequence.last = max(sequence.last, number)
        remember(sequence.messages, number, message_id, NUMBERS_MAX)
        remember(self._sequences, key, sequence, SEQUENCES_MAX)
        remember(self._by_id, (initiator, ident), key, SEQUENCES_MAX)
        self._recent, self._recent_sequence = (*queue, ident), sequence
        return faults

    def acknowledged(self, initiator: bool, packet: Record, offsets: FieldOffsets) -> Iterator[Finding]:
        """Check an OrderAck or FinalAck for a message of the other direction."""
        name = "OrderAckBody" if packet.schema.name == "OrderAck" else "FinalAckBody"
        body = packet[name]
        number = body.TxSequenceNumber
        if (last := self.not_sent(initiator, sequence_id(body.TxSequenceID), number)) is not None:
            check = ORDER_ACK_SENT if name == "OrderAckBody" else FINAL_ACK_SENT
            yield check.at(check.path, offsets.of(check.path), f"{number} was not sent, {last} was the last")

    def not_sent(self, initiator: bool, ident: int, number: int) -> int | None:
        """Return the last number of a sequence of the other direction if an acknowledged one is after it."""
        key = self._by_id.get((not initiator, ident))
        sequence = self._sequences.get(key) if key is not None else None
        if sequence is None or not sequence.whole or number <= sequence.last:
            return None
        return sequence.last


def _follows(sequence: _Sequence, message: TransactionalMessage) -> Fault | None:
    """Check a message of a sequence that is known."""
    number, previous, last = message.number, message.previous, sequence.last
    if number in sequence.messages:
        if sequence.messages[number] == message.ident:
            return None  # sent again
        why = f"{number} is message {sequence.messages[number]}, and now message {message.ident}"
        return NUMBER_TWICE, NUMBER_TWICE.path, why
    if number <= last:
        if number and sequence.whole and len(sequence.messages) < NUMBERS_MAX:
            return NUMBER_GROWS, NUMBER_GROWS.path, f"{number} after {last}"
        return None
    if sequence.whole and last < previous < number:
        return PREVIOUS_FITS, PREVIOUS_FITS.path, f"{previous}, but {last} was the last"
    return None


def _queue(user: Any) -> Hashable:
    """Return the destination queue as far as it distinguishes sequences."""
    queue = user.DestinationQueue
    if queue is None:
        return None
    return next((queue[name] for name in reversed(queue.schema.fields) if name != "Padding"), None)
