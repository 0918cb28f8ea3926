"""Notes on the records of a part: which of them another reader need not see, and what it does in their place.

See `msmqwire.tables.part_survey`.
"""

from __future__ import annotations

from typing import Any, Final

from msmqwire.capture.ip import SYN
from msmqwire.capture.tcp import SWEEP_NS
from msmqwire.tables.compiled.decorators import inlined, jit
from msmqwire.tables.compiled.flow_table import STREAM, find
from msmqwire.tables.compiled.network import FLAGS, START, STOP
from msmqwire.tables.compiled.scan_arrays import FlowArrays
from msmqwire.tables.compiled.state import (
    DEADLINE,
    FRAME_NO,
    HASH_SEED,
    IDLE_AT,
    MEMORY_AT,
    NOTES,
    NOW,
    POS,
    SKIPPED,
    SWEEP_AT,
)
from msmqwire.tables.compiled.tcp.clock import next_multiple

N_START, N_END, N_FLOW, N_STREAM, N_NOW, N_KIND = range(6)
NOTE_FIELDS: Final = 6
"""A record that another reader need not see, by index: the offsets where it starts and ends; the flow of its
segment, and the stream, if the reader has what that leads to, or NO_STREAM; the clock after it; and what
it is."""
IS_EMPTY, HAS_DATA, BREAKS = range(3)
"""Kinds of records: without bytes of a connection; with some; or one that must be seen, whatever it has."""
NO_STREAM: Final = -1

O_AT, O_BYTES, O_FRAMES, O_NOW, O_STOPS = range(5)
OMISSION_FIELDS: Final = 5
"""What was left out of the input, by index: where in it; how many bytes and frames; the clock after them, 0
for unchanged; whether Python has something to do there."""


@jit
def note_record(
    state: Any,
    notes: Any,
    following: int,
    flow_arrays: FlowArrays,
    header: Any,
    is_segment: bool,
    is_whole: bool,
) -> None:
    """Note the current record, which ends before ``following``; a fragment is not whole."""
    note, number = notes[state[NOTES]], -1
    if is_segment:
        number = find(flow_arrays.table, flow_arrays.keys, header, state[HASH_SEED])
        if number < 0:
            return
    note[N_START], note[N_END] = state[MEMORY_AT] + state[POS], state[MEMORY_AT] + following
    note[N_FLOW], note[N_NOW] = number, state[NOW]
    note[N_STREAM] = NO_STREAM if number < 0 else flow_arrays.flows[number, STREAM]
    note[N_KIND] = IS_EMPTY
    if is_segment:
        note[N_KIND] = HAS_DATA if header[STOP] > header[START] else IS_EMPTY
        if header[FLAGS] & SYN or not is_whole:
            note[N_KIND] = BREAKS
    state[NOTES] += 1


@inlined
def pass_omissions(state: Any, omissions: Any) -> bool:
    """Pass what was left out of the input at POS; return False if the next omission is for Python."""
    while state[NOTES] < omissions.shape[0]:
        omission = omissions[state[NOTES]]
        if omission[O_AT] != state[MEMORY_AT] + state[POS]:
            break
        now = omission[O_NOW]
        if now > state[NOW]:
            if now >= state[SWEEP_AT]:
                if now >= state[DEADLINE] or now >= state[IDLE_AT]:
                    return False
                state[SWEEP_AT] = next_multiple(now, SWEEP_NS)
            state[NOW] = now
        if omission[O_STOPS]:
            return False
        state[SKIPPED] += omission[O_BYTES]
        state[FRAME_NO] += omission[O_FRAMES]
        state[NOTES] += 1
    return True
