"""The followers of protocols that have joined: each knows what packets of its protocol say of messages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pkgutil import resolve_name
from typing import ClassVar

from msmqwire.analysis.fate.observations import Observation, Sighting, Where
from msmqwire.analysis.fate.rows import Row
from msmqwire.analysis.protocols import protocols


class Follower(ABC):
    """Follows the packets of a protocol on one connection.

    Attributes:
        kinds: the kinds of packets that it takes.
        size: the number of messages that it remembers.
    """

    kinds: ClassVar[tuple[str, ...]]

    @property
    def size(self) -> int:
        return 0

    @abstractmethod
    def feed(self, row: Row, where: Where) -> Iterator[Sighting]:
        """Take a packet; yield its observations of messages."""

    def unreadable(self, row: Row, where: Where) -> Iterable[Observation]:
        """Take a packet that can't be read, or skipped bytes; return their observations."""
        return ()

    def end(self, last: Where, *, forgotten: str, has_gaps: bool) -> Iterable[Observation]:
        """End the connection; return the last observations.

        Args:
            last: the place of its last packet.
            forgotten: why no more of it is looked at; empty at its end.
            has_gaps: whether not all of it was captured.
        """
        return ()


@cache
def followers() -> Mapping[str, type[Follower]]:
    """Return the followers by the kinds of packets that they take."""
    places = (protocol.follower for protocol in protocols())
    found: list[type[Follower]] = [resolve_name(place) for place in places if place]
    return {kind: follower for follower in found for kind in follower.kinds}
