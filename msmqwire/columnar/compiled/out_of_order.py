"""Segments out of order, compiled: the plain cases of `Direction.take` and `Reassembler._settle`."""

from __future__ import annotations

from typing import Any

from msmqwire.capture.direction import FAR
from msmqwire.capture.segment_buffer import PIECE_COST as MEMORY_COST
from msmqwire.capture.tcp import (
    ACKED_BYTES,
    ACKED_NS,
    ACKED_SEGMENTS,
    BUFFERED_TOTAL_MAX,
    CLOCK_BACK_NS,
    SWEEP_NS,
)
from msmqwire.columnar.compiled.delivery import new_node, take
from msmqwire.columnar.compiled.flow_table import (
    AHEAD,
    AHEAD_COST,
    AHEAD_FIRST,
    AHEAD_FROM,
    AHEAD_LAST,
    DUE,
    FIELDS,
    NEXT,
    NODE_FRAME,
    NODE_NEXT,
    NODE_PLACE,
    NODE_SIZE,
    NODE_START,
    NODE_TIME,
    SINCE,
)
from msmqwire.columnar.compiled.jit import copy, jit
from msmqwire.columnar.compiled.network import START, STOP
from msmqwire.columnar.compiled.state import (
    AHEAD_BYTES,
    ARENA,
    ARENA_END,
    BEFORE,
    BUFFERED,
    DEADLINE,
    EVENT_FRAME,
    EVENT_NS,
    NEED,
    NODE_ROOM,
    NODES,
    NOW,
    PEND,
    RECORD_NS,
    REPEATED,
    STATE,
    SWEEP_AT,
)
from msmqwire.columnar.compiled.stop_codes import ARENA_FULL, CONTINUE, GENERIC_RECORD, PENDING_FULL


@jit
def now_with(st: Any, time_ns: int) -> int:
    """The time of the capture with a segment that is not plainly in order: `Reassembler._segment`."""
    now = st[NOW]
    if time_ns >= st[SWEEP_AT] or (time_ns and not (now - CLOCK_BACK_NS < time_ns < now)):
        return time_ns
    return now


@jit
def set_now(st: Any, time_ns: int, now: int) -> None:
    if time_ns >= st[SWEEP_AT]:
        st[SWEEP_AT] = time_ns + SWEEP_NS
    elif now != st[NOW]:
        st[SWEEP_AT] = min(st[SWEEP_AT], time_ns + SWEEP_NS)
    st[NOW] = now


@jit
def now_due(st: Any, flow: Any, nodes: Any) -> None:
    """When time may decide over the first hole of a direction: the receiver may have acknowledged it."""
    flow[DUE] = max(nodes[flow[AHEAD_FIRST], NODE_TIME], flow[SINCE]) + ACKED_NS
    st[DEADLINE] = min(st[DEADLINE], flow[DUE])


@jit
def take_ahead(
    st: Any, flow: Any, nodes: Any, pend: Any, buf: Any, start: int, size: int, place: int, now: int
) -> int:
    """Buffer bytes beyond a gap: `Direction.take`; return CONTINUE, or why not."""
    cost = size + MEMORY_COST
    if flow[AHEAD] == ACKED_SEGMENTS or flow[AHEAD_COST] + cost > ACKED_BYTES:
        return GENERIC_RECORD
    if st[BUFFERED] + st[AHEAD_BYTES] + cost > BUFFERED_TOTAL_MAX:
        return GENERIC_RECORD
    if st[PEND] + size > pend.size or st[NODES] + NODE_ROOM > nodes.shape[0]:
        st[NEED] = size
        return PENDING_FULL
    first, last = flow[AHEAD_FIRST], flow[AHEAD_LAST]
    append = flow[AHEAD] == 0 or place >= nodes[last, NODE_PLACE] + nodes[last, NODE_SIZE]
    if not append and place + size > nodes[first, NODE_PLACE]:
        return GENERIC_RECORD
    node = new_node(st, nodes, pend, buf, start, size, place)
    if flow[AHEAD] == 0:
        flow[AHEAD_FIRST] = node
        flow[AHEAD_FROM] = st[BEFORE] + st[EVENT_FRAME]
        flow[SINCE] = now
    elif append:
        nodes[last, NODE_NEXT] = node
    else:
        nodes[node, NODE_NEXT] = first
        flow[AHEAD_FIRST] = node
    if append:
        flow[AHEAD_LAST] = node
    flow[AHEAD] += 1
    flow[AHEAD_COST] += cost
    st[AHEAD_BYTES] += cost
    now_due(st, flow, nodes)
    return CONTINUE


