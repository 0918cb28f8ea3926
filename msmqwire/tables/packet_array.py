"""Arrow arrays of whole packets to columns: compiled functions over the bytes of the array."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any, Final, cast, get_args

import numpy as np
import pyarrow as pa

from msmqwire.analysis.dissection.message_security import NOTHING_GIVEN, Examiner
from msmqwire.errors import MalformedPacket
from msmqwire.packets import Protocol, parse
from msmqwire.schema import Record
from msmqwire.tables.arrow.batch import BatchMaker, Extra
from msmqwire.tables.arrow.rows import BATCH_BYTES_MAX, PacketCells
from msmqwire.tables.columns import Column, arrow_schema
from msmqwire.tables.compiled.generated import SLOTS
from msmqwire.tables.compiled.packet import BAD, session_packet
from msmqwire.tables.compiled.refusal import UNSURE
from msmqwire.tables.compiled.scan_arrays import RowBlock
from msmqwire.tables.compiled.state import R_EXTRA, R_KIND, R_LENGTH, R_START, ROW
from msmqwire.tables.compiled.whole_packets import BY_BYTES, PING, SESSION, identify
from msmqwire.tables.filters import Filter

ROWS: Final = 1 << 13
"""Values that are identified before their columns are made."""


class PacketScan:
    """Identifies the values of an array, each of which is a whole packet.

    Args:
        raw: an array of bytes; not empty.
        protocols: an array of text with the protocol of each value; where it is null, and for None, the
            bytes decide between a session and a ping.

    Attributes:
        valid: for each value whether it is not null.
        offsets: the offset of each value, and the end of the last.
        generic_packets: packets that only the generic reader supports, by value.
    """

    def __init__(self, raw: Any, protocols: Any = None) -> None:
        if not (pa.types.is_binary(raw.type) or pa.types.is_large_binary(raw.type)):
            raw = raw.cast(pa.binary())
        self.valid = raw.is_valid().to_numpy(zero_copy_only=False)
        self.offsets, memory = _offsets(raw), _memory(raw.buffers()[2])
        self._names, self._protocols = _numbered(protocols, len(raw))
        count = min(len(raw), ROWS)
        rows, field_offsets = np.zeros((count, ROW), np.int64), np.zeros((count, SLOTS), np.int32)
        self._block = RowBlock(rows, field_offsets, memory)
        self.generic_packets: dict[int, Record] = {}

    def blocks(self) -> Iterator[tuple[int, RowBlock, list[Extra]]]:
        """Yield the value of the first row of each block, the block, and its extras, as for `BatchMaker`.

        The next block takes its place.
        """
        first = 0
        while first < len(self.valid):
            stop = identify(self._block, self.offsets, self.valid, self._protocols, first, BATCH_BYTES_MAX)
            extras = self._identify_rest(first, stop)
            rows, field_offsets, memory = self._block
            yield first, RowBlock(rows[: stop - first], field_offsets[: stop - first], memory), extras
            first = stop

    def _identify_rest(self, first: int, stop: int) -> list[Extra]:
        """Parse the values that compiled code left; return the errors of the malformed ones."""
        extras: list[Extra] = []
        rows, field_offsets, memory = self._block
        for r in np.flatnonzero(rows[: stop - first, R_KIND] == UNSURE).tolist():
            row, protocol = rows[r], int(self._protocols[first + r])
            start, end = int(row[R_START]), int(row[R_START] + row[R_LENGTH])
            try:
                packet = _parse(memory[start:end], self._names[protocol])
            except MalformedPacket as error:
                row[R_KIND], row[R_EXTRA] = BAD, len(extras)
                extras.append(Extra(error.why, error.path, error.offset))
                continue
            if protocol not in (SESSION, PING):
                row[R_KIND] = BAD
                self.generic_packets[first + r] = packet
                continue
            assert protocol == SESSION, "the compiled function recognises every Ping"
            row[R_KIND] = session_packet(memory, start, end, field_offsets, r)
            assert row[R_KIND] >= 0, f"{packet.schema.name} of value {first + r}"
        return extras


class PacketReader:
    """Makes the columns of an array whose values are whole packets.

    Args:
        raw: an array of bytes; not empty.
        columns: at least one; none of them about a capture.
        protocols: as for `PacketScan`.
        batch_rows: values of a struct array, at most.
        examiner: has the keys and certificates given.
    """

    def __init__(
        self,
        raw: Any,
        columns: Sequence[Column],
        protocols: Any,
        batch_rows: int,
        examiner: Examiner = NOTHING_GIVEN,
    ) -> None:
        self._packet_cells = PacketCells(columns, examiner=examiner)
        self._fields = list(arrow_schema(tuple(columns)))
        self._scan = PacketScan(raw, protocols)
        self._maker = BatchMaker(columns, Filter(()), min(len(raw), batch_rows), None, examiner)
        self._yielded = 0

    def arrays(self) -> Iterator[Any]:
        """Yield struct arrays of about twice `BATCH_BYTES_MAX` bytes, at most."""
        for _, block, extras in self._scan.blocks():
            for batch in self._maker.add(block, extras):
                yield self._struct(batch)
        for batch in self._maker.finish():
            yield self._struct(batch)

    def _struct(self, batch: Any) -> Any:
        """Return the values of a batch as structs, null where the input is."""
        first, count = self._yielded, batch.num_rows
        self._yielded += count
        nulls = pa.array(~self._scan.valid[first : first + count])
        structs = pa.StructArray.from_arrays(batch.columns, fields=self._fields, mask=nulls)
        found = self._scan.generic_packets
        generic = {i: found.pop(i) for i in list(found) if i < self._yielded}
        if not generic:
            return structs
        cells = [self._cells(i, packet) for i, packet in generic.items()]
        indices = np.arange(count)
        indices[[i - first for i in generic]] = count + np.arange(len(generic))
        return pa.concat_arrays([structs, pa.array(cells, structs.type)]).take(pa.array(indices))

    def _cells(self, i: int, packet: Record) -> dict[str, Any]:
        """Return the cells of a packet that only the generic reader supports, and more; the rest is null."""
        size = int(self._scan.offsets[i + 1] - self._scan.offsets[i])
        return {"kind": packet.schema.name, "size": size, **dict(self._packet_cells.of(packet))}


def _parse(data: Any, protocol: str) -> Record:
    if protocol not in get_args(Protocol):
        raise MalformedPacket(f"{protocol!r} is none of {', '.join(get_args(Protocol))}")
    return parse(data.tobytes(), protocol=cast(Protocol, protocol))


def _offsets(raw: Any) -> Any:
    """Return the offset of each value, and the end of the last."""
    kind = np.int64 if pa.types.is_large_binary(raw.type) else np.int32
    offsets = np.frombuffer(raw.buffers()[1], kind)
    return offsets[raw.offset : raw.offset + len(raw) + 1].astype(np.int64)


def _memory(buffer: Any) -> Any:
    """Return the bytes of a buffer, not copied; the result keeps the buffer alive.

    It is writable, as the memory of `Decoder` is, so that functions are compiled only once.
    """
    if buffer is None or not buffer.size:
        return np.empty(0, np.uint8)
    interface = {"data": (buffer.address, False), "shape": (buffer.size,), "typestr": "|u1", "version": 3}
    return np.asarray(SimpleNamespace(buffer=buffer, __array_interface__=interface))


def _numbered(protocols: Any, count: int) -> tuple[list[str], Any]:
    """Return the names of protocols, and for each value the number of its protocol."""
    names = ["session", "ping"]
    if protocols is None:
        return names, np.full(count, BY_BYTES)
    encoded = protocols.cast(pa.string()).dictionary_encode()
    distinct = encoded.dictionary.to_pylist()
    names += [name for name in distinct if name not in names]
    numbers = np.array([*(names.index(name) for name in distinct), BY_BYTES])
    return names, numbers[encoded.indices.fill_null(len(distinct)).to_numpy()]
