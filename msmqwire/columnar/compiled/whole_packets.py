"""Values that each hold one whole packet, judged by compiled code."""

from __future__ import annotations

from typing import Any, Final

from msmqwire.columnar.compiled.generated import MALFORMED, PLACES, ping
from msmqwire.columnar.compiled.jit import jit, u16, u32
from msmqwire.columnar.compiled.packet import BAD, JUDGED, PING_KIND, packet_length, session_packet
from msmqwire.columnar.compiled.state import R_EXTRA, R_KIND, R_LENGTH, R_SIZE, R_START
from msmqwire.headers.base import SIGNATURE
from msmqwire.ping import PING_SIGNATURE, PING_SIZE

BY_BYTES, SESSION, PING = -1, 0, 1
"""Protocols of values; those from 2 on are for the generic reader."""

_PING_SIGNATURE_AT: Final = PLACES["Ping"]["Signature"][1]
_SIGNATURE_AT: Final = PLACES["UserMessage"]["BaseHeader.Signature"][1]


@jit
def is_ping(buf: Any, start: int, stop: int) -> bool:
    """Whether bytes are a Ping, by size and signature, where their protocol is not known."""
    return (
        stop - start == PING_SIZE
        and u16(buf, start + _PING_SIGNATURE_AT) == PING_SIGNATURE
        and u32(buf, start + _SIGNATURE_AT) != SIGNATURE
    )


@jit
def judge(
    buf: Any, offsets: Any, there: Any, protocols: Any, first: int, most: int, rows: Any, at: Any
) -> int:
    """Rows of the values from `first` on, while there is room and they have `most` bytes; where it stopped.

    R_KIND is negative where only the generic reader can judge. What takes the place of BY_BYTES in
    `protocols` is what the bytes are.
    """
    i, total = first, 0
    while i < there.size and i - first < rows.shape[0] and total < most:
        r, start, stop = i - first, offsets[i], offsets[i + 1]
        kind = BAD
        if there[i]:
            if protocols[i] == BY_BYTES:
                protocols[i] = PING if is_ping(buf, start, stop) else SESSION
            kind = MALFORMED
            if protocols[i] == PING:
                if ping(buf, start, stop, at, r, False) == stop:
                    kind = PING_KIND
            elif protocols[i] == SESSION and stop - start >= JUDGED and packet_length(buf, start) >= 0:
                kind = session_packet(buf, start, stop, at, r, False)
        rows[r, R_KIND], rows[r, R_EXTRA] = kind, -1
        rows[r, R_START], rows[r, R_LENGTH], rows[r, R_SIZE] = start, stop - start, stop - start
        total += stop - start
        i += 1
    return i
