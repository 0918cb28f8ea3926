"""The columns of a capture that fates are made of, as rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import pyarrow as pa

from msmqwire.headers.acknowledgements import ACK_BODY_SIZE
from msmqwire.tables.columns import BY_NAME


class Row(NamedTuple):
    """A packet: the columns that are needed, times as integers."""

    time: int | None
    file: str | None
    frame: int | None
    stream: int | None
    src: str
    src_port: int
    dst: str
    dst_port: int
    kind: str
    error: str | None
    time_to_reach_queue: int | None
    source_qm: str | None
    destination_qm: str | None
    time_to_be_received: int | None
    sent_time: int | None
    message_id: int | None
    hop_count: int | None
    recoverable: bool | None
    journal_negative: bool | None
    destination: str | None
    admin_queue: str | None
    tx_sequence_ordinal: int | None
    tx_sequence_timestamp: int | None
    tx_number: int | None
    ack_flags: int | None
    label: str | None
    message_class: int | None
    class_name: str | None
    correlation_id: bytes | None
    body_size: int | None
    body: bytes | None
    encrypted: bool | None
    ack_sequence: int | None
    recoverable_ack_sequence: int | None
    recoverable_ack_flags: int | None
    user_sequence: int | None
    recoverable_sequence: int | None
    window_size: int | None
    client_guid: str | None
    server_guid: str | None
    srmp_id: str | None
    srmp_stream: str | None
    receipt: str | None
    receipt_id: str | None
    receipt_ordinal: int | None
    http_status: int | None
    queue_handle: str | None
    request_id: int | None
    receive_action: int | None
    receive_ack: int | None
    call_status: int | None
    read_queue: str | None
    exchange: int | None
    one_sided: bool | None


class SessionHeader(NamedTuple):
    """The SessionHeader of a packet: the counts of messages that its sender has received and sent."""

    received: int
    stored: int
    stored_flags: int
    sent: int
    sent_recoverable: int
    window: int


def session_header(row: Row) -> SessionHeader | None:
    """Return the SessionHeader of a packet; None if it has none."""
    if row.ack_sequence is None:
        return None
    fields = (
        row.ack_sequence,
        row.recoverable_ack_sequence,
        row.recoverable_ack_flags,
        row.user_sequence,
        row.recoverable_sequence,
        row.window_size,
    )
    whole = [field for field in fields if field is not None]
    return SessionHeader(*whole) if len(whole) == len(fields) else None


COLUMNS: Final = tuple(name for name in Row._fields if name in BY_NAME)
"""The columns that are needed: those of `Row`, as far as their protocols have joined."""
BODY_LIMIT: Final = ACK_BODY_SIZE
"""Bytes of bodies that are needed: those of order and final acknowledgements."""

OWN_KINDS: Final = (
    "EstablishConnection", "ConnectionParameters", "SessionAck", "UserMessage", "OrderAck", "FinalAck",
    "Malformed", "Skipped",
)  # fmt: skip
"""The kinds of packets that are needed, besides those of protocols that have joined."""


SHARED: Final = frozenset(
    {
        "error",
        "file",
        "src",
        "dst",
        "kind",
        "source_qm",
        "destination_qm",
        "destination",
        "admin_queue",
        "class_name",
    }
)
"""Texts of which many rows have the same: they are in memory once for each batch."""


def rows(batch: Any) -> Iterator[Row]:
    """Yield the rows of a record batch that has these columns."""
    cells = []
    for name in Row._fields:
        if name not in BY_NAME:
            cells.append([None] * batch.num_rows)
            continue
        column = batch.column(name)
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.int64())
        if name in SHARED:
            encoded = column.dictionary_encode()
            texts = [*encoded.dictionary.to_pylist(), None]
            cells.append([texts[-1 if i is None else i] for i in encoded.indices.to_pylist()])
        else:
            cells.append(column.to_pylist())
    yield from map(Row._make, zip(*cells, strict=True))
