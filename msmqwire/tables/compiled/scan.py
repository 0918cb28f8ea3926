"""The compiled scan over the records of a capture: frames to rows.

It stops where it needs more input or space, and at each record that only the generic reader can judge: of
that record nothing but its position has been noted.
"""

from __future__ import annotations

from typing import Any, Final

from msmqwire.capture.ip import ACK as ACK_FLAG
from msmqwire.capture.ip import RST, SYN
from msmqwire.ping import PING_SIGNATURE, PING_SIZE
from msmqwire.tables.compiled.arrays import Bools, Bytes, Int64Rows, Int64s
from msmqwire.tables.compiled.decorators import exported, inlined, jit
from msmqwire.tables.compiled.fragments import FRAMES, JOINED, FragmentArrays
from msmqwire.tables.compiled.frame_headers import parse_frame
from msmqwire.tables.compiled.generated import FIELD_SLOTS, ping
from msmqwire.tables.compiled.joining import join, settle
from msmqwire.tables.compiled.memory import LINE, prefetch, u16
from msmqwire.tables.compiled.network import (
    FIRST_REASON,
    FLAGS,
    FRAGMENT,
    INCOMPLETE,
    MISSING,
    NO_ROOM,
    NOT_IP,
    OTHER,
    PORTS,
    START,
    STOP,
    TCP,
    TUNNEL,
    UDP,
    UNDECIDED,
    UNKNOWN_LINK,
    UNKNOWN_LINK_FRAMES,
    is_tunnel_port,
    tunnel_of,
)
from msmqwire.tables.compiled.notes import note_record, pass_omissions
from msmqwire.tables.compiled.packet import PING_KIND
from msmqwire.tables.compiled.records import next_record
from msmqwire.tables.compiled.row_writing import write_row
from msmqwire.tables.compiled.scan_arrays import FlowArrays, ScanArrays
from msmqwire.tables.compiled.state import (
    ARENA,
    BY_OFFSET,
    EMPTY_COUNT,
    EMPTY_LINK,
    EVENT_FRAME,
    EVENT_NS,
    FRAME_CODE,
    FRAME_NO,
    FRAMES_BEFORE,
    HANDSHAKES,
    IS_UNDECIDED,
    KEEPS_ORIGINS,
    MEMORY_AT,
    NEED,
    NOT_IP_COUNT,
    NOTES,
    OTHER_COUNT,
    POS,
    RECORD,
    RECORD_LENGTH,
    RECORD_LINK,
    RECORD_NS,
    RECORD_SIZE,
    ROWS,
    SKIPPED,
    TUNNEL_BITS,
)
from msmqwire.tables.compiled.stop_codes import (
    ARENA_FULL,
    CONTINUE,
    GENERIC_BLOCK,
    GENERIC_RECORD,
    HANDSHAKES_FULL,
    MORE_INPUT,
    NOTE_DUE,
    NOTES_FULL,
    ROWS_FULL,
)
from msmqwire.tables.compiled.tcp.segments import take_segment
from msmqwire.tables.compiled.tunnelled import TunnelArrays

PINGS, OTHER_DATAGRAMS = 1, 2
"""What the UDP datagrams of a port are: perhaps pings, or PGM and NCP for the generic reader."""
HANDSHAKE_FIELDS: Final = FLAGS + 1
"""Of the header of a segment: its endpoints, SEQ, ACK and FLAGS."""
_PING_SIGNATURE_AT: Final = FIELD_SLOTS["Ping"]["Signature"][1]
_HEADERS: Final = 3 * LINE  # about as much as the headers of a frame and the start of the packet in it take


@jit
def take_ping(arrays: ScanArrays, udp_ports: Any) -> int:
    """Take the UDP datagram of the current header, if it is a ping; return CONTINUE or a stop code."""
    state, memory, header, rows = arrays.state, arrays.memory, arrays.header, arrays.rows
    start, stop = header[START], header[STOP]
    from_port, to_port = udp_ports[header[PORTS] >> 16], udp_ports[header[PORTS] & 0xFFFF]
    signed = stop - start == PING_SIZE and u16(memory, start + _PING_SIGNATURE_AT) == PING_SIGNATURE
    if signed and state[KEEPS_ORIGINS]:
        return GENERIC_RECORD
    if from_port == OTHER_DATAGRAMS or to_port == OTHER_DATAGRAMS:
        return GENERIC_RECORD
    if not signed:
        return GENERIC_RECORD if from_port or to_port else CONTINUE
    r = state[ROWS]
    if r == rows.shape[0]:
        return ROWS_FULL
    if ping(memory, start, stop, arrays.field_offsets, r) != stop:
        return GENERIC_RECORD
    write_row(rows, r, state, header, -1, PING_KIND, start, PING_SIZE)
    state[ROWS] += 1
    return CONTINUE


@inlined
def note_handshake(state: Any, header: Any, tcp_ports: Any, watched: Any, handshakes: Any) -> None:
    """Note a segment by which a connection to MSMQ may begin, or fail to: `Attempts.feed`."""
    from_port, to_port = header[PORTS] >> 16, header[PORTS] & 0xFFFF
    if not tcp_ports[from_port] and not tcp_ports[to_port]:
        return
    flags = header[FLAGS]
    if flags & (SYN | RST) == 0:
        if flags & ACK_FLAG == 0 or not (watched[from_port] or watched[to_port]):
            return
    elif flags & (SYN | RST | ACK_FLAG) == SYN:
        watched[from_port] = 1
    row = handshakes[state[HANDSHAKES]]
    for i in range(HANDSHAKE_FIELDS):
        row[i] = header[i]
    state[HANDSHAKES] += 1


