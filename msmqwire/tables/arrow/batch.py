"""Rows to Arrow record batches: cells are written as rows arrive, and yielded when a batch is full."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from ipaddress import IPv4Address, IPv6Address
from operator import attrgetter
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from msmqwire.analysis.dissection.item import Item, Packet
from msmqwire.analysis.dissection.message_security import (
    NOTHING_GIVEN,
    Examiner,
    SignatureStatus,
)
from msmqwire.capture.record import NO_TIME
from msmqwire.constants import class_name
from msmqwire.packets import Protocol, parse
from msmqwire.tables.arrow import plans
from msmqwire.tables.arrow.buffers import Bitmaps, BufferPool, SharedTexts
from msmqwire.tables.arrow.contents import SOURCES, content_arrays
from msmqwire.tables.arrow.errors import ERRORS, ErrorCells
from msmqwire.tables.arrow.fixed_width import FixedWidthColumns
from msmqwire.tables.arrow.rows import BATCH_BYTES_MAX, OF_PAIR, PacketCells
from msmqwire.tables.arrow.signature_codes import STATUSES, SignatureCodes
from msmqwire.tables.arrow.signatures import forged
from msmqwire.tables.arrow.tunnel_columns import TunnelColumns, TunnelTexts
from msmqwire.tables.arrow.variable_width import VariableWidthColumns
from msmqwire.tables.columns import (
    BOOL,
    BY_NAME,
    CONTENT_GROUP,
    FINDING_IDS,
    OF_BODY,
    TUNNEL,
    Column,
    arrow_schema,
)
from msmqwire.tables.compiled import certificates, fixed_cells
from msmqwire.tables.compiled.packet import KINDS, PING_KIND
from msmqwire.tables.compiled.scan_arrays import RowBlock
from msmqwire.tables.compiled.state import (
    R_DST_HIGH,
    R_EXTRA,
    R_FILE,
    R_FRAME,
    R_IPV6,
    R_KIND,
    R_LENGTH,
    R_ORIGIN,
    R_PORTS,
    R_SIZE,
    R_SRC_HIGH,
    R_START,
    R_STREAM,
    R_TIME,
    REFUSAL_IN_OFFSETS,
    TUNNEL_BITS,
)
from msmqwire.tables.filters import Filter

ADDRESSES_MAX: Final = 1 << 16
"""Addresses whose text is cached; a full cache is cleared."""


class Extra(NamedTuple):
    """The cells of a row that compiled code does not find in its bytes.

    Attributes:
        error: why a packet is malformed or bytes were skipped.
        path: the path of the field.
        offset: its offset.
        message: an HTTP message of SRMP, or a packet of RPC or NCP.
        pair: the values of `OF_PAIR`; empty if there are none.
    """

    error: str | None = None
    path: str | None = None
    offset: int | None = None
    message: Packet | None = None
    pair: tuple[Any, ...] = ()


_PAIR: Final = attrgetter(*(column.name for column in OF_PAIR))
_TUNNEL: Final = "number of the tunnels"
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
    _TUNNEL: fixed_cells.TUNNEL,
    "src": fixed_cells.SRC,
    "dst": fixed_cells.DST,
}
_SIDES: Final = {"src": R_SRC_HIGH, "dst": R_DST_HIGH}
_TRANSPORTS: Final = ("tcp", "udp", "pgm")
_SIGNED, _ENCRYPTED = BY_NAME["signed"], BY_NAME["encrypted"]
_UNSIGNED: Final = STATUSES.index(SignatureStatus.NONE)
_OF_USER_HEADER: Final = BY_NAME["recoverable"]
_SHARED_KINDS, _SHARED_TRANSPORTS, _SHARED_STATUSES = map(SharedTexts, (KINDS, _TRANSPORTS, STATUSES))


class Addresses:
    """Codes of addresses, and their texts."""

    def __init__(self) -> None:
        self._table = np.full(4 * ADDRESSES_MAX, -1, np.int32)
        self._addresses = np.zeros((ADDRESSES_MAX, 3), np.int64)
        self.texts: list[str] = []
        self.shared = SharedTexts(self.texts)

    @property
    def crowded(self) -> bool:
        """Whether the cache must be cleared before the next rows."""
        return len(self.texts) > ADDRESSES_MAX // 2

    def write_codes(self, name: str, rows: Any, codes: Any) -> None:
        """Write the codes of the addresses of some rows, for ``src`` or ``dst``.

        There must be at most half of `ADDRESSES_MAX` new addresses since it was last not crowded.
        """
        side, n = _SIDES[name], len(rows)
        i = fixed_cells.address_codes(self._table, self._addresses, rows, side, codes, 0)
        while i < n:
            high, low, ipv6 = (int(rows[i, field]) for field in (side, side + 1, R_IPV6))
            fixed_cells.add_address(self._table, self._addresses, len(self.texts), high, low, ipv6)
            number = (high & (1 << 64) - 1) << 64 | low & (1 << 64) - 1
            self.texts.append(str(IPv6Address(number) if ipv6 else IPv4Address(number)))
            i = fixed_cells.address_codes(self._table, self._addresses, rows, side, codes, i)


class Classes:
    """Codes of message classes, and their names; 0 for null."""

    def __init__(self) -> None:
        self._table = np.zeros(1 << 16, np.int32)
        self.texts = [""]
        self.shared = SharedTexts(self.texts)

    def codes(self, classes: Any, valid: Any) -> Any:
        """Return the codes of the classes that are valid."""
        n = len(classes)
        codes = np.empty(n, np.int32)
        i = fixed_cells.class_codes(self._table, classes, valid, codes, 0)
        while i < n:
            self._table[classes[i]] = len(self.texts)
            self.texts.append(class_name(int(classes[i])))
            i = fixed_cells.class_codes(self._table, classes, valid, codes, i)
        return codes


class BatchMaker:
    """Makes record batches.

    Args:
        columns: the columns of the batches.
        test: conditions; rows that fail those on where-columns are dropped before their fields are read.
        batch_rows: rows of a batch, at most.
        body_limit: bytes of ``body``, at most.
        examiner: has the keys and certificates given.

    Attributes:
        files: the names of the files, by the number that rows have.
        tunnels: the tunnels in which frames were, by number.
        shows_findings: whether there is a column of findings, so that `add` needs them.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        test: Filter,
        batch_rows: int,
        body_limit: int | None,
        examiner: Examiner = NOTHING_GIVEN,
    ) -> None:
        self._output, self._test, self._capacity = list(columns), test, batch_rows
        self._columns = self._output + [c for c in test.columns if c not in self._output]
        self._contents = [
            (place, column) for place, column in enumerate(self._columns) if column.group == CONTENT_GROUP
        ]
        if self._contents:
            self._columns += [BY_NAME[name] for name in SOURCES if BY_NAME[name] not in self._columns]
        self.shows_findings = BY_NAME[FINDING_IDS] in self._columns
        forms = {column.name: plans.form_of(column) for column in self._columns}
        fixed = [c for c in self._columns if forms[c.name] == "integer"]
        if "class" in forms.values() and BY_NAME["message_class"] not in fixed:
            fixed.append(BY_NAME["message_class"])
        self._examiner = examiner
        self._examined = [
            column
            for column in self._columns
            if forms[column.name] == "examined" or (column.name in OF_BODY and examiner.has_keys)
        ]
        self._verifies = any(column.name == "signature_status" for column in self._examined)
        self._statuses = np.empty(batch_rows if self._verifies else 0, np.int32)  # codes of STATUSES
        self._signature_codes = SignatureCodes()
        if self._examined:
            fixed += [column for column in (_SIGNED, _ENCRYPTED, _OF_USER_HEADER) if column not in fixed]
        self._fixed_width = FixedWidthColumns(fixed, batch_rows)
        elsewhere = ("integer", "class", "where", "examined", "generic", "content", "findings")
        variable = [c for c in self._columns if forms[c.name] not in elsewhere]
        variable += [c for c in self._columns if c.name == "raw"]
        self._of_pair = [(number, c.name) for number, c in enumerate(OF_PAIR) if c in self._columns]
        self._variable_width = VariableWidthColumns(variable, batch_rows, BATCH_BYTES_MAX, body_limit)
        self._forms = forms | {column.name: "variable" for column in variable}
        self._sides = [name for name in _SIDES if name in forms]
        self._shows_errors = not forms.keys().isdisjoint(ERRORS)
        self._memory = BufferPool(), BufferPool()
        self._valid = np.empty((len(_INT64S) + len(_INT32S), batch_rows), np.bool_)
        self._addresses, self._classes = Addresses(), Classes()
        self.tunnels = TunnelTexts()
        self.files: list[str] = []
        self._shared_files = SharedTexts(self.files)
        self._tunnel_columns: TunnelColumns | None = None
        self._n = 0
        self._errors, self._error_columns = ErrorCells(), dict[str, Any]()
        made = [column for column in self._columns if column.group != CONTENT_GROUP]
        self._of_packet = PacketCells(made, body_limit, examiner)
        self._of_examined = PacketCells(self._examined, body_limit, examiner)
        self._cells = defaultdict[str, dict[int, Any]](dict)  # by column and row, of the generic reader
        self._cell_bytes = 0

    keeps_items, needs_fields = False, True
    """Whether items of the generic reader are kept, and the fields in their packets' bytes are looked up."""

    def extra(self, item: Item) -> Extra:
        """Return the cells of an item that are not found in its bytes."""
        pair = _PAIR(item)
        if item.packet is not None:
            return Extra(None, None, None, item.packet, pair)
        error = item.error
        if error is None:
            return Extra(item.reason, pair=pair)
        return Extra(error.why, error.path, error.offset, pair=pair)

    @cached_property
    def _schema(self) -> Any:
        return arrow_schema(tuple(self._columns))

    def _begin(self) -> None:
        """Begin a batch."""
        int64s, int32s = self._memory
        self._int64s = int64s.array((len(_INT64S), self._capacity), np.int64)
        self._int32s = int32s.array((len(_INT32S) + len(_CODES), self._capacity), np.int32)
        self._fixed_width.begin()
        self._variable_width.begin()

    def add(self, block: RowBlock, extras: Sequence[Extra], found: Sequence[str] = ()) -> Iterator[Any]:
        """Add rows; yield the batches that this fills.

        Args:
            block: the rows.
            extras: those to which R_EXTRA refers.
            found: with a column of findings, its cells, to which R_ORIGIN refers; -1 is null.
        """
        step = min(self._capacity, ADDRESSES_MAX // 8)
        for first in range(0, len(block.rows), step):
            if self._addresses.crowded:
                yield from self.finish()
                self._addresses = Addresses()
            yield from self._add(_part(block, slice(first, first + step)), extras, found)

    def _add(self, block: RowBlock, extras: Sequence[Extra], found: Sequence[str]) -> Iterator[Any]:
        if self._test.names:
            block = _part(block, self.meets(block))
        done, left = 0, len(block.rows)
        while left:
            if not self._n:
                self._begin()
            count = min(left, self._capacity - self._n)
            self._write(_part(block, slice(done, done + count)), extras, found)
            done, left = done + count, left - count
            used = self._variable_width.used + self._cell_bytes
            if self._n == self._capacity or used > BATCH_BYTES_MAX:
                yield from self.finish()

    def meets(self, block: RowBlock) -> Any:
        """Return which rows meet the conditions on where-columns."""
        rows = block.rows
        return self._test.mask(len(rows), lambda name: self._values(name, rows))

    def _write(self, block: RowBlock, extras: Sequence[Extra], found: Sequence[str]) -> None:
        rows, to, n = block.rows, self._n, len(block.rows)
        refusals = fixed_cells.write_capture_cells(rows, self._int64s, self._int32s, self._valid, to)
        for name in self._sides:
            self._addresses.write_codes(name, rows, self._int32s[_CODES[name], to : to + n])
        if self._shows_errors and refusals:
            refused = np.flatnonzero(rows[:, R_EXTRA] == REFUSAL_IN_OFFSETS)
            self._errors.add_refusals(to + refused, block.field_offsets[refused])
        numbers = rows[:, R_EXTRA].tolist() if extras else ()
        for i, extra in ((i, extras[number]) for i, number in enumerate(numbers) if number >= 0):
            if extra.message is None:
                self._errors.add(to + i, extra)
            else:
                self._add_cells(to + i, self._of_packet.of(extra.message))  # they take less memory than it
            if extra.pair:
                self._add_cells(to + i, ((name, extra.pair[number]) for number, name in self._of_pair))
        for i in np.flatnonzero(rows[:, R_ORIGIN] >= 0).tolist() if found else ():
            self._add_cells(to + i, ((FINDING_IDS, found[rows[i, R_ORIGIN]]),))
        self._statuses[to : to + n] = _UNSIGNED
        self._fixed_width.add(block, to)
        self._variable_width.add(block, to, _reparse)
        if self._examined:
            self._examine(block, to)
        self._n += n

    def _add_cells(self, row: int, cells: Iterable[tuple[str, Any]]) -> None:
        """Add cells of a row by the generic reader, in place of those of the compiled code."""
        for name, cell in cells:
            if cell is not None:
                self._cells[name][row] = cell
                if isinstance(cell, (str, bytes)):
                    self._cell_bytes += len(cell)

    def _examine(self, block: RowBlock, to: int) -> None:
        """Decrypt bodies and verify signatures, where there are any and the columns ask for it."""
        stop = to + len(block.rows)
        signed, secured = self._fixed_width.flags(_SIGNED, to, stop)
        chosen: list[int] = []
        if self._examiner.has_keys:
            encrypted = self._fixed_width.flags(_ENCRYPTED, to, stop)[0] & secured
            secured, chosen = secured & ~encrypted, np.flatnonzero(encrypted).tolist()
        if self._verifies:
            codes = self._statuses[to:stop]
            with_a_key = self._signature_codes.write(block, signed, secured, codes)
            codes[with_a_key] = _UNSIGNED  # until the examiner's cell takes its place
            if with_a_key:
                encrypted = self._fixed_width.flags(_ENCRYPTED, to, stop)[0]
                by_others = forged(block, with_a_key, encrypted, self._examiner)
                codes[list(by_others)] = list(by_others.values())
                chosen += [i for i in with_a_key if i not in by_others]
        for i in sorted(chosen):
            self._add_cells(to + i, self._of_examined.of(_reparse(block, i)))

    def _texts(self, name: str) -> SharedTexts:
        match name:
            case "file":
                if self._shared_files.texts is not self.files:
                    self._shared_files = SharedTexts(self.files)
                return self._shared_files
            case "kind":
                return _SHARED_KINDS
            case "transport":
                return _SHARED_TRANSPORTS
            case _:
                return self._addresses.shared

    def _values(self, name: str, rows: Any) -> tuple[Any, Any]:
        """Return the values of a where-column and their validity; or its texts, and the codes of the rows."""
        match name:
            case "file":
                return self.files, rows[:, R_FILE]
            case "kind":
                return KINDS, rows[:, R_KIND]
            case "transport":
                return _TRANSPORTS, np.maximum(0, -rows[:, R_STREAM]).astype(np.int32)
            case "src" | "dst":
                codes = np.empty(len(rows), np.int32)
                self._addresses.write_codes(name, rows, codes)
                return self._addresses.texts, codes
            case _:
                values = _number(name, rows)
                return values, _valid(name, values)

    def finish(self) -> Iterator[Any]:
        """Yield the last batch, unless it is empty."""
        n, self._n = self._n, 0
        if not n:
            return
        if self._columns:
            self._error_columns = self._errors.arrays(n) if self._shows_errors else {}
            self._fixed_width.finish(n)
            self._validity = Bitmaps(self._valid, n)
            self._variable_width.finish(n)
            arrays = [self._with_cells(self._array(column, n), column) for column in self._columns]
            if self._contents:
                places = {column: place for place, column in enumerate(self._columns)}
                sources = [arrays[places[BY_NAME[name]]] for name in SOURCES]
                for place, array in content_arrays(self._contents, sources):
                    arrays[place] = array
            batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        else:
            batch = pa.RecordBatch.from_struct_array(pa.array([{}] * n, pa.struct([])))
        self._errors.clear()
        self._cells.clear()
        self._cell_bytes = 0
        if self._test.columns:
            batch = self._test.rest(batch)
        if len(self._columns) > len(self._output):
            batch = batch.select(list(range(len(self._output))))
        if batch.num_rows:
            yield batch

    def _with_cells(self, array: Any, column: Column) -> Any:
        """Return a column with the cells that the generic reader has made."""
        cells = self._cells.get(column.name)
        if not cells:
            return array
        rows = sorted(cells)
        mask = np.zeros(len(array), np.bool_)
        mask[rows] = True
        return pc.replace_with_mask(array, mask, pa.array([cells[row] for row in rows], column.type))

    def _array(self, column: Column, n: int) -> Any:
        name, form = column.name, self._forms[column.name]
        if form == "variable":
            return self._variable_width.array(column, n)
        if form == "integer":
            return self._fixed_width.array(column, n)
        if form == "examined":
            return self._unprotected(column, n)
        if form in ("generic", "content", "findings"):  # all cells are made elsewhere
            return _nulls(self._capacity, column.type).slice(0, n)
        if form == "class":
            classes, valid = self._fixed_width.numbers(BY_NAME["message_class"], n)
            validity = self._fixed_width.validity(BY_NAME["message_class"])
            return self._classes.shared.array(self._classes.codes(classes, valid), validity)
        if name in TUNNEL:
            return self._tunnel_column(column, n)
        if name in _CODES:
            return self._texts(name).array(self._int32s[_CODES[name], :n])
        if name in ERRORS:
            return self._error_columns[name]
        values = self._int64s[_INT64S[name], :n] if name in _INT64S else self._int32s[_INT32S[name], :n]
        number = _INT64S[name] if name in _INT64S else len(_INT64S) + _INT32S[name]
        return pa.Array.from_buffers(column.type, n, [self._validity.validity(number), pa.py_buffer(values)])

    def _tunnel_column(self, column: Column, n: int) -> Any:
        """Return a column that says in which tunnels frames were."""
        numbers = self._int32s[_CODES[_TUNNEL], :n]
        if not numbers.any():
            return _nulls(self._capacity, column.type).slice(0, n)
        if self._tunnel_columns is None or self._tunnel_columns.texts is not self.tunnels:
            self._tunnel_columns = TunnelColumns(self.tunnels)
        return self._tunnel_columns.array(column.name, numbers)

    def _unprotected(self, column: Column, n: int) -> Any:
        """Return a column of the examiner's results, as it is without its cells."""
        validity = self._fixed_width.validity(_OF_USER_HEADER)
        if column.type == BOOL:
            return pa.Array.from_buffers(column.type, n, [validity, pa.py_buffer(bytes(-(-n // 8)))])
        codes, valid = np.empty(n, np.int32), self._fixed_width.flags(_OF_USER_HEADER, 0, n)[1]
        certificates.codes_if(self._statuses, valid, codes)
        return _SHARED_STATUSES.array(codes, validity)


@lru_cache(maxsize=64)
def _nulls(n: int, kind: Any) -> Any:
    """Return an array of nulls, which all batches of a capacity share."""
    return pa.nulls(n, kind)


def _number(name: str, rows: Any) -> Any:
    match name:
        case "time":
            return rows[:, R_TIME]
        case "frame":
            return rows[:, R_FRAME] >> TUNNEL_BITS
        case "stream":
            return rows[:, R_STREAM]
        case "src_port":
            return rows[:, R_PORTS] >> 16
        case "dst_port":
            return rows[:, R_PORTS] & 0xFFFF
        case _:
            return rows[:, R_SIZE]


def _valid(name: str, values: Any) -> Any:
    return values != NO_TIME if name == "time" else values >= 0


def _part(block: RowBlock, selection: Any) -> RowBlock:
    """Return the rows of a block that a slice or a mask selects."""
    return block._replace(rows=block.rows[selection], field_offsets=block.field_offsets[selection])


def _reparse(block: RowBlock, i: int) -> Any:
    """Return the packet of a row by the generic reader."""
    protocol: Protocol = "ping" if block.rows[i, R_KIND] == PING_KIND else "session"
    return parse(packet_bytes(block, i), protocol=protocol)


def packet_bytes(block: RowBlock, i: int) -> bytes:
    """Return the bytes of the packet of a row."""
    start, size = block.rows[i, R_START], block.rows[i, R_LENGTH]
    return bytes(block.memory[start : start + size])
