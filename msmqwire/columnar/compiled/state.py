"""Entries of the state of a scan, of rows and of interfaces, by index into arrays of integers."""

from __future__ import annotations

from typing import Final

from msmqwire.capture.tcp import ACKED_SEGMENTS

(
    POS, END, FRAME_NO, ROWS, ARENA, ARENA_END, NODES, PEND, HELD, SWEEP_AT, IDLE_AT, NOW, WAITING, NEED,
    RECORD, RECORD_SIZE, RECORD_LENGTH, RECORD_NS, RECORD_LINK, RECORD_INTERFACE, NOT_IP_COUNT, OTHER_COUNT,
    IS_PCAPNG, BIG_ENDIAN, UNIT, HEADER_SIZE, LIMIT, LINKTYPE, INTERFACES, FILE, BEFORE,
    DEADLINE, BUFFERED, AHEAD_BYTES, REPEATED, EVENT_NS, EVENT_FRAME,
    FREE, FLOWS, STREAMS, BORN,
) = range(41)  # fmt: skip
STATE: Final = 41
"""The state of a walk, by index. Frames are numbered in their file; BEFORE are those of the files before.
EVENT is the frame whose bytes are being delivered; DEADLINE is when time may decide over a hole first.
FREE numbers are left for connections that the walk sees begin, FLOWS are known, STREAMS have been seen, and
BORN are those that the tracker has not heard of."""

NODE_ROOM: Final = ACKED_SEGMENTS + 2
"""Pieces that there is always room for: those that one segment may bring about."""

(
    R_TIME, R_FRAME, R_STREAM, R_SRC_HIGH, R_SRC_LOW, R_DST_HIGH, R_DST_LOW, R_PORTS, R_IPV6, R_KIND, R_SIZE,
    R_START, R_LENGTH, R_EXTRA, R_FILE,
) = range(15)  # fmt: skip
ROW: Final = 15
"""What is known of a row besides its bytes, by index. R_STREAM is -1 for UDP, R_EXTRA -1 for a packet that
is well-formed."""

I_LINK, I_LIMIT, I_MULTIPLIER, I_DIVISOR, I_OFFSET = range(5)
I_FIELDS: Final = 5
