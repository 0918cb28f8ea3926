"""The tables of ``msmqwire manage``, for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from msmqwire.cli.top_tables import size
from msmqwire.management.reports import MachineReport, QueueReport
from msmqwire.names.printable import counted, safe

_STATES: Final = {
    "CONNECTED": "green",
    "WAITING": "yellow",
    "NEED VALIDATION": "yellow",
    "ONHOLD": "yellow",
    "LOCKED": "red",
}
_Titles = Sequence[tuple[str, bool]]
_Cells = tuple[str | Text, ...]
_LOCAL: Final[_Titles] = (
    ("Queue", False), ("Messages", True), ("Size", True), ("Journal", True), ("", False),
)  # fmt: skip
_OUTGOING: Final[_Titles] = (
    ("Outgoing to", False), ("Messages", True), ("Size", True), ("State", False), ("Unacknowledged", True),
    ("Last connection", False),
)  # fmt: skip
_REFUSED: Final[_Titles] = (("Not asked", False), ("Reason", False))
"""The columns: titles, and whether they have numbers."""
_WHOLE: Final = ("State",)
"""Columns of texts that are not broken into lines."""
_WIDE: Final = 110
_HISTORY_MAX: Final = 5
"""Events of a connection that are shown, the newest first."""
_BYTES_MAX: Final = 0xFFFF_FFFF
_UNKNOWN: Final = "?"


def machine_table(machine: MachineReport) -> RenderableType:
    """Return what is known of a computer."""
    online = {True: "online", False: "offline: no messages from or to others", None: _UNKNOWN}
    rows = [
        ("computer", safe(machine.host)),
        ("type", safe(machine.type or _absent(machine.unavailable, "type"))),
        ("network", online[machine.connected]),
        ("queues", _listed(machine)),
        ("bytes", _machine_bytes(machine)),
        ("directory", safe(machine.directory_server or "none")),
    ]
    return _pairs(rows)


def queue_tables(reports: Sequence[QueueReport], width: int, *, cut: bool = False) -> RenderableType:
    """Return queues, outgoing ones apart, those with the most messages first; and their sums.

    On less than `_WIDE` columns the last connections are left out. Where the end may be `cut` off, the sums
    and the outgoing queues come first.
    """
    wide = width >= _WIDE
    asked = [report for report in reports if report.reason is None]
    local = _sorted(report for report in asked if not report.outgoing)
    outgoing = _sorted(report for report in asked if report.outgoing)
    refused = [report for report in reports if report.reason is not None]
    parts: list[RenderableType] = []
    if outgoing:
        titles, rows = _OUTGOING, [_outgoing(one) for one in outgoing]
        if not wide:
            titles, rows = titles[:-1], [row[:-1] for row in rows]
        parts += [_table(titles, rows), Text("")]
    if refused:
        parts += [_table(_REFUSED, [_refused(one) for one in refused]), Text("")]
    own: list[RenderableType] = []
    if local:
        own += [_table(_LOCAL, [_local(one) for one in local]), Text("")]
    sums = _sums(local, outgoing, refused)
    return Group(sums, Text(""), *parts, *own) if cut else Group(*own, *parts, sums)


def queue_table(report: QueueReport) -> RenderableType:
    """Return all that is known of a queue."""
    rows: list[tuple[str, str]] = [
        ("queue", safe(report.name)),
        _other_name(report),
        ("messages", _plain(report, "messages")),
        ("bytes", _plain(report, "bytes")),
        ("in its journal", _plain(report, "journal_messages")),
        ("bytes there", _plain(report, "journal_bytes")),
        ("type", safe(report.type or _absent(report.unavailable, "type"))),
        ("state", safe(report.state or _absent(report.unavailable, "state"))),
        ("transactional", _plain(report, "transactional")),
        ("foreign", _plain(report, "foreign")),
    ]
    if report.subqueues:
        rows.append(("subqueues", safe(", ".join(report.subqueues))))
    if report.next_hops:
        rows.append(("next hops", safe(", ".join(report.next_hops))))
    if report.outgoing and report.eod is not None:
        rows += _transfer(report.eod)
    for number, event in enumerate(_newest(report.connection_history)):
        rows.append(("" if number else "connections", _event(event)))
    left = len(report.connection_history) - _HISTORY_MAX
    if left > 0:
        rows.append(("", f"and {counted(left, 'earlier event')}"))
    for number, source in enumerate(report.sources[:_HISTORY_MAX]):
        last = "never" if source.last_access is None else _time(source.last_access)
        text = f"{source.sender}, number {source.number} at {last}, {source.rejected} rejected"
        rows.append(("" if number else "senders", text))
    if len(report.sources) > _HISTORY_MAX:
        rows.append(("", f"and {counted(len(report.sources) - _HISTORY_MAX, 'other sender')}"))
    return _pairs(rows)


def _other_name(report: QueueReport) -> tuple[str, str]:
    """Return the name of a queue that `QueueReport.name` is not."""
    if report.outgoing:
        return "path name", safe(report.path or _absent(report.unavailable, "path"))
    return "format name", safe(report.format_name or _absent(report.unavailable, "format_name"))


# -- cells -----------------------------------------------------------------------------------------------


def _pairs(rows: Iterable[tuple[str, str]]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, Text(value))
    return table


def _table(titles: _Titles, rows: Sequence[_Cells]) -> Table:
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0), pad_edge=False)
    for at, (title, numbers) in enumerate(titles):
        justify: Any = "right" if numbers else "left"
        whole = numbers or title in _WHOLE
        table.add_column(title, justify=justify, no_wrap=whole, overflow="fold", min_width=0 if at else 12)
    for row in rows:
        table.add_row(*row)
    return table


def _sorted(reports: Iterable[QueueReport]) -> list[QueueReport]:
    return sorted(reports, key=lambda one: (-(one.messages or 0), one.name.casefold()))


def _local(report: QueueReport) -> _Cells:
    return (*_counts(report), _number(report.journal_messages), _notes(report))


def _outgoing(report: QueueReport) -> _Cells:
    return (*_counts(report), _state(report), _unacknowledged(report), _last(report))


def _refused(report: QueueReport) -> _Cells:
    return Text(safe(report.name)), Text(safe(report.reason or ""), "red")


def _counts(report: QueueReport) -> _Cells:
    style = "bold" if report.messages else ""
    return Text(safe(report.name), style), _number(report.messages), _size(report)


def _number(number: int | None) -> str:
    return _UNKNOWN if number is None else f"{number:,}"


def _size(report: QueueReport) -> str:
    if report.bytes is None:
        return _UNKNOWN
    return "4 GiB and more" if report.bytes >= _BYTES_MAX else size(report.bytes)


def _notes(report: QueueReport) -> str:
    notes = ["transactional"] if report.transactional else []
    return ", ".join([*notes, *(["foreign"] if report.foreign else [])])


def _state(report: QueueReport) -> Text:
    state = report.state or _UNKNOWN
    return Text(safe(state), _STATES.get(state, ""))


def _unacknowledged(report: QueueReport) -> str:
    count = None if report.eod is None else report.eod.no_ack_count
    return "" if count is None else f"{count:,}"


def _last(report: QueueReport) -> str:
    newest = _newest(report.connection_history)
    return _event(newest[0], with_addresses=False) if newest else ""


def _newest(events: Sequence[Any]) -> list[Any]:
    ordered = sorted(events, key=lambda event: 0 if event.time is None else event.time.timestamp())
    return ordered[::-1][:_HISTORY_MAX]


def _event(event: Any, *, with_addresses: bool = True) -> str:
    shown = event.to_json()
    parts = ["" if event.time is None else _time(event.time), str(shown["status"])]
    if shown["error"]:
        parts.append(f"({shown['error']})")
    if with_addresses and event.addresses:
        parts.append(f"at {', '.join(event.addresses)}")
    return safe(" ".join(filter(None, parts)))


def _transfer(eod: Any) -> Iterator[tuple[str, str]]:
    """Yield how transactional messages go: numbers that are 0 and times that never were are left out."""
    if eod.no_ack_count is not None:
        yield "unacknowledged", f"{eod.no_ack_count:,}"
    if eod.no_read_count:
        yield "not received yet", f"{eod.no_read_count:,}"
    acknowledged = "never" if eod.last_ack_time is None else _time(eod.last_ack_time)
    yield "acknowledged last", acknowledged
    if eod.resend_time is not None:
        every = "" if eod.resend_interval is None else f", every {eod.resend_interval:,} s"
        yield "sent again", f"{_time(eod.resend_time)}{every}"
    if eod.resend_count:
        yield "times sent again", f"{eod.resend_count:,}"


def _plain(report: QueueReport, name: str) -> str:
    value = getattr(report, name)
    if value is None:
        return _absent(report.unavailable, name)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}"


def _absent(unavailable: Any, name: str) -> str:
    return f"{_UNKNOWN} ({unavailable[name]})" if name in unavailable else _UNKNOWN


def _time(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S}Z"


def _listed(machine: MachineReport) -> str:
    private, active = machine.private_queues, machine.active_queues
    parts = [
        f"{_UNKNOWN} private" if private is None else f"{len(private):,} private",
        f"{_UNKNOWN} active" if active is None else f"{len(active):,} active",
    ]
    return ", ".join(parts)


def _machine_bytes(machine: MachineReport) -> str:
    if machine.bytes_all_queues is None:
        return _absent(machine.unavailable, "bytes_all_queues")
    return size(machine.bytes_all_queues)


def _sums(local: list[QueueReport], outgoing: list[QueueReport], refused: list[QueueReport]) -> Text:
    parts = []
    for what, reports in (("queue", local), ("outgoing queue", outgoing)):
        if reports or not (local or outgoing or what != "queue"):
            total = sum(one.messages or 0 for one in reports)
            volume = size(sum(one.bytes or 0 for one in reports))
            parts.append(f"{counted(len(reports), what)}: {counted(total, 'message')}, {volume}")
    if refused:
        parts.append(f"{counted(len(refused), 'queue')} not asked")
    return Text("; ".join(parts), "dim")
