"""Filters of the items of a capture."""

from __future__ import annotations

import fnmatch
import operator
import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from msmqwire.analysis.dissection import Item
from msmqwire.analysis.dissection.kinds import kind_named
from msmqwire.analysis.dissection.times import parse_time
from msmqwire.analysis.lint import checks
from msmqwire.analysis.lint.finding import SEVERITIES
from msmqwire.analysis.protocols import protocol_of
from msmqwire.errors import InvalidArgument
from msmqwire.headers.message_summary import queue_text
from msmqwire.names.addresses import captured_address
from msmqwire.names.grammar import PORT_MAX
from msmqwire.names.nearest import unknown_name
from msmqwire.schema import Record

if TYPE_CHECKING:
    from msmqwire.tables.expression import Expression

Filter = Callable[[Item], bool]
Condition = tuple[str, str, Any]
"""A condition on time or kind, as `msmqwire.read_capture` takes it."""

ANY: Final = "any"
_FINDINGS: Final = f"there are {ANY}, {', '.join(SEVERITIES)}, and the ids that lint prints"
_PART_ENDS: Final = re.compile(r"[-.]")
_OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    ">=": operator.ge,
    "<": operator.lt,
    "in": lambda value, values: value in values,
}


def by_time(start: str | None, end: str | None) -> list[Condition]:
    """Return conditions for times from `start` on, before `end`. Raises InvalidArgument."""
    first, last = _time("from", start), _time("to", end)
    if first is not None and last is not None and first >= last:
        raise InvalidArgument(f"{end!r:.80} is not after --from {start!r:.80}", path="to")
    conditions: list[Condition] = [] if first is None else [("time", ">=", first)]
    return conditions + ([] if last is None else [("time", "<", last)])


def _time(option: str, text: str | None) -> int | None:
    try:
        return None if text is None else parse_time(text)
    except ValueError:
        why = f"{text!r:.80} is not a time, as 2026-03-01T12:00:00 (UTC without a zone) or seconds since 1970"
        raise InvalidArgument(why, path=option) from None


def by_kind(kinds: list[str]) -> Condition:
    """Return a condition for these kinds, in any case. Raises InvalidArgument for an unknown one."""
    return "kind", "in", [kind_named(kind) for kind in kinds]


def meets(conditions: list[Condition]) -> Filter:
    """Return a filter for items that meet conditions on time and kind."""

    def test(item: Item) -> bool:
        values = {"time": item.time_ns, "kind": item.kind}
        # As of columns, a value that is not there meets no condition.
        return all(
            values[name] is not None and _OPERATORS[op](values[name], value) for name, op, value in conditions
        )

    return test


def expression_of(text: str, option: str = "--where") -> Expression:
    """Parse an expression over columns. Raises BadParameter, which shows the place."""
    from msmqwire.cli.wrong_usage import WrongText
    from msmqwire.tables.expression_parser import InvalidExpression, parse_expression

    try:
        return parse_expression(text)
    except InvalidExpression as exc:
        raise WrongText(exc.why, text, exc.position, param_hint=option) from None


def by_expression(expression: Expression) -> Filter:
    """Return a filter for items that an expression over columns accepts."""
    from msmqwire.tables.arrow.rows import value_of

    return lambda item: expression.accepts(lambda column: value_of(column, item))


def by_endpoint(text: str) -> Filter:
    """Return a filter for items to or from an address, ``address:port`` or ``:port``.

    Raises InvalidArgument for an endpoint that no packet can come from.
    """
    address, port = _endpoint(text)

    def test(item: Item) -> bool:
        ends = ((item.src, item.src_port), (item.dst, item.dst_port))
        return any(address in ("", one[0]) and port in (None, one[1]) for one in ends)

    return test


def _endpoint(text: str) -> tuple[str, int | None]:
    """Return the address, if there is one, and the port."""
    if text[:1] == "[":
        address, bracket, port = text[1:].partition("]")
        colon, number = port[:1], port[1:]
    elif text.count(":") == 1:
        bracket = "]"
        address, colon, number = text.partition(":")
    else:
        address, bracket, colon, number = text, "]", "", ""
    if (not address and not colon) or not bracket or colon not in ("", ":"):
        raise InvalidArgument(f"{text!r:.80} is not ADDRESS, ADDRESS:PORT or :PORT", path="endpoint")
    digits = number.lstrip("0") or number[:1]
    if colon and not (digits.isascii() and digits.isdigit() and len(digits) <= 5 and int(digits) <= PORT_MAX):
        raise InvalidArgument(f"{text!r:.80}: a port is 0 to {PORT_MAX:,}", path="endpoint")
    return captured_address(address, "endpoint") if address else "", int(digits) if colon else None


def by_label(pattern: str) -> Filter:
    """Return a filter for messages whose label matches a pattern with ``*`` and ``?``, in any case."""

    def test(item: Item) -> bool:
        label = None
        message = _message(item)
        if message is not None:
            properties = message.get("MessagePropertiesHeader")
            label = properties.Label if properties is not None else None
        elif (protocol := protocol_of(item.packet)) is not None:
            label = protocol.columns.value("label", item.packet)
        return isinstance(label, str) and fnmatch.fnmatchcase(label.lower(), pattern.lower())

    return test


def by_queue(pattern: str) -> Filter:
    """Return a filter for messages whose destination matches a pattern or contains it, in any case.

    A packet of another protocol without a message passes by the queue that it is about.
    """
    pattern = pattern.lower()

    def test(item: Item) -> bool:
        message = _message(item)
        if message is not None:
            if message.get("UserHeader") is None:
                return False
            name = queue_text(message).lower()
        elif (protocol := protocol_of(item.packet)) is not None and protocol.columns.queue:
            name = (protocol.columns.value(protocol.columns.queue, item.packet) or "").lower()
        else:
            return False
        return fnmatch.fnmatchcase(name, pattern) or (bool(pattern) and pattern in name)

    return test


def _message(item: Item) -> Record | None:
    """Return the packet of MSMQ in an item: its own, or the message inside of it."""
    if isinstance(item.packet, Record):
        return item.packet
    protocol = protocol_of(item.packet)
    enclosed = None if protocol is None else protocol.packets.message_in(item.packet)
    return None if enclosed is None else enclosed.whole


def by_findings(names: list[str]) -> Filter:
    """Return a filter for items with a finding; if any are named, by severity, id or beginning of an id.

    Raises InvalidArgument for a name that no finding can have.
    """
    for name in names:
        if name.upper() not in _finding_names():
            raise unknown_name(name, _finding_names().values(), "finding", path="findings", see=_FINDINGS)
    selected = {name.upper() for name in names}
    beginnings = tuple(f"{name}{sign}" for name in selected for sign in "-.")

    def test(item: Item) -> bool:
        return any(
            not selected
            or ANY.upper() in selected
            or finding.severity.upper() in selected
            or finding.id.upper() in selected
            or finding.id.upper().startswith(beginnings)
            for finding in item.findings
        )

    return test


@cache
def _finding_names() -> dict[str, str]:
    """Return the names that choose findings, each by its upper case: severities, ids and their beginnings."""
    ids = dict.fromkeys(check.id for check in checks())
    beginnings = (id[: end.start()] for id in ids for end in _PART_ENDS.finditer(id))
    return {name.upper(): name for name in (ANY, *SEVERITIES, *beginnings, *ids)}
