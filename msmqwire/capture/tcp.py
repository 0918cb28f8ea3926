"""Reassembly of TCP segments to the byte stream of each direction: RFC 9293, seen by an observer.

Rules where a capture leaves the order open:

- The byte that arrives first wins. Delivered bytes are not stored, so a retransmission is only compared
  with bytes that are still buffered.
- A direction whose SYN was not seen starts at the lowest sequence number of its data so far, once its
  receiver has acknowledged the bytes before that, or after ``START_SEGMENTS`` segments with data or
  ``START_NS``, whichever comes first. So requests and answers begin in the order of the capture.
- One byte that is followed by more from the next byte on was a keep-alive probe, where a start is undecided.
- A gap is given up when the receiver has acknowledged later bytes and ``ACKED_SEGMENTS``, ``ACKED_BYTES`` or
  ``ACKED_NS`` are then exceeded; or, acknowledged or not, when the limits of the reassembler are. Time is
  that of the capture, and counts from the last progress.
- Timeouts are applied before the next segment of a connection is processed. Other connections only
  reveal earlier that time has passed: as long as time does not go back, the events of a connection depend
  only on its own segments and the time of the capture's end, unless a limit shared by all is reached.
- A FIN beyond a gap is buffered like data. An RST counts if its sequence number is the next byte or later;
  it ends both directions at once.
- Segments further than 1 GiB from the next byte are ignored until four in a row are consecutive.
- A SYN with another initial sequence number starts a new connection on the same ports, and so do a SYN, or
data beyond the delivered bytes, after an RST.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter
from typing import Final

from msmqwire.capture.connection_checkpoint import ConnectionCheckpoint, restore_direction, save_direction
from msmqwire.capture.direction import ENDED, FAR, OPEN, OPENING, SEGMENT_MAX, UNKNOWN, Counters, Direction
from msmqwire.capture.events import Data, EndReason, Event, Flow, GapReason, Moment, distance
from msmqwire.capture.eviction import evicted_at_once, eviction_rank
from msmqwire.capture.idle_checks import IdleChecks
from msmqwire.capture.ip import ACK, FIN, RST, SYN, Datagram, FlowKey
from msmqwire.capture.record import NO_TIME
from msmqwire.capture.waiting import WaitingDirections

START_SEGMENTS: Final = 8
START_NS: Final = 250_000_000
ACKED_SEGMENTS: Final = 32
ACKED_BYTES: Final = 256 << 10
ACKED_NS: Final = 1_000_000_000
SWEEP_NS: Final = 250_000_000
"""Nanoseconds of capture time between two sweeps that apply timeouts to all connections. They are at its
multiples, and those that look for idle connections at those of `IDLE_SWEEPS` of an idle time, so that
readers that begin at different frames have the same ones."""
IDLE_SWEEPS: Final = 8
CLOCK_BACK_NS: Final = 60_000_000_000
"""Nanoseconds by which time may go back, as when interfaces are merged, without the clock following."""

BUFFERED_PER_FLOW_MAX: Final = 4 << 20
"""Bytes of memory that one direction may buffer beyond gaps."""
SEGMENTS_PER_FLOW_MAX: Final = 8192
"""Segments that one direction may buffer beyond gaps."""
BUFFERED_TOTAL_MAX: Final = 64 << 20
"""Bytes of memory that all directions together may buffer beyond gaps."""
GAP_NS_MAX: Final = 30_000_000_000
"""Nanoseconds of capture time after which a gap is given up, acknowledged or not."""
IDLE_NS_MAX: Final = 600_000_000_000
"""Nanoseconds of capture time after which an idle connection is forgotten."""
FLOWS_MAX: Final = 1 << 16
"""Connections tracked at a time."""
TIME_MAX: Final = 1 << 62
"""Nanoseconds since 1970 beyond any true time, in the year 2116: the clock does not go by such a time, nor by
one as long before."""

_CONTROL: Final = FIN | SYN | RST | ACK


def next_multiple(time_ns: int, step_ns: int) -> int:
    """Return the first multiple of a step after a time."""
    return (time_ns // step_ns + 1) * step_ns


def clock_of(time_ns: int) -> int:
    """Return the time of a segment by which the clock goes; `NO_TIME` for none."""
    return time_ns if -TIME_MAX < time_ns < TIME_MAX else NO_TIME


class Reassembler:
    """Turns the datagrams of a capture, in capture order, into the events of their TCP connections.

    Memory is bounded by the limits, whatever the input. When a limit is reached, gaps are given up or the
    connections idle for longest are ended; nothing that was captured is dropped.

    Args:
        max_buffered_per_flow: bytes of memory that one direction may buffer beyond gaps.
        max_buffered_total: the same for all directions together.
        max_segments_per_flow: segments that one direction may buffer beyond gaps.
        gap_ns: nanoseconds after which a gap is given up.
        idle_ns: nanoseconds after which an idle connection is forgotten; checked every eighth of it.
        max_flows: the most connections that are tracked at a time.

    Attributes:
        counters: counts of bytes and segments not delivered as captured.
        start_segments: segments with data after which a direction whose SYN was not seen starts.
    """

    def __init__(
        self,
        *,
        max_buffered_per_flow: int = BUFFERED_PER_FLOW_MAX,
        max_buffered_total: int = BUFFERED_TOTAL_MAX,
        max_segments_per_flow: int = SEGMENTS_PER_FLOW_MAX,
        gap_ns: int = GAP_NS_MAX,
        idle_ns: int = IDLE_NS_MAX,
        max_flows: int = FLOWS_MAX,
    ) -> None:
        self.counters = Counters()
        self._max_buffered_per_flow, self._max_buffered_total = max_buffered_per_flow, max_buffered_total
        self._max_segments_per_flow, self._gap_ns = max_segments_per_flow, gap_ns
        self._idle_ns, self._max_flows = idle_ns, max(1, max_flows)
        self._directions: dict[FlowKey, Direction] = {}
        self._connections: dict[int, Direction] = {}  # by stream, the direction first seen
        self._waiting = WaitingDirections()  # those with `waiting` set
        self._idle_checks = IdleChecks(idle_ns)
        self._one_sided: dict[int, None] = {}  # streams forgotten since the last sweep, the oldest first
        self._buffered = 0
        self.start_segments = START_SEGMENTS
        self._streams = 0
        self._now = self._sweep_at = self._idle_at = 0

    @property
    def buffered(self) -> int:
        """The approximate number of bytes of memory buffered beyond gaps."""
        return self._buffered

    @property
    def connections(self) -> int:
        """The number of connections tracked, including ended ones that may still retransmit."""
        return len(self._connections)

    def _add_connection(self, stream: int, key: FlowKey) -> Direction:
        """Add a connection with this number; return its direction with this key, as the one first seen."""
        src, src_port, dst, dst_port, network = key
        reverse = (dst, dst_port, src, src_port, network)
        direction = Direction(stream, key, self.counters)
        direction.peer = Direction(stream, reverse, self.counters)
        direction.peer.peer = direction
        self._directions[reverse] = direction.peer
        self._directions[key] = direction
        self._connections[stream] = direction
        self._idle_checks.add(stream, self._connections, len(self._connections))
        return direction

    def is_one_sided(self, flow: Flow) -> bool:
        """Whether no segment of the other direction was seen so far, or until the connection was forgotten.

        Of one that was forgotten only while its last events are looked at, before the next are asked for.
        """
        other = self.other(flow)
        return flow.stream in self._one_sided if other is None else not other.seen

    def ahead(self, flow: Flow) -> int | None:
        """Return how many bytes of the other direction a sender has acknowledged that are not delivered yet.

        Below 0 if it has not acknowledged all that are delivered; None if that is unknown.
        """
        other = self.other(flow)
        if other is None or other.acked is None or other.state == UNKNOWN:
            return None
        return distance(other.acked, other.next)

    def other(self, flow: Flow) -> Direction | None:
        """Return the other direction; None if the connection was forgotten."""
        other = self._directions.get(flow.reverse_key)
        return None if other is None or other.stream != flow.stream else other

    @property
    def max_connections(self) -> int:
        """The most connections that are tracked at a time."""
        return self._max_flows

    def _evict(self, directions: Iterable[Direction]) -> list[Event]:
        """End connections, given by their directions first seen, to make room for newer ones."""
        events: list[Event] = []
        for direction in directions:
            self._forget(direction, "idle", events)
            self.counters.evicted += 1
        return events

    def feed(self, datagram: Datagram) -> list[Event]:
        """Return the events that a datagram causes, in order; none for UDP."""
        (
            _, src, src_port, dst, dst_port, time_ns, frames, _, payload, missing, seq, ack, flags, network
        ) = datagram  # fmt: skip
        if time_ns >= self._sweep_at and time_ns < TIME_MAX:
            return self._sweep(time_ns) + self._segment(datagram)
        direction = self._directions.get((src, src_port, dst, dst_port, network))
        if (
            direction is None
            or not direction.fast_path
            or missing
            or flags & _CONTROL != ACK
            or (seq - direction.next) & 0xFFFF_FFFF
            or direction.peer.waiting
            or time_ns - direction.last_ns >= self._idle_ns
            or not -TIME_MAX < time_ns < TIME_MAX
            or len(payload) > SEGMENT_MAX
        ):
            return self._segment(datagram)
        if time_ns and not self._now - CLOCK_BACK_NS < time_ns < self._now:
            self._set_clock(time_ns)
        direction.peer.acked = ack
        direction.last_ns = time_ns or direction.last_ns
        direction.frames = frames[-1:]
        if not payload:
            return []
        direction.next += len(payload)
        return [
            Data._make((direction.flow or direction.ensure_flow(), payload, time_ns, frames[-1], time_ns))
        ]

    def flush(self, time_ns: int = 0) -> list[Event]:
        """End the capture: deliver the buffered bytes, and end every direction.

        Args:
            time_ns: when the capture ended, if later than the last segment fed.
        """
        latest_ns = max((max(d.last_ns, d.peer.last_ns) for d in self._connections.values()), default=0)
        self._now = max(self._now, time_ns, latest_ns)
        events = self._expire_all_gaps()
        for stream in sorted(self._connections):
            self._forget(self._connections[stream], "capture", events)
        return events

    def pause(self, successor_ns: int = 0) -> list[Event]:
        """Settle all that only this reader can, before a successor that reads on from ``successor_ns``.

        Every direction that is opening starts with its data so far, as if it were enough. A gap is given up
        if the segment beyond it was captured before ``successor_ns``, as the successor can't know of it, and
        so if that segment has no time; none is if that of the successor is unknown, 0.
        """
        events: list[Event] = []
        for direction in self._waiting.by_age():
            moment = Moment(direction.last_ns, direction.frames[-1])
            if direction.state == OPENING:
                direction.open()
            self._settle(direction, moment, events)
            while successor_ns and direction.buffer and direction.buffer[0].time_ns < successor_ns:
                reason: GapReason = "acknowledged" if direction.is_gap_acknowledged() else "limit"
                direction.skip_gap(reason, moment, events)
            self._settle(direction, moment, events)
        return events

    def start_openings(self) -> list[Event]:
        """Start every direction that is opening: wall time has passed, and no frame has come to say so."""
        events: list[Event] = []
        for direction in self._waiting.by_age():
            if direction.state == OPENING:
                direction.open()
                self._settle(direction, Moment(direction.last_ns, direction.frames[-1]), events)
        return events

    def stream(self, datagram: Datagram) -> int | None:
        """Return the number of the connection that a segment belongs to at present; None if untracked."""
        direction = self._directions.get(datagram.key)
        return None if direction is None else direction.stream

    def save(self) -> ConnectionCheckpoint | None:
        """Return a checkpoint of the only connection.

        None unless exactly one is tracked, with nothing buffered, not ending, and with a certain position.
        """
        if len(self._connections) != 1:
            return None
        (first,) = self._connections.values()
        forward, reverse = save_direction(first), save_direction(first.peer)
        if forward is None or reverse is None:
            return None
        return ConnectionCheckpoint((self._now, self._sweep_at, self._idle_at), (forward, reverse))

    def resume(self, checkpoint: ConnectionCheckpoint) -> None:
        """Resume a connection from a checkpoint. Only before anything is fed."""
        self._now, self._sweep_at, self._idle_at = checkpoint.clock
        key, self._streams = checkpoint.directions[0][:2]
        first = self._connect(key, [])
        restore_direction(first, checkpoint.directions[0])
        restore_direction(first.peer, checkpoint.directions[1])

    def _segment(self, datagram: Datagram) -> list[Event]:
        """Process a segment by all the rules."""
        transport, _, _, _, _, captured_ns, frames, _, payload, _, seq, ack, flags, _ = datagram
        if transport != "tcp":
            return []
        events: list[Event] = []
        time_ns = clock_of(captured_ns)
        has_time = time_ns not in (0, NO_TIME)
        if has_time and not self._now - CLOCK_BACK_NS < time_ns < self._now:
            self._set_clock(time_ns)
        key, moment = datagram.key, Moment(captured_ns, frames[-1])
        direction = self._directions.get(key)
        if direction is not None:
            direction = self._apply_timeouts(direction, time_ns, events)
        if direction is not None and direction.is_left_by(datagram):
            self._forget(direction, "reused", events, moment)
            direction = None
        if direction is None:
            direction = self._connect(key, events)
        peer = direction.peer
        direction.seen, direction.frames = True, frames[-1:]
        direction.last_ns = time_ns if has_time else direction.last_ns
        if flags & ACK:
            peer.acked = ack
            if peer.state == OPENING:
                self._settle(peer, moment, events)
        if flags & RST:
            self._reset(direction, seq, moment, events)
            return events
        if flags & SYN:
            if direction.isn is None and direction.state != ENDED and direction.accepts_isn(seq):
                direction.set_isn(seq)
            if flags & ACK and peer.isn is None and peer.state in (UNKNOWN, OPENING):
                origin = (ack - 1) & 0xFFFF_FFFF
                if peer.accepts_isn(origin):
                    peer.set_isn(origin)
            seq = (seq + 1) & 0xFFFF_FFFF
        if direction.state == ENDED:
            self.counters.late_segments += bool(payload) and distance(seq + len(payload), direction.next) > 0
        else:
            direction.receive(seq, datagram, self._now, events)
        self._settle(direction, moment, events)
        self._settle(peer, moment, events)
        while self._buffered > self._max_buffered_total:
            oldest = self._waiting.oldest()
            if oldest.state == OPENING:
                oldest.open()
            if oldest.buffer:
                oldest.skip_gap("limit", moment, events)
            self._settle(oldest, moment, events)
        return events

    def _set_clock(self, time_ns: int) -> None:
        """Set the clock to the time of a segment: the latest one, or far back."""
        self._now = time_ns
        self._sweep_at = min(self._sweep_at, next_multiple(time_ns, SWEEP_NS))

    def _apply_timeouts(self, direction: Direction, time_ns: int, events: list[Event]) -> Direction | None:
        """Apply the timeouts of a connection before its next segment; return None if it is forgotten."""
        self._expire_gaps(direction, events)
        if self._is_idle(direction, time_ns):
            self._forget(direction, "idle", events)
            return None
        return direction

    def _expire_gaps(self, direction: Direction, events: list[Event]) -> None:
        """Start the directions and give up the gaps of a connection that are due.

        They are in the order of due time, then that in which the directions were first seen, so that the
        event that reveals the passing of time makes no difference.
        """
        first = self._connections[direction.stream]
        while True:
            sides = (side for side in (first, first.peer) if side.waiting)
            due, side = min(((self._due(side), side) for side in sides), key=itemgetter(0), default=(0, None))
            if side is None or due > self._now:
                return
            self._settle(side, Moment(side.last_ns, side.frames[-1]), events, due)

    def _due(self, direction: Direction) -> int:
        """Return the time at which a waiting direction starts or gives up its first gap."""
        if direction.state == OPENING:
            return direction.since_ns + START_NS
        wait = self._gap_ns
        if direction.is_gap_acknowledged():
            wait = min(wait, ACKED_NS)
        return max(clock_of(direction.buffer[0].time_ns), direction.since_ns) + wait

    def _is_idle(self, direction: Direction, time_ns: int) -> bool:
        last = max(direction.last_ns, direction.peer.last_ns)
        return last > 0 and time_ns - last >= self._idle_ns  # 0: the capture has no timestamps

    def _connect(self, key: FlowKey, events: list[Event]) -> Direction:
        if len(self._connections) >= self._max_flows:
            ranked = sorted(self._connections.values(), key=eviction_rank)
            events += self._evict(ranked[: evicted_at_once(self._max_flows)])
        self._streams += 1
        return self._add_connection(self._streams - 1, key)

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
        """Deliver the bytes in order, give up gaps that are due, and end the direction after its FIN."""
        now = self._now if now is None else now
        if direction.state == OPENING:
            enough = direction.opening_segments >= self.start_segments or now - direction.since_ns >= START_NS
            if enough or direction.is_start_acknowledged() or self._over_limit(direction):
                direction.open()
        if direction.state == OPEN:
            if direction.deliver(moment.time_ns, events):
                direction.since_ns = now
            while direction.buffer and (reason := self._gap_reason(direction, now)):
                direction.skip_gap(reason, moment, events)
            if direction.fin_seq is not None and direction.fin_seq <= direction.next and not direction.buffer:
                direction.end("fin", moment, events)
            simple = direction.seen and not direction.buffer and direction.fin_seq is None
            direction.fast_path = direction.state == OPEN and simple
        self._account(direction)

    def _over_limit(self, direction: Direction) -> bool:
        return (
            direction.buffer.cost > self._max_buffered_per_flow
            or len(direction.buffer) > self._max_segments_per_flow
        )

    def _gap_reason(self, direction: Direction, now: int) -> GapReason | None:
        """Return the reason to give up the first gap, if any."""
        buffer = direction.buffer
        waited = now - max(clock_of(buffer[0].time_ns), direction.since_ns)
        if self._over_limit(direction):
            return "limit"
        enough = len(buffer) > ACKED_SEGMENTS or buffer.cost > ACKED_BYTES or waited >= ACKED_NS
        if enough and direction.is_gap_acknowledged():
            return "acknowledged"
        return "timeout" if waited >= self._gap_ns else None

    def _account(self, direction: Direction) -> None:
        cost = direction.buffer.cost
        self._buffered += cost - direction.accounted
        direction.accounted = cost
        waiting = cost > 0 or direction.state == OPENING
        if waiting and not direction.waiting:
            direction.waiting_frame = direction.frames[-1]
            self._waiting.add(direction, direction.waiting_frame)
        elif direction.waiting and not waiting:
            self._waiting.remove(direction)
        direction.waiting = waiting
        if waiting:
            self._waiting.check_at(direction, self._due(direction))

    def _sweep(self, time_ns: int) -> list[Event]:
        """Apply all timeouts: of openings, gaps and idle connections."""
        self._now = time_ns
        self._sweep_at = next_multiple(time_ns, SWEEP_NS)
        self._one_sided.clear()
        events = self._expire_all_gaps()
        if time_ns >= self._idle_at:
            self._idle_at = next_multiple(time_ns, max(1, self._idle_ns // IDLE_SWEEPS))
            for stream in self._idle_checks.take_idle(time_ns, self._last_ns):
                self._forget(self._connections[stream], "idle", events)
        return events

    def _last_ns(self, stream: int) -> int | None:
        direction = self._connections.get(stream)
        return None if direction is None else max(direction.last_ns, direction.peer.last_ns)

    def _expire_all_gaps(self) -> list[Event]:
        """Apply the timeouts of all openings and gaps, each at the last frame of its direction."""
        events: list[Event] = []
        due: list[tuple[tuple[int, int], Direction]] = []
        for direction in self._waiting.take_due(self._now):
            at = self._due(direction)
            if at > self._now:
                self._waiting.check_at(direction, at)
            else:
                sides = (side for side in (direction, direction.peer) if side.waiting)
                due.append((min(map(self._waiting.age, sides)), direction))
        for _, direction in sorted(due, key=itemgetter(0)):
            self._expire_gaps(direction, events)
        return events

    def _forget(
        self, direction: Direction, reason: EndReason, events: list[Event], moment: Moment | None = None
    ) -> None:
        """End both directions of a connection, the one first seen first, and stop tracking it."""
        first = self._connections.pop(direction.stream)
        if not first.peer.seen:
            self._one_sided[first.stream] = None
            if len(self._one_sided) > self._max_flows:
                del self._one_sided[next(iter(self._one_sided))]
        for side in (first, first.peer):
            if side.seen:
                side.end(reason, moment or Moment(side.last_ns, side.frames[-1]), events)
                self._account(side)
            self._directions.pop(side.key, None)
