"""Segments as `columnar.compiled.grouped_scan` takes them: a table of numbers for each Arrow batch."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from msmqwire.capture import Datagram
from msmqwire.columnar.compiled.grouped_scan import S_CUT, S_FIELDS, S_FLOW, S_KIND, S_PIECE, S_PLACE, S_TIME
from msmqwire.columnar.compiled.network import (
    ACK,
    DST_HIGH,
    FLAGS,
    IS_IPV6,
    PORTS,
    SEQ,
    SRC_HIGH,
    START,
    STOP,
    TCP,
    UDP,
    UNDECIDED,
)
from spark_udfs.reassembly.segment_order import Cuts, place_of

ADDRESSES_MAX: Final = 1 << 16
"""Addresses whose numbers are remembered; the memory starts afresh when it is full."""
_WILD: Final = 1 << 62  # nanoseconds since 1970, in the year 2116: beyond what the walk reckons with
_LOW: Final = (1 << 64) - 1
_NUMBERS: Final = (
    "flow", "file_index", "offset", "time_ns", "src_port", "dst_port", "missing", "seq", "ack", "flags",
)  # fmt: skip


class Tables:
    """Makes tables of batches with the columns `NEEDED`.

    Attributes:
        files: the names of the files seen, by their index in the capture.
    """

    def __init__(self, cuts: Cuts) -> None:
        self.files: dict[int, str] = {}
        self._places = {flow: np.array([cut.place for cut in found]) for flow, found in cuts.items()}
        self._addresses: dict[str, tuple[int, int, int]] = {}

    def table(self, batch: Any) -> Table:
        """The table of a batch."""
        numbers = {name: pc.fill_null(batch.column(name), 0).cast(pa.int64()).to_numpy() for name in _NUMBERS}
        payloads = batch.column("payload").cast(pa.large_binary())
        offsets = np.frombuffer(payloads.buffers()[1], np.int64)[payloads.offset :][: len(payloads) + 1]
        rows = np.zeros((batch.num_rows, S_FIELDS), np.int64)
        src, dst = (Texts(batch.column(name)) for name in ("src", "dst"))
        for texts, first in ((src, SRC_HIGH), (dst, DST_HIGH)):
            found = self._numbers_of(texts)
            rows[:, first : first + 2], rows[:, IS_IPV6] = found[:, :2], found[:, 2]
        # The walk looks ports up in a table.
        rows[:, PORTS] = (numbers["src_port"] & 0xFFFF) << 16 | numbers["dst_port"] & 0xFFFF
        rows[:, SEQ], rows[:, ACK], rows[:, FLAGS] = numbers["seq"], numbers["ack"], numbers["flags"]
        rows[:, START], rows[:, STOP] = offsets[:-1], offsets[1:]
        is_tcp = pc.equal(batch.column("transport"), "tcp").to_numpy(zero_copy_only=False)
        plain = (numbers["missing"] == 0) & (numbers["time_ns"] > -_WILD) & (numbers["time_ns"] < _WILD)
        rows[:, S_KIND] = np.where(plain, np.where(is_tcp, TCP, UDP), UNDECIDED)
        rows[:, S_PLACE] = place_of(numbers["file_index"], numbers["offset"])
        rows[:, S_TIME], rows[:, S_FLOW] = numbers["time_ns"], numbers["flow"]
        self._note_files(batch.column("file"), numbers["file_index"])
        if self._places:
            self._note_pieces(rows)
        data = payloads.buffers()[2]
        payload = np.frombuffer(data or b"", np.uint8)
        return Table(rows, offsets, payload, src, dst, is_tcp, numbers["missing"])

    def _numbers_of(self, texts: Texts) -> Any:
        """Addresses as the walk has them: both halves of the number, and whether it is of IPv6."""
        found = [self._number_of(text) for text in texts.known]
        return np.array(found, np.uint64).view(np.int64).reshape(-1, 3)[texts.codes]

    def _number_of(self, text: str) -> tuple[int, int, int]:
        known = self._addresses.get(text)
        if known is None:
            if len(self._addresses) >= ADDRESSES_MAX:
                self._addresses.clear()
            address = ip_address(text)
            known = int(address) >> 64, int(address) & _LOW, int(address.version == 6)
            self._addresses[text] = known
        return known

    def _note_files(self, names: Any, indices: Any) -> None:
        changes = np.flatnonzero(np.diff(indices, prepend=-1))
        for at in changes.tolist():
            index = int(indices[at])
            if index not in self.files:
                self.files[index] = names[at].as_py()

    def _note_pieces(self, rows: Any) -> None:
        starts = np.flatnonzero(np.diff(rows[:, S_FLOW], prepend=rows[:1, S_FLOW] - 1))
        for start, stop in zip(starts, [*starts[1:], len(rows)], strict=True):
            places = self._places.get(int(rows[start, S_FLOW]))
            if places is not None:
                rows[start:stop, S_PIECE] = np.searchsorted(places, rows[start:stop, S_PLACE], side="right")
                rows[start:stop, S_CUT] = 1


class Texts:
    """A column of text, of which there are few.

    Attributes:
        known: each text once.
        codes: for each row, which it is.
    """

    def __init__(self, column: Any) -> None:
        coded = column.dictionary_encode()
        self.known: list[str] = coded.dictionary.to_pylist()
        self.codes = coded.indices.to_numpy()

    def text(self, row: int) -> str:
        """That of a row."""
        return self.known[int(self.codes[row])]


@dataclass(frozen=True)
class Table:
    """The segments of a batch.

    Attributes:
        rows: their numbers, see `msmqwire.columnar.compiled.grouped_scan`.
        offsets: where the payload of each begins, and where the last ends.
        payloads: all payloads.
        src, dst: their addresses.
        is_tcp: whether each is TCP.
        missing: bytes of payload that the capture cut off.
    """

    rows: Any
    offsets: Any
    payloads: Any
    src: Texts
    dst: Texts
    is_tcp: Any
    missing: Any

    def datagram(self, row: int) -> Datagram:
        """A segment as the generic reader has it."""
        cells = self.rows[row].tolist()
        ports = cells[PORTS]
        return Datagram(
            "tcp" if self.is_tcp[row] else "udp",
            self.src.text(row), ports >> 16, self.dst.text(row), ports & 0xFFFF,
            cells[S_TIME], (cells[S_PLACE],), "", self.payloads[cells[START] : cells[STOP]].tobytes(),
            int(self.missing[row]), cells[SEQ], cells[ACK], cells[FLAGS],
        )  # fmt: skip
