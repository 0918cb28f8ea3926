"""The TCP segments and UDP datagrams of captures, whatever they carry, as columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from msmqwire.capture import Datagram, IpDecoder, Record
from msmqwire.columnar.arrow.batch import NO_TIME
from msmqwire.columnar.arrow.buffers import BufferPool
from msmqwire.columnar.arrow.rows import INT64_MAX
from msmqwire.columnar.bridge.connection_table import address_of, key_of
from msmqwire.columnar.bridge.frames import Frames, no_interfaces
from msmqwire.columnar.compiled import state as w
from msmqwire.columnar.compiled.datagram_scan import C_OFFSET, COLUMNS, pair_of, walk_datagrams
from msmqwire.columnar.compiled.flow_table import KEY_FIELDS
from msmqwire.columnar.compiled.network import HEADS, TCP, UDP
from msmqwire.columnar.compiled.stop_codes import StopCode

CHUNK: Final = 1 << 20
"""Bytes of the input that are looked at together."""
ROWS: Final = 8192
"""Datagrams of a batch."""
PAYLOADS: Final = 16 << 20
"""Bytes of payload of a batch; more only for a single datagram."""
PAIRS: Final = 1 << 15
"""Pairs of endpoints that are known at a time."""

Pair = tuple[str, int, str, int]
"""Address and port of the sender, and of the receiver."""


@dataclass(frozen=True)
class Datagrams:
    """Datagrams in the order of the capture.

    Attributes:
        cells: a row for each column, by the indices in `msmqwire.columnar.compiled.datagram_scan`.
        payloads: all payloads, one after the other; nothing where they were not asked for.
        pairs: the pairs of endpoints by number; the list grows from batch to batch, until it starts afresh.
    """

    cells: Any
    payloads: Any
    pairs: list[Pair]


class DatagramReader(Frames):
    """Reads capture files, one after the other, as a single `IpDecoder` would.

    Memory is that of a chunk of the file, of a batch, and of fragments that are not whole.

    Args:
        payloads: whether payloads are asked for.
    """

    def __init__(self, *, payloads: bool = True) -> None:
        self._copied, self._quiet = payloads, False
        self._decoder = IpDecoder()
        self._state = np.zeros(w.STATE, np.int64)
        self._interfaces = no_interfaces()
        self._chunk, self.memory = CHUNK, np.empty(CHUNK, np.uint8)
        self._head = np.zeros(HEADS, np.int64)
        self._table = np.empty(4 * PAIRS, np.int32)
        self._keys = np.zeros((PAIRS, KEY_FIELDS), np.int64)
        self._buffers = BufferPool(), BufferPool()
        self._number = self._shift = 0
        self._forget_pairs()
        self._begin()

    def read(self, stream: Any, file: int, shift: int = 0) -> Iterator[Datagrams]:
        """Reads a capture; the batches that this fills.

        Args:
            stream: its bytes.
            file: a number for the file.
            shift: what is to be added to places in the (unpacked) stream.

        Raises:
            CaptureError: it is cut off or damaged; its offset is the place in the stream. What stands before
                that is there.
        """
        self._number, self._shift = file, shift
        return self._file(stream)

    def skip(self, stream: Any) -> None:
        """Reads a capture of which only fragments of datagrams that end later matter. Raises CaptureError."""
        self._quiet = True
        try:
            for _ in self._file(stream):
                raise AssertionError("batches of what is skipped")
        finally:
            self._quiet = False

    def finish(self) -> Iterator[Datagrams]:
        """The batch of what has not been handed out, if there is anything."""
        count, used = int(self._state[w.ROWS]), int(self._state[w.ARENA])
        if count:
            yield Datagrams(self._cells[:, :count], self._payloads[:used], self._known_pairs())
            self._begin()

    def _begin(self, payloads: int = 0) -> None:
        """Begins a batch."""
        cells, bytes_ = self._buffers
        self._cells = cells.array((COLUMNS, ROWS), np.int64)
        self._payloads = bytes_.array((max(PAYLOADS, payloads) if self._copied else 0,), np.uint8)
        self._state[w.ROWS] = self._state[w.ARENA] = 0

    # -- files --------------------------------------------------------------------------------------

    def _begins(self, file: str) -> None:
        self._state[w.FILE] = self._number

    def _walk(self, start: int) -> StopCode:
        stop_code = walk_datagrams(
            self._state, self.memory, self._interfaces, self._head, self._table, self._keys, self._cells,
            self._payloads, self._shift + start, not self._quiet, self._copied,
        )  # fmt: skip
        return StopCode(stop_code)

    def _release(self) -> Iterator[Datagrams]:
        yield from ()  # payloads are copied

    def _enlarge(self, size: int) -> None:
        kept, self.memory = self.memory, np.empty(size, np.uint8)
        self.memory[: len(kept)] = kept
        self._chunk = size

    def _make_room(self, stop_code: StopCode) -> Iterator[Datagrams]:
        if self._state[w.ROWS]:
            yield from self.finish()
        elif stop_code == StopCode.ARENA_FULL:
            self._begin(int(self._state[w.NEED]))
        if stop_code == StopCode.PAIRS_FULL:
            self._forget_pairs()

    def _hand(self, record: Record) -> Iterator[Datagrams]:
        found = self._decoder.decode(record)
        if found is None or self._quiet:
            return
        offset, size = int(self._cells[C_OFFSET, self._state[w.ROWS]]), len(found.payload)
        if self._copied and size > len(self._payloads) - self._state[w.ARENA]:
            yield from self.finish()
            if size > len(self._payloads):
                self._begin(size)
        pair = self._pair(found)
        if pair < 0:
            yield from self.finish()
            self._forget_pairs()
            pair = self._pair(found)
        if self._copied:
            used = int(self._state[w.ARENA])
            self._payloads[used : used + size] = np.frombuffer(found.payload, np.uint8)
            self._state[w.ARENA] += size
        time_ns = found.time_ns if abs(found.time_ns) <= INT64_MAX else NO_TIME
        self._cells[:, self._state[w.ROWS]] = (
            offset, time_ns, self._state[w.FILE], TCP if found.transport == "tcp" else UDP, pair, found.seq,
            found.ack, found.flags, size, found.missing,
        )  # fmt: skip
        self._state[w.ROWS] += 1

    # -- pairs of endpoints -------------------------------------------------------------------------

    def _forget_pairs(self) -> None:
        self._table[:] = -1
        self._state[w.FLOWS] = 0
        self._pairs: list[Pair] = []
        self._handed: dict[Pair, int] = {}

    def _pair(self, found: Datagram) -> int:
        """`pair_of` for one of the generic reader."""
        key: Pair = found[1:5]
        number = self._handed.get(key)
        if number is None:
            self._head[:KEY_FIELDS] = key_of(*key)
            number = pair_of(self._state, self._table, self._keys, self._head)
            if number >= 0:
                self._handed[key] = number
        return number

    def _known_pairs(self) -> list[Pair]:
        for src_high, src_low, dst_high, dst_low, ports, ipv6 in self._keys[
            len(self._pairs) : self._state[w.FLOWS]
        ].tolist():
            source, target = address_of(src_high, src_low, ipv6), address_of(dst_high, dst_low, ipv6)
            self._pairs.append((source, ports >> 16, target, ports & 0xFFFF))
        return self._pairs
