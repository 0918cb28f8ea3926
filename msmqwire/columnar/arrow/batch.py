"""Rows to Arrow record batches: cells are written as rows come, and handed out when a batch is full."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Final

import numpy as np
import pyarrow as pa

from msmqwire.columnar.arrow import plans
from msmqwire.columnar.arrow.buffers import Block, BufferPool, bitmap, shared_texts, sparse
from msmqwire.columnar.arrow.fixed_width import Integers
from msmqwire.columnar.arrow.variable_width import Spans
from msmqwire.columnar.columns import BY_NAME, Column, arrow_schema
from msmqwire.columnar.compiled import fixed_cells
from msmqwire.columnar.compiled.packet import KINDS, PING_KIND
from msmqwire.columnar.compiled.state import (
    R_DST_HIGH,
    R_EXTRA,
    R_FILE,
    R_FRAME,
    R_IPV6,
    R_KIND,
    R_LENGTH,
    R_PORTS,
    R_SIZE,
    R_SRC_HIGH,
    R_START,
    R_STREAM,
    R_TIME,
)
from msmqwire.columnar.filters import Filter
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

_INT64S: Final = {
    "time": fixed_cells.TIME,
    "frame": fixed_cells.FRAME,
    "stream": fixed_cells.STREAM,
    "size": fixed_cells.SIZE,
}
_INT32S: Final = {"src_port": fixed_cells.SRC_PORT, "dst_port": fixed_cells.DST_PORT}
_CODES: Final = {
    "file": fixed_cells.FILE,
    "transport": fixed_cells.TRANSPORT,
    "kind": fixed_cells.KIND,
    "src": fixed_cells.SRC,
    "dst": fixed_cells.DST,
}
_SIDES: Final = {"src": R_SRC_HIGH, "dst": R_DST_HIGH}
_EXTRAS: Final = ("error", "error_path", "error_offset")
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

    def find(self, name: str, rows: Any, codes: Any) -> None:
        """Writes the codes of the addresses of some rows, for ``src`` or ``dst``.

        Those of all rows since it was last told that it is not crowded are half of `ADDRESSES_MAX` at most.
        """
        side, n = _SIDES[name], len(rows)
        i = fixed_cells.address_codes(self._table, self._known, rows, side, codes, 0, n)
        while i < n:
            high, low, ipv6 = (int(rows[i, place]) for place in (side, side + 1, R_IPV6))
            fixed_cells.add_address(self._table, self._known, len(self.texts), high, low, ipv6)
            number = (high & (1 << 64) - 1) << 64 | low & (1 << 64) - 1
            self.texts.append(str(IPv6Address(number) if ipv6 else IPv4Address(number)))
            i = fixed_cells.address_codes(self._table, self._known, rows, side, codes, i, n)


class Classes:
    """Codes for message classes, with their names; 0 for none."""

    def __init__(self) -> None:
        self._table = np.zeros(1 << 16, np.int32)
        self.texts = [""]

    def codes(self, classes: Any, valid: Any) -> Any:
        """The codes of the classes that are there."""
        n = len(classes)
        codes = np.empty(n, np.int32)
        i = fixed_cells.class_codes(self._table, classes, valid, codes, 0, n)
        while i < n:
            self._table[classes[i]] = len(self.texts)
            self.texts.append(class_name(int(classes[i])))
            i = fixed_cells.class_codes(self._table, classes, valid, codes, i, n)
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
        self._spans = Spans(spans, batch_rows, BATCH_BYTES_MAX, body_limit)
        self._forms = forms | {column.name: "span" for column in spans}
        self._sides = [name for name in _SIDES if name in forms]
        self._memory = BufferPool(), BufferPool()
        self._addresses, self._classes = Addresses(), Classes()
        self.files: list[str] = []
        self._n = 0
        self._extras: dict[int, Extra] = {}

    @cached_property
    def _schema(self) -> Any:
        return arrow_schema(tuple(self._columns))

    def _begin(self) -> None:
        """Begins a batch, when the one before has been looked at."""
        int64s, int32s = self._memory
        self._int64s = int64s.array((len(_INT64S), self._capacity), np.int64)
        self._int32s = int32s.array((len(_INT32S) + len(_CODES), self._capacity), np.int32)
        self._integers.begin()
        self._spans.begin()

    def add(self, rows: Any, at: Any, buf: Any, extras: Sequence[Extra]) -> Iterator[Any]:
        """Takes rows with the places of their fields; the batches that this fills."""
        step = min(self._capacity, ADDRESSES_MAX // 8)
        for first in range(0, len(rows), step):
            if self._addresses.crowded:
                yield from self.finish()
                self._addresses = Addresses()
            yield from self._add(rows[first : first + step], at[first : first + step], buf, extras)

    def _add(self, rows: Any, at: Any, buf: Any, extras: Sequence[Extra]) -> Iterator[Any]:
        if self._test.names:
            kept = self._test.mask(len(rows), lambda name: self._found(name, rows))
            rows, at = rows[kept], at[kept]
        done, left = 0, len(rows)
        while left:
            if not self._n:
                self._begin()
            count = min(left, self._capacity - self._n)
            part = slice(done, done + count)
            self._take(rows[part], at[part], buf, extras)
            done, left = done + count, left - count
            if self._n == self._capacity or self._spans.used > BATCH_BYTES_MAX:
                yield from self.finish()

    def _take(self, rows: Any, at: Any, buf: Any, extras: Sequence[Extra]) -> None:
        to, n = self._n, len(rows)
        fixed_cells.where(rows, n, self._int64s, self._int32s, to)
        for name in self._sides:
            self._addresses.find(name, rows, self._int32s[_CODES[name], to : to + n])
        if extras:
            for i in np.flatnonzero(rows[:, R_EXTRA] >= 0):
                self._extras[to + int(i)] = extras[rows[i, R_EXTRA]]
        block: Block = rows, at, n, buf
        self._integers.add(block, to)
        self._spans.add(block, to, _reparse)
        self._n += n

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

    def _found(self, name: str, rows: Any) -> tuple[Any, Any]:
        """The values of a where-column for a test, and which are there; or its texts, and their codes."""
        match name:
            case "file":
                return self.files, rows[:, R_FILE]
            case "kind":
                return KINDS, rows[:, R_KIND]
            case "transport":
                return _TRANSPORTS, (rows[:, R_STREAM] < 0).astype(np.int32)
            case "src" | "dst":
                codes = np.empty(len(rows), np.int32)
                self._addresses.find(name, rows, codes)
                return self._addresses.texts, codes
            case _:
                values = _number(name, rows)
                return values, _there(name, values)

    def finish(self) -> Iterator[Any]:
        """The batch of what has not been handed out, if there is anything."""
        n, self._n = self._n, 0
        if not n:
            return
        if self._columns:
            arrays = [self._array(column, n) for column in self._columns]
            batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        else:
            batch = pa.RecordBatch.from_struct_array(pa.array([{}] * n, pa.struct([])))
        self._extras = {}
        if self._test.columns:
            batch = self._test.rest(batch).select([column.name for column in self._wanted])
        if batch.num_rows:
            yield batch

    def _array(self, column: Column, n: int) -> Any:
        name, form = column.name, self._forms[column.name]
        if form == "span":
            return self._spans.array(column, n)
        if form == "integer":
            return self._integers.array(column, n)
        if form == "class":
            classes, valid = self._integers.numbers(BY_NAME["message_class"], n)
            return shared_texts(self._classes.codes(classes, valid), self._classes.texts, valid)
        if name in _CODES:
            return shared_texts(self._int32s[_CODES[name], :n], self._texts(name))
        if name in _EXTRAS:
            place = _EXTRAS.index(name)
            return sparse({row: extra[place] for row, extra in self._extras.items()}, n, column.type)
        values = self._int64s[_INT64S[name], :n] if name in _INT64S else self._int32s[_INT32S[name], :n]
        return pa.Array.from_buffers(column.type, n, [bitmap(_there(name, values)), pa.py_buffer(values)])


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


def _reparse(rows: Any, i: int, buf: Any) -> Any:
    """The packet of a row by the generic reader."""
    start, size = rows[i, R_START], rows[i, R_LENGTH]
    data = bytes(buf[start : start + size])
    return parse(data, protocol="ping" if rows[i, R_KIND] == PING_KIND else "session")