@jit
def take_in_order(
    st: Any,
    flow: Any,
    nodes: Any,
    pend: Any,
    buf: Any,
    head: Any,
    rows: Any,
    at: Any,
    undo: Any,
    now: int,
) -> int:
    """Deliver the next bytes, and buffered ones that have become the next; return CONTINUE or a stop code."""
    size = head[STOP] - head[START]
    if flow[AHEAD] and flow[NEXT] + size > nodes[flow[AHEAD_FIRST], NODE_PLACE]:
        return GENERIC_RECORD
    room = size + flow[AHEAD_COST]
    if st[PEND] + room > pend.size or st[NODES] + 2 * NODE_ROOM > nodes.shape[0]:
        st[NEED] = room
        return PENDING_FULL
    for i in range(FIELDS):
        undo[i] = flow[i]
    for i in range(STATE):
        undo[FIELDS + i] = st[i]
    stop_code = take(st, flow, nodes, pend, buf, head, head[START], head[STOP], rows, at)
    place = flow[NEXT] + size
    while stop_code < 0 and flow[AHEAD] and nodes[flow[AHEAD_FIRST], NODE_PLACE] == place:
        node = flow[AHEAD_FIRST]
        count, arena = nodes[node, NODE_SIZE], st[ARENA]
        if arena + count > st[ARENA_END]:
            st[NEED] = count
            stop_code = ARENA_FULL
            break
        copy(pend, nodes[node, NODE_START], count, buf, arena)
        st[ARENA] += count
        st[EVENT_NS] = nodes[node, NODE_TIME]
        st[EVENT_FRAME] = nodes[node, NODE_FRAME] - st[BEFORE]
        stop_code = take(st, flow, nodes, pend, buf, head, arena, arena + count, rows, at)
        flow[AHEAD_FIRST] = nodes[node, NODE_NEXT]
        flow[AHEAD] -= 1
        flow[AHEAD_COST] -= count + MEMORY_COST
        st[AHEAD_BYTES] -= count + MEMORY_COST
        place += count
    if stop_code >= 0:
        needed = st[NEED]
        for i in range(FIELDS):
            flow[i] = undo[i]
        for i in range(STATE):
            st[i] = undo[FIELDS + i]
        st[NEED] = needed
        return stop_code
    flow[NEXT] = place - size
    if flow[AHEAD]:
        flow[SINCE] = now
        now_due(st, flow, nodes)
    return CONTINUE


@jit
def disorder(
    st: Any,
    flow: Any,
    peer: Any,
    nodes: Any,
    pend: Any,
    buf: Any,
    head: Any,
    rows: Any,
    at: Any,
    undo: Any,
    offset: int,
) -> int:
    """Take a segment that is out of order, or of a connection with a gap; return CONTINUE or a stop code."""
    time_ns, size = st[RECORD_NS], head[STOP] - head[START]
    now = now_with(st, time_ns)
    if (flow[AHEAD] and now >= flow[DUE]) or (peer[AHEAD] and now >= peer[DUE]):
        return GENERIC_RECORD
    if offset >= FAR or offset <= -FAR:
        return GENERIC_RECORD
    stop_code = CONTINUE
    if size and offset < 0:
        if offset + size > 0:
            return GENERIC_RECORD
        st[REPEATED] += size
    elif size and offset > 0:
        stop_code = take_ahead(st, flow, nodes, pend, buf, head[START], size, flow[NEXT] + offset, now)
    elif size:
        stop_code = take_in_order(st, flow, nodes, pend, buf, head, rows, at, undo, now)
    if stop_code >= 0:
        return stop_code
    set_now(st, time_ns, now)
    if size and offset == 0:
        flow[NEXT] += size
    return CONTINUE
