"""Records passed over, compiled, where only the places of some are asked for."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from msmqwire.capture import pcap, pcapng
from msmqwire.capture.record import record_limit
from msmqwire.columnar.compiled import state as w
from msmqwire.columnar.compiled.jit import jit
from msmqwire.columnar.compiled.records import next_record

INTERFACES_MAX: Final = 64
"""Interfaces of a section in which records are passed over; the compiled code is told them anew each time."""


def skip_records(
    form: pcap.Layout | pcapng.Blocks, data: bytes | bytearray, at: int, stop: int, cut: int
) -> tuple[int, int]:
    """A `msmqwire.capture.record_index.Skip` for records of pcap and plain ones of pcapng."""
    state, interfaces = np.zeros(w.STATE, np.int64), [(0, 0, 1, 1, 0)]
    state[w.POS], state[w.END] = at, stop
    if isinstance(form, pcap.Layout):
        state[w.BIG_ENDIAN] = form.order == ">"
        state[w.HEADER_SIZE], state[w.LIMIT] = form.header_size, form.limit
    elif 0 < len(form.interfaces) <= INTERFACES_MAX:
        state[w.IS_PCAPNG], state[w.BIG_ENDIAN] = True, form.order == ">"
        state[w.LIMIT], state[w.INTERFACES] = pcapng.BLOCK_SIZE_MAX, len(form.interfaces)
        # Neither link types nor times matter here.
        interfaces = [(0, record_limit(one.snaplen), 1, 1, 0) for one in form.interfaces]
    else:
        return at, -1
    buf = np.frombuffer(data, np.uint8)
    buf.flags.writeable = False  # as it is of bytes: one form to compile
    last = _skip(state, buf, np.array(interfaces, np.int64), cut)
    return int(state[w.POS]), last


@jit
def _skip(st: Any, buf: Any, interfaces: Any, cut: int) -> int:
    last = -1
    while st[w.POS] < cut:
        following = next_record(st, buf, interfaces)
        if following < 0:
            break
        last = st[w.POS]
        st[w.POS] = following
    return last
