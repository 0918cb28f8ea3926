"""Why a compiled scan stopped."""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class StopCode(IntEnum):
    """Why a compiled scan returned to Python. NEED and POS are entries of its `state`."""

    MORE_INPUT = 0
    """The input in memory ends before the next record; NEED bytes are needed from POS on, if it is a file."""
    ROWS_FULL = 1
    """No row is left."""
    ARENA_FULL = 2
    """NEED more bytes do not fit into the memory for whole packets, or for payloads."""
    PENDING_FULL = 3
    """NEED more bytes do not fit into the memory for pending segments, or their table is full."""
    GENERIC_RECORD = 4
    """The generic reader must judge a record."""
    GENERIC_BLOCK = 5
    """The generic reader must judge what is at POS: a damaged record, or a block without a packet."""
    PAIRS_FULL = 6
    """No number is left for another pair of endpoints."""
    RUN_BEGINS = 7
    """A run of segments begins that is part of a flow."""
    RUN_ENDS = 8
    """A run of segments has ended of which Python must be informed."""
    HANDSHAKES_FULL = 9
    """No row is left for a segment by which connections begin."""
    EVENTS_FULL = 10
    """NEED events may not fit into their array."""
    FLOWS_FULL = 11
    """No number is left for another connection."""
    FOREIGN_EVENT = 12
    """The next event is for a dissector in Python."""
    HELD_FULL = 13
    """Too much is held of packets that are not whole."""
    NOTES_FULL = 14
    """No row is left for a note."""
    NOTE_DUE = 15
    """The next of the notes on what was left out of the input is for Python."""
    FRAMES_FULL = 16
    """NEED more frames do not fit into the array of frames."""


CONTINUE: Final = -1
"""Returned in place of a stop code: the record was processed, and the scan goes on."""

LOST: Final = -2
"""Returned in place of a stop code: a flow is not in step with its packets; nothing was taken."""

# Plain integers for compiled code, which takes longer to compile with members of an enumeration.
MORE_INPUT: Final = int(StopCode.MORE_INPUT)
ROWS_FULL: Final = int(StopCode.ROWS_FULL)
ARENA_FULL: Final = int(StopCode.ARENA_FULL)
PENDING_FULL: Final = int(StopCode.PENDING_FULL)
GENERIC_RECORD: Final = int(StopCode.GENERIC_RECORD)
GENERIC_BLOCK: Final = int(StopCode.GENERIC_BLOCK)
PAIRS_FULL: Final = int(StopCode.PAIRS_FULL)
RUN_BEGINS: Final = int(StopCode.RUN_BEGINS)
RUN_ENDS: Final = int(StopCode.RUN_ENDS)
HANDSHAKES_FULL: Final = int(StopCode.HANDSHAKES_FULL)
EVENTS_FULL: Final = int(StopCode.EVENTS_FULL)
FLOWS_FULL: Final = int(StopCode.FLOWS_FULL)
FOREIGN_EVENT: Final = int(StopCode.FOREIGN_EVENT)
HELD_FULL: Final = int(StopCode.HELD_FULL)
NOTES_FULL: Final = int(StopCode.NOTES_FULL)
NOTE_DUE: Final = int(StopCode.NOTE_DUE)
FRAMES_FULL: Final = int(StopCode.FRAMES_FULL)
