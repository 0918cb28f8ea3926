"""Items of a dissection to Arrow record batches, packet by packet: the reference for the compiled code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from msmqwire.columnar.arrow.contents import cell_of
from msmqwire.columnar.columns import (
    COLUMNS,
    CONTENT_GROUP,
    EXAMINED,
    OF_BODY,
    PAIR_GROUP,
    Column,
    arrow_schema,
)
from msmqwire.dissection import Item
from msmqwire.dissection.contents import decoded, message_body
from msmqwire.dissection.item import Packet
from msmqwire.dissection.message_security import NOTHING_GIVEN, Examiner
from msmqwire.netware.attributes import attribute as ncp_attribute
from msmqwire.netware.ncp_packet import NcpPacket
from msmqwire.remote_read.attributes import attribute as call_attribute
from msmqwire.remote_read.rpc_packet import RpcPacket
from msmqwire.srmp.attributes import attribute
from msmqwire.srmp.message import SrmpMessage

_WHERE: dict[str, Callable[[Item], Any]] = {
    "time": lambda item: item.time_ns,
    "file": lambda item: item.file,
    "frame": lambda item: item.frames[-1] if item.frames else None,
    "transport": lambda item: item.transport,
    "stream": lambda item: item.stream,
    "src": lambda item: item.src,
    "src_port": lambda item: item.src_port,
    "dst": lambda item: item.dst,
    "dst_port": lambda item: item.dst_port,
    "tunnel": lambda item: item.tunnel,
    "tunnel_src": lambda item: item.tunnel_src,
    "tunnel_dst": lambda item: item.tunnel_dst,
    "tunnel_id": lambda item: item.tunnel_id,
    "kind": lambda item: item.kind,
    "size": lambda item: item.size,
    "error": lambda item: item.error.why if item.error else item.reason or None,
    "error_path": lambda item: item.error.path if item.error else None,
    "error_offset": lambda item: item.error.offset if item.error else None,
    "raw": lambda item: item.raw or None,
}
OF_PAIR: Final = tuple(column for column in COLUMNS if column.group == PAIR_GROUP)
"""The columns that an item has under their names, and its packet does not have."""


def value_of(column: Column, item: Item, body_limit: int | None = None) -> Any:
    """Return the value of a column for an item; None if the packet does not have it."""
    getter = _WHERE.get(column.name)
    if getter is not None:
        return getter(item)
    if column.group == PAIR_GROUP:
        return getattr(item, column.name)
    return value_of_packet(column, item.packet, body_limit, item.examiner)


def value_of_packet(
    column: Column,
    packet: Packet | None,
    body_limit: int | None = None,
    examiner: Examiner = NOTHING_GIVEN,
) -> Any:
    """Return the value of a column that is about a packet; None if the packet does not have it."""
    if column.group == CONTENT_GROUP:
        message = message_body(packet, examiner)
        return None if message is None else cell_of(column, decoded(message.limited(body_limit)))
    if column.name in EXAMINED:
        examined = examiner.examine(packet)
        return None if examined is None else getattr(examined, column.name)
    if column.name in OF_BODY and examiner.has_keys:
        examined = examiner.examine(packet)
        if examined is not None and examined.body is not None:
            return len(examined.body) if column.name == "body_size" else examined.body[:body_limit]
    if isinstance(packet, SrmpMessage):
        value = attribute(column.name, packet)
        return value[:body_limit] if column.name == "body" and value is not None else value
    if isinstance(packet, RpcPacket):
        return _value_of_call(column, packet, body_limit)
    if isinstance(packet, NcpPacket):
        return ncp_attribute(column.name, packet)
    for path in column.paths:
        value = _follow(packet, path)
        if value is not None:
            if column.name == "body" and body_limit is not None:
                value = value[:body_limit]
            return value if column.convert is None else column.convert(value)
    return None


def _value_of_call(column: Column, packet: RpcPacket, body_limit: int | None) -> Any:
    """Return what an answer of remote read has of the message in it, or the queue that a call opens."""
    if column.group == "call":
        return call_attribute(column.name, packet)
    message = packet.message
    if message is None:
        return (packet.opened_queue or None) if column.name == "destination" else None
    if column.name == "time_to_reach_queue":  # in the message packet it is the time at which it expires
        return message.time_to_reach_queue
    if column.name == "body_size":
        return message.body_size
    return value_of_packet(column, message.whole, body_limit)


def _follow(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = getattr(value, name, None)
        if value is None:
            return None
    return value


def batches(
    items: Iterable[Item], columns: Sequence[Column], *, batch_rows: int, body_limit: int | None = None
) -> Iterator[Any]:
    """Yield record batches of at most `batch_rows` rows."""
    schema = arrow_schema(tuple(columns))
    cells_of_columns: list[list[Any]] = [[] for _ in columns]
    rows = 0
    for item in items:
        for cells, column in zip(cells_of_columns, columns, strict=True):
            cells.append(value_of(column, item, body_limit))
        rows += 1
        if rows >= batch_rows:
            yield _batch(cells_of_columns, schema, rows)
            cells_of_columns, rows = [[] for _ in columns], 0
    if rows:
        yield _batch(cells_of_columns, schema, rows)


def _batch(cells_of_columns: list[list[Any]], schema: Any, rows: int) -> Any:
    if not schema:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))
    arrays = [pa.array(cells, kind) for cells, kind in zip(cells_of_columns, schema.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
