"""Events of TCP flows, compiled, in their order: what `segments` brings for `flow_events`.

A step, as a segment or a sweep, is done as a whole. There must be room for its events, and for the bytes of
the segment, before it begins: see `segments`.
"""

from __future__ import annotations

from typing import Any, Final

from msmqwire.tables.compiled.decorators import jit
from msmqwire.tables.compiled.flow_table import (
    IN_ORDER,
    ISN,
    MIDSTREAM,
    START_KIND,
    TO_COME,
)
from msmqwire.tables.compiled.packet import GAP_REASONS
from msmqwire.tables.compiled.scan_arrays import FlowArrays
from msmqwire.tables.compiled.state import (
    EVENTS,
)

DATA, GAP, END, FORGOTTEN = range(4)
E_NUMBER, E_KIND, E_SIZE, E_REASON, E_NS, E_FRAME = range(6)
EVENT_FIELDS: Final = 6
"""An event, by index: the number of its flow; what it is; of a gap how many bytes are lost, -1 for an unknown
number, and the index of the reason in GAP_REASONS; of an end the index of the reason in END_REASONS; the time
and the frame that are said of it. The bytes of DATA are those of the first segment that is queued. After
FORGOTTEN nothing more comes of a connection, of which it has the even number."""

END_REASONS: Final = ("fin", "rst", "reused", "idle", "capture")
END_FIN, END_RST, END_REUSED, END_IDLE, END_CAPTURE = range(5)
NO_REASON: Final = -1
GAP_ACKNOWLEDGED, GAP_TIMEOUT, GAP_LIMIT, GAP_CUT, GAP_JUMP, GAP_END = (
    GAP_REASONS.index(reason) for reason in ("acknowledged", "timeout", "limit", "cut", "jump", "end")
)


@jit
def add_event(
    state: Any, flow_arrays: FlowArrays, number: int, kind: int, size: int, reason: int, ns: int, frame: int
) -> None:
    """Add an event, and note how a flow began with its first one."""
    event = flow_arrays.events[state[EVENTS]]
    event[E_NUMBER], event[E_KIND], event[E_SIZE], event[E_REASON] = number, kind, size, reason
    event[E_NS], event[E_FRAME] = ns, frame
    state[EVENTS] += 1
    flow = flow_arrays.flows[number]
    if kind == DATA or kind == GAP:
        flow[TO_COME] += 1
    if flow[START_KIND] == 0 and kind != FORGOTTEN:
        flow[START_KIND] = MIDSTREAM if flow[ISN] < 0 else IN_ORDER
