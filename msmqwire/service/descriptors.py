"""File descriptors: the limit of the process, and the share of connections."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol

try:
    import resource
except ModuleNotFoundError:  # Windows has no such limit
    resource = None  # type: ignore[assignment]

_RESERVE_MAX: Final = 128
_ENOUGH: Final = 1 << 16
_SHARE: Final = 3, 4
"""The share of the descriptors for connections that one direction may use; the other direction has the
rest.
"""
_FOR_KNOWN: Final = 8
"""An eighth of the share for incoming connections is for known origins."""


def raise_limit() -> None:
    """Raise the limit of this process as far as permitted, to at most 65,536."""
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _ENOUGH if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):  # some systems allow less than they report
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def limit() -> int:
    """Return the number of descriptors that this process may have."""
    if resource is None:
        return _ENOUGH
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return _ENOUGH if soft == resource.RLIM_INFINITY else soft


class DescriptorBudget:
    """The descriptors that connections may use.

    The store, the control channel, the resolver and the listening sockets have a reserve that no peer can
    touch: half of a small limit, 128 of a large one.

    Attributes:
        total: descriptors for connections in both directions.
        one_way: descriptors for connections in one direction.
    """

    def __init__(self, available: int) -> None:
        self.total = max(2, available - min(available // 2, _RESERVE_MAX))
        self.one_way = max(1, self.total * _SHARE[0] // _SHARE[1])

    def allows(self, one_way: int, other_way: int) -> bool:
        """Return whether one more connection may be opened in a direction with this number."""
        return one_way < self.one_way and one_way + other_way < self.total


class SilentConnections(Protocol):
    """The connections of a listener whose peers have said nothing yet."""

    @property
    def silent(self) -> int:
        """Their number."""

    def end_silent(self, *, for_known: bool) -> bool:
        """End one, for a connection of a known origin or another one; return whether there was one."""


class OpenConnections:
    """The connections of all transports of one process, which share a budget of descriptors."""

    def __init__(self) -> None:
        self._budget = DescriptorBudget(limit())
        self._counts: list[Callable[[], tuple[int, int]]] = []
        self._listeners: list[SilentConnections] = []

    def add(self, count: Callable[[], tuple[int, int]], silent: SilentConnections | None = None) -> None:
        """Add a transport: `count` returns the numbers of its incoming and outgoing connections.

        `silent` are those that make room for others.
        """
        self._counts.append(count)
        if silent is not None:
            self._listeners.append(silent)

    @property
    def quarter(self) -> int:
        """A quarter of the connections that one direction may have, for a transport that keeps some open."""
        return max(1, self._budget.one_way // 4)

    def allows_incoming(self, *, is_known: bool = False) -> bool:
        """Return whether one more connection may be accepted, of a known origin or another one."""
        incoming, outgoing = self._total()
        kept = 0 if is_known else self._budget.one_way // _FOR_KNOWN
        return self._budget.allows(incoming + kept, outgoing)

    def make_room(self, *, for_known: bool) -> bool:
        """End a silent connection, of the listener that has most of them; return whether there was one."""
        crowded = sorted(self._listeners, key=lambda listener: listener.silent, reverse=True)
        return any(listener.end_silent(for_known=for_known) for listener in crowded)

    def allows_outgoing(self) -> bool:
        """Return whether one more connection may be opened."""
        incoming, outgoing = self._total()
        return self._budget.allows(outgoing, incoming)

    def _total(self) -> tuple[int, int]:
        counts = [count() for count in self._counts]
        return sum(incoming for incoming, _ in counts), sum(outgoing for _, outgoing in counts)
