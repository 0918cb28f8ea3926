"""Bytes of a direction to rows, compiled: what `Connection` and `PacketFinder` do with what is in step."""

from __future__ import annotations

from typing import Any

from msmqwire.columnar.compiled.flow_table import (
    FIRST,
    IGNORED,
    IGNORED_FRAME,
    IGNORED_NS,
    LAST,
    LATEST,
    LATEST_NS,
    MODE,
    NEEDED,
    NODE_FRAME,
    NODE_NEXT,
    NODE_PLACE,
    NODE_SIZE,
    NODE_START,
    NODE_TIME,
    PENDING,
    PIECES,
    STREAM,
    TAKEN,
    UNKNOWN,
    gather,
)
from msmqwire.columnar.compiled.jit import copy, inlined, jit, u32
from msmqwire.columnar.compiled.network import DST_HIGH, DST_LOW, IS_IPV6, PORTS, SRC_HIGH, SRC_LOW
from msmqwire.columnar.compiled.packet import JUDGED, packet_length, session_packet
from msmqwire.columnar.compiled.state import (
    ARENA,
    ARENA_END,
    BEFORE,
    EVENT_FRAME,
    EVENT_NS,
    FILE,
    HELD,
    NEED,
    NODE_ROOM,
    NODES,
    PEND,
    R_DST_HIGH,
    R_DST_LOW,
    R_EXTRA,
    R_FILE,
    R_FRAME,
    R_IPV6,
    R_KIND,
    R_LENGTH,
    R_PORTS,
    R_SIZE,
    R_SRC_HIGH,
    R_SRC_LOW,
    R_START,
    R_STREAM,
    R_TIME,
    ROWS,
)
from msmqwire.columnar.compiled.stop_codes import (
    ARENA_FULL,
    CONTINUE,
    GENERIC_RECORD,
    PENDING_FULL,
    ROWS_FULL,
)
from msmqwire.dissection.finder import PIECE_COST
from msmqwire.dissection.tracker import HELD_MAX
from msmqwire.headers.base import SIGNATURE, VERSION


@inlined
def write_row(rows: Any, r: int, st: Any, head: Any, stream: int, kind: int, start: int, size: int) -> None:
    rows[r, R_TIME] = st[EVENT_NS]
    rows[r, R_FRAME] = st[EVENT_FRAME]
    rows[r, R_STREAM] = stream
    rows[r, R_SRC_HIGH] = head[SRC_HIGH]
    rows[r, R_SRC_LOW] = head[SRC_LOW]
    rows[r, R_DST_HIGH] = head[DST_HIGH]
    rows[r, R_DST_LOW] = head[DST_LOW]
    rows[r, R_PORTS] = head[PORTS]
    rows[r, R_IPV6] = head[IS_IPV6]
    rows[r, R_KIND] = kind
    rows[r, R_SIZE] = size
    rows[r, R_START] = start
    rows[r, R_LENGTH] = size
    rows[r, R_EXTRA] = -1
    rows[r, R_FILE] = st[FILE]


@jit
def new_node(st: Any, nodes: Any, pend: Any, buf: Any, start: int, size: int, place: int) -> int:
    """A new piece; there is room."""
    node = st[NODES]
    st[NODES] += 1
    nodes[node, NODE_START] = st[PEND]
    nodes[node, NODE_SIZE] = size
    nodes[node, NODE_FRAME] = st[BEFORE] + st[EVENT_FRAME]
    nodes[node, NODE_TIME] = st[EVENT_NS]
    nodes[node, NODE_NEXT] = -1
    nodes[node, NODE_PLACE] = place
    copy(buf, start, size, pend, st[PEND])
    st[PEND] += size
    return node


@jit
def hold(st: Any, flow: Any, nodes: Any, pend: Any, buf: Any, start: int, size: int) -> None:
    """Holds a piece of a packet that is not whole; there is room."""
    node = new_node(st, nodes, pend, buf, start, size, 0)
    if flow[PIECES]:
        nodes[flow[LAST], NODE_NEXT] = node
    else:
        flow[FIRST] = node
        flow[LATEST] = 0
    flow[LAST] = node
    flow[PIECES] += 1
    flow[PENDING] += size
    st[HELD] += size + PIECE_COST
    if nodes[node, NODE_FRAME] > flow[LATEST]:
        flow[LATEST], flow[LATEST_NS] = nodes[node, NODE_FRAME], nodes[node, NODE_TIME]


