"""Filters of the items of a capture."""

from __future__ import annotations

import fnmatch
import operator
from collections.abc import Callable
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

import typer

from msmqwire.dissection import Item
from msmqwire.dissection.item import PGM_KIND, SRMP_KIND
from msmqwire.dissection.summaries import queue_text
from msmqwire.dissection.times import parse_time
from msmqwire.names.printable import format_endpoint
from msmqwire.netware.ncp_packet import KINDS as NCP_KINDS
from msmqwire.remote_read.rpc_packet import KINDS as RPC_KINDS
from msmqwire.remote_read.rpc_packet import RpcPacket
from msmqwire.schema import Record
from msmqwire.srmp.attributes import attribute
from msmqwire.srmp.message import SrmpMessage

if TYPE_CHECKING:
    from msmqwire.columnar.expression import Expression

Filter = Callable[[Item], bool]
Condition = tuple[str, str, Any]
"""A condition on time or kind, as `msmqwire.read_capture` takes it."""

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


def nearest_kind(name: str) -> str:
    """Return a question that names the kind most like a wrong name; nothing if none is."""
    near = get_close_matches(name.lower(), KINDS, n=1)
    return f"; did you mean {KINDS[near[0]]}?" if near else ""


def expression_of(text: str) -> Expression:
    """Parse an expression over columns. Raises typer.BadParameter, which shows the place."""
    from msmqwire.columnar.expression import Compared, OneOf
    from msmqwire.columnar.expression_parser import InvalidExpression, parse_expression

    try:
        expression = parse_expression(text)
    except InvalidExpression as exc:
        shown = "".join(char if char.isprintable() else "?" for char in text)
        raise typer.BadParameter(f"{exc.why}\n  {shown}\n  {' ' * exc.position}^") from None
    for node in expression.nodes():
        if isinstance(node, Compared | OneOf) and node.column.name == "kind":
            names = node.operands if isinstance(node, OneOf) else (node.operand,)
            if unknown := [name for name in names if KINDS.get(name.lower()) != name]:
                raise typer.BadParameter(f"no packet is named {unknown[0]!r}{nearest_kind(unknown[0])}")
    return expression


def by_expression(expression: Expression) -> Filter:
    """Return a filter for items that an expression over columns accepts."""
    from msmqwire.columnar.arrow.rows import value_of

    return lambda item: expression.accepts(lambda column: value_of(column, item))


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
