"""TCP segments to the bytes of each direction of each connection: RFC 9293, seen from the side.

The rules, where a capture leaves the truth open:

- The byte that arrives first wins. Bytes that were delivered are not kept, so that only what is
  still held is compared with what repeats it.
- A direction whose SYN was not seen starts at the lowest sequence number among its first
  ``START_SEGMENTS`` segments with data, or those of ``START_NS``, whichever ends before.
- A hole is given up when the receiver has acknowledged what follows it and then
  ``ACKED_SEGMENTS``, ``ACKED_BYTES`` or ``ACKED_NS`` are exceeded; or, acknowledged or not, when
  the limits of the reassembler are. Time is that of the capture, and counts from the last progress.
- A FIN ahead of a hole waits like data. An RST counts when it stands at or after the next byte; it
  ends both directions at once.
- Segments further than 1 GiB from the next byte are ignored until four follow each other there.
- A SYN with another initial number starts a new connection on the same ports, and so do a SYN, or
  data beyond what was delivered, after an RST.
"""

from __future__ import annotations

from itertools import islice
from typing import Final

from msmqwire.capture.direction import ENDED, FAR, OPEN, OPENING, UNKNOWN, Counters, Direction
from msmqwire.capture.events import Data, Event, GapReason, How, Moment, distance
from msmqwire.capture.ip import ACK, FIN, RST, SYN, Datagram

START_SEGMENTS: Final = 8
START_NS: Final = 250_000_000
ACKED_SEGMENTS: Final = 32
ACKED_BYTES: Final = 256 << 10
ACKED_NS: Final = 1_000_000_000
SWEEP_NS: Final = 250_000_000
"""Nanoseconds of capture time between two looks at the holes that time may have decided."""
CLOCK_BACK_NS: Final = 60_000_000_000
"""Nanoseconds that time may seem to go back, as when interfaces are merged, without being believed."""

BUFFERED_PER_FLOW_MAX: Final = 4 << 20
"""Bytes of memory that one direction may hold behind holes."""
SEGMENTS_PER_FLOW_MAX: Final = 8192
"""Pieces that one direction may hold behind holes."""
BUFFERED_TOTAL_MAX: Final = 64 << 20
"""Bytes of memory that all directions together may hold behind holes."""
HOLE_NS_MAX: Final = 30_000_000_000
"""Nanoseconds of capture time that a hole is awaited, acknowledged or not."""
IDLE_NS_MAX: Final = 600_000_000_000
"""Nanoseconds of capture time after which a silent connection is forgotten."""
FLOWS_MAX: Final = 1 << 16
"""Connections that are known at a time."""

_Key = tuple[str, int, str, int]
_CONTROL: Final = FIN | SYN | RST | ACK


