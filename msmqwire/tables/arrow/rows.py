"""Items of a dissection to Arrow record batches, packet by packet: the reference for the compiled code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from operator import attrgetter
from typing import Any, Final

import pyarrow as pa

from msmqwire.analysis.dissection import Item
from msmqwire.analysis.dissection.contents import decoded, message_body
from msmqwire.analysis.dissection.item import Packet
from msmqwire.analysis.dissection.message_security import NOTHING_GIVEN, Examiner
from msmqwire.analysis.protocols import protocol_of
from msmqwire.analysis.protocols.protocol import CaptureProtocol
from msmqwire.schema.record import class_of, first_of, paths_in
from msmqwire.tables.arrow.contents import cell_of
from msmqwire.tables.arrow.values import finding_ids
from msmqwire.tables.columns import (
    COLUMNS,
    CONTENT_GROUP,
    EXAMINED,
    FINDING_IDS,
    OF_BODY,
    PAIR_GROUP,
    Column,
    arrow_schema,
)

Getter = Callable[[Any], Any]
"""Returns the value of a column; None where there is none."""

BATCH_BYTES_MAX: Final = 32 << 20
"""Bytes of texts and bodies in a batch, about: with large bodies a batch has fewer rows than requested."""
OF_PAIR: Final = tuple(column for column in COLUMNS if column.group == PAIR_GROUP)
"""The columns that an item has under their names, and its packet does not have."""
_OF_ITEM: Final[dict[str, Getter]] = {
    column.name: attrgetter(column.name) for column in COLUMNS if column.group in ("where", PAIR_GROUP)
} | {
    "time": attrgetter("time_ns"),
    "frame": lambda item: item.frames[-1] if item.frames else None,
    "error": lambda item: item.error.why if item.error else item.reason or None,
    "error_path": lambda item: item.error.path if item.error else None,
    "error_offset": lambda item: item.error.offset if item.error else None,
    "raw": lambda item: item.raw or None,
    FINDING_IDS: lambda item: finding_ids(item.findings),
}


def value_of(column: Column, item: Item, body_limit: int | None = None) -> Any:
    """Return the value of a column for an item; None if the packet does not have it."""
    getter = _OF_ITEM.get(column.name)
    if getter is not None:
        return getter(item)
    return value_of_packet(column, item.packet, body_limit, item.examiner)


def value_of_packet(
    column: Column,
    packet: Packet | None,
    body_limit: int | None = None,
    examiner: Examiner = NOTHING_GIVEN,
) -> Any:
    """Return the value of a column that is about a packet; None if the packet does not have it."""
    getter = _getter(column, _attributes(packet), body_limit, examiner)
    return None if getter is None else getter(packet)


class PacketCells:
    """Finds the cells of packets in some columns.

    Columns that a kind of packet can't have are found out once, and not looked for again.
    """

    def __init__(
        self, columns: Sequence[Column], body_limit: int | None = None, examiner: Examiner = NOTHING_GIVEN
    ) -> None:
        self._columns, self._body_limit, self._examiner = columns, body_limit, examiner
        self._getters: dict[int, list[tuple[str, Getter]]] = {}  # by identity of the attributes, which stay

    def of(self, packet: Packet | None) -> Iterator[tuple[str, Any]]:
        """Yield the names of the columns in which a packet has a value, and the values."""
        attributes = _attributes(packet)
        getters = self._getters.get(id(attributes))
        if getters is None:
            found = (
                (column.name, _getter(column, attributes, self._body_limit, self._examiner))
                for column in self._columns
            )
            getters = self._getters[id(attributes)] = [(name, of) for name, of in found if of is not None]
        for name, getter in getters:
            value = getter(packet)
            if value is not None:
                yield name, value


def _getter(
    column: Column, attributes: Mapping[str, Getter], body_limit: int | None, examiner: Examiner
) -> Getter | None:
    """Return how a column is found of packets with these attributes; None if they can't have it."""
    name, getter = column.name, attributes.get(column.name)
    if "body" not in attributes:  # it is not a message
        return getter
    if column.group == CONTENT_GROUP:
        return lambda packet: (
            None
            if (message := message_body(packet, examiner)) is None
            else cell_of(column, decoded(message.limited(body_limit)))
        )
    if name in EXAMINED:
        return lambda packet: getattr(examiner.examine(packet), name, None)
    if getter is not None and name in OF_BODY and examiner.has_keys:
        getter = _in_clear(getter, examiner, len if name == "body_size" else bytes)
    if getter is not None and name == "body" and body_limit is not None:
        return _limited(getter, body_limit)
    return getter


