"""The walk over TCP segments and pings that stand flow by flow, compiled.

A run is what stands together of one flow, or of one piece of a flow that is cut. One of a whole flow that
the walk has followed from the first SYN, and that leaves nothing to be told, is over without anyone being
asked. Where any other ends, and where a piece begins, the walk stops.
"""

from __future__ import annotations

from typing import Any, Final

from msmqwire.capture.tcp import IDLE_NS_MAX, SWEEP_NS
from msmqwire.columnar.compiled.flow_table import ACKED, AHEAD, ENDED, ISN, KEEP, MODE, NEXT, PIECES
from msmqwire.columnar.compiled.jit import jit
from msmqwire.columnar.compiled.network import START, STOP, TCP, UDP
from msmqwire.columnar.compiled.scan import ping_datagram
from msmqwire.columnar.compiled.segments import segment
from msmqwire.columnar.compiled.state import (
    BORN,
    END,
    EVENT_FRAME,
    EVENT_NS,
    FLOWS,
    FRAME_NO,
    FREE,
    HELD,
    IDLE_AT,
    NODES,
    NOW,
    PEND,
    POS,
    R_STREAM,
    RECORD_NS,
    ROWS,
    STREAMS,
    SWEEP_AT,
)
from msmqwire.columnar.compiled.stop_codes import GENERIC_RECORD, MORE_INPUT, RUN_BEGINS, RUN_ENDS

S_HEAD: Final = STOP + 1
S_KIND, S_PLACE, S_TIME, S_FLOW, S_PIECE, S_CUT = range(S_HEAD, S_HEAD + 6)
S_FIELDS: Final = S_HEAD + 6
"""A segment, by index: first what `network.datagram` tells, with the places of the payload as its array has
them; TCP, UDP, or another number where it is for the generic reader; a number for its frame that grows within
a run; when it was captured; its flow; its piece; whether its flow is cut."""

IS_OPEN, FLOW, PIECE, IS_CUT, HANDED, OPENING, MARK, BASE = range(8)
RUN: Final = 8
"""The run at hand, by index: whether there is one, its flow and piece, whether the flow is cut, whether a
tracker was asked about it, how many more segments are for the tracker whatever they are, and the first row
that does not bear the number of its flow yet. BASE is the place in the array of payloads of the first byte in
memory."""


@jit
def is_quiet(dirs: Any, number: int) -> bool:
    """Whether the end of the capture tells nothing about a connection that the walk saw begin."""
    for side in range(2):
        flow = dirs[number + side]
        if flow[PIECES] or flow[AHEAD]:
            return False
        if flow[ACKED] >= 0 and flow[ISN] >= 0 and flow[MODE] != ENDED:
            beyond = ((flow[ACKED] - flow[NEXT] + 0x80000000) & 0xFFFFFFFF) - 0x80000000
            if beyond > 1:
                return False
    return True


@jit
def name_rows(st: Any, run: Any, rows: Any) -> None:
    """Has the rows of the run bear the number of its flow in place of that of a connection."""
    for r in range(run[MARK], st[ROWS]):
        if rows[r, R_STREAM] >= 0:
            rows[r, R_STREAM] = run[FLOW]
    run[MARK] = st[ROWS]


@jit
def end_run(st: Any, run: Any, table: Any, dirs: Any, rows: Any, free: Any, born: Any) -> bool:
    """Forgets the run at hand, if no one need be asked."""
    if run[HANDED] or run[IS_CUT]:
        return False
    for i in range(st[BORN]):
        if not is_quiet(dirs, born[i]):
            return False
    name_rows(st, run, rows)
    for i in range(st[BORN]):
        dirs[born[i], MODE] = dirs[born[i] + 1, MODE] = KEEP
        dirs[born[i], ACKED] = dirs[born[i] + 1, ACKED] = -1
        free[st[FREE]] = born[i]
        st[FREE] += 1
    if st[BORN]:
        table[:] = -1
    st[BORN] = st[FLOWS] = st[STREAMS] = st[NODES] = st[PEND] = st[HELD] = 0
    st[NOW] = st[SWEEP_AT] = st[IDLE_AT] = 0
    run[IS_OPEN] = 0
    return True


@jit
def walk_segments(
    st: Any,
    run: Any,
    segments: Any,
    buf: Any,
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
    """Goes on from segment to segment up to that of number END; returns the stop code."""
    while st[POS] < st[END]:
        one = segments[st[POS]]
        over = run[IS_OPEN] and (one[S_FLOW] != run[FLOW] or one[S_PIECE] != run[PIECE])
        if over and not end_run(st, run, table, dirs, rows, free, born):
            return RUN_ENDS
        if not run[IS_OPEN]:
            run[IS_OPEN], run[HANDED] = 1, 0
            run[FLOW], run[PIECE], run[IS_CUT] = one[S_FLOW], one[S_PIECE], one[S_CUT]
            if one[S_CUT]:
                return RUN_BEGINS
        if run[OPENING]:
            return GENERIC_RECORD
        time_ns = one[S_TIME]
        for i in range(STOP + 1):
            head[i] = one[i]
        head[START] -= run[BASE]
        head[STOP] -= run[BASE]
        st[RECORD_NS] = st[EVENT_NS] = time_ns
        st[FRAME_NO], st[EVENT_FRAME] = one[S_PLACE] - 1, one[S_PLACE]
        if one[S_KIND] == TCP:
            if not run[HANDED] and st[IDLE_AT] == 0 and st[FLOWS] == 0 and time_ns >= 0:
                # The first look of a tracker that knows of no connection yet: see `Reassembler`.
                st[NOW], st[SWEEP_AT], st[IDLE_AT] = time_ns, time_ns + SWEEP_NS, time_ns + IDLE_NS_MAX // 8
            stop_code = segment(
                st, table, keys, dirs, nodes, pend, buf, head, rows, at, undo, tcp_ports, free, born
            )
        elif one[S_KIND] == UDP:
            stop_code = ping_datagram(st, ping_ports, buf, head, rows, at)
        else:
            stop_code = GENERIC_RECORD
        if stop_code >= 0:
            return stop_code
        st[POS] += 1
    return MORE_INPUT