class Reassembler:
    """Takes the datagrams of a capture in its order, gives the events of their TCP connections.

    Memory is bounded by the limits, whatever comes. Where one is reached, holes are given up or the
    connections silent for longest are ended; nothing that was captured is dropped.

    Args:
        max_buffered_per_flow: bytes of memory that one direction may hold behind holes.
        max_buffered_total: the same for all directions together.
        max_segments_per_flow: pieces that one direction may hold behind holes.
        hole_ns: how long a hole is awaited.
        idle_ns: after how long a silent connection is forgotten; looked at every eighth of it.
        max_flows: how many connections are known at a time.

    Attributes:
        counters: what did not come out as it came in.
    """

    def __init__(
        self,
        *,
        max_buffered_per_flow: int = BUFFERED_PER_FLOW_MAX,
        max_buffered_total: int = BUFFERED_TOTAL_MAX,
        max_segments_per_flow: int = SEGMENTS_PER_FLOW_MAX,
        hole_ns: int = HOLE_NS_MAX,
        idle_ns: int = IDLE_NS_MAX,
        max_flows: int = FLOWS_MAX,
    ) -> None:
        self.counters = Counters()
        self._per_flow, self._total = max_buffered_per_flow, max_buffered_total
        self._segments, self._hole_ns = max_segments_per_flow, hole_ns
        self._idle_ns, self._max_flows = idle_ns, max(1, max_flows)
        self._directions: dict[_Key, Direction] = {}
        self._connections: dict[int, Direction] = {}  # by stream, the direction first seen
        self._waiting: dict[Direction, None] = {}  # those that hold something, longest first
        self._buffered = 0
        self._streams = 0
        self._now = self._sweep_at = self._idle_at = 0

    @property
    def buffered(self) -> int:
        """Bytes of memory held behind holes, about."""
        return self._buffered

    @property
    def connections(self) -> int:
        """How many connections are known at present, ended ones that may repeat included."""
        return len(self._connections)

    def feed(self, datagram: Datagram) -> list[Event]:
        """The events that a datagram brings about, in order; none for UDP."""
        _, src, src_port, dst, dst_port, time_ns, frames, _, payload, missing, seq, ack, flags = datagram
        if time_ns >= self._sweep_at:
            return self._sweep(time_ns) + self._segment(datagram)
        direction = self._directions.get((src, src_port, dst, dst_port))
        if (
            direction is None
            or not direction.plain
            or missing
            or flags & _CONTROL != ACK
            or (seq - direction.next) & 0xFFFF_FFFF
            or direction.peer.holding
        ):
            return self._segment(datagram)
        direction.peer.acked = ack
        direction.last_ns = time_ns
        direction.frames = frames
        if not payload:
            return []
        direction.next += len(payload)
        return [Data._make((direction.flow or direction.the_flow(), payload, time_ns, frames[-1], time_ns))]

    def flush(self) -> list[Event]:
        """The capture has ended: what is held comes out, and every direction ends."""
        events: list[Event] = []
        for direction in list(self._connections.values()):
            self._forget(direction, "capture", events)
        return events

    def _segment(self, datagram: Datagram) -> list[Event]:
        """Any segment, with all the rules."""
        transport, _, _, _, _, time_ns, frames, _, payload, _, seq, ack, flags = datagram
        if transport != "tcp":
            return []
        events: list[Event] = []
        if time_ns and not self._now - CLOCK_BACK_NS < time_ns < self._now:
            self._now = time_ns
            self._sweep_at = min(self._sweep_at, time_ns + SWEEP_NS)
        key, moment = datagram[1:5], Moment(time_ns, frames[-1])
        direction = self._directions.get(key)
        if direction is not None and self._starts_anew(direction, datagram):
            self._forget(direction, "reused", events, moment)
            direction = None
        if direction is None:
            direction = self._connect(key, events)
        peer = direction.peer
        direction.seen, direction.last_ns, direction.frames = True, time_ns, frames
        if flags & ACK:
            peer.acked = ack
        if flags & RST:
            self._reset(direction, seq, moment, events)
            return events
        if flags & SYN:
            if direction.isn is None and direction.state != ENDED and direction.starts_at(seq):
                direction.set_isn(seq)
            if flags & ACK and peer.isn is None and peer.state in (UNKNOWN, OPENING):
                origin = (ack - 1) & 0xFFFF_FFFF
                if peer.starts_at(origin):
                    peer.set_isn(origin)
            seq = (seq + 1) & 0xFFFF_FFFF
        if direction.state == ENDED:
            self.counters.late_segments += bool(payload) and distance(seq + len(payload), direction.next) > 0
        else:
            direction.take(seq, datagram, self._now, events)
        self._settle(direction, moment, events)
        self._settle(peer, moment, events)
        while self._buffered > self._total:
            oldest = next(iter(self._waiting))
            if oldest.state == OPENING:
                _open(oldest)
            if oldest.pieces:
                oldest.give_up("limit", moment, events)
            self._settle(oldest, moment, events)
        return events

    def _starts_anew(self, direction: Direction, datagram: Datagram) -> bool:
        """Whether the segment belongs to a new connection on the ports of a known one."""
        seq, flags = datagram.seq, datagram.flags
        if flags & RST:
            return False
        if flags & SYN and flags & ACK:
            answers = direction.peer.isn is not None and distance(datagram.ack, direction.peer.isn) == 1
            return not direction.starts_at(seq) and not (answers and direction.isn is None)
        if flags & SYN:
            return direction.how == "rst" or not direction.starts_at(seq)
        if direction.how == "rst" and datagram.payload:
            return not -FAR < distance(seq + len(datagram.payload), direction.next) <= 0
        return False

    def _connect(self, key: _Key, events: list[Event]) -> Direction:
        if len(self._connections) >= self._max_flows:
            # A sixteenth at once, so that the order need not be kept up with every segment.
            ranked = sorted(self._connections.values(), key=_rank)
            for direction in islice(ranked, max(1, self._max_flows // 16)):
                self._forget(direction, "idle", events)
                self.counters.evicted += 1
        src, src_port, dst, dst_port = key
        back = (dst, dst_port, src, src_port)
        direction = Direction(self._streams, key, self.counters)
        direction.peer = Direction(self._streams, back, self.counters)
        direction.peer.peer = direction
        self._directions[back] = direction.peer
        self._directions[key] = direction
        self._connections[self._streams] = direction
        self._streams += 1
        return direction

    def _reset(self, direction: Direction, seq: int, moment: Moment, events: list[Event]) -> None:
        if direction.state == OPEN and not 0 <= distance(seq, direction.next) < FAR:
            self.counters.stray_resets += 1
            return
        for side in (direction, direction.peer):
            side.end("rst", moment, events)
            self._account(side)

    def _settle(self, direction: Direction, moment: Moment, events: list[Event]) -> None:
        """Deliver what can be, give up the holes that are to be, and end what has ended."""
        if direction.state == OPENING:
            late = self._now - direction.since_ns >= START_NS
            if late or direction.segments >= START_SEGMENTS or self._over(direction):
                _open(direction)
        if direction.state == OPEN:
            if direction.deliver(moment.time_ns, events):
                direction.since_ns = self._now
            while direction.pieces and (reason := self._lost(direction)):
                direction.give_up(reason, moment, events)
            if direction.fin_at is not None and direction.fin_at <= direction.next and not direction.pieces:
                direction.end("fin", moment, events)
            direction.plain = direction.state == OPEN and not direction.pieces and direction.fin_at is None
        self._account(direction)

    def _over(self, direction: Direction) -> bool:
        return direction.pieces.cost > self._per_flow or len(direction.pieces) > self._segments

    def _lost(self, direction: Direction) -> GapReason | None:
        """Why the first hole is to be given up, if it is."""
        pieces = direction.pieces
        waited = self._now - max(pieces[0].time_ns, direction.since_ns)
        if self._over(direction):
            return "limit"
        if waited >= self._hole_ns:
            return "timeout"
        enough = len(pieces) > ACKED_SEGMENTS or pieces.cost > ACKED_BYTES or waited >= ACKED_NS
        if enough and direction.acked is not None and direction.place(direction.acked) >= pieces[0].start:
            return "acknowledged"
        return None

    def _account(self, direction: Direction) -> None:
        cost = direction.pieces.cost
        self._buffered += cost - direction.charged
        direction.charged = cost
        holding = cost > 0 or direction.state == OPENING
        if holding and not direction.holding:
            self._waiting[direction] = None
        elif direction.holding and not holding:
            del self._waiting[direction]
        direction.holding = holding

    def _sweep(self, time_ns: int) -> list[Event]:
        """Let time decide: over openings, holes and silent connections."""
        events: list[Event] = []
        self._now = time_ns
        self._sweep_at = time_ns + SWEEP_NS
        for direction in list(self._waiting):
            self._settle(direction, Moment(time_ns, direction.frames[-1]), events)
        if time_ns >= self._idle_at:
            self._idle_at = time_ns + self._idle_ns // 8
            for direction in list(self._connections.values()):
                last = max(direction.last_ns, direction.peer.last_ns)
                if last and time_ns - last >= self._idle_ns:  # 0: the file has no times
                    self._forget(direction, "idle", events)
        return events

    def _forget(
        self, direction: Direction, how: How, events: list[Event], moment: Moment | None = None
    ) -> None:
        """End both directions of a connection, in the order of first sight, and know it no more."""
        first = self._connections.pop(direction.stream)
        for side in (first, first.peer):
            if side.seen:
                side.end(how, moment or Moment(side.last_ns, side.frames[-1]), events)
                self._account(side)
            self._directions.pop(side.key, None)


def _open(direction: Direction) -> None:
    direction.state, direction.first = OPEN, direction.next


def _rank(direction: Direction) -> tuple[bool, int]:
    """Ended connections are given up first, then those silent for longest."""
    peer = direction.peer
    ended = direction.state == ENDED and (peer.state == ENDED or not peer.seen)
    return not ended, max(direction.last_ns, peer.last_ns)
