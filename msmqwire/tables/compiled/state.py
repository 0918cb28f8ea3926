"""Entries of the state of a scan, of rows and of interfaces, by index into arrays of integers."""

from __future__ import annotations

from typing import Final

from msmqwire.capture.tcp import ACKED_SEGMENTS

(
    POS, END, FRAME_NO, ROWS, ARENA, ARENA_END, PENDING_SEGMENTS, PENDING_BYTES, HELD, SWEEP_AT, IDLE_AT, NOW,
    NEED, RECORD, RECORD_SIZE, RECORD_LENGTH, RECORD_NS, RECORD_LINK, RECORD_INTERFACE, NOT_IP_COUNT,
    OTHER_COUNT, IS_PCAPNG, BIG_ENDIAN, FRACTION_NS, HEADER_SIZE, SIZE_LIMIT, LINKTYPE, INTERFACES, FILE,
    FRAMES_BEFORE, DEADLINE, BUFFERED, BUFFERED_SEGMENTS, REPEATED_BYTES, EVENT_NS, EVENT_FRAME,
    FREE_NUMBERS, CONNECTIONS, STREAMS, PAIRS, FIRST_WAITING, LAST_WAITING, HASH_SEED, REMOVED,
    CONFLICTING_BYTES, CONNECTIONS_LIMIT, IS_UNDECIDED, BY_OFFSET, MEMORY_AT, LOST_BYTES,
    IS_TAKEN, FAR_SEGMENTS, LATE_SEGMENTS, STRAY_RESETS, EVICTED, START_SEGMENTS, FIRST_CONNECTION,
    LAST_CONNECTION, EVENT, EVENTS, IS_FREED, HANDSHAKES, FRAME_CODE, EMPTY_LINK, EMPTY_COUNT, NOTES, SKIPPED,
    KEEPS_ORIGINS, EVENT_ORIGIN, FRAMES_USED,
) = range(70)  # fmt: skip
STATE: Final = 70
"""The state of a scan, by index. Times are nanoseconds since 1970, sizes bytes.

POS and END bound the input in memory. FRAME_NO counts frames in their file, whose number is FILE;
FRAMES_BEFORE are those of the files before, as a frame code. A frame code is the number of a frame with that
of its tunnels in the lowest TUNNEL_BITS, so that codes are in the order of the frames; FRAME_CODE is that of
the current frame, counted on from file to file. With BY_OFFSET the number of a frame is the offset of its
record in the file instead, where the memory starts at MEMORY_AT. RECORD and its like describe the current
record; EVENT_NS and EVENT_FRAME are time and code, in its file, of the frame whose bytes are being delivered;
IS_UNDECIDED says that the scan could not tell what the record carries. IS_PCAPNG to INTERFACES are the format
of the file.

ROWS, PENDING_SEGMENTS and PENDING_BYTES are the used parts of their arrays; ARENA and ARENA_END bound the
free part of the arena. NEED says how many bytes, or events, a stop code asks for.

HELD is the memory for incomplete packets, with those of the dissectors in Python, and BUFFERED that for
BUFFERED_SEGMENTS out of order. NOW, SWEEP_AT and IDLE_AT are the clock of `Reassembler`; DEADLINE is when the
first flow may start or give up a gap. FREE_NUMBERS are left for connections that begin, CONNECTIONS are open,
of CONNECTIONS_LIMIT that may be, STREAMS have been seen, and PAIRS of endpoints have a number. FIRST_WAITING
and LAST_WAITING are the ends of the list of flows that wait, FIRST_CONNECTION and LAST_CONNECTION of that of
connections, -1 if it is empty; after START_SEGMENTS with data a flow starts. HASH_SEED is mixed into the
hashes of flows; REMOVED entries of their table were removed. REPEATED_BYTES and what follow are `Counters`.
IS_TAKEN says that the current segment has been taken, and only events are left, those from EVENT on of
EVENTS. IS_FREED says that what the event before let be held too much has been let go. HANDSHAKES are the used
rows of the array of that name. EMPTY_COUNT records had no bytes, of the link type EMPTY_LINK, which is known;
-1 before there was one. NOTES are the used rows of the notes of the scan, see `compiled.notes`; SKIPPED bytes
of the file were left out of the input so far.

KEEPS_ORIGINS says that rows become items: R_ORIGIN and R_FRAMES are wanted, and pings and datagrams in
fragments are for the generic reader. EVENT_ORIGIN is the R_ORIGIN of the rows of the event that is taken.
FRAMES_USED are the used entries of the array of frames.
"""

TUNNEL_BITS: Final = 16
TUNNEL_MASK: Final = (1 << TUNNEL_BITS) - 1
"""The part of a frame code that says in which tunnels the packet was: a number of
`columnar.scanning.encapsulations`, 0 for none."""

NEVER: Final = (1 << 63) - 1
"""In place of a time: it does not come."""

SPARE_SEGMENTS: Final = ACKED_SEGMENTS + 3
"""Entries of `pending_segments` that are always free, besides those for the pieces of a segment."""
SPARE_TO_DELIVER: Final = 3 * SPARE_SEGMENTS
"""Entries that are free before a segment and all that it lets go are delivered, in turns,"""
ENTRIES_TO_DELIVER: Final = 4
"""and for each segment that it may let go."""

(
    R_TIME, R_FRAME, R_STREAM, R_SRC_HIGH, R_SRC_LOW, R_DST_HIGH, R_DST_LOW, R_PORTS, R_IPV6, R_KIND, R_SIZE,
    R_START, R_LENGTH, R_EXTRA, R_FILE, R_ORIGIN, R_FRAMES,
) = range(17)  # fmt: skip
ROW: Final = 17
"""What is known of a row besides its packet, by index. R_FRAME is a frame code, -1 for none. R_STREAM is -1
for UDP and -2 for PGM. R_ORIGIN is -1, or has the parts below. R_FRAMES is where the array of frames has how
many frames carried the packet, followed by their codes in the order of its bytes; -1 for R_FRAME alone."""
ORIGIN_CUT, ORIGIN_BEHIND, ORIGIN_MIDSTREAM = 1, 2, 4
"""Of R_ORIGIN: the rest of a malformed packet is missing from the capture; the sender has received bytes that
were not captured, or not in order; the connection was open before the capture."""
ORIGIN_GAPS, ORIGIN_GAPS_MASK, ORIGIN_NUMBER = 3, (1 << 31) - 1, 34
"""Above them the number of gaps in the connection so far, and above that the number of the flow."""
NO_EXTRA: Final = -1
"""R_EXTRA of a packet whose fields are in its bytes, and of a row without any."""
REFUSAL_IN_OFFSETS: Final = -2
"""R_EXTRA of a malformed packet, or of skipped bytes, with a refusal in place of the field offsets: see
`compiled.refusal`."""

I_LINK, I_LIMIT, I_MULTIPLIER, I_DIVISOR, I_OFFSET = range(5)
I_FIELDS: Final = 5
"""An interface of a pcapng section: its link type, -1 if it is for the generic reader; the size of the
largest record; the nanoseconds of a time stamp as a fraction, and what is to be added to them."""
