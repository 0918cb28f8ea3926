"""The TCP segments, UDP datagrams and PGM packets of captures, of any content, as columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from msmqwire.capture import Datagram, IpDecoder, Record
from msmqwire.tables.arrow.buffers import BufferPool
from msmqwire.tables.arrow.tunnel_columns import TunnelTexts
from msmqwire.tables.compiled import state as entry
from msmqwire.tables.compiled.datagram_scan import (
    C_OFFSET,
    COLUMNS,
    DatagramArrays,
    pair_of,
    scan_datagrams,
)
from msmqwire.tables.compiled.flow_table import KEY_FIELDS, new_seed
from msmqwire.tables.compiled.network import HEADER_FIELDS, PGM, TCP, UDP
from msmqwire.tables.compiled.stop_codes import StopCode
from msmqwire.tables.scanning.encapsulations import Encapsulations
from msmqwire.tables.scanning.flow_keys import ends_of, key_of
from msmqwire.tables.scanning.frames import FileScanner, no_counts, no_interfaces

CHUNK: Final = 1 << 20
"""Bytes of the input in memory."""
ROWS: Final = 8192
"""Datagrams of a batch."""
PAYLOADS: Final = 16 << 20
"""Bytes of payload of a batch, at most, unless a single datagram is larger."""
PAIRS: Final = 1 << 15
"""Pairs of endpoints that have a number at a time."""

_TRANSPORTS: Final = {"tcp": TCP, "udp": UDP, "pgm": PGM}

Pair = tuple[str, int, str, int, int]
"""Address and port of the sender, and of the receiver, and the network in which they are."""


@dataclass(frozen=True)
class Datagrams:
    """Datagrams in the order of the capture.

    Attributes:
        cells: a row for each column, by the indices in `msmqwire.tables.compiled.datagram_scan`.
        payloads: all payloads, concatenated; empty if they were not requested.
        pairs: the pairs of endpoints by number; the list grows from batch to batch, until a new one begins.
        tunnels: the tunnels by number; likewise.
    """

    cells: Any
    payloads: Any
    pairs: list[Pair]
    tunnels: TunnelTexts


class DatagramReader(FileScanner):
    """Reads capture files, one after the other, as a single `IpDecoder` would.

    It uses memory for a chunk of the file, for a batch, and for fragments of incomplete datagrams.

    Args:
        payloads: whether payloads are requested.
    """

    def __init__(self, *, payloads: bool = True) -> None:
        self._with_payloads, self._skipping = payloads, False
        self._decoder, self._encapsulations = IpDecoder(), Encapsulations()
        self._state = np.zeros(entry.STATE, np.int64)
        self._state[entry.HASH_SEED] = new_seed()
        self._interfaces, self._not_read = no_interfaces(), no_counts()
        self._chunk, self.memory = CHUNK, np.empty(CHUNK, np.uint8)
        self._header = np.zeros(HEADER_FIELDS, np.int64)
        self._table = np.empty(4 * PAIRS, np.int32)
        self._keys = np.zeros((PAIRS, KEY_FIELDS), np.int64)
        self._buffers = BufferPool(), BufferPool()
        self._file_number = self._shift = 0
        self._forget_pairs()
        self._begin_batch()

    def read(self, stream: Any, file: int, shift: int = 0) -> Iterator[Datagrams]:
        """Read a capture; yield the batches that this fills.

        Args:
            stream: its bytes.
            file: a number for the file.
            shift: is added to offsets in the (unpacked) stream.

        Raises:
            CaptureError: it is cut off or damaged; its offset is that in the stream. The datagrams before
                it are not lost.
        """
        self._file_number, self._shift = file, shift
        return self._read_file(stream)

    def skip(self, stream: Any) -> None:
        """Read a capture only for the fragments of datagrams that end later. Raises CaptureError."""
        self._skipping = True
        try:
            for _ in self._read_file(stream):
                raise AssertionError("batches of a skipped capture")
        finally:
            self._skipping = False
            self.frames_not_read()
            self._decoder.count_anew()

    def frames_not_read(self, *, at_end: bool = False) -> Counter[str]:
        """Return how many frames were not read so far though packets may be in them, by reason.

        ``at_end`` says once that the capture has ended, so that fragments that are left count.
        """
        self._move_counts(self._decoder)
        if at_end:
            self._decoder.end()
        return self._decoder.frames_not_read()

    def finish(self) -> Iterator[Datagrams]:
        """Yield the last batch, unless it is empty."""
        count, used = int(self._state[entry.ROWS]), int(self._state[entry.ARENA])
        if count:
            cells, payloads = self._cells[:, :count], self._payloads[:used]
            yield Datagrams(cells, payloads, self._numbered_pairs(), self._encapsulations.texts)
            self._begin_batch()

    def _begin_batch(self, payloads: int = 0) -> None:
        """Begin a batch."""
        cells, bytes_ = self._buffers
        self._cells = cells.array((COLUMNS, ROWS), np.int64)
        self._payloads = bytes_.array((max(PAYLOADS, payloads) if self._with_payloads else 0,), np.uint8)
        self._state[entry.ROWS] = self._state[entry.ARENA] = 0

    # -- files --------------------------------------------------------------------------------------

    def _begin_file(self, file: str) -> None:
        self._state[entry.FILE] = self._file_number

    def _scan(self, start: int) -> StopCode:
        arrays = DatagramArrays(
            self._state, self.memory, self._header, self._table, self._keys, self._cells, self._payloads
        )
        stop_code = scan_datagrams(
            arrays,
            self._encapsulations.arrays,
            self._interfaces,
            self._shift + start,
            not self._skipping,
            self._with_payloads,
            self._not_read,
        )
        return StopCode(stop_code)

    def _release_input(self) -> Iterator[Datagrams]:
        yield from ()  # payloads are copied

    def _enlarge_input(self, size: int) -> None:
        previous, self.memory = self.memory, np.empty(size, np.uint8)
        self.memory[: len(previous)] = previous
        self._chunk = size

    def _make_room(self, stop_code: StopCode) -> Iterator[Datagrams]:
        if self._state[entry.ROWS]:
            yield from self.finish()
        elif stop_code == StopCode.ARENA_FULL:
            self._begin_batch(int(self._state[entry.NEED]))
        if stop_code == StopCode.PAIRS_FULL:
            self._forget_pairs()

    def _take_record(self, record: Record) -> Iterator[Datagrams]:
        datagram = self._decoder.decode(record)
        if datagram is None:
            self._note_link(self._decoder, record.linktype)
        else:
            self._encapsulations.note_path(self._header, datagram)
        if datagram is None or self._skipping:
            return
        offset, size = int(self._cells[C_OFFSET, self._state[entry.ROWS]]), len(datagram.payload)
        if self._with_payloads and size > len(self._payloads) - self._state[entry.ARENA]:
            yield from self.finish()
            if size > len(self._payloads):
                self._begin_batch(size)
        pair = self._pair(datagram)
        if pair < 0:
            yield from self.finish()
            self._forget_pairs()
            pair = self._pair(datagram)
        if self._with_payloads:
            used = int(self._state[entry.ARENA])
            self._payloads[used : used + size] = np.frombuffer(datagram.payload, np.uint8)
            self._state[entry.ARENA] += size
        self._cells[:, self._state[entry.ROWS]] = (
            offset, datagram.time_ns, self._state[entry.FILE], _TRANSPORTS[datagram.transport], pair,
            datagram.seq, datagram.ack, datagram.flags, size, datagram.missing,
            self._encapsulations.number(datagram.encapsulation),
        )  # fmt: skip
        self._state[entry.ROWS] += 1

    # -- pairs of endpoints -------------------------------------------------------------------------

    def _forget_pairs(self) -> None:
        self._table[:] = -1
        self._state[entry.PAIRS] = 0
        self._pairs: list[Pair] = []
        self._generic_pairs: dict[Pair, int] = {}

    def _pair(self, datagram: Datagram) -> int:
        """Return the number of the endpoints of a datagram, as `pair_of`."""
        key: Pair = datagram.key
        number = self._generic_pairs.get(key)
        if number is None:
            self._header[:KEY_FIELDS] = key_of(*key)
            number = pair_of(self._state, self._table, self._keys, self._header)
            if number >= 0:
                self._generic_pairs[key] = number
        return number

    def _numbered_pairs(self) -> list[Pair]:
        for key in self._keys[len(self._pairs) : self._state[entry.PAIRS]].tolist():
            self._pairs.append(ends_of(key))
        return self._pairs
