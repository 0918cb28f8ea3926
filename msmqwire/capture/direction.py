"""One direction of a TCP connection: its position in the stream and the segments buffered beyond a gap."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Final

from msmqwire.capture.events import Data, End, EndReason, Event, Flow, Gap, GapReason, Moment, distance
from msmqwire.capture.ip import ACK, FIN, RST, SYN, Datagram, FlowKey
from msmqwire.capture.segment_buffer import Segment, SegmentBuffer

FAR: Final = 1 << 30
"""Distance in bytes from the expected sequence number from which a segment is implausible: no TCP window
is larger (RFC 7323, 2.3)."""
FAR_RUN: Final = 4
"""Consecutive implausible segments, with no plausible one in between, after which they are believed."""
START_WINDOW: Final = 1 << 20
"""Bytes before the first segment seen in which an overtaken segment may still start the stream."""

SEGMENT_MAX: Final = 1 << 20
"""Bytes of the largest segment that is delivered in one piece: segmentation offload makes some of 512 KiB."""

UNKNOWN, OPENING, OPEN, ENDED = range(4)


@dataclass(slots=True)
class Counters:
    """Counts of bytes and segments that reassembly did not deliver as captured.

    Attributes:
        repeated_bytes: bytes of segments that had been delivered or buffered already.
        conflicting_bytes: those of them that differ from the buffered ones.
        lost_bytes: the sizes of all gaps whose size is known.
        far_segments: segments too far from the expected sequence number, ignored.
        late_segments: segments with data after the end of their direction, ignored.
        stray_resets: RST segments that no receiver would accept, ignored.
        evicted: connections that were ended to make room for newer ones.
    """

    repeated_bytes: int = 0
    conflicting_bytes: int = 0
    lost_bytes: int = 0
    far_segments: int = 0
    late_segments: int = 0
    stray_resets: int = 0
    evicted: int = 0

    def as_dict(self) -> dict[str, int]:
        return {counter.name: getattr(self, counter.name) for counter in fields(self)}


@dataclass(slots=True, eq=False)
class Direction:
    """The state of one direction. ``next`` and the other sequence numbers are unwrapped."""

    stream: int
    key: FlowKey
    counters: Counters
    peer: Direction = field(init=False)
    flow: Flow | None = None
    state: int = UNKNOWN
    fast_path: bool = False  # open, and nothing buffered: a segment in order needs no further checks
    waiting: bool = False  # segments are buffered, or the start is undecided
    seen: bool = False
    end_reason: EndReason | None = None
    last_ns: int = 0
    frames: tuple[int, ...] = ()  # the last one that carried the last segment

    next: int = 0  # sequence number of the next byte to deliver; while opening, of the first one known
    isn: int | None = None
    first_seq: int | None = None  # sequence number before any data was sent
    fin_seq: int | None = None
    acked: int | None = None  # the last acknowledgement number of the peer
    buffer: SegmentBuffer = field(default_factory=SegmentBuffer)
    waiting_frame: int = 0  # the last frame of the direction when it began to wait
    accounted: int = 0  # the cost of the buffer that the reassembler has accounted for
    opening_segments: int = 0  # segments with data, while opening
    since_ns: int = 0  # time of the opening, of the gap, or of the last progress, whichever is latest
    far_next: int = 0  # sequence number that continues the current run of far segments,
    far_from: int = 0  # `next` when that run began,
    far_run: int = 0  # and its length in segments

    def ensure_flow(self) -> Flow:
        """Return the flow of the events; its ``midstream`` is settled by the first call."""
        if self.flow is None:
            midstream = self.isn is None
            src, src_port, dst, dst_port, network = self.key
            self.flow = Flow(self.stream, src, src_port, dst, dst_port, midstream, network)
        return self.flow

    def unwrap(self, seq: int) -> int:
        """Return a sequence number unwrapped: the candidate nearest to ``next``."""
        return self.next + distance(seq, self.next)

    def set_isn(self, isn: int) -> None:
        """Start the direction after its initial sequence number, known from a SYN or the answer to one."""
        self.isn = isn
        if self.state == UNKNOWN:
            self.next, self.state = (isn + 1) & 0xFFFF_FFFF, OPEN
        elif self.state == OPENING:
            self.next, self.state = self.unwrap(isn + 1), OPEN
        self.fast_path = self.seen and self.state == OPEN and not self.buffer and self.fin_seq is None

    def accepts_isn(self, isn: int) -> bool:
        """Whether a SYN with this sequence number can be the start of the bytes seen so far."""
        if self.isn is not None:
            return isn == self.isn
        if self.state == OPENING:
            return 0 <= distance(self.next, isn + 1) < START_WINDOW
        if self.state == UNKNOWN:
            return self.acked is None or 0 <= distance(self.acked, isn + 1) < START_WINDOW
        return self.first_seq is not None and distance(self.first_seq, isn + 1) == 0

    def is_left_by(self, segment: Datagram) -> bool:
        """Whether a segment belongs to a new connection on the ports of this one."""
        seq, flags = segment.seq, segment.flags
        if flags & RST:
            return False
        if flags & SYN and flags & ACK:
            answers_peer = self.peer.isn is not None and distance(segment.ack, self.peer.isn) == 1
            return not self.accepts_isn(seq) and not (answers_peer and self.isn is None)
        if flags & SYN:
            return self.end_reason == "rst" or not self.accepts_isn(seq)
        if self.end_reason == "rst" and segment.payload:
            return not -FAR < distance(seq + len(segment.payload), self.next) <= 0
        return False

    def is_beyond_what_was_delivered(self) -> bool:
        """Whether the receiver has acknowledged bytes that are not delivered, besides a FIN."""
        if self.acked is None or self.state == UNKNOWN:
            return False
        return self.state == OPENING or (self.state == OPEN and 1 < distance(self.acked, self.next) < FAR)

    def is_gap_acknowledged(self) -> bool:
        """Whether the receiver has acknowledged data beyond the first gap. There must be one."""
        return self.acked is not None and self.unwrap(self.acked) >= self.buffer[0].start

    def is_start_acknowledged(self) -> bool:
        """Whether the receiver has all that precedes the first data, so that nothing earlier is to come."""
        ahead = -1 if self.acked is None else distance(self.acked, self.next)
        return 0 <= ahead < FAR and not (ahead == 1 and self.may_be_probe())

    def may_be_probe(self) -> bool:
        """Whether the only data so far is one byte, as that of a keep-alive probe."""
        buffer = self.buffer
        return len(buffer) == 1 and buffer[0].start == self.next and buffer[0].end == self.next + 1

    def open(self) -> None:
        """Start the direction, which is opening, with the lowest sequence number so far."""
        self.state, self.first_seq = OPEN, self.next

    def start_opening(self, seq: int, now: int) -> None:
        """Start a direction whose SYN was not seen with its first data."""
        start = seq
        # An earlier position is only believed when the difference can't be a probe, which is one byte
        # back (RFC 9293, 3.8.4). The acknowledgement of the peer gives it when the peer's SYN was seen.
        candidates = [self.first_seq, self.acked if self.peer.isn is not None else None]
        for candidate in candidates:
            if candidate is not None and 1 < distance(seq, candidate) < START_WINDOW:
                start = min(start, seq - distance(seq, candidate))
        self.next, self.state, self.since_ns = start, OPENING, now

    def receive(self, seq: int, segment: Datagram, now: int, events: list[Event]) -> None:
        """Buffer a segment whose data starts at ``seq``. The direction must not have ended."""
        payload, fin = segment.payload, bool(segment.flags & FIN)
        size = len(payload) + segment.missing
        moment = Moment(segment.time_ns, segment.frames[-1])
        if self.state == UNKNOWN:
            if not size and not fin:
                self.first_seq = seq if self.first_seq is None else self.first_seq
                return
            if size == 1 and not fin and self.acked is not None and distance(self.acked, seq) == 1:
                return  # a keep-alive probe
            self.start_opening(seq, now)
        if self.state == OPENING:
            if not -START_WINDOW < distance(seq, self.next) < FAR:
                self.counters.far_segments += 1
                return
            self.opening_segments += bool(size)
            start = self.unwrap(seq)
            if size > 1 and start == self.next + 1 and self.may_be_probe():
                self.buffer.pop(1)
                self.next = start
            self.next = min(self.next, start) if size or fin else self.next
        else:
            if not -FAR < distance(seq, self.next) < FAR and not self._jumps(seq, size, moment, events):
                return
            start = self.unwrap(seq)
        end = start + size
        if size and self.fin_seq is not None and end > self.fin_seq:
            self.fin_seq = None  # data beyond a FIN: one of the two is wrong, and the data is believed
        if fin and self.fin_seq is None and end >= self.next:
            self.fin_seq = end
        if not size:
            return
        if end <= self.next:
            self.counters.repeated_bytes += size
            return
        if start < self.next:
            self.counters.repeated_bytes += self.next - start
            payload, start = payload[self.next - start :], self.next
        if not self.buffer and self.state == OPEN:
            self.since_ns = now
        conflicts, added = self.buffer.conflicts, 0
        for at in range(start, end, SEGMENT_MAX):
            piece = payload[at - start : at - start + SEGMENT_MAX]
            added += self.buffer.add(Segment(at, min(end, at + SEGMENT_MAX), piece, *moment))
        self.counters.repeated_bytes += end - start - added
        self.counters.conflicting_bytes += self.buffer.conflicts - conflicts

    def _jumps(self, seq: int, size: int, moment: Moment, events: list[Event]) -> bool:
        """Whether a far segment completes a run that proves that the stream jumped; if so, follow it."""
        if not size:
            return False
        consecutive = seq == self.far_next and self.next == self.far_from
        self.far_run = self.far_run + 1 if consecutive else 1
        self.far_next, self.far_from = (seq + size) & 0xFFFF_FFFF, self.next
        if self.far_run < FAR_RUN:
            self.counters.far_segments += 1
            return False
        while self.buffer:
            self.skip_gap("jump", moment, events)
        events.append(Gap(self.ensure_flow(), None, "jump", *moment))
        self.next, self.fin_seq, self.far_run = seq, None, 0
        return True

    def deliver(self, completed_ns: int, events: list[Event]) -> bool:
        """Deliver the buffered segments that are next in order; return whether any were."""
        count = self.buffer.contiguous(self.next)
        if count:
            flow = self.ensure_flow()
            for start, end, data, time_ns, frame in self.buffer.pop(count):
                if data:
                    events.append(Data(flow, data, time_ns, frame, completed_ns))
                if lost := end - start - len(data):
                    self.counters.lost_bytes += lost
                    events.append(Gap(flow, lost, "cut", time_ns, frame))
                self.next = end
        return count > 0

    def skip_gap(self, reason: GapReason, moment: Moment, events: list[Event]) -> None:
        """Give up the first gap and deliver the bytes buffered beyond it. The buffer must not be empty."""
        lost = self.buffer[0].start - self.next
        if lost > 0:
            self.counters.lost_bytes += lost
            events.append(Gap(self.ensure_flow(), lost, reason, *moment))
            self.next += lost
        self.deliver(moment.time_ns, events)

    def end(self, reason: EndReason, moment: Moment, events: list[Event]) -> None:
        """End the direction: deliver the buffered bytes, and report the known losses."""
        if self.state == ENDED or not self.seen:
            return
        started = self.state != UNKNOWN
        while self.buffer:
            self.skip_gap("end", moment, events)
        if self.fin_seq is not None and self.fin_seq >= self.next:
            reason = "fin"
            if lost := self.fin_seq - self.next:
                self.counters.lost_bytes += lost
                events.append(Gap(self.ensure_flow(), lost, "end", *moment))
                self.next = self.fin_seq
        elif started and self.acked is not None and 1 < distance(self.acked, self.next) < FAR:
            # The acknowledgement may cover a FIN that was not captured, so the size is unknown, and a
            # distance of one proves nothing.
            events.append(Gap(self.ensure_flow(), None, "end", *moment))
        events.append(End(self.ensure_flow(), reason, *moment))
        self.end_reason, self.state, self.fast_path = reason, ENDED, False
