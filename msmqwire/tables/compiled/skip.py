"""Records skipped by compiled code, where only the offsets of some are asked for."""

from __future__ import annotations

from typing import Final

import numpy as np

from msmqwire.capture import pcap, pcapng
from msmqwire.capture.record import record_limit
from msmqwire.tables.compiled import state as entry
from msmqwire.tables.compiled.arrays import Input, Int64Rows, Int64s
from msmqwire.tables.compiled.decorators import exported, jit
from msmqwire.tables.compiled.records import next_record

INTERFACES_MAX: Final = 64
"""Interfaces of a section in which records are skipped, at most: they are passed to each call."""


def skip_records(
    form: pcap.Layout | pcapng.Blocks, data: bytes | bytearray, at: int, stop: int, cut: int
) -> tuple[int, int]:
    """Skip records of pcap, and Enhanced Packet Blocks of pcapng: a `msmqwire.capture.record_index.Skip`."""
    state, interfaces = np.zeros(entry.STATE, np.int64), [(0, 0, 1, 1, 0)]
    state[entry.POS], state[entry.END] = at, stop
    if isinstance(form, pcap.Layout):
        state[entry.BIG_ENDIAN] = form.order == ">"
        state[entry.HEADER_SIZE], state[entry.SIZE_LIMIT] = form.header_size, form.limit
    elif 0 < len(form.interfaces) <= INTERFACES_MAX:
        state[entry.IS_PCAPNG], state[entry.BIG_ENDIAN] = True, form.order == ">"
        state[entry.SIZE_LIMIT], state[entry.INTERFACES] = form.block_size_max, len(form.interfaces)
        # Link types and times do not matter.
        limit = form.record_size_max
        interfaces = [(0, record_limit(interface.snaplen, limit), 1, 1, 0) for interface in form.interfaces]
    else:
        return at, -1
    memory = np.frombuffer(data, np.uint8)
    memory.flags.writeable = False  # as for bytes, so that there is one signature to compile
    last = _skip(state, memory, np.array(interfaces, np.int64), cut)
    return int(state[entry.POS]), last


@exported
@jit
def _skip(state: Int64s, memory: Input, interfaces: Int64Rows, cut: int) -> int:
    last = -1
    while state[entry.POS] < cut:
        following = next_record(state, memory, interfaces)
        if following < 0:
            break
        last = state[entry.POS]
        state[entry.POS] = following
    return last