def _limited(getter: Getter, body_limit: int) -> Getter:
    return lambda packet: None if (body := getter(packet)) is None else body[:body_limit]


def _in_clear(getter: Getter, examiner: Examiner, convert: Callable[[bytes], Any]) -> Getter:
    """Return how a column is found of a body that was decrypted, or else as by `getter`."""

    def value(packet: Packet) -> Any:
        examined = examiner.examine(packet)
        return getter(packet) if examined is None or examined.body is None else convert(examined.body)

    return value


# -- attributes ----------------------------------------------------------------------------------------------


def _attributes(packet: Packet | None) -> Mapping[str, Getter]:
    """Return the readers of columns that packets like this one can have, by name: one object for all of
    them.
    """
    protocol = protocol_of(packet)
    if protocol is None:
        return _of_record(class_of(packet), "")
    own = protocol.columns.attributes(packet)
    message = protocol.packets.message_in(packet)
    return own if message is None else _with_message(protocol, own, class_of(message.whole))


@cache
def _of_record(kind: type, at: str) -> Mapping[str, Getter]:
    """Return the readers of columns that records of a class can have at a path; none for other classes."""
    found = ((column, paths_in(kind, column.paths, at)) for column in COLUMNS)
    return {column.name: first_of(paths, column.convert) for column, paths in found if paths}


def _with_message(protocol: CaptureProtocol, own: Mapping[str, Getter], whole: type) -> Mapping[str, Getter]:
    """Return the readers of columns of packets with these of their own, and with a message of a class."""
    key = id(own), whole
    found = _WITH_MESSAGE.get(key)
    if found is None:
        at = protocol.packets.message
        # In the packet of the message TimeToReachQueue may be when it expires, and the body may be cut.
        of_message = {name: attrgetter(f"{at}.{name}") for name in ("time_to_reach_queue", "body_size")}
        found = {**own, **_of_record(whole, f"{at}.whole."), **of_message}
        _WITH_MESSAGE[key] = found
    return found


_WITH_MESSAGE: Final[dict[tuple[int, type], Mapping[str, Getter]]] = {}
"""By identity of the readers of a protocol, which stay, and by the class of the message."""


def batches(
    items: Iterable[Item], columns: Sequence[Column], *, batch_rows: int, body_limit: int | None = None
) -> Iterator[Any]:
    """Yield record batches of at most `batch_rows` rows, and of about `BATCH_BYTES_MAX` bytes."""
    schema = arrow_schema(tuple(columns))
    of_item = [(name, _OF_ITEM[name]) for name in schema.names if name in _OF_ITEM]
    readers: dict[Examiner, PacketCells] = {}
    cells: dict[str, dict[int, Any]] = {name: {} for name in schema.names}
    rows = size = 0
    for item in items:
        for name, getter in of_item:
            cell = cells[name][rows] = getter(item)
            if isinstance(cell, (str, bytes)):
                size += len(cell)
        if item.packet is not None:
            if (of_packet := readers.get(item.examiner)) is None:
                of_packet = readers[item.examiner] = PacketCells(columns, body_limit, item.examiner)
            for name, value in of_packet.of(item.packet):
                cells[name][rows] = value
                if isinstance(value, (str, bytes)):
                    size += len(value)
        rows += 1
        if rows >= batch_rows or size > BATCH_BYTES_MAX:
            yield _batch(cells, schema, rows)
            cells, rows, size = {name: {} for name in schema.names}, 0, 0
    if rows:
        yield _batch(cells, schema, rows)


def _batch(cells: dict[str, dict[int, Any]], schema: Any, rows: int) -> Any:
    if not schema:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))
    arrays = [
        pa.array([of_column.get(row) for row in range(rows)], kind) if of_column else pa.nulls(rows, kind)
        for of_column, kind in zip(cells.values(), schema.types, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
