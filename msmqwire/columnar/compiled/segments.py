"""TCP segments of directions that the walk has, compiled: from their SYN to their FIN."""

from __future__ import annotations

from typing import Any, Final

from msmqwire.capture.direction import START_WINDOW
from msmqwire.capture.ip import ACK as ACK_FLAG
from msmqwire.capture.ip import FIN, RST, SYN
from msmqwire.capture.tcp import IDLE_NS_MAX, SWEEP_NS
from msmqwire.columnar.compiled import flow_table
from msmqwire.columnar.compiled.delivery import take
from msmqwire.columnar.compiled.flow_table import (
    ACKED,
    AHEAD,
    ENDED,
    FIELDS,
    FRAME,
    FRESH,
    ISN,
    KEEP,
    KNOWN,
    LAST_NS,
    MODE,
    NEXT,
    PENDING,
    STREAM,
    UNKNOWN,
)
from msmqwire.columnar.compiled.jit import inlined, jit
from msmqwire.columnar.compiled.network import (
    ACK,
    DST_HIGH,
    DST_LOW,
    FLAGS,
    IS_IPV6,
    PORTS,
    SEQ,
    SRC_HIGH,
    SRC_LOW,
    START,
    STOP,
)
from msmqwire.columnar.compiled.out_of_order import disorder, now_with, set_now
from msmqwire.columnar.compiled.state import (
    BEFORE,
    BORN,
    DEADLINE,
    FLOWS,
    FRAME_NO,
    FREE,
    IDLE_AT,
    NOW,
    RECORD_NS,
    STREAMS,
    SWEEP_AT,
    WAITING,
)
from msmqwire.columnar.compiled.stop_codes import CONTINUE, GENERIC_RECORD
from msmqwire.dissection.tracker import CONNECTIONS_MAX

_CONTROL: Final = FIN | SYN | RST | ACK_FLAG


@jit
def begin(st: Any, tcp_ports: Any, table: Any, keys: Any, dirs: Any, free: Any, born: Any, head: Any) -> int:
    """The SYN of a connection that is not known; CONTINUE when it was taken."""
    plain = head[FLAGS] & _CONTROL == SYN and head[STOP] == head[START]
    if not plain or st[FREE] == 0 or st[FLOWS] + 1 >= CONNECTIONS_MAX:
        return GENERIC_RECORD
    st[FREE] -= 1
    number = free[st[FREE]]
    port, other = head[PORTS] >> 16, head[PORTS] & 0xFFFF
    mode = KNOWN if tcp_ports[port] or tcp_ports[other] else UNKNOWN
    for side in range(2):
        flow, key = dirs[number + side], keys[number + side]
        for i in range(FIELDS):
            flow[i] = 0
        flow[MODE], flow[ACKED], flow[ISN] = FRESH, -1, -1
        flow[STREAM] = st[STREAMS]
        key[SRC_HIGH if side == 0 else DST_HIGH] = head[SRC_HIGH]
        key[SRC_LOW if side == 0 else DST_LOW] = head[SRC_LOW]
        key[DST_HIGH if side == 0 else SRC_HIGH] = head[DST_HIGH]
        key[DST_LOW if side == 0 else SRC_LOW] = head[DST_LOW]
        key[PORTS] = port << 16 | other if side == 0 else other << 16 | port
        key[IS_IPV6] = head[IS_IPV6]
        flow_table.insert(table, keys, number + side)
    open_direction(st, dirs[number], head, mode)
    st[STREAMS] += 1
    st[FLOWS] += 1
    born[st[BORN]] = number
    st[BORN] += 1
    return CONTINUE


@jit
def open_direction(st: Any, flow: Any, head: Any, mode: int) -> None:
    """A direction begins with its SYN."""
    time_ns = st[RECORD_NS]
    flow[MODE], flow[ISN] = mode, head[SEQ]
    flow[NEXT] = (head[SEQ] + 1) & 0xFFFFFFFF
    flow[LAST_NS] = time_ns
    flow[FRAME] = st[BEFORE] + st[FRAME_NO] + 1
    set_now(st, time_ns, now_with(st, time_ns))


