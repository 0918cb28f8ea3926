"""Conversations of protocols whose messages are framed by a `StreamFinder` in each direction."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

from msmqwire.analysis.dissection.dissector import Conversation, Surroundings
from msmqwire.analysis.dissection.finder import ScanResult
from msmqwire.analysis.dissection.followed_direction import FollowedDirection, Ignored
from msmqwire.analysis.dissection.stream_finder import StreamRange
from msmqwire.capture import Data, End, Flow, Gap
from msmqwire.capture.events import Endpoint

DirectionT = TypeVar("DirectionT", bound=FollowedDirection[Any])


class FollowedConversation(Conversation, Generic[DirectionT]):
    """Both directions of a connection, each with its finder.

    Args:
        surroundings: the context that all connections share.
        ignored: by sender the number of bytes before it was recognised, their last frame and its time; a
            direction takes its own when it begins.
    """

    __slots__ = ("_directions", "_held", "_ignored")

    def __init__(self, surroundings: Surroundings, ignored: dict[Endpoint, Ignored]) -> None:
        super().__init__(surroundings)
        self._ignored = ignored
        self._directions: dict[Endpoint, DirectionT] = {}
        self._held: int | None = 0  # None while an event changes it

    @property
    def held(self) -> int:
        """The approximate number of bytes of memory held, which is worked out once after each event."""
        if self._held is None:
            self._held = self._count_held()
        return self._held

    def _count_held(self) -> int:
        return sum([direction.held for direction in self._directions.values()])

    @property
    def idle(self) -> bool:
        return not self._directions

    def data(self, event: Data) -> Iterator[ScanResult]:
        self._held = None
        direction = self._direction(event.flow)
        return self._results(direction, direction.finder.feed(event.data, event.frame, event.time_ns))

    def gap(self, event: Gap) -> Iterator[ScanResult]:
        self._held = None
        direction = self._direction(event.flow)
        yield from self._results(direction, direction.finder.gap())
        self._lose(direction)
        if event.size and self._reports:
            yield from direction.report_skipped()
            reason = f"not in the capture: {event.reason}"
            yield ScanResult.skipped(event.size, reason, (event.frame,), event.time_ns)

    def end(self, event: End) -> Iterator[ScanResult]:
        self._held = None
        direction = self._directions.pop(event.flow.sender, None)
        if direction is not None:
            cut = event.reason not in ("fin", "rst")
            yield from self._results(direction, direction.finder.end(cut=cut))
            yield from self._rest(direction, cut=cut)
            if self._reports:
                yield from direction.report_skipped()

    def discard(self) -> list[tuple[Flow, list[ScanResult]]]:
        self._held = None
        self._let_go()
        return [(direction.flow, list(self._discard(direction))) for direction in self._directions.values()]

    @property
    def _reports(self) -> bool:
        """Whether skipped bytes are reported, not only counted."""
        return True

    def _direction(self, flow: Flow) -> DirectionT:
        direction = self._directions.get(flow.sender)
        if direction is None:
            ignored = self._ignored.pop(flow.sender, (0, 0, 0))
            direction = self._directions[flow.sender] = self._new_direction(flow, ignored)
        return direction

    @abstractmethod
    def _new_direction(self, flow: Flow, ignored: Ignored) -> DirectionT:
        """Return a direction that begins, with its bytes skipped before."""

    @abstractmethod
    def _results(self, direction: DirectionT, ranges: Iterable[StreamRange[Any]]) -> Iterator[ScanResult]:
        """Yield the results of the ranges that a finder has found."""

    @abstractmethod
    def _lose(self, direction: DirectionT) -> None:
        """Take note that bytes of a direction are missing."""

    def _rest(self, direction: DirectionT, *, cut: bool) -> Iterable[ScanResult]:
        """Return the results of the units that a direction leaves incomplete; `cut` if only its capture
        ended.
        """
        return ()

    def _let_go(self) -> None:
        """Free the memory that is not of a direction."""

    def _discard(self, direction: DirectionT) -> Iterator[ScanResult]:
        return self._results(direction, direction.finder.discard())
