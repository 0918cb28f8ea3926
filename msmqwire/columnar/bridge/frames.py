"""Capture files walked over by compiled code, chunk by chunk; the generic reader for what it can't judge."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from msmqwire.capture import Record, pcap, pcapng
from msmqwire.capture.files import open_buffer
from msmqwire.capture.record import record_limit
from msmqwire.capture.source import Buffer
from msmqwire.columnar.compiled import state as w
from msmqwire.columnar.compiled.stop_codes import StopCode

_NO_INTERFACE: Final = (-1, 0, 1, 1, 0)


def no_interfaces() -> Any:
    """Room for the interfaces of a section."""
    return np.array([_NO_INTERFACE], np.int64)


class Frames(ABC):
    """The part of a decoder that goes through files.

    Attributes:
        memory: bytes of the input.
    """

    memory: Any
    _state: Any
    _chunk: int
    _interfaces: Any

    @abstractmethod
    def _begins(self, file: str) -> None:
        """Takes note that a file begins."""

    @abstractmethod
    def _walk(self, start: int) -> StopCode:
        """Goes on from record to record; why it stopped. ``start`` is the byte of the unpacked file that is
        the first in memory."""

    @abstractmethod
    def _hand(self, record: Record) -> Iterator[Any]:
        """Takes the record at which the walk stopped last."""

    @abstractmethod
    def _make_room(self, stop_code: StopCode) -> Iterator[Any]:
        """Has a walk go on that stopped for want of room."""

    @abstractmethod
    def _release(self) -> Iterator[Any]:
        """Lets go of the input in memory: other bytes take its place."""

    @abstractmethod
    def _enlarge(self, size: int) -> None:
        """Has memory for so many bytes of the input at least; what is in it stays."""

    def _file(self, stream: Any) -> Iterator[Any]:
        """Goes through a file. Raises CaptureError where it can't be read on."""
        state = self._state
        name = getattr(stream, "name", None)
        buffer, is_pcapng = open_buffer(stream, name if isinstance(name, str) else "<stream>")
        self._begins(buffer.file)
        state[w.POS] = state[w.END] = state[w.FRAME_NO] = 0
        state[w.IS_PCAPNG] = is_pcapng
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
        while True:
            stop_code = self._walk(buffer.start + buffer.at - int(self._state[w.END]))
            if stop_code == StopCode.GENERIC_RECORD:
                yield from self._hand(self._record(buffer.file))
            elif (
                stop_code == StopCode.GENERIC_BLOCK
                and isinstance(form, pcapng.Blocks)
                and (data := self._block())
            ):
                yield from self._generic_block(buffer, form, data)
            elif stop_code in (StopCode.MORE_INPUT, StopCode.GENERIC_BLOCK):
                yield from self._release()
                if stop_code == StopCode.MORE_INPUT and self._read(buffer):
                    continue
                rest = self._generic(buffer, form)
                if rest is None:
                    return
                for record in rest:
                    yield from self._hand(record)
            else:
                yield from self._make_room(stop_code)

    def _read(self, buffer: Buffer) -> bool:
        """More bytes of the file, as many as are needed; False where it ends before."""
        state = self._state
        need, have = int(state[w.NEED]), int(state[w.END] - state[w.POS])
        kept = self.memory[state[w.POS] : state[w.END]].copy()
        if need > self._chunk:
            self._enlarge(need)
        self.memory[:have] = kept
        view = memoryview(self.memory)
        while have < need or not have:
            count = buffer.readinto(view[have : self._chunk])
            if not count:
                break
            have += count
        state[w.POS], state[w.END] = 0, have
        return have >= need

    def _generic(self, buffer: Buffer, form: pcap.Layout | pcapng.Blocks) -> list[Record] | None:
        """What is at the place of the walk, by the generic reader: one record or none; None for the end."""
        state = self._state
        buffer.put_back(self.memory[state[w.POS] : state[w.END]].tobytes())
        state[w.POS] = state[w.END] = 0
        if isinstance(form, pcapng.Blocks):
            return None if buffer.ended() else self._of_block(form, buffer)
        record = next(pcap.records(buffer, form, int(state[w.FRAME_NO])), None)
        if record is None:
            return None
        buffer.at += form.header_size + len(record.data)
        state[w.FRAME_NO] = record.number
        return [record]

    def _record(self, file: str) -> Record:
        """The record over which the walk went last."""
        state = self._state
        start, size = int(state[w.RECORD]), int(state[w.RECORD_SIZE])
        return Record(
            file, int(state[w.FRAME_NO]), int(state[w.RECORD_NS]), int(state[w.RECORD_LINK]),
            self.memory[start : start + size].tobytes(), int(state[w.RECORD_LENGTH]),
            int(state[w.RECORD_INTERFACE]),
        )  # fmt: skip

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
        found = self._of_block(blocks, Buffer.over(data, buffer.file, start))
        state[w.POS] += len(data)
        for record in found:
            yield from self._hand(record)

    def _of_block(self, blocks: pcapng.Blocks, buffer: Buffer) -> list[Record]:
        blocks.buffer, blocks.number = buffer, int(self._state[w.FRAME_NO])
        record = blocks.block()
        self._state[w.FRAME_NO] = blocks.number
        self._describe(blocks)
        return [] if record is None else [record]

    def _describe(self, blocks: pcapng.Blocks) -> None:
        """Has the walk know the interfaces of the section; one whose times it can't compute has no link."""
        state, count = self._state, len(blocks.interfaces)
        state[w.BIG_ENDIAN] = blocks.mark == ">"
        known = int(state[w.INTERFACES])
        state[w.INTERFACES] = count
        while len(self._interfaces) < count:
            self._interfaces = np.concatenate([self._interfaces, np.zeros_like(self._interfaces)])
        for number in range(known if known < count else 0, count if known != count else 0):
            one = blocks.interfaces[number]
            plain = one.divisor < 1 << 31 and one.multiplier < 1 << 31 and abs(one.offset_ns) < 1 << 61
            self._interfaces[number] = (
                (one.linktype, record_limit(one.snaplen), one.multiplier, one.divisor, one.offset_ns)
                if plain
                else _NO_INTERFACE
            )
