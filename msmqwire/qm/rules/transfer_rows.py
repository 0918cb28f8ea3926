"""Stored rows of transactional transfers: [MS-MQQB] 3.1.1.3.2, [MC-MQSRM] 3.1.1.1.6."""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct
from typing import Final, NamedTuple, Protocol
from uuid import UUID

from msmqwire.names import parse_format_name
from msmqwire.qm.model.context import Context
from msmqwire.qm.model.elements import STREAM, IncomingTransactionalTransferInfo, Queue
from msmqwire.qm.model.message import TxSequenceId
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.model.tables import Table

_OUTGOING: Final = Struct("<IIIB")  # TimeStamp, Ordinal, TxSequenceNumber, whether FinalAck is awaited
_SEQUENCE: Final = Struct("<III")  # TimeStamp, Ordinal, OutgoingTxSequenceNumber
STREAM_IDENTIFIER: Final = Struct("<II")  # TimeStamp, Ordinal
_INCOMING: Final = Struct(
    "<IIIIQI"
)  # TimeStamp, Ordinal, number, rejections, last access, queue; then origin


class Numbered(Protocol):
    """A message that may have a number in a transactional sequence that begins here.

    Attributes:
        position: its position in the outgoing queue. tx_sequence_id: the sequence.
        tx_sequence_number: its number there; 0 for none.
    """

    position: MessagePosition
    tx_sequence_id: TxSequenceId
    tx_sequence_number: int


class OutgoingRow(NamedTuple):
    """The stored state of a message that is being transferred."""

    sequence: TxSequenceId
    number: int
    awaits_final_ack: bool


def put_outgoing(context: Context, outgoing: Numbered, *, awaits_final_ack: bool = False) -> None:
    """Store that a transactional message has a number, or that only its final acknowledgement is awaited."""
    row = _OUTGOING.pack(*outgoing.tx_sequence_id, outgoing.tx_sequence_number, awaits_final_ack)
    context.changes.put(Table.OUTGOING, outgoing.position.number, row)


def delete_outgoing(context: Context, outgoing: Numbered) -> None:
    """Delete the row of a message that is not transferred any more."""
    if outgoing.tx_sequence_number:
        context.changes.delete(Table.OUTGOING, outgoing.position.number)


def read_outgoing(row: bytes) -> OutgoingRow:
    """Decode a row of `Table.OUTGOING`."""
    time_stamp, ordinal, number, awaits = _OUTGOING.unpack(row)
    return OutgoingRow(TxSequenceId(time_stamp, ordinal), number, bool(awaits))


def put_sequence(context: Context, queue: int, sequence: TxSequenceId, next_number: int) -> None:
    """Store the sequence out of a queue, and the number of its next message."""
    context.changes.put(Table.SEQUENCE, queue, _SEQUENCE.pack(*sequence, next_number))


def read_sequence(row: bytes) -> tuple[TxSequenceId, int]:
    """Decode a row of `Table.SEQUENCE`: the sequence, and the number of its next message."""
    time_stamp, ordinal, number = _SEQUENCE.unpack(row)
    return TxSequenceId(time_stamp, ordinal), number


def put_incoming(context: Context, info: IncomingTransactionalTransferInfo) -> None:
    """Store the last message accepted from a sender."""
    row = _INCOMING.pack(
        *info.sequence_identifier, info.sequence_number, min(info.reject_count, 0xFFFFFFFF),
        info.last_access_time, info.queue.number if info.queue else 0,
    )  # fmt: skip
    text = info.origin
    if info.is_stream:
        text = "\0".join(
            (text, str(info.acknowledged), str(info.sender_identifier), info.send_receipts_to,
             info.former_streams.hex())
        )  # fmt: skip
    context.changes.put(Table.INCOMING, incoming_key(info), row + text.encode())


def incoming_key(info: IncomingTransactionalTransferInfo) -> bytes:
    """Return the key of a row of `Table.INCOMING`."""
    sender, name, bound_to = info.key
    return sender.bytes + (f"{name}\0{bound_to}" if bound_to else name).encode()


def read_incoming(key: bytes, row: bytes, queues: Mapping[int, Queue]) -> IncomingTransactionalTransferInfo:
    """Decode a row of `Table.INCOMING`: the state of a sequence.

    Rows of version 1 have no origin, and rows before version 4 no former streams.
    """
    time_stamp, ordinal, number, rejections, last_access, queue = _INCOMING.unpack_from(row)
    name, _, bound_to = key[16:].decode().partition("\0")
    owner, (origin, *of_stream) = UUID(bytes=key[:16]), row[_INCOMING.size :].decode().split("\0")
    acknowledged, sender, send_receipts_to, *former = of_stream or ("0", str(owner), "")
    return IncomingTransactionalTransferInfo(
        queues.get(queue),
        parse_format_name(name.removeprefix(STREAM), spx=True),
        UUID(sender),
        TxSequenceId(time_stamp, ordinal),
        number,
        last_access,
        rejections,
        origin,
        bool(bound_to),
        stream_owner=owner if of_stream else None,
        send_receipts_to=send_receipts_to,
        acknowledged=int(acknowledged),
        former_streams=bytes.fromhex("".join(former)),
    )
