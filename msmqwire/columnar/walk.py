"""The walk over the records of a capture, compiled: frames to rows, as long as everything is plain.

It stops where it needs more bytes or room, and at each record that only the generic reader can judge:
nothing of that record has been taken then but its place.
"""

from __future__ import annotations

from typing import Any, Final

from msmqwire.capture.tcp import ACK as ACK_FLAG
from msmqwire.capture.tcp import FIN, IDLE_NS_MAX, RST, SWEEP_NS, SYN
from msmqwire.columnar import flows
from msmqwire.columnar.flows import (
    ACKED,
    FIRST,
    FRAME,
    IGNORED,
    IGNORED_FRAME,
    IGNORED_NS,
    KEEP,
    LAST,
    LAST_NS,
    MODE,
    NEEDED,
    NEXT,
    NODE_FRAME,
    NODE_NEXT,
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
from msmqwire.columnar.generated import PLACES, ping
from msmqwire.columnar.jit import b32, copy, jit, u16, u32
from msmqwire.columnar.network import (
    ACK,
    DST_HIGH,
    DST_LOW,
    FLAGS,
    IS_IPV6,
    NOT_IP,
    OTHER,
    PORTS,
    SEQ,
    SRC_HIGH,
    SRC_LOW,
    START,
    STOP,
    TCP,
    UDP,
    datagram,
)
from msmqwire.columnar.packet import JUDGED, PING_KIND, packet_length, session_packet
from msmqwire.dissection.finder import PIECE_COST
from msmqwire.dissection.tracker import HELD_MAX
from msmqwire.headers.base import SIGNATURE, VERSION
from msmqwire.ping import PING_SIGNATURE, PING_SIZE

MORE, ROWS_FULL, ARENA_FULL, PEND_FULL, GENERIC, BLOCK = range(6)
"""Why the walk stopped: ``NEED`` bytes are needed from ``POS`` on; there is no room for rows, for whole
packets (of ``NEED`` bytes) or for pieces (``NEED`` bytes); a record is for the generic reader; a block is."""

(
    POS, END, FRAME_NO, ROWS, ARENA, ARENA_END, NODES, PEND, HELD, SWEEP_AT, IDLE_AT, NOW, WAITING, NEED,
    RECORD, RECORD_SIZE, RECORD_LENGTH, RECORD_NS, RECORD_LINK, RECORD_INTERFACE, NOT_IP_COUNT, OTHER_COUNT,
    IS_PCAPNG, BIG_ENDIAN, UNIT, HEADER_SIZE, LIMIT, LINKTYPE, INTERFACES, FILE, BEFORE,
) = range(31)  # fmt: skip
STATE: Final = 31
"""The state of a walk, by index. Frames are numbered in their file; BEFORE are those of the files before."""

(
    R_TIME, R_FRAME, R_STREAM, R_SRC_HIGH, R_SRC_LOW, R_DST_HIGH, R_DST_LOW, R_PORTS, R_IPV6, R_KIND, R_SIZE, R_START,
    R_LENGTH, R_EXTRA, R_FILE,
) = range(15)  # fmt: skip
ROW: Final = 15
"""What is known of a row besides its bytes, by index. R_STREAM is -1 for UDP, R_EXTRA -1 for a packet that
is well-formed."""

I_LINK, I_LIMIT, I_MULTIPLIER, I_DIVISOR, I_OFFSET = range(5)
I_FIELDS: Final = 5

_CONTROL: Final = FIN | SYN | RST | ACK_FLAG
_ENHANCED: Final = 6
_PING_SIGNATURE_AT: Final = PLACES["Ping"]["Signature"][1]


@jit
def _row(rows: Any, r: int, st: Any, head: Any, stream: int, kind: int, start: int, size: int) -> None:
    rows[r, R_TIME] = st[RECORD_NS]
    rows[r, R_FRAME] = st[FRAME_NO] + 1
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
def _hold(st: Any, flow: Any, nodes: Any, pend: Any, buf: Any, start: int, size: int) -> None:
    """Holds a piece of a packet; there is room."""
    node = st[NODES]
    st[NODES] += 1
    nodes[node, NODE_START] = st[PEND]
    nodes[node, NODE_SIZE] = size
    nodes[node, NODE_FRAME] = st[BEFORE] + st[FRAME_NO] + 1
    nodes[node, NODE_TIME] = st[RECORD_NS]
    nodes[node, NODE_NEXT] = -1
    copy(buf, start, size, pend, st[PEND])
    st[PEND] += size
    if flow[PIECES]:
        nodes[flow[LAST], NODE_NEXT] = node
    else:
        flow[FIRST] = node
    flow[LAST] = node
    flow[PIECES] += 1
    flow[PENDING] += size
    st[HELD] += size + PIECE_COST


@jit
def _deliver(st: Any, flow: Any, nodes: Any, pend: Any, buf: Any, head: Any, rows: Any, at: Any) -> int:
    """The next bytes of a direction that is MSMQ; -1, or why nothing of them was taken."""
    p, stop = head[START], head[STOP]
    size = stop - p
    if st[PEND] + size > pend.size or st[NODES] == nodes.shape[0]:
        st[NEED] = size
        return PEND_FULL
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
                return GENERIC
        if needed == 0 or total < needed:
            if held + size + PIECE_COST > HELD_MAX:
                return GENERIC
            flow[NEEDED] = needed
            _hold(st, flow, nodes, pend, buf, p, size)
            flow[TAKEN] += size
            return -1
        if arena + needed > st[ARENA_END]:
            st[NEED] = needed
            return ARENA_FULL
        if r == rows.shape[0]:
            return ROWS_FULL
        have = gather(flow, nodes, pend, buf, arena, needed)
        copy(buf, p, needed - have, buf, arena + have)
        kind = session_packet(buf, arena, arena + needed, at, r, False)
        if kind < 0:
            return GENERIC
        _row(rows, r, st, head, flow[STREAM], kind, arena, needed)
        r += 1
        arena += needed
        p += needed - have
        held -= flow[PENDING] + PIECE_COST * flow[PIECES]
    needed = 0
    while stop - p >= JUDGED:
        length = packet_length(buf, p)
        if length < 0:
            return GENERIC
        if length > stop - p:
            needed = length
            break
        if r == rows.shape[0]:
            return ROWS_FULL
        kind = session_packet(buf, p, p + length, at, r, False)
        if kind < 0:
            return GENERIC
        _row(rows, r, st, head, flow[STREAM], kind, p, length)
        r += 1
        p += length
    if p < stop and held + stop - p + PIECE_COST > HELD_MAX:
        return GENERIC
    if flow[PENDING]:
        flow[PENDING] = flow[PIECES] = 0
    st[HELD], st[ROWS], st[ARENA] = held, r, arena
    flow[NEEDED] = needed
    flow[TAKEN] += size
    if p < stop:
        _hold(st, flow, nodes, pend, buf, p, stop - p)
    return -1


@jit
def _ignore(st: Any, flow: Any, buf: Any, head: Any) -> int:
    """Bytes of a connection of which nothing is recognised; -1, or GENERIC where something might be."""
    start, stop = head[START], head[STOP]
    if stop - start < JUDGED and buf[start] == VERSION:
        return GENERIC
    at = start + 7
    while at < stop:  # a signature has one of any four bytes in a row
        byte = buf[at]
        if byte == 0x4C or byte == 0x49 or byte == 0x4F or byte == 0x52:
            for first in range(at - 3, min(at, stop - 4) + 1):
                if u32(buf, first) == SIGNATURE:
                    return GENERIC
        at += 4
    flow[IGNORED] += stop - start
    flow[IGNORED_FRAME] = st[BEFORE] + st[FRAME_NO] + 1
    flow[IGNORED_NS] = st[RECORD_NS]
    return -1


@jit
def _segment(
    st: Any, table: Any, keys: Any, dirs: Any, nodes: Any, pend: Any, buf: Any, head: Any, rows: Any, at: Any
) -> int:
    """A TCP segment; -1 when it was taken."""
    time_ns = st[RECORD_NS]
    if time_ns >= st[SWEEP_AT] and (st[WAITING] or time_ns >= st[IDLE_AT]):
        return GENERIC
    number = flows.find(table, keys, head)
    if number < 0:
        return GENERIC
    flow = dirs[number]
    if (
        flow[MODE] == KEEP
        or head[FLAGS] & _CONTROL != ACK_FLAG
        or (head[SEQ] - flow[NEXT]) & 0xFFFFFFFF
        or time_ns - flow[LAST_NS] >= IDLE_NS_MAX
    ):
        return GENERIC
    size = head[STOP] - head[START]
    if size:
        if flow[MODE] == UNKNOWN:
            why = _ignore(st, flow, buf, head)
        else:
            why = _deliver(st, flow, nodes, pend, buf, head, rows, at)
        if why >= 0:
            return why
    if time_ns >= st[SWEEP_AT]:
        st[NOW] = time_ns
        st[SWEEP_AT] = time_ns + SWEEP_NS
    flow[NEXT] += size
    dirs[number ^ 1][ACKED] = head[ACK]
    if time_ns:
        flow[LAST_NS] = time_ns
    flow[FRAME] = st[BEFORE] + st[FRAME_NO] + 1
    return -1


@jit
def _ping(st: Any, ping_ports: Any, buf: Any, head: Any, rows: Any, at: Any) -> int:
    """A UDP datagram; -1 when it was taken or is none of ours."""
    start, stop = head[START], head[STOP]
    signed = stop - start == PING_SIZE and u16(buf, start + _PING_SIGNATURE_AT) == PING_SIGNATURE
    if not signed:
        known = ping_ports[head[PORTS] >> 16] or ping_ports[head[PORTS] & 0xFFFF]
        return GENERIC if known else -1
    r = st[ROWS]
    if r == rows.shape[0]:
        return ROWS_FULL
    if ping(buf, start, stop, at, r, False) != stop:
        return GENERIC
    _row(rows, r, st, head, -1, PING_KIND, start, PING_SIZE)
    st[ROWS] += 1
    return -1


@jit
def _next_record(st: Any, buf: Any, interfaces: Any) -> int:
    """The record at POS; the place behind it, or -1 with why in NEED: 0 for a block that is not plain."""
    pos, end = st[POS], st[END]
    if not st[IS_PCAPNG]:
        header = st[HEADER_SIZE]
        if end - pos < header:
            st[NEED] = header
            return -1
        if st[BIG_ENDIAN]:
            seconds, fraction = b32(buf, pos), b32(buf, pos + 4)
            size, length = b32(buf, pos + 8), b32(buf, pos + 12)
        else:
            seconds, fraction = u32(buf, pos), u32(buf, pos + 4)
            size, length = u32(buf, pos + 8), u32(buf, pos + 12)
        if size > st[LIMIT]:
            st[NEED] = 0
            return -1
        if end - pos - header < size:
            st[NEED] = header + size
            return -1
        st[RECORD] = pos + header
        st[RECORD_SIZE] = size
        st[RECORD_LENGTH] = length
        st[RECORD_NS] = seconds * 1_000_000_000 + fraction * st[UNIT]
        st[RECORD_LINK] = st[LINKTYPE]
        st[RECORD_INTERFACE] = 0
        return pos + header + size
    if end - pos < 32:
        st[NEED] = 32
        return -1
    big = st[BIG_ENDIAN]
    kind = b32(buf, pos) if big else u32(buf, pos)
    size = b32(buf, pos + 4) if big else u32(buf, pos + 4)
    st[NEED] = 0
    if kind != _ENHANCED or size % 4 or size < 32 or size > st[LIMIT]:
        return -1
    if end - pos < size:
        st[NEED] = size
        return -1
    if big:
        interface, high, low = b32(buf, pos + 8), b32(buf, pos + 12), b32(buf, pos + 16)
        captured, length, again = b32(buf, pos + 20), b32(buf, pos + 24), b32(buf, pos + size - 4)
    else:
        interface, high, low = u32(buf, pos + 8), u32(buf, pos + 12), u32(buf, pos + 16)
        captured, length, again = u32(buf, pos + 20), u32(buf, pos + 24), u32(buf, pos + size - 4)
    if again != size or interface >= st[INTERFACES] or high >> 31:
        return -1
    if captured > size - 32 or captured > interfaces[interface, I_LIMIT] or interfaces[interface, I_LINK] < 0:
        return -1
    ticks, divisor = high << 32 | low, interfaces[interface, I_DIVISOR]
    multiplier, whole = interfaces[interface, I_MULTIPLIER], ticks // divisor
    if whole > 9_000_000_000_000_000_000 // multiplier:
        return -1
    time_ns = whole * multiplier + (ticks - whole * divisor) * multiplier // divisor
    st[RECORD] = pos + 28
    st[RECORD_SIZE] = captured
    st[RECORD_LENGTH] = length
    st[RECORD_NS] = time_ns + interfaces[interface, I_OFFSET]
    st[RECORD_LINK] = interfaces[interface, I_LINK]
    st[RECORD_INTERFACE] = interface
    return pos + size


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
) -> int:
    """Goes on from record to record; why it stopped."""
    while True:
        following = _next_record(st, buf, interfaces)
        if following < 0:
            return MORE if st[NEED] else BLOCK
        first = st[RECORD]
        what = datagram(buf, first, first + st[RECORD_SIZE], st[RECORD_LENGTH], st[RECORD_LINK], head)
        if what == TCP:
            why = _segment(st, table, keys, dirs, nodes, pend, buf, head, rows, at)
        elif what == UDP:
            why = _ping(st, ping_ports, buf, head, rows, at)
        elif what == NOT_IP:
            st[NOT_IP_COUNT] += 1
            why = -1
        elif what == OTHER:
            st[OTHER_COUNT] += 1
            why = -1
        else:
            why = GENERIC
        if why >= 0 and why != GENERIC:
            return why
        st[POS] = following
        st[FRAME_NO] += 1
        if why == GENERIC:
            return GENERIC
