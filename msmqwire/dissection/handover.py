"""Hands directions of connections from a tracker to a faster reader, and back.

While a direction is in order and in step, all there is to know of it is its position and the bytes of an
incomplete packet. A faster reader takes it over as a `DirectionSnapshot` and gives it back when anything else
arrives.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from msmqwire.capture.direction import OPEN, Direction
from msmqwire.capture.events import Event, Moment
from msmqwire.capture.segment_buffer import Piece
from msmqwire.capture.tcp import ACKED_BYTES, ACKED_SEGMENTS
from msmqwire.dissection.connection import Connection
from msmqwire.dissection.tracker import Tracker


@dataclass(slots=True)
class DirectionSnapshot:
    """What a direction is that is in order and in step.

    Attributes:
        known: whether the connection is MSMQ; if not, its bytes are only counted.
        next: the place of the next byte.
        acked: what the peer acknowledged last, or None.
        last_ns: when the last segment of the direction was captured.
        frame: the number of the frame that brought it.
        pieces: the beginning of a packet: bytes, frame, time of each piece.
        taken: bytes that were given to the finder since the tracker had the direction last.
        ignored: bytes passed over while nothing was recognised, the last frame of them and its time.
        ahead: what came before what is before it.
        ahead_from: the number of the frame that brought the first of that.
        since_ns: the time of the capture when anything of the direction was in order last.
        ended: whether it has ended with a FIN, all of it delivered.
    """

    known: bool
    next: int
    acked: int | None
    last_ns: int
    frame: int
    pieces: list[tuple[bytes, int, int]] = field(default_factory=list)
    taken: int = 0
    ignored: tuple[int, int, int] = (0, 0, 0)
    ahead: list[Piece] = field(default_factory=list)
    ahead_from: int = 0
    since_ns: int = 0
    ended: bool = False


def take_over(tracker: Tracker, direction: Direction) -> DirectionSnapshot | None:
    """Where a direction stands; None when the tracker must keep it. What it held is with the caller then.

    Its peer is to be taken over too, if it holds anything.
    """
    if not _can_go(direction) or (direction.peer.holding and not _can_go(direction.peer)):
        return None
    connection = tracker.connections.get(direction.stream)
    side = direction.key[:2]
    known = not {direction.key[1], direction.key[3]}.isdisjoint(tracker.tcp_ports)
    finder, ignored = None, (0, 0, 0)
    if connection is not None:
        if side in connection.pending:
            return None
        known = connection.known
        finder = connection.finders.get(side)
        ignored = connection.ignored.get(side, ignored)
    midstream = direction.isn is None if direction.flow is None else direction.flow.midstream
    if known and finder is None and (ignored[0] or midstream):
        return None
    if finder is not None and not finder.in_step:
        return None
    standing = DirectionSnapshot(
        known, direction.next, direction.acked, direction.last_ns, direction.frames[-1]
    )
    if finder is not None:
        standing.pieces = finder.let_pieces_go()
    standing.ignored = ignored
    if direction.pieces:
        standing.ahead_from, standing.since_ns = direction.held_from, direction.since_ns
        standing.ahead = tracker.reassembler.let_go(direction)
    return standing


def _can_go(direction: Direction) -> bool:
    """Whether a direction is open, and what it holds is plain and no more than may be awaited."""
    if direction.fast_path:
        return True
    pieces = direction.pieces
    if direction.state != OPEN or not direction.seen or direction.fin_at is not None or not pieces:
        return False
    if len(pieces) > ACKED_SEGMENTS or pieces.cost > ACKED_BYTES:
        return False
    whole = (pieces[i].end - pieces[i].start == len(pieces[i].data) for i in range(len(pieces)))
    return all(whole)


def give_back(tracker: Tracker, direction: Direction, standing: DirectionSnapshot) -> None:
    """Has the tracker know where a direction stands that it did not see for a while."""
    _give_back(tracker, direction, standing)
    if standing.ended:
        direction.fin_at = direction.next
        events: list[Event] = []
        direction.end("fin", Moment(standing.last_ns, standing.frame), events)
        for event in events:
            for item in tracker.event(event):
                raise AssertionError(f"{item.kind} at the end of a direction of which all was delivered")


def adopt(
    tracker: Tracker, stream: int, key: tuple[str, int, str, int], sides: tuple[Begun | None, Begun | None]
) -> Direction:
    """Has the tracker know of a connection that began while it was not asked; the direction first seen.

    Args:
        stream: the number of the connection.
        key: source and destination of the direction first seen.
        sides: how the two directions began; None for one that has not.
    """
    direction = tracker.reassembler.adopt(stream, key)
    for side, begun in zip((direction, direction.peer), sides, strict=True):
        if begun is not None:
            side.seen, side.last_ns, side.frames = True, begun.last_ns, (begun.frame,)
            side.set_isn(begun.isn)
    return direction


class Begun(NamedTuple):
    """A direction whose SYN was seen: its initial sequence number, its last segment and the frame of that."""

    isn: int
    last_ns: int
    frame: int


def _give_back(tracker: Tracker, direction: Direction, standing: DirectionSnapshot) -> None:
    direction.next, direction.acked = standing.next, standing.acked
    direction.last_ns, direction.frames = standing.last_ns, (standing.frame,)
    if standing.ahead:
        tracker.reassembler.hold(direction, standing.ahead, standing.ahead_from, standing.since_ns)
    side = direction.key[:2]
    connection = tracker.connections.get(direction.stream)
    begun = connection is not None and side in connection.finders
    if not (standing.ignored[0] or standing.taken or begun):
        return  # nothing has come of it
    flow = direction.the_flow()
    if connection is None:
        connection = tracker.connections[direction.stream] = Connection(flow, tracker.tcp_ports)
    if standing.known:
        connection.finder(flow).resume(standing.taken, standing.pieces)
    else:
        connection.ignored[side] = standing.ignored
