"""Connections of a scan between two packets, of which another reader can take over where they are.

A reader that begins inside a capture comes to know a connection that began before: once both flows are
settled it takes whatever follows as a reader does that has read all. So its findings at a later place can be
given by values, in place of the segments between. `differs` says where that is not so, and `move` brings a
connection of another reader from the one place to the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from msmqwire.analysis.protocols import stream_ports
from msmqwire.capture.events import distance
from msmqwire.tables.compiled.flow_table import (
    ACKED,
    AFTER_BAD,
    BEGINS_INSIDE,
    DELIVERED,
    DOUBTFUL_SIZE,
    ENDED,
    FAILED,
    FAR_FROM,
    FAR_RUN,
    FIN_SEQ,
    FIRST_SEQ,
    FIRST_SIDE,
    FRAME,
    HAS_ENDED,
    HAS_PENDING,
    IGNORED,
    IGNORED_FRAME,
    IGNORED_NS,
    IN_DOUBT,
    IN_ORDER,
    IS_CHECKED,
    IS_FAST,
    IS_GONE,
    IS_KNOWN,
    IS_SEEN,
    IS_STARTED,
    IS_WAITING,
    ISN,
    LAST_NS,
    LOSS,
    MIDSTREAM,
    MODE,
    MSMQ,
    NEXT_SEQ,
    NO_SEQ,
    OPEN,
    OPENING,
    OUT_OF_ORDER,
    PACKET_BYTES,
    PACKET_SEGMENTS,
    PACKET_SIZE,
    QUEUED,
    REMAINING,
    RUN_BYTES,
    RUN_FRAMES,
    RUN_SEGMENTS,
    SEARCHED_TO,
    START_KIND,
    TCP_STATE,
    UNKNOWN,
    UNRECOGNISED,
    WAS_RESET,
)
from msmqwire.tables.compiled.network import PORTS

_ZERO: Final = [
    IS_GONE, OUT_OF_ORDER, IS_WAITING, QUEUED, PACKET_SEGMENTS, PACKET_SIZE, RUN_BYTES,
    RUN_SEGMENTS, RUN_FRAMES, LOSS, REMAINING, IS_CHECKED, DOUBTFUL_SIZE, HAS_PENDING,
]  # fmt: skip
_FIELDS: Final = [
    MODE, TCP_STATE, NEXT_SEQ, ACKED, LAST_NS, FRAME, DELIVERED, IGNORED, IGNORED_FRAME, IGNORED_NS,
    FIRST_SEQ, FIN_SEQ, IS_SEEN, IS_STARTED, IS_KNOWN, BEGINS_INSIDE, HAS_ENDED, WAS_RESET, START_KIND,
    FIRST_SIDE,
]  # fmt: skip
_PROGRESS_MAX: Final = 1 << 30
"""Bytes between two places: after more of them an old acknowledgement may seem to be ahead."""
_IS_FOREIGN: Final = np.isin(np.arange(1 << 16), stream_ports())
"""Whether a port is of a protocol that the scan leaves to Python, by port."""
_SEQ_MASK: Final = 0xFFFF_FFFF


class Values(NamedTuple):
    """The facts about a settled flow, by the names of its fields in `compiled.flow_table`."""

    mode: int
    tcp_state: int
    next_seq: int
    acked: int
    last_ns: int
    frame: int
    delivered: int
    ignored: int
    ignored_frame: int
    ignored_ns: int
    first_seq: int
    fin_seq: int
    is_seen: int
    is_started: int
    is_known: int
    begins_inside: int
    has_ended: int
    was_reset: int
    start_kind: int
    first_side: int


Pair = tuple[Values, Values]
"""The values of both flows of a connection."""


def are_settled(flows: Any, keys: Any, numbers: Any) -> Any:
    """Return for each connection, given by the number of one of its flows, whether both are settled."""
    first = numbers & -2
    flows, both = flows[np.concatenate([first, first + 1])], keys[np.concatenate([first, first + 1])]
    sides, count = _is_settled(flows), len(first)
    has_time = np.maximum(flows[:count, LAST_NS], flows[count:, LAST_NS]) > 0
    ports = both[:count, PORTS]
    may_be_followed = _IS_FOREIGN[ports >> 16] | _IS_FOREIGN[ports & 0xFFFF]
    is_looped = (both[:count] == both[count:]).all(axis=1)
    is_read = (flows[:count, MODE] == MSMQ) | ~may_be_followed
    return sides[:count] & sides[count:] & has_time & ~is_looped & is_read


def are_between_packets(flows: Any) -> Any:
    """Return for each flow whether a finder of packets would find the same from here on if it began here."""
    delivered = flows[:, DELIVERED]
    return (
        (flows[:, [IN_DOUBT, PACKET_BYTES, AFTER_BAD]] == 0).all(axis=1)
        & (flows[:, SEARCHED_TO] <= delivered)
        & (flows[:, FAILED:] <= delivered[:, None]).all(axis=1)
    )


def _is_settled(flows: Any) -> Any:
    modes, states = flows[:, MODE], flows[:, TCP_STATE]
    waits_to_begin = (
        (modes == MSMQ) & (states == OPEN) & (flows[:, START_KIND] != 0) & (flows[:, IS_STARTED] == 0)
    )
    return (
        ~waits_to_begin
        & (flows[:, _ZERO] == 0).all(axis=1)
        & ((modes == MSMQ) | (modes == UNRECOGNISED))
        & (states != OPENING)
        & ((flows[:, FIN_SEQ] == NO_SEQ) | (states == ENDED))
        & are_between_packets(flows)
        & ((flows[:, FAR_RUN] == 0) | (flows[:, FAR_FROM] != flows[:, NEXT_SEQ]))
    )


def rows_of(flows: Any, numbers: Any) -> Any:
    """Return the values of connections as rows of an array, each those of its two flows; see `pair_of`."""
    first = numbers & -2
    return np.stack([flows[first], flows[first + 1]], axis=1)[:, :, _FIELDS]


def pair_of(row: Any) -> Pair:
    """Return the values of a connection, those of the flow with the even number first."""
    one, other = row.tolist()
    return Values._make(one), Values._make(other)


def go_on(before: Any, after: Any) -> Any:
    """Return for each connection whether it has gone on in its course, so that values say all."""
    old, new = (dict(zip(Values._fields, np.moveaxis(rows, 2, 0), strict=True)) for rows in (before, after))
    same = [old[name] == new[name] for name in ("mode", "is_known", "is_started")]
    states = (old["tcp_state"] == new["tcp_state"]) | (
        (old["tcp_state"] == OPEN) & (new["tcp_state"] == ENDED)
    )
    acked = (old["tcp_state"] != UNKNOWN) | (old["acked"] == new["acked"])
    acked &= (old["acked"] < 0) == (new["acked"] < 0)
    is_near = new["next_seq"] - old["next_seq"] < _PROGRESS_MAX
    return np.logical_and.reduce([*same, states, acked, is_near]).all(axis=1)


def differs(before: Pair, mine: Pair, after: Pair) -> str:
    """Return the difference between another reader's connection and mine where its values are those before;
    or "".

    My two flows, in the order of the keys of the other reader's.
    """
    return next(filter(None, map(_difference, before, mine, after)), "")


def _difference(other: Values, mine: Values, after: Values) -> str:
    if mine.acked != other.acked:
        is_old = -_PROGRESS_MAX < distance(mine.acked, mine.next_seq) <= 0  # and stays so
        if other.acked >= 0 or not (is_old or mine.acked < 0 or mine.tcp_state == UNKNOWN):
            return "acknowledged otherwise"
    if other.tcp_state == UNKNOWN:  # and it stays so: nothing of it has come but acknowledgements
        is_level = mine.acked < 0 or distance(mine.acked, mine.next_seq) == 0
        return "" if mine.tcp_state != OPEN or is_level else "is not where its peer says"
    if (mine.tcp_state, mine.was_reset, mine.is_seen) != (other.tcp_state, other.was_reset, other.is_seen):
        return "is in another state"
    if (mine.next_seq - other.next_seq) & _SEQ_MASK:
        return "is elsewhere"
    if other.tcp_state == ENDED:
        return "" if mine.has_ended == other.has_ended else "ended otherwise"
    if (mine.mode, mine.is_known, mine.is_started) != (other.mode, other.is_known, other.is_started):
        return "recognised otherwise"
    if mine.mode == MSMQ and (mine.ignored or other.ignored):
        return "ignored something"
    if (bool(mine.start_kind), mine.has_ended) != (bool(other.start_kind), other.has_ended):
        return "delivered otherwise"
    return "" if mine.is_started or mine.begins_inside == other.begins_inside else "begins otherwise"


def move(
    flows: Any, numbers: Sequence[int], before: Pair, after: Pair, frames: Sequence[tuple[int, int]]
) -> None:
    """Bring a connection from where another reader's values are those before to where they are those after.

    Args:
        flows: the flows.
        numbers: those of its flows, in the order of the values.
        before, after: the values.
        frames: the codes here of the frames after, the last one and the last that was ignored, by flow.
    """
    for number, old, new, (frame, ignored_frame) in zip(numbers, before, after, frames, strict=True):
        flow = flows[number]
        if new.first_side and not flows[number & -2, FIRST_SIDE]:
            flows[number & -2, FIRST_SIDE] = 1 + (numbers[new.first_side - 1] & 1)
        if new.acked >= 0:
            flow[ACKED] = new.acked
        if new.frame != old.frame:
            flow[IS_SEEN], flow[FRAME] = 1, frame
        if new.last_ns != old.last_ns:
            flow[LAST_NS] = new.last_ns
        flow[DELIVERED] += new.delivered - old.delivered
        if new.ignored != old.ignored:
            flow[IGNORED] += new.ignored - old.ignored
            flow[IGNORED_FRAME], flow[IGNORED_NS] = ignored_frame, new.ignored_ns
        if new.start_kind and not flow[START_KIND]:
            flow[START_KIND] = MIDSTREAM if flow[ISN] < 0 else IN_ORDER
        if new.tcp_state != UNKNOWN:
            flow[NEXT_SEQ] += new.next_seq - old.next_seq
            flow[TCP_STATE], flow[WAS_RESET], flow[HAS_ENDED] = new.tcp_state, new.was_reset, new.has_ended
            has_fin = new.fin_seq != NO_SEQ
            flow[FIN_SEQ] = flow[NEXT_SEQ] + new.fin_seq - new.next_seq if has_fin else NO_SEQ
        elif flow[TCP_STATE] == UNKNOWN and flow[FIRST_SEQ] == NO_SEQ:
            flow[FIRST_SEQ] = new.first_seq
        flow[IS_FAST] = flow[TCP_STATE] == OPEN and flow[IS_SEEN] and flow[FIN_SEQ] == NO_SEQ
