"""Filters of the items of a capture."""

from __future__ import annotations

import fnmatch
import operator
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from msmqwire.dissection import Item
from msmqwire.dissection.item import PGM_KIND, SRMP_KIND
from msmqwire.dissection.summaries import queue_text
from msmqwire.names.printable import format_endpoint
from msmqwire.netware.ncp_packet import KINDS as NCP_KINDS
from msmqwire.remote_read.rpc_packet import KINDS as RPC_KINDS
from msmqwire.remote_read.rpc_packet import RpcPacket
from msmqwire.schema import Record
from msmqwire.srmp.attributes import attribute
from msmqwire.srmp.message import SrmpMessage

Filter = Callable[[Item], bool]
Condition = tuple[str, str, Any]
"""A condition on a column, as `msmqwire.read_capture` takes it."""

KINDS: Final = {
    name.lower(): name
    for name in ("EstablishConnection", "ConnectionParameters", "SessionAck", "UserMessage", "OrderAck",
                 "FinalAck", "Ping", SRMP_KIND, PGM_KIND, *RPC_KINDS, *NCP_KINDS, "Malformed", "Skipped")
}  # fmt: skip
"""The kinds of items by their names in lower case."""
_OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    ">=": operator.ge,
    "<": operator.lt,
    "in": lambda value, values: value in values,
}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECONDS: Final = re.compile(r"[0-9]{1,15}(\.[0-9]+)?")
_FRACTION: Final = re.compile(r"(?<=:\d\d)[.,](\d{1,9})\d*")


def parse_time(text: str) -> int:
    """Parse ISO 8601 text (UTC by default) or seconds since 1970; return nanoseconds since 1970.

    Raises ValueError.
    """
    if _SECONDS.fullmatch(text):
        whole, _, part = text.partition(".")
        return int(whole) * 1_000_000_000 + int(part[:9].ljust(9, "0"))
    fraction = _FRACTION.search(text)  # parsed apart, as datetime supports fewer digits
    moment = datetime.fromisoformat(_FRACTION.sub("", text))
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    seconds = (moment - _EPOCH) // timedelta(seconds=1)
    return seconds * 1_000_000_000 + (int(fraction[1].ljust(9, "0")) if fraction else 0)


def by_time(start: str | None, end: str | None) -> list[Condition]:
    """Return conditions for times from `start` on, before `end`. Raises ValueError."""
    conditions: list[Condition] = [("time", ">=", parse_time(start))] if start else []
    return conditions + ([("time", "<", parse_time(end))] if end else [])


def by_kind(kinds: list[str]) -> Condition:
    """Return a condition for these kinds, in any case. Raises KeyError for an unknown one."""
    return "kind", "in", [KINDS[kind.lower()] for kind in kinds]


def meets(conditions: list[Condition]) -> Filter:
    """Return a filter for items that meet conditions on time and kind."""

    def test(item: Item) -> bool:
        values = {"time": item.time_ns, "kind": item.kind}
        return all(_OPERATORS[op](values[name], value) for name, op, value in conditions)

    return test


def by_endpoint(text: str) -> Filter:
    """Return a filter for items to or from an address, ``address:port`` or ``:port``."""
    text = text.lower()

    def test(item: Item) -> bool:
        ends = ((item.src, item.src_port), (item.dst, item.dst_port))
        return any(text in (address, f":{port}", format_endpoint(address, port)) for address, port in ends)

    return test


def message_packet(item: Item) -> Record | None:
    """Return the packet of an item, of an answer of remote read the message packet in it."""
    if isinstance(item.packet, RpcPacket):
        return None if item.packet.message is None else item.packet.message.whole
    return item.packet if isinstance(item.packet, Record) else None


def by_label(pattern: str) -> Filter:
    """Return a filter for messages whose label matches a pattern with ``*`` and ``?``, in any case."""

    def test(item: Item) -> bool:
        label = None
        packet = message_packet(item)
        if isinstance(item.packet, SrmpMessage):
            label = attribute("label", item.packet)
        elif packet is not None:
            properties = packet.get("MessagePropertiesHeader")
            label = properties.Label if properties is not None else None
        return isinstance(label, str) and fnmatch.fnmatchcase(label.lower(), pattern.lower())

    return test


def by_queue(pattern: str) -> Filter:
    """Return a filter for messages whose destination matches a pattern or contains it, in any case.

    A call of remote read without a message passes by the queue that it is about.
    """
    pattern = pattern.lower()

    def test(item: Item) -> bool:
        if isinstance(item.packet, SrmpMessage):
            name = (attribute("destination", item.packet) or "").lower()
        elif isinstance(item.packet, RpcPacket) and item.packet.message is None:
            name = item.packet.queue.lower()
        elif (packet := message_packet(item)) is not None and packet.get("UserHeader") is not None:
            name = queue_text(packet).lower()
        else:
            return False
        return fnmatch.fnmatchcase(name, pattern) or (bool(pattern) and pattern in name)

    return test


def by_findings(names: list[str]) -> Filter:
    """Return a filter for items with a finding; if any are named, by severity, id or beginning of an id."""
    selected = {name.upper() for name in names}
    beginnings = tuple(f"{name}-" for name in selected)

    def test(item: Item) -> bool:
        return any(
            not selected
            or "ANY" in selected
            or finding.severity.upper() in selected
            or finding.id.upper() in selected
            or finding.id.upper().startswith(beginnings)
            for finding in item.findings
        )

    return test
