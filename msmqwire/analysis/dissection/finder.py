"""Finder of the packets in one direction of a captured connection: packets, malformed ones, skipped bytes.

Unlike a live session, a capture may begin midstream, have gaps, and continue after an impossible header.
Every byte is accounted for: it is in a packet, in a malformed one, or skipped with a reason. Out of sync,
the finder resumes at the next packet that is certain: a complete, well-formed one. If the bytes end before
there is any, a header at the start of a segment is accepted.

A PacketSize that is too large swallows the packets that follow, as bytes after the last header. As receivers
do, the finder goes by PacketSize, as long as a packet follows there or nothing. If something else does, the
packet ends, malformed, where the next certain one begins among those bytes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final, NamedTuple

from msmqwire.analysis.dissection.failed_checks import FailedChecks
from msmqwire.analysis.dissection.frame_ranges import SegmentRange, completed, take_frames
from msmqwire.analysis.dissection.skip_reasons import PACKET_MIN, SkipReason, Why
from msmqwire.analysis.protocols.protocol import JoinedPacket
from msmqwire.capture.segment_buffer import SEGMENT_COST
from msmqwire.errors import MalformedPacket
from msmqwire.framing import begins_packet, find_header, find_whole_packet, may_hide_packet
from msmqwire.headers.base import (
    BASE_HEADER_SIZE,
    PACKET_SIZE_OFFSET,
    PREFIX_SIZE,
    SIGNATURE_END,
)
from msmqwire.packets import headers_end, packet_length, parse, well_formed
from msmqwire.schema import Record

SKIP_SHOWN: Final = 0x1_0000
"""Bytes, approximately, after which a run of skipped bytes is reported while no packet is certain."""
_REST: Final = SkipReason(Why.REST)
_MALFORMED: Final = SkipReason(Why.MALFORMED)
_LARGE: Final = 0x1_0000
"""Bytes; larger packets are checked without a reason before they are parsed."""
_RESULTS: Final = 256
"""Results that are made before they are handed out."""
FRAME_COST: Final = 104
"""Bytes of memory that a frame of a run of skipped bytes takes."""


class ScanResult(NamedTuple):
    """A range of the direction: a packet, a malformed packet or skipped bytes.

    Attributes:
        data: its bytes; empty for skipped ones.
        size: its length in bytes, captured or not.
        packet: the packet, or None.
        error: why a malformed packet can't be parsed, or None.
        reason: why bytes were skipped; empty for packets.
        frames: the numbers of the frames that carry it, in order.
        time_ns: when the last of them was captured, which completed it.
        cut: whether the rest of a malformed packet is missing from the capture, though perhaps it was sent.
        exchange: the number of a request or call in its connection, and of the response to it.
        request_frame: in a response, the last frame of that request.
    """

    data: bytes
    size: int
    packet: Record | JoinedPacket | None
    error: MalformedPacket | None
    reason: str
    frames: tuple[int, ...]
    time_ns: int
    cut: bool = False
    exchange: int | None = None
    request_frame: int | None = None

    @classmethod
    def skipped(cls, size: int, reason: str, frames: tuple[int, ...], time_ns: int) -> ScanResult:
        """Return a range of bytes that were skipped, or are not in the capture."""
        return cls(b"", size, None, None, reason, frames, time_ns)


@dataclass(slots=True)
class _SkippedRun:
    """A run of bytes skipped for one reason."""

    size: int
    reason: SkipReason
    frames: dict[int, int]  # frame number: time in ns


class PacketFinder:
    """Finds the packets of one direction, fed with its bytes and gaps in order.

    Results are made while they are iterated over, and all are to be taken before anything else is asked for.
    False headers can overlap each other, so that `FailedChecks` limits how often a byte is parsed in vain.
    """

    __slots__ = (
        "_after_malformed",
        "_buffer",
        "_doubtful",
        "_error",
        "_failed",
        "_malformed",
        "_remaining",
        "_results",
        "_searched_to",
        "_segments",
        "_skipped",
        "_start",
        "_sync_loss",
    )

    def __init__(self, *, midstream: bool = False) -> None:
        self._buffer = bytearray()
        self._start = 0  # offset of the buffer in the stream
        self._segments: deque[SegmentRange] = deque()
        self._sync_loss = SkipReason(Why.BEGINS_INSIDE) if midstream else None  # None in sync
        self._remaining = 0  # bytes of an incomplete packet that are still to be skipped
        self._malformed = False  # whether the packet at the start of the buffer is malformed,
        self._error: MalformedPacket | None = None  # and why, if known
        self._doubtful: Record | None = None  # or one begins after its last header, perhaps
        self._searched_to = 0  # no certain packet begins before this offset of the stream
        self._failed = FailedChecks()
        self._skipped: _SkippedRun | None = None
        self._after_malformed = False  # whether the last packet before the buffer was malformed
        self._results: list[ScanResult] = []

    @property
    def held(self) -> int:
        """The approximate number of bytes of memory buffered.

        The content never exceeds two packets of the largest size and the bytes of one feed.
        """
        skipped = 0 if self._skipped is None else FRAME_COST * len(self._skipped.frames)
        return len(self._buffer) + SEGMENT_COST * len(self._segments) + skipped

    @property
    def between_packets(self) -> bool:
        """Whether a new finder would find the same from here on: in sync, with nothing buffered."""
        in_sync = not (self._sync_loss or self._remaining or self._skipped or self._after_malformed)
        fresh = self._searched_to <= self._start and self._failed.end <= self._start
        return in_sync and fresh and not self._buffer

    def feed(self, data: bytes, frame: int, time_ns: int) -> Iterable[ScanResult]:
        """Feed the next bytes of the direction, from one frame captured at ``time_ns``."""
        start = self._start + len(self._buffer)
        self._buffer += data
        self._segments.append(SegmentRange(start, start + len(data), frame, time_ns))
        more = self._scan(final=False)
        results = self._take_results()
        return chain(results, self._scan_all(final=False)) if more else results

    def gap(self, size: int | None, reason: str, frame: int, time_ns: int) -> Iterator[ScanResult]:
        """Report that ``size`` bytes are lost here; None if unknown how many."""
        yield from self._scan_all(final=True)
        missing = yield from self._flush_buffer(cut=True)
        if size is not None and 0 <= size <= missing:
            self._remaining = missing - size
        else:
            self._remaining, self._sync_loss = 0, SkipReason(Why.HOLE)
        self._flush_skipped()
        self._after_malformed = False
        if size:
            skipped = f"not in the capture: {reason}"
            self._results.append(ScanResult.skipped(size, skipped, (frame,), time_ns))
        yield from self._take_results()

    def discard(self) -> list[ScanResult]:
        """Skip the buffered bytes to free memory, with the rest of their packet."""
        if self._buffer:
            header = self._buffer[:PREFIX_SIZE]
            if not self._sync_loss and len(header) == PREFIX_SIZE and begins_packet(header):
                self._remaining = max(0, packet_length(header) - len(self._buffer))
            if not self._remaining:
                self._sync_loss = SkipReason(Why.LET_GO)
            self._malformed, self._error, self._doubtful = False, None, None
            self._skip(len(self._buffer), SkipReason(Why.HELD_TOO_MUCH))
        self._flush_skipped()
        return self._take_results()

    def end(self, *, cut: bool = False) -> Iterator[ScanResult]:
        """End the direction; `cut` if only its capture ended."""
        yield from self._scan_all(final=True)
        yield from self._flush_buffer(cut=cut)
        self._flush_skipped()
        yield from self._take_results()

    def _take_results(self) -> list[ScanResult]:
        results, self._results = self._results, []
        return results

    # -- scanning ----------------------------------------------------------------------------

    def _scan_all(self, *, final: bool) -> Iterator[ScanResult]:
        """Scan as far as the buffer goes; yield the results whenever there are many, and the last of them."""
        more = True
        while more:
            more = self._scan(final=final)
            yield from self._take_results()

    def _scan(self, *, final: bool) -> bool:
        """Scan as far as the buffer goes, or until there are many results; return whether that is so."""
        while self._buffer:
            if len(self._results) >= _RESULTS:
                return True
            if self._remaining:
                count = min(self._remaining, len(self._buffer))
                self._remaining -= count
                self._skip(count, _REST)
            elif self._sync_loss:
                end, certain = self._search(0, final=final)
                self._skip(end, self._sync_loss)
                if not certain:
                    return False
                self._sync_loss = None
            elif not self._scan_packet(final=final):
                return False
        return False

    def _scan_packet(self, *, final: bool) -> bool:
        """Scan the packet at the start of the buffer; return False if more bytes are needed."""
        buffer = self._buffer
        if len(buffer) < PREFIX_SIZE:
            if not final or begins_packet(buffer):
                return False
            self._sync_loss = SkipReason.of_prefix(buffer)
            return True
        try:
            length = packet_length(buffer)
        except MalformedPacket as exc:
            return self._bad_header(exc, final=final)
        if length > len(buffer) and final:
            return False
        packet = self._doubtful
        if packet is None and not self._malformed:
            if not self._failed.admit(self._start, self._start + length):
                self._sync_loss = SkipReason(Why.NOT_CHECKED)
                self._searched_to = max(self._searched_to, self._start + 1)
                return True
            if length > len(buffer):
                return False
            packet = self._parse_packet(length)
        if packet is None:
            self._malformed = True
            return self._bad_packet(length, BASE_HEADER_SIZE, final=final)
        tail = packet.get("TrailingData")
        if self._doubtful is not None or (tail and may_hide_packet(tail)):
            self._doubtful = packet
            return self._bad_packet(length, int(packet.BaseHeader.PacketSize) - len(tail), final=final)
        self._emit(length, packet, None)
        return True

    def _parse_packet(self, length: int) -> Record | None:
        """Return the packet at the start of the buffer; None if it is malformed."""
        if length > _LARGE and not well_formed(self._buffer, 0, length):
            self._failed.add(self._start, self._start + length)
            return None
        try:
            return parse(self._buffer[:length])
        except MalformedPacket as exc:
            self._failed.add(self._start, self._start + length)
            self._error = exc
            return None

    def _bad_header(self, error: MalformedPacket, *, final: bool) -> bool:
        if error.path != "BaseHeader.PacketSize":
            self._sync_loss = SkipReason.of_prefix(self._buffer)
            return True
        if len(self._buffer) < BASE_HEADER_SIZE and not final:
            return False
        self._emit(min(BASE_HEADER_SIZE, len(self._buffer)), None, error)
        self._sync_loss = SkipReason(Why.IMPOSSIBLE_SIZE)
        return True

    def _bad_packet(self, length: int, start: int, *, final: bool) -> bool:
        """Emit a malformed or doubtful packet: up to its announced size, unless no packet follows there.

        If none does, it ends at the next certain packet from `start` on, which its size covers. One after
        another malformed packet that is smaller than any well-formed one is skipped with those like it, so
        that no bytes make more results than acknowledgements do.
        """
        error, packet = self._error, self._doubtful
        after = self._buffer[length : length + PREFIX_SIZE]
        if len(after) < PREFIX_SIZE and not final:
            return False
        if after and not begins_packet(after):
            at, certain = self._search(start, final=final)
            if certain and at < length:
                if packet is not None:
                    self._failed.add(self._start, self._start + length)
                length, error, packet = at, None, None
            elif at < length and not final:
                return False
        if packet is None and error is None:
            error = parse_error(bytes(self._buffer[:length]))
        if packet is None and self._after_malformed and length < PACKET_MIN:
            self._malformed, self._error, self._doubtful = False, None, None
            self._skip(length, _MALFORMED)
        else:
            self._emit(length, packet, error)
        return True

    def _flush_buffer(self, *, cut: bool) -> Generator[ScanResult, None, int]:
        """Flush the buffer at a break of the stream; return how many bytes its last packet lacks, or -1."""
        while self._buffer:
            length = packet_length(self._buffer) if len(self._buffer) >= PREFIX_SIZE else 0
            at, certain = self._prefix_end(), False
            if at < len(self._buffer):
                at, certain = self._search(at, final=True)
            if not certain:
                missing = length - len(self._buffer)
                error = self._error or parse_error(bytes(self._buffer))
                self._emit(len(self._buffer), None, error, cut=cut)
                return missing
            self._emit(at, None, parse_error(bytes(self._buffer[:at])))
            yield from self._scan_all(final=True)
        return self._remaining or -1

    def _prefix_end(self) -> int:
        """Return up to where the buffer is surely the beginning of a packet that is cut off.

        All of it if it is well-formed that far; not the bytes after the last header.
        """
        size = len(self._buffer)
        if not self._failed.admit(self._start, self._start + size):
            return min(BASE_HEADER_SIZE, size)
        data = bytes(self._buffer)
        self._error = parse_error(data)
        if self._error.offset == size and self._error.path != "TrailingData":
            return size
        self._failed.add(self._start, self._start + size)
        return headers_end(data) if self._error.offset == size else min(BASE_HEADER_SIZE, size)

    def _search(self, start: int, *, final: bool) -> tuple[int, bool]:
        """Return the offset of the next packet, or that before which none begins, and which of the two.

        A packet that may not be checked is passed over before all of it is there.
        """
        buffer = self._buffer
        find = find_whole_packet if final else find_header
        at = find(buffer, max(start, self._searched_to - self._start))
        while at >= 0:
            if len(buffer) - at < PREFIX_SIZE:
                self._searched_to = self._start + at
                return at, False
            end = at + packet_length(buffer, at)
            if self._failed.admit(self._start + at, self._start + end):
                whole = end <= len(buffer)
                if not whole or self._certain(at, end):
                    self._searched_to = self._start + at
                    return at, whole
            at = find(buffer, at + 1)
        if final:
            self._searched_to = self._start + len(buffer)
            at = self._cut_segment(start)
            return (at, True) if at >= 0 else (len(buffer), False)
        at = max(min(start, len(buffer)), len(buffer) - PREFIX_SIZE + 1)
        self._searched_to = self._start + at
        return at, False

    def _certain(self, at: int, end: int) -> bool:
        """Whether this is a well-formed packet without a doubtful end."""
        if well_formed(self._buffer, at, end, strict=True):
            return True
        self._failed.add(self._start + at, self._start + end)
        return False

    def _cut_segment(self, start: int) -> int:
        """Return the offset of the next segment that begins with a header of a cut-off packet; -1 if none."""
        for segment in self._segments:
            at = segment.start - self._start
            header = self._buffer[at : at + PREFIX_SIZE] if at >= start else b""
            if len(header) < SIGNATURE_END or not begins_packet(header):
                continue
            if len(header) < PREFIX_SIZE or at + packet_length(header) > len(self._buffer):
                return at
        return -1

    # -- emitting ----------------------------------------------------------------------------

    def _consume(self, count: int) -> dict[int, int]:
        """Remove the next `count` bytes from the buffer; return the numbers and times of their frames."""
        self._start += count
        frames = take_frames(self._segments, self._start)
        del self._buffer[:count]
        return frames

    def _emit(
        self, count: int, packet: Record | None, error: MalformedPacket | None, *, cut: bool = False
    ) -> None:
        self._flush_skipped()
        self._malformed, self._error, self._doubtful = False, None, None
        self._after_malformed = packet is None
        data = bytes(self._buffer[:count])
        frames = self._consume(count)
        error = error.detached() if error is not None else None
        self._results.append(ScanResult(data, count, packet, error, "", *completed(frames), cut))

    def _skip(self, count: int, reason: SkipReason) -> None:
        if not count:
            return
        if reason != _MALFORMED:
            self._after_malformed = False
        frames = self._consume(count)
        if self._skipped is not None and self._skipped.reason != reason:
            self._flush_skipped()
        if self._skipped is None:
            self._skipped = _SkippedRun(0, reason, {})
        self._skipped.size += count
        self._skipped.frames.update(frames)
        if self._skipped.size >= SKIP_SHOWN:
            self._flush_skipped()

    def _flush_skipped(self) -> None:
        run, self._skipped = self._skipped, None
        if run is not None:
            self._results.append(ScanResult.skipped(run.size, run.reason.text, *completed(run.frames)))


def parse_error(data: bytes) -> MalformedPacket:
    """Return the reason why bytes are not a packet."""
    try:
        parse(data)
    except MalformedPacket as exc:
        return exc
    why = "another size than that of its packet"
    return MalformedPacket(why, path="BaseHeader.PacketSize", offset=PACKET_SIZE_OFFSET)
