"""Which rows may have findings, compiled: a bit for each of the judges in Python that are to look at them."""

from __future__ import annotations

from typing import Final

from msmqwire.tables.compiled.arrays import Bools, Int64Rows
from msmqwire.tables.compiled.decorators import exported, jit
from msmqwire.tables.compiled.packet import BAD, FINAL, USER
from msmqwire.tables.compiled.packet_judge import may_break_rule
from msmqwire.tables.compiled.scan_arrays import RowBlock
from msmqwire.tables.compiled.session_judge import (
    BREAKS,
    CLIENT,
    GAPS,
    SESSION,
    STREAM,
    TRANSACTION_SLOT,
    begin,
    shows_queue_manager,
    step,
    take_break,
)
from msmqwire.tables.compiled.state import (
    ORIGIN_BEHIND,
    ORIGIN_GAPS,
    ORIGIN_GAPS_MASK,
    ORIGIN_MIDSTREAM,
    ORIGIN_NUMBER,
    R_KIND,
    R_LENGTH,
    R_ORIGIN,
    R_PORTS,
    R_START,
    R_STREAM,
    R_TIME,
)

OF_PACKET, OF_SESSION, OF_SEQUENCE, OF_QUEUE_MANAGER, OF_BYTES = 1, 2, 4, 8, 16
"""Bits of a row: the packet itself may break a rule; it breaks one of its session, or it may one of a
transactional sequence; it shows a queue manager whose address is to be noted; it is malformed."""
V_BITS, V_IS_FROM_INITIATOR, V_BREAKS, V_SESSION = range(4)
VERDICT: Final = 4
"""A verdict, by index: the bits; for packets whether the initiator has sent it; the breaks of the session
before it; the index of the session in ``before``, with OF_SESSION."""


@exported
@jit
def judge_rows(
    block: RowBlock, sessions: Int64Rows, tcp_ports: Bools, verdicts: Int64Rows, before: Int64Rows, first: int
) -> int:
    """Judge the rows from ``first`` on, in their order; return the number of those that were judged.

    That is all of them, unless ``before`` is full.

    Args:
        block: the rows.
        sessions: the sessions of all connections; see `session_judge`.
        tcp_ports: for each port whether its TCP connections are MSMQ.
        verdicts: gets a verdict for each row.
        before: gets the sessions of packets with OF_SESSION, as they were before.
        first: see there.
    """
    rows, field_offsets, memory = block.rows, block.field_offsets, block.memory
    kept = 0
    for r in range(first, rows.shape[0]):
        row, verdict = rows[r], verdicts[r]
        origin, kind = row[R_ORIGIN], row[R_KIND]
        verdict[V_BITS] = 0
        if origin < 0:
            continue
        if kept == before.shape[0]:
            return r
        number = origin >> ORIGIN_NUMBER
        session, side = sessions[number >> 1], number & 1
        if session[STREAM] != row[R_STREAM]:
            to_port, from_port = tcp_ports[row[R_PORTS] & 0xFFFF], tcp_ports[row[R_PORTS] >> 16]
            client = -1
            if to_port != from_port:
                client = side if to_port else 1 - side
            begin(session, row[R_STREAM], client, origin & ORIGIN_MIDSTREAM != 0)
        gaps = origin >> ORIGIN_GAPS & ORIGIN_GAPS_MASK
        if gaps != session[GAPS]:
            session[GAPS] = gaps
            take_break(session)
        if kind >= BAD:
            take_break(session)
            verdict[V_BITS] = OF_BYTES if kind == BAD else 0
            continue
        if session[CLIENT] < 0:
            session[CLIENT] = side
        initiator = session[CLIENT] == side
        start, stop, bits = row[R_START], row[R_START] + row[R_LENGTH], 0
        for i in range(SESSION):
            before[kept, i] = session[i]
        if may_break_rule(memory, start, stop, kind, field_offsets, r):
            bits |= OF_PACKET
        if shows_queue_manager(session, initiator, kind, memory, start):
            bits |= OF_QUEUE_MANAGER
        if kind <= FINAL and (kind != USER or field_offsets[r, TRANSACTION_SLOT] >= 0):
            bits |= OF_SEQUENCE
        is_behind = origin & ORIGIN_BEHIND != 0
        if step(session, initiator, kind, memory, start, stop, field_offsets, r, row[R_TIME], is_behind):
            bits |= OF_SESSION
            verdict[V_SESSION] = kept
            kept += 1
        verdict[V_BITS], verdict[V_IS_FROM_INITIATOR] = bits, initiator
        verdict[V_BREAKS] = session[BREAKS]
    return rows.shape[0]
