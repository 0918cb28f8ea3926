"""The walk over the records of a capture, compiled: frames to rows, as long as everything is plain.

It stops where it needs more bytes or room, and at each record that only the generic reader can judge:
nothing of that record has been taken then but its place.
"""

from __future__ import annotations

from typing import Any, Final

from msmqwire.capture.direction import FAR, START_WINDOW
from msmqwire.capture.pieces import PIECE_COST as MEMORY_COST
from msmqwire.capture.tcp import ACK as ACK_FLAG
from msmqwire.capture.tcp import (
    ACKED_BYTES,
    ACKED_NS,
    ACKED_SEGMENTS,
    BUFFERED_TOTAL_MAX,
    CLOCK_BACK_NS,
    FIN,
    IDLE_NS_MAX,
    RST,
    SWEEP_NS,
    SYN,
)
from msmqwire.columnar import flows
from msmqwire.columnar.flows import (
    ACKED,
    AHEAD,
    AHEAD_COST,
    AHEAD_FIRST,
    AHEAD_FROM,
    AHEAD_LAST,
    DUE,
    ENDED,
    FIELDS,
    FIRST,
    FRAME,
    FRESH,
    IGNORED,
    IGNORED_FRAME,
    IGNORED_NS,
    ISN,
    KEEP,
    KNOWN,
    LAST,
    LAST_NS,
    LATEST,
    LATEST_NS,
    MODE,
    NEEDED,
    NEXT,
    NODE_FRAME,
    NODE_NEXT,
    NODE_PLACE,
    NODE_SIZE,
    NODE_START,
    NODE_TIME,
    PENDING,
    PIECES,
    SINCE,
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
from msmqwire.dissection.tracker import CONNECTIONS_MAX, HELD_MAX
from msmqwire.headers.base import SIGNATURE, VERSION
from msmqwire.ping import PING_SIGNATURE, PING_SIZE

MORE, ROWS_FULL, ARENA_FULL, PEND_FULL, GENERIC, BLOCK = range(6)
"""Why the walk stopped: ``NEED`` bytes are needed from ``POS`` on; there is no room for rows, for whole
packets (of ``NEED`` bytes) or for pieces (``NEED`` bytes); a record is for the generic reader; a block is."""

(
    POS, END, FRAME_NO, ROWS, ARENA, ARENA_END, NODES, PEND, HELD, SWEEP_AT, IDLE_AT, NOW, WAITING, NEED,
    RECORD, RECORD_SIZE, RECORD_LENGTH, RECORD_NS, RECORD_LINK, RECORD_INTERFACE, NOT_IP_COUNT, OTHER_COUNT,
    IS_PCAPNG, BIG_ENDIAN, UNIT, HEADER_SIZE, LIMIT, LINKTYPE, INTERFACES, FILE, BEFORE,
    DEADLINE, BUFFERED, AHEAD_BYTES, REPEATED, EVENT_NS, EVENT_FRAME,
    FREE, FLOWS, STREAMS, BORN,
) = range(41)  # fmt: skip
STATE: Final = 41
NODE_ROOM: Final = ACKED_SEGMENTS + 2
"""Pieces that there is always room for: those that one segment may bring about."""
"""The state of a walk, by index. Frames are numbered in their file; BEFORE are those of the files before.
EVENT is the frame whose bytes are being delivered; DEADLINE is when time may decide over a hole first. FREE numbers are left for connections that the walk sees
begin, FLOWS are known, STREAMS have been seen, and BORN are those that the tracker has not heard of."""

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
def _node(st: Any, nodes: Any, pend: Any, buf: Any, start: int, size: int, place: int) -> int:
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
def _hold(st: Any, flow: Any, nodes: Any, pend: Any, buf: Any, start: int, size: int) -> None:
    """Holds a piece of a packet that is not whole; there is room."""
    node = _node(st, nodes, pend, buf, start, size, 0)
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


@jit
def _deliver(
    st: Any, flow: Any, nodes: Any, pend: Any, buf: Any, head: Any, p: int, stop: int, rows: Any, at: Any
) -> int:
    """The next bytes of a direction that is MSMQ; -1, or why nothing of them was taken."""
    size = stop - p
    if st[PEND] + size > pend.size or st[NODES] + NODE_ROOM > nodes.shape[0]:
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
def _ignore(st: Any, flow: Any, buf: Any, start: int, stop: int) -> int:
    """Bytes of a connection of which nothing is recognised; -1, or GENERIC where something might be."""
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
    flow[IGNORED_FRAME] = st[BEFORE] + st[EVENT_FRAME]
    flow[IGNORED_NS] = st[EVENT_NS]
    return -1


@jit
def take(
    st: Any, flow: Any, nodes: Any, pend: Any, buf: Any, head: Any, start: int, stop: int, rows: Any, at: Any
) -> int:
    """The next bytes of a direction; -1, or why nothing of them was taken."""
    if flow[MODE] == UNKNOWN:
        return _ignore(st, flow, buf, start, stop)
    return _deliver(st, flow, nodes, pend, buf, head, start, stop, rows, at)


@jit
def _now_due(st: Any, flow: Any, nodes: Any) -> None:
    """When time may decide over the first hole of a direction: the receiver may have acknowledged it."""
    flow[DUE] = max(nodes[flow[AHEAD_FIRST], NODE_TIME], flow[SINCE]) + ACKED_NS
    st[DEADLINE] = min(st[DEADLINE], flow[DUE])


@jit
def _ahead(
    st: Any, flow: Any, nodes: Any, pend: Any, buf: Any, start: int, size: int, place: int, now: int
) -> int:
    """Holds bytes that came before those before them: `Direction.take`; -1, or why they were not taken."""
    cost = size + MEMORY_COST
    if flow[AHEAD] == ACKED_SEGMENTS or flow[AHEAD_COST] + cost > ACKED_BYTES:
        return GENERIC
    if st[BUFFERED] + st[AHEAD_BYTES] + cost > BUFFERED_TOTAL_MAX:
        return GENERIC
    if st[PEND] + size > pend.size or st[NODES] + NODE_ROOM > nodes.shape[0]:
        st[NEED] = size
        return PEND_FULL
    first, last = flow[AHEAD_FIRST], flow[AHEAD_LAST]
    append = flow[AHEAD] == 0 or place >= nodes[last, NODE_PLACE] + nodes[last, NODE_SIZE]
    if not append and place + size > nodes[first, NODE_PLACE]:
        return GENERIC
    node = _node(st, nodes, pend, buf, start, size, place)
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
    _now_due(st, flow, nodes)
    return -1


@jit
def _in_order(
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
    """The next bytes, and those held ahead that have become the next; -1, or why nothing was taken."""
    size = head[STOP] - head[START]
    if flow[AHEAD] and flow[NEXT] + size > nodes[flow[AHEAD_FIRST], NODE_PLACE]:
        return GENERIC
    room = size + flow[AHEAD_COST]
    if st[PEND] + room > pend.size or st[NODES] + 2 * NODE_ROOM > nodes.shape[0]:
        st[NEED] = room
        return PEND_FULL
    for i in range(FIELDS):
        undo[i] = flow[i]
    for i in range(STATE):
        undo[FIELDS + i] = st[i]
    why = take(st, flow, nodes, pend, buf, head, head[START], head[STOP], rows, at)
    place = flow[NEXT] + size
    while why < 0 and flow[AHEAD] and nodes[flow[AHEAD_FIRST], NODE_PLACE] == place:
        node = flow[AHEAD_FIRST]
        count, arena = nodes[node, NODE_SIZE], st[ARENA]
        if arena + count > st[ARENA_END]:
            st[NEED] = count
            why = ARENA_FULL
            break
        copy(pend, nodes[node, NODE_START], count, buf, arena)
        st[ARENA] += count
        st[EVENT_NS] = nodes[node, NODE_TIME]
        st[EVENT_FRAME] = nodes[node, NODE_FRAME] - st[BEFORE]
        why = take(st, flow, nodes, pend, buf, head, arena, arena + count, rows, at)
        flow[AHEAD_FIRST] = nodes[node, NODE_NEXT]
        flow[AHEAD] -= 1
        flow[AHEAD_COST] -= count + MEMORY_COST
        st[AHEAD_BYTES] -= count + MEMORY_COST
        place += count
    if why >= 0:
        needed = st[NEED]
        for i in range(FIELDS):
            flow[i] = undo[i]
        for i in range(STATE):
            st[i] = undo[FIELDS + i]
        st[NEED] = needed
        return why
    flow[NEXT] = place - size
    if flow[AHEAD]:
        flow[SINCE] = now
        _now_due(st, flow, nodes)
    return -1


@jit
def _now(st: Any, time_ns: int) -> int:
    """The time of the capture with a segment that is not plainly in order: `Reassembler._segment`."""
    now = st[NOW]
    if time_ns >= st[SWEEP_AT] or (time_ns and not (now - CLOCK_BACK_NS < time_ns and time_ns < now)):
        return time_ns
    return now


@jit
def _set_now(st: Any, time_ns: int, now: int) -> None:
    if time_ns >= st[SWEEP_AT]:
        st[SWEEP_AT] = time_ns + SWEEP_NS
    elif now != st[NOW]:
        st[SWEEP_AT] = min(st[SWEEP_AT], time_ns + SWEEP_NS)
    st[NOW] = now


@jit
def _begin(
    st: Any, tcp_ports: Any, table: Any, keys: Any, dirs: Any, free: Any, born: Any, head: Any
) -> int:
    """The SYN of a connection that is not known; -1 when it was taken."""
    plain = head[FLAGS] & _CONTROL == SYN and head[STOP] == head[START]
    if not plain or st[FREE] == 0 or st[FLOWS] + 1 >= CONNECTIONS_MAX:
        return GENERIC
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
        flows.insert(table, keys, number + side)
    _open(st, dirs[number], head, mode)
    st[STREAMS] += 1
    st[FLOWS] += 1
    born[st[BORN]] = number
    st[BORN] += 1
    return -1


@jit
def _open(st: Any, flow: Any, head: Any, mode: int) -> None:
    """A direction begins with its SYN."""
    time_ns = st[RECORD_NS]
    flow[MODE], flow[ISN] = mode, head[SEQ]
    flow[NEXT] = (head[SEQ] + 1) & 0xFFFFFFFF
    flow[LAST_NS] = time_ns
    flow[FRAME] = st[BEFORE] + st[FRAME_NO] + 1
    _set_now(st, time_ns, _now(st, time_ns))


@jit
def _answer(st: Any, flow: Any, peer: Any, head: Any) -> int:
    """The answer to the SYN of a connection that the walk has seen begin; -1 when it was taken."""
    if head[FLAGS] & _CONTROL != SYN | ACK_FLAG or head[STOP] != head[START]:
        return GENERIC
    if peer[AHEAD] or peer[MODE] == KEEP or peer[MODE] == ENDED:
        return GENERIC
    if flow[ACKED] >= 0:
        start = ((flow[ACKED] - head[SEQ] - 1 + 0x80000000) & 0xFFFFFFFF) - 0x80000000
        if not (0 <= start and start < START_WINDOW):
            return GENERIC
    _open(st, flow, head, peer[MODE])
    peer[ACKED] = head[ACK]
    return -1


@jit
def _end(st: Any, flow: Any, peer: Any, head: Any) -> int:
    """A segment without data that ends a direction, or comes after its end; -1 when it was taken."""
    if head[STOP] != head[START] or flow[AHEAD] or peer[AHEAD] or peer[MODE] == KEEP:
        return GENERIC
    control = head[FLAGS] & _CONTROL
    if flow[MODE] == ENDED:
        if control != ACK_FLAG:
            return GENERIC
    elif control != FIN | ACK_FLAG or flow[PENDING] or (head[SEQ] - flow[NEXT]) & 0xFFFFFFFF:
        return GENERIC
    flow[MODE] = ENDED
    peer[ACKED] = head[ACK]
    time_ns = st[RECORD_NS]
    if time_ns:
        flow[LAST_NS] = time_ns
    flow[FRAME] = st[BEFORE] + st[FRAME_NO] + 1
    _set_now(st, time_ns, _now(st, time_ns))
    return -1


@jit
def _disorder(
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
    """A segment out of order, or of a connection of which something is held ahead; -1 when it was taken."""
    time_ns, size = st[RECORD_NS], head[STOP] - head[START]
    now = _now(st, time_ns)
    if (flow[AHEAD] and now >= flow[DUE]) or (peer[AHEAD] and now >= peer[DUE]):
        return GENERIC
    if offset >= FAR or offset <= -FAR:
        return GENERIC
    why = -1
    if size and offset < 0:
        if offset + size > 0:
            return GENERIC
        st[REPEATED] += size
    elif size and offset > 0:
        why = _ahead(st, flow, nodes, pend, buf, head[START], size, flow[NEXT] + offset, now)
    elif size:
        why = _in_order(st, flow, nodes, pend, buf, head, rows, at, undo, now)
    if why >= 0:
        return why
    _set_now(st, time_ns, now)
    if size and offset == 0:
        flow[NEXT] += size
    return -1


@jit
def _segment(
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
    """A TCP segment; -1 when it was taken."""
    time_ns = st[RECORD_NS]
    swept = time_ns >= st[SWEEP_AT]
    if swept and (st[WAITING] or time_ns >= st[IDLE_AT] or time_ns >= st[DEADLINE]):
        return GENERIC
    number = flows.find(table, keys, head)
    if number < 0:
        return _begin(st, tcp_ports, table, keys, dirs, free, born, head)
    flow, peer = dirs[number], dirs[number ^ 1]
    if flow[MODE] == KEEP or time_ns - max(flow[LAST_NS], peer[LAST_NS]) >= IDLE_NS_MAX:
        return GENERIC
    if flow[MODE] == FRESH:
        return _answer(st, flow, peer, head)
    if flow[MODE] == ENDED or head[FLAGS] & _CONTROL != ACK_FLAG:
        return _end(st, flow, peer, head)
    offset = ((head[SEQ] - flow[NEXT] + 0x80000000) & 0xFFFFFFFF) - 0x80000000
    if offset or flow[AHEAD] or peer[AHEAD]:
        if peer[MODE] == KEEP:
            return GENERIC
        why = _disorder(st, flow, peer, nodes, pend, buf, head, rows, at, undo, offset)
        if why >= 0:
            return why
    else:
        size = head[STOP] - head[START]
        if size:
            why = take(st, flow, nodes, pend, buf, head, head[START], head[STOP], rows, at)
            if why >= 0:
                return why
        if swept:
            st[NOW] = time_ns
            st[SWEEP_AT] = time_ns + SWEEP_NS
        flow[NEXT] += size
    peer[ACKED] = head[ACK]
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
    undo: Any,
    tcp_ports: Any,
    free: Any,
    born: Any,
) -> int:
    """Goes on from record to record; why it stopped."""
    while True:
        following = _next_record(st, buf, interfaces)
        if following < 0:
            return MORE if st[NEED] else BLOCK
        first = st[RECORD]
        st[EVENT_NS], st[EVENT_FRAME] = st[RECORD_NS], st[FRAME_NO] + 1
        what = datagram(buf, first, first + st[RECORD_SIZE], st[RECORD_LENGTH], st[RECORD_LINK], head)
        if what == TCP:
            why = _segment(st, table, keys, dirs, nodes, pend, buf, head, rows, at, undo, tcp_ports, free, born)
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
