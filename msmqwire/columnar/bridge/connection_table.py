"""The connections of the compiled scan, and how it shares them with the generic reader."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from msmqwire.capture import Data, Datagram
from msmqwire.capture.connection_checkpoint import ConnectionCheckpoint
from msmqwire.capture.direction import Direction
from msmqwire.capture.eviction import evicted_at_once
from msmqwire.capture.record import NO_TIME
from msmqwire.capture.segment_buffer import SEGMENT_COST
from msmqwire.capture.tcp import ACKED_NS, ACKED_SEGMENTS, BUFFERED_TOTAL_MAX, CLOCK_BACK_NS
from msmqwire.columnar.bridge.bulk_steps import BulkSteps, Items, RowSink
from msmqwire.columnar.bridge.encapsulations import Encapsulations
from msmqwire.columnar.bridge.eviction import first_to_evict, rank
from msmqwire.columnar.bridge.finder_states import acquire_finder
from msmqwire.columnar.bridge.flow_keys import ends_of
from msmqwire.columnar.bridge.flow_numbers import FlowNumbers
from msmqwire.columnar.bridge.flow_rows import describe_flow, describe_new, snapshot_of, start_of
from msmqwire.columnar.bridge.pending_segments import PendingSegments
from msmqwire.columnar.compiled import flow_table
from msmqwire.columnar.compiled.delivery import deliver
from msmqwire.columnar.compiled.flow_table import (
    ACKED,
    GAP_DUE_NS,
    GAP_NS,
    IS_REGISTERED,
    KEY_FIELDS,
    LAST_NS,
    MODE,
    MSMQ,
    OPENING,
    OUT_OF_ORDER,
    OUT_OF_ORDER_COST,
    OUT_OF_ORDER_FIRST,
    OUT_OF_ORDER_FRAME,
    OUT_OF_ORDER_LAST,
    PACKET_BYTES,
    PACKET_SEGMENTS,
    RUN_SEGMENTS,
    STREAM,
    TRACKED,
    UNRECOGNISED,
    UNSEEN,
)
from msmqwire.columnar.compiled.gaps import any_gap_due
from msmqwire.columnar.compiled.midstream import any_opening_due, unlist_opening
from msmqwire.columnar.compiled.scan_arrays import FlowArrays
from msmqwire.columnar.compiled.segments import SEGMENT_MAX, apply_timeouts
from msmqwire.columnar.compiled.state import (
    ARENA,
    ARENA_END,
    CONNECTIONS,
    CONNECTIONS_LIMIT,
    DEADLINE,
    EVENT_FRAME,
    EVENT_NS,
    FIRST_OPENING,
    FRAMES_BEFORE,
    FREE_NUMBERS,
    HELD,
    IDLE_AT,
    NEVER,
    NEW_CONNECTIONS,
    NOW,
    OUT_OF_ORDER_COST_TOTAL,
    ROWS,
    START_SEGMENTS,
    STREAMS,
    SWEEP_AT,
    TRACKER_BUFFERED,
    WAITING,
)
from msmqwire.columnar.compiled.stop_codes import CONTINUE, StopCode
from msmqwire.dissection import Item, Tracker
from msmqwire.dissection.handover import (
    DirectionSnapshot,
    add_connection,
    give_back,
    take_connection,
    take_over,
)
from msmqwire.dissection.tracker import HELD_MAX

_BUFFERED_MARGIN: Final = 1 << 16
"""Bytes, generously, that a segment may cost besides its payload."""
_MOVED_PER_SEGMENT: Final = 8192
"""Bytes of an incomplete packet that are moved to the tracker for each segment that it then takes."""
_MOVED_WITH_SEGMENT: Final = 4
"""Segments beyond a gap that are moved to the tracker for each segment that it then takes."""
TIME_MAX: Final = 1 << 62
"""Nanoseconds since 1970 beyond any true time, in the year 2116: the scan does not take such a segment."""


class ConnectionTable(BulkSteps):
    """The flows that the scan follows, in arrays, and the tracker that has the others.

    The scan *acquires* a direction from the tracker while it is simple, and *releases* it when anything else
    arrives. The tracker has not heard of a connection that the scan has seen begin until it is *registered*.

    Attributes:
        pending: the segments that they have buffered.
    """

    def __init__(self, tracker: Tracker, state: Any, encapsulations: Encapsulations) -> None:
        self._state, self._encapsulations = state, encapsulations
        self._flows = FlowNumbers(state)
        self.pending = PendingSegments(state, encapsulations)
        self.restart(tracker)

    @property
    def flow_arrays(self) -> FlowArrays:
        """The flows of the scan."""
        return self._flows.arrays

    def restart(self, tracker: Tracker) -> None:
        """Forget all connections and continue with a new tracker."""
        self._flows.restart()
        self.pending.clear()
        self._tracker = tracker
        self._beyond_time = False  # a time has exceeded TIME_MAX: the tracker has all connections
        self._stays: dict[Direction, int] = {}  # for how many segments directions stay with the tracker
        self._followed: set[int] = set()  # connections of which the scan may have a direction
        self._state[OUT_OF_ORDER_COST_TOTAL], self._state[DEADLINE] = 0, NEVER
        self.listen()
        self.import_clock()

    def listen(self) -> None:
        """Be told of the connections that the tracker forgets, in place of any other table."""
        self._tracker.reassembler.on_forget = self._forget

    # -- a segment for the tracker ----------------------------------------------------------------

    def feed(self, datagram: Datagram, sink: RowSink) -> Items:
        """Pass a datagram to the tracker; yield its items. The directions it concerns are released first.

        Bytes that turn out to be in order are delivered to the sink instead, which has their rows when the
        next item is requested.
        """
        tracker, key = self._tracker, datagram.key
        self._export_clock()
        if abs(datagram.time_ns) >= TIME_MAX and datagram.time_ns != NO_TIME and not self._beyond_time:
            self.release_all()
            self._beyond_time, self._state[FREE_NUMBERS] = True, 0
        if datagram.transport != "tcp":
            yield from tracker.feed(datagram)
            return
        reassembler = tracker.reassembler
        self._register_connection_of(datagram)
        size = len(datagram.payload) + _BUFFERED_MARGIN
        buffered = self._state[OUT_OF_ORDER_COST_TOTAL] + reassembler.buffered
        if self._must_evict(datagram):
            yield from self._evict(datagram.time_ns, sink)
        frees_memory = tracker.held + size > HELD_MAX
        if reassembler.affects_other_connections(datagram):
            self.release_all()
        elif (datagram.payload or datagram.missing) and buffered + size > BUFFERED_TOTAL_MAX:
            self.release_gaps()
        else:
            yield from self._expire_waiting(datagram.time_ns, sink)
        direction = reassembler.direction(key)
        if direction is not None:
            for released in (direction, direction.peer):
                self._release(released)
                if stays := self._stays.pop(released, 0):
                    self._stays[released] = stays - 1
        events = reassembler.feed(datagram)
        direction = reassembler.direction(key)
        sides = {} if direction is None else {side.key: side for side in (direction, direction.peer)}
        is_new = direction is not None and direction not in self._flows.by_direction
        if direction is not None and is_new and not self._beyond_time:
            self._flows.add(direction)  # so that the scan does not take it for a new one
        for event in events:
            side = sides.get(event.flow.key)
            if side is not None and side.stream == event.flow.stream:
                if isinstance(event, Data) and self._deliver(side, event, sink):
                    continue
                self._release(side)
            yield from self._items_of([event], sink)
        if frees_memory and tracker.held <= HELD_MAX // 2 + size:
            self._stays.clear()  # it has been freed: what is moved back is little beside what was read
        if direction is not None and not (is_new and self._unregister(direction)):
            self._acquire_both(direction)
        self.import_clock()

    def _must_evict(self, datagram: Datagram) -> bool:
        """Whether others must make room for the connection that a segment begins, not all in the tracker."""
        count = len(self._flows.unregistered)
        is_full = self._tracker.reassembler.connections + count >= self._tracker.reassembler.max_connections
        return is_full and count > 0 and self._tracker.reassembler.direction(datagram.key) is None

    def _evict(self, time_ns: int, sink: RowSink) -> Items:
        """Evict connections before a segment of this time; yield the items."""
        flows, reassembler = self._flows, self._tracker.reassembler
        if time_ns >= reassembler.clock[2]:
            self._register_all()  # idle ones are forgotten first, so that perhaps none has to be evicted
            return
        yield from self._expire_waiting(time_ns, sink)
        yield from self._items_of(reassembler.sweep_if_due(time_ns), sink)
        registered = reassembler.first_directions()
        numbers = np.array(sorted(flows.unregistered), np.int64)
        chosen = first_to_evict(
            self.flow_arrays.flows, numbers, [rank(direction, self._row) for direction in registered],
            evicted_at_once(reassembler.max_connections),
        )  # fmt: skip
        before = reassembler.counters.evicted
        yield from self._end(
            chosen, numbers, registered, lambda direction: reassembler.evict([direction]), sink
        )
        reassembler.counters.evicted = before + chosen.size

    def _row(self, direction: Direction) -> Any | None:
        """Return the flow of a direction that the scan has; None for another."""
        number = self._flows.by_direction.get(direction)
        acquired = number is not None and self.flow_arrays.flows[number, MODE] != TRACKED
        return self.flow_arrays.flows[number] if acquired else None

    def _deliver(self, direction: Direction, event: Data, sink: RowSink) -> bool:
        """Deliver bytes to the sink; return False if the tracker must take them."""
        state, size = self._state, len(event.data)
        if size > SEGMENT_MAX:
            return False
        self._acquire(direction)
        start, code = int(state[ARENA]), self._encapsulations.code(event.frame)
        if (
            not self._is_acquired(direction)
            or self._encapsulations.frame(code) <= self._encapsulations.frame(int(state[FRAMES_BEFORE]))
            or start + size > state[ARENA_END]
        ):
            return False
        number = self._flows.by_direction[direction]
        self.reserve(size)
        arrays = sink.scan_arrays()
        arrays.header[:KEY_FIELDS] = self.flow_arrays.keys[number]
        arrays.memory[start : start + size] = np.frombuffer(event.data, np.uint8)
        state[ARENA] += size
        state[EVENT_NS], state[EVENT_FRAME] = event.time_ns, code - int(state[FRAMES_BEFORE])
        state[HELD], rows = self._tracker.held, state[ROWS]
        stop_code = deliver(arrays, self.flow_arrays.flows[number], start, start + size)
        self._tracker.held = int(state[HELD])
        if stop_code != CONTINUE and state[ROWS] == rows:
            state[ARENA] = start
        return bool(stop_code == CONTINUE)

    def _is_acquired(self, direction: Direction) -> bool:
        return self._row(direction) is not None

    def flush(self, sink: RowSink, time_ns: int = 0) -> Items:
        """Yield the items at the end of the capture, at this time or at that of the last segment."""
        self._export_clock()
        self._release_registered()
        reassembler, flows = self._tracker.reassembler, self.flow_arrays.flows
        numbers = np.array(sorted(self._flows.unregistered), np.int64)
        latest_ns = int(flows[[numbers, numbers + 1], LAST_NS].max(initial=0))
        last_ns = max(time_ns, latest_ns, reassembler.latest_ns)
        now = max(last_ns, int(self._state[NOW]))
        yield from self._expire(now, sink)
        numbers = np.array(sorted(self._flows.unregistered), np.int64)
        yield from self._items_of(reassembler.expire_at_end(last_ns), sink)
        registered = reassembler.first_directions()
        streams = np.array([direction.stream for direction in registered], np.int64)
        order = np.argsort(np.concatenate([flows[numbers, STREAM], streams]))
        yield from self._end(order, numbers, registered, reassembler.end_with_capture, sink)
        yield from self._tracker.flush(last_ns)

    def save(self) -> ConnectionCheckpoint | None:
        """Return the state of the only connection, or None: `Tracker.save`."""
        self._export_clock()
        self.release_all()
        return self._tracker.save()

    def acquire_all(self) -> None:
        """Acquire all connections of a tracker that has been used before."""
        for direction in self._tracker.reassembler.first_directions():
            self._flows.add(direction)
            self._acquire_both(direction)
        self.import_clock()

    def pause(self, joined_ns: int = 0) -> list[Item]:
        """Return the items before another reader continues: `Tracker.pause`."""
        self._export_clock()
        self.release_all()
        items = list(self._tracker.pause(joined_ns))
        self.import_clock()
        return items

    def release_all(self) -> None:
        """Release every direction."""
        self._register_all()
        self._release_registered()

    def _release_registered(self) -> None:
        followed, self._followed = self._followed, set()
        for number in sorted(followed):
            self._release(self._flows.directions[number])
            self._release(self._flows.directions[number + 1])

    def _expire_waiting(self, time_ns: int, sink: RowSink) -> Items:
        """Start the flows that are due before a segment of this time, or release all that may be due."""
        state = self._state
        if state[FIRST_OPENING] >= 0 and 0 < time_ns <= state[NOW] - CLOCK_BACK_NS:
            self.release_gaps()  # they are no longer in the order in which they are due
        elif time_ns >= state[SWEEP_AT]:
            yield from self._expire(time_ns, sink)

    def _expire(self, time_ns: int, sink: RowSink) -> Items:
        """Start the flows and give up the gaps that are due at this time, or leave that to the tracker."""
        while self._any_due(time_ns, sink):
            stop_code = int(StopCode.GENERIC_RECORD)
            if not self._tracker.reassembler.waiting:
                self._state[HELD] = self._tracker.held
                stop_code = apply_timeouts(sink.scan_arrays(), self.flow_arrays, sink.tcp_ports, time_ns)
                self._tracker.held = int(self._state[HELD])
            if stop_code == StopCode.GENERIC_RECORD:
                self.release_gaps()
            if stop_code in (CONTINUE, StopCode.GENERIC_RECORD):
                return
            yield StopCode(stop_code)

    def _any_due(self, time_ns: int, sink: RowSink) -> bool:
        """Whether a flow starts or gives up a gap at this time."""
        if any_opening_due(self._state, self.flow_arrays.flows, time_ns):
            return True
        is_past = time_ns >= self._state[DEADLINE]
        return is_past and bool(any_gap_due(sink.scan_arrays(), self.flow_arrays, time_ns))

    def release_gaps(self) -> None:
        """Release every direction with segments beyond a gap or that is opening, and its peer.

        So the scan does not follow the peer of any direction that waits in the tracker, which has to know
        what that acknowledges.
        """
        self._export_clock()
        for number in self._flows.take_gaps():
            self._release_both(number)
        while self._state[FIRST_OPENING] >= 0:
            self._release_both(int(self._state[FIRST_OPENING]))
        self._state[DEADLINE] = NEVER
        self.import_clock()

    def _release_both(self, number: int) -> None:
        """Release both directions of the connection of a flow, which is registered before if need be."""
        if number & -2 in self._flows.unregistered:
            self._register(number & -2)
        self._release(self._flows.directions[number])
        self._release(self._flows.directions[number ^ 1])

    def _export_clock(self) -> None:
        """Update the clock and the counters of the tracker from the scan."""
        count = int(self._state[NEW_CONNECTIONS])
        self._flows.unregistered.update(map(int, self.flow_arrays.new_connections[:count]))
        self._state[NEW_CONNECTIONS] = 0
        self._tracker.reassembler.streams = int(self._state[STREAMS])
        self._tracker.held = int(self._state[HELD])
        if self._beyond_time:
            return
        self._tracker.reassembler.set_clock(int(self._state[NOW]), int(self._state[SWEEP_AT]))

    def import_clock(self) -> None:
        """Update the clock and the counters of the scan from the tracker."""
        state, reassembler = self._state, self._tracker.reassembler
        state[HELD] = self._tracker.held
        state[NOW], state[SWEEP_AT], state[IDLE_AT] = (max(-NEVER, min(t, NEVER)) for t in reassembler.clock)
        state[STREAMS] = reassembler.streams
        state[CONNECTIONS] = reassembler.connections + len(self._flows.unregistered)
        state[CONNECTIONS_LIMIT] = reassembler.max_connections
        state[START_SEGMENTS] = reassembler.start_segments
        state[WAITING], state[TRACKER_BUFFERED] = reassembler.waiting, reassembler.buffered

    # -- directions from and to the tracker ---------------------------------------------------------

    def _release(self, direction: Direction) -> None:
        if not self._is_acquired(direction):
            self._export_acked(direction)
            return
        flow = self.flow_arrays.flows[self._flows.by_direction[direction]]
        if flow[MODE] == UNSEEN:
            flow[MODE] = TRACKED
            self._export_acked(direction)
            return
        if flow[MODE] == OPENING:
            unlist_opening(self._state, self.flow_arrays.flows, self._flows.by_direction[direction])
        snapshot = snapshot_of(flow, self.pending)
        flow[ACKED] = -1
        moved = int(flow[PACKET_BYTES] + SEGMENT_COST * (flow[PACKET_SEGMENTS] + flow[RUN_SEGMENTS]))
        if moved >= _MOVED_PER_SEGMENT or flow[OUT_OF_ORDER] > ACKED_SEGMENTS:
            stays = moved // _MOVED_PER_SEGMENT + int(flow[OUT_OF_ORDER]) // _MOVED_WITH_SEGMENT
            self._stays[direction] = 1 + stays
        self._state[OUT_OF_ORDER_COST_TOTAL] -= flow[OUT_OF_ORDER_COST]
        flow[OUT_OF_ORDER] = flow[OUT_OF_ORDER_COST] = 0
        flow[MODE] = TRACKED
        flow[PACKET_BYTES] = flow[PACKET_SEGMENTS] = flow[RUN_SEGMENTS] = 0
        give_back(self._tracker, direction, snapshot)

    def _export_acked(self, direction: Direction) -> None:
        """Update a direction of the tracker with what its peer, which the scan follows, acknowledged."""
        number = self._flows.by_direction.get(direction)
        if number is None:
            return
        flow = self.flow_arrays.flows[number]
        if flow[ACKED] >= 0:
            direction.acked = int(flow[ACKED])
            flow[ACKED] = -1

    def _acquire_both(self, direction: Direction) -> None:
        """Acquire a direction and its peer, neither if one has to wait in the tracker."""
        sides = direction, direction.peer
        for side in sides:
            self._acquire(side)
        for side in sides:
            if side.peer.waiting:  # the tracker could not pass on the peer
                self._release(side)

    def _acquire(self, direction: Direction) -> None:
        if self._beyond_time or self._is_acquired(direction) or self._stays.get(direction):
            return
        before = self._encapsulations.frame(int(self._state[FRAMES_BEFORE]))
        if direction.waiting and direction.waiting_frame <= before:
            return  # the scan knows the frames of one file
        snapshot = take_over(self._tracker, direction)
        if snapshot is None:
            return
        number = self._flows.by_direction[direction]
        self._followed.add(number & -2)
        flow = self.flow_arrays.flows[number]
        describe_flow(flow, direction.stream, snapshot, self._encapsulations)
        flow[MODE], flow[IS_REGISTERED] = MSMQ if snapshot.known else UNRECOGNISED, 1
        acquire_finder(self.flow_arrays.flows, number, self.pending, snapshot.finder)
        self._acquire_segments(number, snapshot)
        if snapshot.out_of_order:
            flow[GAP_DUE_NS] = max(snapshot.out_of_order[0].time_ns, snapshot.since_ns) + ACKED_NS
            self._state[DEADLINE] = min(self._state[DEADLINE], flow[GAP_DUE_NS])
            flow_table.list_gap(self._state, self.flow_arrays, number)

    def _acquire_segments(self, number: int, snapshot: DirectionSnapshot) -> None:
        """Buffer the segments that a direction has out of order."""
        flow = self.flow_arrays.flows[number]
        for start, _, data, time_ns, frame in snapshot.out_of_order:
            self.reserve(len(data))
            self.pending.append(
                flow, (OUT_OF_ORDER_FIRST, OUT_OF_ORDER_LAST, OUT_OF_ORDER), data, frame, time_ns, start
            )
            flow[OUT_OF_ORDER_COST] += len(data) + SEGMENT_COST
        flow[OUT_OF_ORDER_FRAME] = self._encapsulations.code(snapshot.out_of_order_frame)
        flow[GAP_NS] = snapshot.since_ns
        self._state[OUT_OF_ORDER_COST_TOTAL] += flow[OUT_OF_ORDER_COST]

    # -- numbers ------------------------------------------------------------------------------------

    def _register_connection_of(self, datagram: Datagram) -> None:
        """Register the connection of a segment, if the scan has seen it begin."""
        if self._flows.unregistered and self._tracker.reassembler.direction(datagram.key) is None:
            number = self._flows.find(datagram.key) & -2
            if number in self._flows.unregistered:
                self._register(number)

    def _register_all(self) -> None:
        for number in sorted(self._flows.unregistered):
            self._register(number)

    def _register(self, number: int) -> None:
        """Inform the tracker of a connection that the scan has seen begin."""
        self._flows.unregistered.discard(number)
        self._followed.add(number)
        flows = self.flow_arrays.flows
        client, server = (start_of(flow, self._encapsulations) for flow in flows[number : number + 2])
        key = ends_of(self.flow_arrays.keys[number])
        direction = add_connection(self._tracker, int(flows[number, STREAM]), key, (client, server))
        self._flows.register(direction, number)

    def _unregister(self, direction: Direction) -> bool:
        """Leave a connection to the scan alone if only its first segment was seen, of this direction."""
        number = self._flows.by_direction.get(direction)
        if self._beyond_time or number is None:
            return False
        snapshot = take_connection(self._tracker, direction)
        if snapshot is None:
            return False
        self._flows.unregister(direction)
        is_msmq = not self._tracker.tcp_ports.isdisjoint((direction.key[1], direction.key[3]))
        describe_new(
            self._state, self.flow_arrays.flows, number, direction.stream, snapshot, is_msmq,
            self._encapsulations,
        )  # fmt: skip
        peer_acked = direction.peer.acked
        self.flow_arrays.flows[number + 1, ACKED] = -1 if peer_acked is None else peer_acked
        self._acquire_segments(number, snapshot)
        return True

    def _forget(self, direction: Direction) -> None:
        """Free the numbers of a direction that the tracker forgets, and of its peer."""
        # Beyond its times the scan must not see any connection begin.
        first = self._flows.remove(direction, reusable=not self._beyond_time)
        self._stays.pop(direction, None)
        self._stays.pop(direction.peer, None)
        if first is not None:
            self._followed.discard(first)

    # -- room ---------------------------------------------------------------------------------------

    def reserve(self, size: int) -> None:
        """Make space for a buffered segment of this size."""
        self.pending.reserve(size, self.flow_arrays.flows)

    def compact(self) -> None:
        """Move the buffered segments together, so that little is to be saved."""
        self.pending.compact(0, self.flow_arrays.flows)
