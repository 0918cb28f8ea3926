"""Capture files read by a compiled scan, chunk by chunk, and by the generic reader where it stops."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from msmqwire.capture import IpDecoder, Record, links, not_read, pcap, pcapng
from msmqwire.capture.files import open_buffer
from msmqwire.capture.record import RECORD_SIZE_MAX, ReportDamage, record_limit
from msmqwire.capture.source import Buffer
from msmqwire.tables.compiled import state as entry
from msmqwire.tables.compiled.network import NOT_READ_FIELDS, UNKNOWN_LINK, UNKNOWN_LINK_FRAMES
from msmqwire.tables.compiled.stop_codes import StopCode

_NO_INTERFACE: Final = (-1, 0, 1, 1, 0)


def no_interfaces() -> Any:
    """Return an array for the interfaces of a section."""
    return np.array([_NO_INTERFACE], np.int64)


def no_counts() -> Any:
    """Return an array for the counts of frames that are not read."""
    counts = np.zeros(NOT_READ_FIELDS, np.int64)
    counts[UNKNOWN_LINK] = -1
    return counts


class FileScanner(ABC):
    """The part of a decoder that reads capture files.

    Attributes:
        memory: bytes of the input.
    """

    memory: Any
    _record_size_max: int = RECORD_SIZE_MAX
    _state: Any
    _chunk: int
    _interfaces: Any
    _not_read: Any

    @property
    def _on_damage(self) -> ReportDamage | None:
        """A function to call for a record that is passed over; None if reading ends there."""
        return None

    @abstractmethod
    def _begin_file(self, file: str) -> None:
        """Note the name of a file that begins."""

    @abstractmethod
    def _scan(self, start: int) -> StopCode:
        """Scan record by record; return the stop code.

        ``start`` is the offset in the unpacked file of the first byte in memory.
        """

    @abstractmethod
    def _take_record(self, record: Record) -> Iterator[Any]:
        """Decode a record at which the scan stopped with the generic reader."""

    @abstractmethod
    def _make_room(self, stop_code: StopCode) -> Iterator[Any]:
        """Make room so that the scan can resume."""

    @abstractmethod
    def _release_input(self) -> Iterator[Any]:
        """Drop all references to the input in memory, which is about to be overwritten."""

    @abstractmethod
    def _enlarge_input(self, size: int) -> None:
        """Enlarge the memory to at least a number of bytes of input; its contents stay."""

    def _read_file(self, stream: Any) -> Iterator[Any]:
        """Scan a file. Raises CaptureError where it is damaged."""
        state = self._state
        name = getattr(stream, "name", None)
        buffer, is_pcapng = open_buffer(stream, name if isinstance(name, str) else "<stream>")
        self._begin_file(buffer.file)
        state[entry.POS] = state[entry.END] = state[entry.FRAME_NO] = 0
        state[entry.IS_PCAPNG] = is_pcapng
        if is_pcapng:
            blocks = pcapng.Blocks(buffer, self._record_size_max, self._on_damage)
            state[entry.SIZE_LIMIT] = blocks.block_size_max
            self._describe_interfaces(blocks)
            yield from self._read_records(buffer, blocks)
            return
        form = pcap.layout(buffer, self._record_size_max)
        state[entry.BIG_ENDIAN] = form.order == ">"
        state[entry.FRACTION_NS], state[entry.HEADER_SIZE] = form.unit, form.header_size
        state[entry.SIZE_LIMIT], state[entry.LINKTYPE] = form.limit, form.linktype
        yield from self._read_records(buffer, form)

    def _read_records(self, buffer: Buffer, form: pcap.Layout | pcapng.Blocks) -> Iterator[Any]:
        while True:
            start = buffer.start + buffer.at - int(self._state[entry.END])
            self._state[entry.MEMORY_AT] = start
            stop_code = self._scan(start)
            if stop_code == StopCode.GENERIC_RECORD:
                yield from self._take_record(self._current_record(buffer.file))
            elif (
                stop_code == StopCode.GENERIC_BLOCK
                and isinstance(form, pcapng.Blocks)
                and (data := self._current_block())
            ):
                yield from self._take_block(buffer, form, data)
            elif stop_code in (StopCode.MORE_INPUT, StopCode.GENERIC_BLOCK):
                yield from self._release_input()
                if stop_code == StopCode.MORE_INPUT and self._fill_memory(buffer):
                    continue
                rest = self._generic_records(buffer, form)
                if rest is None:
                    return
                for record in rest:
                    yield from self._take_record(record)
            else:
                yield from self._make_room(stop_code)

    def _fill_memory(self, buffer: Buffer) -> bool:
        """Read as many bytes of the file as the scan needs; return False if it ends before."""
        state = self._state
        need, have = int(state[entry.NEED]), int(state[entry.END] - state[entry.POS])
        rest = self.memory[state[entry.POS] : state[entry.END]].copy()
        if need > self._chunk:
            self._enlarge_input(need)
        self.memory[:have] = rest
        view = memoryview(self.memory)
        while have < need or not have:
            count = buffer.readinto(view[have : self._chunk])
            if not count:
                break
            have += count
        state[entry.POS], state[entry.END] = 0, have
        return have >= need

    def _generic_records(self, buffer: Buffer, form: pcap.Layout | pcapng.Blocks) -> list[Record] | None:
        """Read the next record or block with the generic reader; return its records, None at the end."""
        state = self._state
        buffer.put_back(self.memory[state[entry.POS] : state[entry.END]].tobytes())
        state[entry.POS] = state[entry.END] = 0
        if isinstance(form, pcapng.Blocks):
            return None if buffer.ended() else self._parse_block(form, buffer)
        record = next(pcap.records(buffer, form, int(state[entry.FRAME_NO]), self._on_damage), None)
        if record is None:
            return None
        if state[entry.BY_OFFSET]:
            record = record._replace(number=buffer.start + buffer.at + int(state[entry.SKIPPED]))
        buffer.at += form.header_size + len(record.data)
        state[entry.FRAME_NO] = record.number
        return [record]

    def _current_record(self, file: str) -> Record:
        """Return the record that the scan read last."""
        state = self._state
        start, size = int(state[entry.RECORD]), int(state[entry.RECORD_SIZE])
        return Record(
            file, int(state[entry.FRAME_NO]), int(state[entry.RECORD_NS]), int(state[entry.RECORD_LINK]),
            self.memory[start : start + size].tobytes(), int(state[entry.RECORD_LENGTH]),
            int(state[entry.RECORD_INTERFACE]),
        )  # fmt: skip

    def _move_counts(self, decoder: IpDecoder) -> None:
        """Add the frames that the scan has not read to those of a decoder."""
        counts = self._not_read
        for index in np.flatnonzero(counts[: len(not_read.REASONS)]).tolist():
            frames = int(counts[index])
            decoder.not_read[not_read.REASONS[index]] += frames
            if index < not_read.FIRST_UDP:
                decoder.ignored["not-ip" if index < not_read.FIRST_PROTOCOL else "other-protocol"] += frames
        if frames := int(counts[UNKNOWN_LINK_FRAMES]):
            decoder.not_read[not_read.link_reason(int(counts[UNKNOWN_LINK]))] += frames
            decoder.ignored["unknown-link"] += frames
        counts[:UNKNOWN_LINK] = counts[UNKNOWN_LINK_FRAMES] = 0

    def _note_link(self, decoder: IpDecoder, linktype: int) -> None:
        """Let the scan count further frames of this link type, if it is unknown."""
        if linktype != self._not_read[UNKNOWN_LINK] and not links.is_known(linktype):
            self._move_counts(decoder)
            self._not_read[UNKNOWN_LINK] = linktype

    def _note_empty(self, linktype: int) -> None:
        """Let the scan count further records without a byte of this link type, if it is known."""
        if linktype != self._state[entry.EMPTY_LINK] and links.is_known(linktype):
            self._state[entry.EMPTY_LINK] = linktype

    # -- pcapng -------------------------------------------------------------------------------------

    def _current_block(self) -> bytes:
        """Return the block at the position of the scan; empty if it is incomplete or damaged."""
        state = self._state
        pos, end = int(state[entry.POS]), int(state[entry.END])
        order = "big" if state[entry.BIG_ENDIAN] else "little"
        head = self.memory[pos : pos + 12].tobytes()
        if head[:4] == pcapng.MAGIC:
            order = "big" if head[8:12] == b"\x1a\x2b\x3c\x4d" else "little"
        size = int.from_bytes(head[4:8], order)  # type: ignore[arg-type]
        if len(head) < 12 or size < 12 or size % 4 or size > end - pos:
            return b""
        data: bytes = self.memory[pos : pos + size].tobytes()
        return data

    def _take_block(self, buffer: Buffer, blocks: pcapng.Blocks, data: bytes) -> Iterator[Any]:
        state = self._state
        start = buffer.start + buffer.at - int(state[entry.END] - state[entry.POS])
        records = self._parse_block(blocks, Buffer.over(data, buffer.file, start))
        state[entry.POS] += len(data)
        for record in records:
            yield from self._take_record(record)

    def _parse_block(self, blocks: pcapng.Blocks, buffer: Buffer) -> list[Record]:
        blocks.buffer, blocks.number = buffer, int(self._state[entry.FRAME_NO])
        if self._state[entry.BY_OFFSET]:
            blocks.number = buffer.start + buffer.at + int(self._state[entry.SKIPPED]) - 1
        record = blocks.read_block()
        self._state[entry.FRAME_NO] = blocks.number
        self._describe_interfaces(blocks)
        return [] if record is None else [record]

    def _describe_interfaces(self, blocks: pcapng.Blocks) -> None:
        """Pass the interfaces of the section to the scan, without a link type if their times don't fit."""
        state, count = self._state, len(blocks.interfaces)
        state[entry.BIG_ENDIAN] = blocks.order == ">"
        previous = int(state[entry.INTERFACES])
        state[entry.INTERFACES] = count
        while len(self._interfaces) < count:
            self._interfaces = np.concatenate([self._interfaces, np.zeros_like(self._interfaces)])
        for number in range(previous if previous < count else 0, count if previous != count else 0):
            interface = blocks.interfaces[number]
            fits = (
                interface.divisor < 1 << 31
                and interface.multiplier < 1 << 31
                and abs(interface.offset_ns) < 1 << 61
            )
            if not fits:
                self._interfaces[number] = _NO_INTERFACE
                continue
            self._interfaces[number] = (
                interface.linktype, record_limit(interface.snaplen, self._record_size_max),
                interface.multiplier, interface.divisor, interface.offset_ns,
            )  # fmt: skip