@inlined
def deliver(
    st: Any, flow: Any, nodes: Any, pend: Any, buf: Any, head: Any, p: int, stop: int, rows: Any, at: Any
) -> int:
    """The next bytes of a direction that is MSMQ; CONTINUE, or the stop code if nothing of them was taken."""
    size = stop - p
    if st[PEND] + size > pend.size or st[NODES] + NODE_ROOM > nodes.shape[0]:
        st[NEED] = size
        return PENDING_FULL
    r, arena = st[ROWS], st[ARENA]
    held = st[HELD]
    if flow[PENDING]:
        total, needed = flow[PENDING] + size, flow[NEEDED]
        if needed == 0 and total >= JUDGED:
            if arena + JUDGED > st[ARENA_END]:
                st[NEED] = JUDGED
                return ARENA_FULL
            have = gather(flow, nodes, pend, buf, arena, JUDGED)
            copy(buf, p, JUDGED - have, buf, arena + have)
            needed = packet_length(buf, arena)
            if needed < 0:
                return GENERIC_RECORD
        if needed == 0 or total < needed:
            if held + size + PIECE_COST > HELD_MAX:
                return GENERIC_RECORD
            flow[NEEDED] = needed
            hold(st, flow, nodes, pend, buf, p, size)
            flow[TAKEN] += size
            return CONTINUE
        if arena + needed > st[ARENA_END]:
            st[NEED] = needed
            return ARENA_FULL
        if r == rows.shape[0]:
            return ROWS_FULL
        have = gather(flow, nodes, pend, buf, arena, needed)
        copy(buf, p, needed - have, buf, arena + have)
        kind = session_packet(buf, arena, arena + needed, at, r, False)
        if kind < 0:
            return GENERIC_RECORD
        write_row(rows, r, st, head, flow[STREAM], kind, arena, needed)
        if flow[LATEST] > st[BEFORE] + st[EVENT_FRAME]:
            rows[r, R_FRAME], rows[r, R_TIME] = flow[LATEST] - st[BEFORE], flow[LATEST_NS]
        r += 1
        arena += needed
        p += needed - have
        held -= flow[PENDING] + PIECE_COST * flow[PIECES]
    needed = 0
    while stop - p >= JUDGED:
        length = packet_length(buf, p)
        if length < 0:
            return GENERIC_RECORD
        if length > stop - p:
            needed = length
            break
        if r == rows.shape[0]:
            return ROWS_FULL
        kind = session_packet(buf, p, p + length, at, r, False)
        if kind < 0:
            return GENERIC_RECORD
        write_row(rows, r, st, head, flow[STREAM], kind, p, length)
        r += 1
        p += length
    if p < stop and held + stop - p + PIECE_COST > HELD_MAX:
        return GENERIC_RECORD
    if flow[PENDING]:
        flow[PENDING] = flow[PIECES] = 0
    st[HELD], st[ROWS], st[ARENA] = held, r, arena
    flow[NEEDED] = needed
    flow[TAKEN] += size
    if p < stop:
        hold(st, flow, nodes, pend, buf, p, stop - p)
    return CONTINUE


@jit
def ignore(st: Any, flow: Any, buf: Any, start: int, stop: int) -> int:
    """Count bytes of an unrecognised connection; return GENERIC_RECORD if they may contain a packet."""
    if stop - start < JUDGED and buf[start] == VERSION:
        return GENERIC_RECORD
    at = start + 7
    while at < stop:  # a signature has one of any four bytes in a row
        byte = buf[at]
        if byte == 0x4C or byte == 0x49 or byte == 0x4F or byte == 0x52:
            for first in range(at - 3, min(at, stop - 4) + 1):
                if u32(buf, first) == SIGNATURE:
                    return GENERIC_RECORD
        at += 4
    flow[IGNORED] += stop - start
    flow[IGNORED_FRAME] = st[BEFORE] + st[EVENT_FRAME]
    flow[IGNORED_NS] = st[EVENT_NS]
    return CONTINUE


@inlined
def take(
    st: Any, flow: Any, nodes: Any, pend: Any, buf: Any, head: Any, start: int, stop: int, rows: Any, at: Any
) -> int:
    """The next bytes of a direction; CONTINUE, or the stop code if nothing of them was taken."""
    if flow[MODE] == UNKNOWN:
        return ignore(st, flow, buf, start, stop)
    return deliver(st, flow, nodes, pend, buf, head, start, stop, rows, at)
