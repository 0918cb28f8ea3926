"""TCP segments to the bytes of each direction of each connection: RFC 9293, seen from the side.

The rules, where a capture leaves the truth open:

- The byte that arrives first wins. Bytes that were delivered are not kept, so that only what is
  still held is compared with what repeats it.
- A direction whose SYN was not seen starts at the lowest sequence number among its first
  ``START_SEGMENTS`` segments with data, or those of ``START_NS``, whichever ends before.
- A hole is given up when the receiver has acknowledged what follows it and then
  ``ACKED_SEGMENTS``, ``ACKED_BYTES`` or ``ACKED_NS`` are exceeded; or, acknowledged or not, when
  the limits of the reassembler are. Time is that of the capture, and counts from the last progress.
- Time decides before the next segment of a connection is looked at. Other connections only show
  earlier that it has passed: while times do not go back, what comes of a connection depends on its
  own segments and the time of the capture's end alone, unless a limit of all together is reached.
- A FIN ahead of a hole waits like data. An RST counts when it stands at or after the next byte; it
  ends both directions at once.
- Segments further than 1 GiB from the next byte are ignored until four follow each other there.
- A SYN with another initial number starts a new connection on the same ports, and so do a SYN, or
  data beyond what was delivered, after an RST.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Final

from msmqwire.capture.connection_checkpoint import ConnectionCheckpoint, restore_side, save_side
from msmqwire.capture.direction import ENDED, FAR, OPEN, OPENING, UNKNOWN, Counters, Direction
from msmqwire.capture.events import Data, Event, GapReason, How, Moment, distance
from msmqwire.capture.ip import ACK, FIN, RST, SYN, Datagram
from msmqwire.capture.segment_buffer import Piece

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
        start_segments: segments with data among which a direction whose SYN was not seen begins.
        when_forgotten: called with a direction when its connection is forgotten.
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
        self.start_segments = START_SEGMENTS
        self.when_forgotten: Callable[[Direction], None] | None = None
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

    @property
    def clock(self) -> tuple[int, int, int]:
        """The time of the capture, when holes are looked at next, and when silent connections are."""
        return self._now, self._sweep_at, self._idle_at

    @property
    def streams(self) -> int:
        """How many connections have been seen: the number of the next one."""
        return self._streams

    @streams.setter
    def streams(self, number: int) -> None:
        self._streams = number

    @property
    def waiting(self) -> bool:
        """Whether any direction holds something, or is not decided where it starts."""
        return bool(self._waiting)

    def holders(self) -> list[Direction]:
        """The directions that hold something, or are not decided where they start."""
        return list(self._waiting)

    def set_clock(self, now: int, sweep_at: int) -> None:
        """Have it know that time went on while it was not asked."""
        self._now, self._sweep_at = now, sweep_at

    def hold(self, direction: Direction, pieces: list[Piece], held_from: int, since_ns: int) -> None:
        """Have a direction hold what came ahead of its place while the reassembler was not asked."""
        for piece in pieces:
            direction.pieces.add(piece)
        direction.since_ns, direction.fast_path = since_ns, False
        self._account(direction)
        direction.held_from = held_from
        self._waiting = dict(sorted(self._waiting.items(), key=lambda item: item[0].held_from))

    def let_go(self, direction: Direction) -> list[Piece]:
        """What a direction holds ahead of its place, which it does not any more."""
        pieces = direction.pieces.take(len(direction.pieces))
        direction.fast_path = True
        self._account(direction)
        return pieces

    def adopt(self, stream: int, key: _Key) -> Direction:
        """Know a connection of this number, of which the direction with this key was seen first."""
        src, src_port, dst, dst_port = key
        back = (dst, dst_port, src, src_port)
        direction = Direction(stream, key, self.counters)
        direction.peer = Direction(stream, back, self.counters)
        direction.peer.peer = direction
        self._directions[back] = direction.peer
        self._directions[key] = direction
        self._connections[stream] = direction
        return direction

    def in_order(self) -> list[Direction]:
        """The connections that are known, by their numbers."""
        return [self._connections[stream] for stream in sorted(self._connections)]

    def direction(self, key: _Key) -> Direction | None:
        """The direction from one address and port to another, where it is known."""
        return self._directions.get(key)

    def concerns_others(self, datagram: Datagram) -> bool:
        """Whether a segment may have connections forgotten besides its own."""
        full = len(self._connections) >= self._max_flows and datagram[1:5] not in self._directions
        return full or datagram.time_ns >= max(self._sweep_at, self._idle_at)

    def feed(self, datagram: Datagram) -> list[Event]:
        """The events that a datagram brings about, in order; none for UDP."""
        _, src, src_port, dst, dst_port, time_ns, frames, _, payload, missing, seq, ack, flags = datagram
        if time_ns >= self._sweep_at:
            return self._sweep(time_ns) + self._segment(datagram)
        direction = self._directions.get((src, src_port, dst, dst_port))
        if (
            direction is None
            or not direction.fast_path
            or missing
            or flags & _CONTROL != ACK
            or (seq - direction.next) & 0xFFFF_FFFF
            or direction.peer.holding
            or time_ns - direction.last_ns >= self._idle_ns
        ):
            return self._segment(datagram)
        direction.peer.acked = ack
        direction.last_ns = time_ns or direction.last_ns
        direction.frames = frames
        if not payload:
            return []
        direction.next += len(payload)
        return [Data._make((direction.flow or direction.the_flow(), payload, time_ns, frames[-1], time_ns))]

    def flush(self, time_ns: int = 0) -> list[Event]:
        """The capture has ended: what is held comes out, and every direction ends.

        Args:
            time_ns: when it ended, if that was later than what was fed here tells.
        """
        latest = (max(d.last_ns, d.peer.last_ns) for d in self._connections.values())
        self._now = max(self._now, time_ns, *latest, 0)
        events = self._settle_waiting()
        for direction in self.in_order():
            self._forget(direction, "capture", events)
        return events

    def pause(self, joined_ns: int = 0) -> list[Event]:
        """Another reader goes on from here that knows the frames from ``joined_ns`` on only.

        Every direction that has brought data begins where that begins, as if enough had come. A hole is
        given up that the other reader can't know, because it begins behind it.
        """
        events: list[Event] = []
        for direction in list(self._waiting):
            moment = Moment(direction.last_ns, direction.frames[-1])
            if direction.state == OPENING:
                _open(direction)
            self._settle(direction, moment, events)
            while direction.pieces and direction.pieces[0].time_ns < joined_ns:
                reason: GapReason = "acknowledged" if self._acknowledged(direction) else "limit"
                direction.skip_gap(reason, moment, events)
            self._settle(direction, moment, events)
        return events

    def stream(self, datagram: Datagram) -> int | None:
        """The number of the connection that a segment belongs to, as things stand."""
        direction = self._directions.get(datagram[1:5])
        return None if direction is None else direction.stream

    def save(self) -> ConnectionCheckpoint | None:
        """The only connection that is known; None when it is not the only one, or something of it is
        held, ends or is doubtful, so that its state would not be all in a few numbers."""
        if len(self._connections) != 1:
            return None
        (first,) = self._connections.values()
        there, back = save_side(first), save_side(first.peer)
        if there is None or back is None:
            return None
        return ConnectionCheckpoint((self._now, self._sweep_at, self._idle_at), (there, back))

    def resume(self, saved: ConnectionCheckpoint) -> None:
        """Go on with a connection as the reassembler that saved it would. For one that was fed nothing."""
        self._now, self._sweep_at, self._idle_at = saved.clock
        key, self._streams = saved.sides[0][:2]
        first = self._connect(key, [])
        restore_side(first, saved.sides[0])
        restore_side(first.peer, saved.sides[1])

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
        if direction is not None:
            direction = self._time_first(direction, time_ns, events)
        if direction is not None and self._starts_anew(direction, datagram):
            self._forget(direction, "reused", events, moment)
            direction = None
        if direction is None:
            direction = self._connect(key, events)
        peer = direction.peer
        direction.seen, direction.frames = True, frames
        direction.last_ns = time_ns or direction.last_ns
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
                oldest.skip_gap("limit", moment, events)
            self._settle(oldest, moment, events)
        return events

    def _time_first(self, direction: Direction, time_ns: int, events: list[Event]) -> Direction | None:
        """What time has decided of a connection before its next segment; None when it is forgotten."""
        self._let_time_decide(direction, events)
        if self._silent(direction, time_ns):
            self._forget(direction, "idle", events)
            return None
        return direction

    def _let_time_decide(self, direction: Direction, events: list[Event]) -> None:
        """What has come due of both directions of a connection, in the order in which it came due."""
        while True:
            sides = (side for side in (direction, direction.peer) if side.holding)
            due, side = min(((self._due(side), side) for side in sides), key=_due_first, default=(0, None))
            if side is None or due > self._now:
                return
            self._settle(side, Moment(side.last_ns, side.frames[-1]), events, due)

    def _due(self, direction: Direction) -> int:
        """When time will decide over a direction that is opening or holds something."""
        if direction.state == OPENING:
            return direction.since_ns + START_NS
        wait = self._hole_ns
        if self._acknowledged(direction):
            wait = min(wait, ACKED_NS)
        return max(direction.pieces[0].time_ns, direction.since_ns) + wait

    def _silent(self, direction: Direction, time_ns: int) -> bool:
        last = max(direction.last_ns, direction.peer.last_ns)
        return last > 0 and time_ns - last >= self._idle_ns  # 0: the file has no times

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
            ranked = sorted(self.in_order(), key=_rank)
            for direction in islice(ranked, max(1, self._max_flows // 16)):
                self._forget(direction, "idle", events)
                self.counters.evicted += 1
        self._streams += 1
        return self.adopt(self._streams - 1, key)

    def _reset(self, direction: Direction, seq: int, moment: Moment, events: list[Event]) -> None:
        if direction.state == OPEN and not 0 <= distance(seq, direction.next) < FAR:
            self.counters.stray_resets += 1
            return
        for side in (direction, direction.peer):
            side.end("rst", moment, events)
            self._account(side)

    def _settle(
        self, direction: Direction, moment: Moment, events: list[Event], now: int | None = None
    ) -> None:
        """Deliver what can be, give up the holes that are to be, and end what has ended."""
        now = self._now if now is None else now
        if direction.state == OPENING:
            late = now - direction.since_ns >= START_NS
            if late or direction.segments >= self.start_segments or self._over(direction):
                _open(direction)
        if direction.state == OPEN:
            if direction.deliver(moment.time_ns, events):
                direction.since_ns = now
            while direction.pieces and (reason := self._lost(direction, now)):
                direction.skip_gap(reason, moment, events)
            if direction.fin_at is not None and direction.fin_at <= direction.next and not direction.pieces:
                direction.end("fin", moment, events)
            still = direction.seen and not direction.pieces and direction.fin_at is None
            direction.fast_path = direction.state == OPEN and still
        self._account(direction)

    def _over(self, direction: Direction) -> bool:
        return direction.pieces.cost > self._per_flow or len(direction.pieces) > self._segments

    def _lost(self, direction: Direction, now: int) -> GapReason | None:
        """Why the first hole is to be given up, if it is."""
        pieces = direction.pieces
        waited = now - max(pieces[0].time_ns, direction.since_ns)
        if self._over(direction):
            return "limit"
        enough = len(pieces) > ACKED_SEGMENTS or pieces.cost > ACKED_BYTES or waited >= ACKED_NS
        if enough and self._acknowledged(direction):
            return "acknowledged"
        return "timeout" if waited >= self._hole_ns else None

    def _acknowledged(self, direction: Direction) -> bool:
        """Whether the receiver has acknowledged what follows the first hole."""
        acked = direction.acked
        return acked is not None and direction.place(acked) >= direction.pieces[0].start

    def _account(self, direction: Direction) -> None:
        cost = direction.pieces.cost
        self._buffered += cost - direction.charged
        direction.charged = cost
        holding = cost > 0 or direction.state == OPENING
        if holding and not direction.holding:
            self._waiting[direction] = None
            direction.held_from = direction.frames[-1]
        elif direction.holding and not holding:
            del self._waiting[direction]
        direction.holding = holding

    def _sweep(self, time_ns: int) -> list[Event]:
        """Let time decide: over openings, holes and silent connections."""
        self._now = time_ns
        self._sweep_at = time_ns + SWEEP_NS
        events = self._settle_waiting()
        if time_ns >= self._idle_at:
            self._idle_at = time_ns + self._idle_ns // 8
            for direction in self.in_order():
                if self._silent(direction, time_ns):
                    self._forget(direction, "idle", events)
        return events

    def _settle_waiting(self) -> list[Event]:
        """Let time decide over all openings and holes, each by the last frame of its direction."""
        events: list[Event] = []
        for direction in list(self._waiting):
            self._let_time_decide(direction, events)
        return events

    def _forget(
        self, direction: Direction, how: How, events: list[Event], moment: Moment | None = None
    ) -> None:
        """End both directions of a connection, in the order of first sight, and know it no more."""
        first = self._connections.pop(direction.stream)
        if self.when_forgotten is not None:
            self.when_forgotten(first)
        for side in (first, first.peer):
            if side.seen:
                side.end(how, moment or Moment(side.last_ns, side.frames[-1]), events)
                self._account(side)
            self._directions.pop(side.key, None)


def _due_first(one: tuple[int, Direction]) -> int:
    return one[0]


def _open(direction: Direction) -> None:
    direction.state, direction.first = OPEN, direction.next


def _rank(direction: Direction) -> tuple[bool, int]:
    """Ended connections are given up first, then those silent for longest."""
    peer = direction.peer
    ended = direction.state == ENDED and (peer.state == ENDED or not peer.seen)
    return not ended, max(direction.last_ns, peer.last_ns)
