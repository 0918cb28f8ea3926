"""The tables of ``msmqwire top``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from msmqwire.names.printable import counted, safe

if TYPE_CHECKING:
    from msmqwire.cli.top import Figures

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")
_STATES: Final = {"Connected": "green", "Waiting": "yellow", "OnHold": "yellow", "Locked": "red"}
_OVERHEAD: Final = 3
"""Lines of a table besides its rows: a blank one, its title, and the titles of its columns."""
_LEAST: Final = 2
_PARTS: Final = 8
"""Rows that a table gets if it wants them: this part of the lines, and `_LEAST` at least."""
_HEAD_LINES: Final = 3
_WIDE: Final = 110
"""Columns of a terminal from which less important columns are shown as well."""
_NAME_LEAST: Final = 16
_REFUSED_MAX: Final = 100
Row = tuple[str | Text, ...]
Column = tuple[str, bool, bool]
"""A column: its title, whether it has numbers, and whether it is shown on wide terminals only."""

_QUEUES: Final[tuple[Column, ...]] = (
    ("Queue", False, False), ("", False, True), ("Messages", True, False), ("In/s", True, False),
    ("Out/s", True, False), ("Size", True, False), ("In journal", True, True), ("Label", False, True),
)  # fmt: skip
_OUTGOING: Final[tuple[Column, ...]] = (
    ("Outgoing to", False, False), ("State", False, False), ("Messages", True, False), ("In/s", True, True),
    ("Out/s", True, False), ("Size", True, False), ("Next hop", False, True), ("Last", False, True),
)  # fmt: skip
_OTHERS: Final[tuple[Column, ...]] = (
    ("Queue", False, False), ("Messages", True, False), ("In/s", True, False), ("Out/s", True, False),
    ("Size", True, False),
)  # fmt: skip
_SESSIONS: Final[tuple[Column, ...]] = (
    ("Peer", False, False), ("Role", False, True), ("State", False, False), ("Window", True, True),
    ("Unacknowledged", True, False), ("Size of them", True, False), ("Received", True, True),
    ("Failures", True, False),
)  # fmt: skip


_REFUSED: Final[tuple[Column, ...]] = (
    ("Refused from", False, False), ("Queue", False, False), ("Reason", True, False), ("Count", True, False),
    ("Last", False, True), ("Label", False, True),
)  # fmt: skip


def screen(figures: Figures, console: Console, *, fit: bool, problem: str = "") -> RenderableType:
    """Return all that is shown; to `fit` the console, of each table only the rows that it has room for."""
    report = figures.report
    groups: dict[str, list[dict[str, Any]]] = {name: [] for name in report["groups"]}
    for queue in report["queues"]:
        groups[queue["group"]].append(queue)
    others = [queue for queue in groups["system"] + groups["journals"] if queue["messages"]]
    totals = {name: group["queues"] for name, group in report["groups"].items()}
    tables: list[tuple[str, tuple[Column, ...], list[Row], int]] = [
        ("Queues", _QUEUES, [_queue(one, figures) for one in groups["application"]], totals["application"]),
        ("Outgoing", _OUTGOING, [_outgoing(one, figures) for one in groups["outgoing"]], totals["outgoing"]),
        ("Journals and dead letters", _OTHERS, [_other(one, figures) for one in others], len(others)),
        ("Sessions", _SESSIONS, [_session(one) for one in report["sessions"]], report["sessions_total"]),
        (
            "Refused",
            _REFUSED,
            [_refusal(one) for one in report["refused"][:_REFUSED_MAX]],
            len(report["refused"]),
        ),
    ]
    shown = [entry for entry in tables if entry[2]]
    most = _shares([len(entry[2]) for entry in shown], console.height if fit else None)
    parts: list[RenderableType] = [_head(figures, problem)]
    for (title, columns, rows, total), share in zip(shown, most, strict=True):
        parts += [Text(""), *_table(title, columns, rows[:share], total, wide=console.width >= _WIDE)]
    return Group(*parts)


def _shares(wanted: list[int], height: int | None) -> list[int]:
    """Return the number of rows of each table: all it wants, or the rows that the tables before it leave."""
    if height is None:
        return wanted
    room = max(0, height - _HEAD_LINES - _OVERHEAD * len(wanted))
    least = max(_LEAST, height // _PARTS)
    shares = [min(least, want) for want in wanted]
    for at, want in enumerate(wanted):
        shares[at] += max(0, min(want - shares[at], room - sum(shares)))
    return shares


def _head(figures: Figures, problem: str) -> RenderableType:
    report, rates, counters = figures.report, figures.rates, figures.report["counters"]
    title = Text.assemble((safe(report["name"]), "bold"), f"  {_time(report['time'])} UTC", no_wrap=True)
    if problem:
        title.append(f"  {safe(problem)}", "bold red")
    elif not report["served"]:
        title.append("  no server runs: counts only", "yellow")
    state = Text(
        f"{counted(report['messages'], 'message')}, {size(report['used'])} of {size(report['quota'])}, "
        f"{counted(report['sessions_total'], 'session')}, "
        f"{counted(report['transactions_total'], 'transaction')}",
        no_wrap=True,
    )
    if not report["disk"]["accepts"]:
        state.append("  new messages are refused: the disk is full, or almost", "bold red")
    names = ("put", "taken", "commits") if report["served"] else ()
    parts = [f"{name} {_counted(counters[name], rates.get(name))}" for name in names]
    for name, label in (("bytes_received", "received"), ("bytes_sent", "sent")):
        if name in counters:
            rate = rates.get(name)
            parts.append(f"{label} {size(counters[name])}" + ("" if rate is None else f" ({size(rate)}/s)"))
    troubles = [f"{name.replace('_', ' ')} {count:,}" for name, count in report["troubles"].items()]
    if troubles:
        parts.append(f"trouble: {', '.join(troubles)}")
    return Group(title, state, Text(", ".join(parts), no_wrap=True, overflow="ellipsis"))


def _table(
    title: str, columns: tuple[Column, ...], rows: list[Row], total: int, *, wide: bool
) -> tuple[Text, Table]:
    """Return a title and a table. Texts are cut where there is no room, numbers never."""
    more = f"  {len(rows):,} of {total:,}" if len(rows) < total else ""
    table = Table(box=None, expand=True, header_style="dim", padding=(0, 2, 0, 0), pad_edge=False)
    chosen = [at for at, (_, _, only_wide) in enumerate(columns) if wide or not only_wide]
    for at in chosen:
        name, numbers, _ = columns[at]
        if numbers:
            widest = max((len(str(row[at])) for row in rows), default=0)
            table.add_column(name, justify="right", no_wrap=True, min_width=max(len(name), widest))
        else:
            least, share = (0, 2) if at else (_NAME_LEAST, 3)
            table.add_column(name, no_wrap=True, overflow="ellipsis", min_width=least, ratio=share)
    for row in rows:
        table.add_row(*(row[at] for at in chosen))
    return Text.assemble((title, "bold"), (more, "dim")), table


def _queue(queue: dict[str, Any], figures: Figures) -> Row:
    kept = queue["journal_messages"]
    return (
        _name(queue),
        "transactional" if queue["transactional"] else "",
        f"{queue['messages']:,}",
        *_rates(figures, queue),
        size(queue["bytes"]),
        f"{kept:,}" if queue["journal"] or kept else "",
        Text(safe(queue["label"])),
    )


def _outgoing(queue: dict[str, Any], figures: Figures) -> Row:
    return (
        _name(queue),
        Text(queue["state"], _STATES.get(queue["state"], "")),
        f"{queue['messages']:,}",
        *_rates(figures, queue),
        size(queue["bytes"]),
        Text(safe(", ".join(queue["next_hops"]))),
        queue["last_status"] or "",
    )


def _other(queue: dict[str, Any], figures: Figures) -> Row:
    return _name(queue), f"{queue['messages']:,}", *_rates(figures, queue), size(queue["bytes"])


def _session(session: dict[str, Any]) -> Row:
    return (
        Text(safe(session["peer"] or session["address"] or "")),
        session["role"],
        Text(session["state"], "green" if session["state"] == "OPEN" else "yellow"),
        f"{session['window']}/{session['peer_window']}",
        f"{session['sent_unacknowledged']:,}",
        size(session["sent_unacknowledged_bytes"]),
        f"{session['received_unacknowledged']:,}",
        f"{session['failures']:,}",
    )


def _refusal(refusal: dict[str, Any]) -> Row:
    return (
        Text(safe(refusal["peer"] or "this computer")),
        Text(safe(refusal["queue"] or "")),
        Text(safe(refusal["reason"]), "red"),
        f"{refusal['count']:,}",
        _time(refusal["last"]),
        Text(safe(refusal["label"] or "")),
    )


def _time(text: str) -> str:
    """Return a time without the fractions of its seconds, in UTC."""
    return text[:19].replace("T", " ")


def _name(queue: dict[str, Any]) -> Text:
    return Text(safe(queue["queue"]), "bold" if queue["messages"] else "")


def _rates(figures: Figures, queue: dict[str, Any]) -> tuple[str, str]:
    rates = figures.queue_rates.get(queue["queue"])
    return ("", "") if rates is None else (f"{rates[0]:,.1f}", f"{rates[1]:,.1f}")


def _counted(count: int, rate: float | None) -> str:
    return f"{count:,}" if rate is None else f"{count:,} ({rate:,.1f}/s)"


def size(number: float) -> str:
    """Format a number of bytes: 1.5 KiB."""
    unit = 0
    while number >= 1024 and unit < len(_UNITS) - 1:
        number /= 1024
        unit += 1
    return f"{number:,.0f} {_UNITS[unit]}" if unit == 0 or number >= 100 else f"{number:.1f} {_UNITS[unit]}"
