"""Packets and bytes over time, in a bounded number of equal intervals."""

from __future__ import annotations

from typing import Any, Final

from msmqwire.analysis.report.facts import GROUPS, Group
from msmqwire.analysis.report.limits import Limits
from msmqwire.analysis.report.sessions import split_time

SERIES: Final = {
    Group.MESSAGE: 0,
    Group.ACKNOWLEDGEMENT: 1,
    Group.CALL: 2,
    Group.ANSWER: 2,
    Group.HANDSHAKE: 3,
    Group.OTHER: 3,
    Group.MALFORMED: 4,
    Group.GAP: 4,
}
"""The line of the chart that each group is part of."""
NAMES: Final = (
    "Messages",
    "Acknowledgements",
    "Calls and answers",
    "Handshakes, pings and the rest",
    "Malformed or skipped",
)
BYTES: Final = len(NAMES)
FINDINGS: Final = BYTES + 1
_INTERVALS_OF_FEW: Final = 100
"""Intervals if there are few packets: a packet in each fourth of them at the most makes no picture."""
_WIDTH_MIN_NS: Final = 1_000
_NICE: Final = (1, 2)
"""Each width is a multiple of the one before: counts stay exact."""

assert SERIES.keys() == set(GROUPS)


class Timeline:
    """Counts by interval. Intervals become wider as the capture becomes longer."""

    def __init__(self, limits: Limits) -> None:
        self._max = limits.timeline
        self._packets = 0
        self._step = 0  # of _width_of
        self._counts: dict[int, list[int]] = {}  # by the number of the interval since 1970
        self._first = self._last = 0

    @staticmethod
    def _width_of(step: int) -> int:
        power, nice = divmod(step, len(_NICE))
        return int(_WIDTH_MIN_NS * 10**power * _NICE[nice])

    def width_with(self, start_ns: int, end_ns: int) -> int:
        """Return the width of the intervals, wide enough for the packets from one time to another too."""
        width = self._width_of(self._step)
        first, last = start_ns // width, end_ns // width
        if self._counts:
            first, last = min(self._first, first), max(self._last, last)
        self._first, self._last = first, last
        while self._last - self._first >= self._max:
            self._widen()
        return self._width_of(self._step)

    def add(self, time_ns: int, group: Group, size: int, findings: int, packets: int = 1) -> None:
        """Count a packet, or several in one interval."""
        number = time_ns // self.width_with(time_ns, time_ns)
        self._packets += packets
        counts = self._counts.get(number)
        if counts is None:
            counts = self._counts[number] = [0] * (FINDINGS + 1)
        counts[SERIES[group]] += packets
        counts[BYTES] += size
        counts[FINDINGS] += findings

    def _widen(self) -> None:
        """Count by wider intervals, each of them two or five of those before."""
        before = self._width_of(self._step)
        self._step += 1
        width = self._width_of(self._step)
        wider: dict[int, list[int]] = {}
        for number, counts in self._counts.items():
            to = wider.setdefault(number * before // width, [0] * len(counts))
            for place, count in enumerate(counts):
                to[place] += count
        self._counts = wider
        self._first, self._last = self._first * before // width, self._last * before // width

    def to_json(self) -> dict[str, Any]:
        """Return the start of the first interval, the width of all, and the counts of each line."""
        while self._last - self._first >= _INTERVALS_OF_FEW > self._packets // 4:
            self._widen()
        width = self._width_of(self._step)
        intervals = range(self._first, self._last + 1) if self._counts else range(0)
        nothing = [0] * (FINDINGS + 1)
        rows = [self._counts.get(number, nothing) for number in intervals]
        return {
            "start": split_time(self._first * width),
            "width_ns": width,
            "names": list(NAMES),
            "series": [[row[place] for row in rows] for place in range(BYTES)],
            "bytes": [row[BYTES] for row in rows],
            "findings": [row[FINDINGS] for row in rows],
        }
