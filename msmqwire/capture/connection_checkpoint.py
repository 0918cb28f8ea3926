"""Checkpoint of a TCP connection with nothing buffered: enough to resume reassembly from there."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from msmqwire.capture.direction import OPEN, UNKNOWN, Direction
from msmqwire.capture.events import MASK, Flow
from msmqwire.capture.ip import FlowKey

_FIELDS: Final = (
    "key", "stream", "flow", "state", "fast_path", "seen", "last_ns", "frames", "next", "isn", "first_seq",
    "acked",
)  # fmt: skip
DirectionState = tuple[Any, ...]
"""The state of a direction: the values of _FIELDS."""


class ConnectionCheckpoint(NamedTuple):
    """The state of a connection from which reassembly can resume, as plain values: see `Reassembler.save`.

    Attributes:
        clock: capture time in ns: now, of the next sweep for gaps, and of the next one for idle connections.
        directions: the state of both directions, starting with the one that was seen first.
    """

    clock: tuple[int, int, int]
    directions: tuple[DirectionState, DirectionState]

    def flows(self) -> list[Flow]:
        """Return the flows of the directions that have delivered anything."""
        return [state[2] for state in self.directions if state[2] is not None]

    def next_of(self, key: FlowKey) -> int | None:
        """Return the next expected sequence number of the direction with this key; None if the connection
        has no such direction, or it has not started."""
        for state in self.directions:
            values = dict(zip(_FIELDS, state, strict=True))
            if values["key"] == key and values["state"] == OPEN:
                return int(values["next"]) & MASK
        return None


def save_direction(direction: Direction) -> DirectionState | None:
    """Return the state of a direction; None if it is opening or ending, waits, or may have jumped."""
    doubtful = direction.far_run > 0 and direction.far_from == direction.next
    if (
        direction.state not in (UNKNOWN, OPEN)
        or direction.waiting
        or direction.fin_seq is not None
        or doubtful
    ):
        return None
    return tuple(getattr(direction, name) for name in _FIELDS)


def restore_direction(direction: Direction, state: DirectionState) -> None:
    """Restore a saved state in a new direction."""
    for name, value in zip(_FIELDS, state, strict=True):
        setattr(direction, name, value)
