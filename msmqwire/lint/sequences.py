"""Transactional sequences as they pass on a connection: [MS-MQQB] 3.1.1.5, 2.2.4 and 2.2.5."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar
from uuid import UUID

from msmqwire.lint.finding import Finding
from msmqwire.lint.registry import Places, listed
from msmqwire.schema import Record

SEQUENCES_MAX: Final = 1024
"""Sequences that are remembered; beyond, the one that was quiet longest is forgotten."""
NUMBERS_MAX: Final = 256
"""Messages of a sequence whose identifiers are remembered."""

NUMBER_GROWS: Final = listed(
    "MQMQ-2.2.20.5-13", "Numbers grow within a sequence", "TransactionHeader.TxSequenceNumber"
)
NUMBER_TWICE: Final = listed(
    "MQQB-3.1.1.5-01", "A number in a sequence is that of one message", "TransactionHeader.TxSequenceNumber"
)
PREVIOUS_FITS: Final = listed(
    "MQMQ-2.2.20.5-14",
    "No message is missing before one in a sequence",
    "TransactionHeader.PreviousTxSequenceNumber",
)
STARTS_AT_HEAD: Final = listed(
    "MQQB-3.1.5.8.6-04",
    "A later sequence starts with no previous message",
    "TransactionHeader.PreviousTxSequenceNumber",
)
SEQUENCE_GROWS: Final = listed(
    "MQQB-3.1.1.5-07", "No message is sent on an earlier sequence", "TransactionHeader.TxSequenceID"
)
ORDER_ACK_SENT: Final = listed(
    "MQQB-2.2.4.1-03", "An OrderAck is for a message that was sent", "OrderAckBody.TxSequenceNumber"
)
FINAL_ACK_SENT: Final = listed(
    "MQQB-2.2.5.1-03", "A FinalAck is for a message that was sent", "FinalAckBody.TxSequenceNumber"
)

_K = TypeVar("_K", bound=Hashable)
_V = TypeVar("_V")


def remember(table: dict[_K, _V], key: _K, value: _V, most: int) -> None:
    """Puts a value last into a table of limited size."""
    table.pop(key, None)
    table[key] = value
    if len(table) > most:
        del table[next(iter(table))]


def sequence_id(record: Any) -> int:
    """A TxSequenceID as the number by which it compares: MQMQ-2.2.18.1.2-03."""
    return int(record.TimeStamp) << 32 | int(record.Ordinal)


@dataclass(slots=True)
class _Sequence:
    """What is known of a sequence.

    Attributes:
        last: the highest number seen.
        whole: no message since the first that was seen can have been missed.
        messages: the MessageID by number, of the last ones.
    """

    last: int
    whole: bool = True
    messages: dict[int, int] = field(default_factory=dict)


class Sequences:
    """The sequences in both directions of a connection."""

    def __init__(self) -> None:
        self._known: dict[tuple[bool, UUID, UUID, int], _Sequence] = {}
        self._latest: dict[tuple[bool, UUID, UUID, Hashable], int] = {}
        self._by_id: dict[tuple[bool, int], tuple[bool, UUID, UUID, int]] = {}

    def gap(self) -> None:
        """Messages may have been missed."""
        for sequence in self._known.values():
            sequence.whole = False

    def message(self, initiator: bool, packet: Record, places: Places) -> Iterator[Finding]:
        """A transactional message in one direction."""
        header, user = packet.TransactionHeader, packet.UserHeader
        ident, number = sequence_id(header.TxSequenceID), header.TxSequenceNumber
        previous = header.PreviousTxSequenceNumber
        ends = (initiator, user.SourceQueueManager, user.QueueManagerAddress)
        key, queue = (*ends, ident), (*ends, _queue(user))
        latest = self._latest.get(queue)
        if latest is not None and ident < latest:
            path = "TransactionHeader.TxSequenceID"
            yield SEQUENCE_GROWS.at(path, places.offset(path), f"{ident:#x} after {latest:#x}")
        else:
            remember(self._latest, queue, ident, SEQUENCES_MAX)
        known = self._known.get(key)
        if known is None:
            if latest is not None and ident > latest and previous and number > previous:
                path = "TransactionHeader.PreviousTxSequenceNumber"
                why = f"{previous}, but the sequence is new after {latest:#x}"
                yield STARTS_AT_HEAD.at(path, places.offset(path), why)
            known = _Sequence(number)
        else:
            yield from self._follows(known, packet, places)
        known.last = max(known.last, number)
        remember(known.messages, number, user.MessageID, NUMBERS_MAX)
        remember(self._known, key, known, SEQUENCES_MAX)
        remember(self._by_id, (initiator, ident), key, SEQUENCES_MAX)

    def _follows(self, known: _Sequence, packet: Record, places: Places) -> Iterator[Finding]:
        header, ident = packet.TransactionHeader, packet.UserHeader.MessageID
        number, previous = header.TxSequenceNumber, header.PreviousTxSequenceNumber
        path = "TransactionHeader.TxSequenceNumber"
        if number in known.messages:
            if known.messages[number] != ident:
                why = f"{number} is message {known.messages[number]}, and now message {ident}"
                yield NUMBER_TWICE.at(path, places.offset(path), why)
            return  # sent again
        if number <= known.last:
            if number and known.whole and len(known.messages) < NUMBERS_MAX:
                yield NUMBER_GROWS.at(path, places.offset(path), f"{number} after {known.last}")
            return
        if known.whole and known.last < previous < number:
            path = "TransactionHeader.PreviousTxSequenceNumber"
            yield PREVIOUS_FITS.at(path, places.offset(path), f"{previous}, but {known.last} was the last")

    def acknowledged(self, initiator: bool, packet: Record, places: Places) -> Iterator[Finding]:
        """An OrderAck or FinalAck: it is for a message that went the other way."""
        name = "OrderAckBody" if packet.schema.name == "OrderAck" else "FinalAckBody"
        body = packet[name]
        key = self._by_id.get((not initiator, sequence_id(body.TxSequenceID)))
        known = self._known.get(key) if key is not None else None
        if known is None or not known.whole or body.TxSequenceNumber <= known.last:
            return
        check = ORDER_ACK_SENT if name == "OrderAckBody" else FINAL_ACK_SENT
        path = f"{name}.TxSequenceNumber"
        why = f"{body.TxSequenceNumber} was not sent, {known.last} was the last"
        yield check.at(path, places.offset(path), why)


def _queue(user: Any) -> Hashable:
    """The destination queue as far as it tells sequences apart."""
    queue = user.DestinationQueue
    if queue is None:
        return None
    return next((queue[name] for name in reversed(queue.schema.fields) if name != "Padding"), None)
