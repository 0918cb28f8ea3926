"""The compiled scan over the records of a capture for TCP segments and UDP datagrams of any content."""

from __future__ import annotations

from typing import Any, Final

from msmqwire.columnar.compiled import state as w
from msmqwire.columnar.compiled.flow_table import KEY_FIELDS, find, insert
from msmqwire.columnar.compiled.jit import copy, inlined, jit
from msmqwire.columnar.compiled.network import ACK, FLAGS, SEQ, START, STOP, TCP, UDP, UNDECIDED, datagram
from msmqwire.columnar.compiled.records import next_record
from msmqwire.columnar.compiled.stop_codes import (
    ARENA_FULL,
    GENERIC_BLOCK,
    GENERIC_RECORD,
    MORE_INPUT,
    PAIRS_FULL,
    ROWS_FULL,
)

_HEADERS: Final = 256  # more than `datagram` looks at of a frame: link, tags, IP with options, TCP

C_OFFSET, C_TIME, C_FILE, C_TRANSPORT, C_PAIR, C_SEQ, C_ACK, C_FLAGS, C_SIZE, C_MISSING = range(10)
COLUMNS: Final = 10
"""What is known of a datagram besides its payload, by index: where the record of the frame that completed it
starts in the unpacked file, when that was captured, the number of the file, TCP or UDP, the number of the
pair of endpoints, what TCP says, how long the payload is and what the capture cut off behind it."""


@inlined
def pair_of(st: Any, table: Any, keys: Any, head: Any) -> int:
    """The number of a pair of endpoints, a new one for a new pair; -1 where there is no room for it."""
    number: int = find(table, keys, head)
    if number >= 0:
        return number
    number = st[w.FLOWS]
    if number == keys.shape[0]:
        return -1
    for i in range(KEY_FIELDS):
        keys[number, i] = head[i]
    insert(table, keys, number)
    st[w.FLOWS] += 1
    return number


@jit
def walk_datagrams(
    st: Any,
    buf: Any,
    interfaces: Any,
    head: Any,
    table: Any,
    keys: Any,
    cells: Any,
    payloads: Any,
    start: int,
    kept: bool,
    copied: bool,
) -> int:
    """Goes on from record to record; returns the stop code. The next row has the place of the record then.

    Rows are made if they are to be kept, and payloads copied if they are wanted too.
    """
    while True:
        r = st[w.ROWS]
        if r == cells.shape[1]:
            return ROWS_FULL
        cells[C_OFFSET, r] = start + st[w.POS]
        following = next_record(st, buf, interfaces)
        if following < 0:
            return MORE_INPUT if st[w.NEED] else GENERIC_BLOCK
        first, length = st[w.RECORD], st[w.RECORD_LENGTH]
        stop = whole = first + st[w.RECORD_SIZE]
        if first + _HEADERS <= st[w.END]:
            whole = max(stop, first + length)
        # As if nothing had been cut off: headers alone are looked at, and they must end before that.
        what = datagram(buf, first, whole, length, st[w.RECORD_LINK], head)
        if what in (TCP, UDP) and head[START] > stop:
            what = UNDECIDED
        if kept and what in (TCP, UDP):
            end = min(head[STOP], stop)
            size = end - head[START]
            if copied and size > payloads.size - st[w.ARENA]:
                st[w.NEED] = size
                return ARENA_FULL
            pair = pair_of(st, table, keys, head)
            if pair < 0:
                return PAIRS_FULL
            is_tcp = what == TCP
            cells[C_TIME, r] = st[w.RECORD_NS]
            cells[C_FILE, r] = st[w.FILE]
            cells[C_TRANSPORT, r] = what
            cells[C_PAIR, r] = pair
            cells[C_SEQ, r] = head[SEQ] if is_tcp else 0
            cells[C_ACK, r] = head[ACK] if is_tcp else 0
            cells[C_FLAGS, r] = head[FLAGS] if is_tcp else 0
            cells[C_SIZE, r] = size
            cells[C_MISSING, r] = head[STOP] - end
            if copied:
                copy(buf, head[START], size, payloads, st[w.ARENA])
                st[w.ARENA] += size
            st[w.ROWS] += 1
        st[w.POS] = following
        st[w.FRAME_NO] += 1
        if what == UNDECIDED:
            return GENERIC_RECORD
