"""Which items of a capture are shown."""

from __future__ import annotations

import fnmatch
import operator
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from msmqwire.cli.show import endpoint, queue_text
from msmqwire.dissection import Item

Filter = Callable[[Item], bool]
Condition = tuple[str, str, Any]
"""A condition on a column, as `msmqwire.read_capture` takes it."""

KINDS: Final = {
    name.lower(): name
    for name in ("EstablishConnection", "ConnectionParameters", "SessionAck", "UserMessage", "OrderAck",
                 "FinalAck", "Ping", "Malformed", "Skipped")
}  # fmt: skip
"""The names of items as they are written, by the same in small letters."""
_OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    ">=": operator.ge,
    "<": operator.lt,
    "in": lambda found, wanted: found in wanted,
}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECONDS: Final = re.compile(r"[0-9]{1,15}(\.[0-9]+)?")
_FRACTION: Final = re.compile(r"(?<=:\d\d)[.,](\d{1,9})\d*")


def parse_time(text: str) -> int:
    """ISO 8601 text (UTC unless it says otherwise), or seconds since 1970, as nanoseconds.

    Raises ValueError.
    """
    if _SECONDS.fullmatch(text):
        whole, _, part = text.partition(".")
        return int(whole) * 1_000_000_000 + int(part[:9].ljust(9, "0"))
    fraction = _FRACTION.search(text)  # cut out, as it has more digits than Python reads
    moment = datetime.fromisoformat(_FRACTION.sub("", text))
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    seconds = (moment - _EPOCH) // timedelta(seconds=1)
    return seconds * 1_000_000_000 + (int(fraction[1].ljust(9, "0")) if fraction else 0)


def by_time(start: str | None, end: str | None) -> list[Condition]:
    """Not before `start` and before `end`. Raises ValueError."""
    found: list[Condition] = [("time", ">=", parse_time(start))] if start else []
    return found + ([("time", "<", parse_time(end))] if end else [])


def by_kind(kinds: list[str]) -> Condition:
    """Some kinds, in any case. Raises KeyError for one that does not exist."""
    return "kind", "in", [KINDS[kind.lower()] for kind in kinds]


def meets(conditions: list[Condition]) -> Filter:
    """Items that meet conditions on time and kind."""

    def test(item: Item) -> bool:
        found = {"time": item.time_ns, "kind": item.kind}
        return all(_OPERATORS[op](found[name], value) for name, op, value in conditions)

    return test


def by_endpoint(text: str) -> Filter:
    """Items to or from an address, ``address:port`` or ``:port``."""
    text = text.lower()

    def test(item: Item) -> bool:
        ends = ((item.src, item.src_port), (item.dst, item.dst_port))
        return any(text in (address, f":{port}", endpoint(address, port)) for address, port in ends)

    return test


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
