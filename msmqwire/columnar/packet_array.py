"""Arrow arrays of whole packets to their columns: the compiled functions over the bytes that Arrow holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any, Final, cast, get_args

import numpy as np
import pyarrow as pa

from msmqwire.columnar.arrow.batch import BATCH_BYTES_MAX, BatchMaker, Extra
from msmqwire.columnar.arrow.rows import value_of_packet
from msmqwire.columnar.columns import Column, arrow_schema
from msmqwire.columnar.compiled.generated import SLOTS
from msmqwire.columnar.compiled.packet import BAD, session_packet
from msmqwire.columnar.compiled.state import R_EXTRA, R_KIND, R_LENGTH, R_START, ROW
from msmqwire.columnar.compiled.whole_packets import BY_BYTES, PING, SESSION, judge
from msmqwire.columnar.filters import Filter
from msmqwire.errors import MalformedPacket
from msmqwire.packets import Protocol, parse
from msmqwire.schema import Record

ROWS: Final = 1 << 13
"""Values that are judged before their columns are made."""


class PacketReader:
    """Makes the columns of an array of packets of which each is whole in a value.

    Args:
        raw: an array of bytes; not empty.
        columns: those that are wanted, at least one, none of them about a capture.
        protocols: an array of text with the protocol of each value; where it is null, and for None, the
            bytes tell between a session and a ping.
        batch_rows: values of a struct array, at most.
    """

    def __init__(self, raw: Any, columns: Sequence[Column], protocols: Any, batch_rows: int) -> None:
        if not (pa.types.is_binary(raw.type) or pa.types.is_large_binary(raw.type)):
            raw = raw.cast(pa.binary())
        self._columns, self._fields = columns, list(arrow_schema(tuple(columns)))
        self._there = raw.is_valid().to_numpy(zero_copy_only=False)
        self._offsets, self._buf = _offsets(raw), _memory(raw.buffers()[2])
        self._names, self._protocols = _numbered(protocols, len(raw))
        self._maker = BatchMaker(columns, Filter(()), min(len(raw), batch_rows), None)
        room = min(len(raw), ROWS)
        self._rows, self._at = np.zeros((room, ROW), np.int64), np.zeros((room, SLOTS), np.int32)
        self._others: dict[int, Record] = {}
        self._given = 0

    def arrays(self) -> Iterator[Any]:
        """Struct arrays, one after the other, of about twice `BATCH_BYTES_MAX` bytes at the most."""
        first = 0
        while first < len(self._there):
            stop = judge(
                self._buf, self._offsets, self._there, self._protocols, first, BATCH_BYTES_MAX,
                self._rows, self._at,
            )  # fmt: skip
            extras = self._judge_rest(first, stop)
            count = stop - first
            for batch in self._maker.add(self._rows[:count], self._at[:count], self._buf, extras):
                yield self._struct(batch)
            first = stop
        for batch in self._maker.finish():
            yield self._struct(batch)

    def _judge_rest(self, first: int, stop: int) -> list[Extra]:
        """Has the generic reader judge what is left; why those can't be read that can't."""
        extras: list[Extra] = []
        for r in np.flatnonzero(self._rows[: stop - first, R_KIND] < 0).tolist():
            row, protocol = self._rows[r], int(self._protocols[first + r])
            start, end = int(row[R_START]), int(row[R_START] + row[R_LENGTH])
            try:
                packet = _parsed(self._buf[start:end], self._names[protocol])
            except MalformedPacket as error:
                row[R_KIND], row[R_EXTRA] = BAD, len(extras)
                extras.append((error.why, error.path, error.offset))
                continue
            if protocol not in (SESSION, PING):
                row[R_KIND] = BAD
                self._others[first + r] = packet
                continue
            assert protocol == SESSION, "the compiled function knows every Ping"
            row[R_KIND] = session_packet(self._buf, start, end, self._at, r, True)
            assert row[R_KIND] >= 0, f"{packet.schema.name} of value {first + r}"
        return extras

    def _struct(self, batch: Any) -> Any:
        """The values that a batch was made of, null where there are none."""
        first, count = self._given, batch.num_rows
        self._given += count
        nulls = pa.array(~self._there[first : first + count])
        found = pa.StructArray.from_arrays(batch.columns, fields=self._fields, mask=nulls)
        others = {i: self._others.pop(i) for i in list(self._others) if i < self._given}
        if not others:
            return found
        cells = [self._cells(i, packet) for i, packet in others.items()]
        places = np.arange(count)
        places[[i - first for i in others]] = count + np.arange(len(others))
        return pa.concat_arrays([found, pa.array(cells, found.type)]).take(pa.array(places))

    def _cells(self, i: int, packet: Record) -> dict[str, Any]:
        """The columns of a packet that only the generic reader knows."""
        cells = {column.name: value_of_packet(column, packet) for column in self._columns}
        known = {"kind": packet.schema.name, "size": int(self._offsets[i + 1] - self._offsets[i])}
        return {name: known.get(name, value) for name, value in cells.items()}


def _parsed(data: Any, protocol: str) -> Record:
    if protocol not in get_args(Protocol):
        raise MalformedPacket(f"{protocol!r} is none of {', '.join(get_args(Protocol))}")
    return parse(data.tobytes(), protocol=cast(Protocol, protocol))


def _offsets(raw: Any) -> Any:
    """Where the values begin, and where the last one ends."""
    kind = np.int64 if pa.types.is_large_binary(raw.type) else np.int32
    found = np.frombuffer(raw.buffers()[1], kind)
    return found[raw.offset : raw.offset + len(raw) + 1].astype(np.int64)


def _memory(buffer: Any) -> Any:
    """The bytes of a buffer, not copied; they stay as long as the result does.

    It may be written to, as the decoder's memory may, so that functions are compiled once for both.
    """
    if buffer is None or not buffer.size:
        return np.empty(0, np.uint8)
    interface = {"data": (buffer.address, False), "shape": (buffer.size,), "typestr": "|u1", "version": 3}
    return np.asarray(SimpleNamespace(buffer=buffer, __array_interface__=interface))


def _numbered(protocols: Any, count: int) -> tuple[list[str], Any]:
    """The names of protocols, and for each value which it is."""
    names = ["session", "ping"]
    if protocols is None:
        return names, np.full(count, BY_BYTES)
    found = protocols.cast(pa.string()).dictionary_encode()
    given = found.dictionary.to_pylist()
    names += [name for name in given if name not in names]
    numbers = np.array([*(names.index(name) for name in given), BY_BYTES])
    return names, numbers[found.indices.fill_null(len(given)).to_numpy()]
