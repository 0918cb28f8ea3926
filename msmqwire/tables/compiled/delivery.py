"""The bytes of a flow to rows, compiled.

It does what `Connection` and `PacketFinder` do with the bytes of a connection that are in step with its
packets.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from msmqwire.analysis.dissection.http_connection import HTTP_PORT, METHOD
from msmqwire.analysis.dissection.ncp_finder import REPLY as NCP_REPLY
from msmqwire.analysis.dissection.ncp_finder import REQUEST as NCP_REQUEST
from msmqwire.analysis.dissection.skip_reasons import PACKET_MIN, Why
from msmqwire.capture.segment_buffer import SEGMENT_COST
from msmqwire.headers.base import PREFIX_SIZE, VERSION
from msmqwire.ncp.headers import NCP_PORT
from msmqwire.rpc.constants import RPC_PORTS, PduType
from msmqwire.rpc.pdus import RPC_VERSION
from msmqwire.tables.compiled.decorators import inlined, jit
from msmqwire.tables.compiled.finding import find_packets
from msmqwire.tables.compiled.flow_table import (
    AFTER_BAD,
    BEGINS_INSIDE,
    DELIVERED,
    DOUBTFUL_SIZE,
    IGNORED,
    IGNORED_FRAME,
    IGNORED_NS,
    IN_DOUBT,
    IS_KNOWN,
    IS_STARTED,
    LOSS,
    MIDSTREAM,
    MODE,
    PACKET_BYTES,
    PACKET_FIRST,
    PACKET_FRAME,
    PACKET_LEAD,
    PACKET_NS,
    PACKET_SEGMENTS,
    PACKET_SIZE,
    SEG_FRAME,
    SEG_NEXT,
    SEG_NS,
    SEG_SIZE,
    START_KIND,
    STREAM,
    UNRECOGNISED,
    copy_packet,
)
from msmqwire.tables.compiled.memory import copy
from msmqwire.tables.compiled.network import PORTS
from msmqwire.tables.compiled.origins import keep_frames, room_for_frames
from msmqwire.tables.compiled.packet import BAD, find_header, is_doubtful, packet_length, session_packet
from msmqwire.tables.compiled.pending import extend_packet
from msmqwire.tables.compiled.row_writing import write_row
from msmqwire.tables.compiled.scan_arrays import ScanArrays
from msmqwire.tables.compiled.skipped_run import joins_malformed
from msmqwire.tables.compiled.state import (
    ARENA,
    ARENA_END,
    EVENT_FRAME,
    EVENT_NS,
    FRAMES_BEFORE,
    FRAMES_USED,
    HELD,
    KEEPS_ORIGINS,
    NEED,
    PENDING_BYTES,
    PENDING_SEGMENTS,
    R_FRAME,
    R_FRAMES,
    R_TIME,
    ROWS,
    SPARE_SEGMENTS,
)
from msmqwire.tables.compiled.stop_codes import (
    ARENA_FULL,
    CONTINUE,
    FOREIGN_EVENT,
    LOST,
    PENDING_FULL,
    ROWS_FULL,
)

_NCP_REQUEST: Final = np.frombuffer(NCP_REQUEST, np.uint8).copy()
_NCP_REPLY: Final = np.frombuffer(NCP_REPLY, np.uint8).copy()
_METHOD: Final = np.frombuffer(METHOD, np.uint8).copy()
_RPC_PORT, _SECOND_RPC_PORT, _THIRD_RPC_PORT = sorted(RPC_PORTS)
_BEGINS_INSIDE: Final = int(Why.BEGINS_INSIDE)
_BIND, _ALTER_CONTEXT = int(PduType.BIND), int(PduType.ALTER_CONTEXT)


@jit
def wait_for_more(arrays: ScanArrays, flow: Any, start: int, size: int, needed: int) -> int:
    """Buffer bytes of a packet of which so many are needed, 0 for unknown; return CONTINUE or a stop code."""
    state = arrays.state
    flow[PACKET_SIZE] = needed
    extend_packet(state, flow, arrays.pending_segments, arrays.pending_bytes, arrays.memory, start, size, 0)
    flow[DELIVERED] += size
    return CONTINUE


@jit
def end_doubtful(arrays: ScanArrays, flow: Any, start: int, size: int) -> int:
    """End the doubtful packet of a flow where its size says, if a packet follows there.

    Its row is written, and what is behind it stays buffered. ``start`` and ``size`` are the next bytes of the
    flow, so many that it is known what follows. Returns CONTINUE, LOST or a stop code.
    """
    state, memory, rows = arrays.state, arrays.memory, arrays.rows
    pending_segments, pending_bytes = arrays.pending_segments, arrays.pending_bytes
    r, arena, length = state[ROWS], state[ARENA], flow[DOUBTFUL_SIZE]
    needed = length + PREFIX_SIZE
    if arena + needed > state[ARENA_END]:
        state[NEED] = needed
        return ARENA_FULL
    if r == rows.shape[0]:
        return ROWS_FULL
    stop_code = room_for_frames(arrays, flow[PACKET_SEGMENTS])
    if stop_code >= 0:
        return stop_code
    buffered = copy_packet(flow, pending_segments, pending_bytes, memory, arena, needed)
    copy(memory, start, needed - buffered, memory, arena + buffered)
    if packet_length(memory, arena + length) < 0:
        return LOST
    number, left, passed = flow[PACKET_FIRST], length + flow[PACKET_LEAD], 0
    frame, frame_ns, used, count = 0, 0, state[FRAMES_USED], 0
    while left > 0:
        segment = pending_segments[number]
        count += 1
        if state[KEEPS_ORIGINS]:
            arrays.frames[used + count] = segment[SEG_FRAME]
        if segment[SEG_FRAME] > frame:
            frame, frame_ns = segment[SEG_FRAME], segment[SEG_NS]
        if segment[SEG_SIZE] > left:
            break
        left -= segment[SEG_SIZE]
        passed += 1
        number = segment[SEG_NEXT]
    kind = session_packet(memory, arena, arena + length, arrays.field_offsets, r)
    if joins_malformed(flow, kind, length):
        return LOST
    flow[AFTER_BAD] = kind == BAD
    write_row(rows, r, state, arrays.header, flow[STREAM], kind, arena, length)
    rows[r, R_FRAME], rows[r, R_TIME] = frame - state[FRAMES_BEFORE], frame_ns
    if state[KEEPS_ORIGINS]:
        arrays.frames[used], rows[r, R_FRAMES] = count, used
        state[FRAMES_USED] += count + 1
    state[ROWS] += 1
    state[ARENA] += length
    state[HELD] -= length + SEGMENT_COST * passed
    flow[PACKET_BYTES] -= length
    flow[PACKET_SEGMENTS] -= passed
    flow[PACKET_SIZE] = flow[DOUBTFUL_SIZE] = flow[PACKET_FRAME] = 0
    flow[PACKET_FIRST], flow[PACKET_LEAD] = number, left
    for _ in range(flow[PACKET_SEGMENTS]):
        segment = pending_segments[number]
        if segment[SEG_FRAME] > flow[PACKET_FRAME]:
            flow[PACKET_FRAME], flow[PACKET_NS] = segment[SEG_FRAME], segment[SEG_NS]
        number = segment[SEG_NEXT]
    return CONTINUE


@inlined
def deliver_packets(arrays: ScanArrays, flow: Any, start: int, stop: int) -> int:
    """Take the next bytes of an MSMQ flow, all or none; return CONTINUE, LOST or a stop code."""
    state, memory, header = arrays.state, arrays.memory, arrays.header
    pending_segments, pending_bytes = arrays.pending_segments, arrays.pending_bytes
    rows, field_offsets = arrays.rows, arrays.field_offsets
    p, size = start, stop - start
    if (
        state[PENDING_BYTES] + size > pending_bytes.size
        or state[PENDING_SEGMENTS] + SPARE_SEGMENTS > pending_segments.shape[0]
    ):
        state[NEED] = size
        return PENDING_FULL
    if flow[DOUBTFUL_SIZE]:
        if flow[PACKET_BYTES] + size < flow[DOUBTFUL_SIZE] + PREFIX_SIZE:
            return wait_for_more(arrays, flow, p, size, flow[PACKET_SIZE])
        stop_code = end_doubtful(arrays, flow, p, size)
        if stop_code != CONTINUE:
            return stop_code
    r, arena, frames_used = state[ROWS], state[ARENA], state[FRAMES_USED]
    held, doubtful_size, after_bad = state[HELD], 0, flow[AFTER_BAD]
    if flow[PACKET_BYTES]:
        total, needed = flow[PACKET_BYTES] + size, flow[PACKET_SIZE]
        if needed == 0 and total >= PREFIX_SIZE:
            if arena + PREFIX_SIZE > state[ARENA_END]:
                state[NEED] = PREFIX_SIZE
                return ARENA_FULL
            buffered = copy_packet(flow, pending_segments, pending_bytes, memory, arena, PREFIX_SIZE)
            copy(memory, p, PREFIX_SIZE - buffered, memory, arena + buffered)
            needed = packet_length(memory, arena)
            if needed < 0:
                return LOST
        if needed == 0 or total < needed:
            return wait_for_more(arrays, flow, p, size, needed)
        if arena + needed > state[ARENA_END]:
            state[NEED] = needed
            return ARENA_FULL
        if r == rows.shape[0]:
            return ROWS_FULL
        stop_code = room_for_frames(arrays, flow[PACKET_SEGMENTS] + 1)
        if stop_code >= 0:
            return stop_code
        buffered = copy_packet(flow, pending_segments, pending_bytes, memory, arena, needed)
        copy(memory, p, needed - buffered, memory, arena + buffered)
        kind = session_packet(memory, arena, arena + needed, field_offsets, r)
        if is_doubtful(memory, arena, kind, field_offsets, r):
            behind = p + needed - buffered
            if stop - behind < PREFIX_SIZE:
                stop_code = wait_for_more(arrays, flow, p, size, needed)
                if stop_code == CONTINUE:
                    flow[DOUBTFUL_SIZE] = needed
                return stop_code
            if packet_length(memory, behind) < 0 or joins_malformed(flow, kind, needed):
                return LOST
        after_bad = kind == BAD
        write_row(rows, r, state, header, flow[STREAM], kind, arena, needed)
        if flow[PACKET_FRAME] > state[FRAMES_BEFORE] + state[EVENT_FRAME]:
            rows[r, R_FRAME], rows[r, R_TIME] = flow[PACKET_FRAME] - state[FRAMES_BEFORE], flow[PACKET_NS]
        if state[KEEPS_ORIGINS]:
            frames_used = keep_frames(arrays, flow, r, frames_used)
        r += 1
        arena += needed
        p += needed - buffered
        held -= flow[PACKET_BYTES] + SEGMENT_COST * flow[PACKET_SEGMENTS]
    needed = 0
    while stop - p >= PREFIX_SIZE:
        length = packet_length(memory, p)
        if length < 0:
            return LOST
        if length > stop - p:
            needed = length
            break
        if r == rows.shape[0]:
            return ROWS_FULL
        kind = session_packet(memory, p, p + length, field_offsets, r)
        if is_doubtful(memory, p, kind, field_offsets, r):
            if stop - p - length < PREFIX_SIZE:
                needed = doubtful_size = length
                break
            if packet_length(memory, p + length) < 0:
                return LOST
            if kind == BAD and length < PACKET_MIN and after_bad:
                return LOST
        after_bad = kind == BAD
        write_row(rows, r, state, header, flow[STREAM], kind, p, length)
        r += 1
        p += length
    if flow[PACKET_BYTES]:
        flow[PACKET_BYTES] = flow[PACKET_SEGMENTS] = flow[PACKET_LEAD] = 0
    state[HELD], state[ROWS], state[ARENA], state[FRAMES_USED] = held, r, arena, frames_used
    flow[PACKET_SIZE], flow[DOUBTFUL_SIZE] = needed, doubtful_size
    flow[AFTER_BAD] = after_bad
    flow[DELIVERED] += size
    if p < stop:
        extend_packet(state, flow, pending_segments, pending_bytes, memory, p, stop - p, p - start)
    return CONTINUE


@jit
def may_be_followed(memory: Any, start: int, stop: int, ports: int) -> bool:
    """Whether a segment of an unrecognised connection may be the first that is followed as HTTP."""
    is_http = ports >> 16 == HTTP_PORT or ports & 0xFFFF == HTTP_PORT
    for p in range(start, stop if is_http else start + 1):
        if memory[p] == _METHOD[0]:
            i = 1
            while i < _METHOD.size and p + i < stop and memory[p + i] == _METHOD[i]:
                i += 1
            if i == _METHOD.size or p + i == stop:
                return True
    return False


@inlined
def may_begin_another(byte: int) -> bool:
    """Whether a byte may be the first of RPC or NCP, on a port of MSMQ."""
    return byte == RPC_VERSION or byte == _NCP_REQUEST[0] or byte == _NCP_REPLY[0]


@jit
def is_ncp_port(ports: int) -> bool:
    """Whether one of the ports of a connection is that of NCP."""
    return ports >> 16 == NCP_PORT or ports & 0xFFFF == NCP_PORT


@jit
def may_be_ncp(memory: Any, start: int, stop: int, ports: int) -> bool:
    """Whether a segment of an unrecognised connection may be the first that is followed as NCP."""
    if is_ncp_port(ports):
        return True
    signature = _NCP_REQUEST if memory[start] == _NCP_REQUEST[0] else _NCP_REPLY
    i = 0
    while i < signature.size and start + i < stop and memory[start + i] == signature[i]:
        i += 1
    return i == signature.size or start + i == stop


@jit
def may_have_unit(memory: Any, start: int, stop: int) -> bool:
    """Whether a unit of NCP may begin anywhere in these bytes."""
    for p in range(start, stop - _NCP_REQUEST.size + 1):
        signature = _NCP_REQUEST if memory[p] == _NCP_REQUEST[0] else _NCP_REPLY
        i = 0
        while i < signature.size and memory[p + i] == signature[i]:
            i += 1
        if i == signature.size:
            return True
    return False


@jit
def is_rpc_port(port: int) -> bool:
    """Whether a port is one of the RPC of queue managers."""
    return port == _RPC_PORT or port == _SECOND_RPC_PORT or port == _THIRD_RPC_PORT


@jit
def may_be_rpc(memory: Any, start: int, stop: int, ports: int) -> bool:
    """Whether a segment of an unrecognised connection may be the first that is followed as DCE/RPC."""
    if is_rpc_port(ports >> 16) or is_rpc_port(ports & 0xFFFF):
        return True
    if memory[start] != RPC_VERSION:
        return False
    return stop - start < 3 or memory[start + 2] == _BIND or memory[start + 2] == _ALTER_CONTEXT


@jit
def count_ignored(state: Any, flow: Any, memory: Any, start: int, stop: int, ports: int) -> int:
    """Count bytes of an unrecognised connection; return FOREIGN_EVENT if they may be or begin a packet."""
    if stop - start < PREFIX_SIZE and memory[start] == VERSION:
        return FOREIGN_EVENT
    if may_be_followed(memory, start, stop, ports) or may_be_rpc(memory, start, stop, ports):
        return FOREIGN_EVENT
    if may_be_ncp(memory, start, stop, ports):
        return FOREIGN_EVENT
    header = find_header(memory, start, stop)
    if header >= 0 and header + PREFIX_SIZE <= stop:
        return FOREIGN_EVENT
    flow[IGNORED] += stop - start
    flow[IGNORED_FRAME] = state[FRAMES_BEFORE] + state[EVENT_FRAME]
    flow[IGNORED_NS] = state[EVENT_NS]
    return CONTINUE


@jit
def begin_packets(flow: Any, peer: Any, memory: Any, start: int, stop: int) -> int:
    """Begin the packets of a flow with these bytes; return CONTINUE, or FOREIGN_EVENT for what Python does.

    That is to recognise a connection which is MSMQ by its ports only, and to report what was ignored before.
    """
    if not flow[IS_KNOWN]:
        may_be_inside = flow[START_KIND] == MIDSTREAM and may_have_unit(memory, start, stop)
        if may_begin_another(memory[start]) or may_be_inside:
            return FOREIGN_EVENT
        flow[IS_KNOWN] = peer[IS_KNOWN] = 1
    if flow[IGNORED]:
        return FOREIGN_EVENT
    if flow[START_KIND] == MIDSTREAM or flow[BEGINS_INSIDE]:
        flow[LOSS], flow[IN_DOUBT] = _BEGINS_INSIDE, 1
    flow[IS_STARTED] = 1
    return CONTINUE


@inlined
def deliver(arrays: ScanArrays, flow: Any, start: int, stop: int) -> int:
    """Take the next bytes of a flow, all or none; return CONTINUE or a stop code."""
    if flow[MODE] == UNRECOGNISED:
        return count_ignored(arrays.state, flow, arrays.memory, start, stop, arrays.header[PORTS])
    stop_code = LOST if flow[IN_DOUBT] else deliver_packets(arrays, flow, start, stop)
    return find_packets(arrays, flow, start, stop) if stop_code == LOST else stop_code
