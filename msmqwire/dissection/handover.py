"""Handover of directions from a tracker to a faster reader, and back.

While a direction is in order, its whole state is its position and what its finder of packets knows. A faster
reader takes it over as a `DirectionSnapshot` and gives it back when anything else arrives. HTTP, RPC and NCP
stay with the tracker.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from msmqwire.capture.direction import ENDED, OPEN, OPENING, UNKNOWN, Direction
from msmqwire.capture.events import MASK, Event, Moment
from msmqwire.capture.ip import FlowKey
from msmqwire.capture.segment_buffer import Segment, SegmentBuffer
from msmqwire.capture.tcp import ACKED_BYTES, BUFFERED_PER_FLOW_MAX, SEGMENTS_PER_FLOW_MAX
from msmqwire.dissection.finder_state import FinderState
from msmqwire.dissection.msmq_connection import MsmqConnection
from msmqwire.dissection.tracker import Tracker


@dataclass(slots=True)
class DirectionSnapshot:
    """The state of a direction that is in order.

    Attributes:
        known: whether the connection is MSMQ; if not, its bytes are only counted.
        next: the sequence number of the next byte.
        acked: the last acknowledgement number of the peer, or None.
        last_ns: when the last segment of the direction was captured.
        frame: the number of the frame that carried it.
        finder: the state of its finder of packets, with what is buffered.
        taken: how many bytes the faster reader has scanned since it took the direction over.
        has_begun: whether it has passed over a gap, so that its packets have begun whatever it has scanned.
        ignored: how many bytes were skipped before the connection was recognised, with the last frame of
            them and its time.
        out_of_order: segments buffered beyond a gap.
        out_of_order_frame: the number of the frame that carried the first of those to arrive.
        since_ns: the capture time at which a segment of the direction was last in order.
        ended: whether it ended after all its bytes were delivered, with a FIN or a reset.
        was_reset: whether it was a reset.
        state: whether it is open, opening, or nothing of its data is known: see `Direction`.
        isn: its initial sequence number, or None.
        first_seq: the sequence number before any of its data, or None.
        opening_segments: how many segments it has received while opening.
        far: the sequence number that continues the current run of far segments, ``next`` when that began, and
            its length.
    """

    known: bool
    next: int
    acked: int | None
    last_ns: int
    frame: int
    finder: FinderState = field(default_factory=lambda: FinderState([]))
    taken: int = 0
    has_begun: bool = False
    ignored: tuple[int, int, int] = (0, 0, 0)
    out_of_order: list[Segment] = field(default_factory=list)
    out_of_order_frame: int = 0
    since_ns: int = 0
    ended: bool = False
    was_reset: bool = False
    state: int = OPEN
    isn: int | None = None
    first_seq: int | None = None
    opening_segments: int = 0
    far: tuple[int, int, int] = (0, 0, 0)


def take_over(tracker: Tracker, direction: Direction) -> DirectionSnapshot | None:
    """Take a direction from the tracker, with all bytes it has buffered; None if the tracker must keep it.

    The caller must take over the peer too if that has anything buffered.
    """
    if not _is_movable(direction) or (direction.peer.waiting and not _is_movable(direction.peer)):
        return None
    connection = tracker.connections.get(direction.stream)
    sender = direction.key[:2]
    is_msmq = not {direction.key[1], direction.key[3]}.isdisjoint(tracker.tcp_ports)
    finder, ignored = None, (0, 0, 0)
    if connection is not None:
        session = connection.followed
        if sender in connection.pending or not isinstance(session, MsmqConnection | None):
            return None
        if session is not None:
            is_msmq, finder = True, session.finders.get(sender)
        ignored = connection.ignored.get(sender, ignored)
    midstream = direction.isn is None if direction.flow is None else direction.flow.midstream
    if is_msmq and finder is None and (ignored[0] or midstream):
        return None
    state = FinderState([])
    if finder is not None:
        released = finder.release()
        if released is None:
            return None
        state = released
    snapshot = DirectionSnapshot(
        is_msmq, direction.next, direction.acked, direction.last_ns, direction.frames[-1]
    )
    snapshot.finder, snapshot.ignored = state, ignored
    snapshot.isn, snapshot.first_seq = direction.isn, direction.first_seq
    snapshot.far = direction.far_next, direction.far_from, direction.far_run
    if direction.buffer:
        snapshot.out_of_order_frame, snapshot.since_ns = direction.waiting_frame, direction.since_ns
        snapshot.out_of_order = tracker.reassembler.release_segments(direction)
    return snapshot


def _is_movable(direction: Direction) -> bool:
    """Whether a direction is open, and its buffered segments are complete and below the limits of a gap."""
    if direction.fast_path:
        return True
    buffer = direction.buffer
    if direction.state != OPEN or not direction.seen or direction.fin_seq is not None or not buffer:
        return False
    if len(buffer) > SEGMENTS_PER_FLOW_MAX or buffer.cost > BUFFERED_PER_FLOW_MAX:
        return False
    return _is_complete(buffer)


def _is_complete(buffer: SegmentBuffer) -> bool:
    """Whether all bytes of the buffered segments were captured."""
    segments = (buffer[i] for i in range(len(buffer)))
    return all(segment.end - segment.start == len(segment.data) for segment in segments)


def give_back(tracker: Tracker, direction: Direction, snapshot: DirectionSnapshot) -> None:
    """Update the tracker with the state of a direction that was taken over."""
    _restore(tracker, direction, snapshot)
    if snapshot.ended:
        events: list[Event] = []
        moment = Moment(snapshot.last_ns, snapshot.frame)
        if snapshot.was_reset:
            direction.seen, direction.acked = True, None  # what was acknowledged since shows no gap
            direction.end("rst", moment, events)
            direction.acked = snapshot.acked
        else:
            direction.fin_seq = direction.next
            direction.end("fin", moment, events)
        for event in events:
            for item in tracker.event(event):
                raise AssertionError(f"{item.kind} at the end of a direction of which all was delivered")


def add_connection(
    tracker: Tracker,
    stream: int,
    key: FlowKey,
    starts: tuple[DirectionStart | None, DirectionStart | None],
) -> Direction:
    """Add a connection to the tracker that another reader saw open; return its direction first seen.

    Args:
        stream: the number of the connection.
        key: that of the direction first seen.
        starts: how the two directions were seen; None for one that was not.
    """
    direction = tracker.reassembler.add_connection(stream, key)
    for side, start in zip((direction, direction.peer), starts, strict=True):
        if start is not None:
            side.seen, side.last_ns, side.frames = True, start.last_ns, (start.frame,)
            if start.isn is not None:
                side.set_isn(start.isn)
    return direction


def take_connection(tracker: Tracker, direction: Direction) -> DirectionSnapshot | None:
    """Take a connection of which only the first segment was seen, of this direction; the tracker forgets it.

    Returns None if more is known of it: the tracker keeps it.
    """
    peer, buffer = direction.peer, direction.buffer
    is_simple = direction.fin_seq is None and direction.flow is None and not direction.far_run
    if not is_simple or peer.seen or peer.isn is not None or direction.stream in tracker.connections:
        return None
    if direction.state == OPEN:
        if direction.isn is None or buffer or direction.next != (direction.isn + 1) & MASK:
            return None
    elif direction.isn is not None or direction.state not in (UNKNOWN, OPENING):
        return None
    if buffer.cost > ACKED_BYTES or not _is_complete(buffer):
        return None
    snapshot = DirectionSnapshot(
        False, direction.next, direction.acked, direction.last_ns, direction.frames[-1],
        state=direction.state, isn=direction.isn, first_seq=direction.first_seq,
        opening_segments=direction.opening_segments, since_ns=direction.since_ns,
        out_of_order_frame=direction.waiting_frame,
    )  # fmt: skip
    direction.state = ENDED
    snapshot.out_of_order = tracker.reassembler.release_segments(direction)
    tracker.reassembler.hand_off(direction)
    return snapshot


class DirectionStart(NamedTuple):
    """A direction that was seen: its initial sequence number or None, its last segment's time and frame."""

    isn: int | None
    last_ns: int
    frame: int


