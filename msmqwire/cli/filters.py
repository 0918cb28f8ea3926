"""Which items of a capture are shown."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable
from datetime import UTC, datetime

from msmqwire.cli.show import endpoint, queue_text
from msmqwire.dissection import Item

Filter = Callable[[Item], bool]


def parse_time(text: str) -> int:
    """ISO 8601 text (UTC unless it says otherwise), or seconds since 1970, as nanoseconds.

    Raises ValueError.
    """
    try:
        seconds, _, fraction = text.partition(".")
        return int(seconds) * 1_000_000_000 + int((fraction + "000000000")[:9])
    except ValueError:
        pass
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1_000_000) * 1000


def by_time(start: str | None, end: str | None) -> Filter:
    """Items not before `start` and before `end`. Raises ValueError."""
    low = parse_time(start) if start else None
    high = parse_time(end) if end else None
    return lambda item: (low is None or item.time_ns >= low) and (high is None or item.time_ns < high)


def by_endpoint(text: str) -> Filter:
    """Items to or from an address, ``address:port`` or ``:port``."""

    def test(item: Item) -> bool:
        ends = ((item.src, item.src_port), (item.dst, item.dst_port))
        return any(text in (address, f":{port}", endpoint(address, port)) for address, port in ends)

    return test


def by_kind(kinds: list[str]) -> Filter:
    """Items of some kinds, in any case."""
    wanted = {kind.lower() for kind in kinds}
    return lambda item: item.kind.lower() in wanted


def by_label(pattern: str) -> Filter:
    """Messages whose label matches a pattern with ``*`` and ``?``, in any case."""

    def test(item: Item) -> bool:
        properties = item.packet.get("MessagePropertiesHeader") if item.packet else None
        label = properties.Label if properties is not None else None
        return isinstance(label, str) and fnmatch.fnmatchcase(label.lower(), pattern.lower())

    return test


def by_queue(pattern: str) -> Filter:
    """Messages whose destination matches a pattern or contains it, in any case."""
    wanted = pattern.lower()

    def test(item: Item) -> bool:
        if item.packet is None or item.packet.get("UserHeader") is None:
            return False
        name = queue_text(item.packet).lower()
        return fnmatch.fnmatchcase(name, wanted) or (bool(wanted) and wanted in name)

    return test


def by_findings(severities: list[str]) -> Filter:
    """Items with a finding; with severities or ids, with one of those."""
    wanted = {severity.upper() for severity in severities}

    def test(item: Item) -> bool:
        return any(
            not wanted
            or "ANY" in wanted
            or finding.severity.upper() in wanted
            or finding.id.upper() in wanted
            for finding in item.findings
        )

    return test
