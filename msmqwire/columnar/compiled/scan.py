"""The walk over the records of a capture, compiled: frames to rows, as long as everything is plain.

It stops where it needs more bytes or room, and at each record that only the generic reader can judge:
nothing of that record has been taken then but its place.
"""

from __future__ import annotations

from typing import Any, Final

from msmqwire.columnar.compiled.delivery import write_row
from msmqwire.columnar.compiled.generated import PLACES, ping
from msmqwire.columnar.compiled.jit import LINE, jit, prefetch, u16
from msmqwire.columnar.compiled.network import NOT_IP, OTHER, PORTS, START, STOP, TCP, UDP, datagram
from msmqwire.columnar.compiled.packet import PING_KIND
from msmqwire.columnar.compiled.records import next_record
from msmqwire.columnar.compiled.segments import segment
from msmqwire.columnar.compiled.state import (
    EVENT_FRAME,
    EVENT_NS,
    FRAME_NO,
    NEED,
    NOT_IP_COUNT,
    OTHER_COUNT,
    POS,
    RECORD,
    RECORD_LENGTH,
    RECORD_LINK,
    RECORD_NS,
    RECORD_SIZE,
    ROWS,
)
from msmqwire.columnar.compiled.stop_codes import (
    CONTINUE,
    GENERIC_BLOCK,
    GENERIC_RECORD,
    MORE_INPUT,
    ROWS_FULL,
)
from msmqwire.ping import PING_SIGNATURE, PING_SIZE

_PING_SIGNATURE_AT: Final = PLACES["Ping"]["Signature"][1]
_HEADERS: Final = 3 * LINE  # about where a frame has its headers, and where a packet in it begins


@jit
def ping_datagram(st: Any, ping_ports: Any, buf: Any, head: Any, rows: Any, at: Any) -> int:
    """A UDP datagram; CONTINUE when it was taken or is none of ours."""
    start, stop = head[START], head[STOP]
    signed = stop - start == PING_SIZE and u16(buf, start + _PING_SIGNATURE_AT) == PING_SIGNATURE
    if not signed:
        known = ping_ports[head[PORTS] >> 16] or ping_ports[head[PORTS] & 0xFFFF]
        return GENERIC_RECORD if known else CONTINUE
    r = st[ROWS]
    if r == rows.shape[0]:
        return ROWS_FULL
    if ping(buf, start, stop, at, r, False) != stop:
        return GENERIC_RECORD
    write_row(rows, r, st, head, -1, PING_KIND, start, PING_SIZE)
    st[ROWS] += 1
    return CONTINUE


@jit
def walk(
    st: Any,
    buf: Any,
    interfaces: Any,
    ping_ports: Any,
    table: Any,
    keys: Any,
    dirs: Any,
    nodes: Any,
    pend: Any,
    head: Any,
    rows: Any,
    at: Any,
    undo: Any,
    tcp_ports: Any,
    free: Any,
    born: Any,
) -> int:
    """Goes on from record to record; returns the stop code."""
    while True:
        following = next_record(st, buf, interfaces)
        if following < 0:
            return MORE_INPUT if st[NEED] else GENERIC_BLOCK
        for place in range(following, following + _HEADERS, LINE):
            prefetch(buf, place)
        first = st[RECORD]
        st[EVENT_NS], st[EVENT_FRAME] = st[RECORD_NS], st[FRAME_NO] + 1
        what = datagram(buf, first, first + st[RECORD_SIZE], st[RECORD_LENGTH], st[RECORD_LINK], head)
        if what == TCP:
            stop_code = segment(
                st, table, keys, dirs, nodes, pend, buf, head, rows, at, undo, tcp_ports, free, born
            )
        elif what == UDP:
            stop_code = ping_datagram(st, ping_ports, buf, head, rows, at)
        elif what == NOT_IP:
            st[NOT_IP_COUNT] += 1
            stop_code = CONTINUE
        elif what == OTHER:
            st[OTHER_COUNT] += 1
            stop_code = CONTINUE
        else:
            stop_code = GENERIC_RECORD
        if stop_code >= 0 and stop_code != GENERIC_RECORD:
            return stop_code
        st[POS] = following
        st[FRAME_NO] += 1
        if stop_code == GENERIC_RECORD:
            return GENERIC_RECORD
