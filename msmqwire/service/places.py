"""The places of a listener: who has them, and who makes room.

A connection is silent until its peer has shown that it uses the protocol. Anybody can open silent ones. So
they keep out no others: the oldest of the most crowded origin makes room for the next connection. Where
all have spoken, one of an origin that has many makes room for an origin that has none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from msmqwire.service.crowd import Crowd

ConnectionT = TypeVar("ConnectionT", bound=Hashable)


@dataclass(frozen=True, slots=True)
class ListenerLimits:
    """Limits on the connections of a listener together.

    Attributes:
        connections: the number of open connections.
        per_origin: the same, from one IPv4 address or one IPv6 network of 64 bits.
        held_bytes: bytes that they may hold.
        close_s: seconds that a peer has to read its data before its connection is closed.
        reserved: places that silent connections of unknown origins can't have; half of them are for known
            origins alone.
        many: connections of an unknown origin beyond which the oldest one makes room for an origin that has
            none, even if it has spoken; None for never.
    """

    connections: int
    per_origin: int
    held_bytes: int
    close_s: float
    reserved: int = 0
    many: int | None = None


class Room(NamedTuple, Generic[ConnectionT]):
    """Room for a new connection.

    Attributes:
        refusal: the reason if there is none.
        ends: the connection that has to end before.
    """

    refusal: str | None = None
    ends: ConnectionT | None = None


class _Place(NamedTuple):
    origin: str
    is_known: bool


class Places(Generic[ConnectionT]):
    """The places of one listener.

    Args:
        limits: their numbers.
        is_known: whether an origin is known; it is asked when a connection comes.
    """

    def __init__(self, limits: ListenerLimits, is_known: Callable[[str], bool]) -> None:
        self._limits, self.is_known = limits, is_known
        self._unknown_max = limits.connections - limits.reserved // 2
        self._silent_max = limits.connections - limits.reserved
        self._taken: dict[ConnectionT, _Place] = {}
        self._of_origin: Counter[str] = Counter()
        self._unknown = 0
        self._silent: dict[bool, Crowd[ConnectionT]] = {False: Crowd(), True: Crowd()}  # by `is_known`
        self._speaking: Crowd[ConnectionT] = Crowd()  # of unknown origins

    def __len__(self) -> int:
        return len(self._taken)

    def __contains__(self, connection: ConnectionT) -> bool:
        return connection in self._taken

    @property
    def silent(self) -> int:
        """The number of silent connections."""
        return sum(map(len, self._silent.values()))

    def room(self, origin: str) -> Room[ConnectionT]:
        """Return the room for a new connection of an origin."""
        is_known = self.is_known(origin)
        if self._of_origin[origin] >= self._limits.per_origin:
            own = self._silent[True].oldest_of(origin) or self._silent[False].oldest_of(origin)
            return Room("too many connections of this peer" if own is None else None, own)
        if not self._is_full(is_known):
            return Room()
        ends = self.oldest_silent(for_known=is_known)
        if ends is None and not self._of_origin[origin]:
            ends = self._one_of_many()
        return Room("too many connections" if ends is None else None, ends)

    def _one_of_many(self) -> ConnectionT | None:
        """Return the oldest connection of the origin that has most, if those are many."""
        many = self._limits.many
        return self._speaking.oldest() if many is not None and self._speaking.most > many else None

    def _is_full(self, is_known: bool) -> bool:
        if len(self._taken) >= self._limits.connections:
            return True
        return not is_known and (
            self._unknown >= self._unknown_max or len(self._silent[False]) >= self._silent_max
        )

    def oldest_silent(self, *, for_known: bool) -> ConnectionT | None:
        """Return the silent connection that has to make room first; None if there is none.

        Those of known origins make room for known origins only.
        """
        oldest = self._silent[False].oldest()
        return self._silent[True].oldest() if oldest is None and for_known else oldest

    def take(self, connection: ConnectionT, origin: str) -> None:
        """Give a place to a new connection, which is silent."""
        place = self._taken[connection] = _Place(origin, self.is_known(origin))
        self._of_origin[origin] += 1
        self._unknown += not place.is_known
        self._silent[place.is_known].add(connection, origin)

    def spoke(self, connection: ConnectionT) -> None:
        """A connection is silent no more."""
        place = self._taken.get(connection)
        if place is not None and self._silent[place.is_known].discard(connection) and not place.is_known:
            self._speaking.add(connection, place.origin)

    def leave(self, connection: ConnectionT) -> None:
        """The place of a connection is free, unless it was before."""
        place = self._taken.pop(connection, None)
        if place is None:
            return
        self._silent[place.is_known].discard(connection)
        self._speaking.discard(connection)
        self._unknown -= not place.is_known
        self._of_origin[place.origin] -= 1
        if not self._of_origin[place.origin]:
            del self._of_origin[place.origin]
