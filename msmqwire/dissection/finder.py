"""One direction of a connection as a capture has it: packets, malformed ones and skipped bytes.

Unlike a live session, a capture may begin in the middle, have holes, and go on after a header that
can't be. Every byte is accounted for: it is in a packet, in a malformed one, or skipped with a
reason. Out of step, reading goes on at the next packet that is certain: a whole, well-formed one.
Where the bytes end before any is, a header at the start of a segment will do.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

from msmqwire.errors import MalformedPacket
from msmqwire.packets import packet_length, parse, well_formed
from msmqwire.schema import Record

_HEADER: Final = 16
_JUDGED: Final = 12  # up to the end of PacketSize
_SKIP_SHOWN: Final = 0x1_0000
"""While nothing is certain, skipped bytes are reported in runs of about this size."""


@dataclass(frozen=True, slots=True)
class Found:
    """A stretch of the direction.

    Attributes:
        data: its bytes; empty for skipped ones.
        size: how many bytes it stands for, captured or not.
        packet: the packet, or None.
        error: why a malformed packet can't be read, or None.
        reason: why bytes were skipped; empty for packets.
        frames: the numbers of the frames that carry it, in their order.
        time_ns: when the last of them was captured.
    """

    data: bytes
    size: int
    packet: Record | None
    error: MalformedPacket | None
    reason: str
    frames: tuple[int, ...]
    time_ns: int


@dataclass(slots=True)
class _Run:
    """Bytes that are being skipped."""

    size: int
    reason: str
    frames: dict[int, None]
    time_ns: int


class PacketFinder:
    """Finds the packets of one direction, fed with its bytes and holes in their order."""

    def __init__(self, *, midstream: bool = False) -> None:
        self._buffer = bytearray()
        self._start = 0  # place of the buffer in the stream
        self._pieces: deque[tuple[int, int, int]] = deque()  # end in the stream, frame, time
        self._lost = "the capture begins inside the stream" if midstream else ""
        self._rest = 0  # bytes still to come of a packet that has a hole
        self._run: _Run | None = None
        self._found: list[Found] = []

    @property
    def buffered(self) -> int:
        """Bytes held: never more than the largest packet and what one feed brings."""
        return len(self._buffer)

    def feed(self, data: bytes, frame: int, time_ns: int) -> list[Found]:
        """The next bytes of the direction, from one frame, and when that was captured."""
        self._buffer += data
        self._pieces.append((self._start + len(self._buffer), frame, time_ns))
        self._scan(final=False)
        return self._out()

    def gap(self, size: int | None, why: str, frame: int, time_ns: int) -> list[Found]:
        """Bytes are lost here; None when it is not known how many."""
        self._scan(final=True)
        missing = self._break()
        if size is not None and 0 <= size <= missing:
            self._rest = missing - size
        else:
            self._rest, self._lost = 0, "after a hole in the stream"
        if size:
            self._flush_run()
            reason = f"not in the capture: {why}"
            self._found.append(Found(b"", size, None, None, reason, (frame,), time_ns))
        return self._out()

    def end(self) -> list[Found]:
        """The direction has ended."""
        self._scan(final=True)
        self._break()
        self._flush_run()
        return self._out()

    def _out(self) -> list[Found]:
        found, self._found = self._found, []
        return found

    # -- scanning ----------------------------------------------------------------------------

    def _scan(self, *, final: bool) -> None:
        while self._buffer:
            if self._rest:
                count = min(self._rest, len(self._buffer))
                self._rest -= count
                self._skip(count, "the rest of a packet with a hole in it")
            elif self._lost:
                at, certain = self._search(0, final=final)
                self._skip(at, self._lost)
                if not certain:
                    return
                self._lost = ""
            elif not self._next(final=final):
                return

    def _next(self, *, final: bool) -> bool:
        """Takes the packet at the start of the buffer. False when more bytes are needed."""
        buffer = self._buffer
        if len(buffer) < _JUDGED:
            return False
        try:
            length = packet_length(buffer)
        except MalformedPacket as exc:
            return self._bad_header(exc, final=final)
        if length > len(buffer):
            return False
        try:
            packet = parse(buffer[:length])
        except MalformedPacket as exc:
            return self._bad_packet(length, exc, final=final)
        self._take(length, packet, None)
        return True

    def _bad_header(self, error: MalformedPacket, *, final: bool) -> bool:
        if error.path != "BaseHeader.PacketSize":
            self._lost = f"no packet begins here: {error}"
            return True
        if len(self._buffer) < _HEADER and not final:
            return False
        self._take(min(_HEADER, len(self._buffer)), None, error)
        self._lost = "after a PacketSize that can't be"
        return True

    def _bad_packet(self, length: int, error: MalformedPacket, *, final: bool) -> bool:
        """A malformed packet ends where its size says, unless no packet follows there."""
        after = self._buffer[length : length + _JUDGED]
        if len(after) < _JUDGED and not final:
            return False
        if after and not begins_packet(after):
            at, certain = self._search(_HEADER, final=final)
            if certain:
                length = min(length, at)
            elif at < length and not final:
                return False
        self._take(length, None, error)
        return True

    def _break(self) -> int:
        """The stream breaks here: takes what is left; how much of a packet is then missing."""
        while self._buffer:
            length = packet_length(self._buffer) if len(self._buffer) >= _JUDGED else 0
            at, certain = self._search(_HEADER, final=True)
            if not certain:
                missing = length - len(self._buffer)
                self._take(len(self._buffer), None, _why_cut(bytes(self._buffer)))
                return missing
            self._take(at, None, _why_cut(bytes(self._buffer[:at])))
            self._scan(final=True)
        return self._rest or -1

    def _search(self, start: int, *, final: bool) -> tuple[int, bool]:
        """Where the next certain packet begins, or up to where surely none does."""
        buffer, data = self._buffer, b""
        at_segment = -1
        at = self._candidate(start)
        while at >= 0:
            end = at + packet_length(buffer, at) if len(buffer) - at >= _JUDGED else len(buffer) + 1
            if end > len(buffer):
                if not final:
                    return at, False
                if at_segment < 0 and self._starts_segment(at):
                    at_segment = at
            else:
                data = data or bytes(buffer)
                if well_formed(data, at, end):
                    return at, True
            at = self._candidate(at + 1)
        if at_segment >= 0:
            return at_segment, True
        return (len(buffer) if final else max(min(start, len(buffer)), len(buffer) - _JUDGED + 1)), False

    def _candidate(self, start: int) -> int:
        """The next place whose version, signature and size could begin a packet; -1 for none."""
        at = self._buffer.find(b"LIOR", start + 4)
        while at >= 0:
            if begins_packet(self._buffer[at - 4 : at + 8]):
                return at - 4
            at = self._buffer.find(b"LIOR", at + 1)
        return -1

    def _starts_segment(self, at: int) -> bool:
        return at == 0 or any(end == self._start + at for end, _, _ in self._pieces)

    # -- taking ------------------------------------------------------------------------------

    def _frames(self, count: int) -> tuple[dict[int, None], int]:
        """The frames of the next `count` bytes and the time that completed them; takes the bytes."""
        self._start += count
        frames: dict[int, None] = {}
        time_ns = 0
        while self._pieces:
            end, frame, when = self._pieces[0]
            frames[frame] = None
            time_ns = max(time_ns, when)
            if end > self._start:
                break
            self._pieces.popleft()
            if end == self._start:
                break
        del self._buffer[:count]
        return frames, time_ns

    def _take(self, count: int, packet: Record | None, error: MalformedPacket | None) -> None:
        self._flush_run()
        data = bytes(self._buffer[:count])
        frames, time_ns = self._frames(count)
        self._found.append(Found(data, count, packet, error, "", tuple(sorted(frames)), time_ns))

    def _skip(self, count: int, reason: str) -> None:
        if not count:
            return
        frames, time_ns = self._frames(count)
        run = self._run
        if run is None:
            self._run = _Run(count, reason, frames, time_ns)
            return
        run.size += count
        run.frames.update(frames)
        run.time_ns = max(run.time_ns, time_ns)
        if run.size >= _SKIP_SHOWN:
            self._flush_run()

    def _flush_run(self) -> None:
        run, self._run = self._run, None
        if run is not None:
            frames = tuple(sorted(run.frames))
            self._found.append(Found(b"", run.size, None, None, run.reason, frames, run.time_ns))


def begins_packet(header: bytes | bytearray) -> bool:
    """Whether bytes could begin a packet, as far as they go."""
    if header[0] != 0x10 or header[4:8] != b"LIOR"[: len(header) - 4]:
        return False
    if len(header) < _JUDGED:
        return True
    try:
        packet_length(header)
    except MalformedPacket:
        return False
    return True


def _why_cut(data: bytes) -> MalformedPacket:
    """Why bytes that are cut off are no packet."""
    try:
        parse(data)
    except MalformedPacket as exc:
        return exc
    raise AssertionError("a whole packet was taken for one that is cut off")
