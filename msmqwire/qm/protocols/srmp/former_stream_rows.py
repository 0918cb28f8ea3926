"""Stored rows of former streams: [MC-MQSRM] 3.1.1.1.6."""

from __future__ import annotations

from struct import Struct
from typing import Final

from msmqwire.qm.model.context import Context
from msmqwire.qm.model.message import TxSequenceId
from msmqwire.qm.model.tables import Table
from msmqwire.qm.rules.transfer_rows import STREAM_IDENTIFIER

_QUEUE: Final = Struct("<I")


def put_former_stream(context: Context, stream: TxSequenceId, queue: int) -> None:
    """Store that messages of a queue had other numbers in a stream: receipts may have the old ones."""
    context.changes.put(Table.FORMER_STREAM, STREAM_IDENTIFIER.pack(*stream), _QUEUE.pack(queue))


def delete_former_stream(context: Context, stream: TxSequenceId) -> None:
    """Delete the row of a former stream all of whose messages have ended."""
    context.changes.delete(Table.FORMER_STREAM, STREAM_IDENTIFIER.pack(*stream))


def read_former_stream(key: bytes, row: bytes) -> tuple[TxSequenceId, int]:
    """Decode a row of `Table.FORMER_STREAM`: the stream, and the number of the queue."""
    (queue,) = _QUEUE.unpack(row)
    return TxSequenceId(*STREAM_IDENTIFIER.unpack(key)), queue
