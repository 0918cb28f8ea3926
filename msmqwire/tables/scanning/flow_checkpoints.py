"""Checkpoints of a connection, from the flows of the scan and back: `Tracker.save` and `Tracker.resume`."""

from __future__ import annotations

from typing import Any

import numpy as np

from msmqwire.capture.connection_checkpoint import (
    ConnectionCheckpoint,
    DirectionState,
    restore_direction,
    save_direction,
)
from msmqwire.capture.direction import Counters, Direction
from msmqwire.capture.events import Flow
from msmqwire.tables.compiled import state as entry
from msmqwire.tables.compiled.flow_table import (
    ACKED,
    FAR_FROM,
    FAR_RUN,
    FIN_SEQ,
    FIRST_SEQ,
    FIRST_SIDE,
    FRAME,
    HAS_ENDED,
    HAS_PENDING,
    IGNORED,
    IN_ORDER,
    IS_FAST,
    IS_KNOWN,
    IS_SEEN,
    IS_STARTED,
    IS_WAITING,
    ISN,
    KEY_FIELDS,
    LAST_NS,
    MIDSTREAM,
    MODE,
    MSMQ,
    NEXT_SEQ,
    NO_SEQ,
    START_KIND,
    STREAM,
    TCP_STATE,
)
from msmqwire.tables.compiled.network import HEADER_FIELDS
from msmqwire.tables.compiled.tcp.flow_lists import add_connection
from msmqwire.tables.scanning.flow_events import FlowTable
from msmqwire.tables.scanning.flow_keys import ends_of, key_of
from msmqwire.tables.scanning.settled_flows import are_between_packets


def save(table: FlowTable, state: Any) -> ConnectionCheckpoint | None:
    """Return a checkpoint of the only connection; None unless nothing of it is buffered or in doubt."""
    numbers = table.first_numbers()
    if len(numbers) != 1:
        return None
    sides = [table.arrays.flows[number] for number in (numbers[0], numbers[0] + 1)]
    begun = [flow for flow in sides if flow[START_KIND]]
    if not all(flow[MODE] == MSMQ and flow[IS_STARTED] for flow in begun):
        return None
    if begun and not are_between_packets(np.array(begun)).all():
        return None
    if any(flow[HAS_ENDED] or flow[HAS_PENDING] or flow[IGNORED] for flow in sides):
        return None
    forward, reverse = (_saved(table, number) for number in (numbers[0], numbers[0] + 1))
    if forward is None or reverse is None:
        return None
    now, sweep_at, idle_at = state[[entry.NOW, entry.SWEEP_AT, entry.IDLE_AT]].tolist()
    return ConnectionCheckpoint((now, sweep_at, idle_at), (forward, reverse))


def _saved(table: FlowTable, number: int) -> DirectionState | None:
    row, key = table.arrays.flows[number], ends_of(table.arrays.keys[number])
    direction = Direction(int(row[STREAM]), key, Counters())
    if row[START_KIND]:
        src, src_port, dst, dst_port, network = key
        midstream = bool(row[START_KIND] == MIDSTREAM)
        direction.flow = Flow(direction.stream, src, src_port, dst, dst_port, midstream, network)
    direction.state, direction.fast_path = int(row[TCP_STATE]), bool(row[IS_FAST])
    direction.waiting, direction.seen = bool(row[IS_WAITING]), bool(row[IS_SEEN])
    direction.last_ns, direction.next = int(row[LAST_NS]), int(row[NEXT_SEQ])
    direction.frames = (table.encapsulations.frame(int(row[FRAME])),) if row[IS_SEEN] else ()
    direction.isn = None if row[ISN] < 0 else int(row[ISN])
    direction.first_seq = None if row[FIRST_SEQ] == NO_SEQ else int(row[FIRST_SEQ])
    direction.fin_seq = None if row[FIN_SEQ] == NO_SEQ else int(row[FIN_SEQ])
    direction.acked = None if row[ACKED] < 0 else int(row[ACKED])
    direction.far_run, direction.far_from = int(row[FAR_RUN]), int(row[FAR_FROM])
    return save_direction(direction)


def resume(table: FlowTable, state: Any, tcp_ports: Any, checkpoint: ConnectionCheckpoint) -> None:
    """Resume a connection from a checkpoint. Only before there is any."""
    state[[entry.NOW, entry.SWEEP_AT, entry.IDLE_AT]] = checkpoint.clock
    directions = [Direction(0, ("", 0, "", 0, 0), Counters()) for _ in range(2)]
    for direction, saved in zip(directions, checkpoint.directions, strict=True):
        restore_direction(direction, saved)
    header = np.zeros(HEADER_FIELDS, np.int64)
    header[:KEY_FIELDS] = key_of(*directions[0].key)
    state[entry.STREAMS] = directions[0].stream
    first = add_connection(state, table.arrays, header, tcp_ports)
    flows = table.arrays.flows
    for row, direction in zip(flows[first : first + 2], directions, strict=True):
        row[TCP_STATE], row[IS_FAST], row[IS_SEEN] = direction.state, direction.fast_path, direction.seen
        row[LAST_NS], row[NEXT_SEQ] = direction.last_ns, direction.next
        if direction.frames:
            row[FRAME] = table.encapsulations.code(direction.frames[-1])
        row[ISN] = -1 if direction.isn is None else direction.isn
        row[FIRST_SEQ] = NO_SEQ if direction.first_seq is None else direction.first_seq
        row[ACKED] = -1 if direction.acked is None else direction.acked
        if direction.flow is not None:
            row[START_KIND] = MIDSTREAM if direction.flow.midstream else IN_ORDER
            row[IS_STARTED] = 1
            flows[first : first + 2, MODE], flows[first : first + 2, IS_KNOWN] = MSMQ, 1
            flows[first, FIRST_SIDE] = flows[first, FIRST_SIDE] or 1 + (direction is directions[1])
