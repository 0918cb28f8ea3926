"""Rows to Arrow record batches: cells are written as rows come, and handed out when a batch is full."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Final

import numpy as np
import pyarrow as pa

from msmqwire.columnar import extract, plans
from msmqwire.columnar.cells import Block, Integers, Spans, bitmap
from msmqwire.columnar.columns import BY_NAME, Column, arrow_schema
from msmqwire.columnar.filters import Filter
from msmqwire.columnar.packet import KINDS, PING_KIND
from msmqwire.columnar.state import (
    R_DST_HIGH,
    R_DST_LOW,
    R_EXTRA,
    R_FILE,
    R_FRAME,
    R_IPV6,
    R_KIND,
    R_LENGTH,
    R_PORTS,
    R_SIZE,
    R_SRC_HIGH,
    R_SRC_LOW,
    R_START,
    R_STREAM,
    R_TIME,
)
from msmqwire.constants import class_name
from msmqwire.packets import parse

BATCH_BYTES_MAX: Final = 32 << 20
"""Bytes of texts and bodies in a batch, about: a batch of large bodies has fewer rows than asked for."""
ADDRESSES_MAX: Final = 1 << 16
"""Addresses whose text is remembered; the memory starts afresh when it is full."""
NO_TIME: Final = -(1 << 63)
"""Stands for a time that a column can't hold."""

Extra = tuple[str | None, str | None, int | None]
"""Why a packet can't be read or bytes were skipped, the path of the field, and its offset."""

_DIRECT_NUMBERS: Final = ("time", "frame", "stream", "src_port", "dst_port", "size")
_TRANSPORTS: Final = ("tcp", "udp")


class Addresses:
    """Codes for addresses, with their texts."""

    def __init__(self) -> None:
        self._table = np.full(4 * ADDRESSES_MAX, -1, np.int32)
        self._known = np.zeros((ADDRESSES_MAX, 3), np.int64)
        self.texts: list[str] = []

    @property
    def crowded(self) -> bool:
        """Whether it is time to forget all of them."""
        return len(self.texts) > ADDRESSES_MAX // 2

    def codes(self, high: Any, low: Any, ipv6: Any) -> Any:
        """The codes of some addresses, half of `ADDRESSES_MAX` at the most."""
        n = len(low)
        codes = np.empty(n, np.int32)
        i = extract.address_codes(self._table, self._known, high, low, ipv6, codes, 0, n)
        while i < n:
            extract.add_address(self._table, self._known, len(self.texts), high[i], low[i], ipv6[i])
            number = (int(high[i]) & (1 << 64) - 1) << 64 | int(low[i]) & (1 << 64) - 1
            self.texts.append(str(IPv6Address(number) if ipv6[i] else IPv4Address(number)))
            i = extract.address_codes(self._table, self._known, high, low, ipv6, codes, i, n)
        return codes


