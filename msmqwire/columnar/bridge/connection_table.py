"""What the compiled walk hands to the generic reader, and gets back: records, directions, items."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, Final, Protocol

import numpy as np

from msmqwire.capture import Data, Datagram
from msmqwire.capture.connection_checkpoint import ConnectionCheckpoint
from msmqwire.capture.direction import Direction
from msmqwire.capture.segment_buffer import PIECE_COST, Piece
from msmqwire.capture.tcp import ACKED_NS, BUFFERED_TOTAL_MAX
from msmqwire.columnar.compiled import flow_table
from msmqwire.columnar.compiled.delivery import take
from msmqwire.columnar.compiled.flow_table import (
    ACKED,
    AHEAD,
    AHEAD_COST,
    AHEAD_FIRST,
    AHEAD_FROM,
    AHEAD_LAST,
    DUE,
    ENDED,
    FIRST,
    FRAME,
    FRESH,
    IGNORED,
    IGNORED_FRAME,
    IGNORED_NS,
    ISN,
    KEEP,
    KEY_FIELDS,
    KNOWN,
    LAST,
    LAST_NS,
    LATEST,
    LATEST_NS,
    MODE,
    NEXT,
    NODE_NEXT,
    PENDING,
    PIECES,
    SINCE,
    STREAM,
    TAKEN,
    UNKNOWN,
)
from msmqwire.columnar.compiled.grouped_scan import is_quiet
from msmqwire.columnar.compiled.network import HEADS
from msmqwire.columnar.compiled.state import (
    AHEAD_BYTES,
    ARENA,
    ARENA_END,
    BEFORE,
    BORN,
    BUFFERED,
    DEADLINE,
    EVENT_FRAME,
    EVENT_NS,
    FLOWS,
    FREE,
    HELD,
    IDLE_AT,
    NODE_ROOM,
    NODES,
    NOW,
    PEND,
    STREAMS,
    SWEEP_AT,
    WAITING,
)
from msmqwire.columnar.compiled.stop_codes import CONTINUE
from msmqwire.dissection import Item, Tracker
from msmqwire.dissection.handover import Begun, DirectionSnapshot, adopt, give_back, take_over
from msmqwire.dissection.tracker import CONNECTIONS_MAX, HELD_MAX

_NUMBERS: Final = 1 << 10
"""Directions that there is room for at first."""
_ROOM: Final = 1 << 16
"""Bytes of payload beside those held, generously, when it is judged whether memory is short."""
_WILD: Final = 1 << 62
"""Nanoseconds since 1970 that no true time has: the year 2116."""
_NEVER: Final = (1 << 63) - 1
_LOW: Final = (1 << 64) - 1


class Room(Protocol):
    """Where rows go: see `msmqwire.columnar.compiled.scan`. The arrays may be replaced by larger ones."""

    memory: Any
    rows: Any
    places: Any


class ConnectionTable:
    """The directions that the walk has, in arrays, and the tracker that has the others.

    Attributes:
        table: finds the number of a direction by its key.
        keys: the key of each number.
        states: the state of each number.
        nodes: pieces of packets that are not whole.
        pend: the bytes of these.
        free: numbers that no direction has, as many as the state says.
        born: connections that the walk has seen begin since the tracker was asked last.
    """

    def __init__(self, tracker: Tracker, state: Any) -> None:
        self._state = state
        self.keys = np.zeros((0, flow_table.KEY_FIELDS), np.int64)
        self.nodes = np.zeros((1 << 12, flow_table.NODE_FIELDS), np.int64)
        self.pend = np.empty(1 << 22, np.uint8)
        self.born = np.zeros(CONNECTIONS_MAX, np.int64)
        self.restart(tracker)

    def restart(self, tracker: Tracker) -> None:
        """Forgets all, and goes on with a tracker that was asked nothing so far."""
        state = self._state
        self._tracker = tracker
        self._numbers: dict[Direction, int] = {}
        self._by_number: dict[int, Direction] = {}
        self._wild = False  # times are beyond what the arrays can hold: the tracker keeps all
        self._unknown: set[int] = set()  # connections that the tracker has not heard of
        self._removed = 0
        if len(self.keys) != _NUMBERS:
            self.table = np.empty(4 * _NUMBERS, np.int32)
            self.keys = np.zeros((_NUMBERS, flow_table.KEY_FIELDS), np.int64)
            self.states = np.empty((_NUMBERS, flow_table.FIELDS), np.int64)
            self.free = np.empty(_NUMBERS // 2, np.int64)
        self.table[:] = -1
        self.states[:], self.states[:, ACKED] = 0, -1
        self.free[:] = np.arange(_NUMBERS - 2, -1, -2)
        state[NODES] = state[PEND] = state[AHEAD_BYTES] = state[BORN] = 0
        state[FREE], state[DEADLINE] = len(self.free), _NEVER
        tracker.reassembler.when_forgotten = self._forget
        self.read_clock()

    # -- a segment for the tracker ----------------------------------------------------------------

    def feed(self, datagram: Datagram, room: Room) -> Iterator[Item]:
        """The items of a datagram, by the tracker; the directions that it concerns are given back first.

        What is in order in spite of all goes the quick way: its rows are there when the next item is asked
        for.
        """
        tracker, key = self._tracker, datagram[1:5]
        self._write_clock()
        if abs(datagram.time_ns) >= _WILD and not self._wild:
            self.give_all_back()
            self._wild, self._state[FREE] = True, 0
        if datagram.transport == "udp":
            yield from tracker.feed(datagram)
            return
        reassembler = tracker.reassembler
        self._adopt_one(datagram)
        size = len(datagram.payload) + _ROOM
        full = self._state[AHEAD_BYTES] + reassembler.buffered + size > BUFFERED_TOTAL_MAX
        if reassembler.connections + len(self._unknown) + 1 >= CONNECTIONS_MAX:
            self._adopt_all()
        if tracker.held + size > HELD_MAX or reassembler.concerns_others(datagram):
            self.give_all_back()
        elif full or datagram.time_ns >= self._state[DEADLINE]:
            self.give_back_held()
        if datagram.time_ns >= self._state[SWEEP_AT]:
            for holder in reassembler.holders():
                self._tell_acked(holder)
        self._give_back_both(reassembler.direction(key))
        events = reassembler.feed(datagram)
        direction = reassembler.direction(key)
        sides = {} if direction is None else {side.key: side for side in (direction, direction.peer)}
        if direction is not None and direction not in self._numbers and not self._wild:
            self._add(direction)  # so that the walk does not take it for a new one
        for event in events:
            side = sides.get(event.flow[1:5])
            if side is not None and side.stream == event.flow.stream:
                if isinstance(event, Data) and self._delivered(side, event, room):
                    continue
                self._give_back(side)
            yield from tracker.event(event)
        for side in sides.values():
            self._take(side)
        for side in sides.values():
            if side.peer.holding:  # the tracker has kept that one
                self._give_back(side)
        self.read_clock()

    def _give_back_both(self, direction: Direction | None) -> None:
        if direction is not None:
            self._give_back(direction)
            self._give_back(direction.peer)

    def _delivered(self, direction: Direction, event: Data, room: Room) -> bool:
        """Delivers bytes the quick way, if there is one for the direction, and room."""
        state, size = self._state, len(event.data)
        self._take(direction)
        number = self._numbers.get(direction, 0)
        start = int(state[ARENA])
        if not self._has(direction) or event.frame <= state[BEFORE] or start + size > state[ARENA_END]:
            return False
        self.have_room(size)
        head = np.zeros(HEADS, np.int64)
        head[:KEY_FIELDS] = self.keys[number]
        room.memory[start : start + size] = np.frombuffer(event.data, np.uint8)
        state[ARENA] += size
        state[EVENT_NS], state[EVENT_FRAME] = event.time_ns, event.frame - int(state[BEFORE])
        state[HELD] = self._tracker.held
        stop_code = take(
            state, self.states[number], self.nodes, self.pend, room.memory, head, start, start + size,
            room.rows, room.places,
        )  # fmt: skip
        self._tracker.held = int(state[HELD])
        if stop_code != CONTINUE:
            state[ARENA] = start
        return bool(stop_code == CONTINUE)

    def _has(self, direction: Direction) -> bool:
        number = self._numbers.get(direction)
        return number is not None and bool(self.states[number, MODE] != KEEP)

    def flush(self, time_ns: int = 0) -> list[Item]:
        """The items that the end of the capture brings, at this time or at that of the last segment."""
        self._write_clock()
        last_ns = max(time_ns, self._leave_out_quiet())
        self.give_all_back()
        return list(self._tracker.flush(last_ns))

    def save(self) -> ConnectionCheckpoint | None:
        """The only connection that is known, where it can be told: `Tracker.save`."""
        self._write_clock()
        self.give_all_back()
        return self._tracker.save()

    def join(self) -> None:
        """Goes on from what the tracker knows, which is all so far."""
        for direction in self._tracker.reassembler.in_order():
            self._add(direction)
            self._take(direction)
            self._take(direction.peer)
        self.read_clock()

    def _leave_out_quiet(self) -> int:
        """Forgets the connections of which the tracker has not heard, and that have nothing to tell at the
        end; when the last segment of any of them came."""
        quiet = [number for number in self._unknown if is_quiet(self.states, number)]
        self._unknown.difference_update(quiet)
        numbers = np.array(quiet, np.int64)
        return int(self.states[[numbers, numbers + 1], LAST_NS].max(initial=0))

    def pause(self, joined_ns: int = 0) -> list[Item]:
        """The items that come when another reader goes on: `Tracker.pause`."""
        self._write_clock()
        self.give_all_back()
        items = list(self._tracker.pause(joined_ns))
        self.read_clock()
        return items

    def give_all_back(self) -> None:
        """Has the tracker know of every direction."""
        self._adopt_all()
        states = self.states
        for number in np.flatnonzero((states[:, MODE] != KEEP) | (states[:, ACKED] >= 0)):
            if (direction := self._by_number.get(int(number))) is not None:
                self._give_back(direction)

    def give_back_held(self) -> None:
        """Has the tracker know of every direction that holds something ahead of its place."""
        for number in map(int, np.flatnonzero(self.states[:, AHEAD])):
            if number & -2 in self._unknown:
                self._adopt(number & -2)
            self._give_back(self._by_number[number])
        self._state[DEADLINE] = _NEVER

    def _write_clock(self) -> None:
        count = int(self._state[BORN])
        self._unknown.update(map(int, self.born[:count]))
        self._state[BORN] = 0
        self._tracker.reassembler.streams = int(self._state[STREAMS])
        self._tracker.held = int(self._state[HELD])
        if self._wild:
            return
        self._tracker.reassembler.set_clock(int(self._state[NOW]), int(self._state[SWEEP_AT]))

    def read_clock(self) -> None:
        """Has the walk know what the tracker knows of time and memory."""
        state, reassembler = self._state, self._tracker.reassembler
        state[HELD] = self._tracker.held
        state[NOW], state[SWEEP_AT], state[IDLE_AT] = (
            max(-_NEVER, min(t, _NEVER)) for t in reassembler.clock
        )
        state[STREAMS] = reassembler.streams
        state[FLOWS] = reassembler.connections + len(self._unknown)
        state[WAITING], state[BUFFERED] = reassembler.waiting, reassembler.buffered

    # -- to and fro ---------------------------------------------------------------------------------

    def _give_back(self, direction: Direction) -> None:
        if not self._has(direction):
            self._tell_acked(direction)
            return
        flow = self.states[self._numbers[direction]]
        if flow[MODE] == FRESH:
            flow[MODE] = KEEP
            self._tell_acked(direction)
            return
        acked = int(flow[ACKED])
        flow[ACKED] = -1
        standing = DirectionSnapshot(
            self._is_known(direction, flow), int(flow[NEXT]), None if acked < 0 else acked,
            int(flow[LAST_NS]), int(flow[FRAME]),
        )  # fmt: skip
        standing.taken = int(flow[TAKEN])
        standing.ignored = int(flow[IGNORED]), int(flow[IGNORED_FRAME]), int(flow[IGNORED_NS])
        for _, _, frame, time_ns, data in self._chain(flow[FIRST], flow[PIECES]):
            standing.pieces.append((data, frame, time_ns))
        for place, size, frame, time_ns, data in self._chain(flow[AHEAD_FIRST], flow[AHEAD]):
            standing.ahead.append(Piece(place, place + size, data, time_ns, frame))
        standing.ahead_from, standing.since_ns = int(flow[AHEAD_FROM]), int(flow[SINCE])
        standing.ended = bool(flow[MODE] == ENDED)
        self._state[AHEAD_BYTES] -= flow[AHEAD_COST]
        flow[AHEAD] = flow[AHEAD_COST] = 0
        flow[MODE] = KEEP
        flow[PENDING] = flow[PIECES] = 0
        give_back(self._tracker, direction, standing)

    def _tell_acked(self, direction: Direction) -> None:
        """Has a direction that the tracker keeps know what its peer, which the walk has, acknowledged."""
        number = self._numbers.get(direction)
        if number is not None and self.states[number, ACKED] >= 0:
            direction.acked = int(self.states[number, ACKED])
            self.states[number, ACKED] = -1

    def _is_known(self, direction: Direction, flow: Any) -> bool:
        """Whether a direction is MSMQ, one that has ended too."""
        if flow[MODE] != ENDED:
            return bool(flow[MODE] == KNOWN)
        return not flow[IGNORED]

    def _chain(self, node: int, count: int) -> Iterator[tuple[int, int, int, int, bytes]]:
        """Place, size, frame, time and bytes of some pieces that follow each other."""
        for _ in range(int(count)):
            start, size, frame, time_ns, following, place = map(int, self.nodes[node])
            yield place, size, frame, time_ns, self.pend[start : start + size].tobytes()
            node = following

    def _take(self, direction: Direction) -> None:
        standing = None if self._wild or self._has(direction) else take_over(self._tracker, direction)
        if standing is None:
            return
        flow = self.states[self._numbers[direction]]
        flow[:] = 0
        flow[MODE] = KNOWN if standing.known else UNKNOWN
        flow[NEXT], flow[STREAM] = standing.next, direction.stream
        flow[ACKED] = -1 if standing.acked is None else standing.acked
        flow[LAST_NS], flow[FRAME] = standing.last_ns, standing.frame
        flow[IGNORED], flow[IGNORED_FRAME], flow[IGNORED_NS] = standing.ignored
        for data, frame, time_ns in standing.pieces:
            self._hold(flow, (FIRST, LAST, PIECES), data, frame, time_ns, 0)
            flow[PENDING] += len(data)
            if frame > flow[LATEST]:
                flow[LATEST], flow[LATEST_NS] = frame, time_ns
        for piece in standing.ahead:
            start, _, data, time_ns, frame = piece
            self._hold(flow, (AHEAD_FIRST, AHEAD_LAST, AHEAD), data, frame, time_ns, start)
            flow[AHEAD_COST] += len(data) + PIECE_COST
        if standing.ahead:
            flow[AHEAD_FROM], flow[SINCE] = standing.ahead_from, standing.since_ns
            flow[DUE] = max(standing.ahead[0].time_ns, standing.since_ns) + ACKED_NS
            self._state[DEADLINE] = min(self._state[DEADLINE], flow[DUE])
            self._state[AHEAD_BYTES] += flow[AHEAD_COST]

    def _hold(
        self, flow: Any, chain: tuple[int, int, int], data: bytes, frame: int, time_ns: int, place: int
    ) -> None:
        """Adds a piece to one of the chains of a direction: its first, its last, how many."""
        first, last, count = chain
        self.have_room(len(data))
        node, at = int(self._state[NODES]), int(self._state[PEND])
        self.nodes[node] = at, len(data), frame, time_ns, -1, place
        self.pend[at : at + len(data)] = np.frombuffer(data, np.uint8)
        if flow[count]:
            self.nodes[flow[last], NODE_NEXT] = node
        else:
            flow[first] = node
        flow[last] = node
        flow[count] += 1
        self._state[NODES] += 1
        self._state[PEND] += len(data)

    # -- numbers ------------------------------------------------------------------------------------

    def _add(self, direction: Direction) -> int:
        """Numbers for a direction and its peer."""
        if not self._state[FREE]:
            self._more_numbers()
        self._state[FREE] -= 1
        number = int(self.free[self._state[FREE]])
        for one, at in ((direction, number), (direction.peer, number + 1)):
            self.keys[at] = key_of(*one.key)
            self.states[at, MODE], self.states[at, ACKED] = KEEP, -1
            self._numbers[one] = at
            self._by_number[at] = one
            flow_table.insert(self.table, self.keys, at)
        return number

    def _adopt_one(self, datagram: Datagram) -> None:
        """Has the tracker know of the connection of a segment, where the walk saw it begin."""
        if self._unknown and self._tracker.reassembler.direction(datagram[1:5]) is None:
            number = flow_table.find(self.table, self.keys, np.array(key_of(*datagram[1:5]), np.int64)) & -2
            if number in self._unknown:
                self._adopt(number)

    def _adopt_all(self) -> None:
        for number in sorted(self._unknown):
            self._adopt(number)

    def _adopt(self, number: int) -> None:
        self._unknown.discard(number)
        src_high, src_low, dst_high, dst_low, ports, ipv6 = map(int, self.keys[number])
        source, target = address_of(src_high, src_low, ipv6), address_of(dst_high, dst_low, ipv6)
        sides = tuple(
            None if flow[ISN] < 0 else Begun(int(flow[ISN]), int(flow[LAST_NS]), int(flow[FRAME]))
            for flow in self.states[number : number + 2]
        )
        key = source, ports >> 16, target, ports & 0xFFFF
        direction = adopt(self._tracker, int(self.states[number, STREAM]), key, (sides[0], sides[1]))
        for one, at in ((direction, number), (direction.peer, number + 1)):
            self._numbers[one] = at
            self._by_number[at] = one

    def _more_numbers(self) -> None:
        used = len(self.keys)
        self.keys = np.concatenate([self.keys, np.zeros_like(self.keys)])
        self.states = np.concatenate([self.states, np.zeros_like(self.states)])
        self.free = np.concatenate([self.free, np.zeros_like(self.free)])
        self.free[: used // 2] = np.arange(len(self.keys) - 2, used - 2, -2, dtype=np.int64)
        self._state[FREE] = used // 2
        self._rebuild()

    def _all_numbers(self) -> Any:
        """The numbers of all directions."""
        unknown = [number + side for number in self._unknown for side in (0, 1)]
        fresh = [int(number) + side for number in self.born[: self._state[BORN]] for side in (0, 1)]
        return np.array(sorted([*self._by_number, *unknown, *fresh]), np.int64)

    def _rebuild(self) -> None:
        self.table = np.full(4 * len(self.keys), -1, np.int32)
        flow_table.rebuild(self.table, self.keys, self._all_numbers())
        self._removed = 0

    def _forget(self, direction: Direction) -> None:
        number = self._numbers.get(direction)
        if number is None:
            return
        for one in (direction, direction.peer):
            at = self._numbers.pop(one)
            del self._by_number[at]
            flow_table.remove(self.table, self.keys, at)
            self.states[at, MODE] = KEEP
        self.free[self._state[FREE]] = min(number, number ^ 1)
        self._state[FREE] += not self._wild  # else the walk is to see none begin
        self._removed += 2
        if self._removed > len(self.table) // 4:
            self._rebuild()

    # -- room ---------------------------------------------------------------------------------------

    def have_room(self, size: int) -> None:
        """Has room for a piece of this size: what is no longer held goes, and the arrays grow if need be."""
        state = self._state
        if state[NODES] + 2 * NODE_ROOM <= len(self.nodes) and state[PEND] + size <= len(self.pend):
            return
        states = self.states
        numbers = np.flatnonzero((states[:, MODE] != KEEP) & (states[:, PIECES] + states[:, AHEAD] > 0))
        held = states[numbers]
        pieces = int(held[:, PIECES].sum() + held[:, AHEAD].sum())
        total = int(held[:, PENDING].sum() + held[:, AHEAD_COST].sum())
        nodes = np.zeros((max(len(self.nodes), 2 * pieces + 4 * NODE_ROOM), flow_table.NODE_FIELDS), np.int64)
        pend = np.empty(max(len(self.pend), 2 * (total + size)), np.uint8)
        state[NODES], state[PEND] = flow_table.compact(states, numbers, self.nodes, self.pend, nodes, pend)
        self.nodes, self.pend = nodes, pend


def key_of(src: str, src_port: int, dst: str, dst_port: int) -> tuple[int, ...]:
    """Endpoints as the walk has them: the first fields of `msmqwire.columnar.compiled.network.datagram`."""
    source, target = ip_address(src), ip_address(dst)
    halves = int(source) >> 64, int(source) & _LOW, int(target) >> 64, int(target) & _LOW
    signed = np.array(halves, np.uint64).view(np.int64)
    return (*map(int, signed), src_port << 16 | dst_port, int(source.version == 6))


def address_of(high: int, low: int, ipv6: int) -> str:
    """The text of an address of the walk."""
    number = (high & _LOW) << 64 | low & _LOW
    return str(IPv6Address(number) if ipv6 else IPv4Address(number))
