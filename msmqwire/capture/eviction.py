"""The order in which connections are evicted."""

from __future__ import annotations

from typing import NamedTuple

from msmqwire.capture.direction import ENDED, Direction


class EvictionRank(NamedTuple):
    """The place of a connection in the order of eviction, by which they are sorted.

    Attributes:
        lasts: whether it has not ended; those that have are evicted first.
        last_ns: when its last segment was captured, nanoseconds since 1970; then those idle for longest.
        stream: its number, which decides between equals.
    """

    lasts: bool
    last_ns: int
    stream: int


def eviction_rank(direction: Direction) -> EvictionRank:
    """Return the rank of a connection, given by its direction first seen."""
    peer = direction.peer
    ended = direction.state == ENDED and (peer.state == ENDED or not peer.seen)
    return EvictionRank(not ended, max(direction.last_ns, peer.last_ns), direction.stream)


def evicted_at_once(max_flows: int) -> int:
    """Return the number of connections to evict at once, so that their order need not be kept up to date."""
    return max(1, max_flows // 16)