class BatchMaker:
    """Makes record batches of some columns.

    Args:
        columns: those that are wanted.
        test: conditions; rows that do not meet those on where-columns are left out before their fields
            are looked at.
        batch_rows: rows of a batch, at most.
        body_limit: bytes of ``body``, at most.

    Attributes:
        files: the names of the files that rows refer to by number.
    """

    def __init__(
        self, columns: Sequence[Column], test: Filter, batch_rows: int, body_limit: int | None
    ) -> None:
        self._wanted, self._test, self._capacity = list(columns), test, batch_rows
        self._columns = self._wanted + [c for c in test.columns if c not in self._wanted]
        forms = {column.name: plans.form_of(column) for column in self._columns}
        integers = [c for c in self._columns if forms[c.name] == "integer"]
        if "class" in forms.values() and BY_NAME["message_class"] not in integers:
            integers.append(BY_NAME["message_class"])
        self._integers = Integers(integers, batch_rows)
        spans = [c for c in self._columns if forms[c.name] not in ("integer", "class", "where")]
        spans += [c for c in self._columns if c.name == "raw"]
        self._spans = {c.name: Spans(c, batch_rows, body_limit) for c in spans}
        self._forms = forms
        self._names = {c.name for c in self._columns}
        needed = self._names | test.names
        self._coded: set[str] = {
            name for name in ("file", "transport", "src", "dst", "kind") if name in needed
        }
        self._addresses = Addresses()
        self.files: list[str] = []
        self._clear()

    def _clear(self) -> None:
        capacity = self._capacity
        self._n = 0
        self._numbers: dict[str, Any] = {
            name: np.empty(capacity, np.int64) for name in _DIRECT_NUMBERS if name in self._names
        }
        self._codes: dict[str, Any] = {
            name: np.empty(capacity, np.int32) for name in self._coded & self._names
        }
        self._extras: dict[int, Extra] = {}
        self._integers.clear()
        for spans in self._spans.values():
            spans.clear()
        if self._addresses.crowded:
            self._addresses = Addresses()

    def add(self, rows: Any, at: Any, buf: Any, extras: Sequence[Extra]) -> Iterator[Any]:
        """Takes rows with the places of their fields; the batches that this fills."""
        step = min(self._capacity, ADDRESSES_MAX // 8)
        for first in range(0, len(rows), step):
            yield from self._add(rows[first : first + step], at[first : first + step], buf, extras)

    def _add(self, rows: Any, at: Any, buf: Any, extras: Sequence[Extra]) -> Iterator[Any]:
        codes: dict[str, Any] = {name: self._codes_of(name, rows) for name in self._coded}
        if self._test.names:
            kept = self._test.mask(len(rows), lambda name: self._found(name, rows, codes))
            rows, at = rows[kept], at[kept]
            codes = {name: found[kept] for name, found in codes.items()}
        done, left = 0, len(rows)
        while left:
            count = min(left, self._capacity - self._n)
            part = slice(done, done + count)
            self._take(rows[part], at[part], buf, extras, {name: c[part] for name, c in codes.items()})
            done, left = done + count, left - count
            if self._n == self._capacity or self._bytes() > BATCH_BYTES_MAX:
                yield from self.finish()

    def _bytes(self) -> int:
        return sum(spans.used for spans in self._spans.values())

    def _take(self, rows: Any, at: Any, buf: Any, extras: Sequence[Extra], codes: dict[str, Any]) -> None:
        to, n = self._n, len(rows)
        for name, numbers in self._numbers.items():
            numbers[to : to + n] = _number(name, rows)
        for name, cells in self._codes.items():
            cells[to : to + n] = codes[name]
        for i in np.flatnonzero(rows[:, R_EXTRA] >= 0):
            self._extras[to + int(i)] = extras[rows[i, R_EXTRA]]
        block: Block = rows, at, n, buf
        self._integers.add(block, to)
        for spans in self._spans.values():
            spans.add(block, to, _reparse)
        self._n += n

    def _codes_of(self, name: str, rows: Any) -> Any:
        match name:
            case "file":
                return rows[:, R_FILE]
            case "kind":
                return rows[:, R_KIND]
            case "transport":
                return (rows[:, R_STREAM] < 0).astype(np.int32)
            case "src":
                return self._addresses.codes(rows[:, R_SRC_HIGH], rows[:, R_SRC_LOW], rows[:, R_IPV6])
            case _:
                return self._addresses.codes(rows[:, R_DST_HIGH], rows[:, R_DST_LOW], rows[:, R_IPV6])

    def _texts(self, name: str) -> Sequence[str]:
        match name:
            case "file":
                return self.files
            case "kind":
                return KINDS
            case "transport":
                return _TRANSPORTS
            case _:
                return self._addresses.texts

    def _found(self, name: str, rows: Any, codes: dict[str, Any]) -> tuple[Any, Any]:
        """The values of a where-column for a test, and which are there; or its texts, and their codes."""
        if name in codes:
            return self._texts(name), codes[name]
        values = _number(name, rows)
        return values, _there(name, values)

    def finish(self) -> Iterator[Any]:
        """The batch of what has not been handed out, if there is anything."""
        if not self._n:
            return
        n = self._n
        if self._columns:
            schema = arrow_schema(tuple(self._columns))
            arrays = [self._array(column, n) for column in self._columns]
            batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
        else:
            batch = pa.RecordBatch.from_struct_array(pa.array([{}] * n, pa.struct([])))
        self._clear()
        if self._test.columns:
            batch = self._test.rest(batch).select([column.name for column in self._wanted])
        if batch.num_rows:
            yield batch

    def _array(self, column: Column, n: int) -> Any:
        name = column.name
        if name in self._codes:
            return _dictionary(self._codes[name][:n], None, self._texts(name))
        if name in self._spans:
            return self._spans[name].array(n)
        if name in self._numbers:
            values = self._numbers[name][:n]
            valid = bitmap(_there(name, values))
            if column.type == pa.int32():
                values = values.astype(np.int32)
            return pa.Array.from_buffers(column.type, n, [valid, pa.py_buffer(values)])
        if self._forms[name] == "class":
            return _class_names(*self._integers.numbers(BY_NAME["message_class"], n))
        if self._forms[name] == "integer":
            return self._integers.array(column, n)
        place = ("error", "error_path", "error_offset").index(name)
        if not self._extras:
            return pa.nulls(n, column.type)
        cells: list[Any] = [None] * n
        for row, extra in self._extras.items():
            cells[row] = extra[place]
        return pa.array(cells, column.type)


def _number(name: str, rows: Any) -> Any:
    match name:
        case "time":
            return rows[:, R_TIME]
        case "frame":
            return rows[:, R_FRAME]
        case "stream":
            return rows[:, R_STREAM]
        case "src_port":
            return rows[:, R_PORTS] >> 16
        case "dst_port":
            return rows[:, R_PORTS] & 0xFFFF
        case _:
            return rows[:, R_SIZE]


def _there(name: str, values: Any) -> Any:
    if name == "time":
        return values != NO_TIME
    return values >= 0


def _dictionary(codes: Any, valid: Any, texts: Sequence[str]) -> Any:
    mask = None if valid is None else valid == 0
    found = pa.DictionaryArray.from_arrays(pa.array(codes, mask=mask), pa.array(texts, pa.string()))
    return found.dictionary_decode()


def _class_names(classes: Any, valid: Any) -> Any:
    known = np.flatnonzero(np.bincount(classes[valid != 0], minlength=1 << 16))
    codes = np.zeros(1 << 16, np.int32)
    codes[known] = np.arange(len(known))
    safe = np.where(valid != 0, classes, 0)
    return _dictionary(codes[safe], valid, [class_name(int(value)) for value in known])


def _reparse(rows: Any, i: int, buf: Any) -> Any:
    """The packet of a row by the generic reader."""
    start, size = rows[i, R_START], rows[i, R_LENGTH]
    data = bytes(buf[start : start + size])
    return parse(data, protocol="ping" if rows[i, R_KIND] == PING_KIND else "session")
