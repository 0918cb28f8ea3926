"""The compiled scan over the records of a capture for TCP segments and UDP datagrams of any content."""

from __future__ import annotations

from typing import Final, NamedTuple

from msmqwire.tables.compiled import state as entry
from msmqwire.tables.compiled.arrays import Bytes, Int32s, Int64Rows, Int64s
from msmqwire.tables.compiled.decorators import exported, inlined, jit
from msmqwire.tables.compiled.flow_table import KEY_FIELDS, find, insert
from msmqwire.tables.compiled.frame_headers import parse_frame
from msmqwire.tables.compiled.memory import copy
from msmqwire.tables.compiled.network import (
    ACK,
    FIRST_REASON,
    FLAGS,
    FRAGMENT,
    OTHER,
    PORTS,
    SEQ,
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
from msmqwire.tables.compiled.records import next_record
from msmqwire.tables.compiled.stop_codes import (
    ARENA_FULL,
    GENERIC_BLOCK,
    GENERIC_RECORD,
    MORE_INPUT,
    PAIRS_FULL,
    ROWS_FULL,
)
from msmqwire.tables.compiled.tunnelled import TUNNELLED_MAX, TunnelArrays

_HEADERS: Final = 2 * TUNNELLED_MAX
"""More bytes than the headers that `parse_frame` reads: link and tags, tunnels up to TUNNELLED_MAX, then one
more with its options, and IP with options and TCP in it."""

C_OFFSET, C_TIME, C_FILE, C_TRANSPORT, C_PAIR, C_SEQ, C_ACK, C_FLAGS, C_SIZE, C_MISSING, C_TUNNEL = range(11)
COLUMNS: Final = 11
"""What is known of a datagram besides its payload, by index: the offset in the unpacked file of the record of
the frame that completed it; when that was captured; the number of the file; TCP or UDP; the number of the
pair of endpoints; the fields of TCP; the bytes of payload, and those behind them that the capture cut off;
the number of its tunnels."""


class DatagramArrays(NamedTuple):
    """The arrays over which the scan works.

    Attributes:
        state: the state of the scan; see `msmqwire.tables.compiled.state`.
        memory: the bytes of the input.
        header: the header of the current datagram; see `msmqwire.tables.compiled.network`.
        table: a hash table that finds the number of a pair of endpoints by its key.
        keys: the key of each pair: the first fields of a datagram's header.
        cells: a row for each of COLUMNS.
        payloads: room for the payloads.
    """

    state: Int64s
    memory: Bytes
    header: Int64s
    table: Int32s
    keys: Int64Rows
    cells: Int64Rows
    payloads: Bytes


@exported
@inlined
def pair_of(state: Int64s, table: Int32s, keys: Int64Rows, header: Int64s) -> int:
    """Return the number of a pair of endpoints, a new one for a new pair; -1 if none is left."""
    number: int = find(table, keys, header, state[entry.HASH_SEED])
    if number >= 0:
        return number
    number = state[entry.PAIRS]
    if number == keys.shape[0]:
        return -1
    for i in range(KEY_FIELDS):
        keys[number, i] = header[i]
    insert(table, keys, number, state[entry.HASH_SEED])
    state[entry.PAIRS] += 1
    return number


@exported
@jit
def scan_datagrams(
    arrays: DatagramArrays,
    tunnels: TunnelArrays,
    interfaces: Int64Rows,
    start: int,
    with_rows: bool,
    with_payloads: bool,
    not_read: Int64s,
) -> int:
    """Scan record by record; return the stop code. The next cell of C_OFFSET is then the record's offset.

    Args:
        arrays: the input, from POS to END, and the rows.
        tunnels: the tunnels in which frames were so far.
        interfaces: see `msmqwire.tables.compiled.state`.
        start: the offset of the memory in the file.
        with_rows: whether rows are written.
        with_payloads: whether payloads are copied.
        not_read: counts of frames that are not read; see `network.NOT_READ_FIELDS`.
    """
    state, memory, header = arrays.state, arrays.memory, arrays.header
    cells, payloads = arrays.cells, arrays.payloads
    while True:
        r = state[entry.ROWS]
        if r == cells.shape[1]:
            return ROWS_FULL
        cells[C_OFFSET, r] = start + state[entry.POS]
        following = next_record(state, memory, interfaces)
        if following < 0:
            return MORE_INPUT if state[entry.NEED] else GENERIC_BLOCK
        first, length = state[entry.RECORD], state[entry.RECORD_LENGTH]
        stop = uncut = first + state[entry.RECORD_SIZE]
        if first + _HEADERS <= state[entry.END]:
            uncut = max(stop, first + length)
        # As if nothing had been cut off: only headers are read, and these must end before the cut.
        protocol = parse_frame(memory, first, uncut, length, state[entry.RECORD_LINK], header, tunnels)
        is_tcp = protocol == TCP
        is_datagram = is_tcp or protocol == UDP
        if (is_datagram and header[START] > stop) or (
            not is_datagram and protocol != FRAGMENT and uncut > stop
        ):
            protocol, is_datagram = UNDECIDED, False
        if protocol >= FIRST_REASON:
            not_read[protocol - FIRST_REASON] += 1
        elif protocol == UNDECIDED and state[entry.RECORD_LINK] == not_read[UNKNOWN_LINK]:
            not_read[UNKNOWN_LINK_FRAMES] += 1
            protocol = OTHER
        if with_rows and is_datagram:
            end = min(header[STOP], stop)
            size = end - header[START]
            if with_payloads and size > payloads.size - state[entry.ARENA]:
                state[entry.NEED] = size
                return ARENA_FULL
            pair = pair_of(state, arrays.table, arrays.keys, header)
            if pair < 0:
                return PAIRS_FULL
            cells[C_TIME, r] = state[entry.RECORD_NS]
            cells[C_FILE, r] = state[entry.FILE]
            cells[C_TRANSPORT, r] = protocol
            cells[C_PAIR, r] = pair
            cells[C_SEQ, r] = header[SEQ] if is_tcp else 0
            cells[C_ACK, r] = header[ACK] if is_tcp else 0
            cells[C_FLAGS, r] = header[FLAGS] if is_tcp else 0
            cells[C_SIZE, r] = size
            cells[C_MISSING, r] = header[STOP] - end
            cells[C_TUNNEL, r] = header[TUNNEL]
            if with_payloads:
                copy(memory, header[START], size, payloads, state[entry.ARENA])
                state[entry.ARENA] += size
            state[entry.ROWS] += 1
            if protocol == UDP and is_tunnel_port(header[PORTS]):
                reason = tunnel_of(memory, header[START], end, header[STOP] - header[START], header[PORTS])
                if reason >= 0:
                    not_read[reason] += 1
        state[entry.POS] = following
        state[entry.FRAME_NO] += 1
        if protocol == UNDECIDED or protocol == FRAGMENT:
            return GENERIC_RECORD