@exported
@jit
def scan(
    arrays: ScanArrays,
    flow_arrays: FlowArrays,
    fragments: FragmentArrays,
    tunnels: TunnelArrays,
    interfaces: Int64Rows,
    tcp_ports: Bools,
    udp_ports: Bytes,
    not_read: Int64s,
    watched: Bytes,
    handshakes: Int64Rows,
    notes: Int64Rows,
    omissions: Int64Rows,
) -> int:
    """Scan record by record; return the stop code.

    Args:
        arrays: the input, from POS to END, and the rows.
        flow_arrays: the flows.
        fragments: the datagrams of which fragments are missing.
        tunnels: the tunnels in which frames were so far.
        interfaces: see `msmqwire.tables.compiled.state`.
        tcp_ports: for each port whether its TCP connections are MSMQ.
        udp_ports: for each port what its UDP datagrams are, PINGS or OTHER_DATAGRAMS; 0 if that is unknown.
        not_read: counts of frames that are not read; see NOT_READ_FIELDS.
        watched: `Attempts.watched`.
        handshakes: headers of segments for `Attempts`, as many as the state says; without any row they are
            not wanted.
        notes: records that others need not see, as many as the state says; without any row they are not
            wanted.
        omissions: what was left out of the input, those before the state's number passed.
    """
    state, memory, header = arrays.state, arrays.memory, arrays.header
    while True:
        if omissions.shape[0] and not pass_omissions(state, omissions):
            return NOTE_DUE
        if notes.shape[0] and state[NOTES] == notes.shape[0]:
            return NOTES_FULL
        following = next_record(state, memory, interfaces)
        if following < 0:
            return MORE_INPUT if state[NEED] else GENERIC_BLOCK
        for line in range(following, following + _HEADERS, LINE):
            prefetch(memory, line)
        if state[BY_OFFSET]:
            state[FRAME_NO] = state[MEMORY_AT] + state[POS] + state[SKIPPED] - 1
        if state[RECORD_SIZE] == 0 and state[RECORD_LINK] == state[EMPTY_LINK]:
            state[EMPTY_COUNT] += 1
            state[POS] = following
            state[FRAME_NO] += 1
            continue
        start = state[RECORD]
        protocol = parse_frame(
            memory,
            start,
            start + state[RECORD_SIZE],
            state[RECORD_LENGTH],
            state[RECORD_LINK],
            header,
            tunnels,
        )
        state[EVENT_NS] = state[RECORD_NS]
        state[EVENT_FRAME] = state[FRAME_NO] + 1 << TUNNEL_BITS | header[TUNNEL]
        state[FRAME_CODE] = state[FRAMES_BEFORE] + state[EVENT_FRAME]
        is_fragment, arena, rows = protocol == FRAGMENT, state[ARENA], state[ROWS]
        if is_fragment:
            protocol = join(arrays, fragments)
            if protocol == TCP and state[KEEPS_ORIGINS]:
                protocol = UNDECIDED
        state[IS_UNDECIDED] = protocol == UNDECIDED
        if protocol == TCP:
            header[MISSING] = 0
            if handshakes.shape[0] and state[HANDSHAKES] == handshakes.shape[0]:
                stop_code = HANDSHAKES_FULL
            else:
                stop_code = take_segment(arrays, flow_arrays, tcp_ports)
                if stop_code == CONTINUE and handshakes.shape[0]:
                    note_handshake(state, header, tcp_ports, watched, handshakes)
        elif protocol == UDP:
            stop_code = take_ping(arrays, udp_ports)
            if stop_code == CONTINUE and is_tunnel_port(header[PORTS]):
                size = header[STOP] - header[START]
                reason = tunnel_of(memory, header[START], header[STOP], size, header[PORTS])
                if reason >= 0:
                    slot = fragments.totals[JOINED]
                    not_read[reason] += fragments.partials[slot, FRAMES] if is_fragment else 1
        elif protocol >= FIRST_REASON:
            not_read[protocol - FIRST_REASON] += 1
            stop_code = CONTINUE
        elif protocol == UNDECIDED and state[RECORD_LINK] == not_read[UNKNOWN_LINK]:
            not_read[UNKNOWN_LINK_FRAMES] += 1
            stop_code = CONTINUE
        elif protocol == NOT_IP:
            state[NOT_IP_COUNT] += 1
            stop_code = CONTINUE
        elif protocol == OTHER:
            state[OTHER_COUNT] += 1
            stop_code = CONTINUE
        elif protocol == INCOMPLETE:
            stop_code = CONTINUE
        elif protocol == NO_ROOM:
            stop_code = ARENA_FULL
        else:
            stop_code = GENERIC_RECORD
        if is_fragment:
            settle(arrays, fragments, arena, rows, stop_code)
        if stop_code >= 0 and stop_code != GENERIC_RECORD:
            return stop_code
        if notes.shape[0] and stop_code == CONTINUE and (protocol == TCP or not is_fragment):
            note_record(state, notes, following, flow_arrays, header, protocol == TCP, not is_fragment)
        state[POS] = following
        state[FRAME_NO] += 1
        if stop_code == GENERIC_RECORD:
            return GENERIC_RECORD
