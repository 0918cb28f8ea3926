"""One direction of a TCP connection: its place in the stream and what is held beyond it."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Final

from msmqwire.capture.events import Data, End, Event, Flow, Gap, GapReason, How, Moment, distance
from msmqwire.capture.ip import FIN, Datagram
from msmqwire.capture.segment_buffer import Piece, Pieces

FAR: Final = 1 << 30
"""Bytes from the expected sequence number beyond which a segment is not believed: no window of TCP is
larger (RFC 7323, 2.3)."""
FAR_RUN: Final = 4
"""Segments that must follow each other far away, with none near in between, until they are believed."""
START_WINDOW: Final = 1 << 20
"""Bytes before the first segment seen in which one that was overtaken may still start the stream."""

UNKNOWN, OPENING, OPEN, ENDED = range(4)


@dataclass(slots=True)
class Counters:
    """What did not come out as it came in.

    Attributes:
        repeated_bytes: bytes of segments that had been delivered, or were held already.
        conflicting_bytes: those of them that were held, with another value.
        lost_bytes: the sizes of all gaps that have one.
        far_segments: segments too far from the expected sequence number, ignored.
        late_segments: segments with data after the end of their direction, ignored.
        stray_resets: RST segments that no receiver would take, ignored.
        evicted: connections that were given up to make room.
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
    """The state of one direction. ``next`` and all places are sequence numbers that do not wrap."""

    stream: int
    key: tuple[str, int, str, int]  # source address and port, destination address and port
    counters: Counters
    peer: Direction = field(init=False)
    flow: Flow | None = None
    state: int = UNKNOWN
    fast_path: bool = False  # open, and nothing held: a segment in order needs no second look
    holding: bool = False  # something is held, or the start is not decided
    seen: bool = False
    how: How | None = None
    last_ns: int = 0
    frames: tuple[int, ...] = ()  # of the last segment

    next: int = 0  # the place of the next byte to deliver; while opening, of the first one known
    isn: int | None = None
    first: int | None = None  # where the direction stood before it sent data
    fin_at: int | None = None
    acked: int | None = None  # what the peer acknowledged last
    pieces: Pieces = field(default_factory=Pieces)
    held_from: int = 0  # the last frame of the direction when it began to hold something
    charged: int = 0  # what the reassembler has accounted for the pieces
    segments: int = 0  # with data, while opening
    since_ns: int = 0  # of the opening, of the hole, or of the last progress, whichever is latest
    far_next: int = 0  # where the next segment of a run far away would start,
    far_from: int = 0  # the place the stream had when the run began,
    far_run: int = 0  # and how many segments it has

    def the_flow(self) -> Flow:
        if self.flow is None:
            midstream = self.isn is None
            self.flow = Flow(self.stream, *self.key, midstream)
        return self.flow

    def place(self, seq: int) -> int:
        """The place that a sequence number stands for, by what is expected."""
        return self.next + distance(seq, self.next)

    def set_isn(self, isn: int) -> None:
        """The direction starts after this number, as a SYN or the answer to one tells."""
        self.isn = isn
        if self.state == UNKNOWN:
            self.next, self.state = (isn + 1) & 0xFFFF_FFFF, OPEN
        elif self.state == OPENING:
            self.next, self.state = self.place(isn + 1), OPEN
        self.fast_path = self.seen and self.state == OPEN and not self.pieces and self.fin_at is None

    def starts_at(self, isn: int) -> bool:
        """Whether a SYN with this number can be the start of what was seen before it."""
        if self.isn is not None:
            return isn == self.isn
        if self.state == OPENING:
            return 0 <= distance(self.next, isn + 1) < START_WINDOW
        if self.state == UNKNOWN:
            return self.acked is None or 0 <= distance(self.acked, isn + 1) < START_WINDOW
        return self.first is not None and distance(self.first, isn + 1) == 0

    def open_with(self, seq: int, now: int) -> None:
        """The first data of a direction whose start is not known."""
        start = seq
        # Where it stood before is only believed when the difference is no probe, which is one byte
        # back (RFC 9293, 3.8.4). The peer's acknowledgement tells it when its SYN was seen.
        known = [self.first, self.acked if self.peer.isn is not None else None]
        for candidate in known:
            if candidate is not None and 1 < distance(seq, candidate) < START_WINDOW:
                start = min(start, seq - distance(seq, candidate))
        self.next, self.state, self.since_ns = start, OPENING, now

    def take(self, seq: int, segment: Datagram, now: int, events: list[Event]) -> None:
        """A segment whose data starts at ``seq``. Not for a direction that has ended."""
        payload, fin = segment.payload, bool(segment.flags & FIN)
        size = len(payload) + segment.missing
        moment = Moment(segment.time_ns, segment.frames[-1])
        if self.state == UNKNOWN:
            if not size and not fin:
                self.first = seq if self.first is None else self.first
                return
            if size == 1 and not fin and self.acked is not None and distance(self.acked, seq) == 1:
                return  # a keep-alive probe
            self.open_with(seq, now)
        if self.state == OPENING:
            if not -START_WINDOW < distance(seq, self.next) < FAR:
                self.counters.far_segments += 1
                return
            self.segments += bool(size)
            start = self.place(seq)
            self.next = min(self.next, start) if size or fin else self.next
        else:
            if not -FAR < distance(seq, self.next) < FAR and not self._believed(seq, size, moment, events):
                return
            start = self.place(seq)
        end = start + size
        if size and self.fin_at is not None and end > self.fin_at:
            self.fin_at = None  # a FIN before data: one of the two is not true, and data is kept
        if fin and self.fin_at is None and end >= self.next:
            self.fin_at = end
        if not size:
            return
        if end <= self.next:
            self.counters.repeated_bytes += size
            return
        if start < self.next:
            self.counters.repeated_bytes += self.next - start
            payload, start = payload[self.next - start :], self.next
        if not self.pieces and self.state == OPEN:
            self.since_ns = now
        before = self.pieces.conflicts
        held = self.pieces.add(Piece(start, end, payload, *moment))
        self.counters.repeated_bytes += end - start - held
        self.counters.conflicting_bytes += self.pieces.conflicts - before

    def _believed(self, seq: int, size: int, moment: Moment, events: list[Event]) -> bool:
        """Whether a segment far away shows that the stream went on there, which it then does."""
        if not size:
            return False
        follows = seq == self.far_next and self.next == self.far_from
        self.far_run = self.far_run + 1 if follows else 1
        self.far_next, self.far_from = (seq + size) & 0xFFFF_FFFF, self.next
        if self.far_run < FAR_RUN:
            self.counters.far_segments += 1
            return False
        while self.pieces:
            self.skip_gap("jump", moment, events)
        events.append(Gap(self.the_flow(), None, "jump", *moment))
        self.next, self.fin_at, self.far_run = seq, None, 0
        return True

    def deliver(self, completed_ns: int, events: list[Event]) -> bool:
        """All that has become the next; whether there was anything."""
        count = self.pieces.joined(self.next)
        if count:
            flow = self.the_flow()
            for start, end, data, time_ns, frame in self.pieces.take(count):
                if data:
                    events.append(Data(flow, data, time_ns, frame, completed_ns))
                if lost := end - start - len(data):
                    self.counters.lost_bytes += lost
                    events.append(Gap(flow, lost, "cut", time_ns, frame))
                self.next = end
        return count > 0

    def skip_gap(self, reason: GapReason, moment: Moment, events: list[Event]) -> None:
        """The first hole stays: what was held behind it is next. For when something is held."""
        lost = self.pieces[0].start - self.next
        if lost > 0:
            self.counters.lost_bytes += lost
            events.append(Gap(self.the_flow(), lost, reason, *moment))
            self.next += lost
        self.deliver(moment.time_ns, events)

    def end(self, how: How, moment: Moment, events: list[Event]) -> None:
        """Nothing more comes: what is held comes out, and what is known to be lost is told."""
        if self.state == ENDED or not self.seen:
            return
        known = self.state != UNKNOWN
        while self.pieces:
            self.skip_gap("end", moment, events)
        if self.fin_at is not None and self.fin_at >= self.next:
            how = "fin"
            if lost := self.fin_at - self.next:
                self.counters.lost_bytes += lost
                events.append(Gap(self.the_flow(), lost, "end", *moment))
                self.next = self.fin_at
        elif known and self.acked is not None and 1 < distance(self.acked, self.next) < FAR:
            # A FIN that was not captured may be among what was acknowledged, so the size is open,
            # and a distance of one tells nothing.
            events.append(Gap(self.the_flow(), None, "end", *moment))
        events.append(End(self.the_flow(), how, *moment))
        self.how, self.state, self.fast_path = how, ENDED, False
