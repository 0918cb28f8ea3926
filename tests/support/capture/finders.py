"""The finder of packets with its results as lists, for tests."""

from __future__ import annotations

from msmqwire.analysis.dissection import finder
from msmqwire.analysis.dissection.finder import ScanResult


class PacketFinder(finder.PacketFinder):
    """Takes all results at once."""

    def feed(self, data: bytes, frame: int, time_ns: int) -> list[ScanResult]:  # type: ignore[override]
        return list(super().feed(data, frame, time_ns))

    def gap(self, size: int | None, reason: str, frame: int, time_ns: int) -> list[ScanResult]:  # type: ignore[override]
        return list(super().gap(size, reason, frame, time_ns))

    def end(self, *, cut: bool = False) -> list[ScanResult]:  # type: ignore[override]
        return list(super().end(cut=cut))
