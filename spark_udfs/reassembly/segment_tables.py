"""Segments as `columnar.compiled.grouped_scan` reads them: a table of numbers for each Arrow batch."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from msmqwire.capture import Datagram
from msmqwire.capture.ip import Transport
from msmqwire.capture.record import NO_TIME
from msmqwire.capture.tunnels import frame_in_tunnel
from msmqwire.tables.compiled.grouped_scan import (
    SEGMENT_CHUNK,
    SEGMENT_FIELDS,
    SEGMENT_FLOW,
    SEGMENT_FRAME,
    SEGMENT_IS_DIVIDED,
    SEGMENT_KIND,
    SEGMENT_NS,
)
from msmqwire.tables.compiled.network import (
    ACK,
    DST_HIGH,
    FLAGS,
    IS_IPV6,
    MISSING,
    PORTS,
    SEQ,
    SRC_HIGH,
    START,
    STOP,
    TCP,
    UDP,
    UNDECIDED,
)
from spark_udfs.reassembly.chunks import ChunkBoundaries, position_of
from spark_udfs.reassembly.segment_tunnels import SegmentTunnels

ADDRESSES_MAX: Final = 1 << 16
"""Addresses whose numbers are cached; a full cache is cleared."""
_LOW: Final = (1 << 64) - 1
_KINDS: Final = {"tcp": TCP, "udp": UDP}  # PGM is for the generic reader
_NUMERIC: Final = (
    "flow", "file_index", "offset", "time_ns", "src_port", "dst_port", "missing", "seq", "ack", "flags",
)  # fmt: skip


class Tables:
    """Makes tables from batches with the columns `SEGMENT_COLUMNS`.

    Attributes:
        files: the names of the files seen, by their index in the capture.
    """

    def __init__(self, boundaries: ChunkBoundaries) -> None:
        self.files: dict[int, str] = {}
        self._boundaries = {
            flow: np.array([boundary.position for boundary in of_flow])
            for flow, of_flow in boundaries.items()
        }
        self._addresses: dict[str, tuple[int, int, int]] = {}

    def table(self, batch: Any) -> Table:
        """Return the table of a batch."""
        numbers = {name: _numbers(batch, name) for name in _NUMERIC}
        payloads = batch.column("payload").cast(pa.large_binary())
        offsets = np.frombuffer(payloads.buffers()[1], np.int64)[payloads.offset :][: len(payloads) + 1]
        rows = np.zeros((batch.num_rows, SEGMENT_FIELDS), np.int64)
        src, dst = (Texts(batch.column(name)) for name in ("src", "dst"))
        for texts, first in ((src, SRC_HIGH), (dst, DST_HIGH)):
            addresses = self._addresses_of(texts)
            rows[:, first : first + 2], rows[:, IS_IPV6] = addresses[:, :2], addresses[:, 2]
        # Masked because the scan uses ports as indices.
        rows[:, PORTS] = (numbers["src_port"] & 0xFFFF) << 16 | numbers["dst_port"] & 0xFFFF
        rows[:, SEQ], rows[:, ACK], rows[:, FLAGS] = numbers["seq"], numbers["ack"], numbers["flags"]
        rows[:, START], rows[:, STOP] = offsets[:-1], offsets[1:]
        transport = Texts(batch.column("transport"))
        kinds = np.array([_KINDS.get(name, UNDECIDED) for name in transport.distinct], np.int64)
        rows[:, MISSING] = numbers["missing"]
        kinds = kinds[transport.codes]
        rows[:, SEGMENT_KIND] = np.where((kinds == UDP) & (numbers["missing"] > 0), UNDECIDED, kinds)
        rows[:, SEGMENT_FRAME] = position_of(numbers["file_index"], numbers["offset"])
        rows[:, SEGMENT_NS], rows[:, SEGMENT_FLOW] = numbers["time_ns"], numbers["flow"]
        self._note_files(batch.column("file"), numbers["file_index"])
        if self._boundaries:
            self._number_chunks(rows)
        data = payloads.buffers()[2]
        payload = np.frombuffer(data or b"", np.uint8)
        tunnels = SegmentTunnels.of(batch)
        if tunnels.codes is not None:
            rows[:, IS_IPV6] |= np.array(tunnels.networks, np.int64)[tunnels.codes] << 1
        return Table(rows, offsets, payload, src, dst, transport, numbers["missing"], tunnels)

    def _addresses_of(self, texts: Texts) -> Any:
        """Return addresses as in a header: both halves of the number, and whether it is IPv6."""
        addresses = [self._address_of(text) for text in texts.distinct]
        return np.array(addresses, np.uint64).view(np.int64).reshape(-1, 3)[texts.codes]

    def _address_of(self, text: str) -> tuple[int, int, int]:
        numbers = self._addresses.get(text)
        if numbers is None:
            if len(self._addresses) >= ADDRESSES_MAX:
                self._addresses.clear()
            address = ip_address(text)
            numbers = int(address) >> 64, int(address) & _LOW, int(address.version == 6)
            self._addresses[text] = numbers
        return numbers

    def _note_files(self, names: Any, indices: Any) -> None:
        changes = np.flatnonzero(np.diff(indices, prepend=-1))
        for row in changes.tolist():
            index = int(indices[row])
            if index not in self.files:
                self.files[index] = names[row].as_py()

    def _number_chunks(self, rows: Any) -> None:
        starts = np.flatnonzero(np.diff(rows[:, SEGMENT_FLOW], prepend=rows[:1, SEGMENT_FLOW] - 1))
        for start, stop in zip(starts, [*starts[1:], len(rows)], strict=True):
            boundaries = self._boundaries.get(int(rows[start, SEGMENT_FLOW]))
            if boundaries is not None:
                rows[start:stop, SEGMENT_CHUNK] = np.searchsorted(
                    boundaries, rows[start:stop, SEGMENT_FRAME], side="right"
                )
                rows[start:stop, SEGMENT_IS_DIVIDED] = 1


def _numbers(batch: Any, name: str) -> Any:
    """Return the numbers of a column; for none 0, in place of a time `NO_TIME`."""
    return pc.fill_null(batch.column(name), NO_TIME if name == "time_ns" else 0).cast(pa.int64()).to_numpy()


class Texts:
    """A column of text with few distinct values.

    Attributes:
        distinct: each text once.
        codes: for each row the index of its text.
    """

    def __init__(self, column: Any) -> None:
        coded = column.dictionary_encode()
        self.distinct: list[str] = coded.dictionary.to_pylist()
        self.codes = coded.indices.to_numpy()

    def text(self, row: int) -> str:
        """Return the text of a row."""
        return self.distinct[int(self.codes[row])]


@dataclass(frozen=True)
class Table:
    """The segments of a batch.

    Attributes:
        rows: their numbers; see `msmqwire.tables.compiled.grouped_scan`.
        offsets: the offset of each payload, and the end of the last.
        payloads: all payloads, concatenated.
        src, dst: their addresses.
        transport: the transport of each.
        missing: bytes of payload that the capture cut off.
        tunnels: the tunnels in which they were.
    """

    rows: Any
    offsets: Any
    payloads: Any
    src: Texts
    dst: Texts
    transport: Texts
    missing: Any
    tunnels: SegmentTunnels

    def datagram(self, row: int) -> Datagram:
        """Return a segment for the generic reader."""
        cells = self.rows[row].tolist()
        tunnel, network = self.tunnels.at(row)
        frame = frame_in_tunnel(cells[SEGMENT_FRAME], tunnel)
        ports = cells[PORTS]
        return Datagram(
            cast(Transport, self.transport.text(row)),
            self.src.text(row), ports >> 16, self.dst.text(row), ports & 0xFFFF,
            cells[SEGMENT_NS], (frame,), "",
            self.payloads[cells[START] : cells[STOP]].tobytes(),
            int(self.missing[row]), cells[SEQ], cells[ACK], cells[FLAGS], network,
        )  # fmt: skip
