"""Which connections make room for others, among those of the tracker and those that only the scan knows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from msmqwire.capture import direction as capture_direction
from msmqwire.capture.direction import Direction
from msmqwire.capture.eviction import EvictionRank
from msmqwire.columnar.compiled.flow_table import ENDED, LAST_NS, MODE, STREAM, UNSEEN


def rank(direction: Direction, row_of: Callable[[Direction], Any | None]) -> EvictionRank:
    """Return the rank of a connection that the tracker knows, given by its direction first seen.

    ``row_of`` returns the flow of a direction that the scan has, and None for another.
    """
    ended, _, last_ns = _outline(direction, row_of(direction))
    peer_ended, peer_seen, peer_ns = _outline(direction.peer, row_of(direction.peer))
    ended = ended and (peer_ended or not peer_seen)
    return EvictionRank(not ended, max(last_ns, peer_ns), direction.stream)


def _outline(direction: Direction, row: Any | None) -> tuple[bool, bool, int]:
    """Return whether a direction has ended, whether it was seen, and when its last segment was captured."""
    if row is None:
        return direction.state == capture_direction.ENDED, direction.seen, direction.last_ns
    return bool(row[MODE] == ENDED), bool(row[MODE] != UNSEEN), int(row[LAST_NS])


def first_to_evict(flows: Any, first: Any, registered: Sequence[EvictionRank], count: int) -> Any:
    """Return the connections to evict, in their order, each by its place in ``first`` and ``registered``.

    Args:
        flows: the flows of the scan.
        first: the numbers of the connections that only the scan knows.
        registered: the ranks of the others.
        count: how many are evicted.
    """
    ours, peers = flows[first], flows[first + 1]
    peer_is_over = (peers[:, MODE] == ENDED) | (peers[:, MODE] == UNSEEN)
    ended = (ours[:, MODE] == ENDED) & peer_is_over
    last_ns = np.maximum(ours[:, LAST_NS], peers[:, LAST_NS])
    others = np.array(registered, np.int64).reshape(-1, 3)
    keys = (
        np.concatenate([ours[:, STREAM], others[:, 2]]),
        np.concatenate([last_ns, others[:, 1]]),
        np.concatenate([~ended, others[:, 0] != 0]),
    )
    return np.lexsort(keys)[:count]
