"""A direction of a captured connection that is followed, and its skipped bytes until they are reported."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeAlias, TypeVar

from msmqwire.analysis.dissection.finder import ScanResult
from msmqwire.analysis.dissection.stream_finder import StreamFinder, StreamRange
from msmqwire.capture import Flow

FinderT = TypeVar("FinderT", bound=StreamFinder[Any])

Ignored: TypeAlias = tuple[int, int, int]
"""The number of bytes skipped while nothing was recognised, the last frame of them and its time."""

UNKNOWN: Final = "before anything was recognised as MSMQ"
"""Why such bytes are skipped."""

_SKIP_SHOWN: Final = 0x1_0000  # bytes; this number is reported for one reason, though more may follow


@dataclass(slots=True)
class FollowedDirection(Generic[FinderT]):
    """A direction with its finder.

    Attributes:
        size: the number of skipped bytes that are not reported yet.
        reason: why.
        frame: the last frame of them.
        time_ns: when that was captured.
    """

    flow: Flow
    finder: FinderT
    size: int = 0
    reason: str = ""
    frame: int = 0
    time_ns: int = 0

    @property
    def held(self) -> int:
        """The approximate number of bytes of memory that incomplete units take."""
        return self.finder.held

    def skip(self, found: StreamRange[Any], reason: str) -> Iterator[ScanResult]:
        """Count bytes as skipped; report them when there are many, or those before are of another reason."""
        if reason != self.reason:
            yield from self.report_skipped()
        self.count(found, reason)
        if self.size >= _SKIP_SHOWN:
            yield from self.report_skipped()

    def count(self, found: StreamRange[Any], reason: str) -> None:
        """Count bytes as skipped, whatever was the reason of those before."""
        self.size += found.size
        self.reason, self.frame, self.time_ns = reason, found.frames[-1], found.time_ns

    def report_skipped(self) -> Iterator[ScanResult]:
        """Yield the bytes that have been skipped, if there are any."""
        if self.size:
            size, self.size = self.size, 0
            yield ScanResult.skipped(size, self.reason, (self.frame,), self.time_ns)
