"""One direction of a connection as a capture has it: packets, malformed ones and skipped bytes.

Unlike a live session, a capture may begin in the middle, have holes, and go on after a header that
can't be. Every byte is accounted for: it is in a packet, in a malformed one, or skipped with a
reason. Out of step, reading goes on at the next packet that is certain: a whole, well-formed one.
Where the bytes end before any is, a header at the start of a segment will do.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final, NamedTuple, cast

from msmqwire.errors import MalformedPacket
from msmqwire.framing import begins_packet, find_header
from msmqwire.headers.base import (
    BASE_HEADER_SIZE,
    PACKET_SIZE_OFFSET,
    PREFIX_SIZE,
    SIGNATURE_END,
)
from msmqwire.packets import packet_length, parse, well_formed
from msmqwire.schema import Record

_SKIP_SHOWN: Final = 0x1_0000
"""While nothing is certain, skipped bytes are reported in runs of about this size."""
_LARGE: Final = 0x1_0000
"""Larger packets are judged where they stand before they are copied."""
PIECE_COST: Final = 256
"""Bytes of memory that a piece takes besides its content, generously."""
_CREDIT_MAX: Final = 64 << 20
"""Bytes that may be judged in vain at once while out of step: headers that lie can overlap each other."""
_CREDIT: Final = 16
"""Bytes that may be judged in vain for each byte that comes: so the cost stays that of the bytes."""


@dataclass(frozen=True, slots=True)
class ScanResult:
    """A stretch of the direction.

    Attributes:
        data: its bytes; empty for skipped ones.
        size: how many bytes it stands for, captured or not.
        packet: the packet, or None.
        error: why a malformed packet can't be read, or None.
        reason: why bytes were skipped; empty for packets.
        cut: the capture lacks the rest of a malformed packet; its sender need not have cut it off.
        frames: the numbers of the frames that carry it, in their order.
        time_ns: when the last of them was captured, which completed it.
    """

    data: bytes
    size: int
    packet: Record | None
    error: MalformedPacket | None
    reason: str
    frames: tuple[int, ...]
    time_ns: int
    cut: bool = False


@dataclass(slots=True)
class _Run:
    """Bytes that are being skipped."""

    size: int
    reason: str
    frames: dict[int, int]  # with their times


class _Piece(NamedTuple):
    """What one frame brought: its start and end in the stream."""

    start: int
    end: int
    frame: int
    time_ns: int


class PacketFinder:
    """Finds the packets of one direction, fed with its bytes and holes in their order."""

    __slots__ = (
        "_buffer",
        "_credit",
        "_error",
        "_found",
        "_lost",
        "_malformed",
        "_pieces",
        "_refused",
        "_rest",
        "_run",
        "_start",
    )

    def __init__(self, *, midstream: bool = False) -> None:
        self._buffer = bytearray()
        self._start = 0  # place of the buffer in the stream
        self._pieces: deque[_Piece] = deque()
        self._lost = "the capture begins inside the stream" if midstream else ""
        self._rest = 0  # bytes still to come of a packet that is not whole
        self._malformed = False  # the packet at the start of the buffer is,
        self._error: MalformedPacket | None = None  # for this reason, where it is known
        self._refused = 0  # up to this place of the stream no certain packet begins
        self._credit = _CREDIT_MAX
        self._run: _Run | None = None
        self._found: list[ScanResult] = []

    @property
    def held(self) -> int:
        """Bytes of memory held, about.

        The content is never more than two of the largest packets and what one feed brings.
        """
        return len(self._buffer) + PIECE_COST * len(self._pieces)

    @property
    def in_step(self) -> bool:
        """Whether all that is held is the beginning of a packet, if anything."""
        return not (self._lost or self._rest or self._malformed or self._run)

    def let_pieces_go(self) -> list[tuple[bytes, int, int]]:
        """What is held, by the pieces in which it came, with frame and time; the finder forgets it."""
        pieces = []
        for start, end, frame, time_ns in self._pieces:
            data = bytes(self._buffer[max(0, start - self._start) : end - self._start])
            pieces.append((data, frame, time_ns))
        self._start += len(self._buffer)
        self._buffer.clear()
        self._pieces.clear()
        return pieces

    def resume(self, taken: int, pieces: list[tuple[bytes, int, int]]) -> None:
        """Goes on after so many bytes were taken elsewhere; these pieces are still held."""
        self._credit = min(self._credit + _CREDIT * taken, _CREDIT_MAX)
        self._start += taken - sum(len(data) for data, _, _ in pieces)
        for data, frame, time_ns in pieces:
            start = self._start + len(self._buffer)
            self._pieces.append(_Piece(start, start + len(data), frame, time_ns))
            self._buffer += data

    @property
    def between_packets(self) -> bool:
        """Whether a new finder would find the same from here on: in step, with nothing held or awaited."""
        judged = self._refused <= self._start and self._credit == _CREDIT_MAX
        return self.in_step and not self._buffer and judged

    def feed(self, data: bytes, frame: int, time_ns: int) -> list[ScanResult]:
        """The next bytes of the direction, from one frame, and when that was captured."""
        start = self._start + len(self._buffer)
        self._buffer += data
        self._pieces.append(_Piece(start, start + len(data), frame, time_ns))
        self._credit = min(self._credit + _CREDIT * len(data), _CREDIT_MAX)
        self._scan(final=False)
        return self._out()

    def gap(self, size: int | None, why: str, frame: int, time_ns: int) -> list[ScanResult]:
        """Bytes are lost here; None when it is not known how many."""
        self._scan(final=True)
        missing = self._break(cut=True)
        if size is not None and 0 <= size <= missing:
            self._rest = missing - size
        else:
            self._rest, self._lost = 0, "after a hole in the stream"
        self._flush_run()
        if size:
            reason = f"not in the capture: {why}"
            self._found.append(ScanResult(b"", size, None, None, reason, (frame,), time_ns))
        return self._out()

    def let_go(self) -> list[ScanResult]:
        """Memory is short: what is held is skipped, with the rest of its packet."""
        if not self._buffer:
            return []
        header = self._buffer[:PREFIX_SIZE]
        if not self._lost and len(header) == PREFIX_SIZE and begins_packet(header):
            self._rest = max(0, packet_length(header) - len(self._buffer))
        if not self._rest:
            self._lost = "after bytes that were let go"
        self._malformed, self._error = False, None
        self._skip(len(self._buffer), "let go, as too much is held of packets that are not whole")
        self._flush_run()
        return self._out()

    def end(self, *, cut: bool = False) -> list[ScanResult]:
        """The direction has ended; `cut` when only the capture of it has."""
        self._scan(final=True)
        self._break(cut=cut)
        self._flush_run()
        return self._out()

    def _out(self) -> list[ScanResult]:
        found, self._found = self._found, []
        return found

    # -- scanning ----------------------------------------------------------------------------

    def _scan(self, *, final: bool) -> None:
        while self._buffer:
            if self._rest:
                count = min(self._rest, len(self._buffer))
                self._rest -= count
                self._skip(count, "the rest of a packet that is not whole")
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
        if len(buffer) < PREFIX_SIZE:
            return False
        try:
            length = packet_length(buffer)
        except MalformedPacket as exc:
            return self._bad_header(exc, final=final)
        if length > len(buffer):
            return False
        packet = None if self._malformed else self._whole(length)
        if packet is None:
            self._malformed = True
            return self._bad_packet(length, final=final)
        self._take(length, packet, None)
        return True

    def _whole(self, length: int) -> Record | None:
        """The packet at the start of the buffer; None when it is malformed."""
        if length > _LARGE and not self._well_formed(0, length):
            return None
        try:
            return parse(self._buffer[:length])
        except MalformedPacket as exc:
            self._error = exc
            return None

    def _bad_header(self, error: MalformedPacket, *, final: bool) -> bool:
        if error.path != "BaseHeader.PacketSize":
            self._lost = f"no packet begins here: {error}"
            return True
        if len(self._buffer) < BASE_HEADER_SIZE and not final:
            return False
        self._take(min(BASE_HEADER_SIZE, len(self._buffer)), None, error)
        self._lost = "after a PacketSize that can't be"
        return True

    def _bad_packet(self, length: int, *, final: bool) -> bool:
        """A malformed packet ends where its size says, unless no packet follows there."""
        error = self._error
        after = self._buffer[length : length + PREFIX_SIZE]
        if len(after) < PREFIX_SIZE and not final:
            return False
        if after and not begins_packet(after):
            at, certain = self._search(BASE_HEADER_SIZE, final=final)
            if certain and at < length:
                length, error = at, None
            elif at < length and not final:
                return False
        self._take(length, None, error or _why_not(bytes(self._buffer[:length])))
        return True

    def _break(self, *, cut: bool) -> int:
        """The stream breaks here: takes what is left; how much of a packet is then missing."""
        while self._buffer:
            length = packet_length(self._buffer) if len(self._buffer) >= PREFIX_SIZE else 0
            at, certain = len(self._buffer), False
            if not self._reads_well():
                at, certain = self._search(BASE_HEADER_SIZE, final=True)
            if not certain:
                missing = length - len(self._buffer)
                error = self._error or _why_not(bytes(self._buffer))
                self._take(len(self._buffer), None, error, cut=cut)
                return missing
            self._take(at, None, _why_not(bytes(self._buffer[:at])))
            self._scan(final=True)
        return self._rest or -1

    def _reads_well(self) -> bool:
        """Whether what is left is the beginning of a packet, good up to where it is cut off."""
        size = len(self._buffer)
        if size > self._credit:
            return False
        self._credit -= size
        self._error = _why_not(bytes(self._buffer))
        return self._error.offset == size

    def _search(self, start: int, *, final: bool) -> tuple[int, bool]:
        """Where the next certain packet begins, or up to where surely none does."""
        buffer = self._buffer
        at = find_header(buffer, max(start, self._refused - self._start))
        while at >= 0:
            end = at + packet_length(buffer, at) if len(buffer) - at >= PREFIX_SIZE else len(buffer) + 1
            if end > len(buffer):
                if not final:
                    self._refused = self._start + at
                    return at, False
            elif self._certain(at, end):
                self._refused = self._start + at
                return at, True
            at = find_header(buffer, at + 1)
        if final:
            self._refused = self._start + len(buffer)
            at = self._segment(start)
            return (at, True) if at >= 0 else (len(buffer), False)
        at = max(min(start, len(buffer)), len(buffer) - PREFIX_SIZE + 1)
        self._refused = self._start + at
        return at, False

    def _certain(self, at: int, end: int) -> bool:
        """Whether this is a well-formed packet. What was too dear to judge before, is not certain."""
        if end - at > self._credit:
            return False
        if self._well_formed(at, end):
            return True
        self._credit -= end - at
        return False

    def _well_formed(self, at: int, end: int) -> bool:
        return well_formed(cast(bytes, self._buffer), at, end)  # a bytearray will do, uncopied

    def _segment(self, start: int) -> int:
        """The next segment that begins with the header of a packet that is cut off; -1 for none."""
        for piece in self._pieces:
            at = piece.start - self._start
            header = self._buffer[at : at + PREFIX_SIZE] if at >= start else b""
            if len(header) < SIGNATURE_END or not begins_packet(header):
                continue
            if len(header) < PREFIX_SIZE or at + packet_length(header) > len(self._buffer):
                return at
        return -1

    # -- taking ------------------------------------------------------------------------------

    def _frames(self, count: int) -> dict[int, int]:
        """The frames of the next `count` bytes with their times; takes the bytes."""
        self._start += count
        frames: dict[int, int] = {}
        while self._pieces and self._pieces[0].start < self._start:
            piece = self._pieces[0]
            frames[piece.frame] = piece.time_ns
            if piece.end > self._start:
                break
            self._pieces.popleft()
        del self._buffer[:count]
        return frames

    def _take(
        self, count: int, packet: Record | None, error: MalformedPacket | None, *, cut: bool = False
    ) -> None:
        self._flush_run()
        self._malformed, self._error = False, None
        data = bytes(self._buffer[:count])
        frames = self._frames(count)
        error = error.detached() if error is not None else None
        self._found.append(ScanResult(data, count, packet, error, "", *_completed(frames), cut))

    def _skip(self, count: int, reason: str) -> None:
        if not count:
            return
        frames = self._frames(count)
        if self._run is not None and self._run.reason != reason:
            self._flush_run()
        if self._run is None:
            self._run = _Run(0, reason, {})
        self._run.size += count
        self._run.frames.update(frames)
        if self._run.size >= _SKIP_SHOWN:
            self._flush_run()

    def _flush_run(self) -> None:
        run, self._run = self._run, None
        if run is not None:
            self._found.append(ScanResult(b"", run.size, None, None, run.reason, *_completed(run.frames)))


def _completed(frames: dict[int, int]) -> tuple[tuple[int, ...], int]:
    """The frames in the order of the capture, and the time of the last."""
    ordered = tuple(sorted(frames))
    return ordered, frames[ordered[-1]]


def _why_not(data: bytes) -> MalformedPacket:
    """Why bytes are no packet."""
    try:
        parse(data)
    except MalformedPacket as exc:
        return exc
    why = "another size than that of its packet"
    return MalformedPacket(why, path="BaseHeader.PacketSize", offset=PACKET_SIZE_OFFSET)
