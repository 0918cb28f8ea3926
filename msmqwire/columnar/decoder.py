"""Captures to record batches: the compiled walk, and the generic reader for what it can't judge."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from msmqwire.capture import Record, pcap, pcapng
from msmqwire.capture.files import open_buffer
from msmqwire.capture.record import record_limit
from msmqwire.capture.source import Buffer
from msmqwire.columnar import state as w
from msmqwire.columnar.batch import BatchMaker
from msmqwire.columnar.gathering import Gathering
from msmqwire.columnar.walk import walk
from msmqwire.dissection import Dissection, Item


class Decoder(Gathering):
    """Decodes the captures of a dissection, in place of iterating over it.

    The rows, and `Dissection.errors`, are the same. Memory is that of a chunk of the file, of a batch, and
    of what is out of order or not whole.
    """

    def __init__(self, dissection: Dissection, maker: BatchMaker) -> None:
        super().__init__(maker, dissection.tracker)
        self._dissection = dissection
        maker.files = dissection.files
        self._interfaces = np.zeros((1, w.I_FIELDS), np.int64)
        self._first = 0  # frames before those of the file

    def batches(self) -> Iterator[Any]:
        """The record batches of all rows."""
        dissection = self._dissection
        for number, source in enumerate(dissection.sources):
            if number == dissection.warm_up > 0:
                yield from self._items(self._directions.pause())
                yield from self._flush()
                dissection.errors.clear()
            dissection.approach(number)
            self.quiet = number < dissection.warm_up  # rows are not told
            with dissection.reading(source) as stream:
                yield from self._file(stream)
            self._count()
        own = self._directions
        yield from self._items(own.flush() if dissection.flushes else own.pause(dissection.joined_ns))
        yield from self._flush()
        yield from self._maker.finish()

    # -- a file -------------------------------------------------------------------------------------

    def _file(self, stream: Any) -> Iterator[Any]:
        name = getattr(stream, "name", None)
        buffer, is_pcapng = open_buffer(stream, name if isinstance(name, str) else "<stream>")
        state, self._first = self._state, self._dissection.records
        self._directions.give_back_held()  # their frames are those of the file before
        state[w.POS] = state[w.END] = 0
        state[w.FRAME_NO], state[w.BEFORE] = 0, self._first
        state[w.IS_PCAPNG] = is_pcapng
        state[w.FILE] = self._dissection.begins(buffer.file)
        if is_pcapng:
            blocks = pcapng.Blocks(buffer)
            state[w.LIMIT] = pcapng.BLOCK_SIZE_MAX
            self._describe(blocks)
            yield from self._records(buffer, blocks)
            return
        form = pcap.layout(buffer)
        state[w.BIG_ENDIAN] = form.order == ">"
        state[w.UNIT], state[w.HEADER_SIZE] = form.unit, form.header_size
        state[w.LIMIT], state[w.LINKTYPE] = form.limit, form.linktype
        yield from self._records(buffer, form)

    def _records(self, buffer: Buffer, form: pcap.Layout | pcapng.Blocks) -> Iterator[Any]:
        state, own = self._state, self._directions
        while True:
            own.have_room(0)
            why = walk(
                state, self.memory, self._interfaces, self._ping_ports, own.table, own.keys, own.states,
                own.nodes, own.pend, self._head, self.rows, self.places, self._undo,
                self._tcp_ports, own.free, own.born,
            )  # fmt: skip
            self._dissection.records = self._first + int(state[w.FRAME_NO])
            if why == w.GENERIC:
                yield from self._hand(self._record(buffer.file))
            elif why in (w.ROWS_FULL, w.ARENA_FULL, w.PEND_FULL):
                yield from self._make_room(why)
            elif why == w.BLOCK and isinstance(form, pcapng.Blocks) and (data := self._block()):
                yield from self._generic_block(buffer, form, data)
            else:
                yield from self._flush()
                if why == w.MORE and self._read(buffer):
                    continue
                yield from self._rest(buffer, form)
                return

    def _read(self, buffer: Buffer) -> bool:
        """More bytes of the file, as many as are needed; False where it ends before."""
        state, memory = self._state, self.memory
        need, have = int(state[w.NEED]), int(state[w.END] - state[w.POS])
        kept = memory[state[w.POS] : state[w.END]].copy()
        if need > self._chunk:
            self._set_memory(need, len(memory) - self._chunk)
            memory = self.memory
        memory[:have] = kept
        view = memoryview(memory)
        while have < need or not have:
            count = buffer.readinto(view[have : self._chunk])
            if not count:
                break
            have += count
        state[w.POS], state[w.END] = 0, have
        return have >= need

    def _rest(self, buffer: Buffer, form: pcap.Layout | pcapng.Blocks) -> Iterator[Any]:
        """What is left of a file that the walk can't go on with: its end, or what is wrong with it."""
        state = self._state
        buffer.put_back(self.memory[state[w.POS] : state[w.END]].tobytes())
        state[w.POS] = state[w.END] = 0
        if isinstance(form, pcapng.Blocks):
            form.number = int(state[w.FRAME_NO])
            form.buffer = buffer
            records = pcapng.records(form)
        else:
            records = pcap.records(buffer, form, int(state[w.FRAME_NO]))
        for record in records:
            state[w.FRAME_NO] = record.number
            self._dissection.records = self._first + record.number
            yield from self._hand(record)

    def _count(self) -> None:
        """Has the decoder of frames know what the walk passed over."""
        ignored = self._dissection.decoder.ignored
        for place, reason in ((w.NOT_IP_COUNT, "not-ip"), (w.OTHER_COUNT, "other-protocol")):
            if self._state[place]:
                ignored[reason] += int(self._state[place])
                self._state[place] = 0
        self._dissection.tracker.reassembler.counters.repeated_bytes += int(self._state[w.REPEATED])
        self._state[w.REPEATED] = 0

    # -- pcapng -------------------------------------------------------------------------------------

    def _block(self) -> bytes:
        """The block at the place of the walk, where it is all there and none that goes wrong."""
        state = self._state
        pos, end = int(state[w.POS]), int(state[w.END])
        order = "big" if state[w.BIG_ENDIAN] else "little"
        head = self.memory[pos : pos + 12].tobytes()
        if head[:4] == pcapng.MAGIC:
            order = "big" if head[8:12] == b"\x1a\x2b\x3c\x4d" else "little"
        size = int.from_bytes(head[4:8], order)  # type: ignore[arg-type]
        if len(head) < 12 or size < 12 or size % 4 or size > end - pos:
            return b""
        data: bytes = self.memory[pos : pos + size].tobytes()
        return data

    def _generic_block(self, buffer: Buffer, blocks: pcapng.Blocks, data: bytes) -> Iterator[Any]:
        state = self._state
        start = buffer.start + buffer.at - int(state[w.END] - state[w.POS])
        blocks.buffer = Buffer.over(data, buffer.file, start)
        blocks.number = int(state[w.FRAME_NO])
        record = blocks.block()
        state[w.POS] += len(data)
        self._describe(blocks)
        if record is not None:
            state[w.FRAME_NO] = record.number
            self._dissection.records = self._first + record.number
            yield from self._hand(record)

    def _describe(self, blocks: pcapng.Blocks) -> None:
        """Has the walk know the interfaces of the section; one whose times it can't compute has no link."""
        self._state[w.BIG_ENDIAN] = blocks.mark == ">"
        if self._state[w.INTERFACES] == len(blocks.interfaces) > 0:
            return
        self._state[w.INTERFACES] = len(blocks.interfaces)
        rows = []
        for one in blocks.interfaces:
            plain = one.divisor < 1 << 31 and one.multiplier < 1 << 31 and abs(one.offset_ns) < 1 << 61
            limit = record_limit(one.snaplen)
            rows.append(
                (one.linktype, limit, one.multiplier, one.divisor, one.offset_ns)
                if plain
                else (-1, 0, 1, 1, 0)
            )
        self._interfaces = np.array(rows or [(-1, 0, 1, 1, 0)], np.int64)

    # -- the generic reader -------------------------------------------------------------------------

    def _record(self, file: str) -> Record:
        state = self._state
        start, size = int(state[w.RECORD]), int(state[w.RECORD_SIZE])
        return Record(
            file, int(state[w.FRAME_NO]), int(state[w.RECORD_NS]), int(state[w.RECORD_LINK]),
            self.memory[start : start + size].tobytes(), int(state[w.RECORD_LENGTH]),
            int(state[w.RECORD_INTERFACE]),
        )  # fmt: skip

    def _hand(self, record: Record) -> Iterator[Any]:
        self._dissection.handed += 1
        if self._first:
            record = record._replace(number=self._first + record.number)
        for datagram in self._dissection.decoder.feed(record):
            yield from self._items(self._directions.feed(datagram, self))

    def _file_of(self, item: Item) -> int:
        return self._dissection.files.index(item.file)