@jit
def answer(st: Any, flow: Any, peer: Any, head: Any) -> int:
    """The answer to the SYN of a connection that the walk has seen begin; CONTINUE when it was taken."""
    if head[FLAGS] & _CONTROL != SYN | ACK_FLAG or head[STOP] != head[START]:
        return GENERIC_RECORD
    if peer[AHEAD] or peer[MODE] == KEEP or peer[MODE] == ENDED:
        return GENERIC_RECORD
    if flow[ACKED] >= 0:
        start = ((flow[ACKED] - head[SEQ] - 1 + 0x80000000) & 0xFFFFFFFF) - 0x80000000
        if not (start >= 0 and start < START_WINDOW):
            return GENERIC_RECORD
    open_direction(st, flow, head, peer[MODE])
    peer[ACKED] = head[ACK]
    return CONTINUE


@jit
def end_direction(st: Any, flow: Any, peer: Any, head: Any) -> int:
    """A segment without data that ends a direction, or comes after its end; CONTINUE when it was taken."""
    if head[STOP] != head[START] or flow[AHEAD] or peer[AHEAD] or peer[MODE] == KEEP:
        return GENERIC_RECORD
    control = head[FLAGS] & _CONTROL
    if flow[MODE] == ENDED:
        if control != ACK_FLAG:
            return GENERIC_RECORD
    elif control != FIN | ACK_FLAG or flow[PENDING] or (head[SEQ] - flow[NEXT]) & 0xFFFFFFFF:
        return GENERIC_RECORD
    flow[MODE] = ENDED
    peer[ACKED] = head[ACK]
    time_ns = st[RECORD_NS]
    if time_ns:
        flow[LAST_NS] = time_ns
    flow[FRAME] = st[BEFORE] + st[FRAME_NO] + 1
    set_now(st, time_ns, now_with(st, time_ns))
    return CONTINUE


@inlined
def segment(
    st: Any,
    table: Any,
    keys: Any,
    dirs: Any,
    nodes: Any,
    pend: Any,
    buf: Any,
    head: Any,
    rows: Any,
    at: Any,
    undo: Any,
    tcp_ports: Any,
    free: Any,
    born: Any,
) -> int:
    """A TCP segment; CONTINUE when it was taken."""
    time_ns = st[RECORD_NS]
    swept = time_ns >= st[SWEEP_AT]
    if swept and (st[WAITING] or time_ns >= st[IDLE_AT] or time_ns >= st[DEADLINE]):
        return GENERIC_RECORD
    number = flow_table.find(table, keys, head)
    if number < 0:
        return begin(st, tcp_ports, table, keys, dirs, free, born, head)
    flow, peer = dirs[number], dirs[number ^ 1]
    if flow[MODE] == KEEP or time_ns - max(flow[LAST_NS], peer[LAST_NS]) >= IDLE_NS_MAX:
        return GENERIC_RECORD
    if flow[MODE] == FRESH:
        return answer(st, flow, peer, head)
    if flow[MODE] == ENDED or head[FLAGS] & _CONTROL != ACK_FLAG:
        return end_direction(st, flow, peer, head)
    offset = ((head[SEQ] - flow[NEXT] + 0x80000000) & 0xFFFFFFFF) - 0x80000000
    if offset or flow[AHEAD] or peer[AHEAD]:
        if peer[MODE] == KEEP:
            return GENERIC_RECORD
        stop_code = disorder(st, flow, peer, nodes, pend, buf, head, rows, at, undo, offset)
        if stop_code >= 0:
            return stop_code
    else:
        size = head[STOP] - head[START]
        if size:
            stop_code = take(st, flow, nodes, pend, buf, head, head[START], head[STOP], rows, at)
            if stop_code >= 0:
                return stop_code
        if swept:
            st[NOW] = time_ns
            st[SWEEP_AT] = time_ns + SWEEP_NS
        flow[NEXT] += size
    peer[ACKED] = head[ACK]
    if time_ns:
        flow[LAST_NS] = time_ns
    flow[FRAME] = st[BEFORE] + st[FRAME_NO] + 1
    return CONTINUE
