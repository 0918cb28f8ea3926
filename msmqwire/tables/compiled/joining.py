"""Datagrams that the scan has joined from fragments, compiled: from their slots to the arena."""

from __future__ import annotations

from msmqwire.tables.compiled.decorators import jit
from msmqwire.tables.compiled.flow_table import KEY_FIELDS
from msmqwire.tables.compiled.fragments import (
    IS_CUT,
    JOINED,
    LOW_BITS,
    NEXT_HEADER,
    SIZE,
    SLOT_BYTES,
    FragmentArrays,
    add_fragment,
    free,
)
from msmqwire.tables.compiled.memory import copy
from msmqwire.tables.compiled.network import (
    INCOMPLETE,
    IS_IPV6,
    NO_ROOM,
    OTHER,
    PORTS,
    PROTOCOL_REASONS,
    TCP_NUMBER,
    UDP,
    UDP_NUMBER,
    UNDECIDED,
    is_udp_tunnel_port,
    parse_transport,
)
from msmqwire.tables.compiled.scan_arrays import ScanArrays
from msmqwire.tables.compiled.state import (
    ARENA,
    ARENA_END,
    EVENT_FRAME,
    EVENT_NS,
    FRAMES_BEFORE,
    NEED,
    ROWS,
)
from msmqwire.tables.compiled.stop_codes import CONTINUE

_LOW_MASK = (1 << LOW_BITS) - 1
_AUTHENTICATION_HEADER, _PGM_NUMBER = 51, 113


@jit
def join(arrays: ScanArrays, fragments: FragmentArrays) -> int:
    """Take the fragment of the current header, unless it has been; copy the datagram that it completes.

    Returns TCP or UDP with a header of the datagram, UNDECIDED or OTHER for one with something else,
    INCOMPLETE, or NO_ROOM.
    """
    state, header, totals = arrays.state, arrays.header, fragments.totals
    if totals[JOINED] < 0:
        time_ns, frame = state[EVENT_NS], state[FRAMES_BEFORE] + state[EVENT_FRAME]
        totals[JOINED] = add_fragment(
            fragments, header, arrays.memory, time_ns >> LOW_BITS, time_ns & _LOW_MASK, frame
        )
        if totals[JOINED] < 0:
            return INCOMPLETE
    slot, start = totals[JOINED], state[ARENA]
    partial = fragments.partials[slot]
    size, protocol = partial[SIZE], partial[NEXT_HEADER]
    if protocol != TCP_NUMBER and protocol != UDP_NUMBER:
        plain = header[IS_IPV6] & 1 == 0 and protocol != _AUTHENTICATION_HEADER and protocol != _PGM_NUMBER
        plain = plain and PROTOCOL_REASONS[protocol] < 0
        return OTHER if plain else UNDECIDED
    if partial[IS_CUT]:
        return UNDECIDED
    if start + size > state[ARENA_END]:
        state[NEED] = size
        return NO_ROOM
    copy(fragments.bytes, slot * SLOT_BYTES, size, arrays.memory, start)
    for i in range(KEY_FIELDS):
        header[i] = fragments.keys[slot, i]
    result: int = parse_transport(arrays.memory, start, start + size, protocol, header)
    if result == UDP and is_udp_tunnel_port(header[PORTS]):
        return UNDECIDED
    if result != UNDECIDED:
        state[ARENA] += size
    return result


@jit
def settle(arrays: ScanArrays, fragments: FragmentArrays, arena: int, rows: int, stop_code: int) -> None:
    """Free what a joined datagram took, as far as a stop code, or the rows that it has brought, allow.

    ``arena`` and ``rows`` are the entries of the state before it. For the generic reader the datagram stays.
    """
    state, totals = arrays.state, fragments.totals
    if stop_code >= 0 or state[ROWS] == rows:
        state[ARENA] = arena
    if stop_code == CONTINUE and totals[JOINED] >= 0:
        free(fragments, totals[JOINED])
        totals[JOINED] = -1
