"""Counts of captures: kinds, queues, sessions, findings; in bounded memory, whatever their size."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from msmqwire.analysis.dissection import Dissection, Item, format_time
from msmqwire.analysis.lint import SEVERITIES
from msmqwire.analysis.report.collecting import Collector
from msmqwire.analysis.report.limits import Limits

_COUNTS: Final = ("packets", "bytes", "findings")
_QUEUE: Final = ("queue", "messages", "body_bytes", "packets", "findings", "start", "end")
_MANAGER: Final = ("guid", "addresses", "more_addresses", "sent", "addressed")
_ENDPOINT: Final = ("address", "sent", "received", "bytes_sent", "bytes_received", "findings")


class Statistics:
    """Counts items, by the collector of reports, which keeps no packets here."""

    def __init__(self, limits: Limits | None = None) -> None:
        """Count within limits: those on sessions, queues, queue managers, endpoints and requirements."""
        self._collector = Collector(replace(limits or Limits(), packets=0, details=0, examples=0))

    @property
    def packets(self) -> int:
        """The number of items counted."""
        return self._collector.packets

    def take(self, dissection: Dissection) -> None:
        """Count all that a dissection reads."""
        for part in dissection.parts():
            self._collector.take(part)

    def add(self, item: Item) -> None:
        """Count one item."""
        self._collector.add(item)

    def to_json(self, dissection: Dissection) -> dict[str, Any]:
        """Return all counts, once a dissection has ended.

        Tables are lists of objects, the busiest first. ``left_out`` has how much found no place in a table,
        by its name: packets, of ``requirements`` findings, of ``attempts`` attempts. Attempts to connect are
        there if the dissection follows them.
        """
        collector = self._collector
        data = collector.to_json(dissection)
        totals = data["totals"]
        return {
            "captures": data["captures"],
            **{name: totals[name] for name in ("frames", "packets", "bytes", "findings", "again")},
            "start": _time(data["start"]),
            "end": _time(data["end"]),
            "severities": {severity: totals[severity] for severity in reversed(SEVERITIES)},
            "kinds": _table(data["kinds"], ("kind", *_COUNTS)),
            "protocols": _table(data["protocols"], ("protocol", *_COUNTS)),
            "queues": _table(data["queues"], _QUEUE),
            "queue_managers": _table(data["managers"], _MANAGER),
            "endpoints": _table(data["endpoints"], _ENDPOINT),
            "sessions": [
                {**session, "start": _time(session["start"]), "end": _time(session["end"])}
                for session in data["sessions"]
            ],
            "requirements": [
                {name: value for name, value in one.items() if name != "examples"}
                for one in data["requirements"]
            ],
            "attempts": data["attempts"],
            "frames_not_read": data["frames_not_read"],
            "left_out": {
                "sessions": collector.sessions.left_out,
                "requirements": collector.requirements.left_out,
                "queues": collector.tallies.left_out["queues"],
                "queue_managers": collector.tallies.left_out["managers"],
                "endpoints": collector.tallies.left_out["endpoints"],
                "attempts": 0 if dissection.attempts is None else dissection.attempts.failed()[1],
            },
        }


def _time(split: list[int] | None) -> str | None:
    return None if split is None else format_time(split[0] * 1_000_000_000 + split[1])


def _table(rows: list[Any], names: tuple[str, ...]) -> list[dict[str, Any]]:
    named = [dict(zip(names, row, strict=True)) for row in rows]
    return [
        {name: _time(value) if name in ("start", "end") else value for name, value in row.items()}
        for row in named
    ]