def _restore(tracker: Tracker, direction: Direction, snapshot: DirectionSnapshot) -> None:
    direction.next, direction.acked = snapshot.next, snapshot.acked
    direction.last_ns, direction.frames = snapshot.last_ns, (snapshot.frame,)
    direction.state, direction.fast_path = snapshot.state, snapshot.state == OPEN
    direction.first_seq, direction.opening_segments = snapshot.first_seq, snapshot.opening_segments
    direction.far_next, direction.far_from, direction.far_run = snapshot.far
    if snapshot.out_of_order:
        tracker.reassembler.buffer_segments(
            direction, snapshot.out_of_order, snapshot.out_of_order_frame, snapshot.since_ns
        )
    sender = direction.key[:2]
    connection = tracker.connections.get(direction.stream)
    session = None if connection is None else connection.followed
    has_finder = isinstance(session, MsmqConnection) and sender in session.finders
    if not (snapshot.ignored[0] or snapshot.taken or snapshot.has_begun or has_finder):
        return  # nothing was delivered
    flow = direction.ensure_flow()
    if connection is None:
        connection = tracker.add_connection(flow)
    if snapshot.known:
        if connection.followed is None:
            connection.resume([flow])
        assert isinstance(connection.followed, MsmqConnection)
        connection.followed.finder(flow).resume(snapshot.taken, snapshot.finder)
    else:
        connection.ignored[sender] = snapshot.ignored
