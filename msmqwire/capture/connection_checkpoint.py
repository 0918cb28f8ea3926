"""What is known of a TCP connection at a place where nothing of it is held: enough to go on from there."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from msmqwire.capture.direction import OPEN, UNKNOWN, Direction
from msmqwire.capture.events import MASK, Flow

_FIELDS: Final = (
    "key", "stream", "flow", "state", "fast_path", "seen", "last_ns", "frames", "next", "isn", "first",
    "acked",
)  # fmt: skip
_Side = tuple[Any, ...]


class ConnectionCheckpoint(NamedTuple):
    """A connection to go on from, a plain value: see `Reassembler.save`.

    Attributes:
        clock: what the reassembler knows of time.
        sides: both directions, the one that was seen first first.
    """

    clock: tuple[int, int, int]
    sides: tuple[_Side, _Side]

    def flows(self) -> list[Flow]:
        """The directions that have brought anything."""
        return [side[2] for side in self.sides if side[2] is not None]

    def next_of(self, key: tuple[str, int, str, int]) -> int | None:
        """The sequence number that is expected next of a direction, given by its source and destination;
        None when the connection has no such direction, or it has not begun."""
        for side in self.sides:
            values = dict(zip(_FIELDS, side, strict=True))
            if values["key"] == key and values["state"] == OPEN:
                return int(values["next"]) & MASK
        return None


def save_side(direction: Direction) -> _Side | None:
    """The state of a direction; None when it is opening, ends, holds anything or is in doubt."""
    doubtful = direction.far_run > 0 and direction.far_from == direction.next
    if (
        direction.state not in (UNKNOWN, OPEN)
        or direction.holding
        or direction.fin_at is not None
        or doubtful
    ):
        return None
    return tuple(getattr(direction, name) for name in _FIELDS)


def restore_side(direction: Direction, side: _Side) -> None:
    """Has a new direction be in the state that was saved."""
    for name, value in zip(_FIELDS, side, strict=True):
        setattr(direction, name, value)
