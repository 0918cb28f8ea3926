"""Captures to record batches: the compiled walk, and the generic reader for what it can't judge."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msmqwire.capture import Record
from msmqwire.columnar.arrow.batch import BatchMaker
from msmqwire.columnar.bridge.frames import Frames, no_interfaces
from msmqwire.columnar.bridge.row_buffer import RowBuffer
from msmqwire.columnar.compiled import state as w
from msmqwire.columnar.compiled.scan import walk
from msmqwire.columnar.compiled.stop_codes import StopCode
from msmqwire.dissection import Dissection, Item


class Decoder(RowBuffer, Frames):
    """Decodes the captures of a dissection, in place of iterating over it.

    The rows, and `Dissection.errors`, are the same. Memory is that of a chunk of the file, of a batch, and
    of what is out of order or not whole.
    """

    def __init__(self, dissection: Dissection, maker: BatchMaker) -> None:
        super().__init__(maker, dissection.tracker)
        self._dissection = dissection
        maker.files = dissection.files
        self._interfaces = no_interfaces()
        self._first = 0  # frames before those of the file

    def batches(self) -> Iterator[Any]:
        """The record batches of all rows."""
        dissection = self._dissection
        for number, source in enumerate(dissection.sources):
            if number == dissection.warm_up > 0:
                yield from self._items(self._connections.pause())
                yield from self._flush()
                dissection.errors.clear()
            dissection.approach(number)
            self.quiet = number < dissection.warm_up  # rows are not told
            with dissection.reading(source) as stream:
                yield from self._file(stream)
            self._count()
        own = self._connections
        yield from self._items(own.flush() if dissection.flushes else own.pause(dissection.joined_ns))
        yield from self._flush()
        yield from self._maker.finish()

    # -- a file -------------------------------------------------------------------------------------

    def _begins(self, file: str) -> None:
        self._first = self._dissection.records
        self._connections.give_back_held()  # their frames are those of the file before
        self._state[w.BEFORE] = self._first
        self._state[w.FILE] = self._dissection.begins(file)

    def _walk(self, start: int) -> StopCode:
        state, own = self._state, self._connections
        own.have_room(0)
        stop_code = walk(
            state, self.memory, self._interfaces, self._ping_ports, own.table, own.keys, own.states,
            own.nodes, own.pend, self._head, self.rows, self.places, self._undo,
            self._tcp_ports, own.free, own.born,
        )  # fmt: skip
        self._dissection.records = self._first + int(state[w.FRAME_NO])
        return StopCode(stop_code)

    def _hand(self, record: Record) -> Iterator[Any]:
        self._dissection.handed += 1
        self._dissection.records = self._first + record.number
        if self._first:
            record = record._replace(number=self._first + record.number)
        for datagram in self._dissection.decoder.feed(record):
            yield from self._items(self._connections.feed(datagram, self))

    def _release(self) -> Iterator[Any]:
        yield from self._flush()

    def _enlarge(self, size: int) -> None:
        self._set_memory(size, len(self.memory) - self._chunk)

    def _count(self) -> None:
        """Has the decoder of frames know what the walk passed over."""
        ignored = self._dissection.decoder.ignored
        for place, reason in ((w.NOT_IP_COUNT, "not-ip"), (w.OTHER_COUNT, "other-protocol")):
            if self._state[place]:
                ignored[reason] += int(self._state[place])
                self._state[place] = 0
        self._dissection.tracker.reassembler.counters.repeated_bytes += int(self._state[w.REPEATED])
        self._state[w.REPEATED] = 0

    def _file_of(self, item: Item) -> int:
        return self._dissection.files.index(item.file)
