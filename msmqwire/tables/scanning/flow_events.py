"""The flows of the scan, and those of their events that Python takes: for dissectors, and to free memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeAlias

import numpy as np

from msmqwire.analysis.dissection import Item, Tracker
from msmqwire.analysis.dissection.connection import Connection
from msmqwire.analysis.dissection.dissector import Dissector
from msmqwire.analysis.dissection.finder import FRAME_COST, ScanResult
from msmqwire.analysis.dissection.followed_direction import UNKNOWN as NOT_RECOGNISED
from msmqwire.analysis.dissection.msmq_connection import MsmqSessions
from msmqwire.analysis.dissection.tracker import HELD_MAX
from msmqwire.capture import Data, End, Event, Flow, Gap
from msmqwire.capture.events import distance
from msmqwire.capture.segment_buffer import SEGMENT_COST
from msmqwire.framing import begins_packet
from msmqwire.headers.base import PREFIX_SIZE
from msmqwire.tables.compiled import flow_events as compiled
from msmqwire.tables.compiled import state as entry
from msmqwire.tables.compiled.decorators import repeated
from msmqwire.tables.compiled.flow_table import (
    ACKED,
    BEGINS_INSIDE,
    FIRST_SIDE,
    FOREIGN,
    HAS_ENDED,
    HAS_PENDING,
    IGNORED,
    IGNORED_FRAME,
    IGNORED_NS,
    IS_GONE,
    IS_KNOWN,
    IS_SEEN,
    KEY_FIELDS,
    MIDSTREAM,
    MODE,
    MSMQ,
    NEXT_CONNECTION,
    NEXT_SEQ,
    PACKET_BYTES,
    PACKET_SEGMENTS,
    QUEUED,
    QUEUED_FIRST,
    RUN_FRAMES,
    SEG_NEXT,
    START_KIND,
    STREAM,
    TCP_STATE,
    UNKNOWN,
    UNRECOGNISED,
)
from msmqwire.tables.compiled.origins import is_behind, origin
from msmqwire.tables.compiled.packet import GAP_REASONS
from msmqwire.tables.compiled.scan_arrays import ScanArrays
from msmqwire.tables.compiled.stop_codes import CONTINUE, StopCode
from msmqwire.tables.compiled.tcp import reassembly
from msmqwire.tables.compiled.tcp.events import DATA, END, END_REASONS, FORGOTTEN, GAP
from msmqwire.tables.compiled.tcp.segments import EVENTS_PER_CONNECTION, EVENTS_PER_SEGMENT, EVENTS_SPARE
from msmqwire.tables.scanning.encapsulations import Encapsulations
from msmqwire.tables.scanning.flow_arrays import new_flow_arrays, with_more_events, with_more_flows
from msmqwire.tables.scanning.flow_keys import ends_of
from msmqwire.tables.scanning.pending_segments import PendingSegments

Items: TypeAlias = Iterator[Item | StopCode]
"""Items, and stop codes after which whoever iterates makes room before asking for more."""


class RowSink(Protocol):
    """The destination of rows."""

    def scan_arrays(self) -> ScanArrays:
        """Return the arrays of the scan."""

    def reserve_arena(self, size: int) -> Iterator[Any]:
        """Make room for a number of bytes in the arena."""


class FlowTable:
    """The flows of a scan, in arrays, and the dissectors of those that it does not read itself.

    The scan follows all connections. It stops at an event for Python: `take_event`. Events pass between them,
    with their values; the dissectors know only the `view` of the flows.

    Attributes:
        arrays: the flows.
        pending: the segments that they have buffered.
        encapsulations: the tunnels of frames.
        origin: the R_ORIGIN of the next item, -1 if that is not of a session.
    """

    def __init__(self, tracker: Tracker, state: Any, encapsulations: Encapsulations) -> None:
        self._state, self.encapsulations = state, encapsulations
        self.pending = PendingSegments(state, encapsulations)
        self.restart(tracker)

    def restart(self, tracker: Tracker) -> None:
        """Forget all connections and continue with the dissectors of a new tracker."""
        self.arrays = new_flow_arrays(self._state)
        self._state[entry.CONNECTIONS_LIMIT] = tracker.reassembler.max_connections
        self.pending.clear()
        self._tracker = tracker
        self.origin = -1
        self._number, self._sender = 0, ("", 0)  # of the flow whose event is being taken
        self.show()
        self._msmq = next(one for one in tracker.streams if isinstance(one, MsmqSessions))

    def show(self) -> None:
        """Become the table of connections that the dissectors see, in place of any other."""
        self._tracker.view, self._tracker.new_connection = self, _UnknownConnection

    def hide(self) -> None:
        """Stop being the table of connections that the dissectors see: their capture has ended.

        They would keep the arrays in memory, in a cycle, until the garbage of the oldest generation is
        collected.
        """
        self._tracker.view, self._tracker.new_connection = self._tracker, Connection

    # -- room ---------------------------------------------------------------------------------------

    def make_room(self, stop_code: StopCode) -> None:
        """Make the room that a stop code asks for, in the arrays of flows."""
        state = self._state
        if stop_code == StopCode.PENDING_FULL:
            self.reserve(int(state[entry.NEED]))
        elif stop_code == StopCode.EVENTS_FULL:
            self.arrays = with_more_events(self.arrays, int(state[entry.NEED]))
        else:
            self.arrays = with_more_flows(self.arrays, state)

    def reserve(self, size: int) -> None:
        """Make space for a buffered segment of this size."""
        self.pending.reserve(size, self.arrays.flows)

    def compact(self) -> None:
        """Move the buffered segments together, so that little is to be saved."""
        self.pending.compact(0, self.arrays.flows)

    # -- steps without a segment --------------------------------------------------------------------

    def flush(self, sink: RowSink, time_ns: int = 0) -> Items:
        """Yield the items at the end of the capture, at this time or at that of the last segment."""
        self._reserve_events()
        reassembly.expire_at_end(sink.scan_arrays(), self.arrays, time_ns)
        reassembly.end_all(sink.scan_arrays(), self.arrays)
        yield from self._take_all(sink)
        yield from self._tracker.end_datagrams()

    def pause(self, sink: RowSink, joined_ns: int = 0) -> Items:
        """Yield the items before another reader continues: `Tracker.pause`."""
        self._reserve_events()
        reassembly.pause(sink.scan_arrays(), self.arrays, joined_ns)
        yield from self._take_all(sink)

    def sweep(self, sink: RowSink, time_ns: int) -> Items:
        """Yield the items of a sweep at this time."""
        self._reserve_events()
        reassembly.sweep(sink.scan_arrays(), self.arrays, time_ns)
        yield from self._take_all(sink)

    def _reserve_events(self) -> None:
        state = self._state
        needed = EVENTS_PER_SEGMENT * state[entry.BUFFERED_SEGMENTS] + EVENTS_SPARE
        needed += EVENTS_PER_CONNECTION * state[entry.CONNECTIONS]
        if needed > len(self.arrays.events):
            self.arrays = with_more_events(self.arrays, int(needed))

    def _take_all(self, sink: RowSink) -> Items:
        """Take the events of a step."""
        self._state[entry.IS_TAKEN] = 1
        stop_code = int(StopCode.ROWS_FULL)
        while stop_code != CONTINUE:
            self.reserve(0)
            stop_code = compiled.take_events(sink.scan_arrays(), self.arrays)
            if stop_code != CONTINUE:
                yield StopCode(stop_code)

    # -- an event for Python ------------------------------------------------------------------------

    def take_event(self, sink: RowSink) -> Items:
        """Take the next event, at which the scan stopped; yield its items.

        Some events are left to the scan, after the steps that it could not do by itself.
        """
        state = self._state
        values = self.arrays.events[state[entry.EVENT]].tolist()
        number, kind = values[:2]
        self._number, flow = number, self.arrays.flows[number]
        if kind == FORGOTTEN:
            self._forget(number)
            return
        if flow[MODE] == MSMQ and flow[IS_KNOWN] and not flow[HAS_PENDING]:
            yield self._ignored_item(number)
            return
        connection = self._connection(number)
        event = self._event(connection, *values)
        self._sender = event.flow.sender
        self._tracker.held = int(state[entry.HELD])
        yield from self._tracker.items_of(event)
        state[entry.HELD] = self._tracker.held
        if connection.left is not None:
            yield from self._leave_to_scan(connection, number, event, sink)
            return
        if kind == END:
            flow[HAS_ENDED] = 1
        self._keep(connection, number & -2)
        self._pass(number, kind)

    def _pass(self, number: int, kind: int) -> None:
        """Go on to the next event."""
        state, flow = self._state, self.arrays.flows[number]
        if kind == DATA:
            flow[QUEUED_FIRST] = self.pending.segments[flow[QUEUED_FIRST], SEG_NEXT]
            flow[QUEUED] -= 1
        compiled.pass_event(self.arrays, self.arrays.events[state[entry.EVENT]])
        state[entry.EVENT] += 1
        state[entry.IS_FREED] = 0

    def _event(
        self,
        connection: _UnknownConnection,
        number: int,
        kind: int,
        size: int,
        reason: int,
        time_ns: int,
        code: int,
    ) -> Event:
        """Return the next event, from its values."""
        flow = connection.flows.get(number)
        if flow is None:
            flow = connection.flows[number] = self._flow(number)
        frame = self.encapsulations.frame(code)
        if kind == DATA:
            first = self.arrays.flows[number, QUEUED_FIRST]
            ((_, _, frame, time_ns, data),) = self.pending.read(first, 1)
            return Data(flow, data, time_ns, frame, time_ns)
        if kind == GAP:
            return Gap(flow, None if size < 0 else size, GAP_REASONS[reason], time_ns, frame)
        return End(flow, END_REASONS[reason], time_ns, frame)

    def _flow(self, number: int) -> Flow:
        flow = self.arrays.flows[number]
        src, src_port, dst, dst_port, network = ends_of(self.arrays.keys[number])
        midstream = bool(flow[START_KIND] == MIDSTREAM)
        return Flow(int(flow[STREAM]), src, src_port, dst, dst_port, midstream, network)

    def _connection(self, number: int) -> _UnknownConnection:
        """Return the connection of a flow as the dissectors know it, which may be new to them."""
        flows, first = self.arrays.flows, number & -2
        known = self._tracker.connections.get(int(flows[number, STREAM]))
        if known is None:
            side = int(flows[first, FIRST_SIDE]) - 1
            known = self._tracker.add_connection(self._flow(first + side if side >= 0 else number))
        assert isinstance(known, _UnknownConnection)
        connection = known
        if connection.followed is not None or connection.is_left:
            return connection
        # One direction of a connection may have waited in Python while the scan took the other.
        for of_side in (first, first + 1):
            sender, flow = ends_of(self.arrays.keys[of_side])[:2], flows[of_side]
            if flow[IGNORED]:
                frame = self.encapsulations.frame(int(flow[IGNORED_FRAME]))
                connection.ignored[sender] = int(flow[IGNORED]), frame, int(flow[IGNORED_NS])
            if flow[HAS_ENDED]:
                connection.ended.add(sender)
        return connection

    def _keep(self, connection: _UnknownConnection, first: int) -> None:
        """Keep the state of a connection after an event: with its dissector, or in the arrays alone."""
        flows = self.arrays.flows
        is_followed = connection.followed is not None
        if is_followed and connection.is_kept and not connection.pending:
            return
        connection.is_kept = is_followed and not connection.pending
        stream = int(flows[first, STREAM])
        flows[first : first + 2, MODE] = FOREIGN if is_followed else self._unknown_mode(first)
        for side in (first, first + 1):
            sender = ends_of(self.arrays.keys[side])[:2]
            flows[side, HAS_PENDING] = sender in connection.pending
            if not is_followed:
                self._note_ignored(side, connection.ignored.get(sender, (0, 0, 0)))
        if not is_followed and not connection.pending:
            self._tracker.connections.pop(stream, None)

    def _unknown_mode(self, first: int) -> int:
        """Return the mode of a connection that is not recognised."""
        _, src_port, _, dst_port, _ = ends_of(self.arrays.keys[first])
        return UNRECOGNISED if self._tracker.tcp_ports.isdisjoint((src_port, dst_port)) else MSMQ

    def _note_ignored(self, number: int, ignored: tuple[int, int, int]) -> None:
        size, frame, time_ns = ignored
        code = self.encapsulations.code(frame) if size else 0
        self.arrays.flows[number, [IGNORED, IGNORED_FRAME, IGNORED_NS]] = size, code, time_ns

    def _forget(self, first: int) -> None:
        """Forget a connection that the dissectors know."""
        flows = self.arrays.flows
        self._tracker.connections.pop(int(flows[first, STREAM]), None)
        flows[first : first + 2, MODE], flows[first : first + 2, HAS_PENDING] = UNRECOGNISED, 0

    # -- connections that turn out to be MSMQ -------------------------------------------------------

    def _leave_to_scan(
        self, connection: _UnknownConnection, number: int, event: Event, sink: RowSink
    ) -> Items:
        """Leave a connection that has turned out to be MSMQ to the scan, with the bytes that waited for
        that."""
        flows, first = self.arrays.flows, number & -2
        earlier, connection.left = connection.left or [], None
        if not flows[number, IS_KNOWN] or flows[number, MODE] != MSMQ:
            flow = self._flow(number)
            for side in (first, first + 1):
                self._note_ignored(
                    side, connection.ignored.get(ends_of(self.arrays.keys[side])[:2], (0, 0, 0))
                )
            flows[first : first + 2, MODE], flows[first : first + 2, IS_KNOWN] = MSMQ, 1
            begins = next((one for one in (*earlier, event) if isinstance(one, Data)), None)
            if begins is not None and not self._msmq.claims(flow):
                flows[number, BEGINS_INSIDE] = not begins_packet(begins.data[:PREFIX_SIZE])
        connection.is_left = True
        flows[number, HAS_PENDING] = 0
        if not connection.pending:
            self._tracker.connections.pop(int(flows[number, STREAM]), None)
        for data in earlier:
            yield from self._deliver(number, data, sink)

    def _deliver(self, number: int, event: Data, sink: RowSink) -> Items:
        """Let the scan take bytes that Python has."""
        state, size = self._state, len(event.data)
        stop_code = int(StopCode.ARENA_FULL)
        while stop_code != CONTINUE:
            state[entry.NEED] = size
            if state[entry.ARENA] + size > state[entry.ARENA_END]:
                yield StopCode.ARENA_FULL
                continue
            self.reserve(size)
            arrays, start, rows = sink.scan_arrays(), int(state[entry.ARENA]), state[entry.ROWS]
            arrays.memory[start : start + size] = np.frombuffer(event.data, np.uint8)
            arrays.header[:KEY_FIELDS] = self.arrays.keys[number]
            state[entry.ARENA] += size
            state[entry.EVENT_NS] = event.time_ns
            code = self.encapsulations.code(event.frame)
            state[entry.EVENT_FRAME] = code - state[entry.FRAMES_BEFORE]
            stop_code = compiled.deliver_bytes(arrays, self.arrays, number, start, start + size)
            if state[entry.ROWS] == rows:
                state[entry.ARENA] = start
            if stop_code == StopCode.FOREIGN_EVENT:
                yield self._ignored_item(number)
            elif stop_code != CONTINUE:
                yield StopCode(stop_code)

    def _ignored_item(self, number: int) -> Item:
        """Return the item of the bytes skipped of a flow before its connection was recognised."""
        flow_row, flow = self.arrays.flows[number], self._flow(number)
        self._sender = flow.sender
        if self._state[entry.KEEPS_ORIGINS]:
            self.origin = origin(self.arrays, number, int(self.arrays.flows[number ^ 1, ACKED]))
        size, code, time_ns = flow_row[[IGNORED, IGNORED_FRAME, IGNORED_NS]].tolist()
        self._note_ignored(number, (0, 0, 0))
        result = ScanResult.skipped(size, NOT_RECOGNISED, (self.encapsulations.frame(code),), time_ns)
        return self._msmq.follow(flow, flow, {}).item(flow, result)

    # -- memory -------------------------------------------------------------------------------------

    def free_memory(self, sink: RowSink) -> Items:
        """Skip the incomplete packets of the connections that hold most: `Tracker._free_memory`."""
        state, tracker, flows = self._state, self._tracker, self.arrays.flows
        held = (
            flows[:, PACKET_BYTES]
            + SEGMENT_COST * flows[:, PACKET_SEGMENTS]
            + FRAME_COST * flows[:, RUN_FRAMES]
        )
        of_pair = held[::2] + held[1::2]
        numbers = 2 * np.flatnonzero(of_pair)
        ranked = [(-int(of_pair[number // 2]), int(flows[number, STREAM]), int(number)) for number in numbers]
        ranked += [(-one.held, stream, -1) for stream, one in tracker.connections.items() if one.held]
        discard = repeated(compiled.discard)
        for _, stream, number in sorted(ranked):
            if state[entry.HELD] <= HELD_MAX // 2:
                break
            if number >= 0:
                sides = sorted((number, number + 1), key=lambda side: ends_of(self.arrays.keys[side])[:2])
                for side in sides:
                    yield from self._discard(side, sink, discard)
                continue
            tracker.held = int(state[entry.HELD])
            items = list(tracker.discard(stream))
            state[entry.HELD] = tracker.held
            yield from items
        state[entry.IS_FREED] = 1

    def _discard(self, number: int, sink: RowSink, discard: Callable[..., int]) -> Items:
        stop_code = int(StopCode.ROWS_FULL)
        while stop_code != CONTINUE:
            self.reserve(0)
            stop_code = discard(sink.scan_arrays(), self.arrays, number)
            if stop_code != CONTINUE:
                yield StopCode(stop_code)

    # -- questions of dissectors on the connection whose event they take -------------------------------

    def is_one_sided(self, flow: Flow) -> bool:
        """Whether nothing of the other direction was captured: `Reassembler.is_one_sided`."""
        return not self.arrays.flows[self._other(flow), IS_SEEN]

    def ahead(self, flow: Flow) -> int | None:
        """Return how many bytes of the other direction a sender has acknowledged: `Reassembler.ahead`."""
        other = self.arrays.flows[self._other(flow)]
        if other[IS_GONE] or other[ACKED] < 0 or other[TCP_STATE] == UNKNOWN:
            return None
        return distance(int(other[ACKED]), int(other[NEXT_SEQ]))

    def is_behind(self, flow: Flow) -> bool:
        """Whether a sender has received bytes not captured, or not in order: `Tracker.is_behind`."""
        number = self._other(flow)
        acked = int(self.arrays.flows[number, ACKED])
        return bool(is_behind(self.arrays, number ^ 1, acked))

    def _other(self, flow: Flow) -> int:
        """Return the number of the other direction."""
        return self._number ^ 1 if flow.sender == self._sender else self._number

    def first_numbers(self) -> list[int]:
        """Return the numbers of the connections, those first that were first seen."""
        numbers, number = list[int](), int(self._state[entry.FIRST_CONNECTION])
        while number >= 0:
            numbers.append(number)
            number = int(self.arrays.flows[number, NEXT_CONNECTION])
        return numbers


class _UnknownConnection(Connection):
    """A connection that the scan does not read itself, so far.

    Attributes:
        left: the bytes of the direction of the event that waited, once it has turned out to be MSMQ.
        is_left: whether it is left to the scan but for the bytes with which the other direction waits.
        is_kept: whether the arrays say that a dissector follows it.
        flows: its flows by their numbers.
    """

    __slots__ = ("flows", "is_kept", "is_left", "left")

    left: list[Data] | None
    flows: dict[int, Flow]

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.left, self.flows = None, {}
        self.is_left = self.is_kept = False

    def data(self, event: Data) -> Any:
        if self.is_left:
            return self._leave(event)
        return super().data(event)

    def gap(self, event: Gap) -> Any:
        return self._leave(event) if self.is_left else super().gap(event)

    def end(self, event: End) -> Any:
        return self._leave(event) if self.is_left else super().end(event)

    def _begin(self, dissector: Dissector, event: Data) -> Any:
        return self._leave(event) if isinstance(dissector, MsmqSessions) else super()._begin(dissector, event)

    def _follow_owner(self, flow: Flow) -> None:
        if self.followed is None and isinstance(self._owner, MsmqSessions):
            self.left = self.pending.pop(flow.sender, [])
        else:
            super()._follow_owner(flow)

    def _leave(self, event: Event) -> tuple[()]:
        self.left = self.pending.pop(event.flow.sender, [])
        return ()
