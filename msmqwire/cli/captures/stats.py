"""``msmqwire dissect --stats``: counts of captures, as tables for people or one JSON object."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, TextIO

from msmqwire.analysis.report.statistics import Statistics
from msmqwire.capture.attempts import FailedAttempts
from msmqwire.json_text import dumps
from msmqwire.names.printable import counted, cut

ROWS_MAX: Final = 20
"""Rows of a table for people; in JSON are all."""
CELL_MAX: Final = 60
"""Characters of a cell, but of the last one in a row."""

_SESSION: Final = (
    "stream", "from", "to", "protocol", "packets", "bytes", "again", "findings", "handshake",
)  # fmt: skip

_LEFT_OUT: Final = {"requirements": "finding", "attempts": "attempt"}

__all__ = ["Statistics", "print_stats"]


def print_stats(counts: dict[str, Any], out: TextIO, *, as_json: bool) -> None:
    """Print the counts that `Statistics.to_json` returns."""
    if as_json:
        print(dumps(counts), file=out)
        return
    print(_headline(counts), file=out)
    _print_table(out, "Kinds", ("kind", "packets", "bytes", "findings"), (
        (one["kind"], one["packets"], one["bytes"], one["findings"]) for one in counts["kinds"]
    ))  # fmt: skip
    _print_table(out, "Queues", ("queue", "messages", "body bytes", "packets", "findings"), (
        (one["queue"], one["messages"], one["body_bytes"], one["packets"], one["findings"])
        for one in counts["queues"]
    ))  # fmt: skip
    _print_table(out, "Sessions", _SESSION, map(_session, counts["sessions"]))
    _print_table(out, "Findings", ("severity", "id", "findings", "packets", "about"), (
        (one["severity"], one["id"], one["count"], one["packets"], one["title"] or one["message"])
        for one in counts["requirements"]
    ))  # fmt: skip
    _print_attempts(out, [FailedAttempts(**one) for one in counts["attempts"]])
    _print_table(out, "Frames not read", ("reason", "frames"), (
        (one["reason"], one["frames"]) for one in counts["frames_not_read"]
    ))  # fmt: skip
    for name, count in counts["left_out"].items():
        if count:
            what = counted(count, _LEFT_OUT.get(name, "packet"))
            print(f"\nThere is no room for more {name.replace('_', ' ')}: {what} left out", file=out)


def _headline(counts: dict[str, Any]) -> str:
    severities = ", ".join(f"{count:,} {name}" for name, count in counts["severities"].items() if count)
    parts = [
        counted(counts["packets"], "packet"),
        counted(counts["bytes"], "byte"),
        counted(counts["findings"], "finding") + (f" ({severities})" if severities else ""),
    ]
    parts += [f"{counts['again']:,} sent again"] * bool(counts["again"])
    if counts["start"] is not None:
        parts.append(f"{counts['start']} to {counts['end']}")
    return ", ".join(parts)


def _session(one: dict[str, Any]) -> tuple[Any, ...]:
    stream = "" if one["stream"] is None else str(one["stream"])
    totals = (sum(one["packets"]), sum(one["bytes"]), one["again"], one["findings"])
    return (stream, one["left"], one["right"], one["protocol"], *totals, one["state"])


def _print_attempts(out: TextIO, failed: Sequence[FailedAttempts]) -> None:
    """Print a line for each client and port with failed attempts to connect. Nothing without any."""
    if not failed:
        return
    print("\nFailed attempts to connect", file=out)
    for one in failed[:ROWS_MAX]:
        print(f"  {one}", file=out)
    if len(failed) > ROWS_MAX:
        print(f"  and {len(failed) - ROWS_MAX:,} more: --json has all", file=out)


def _print_table(out: TextIO, title: str, names: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
    """Print rows below their names; numbers to the right. Nothing without rows."""
    every = list(rows)
    if not every:
        return
    shown = [names, *((*map(_cell, row[:-1]), _cell(row[-1], 0)) for row in every[:ROWS_MAX])]
    widths = [max(len(row[place]) for row in shown) for place in range(len(names))]
    are_numbers = [isinstance(value, int) for value in every[0]]
    print(f"\n{title}", file=out)
    for row in shown:
        cells = (
            f"{cell:>{width}}" if is_number else f"{cell:<{width}}"
            for cell, width, is_number in zip(row, widths, are_numbers, strict=True)
        )
        print(f"  {'  '.join(cells)}".rstrip(), file=out)
    if len(every) > ROWS_MAX:
        print(f"  and {len(every) - ROWS_MAX:,} more: --json has all", file=out)


def _cell(value: Any, longest: int = CELL_MAX) -> str:
    text = f"{value:,}" if isinstance(value, int) else str(value)
    return cut(text, longest) if longest else text
